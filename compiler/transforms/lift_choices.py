"""Choose arrays once, behind the branches that decide which.

The adjoint of what follows chooses the shadow as the primal chose the array, before it reverses the
branches. A test inside of a branch is not known there; as a result of the branch it is.

Before::

    func.func @f(%p : i1, %q : i1, %x : memref<?xf64>, %y : memref<?xf64>, %v : f64, %i : index) {
      %z = scf.if %p -> (memref<?xf64>) {
        memref.store %v, %x[%i] : memref<?xf64>
        %r = arith.andi %p, %q : i1
        %t = scf.if %r -> (memref<?xf64>) {
          scf.yield %x : memref<?xf64>
        } else {
          scf.yield %y : memref<?xf64>
        }
        scf.yield %t : memref<?xf64>
      } else {
        scf.yield %y : memref<?xf64>
      }
      memref.store %v, %z[%i] : memref<?xf64>
      func.return
    }

After::

    func.func @f(%p : i1, %q : i1, %x : memref<?xf64>, %y : memref<?xf64>, %v : f64, %i : index) {
      %r = scf.if %p -> (i1) {
        memref.store %v, %x[%i] : memref<?xf64>
        %r_1 = arith.andi %p, %q : i1
        scf.yield %r_1 : i1
      } else {
        %0 = arith.constant false
        scf.yield %0 : i1
      }
      %z = scf.if %p -> (memref<?xf64>) {
        %t = scf.if %r -> (memref<?xf64>) {
          scf.yield %x : memref<?xf64>
        } else {
          scf.yield %y : memref<?xf64>
        }
        scf.yield %t : memref<?xf64>
      } else {
        scf.yield %y : memref<?xf64>
      }
      memref.store %v, %z[%i] : memref<?xf64>
      func.return
    }

The arrays of one branch are chosen together, so that those that are never the same stay so. Views are made
where they are chosen; numbers of theirs that the branch computes become its results.

Not handled: arrays that a branch allocates (`hoist-branch-allocs` runs before), or that a loop in it carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from .memory_effects import functions

OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True)
class LiftChoices(ModulePass):
    """Make nested branches yield a bit, and choose arrays by it behind them."""

    name = "lift-choices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            branches = ops_of_kind(function, scf.IfOp)
            for branch in reversed(branches):  # those in others first
                lift(branch)


class Unknown(Exception):
    """An array that is there in its branch only."""


@dataclass
class Tree:
    """What it takes to choose arrays behind `branch`."""

    branch: scf.IfOp
    nested: bool = False
    """Whether branches in it have a say."""
    numbers: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """The integers that the branch computes, and the choice needs."""

    def is_outside(self, value: SSAValue) -> bool:
        owner = value.owner
        at = owner.parent_op() if isinstance(owner, Block) else owner
        return at is None or not self.branch.is_ancestor(at)

    def visit(self, value: SSAValue) -> None:
        """Note what it takes to have a value behind the branch; Unknown where nothing would do."""
        if self.is_outside(value):
            return
        if isinstance(value.type, IndexType | IntegerType):
            if not in_branches(value, self.branch):
                raise Unknown
            self.numbers[value] = None
            return
        match value.owner:
            case scf.IfOp() as inner:
                self.nested = True
                self.visit(inner.cond)
                for end in yields(inner):
                    self.visit(end.operands[result_index(value)])
            case array.ViewOp() | array.CollapseOp() | memref.CastOp() as view:
                for operand in view.operands:
                    self.visit(operand)
            case _:
                raise Unknown


def lift(branch: scf.IfOp) -> None:
    """Choose the arrays behind `branch` where a branch in it has a say."""
    tree, lifted = Tree(branch), list[int]()
    for k, result in enumerate(branch.results):
        if isinstance(result.type, MemRefType) and result.first_use is not None:
            one = Tree(branch)
            try:
                for end in yields(branch):
                    one.visit(end.operands[k])
            except Unknown:
                continue
            lifted.append(k)
            tree.nested |= one.nested
            tree.numbers |= one.numbers
    if not tree.nested:
        return
    chooser = Chooser(tree, lifted)
    branch = chooser.with_numbers()
    chooser.choose(branch)


class Chooser:
    """The rewrite of one branch."""

    def __init__(self, tree: Tree, lifted: Sequence[int]) -> None:
        self.tree, self.lifted = tree, lifted
        self.outer: dict[SSAValue, SSAValue] = {}
        """The numbers as results of the branch."""
        self.renamed: dict[SSAValue, SSAValue] = {}
        """The results of branches that have more results now."""

    def now(self, value: SSAValue) -> SSAValue:
        while value in self.renamed:
            value = self.renamed[value]
        return value

    def with_numbers(self) -> scf.IfOp:
        """The branch, which yields the numbers, too; zero on the other path."""
        branch = self.tree.branch
        numbers = list(self.tree.numbers)
        brought = {n: self.brought_up(n) for n in numbers}
        inner = {n: self.now(value) for n, value in brought.items()}
        for side, end in enumerate(yields(branch)):
            block = end.parent
            assert block is not None
            extra = [
                inner[n] if is_in(inner[n], branch.regions[side]) else zero_before(end, n)
                for n in numbers
            ]
            Rewriter.replace_op(end, located(scf.YieldOp(*end.operands, *extra), end))
        wider = with_results(branch, [n.type for n in numbers])
        for n, result in zip(numbers, wider.results[len(branch.results) :], strict=True):
            result.name_hint = n.name_hint
            self.outer[self.now(n)] = result
        self.replace(branch, wider)
        self.tree.branch = wider
        return wider

    def replace(self, old: scf.IfOp, new: scf.IfOp) -> None:
        """Put a branch with more results in the place of one that has lost its arms."""
        for before, after in zip(old.results, new.results, strict=False):
            after.name_hint = before.name_hint
            self.renamed[before] = after
            before.replace_all_uses_with(after)
        Rewriter.erase_op(old)

    def brought_up(self, number: SSAValue) -> SSAValue:
        """A number as a result of the branches in the branch that it is computed in."""
        number = self.now(number)
        block = number.owner if isinstance(number.owner, Block) else number.owner.parent
        assert block is not None
        inner = block.parent_op()
        if inner is self.tree.branch:
            return number
        assert isinstance(inner, scf.IfOp)
        for side, end in enumerate(yields(inner)):
            extra = number if is_in(number, inner.regions[side]) else zero_before(end, number)
            Rewriter.replace_op(end, located(scf.YieldOp(*end.operands, extra), end))
        wider = with_results(inner, [number.type])
        wider.results[-1].name_hint = number.name_hint
        self.replace(inner, wider)
        return self.brought_up(wider.results[-1])

    def choose(self, branch: scf.IfOp) -> None:
        """Behind the branch, the choice of the arrays, of which the branch says nothing any more."""
        regions = list[Region]()
        for end in yields(branch):
            block, made = Block(), dict[SSAValue, SSAValue]()
            values = [self.value(end.operands[k], block, made) for k in self.lifted]
            block.add_op(located(scf.YieldOp(*values), end))
            regions.append(Region(block))
        types = [branch.results[k].type for k in self.lifted]
        choice = located(scf.IfOp(branch.cond, types, regions[0], regions[1]), branch)
        home = branch.parent
        assert home is not None
        home.insert_op_after(choice, branch)
        for k, result in zip(self.lifted, choice.results, strict=True):
            result.name_hint = branch.results[k].name_hint
            branch.results[k].replace_all_uses_with(result)
        without_unused(branch)

    def value(self, value: SSAValue, block: Block, made: dict[SSAValue, SSAValue]) -> SSAValue:
        """A value of the branch, behind it, at the end of `block`."""
        if value in self.outer:
            return self.outer[value]
        if value in made or self.tree.is_outside(value):
            return made.get(value, value)
        owner = value.owner
        assert isinstance(owner, Operation)
        if not isinstance(owner, scf.IfOp):
            again = owner.clone({o: self.value(o, block, made) for o in owner.operands})
            block.add_op(again)
            made[value] = again.results[0]
            return made[value]
        arrays = [r for r in owner.results if isinstance(r.type, MemRefType) and self.is_known(r)]
        regions = list[Region]()
        for end in yields(owner):
            inner, inside = Block(), dict(made)
            values = [self.value(end.operands[result_index(r)], inner, inside) for r in arrays]
            inner.add_op(located(scf.YieldOp(*values), end))
            regions.append(Region(inner))
        condition = self.value(owner.cond, block, made)
        again = located(
            scf.IfOp(condition, [r.type for r in arrays], regions[0], regions[1]), owner
        )
        block.add_op(again)
        for old, new in zip(arrays, again.results, strict=True):
            new.name_hint = old.name_hint
            made[old] = new
        return made[value]

    def is_known(self, value: SSAValue) -> bool:
        """True for an array of a branch inside that can be chosen behind the branch."""
        one = Tree(self.tree.branch)
        try:
            one.visit(value)
        except Unknown:
            return False
        return one.numbers.keys() <= self.outer.keys()


def in_branches(value: SSAValue, branch: scf.IfOp) -> bool:
    """True where only branches are between a value and `branch`, which it is in."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None:
        op = block.parent_op()
        if op is branch:
            return True
        if not isinstance(op, scf.IfOp):
            return False
        block = op.parent
    return False


def yields(branch: scf.IfOp) -> list[scf.YieldOp]:
    """What ends the two arms of a branch with results."""
    ends = [region.block.last_op for region in branch.regions]
    return [end for end in ends if isinstance(end, scf.YieldOp)]


def result_index(value: SSAValue) -> int:
    assert isinstance(value.owner, Operation)
    return list(value.owner.results).index(value)  # pyright: ignore[reportArgumentType]


def is_in(value: SSAValue, region: Region) -> bool:
    """True for what is computed in a region."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    return block is not None and block.parent is region


def zero_before(end: Operation, like: SSAValue) -> SSAValue:
    """0, or false, before the end of an arm."""
    op = located(arith.ConstantOp(IntegerAttr(0, like.type)), end)  # pyright: ignore
    assert end.parent is not None
    end.parent.insert_op_before(op, end)
    return op.results[0]


def with_results(branch: scf.IfOp, types: Sequence[Attribute]) -> scf.IfOp:
    """The branch with more results, in its place; it is itself left without its arms."""
    regions = list[Region]()
    for region in branch.regions:
        block = region.block
        region.detach_block(block)
        regions.append(Region(block))
    all_types = [*(r.type for r in branch.results), *types]
    wider = located(scf.IfOp(branch.cond, all_types, regions[0], regions[1]), branch)
    wider.attributes.update(branch.attributes)
    assert branch.parent is not None
    branch.parent.insert_op_before(wider, branch)
    return wider


def without_unused(branch: scf.IfOp) -> None:
    """Drop the arrays among the results that are unused, and those of the branches in it."""
    kept = [
        k
        for k, r in enumerate(branch.results)
        if not (isinstance(r.type, MemRefType) and r.first_use is None)
    ]
    if len(kept) == len(branch.results):
        return
    for end in yields(branch):
        dropped = [v for k, v in enumerate(end.operands) if k not in kept]
        Rewriter.replace_op(end, located(scf.YieldOp(*(end.operands[k] for k in kept)), end))
        for value in dropped:
            drop(value, branch)
    regions = list[Region]()
    for region in branch.regions:
        block = region.block
        region.detach_block(block)
        regions.append(Region(block))
    types = [branch.results[k].type for k in kept]
    narrower = located(scf.IfOp(branch.cond, types, regions[0], regions[1]), branch)
    narrower.attributes.update(branch.attributes)
    results: list[SSAValue | None] = [None] * len(branch.results)
    for k, result in zip(kept, narrower.results, strict=True):
        results[k] = result
        result.name_hint = branch.results[k].name_hint
    Rewriter.replace_op(branch, narrower, results)
    if not kept and all(r.block.first_op is r.block.last_op for r in narrower.regions):
        Rewriter.erase_op(narrower)


def drop(value: SSAValue, branch: scf.IfOp) -> None:
    """Remove what made an array in the branch, where that was its only use."""
    owner = value.owner
    if isinstance(owner, Block) or value.first_use is not None or not branch.is_ancestor(owner):
        return
    if isinstance(owner, scf.IfOp):
        without_unused(owner)
    elif isinstance(owner, array.AnyView | memref.CastOp):
        operands = list(owner.operands)
        Rewriter.erase_op(owner)
        for operand in operands:
            drop(operand, branch)


def located(op: OpT, like: Operation) -> OpT:
    op.location = like.location
    return op

"""Move allocations out of branches.

An array that a branch of an `if` allocates is visible in that branch alone, but its shadow must be
there before the branch is reversed, where the array leaves the branch. Runs before the analyses, so
that every array is allocated at the top level of the function or of a loop's body. Allocating costs
an addition, so doing it on both branches is cheap; where the branch is not taken the array is empty,
whatever its extents would be there.

Before::

    func.func @f(%c : i1, %n : index) {
      scf.if %c {
        %m = arith.addi %n, %n : index
        %a = array.alloc(%m) : memref<?xf64>
        array.print "{}"(%a : memref<?xf64>)
      }
      func.return
    }

After::

    func.func @f(%c : i1, %n : index) {
      %m_early = arith.addi %n, %n : index
      %none = arith.constant 0 : index
      %m_or_none = arith.select %c, %m_early, %none : index
      %a = array.alloc(%m_or_none) : memref<?xf64>
      scf.if %c {
        %m = arith.addi %n, %n : index
        array.print "{}"(%a : memref<?xf64>)
      }
      func.return
    }

Out of a second branch, whose code computes the condition of the first, an array moves with its extents alone,
if it is certain that they are no larger than those of other arrays.

Where the branch computes an extent in its own time (it counts, or reads memory) and hands out the array,
the branch is cut in two before the allocation: what comes first hands on the numbers that the rest needs.

Before::

    func.func @g(%c : i1, %a : memref<?xf64>, %m : memref<index>) -> memref<?xf64> {
      %r = scf.if %c -> (memref<?xf64>) {
        %n = memref.load %m[] : memref<index>
        %b = array.alloc(%n) : memref<?xf64>
        scf.yield %b : memref<?xf64>
      } else {
        scf.yield %a : memref<?xf64>
      }
      func.return %r : memref<?xf64>
    }

After::

    func.func @g(%c : i1, %a : memref<?xf64>, %m : memref<index>) -> memref<?xf64> {
      %n = scf.if %c -> (index) {
        %n_1 = memref.load %m[] : memref<index>
        scf.yield %n_1 : index
      } else {
        %zero = arith.constant 0 : index
        scf.yield %zero : index
      }
      %none = arith.constant 0 : index
      %n_or_none = arith.select %c, %n, %none : index
      %b = array.alloc(%n_or_none) : memref<?xf64>
      %r = scf.if %c -> (memref<?xf64>) {
        scf.yield %b : memref<?xf64>
      } else {
        scf.yield %a : memref<?xf64>
      }
      func.return %r : memref<?xf64>
    }

Arrays that it chooses before the cut it hands on as well; where it is not taken, empty ones.

Not handled: branches that, before they allocate, have arrays of loops that what follows uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from ...dialects import array
from ...dialects.array import constant_value
from ...dialects.within import ops_of_kind
from ..analysis.views import strip_views

SMALL = 1024
"""So many elements are always there to be had."""


@dataclass(frozen=True)
class HoistBranchAllocs(ModulePass):
    """Move each `array.alloc` out of the `scf.if`s around it, where its extents are available there."""

    name = "hoist-branch-allocs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for alloc in ops_of_kind(op, array.AllocOp):
            while isinstance(branch := alloc.parent_op(), scf.IfOp):
                alloc.operands = [movable(e, branch) for e in alloc.extents]
                ready = all(can_move(e, branch) for e in alloc.extents)
                if not ready and not (leaves(alloc.parent_block()) and cut_before(alloc, branch)):
                    break
                move_before(alloc, branch)


def leaves(block: Block | None) -> bool:
    """True where the branch that is `block` hands out an array that it, or a branch in it, allocates."""
    if block is None or block.last_op is None:
        return False
    pending = list(block.last_op.operands)
    while pending:
        base = strip_views(pending.pop())
        if isinstance(base.owner, array.AllocOp) and branch_of(block, base.owner):
            return True
        if isinstance(base.owner, scf.IfOp) and isinstance(base, OpResult):
            ends = (region.block.last_op for region in base.owner.regions)
            pending += [end.operands[base.index] for end in ends if end is not None]
    return False


def cut_before(alloc: array.AllocOp, branch: scf.IfOp) -> bool:
    """Make what comes before `alloc` in its branch a branch of its own; False where arrays are in the way."""
    block = alloc.parent_block()
    assert block is not None
    first = list(takewhile(lambda op: op is not alloc, block.ops))
    made = {r for op in first for r in op.results}
    views = [op for op in first if isinstance(op, array.AnyView | memref.CastOp)]
    rest = [op for op in block.ops if op not in first]
    needed = dict.fromkeys(
        o for op in (*rest, *views) for inner in op.walk() for o in inner.operands if o in made
    )
    handed_on = [v for v in needed if v.owner not in views]
    if any(isinstance(v.type, MemRefType) and not isinstance(v.owner, scf.IfOp) for v in handed_on):
        return False
    again: dict[SSAValue, SSAValue] = {}
    for view in views:
        clone = view.clone({o: again.get(o, o) for o in view.operands})
        block.insert_op_before(clone, alloc)
        clone.results[0].name_hint = view.results[0].name_hint
        again[view.results[0]] = clone.results[0]
    earlier = Block()
    for op in first:
        op.detach()
        earlier.add_op(op)
    earlier.add_op(scf.YieldOp(*handed_on))
    home = branch.parent_block()
    assert home is not None
    nothing = [nothing_of(v.type) for v in handed_on]
    otherwise = Block()
    for value, ops in zip(handed_on, nothing, strict=True):
        if isinstance(value.type, MemRefType):
            home.insert_ops_before(ops, branch)
        else:
            otherwise.add_ops(ops)
    otherwise.add_op(scf.YieldOp(*(ops[-1].results[0] for ops in nothing)))
    regions = [earlier, otherwise]
    if alloc.parent_region() is not branch.true_region:
        regions.reverse()
    ahead = scf.IfOp(branch.cond, [v.type for v in handed_on], [regions[0]], [regions[1]])
    for op in (ahead, earlier.last_op, *otherwise.ops, *(op for ops in nothing for op in ops)):
        if op is not None:
            op.location = branch.location
    home.insert_op_before(ahead, branch)
    for value, result in zip(handed_on, ahead.results, strict=True):
        result.name_hint = value.name_hint
    replaced = {**again, **dict(zip(handed_on, ahead.results, strict=True))}
    for old, new in replaced.items():
        old.replace_uses_with_if(new, lambda use: not branch_of(earlier, use.operation))
    return True


def branch_of(block: Block, op: Operation) -> bool:
    """True for an op in `block`, however deep."""
    return block.find_ancestor_op_in_block(op) is not None


def nothing_of(type_: Attribute) -> list[Operation]:
    """What makes a value, the last of its results, that is never looked at: zero, an empty array."""
    if isinstance(type_, MemRefType):
        extents = [arith.ConstantOp(IntegerAttr(max(n, 0), IndexType())) for n in type_.get_shape()]
        made = array.AllocOp([n.result for n in extents], type_.element_type)
        return [*extents, made, memref.CastOp.get(made.memref, type_)]
    if isinstance(type_, IndexType | IntegerType):
        return [arith.ConstantOp(IntegerAttr(0, type_))]
    assert isinstance(type_, Float32Type | Float64Type)
    return [arith.ConstantOp(FloatAttr(0.0, type_))]


def move_before(alloc: array.AllocOp, branch: scf.IfOp) -> None:
    """Put `alloc` before `branch`, its extents computed there."""
    early: dict[SSAValue, SSAValue] = {}
    extents = [copy_before(e, branch, early) for e in alloc.extents]
    block = branch.parent_block()
    assert block is not None
    dynamic = [k for k, n in enumerate(alloc.memref.type.get_shape()) if n == DYNAMIC_INDEX]
    if dynamic:
        k = dynamic[0]
        extents[k] = unless_taken(extents[k], alloc.parent_region() is branch.true_region, branch)
    alloc.detach()
    alloc.operands = extents
    block.insert_op_before(alloc, branch)


def unless_taken(extent: SSAValue, when: bool, branch: scf.IfOp) -> SSAValue:
    """`extent` if `branch` goes the way `when`, else 0: computed before it."""
    block = branch.parent_block()
    assert block is not None
    none = arith.ConstantOp(IntegerAttr(0, IndexType()))
    lhs, rhs = (extent, none.result) if when else (none.result, extent)
    chosen = arith.SelectOp(branch.cond, lhs, rhs)
    for op in (none, chosen):
        op.location = branch.location
        block.insert_op_before(op, branch)
    return chosen.result


def movable(extent: SSAValue, branch: scf.IfOp) -> SSAValue:
    """The extent without the conditions that only `branch` knows, where it is harmless without them."""
    if can_move(extent, branch):
        return extent
    bare = without_conditions(extent)
    return bare if is_natural(bare) and is_small(bare) else extent


def without_conditions(extent: SSAValue) -> SSAValue:
    """What an extent is where it is not 0."""
    while isinstance(op := extent.owner, arith.SelectOp):
        sides = [v for v in (op.lhs, op.rhs) if constant_value(v) != 0]
        if len(sides) != 1:
            break
        extent = sides[0]
    return extent


def is_natural(value: SSAValue) -> bool:
    """True when the number is certainly not negative."""
    match value.owner:
        case memref.DimOp():
            return True
        case arith.MaxSIOp(lhs=a, rhs=b):
            return is_natural(a) or is_natural(b)
        case arith.MinSIOp(lhs=a, rhs=b) | arith.SelectOp(lhs=a, rhs=b):
            return is_natural(a) and is_natural(b)
        case _:
            known = constant_value(value)
            return known is not None and known >= 0


def is_small(value: SSAValue) -> bool:
    """True when the number is certainly no larger than some array's extent, or a small constant."""
    match value.owner:
        case memref.DimOp():
            return True
        case arith.MinSIOp(lhs=a, rhs=b):
            return is_small(a) or is_small(b)
        case arith.MaxSIOp(lhs=a, rhs=b) | arith.SelectOp(lhs=a, rhs=b):
            return is_small(a) and is_small(b)
        case arith.SubiOp(lhs=a, rhs=b):
            return is_small(a) and is_natural(b)
        case _:
            known = constant_value(value)
            return known is not None and known <= SMALL


def copy_before(value: SSAValue, branch: scf.IfOp, early: dict[SSAValue, SSAValue]) -> SSAValue:
    """`value`, computed before `branch` as well where it is computed inside."""
    op = value.owner
    if not isinstance(op, Operation) or not branch.is_ancestor(op):
        return value
    if value not in early:
        clone = op.clone({o: copy_before(o, branch, early) for o in op.operands})
        block = branch.parent_block()
        assert block is not None
        block.insert_op_before(clone, branch)
        early.update(zip(op.results, clone.results, strict=True))
    return early[value]


def can_move(value: SSAValue, branch: scf.IfOp) -> bool:
    """True when `value` is defined before `branch`, or is pure code on such values."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        v = pending.pop()
        op = v.owner
        if v in seen or not isinstance(op, Operation) or not branch.is_ancestor(op):
            continue
        seen.add(v)
        pure = isinstance(op, memref.DimOp) or op.has_trait(Pure) or op.name.startswith("arith.")
        if not pure or op.regions:
            return False
        pending.extend(op.operands)
    return True

"""Turn the branches of a loop into selections, where all they do is a little arithmetic for a sum.

Runs before the derivative: a loop without branches is vectorized, and so is its adjoint, whose
conditions are then computed again rather than saved.

Before::

    func.func @f(%x : memref<?xf64>, %n : index, %zero : f64) {
      %sum = memref.alloca() : memref<f64>
      memref.store %zero, %sum[] : memref<f64>
      %trips = array.loop %i to %n do {
        %s = memref.load %sum[] : memref<f64>
        %v = memref.load %x[%i] : memref<?xf64>
        %negative = arith.cmpf olt, %v, %zero : f64
        %t = scf.if %negative -> (f64) {
          scf.yield %s : f64
        } else {
          %r = math.sqrt %v : f64
          %b = arith.addf %s, %r : f64
          scf.yield %b : f64
        }
        memref.store %t, %sum[] : memref<f64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x : memref<?xf64>, %n : index, %zero : f64) {
      %sum = memref.alloca() : memref<f64>
      memref.store %zero, %sum[] : memref<f64>
      %trips = array.loop %i to %n do {
        %s = memref.load %sum[] : memref<f64>
        %v = memref.load %x[%i] : memref<?xf64>
        %negative = arith.cmpf olt, %v, %zero : f64
        %r = math.sqrt %v : f64
        %nothing = arith.constant -0.0 : f64
        %chosen = arith.select %negative, %nothing, %r : f64
        %t = arith.addf %s, %chosen : f64
        memref.store %t, %sum[] : memref<f64>
        array.yield
      }
      func.return
    }

What is added is selected, not the sum: the additions stay the only thing that one iteration waits for
another with. (Adding -0.0 changes nothing, to the bit.) A count is such a sum, and an element may be loaded
on either side whose subscript is in range on both.

Kept: a loop that has one branch which does anything else (stores, exceptions, calls, much), or whose
condition or value depends on what earlier iterations computed, but for a sum: there a branch that is
predicted well costs less than waiting.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.affine import Subscripts
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import is_cell
from ..analysis.nest_proofs import NestProofs
from .memory_effects import MemoryEffects, Roots, functions

FEW = 16
"""A loop whose branches have more ops than this keeps them."""

CHEAP = (
    arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, arith.CmpfOp, arith.CmpiOp,
    arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.SelectOp, arith.ConstantOp, arith.AndIOp, arith.OrIOp,
    arith.XOrIOp, math.SqrtOp, math.AbsFOp,
)  # fmt: skip
"""Ops that may run where the program would not have run them, at little cost."""

ADDITIONS = (arith.AddfOp, arith.AddiOp)
"""What adds to a sum."""


@dataclass(frozen=True)
class SelectValues(ModulePass):
    """Replace the branches of innermost loops by selections."""

    name = "select-values"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            loops = ops_of_kind(function, array.LoopOp)
            found = [loop for loop in loops if has_only_small_branches(loop)]
            if not found:
                continue
            effects, alias = MemoryEffects(function), AliasAnalysis(function)
            for loop in found:
                proofs = NestProofs(loop, Subscripts(), alias)
                if loads_anywhere(loop, proofs) and Iteration(loop, effects).is_apart():
                    straighten(loop)


def has_only_small_branches(loop: array.LoopOp) -> bool:
    """The loop is counted, branches, and does so for a little arithmetic alone, not to choose arrays."""
    branches = [op for op in loop.body.block.ops if isinstance(op, scf.IfOp)]
    if not branches or loop.count is None or loop.condition_block is not None or loop.carried:
        return False
    if any(op.regions and not isinstance(op, scf.IfOp) for op in loop.body.block.ops):
        return False
    inner = [op for b in branches for op in b.walk()]
    if any(isinstance(r.type, MemRefType) for op in inner for r in op.results):
        return False
    return len(inner) - len(branches) <= FEW and all(
        isinstance(op, (*CHEAP, memref.LoadOp, scf.YieldOp))
        or (isinstance(op, array.IndexOp) and op.unchecked is not None)
        or (isinstance(op, scf.IfOp) and bool(op.results) and array.RAISES not in op.attributes)
        for op in inner
    )


def loads_anywhere(loop: array.LoopOp, proofs: NestProofs) -> bool:
    """What is loaded on a branch is there in every iteration: its subscripts are in range in all of them."""

    def is_there(load: memref.LoadOp) -> bool:
        found = [i.owner for i in load.indices]
        sure = (isinstance(i, array.IndexOp) and proofs.is_always_in_range(i) for i in found)
        return is_cell(load.memref) or (bool(found) and all(sure))

    branches = [op for op in loop.body.block.ops if isinstance(op, scf.IfOp)]
    return all(is_there(op) for b in branches for op in b.walk() if isinstance(op, memref.LoadOp))


@dataclass
class Iteration:
    """What an iteration computes apart from all others, and which sums it adds to."""

    loop: array.LoopOp
    effects: MemoryEffects
    alone: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values of the loop that no earlier iteration has a part in."""
    sums: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Values that are a cell's at the beginning of the iteration with such values added; the cell."""
    written: Roots = frozenset()

    def is_apart(self) -> bool:
        """No branch needs anything of earlier iterations, but for the sums that it adds to."""
        self.written = self.effects.of(self.loop).writes
        return self._walk(self.loop.body.block.ops)

    def _walk(self, ops: Iterable[Operation]) -> bool:
        for op in ops:
            if isinstance(op, scf.IfOp):
                inner = (self._walk(r.blocks.first.ops) for r in op.regions if r.blocks.first)
                if not self._is_alone(op.cond) or not all(inner) or not self._join(op):
                    return False
            elif isinstance(op, memref.LoadOp):
                if self.effects.roots(op.memref).isdisjoint(self.written):
                    if all(map(self._is_alone, op.indices)):
                        self.alone.add(op.res)
                elif isinstance(op.memref.owner, memref.AllocaOp):
                    self.sums[op.res] = op.memref
            elif isinstance(op, ADDITIONS) and (cell := self._added_to(op)) is not None:
                self.sums[op.result] = cell
            elif not op.regions and all(map(self._is_alone, op.operands)):
                self.alone.update(op.results)
        return True

    def _is_alone(self, value: SSAValue) -> bool:
        return value in self.alone or value is self.loop.induction or self._is_outside(value)

    def _is_outside(self, value: SSAValue) -> bool:
        owner = value.owner
        home = owner.parent_op() if isinstance(owner, Block) else owner
        return home is None or not self.loop.is_ancestor(home)

    def _added_to(self, op: arith.AddfOp | arith.AddiOp) -> SSAValue | None:
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if one in self.sums and self._is_alone(other):
                return self.sums[one]
        return None

    def _join(self, branch: scf.IfOp) -> bool:
        """Note what the branch's results are; False where one is neither alone nor a sum."""
        for result, a, b in zip(branch.results, *yields(branch), strict=True):
            if self._is_alone(a) and self._is_alone(b):
                self.alone.add(result)
            elif a in self.sums and self.sums[a] is self.sums.get(b):
                self.sums[result] = self.sums[a]
            else:
                return False
        return True


def yields(branch: scf.IfOp) -> tuple[tuple[SSAValue, ...], tuple[SSAValue, ...]]:
    """What the branch yields on either side."""
    found: list[tuple[SSAValue, ...]] = []
    for region in (branch.true_region, branch.false_region):
        last = region.block.last_op
        assert isinstance(last, scf.YieldOp)
        found.append(tuple(last.operands))
    return found[0], found[1]


Sides = dict[SSAValue, dict[SSAValue, tuple[SSAValue, SSAValue]]]
"""By condition: what was chosen by it, and from what two."""


def straighten(loop: array.LoopOp) -> None:
    """Replace all branches of the loop."""
    chosen: Sides = {}
    for op in tuple(loop.body.block.ops):
        if isinstance(op, scf.IfOp):
            straighten_branch(op, chosen)


def straighten_branch(branch: scf.IfOp, chosen: Sides) -> None:
    """Put both sides before the branch (inner branches first), and selections in its place."""
    known = chosen.setdefault(branch.cond, {})
    for side, region in enumerate((branch.true_region, branch.false_region)):
        for earlier, values in known.items():
            for use in tuple(earlier.uses):
                if region.is_ancestor(use.operation):
                    use.operation.operands[use.index] = values[side]
        for op in tuple(region.block.ops):
            if isinstance(op, scf.IfOp):
                straighten_branch(op, chosen)
        for op in tuple(region.block.ops):
            if not isinstance(op, scf.YieldOp):
                op.detach()
                Rewriter.insert_op(op, InsertPoint.before(branch))
    pairs = tuple(zip(*yields(branch), strict=True))
    results = [choice(branch, a, b) for a, b in pairs]
    for result, old in zip(results, branch.results, strict=True):
        result.name_hint = result.name_hint or old.name_hint
    Rewriter.replace_op(branch, [], results)
    known.update(zip(results, pairs, strict=True))
    for value in (v for pair in pairs for v in pair):
        erase_unused(value)


def choice(branch: scf.IfOp, a: SSAValue, b: SSAValue) -> SSAValue:
    """What the branch yields, computed before it."""
    if a is b:
        return a

    def emit(op: Operation) -> SSAValue:
        op.location = branch.location
        Rewriter.insert_op(op, InsertPoint.before(branch))
        return op.results[0]

    for base, of_a in terms(a):
        for other, of_b in terms(b):
            if base is other and (of_a is not None or of_b is not None):
                x, y = (
                    v if v is not None else emit(arith.ConstantOp(nothing(base)))
                    for v in (of_a, of_b)
                )
                add = arith.AddfOp if isinstance(base.type, AnyFloat) else arith.AddiOp
                return emit(add(base, emit(arith.SelectOp(branch.cond, x, y))))
    return emit(arith.SelectOp(branch.cond, a, b))


def terms(value: SSAValue) -> list[tuple[SSAValue, SSAValue | None]]:
    """The value as something and what is added to it, in every way; None for nothing."""
    op = value.owner
    found: list[tuple[SSAValue, SSAValue | None]] = []
    if isinstance(op, ADDITIONS):
        found += [(op.lhs, op.rhs), (op.rhs, op.lhs)]
    if isinstance(value.type, AnyFloat | IndexType):
        found.append((value, None))
    return found


def nothing(value: SSAValue) -> FloatAttr[AnyFloat] | IntegerAttr[IndexType]:
    """What changes nothing, to the bit, when it is added to the value."""
    if isinstance(value.type, AnyFloat):
        return FloatAttr(-0.0, value.type)
    return IntegerAttr(0, IndexType())


def erase_unused(value: SSAValue) -> None:
    """Drop a sum that a selection of what is added took the place of."""
    op = value.owner
    if isinstance(op, ADDITIONS) and not op.result.uses:
        Rewriter.erase_op(op)

"""Fold what loop ranges decide about subscripts and extents: `a[k:n]` needs no clamps within `range(n)`.

Slices come out of the frontend with clamps for every case, so that extents which are equal in each
iteration are different numbers, and a sum of two such slices asks at run time whether it broadcasts. Where
the counters' ranges decide a `min` or a `max` it is the one operand, and numbers that are one linear
combination are one value. So two slices have one index space, and a step that is 0 where an axis has one
element is what it is elsewhere: it is never taken.

Before::

    func.func @f(%a : memref<?xf64>, %b : memref<?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %a, %c0 : memref<?xf64>
      %trips = array.loop %k to %n do {
        %next = arith.addi %k, %c1 : index
        %end = arith.minsi %next, %n : index
        %x = memref.load %b[%end] : memref<?xf64>
        memref.store %x, %a[%k] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%a: memref<?xf64>, %b: memref<?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %a, %c0 : memref<?xf64>
      %trips = array.loop %k to %n do {
        %next = arith.addi %k, %c1 : index
        %x = memref.load %b[%next] : memref<?xf64>
        memref.store %x, %a[%k] : memref<?xf64>
        array.yield
      }
      func.return
    }

Legal because a counter and an extent are far from where integers end, so that arithmetic on them and on small
numbers is that of the integers (`dependence` has the proofs). Runs before overlap is resolved and maps are
fused for good, which compare extents by identity.

The remainder of a division by a positive number (`k % max(n, 1)`: where `np.roll` cuts) is one of these
numbers, whatever is divided, and its bounds are known outside of loops, too. Of a slice whose ends count from
the front in each iteration nothing asks whether they count from the back. A check that the entry has made
(`array.ENTRY_EQUAL`) of such numbers holds in iterations alone from then on, and says so: `max(n - 1, 0)` is
not `n - 1` where the loop over `n` has no iteration.

Kept: what depends on integers that are no counters, extents or remainders, which may wrap around; what is
outside of loops where there are no remainders; and branches that always raise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import BoolAttr, IndexType, ModuleOp, UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.array import constant_value
from ..analysis.affine import Affine, Extent, Symbol, Term, affine, is_positive
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import NOTHING, Dependence, Problem
from .memory_effects import functions

SMALL = 1 << 50
"""Numbers below it added to counters and extents do not wrap around."""

EQUAL, LESS = 0, 2
"""The numbers of the predicates `eq` and `slt`."""

Known = dict[Affine, SSAValue]


@dataclass(frozen=True)
class FoldBounds(ModulePass):
    """Fold clamps that loop ranges decide, and replace equal numbers by one."""

    name = "fold-bounds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            ops = [*function.walk()]
            if any(map(is_clamp, ops)):
                everywhere = any(map(is_remainder, ops))
                Bounds(function).settle(function.body.block, {}, inside=everywhere)


def is_clamp(op: Operation) -> bool:
    return isinstance(op, arith.MinSIOp | arith.MaxSIOp) and isinstance(op.result.type, IndexType)


class Bounds:
    """Settles those of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.dependence = Dependence(function, AliasAnalysis(function))
        self.forms = self.dependence.footprints.subscripts

    def settle(self, block: Block, known: Known, *, inside: bool) -> None:
        """Go through a block; `known` is on entry, and again at the end, what is known around it."""
        here: list[Affine] = []
        for op in tuple(block.ops):
            if array.RAISES in op.attributes:
                continue
            if inside and isinstance(op, array.ViewOp):
                settle_steps(op)
            elif inside and isinstance(op, arith.CmpiOp):
                self._settle_sign(op)
            elif isinstance(op, arith.SelectOp) and (taken := constant_value(op.cond)) is not None:
                Rewriter.replace_op(op, [], [op.lhs if taken else op.rhs])
            elif is_number(op):
                form, value = self._value(op, known, inside)
                if value is not op.results[0]:
                    Rewriter.replace_op(op, [], [value])
                elif known.setdefault(form, value) is value:
                    here.append(form)
            for region in op.regions:
                for inner in region.blocks:
                    self.settle(inner, known, inside=inside or isinstance(op, array.LoopOp))
        for form in here:
            del known[form]

    def _settle_sign(self, op: arith.CmpiOp) -> None:
        """Whether a subscript counts from the end, where that is known."""
        number = self.forms.affine(op.lhs)
        below_zero = op.predicate.value.data == LESS and constant_value(op.rhs) == 0
        if below_zero and is_exact(number) and self._at_most(NOTHING, number, op):
            known = arith.ConstantOp(BoolAttr.from_bool(False))
            known.location = op.location
            mark_checks(op)
            Rewriter.replace_op(op, known)

    def _value(self, op: Operation, known: Known, inside: bool) -> tuple[Affine, SSAValue]:
        """What the op computes, as early as it is there."""
        value = op.results[0]
        form = self.forms.affine(value)
        if not is_exact(form):
            return Affine.of(value), value
        if inside and is_clamp(op) and (taken := self._taken(op)) is not None:
            form, value = self.forms.affine(taken), taken
            mark_checks(op)
        return form, known.get(form, value)

    def _taken(self, op: Operation) -> SSAValue | None:
        """The operand that is the least, or greatest, in every iteration."""
        least = isinstance(op, arith.MinSIOp)
        for one, other in (op.operands, reversed(op.operands)):
            a, b = self.forms.affine(one), self.forms.affine(other)
            if self._at_most(a, b, op) if least else self._at_most(b, a, op):
                return one
        return None

    def _at_most(self, a: Affine, b: Affine, op: Operation) -> bool:
        difference = b - a
        if difference.is_constant:
            return difference.constant >= 0
        problem = Problem(self.dependence, None)
        problem.state_context(op, 1)
        problem.at_least(b, a, 1, gap=1)  # The contrary.
        return not problem.may_hold()


NUMBERS = (
    *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp),
    array.FloorModOp,
)


def mark_checks(op: Operation) -> None:
    """Say of what the entry has found of a number that from now on it holds in iterations alone."""
    work, seen = [op], set[Operation]()
    while work:
        for use in (use for result in work.pop().results for use in result.uses):
            user = use.operation
            if isinstance(user, array.RaiseIfOp) and user.message.data == array.ENTRY_EQUAL:
                user.attributes[array.IN_ITERATIONS] = UnitAttr()
            elif isinstance(user, (*NUMBERS, *TESTS)) and user not in seen:
                seen.add(user)
                work.append(user)


TESTS = arith.CmpiOp, arith.OrIOp, arith.AndIOp, arith.SelectOp


def is_number(op: Operation) -> bool:
    return isinstance(op, NUMBERS) and isinstance(op.result.type, IndexType)


def is_remainder(op: Operation | Block) -> TypeGuard[array.FloorModOp]:
    return isinstance(op, array.FloorModOp) and isinstance(op.result.type, IndexType)


def is_exact(form: Affine) -> bool:
    """Counters, extents and small numbers alone: nothing wraps around."""
    small = abs(form.constant) < SMALL and all(abs(c) < SMALL for c in form.terms.values())
    return small and all(map(is_bounded, form.terms))


def is_bounded(symbol: Symbol) -> bool:
    if isinstance(symbol, Term):
        return symbol.kind in ("max", "min") and all(map(is_exact, symbol.args))
    if isinstance(symbol, Extent):
        return True
    if is_remainder(symbol.owner):
        return is_positive(affine(symbol.owner.rhs))
    owner = symbol.owner.parent_op() if isinstance(symbol, BlockArgument) else None
    return isinstance(owner, array.LoopOp) and symbol.index == 0  # pyright: ignore


def settle_steps(view: array.ViewOp) -> None:
    """Take the step of an axis with more than one element where it is another one with one element."""
    steps = [
        other if (other := step_of_many(step, extent)) is not None else step
        for step, extent in zip(view.steps, view.extents, strict=True)
    ]
    if any(new is not old for new, old in zip(steps, view.steps, strict=True)):
        made = array.ViewOp(view.source, view.offsets, view.source_dims, view.extents, steps)
        made.result.name_hint = view.result.name_hint
        made.location = view.location
        Rewriter.replace_op(view, made)


def step_of_many(step: SSAValue, extent: SSAValue) -> SSAValue | None:
    """The step, if it is chosen by whether the axis has one element."""
    chosen = step.owner
    if not isinstance(chosen, arith.SelectOp) or not isinstance(chosen.cond.owner, arith.CmpiOp):
        return None
    asked = chosen.cond.owner
    if asked.predicate.value.data != EQUAL or asked.lhs is not extent:
        return None
    return chosen.rhs if array.constant_value(asked.rhs) == 1 else None

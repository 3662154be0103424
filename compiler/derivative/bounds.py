"""Upper bounds of what a formula counts, as formulas: `<= 8*steps*n` beside `8*trips@13`.

A loop that may leave early repeats at most as often as it counts, a branch is taken at most once, and what is
counted up from zero is at most as large as all its steps::

    for i in range(n):               trips@4 <= n
        if x[i] > c: found += 1      found <= n

Nothing bounds a `while`, nor a size that is computed from the elements of an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects import array
from ..diagnostics import line_of
from . import formulas
from .formulas import Formula
from .intervals import Number, Taken, Unknown
from .segments import ArrayExtent
from .sizes import Factor, Sizes, computed_from, depends
from .source_words import expression_of


class Bounds:
    """Writes upper bounds of the numbers of one function."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self._asked: set[SSAValue] = set()

    def product(self, factors: Sequence[Factor]) -> Formula | None:
        """A bound of a product of numbers that are not negative; None where there is none."""
        whole = self.sizes.show_product(factors)
        if not is_unknown(whole):
            return whole
        first, rest = factors[0], factors[1:]
        one, inner = self._of(first), self.product(rest)
        if one is None or inner is None:
            return None
        counter = first.induction
        if counter is not None and any(
            depends(v, counter) for f in rest for v in bounded_by(f.number)
        ):
            return formulas.total(inner, self.sizes.show(counter), one)
        return formulas.product([one, inner])

    def _of(self, factor: Factor) -> Formula | None:
        found = self.of(factor.number)
        if found is None:
            return None
        if factor.less:
            found = formulas.linear([(1, found)], -factor.less)
        return found if factor.of == 1 else formulas.ceiling(found, formulas.constant(factor.of))

    def of(self, number: Number) -> Formula | None:
        """A bound of one number."""
        match number:
            case Taken():
                return formulas.constant(1)
            case Unknown(array.LoopOp() as loop):
                return None if loop.count is None else self.of(loop.count)
            case Unknown():
                return formulas.constant(1)
            case _:
                shown = self.sizes.show(number)
                if not is_unknown(shown):
                    return shown
                return (
                    self._extent(number)
                    if isinstance(number, ArrayExtent)
                    else self._of_value(number)
                )

    def _extent(self, extent: ArrayExtent) -> Formula | None:
        owner = extent.base.owner
        if isinstance(owner, array.AllocOp | array.AnyView):
            return self.of(owner.extents[extent.axis])
        return None

    def _of_value(self, value: SSAValue) -> Formula | None:
        if value in self._asked:
            return None
        self._asked.add(value)
        found = self._computed(value)
        self._asked.remove(value)
        return found

    def _computed(self, value: SSAValue) -> Formula | None:
        op = value.owner
        match op:
            case arith.IndexCastOp() | array.CastOp():
                return self.of(op.operands[0])
            case memref.DimOp() if (axis := array.constant_value(op.index)) is not None:
                return self._extent(ArrayExtent(op.source, axis))
            case array.LoopOp() if value is op.trips:
                return None if op.count is None else self.of(op.count)
            case scf.IfOp() if isinstance(value, OpResult):
                ends = [b.last_op for r in op.regions for b in r.blocks]
                return self._largest(e.operands[value.index] for e in ends if e is not None)
            case arith.SelectOp():
                return self._largest((op.lhs, op.rhs))
            case arith.MaxSIOp():
                return self._largest((op.lhs, op.rhs))
            case arith.MinSIOp():
                found = [b for b in map(self.of, op.operands) if b is not None]
                return found[0] if found else None
            case arith.AddiOp() | array.CheckedAddOp():
                parts = [self.of(o) for o in op.operands]
                known = [p for p in parts if p is not None]
                return (
                    formulas.linear([(1, p) for p in known]) if len(known) == len(parts) else None
                )
            case memref.LoadOp() if isinstance(op.memref.owner, memref.AllocaOp):
                return self._counted(op.memref)
            case _:
                return None

    def _largest(self, values: Iterable[SSAValue]) -> Formula | None:
        bounds = [self.of(v) for v in values]
        known = [b for b in bounds if b is not None]
        if len(known) < len(bounds):
            return None
        apart = {str(b): b for b in known if str(b) != "0"} or {"0": formulas.constant(0)}
        return (
            formulas.call("max", *apart.values()) if len(apart) > 1 else next(iter(apart.values()))
        )

    def _counted(self, cell: SSAValue) -> Formula | None:
        """What a cell holds that starts at a constant and is counted up by constants."""
        total: list[Formula] = []
        for use in cell.uses:
            store = use.operation
            if isinstance(store, memref.LoadOp):
                continue
            if isinstance(store, array.ViewOp):
                summed = self._summed(store)
                if summed is None:
                    return None
                total += summed
                continue
            if not isinstance(store, memref.StoreOp):
                return None
            start = array.constant_value(store.value)
            step = None if start is not None else step_of(store.value, cell)
            if start is None and step is None:
                return None
            if start is not None:
                if start > 0:
                    total.append(formulas.constant(start))
                continue
            times = self._repetitions(store)
            if times is None or step is None:
                return None
            total.append(formulas.product([formulas.constant(max(step, 0)), times]))
        return formulas.linear([(1, t) for t in total])

    def _summed(self, view: array.ViewOp) -> list[Formula] | None:
        """What maps add to a cell that is seen at every point: truths."""
        found: list[Formula] = []
        for use in view.result.uses:
            op = use.operation
            if not isinstance(op, array.MapOp) or view.result in op.ins:
                return None
            position = list(op.outs).index(view.result)
            counted = op.yielded[position].owner
            if op.out_kinds[position] != "add" or not isinstance(counted, array.CastOp):
                return None
            factors = [self._repetitions(op), *map(self.of, op.extents)]
            known = [f for f in factors if f is not None]
            if counted.value.type != i1 or len(known) < len(factors):
                return None
            found.append(formulas.product(known))
        return found

    def _repetitions(self, store: Operation) -> Formula | None:
        """How often an op runs at most while the function does."""
        factors: list[Formula] = []
        block: Block | None = store.parent
        while block is not None and (parent := block.parent_op()) is not None:
            if isinstance(parent, array.LoopOp):
                count = None if parent.count is None else self.of(parent.count)
                if count is None:
                    return None
                factors.append(count)
            block = parent.parent
        return formulas.product(factors)


def step_of(value: SSAValue, cell: SSAValue) -> int | None:
    """By how much more the value is than what the cell held; the most where a branch decides."""
    op = value.owner
    match op:
        case memref.LoadOp() if op.memref is cell:
            return 0
        case arith.AddiOp() | array.CheckedAddOp():
            amount, before = array.constant_value(op.rhs), step_of(op.lhs, cell)
            return None if amount is None or before is None else amount + before
        case arith.SelectOp():
            sides = [step_of(v, cell) for v in (op.lhs, op.rhs)]
        case scf.IfOp() if isinstance(value, OpResult):
            ends = [b.last_op for r in op.regions for b in r.blocks]
            sides = [step_of(e.operands[value.index], cell) for e in ends if e is not None]
        case _:
            return None
    known = [s for s in sides if s is not None]
    return max(known) if len(known) == 2 else None


def bounded_by(number: Number) -> Sequence[SSAValue]:
    """The values that a number's bound is computed from."""
    if isinstance(number, Unknown):
        count = number.at.count if isinstance(number.at, array.LoopOp) else None
        return () if count is None else (count,)
    return computed_from(number)


def is_unknown(formula: Formula) -> bool:
    """Whether it has numbers that are known at run time only."""
    return "@" in str(formula)


def dependence(factors: Sequence[Factor], sizes: Sizes) -> str | None:
    """On what a number without a bound depends, in the program's words."""
    for factor in factors:
        if Bounds(sizes).product([factor]) is None:
            return told_of(factor.number)
    return None


def told_of(number: Number) -> str | None:
    """What decides a number."""
    if isinstance(number, Unknown):
        at = line_of(number.at)
        return f"how often `{expression_of(number.at)}` on line {at[1] if at else '?'} repeats"
    for value in (number.base,) if isinstance(number, ArrayExtent) else computed_from(number):
        if isinstance(op := value.owner, Operation) and (at := line_of(op)) is not None:
            return f"the size that `{expression_of(op)}` on line {at[1]} computes"
    return None

"""Index expressions of a function, evaluated for concrete arguments and written out as formulas.

What is known at run time only (the trips of a `while`, a branch, a size that is computed) has no value and
is written with its line, `trips@line`, `n@line`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, Region, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Extent, Subscripts, Symbol, Term
from ..diagnostics import line_of
from ..names import as_written
from . import formulas
from .bits import PER_BYTE, strip_of
from .formulas import Formula
from .intervals import SIGNED, Intervals, Number, Taken, Unknown
from .plan import Save
from .segments import ArrayExtent

LONGEST_SUM = 100_000
"""A sum of more terms than this is not worked out."""


@dataclass(frozen=True)
class Factor:
    """How often something is repeated; `induction` counts the repetitions of a loop.

    `less`: as many repetitions of the loop do not count. `of`: as many take one place.
    """

    number: Number
    induction: SSAValue | None = None
    less: int = 0
    of: int = 1
    shown: Unknown | None = None
    """What stands for a number in a formula that is not written there."""


@dataclass(frozen=True)
class Count:
    """A number, or a bound of it."""

    value: int
    is_bound: bool


WRITTEN: dict[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    array.CheckedAddOp: "+",
    array.CheckedSubOp: "-",
    array.CheckedMulOp: "*",
    arith.FloorDivSIOp: "//",
    array.FloorDivOp: "//",
    arith.CeilDivSIOp: "/^",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
}


class Sizes:
    """Evaluates and writes out the index expressions of a function."""

    def __init__(self, function: func.FuncOp, arguments: Sequence[Any] | None) -> None:
        self.function, self.top = function, function.body.block
        self.subscripts = Subscripts()
        self.intervals = Intervals(self.top, arguments)
        self.terms = 0
        self.is_bound = False

    def factors(self, save: Save) -> list[Factor]:
        """The numbers whose product is how many elements are saved, outermost first."""
        factors: list[Factor] = []
        op: Operation = save.at
        margins: dict[Operation, int] = {
            loop: first + last for loop, (first, last) in zip(save.loops, save.margins, strict=True)
        }
        inside = save.push_before is not op
        while (parent := op.parent_op()) is not None and parent is not self.top.parent_op():
            side, op = op.parent_region(), parent
            one_place = inside and op not in margins
            inside = inside and op is not save.push_before
            if one_place:
                continue
            factors.insert(0, replace(self._repetitions(op, side), less=margins.get(op, 0)))
        if save.segment.every > 1:
            factors[0] = replace(factors[0], of=save.segment.every)
        if save.in_bits:
            factors[-1] = replace(factors[-1], of=PER_BYTE)
        factors += map(Factor, save.segment.own)
        if save.in_packed_rows:
            factors[-1] = replace(factors[-1], of=PER_BYTE)
        return self._in_whole(factors)

    def _in_whole(self, factors: Sequence[Factor]) -> list[Factor]:
        """The strips that a loop makes of a count have that many elements in all."""
        found = list(factors)
        for loop in factors:
            rest = [f for f in found if f is not loop and loop.induction is not None]
            moving = [f for f in rest if self._in_sum(loop, [f])]
            if len(moving) != 1 or moving[0].less or loop.less or loop.of > 1:
                continue
            (one,) = moving
            strip = strip_of(one.number)
            if strip is None or strip.counter is not loop.induction:
                continue
            if one.of == 1 or strip.fills_bytes:
                found.remove(one)
                found[found.index(loop)] = Factor(strip.whole, of=one.of)
        return found

    def _repetitions(self, op: Operation, side: Region | None) -> Factor:
        """How often the block on this side of `op` runs each time that it runs."""
        test = op.cond.owner if isinstance(op, scf.IfOp) else None
        if isinstance(op, scf.IfOp) and isinstance(test, arith.CmpiOp):
            taken = Taken(test, side is op.true_region)
            signed = test.predicate.value.data in SIGNED
            return (
                Factor(taken, shown=self._unwritten(taken, op)) if signed else Factor(Unknown(op))
            )
        if not isinstance(op, array.LoopOp) or op.condition_block is not None or op.count is None:
            return Factor(Unknown(op))
        return Factor(op.count, op.induction, shown=self._unwritten(op.count, op))

    def _unwritten(self, number: Number, op: Operation) -> Unknown | None:
        """What stands for the repetitions of `op` where a formula has no words for their number."""
        return Unknown(op) if "@" in str(self.show(number)) else None

    def product(self, factors: Sequence[Factor]) -> Count | None:
        """The product, a sum where a factor depends on an induction of an outer one."""
        self.terms = 0
        self.is_bound = False
        try:
            total = self._product(factors)
        finally:
            self.intervals.forget_inductions()
        return None if total is None else Count(total, self.is_bound)

    def _product(self, factors: Sequence[Factor]) -> int | None:
        if not factors:
            return 1
        first, rest = factors[0], factors[1:]
        count = self._count(first)
        if count is None:
            return None
        if not self._in_sum(first, rest):
            inner = self._product(rest)
            return None if inner is None else count * inner
        total = 0
        for value in range(count):
            self.terms += 1
            assert first.induction is not None
            self.intervals.set_induction(first.induction, value)
            inner = self._product(rest)
            if inner is None or self.terms > LONGEST_SUM:
                return None
            total += inner
        return total

    def stretch(self, factors: Sequence[Factor], every: int) -> int | None:
        """The most elements that `every` iterations of the outermost loop save together."""
        first, rest = factors[0], factors[1:]
        self.terms = 0
        try:
            count = self._count(first)
            if count is None or count > LONGEST_SUM:
                return None
            if not self._in_sum(first, rest):
                inner = self._product(rest)
                return None if inner is None else min(count, every) * inner
            parts: list[int | None] = []
            for value in range(count):
                assert first.induction is not None
                self.intervals.set_induction(first.induction, value)
                parts.append(self._product(rest))
        finally:
            self.intervals.forget_inductions()
        known = [part for part in parts if part is not None]
        sums = [sum(known[start : start + every]) for start in range(0, count, every)]
        return max(sums, default=0) if len(known) == len(parts) else None

    def _count(self, factor: Factor) -> int | None:
        """How many places a factor makes; notes where that is a bound."""
        interval = self.intervals.of(factor.number)
        if interval.high is None:
            return None
        self.is_bound = self.is_bound or interval.value is None
        return -(-max(interval.high - factor.less, 0) // factor.of)

    def show_product(self, factors: Sequence[Factor]) -> Formula:
        """The product as an expression; from a factor on that others depend on, the rest is one sum."""
        if not factors:
            return formulas.constant(1)
        first, rest = factors[0], factors[1:]
        if first.shown is None and self._in_sum(first, rest):
            return self._show_total(factors)
        shown = self.show(first.shown or first.number, first.less)
        if first.of > 1:
            shown = formulas.ceiling(shown, formulas.constant(first.of))
        return formulas.product([shown, self.show_product(rest)])

    def _show_total(self, factors: Sequence[Factor]) -> Formula:
        """What is repeated, each time as often as the counter says; its number where none is asked."""
        known = Sizes(self.function, None).product(factors)
        if known is not None and not known.is_bound:
            return formulas.constant(known.value)
        first, inner = factors[0], self.show_product(factors[1:])
        assert first.induction is not None
        return formulas.total(inner, self.show(first.induction), self.show(first.number))

    def _in_sum(self, first: Factor, rest: Sequence[Factor]) -> bool:
        """True when what follows depends on the induction of `first`."""
        if first.induction is None:
            return False
        return any(
            depends(value, first.induction) for f in rest for value in computed_from(f.number)
        )

    def evaluate(self, number: Number) -> int | None:
        """The number for the given arguments; None where they do not tell."""
        return self.intervals.of(number).value

    def most(self, number: Number) -> int | None:
        """The largest that the number may be for the given arguments; None where they do not tell."""
        return self.intervals.of(number).high

    def may_run(self, region: Region) -> bool:
        """Whether the given arguments may take this side of a branch."""
        branch = region.parent
        if not isinstance(branch, scf.IfOp):
            return True
        taken = self.intervals.of(branch.cond).value
        return taken is None or bool(taken) == (region is branch.true_region)

    def show(self, number: Number, less: int = 0) -> Formula:
        """The number, less a constant, as an expression of the arguments."""
        if isinstance(number, SSAValue) and isinstance(number.type, IndexType):
            form = self.subscripts.affine(number)
            if form != Affine.of(number):
                return self._show_sum(clipped(form) - less)
        return formulas.linear([(1, self._show(number))], -less)

    def _show_sum(self, form: Affine) -> Formula:
        """A linear combination."""
        terms: list[tuple[int, Formula]] = []
        for symbol, factor in form.terms.items():
            if factor < 0 and isinstance(symbol, Term) and symbol.kind == "floordiv":
                top, bottom = symbol.args
                rounded = self._show_sum(clipped(-top)), self._show_sum(bottom)
                terms.append((-factor, formulas.ceiling(*rounded)))
            else:
                terms.append((factor, self._show_symbol(symbol)))
        return formulas.linear(terms, form.constant)

    def _show_symbol(self, symbol: Symbol) -> Formula:
        if isinstance(symbol, SSAValue):
            return self._show(symbol)
        if isinstance(symbol, Extent):
            return self._show_dimension(symbol.memref, symbol.axis)
        if symbol.kind == "floordiv":
            return formulas.quotient(*map(self._show_sum, symbol.args))
        shown = formulas.in_order([self._show_sum(arg) for arg in operands_of(symbol)])
        return (
            formulas.product(shown) if symbol.kind == "mul" else formulas.call(symbol.kind, *shown)
        )

    def _show(self, number: Number) -> Formula:
        if isinstance(number, Unknown):
            return Formula(told("trips", number.at))
        if isinstance(number, Taken):
            test = number.test
            return formulas.relation(self.show(test.lhs), number.relation, self.show(test.rhs))
        if isinstance(number, ArrayExtent):
            return self._show_dimension(number.base, number.axis)
        known = array.constant_value(number)
        if known is not None:
            return formulas.constant(known)
        name = number.name_hint and as_written(number.name_hint)
        if isinstance(number, BlockArgument):
            loop = number.owner.parent_op()
            if number.owner is self.top or (
                isinstance(loop, array.LoopOp)
                and loop.condition_block is None
                and number is loop.induction
            ):
                return Formula(name or "count")
            return Formula(told(name or "size", loop))
        op = number.owner
        if isinstance(op, memref.DimOp):
            axis = array.constant_value(op.index)
            return self._show_dimension(op.source, axis or 0)
        if isinstance(op, arith.IndexCastOp | array.CastOp):
            return self.show(op.operands[0])
        if isinstance(op, arith.MaxSIOp) and array.constant_value(op.rhs) == 0:
            return self.show(op.lhs)  # a count that is not negative
        if isinstance(op, Operation) and type(op) in WRITTEN:
            left, right = self.show(op.operands[0]), self.show(op.operands[1])
            return combined(WRITTEN[type(op)], left, right)
        return Formula(told(name or "size", op if isinstance(op, Operation) else None))

    def _show_dimension(self, base: SSAValue, axis: int) -> Formula:
        owner = base.owner
        if isinstance(owner, array.AllocOp | array.AnyView):
            return self.show(owner.extents[axis])
        name = as_written(base.name_hint or "array")
        return Formula(f"{name}.shape[{axis}]")


def operands_of(term: Term) -> list[Affine]:
    """The operands of an operation, those of the same operation in its operands included."""
    found: list[Affine] = []
    for arg in term.args:
        (symbol,) = arg.terms if len(arg.terms) == 1 else (None,)
        same = isinstance(symbol, Term) and symbol.kind == term.kind and arg == Affine.of(symbol)
        found += operands_of(symbol) if same and isinstance(symbol, Term) else [arg]
    return found


def combined(symbol: str, left: Formula, right: Formula) -> Formula:
    """Two formulas and what stands between them."""
    match symbol:
        case "+" | "-":
            return formulas.linear([(1, left), (1 if symbol == "+" else -1, right)])
        case "*":
            return formulas.product([left, right])
        case "//":
            return formulas.quotient(left, right)
        case "/^":
            return formulas.ceiling(left, right)
        case _:
            return formulas.call(symbol, left, right)


def told(name: str, op: Operation | None) -> str:
    """A number that is known at run time only, and the line that it is of."""
    at = None if op is None else line_of(op)
    return f"{name}@{at[1] if at else '?'}"


def clipped(form: Affine) -> Affine:
    """`x` of `max(x, 0)`: a count that is not negative is written without saying so."""
    for symbol, factor in form.terms.items():
        if isinstance(symbol, Term) and symbol.kind == "max" and factor == 1:
            for one, other in (symbol.args, reversed(symbol.args)):
                if one == Affine():
                    return form - Affine.of(symbol) + other
    return form


def computed_from(number: Number) -> Sequence[SSAValue]:
    match number:
        case Taken(test):
            return test.operands
        case SSAValue():
            return (number,)
        case _:
            return ()


def depends(value: SSAValue, induction: SSAValue) -> bool:
    """True when `value` is computed from `induction`."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        v = pending.pop()
        if v is induction:
            return True
        if v not in seen and isinstance(v.owner, Operation):
            pending.extend(v.owner.operands)
        seen.add(v)
    return False

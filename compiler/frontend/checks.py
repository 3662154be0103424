"""When checks raise, as code of its own: what a handler catches is a branch on it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Symbol, Term, affine
from .emitter import Emitter
from .values import INT64_MIN

MOST_LOOPS = 8
"""A subscript that depends on more counters is checked."""

CHECKED: dict[type[Operation], tuple[str, type[Operation]]] = {
    array.CheckedAddOp: ("+", arith.AddiOp),
    array.CheckedSubOp: ("-", arith.SubiOp),
    array.CheckedMulOp: ("*", arith.MuliOp),
}


def described(op: Operation) -> tuple[str, str, Sequence[SSAValue]]:
    """The exception that an op may raise, its message and what that shows."""
    match op:
        case array.IndexOp() if op.message is not None:
            return "IndexError", op.message.data, ()
        case array.IndexOp():
            return "IndexError", out_of_bounds(op.axis.value.data), (op.index, op.extent)
        case array.CheckedIntOp():
            text = f"{{}} {CHECKED[type(op)][0]} {{}} does not fit in 64 bits"
            return "OverflowError", text, (op.lhs, op.rhs)
        case _:
            assert isinstance(op, array.RaiseIfOp)
            return op.exception.data, op.message.data, tuple(op.operands_shown)


def out_of_bounds(axis: int) -> str:
    return f"index {{}} is out of bounds for axis {axis} with size {{}}"


def outside(e: Emitter, index: SSAValue, extent: SSAValue, sign: str) -> SSAValue:
    """Whether a subscript is out of range."""
    ready = index
    if sign != "nonneg":
        ready = e.emit(arith.AddiOp(index, extent))
    if sign == "any":
        negative = e.emit(arith.CmpiOp(index, e.index(0), "slt"))
        ready = e.emit(arith.SelectOp(negative, ready, index))
    return e.emit(arith.CmpiOp(ready, extent, "uge"))


def is_inside(e: Emitter, index: SSAValue, extent: SSAValue, sign: str) -> bool:
    """True when a subscript is certainly in range: of `x[i + 1]` for i up to the extent of x less 2."""
    least = greatest = affine(index)
    for _ in range(MOST_LOOPS):
        moving = [(s, f) for s, f in {**least.terms, **greatest.terms}.items() if s in e.counts]
        if not moving:
            break
        counter, _ = moving[-1]
        last = count_if_it_runs(affine(e.counts[counter])) - 1
        least = at_an_end(least, counter, last, greatest=False)
        greatest = at_an_end(greatest, counter, last, greatest=True)
    room = greatest - affine(extent)
    below = room.is_constant and room.constant < 0
    above = sign == "nonneg" or (least.is_constant and least.constant >= 0)
    return below and above and sign != "negative"


def at_an_end(form: Affine, counter: Symbol, last: Affine, *, greatest: bool) -> Affine:
    """The least or the greatest value of the form over the iterations, counted up to `last`."""
    factor = form.terms.get(counter, 0)
    rest = form - Affine({counter: factor})
    return rest + last * factor if (factor > 0) == greatest else rest


def count_if_it_runs(count: Affine) -> Affine:
    """A loop's count, taken to be positive: `max(n, 0)` is then n."""
    match list(count.terms.items()):
        case [(Term(kind="max", args=args), 1)] if count.constant == 0 and Affine() in args:
            return next((a for a in args if a != Affine()), count)
        case _:
            return count


def wrapped(op: array.CheckedIntOp) -> Operation:
    """The op without its check: right where the result fits 64 bits."""
    return CHECKED[type(op)][1].create(operands=[op.lhs, op.rhs], result_types=[IndexType()])


def overflows(e: Emitter, op: array.CheckedIntOp) -> SSAValue:
    """Whether the exact result needs more than 64 bits."""
    a, b, result = op.lhs, op.rhs, e.emit(wrapped(op))
    if isinstance(op, array.CheckedMulOp):
        return product_overflows(e, a, b, result)
    # The sign is wrong: of a + b where it is that of neither, of a - b where it is b's and not a's.
    other = e.emit(arith.XOrIOp(*((result, b) if isinstance(op, array.CheckedAddOp) else (a, b))))
    both = e.emit(arith.AndIOp(e.emit(arith.XOrIOp(result, a)), other))
    return e.emit(arith.CmpiOp(both, e.index(0), "slt"))


def product_overflows(e: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """Whether `result / a` is not b; the factors 0 and -1, which do not divide everything, apart."""
    minus = e.emit(arith.CmpiOp(a, e.index(-1), "eq"))
    small = e.emit(arith.OrIOp(minus, e.emit(arith.CmpiOp(a, e.index(0), "eq"))))
    divisor = e.emit(arith.SelectOp(small, e.index(1), a))
    product = e.emit(arith.SelectOp(small, b, result))
    differs = e.emit(arith.CmpiOp(e.emit(arith.DivSIOp(product, divisor)), b, "ne"))
    lowest = e.emit(arith.CmpiOp(b, e.index(INT64_MIN), "eq"))
    return e.emit(arith.OrIOp(differs, e.emit(arith.AndIOp(minus, lowest))))

"""Ranges of ints: how many there are, which is the k-th, and parts of ranges, which are ranges.

    range(a, b, s)             max(0, ceil((b - a) / s)) items       a + k * s
    range(a, b, s)[i:j:t]      range(a + i * s, a + j * s, s * t)    i and j as CPython clips them

The ints of a range have its bounds: that proves subscripts and arithmetic with them.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, SSAValue

from ....dialects import array
from .. import scalars
from ..emitter import Emitter
from ..values import INT64_MAX, INT64_MIN, Scalar, SliceValue

Bounds = tuple[Scalar, Scalar, Scalar]
"""Start, stop and step."""


class Independent:
    """What `prange` is while compiling: a range, and the word that what is done for its items is
    independent."""


RANGES: tuple[object, ...] = (range, Independent)


def claim(induction: SSAValue) -> None:
    """Write on the loop that counts so what was claimed of its iterations."""
    owner = induction.owner
    loop = owner.parent_op() if isinstance(owner, Block) else None
    if isinstance(loop, array.LoopOp):
        loop.attributes[array.CLAIMED] = UnitAttr()


def item_of(e: Emitter, bounds: Bounds) -> Callable[[SSAValue], Scalar]:
    """What the k-th int is."""
    start, stop, step = bounds
    if step.low > 0:
        low, high = start.low, max(start.low, stop.high - 1)
    elif step.high < 0:
        low, high = min(start.high, stop.low + 1), start.high
    else:
        low, high = min(start.low, stop.low), max(start.high, stop.high)

    def item(i: SSAValue) -> Scalar:
        if step.constant != 1:
            i = e.emit(arith.MuliOp(i, step.ssa))
        if start.constant != 0:
            i = e.emit(arith.AddiOp(start.ssa, i))
        return Scalar("py_int", i, None, low, high)

    return item


def count(e: Emitter, bounds: Bounds) -> Scalar:
    """How many ints the range has: max(0, ceil((stop - start) / step))."""
    start, stop, step = bounds
    if start.constant is not None and stop.constant is not None and step.constant is not None:
        known = range(int(start.constant), int(stop.constant), int(step.constant))
        return e.constant(len(known), "py_int")
    if step.low > 0:
        span = distance(e, start, stop)
        size: Scalar = step
    elif step.high < 0:
        span = distance(e, stop, start)
        size = scalars.unary(e, "USub", step)
    else:
        up = scalars.compare(e, "Gt", step, e.constant(0, "py_int"))
        span = distance(e, select(e, up, start, stop), select(e, up, stop, start))
        size = select(e, up, step, scalars.unary(e, "USub", step))
    if size.constant == 1:
        return span
    ssa = e.emit(arith.CeilDivSIOp(span.ssa, size.ssa), "count")
    low, high = -(-span.low // max(size.high, 1)), -(-span.high // max(size.low, 1))
    return Scalar("py_int", ssa, None, low, high)


def select(e: Emitter, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    if condition.constant is not None:
        return a if condition.constant else b
    ssa = e.emit(arith.SelectOp(condition.ssa, a.ssa, b.ssa))
    return Scalar("py_int", ssa, None, min(a.low, b.low), max(a.high, b.high))


def distance(e: Emitter, start: Scalar, stop: Scalar) -> Scalar:
    """max(stop - start, 0); OverflowError where that does not fit 64 bits."""
    low, high = stop.low - start.high, stop.high - start.low
    bounds = max(low, 0), min(max(high, 0), INT64_MAX)
    if high > INT64_MAX:
        end = e.emit(arith.MaxSIOp(stop.ssa, start.ssa))
        ssa = e.emit(array.CheckedSubOp(end, start.ssa), "count")
        return Scalar("py_int", ssa, None, *bounds)
    if start.constant == 0:
        ssa = stop.ssa
    else:
        ssa = e.emit(arith.SubiOp(stop.ssa, start.ssa))
    if low >= 0 and high <= INT64_MAX:
        return Scalar("py_int", ssa, None, *bounds)
    zero = e.index(0)
    if low >= INT64_MIN and high <= INT64_MAX:
        return Scalar("py_int", e.emit(arith.MaxSIOp(ssa, zero), "count"), None, *bounds)
    ahead = scalars.compare_ssa(e, "Lt", start.ssa, stop.ssa, "py_int")
    return Scalar("py_int", e.emit(arith.SelectOp(ahead, ssa, zero), "count"), None, *bounds)


# --- Parts ------------------------------------------------------------------------------------


def part(e: Emitter, bounds: Bounds, n: Scalar, s: SliceValue) -> Bounds:
    """Start, stop and step of a slice of a range of `n` ints: those of CPython."""
    zero, one = e.constant(0, "py_int"), e.constant(1, "py_int")
    by = s.step or one
    if by.constant == 0:
        e.fail("slice step cannot be zero")
    if by.low <= 0 <= by.high:
        e.fail("the sign of this step is known only at run time", "write range(start, stop, step)")
    last = scalars.integer(e, "Sub", n, one)
    low, high = (zero, n) if by.low > 0 else (e.constant(-1, "py_int"), last)
    ends = (low, high) if by.low > 0 else (high, low)
    first, end = (
        default if given is None else clipped(e, given, n, low, high)
        for given, default in zip((s.start, s.stop), ends, strict=True)
    )
    start, _, step = bounds

    def at(k: Scalar) -> Scalar:
        return scalars.integer(e, "Add", start, scalars.integer(e, "Mult", k, step))

    return at(first), at(end), scalars.integer(e, "Mult", step, by)


def clipped(e: Emitter, index: Scalar, n: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """A bound of a slice, counted from the front, and not beyond the ends."""
    if index.low < 0:
        below = scalars.compare(e, "Lt", index, e.constant(0, "py_int"))
        index = select(e, below, scalars.integer(e, "Add", index, n), index)
    index = select(e, scalars.compare(e, "Lt", index, low), low, index)
    return select(e, scalars.compare(e, "Gt", index, high), high, index)

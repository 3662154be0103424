"""Whether two arrays share memory, asked at run time: `array.overlap`, as LLVM text.

They are apart where the bytes from the first to the last element of the one end before those of the other
begin. Else they may still take turns, as two columns of a matrix do: along a dimension in which both have
the stride S, all elements of an array lie within a *window* of each period of S bytes. Where both windows
fit into one period side by side, no byte is in both.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects import array
from .kernel_state import Descriptor, KernelState, size_of


@dataclass(frozen=True)
class Extended:
    """The bytes of an array: where its elements reach to in each dimension, as LLVM values."""

    address: str
    size: int
    down: tuple[str, ...]
    """How far the last element lies below the first, 0 where it lies above."""
    up: tuple[str, ...]
    empty: str


def lower_overlap(state: KernelState, op: array.OverlapOp) -> None:
    text = state.text
    one, other = state.memrefs[op.a], state.memrefs[op.b]
    a, b = extended(state, one), extended(state, other)
    apart = [a.empty, b.empty, ends_before(state, a, b), ends_before(state, b, a)]
    if one.strides and other.strides:
        ends = {(0, 0), (len(one.strides) - 1, len(other.strides) - 1)}
        strides = [(d, one.strides[d], e, other.strides[e]) for d, e in sorted(ends)]
        apart += [take_turns(state, a, b, *along) for along in strides]
    result = apart[0]
    for condition in apart[1:]:
        result = text.value(f"or i1 {result}, {condition}")
    state.scalars[op.result] = text.value(f"xor i1 {result}, true")


def extended(state: KernelState, d: Descriptor) -> Extended:
    text, size = state.text, size_of(d.element)
    down, up = list[str](), list[str]()
    empty = "false"
    for extent, stride in zip(d.extents, d.strides, strict=True):
        reach = text.mul(text.mul(text.sub(extent, "1"), stride), str(size))
        below = text.value(f"icmp slt i64 {reach}, 0")
        down.append(text.value(f"select i1 {below}, i64 {reach}, i64 0"))
        up.append(text.value(f"select i1 {below}, i64 0, i64 {reach}"))
        none = text.value(f"icmp eq i64 {extent}, 0")
        empty = text.value(f"or i1 {empty}, {none}")
    address = text.value(f"ptrtoint ptr {d.pointer} to i64")
    return Extended(address, size, tuple(down), tuple(up), empty)


def bounds(state: KernelState, a: Extended, but: int | None = None) -> tuple[str, str]:
    """The first byte and the one behind the last: of all elements, or of those at one place along `but`."""
    low, high = a.address, state.text.add(a.address, str(a.size))
    for d, (down, up) in enumerate(zip(a.down, a.up, strict=True)):
        if d != but:
            low, high = state.text.add(low, down), state.text.add(high, up)
    return low, high


def ends_before(state: KernelState, a: Extended, b: Extended) -> str:
    (_, end), (start, _) = bounds(state, a), bounds(state, b)
    return state.text.value(f"icmp ule i64 {end}, {start}")


def take_turns(
    state: KernelState, a: Extended, b: Extended, d: int, stride: str, e: int, other: str
) -> str:
    """The windows of both fit into one period, where the strides along these dimensions agree."""
    text = state.text
    period, same = absolute(state, stride), absolute(state, other)
    agree = text.value(f"icmp eq i64 {period}, {same}")
    moving = text.value(f"icmp ne i64 {period}, 0")
    period = text.value(f"select i1 {moving}, i64 {text.mul(period, str(a.size))}, i64 1")
    (low, high), (start, end) = bounds(state, a, d), bounds(state, b, e)
    rest = text.value(f"srem i64 {text.sub(start, low)}, {period}")
    below = text.value(f"icmp slt i64 {rest}, 0")
    shift = text.value(f"select i1 {below}, i64 {text.add(rest, period)}, i64 {rest}")
    behind = text.value(f"icmp sge i64 {shift}, {text.sub(high, low)}")
    reach = text.add(shift, text.sub(end, start))
    within = text.value(f"icmp sle i64 {reach}, {period}")
    fits = text.value(f"and i1 {behind}, {within}")
    known = text.value(f"and i1 {agree}, {moving}")
    if a.size != b.size:
        return "false"
    return text.value(f"and i1 {known}, {fits}")


def absolute(state: KernelState, value: str) -> str:
    text = state.text
    negative = text.value(f"icmp slt i64 {value}, 0")
    return text.value(f"select i1 {negative}, i64 {text.sub('0', value)}, i64 {value}")

"""What the points of a strip add to an array: a loop for each output, or one for outputs of the same rows.

The adjoint of `v[j - 1] - v[j + 1]` adds to two views of a row, two columns apart. What each point adds is in
stack buffers by then (`map_points`). A loop for each view would load and store the row twice, so there is
one for both, in which every element gets what it got, in the same order::

    for j < n: row[j] += left[j]               row[0] += left[0]
    for j < n: row[j + 2] += right[j]    ->    for j < n - 1: row[j + 1] += left[j + 1], then += right[j - 1]
                                               for j in n - 2, n - 1: row[j + 2] += right[j]

The loop begins where the loop before began, if that adds to the same row: likely at a line of the cache.
There `right[-1]` is a margin of the buffer, -0.0, which changes no number that it is added to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from .kernel_state import KernelState
from .llvm_text import integer
from .map_nest import Nest, Output, Together, combine, is_float
from .row_ends import lanes_of, parts_of_row, properties_of_end
from .rows_apart import Place, place_of
from .scalar_text import float_of

MARGIN = 8
"""The most columns between outputs that one loop writes: a buffer's margin has a line for them."""
FEW = 16
"""Rows that are known to have fewer points are not worth the loops at the ends."""


@dataclass
class Part:
    """An output that is added from a buffer."""

    output: Output
    buffer: str
    """The address of the first point's contribution."""
    pointer: str
    """The address to which that is added."""
    column: int
    """Which column that is, counted from the one of the first output."""


def groups_of(nest: Nest, count: str) -> list[Together]:
    """The buffered outputs that one loop can add from their buffers, in groups of several."""
    known = integer(count)
    if nest.innermost is None or (known is not None and known < FEW):
        return []
    found: list[Together] = []
    run: dict[int, int] = {}
    first: Place | None = None
    for k, o in enumerate(nest.outputs):
        if not o.buffered:
            continue
        place = place_of(o.memref) if may_go_along(nest, o) else None
        column = None if place is None or first is None else column_in(first, place, nest.innermost)
        spread = [*run.values(), column or 0]
        if column is not None and max(spread) - min(spread) <= MARGIN:
            run[k] = column
            continue
        found += together(nest, run, first)
        run, first = ({}, None) if place is None else ({k: 0}, place)
    return [*found, *together(nest, run, first)]


def together(nest: Nest, run: dict[int, int], first: Place | None) -> Iterator[Together]:
    if len(run) < 2 or first is None:
        return
    assert nest.innermost is not None
    low, high = min(run.values()), max(run.values())
    for o in nest.outputs:
        place = None if o.buffered or o.still or o.kind != "add" else place_of(o.memref)
        column = None if place is None else column_in(first, place, nest.innermost)
        if column is not None and low <= column <= high:
            yield Together(run, column)
            return
    yield Together(run, high)


def may_go_along(nest: Nest, o: Output) -> bool:
    """Whether an output has floats that lie side by side, each its own in the buffer."""
    plain = o.kind == "add" and is_float(o.element) and not isinstance(o.element, VectorType)
    own = o.value.owner is nest.op.body.block or o.value.owner.parent is nest.op.body.block  # pyright: ignore
    return plain and own and o.strides[-1] == "1"


def column_in(one: Place, other: Place, inner: int) -> int | None:
    """How many columns a view begins behind another of the same rows; None for views of others."""
    if one.base is not other.base or one.dims != other.dims:
        return None
    away = [other.starts[d] - one.starts[d] for d in range(len(one.starts))]
    same_rows = all(
        a.is_constant and not a.constant for d, a in enumerate(away) if d != one.dims[inner]
    )
    column = away[one.dims[inner]]
    return column.constant if same_rows and column.is_constant else None


def parts_of_group(
    nest: Nest, group: Together, pointers: Sequence[str], buffers: Mapping[SSAValue, str]
) -> list[Part]:
    """The outputs of a group, in the order of the map."""
    found: list[Part] = []
    for k, column in group.columns.items():
        o = nest.outputs[k]
        found.append(Part(o, buffers[o.value], pointers[len(nest.inputs) + k], column))
    return found


def write_margins(state: KernelState, group: Together, parts: Sequence[Part]) -> None:
    """Fill what the loop reads before the buffers of outputs that begin behind it."""
    for part in parts:
        for k in range(part.column - group.start):
            at = state.offset(part.buffer, part.output.element, str(-1 - k))
            state.store(float_of(-0.0, part.output.element), at, part.output.element, "")


def add_together(nest: Nest, group: Together, parts: Sequence[Part], count: str) -> None:
    """Add from all buffers of a group: a few points at both ends apart, the others in one loop."""
    state, text = nest.state, nest.state.text
    low = min(part.column for part in parts)
    length = at_least_0(state, text.sub(count, str(group.start - low)))
    for part in parts:
        if part.column < group.start:
            add_few(nest, part, "0", smaller(state, count, str(group.start - part.column)))
    tags = f", !llvm.access.group {nest.group}"
    lanes = lanes_of(nest, nest.stages[-1], length)
    for first, piece in parts_of_row(state, length, lanes):
        loop = text.begin_loop(piece, (), "j", certain=bool(lanes) and first != "0")
        j = text.add(first, loop.counter)
        o = parts[0].output
        target = state.offset(
            parts[0].pointer, o.element, text.add(j, str(group.start - parts[0].column))
        )
        total = state.load(target, o.element, o.tags + tags)
        for part in parts:
            at = state.offset(part.buffer, o.element, text.add(j, str(group.start - part.column)))
            total = combine(
                state, "add", o.element, total, state.load(at, o.element, tags), free=False
            )
        state.store(total, target, o.element, o.tags + tags)
        if first == "0":
            properties = state.loop_properties(parallel_group=nest.group, innermost=True)
        else:
            properties = properties_of_end(state, piece, nest.group)
        text.end_loop(loop, (), properties)
    for part in parts:
        done = at_least_0(state, text.add(length, str(group.start - part.column)))
        add_few(nest, part, done, at_least_0(state, text.sub(count, done)))


def add_few(nest: Nest, part: Part, first: str, count: str) -> None:
    """Add from a buffer what some points have, so few that vectors gain nothing."""
    state, text, o = nest.state, nest.state.text, part.output
    if integer(count) == 0:
        return
    loop = text.begin_loop(count, (), "j")
    j = text.add(first, loop.counter)
    new = state.load(state.offset(part.buffer, o.element, j), o.element, "")
    target = state.offset(part.pointer, o.element, j)
    old = state.load(target, o.element, o.tags)
    state.store(combine(state, "add", o.element, old, new, free=False), target, o.element, o.tags)
    node = state.metadata.node
    text.end_loop(
        loop,
        (),
        [node('!"llvm.loop.vectorize.enable", i1 false'), node('!"llvm.loop.unroll.disable"')],
    )


def at_least_0(state: KernelState, value: str) -> str:
    known = integer(value)
    if known is not None:
        return str(max(known, 0))
    name = state.intrinsic("llvm.smax.i64", "i64", "i64, i64")
    return state.text.value(f"call i64 @{name}(i64 {value}, i64 0)")


def smaller(state: KernelState, value: str, bound: str) -> str:
    known = integer(value)
    if known is not None:
        return str(min(known, int(bound)))
    name = state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
    return state.text.value(f"call i64 @{name}(i64 {value}, i64 {bound})")

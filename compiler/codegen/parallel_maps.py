"""A map that threads run: chunks along one axis of its index space.

Points are independent of each other, so are chunks. Which axis, is decided where the map begins: the
outermost that is long enough, else the longest. An output that is reduced to one element has one for each
chunk, and these are combined in order. Left to one thread: maps that reduce along every axis to more than one
element, and those with several outputs that may meet (a point adds to what another one adds to).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ...dialects import array
from .array_to_loops import loop_order, lower_map
from .gather_maps import Part
from .kernel_state import Descriptor, KernelState, lanes_of, memory_type, value_type
from .llvm_text import FunctionText, integer
from .map_nest import combine, identity
from .parallel_regions import CHUNKS, Region, RegionWriter, in_threads_or_here, is_small, split
from .work_estimate import WorkEstimate, cost_of_point

LONG = 64
"""An axis of so many points is long enough."""

ROUND = 64
"""Chunks of the innermost axis are multiples of this, where it has many: whole vectors, whole cache lines."""


@dataclass(frozen=True)
class Axes:
    """The axes of a map that may be cut, outermost first, and its outputs that are one element each."""

    allowed: tuple[int, ...]
    innermost: int
    reduced: tuple[int, ...]


def axes_of(state: KernelState, op: array.MapOp) -> Axes | None:
    """None where the map is for one thread."""
    extents = [state.scalar(e) for e in op.extents]
    known = [integer(e) for e in extents]
    most = math.prod(math.inf if n is None else max(n, 0) for n in known)
    if not extents or (math.isfinite(most) and is_small(repr(most * cost_of_point(op)))):
        return None
    outs = [state.memrefs[m] for m in op.outs]
    order = loop_order(state, op, extents)
    if not outputs_apart(state, op):
        return None
    reduced = [
        k
        for k, (d, kind) in enumerate(zip(outs, op.out_kinds, strict=True))
        if kind != "store" and all(d.strides[a] == "0" for a in order)
    ]
    if any(lanes_of(outs[k].element) > 1 or list(op.outs).count(op.outs[k]) > 1 for k in reduced):
        return None
    moving = [d for k, d in enumerate(outs) if k not in reduced]
    if reduced and op.gathers is not None:
        return None
    allowed = [a for a in order if all(d.strides[a] != "0" for d in moving)]
    return Axes(tuple(allowed), order[-1], tuple(reduced)) if allowed else None


def outputs_apart(state: KernelState, op: array.MapOp) -> bool:
    """No two outputs are different places of one array."""
    outs = list(op.outs)
    for k, a in enumerate(outs):
        for b in outs[:k]:
            same = a is b or state.alias.same_view(a, b)
            if not same and not state.scopes.apart(a, b):
                return False
    return True


def parallel_map(
    writer: RegionWriter, op: array.MapOp, axes: Axes, here: Callable[[], None]
) -> None:
    """The map in threads where it is large, else `here`."""
    outer = writer.state
    text = outer.text
    extents = [outer.scalar(e) for e in op.extents]
    work = WorkEstimate(outer).of_map(op)
    axis, count = chosen_axis(outer, extents, axes)
    cut = split(outer, count, work, alignment(text, extents, axes, axis))
    cut = replace(cut, chunks=unless_still(outer, op, axes, cut.chunks))

    def threads() -> None:
        region = Region(outer, op)
        partial = {k: text.alloca(f"[{CHUNKS} x i64]", "partial") for k in axes.reduced}
        slots = {op.outs[k]: own_element(region.inside, op, k) for k in axes.reduced}
        part = cut_arrays(region, op, axes, axis, slots)
        writer.within(region.inside, lambda: lower_map(region.inside, op, part))
        for k, slot in partial.items():
            keep(region, op, k, slots[op.outs[k]], slot)
        region.call(cut)
        for k, slot in partial.items():
            collect(outer, op, k, slot, cut.chunks)

    in_threads_or_here(outer, cut, threads, here)


def unless_still(state: KernelState, op: array.MapOp, axes: Axes, chunks: str) -> str:
    """One chunk where an output that is added to stands still after all: it was broadcast at run time."""
    text, moves = state.text, list[str]()
    for k, (m, kind) in enumerate(zip(op.outs, op.out_kinds, strict=True)):
        strides = [state.memrefs[m].strides[a] for a in axes.allowed]
        if k not in axes.reduced and kind != "store":
            moves += [text.value(f"icmp ne i64 {s}, 0") for s in strides if integer(s) is None]
    moving = text.both(moves)
    return chunks if moving == "true" else text.value(f"select i1 {moving}, i64 {chunks}, i64 1")


def alignment(text: FunctionText, extents: list[str], axes: Axes, axis: str | None) -> str:
    """What chunks are multiples of."""
    if axes.innermost not in axes.allowed:
        return "1"
    many = text.value(f"icmp sge i64 {extents[axes.innermost]}, {ROUND * CHUNKS}")
    if axis is not None:
        this = text.value(f"icmp eq i64 {axis}, {axes.innermost}")
        many = text.value(f"and i1 {many}, {this}")
    return text.value(f"select i1 {many}, i64 {ROUND}, i64 1")


def cut_arrays(
    region: Region,
    op: array.MapOp,
    axes: Axes,
    axis: str | None,
    slots: dict[SSAValue, Descriptor],
) -> Part:
    """Bind the operands of the map to the parts that a chunk is about; one that gathers looks around."""
    inside, text = region.inside, region.inside.text
    bound = {m: inside.memrefs[m] for m in (*op.ins, *op.outs)}
    lengths, length = [inside.scalars[e] for e in op.extents], text.value("sub i64 %high, %low")
    lows = ["0"] * len(lengths)
    if axis is None:
        lows[axes.allowed[0]], lengths[axes.allowed[0]] = "%low", length
    else:
        own = region.operand("i64", axis)
        for a in axes.allowed:
            this = text.value(f"icmp eq i64 {own}, {a}")
            lows[a] = text.value(f"select i1 {this}, i64 %low, i64 0")
            lengths[a] = text.value(f"select i1 {this}, i64 {length}, i64 {lengths[a]}")
    for m, d in bound.items() if op.gathers is None else ():
        inside.memrefs[m] = slots.get(m) or shifted(inside, d, lows)
    return Part(lows, lengths)


def chosen_axis(state: KernelState, extents: list[str], axes: Axes) -> tuple[str | None, str]:
    """The axis that is cut, None where there is no choice, and how many points it has."""
    text, first = state.text, axes.allowed[0]
    if len(axes.allowed) == 1:
        return None, extents[first]
    axis, count = str(first), extents[first]
    for a in axes.allowed[1:]:
        short = text.value(f"icmp slt i64 {count}, {LONG}")
        longer = text.value(f"icmp sgt i64 {extents[a]}, {count}")
        better = text.value(f"and i1 {short}, {longer}")
        axis = text.value(f"select i1 {better}, i64 {a}, i64 {axis}")
        count = text.value(f"select i1 {better}, i64 {extents[a]}, i64 {count}")
    return axis, count


def shifted(state: KernelState, d: Descriptor, lows: list[str]) -> Descriptor:
    """The array from these points on."""
    offset = "0"
    for low, stride in zip(lows, d.strides, strict=True):
        offset = state.text.add(offset, state.text.mul(low, stride))
    pointer = state.offset(d.pointer, d.element, offset)
    return Descriptor(pointer, d.extents, d.strides, d.element)


def own_element(state: KernelState, op: array.MapOp, k: int) -> Descriptor:
    """What a chunk has of a reduced output: one element, of which nothing is there yet."""
    outer = state.memrefs[op.outs[k]]
    slot = state.text.alloca(memory_type(outer.element), "partial")
    state.store(identity(op.out_kinds[k], outer.element), slot, outer.element, "")
    return Descriptor(slot, outer.extents, outer.strides, outer.element)


def keep(region: Region, op: array.MapOp, k: int, own: Descriptor, partial: str) -> None:
    """Hand over what the chunk has."""
    inside = region.inside
    value = inside.load(own.pointer, own.element, "")
    array_ = region.operand("ptr", partial)
    at = inside.text.value(f"getelementptr inbounds i64, ptr {array_}, i64 %chunk")
    inside.store(value, at, own.element, "")


def collect(state: KernelState, op: array.MapOp, k: int, partial: str, chunks: str) -> None:
    """Combine what the chunks have, in their order, with what is there."""
    d, memref, kind = state.memrefs[op.outs[k]], op.outs[k], op.out_kinds[k]
    tags = state.scopes.tags(memref)
    old = state.load(d.pointer, d.element, tags)
    text = state.text
    loop = text.begin_loop(chunks, [(value_type(d.element), old)], "chunk", certain=True)
    at = text.value(f"getelementptr inbounds i64, ptr {partial}, i64 {loop.counter}")
    value = state.load(at, d.element, "")
    total = combine(state, kind, d.element, loop.values[0], value, free=False)
    (last,) = text.end_loop(loop, [total], state.loop_properties())
    state.store(last, d.pointer, d.element, tags)

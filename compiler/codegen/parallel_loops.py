"""A loop that threads run: its iterations in chunks, each with scalar variables and sums of its own.

::

    for i in prange(n):                 region_0_part(%low, %high):
        t = f(x[i])                       t: the chunk's own; the last chunk says what it is afterwards
        s += t                            s: from 0, to partial[chunk]
        h[k[i]] += t                      h: the first chunk adds to h, the others to zeros of their own
                                        s += partial[0] + ...; h += those of chunk 1; h += those of chunk 2

What is claimed independent and may raise goes to threads as well: the exception of the least iteration is
raised, as in order, though later iterations may have run. What is proved independent raises nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..analysis.carried_cells import Role
from ..analysis.independence import Independence, Independent, is_claimed
from ..analysis.views import strip_views
from .checks_to_llvm import raise_overflow
from .kernel_state import (
    Descriptor,
    KernelState,
    lanes_of,
    size_of,
    step_type,
    value_type,
)
from .map_nest import combine, identity
from .memory_to_llvm import RUNTIME_MEMORY, bytes_of, support_call
from .parallel_regions import (
    CHUNKS,
    Region,
    RegionWriter,
    Split,
    in_threads_or_here,
    is_small,
    split,
)
from .work_estimate import WorkEstimate

VIEWS = (array.ViewOp, array.CollapseOp, memref.CastOp)

OWN_ELEMENT = 0.5
"""Nanoseconds that each element of a chunk's own sums costs: it is zeroed, and added up."""


class ChunkWriter(RegionWriter, Protocol):
    """The writer of the function that the loop stands in."""

    independence: Independence

    def emit(self, op: Operation) -> None: ...
    def counted_loop(
        self, op: array.LoopOp, moving: list[tuple[int, int]], part: tuple[str, str] | None = None
    ) -> None: ...


def may_leave_early(writer: ChunkWriter, loop: array.LoopOp) -> bool:
    """Whether an iteration may raise."""
    return any(
        array.is_operation_that_may_raise(op) and op not in writer.state.proved
        for op in loop.walk()
    )


def independent_loop(writer: ChunkWriter, loop: array.LoopOp) -> Independent | None:
    """How the loop's iterations are told apart, if threads may run them."""
    if writer.state.scalar_only or (may_leave_early(writer, loop) and not is_claimed(loop)):
        return None
    return writer.independence.of(loop)


@dataclass
class Own:
    """An array of which each chunk has its own."""

    base: SSAValue
    bytes: str
    memory: str = ""
    """Where those of the second chunk begin."""


def parallel_loop(
    writer: ChunkWriter, loop: array.LoopOp, told: Independent, here: Callable[[], None]
) -> None:
    """The loop in threads where it is long, else `here`."""
    state = writer.state
    assert loop.count is not None
    work = WorkEstimate(state).of_loop(loop)
    if is_small(work):
        here()
        return
    smax = state.intrinsic("llvm.smax.i64", "i64", "i64, i64")
    count = state.text.value(f"call i64 @{smax}(i64 {state.scalars[loop.count]}, i64 0)")
    owned = [Own(base, bytes_of_array(state, base)) for base in told.summed]
    cut = split(state, count, work, most=most_chunks(state, owned, work))
    in_threads_or_here(state, cut, lambda: Chunks(writer, loop, told, owned, cut).write(), here)
    state.scalars[loop.trips] = count


def bytes_of_array(state: KernelState, base: SSAValue) -> str:
    assert isinstance(base.type, MemRefType)
    return bytes_of(state, base.type, list(state.memrefs[base].extents))


def most_chunks(state: KernelState, owned: list[Own], work: str) -> str | None:
    """So many that what they have of their own costs a quarter of the work at most."""
    if not owned:
        return None
    text, total = state.text, ""
    for own in owned:
        elements = 4.0 * OWN_ELEMENT / size_of(state.memrefs[own.base].element)
        size = text.value(f"uitofp i64 {own.bytes} to double")
        cost = text.value(f"fmul double {size}, {elements!r}")
        total = text.value(f"fadd double {total}, {cost}") if total else cost
    return text.value(f"fdiv double {work}, {total}")


class Chunks:
    """Writes the region of one loop."""

    def __init__(
        self,
        writer: ChunkWriter,
        loop: array.LoopOp,
        told: Independent,
        owned: list[Own],
        cut: Split,
    ) -> None:
        self.writer, self.loop, self.told, self.owned, self.cut = writer, loop, told, owned, cut
        self.outer = writer.state
        self.region = Region(self.outer, loop)
        self.kept: dict[SSAValue, str] = {}
        """Of the cells that leave something the memory, outside, in which chunks leave it."""

    def write(self) -> None:
        state, inside = self.outer, self.region.inside
        mark = support_call(state, "mutad_mark", "ptr %ctx") if self.owned else None
        for own in self.owned:
            self.make(own)
        for cell, role in self.told.cells.items():
            self.enter(cell, role)
        loop = self.loop
        self.writer.within(inside, lambda: self.writer.counted_loop(loop, [], ("%low", "%high")))
        for cell, role in self.told.cells.items():
            self.leave(cell, role)
        self.region.call(self.cut)
        for cell, role in self.told.cells.items():
            self.collect(cell, role)
        for own in self.owned:
            self.add_up(own)
        if mark is not None:
            state.support.add("mutad_release")
            group = state.attribute_group(RUNTIME_MEMORY)
            state.text.do(f"call void @mutad_release(ptr %ctx, ptr {mark}) {group}")

    # Scalar variables.

    def enter(self, cell: SSAValue, role: Role) -> None:
        """What a chunk begins with."""
        region, inside = self.region, self.region.inside
        element = self.outer.memrefs[cell].element
        match role.name:
            case "private":
                region.cell(cell, "zeroinitializer")
            case "reduction":
                assert role.kind is not None
                region.cell(cell, stored(identity(role.kind, element)))
            case "reset":
                assert role.value is not None
                own = region.cell(cell)
                text = inside.text
                first = text.value("icmp eq i64 %chunk, 0")
                then, on = text.label("later"), text.label("on")
                text.branch_if(first, on, then)
                text.start(then)
                inside.store(inside.scalars[role.value], own.pointer, element, "")
                text.branch(on)
                text.start(on)
            case _:
                region.cell(cell)

    def leave(self, cell: SSAValue, role: Role) -> None:
        """What a chunk leaves: its terms; of what is not a sum only the last chunk."""
        if role.name not in ("private", "reduction"):
            return
        inside, own = self.region.inside, self.region.inside.memrefs[cell]
        text = inside.text
        words = CHUNKS * lanes_of(own.element)
        slot = self.kept[cell] = self.outer.text.alloca(f"[{words} x i64]", "partial")
        value = inside.load(own.pointer, own.element, "")
        slots = self.region.operand("ptr", slot)
        at = text.value(f"getelementptr inbounds {step_type(own.element)}, ptr {slots}, i64 %chunk")
        inside.store(value, at, own.element, "")

    def collect(self, cell: SSAValue, role: Role) -> None:
        """What the variable is after all chunks."""
        state, text, d = self.outer, self.outer.text, self.outer.memrefs[cell]
        if role.name == "reset":
            assert role.value is not None
            state.store(state.scalars[role.value], d.pointer, d.element, "")
        elif role.name == "private":
            last, step = text.sub(self.cut.chunks, "1"), step_type(d.element)
            at = text.value(f"getelementptr inbounds {step}, ptr {self.kept[cell]}, i64 {last}")
            state.store(state.load(at, d.element, ""), d.pointer, d.element, "")
        elif role.name == "reduction":
            assert role.kind is not None
            old, chunks = state.load(d.pointer, d.element, ""), self.cut.chunks
            loop = text.begin_loop(chunks, [(value_type(d.element), old)], "chunk", certain=True)
            place, step = self.kept[cell], step_type(d.element)
            at = text.value(f"getelementptr inbounds {step}, ptr {place}, i64 {loop.counter}")
            term = state.load(at, d.element, "")
            if role.checked is not None:
                total = raise_overflow(state, role.checked, loop.values[0], term)
            else:
                total = combine(state, role.kind, d.element, loop.values[0], term, free=False)
            (final,) = text.end_loop(loop, [total], state.loop_properties())
            state.store(final, d.pointer, d.element, "")

    # Sums in arrays.

    def make(self, own: Own) -> None:
        """Memory for all chunks but the first, which adds to the array itself; each fills its own with 0."""
        state, text = self.outer, self.outer.text
        others = text.sub(self.cut.chunks, "1")
        name = state.intrinsic("llvm.umul.with.overflow.i64", "{ i64, i1 }", "i64, i64")
        pair = text.value(f"call {{ i64, i1 }} @{name}(i64 {others}, i64 {own.bytes})")
        total = text.value(f"extractvalue {{ i64, i1 }} {pair}, 0")
        huge = text.value(f"extractvalue {{ i64, i1 }} {pair}, 1")
        total = text.value(f"select i1 {huge}, i64 -1, i64 {total}")
        own.memory = support_call(state, "mutad_alloc", "ptr %ctx", f"i64 {total}")
        state.return_when(text.value(f"icmp eq ptr {own.memory}, null"), 3)
        self.bind(own)

    def bind(self, own: Own) -> None:
        region, inside = self.region, self.region.inside
        text, given = inside.text, region.memref(own.base)
        memory, size = region.operand("ptr", own.memory), region.operand("i64", own.bytes)
        before = text.value("sub i64 %chunk, 1")
        at = text.value(f"getelementptr i8, ptr {memory}, i64 {text.mul(before, size)}")
        first = text.value("icmp eq i64 %chunk, 0")
        then, on = text.label("later"), text.label("on")
        text.branch_if(first, on, then)
        text.start(then)
        inside.intrinsic("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
        text.do(f"call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {size}, i1 false)")
        text.branch(on)
        text.start(on)
        strides = [
            theirs if theirs == ours else text.value(f"select i1 {first}, i64 {theirs}, i64 {ours}")
            for theirs, ours in zip(given.strides, compact(inside, own.base, given), strict=True)
        ]
        pointer = text.value(f"select i1 {first}, ptr {given.pointer}, ptr {at}")
        inside.memrefs[own.base] = Descriptor(pointer, given.extents, tuple(strides), given.element)
        for view in views_from_outside(self.loop, own.base):
            self.writer.within(inside, partial(self.writer.emit, view))

    def add_up(self, own: Own) -> None:
        """Add what the chunks have to the array, one chunk after the other."""
        state, text, d = self.outer, self.outer.text, self.outer.memrefs[own.base]
        others = text.sub(self.cut.chunks, "1")
        tags = state.scopes.tags(own.base)
        own_strides = compact(state, own.base, d)
        chunk = text.begin_loop(others, (), "chunk")
        start = text.value(
            f"getelementptr i8, ptr {own.memory}, i64 {text.mul(chunk.counter, own.bytes)}"
        )
        loops = [text.begin_loop(n, (), "j") for n in d.extents]
        there, here = "0", "0"
        for loop, theirs, ours in zip(loops, d.strides, own_strides, strict=True):
            there = text.add(there, text.mul(loop.counter, theirs))
            here = text.add(here, text.mul(loop.counter, ours))
        target = state.offset(d.pointer, d.element, there)
        term = state.load(state.offset(start, d.element, here), d.element, "")
        total = combine(
            state, "add", d.element, state.load(target, d.element, tags), term, free=False
        )
        state.store(total, target, d.element, tags)
        for k, loop in enumerate(reversed(loops)):
            text.end_loop(loop, (), state.loop_properties(innermost=k == 0))
        text.end_loop(chunk, (), state.loop_properties())


def views_from_outside(loop: array.LoopOp, base: SSAValue) -> list[Operation]:
    """What makes the views of an array that a loop uses and that are older than it, in order."""
    found: dict[Operation, None] = {}

    def add(seen: SSAValue) -> None:
        made = seen.owner
        if isinstance(made, VIEWS) and made not in found and not loop.is_ancestor(made):
            add(made.source)
            found[made] = None

    for op in loop.walk():
        for operand in op.operands:
            if operand is not base and strip_views(operand) is base:
                add(operand)
    return list(found)


def compact(state: KernelState, base: SSAValue, like: Descriptor) -> tuple[str, ...]:
    """The strides of a fresh array that lies as another one does."""
    assert isinstance(base.type, MemRefType)
    turn = 1 if array.is_by_columns(base.type) else -1
    strides, step = list[str](), "1"
    for extent in like.extents[::turn]:
        strides.append("0" if extent == "1" else step)
        step = state.text.mul(step, extent)
    return tuple(strides[::turn])


def stored(value: str) -> str:
    """A constant as it is in memory: a bool is a byte."""
    return {"true": "1", "false": "0"}.get(value, value)

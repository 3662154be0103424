"""Regions that threads run: a part of a kernel as a function of a chunk, and the call that runs all chunks.

What the part uses from outside goes through a *frame* in the memory of the call::

    store ptr %a, ptr %frame                     define internal i32 @region_0_part(ptr %ctx, ptr %frame,
    store i64 %n, ptr %frame.1                       i64 %chunk, i64 %low, i64 %high) {
    %s = call i32 @mutad_threads_run(              %a = load ptr, ptr %frame
      ptr @region_0, ptr %frame, ptr %ctx, ...)    ... iterations low to high

`@region_0` makes the context of a chunk, with memory of its own, and calls the part. How many chunks there
are follows from the work, which is estimated where the region begins, and from nothing else: not from the
number of threads, so results are the same for any number of them, to the bit. Work for a single chunk is
done on the spot, by the code that there would be without threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from xdsl.ir import Operation, SSAValue

from ..analysis.carried_cells import cell_of, is_cell
from .entries.run import (
    CTX_BYTES,
    CTX_LINK,
    CTX_POLL,
    CTX_POOL,
    CTX_PRINT,
    CTX_RECURSION_LIMIT,
    CTX_SITE,
    CTX_THREAD,
)
from .kernel_state import PYTHON_RAISED, Descriptor, KernelState, memory_type, value_type
from .llvm_text import ALIGNED, SLOT, FunctionText
from .support.context import LAST_POLL

CHUNKS = 64
"""A region has at most so many chunks, and threads that have one."""

GRAIN = 50_000.0
"""Nanoseconds of work that a chunk is worth: ten times what it costs to wake a thread up."""

RUN, FAILED = "mutad_threads_run", "mutad_threads_failed"

POLL = f"""
define internal i32 @mutad_region_poll(ptr %ctx) {{
  %chunk.at = getelementptr i8, ptr %ctx, i64 {CTX_PRINT}
  %chunk = load i64, ptr %chunk.at
  %failed = call i64 @{FAILED}()
  %behind = icmp slt i64 %failed, %chunk
  %status = select i1 %behind, i32 {PYTHON_RAISED}, i32 0
  ret i32 %status
}}
"""
"""What a worker asks instead of Python: whether what it does is still wanted. (It prints nothing: where the
context says how, it has the number of the chunk.)"""

RECORD_BYTES = CTX_LINK - CTX_SITE

OWN = (CTX_POOL, CTX_LINK, CTX_RECURSION_LIMIT)
"""What the context of a chunk has of the call's."""
CALLERS = (CTX_POLL, CTX_PRINT, CTX_THREAD, LAST_POLL)
"""What it has as well on the thread that made the call."""

FIXED = ("count", "size", "chunks")
"""The first fields of a frame: how many iterations there are, how many a chunk has, how many chunks."""

Value = TypeVar("Value")


class OnDemand(dict[SSAValue, Value]):
    """What the values of a region are; those from outside are brought in where they are asked for."""

    def __init__(self, outer: dict[SSAValue, Value], bring: Callable[[SSAValue], Value]) -> None:
        super().__init__()
        self.outer, self.bring = outer, bring

    def __missing__(self, value: SSAValue) -> Value:
        if value not in self.outer:
            raise KeyError(value)
        found = self[value] = self.bring(value)
        return found

    def __contains__(self, value: object) -> bool:
        return super().__contains__(value) or value in self.outer


@dataclass(frozen=True)
class Split:
    """How iterations are cut into chunks."""

    count: str
    size: str
    chunks: str


def split(
    state: KernelState, count: str, work: str, align: str = "1", most: str | None = None
) -> Split:
    """So many iterations, which take that many nanoseconds (a double), in chunks.

    Chunks are multiples of `align`, and there are at most so many as the double `most` says.
    """
    text = state.text
    for name in ("umin", "umax"):
        state.intrinsic(f"llvm.{name}.i64", "i64", "i64, i64")
    state.intrinsic("llvm.fptosi.sat.i64.f64", "i64", "double")
    wanted = text.value(f"fdiv double {work}, {GRAIN!r}")
    if most is not None:
        state.intrinsic("llvm.minnum.f64", "double", "double, double")
        wanted = text.value(f"call double @llvm.minnum.f64(double {wanted}, double {most})")
    whole = text.value(f"call i64 @llvm.fptosi.sat.i64.f64(double {wanted})")
    some = text.value(f"call i64 @llvm.umin.i64(i64 {whole}, i64 {CHUNKS})")
    fewer = text.value(f"call i64 @llvm.umin.i64(i64 {some}, i64 {count})")
    number = text.value(f"call i64 @llvm.umax.i64(i64 {fewer}, i64 1)")
    size = rounded_quotient(text, count, number)
    if align != "1":
        size = text.mul(rounded_quotient(text, size, align), align)
    size = text.value(f"call i64 @llvm.umax.i64(i64 {size}, i64 1)")
    return Split(count, size, rounded_quotient(text, count, size))


def is_small(work: str) -> bool:
    """The work is known, and a thread does it."""
    return not work.startswith("%") and float(work) < 2 * GRAIN


def in_threads_or_here(
    state: KernelState, cut: Split, threads: Callable[[], None], here: Callable[[], None]
) -> None:
    """The code of several chunks, and that of one, which is what there would be without threads."""
    text = state.text
    several, one, merge = text.label("threads"), text.label("here"), text.label("merge")
    text.branch_if(text.value(f"icmp ugt i64 {cut.chunks}, 1"), several, one)
    for label, write in ((several, threads), (one, here)):
        text.start(label)
        write()
        text.branch(merge)
    text.start(merge)


def words_of(type_: str) -> int:
    """How many words hold a value of an LLVM type: one for each lane of a vector, at most."""
    vector = re.match(r"<(\d+) x ", type_)
    return int(vector[1]) if vector else 1


class RegionWriter(Protocol):
    """What is asked of the writer of the function that a region stands in."""

    state: KernelState

    def within(self, state: KernelState, write: Callable[[], None]) -> None:
        """Write into another state what one thread runs."""


class Region:
    """A region while its part is written, with `inside` as the state."""

    def __init__(self, outer: KernelState, op: Operation) -> None:
        self.outer = outer
        self.name = f"region_{len(outer.functions)}"
        outer.functions[self.name] = ""  # so that regions and maps inside have names of their own
        self.fields: dict[tuple[str, str], tuple[int, str]] = {}
        """Type and operand outside -> number of the field, and what the part calls it."""
        self.filled: dict[int, tuple[str, str]] = {}
        """By the word where a field begins, its type and what the call stores there."""
        self.words = len(FIXED)
        debug = outer.debug
        self.inside = replace(
            outer, text=FunctionText(outer.metadata), buffers={}, registers={}, returns="i32",
            depth="", group="", support=set(), products={},  # values have other names outside
            scalars=OnDemand(outer.scalars, self.scalar), memrefs=OnDemand(outer.memrefs, self.memref),
            debug=debug.function(f"{debug.name}.{self.name}") if debug else None,
        )  # fmt: skip
        self.inside.text.depth = outer.text.depth
        self.inside.emit, self.inside.scopes = outer.emit, outer.scopes
        if self.inside.debug is not None:
            self.inside.text.tag = self.inside.debug.at(op.location) or self.inside.debug.start
        self.before: list[Callable[[], None]] = []
        """What the call writes before the chunks run."""

    # What comes from outside.

    def operand(self, type_: str, operand: str) -> str:
        """What the part calls an operand from outside; what is no SSA name means the same everywhere."""
        if not operand.startswith("%"):
            return operand
        found = self.fields.get((type_, operand))
        if found is None:
            found = self.fields[type_, operand] = self.field(type_, operand)
        return found[1]

    def field(self, type_: str, operand: str = "") -> tuple[int, str]:
        """Another field of the frame; with an operand, what the call stores there."""
        number, text = self.words, self.inside.text
        self.filled[number] = type_, operand
        self.words += words_of(type_)
        at, own = text.name("at"), text.name("p")
        text.entry.append(f"  {at} = getelementptr inbounds i64, ptr %frame, i64 {number}")
        stored = "i8" if type_ == "i1" else type_
        loaded = text.name("b") if type_ == "i1" else own
        text.entry.append(f"  {loaded} = load {stored}, ptr {at}, align 8")
        if type_ == "i1":
            text.entry.append(f"  {own} = icmp ne i8 {loaded}, 0")
        return number, own

    def scalar(self, value: SSAValue) -> str:
        return self.operand(value_type(value.type), self.outer.scalars[value])

    def memref(self, value: SSAValue) -> Descriptor:
        if is_cell(value):
            return self.cell(value)
        given, cell = self.outer.memrefs[value], cell_of(value)
        own = None if cell is None else self.inside.memrefs[cell].pointer
        return Descriptor(
            own or self.operand("ptr", given.pointer),
            tuple(self.operand("i64", n) for n in given.extents),
            tuple(self.operand("i64", s) for s in given.strides),
            given.element,
        )

    def cell(self, value: SSAValue, initial: str | None = None) -> Descriptor:
        """A chunk's own copy of a scalar variable; it begins as the variable is, or as `initial`."""
        outer, element = self.outer.memrefs[value], self.outer.memrefs[value].element
        text, type_ = self.inside.text, memory_type(element)
        slot = text.alloca(type_, value.name_hint or "cell")
        if initial is None:
            number, initial = self.field(type_)

            def fill() -> None:
                now = self.outer.text.value(f"load {type_}, ptr {outer.pointer}, align {SLOT}")
                self.filled[number] = type_, now

            self.before.append(fill)
        text.entry.append(f"  store {type_} {initial}, ptr {slot}, align {SLOT}")
        found = self.inside.memrefs[value] = Descriptor(slot, (), (), element)
        return found

    # The functions.

    def call(self, split: Split) -> None:
        """Write the functions, and the call that runs all chunks."""
        text, outer = self.outer.text, self.outer
        outer.support |= self.inside.support
        for fill in self.before:
            fill()
        frame = text.alloca(f"[{self.words} x i64]", "frame")
        fixed = (split.count, split.size, split.chunks)
        filled = {k: ("i64", x) for k, x in enumerate(fixed)} | self.filled
        for number, (type_, operand) in filled.items():
            at = text.value(f"getelementptr inbounds i64, ptr {frame}, i64 {number}")
            if type_ == "i1":
                operand, type_ = text.value(f"zext i1 {operand} to i8"), "i8"
            text.do(f"store {type_} {operand}, ptr {at}, align 8")
        outer.functions[self.name] = "\n".join([self.part(), self.chunk()])
        outer.declare(RUN, f"declare i32 @{RUN}(ptr, ptr, ptr, i64, ptr, i64)", "threads")
        record = outer.context_slot(CTX_SITE)
        status = text.value(
            f"call i32 @{RUN}(ptr @{self.name}, ptr {frame}, ptr %ctx, i64 {split.chunks}, ptr {record}, "
            f"i64 {RECORD_BYTES})",
            "status",
        )
        label = text.label("leave")
        with text.in_cold(label):
            outer.leave(status)
        text.branch_if_unlikely(text.value(f"icmp ne i32 {status}, 0"), label)

    def part(self) -> str:
        """The function of the iterations of a chunk."""
        lines = self.inside.debug.attachment if self.inside.debug else ""
        head = (
            f"define internal i32 @{self.name}_part(ptr noalias %ctx, ptr %frame, i64 %chunk, "
            f"i64 %low, i64 %high) noinline nounwind {ALIGNED} {lines}{{"
        )
        return "\n".join([head, self.inside.text.text("  ret i32 0"), "}"])

    def chunk(self) -> str:
        """The function that the pool calls, on any thread."""
        outer, text = self.outer, FunctionText(self.outer.metadata)

        def at(base: str, offset: int) -> str:
            return text.value(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")

        def copied(offset: int, source: str = "%outer", target: str = "%ctx") -> None:
            word = text.value(f"load i64, ptr {at(source, offset)}, align 8")
            text.do(f"store i64 {word}, ptr {at(target, offset)}, align 8")

        text.entry.append(f"  %ctx = alloca [{CTX_BYTES // 8} x i64], align 64")
        text.do(f"store [{CTX_BYTES // 8} x i64] zeroinitializer, ptr %ctx, align 64")
        for offset in OWN:
            copied(offset)
        own, other, go, leave, out = (
            text.label(x) for x in ("callers", "workers", "go", "failed", "out")
        )
        text.branch_if("%caller", own, other)
        text.start(own)
        for offset in CALLERS:
            copied(offset)
        text.branch(go)
        text.start(other)
        outer.functions.setdefault("mutad_region_poll", POLL)
        outer.declare(FAILED, f"declare i64 @{FAILED}()", "threads")
        text.do(f"store ptr @mutad_region_poll, ptr {at('%ctx', CTX_POLL)}, align 8")
        text.do(f"store i64 %chunk, ptr {at('%ctx', CTX_PRINT)}, align 8")
        text.branch(go)
        text.start(go)
        count, size = (
            text.value(f"load i64, ptr {at('%frame', 8 * k)}, align 8") for k in range(2)
        )
        low = text.mul("%chunk", size)
        end = text.add(low, size)
        high = text.value(f"call i64 @llvm.umin.i64(i64 {end}, i64 {count})")
        status = text.value(
            f"call i32 @{self.name}_part(ptr %ctx, ptr %frame, i64 %chunk, i64 {low}, i64 {high})"
        )
        if not self.inside.support.isdisjoint(outer.memory.ending):
            outer.support.add("mutad_end")
            text.do(f"call void @mutad_end(ptr %ctx, i32 {status})")
        back, check = text.label("back"), text.label("check")
        text.branch_if("%caller", back, check)
        text.start(back)
        copied(LAST_POLL, "%ctx", "%outer")
        text.branch(check)
        text.start(check)
        text.branch_if(text.value(f"icmp eq i32 {status}, 0"), out, leave)
        text.start(leave)
        outer.intrinsic("llvm.memcpy.p0.p0.i64", "void", "ptr, ptr, i64, i1")
        text.do(
            f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 %record, ptr align 8 {at('%ctx', CTX_SITE)}, "
            f"i64 {RECORD_BYTES}, i1 false)"
        )
        text.branch(out)
        text.start(out)
        text.do(f"ret i32 {status}")
        head = (
            f"define internal i32 @{self.name}(ptr %frame, ptr %outer, i64 %chunk, i1 %caller, ptr %record) "
            "nounwind {"
        )
        return "\n".join([head, text.text(), "}"])


def rounded_quotient(text: FunctionText, total: str, by: str) -> str:
    """`total / by`, rounded up."""
    more = text.add(total, text.sub(by, "1"))
    return text.value(f"udiv i64 {more}, {by}")

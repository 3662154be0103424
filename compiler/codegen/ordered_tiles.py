"""The functions that `ordered_products` multiplies tile by tile with. LLVM text.

::

    define internal void @mutad_ordered_double_high(i64 %outer, i64 %inner, i64 %k, ptr %c, i64 %c0,
                                                    ptr %y, i64 %y0, i64 %y1, ptr %x, i64 %x0, i64 %x1)

adds the products of `y` and `x` to `c`, whose columns lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .kernel_state import ITEM_BYTES, KernelState
from .strided_loops import AS_WRITTEN

INNER = 128
"""The inner positions of a panel, which stays in the first-level cache."""
WIDE, WIDE_FEATURES = 64, "+avx512f,+avx512vl,+avx512dq"
"""Bytes of the widest registers, and what they need: LLVM would take two of half the size."""


@dataclass(frozen=True)
class Tile:
    """Writes the function whose tiles have so many rows, of registers of so many bytes."""

    state: KernelState
    type: str
    register: int
    rows: int
    across: int
    """In registers."""
    narrow: bool
    """Whether the last tile of rows may have fewer columns."""
    scope: str
    """Metadata: which memory the matrices are in."""

    @property
    def lanes(self) -> int:
        return self.register // ITEM_BYTES[self.type]

    @property
    def width(self) -> int:
        return self.across * self.lanes

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.type}>"

    @property
    def columns(self) -> str:
        """How many a tile has."""
        return "%there" if self.narrow else str(self.width)

    def function(self, name: str) -> str:
        parameters = "i64 %outer, i64 %inner, i64 %k, ptr %c, i64 %c0, ptr %y, i64 %y0, i64 %y1"
        parameters += ", ptr %x, i64 %x0, i64 %x1"
        attributes = AS_WRITTEN
        if self.register == WIDE:
            attributes += f' "target-features"="{WIDE_FEATURES}"'
        head = f"define internal void @{name}({parameters}) {attributes} {{"
        return "\n".join([head, *self.lines(), "}"])

    def lines(self) -> Iterator[str]:
        yield from self.parts()
        if self.narrow:
            yield from self.copied_beside()
        yield from self.copied_apart()
        yield from self.rows_of_tile()
        yield from self.multiplied()
        yield from self.stored()

    def parts(self) -> Iterator[str]:
        """Parts of the inner dimension, and of the rows: whether the columns of `x` lie as they should."""
        yield "entry:"
        yield f"  %panel = alloca [{INNER * self.width} x {self.type}], align {self.register}"
        yield "  %last = sub i64 %outer, 1"
        yield "  %side = icmp eq i64 %x1, 1"
        yield "  %some.1 = icmp sgt i64 %outer, 0"
        yield "  %some.2 = icmp sgt i64 %inner, 0"
        yield "  %some.3 = icmp sgt i64 %k, 0"
        yield "  %some.4 = and i1 %some.1, %some.2"
        yield "  %some = and i1 %some.3, %some.4"
        yield "  br i1 %some, label %part, label %done"
        yield "part:"
        yield "  %p = phi i64 [ 0, %entry ], [ %p.next, %part.end ]"
        yield "  %left = sub i64 %k, %p"
        yield f"  %length = call i64 @llvm.smin.i64(i64 %left, i64 {INNER})"
        yield from self.element("%x.part", "%x", "%p", "%x0")
        yield from self.element("%y.part", "%y", "%p", "%y1")
        yield "  br label %wide"
        yield "wide:"
        yield "  %j = phi i64 [ 0, %part ], [ %j.next, %wide.end ]"
        yield from self.element("%x.here", "%x.part", "%j", "%x1")
        direct = "%side"
        if self.narrow:
            direct = "%direct"
            yield "  %across = sub i64 %inner, %j"
            yield f"  %there = call i64 @llvm.smin.i64(i64 %across, i64 {self.width})"
            yield f"  %whole = icmp sge i64 %across, {self.width}"
            yield "  %direct = and i1 %whole, %side"
            yield from self.masks()
        yield f"  %from = select i1 {direct}, ptr %x.here, ptr %panel"
        yield f"  %step = select i1 {direct}, i64 %x0, i64 {self.width}"
        yield f"  br i1 {direct}, label %high, label %copied"
        yield "copied:"
        yield f"  br label %{'narrow' if self.narrow else 'copy'}"

    def masks(self) -> Iterator[str]:
        """Which columns of a tile there are."""
        counts = f"<{self.lanes} x i32>"
        yield "  %there.short = trunc i64 %there to i32"
        yield f"  %there.1 = insertelement {counts} poison, i32 %there.short, i64 0"
        yield f"  %there.all = {self.spread('i32', '%there.1')}"
        for v in range(self.across):
            columns = (f"i32 {v * self.lanes + lane}" for lane in range(self.lanes))
            yield f"  %mask.{v} = icmp ugt {counts} %there.all, <{', '.join(columns)}>"

    def copied_beside(self) -> Iterator[str]:
        """The panel of columns that lie side by side, with zeros behind the last one."""
        yield "narrow:"
        yield "  br i1 %side, label %beside, label %copy"
        yield "beside:"
        yield from self.along("q", "narrow", "beside", (("from", "%x.here"), ("to", "%panel")))
        for v in range(self.across):
            at = str(v * self.lanes)
            yield from self.element(f"%q.from.{v}", "%q.from", at, "1")
            yield from self.element(f"%q.to.{v}", "%q.to", at, "1")
            yield self.masked_load(f"%q.{v}", f"%q.from.{v}", v)
            yield f"  store {self.vector} %q.{v}, ptr %q.to.{v}, align {self.register}"
        yield from self.element("%q.from.next", "%q.from", "1", "%x0")
        yield from self.element("%q.to.next", "%q.to", str(self.width), "1")
        yield from self.repeat("q", "1", "%length", "beside", "high")

    def copied_apart(self) -> Iterator[str]:
        """The same of others."""
        before = "narrow" if self.narrow else "copied"
        yield "copy:"
        rows = (("from", "%x.here"), ("to", "%panel"))
        yield from self.along("r", before, "copy.end", rows)
        for v in range(self.across if self.narrow else 0):
            yield from self.element(f"%zero.{v}", "%r.to", str(v * self.lanes), "1")
            yield f"  store {self.vector} zeroinitializer, ptr %zero.{v}, align {self.register}"
        yield "  br label %one"
        yield "one:"
        yield from self.along("t", "copy", "one", (("from", "%r.from"), ("to", "%r.to")))
        yield f"  %number = load {self.type}, ptr %t.from"
        yield f"  store {self.type} %number, ptr %t.to"
        yield from self.element("%t.from.next", "%t.from", "1", "%x1")
        yield from self.element("%t.to.next", "%t.to", "1", "1")
        yield from self.repeat("t", "1", self.columns, "one", "copy.end")
        yield "copy.end:"
        yield from self.element("%r.from.next", "%r.from", "1", "%x0")
        yield from self.element("%r.to.next", "%r.to", str(self.width), "1")
        yield from self.repeat("r", "1", "%length", "copy", "high")

    def rows_of_tile(self) -> Iterator[str]:
        """The loop over tiles above each other: where they are."""
        yield "high:"
        entries = "[ 0, %wide ], [ 0, %copy.end ]" + ", [ 0, %beside ]" * self.narrow
        yield f"  %i = phi i64 {entries}, [ %i.next, %high.end ]"
        yield from self.element("%y.first", "%y.part", "%i", "%y0")
        for r in range(self.rows):
            yield f"  %i.{r}.any = add i64 %i, {r}"
            yield f"  %i.{r} = call i64 @llvm.smin.i64(i64 %i.{r}.any, i64 %last)"
            yield f"  %i.{r}.more = sub i64 %i.{r}, %i"
            yield f"  %y.{r} = mul i64 %i.{r}.more, %y0"
            yield from self.element(f"%c.{r}.row", "%c", f"%i.{r}", "%c0")
            yield from self.element(f"%c.{r}", f"%c.{r}.row", "%j", "1")
            for v in range(self.across):
                yield from self.element(f"%c.{r}.{v}", f"%c.{r}", str(v * self.lanes), "1")
        if self.narrow:
            yield "  br i1 %whole, label %tile, label %tile.narrow"
            yield "tile.narrow:"
            for r, v in self.tile():
                yield self.masked_load(f"%part.{r}.{v}", f"%c.{r}.{v}", v)
            yield "  br label %multiply"
        else:
            yield "  br label %tile"
        yield "tile:"
        for r, v in self.tile():
            aligned = f"align {ITEM_BYTES[self.type]}"
            yield f"  %old.{r}.{v} = load {self.vector}, ptr %c.{r}.{v}, {aligned}"
        yield "  br label %multiply"

    def multiplied(self) -> Iterator[str]:
        """The innermost loop."""
        before = ("tile", "tile.narrow") if self.narrow else ("tile",)
        yield "multiply:"
        entries = "".join(f"[ 0, %{block} ], " for block in before)
        yield f"  %l = phi i64 {entries}[ %l.next, %multiply ]"
        for name, first in (("x", "%from"), ("y", "%y.first")):
            entries = "".join(f"[ {first}, %{block} ], " for block in before)
            yield f"  %{name}.row = phi ptr {entries}[ %{name}.next, %multiply ]"
        for r, v in self.tile():
            old = zip(("old", "part"), before, strict=False)
            entries = "".join(f"[ %{name}.{r}.{v}, %{block} ], " for name, block in old)
            yield f"  %sum.{r}.{v} = phi {self.vector} {entries}[ %new.{r}.{v}, %multiply ]"
        for v in range(self.across):
            yield from self.element(f"%x.{v}.at", "%x.row", str(v * self.lanes), "1")
            yield f"  %x.{v} = load {self.vector}, ptr %x.{v}.at, align {ITEM_BYTES[self.type]}"
        for r in range(self.rows):
            yield from self.element(f"%y.{r}.at", "%y.row", f"%y.{r}", "1")
            yield f"  %y.{r}.one = load {self.type}, ptr %y.{r}.at"
            yield f"  %y.{r}.1 = insertelement {self.vector} poison, {self.type} %y.{r}.one, i64 0"
            yield f"  %y.{r}.all = {self.spread(self.type, f'%y.{r}.1')}"
            for v in range(self.across):
                terms = f"%new.{r}.{v}", f"%sum.{r}.{v}", f"%y.{r}.all", f"%x.{v}"
                yield from added_product(self.state, self.vector, *terms)
        yield from self.element("%x.next", "%x.row", "1", "%step")
        yield from self.element("%y.next", "%y.row", "1", "%y1")
        yield from self.repeat("l", "1", "%length", "multiply", "store")

    def stored(self) -> Iterator[str]:
        yield "store:"
        if self.narrow:
            yield "  br i1 %whole, label %store.whole, label %store.narrow"
            yield "store.narrow:"
            for r, v in self.tile():
                yield self.masked_store(f"%new.{r}.{v}", f"%c.{r}.{v}", v)
            yield "  br label %high.end"
        else:
            yield "  br label %store.whole"
        yield "store.whole:"
        for r, v in self.tile():
            aligned = f"align {ITEM_BYTES[self.type]}"
            yield f"  store {self.vector} %new.{r}.{v}, ptr %c.{r}.{v}, {aligned}"
        yield "  br label %high.end"
        yield "high.end:"
        yield from self.repeat("i", str(self.rows), "%outer", "high", "wide.end")
        yield "wide.end:"
        yield from self.repeat("j", str(self.width), "%inner", "wide", "part.end")
        yield "part.end:"
        yield from self.repeat("p", str(INNER), "%k", "part", "done")
        yield "done:"
        yield "  ret void"

    # Parts of lines.

    def tile(self) -> list[tuple[int, int]]:
        """Row and register of each part of a tile."""
        return [(r, v) for r in range(self.rows) for v in range(self.across)]

    def element(self, name: str, base: str, index: str, stride: str) -> Iterator[str]:
        """`name` is the address of the element so many strides behind the base."""
        if "1" in (index, stride):
            index = stride if index == "1" else index
            yield f"  {name} = getelementptr {self.type}, ptr {base}, i64 {index}"
            return
        yield f"  {name}.off = mul i64 {index}, {stride}"
        yield f"  {name} = getelementptr {self.type}, ptr {base}, i64 {name}.off"

    def spread(self, type_: str, vector: str) -> str:
        """The first element everywhere."""
        of = f"<{self.lanes} x {type_}>"
        return f"shufflevector {of} {vector}, {of} poison, <{self.lanes} x i32> zeroinitializer"

    def masked_load(self, name: str, place: str, v: int) -> str:
        """What there is of a register. (It has a scope: `Note [Masked loads]` in `llvm_module`.)"""
        suffix, mask = self.suffix, f"<{self.lanes} x i1>"
        intrinsic = f"llvm.masked.load.{suffix}.p0"
        called = self.state.intrinsic(intrinsic, self.vector, f"ptr, {mask}, {self.vector}")
        place = f"ptr align {ITEM_BYTES[self.type]} {place}"
        return (
            f"  {name} = call {self.vector} @{called}({place}, {mask} %mask.{v}, "
            f"{self.vector} zeroinitializer), !alias.scope {self.scope}"
        )

    def masked_store(self, value: str, place: str, v: int) -> str:
        suffix, mask = self.suffix, f"<{self.lanes} x i1>"
        intrinsic = f"llvm.masked.store.{suffix}.p0"
        called = self.state.intrinsic(intrinsic, "void", f"{self.vector}, ptr, {mask}")
        place = f"ptr align {ITEM_BYTES[self.type]} {place}"
        return f"  call void @{called}({self.vector} {value}, {place}, {mask} %mask.{v})"

    @property
    def suffix(self) -> str:
        """The vector in names of intrinsics."""
        return f"v{self.lanes}{'f64' if self.type == 'double' else 'f32'}"

    def along(
        self, counter: str, before: str, latch: str, places: Sequence[tuple[str, str]]
    ) -> Iterator[str]:
        """The begin of a loop, and what goes from element to element in it."""
        yield f"  %{counter} = phi i64 [ 0, %{before} ], [ %{counter}.next, %{latch} ]"
        for name, first in places:
            at = f"%{counter}.{name}"
            yield f"  {at} = phi ptr [ {first}, %{before} ], [ {at}.next, %{latch} ]"

    def repeat(self, counter: str, step: str, end: str, again: str, then: str) -> Iterator[str]:
        """The end of a loop."""
        yield f"  %{counter}.next = add i64 %{counter}, {step}"
        yield f"  %{counter}.more = icmp slt i64 %{counter}.next, {end}"
        yield f"  br i1 %{counter}.more, label %{again}, label %{then}"


def added_product(
    state: KernelState, type_: str, name: str, total: str, a: str, b: str
) -> Iterator[str]:
    """Fused as the CPU does it; LLVM would not fuse products of which it makes vectors."""
    if "fma" not in state.features:
        yield f"  {name}.product = fmul {type_} {a}, {b}"
        yield f"  {name} = fadd {type_} {total}, {name}.product"
        return
    count, bits = type_.startswith("<"), "f64" if "double" in type_ else "f32"
    short = f"v{type_[1:].split()[0]}{bits}" if count else bits
    called = state.intrinsic(f"llvm.fma.{short}", type_, ", ".join([type_] * 3))
    yield f"  {name} = call {type_} @{called}({type_} {a}, {type_} {b}, {type_} {total})"

"""Products that are added to a matrix in the order of their inner dimension. LLVM text.

What a loop adds iteration by iteration, an outer product each, `collect_products` collects into products of
matrices. They have the bits that the loop has: within a budget, the iterations run one by one. So an element
of the result is loaded, and adds up its products one after the other, each fused with its sum where the CPU
fuses them. BLAS adds up products first::

    define internal void @mutad_ordered_double(i64 %n, i64 %k, i64 %m, ptr %a, i64 %a0, i64 %a1,
                                               ptr %b, i64 %b0, i64 %b1, ptr %c, i64 %c0, i64 %c1)

A tile of the result stays in registers while a loop goes along the inner dimension: some rows, of three
registers each, for three loads of `b` and a number of `a` a row. The columns of `b` for such a tile are read
where they lie, or from a copy (a panel) where they do not lie side by side, and at the end of the rows, where
tiles are narrow, and the last one is a copy. At the last rows a tile computes its last row several times, and
stores the same numbers there each time: all are read before any is written. Where columns of the result lie
side by side, it is c' = b' a'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, f32, f64
from xdsl.ir import SSAValue

from ...dialects import array
from .kernel_state import ITEM_BYTES, Descriptor, KernelState, value_type
from .narrow_products import NARROW, NarrowProduct

ACROSS = 3
"""Registers of a row of a tile."""
INNER = 128
"""The inner positions of a panel, which stays in the first-level cache."""
WIDE, WIDE_FEATURES = 64, "+avx512f,+avx512vl,+avx512dq"
"""Bytes of the widest registers, and what they need: LLVM would take two of half the size."""
NAMES = ("outer", "inner", "row", "y0", "y1", "x0", "x1")
"""Sizes and strides that are other ones for c' = b' a'."""


def is_ordered(op: array.MatmulOp) -> bool:
    """Whether products are added one by one, to what is there: also where there is only one."""
    assert isinstance(op.c.type, MemRefType)
    if op.accumulate is None or op.c.type.element_type not in (f64, f32):
        return False
    return array.IN_ORDER in op.attributes or is_single(op.a, 1) or is_single(op.b, 0)


def is_single(matrix: SSAValue, axis: int) -> bool:
    """Whether the IR says that an axis of a matrix has one element."""
    assert isinstance(matrix.type, MemRefType)
    view = matrix.owner
    known = matrix.type.get_shape()[axis]
    if known == -1 and isinstance(view, array.ViewOp):
        known = array.constant_value(view.extents[axis])
    return known == 1


def lower_ordered(
    state: KernelState, operands: tuple[Descriptor, ...], sizes: Sequence[str]
) -> None:
    number = value_type(operands[2].element)
    function = function_name(number)
    shown = [f"i64 {n}" for n in sizes]
    for d in operands:
        shown += [f"ptr {d.pointer}", *(f"i64 {s}" for s in d.strides)]
    if state.shares:
        parameters = ", ".join(["i64"] * 3 + ["ptr, i64, i64"] * 3)
        line = f"declare void @{function}({parameters}) nounwind"
        state.declare_shared(function, line, "ordered", number)
    else:
        define(state, number)
    state.text.do(f"call void @{function}({', '.join(shown)})")


def function_name(type_: str) -> str:
    return f"mutad_ordered_{type_}"


def define(state: KernelState, type_: str) -> str:
    """The name of the function for an LLVM type, in the module."""
    name = function_name(type_)
    if name not in state.functions:
        size = WIDE if "avx512vl" in state.features else 32 if "avx2" in state.features else 16
        rows = 8 if size == WIDE else 4
        tiles = {"low": (1, ACROSS), "high": (rows, ACROSS), "edge": (rows, 1)}
        for shape, (height, across) in tiles.items():
            tile = Tile(state, type_, size, height, across)
            state.functions[f"{name}_{shape}"] = tile.function(f"{name}_{shape}")
        added, width = f"mutad_add_rows_{type_}", ACROSS * size // ITEM_BYTES[type_]
        if added not in state.functions:
            state.functions[added] = NarrowProduct(state, type_).write(added)
        state.functions[name] = text(state, name, type_, rows, width, added)
        state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
    return name


def text(state: KernelState, name: str, type_: str, rows: int, width: int, added: str) -> str:
    """The function, which calls those of tiles, or for one product, or goes from element to element."""
    parameters = "i64 %n, i64 %k, i64 %m"
    for x in "abc":
        parameters += f", ptr %{x}, i64 %{x}0, i64 %{x}1"
    pairs = [("%n", "%m"), ("%m", "%n"), ("%c0", "%c1")]
    pairs += [("%a0", "%b1"), ("%a1", "%b0"), ("%b0", "%a1"), ("%b1", "%a0")]
    chosen = [
        f"  %{chosen_} = select i1 %turned, i64 {other}, i64 {own}"
        for chosen_, (own, other) in zip(NAMES, pairs, strict=True)
    ]
    given = "i64 %outer, i64 %inner, i64 %k, ptr %c, i64 %row, ptr %y, i64 %y0, i64 %y1"
    given += ", ptr %x, i64 %x0, i64 %x1"
    at_edge = given.replace("%inner", "%over").replace("ptr %c", "ptr %c.edge")
    at_edge = at_edge.replace("ptr %x", "ptr %x.edge")
    parameters = parameters.replace("ptr %c", "ptr noalias %c")
    return f"""define internal void @{name}({parameters}) noinline nounwind {{
entry:
  %columns = icmp eq i64 %c0, 1
  %apart = icmp ne i64 %c1, 1
  %single = icmp eq i64 %m, 1
  %no.rows = or i1 %apart, %single
  %turned = and i1 %columns, %no.rows
{chr(10).join(chosen)}
  %y = select i1 %turned, ptr %b, ptr %a
  %x = select i1 %turned, ptr %a, ptr %b
  %beside = icmp eq i64 %c1, 1
  %vectors = or i1 %turned, %beside
  br i1 %vectors, label %tiles, label %elements
tiles:
  %one = icmp eq i64 %k, 1
  %some.inner = icmp sgt i64 %inner, 0
  %quick = and i1 %one, %some.inner
  br i1 %quick, label %part, label %sized
part:
  %p = phi i64 [ 0, %tiles ], [ %p.next, %part ]
  %left = sub i64 %inner, %p
  %length = call i64 @llvm.smin.i64(i64 %left, i64 {NARROW})
  %c.part = getelementptr {type_}, ptr %c, i64 %p
  %p.x = mul i64 %p, %x1
  %x.part = getelementptr {type_}, ptr %x, i64 %p.x
  call void @{added}(i64 %length, i64 %outer, ptr %c.part, i64 %row, ptr %x.part, i64 %x1, ptr %y, i64 %y0)
  %p.next = add i64 %p, {NARROW}
  %p.more = icmp slt i64 %p.next, %inner
  br i1 %p.more, label %part, label %done
sized:
  %few = icmp slt i64 %outer, {rows // 2 + 1}
  br i1 %few, label %low, label %high
low:
  call void @{name}_low({given})
  ret void
high:
  %over = urem i64 %inner, {width}
  %whole = sub i64 %inner, %over
  call void @{name}_high({given.replace("%inner", "%whole")})
  %edge = icmp sgt i64 %over, 0
  br i1 %edge, label %edges, label %done
edges:
  %c.edge = getelementptr {type_}, ptr %c, i64 %whole
  %x.whole = mul i64 %whole, %x1
  %x.edge = getelementptr {type_}, ptr %x, i64 %x.whole
  call void @{name}_edge({at_edge})
  ret void
elements:
  %some.n = icmp sgt i64 %n, 0
  %some.m = icmp sgt i64 %m, 0
  %some.k = icmp sgt i64 %k, 0
  %some.c = and i1 %some.n, %some.m
  %some = and i1 %some.c, %some.k
  br i1 %some, label %i.loop, label %done
i.loop:
  %i = phi i64 [ 0, %elements ], [ %i.next, %i.end ]
  br label %j.loop
j.loop:
  %j = phi i64 [ 0, %i.loop ], [ %j.next, %j.end ]
  %at.i = mul i64 %i, %c0
  %at.j = mul i64 %j, %c1
  %at = add i64 %at.i, %at.j
  %place = getelementptr {type_}, ptr %c, i64 %at
  %old = load {type_}, ptr %place
  %a.i = mul i64 %i, %a0
  %b.j = mul i64 %j, %b1
  br label %l.loop
l.loop:
  %l = phi i64 [ 0, %j.loop ], [ %l.next, %l.loop ]
  %sum = phi {type_} [ %old, %j.loop ], [ %sum.next, %l.loop ]
  %a.l = mul i64 %l, %a1
  %b.l = mul i64 %l, %b0
  %a.at = add i64 %a.i, %a.l
  %b.at = add i64 %b.j, %b.l
  %a.place = getelementptr {type_}, ptr %a, i64 %a.at
  %b.place = getelementptr {type_}, ptr %b, i64 %b.at
  %a.one = load {type_}, ptr %a.place
  %b.one = load {type_}, ptr %b.place
{chr(10).join(added_product(state, type_, "%sum.next", "%sum", "%a.one", "%b.one"))}
  %l.next = add i64 %l, 1
  %l.more = icmp slt i64 %l.next, %k
  br i1 %l.more, label %l.loop, label %j.end
j.end:
  store {type_} %sum.next, ptr %place
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %m
  br i1 %j.more, label %j.loop, label %i.end
i.end:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %n
  br i1 %i.more, label %i.loop, label %done
done:
  ret void
}}"""


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


@dataclass(frozen=True)
class Tile:
    """Writes the function whose tiles have so many rows, of registers of so many bytes."""

    state: KernelState
    type: str
    register: int
    rows: int
    across: int
    """In registers."""

    @property
    def lanes(self) -> int:
        return self.register // ITEM_BYTES[self.type]

    @property
    def width(self) -> int:
        return self.across * self.lanes

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.type}>"

    def function(self, name: str) -> str:
        parameters = "i64 %outer, i64 %inner, i64 %k, ptr %c, i64 %c0, ptr %y, i64 %y0, i64 %y1"
        parameters += ", ptr %x, i64 %x0, i64 %x1"
        attributes = "noinline nounwind"
        if self.register == WIDE:
            attributes += f' "target-features"="{WIDE_FEATURES}"'
        head = f"define internal void @{name}({parameters}) {attributes} {{"
        return "\n".join([head, *self.lines(), "}"])

    def lines(self) -> Iterator[str]:
        yield from self.parts()
        yield from self.copied()
        yield from self.rows_of_tile()
        yield from self.multiplied()
        yield from self.stored()

    def parts(self) -> Iterator[str]:
        """Parts of the inner dimension, and of the rows: whether the columns of `x` lie as they should."""
        type_ = self.type
        yield "entry:"
        yield f"  %panel = alloca [{INNER * self.width} x {type_}], align {self.register}"
        yield f"  %part.tile = alloca [{self.rows * self.width} x {type_}], align {self.register}"
        for r, v in self.tile():
            at = str(r * self.width + v * self.lanes)
            yield from self.element(f"%clear.{r}.{v}", "%part.tile", at, "1")
            yield f"  store {self.vector} zeroinitializer, ptr %clear.{r}.{v}, align {self.register}"
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
        yield "  %across = sub i64 %inner, %j"
        yield f"  %whole = icmp sge i64 %across, {self.width}"
        yield f"  %there = call i64 @llvm.smin.i64(i64 %across, i64 {self.width})"
        yield from self.element("%x.here", "%x.part", "%j", "%x1")
        yield "  %direct = and i1 %whole, %side"
        yield "  %from = select i1 %direct, ptr %x.here, ptr %panel"
        yield f"  %step = select i1 %direct, i64 %x0, i64 {self.width}"
        yield "  br i1 %direct, label %high, label %copy"

    def copied(self) -> Iterator[str]:
        """The panel, with zeros behind the last column."""
        yield "copy:"
        yield "  %q = phi i64 [ 0, %wide ], [ %q.next, %copy.end ]"
        yield from self.element("%row.from", "%x.here", "%q", "%x0")
        yield from self.element("%row.to", "%panel", "%q", str(self.width))
        for v in range(self.across):
            yield from self.element(f"%zero.{v}", "%row.to", str(v * self.lanes), "1")
            yield f"  store {self.vector} zeroinitializer, ptr %zero.{v}, align {self.register}"
        yield "  br label %one"
        yield "one:"
        yield "  %t = phi i64 [ 0, %copy ], [ %t.next, %one ]"
        yield from self.element("%one.from", "%row.from", "%t", "%x1")
        yield from self.element("%one.to", "%row.to", "%t", "1")
        yield f"  %number = load {self.type}, ptr %one.from"
        yield f"  store {self.type} %number, ptr %one.to"
        yield from self.repeat("t", "1", "%there", "one", "copy.end")
        yield "copy.end:"
        yield from self.repeat("q", "1", "%length", "copy", "high")

    def rows_of_tile(self) -> Iterator[str]:
        """The loop over tiles above each other: where they are, through a copy at the end of the rows."""
        yield "high:"
        yield "  %i = phi i64 [ 0, %wide ], [ 0, %copy.end ], [ %i.next, %high.end ]"
        for r in range(self.rows):
            yield f"  %i.{r}.any = add i64 %i, {r}"
            yield f"  %i.{r} = call i64 @llvm.smin.i64(i64 %i.{r}.any, i64 %last)"
            yield from self.element(f"%y.{r}", "%y.part", f"%i.{r}", "%y0")
            yield from self.element(f"%c.{r}.row", "%c", f"%i.{r}", "%c0")
            yield from self.element(f"%c.{r}.own", f"%c.{r}.row", "%j", "1")
            yield from self.element(f"%c.{r}.copy", "%part.tile", str(r * self.width), "1")
            yield f"  %c.{r}.0 = select i1 %whole, ptr %c.{r}.own, ptr %c.{r}.copy"
            for v in range(1, self.across):
                yield from self.element(f"%c.{r}.{v}", f"%c.{r}.0", str(v * self.lanes), "1")
        yield "  br i1 %whole, label %tile, label %fill"
        yield from self.moved("fill", "own", "copy", "tile")
        yield "tile:"
        for r, v in self.tile():
            aligned = f"align {ITEM_BYTES[self.type]}"
            yield f"  %old.{r}.{v} = load {self.vector}, ptr %c.{r}.{v}, {aligned}"
        yield "  br label %multiply"

    def moved(self, name: str, source: str, target: str, then: str) -> Iterator[str]:
        """The loop that copies what there is of a tile."""
        before = "high" if name == "fill" else "store"
        yield f"{name}:"
        yield f"  %{name}.t = phi i64 [ 0, %{before} ], [ %{name}.t.next, %{name} ]"
        for r in range(self.rows):
            yield from self.element(f"%{name}.{r}.from", f"%c.{r}.{source}", f"%{name}.t", "1")
            yield from self.element(f"%{name}.{r}.to", f"%c.{r}.{target}", f"%{name}.t", "1")
            yield f"  %{name}.{r} = load {self.type}, ptr %{name}.{r}.from"
        for r in range(self.rows):
            yield f"  store {self.type} %{name}.{r}, ptr %{name}.{r}.to"
        yield from self.repeat(f"{name}.t", "1", "%there", name, then)

    def multiplied(self) -> Iterator[str]:
        """The innermost loop."""
        yield "multiply:"
        yield "  %l = phi i64 [ 0, %tile ], [ %l.next, %multiply ]"
        for r, v in self.tile():
            edges = f"[ %old.{r}.{v}, %tile ], [ %new.{r}.{v}, %multiply ]"
            yield f"  %sum.{r}.{v} = phi {self.vector} {edges}"
        yield from self.element("%x.row", "%from", "%l", "%step")
        for v in range(self.across):
            yield from self.element(f"%x.{v}.at", "%x.row", str(v * self.lanes), "1")
            yield f"  %x.{v} = load {self.vector}, ptr %x.{v}.at, align {ITEM_BYTES[self.type]}"
        for r in range(self.rows):
            yield from self.element(f"%y.{r}.at", f"%y.{r}", "%l", "%y1")
            yield f"  %y.{r}.one = load {self.type}, ptr %y.{r}.at"
            yield f"  %y.{r}.1 = insertelement {self.vector} poison, {self.type} %y.{r}.one, i64 0"
            yield f"  %y.{r}.all = {self.spread(self.type, f'%y.{r}.1')}"
            for v in range(self.across):
                terms = f"%new.{r}.{v}", f"%sum.{r}.{v}", f"%y.{r}.all", f"%x.{v}"
                yield from added_product(self.state, self.vector, *terms)
        yield from self.repeat("l", "1", "%length", "multiply", "store")

    def stored(self) -> Iterator[str]:
        yield "store:"
        for r, v in self.tile():
            aligned = f"align {ITEM_BYTES[self.type]}"
            yield f"  store {self.vector} %new.{r}.{v}, ptr %c.{r}.{v}, {aligned}"
        yield "  br i1 %whole, label %high.end, label %drain"
        yield from self.moved("drain", "copy", "own", "high.end")
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
        if stride == "1":
            yield f"  {name} = getelementptr {self.type}, ptr {base}, i64 {index}"
            return
        yield f"  {name}.off = mul i64 {index}, {stride}"
        yield f"  {name} = getelementptr {self.type}, ptr {base}, i64 {name}.off"

    def spread(self, type_: str, vector: str) -> str:
        """The first element everywhere."""
        of = f"<{self.lanes} x {type_}>"
        return f"shufflevector {of} {vector}, {of} poison, <{self.lanes} x i32> zeroinitializer"

    def repeat(self, counter: str, step: str, end: str, again: str, then: str) -> Iterator[str]:
        """The end of a loop."""
        yield f"  %{counter}.next = add i64 %{counter}, {step}"
        yield f"  %{counter}.more = icmp slt i64 %{counter}.next, {end}"
        yield f"  br i1 %{counter}.more, label %{again}, label %{then}"

"""The machine code of `gemm` for CPUs with registers of 512 bits. LLVM text.

It is called as BLAS's `dgemm` and `sgemm` are, and calls that one (`theirs`) where it is not made for what
is asked: factors other than 1 and 0, a side of a few elements, sizes at which BLAS is faster (`Range`).

A tile of C, three registers high and eight columns wide, stays in registers while a loop goes along the
inner dimension: 24 multiplications and additions for 3 loads of A and 8 numbers of B. The rows of A for such
tiles are copied into a panel, one inner position behind the other, with zeros for rows that are not there;
B is read where it lies. At the last columns a tile computes its last column several times, and stores the
same numbers there each time: all are read before any is written. Inner dimensions that are longer than a
panel are taken in parts. Each element of C adds up its products in their order, in each part.

This is the loop around tiles of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
(2008), without the copy of B that pays for larger matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

REGISTER = 64
"""Bytes."""
HIGH, WIDE = 3, 8
"""Registers and columns of a tile: 24 of the 32 registers hold it."""
INNER = 256
"""The inner positions of a panel: with a column of tiles it is about what the first-level cache holds."""
FEW = (6, 4, 4)
"""Fewer rows, columns or inner positions than these leave most of a tile unused."""
NAMES = ("m", "n", "k", "lda", "ldb", "ldc")
BY_ADDRESS = [
    "transa",
    "transb",
    "m",
    "n",
    "k",
    "alpha",
    "a",
    "lda",
    "b",
    "ldb",
    "beta",
    "c",
    "ldc",
]
"""Fortran's arguments, in order."""
TYPES = {"d": ("double", "f64", 8), "s": ("float", "f32", 4)}


@dataclass(frozen=True)
class Range:
    """From how many multiplications on, and up to how many, ours is faster."""

    least: int
    most: dict[int, int]
    """By the number of BLAS's threads: that of the greatest that is not more than it has."""


def text(letter: str, sizes: Range) -> str:
    """The module: `mutad_own_dgemm` for the letter `d`, which refers to `theirs` and `threads`."""
    type_, short, size = TYPES[letter]
    lanes = REGISTER // size
    vector = f"<{lanes} x {type_}>"
    return f"""
declare i32 @threads()
declare void @theirs({", ".join(["ptr"] * len(BY_ADDRESS))})
declare {vector} @llvm.masked.load.v{lanes}{short}.p0(ptr, i32, <{lanes} x i1>, {vector})
declare void @llvm.masked.store.v{lanes}{short}.p0({vector}, ptr, i32, <{lanes} x i1>)
declare {vector} @llvm.fma.v{lanes}{short}({vector}, {vector}, {vector})
declare i64 @llvm.smin.i64(i64, i64)

define void @mutad_own_{letter}gemm({", ".join(f"ptr %{name}.at" for name in BY_ADDRESS)}) nounwind {{
{chr(10).join(Product(type_, short, size, sizes).lines())}
}}
"""


class Product:
    """The lines of the function for one type."""

    def __init__(self, type_: str, short: str, size: int, sizes: Range) -> None:
        self.sizes = sizes
        self.type, self.size, self.lanes = type_, size, REGISTER // size
        self.high = HIGH * self.lanes
        self.vector = f"<{self.lanes} x {type_}>"
        self.mask = f"<{self.lanes} x i1>"
        self.suffix = f"v{self.lanes}{short}"

    def lines(self) -> Iterator[str]:
        yield from self.begin()
        yield from self.parts()
        yield from self.rows_of_tiles()
        yield from self.copy_columns()
        yield from self.copy_rows()
        yield from self.tiles()
        yield from self.multiply()
        yield from self.write()
        yield from self.loop_ends()

    def begin(self) -> Iterator[str]:
        """The arguments; BLAS where it is to do it."""
        yield "entry:"
        yield f"  %panel = alloca [{INNER * self.high} x {self.type}], align {REGISTER}"
        for name in NAMES:
            yield f"  %{name}.32 = load i32, ptr %{name}.at"
            yield f"  %{name} = sext i32 %{name}.32 to i64"
        yield f"  %alpha = load {self.type}, ptr %alpha.at"
        yield f"  %beta = load {self.type}, ptr %beta.at"
        yield f"  %plain = fcmp oeq {self.type} %alpha, 1.0"
        yield f"  %adds = fcmp oeq {self.type} %beta, 1.0"
        yield f"  %fresh = fcmp oeq {self.type} %beta, 0.0"
        yield "  %either = or i1 %adds, %fresh"
        for name, least in zip(NAMES, FEW, strict=False):
            yield f"  %{name}.many = icmp sge i64 %{name}, {least}"
        yield "  %ours.1 = and i1 %plain, %either"
        yield "  %ours.2 = and i1 %m.many, %n.many"
        yield "  %ours.3 = and i1 %ours.2, %k.many"
        yield "  %ours = and i1 %ours.1, %ours.3"
        yield "  br i1 %ours, label %count, label %blas"
        yield "count:"
        yield "  %threads = call i32 @threads()"
        yield "  %mn = mul i64 %m, %n"
        yield "  %work = mul i64 %mn, %k"
        most = "0"
        for threads, limit in sorted(self.sizes.most.items()):
            yield f"  %with.{threads} = icmp sge i32 %threads, {threads}"
            yield f"  %most.{threads} = select i1 %with.{threads}, i64 {limit}, i64 {most}"
            most = f"%most.{threads}"
        yield f"  %enough = icmp sge i64 %work, {self.sizes.least}"
        yield f"  %not.much = icmp sle i64 %work, {most}"
        yield "  %small = and i1 %enough, %not.much"
        yield "  br i1 %small, label %begin, label %blas"
        yield "blas:"
        operands = ", ".join(f"ptr %{name}.at" for name in BY_ADDRESS)
        yield f"  tail call void @theirs({operands})"
        yield "  ret void"

    def parts(self) -> Iterator[str]:
        """The loop over parts of the inner dimension."""
        yield "begin:"
        for name, plain in (("a", "rows"), ("b", "inner")):
            yield f"  %{name}.letter = load i8, ptr %trans{name}.at"
            yield f"  %{name}.{plain} = icmp eq i8 %{name}.letter, {ord('N')}"
        yield "  %a.row = select i1 %a.rows, i64 1, i64 %lda"
        yield "  %a.inner = select i1 %a.rows, i64 %lda, i64 1"
        yield "  %b.step = select i1 %b.inner, i64 1, i64 %ldb"
        yield "  %b.column = select i1 %b.inner, i64 %ldb, i64 1"
        yield "  %m.last = sub i64 %m, 1"
        yield "  %n.last = sub i64 %n, 1"
        yield "  br label %part"
        yield "part:"
        yield "  %p = phi i64 [ 0, %begin ], [ %p.next, %part.end ]"
        yield "  %left = sub i64 %k, %p"
        yield f"  %inner = call i64 @llvm.smin.i64(i64 %left, i64 {INNER})"
        yield "  %later = icmp ne i64 %p, 0"
        yield "  %reads = or i1 %adds, %later"
        yield from self.element("%a.part", "%a.at", "%p", "%a.inner")
        yield from self.element("%b.part", "%b.at", "%p", "%b.step")
        yield "  br label %high"

    def rows_of_tiles(self) -> Iterator[str]:
        """The loop over rows of tiles: which rows of C there are."""
        yield "high:"
        yield "  %i = phi i64 [ 0, %part ], [ %i.next, %high.end ]"
        yield "  %below = sub i64 %m, %i"
        yield f"  %below.1 = insertelement <{self.lanes} x i64> poison, i64 %below, i64 0"
        yield f"  %below.all = {self.spread('i64', '%below.1')}"
        for r in range(HIGH):
            rows = ", ".join(f"i64 {r * self.lanes + lane}" for lane in range(self.lanes))
            yield f"  %there.{r} = icmp slt <{self.lanes} x i64> <{rows}>, %below.all"
        yield from self.element("%a.rows.at", "%a.part", "%i", "%a.row")
        yield "  br i1 %a.rows, label %columns, label %lines"

    def copy_columns(self) -> Iterator[str]:
        """The panel, where the rows of A lie side by side."""
        yield "columns:"
        yield "  %l = phi i64 [ 0, %high ], [ %l.next, %columns ]"
        yield from self.element("%from", "%a.rows.at", "%l", "%lda")
        yield from self.element("%to", "%panel", "%l", str(self.high))
        for r in range(HIGH):
            yield f"  %from.{r} = {self.behind('%from', r * self.lanes)}"
            yield f"  %to.{r} = {self.behind('%to', r * self.lanes)}"
            yield f"  %taken.{r} = {self.masked_load(f'%from.{r}', r)}"
            yield f"  store {self.vector} %taken.{r}, ptr %to.{r}, align {REGISTER}"
        yield from self.repeat("l", "1", "%inner", "columns", "wide.begin")

    def copy_rows(self) -> Iterator[str]:
        """The panel, where a row of A lies in one piece. Behind the last row comes that row again."""
        yield "lines:"
        yield "  %q = phi i64 [ 0, %high ], [ %q.next, %line.end ]"
        yield "  %row.any = add i64 %i, %q"
        yield "  %row = call i64 @llvm.smin.i64(i64 %row.any, i64 %m.last)"
        yield from self.element("%line.from", "%a.part", "%row", "%lda")
        yield f"  %line.to = {self.behind('%panel', '%q')}"
        yield "  br label %line"
        yield "line:"
        yield "  %t = phi i64 [ 0, %lines ], [ %t.next, %line ]"
        yield f"  %one.from = {self.behind('%line.from', '%t')}"
        yield f"  %one = load {self.type}, ptr %one.from"
        yield from self.element("%one.to", "%line.to", "%t", str(self.high))
        yield f"  store {self.type} %one, ptr %one.to"
        yield from self.repeat("t", "1", "%inner", "line", "line.end")
        yield "line.end:"
        yield from self.repeat("q", "1", str(self.high), "lines", "wide.begin")

    def tiles(self) -> Iterator[str]:
        """The loop over tiles side by side: where the columns of B are."""
        yield "wide.begin:"
        yield "  br label %wide"
        yield "wide:"
        yield "  %j = phi i64 [ 0, %wide.begin ], [ %j.next, %wide.end ]"
        for c in range(WIDE):
            yield f"  %j.any.{c} = add i64 %j, {c}"
            yield f"  %j.{c} = call i64 @llvm.smin.i64(i64 %j.any.{c}, i64 %n.last)"
            yield from self.element(f"%b.{c}", "%b.part", f"%j.{c}", "%b.column")
        yield "  br label %multiply"

    def multiply(self) -> Iterator[str]:
        """The innermost loop."""
        yield "multiply:"
        yield "  %h = phi i64 [ 0, %wide ], [ %h.next, %multiply ]"
        yield "  %step = phi i64 [ 0, %wide ], [ %step.next, %multiply ]"
        for c, r in self.tile():
            yield (
                f"  %sum.{c}.{r} = phi {self.vector} [ zeroinitializer, %wide ], "
                f"[ %sum.{c}.{r}.next, %multiply ]"
            )
        yield from self.element("%a.here", "%panel", "%h", str(self.high))
        for r in range(HIGH):
            yield f"  %a.{r}.at = {self.behind('%a.here', r * self.lanes)}"
            yield f"  %a.{r} = load {self.vector}, ptr %a.{r}.at, align {REGISTER}"
        for c in range(WIDE):
            yield f"  %b.{c}.at = {self.behind(f'%b.{c}', '%step')}"
            yield f"  %b.{c}.one = load {self.type}, ptr %b.{c}.at"
            yield f"  %b.{c}.1 = insertelement {self.vector} poison, {self.type} %b.{c}.one, i64 0"
            yield f"  %b.{c}.all = {self.spread(self.type, f'%b.{c}.1')}"
            for r in range(HIGH):
                operands = (f"%a.{r}", f"%b.{c}.all", f"%sum.{c}.{r}")
                shown = ", ".join(f"{self.vector} {operand}" for operand in operands)
                yield f"  %sum.{c}.{r}.next = call {self.vector} @llvm.fma.{self.suffix}({shown})"
        yield "  %step.next = add i64 %step, %b.step"
        yield from self.repeat("h", "1", "%inner", "multiply", "place")

    def write(self) -> Iterator[str]:
        """Store the tile, or add it to what is there: all of that is read first."""
        yield "place:"
        for c in range(WIDE):
            yield from self.element(f"%c.{c}", "%c.at", f"%j.{c}", "%ldc")
            yield f"  %c.{c}.0 = {self.behind(f'%c.{c}', '%i')}"
            for r in range(1, HIGH):
                yield f"  %c.{c}.{r} = {self.behind(f'%c.{c}.0', r * self.lanes)}"
        yield "  br i1 %reads, label %add, label %store"
        yield "add:"
        for c, r in self.tile():
            yield f"  %old.{c}.{r} = {self.masked_load(f'%c.{c}.{r}', r)}"
            yield f"  %new.{c}.{r} = fadd {self.vector} %old.{c}.{r}, %sum.{c}.{r}.next"
        yield "  br label %store"
        yield "store:"
        for c, r in self.tile():
            yield (
                f"  %put.{c}.{r} = phi {self.vector} [ %sum.{c}.{r}.next, %place ], "
                f"[ %new.{c}.{r}, %add ]"
            )
        for c, r in self.tile():
            operands = f"{self.vector} %put.{c}.{r}, ptr %c.{c}.{r}, i32 {self.size}, {self.mask} %there.{r}"
            yield f"  call void @llvm.masked.store.{self.suffix}.p0({operands})"
        yield "  br label %wide.end"

    def loop_ends(self) -> Iterator[str]:
        yield "wide.end:"
        yield from self.repeat("j", str(WIDE), "%n", "wide", "high.end")
        yield "high.end:"
        yield from self.repeat("i", str(self.high), "%m", "high", "part.end")
        yield "part.end:"
        yield from self.repeat("p", str(INNER), "%k", "part", "done")
        yield "done:"
        yield "  ret void"

    # Parts of lines.

    def tile(self) -> list[tuple[int, int]]:
        """Column and register of each part of a tile."""
        return [(c, r) for c in range(WIDE) for r in range(HIGH)]

    def element(self, name: str, base: str, index: str, stride: str) -> Iterator[str]:
        """`name` is the address of the element so many strides behind the base."""
        yield f"  {name}.off = mul i64 {index}, {stride}"
        yield f"  {name} = {self.behind(base, f'{name}.off')}"

    def behind(self, base: str, index: str | int) -> str:
        return f"getelementptr {self.type}, ptr {base}, i64 {index}"

    def spread(self, type_: str, vector: str) -> str:
        """The first element everywhere."""
        of = f"<{self.lanes} x {type_}>"
        return f"shufflevector {of} {vector}, {of} poison, <{self.lanes} x i32> zeroinitializer"

    def masked_load(self, address: str, register: int) -> str:
        """The rows that are there, zeros for the others."""
        operands = f"ptr {address}, i32 {self.size}, {self.mask} %there.{register}"
        called = f"@llvm.masked.load.{self.suffix}.p0"
        return f"call {self.vector} {called}({operands}, {self.vector} zeroinitializer)"

    def repeat(self, counter: str, step: str, end: str, again: str, then: str) -> Iterator[str]:
        """The end of a loop."""
        yield f"  %{counter}.next = add i64 %{counter}, {step}"
        yield f"  %{counter}.more = icmp slt i64 %{counter}.next, {end}"
        yield f"  br i1 %{counter}.more, label %{again}, label %{then}"

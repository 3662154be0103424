"""`array.matmul` where one factor holds vectors, several tangents of each element, as products of numbers.

The other factor is a matrix of numbers. Where the vectors of a row of `b` lie side by side, `b` is a matrix
of numbers with as many times more columns, and so is `c`: one product. Elsewhere some columns at a time are
copied::

    i32 @mutad_matmul_wide_f64_8(ctx, n, k, m, a, a0, a1, b, b0, b1, c, c0, c1, accumulate)

`c = a b` with vectors in `a` is `c' = b' a'`. One function for each type of vectors, written into the module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Attribute

from .kernel_state import (
    OK,
    OUT_OF_MEMORY,
    KernelState,
    alignment_of,
    lanes_of,
    size_of,
    step_type,
    value_type,
)
from .llvm_text import FunctionText

WAYS = ("apart", "loops", "a.turned", "b.turned", "c.turned")
"""What the function for numbers is told of the types of its operands (nothing, of columns of vectors)."""
BLOCK = 32
"""Columns that are copied at a time: enough for BLAS to be fast, few enough to stay in the cache."""
ROW = BLOCK + 1
"""How far apart rows of a copy are: no power of two, of which columns would share few lines of the cache."""


@dataclass
class VectorProduct:
    """Writes the function for one type of vectors; `product` is that for their numbers."""

    state: KernelState
    element: Attribute
    product: str

    def __post_init__(self) -> None:
        self.text = FunctionText(self.state.metadata)
        self.lanes = str(lanes_of(self.element))

    def write(self, name: str) -> str:
        """The whole function."""
        t = self.text
        beside = t.both([t.value(f"icmp eq i64 %{x}1, 1") for x in "bc"])
        one = t.value("icmp eq i64 %m, 1")
        straight, blocked = t.label("straight"), t.label("blocked")
        t.branch_if(t.value(f"or i1 {beside}, {one}"), straight, blocked)
        t.start(straight)
        b0, c0 = (t.mul(f"%{x}0", self.lanes) for x in "bc")
        t.do(f"ret i32 {self.call('%m', '%b', b0, '%c', c0, '%accumulate')}")
        t.start(blocked)
        self.blocks()
        t.do(f"ret i32 {OK}")
        parameters = "ptr %ctx, i64 %n, i64 %k, i64 %m"
        for x in "abc":
            parameters += f", ptr %{x}, i64 %{x}0, i64 %{x}1"
        head = f"define internal i32 @{name}({parameters}, i1 %accumulate) noinline nounwind"
        return f"{head} {{\n{t.text()}\n}}"

    def call(self, columns: str, b: str, b0: str, c: str, c0: str, accumulate: str) -> str:
        """The product of numbers with so many columns of vectors; its status."""
        width = self.text.mul(columns, self.lanes)
        return self.text.value(
            f"call i32 @{self.product}(ptr %ctx, i64 %n, i64 %k, i64 {width}, ptr %a, i64 %a0, "
            f"i64 %a1, ptr {b}, i64 {b0}, i64 1, ptr {c}, i64 {c0}, i64 1, i1 {accumulate}, "
            f"{', '.join(['i1 false'] * len(WAYS))})"
        )

    def blocks(self) -> None:
        """Copy some columns of `b`, multiply, copy what they become to those of `c`."""
        t = self.text
        self.state.support.update(("mutad_alloc", "mutad_mark", "mutad_release"))
        mark = t.value("call ptr @mutad_mark(ptr %ctx)")
        inside, made = (self.allocate(t.mul(rows, str(ROW))) for rows in ("%k", "%n"))
        smin = self.state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
        count = t.value(f"lshr i64 {t.add('%m', str(BLOCK - 1))}, {BLOCK.bit_length() - 1}")
        loop = t.begin_loop(count, (), "block")
        start = t.mul(loop.counter, str(BLOCK))
        width = t.value(f"call i64 @{smin}(i64 {t.sub('%m', start)}, i64 {BLOCK})")

        def place(matrix: str, row: str, column: str) -> str:
            at = t.add(t.mul(row, f"%{matrix}0"), t.mul(t.add(start, column), f"%{matrix}1"))
            return self.at(f"%{matrix}", at)

        def fetch(row: str, column: str, at: str) -> None:
            self.store(self.load(place("b", row, column)), self.at(inside, at))

        def put(row: str, column: str, at: str) -> None:
            target, new = place("c", row, column), self.load(self.at(made, at))
            type_, old = value_type(self.element), self.load(target)
            total = t.value(f"fadd {type_} {old}, {new}")
            self.store(t.value(f"select i1 %accumulate, {type_} {total}, {type_} {new}"), target)

        self.each("%k", width, fetch)
        step = t.mul(str(ROW), self.lanes)
        status = self.call(width, inside, step, made, step, "false")
        self.return_when(t.value(f"icmp ne i32 {status}, 0"))
        self.each("%n", width, put)
        t.end_loop(loop)
        t.do(f"call void @mutad_release(ptr %ctx, ptr {mark})")

    def each(self, rows: str, columns: str, do: Callable[[str, str, str], None]) -> None:
        """For each column and row, and the place of both in a copy; mostly columns lie in one piece."""
        t = self.text
        column = t.begin_loop(columns, (), "j")
        row = t.begin_loop(rows)
        do(row.counter, column.counter, t.add(t.mul(row.counter, str(ROW)), column.counter))
        t.end_loop(row)
        t.end_loop(column)

    def at(self, pointer: str, index: str) -> str:
        return self.text.value(
            f"getelementptr {step_type(self.element)}, ptr {pointer}, i64 {index}"
        )

    def load(self, pointer: str) -> str:
        align = alignment_of(self.element)
        return self.text.value(f"load {value_type(self.element)}, ptr {pointer}, align {align}")

    def store(self, value: str, pointer: str) -> None:
        align = alignment_of(self.element)
        self.text.do(f"store {value_type(self.element)} {value}, ptr {pointer}, align {align}")

    def allocate(self, elements: str) -> str:
        t = self.text
        size = t.mul(elements, str(size_of(self.element)))
        found = t.value(f"call ptr @mutad_alloc(ptr %ctx, i64 {size})")
        self.return_when(t.value(f"icmp eq ptr {found}, null"))
        return found

    def return_when(self, condition: str) -> None:
        """There is no memory left."""
        label = self.text.label("exhausted")
        with self.text.in_cold(label):
            self.text.do(f"ret i32 {OUT_OF_MEMORY}")
        self.text.branch_if_unlikely(condition, label)

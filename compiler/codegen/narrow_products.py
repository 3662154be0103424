"""A column times a short row, added to a matrix, as loops: BLAS calls a function for each row. LLVM text."""

from __future__ import annotations

from .strided_loops import Elements

NARROW = 256
"""Rows of at most so many elements are added by loops."""


class NarrowProduct(Elements):
    """Writes the function that adds a multiple of the row to each row of a matrix with contiguous rows.

    ::

        define internal void @mutad_add_rows_double(i64 %inner, i64 %outer, ptr noalias %c, i64 %leading,
                                                    ptr %x, i64 %x0, ptr %y, i64 %y0)

    `x` is the row and `y` the column: where they are, and the step from element to element.
    """

    def write(self, function: str) -> str:
        """The whole function. It copies a row whose elements are far from each other."""
        t = self.text
        copy = t.alloca(f"[{NARROW} x {self.memory}]", "row")
        beside = t.value("icmp eq i64 %x0, 1")
        row = t.value(f"select i1 {beside}, ptr %x, ptr {copy}")
        apart = t.value(f"select i1 {beside}, i64 0, i64 %inner")
        k = t.begin_loop(apart, [("ptr", "%x")], "k")
        self.store(self.load(k.values[0]), self.behind(copy, k.counter))
        node = t.metadata.node
        never = [
            node('!"llvm.loop.vectorize.enable", i1 false'),
            node('!"llvm.loop.unroll.disable"'),
        ]
        t.end_loop(k, [self.after(k.values[0], "%x0")], never)
        i = t.begin_loop("%outer")
        factor = self.load(self.behind("%y", t.mul(i.counter, "%y0")))
        begin = self.behind("%c", t.mul(i.counter, "%leading"))
        j = t.begin_loop("%inner", (), "j")
        target = self.behind(begin, j.counter)
        one = self.load(self.behind(row, j.counter))
        self.store(self.plus_product(self.load(target), factor, one), target)
        t.end_loop(j)
        t.end_loop(i)
        t.do("ret void")
        parameters = (
            "i64 %inner, i64 %outer, ptr noalias %c, i64 %leading, ptr %x, i64 %x0, ptr %y, i64 %y0"
        )
        return (
            f"define internal void @{function}({parameters}) noinline nounwind {{\n{t.text()}\n}}"
        )

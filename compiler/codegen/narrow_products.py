"""A column times a short row, added to a matrix, as loops: BLAS calls a function for each row. LLVM text."""

from __future__ import annotations

from typing import Protocol

from .llvm_text import FunctionText

NARROW = 256
"""Rows of at most so many elements are added by loops."""


class Elements(Protocol):
    """What writes the function (`matmul_to_blas.MatmulWriter`), of elements of one type."""

    text: FunctionText
    memory: str

    def element(self, pointer: str, offset: str) -> str: ...

    def load(self, pointer: str) -> str: ...

    def store(self, value: str, pointer: str) -> None: ...

    def plus(self, x: str, y: str) -> str: ...

    def times(self, x: str, y: str) -> str: ...


def add_rows(
    of: Elements, c: str, leading: str, row: tuple[str, str, str], column: tuple[str, str, str]
) -> None:
    """Add a multiple of the row to each row of c, whose elements are neighbours.

    Row and column: where they are, the step from element to element, how many elements. The row is copied:
    its own elements may be far from each other.
    """
    t = of.text
    (given, step, inner), (y, y_step, outer) = row, column
    x = t.alloca(f"[{NARROW} x {of.memory}]", "row")
    k = t.begin_loop(inner, (), "k")
    value = of.load(of.element(given, t.mul(k.counter, step)))
    of.store(value, of.element(x, k.counter))
    t.end_loop(k)
    i = t.begin_loop(outer)
    factor = of.load(of.element(y, t.mul(i.counter, y_step)))
    begin = of.element(c, t.mul(i.counter, leading))
    j = t.begin_loop(inner, (), "j")
    target = of.element(begin, j.counter)
    product = of.times(factor, of.load(of.element(x, j.counter)))
    of.store(of.plus(of.load(target), product), target)
    t.end_loop(j)
    t.end_loop(i)

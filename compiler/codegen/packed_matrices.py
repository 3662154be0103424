"""Matrices that BLAS cannot walk, and copies of them that it can. Part of `matmul_to_blas`.

BLAS walks a matrix by rows or by columns, and its sums have an order for each; loops have another. Within a
budget steps have contiguous copies of arrays that the gradient without one has where they lie, maybe with
steps along both axes. Both have the same types. So whether a matrix may be BLAS's is a question of its type,
and a copy lies as it does in a contiguous copy of the array: the array's last axis is innermost. Where the
columns of the matrix go along that axis, it is *turned*::

    x = argument[::2, ::2]
    x @ v                                  loops, in steps too: of the type strided<[?, ?]>
    x @ y, x.T @ y                         packed by rows, by columns
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import array
from .kernel_state import OUT_OF_MEMORY
from .strided_loops import Elements, StridedCopy

INT_MAX = 2**31 - 1


def has_unit_stride(x: SSAValue, *axes: int) -> bool:
    """Whether the type says that the elements along one of these axes lie side by side."""
    assert isinstance(x.type, MemRefType)
    strides = array.strides_of(x.type)
    return any(strides[axis] == 1 or x.type.get_shape()[axis] == 1 for axis in axes)


def is_turned(matrix: SSAValue) -> bool:
    """Whether the columns of a matrix go along a later axis of its array than the rows do."""
    axes = 0, 1
    while isinstance(owner := matrix.owner, array.ViewOp | memref.CastOp):
        if isinstance(owner, array.ViewOp):
            axes = tuple(owner.source_dims[axis] if axis >= 0 else axis for axis in axes)
        matrix = owner.source
    return axes[0] > axes[1] >= 0


@dataclass
class Matrix:
    """A matrix operand: sizes, address, strides; and as BLAS sees it."""

    rows: str
    columns: str
    pointer: str
    s0: str
    s1: str
    turned: str = "false"
    by_rows: str = ""
    leading: str = ""


class Packing(Elements):
    """Writes what finds out how a matrix lies, and what copies it."""

    def all_of(self, *conditions: str) -> str:
        return self.text.both(conditions)

    def any_of(self, *conditions: str) -> str:
        total = conditions[0]
        for c in conditions[1:]:
            total = self.text.value(f"or i1 {total}, {c}")
        return total

    def layout(self, x: Matrix, *, transposed: bool = False) -> tuple[str, str]:
        """Whether BLAS can walk the matrix by rows (or by columns), and its leading dimension then."""
        t = self.text
        rows, columns, s0, s1 = x.rows, x.columns, x.s0, x.s1
        if transposed:
            rows, columns, s0, s1 = columns, rows, s1, s0
        single_column = t.value(f"icmp eq i64 {columns}, 1")
        single_row = t.value(f"icmp eq i64 {rows}, 1")
        unit = self.any_of(t.value(f"icmp eq i64 {s1}, 1"), single_column)
        apart = t.value(f"icmp sge i64 {s0}, {columns}")
        fits = t.value(f"icmp sle i64 {s0}, {INT_MAX}")
        steps = self.any_of(self.all_of(apart, fits), single_row)
        leading = t.value(f"select i1 {single_row}, i64 {columns}, i64 {s0}")
        return self.all_of(unit, steps), leading

    def mark(self) -> str:
        """Where scratch memory begins that is released in the end."""
        self.state.support.update(("mutad_alloc", "mutad_mark", "mutad_release"))
        return self.text.value("call ptr @mutad_mark(ptr %ctx)")

    def contiguous(self, x: Matrix) -> Matrix:
        """Memory for a matrix of these sizes, which lies as a contiguous copy of the array does."""
        t = self.text
        space = self.allocate(t.mul(x.rows, x.columns))
        s0 = t.value(f"select i1 {x.turned}, i64 1, i64 {x.columns}")
        s1 = t.value(f"select i1 {x.turned}, i64 {x.rows}, i64 1")
        leading = t.value(f"select i1 {x.turned}, i64 {x.rows}, i64 {x.columns}")
        by_rows = t.value(f"xor i1 {x.turned}, true")
        return Matrix(x.rows, x.columns, space, s0, s1, x.turned, by_rows, leading)

    def copied(self, x: Matrix) -> Matrix:
        """The matrix, in one piece."""
        made = self.contiguous(x)
        self.put(x, made, "false")
        return made

    def allocate(self, elements: str) -> str:
        t = self.text
        found = t.value(f"call ptr @mutad_alloc(ptr %ctx, i64 {t.mul(elements, str(self.size))})")
        none = t.value(f"icmp eq ptr {found}, null")
        label = t.label("exhausted")
        with t.in_cold(label):
            t.do(f"ret i32 {OUT_OF_MEMORY}")
        t.branch_if_unlikely(none, label)
        return found

    def packed(self, x: Matrix) -> Matrix:
        """`x` in a form that BLAS can walk: itself, or a contiguous copy."""
        t = self.text
        by_rows, row_leading = self.layout(x)
        by_columns, column_leading = self.layout(x, transposed=True)
        as_is, copy, ready = t.label("as.is"), t.label("copy"), t.label("ready")
        t.branch_if(self.any_of(by_rows, by_columns), as_is, copy)
        t.start(as_is)
        leading = t.value(f"select i1 {by_rows}, i64 {row_leading}, i64 {column_leading}")
        t.branch(ready)
        t.start(copy)
        made = self.copied(x)
        copied = t.block
        t.branch(ready)
        t.start(ready)

        def either(type_: str, here: str, there: str) -> str:
            return t.value(f"phi {type_} [ {here}, %{as_is} ], [ {there}, %{copied} ]")

        return Matrix(
            x.rows,
            x.columns,
            either("ptr", x.pointer, made.pointer),
            "",
            "",
            x.turned,
            either("i1", by_rows, made.by_rows),
            either("i64", leading, made.leading),
        )

    def put(self, x: Matrix, y: Matrix, accumulate: str) -> None:
        """Copy `x` to `y`, or add it: elements that do not lie as BLAS takes them, one after the other."""
        function = f"mutad_put_{self.type}"
        if function not in self.state.functions:
            self.state.functions[function] = StridedCopy(self.state, self.type).write(function)
        sizes = f"i64 {x.rows}, i64 {x.columns}"
        places = ", ".join(f"ptr {m.pointer}, i64 {m.s0}, i64 {m.s1}" for m in (x, y))
        self.text.do(f"call void @{function}({sizes}, {places}, i1 {accumulate})")

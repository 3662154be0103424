"""`array.matmul` as a call of BLAS, or as loops where BLAS does not pay or does not apply.

One function for each dtype in use, written into the module, or into a library that a process has once
(`shared_code`); and one for columns and rows, in the module::

    i32 @mutad_matmul_f64(ctx, n, k, m, a, a0, a1, b, b0, b1, c, c0, c1, accumulate,
                          apart, loops, a_turned, b_turned, c_turned)

with strides in elements. It calls SciPy's BLAS (Fortran convention, bound by the loader as
`mutad_dgemm` and so on). BLAS stores by columns; a row-major C = A B is a column-major C' = B' A'.
An operand that BLAS cannot walk (no unit stride, a negative or too large leading dimension) is packed
into scratch memory first. Integers, tiny matrices and dot products are plain loops (`strided_loops`).
So are products of a vector and such a matrix, which goes by its type alone (`packed_matrices`): `apart`
where elements of factors of a dot product need not lie side by side, `loops` where no vector of the matrix
does. Where it is packed it lies by columns if it is *turned*.
"""

from __future__ import annotations

import re

from xdsl.ir import Attribute

from ...dialects import array
from .kernel_state import (
    OK,
    OUT_OF_MEMORY,
    KernelState,
    lanes_of,
    memory_type,
    number_type,
    value_type,
)
from .narrow_products import NARROW, NarrowProduct
from .ordered_products import is_ordered, lower_ordered
from .packed_matrices import INT_MAX, Matrix, Packing, has_unit_stride, is_turned
from .products_of_vectors import WAYS, VectorProduct
from .scalar_text import float_text
from .strided_loops import AS_WRITTEN, ColumnProduct

TINY = 4
"""Matrices whose three sizes are at most this are multiplied by plain loops: a call costs 20 ns more."""

SHORT = 24
"""So are matrices of at most so many rows and columns with a column."""

EXTENTS = {"row": "%n", "column": "%m"}
"""The parameters that are 1 for vectors."""


BLAS_LETTERS = {"double": "d", "float": "s"}
"""What BLAS's names begin with; of other types products are loops."""


def lower_matmul(state: KernelState, op: array.MatmulOp) -> None:
    """Call the dtype's function."""
    a, b, c = (state.memrefs[x] for x in (op.a, op.b, op.c))
    if lanes_of(a.element) > 1:
        a, b, c = b.transposed, a.transposed, c.transposed
    integers = [a.extents[0], a.extents[1], b.extents[1]]
    vector = "column" if integers[2] == "1" else "row" if integers[0] == "1" else ""
    if lanes_of(c.element) > 1:
        vector = ""  # their numbers side by side are a matrix
    if is_ordered(op):
        lower_ordered(state, (a, b, c), integers)
        return
    function = product_function(state, c.element, vector)
    shown = ["ptr %ctx", *(f"i64 {n}" for n in integers)]
    for d in (a, b, c):
        shown += [f"ptr {d.pointer}", *(f"i64 {s}" for s in d.strides)]
    said = [op.accumulate is not None]
    if lanes_of(c.element) == 1:
        said += [*ways_of(op, vector), *map(is_turned, (op.a, op.b, op.c))]
    shown += [f"i1 {'true' if yes else 'false'}" for yes in said]
    status = state.text.value(f"call i32 @{function}({', '.join(shown)})")
    state.return_when(state.text.value(f"icmp ne i32 {status}, 0"), OUT_OF_MEMORY)


def ways_of(op: array.MatmulOp, vector: str) -> tuple[bool, bool]:
    """Whether dot products go from element to element, and whether BLAS is not asked."""
    beside = has_unit_stride(op.a, 1) and has_unit_stride(op.b, 0)
    matrix = {"column": op.a, "row": op.b}.get(vector)
    return not beside, matrix is not None and not has_unit_stride(matrix, 0, 1)


def product_function(state: KernelState, element: Attribute, vector: str = "") -> str:
    """The function for elements of this type; of vectors, for a second factor of them.

    `vector`: that for a "column" of which the type says so, or a "row". It is in the module, where LLVM makes
    it one for the strides that it is called with: products of a few numbers take 0.8x of the time.
    """
    type_, lanes = memory_type(number_type(element)), lanes_of(element)
    number = value_type(number_type(element))
    function = function_name(number, vector)
    if state.shares and not vector:
        parameters = ", ".join(
            ["ptr, i64, i64, i64", *["ptr, i64, i64"] * 3, *["i1"] * (1 + len(WAYS))]
        )
        line = f"declare i32 @{function}({parameters}) nounwind"
        state.declare_shared(function, line, "any", number)
    elif function not in state.functions:
        state.functions[function] = MatmulWriter(state, number, function, vector).write()
    if lanes == 1:
        return function
    wide = f"mutad_matmul_wide_{type_}_{lanes}"
    if wide not in state.functions:
        state.functions[wide] = VectorProduct(state, element, function).write(wide)
    return wide


def function_name(number: str, vector: str = "") -> str:
    """What the function for numbers of an LLVM type is called."""
    behind = f"_{vector}" if vector else ""
    return f"mutad_matmul_{'i8' if number == 'i1' else number}{behind}"


class MatmulWriter(Packing):
    """Writes the function for one dtype."""

    def __init__(self, state: KernelState, type_: str, function: str, vector: str = "") -> None:
        self.blas = BLAS_LETTERS.get(type_)
        # BLAS takes rows that lie side by side, if they are not tiny.
        super().__init__(state, type_, in_vectors=self.blas is None)
        self.function = function
        self.vector = vector

    def write(self) -> str:
        """The whole function."""
        a = Matrix("%n", "%k", "%a", "%a0", "%a1", "%a.turned")
        b = Matrix("%k", "%m", "%b", "%b0", "%b1", "%b.turned")
        c = Matrix("%n", "%m", "%c", "%c0", "%c1", "%c.turned")
        t = self.text
        vectors = t.value("icmp eq i64 %m, 1")
        row_vector = t.value("icmp eq i64 %n, 1")
        if self.blas is not None:
            plain, big = t.label("plain"), t.label("blas")
            t.branch_if(self.is_plain(vectors, row_vector), plain, big)
            t.start(big)
            self.blas_path(a, b, c, vectors, row_vector, plain)
            t.start(plain)
        self.plain_loops(a, b, c, vectors)
        t.do(f"ret i32 {OK}")
        parameters = "ptr %ctx, i64 %n, i64 %k, i64 %m"
        for x in "abc":
            parameters += f", ptr %{x}, i64 %{x}0, i64 %{x}1"
        attributes = "noinline nounwind" if self.in_vectors else AS_WRITTEN
        parameters += "".join(f", i1 %{name}" for name in ("accumulate", *WAYS))
        head = f"define internal i32 @{self.function}({parameters}) {attributes}"
        body = t.text()
        if self.vector:  # LLVM leaves out what is there for matrices
            body = re.sub(rf"{EXTENTS[self.vector]}(?![\w.])", "1", body)
        return f"{head} {{\n{body}\n}}"

    def is_plain(self, column: str, row: str) -> str:
        """Nothing to multiply, tiny, a dot product, or too large for BLAS's 32-bit sizes."""
        t = self.text
        least, largest = (self.extreme(f, "%n", "%k", "%m") for f in ("umin", "umax"))
        empty = t.value(f"icmp eq i64 {least}, 0")
        tiny = t.value(f"icmp ule i64 {largest}, {TINY}")
        large = t.value(f"icmp ugt i64 {largest}, {INT_MAX}")
        rows = t.value(f"icmp ule i64 {self.extreme('umax', '%n', '%k')}, {SHORT}")
        short = self.all_of(column, rows)
        return self.any_of(empty, tiny, short, large, self.all_of(column, row), "%loops")

    def extreme(self, function: str, first: str, *others: str) -> str:
        """The least or the largest of sizes."""
        called = self.state.intrinsic(f"llvm.{function}.i64", "i64", "i64, i64")
        for other in others:
            first = self.text.value(f"call i64 @{called}(i64 {first}, i64 {other})")
        return first

    # Plain loops.

    def at(self, x: Matrix, i: str, j: str) -> str:
        t = self.text
        return self.behind(x.pointer, t.add(t.mul(i, x.s0), t.mul(j, x.s1)))

    def plain_loops(self, a: Matrix, b: Matrix, c: Matrix, column: str) -> None:
        """Dot products where c is a column; else rows of c as sums of rows of b."""
        t = self.text
        dots, rows, done = t.label("dots"), t.label("rows"), t.label("done")
        t.branch_if(column, dots, rows)
        t.start(dots)
        function = f"mutad_column_{self.type}"
        if function not in self.state.functions:
            self.state.functions[function] = ColumnProduct(self.state, self.type).write(function)
        places = f"ptr {a.pointer}, i64 {a.s0}, i64 {a.s1}, ptr {b.pointer}, i64 {b.s0}"
        places += f", ptr {c.pointer}, i64 {c.s0}"
        t.do(f"call void @{function}(i64 %n, i64 %k, {places}, i1 %accumulate, i1 %apart)")
        t.branch(done)
        t.start(rows)
        i = t.begin_loop("%n")
        along = self.along("%m", (self.at(c, i.counter, "0"), c.s1))
        (target,) = along.at
        old = self.load(target)
        first = t.value(f"select i1 %accumulate, {self.type} {old}, {self.type} {self.zero}")
        self.store(first, target)
        self.end(along)
        t.end_loop(i)
        i = t.begin_loop("%n")
        row = self.at(c, i.counter, "0")
        inner = t.begin_loop("%k", (), "l")
        x = self.load(self.at(a, i.counter, inner.counter))
        along = self.along("%m", (self.at(b, inner.counter, "0"), b.s1), (row, c.s1))
        factor, target = along.at
        self.store(self.plus(self.load(target), self.times(x, self.load(factor))), target)
        self.end(along)
        t.end_loop(inner)
        t.end_loop(i)
        t.branch(done)
        t.start(done)

    # BLAS.

    def slot(self, type_: str, value: str) -> str:
        """`value` in a stack slot, as Fortran takes its arguments."""
        at = self.text.alloca(type_, "arg")
        self.text.do(f"store {type_} {value}, ptr {at}")
        return f"ptr {at}"

    def int_slot(self, value: str) -> str:
        return self.slot("i32", self.text.value(f"trunc i64 {value} to i32"))

    def beta(self) -> str:
        one, zero = float_text(1.0, self.type), self.zero
        chosen = self.text.value(f"select i1 %accumulate, {self.type} {one}, {self.type} {zero}")
        return self.slot(self.type, chosen)

    def letter(self, condition: str) -> str:
        """'N' where the condition holds, else 'T'."""
        chosen = self.text.value(f"select i1 {condition}, i8 {ord('N')}, i8 {ord('T')}")
        return self.slot("i8", chosen)

    def call(self, stem: str, *arguments: str) -> None:
        symbol = f"mutad_{self.blas}{stem}"
        types = ", ".join(["ptr"] * len(arguments))
        self.state.declare(symbol, f"declare void @{symbol}({types})", "blas")
        self.text.do(f"call void @{symbol}({', '.join(arguments)})")

    def blas_path(self, a: Matrix, b: Matrix, c: Matrix, column: str, row: str, plain: str) -> None:
        t = self.text
        gemv, matrices, ger, gemm = (t.label(name) for name in ("gemv", "matrices", "ger", "gemm"))
        vector = self.any_of(column, row)
        t.branch_if(vector, gemv, matrices)
        t.start(gemv)
        self.gemv(a, b, c, column, plain)
        t.start(matrices)
        t.branch_if(self.all_of(t.value("icmp eq i64 %k, 1"), "%accumulate"), ger, gemm)
        t.start(ger)
        self.ger(a, b, c, gemm)
        t.start(gemm)
        self.gemm(a, b, c)

    def gemv(self, a: Matrix, b: Matrix, c: Matrix, column: str, plain: str) -> None:
        """c = a x for a column c, c' = b' x' for a row c; plain loops for what BLAS cannot walk."""
        t = self.text

        def choose(type_: str, x: str, y: str) -> str:
            return t.value(f"select i1 {column}, {type_} {x}, {type_} {y}")

        matrix = Matrix(
            choose("i64", "%n", "%m"),
            "%k",
            choose("ptr", a.pointer, b.pointer),
            choose("i64", a.s0, b.s1),
            choose("i64", a.s1, b.s0),
        )
        x, x_step = choose("ptr", b.pointer, a.pointer), choose("i64", b.s0, a.s1)
        y_step = choose("i64", c.s0, c.s1)
        by_rows, row_leading = self.layout(matrix)
        by_columns, column_leading = self.layout(matrix, transposed=True)
        one = t.value("icmp eq i64 %k, 1")
        x_step = t.value(f"select i1 {one}, i64 1, i64 {x_step}")
        walks = self.any_of(by_rows, by_columns)
        go = t.label("go")
        t.branch_if(self.all_of(walks, *self.steps(x_step, y_step)), go, plain)
        t.start(go)
        x = self.first_in_memory(x, x_step, "%k")
        y = self.first_in_memory(c.pointer, y_step, matrix.rows)
        leading = t.value(f"select i1 {by_rows}, i64 {row_leading}, i64 {column_leading}")
        outer = t.value(f"select i1 {by_rows}, i64 %k, i64 {matrix.rows}")
        inner = t.value(f"select i1 {by_rows}, i64 {matrix.rows}, i64 %k")
        not_by_rows = t.value(f"xor i1 {by_rows}, true")
        self.call(
            "gemv",
            self.letter(not_by_rows),
            self.int_slot(outer),
            self.int_slot(inner),
            self.slot(self.type, float_text(1.0, self.type)),
            f"ptr {matrix.pointer}",
            self.int_slot(leading),
            f"ptr {x}",
            self.int_slot(x_step),
            self.beta(),
            f"ptr {y}",
            self.int_slot(y_step),
        )
        t.do(f"ret i32 {OK}")

    def ger(self, a: Matrix, b: Matrix, c: Matrix, otherwise: str) -> None:
        """c += a b for a column a and a row b, where BLAS can walk them; c' += b' a' for a c by rows."""
        t = self.text
        by_rows, row_leading = self.layout(c)
        by_columns, column_leading = self.layout(c, transposed=True)

        def choose(type_: str, x: str, y: str) -> str:
            return t.value(f"select i1 {by_rows}, {type_} {x}, {type_} {y}")

        inner, outer = choose("i64", "%m", "%n"), choose("i64", "%n", "%m")
        x, x_step = choose("ptr", b.pointer, a.pointer), choose("i64", b.s1, a.s0)
        y, y_step = choose("ptr", a.pointer, b.pointer), choose("i64", a.s0, b.s1)
        good = [self.any_of(by_rows, by_columns), *self.steps(x_step, y_step)]
        go, narrow, wide = t.label("go"), t.label("narrow"), t.label("wide")
        t.branch_if(self.all_of(*good), go, otherwise)
        t.start(go)
        leading = choose("i64", row_leading, column_leading)
        t.branch_if(t.value(f"icmp ule i64 {inner}, {NARROW}"), narrow, wide)
        t.start(narrow)
        function = f"mutad_add_rows_{self.type}"
        if function not in self.state.functions:
            self.state.functions[function] = NarrowProduct(self.state, self.type).write(function)
        places = f"ptr {c.pointer}, i64 {leading}, ptr {x}, i64 {x_step}, ptr {y}, i64 {y_step}"
        t.do(f"call void @{function}(i64 {inner}, i64 {outer}, {places})")
        t.do(f"ret i32 {OK}")
        t.start(wide)
        x = self.first_in_memory(x, x_step, inner)
        y = self.first_in_memory(y, y_step, outer)
        self.call(
            "ger",
            self.int_slot(inner),
            self.int_slot(outer),
            self.slot(self.type, float_text(1.0, self.type)),
            f"ptr {x}",
            self.int_slot(x_step),
            f"ptr {y}",
            self.int_slot(y_step),
            f"ptr {c.pointer}",
            self.int_slot(leading),
        )
        t.do(f"ret i32 {OK}")

    def steps(self, *steps: str) -> list[str]:
        """Conditions that BLAS takes the steps of vectors."""
        t = self.text
        found: list[str] = []
        for step in steps:
            found.append(t.value(f"icmp ne i64 {step}, 0"))
            found.append(t.value(f"icmp sle i64 {step}, {INT_MAX}"))
            found.append(t.value(f"icmp sge i64 {step}, {-INT_MAX}"))
        return found

    def first_in_memory(self, pointer: str, step: str, count: str) -> str:
        """BLAS wants the lowest address of a vector, whatever the sign of its step."""
        t = self.text
        negative = t.value(f"icmp slt i64 {step}, 0")
        last = t.sub(count, "1")
        back = t.value(f"select i1 {negative}, i64 {t.mul(last, step)}, i64 0")
        return t.value(f"getelementptr {self.memory}, ptr {pointer}, i64 {back}")

    def gemm(self, a: Matrix, b: Matrix, c: Matrix) -> None:
        t = self.text
        mark = self.mark()
        packed = [self.packed(x) for x in (a, b)]
        by_rows, row_leading = self.layout(c)
        by_columns, column_leading = self.layout(c, transposed=True)
        straight, through = t.label("straight"), t.label("through")
        t.branch_if(self.any_of(by_rows, by_columns), straight, through)

        t.start(straight)
        leading = t.value(f"select i1 {by_rows}, i64 {row_leading}, i64 {column_leading}")
        self.call_gemm(packed[0], packed[1], c.pointer, by_rows, leading, self.beta())
        t.do(f"call void @mutad_release(ptr %ctx, ptr {mark})")
        t.do(f"ret i32 {OK}")

        t.start(through)
        result = self.contiguous(c)
        zero = self.slot(self.type, self.zero)
        self.call_gemm(packed[0], packed[1], result.pointer, result.by_rows, result.leading, zero)
        self.put(result, c, "%accumulate")
        t.do(f"call void @mutad_release(ptr %ctx, ptr {mark})")
        t.do(f"ret i32 {OK}")

    def call_gemm(
        self, a: Matrix, b: Matrix, c: str, by_rows: str, leading: str, beta: str
    ) -> None:
        """C = A B by columns, or C' = B' A' where c lies by rows."""
        t = self.text

        def choose(type_: str, rows: str, columns: str) -> str:
            return t.value(f"select i1 {by_rows}, {type_} {rows}, {type_} {columns}")

        def as_stored(x: Matrix) -> str:
            """'N' for a row-major operand of C' = B' A' and a column-major one of C = A B."""
            return t.value(f"icmp eq i1 {x.by_rows}, {by_rows}")

        first = choose("i1", as_stored(b), as_stored(a))
        second = choose("i1", as_stored(a), as_stored(b))
        self.call(
            "gemm",
            self.letter(first),
            self.letter(second),
            self.int_slot(choose("i64", "%m", "%n")),
            self.int_slot(choose("i64", "%n", "%m")),
            self.int_slot("%k"),
            self.slot(self.type, float_text(1.0, self.type)),
            f"ptr {choose('ptr', b.pointer, a.pointer)}",
            self.int_slot(choose("i64", b.leading, a.leading)),
            f"ptr {choose('ptr', a.pointer, b.pointer)}",
            self.int_slot(choose("i64", a.leading, b.leading)),
            beta,
            f"ptr {c}",
            self.int_slot(leading),
        )

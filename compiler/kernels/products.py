"""`array.matmul` as a kernel: by tiles in shared memory, by rows for a vector, or an element a thread.

*Tiles*: a block has a square of the product, and goes through the depth in steps. In each its threads bring
what the step needs of both factors to shared memory, wait, and add up products there; each has a square of
elements in registers::

    for s in range(depth / 16):                                block: 64 x 64 elements (of 4 bytes: 128 x 128)
        rows[k, i], columns[k, j] = a[top + i, 16 s + k], b[16 s + k, left + j]
        barrier
        for k in range(16):                                    thread: 4 x 4 elements (8 x 8), 16 apart
            c[r, q] += rows[k, i + 16 r] * columns[k, j + 16 q]
        barrier

So each element that is loaded is used 64 (128) times: 8 operations for each byte of float64, 32 of float32.
Threads beside each other load along the axis of unit stride, and shared memory has a column more than it
needs, so that they store to different banks. What is beyond the factors counts as 0.

*Rows*: a product with a vector reads its matrix once. Some threads share out each row, and meet in shared
memory: 32 a row where the elements of rows lie side by side, else 8, with 32 rows beside each other.

*An element a thread*: products of a column and a row.

Where cuBLAS is installed, it takes products of matrices instead; the launch says of what (`device.PRODUCT`).

Each element is added up in an order that depends on the shape alone. Products and sums are contracted, as
those of BLAS are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat, DenseArrayBase, MemRefType, f32, f64, i64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, SSAValue

from ...dialects import array, device
from .figures import bytes_of
from .kernel import Kernel, Writer, blocks, element_of, point, zero_of

SIDE = 16
"""Threads along each side of a square, and the depth of a step."""

WARP = 32
"""Threads that load at once."""

CONTRACT = arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])

At = Callable[[SSAValue, SSAValue], SSAValue]
"""The element of a factor at two subscripts."""


@dataclass(frozen=True)
class Factor:
    """A factor in a kernel; `lines` are what the product keeps of it: rows of `a`, columns of `b`."""

    lines: SSAValue
    at: At
    """The element of a line, at a depth."""
    beside: bool
    """Whether lines lie side by side: those at one depth have unit stride."""


class ProductKernel:
    """Writes the kernel of a product."""

    def __init__(self, kernel: Kernel, host: Writer, op: array.MatmulOp) -> None:
        self.kernel, self.host, self.op = kernel, host, op
        self.element = element_of(op.c)
        zero, one = host.index(0), host.index(1)
        sizes = [(op.a, zero), (op.b, one), (op.b, zero)]
        self.extents = [host.emit(memref.DimOp(x, d)) for x, d in sizes]
        """On the host: rows, columns, depth."""

    def write(self) -> SSAValue:
        """The whole kernel; how many blocks there are."""
        (n, depth), (_, m) = shape_of(self.op.a), shape_of(self.op.b)
        if depth == 1:
            return self.elements()
        if 1 in (n, m):
            return self.rows(vector_first=n == 1)
        return self.tiles()

    def for_library(self) -> Attribute | None:
        """What a launch says of a product that cuBLAS has a function for, once the kernel is written."""
        if 1 in (*shape_of(self.op.a), *shape_of(self.op.b)) or self.element not in (f32, f64):
            return None
        given, adds = self.kernel.given, self.op.accumulate is not None
        places = [given.index(m) for m in (self.op.a, self.op.b, self.op.c)]
        return DenseArrayBase.from_list(i64, [*places, int(adds)])

    # What the forms have in common.

    def factors(self) -> tuple[Factor, Factor]:
        kernel, op = self.kernel, self.op
        a, b = kernel.value(op.a), kernel.value(op.b)
        n, m, _ = (kernel.value(x) for x in self.extents)
        return (
            Factor(n, lambda i, k: kernel.load(a, [i, k]), stride(op.a, 0) == 1),
            Factor(m, lambda j, k: kernel.load(b, [k, j]), stride(op.b, 0) != 1),
        )

    def zero(self) -> SSAValue:
        return self.kernel.emit(zero_of(self.element))

    def cell(self) -> SSAValue:
        """A register that is 0."""
        found = self.kernel.cell(self.element)
        self.kernel.store(self.zero(), found)
        return found

    def add_product(self, cell: SSAValue, x: SSAValue, y: SSAValue) -> None:
        kernel = self.kernel
        old = kernel.load(cell)
        if not isinstance(self.element, AnyFloat):
            kernel.store(kernel.combined("add", old, kernel.combined("mul", x, y)), cell)
            return
        term = kernel.emit(arith.MulfOp(x, y, CONTRACT))
        kernel.store(kernel.emit(arith.AddfOp(old, term, CONTRACT)), cell)

    def put(self, found: SSAValue, at: Sequence[SSAValue]) -> None:
        """An element of the product is known."""
        kernel = self.kernel
        c = kernel.value(self.op.c)
        if self.op.accumulate is not None:
            found = kernel.combined("add", kernel.load(c, at), found)
        kernel.store(found, c, at)

    def inside(self, *pairs: tuple[SSAValue, SSAValue]) -> SSAValue:
        return self.kernel.all([self.kernel.less(i, n) for i, n in pairs])

    # A column times a row.

    def elements(self) -> SSAValue:
        kernel, (a, b) = self.kernel, self.factors()
        at, inside = point(kernel, [a.lines, b.lines])
        with kernel.where(inside):
            zero = kernel.index(0)
            self.put(kernel.combined("mul", a.at(at[0], zero), b.at(at[1], zero)), at)
        return blocks(self.host, self.extents[:2])

    # A matrix and a vector.

    def rows(self, *, vector_first: bool) -> SSAValue:
        """Threads share out a line of the matrix, and meet."""
        kernel, (a, b) = self.kernel, self.factors()
        matrix, vector = (b, a) if vector_first else (a, b)
        lines = WARP if matrix.beside else device.THREADS // WARP
        parts = device.THREADS // lines
        thread, zero = kernel.emit(device.ThreadOp()), kernel.index(0)
        inner, outer = kernel.rest(thread, kernel.index(WARP)), self.over(thread, WARP)
        own, part = (inner, outer) if matrix.beside else (outer, inner)
        first = kernel.product(kernel.emit(device.BlockOp()), kernel.index(lines))
        line = kernel.sum(first, own)
        depth, number = kernel.value(self.extents[2]), kernel.index(parts)
        inside = self.inside((line, matrix.lines))
        slots = kernel.shared(self.element)
        cell = self.cell()
        with kernel.where(inside):
            left = kernel.emit(arith.SubiOp(depth, part))
            with kernel.loop(kernel.parts(kernel.at_least_zero(left), parts)) as s:
                k = kernel.sum(part, kernel.product(s, number))
                self.add_product(cell, matrix.at(line, k), vector.at(zero, k))
        kernel.store(kernel.load(cell), slots, [thread])
        step = WARP if matrix.beside else 1
        while parts > 1:
            parts //= 2
            kernel.add(device.BarrierOp())
            with kernel.where(kernel.less(part, kernel.index(parts))):
                other = kernel.load(slots, [kernel.sum(thread, kernel.index(parts * step))])
                both = kernel.combined("add", kernel.load(slots, [thread]), other)
                kernel.store(both, slots, [thread])
        with kernel.where(self.inside((line, matrix.lines), (part, kernel.index(1)))):
            at = [zero, line] if vector_first else [line, zero]
            self.put(kernel.load(slots, [thread]), at)
        return self.host.parts(self.extents[1 if vector_first else 0], lines)

    # Two matrices.

    def tiles(self) -> SSAValue:
        kernel, (a, b), host = self.kernel, self.factors(), self.host
        each = 4 if bytes_of(self.element) == 8 else 8
        width = SIDE * each
        thread, block = kernel.emit(device.ThreadOp()), kernel.emit(device.BlockOp())
        across = kernel.parts(b.lines, width)
        top = kernel.product(kernel.quotient(block, across), kernel.index(width))
        left = kernel.product(kernel.rest(block, across), kernel.index(width))
        row, column = self.over(thread, SIDE), kernel.rest(thread, kernel.index(SIDE))
        slots = [kernel.shared(self.element, SIDE * (width + 1)) for _ in range(2)]
        sums = [[self.cell() for _ in range(each)] for _ in range(each)]
        depth = kernel.value(self.extents[2])
        with kernel.loop(kernel.parts(depth, SIDE)) as step:
            first = kernel.product(step, kernel.index(SIDE))
            for factor, start, own in zip((a, b), (top, left), slots, strict=True):
                self.bring(factor, start, first, depth, own, each)
            kernel.add(device.BarrierOp())
            with kernel.loop(kernel.index(SIDE)) as k:
                at = kernel.product(k, kernel.index(width + 1))
                xs, ys = (
                    [kernel.load(own, [i]) for i in apart(kernel, kernel.sum(at, mine), each)]
                    for own, mine in zip(slots, (row, column), strict=True)
                )
                for x, cells in zip(xs, sums, strict=True):
                    for y, cell in zip(ys, cells, strict=True):
                        self.add_product(cell, x, y)
            kernel.add(device.BarrierOp())
        lines = apart(kernel, kernel.sum(top, row), each)
        columns = apart(kernel, kernel.sum(left, column), each)
        for i, cells in zip(lines, sums, strict=True):
            for j, cell in zip(columns, cells, strict=True):
                with kernel.where(self.inside((i, a.lines), (j, b.lines))):
                    self.put(kernel.load(cell), [i, j])
        n, m, _ = self.extents
        return host.product(host.parts(n, width), host.parts(m, width))

    def bring(
        self,
        factor: Factor,
        start: SSAValue,
        first: SSAValue,
        depth: SSAValue,
        slots: SSAValue,
        each: int,
    ) -> None:
        """A step's part of a factor to shared memory, `each` elements a thread."""
        kernel, width = self.kernel, SIDE * each
        thread = kernel.emit(device.ThreadOp())
        fast = width if factor.beside else SIDE
        inner, outer = kernel.rest(thread, kernel.index(fast)), self.over(thread, fast)
        for p in range(each):
            further = kernel.sum(outer, kernel.index(p * (device.THREADS // fast)))
            own, k = (inner, further) if factor.beside else (further, inner)
            line, at = kernel.sum(start, own), kernel.sum(first, k)
            inside = self.inside((line, factor.lines), (at, depth))

            def there(line: SSAValue = line, at: SSAValue = at) -> SSAValue:
                return factor.at(line, at)

            found = kernel.either(inside, self.element, there, self.zero)
            place = kernel.sum(kernel.product(k, kernel.index(width + 1)), own)
            kernel.store(found, slots, [place])

    def over(self, number: SSAValue, size: int) -> SSAValue:
        return self.kernel.quotient(number, self.kernel.index(size))


def apart(kernel: Kernel, first: SSAValue, count: int) -> list[SSAValue]:
    """What a thread has along an axis: `SIDE` apart."""
    return [kernel.sum(first, kernel.index(SIDE * r)) for r in range(count)]


def shape_of(m: SSAValue) -> tuple[int, ...]:
    assert isinstance(m.type, MemRefType)
    return m.type.get_shape()


def stride(m: SSAValue, axis: int) -> int | None:
    assert isinstance(m.type, MemRefType)
    return array.strides_of(m.type)[axis]

"""Products of matrices and vectors. A vector is seen as a matrix with a unit dimension.

`A @ x` becomes `array.matmul` into a fresh array; the product of two vectors is a fused reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..values import Array, NoneValue, Scalar, Value
from . import contractions, elementwise, overlap, read_only, reshape, shapes, views
from .assignment import assign_view, require_same_kind
from .cases import Case
from .dtypes import common_dtype, strong
from .maps import allocate, copy, extents_of, mapped, operand
from .read_only import require_writable
from .reductions import whole_sum

MATMUL = (
    "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature"
    " (n?,k),(k,m?)->(n?,m?) (size {} is different from {})"
)

DOT_OUTPUT = (
    "output array is not acceptable (must have the right datatype, number of dimensions, and be a"
    " C-Array)"
)


def matmul(e: Emitter, left: Value, right: Value, out: Value | None = None) -> Value:
    """`left @ right` for vectors and matrices."""
    a, b = operand(e, left), operand(e, right)
    if isinstance(a, Scalar) or isinstance(b, Scalar):
        position = 0 if isinstance(a, Scalar) else 1
        e.fail(
            f"matmul: Input operand {position} does not have enough dimensions",
            way_out="multiply by a number with *",
        )
    if a.rank > 2 or b.rank > 2:
        found = contractions.stacks(e, a, b, MATMUL)
        return elementwise.call(e, np.positive, [found], {"out": out}) if out else found
    if isinstance(out, Array):
        require_writable(e, out.memref, read_only.OUTPUT)
    ka, kb = extents_of(e, a)[-1], extents_of(e, b)[0]
    require_equal(e, ka, kb, MATMUL, [kb, ka])
    return product(e, a, b, None if isinstance(out, NoneValue) else out)


def dot(e: Emitter, left: Value, right: Value, out: Value | None = None) -> Value:
    """`np.dot`: as `@` for vectors and matrices, as `*` with a number."""
    a, b = operand(e, left), operand(e, right)
    if isinstance(a, Scalar) or isinstance(b, Scalar):
        return elementwise.call(e, np.multiply, [a, b], {} if out is None else {"out": out})
    if isinstance(out, Array) and (
        out.rank != a.rank + b.rank - 2 or out.dtype != common_dtype(e, [a, b])
    ):
        e.fail(DOT_OUTPUT, way_out="store it instead: out[...] = np.dot(a, b)")
    if a.rank > 2 or b.rank > 2:
        found = contractions.along(e, "dot", a, b, [(a.rank - 1, max(b.rank - 2, 0))])
        return elementwise.call(e, np.positive, [found], {"out": out}) if out else found
    sa, sb = extents_of(e, a), extents_of(e, b)
    message = (
        f"shapes {shapes.shape_format(a.rank)} {shapes.shape_format(b.rank)} not aligned:"
        f" {{}} (dim {a.rank - 1}) != {{}} (dim 0)"
    )
    require_equal(e, sa[-1], sb[0], message, [*sa, *sb, sa[-1], sb[0]])
    if isinstance(out, Array):
        require_writable(e, out.memref, read_only.DOT)
    return product(e, a, b, None if isinstance(out, NoneValue) else out)


def vdot(e: Emitter, left: Value, right: Value) -> Value:
    """`np.vdot`: of all elements, in order."""
    return dot(e, as_vector(e, left), as_vector(e, right))


def outer(e: Emitter, left: Value, right: Value) -> Value:
    """`np.outer`: each element with each, in order."""
    column = as_matrix(e, as_vector(e, left), row=False)
    return elementwise.apply(e, np.multiply, [column, as_vector(e, right)])


def as_vector(e: Emitter, value: Value) -> Array:
    """All elements in a row: a number is one, a vector itself."""
    x = operand(e, value)
    if not isinstance(x, Scalar) and x.rank == 1:
        return x
    found = reshape.ravel(e, x)
    assert isinstance(found, Array)
    return found


def outer_of(ufunc: np.ufunc) -> Callable[[Emitter, list[Value], dict[str, Value]], Value]:
    """`ufunc.outer(a, b)`: the axes of `a`, then those of `b`."""

    def call(e: Emitter, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) != 2:
            e.fail(f"{ufunc.__name__}.outer takes two operands")
        a, b = (strong(e, operand(e, v)) for v in args)
        if not isinstance(a, Scalar) and not isinstance(b, Scalar):
            first, second = contractions.letters(0, a.rank), contractions.letters(a.rank, b.rank)
            a = contractions.spread(e, contractions.Labelled(a, first), (*first, *second))
        return elementwise.call(e, ufunc, [a, b], kwargs)

    return call


def product(e: Emitter, a: Array, b: Array, out: Value | None) -> Value:
    """The product of operands whose inner extents agree."""
    dtype = common_dtype(e, [a, b])
    if dtype == "b1":
        e.fail(
            "products of bool matrices are not supported",
            way_out="convert to int64, and test for > 0",
        )
    if a.rank == b.rank == 1:
        return vector_product(e, a, b, dtype, out)
    left = ready(e, a, dtype)
    right = left if b is a else ready(e, b, dtype)
    kept = [*extents_of(e, a)[:-1], *extents_of(e, b)[1:]]
    target = allocate(e, kept, dtype, "product")
    rows = as_matrix(e, left, row=True)
    columns = as_matrix(e, right, row=False)
    into = target if target.rank == 2 else as_matrix(e, target, row=a.rank == 1)
    e.insert(array.MatmulOp(rows.memref, columns.memref, into.memref))
    if out is None:
        return target
    require_output(e, out, kept, dtype)
    assert isinstance(out, Array)
    assign_view(e, out, target)
    return out


def require_output(e: Emitter, out: Value, extents: Sequence[SSAValue], dtype: str) -> None:
    """Refuse an `out` that the product does not fit, or raise ValueError where it has other extents."""
    if not isinstance(out, Array) or out.rank != len(extents):
        e.fail("matmul: out= takes an array of the result's rank")
    require_same_kind(e, "matmul", dtype, out.dtype)
    own = shapes.extents_of(e, out.memref)
    wrong = [
        shapes.compare(e, "ne", n, m)
        for n, m in zip(own, extents, strict=True)
        if not shapes.equal(n, m)
    ]
    shapes.raise_mismatch(
        e, wrong, "matmul: Output operand 0 has a mismatch in its core dimensions {shapes}", [own]
    )


def vector_product(e: Emitter, a: Array, b: Array, dtype: str, out: Value | None) -> Value:
    lower = elementwise.TABLE[np.multiply].lowering(dtype)
    assert lower is not None
    total = whole_sum(e, mapped(e, [a, b], (dtype,) * 3, extents_of(e, a), lower))
    if not isinstance(out, Array):
        return total
    assign_view(e, out, total)
    return out


def ready(e: Emitter, value: Array, dtype: str) -> Array:
    """The operand in memory, in the product's dtype; no part of a room."""
    in_room = not e.rooms.isdisjoint(overlap.roots(e, value.memref))
    if in_room or value.dtype != dtype:
        return copy(e, value, dtype)
    return value


def as_matrix(e: Emitter, a: Array, *, row: bool) -> Array:
    """A vector as a matrix of one row, or one column; a matrix is itself."""
    if a.rank == 2:
        return a
    (n,) = shapes.extents_of(e, a.memref)
    zero, one = e.index(0), e.index(1)
    axes, extents, steps = (
        ([-1, 0], [one, n], [zero, one]) if row else ([0, -1], [n, one], [one, zero])
    )
    return views.view(e, a, [zero], axes, extents, steps)


def require_equal(
    e: Emitter, n: SSAValue, m: SSAValue, message: str, shown: Sequence[SSAValue]
) -> None:
    if not shapes.equal(n, m):
        differ = shapes.compare(e, "ne", n, m)
        e.insert(array.RaiseIfOp(differ, "ValueError", message, list(shown)))


CASES: tuple[Case, ...] = (
    Case("x @ y", {"x": "matrix", "y": "matrix"}),
    Case("x @ y", {"x": "matrix", "y": "vector"}),
    Case("x @ y", {"x": "vector", "y": "matrix"}),
    Case("x @ y", {"x": "vector", "y": "vector"}),
    Case("x.T @ (2 * y)", {"x": "matrix", "y": "matrix"}),
    Case("np.dot(x, y)", {"x": "matrix", "y": "vector"}),
    Case("np.outer(x, y)", {"x": "vector", "y": "vector"}),
    Case("np.vdot(x, y)", {"x": "vector", "y": "vector"}),
    Case("np.add.outer(x, y), np.multiply.outer(x[0], y)", {"x": "matrix", "y": "vector"}),
    Case("np.maximum.outer(x, y), np.subtract.outer(x, 1.5)", {"x": "vector", "y": "vector"}),
    Case("np.less.outer(x, y), np.power.outer(x, 2)", {"x": "integer", "y": "vector"}),
)

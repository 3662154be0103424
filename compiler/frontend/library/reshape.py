"""`reshape`, `ravel`, `flatten`: a vector seen in any shape is a view, whatever its stride.

Two dimensions of a view may walk one dimension of its source, in steps that nest::

    %m = array.view %x[%c0] dims [0, 0] extents(%n, %m) steps(%m, %c1) : ... -> ...      # x.reshape(n, m)

So writes through it are seen by all analyses, which take it for any part of x. A copy is a fresh
vector, filled through such a view. What is refused is the view of an array of two or more
dimensions: a walk across the ends of rows is no `array.view`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from ....dialects import array
from ....dialects.array import constant_value
from ..emitter import Emitter
from ..values import EXTENT_MAX, Array, Expression, Scalar, Tuple, Value
from . import shapes
from .assignment import assign_view
from .cases import Case
from .fusion import allocate, extents_of, is_fortran, operand
from .indexing import as_index

WAY_OUT = "write .flatten() where a copy will do, or keep the vector and reshape that"


def reshape(e: Emitter, value: Value, shape: Sequence[Value]) -> Value:
    """`value.reshape(*shape)`: a view of a vector, a copy of a value that has no name yet."""
    x = operand(e, value)
    if isinstance(x, Scalar):
        e.fail("reshape of a number is not compiled", way_out="use np.full")
    size = shapes.product(e, extents_of(e, x))
    wanted = wanted_extents(e, shape, size)
    if isinstance(x, Expression):
        return split(e, flattened(e, x), wanted)
    return split(e, vector(e, x), wanted)


def ravel(e: Emitter, value: Value) -> Value:
    """`value.ravel()`: a view where the elements follow each other in memory, else a copy."""
    x = operand(e, value)
    if isinstance(x, Scalar | Expression):
        return flatten(e, x)
    if certainly_copies(e, x):
        return flattened(e, x)
    seen = vector(e, x)
    if array.strides_of(seen.type)[0] != 1:
        e.fail("whether ravel copies this, only the run could tell", way_out=WAY_OUT)
    return replace(seen, whole=True)


def certainly_copies(e: Emitter, x: Array) -> bool:
    """True where the type says that the elements have gaps, or lie in another order."""
    extents = shapes.extents_of(e, x.memref)
    if is_fortran(x):
        return all(shapes.never_one(e, n) for n in extents)
    return array.strides_of(x.type)[-1] not in (None, 1) and shapes.never_one(e, extents[-1])


def flatten(e: Emitter, value: Value) -> Array:
    """`value.flatten()`: always a copy."""
    x = operand(e, value)
    if isinstance(x, Scalar):
        e.fail("flatten of a number is not compiled", way_out="use np.full(1, number)")
    return flattened(e, x)


def flattened(e: Emitter, x: Array | Expression) -> Array:
    """A fresh vector of the elements in C order."""
    extents = extents_of(e, x)
    result = allocate(e, [shapes.product(e, extents)], x.dtype, "flat")
    assign_view(e, split(e, result, extents), x)
    return result


def vector(e: Emitter, x: Array) -> Array:
    """`x` as a vector: its axes of one element dropped."""
    own = shapes.extents_of(e, x.memref)
    axes = [d for d, n in enumerate(own) if constant_value(n) != 1] or [0]
    if len(axes) > 1:
        e.fail("a view of this array in another shape is not compiled", way_out=WAY_OUT)
    if x.rank == 1:
        return x
    zeros = [e.index(0)] * x.rank
    return shapes.view(e, x, zeros, axes, [own[axes[0]]], [e.index(1)])


def split(e: Emitter, x: Array, extents: Sequence[SSAValue]) -> Array:
    """The vector `x` seen with these extents, whose product is its own."""
    if len(extents) == 1:
        return replace(x, whole=True)
    axes: list[int] = []
    steps: list[SSAValue] = []
    step = e.index(1)
    for n in reversed(extents):
        unit = constant_value(n) == 1
        axes.append(-1 if unit else 0)
        steps.append(e.index(0) if unit else step)
        step = shapes.times(e, step, n)
    return shapes.view(e, x, [e.index(0)], axes[::-1], extents, steps[::-1])


def wanted_extents(e: Emitter, shape: Sequence[Value], size: SSAValue) -> list[SSAValue]:
    """The extents asked for, -1 filled in; ValueError where they do not make `size` elements."""
    if len(shape) == 1 and isinstance(shape[0], Tuple):
        shape = shape[0].items
    lengths = [as_index(e, n) for n in shape]
    unknown = [k for k, n in enumerate(lengths) if n.constant is not None and n.constant < 0]
    if len(unknown) > 1:
        e.fail("can only specify one unknown dimension")
    if not lengths:
        e.fail("reshape to a number is not compiled", way_out="use an index")
    given = [n for k, n in enumerate(lengths) if k not in unknown]
    for n in given:
        if n.low < 0:
            negative = shapes.compare(e, "slt", n.ssa, e.index(0))
            message = "mutad: the shape holds {}, and -1 must be written as a constant"
            e.insert(array.RaiseIfOp(negative, "ValueError", message, [n.ssa]))
    product = e.index(1)
    for n in given:
        product = counted(e, product, n)
    named = range(1 if 0 in unknown else 0, len(lengths))  # NumPy's words leave a -1 in front out
    words = ",".join("newaxis" if k in unknown else "{}" for k in named)
    comma = "," if len(lengths) == 1 else ""
    message = f"cannot reshape array of size {{}} into shape ({words}{comma})"
    shown = [size, *(n.ssa for n in given)]
    if not unknown:
        if not shapes.equal(product, size):
            differs = shapes.compare(e, "ne", product, size)
            e.insert(array.RaiseIfOp(differs, "ValueError", message, shown))
        return [n.ssa for n in lengths]
    if constant_value(product) == 1:
        rest = size
    else:
        rest = e.emit(array.FloorDivOp(size, product))
        differs = shapes.compare(e, "ne", shapes.times(e, rest, product), size)
        none = shapes.compare(e, "eq", product, e.index(0))
        wrong = shapes.either(e, [differs, none])
        e.insert(array.RaiseIfOp(wrong, "ValueError", message, shown))
    return [rest if k in unknown else n.ssa for k, n in enumerate(lengths)]


def counted(e: Emitter, product: SSAValue, n: Scalar) -> SSAValue:
    """product * n, OverflowError where that is no int64."""
    small = constant_value(product) is not None and n.high <= EXTENT_MAX
    if constant_value(product) == 1 or small:
        return shapes.times(e, product, n.ssa)
    return e.emit(array.CheckedMulOp(product, n.ssa))


CASES: tuple[Case, ...] = (
    Case("x.reshape(1, -1, 1)", {"x": "vector"}),
    Case("np.reshape(x, (n, 1))", {"x": "vector", "n": "count"}),
    Case("np.arange(6 * n).reshape(2, n, -1)", {"n": "count"}),
    Case("(a * 2).reshape(-1)", {"a": "matrix"}),
    Case("a.flatten() + np.ravel(a + 1)", {"a": "matrix"}),
)

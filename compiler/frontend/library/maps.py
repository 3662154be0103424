"""Elementwise results: each NumPy operation is one `array.map` into a fresh array.

`0.25 * (u[:-2] + u[2:])` is two maps and two arrays: that no array lies between them is for
`fuse-elementwise` to find out. Operands that are scalars all the way give a NumPy scalar at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..values import IR_TYPE, NUMPY_DTYPE, Array, Scalar, Static, Tuple, Value
from . import shapes, views
from .dtypes import cast, element_type_cast

Lowering = Callable[[Emitter, list[SSAValue]], SSAValue]
"""The code for one element: operands in the loop's dtype in, the result out."""

Operand = Scalar | Array


def same(_: Emitter, xs: list[SSAValue]) -> SSAValue:
    """The code of a copy."""
    return xs[0]


def operand(e: Emitter, value: Value, what: str = "an operand") -> Operand:
    """A value that an elementwise operation takes; arrays of rank 0 are read, tuples are arrays."""
    if isinstance(value, Tuple):
        from .stacking import of_tuple

        return of_tuple(e, value, None)
    if isinstance(value, Array) and value.rank == 0:
        return load(e, value, ())
    if not isinstance(value, Scalar | Array):
        e.fail(f"{what} is {describe(value)}, not an array or a number")
    return value


def viewable(e: Emitter, value: Value) -> Operand:
    """A value that is seen in another shape: an array of rank 0 stays one, whose memory the view shares."""
    return value if isinstance(value, Array) else operand(e, value)


def describe(value: Value) -> str:
    match value:
        case Scalar():
            own = value.type.removeprefix("py_")
            return f"a Python {own}" if own != value.type else f"a {NUMPY_DTYPE[own].name}"
        case Array():
            return f"an array of rank {value.rank}"
        case Tuple():
            return "a tuple"
        case Static():
            return repr(value.object)
        case _:
            return type(value).__name__.removesuffix("Value")


def load(e: Emitter, a: Array, indices: Sequence[SSAValue]) -> Scalar:
    """One element as a NumPy scalar."""
    return Scalar(a.dtype, e.emit(memref.LoadOp.get(a.memref, list(indices)), a.memref.name_hint))


def extents_of(e: Emitter, value: Operand) -> tuple[SSAValue, ...]:
    return () if isinstance(value, Scalar) else shapes.extents_of(e, value.memref)


# --- One operation ----------------------------------------------------------------------------


def elementwise(
    e: Emitter,
    operands: Sequence[Operand],
    loop: Sequence[str],
    lower: Lowering,
    message: str = shapes.BINARY_MISMATCH,
    out: Array | None = None,
) -> Operand:
    """One elementwise operation; `loop` names the dtype of each operand, then of the result."""
    *inputs, result = loop
    numbers = [v for v in operands if isinstance(v, Scalar)]
    if len(numbers) == len(operands):
        elements = [element_type_cast(e, v, t).ssa for v, t in zip(numbers, inputs, strict=True)]
        return Scalar(result, lower(e, elements))
    target = None if out is None else extents_of(e, out)
    extents = shapes.broadcast_extents(e, [extents_of(e, v) for v in operands], message, target)
    return mapped(e, [broadcast(e, v, extents) for v in operands], loop, extents, lower)


def broadcast(e: Emitter, value: Operand, extents: Sequence[SSAValue]) -> Operand:
    """`value` seen with these extents, to which it is known to broadcast."""
    return value if isinstance(value, Scalar) else views.broadcast_to(e, value, extents)


def mapped(
    e: Emitter,
    operands: Sequence[Operand],
    loop: Sequence[str],
    extents: Sequence[SSAValue],
    lower: Lowering,
    hint: str = "temporary",
) -> Array:
    """A fresh array of `lower` at each point of operands that have these extents, or are numbers."""
    arrays = [v for v in operands if isinstance(v, Array)]
    result = allocate(e, extents, loop[-1], hint, order_of(arrays))
    map_into(e, operands, loop[:-1], lower, result.memref, extents)
    return result


def converted(
    e: Emitter, value: Operand, dtype: str, extents: Sequence[SSAValue] | None = None
) -> Array:
    """`value` as an array of this dtype, and these extents: itself, a view of it, or a fresh one."""
    if isinstance(value, Array) and value.dtype != dtype:
        value = copy(e, value, dtype)
    extents = extents_of(e, value) if extents is None else extents
    if isinstance(value, Scalar):
        return mapped(e, [value], (dtype, dtype), extents, same)
    return views.broadcast_to(e, value, extents)


def copy(e: Emitter, a: Array, dtype: str | None = None) -> Array:
    """A fresh array with the elements of `a`, in another dtype if one is given."""
    dtype = dtype or a.dtype
    return mapped(e, [a], (dtype, dtype), extents_of(e, a), same, "copy")


def map_into(
    e: Emitter,
    operands: Sequence[Operand],
    dtypes: Sequence[str],
    lower: Lowering,
    destination: SSAValue,
    extents: Sequence[SSAValue],
    kind: array.MapKind = "store",
    *,
    reads_first: bool = False,
) -> None:
    """The one `array.map` of `lower` at each point, of operands converted to these dtypes.

    It `reads_first` where the destination may share memory with what is read.
    """
    numbers = {
        k: element_type_cast(e, v, t).ssa
        for k, (v, t) in enumerate(zip(operands, dtypes, strict=True))
        if isinstance(v, Scalar)
    }
    keys = [views.view_key(v.memref) if isinstance(v, Array) else None for v in operands]
    inputs = {k: v for k, v in zip(keys, operands, strict=True) if isinstance(v, Array)}
    body = Block(arg_types=[IR_TYPE[a.dtype] for a in inputs.values()])
    element = dict(zip(inputs, body.args, strict=True))
    for argument, a in zip(body.args, inputs.values(), strict=True):
        argument.name_hint = a.memref.name_hint
    with e.at(body):
        elements = [
            numbers[k] if isinstance(v, Scalar) else cast(e, element[keys[k]], v.dtype, t)
            for k, (v, t) in enumerate(zip(operands, dtypes, strict=True))
        ]
        e.insert(array.YieldOp([lower(e, elements)]))
    ins = [a.memref for a in inputs.values()]
    op = e.insert(array.MapOp(extents, ins, [destination], [kind], body))
    if reads_first and ins:
        op.attributes[array.READS_FIRST] = UnitAttr()


# --- Memory -----------------------------------------------------------------------------------


def allocate(
    e: Emitter,
    extents: Sequence[SSAValue],
    dtype: str,
    hint: str = "temporary",
    order: Sequence[int] | None = None,
) -> Array:
    """A fresh array; `order` lists its axes from the slowest to the fastest (C order by default)."""
    axes = list(range(len(extents))) if order is None else list(order)
    fresh = array.AllocOp([extents[d] for d in axes], IR_TYPE[dtype])
    result = Array(e.emit(fresh, hint), dtype)
    return replace(
        views.transposed(e, result, [axes.index(d) for d in range(len(axes))]), whole=False
    )


def order_of(values: Sequence[Array]) -> list[int] | None:
    """The axis order that NumPy's `order="K"` keeps: reversed where all inputs are Fortran-ordered."""
    ranks = [a.rank for a in values]
    if (
        not ranks
        or max(ranks) < 2
        or not all(is_fortran(a) for a in values if a.rank == max(ranks))
    ):
        return None
    return list(range(max(ranks)))[::-1]


def is_fortran(a: Array) -> bool:
    """True when the type says that the first axis, not the last, is the contiguous one."""
    strides = array.strides_of(a.type)
    return len(strides) > 1 and strides[0] == 1 and strides[-1] not in (0, 1)

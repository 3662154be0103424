"""Elementwise results: broadcast, converted, fused with the expressions they consume.

`0.25 * (u[:-2] + u[2:])` is one `Expression` over two inputs; nothing is computed until something
consumes it. Operands that are scalars all the way give a NumPy scalar at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..values import IR_TYPE, Array, Expression, Scalar, Static, Tuple, Value
from . import shapes
from .dtypes import cast, element_type_cast

Lowering = Callable[[Emitter, list[SSAValue]], SSAValue]
"""The code for one element: operands in the loop's dtype in, the result out."""

Operand = Scalar | Array | Expression


def operand(e: Emitter, value: Value, what: str = "an operand") -> Operand:
    """A value that an elementwise operation takes; arrays of rank 0 are read, tuples are arrays."""
    if isinstance(value, Tuple):
        from .creation import of_tuple  # which itself builds on this module

        return of_tuple(e, value, None)
    if isinstance(value, Array) and value.rank == 0:
        return load(e, value, ())
    if isinstance(value, Expression) and value.rank == 0:
        return Scalar(value.dtype, _evaluate(e, value))
    if not isinstance(value, Scalar | Array | Expression):
        e.fail(f"{what} is {describe(value)}, not an array or a number")
    return value


def viewable(e: Emitter, value: Value) -> Operand:
    """A value that is seen in another shape: an array of rank 0 stays one, whose memory the view shares."""
    return value if isinstance(value, Array) else operand(e, value)


def describe(value: Value) -> str:
    match value:
        case Scalar():
            return f"a scalar of type {value.type}"
        case Array() | Expression():
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


def _evaluate(e: Emitter, x: Expression) -> SSAValue:
    return x.compute(e, [load(e, a, ()).ssa for a in x.inputs])


def extents_of(e: Emitter, value: Array | Expression) -> tuple[SSAValue, ...]:
    return value.extents if isinstance(value, Expression) else shapes.extents_of(e, value.memref)


def as_expression(
    e: Emitter, value: Operand, extents: Sequence[SSAValue], dtype: str
) -> Expression:
    """`value` over the given extents (to which it is known to broadcast), converted to `dtype`."""
    if isinstance(value, Scalar):
        constant = element_type_cast(e, value, dtype).ssa
        return Expression(dtype, tuple(extents), (), lambda _e, _xs: constant)
    if isinstance(value, Expression):
        own = value.extents
        if len(own) == len(extents) and not any(
            shapes.step_along(e, n, t) != 1 for n, t in zip(own, extents, strict=True)
        ):
            return converted(value, dtype, tuple(extents))
        value = materialize(e, value)
    seen = shapes.broadcast_to(e, value, extents)
    leaf = Expression(seen.dtype, tuple(extents), (seen,), lambda _e, xs: xs[0])
    return converted(leaf, dtype, tuple(extents))


def converted(x: Expression, dtype: str, extents: tuple[SSAValue, ...]) -> Expression:
    if x.dtype == dtype:
        return Expression(dtype, extents, x.inputs, x.compute)

    def compute(e: Emitter, elements: list[SSAValue]) -> SSAValue:
        return cast(e, x.compute(e, elements), x.dtype, dtype)

    return Expression(dtype, extents, x.inputs, compute)


def elementwise(
    e: Emitter,
    operands: Sequence[Operand],
    loop: Sequence[str],
    lower: Lowering,
    message: str = shapes.BINARY_MISMATCH,
    out: Array | None = None,
) -> Scalar | Expression:
    """One elementwise operation; `loop` names the dtype of each operand, then of the result."""
    *inputs, result = loop
    if all(isinstance(v, Scalar) for v in operands):
        elements = [
            element_type_cast(e, v, t).ssa
            for v, t in zip(operands, inputs, strict=True)
            if isinstance(v, Scalar)
        ]
        return Scalar(result, lower(e, elements))
    target = None if out is None else extents_of(e, out)
    own = [() if isinstance(v, Scalar) else extents_of(e, v) for v in operands]
    extents = shapes.broadcast_extents(e, own, message, target)
    parts = [as_expression(e, v, extents, t) for v, t in zip(operands, inputs, strict=True)]
    return fuse(parts, result, extents, lower)


def fuse(
    parts: Sequence[Expression], dtype: str, extents: tuple[SSAValue, ...], lower: Lowering
) -> Expression:
    """`lower` applied to expressions of the same extents; inputs that are the same view are one."""
    inputs: list[Array] = []
    position: dict[object, int] = {}
    takes: list[list[int]] = []
    for part in parts:
        taken: list[int] = []
        for a in part.inputs:
            key = shapes.view_key(a.memref)
            if key not in position:
                position[key] = len(inputs)
                inputs.append(a)
            taken.append(position[key])
        takes.append(taken)

    def compute(e: Emitter, elements: list[SSAValue]) -> SSAValue:
        return lower(
            e,
            [
                part.compute(e, [elements[i] for i in taken])
                for part, taken in zip(parts, takes, strict=True)
            ],
        )

    return Expression(dtype, extents, tuple(inputs), compute)


# --- Into memory ------------------------------------------------------------------------------


def map_into(
    e: Emitter,
    x: Expression,
    destination: SSAValue,
    kind: array.MapKind = "store",
    *,
    reads_first: bool = False,
) -> None:
    """The one `array.map` that evaluates `x` into `destination`, a memref of the same rank.

    It `reads_first` where the destination may share memory with what is read.
    """
    body = Block(arg_types=[IR_TYPE[a.dtype] for a in x.inputs])
    for argument, a in zip(body.args, x.inputs, strict=True):
        argument.name_hint = a.memref.name_hint
    with e.at(body):
        e.insert(array.YieldOp([x.compute(e, list(body.args))]))
    ins = [a.memref for a in x.inputs]
    op = e.insert(array.MapOp(x.extents, ins, [destination], [kind], body))
    if reads_first and ins:
        op.attributes[array.READS_FIRST] = UnitAttr()


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
        shapes.transposed(e, result, [axes.index(d) for d in range(len(axes))]), whole=False
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


def materialize(e: Emitter, value: Array | Expression, hint: str = "temporary") -> Array:
    """The expression's value in an array of its own; an array is itself."""
    return value if isinstance(value, Array) else fresh(e, value, hint)


def fresh(e: Emitter, x: Expression, hint: str = "temporary") -> Array:
    result = allocate(e, x.extents, x.dtype, hint, order_of(x.inputs))
    map_into(e, x, result.memref)
    return result

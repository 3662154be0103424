"""NumPy, as the frontend sees it: operators, functions, attributes, subscripts of arrays.

One module a family of functions, each a table from the NumPy function to its lowering, with the
cases that compare it with NumPy beside it. To add a function, add a row; `FUNCTIONS` below collects
those that are not elementwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..emitter import Emitter
from ..values import (
    DTYPE_NAME,
    NUMPY_DTYPE,
    PYTHON_SCALARS,
    Array,
    BoundMethod,
    NoneValue,
    Scalar,
    Static,
    Tuple,
    Value,
)
from . import (
    bits,
    contractions,
    conversions,
    creation,
    dense,
    diagonals,
    elementwise,
    facts,
    folding,
    gather,
    indexing,
    joining,
    linalg,
    read_only,
    reductions,
    reshape,
    shapes,
    ways_out,
    written,
    written_dense,
    written_matrices,
    written_ranks,
)
from .assignment import assign_view, fill
from .cases import MAKERS, Case
from .dtypes import INTEGERS, common_dtype, dtype_of, element_type_cast
from .gather import augmented as augmented_selection
from .gather import augmented_masked, store, subscript
from .indexing import augmented, instead_of, locate
from .maps import Operand, allocate, describe, extents_of, operand
from .selection import is_fancy

Arguments = dict[str, Value]
Function = Callable[[Emitter, list[Value], Arguments], Value]


# --- Functions that are not elementwise -------------------------------------------------------


def positional(name: str, low: int, high: int, run: Callable[..., Value]) -> Function:
    """A function of `low` to `high` positional arguments and no keywords."""

    def call(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
        if kwargs:
            e.fail(*ways_out.unknown_argument(name, next(iter(kwargs))))
        if not low <= len(args) <= high:
            e.fail(f"{name} takes {low} to {high} arguments here, not {len(args)}")
        return run(e, *args)

    return call


def named(name: str, names: tuple[str, ...], required: int, run: Callable[..., Value]) -> Function:
    """A function whose arguments may be named; those left out (or None) arrive as None."""

    def call(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
        given = creation.bound(e, name, names, args, kwargs, required)
        return run(e, *(given.get(n) for n in names))

    return call


def reduction(name: str, axis: int | None = None) -> Function:
    """A reduction, over all axes or over this one where the call names none."""

    def call(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
        args, kwargs = list(args), dict(kwargs)
        if axis is not None and len(args) < 2 and "axis" not in kwargs:
            kwargs["axis"] = e.constant(axis, "py_int")
        value = args.pop(0) if args else kwargs.pop("a", None)
        if value is None:
            e.fail(f"{name}: the array is missing")
        return reductions.call(e, name, value, args, kwargs)

    return call


def family(make: Callable[..., Value], name: str) -> Function:
    return lambda e, args, kwargs: make(e, name, args, kwargs)


def where(e: Emitter, *values: Value) -> Value:
    if len(values) == 1:
        return gather.nonzero_of(e, values[0])
    return elementwise.where(e, values)


def rounded(e: Emitter, value: Value, decimals: Value | None) -> Value:
    if decimals is not None and reductions.constant_int(e, decimals, "decimals") != 0:
        e.fail(
            "rounding to decimals is not compiled", way_out="scale, round to integers, scale back"
        )
    dtype = common_dtype(e, [operand(e, value, "round")])
    whole = np.positive if dtype in INTEGERS else np.rint
    return elementwise.apply(e, whole, [value])


def as_property(name: str) -> Function:
    def call(e: Emitter, value: Value) -> Value:
        if isinstance(value, Tuple):
            return attribute(e, operand(e, value), name)
        return attribute(e, e.constant(0.0, "f64") if is_python_number(value) else value, name)

    return positional(name, 1, 1, call)


def is_python_number(value: Value) -> bool:
    return isinstance(value, Scalar) and value.type in PYTHON_SCALARS


FUNCTIONS: dict[Any, Function] = {
    **{f: reduction(name) for f, name in reductions.FUNCTIONS.items()},
    **{
        getattr(np, name): family(creation.filled, name)
        for name in ("zeros", "ones", "empty", "full")
    },
    **{
        getattr(np, name): family(creation.filled_like, name)
        for name in ("zeros_like", "ones_like", "empty_like", "full_like")
    },
    **{
        getattr(np, name): family(conversions.converted_array, name)
        for name in ("array", "asarray", "asanyarray", "ascontiguousarray", "copy")
    },
    **{getattr(np, name): family(creation.identity, name) for name in ("eye", "identity")},
    **{getattr(np, name): as_property(name) for name in ("shape", "size", "ndim")},
    np.arange: creation.arange,
    np.linspace: creation.linspace,
    np.ndarray: creation.uninitialized,
    np.stack: joining.stack,
    np.concatenate: joining.concatenate,
    np.transpose: named("transpose", ("a", "axes"), 1, creation.transpose),
    np.broadcast_to: named("broadcast_to", ("array", "shape"), 2, creation.broadcast_to),
    **dict.fromkeys((np.round, np.around), named("round", ("a", "decimals"), 1, rounded)),
    np.where: positional("where", 1, 3, where),
    np.nonzero: positional("nonzero", 1, 1, gather.nonzero_of),
    np.flatnonzero: positional("flatnonzero", 1, 1, gather.flatnonzero),
    np.ravel: named("ravel", ("a", "order"), 1, reshape.ravel),
    np.reshape: lambda e, args, kwargs: reshaped(e, args, kwargs),
    np.take: named("take", ("a", "indices", "axis"), 2, gather.take),
    np.clip: named("clip", ("a", "a_min", "a_max", "out", "min", "max"), 1, elementwise.clip_call),
    np.matmul: named("matmul", ("x1", "x2", "out"), 2, linalg.matmul),
    np.dot: named("dot", ("a", "b", "out"), 2, linalg.dot),
    np.outer: positional("outer", 2, 2, linalg.outer),
    np.vdot: positional("vdot", 2, 2, linalg.vdot),
    np.inner: positional("inner", 2, 2, contractions.inner),
    np.einsum: contractions.einsum,
    **{u.outer: linalg.outer_of(u) for u in (*elementwise.TABLE, np.power) if u.nin == 2},
    **{u.reduce: reduction(name, axis=0) for u, name in reductions.UFUNCS.items()},
    np.linalg.norm: positional("norm", 1, 1, reductions.norm),
    np.isscalar: positional("isscalar", 1, 1, facts.isscalar),
    np.isrealobj: positional("isrealobj", 1, 1, facts.is_real),
    np.iscomplexobj: positional("iscomplexobj", 1, 1, facts.is_complex),
    np.finfo: positional("finfo", 1, 1, facts.limits(np.finfo)),
    np.iinfo: positional("iinfo", 1, 1, facts.limits(np.iinfo)),
    np.result_type: lambda e, args, kwargs: facts.result_type(e, *args, **kwargs),
    np.promote_types: positional("promote_types", 2, 2, facts.of_dtypes(np.promote_types)),
    np.dtype: positional("dtype", 1, 1, facts.of_dtypes(np.dtype)),
    np.can_cast: named("can_cast", ("from_", "to", "casting"), 2, facts.of_dtypes(np.can_cast)),
    np.issubdtype: positional("issubdtype", 2, 2, facts.issubdtype),
    np.squeeze: named("squeeze", ("a", "axis"), 1, facts.squeeze),
    np.broadcast_arrays: facts.broadcast_arrays,
    np.broadcast: facts.broadcast,
    np.real: positional("real", 1, 1, facts.real_part),
    np.imag: positional("imag", 1, 1, facts.imaginary_part),
}


def is_scalar_type(function: object) -> bool:
    return isinstance(function, type) and issubclass(function, np.generic)


def is_known(function: object) -> bool:
    """True for the functions, ufuncs, scalar types and methods that `call` takes, or refuses."""
    if isinstance(function, BoundMethod) or is_scalar_type(function):
        return True
    if gather.is_at(function) or ways_out.not_along(function) is not None:
        return True
    return elementwise.is_elementwise(function) or _lookup(function) is not None


OWN: dict[object, Function] = {
    written_matrices.in_order: positional("ravel", 1, 1, reshape.in_order),
    written_matrices.main_diagonal: positional("diagonal", 1, 1, diagonals.main_diagonal),
    written_ranks.ordered_bits: positional("ordered_bits", 1, 1, bits.ordered),
    written_ranks.known_element: positional("known_element", 2, 2, bits.known_element),
    written_dense.SlogdetResult: positional("SlogdetResult", 2, 2, dense.slogdet_result),
    written_dense.eliminate: positional("eliminate", 2, 2, dense.eliminate),
    written_dense.solve_factored: positional("solve_factored", 3, 3, dense.solve),
    written_dense.log_determinant: positional("log_determinant", 2, 2, dense.log_determinant),
    written_dense.lower_factor: positional("lower_factor", 1, 1, dense.cholesky),
    written_dense.solve_triangle: positional("solve_triangle", 4, 4, dense.solve_triangle),
}
"""What `written` calls besides NumPy's functions."""


def _lookup(function: object) -> Function | None:
    try:
        return FUNCTIONS.get(function) or OWN.get(function)
    except TypeError:  # unhashable
        return None


def is_of_library(function: object) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] in ("numpy", "scipy")


def call(e: Emitter, function: object, args: list[Value], kwargs: Arguments) -> Value:
    """Call a NumPy function, ufunc or scalar type, or a method of an array."""
    if isinstance(function, BoundMethod):
        return METHODS[function.name](e, [function.receiver, *args], kwargs)
    if isinstance(function, np.ufunc) and elementwise.is_elementwise(function):
        return elementwise.call(e, function, args, kwargs)
    if gather.is_at(function):
        return gather.call_at(e, function, args, kwargs)
    if is_scalar_type(function):
        return conversions.scalar_type(e, function, args, kwargs)
    found = _lookup(function)
    if found is None:
        name = getattr(function, "__name__", None) or repr(function)
        if " object at 0x" in name:
            name = f"an object of class {type(function).__name__}"
        way_out = ways_out.of_function(function)
        if hasattr(function, "__wrapped__") and not (way_out or is_of_library(function)):
            e.fail(
                f"{name} is a {type(function).__name__}, which may do more than call what it wraps",
                f"bind {name}.__wrapped__ to a global name, and call that for each element or row",
            )
        e.fail(f"{name} is not compiled", way_out)
    result = found(e, args, kwargs)
    if isinstance(result, Scalar) and result.constant is None and function in FUNCTIONS:
        said = folding.said_by_numpy(e, function, args, kwargs)
        return result if said is None or said.type != result.type else said
    return result


# --- Attributes and methods -------------------------------------------------------------------


def copied(e: Emitter, value: Value) -> Value:
    """`value.copy()`: in C order, other than `np.copy`."""
    if not isinstance(value, Array):
        return value
    result = allocate(e, extents_of(e, value), value.dtype, "copy")
    assign_view(e, result, value)
    return result


def filled(e: Emitter, value: Value, element: Value) -> Value:
    """`value.fill(element)`."""
    if not isinstance(value, Array):
        e.fail("fill is a method of arrays")
    fill(e, value, element)
    return NoneValue()


def item(e: Emitter, value: Value, *at: Value) -> Value:
    """`value.item()`: the Python number of a NumPy scalar, or of an element of an array."""
    given = at[0].items if len(at) == 1 and isinstance(at[0], Tuple) else at
    scalar = operand(e, value)
    if isinstance(scalar, Array):
        if len(given) in (0, 1) and scalar.rank != len(given):
            if not given:
                facts.require_one_element(e, scalar)
            scalar, given = reshape.flatten(e, scalar), given or (e.constant(0, "py_int"),)
        scalar = indexing.subscript(e, scalar, given)
    elif given and any(not isinstance(i, Scalar) or i.constant not in (0, -1) for i in given):
        e.fail("index of a number", way_out="write item()")
    if not isinstance(scalar, Scalar):
        e.fail("incorrect number of indices for array")
    kind = NUMPY_DTYPE[dtype_of(scalar)].kind
    return element_type_cast(e, scalar, {"b": "py_bool", "f": "py_float"}.get(kind, "py_int"))


def reshaped(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
    """`value.reshape(*shape)`."""
    order = kwargs.pop("order", None)
    if kwargs or len(args) < 2:
        e.fail("reshape takes a shape, and no keyword but order=")
    return reshape.reshape(e, args[0], args[1:], order)


def transposed(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
    """`value.transpose(*axes)`."""
    if kwargs:
        e.fail("transpose takes no keywords")
    value, *axes = args
    given = axes[0] if len(axes) == 1 else Tuple(tuple(axes)) if axes else None
    return creation.transpose(e, value, given)


METHODS: dict[str, Function] = {
    **{name: reduction(name) for name in sorted(reductions.METHODS)},
    "astype": conversions.astype,
    "clip": named("clip", ("a", "min", "max", "out"), 1, elementwise.clip_call),
    "copy": positional("copy", 1, 1, copied),
    "dot": named("dot", ("a", "b", "out"), 2, linalg.dot),
    "fill": named("fill", ("a", "value"), 2, filled),
    "item": positional("item", 1, 33, item),
    "ravel": named("ravel", ("a", "order"), 1, reshape.ravel),
    "flatten": named("flatten", ("a", "order"), 1, reshape.flatten),
    "reshape": reshaped,
    "nonzero": positional("nonzero", 1, 1, gather.nonzero_of),
    "take": named("take", ("a", "indices", "axis"), 2, gather.take),
    "transpose": transposed,
    "squeeze": named("squeeze", ("a", "axis"), 1, facts.squeeze),
    "conj": positional("conj", 1, 1, facts.real_part),
    "conjugate": positional("conjugate", 1, 1, facts.real_part),
}
"""Methods of arrays and NumPy scalars: functions whose first argument is the receiver."""


def attribute(e: Emitter, value: Value, name: str) -> Value:
    """`value.name` for an array or a NumPy scalar; `.real` and `.imag` of any number."""
    if isinstance(value, Scalar) and name in ("real", "imag"):
        return ATTRIBUTES[name](e, value)
    if not isinstance(value, Operand) or is_python_number(value):
        kind = tuple if isinstance(value, Tuple) else ways_out.class_of(value)
        if kind is not None and not hasattr(kind, name):
            way_out = f"use np.{name}(x)" if is_known(getattr(np, name, None)) else None
            e.fail(f"{kind.__name__!r} object has no attribute {name!r}", way_out)
        e.fail(f"attribute .{name} of {describe(value)} is not compiled")
    if name in METHODS or name in written.METHODS:
        return Static(BoundMethod(value, name))
    if name not in ATTRIBUTES:
        way_out = ways_out.of_attribute(name, known=is_known(getattr(np, name, None)))
        if not hasattr(ways_out.class_of(value), name):
            known = (*METHODS, *written.METHODS, *ATTRIBUTES)
            way_out = way_out or ways_out.meant(name, known)
            e.fail(f"{ways_out.kind_of(value)} object has no attribute {name!r}", way_out)
        of = "arrays" if isinstance(value, Array) else describe(value)
        e.fail(f"attribute .{name} of {of} is not compiled", way_out)
    return ATTRIBUTES[name](e, value)


def extents(e: Emitter, value: Operand) -> tuple[SSAValue, ...]:
    return () if isinstance(value, Scalar) else extents_of(e, value)


def shape_of(e: Emitter, value: Operand) -> Value:
    return shapes.shape_tuple(extents(e, value))


def size_of(e: Emitter, value: Operand) -> Value:
    return shapes.length(shapes.product(e, extents(e, value)))


def rank_of(e: Emitter, value: Operand) -> Value:
    return e.constant(0 if isinstance(value, Scalar) else value.rank, "py_int")


def dtype_object(_: Emitter, value: Operand) -> Value:
    return Static(NUMPY_DTYPE[dtype_of(value)])


def reversed_axes(e: Emitter, value: Operand) -> Value:
    return creation.transpose(e, value, None)


ATTRIBUTES: dict[str, Callable[[Emitter, Operand], Value]] = {
    "shape": shape_of,
    "size": size_of,
    "ndim": rank_of,
    "dtype": dtype_object,
    "itemsize": facts.item_size,
    "nbytes": facts.bytes_in_all,
    "strides": facts.strides,
    "T": reversed_axes,
    "real": facts.real_part,
    "imag": facts.imaginary_part,
}


# --- Operators --------------------------------------------------------------------------------


def binary(e: Emitter, operator: str, left: Value, right: Value) -> Value:
    """`left <operator> right`, the operator named by its class in `ast`."""
    if operator == "MatMult":
        return linalg.matmul(e, left, right)
    return elementwise.apply(e, elementwise.OPERATORS[operator], [left, right], operator=True)


def unary(e: Emitter, operator: str, value: Value) -> Value:
    """`-x`, `+x`, `~x`."""
    return elementwise.apply(e, elementwise.OPERATORS[operator], [value])


def compare(e: Emitter, operator: str, left: Value, right: Value) -> Value:
    """`left < right` and the others."""
    return elementwise.apply(e, elementwise.OPERATORS[operator], [left, right])


CASES: tuple[Case, ...] = (
    *elementwise.CASES,
    *indexing.CASES,
    *gather.CASES,
    *reshape.CASES,
    *reductions.CASES,
    *linalg.CASES,
    *contractions.CASES,
    *creation.CASES,
    *joining.CASES,
    *facts.CASES,
    *written.CASES,
)

__all__ = [
    "CASES",
    "DTYPE_NAME",
    "MAKERS",
    "Case",
    "assign_view",
    "attribute",
    "augmented",
    "augmented_masked",
    "augmented_selection",
    "binary",
    "call",
    "compare",
    "element_type_cast",
    "instead_of",
    "is_fancy",
    "is_known",
    "locate",
    "read_only",
    "shapes",
    "store",
    "subscript",
    "unary",
]

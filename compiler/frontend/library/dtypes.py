"""Dtypes: what NumPy would compute in, conversions between our scalar types, `dtype=` arguments."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ....dialects import array
from ...scalar_types import RANGE, SIGNED, UNSIGNED
from ..emitter import Emitter
from ..values import (
    DTYPE_NAME,
    INT64_MAX,
    INT64_MIN,
    IR_TYPE,
    NUMPY_DTYPE,
    PYTHON_SCALARS,
    Array,
    NoneValue,
    Scalar,
    Static,
    Value,
)

FLOATS = ("f32", "f64")
INTEGERS = (*SIGNED, *UNSIGNED)
SUPPORTED = "bool, int8 to int64, uint8 to uint64, float32 and float64"

NUMPY_FORM = {"py_bool": "b1", "py_int": "i64", "py_float": "f64"}
"""The NumPy dtype of a Python scalar on its own."""

_WEAK: dict[str, Any] = {"py_int": int, "py_float": float, "py_bool": np.dtype(np.bool_)}
_SAMPLE: dict[str, Any] = {"py_int": 0, "py_float": 0.0, "py_bool": False}


def dtype_of(value: Scalar | Array) -> str:
    """The dtype name, Python scalars as NumPy would take them alone."""
    name = value.type if isinstance(value, Scalar) else value.dtype
    return NUMPY_FORM.get(name, name)


def resolution_dtype(value: Scalar | Array) -> Any:
    """What `ufunc.resolve_dtypes` takes for this operand: weak Python types stay weak (NEP 50)."""
    name = value.type if isinstance(value, Scalar) else value.dtype
    return _WEAK[name] if name in _WEAK else NUMPY_DTYPE[name]


def resolve(
    e: Emitter,
    ufunc: np.ufunc,
    operands: Sequence[Scalar | Array],
    out: str | None = None,
) -> tuple[str, ...]:
    """The dtypes of the loop that NumPy would run: one for each input, then the output's."""
    given = [resolution_dtype(v) for v in operands]
    last = None if out is None else NUMPY_DTYPE[out]
    try:
        found = ufunc.resolve_dtypes((*given, last))
    except TypeError as error:
        e.fail(str(error), way_out="convert the operands, or assign with x[...] = ...")
    names = [DTYPE_NAME.get(d) for d in found]
    if None in names:
        shown = ", ".join(str(d) for d in found)
        e.fail(
            f"{ufunc.__name__} would compute with dtypes ({shown}); mutad has {SUPPORTED}",
            way_out="convert the operands, as in x.astype(np.float32)",
        )
    return tuple(n for n in names if n is not None)


def common_dtype(e: Emitter, values: Sequence[Scalar | Array]) -> str:
    """`np.result_type`."""
    samples: list[Any] = []
    for v in values:
        name = v.type if isinstance(v, Scalar) else v.dtype
        samples.append(_SAMPLE[name] if name in _SAMPLE else NUMPY_DTYPE[name])
    found = np.result_type(*samples)
    if found not in DTYPE_NAME:
        e.fail(f"the result would have dtype {found}; mutad has {SUPPORTED}")
    return DTYPE_NAME[found]


def strong(e: Emitter, value: Scalar | Array) -> Scalar | Array:
    """The value; a Python number as the array that NumPy makes of it."""
    return element_type_cast(e, value, dtype_of(value)) if isinstance(value, Scalar) else value


def dtype_argument(e: Emitter, value: Value | None, default: str) -> str:
    """The dtype that a `dtype=` argument names."""
    if value is None or isinstance(value, NoneValue):
        return default
    name = None
    if isinstance(value, Static):
        with suppress(TypeError):
            name = DTYPE_NAME.get(np.dtype(value.object))
    if name is None:
        e.fail("this dtype is not supported", way_out=f"mutad has {SUPPORTED}")
    return name


# --- Conversions ------------------------------------------------------------------------------


def cast(e: Emitter, value: SSAValue, from_: str, to: str) -> SSAValue:
    """One element converted as `astype` does it; nothing is emitted between equal IR types."""
    return e.cast(value, from_, to)


def element_type_cast(e: Emitter, scalar: Scalar, to: str) -> Scalar:
    """A scalar converted to another of our types; weak Python scalars raise where NumPy does.

    `np.int32(2**40)` raises OverflowError, `int64_array[0] = math.nan` ValueError; between NumPy
    scalars everything goes, as in `astype`.
    """
    if scalar.type == to:
        return scalar
    if scalar.constant is not None:
        return _constant_cast(e, scalar, to)
    if scalar.type == "py_int" and to in INTEGERS:
        _check_range(e, scalar, to)
    if scalar.type == "py_float" and (to in INTEGERS or to == "py_int"):
        _check_whole(e, scalar.ssa)
        if to not in ("i64", "py_int"):
            _check_range(e, element_type_cast(e, scalar, "py_int"), to)
    low, high = (scalar.low, scalar.high) if to == "py_int" else RANGE["py_int"]
    if scalar.type in RANGE and scalar.type != "py_int":
        low, high = RANGE[scalar.type]
    ssa = cast(e, scalar.ssa, scalar.type, to)
    return Scalar(to, ssa, None, max(low, INT64_MIN), min(high, INT64_MAX))


def fits(one: str, other: str) -> bool:
    """Whether all integers of one type are integers of the other."""
    return RANGE[other][0] <= RANGE[one][0] and RANGE[one][1] <= RANGE[other][1]


def stored(e: Emitter, scalar: Scalar, to: str) -> Scalar:
    """What `a[i] = scalar` stores in an array of dtype `to`.

    Other than in `astype`, what does not fit integers with a sign raises, as of a Python number.
    """
    if to in SIGNED and scalar.type in FLOATS:
        scalar = element_type_cast(e, scalar, "py_float")
    elif to in SIGNED and scalar.type in INTEGERS and not fits(scalar.type, to):
        scalar = element_type_cast(e, scalar, "py_int")
    return element_type_cast(e, scalar, to)


def _constant_cast(e: Emitter, scalar: Scalar, to: str) -> Scalar:
    value = scalar.constant
    assert value is not None
    target = NUMPY_FORM.get(to, to)
    if scalar.type in PYTHON_SCALARS and target in INTEGERS:
        if isinstance(value, float) and not np.isfinite(value):
            e.fail(f"cannot convert float {value} to integer")
        low, high = RANGE[target]
        if not low <= int(value) <= high:
            e.fail(f"Python integer {int(value)} out of bounds for {NUMPY_DTYPE[target].name}")
        return e.constant(int(value), to)
    source = NUMPY_DTYPE[NUMPY_FORM.get(scalar.type, scalar.type)]
    with np.errstate(all="ignore"):
        return e.constant(np.asarray(value, source).astype(NUMPY_DTYPE[target]).item(), to)


def _check_range(e: Emitter, scalar: Scalar, to: str) -> None:
    low, high = RANGE[to]
    beyond = [
        e.emit(arith.CmpiOp(scalar.ssa, e.index(bound), predicate))
        for bound, predicate, inside in (
            (low, "slt", low <= scalar.low),
            (high, "sgt", scalar.high <= high),
        )
        if not inside
    ]
    if beyond:
        message = f"Python integer {{}} out of bounds for {NUMPY_DTYPE[to].name}"
        wrong = beyond[0] if len(beyond) == 1 else e.emit(arith.OrIOp(beyond[0], beyond[1]))
        e.insert(array.RaiseIfOp(wrong, "OverflowError", message, [scalar.ssa]))


def _check_whole(e: Emitter, value: SSAValue) -> None:
    nan = e.emit(arith.CmpfOp(value, value, "uno"))
    e.insert(array.RaiseIfOp(nan, "ValueError", "cannot convert float NaN to integer"))
    size = e.emit(math.AbsFOp(value))
    infinite = e.emit(arith.CmpfOp(size, e.constant(float("inf"), "f64").ssa, "oeq"))
    e.insert(array.RaiseIfOp(infinite, "OverflowError", "cannot convert float infinity to integer"))
    large = e.emit(arith.CmpfOp(size, e.constant(2.0**63, "f64").ssa, "oge"))
    e.insert(array.RaiseIfOp(large, "OverflowError", "Python int too large to convert to C long"))


def truth(e: Emitter, value: SSAValue, dtype: str) -> SSAValue:
    """`bool(value)` of one element: true when not zero (NaN is true)."""
    if IR_TYPE[dtype] == i1:
        return value
    zero = e.constant(0, dtype).ssa
    if dtype in FLOATS or dtype == "py_float":
        return e.emit(arith.CmpfOp(value, zero, "une"))
    return e.emit(arith.CmpiOp(value, zero, "ne"))

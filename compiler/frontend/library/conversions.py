"""np.array and np.asarray of arrays, astype, and calls of scalar types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..emitter import Emitter
from ..values import (
    Array,
    NoneValue,
    Scalar,
    Static,
    Tuple,
    Value,
)
from . import reshape
from .assignment import assign_view
from .creation import FIRST, Arguments, bound
from .dtypes import (
    SUPPORTED,
    dtype_argument,
    dtype_of,
    element_type_cast,
)
from .maps import allocate, copy, operand
from .stacking import of_tuple


def converted_array(e: Emitter, name: str, args: Sequence[Value], kwargs: Arguments) -> Array:
    """`np.array`, `np.copy`, `np.asarray`, `np.ascontiguousarray` of arrays, numbers and tuples."""
    kwargs = dict(kwargs)
    asked = kwargs.pop("copy", None) if name in ("array", "asarray", "asanyarray") else None
    if asked is not None:
        name = "array" if may_copy(e, asked) is True else "asarray"
    if isinstance(kwargs.get("order"), NoneValue):
        del kwargs["order"]
    given = bound(e, name, [FIRST.get(name, "a"), "dtype"], args, kwargs)
    value = next(iter(given.values()))
    if asked is not None and may_copy(e, asked) is False:
        require_no_copy(e, value, given.get("dtype"))
    if isinstance(value, Tuple):
        return of_tuple(e, value, given.get("dtype"))
    if isinstance(value, Scalar):
        dtype = dtype_argument(e, given.get("dtype"), dtype_of(value))
        result = allocate(e, [], dtype, name)
        assign_view(e, result, value)
        return result
    if not isinstance(value, Array):
        e.fail(
            f"{name} takes arrays, numbers, and lists and tuples of them", "make a list: list(...)"
        )
    dtype = dtype_argument(e, given.get("dtype"), value.dtype)
    if name in ("asarray", "asanyarray") and dtype == value.dtype:
        return value
    if name == "ascontiguousarray":
        return reshape.contiguous(e, value, dtype)
    return copy(e, value, dtype)


def may_copy(e: Emitter, asked: Value) -> bool | None:
    """What `copy=` says: always, never, or (None) where it must be."""
    if isinstance(asked, NoneValue):
        return None
    if not isinstance(asked, Scalar) or asked.constant is None:
        e.fail("copy= must be known while compiling", way_out="write True, False or None")
    return bool(asked.constant)


def require_no_copy(e: Emitter, value: Value, dtype: Value | None) -> None:
    """Refuse `copy=False` where NumPy would have to copy."""
    is_array = isinstance(value, Array)
    if not is_array or dtype_argument(e, dtype, value.dtype) != value.dtype:
        e.fail("a copy cannot be avoided here", way_out="leave copy=False out")


def astype(e: Emitter, args: Sequence[Value], kwargs: Arguments) -> Value:
    """`value.astype(dtype)`, the value first: always a copy."""
    given = bound(e, "astype", ["a", "dtype"], args, kwargs, 2)
    source = operand(e, given["a"])
    dtype = dtype_argument(e, given["dtype"], "f64")
    if isinstance(source, Scalar):
        return element_type_cast(e, source, dtype)
    return copy(e, source, dtype)


def scalar_type(e: Emitter, type_: Any, args: Sequence[Value], kwargs: Arguments) -> Value:
    """`np.float64(x)` and the other scalar types; an array of that dtype is itself."""
    dtype = dtype_argument(e, Static(type_), "f64")
    if kwargs or len(args) > 1:
        e.fail(f"np.{np.dtype(type_).name} takes one argument", way_out=f"mutad has {SUPPORTED}")
    if not args:
        return e.constant(0, dtype)
    value = operand(e, args[0])
    if isinstance(value, Scalar):
        return replace(element_type_cast(e, value, dtype), python=None)
    return value if value.dtype == dtype else copy(e, value, dtype)

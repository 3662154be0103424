"""What NumPy's functions make of numbers that are known while compiling: NumPy says it itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..emitter import Emitter
from ..values import (
    DTYPE_NAME,
    INT64_MAX,
    NUMPY_DTYPE,
    PYTHON_SCALARS,
    NoneValue,
    Scalar,
    Static,
    Tuple,
    Value,
)


def said_by_numpy(
    e: Emitter, function: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Scalar | None:
    """The number that a function of NumPy makes of arguments that are known; None where it makes none."""
    try:
        given = [python_value(v) for v in args]
        named = {name: python_value(v) for name, v in kwargs.items()}
        with np.errstate(all="ignore"):
            found = function(*given, **named)
    except Exception:  # unknown, or raised when it runs
        return None
    if not isinstance(found, np.generic) or found.dtype not in DTYPE_NAME:
        return None
    value, name = found.item(), DTYPE_NAME[found.dtype]
    return None if isinstance(value, int) and value > INT64_MAX else e.constant(value, name)


def python_value(value: Value) -> Any:
    """What a known value is in Python; LookupError where it is not known."""
    match value:
        case Scalar(kind, _, constant) if constant is not None:
            return constant if kind in PYTHON_SCALARS else NUMPY_DTYPE[kind].type(constant)
        case Tuple(items, None):
            return tuple(map(python_value, items))
        case NoneValue():
            return None
        case Static(np.dtype() | type() as found):
            return found
        case _:
            raise LookupError

"""Assignment to attributes of arrays and numbers. What there is, and what it raises, Python and NumPy say."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..emitter import Emitter
from ..values import NUMPY_DTYPE, Array, Scalar, Tuple, Value
from . import reshape
from .assignment import assign_view

PYTHON: dict[str, Any] = {"py_bool": False, "py_int": 0, "py_float": 0.0}


def why_unassignable(base: Value, name: str) -> str | None:
    """The words of the AttributeError that any assignment to an attribute raises; None where not all do."""
    owner = like(base)
    try:
        setattr(owner, name, object())
    except AttributeError as error:
        return str(error)
    except Exception:  # what is assigned is no shape, number or dtype
        return None
    return None


def like(base: Value) -> Any:
    """Something of the class that a value has when the program runs."""
    match base:
        case Array(dtype=dtype):
            return np.zeros([1] * base.rank, NUMPY_DTYPE[dtype])
        case Scalar(type=kind):
            return PYTHON[kind] if kind in PYTHON else NUMPY_DTYPE[kind].type()
        case Tuple(items, type() as cls):
            return tuple.__new__(cls, (None,) * len(items))
        case _:
            return None


def set_attribute(e: Emitter, base: Array, name: str, value: Value) -> Array:
    """`base.name = value`, of an attribute that can be assigned; the array that it is then."""
    if name == "shape":
        return reshape.in_place(e, base, value)
    if name != "real":
        way_out = (
            "make a new array: y = x.astype(...)"
            if name == "dtype"
            else "write elements: x[...] = ..."
        )
        e.fail(f"assignment to `.{name}` of an array is not compiled", way_out)
    assign_view(e, base, value)
    return base

"""The kinds of arguments that a function's annotations promise, for questions asked before any call.

    def heat(u: "f64[:, :]", kappa: float, steps: int = 100): ...

An array is written as in Numba or Cython: its dtype, and a colon for each dimension; it is taken to be
contiguous. A parameter without annotation has the kind of its default.
"""

from __future__ import annotations

import re
import types
from typing import Any, get_args, get_origin

import numpy as np

from . import keys

_ARRAY = re.compile(r"(?:np\.|numpy\.)?(\w+)\[\s*(:(?:\s*,\s*:)*)\s*,?\s*\]\Z")
_DTYPES = {
    **{name: name for name in keys.DTYPES.values()},
    **{np.dtype(t).name: name for t, name in keys.DTYPES.items()},
}
_SCALARS: dict[Any, str] = {
    float: "py_float",
    int: "py_int",
    bool: "py_bool",
    None: "None",
    type(None): "None",
    **{kind: name for name, kind in keys.NUMPY_SCALARS.items()},
}


def annotated_keys(
    function: types.FunctionType, parameters: tuple[str, ...], defaults: tuple[Any, ...]
) -> tuple[str, ...]:
    """The key of each parameter; ValueError where neither annotation nor default tells it."""
    fallback = dict(zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True))
    found: list[str] = []
    for name in parameters:
        if name in function.__annotations__:
            annotation = evaluated(function.__annotations__[name], function)
            key = key_of(annotation)
            if key is None:
                raise ValueError(
                    f"the annotation {annotation!r} of parameter {name!r} does not tell its kind: write "
                    'float, int, bool, a NumPy scalar type, or an array as "f64[:, :]"'
                )
            found.append(key)
        elif name in fallback:
            found.append(keys.argument_key(fallback[name], name))
        else:
            raise ValueError(f"parameter {name!r} has no annotation and no default")
    return tuple(found)


def evaluated(annotation: Any, function: types.FunctionType) -> Any:
    """What a string annotation means: an array in our notation as it is, else its value."""
    while isinstance(annotation, str) and _ARRAY.match(annotation) is None:
        try:
            annotation = eval(annotation, function.__globals__)
        except Exception:
            return annotation
    return annotation


def key_of(annotation: Any) -> str | None:
    """The key of arguments of this annotation; None where it does not tell."""
    if isinstance(annotation, str):
        match = _ARRAY.match(annotation)
        dtype = None if match is None else _DTYPES.get(match[1])
        if match is None or dtype is None:
            return None
        return f"{dtype}[{','.join('?' * match[2].count(':'))}]C"
    if get_origin(annotation) is tuple:
        items = [key_of(item) for item in get_args(annotation)]
        known = [item for item in items if item is not None]
        return f"({','.join(known)})" if len(known) == len(items) else None
    try:
        return _SCALARS.get(annotation)
    except TypeError:
        return None

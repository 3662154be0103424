"""The kinds of arguments that a function's annotations promise, for questions asked before any call.

    def heat(u: "f64[:, :]", kappa: float, steps: int = 100): ...

An array is written as in Numba or Cython, its dtype and a colon for each dimension:

    f64[:, :]      C-contiguous, as f64[:, ::1]
    f64[::1, :]    Fortran order
    f64[::, ::]    any strides

or with jaxtyping, `Float64[np.ndarray, "n m 3"]`, C-contiguous, its extents named or numbers. A scalar is a
type, `float` or `np.float32`, or what a NumPy scalar is called, "f32". A parameter without annotation has the
kind of its default. jaxtyping is not imported: an annotation of it says in attributes what it is.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

import numpy as np

from . import keys

_ARRAY = re.compile(r"(?:np\.|numpy\.)?(\w+)\[\s*(:[:1\s,]*)\]\Z")
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
    **{name: name for name in keys.NUMPY_SCALARS},
}

Extent = str | int | None
"""A name, which equal extents share; a number; or nothing is said."""


@dataclass(frozen=True)
class Kind:
    """What an annotation tells of an argument: its key, and of an array the extents that it names."""

    key: str
    extents: tuple[Extent, ...] = ()


class Untold(ValueError):
    """An annotation does not tell the kind of its parameter, or there is none."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class NoKind(TypeError):
    """The default of a parameter is of no kind that is compiled."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


def annotated_keys(
    function: types.FunctionType, parameters: tuple[str, ...], defaults: tuple[Any, ...]
) -> tuple[str, ...]:
    """The key of each parameter; ValueError where neither annotation nor default tells it."""
    return tuple(kind.key for kind in annotated_kinds(function, parameters, defaults))


def annotated_kinds(
    function: types.FunctionType,
    parameters: tuple[str, ...],
    defaults: tuple[Any, ...],
    instead: Mapping[str, str] | None = None,
) -> tuple[Kind, ...]:
    """The kind of each parameter; `Untold` where neither annotation nor default tells it.

    What annotations are given `instead` stand in the place of the function's own.
    """
    fallback = dict(zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True))
    annotations = {**function.__annotations__, **(instead or {})}
    found: list[Kind] = []
    for name in parameters:
        if name in annotations:
            annotation = evaluated(annotations[name], function)
            try:
                found.append(kind_of(annotation))
            except ValueError as error:
                message = (
                    f"the annotation {annotation!r} of parameter {name!r} does not tell its kind"
                )
                raise Untold(name, f"{message}: {error}") from None
        elif name in fallback:
            try:
                found.append(Kind(keys.argument_key(fallback[name], name)))
            except TypeError as error:
                raise NoKind(name, str(error)) from None
        else:
            raise Untold(name, f"parameter {name!r} has no annotation and no default")
    return tuple(found)


def evaluated(annotation: Any, function: types.FunctionType) -> Any:
    """What a string annotation means: an array in our notation as it is, else its value."""
    while isinstance(annotation, str) and _ARRAY.match(annotation) is None:
        try:
            annotation = eval(annotation, function.__globals__)
        except Exception:
            return annotation
    return annotation


def kind_of(annotation: Any) -> Kind:
    """The kind of arguments of this annotation; ValueError, with what to write, where it does not tell."""
    if isinstance(getattr(annotation, "dim_str", None), str):
        return _of_jaxtyping(annotation)
    key = _key_of(annotation)
    if key is None:
        raise ValueError(
            'write float, int, bool, a NumPy scalar type, or an array as "f64[:, :]" or as jaxtyping\'s '
            'Float64[np.ndarray, "n m"]'
        )
    return Kind(key)


def _key_of(annotation: Any) -> str | None:
    if isinstance(annotation, str):
        return _DTYPES.get(annotation) or _array_key(annotation)
    if get_origin(annotation) is tuple:
        items = [_key_of(item) for item in get_args(annotation)]
        known = [item for item in items if item is not None]
        return f"({','.join(known)})" if len(known) == len(items) else None
    try:
        return _SCALARS.get(annotation)
    except TypeError:
        return None


def _array_key(text: str) -> str | None:
    """The key of an array in our notation; None where it is none."""
    match = _ARRAY.match(text)
    dtype = None if match is None else _DTYPES.get(match[1])
    if match is None or dtype is None:
        return None
    axes = re.sub(r"\s", "", match[2]).removesuffix(",").split(",")
    layout = _layout(axes)
    return None if layout is None else f"{dtype}[{','.join('?' * len(axes))}]{layout}"


def _layout(axes: list[str]) -> str | None:
    """The layout class of axes `:`, `::1` (it is contiguous) and `::` (its stride may be any)."""
    if set(axes) <= {":", "::"}:
        return "S" if "::" in axes else "C"
    if not set(axes) <= {":", "::1"} or axes.count("::1") != 1:
        return None
    return {0: "F", len(axes) - 1: "C"}.get(axes.index("::1"))


def _of_jaxtyping(annotation: Any) -> Kind:
    """The kind of `Float64[np.ndarray, "n m"]`: arrays are contiguous."""
    if annotation.array_type is not np.ndarray:
        raise ValueError('write it of NumPy\'s arrays, as in Float64[np.ndarray, "n m"]')
    named = {_DTYPES[name]: name for name in annotation.dtypes if name in _DTYPES}
    if len(named) != 1:
        several = ", ".join(sorted(named.values()))
        what = f"one of {several}" if named else "a dtype that is compiled"
        raise ValueError(f'write {what}, as in Float64[np.ndarray, "n m"]')
    extents = tuple(_extent(word) for word in annotation.dim_str.split())
    marks = ",".join("1" if n == 1 else "?" for n in extents)
    return Kind(f"{next(iter(named))}[{marks}]C", extents)


def _extent(word: str) -> Extent:
    """What a word of jaxtyping's says of an extent: `n`, `3`, `rows=3`; `_` and `_n` say nothing."""
    if (number := word.partition("=")[2] or word).isdecimal():
        return int(number)
    if not word.isidentifier():
        raise ValueError(f"write names and numbers for the extents, not {word!r}")
    return None if word.startswith("_") else word

"""Lists of numbers as arrays, and back.

Compiled code gets a list of numbers as one array, a list of tuples of numbers as one for each number of a
tuple, whatever the length::

    [1.0, 2.0, 3.0]         "py_float"             array([1., 2., 3.])
    [(1, 0.5), (2, 0.25)]   ("py_int", "py_float") array([1, 2]), array([0.5, 0.25])

The *form* says what one item is. Items of two types have that which a variable would have where paths
meet: an int among floats is a float.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Form = str | tuple["Form", ...]

_NAMES: dict[type, str] = {
    float: "py_float",
    int: "py_int",
    bool: "py_bool",
    np.float64: "f64",
    np.float32: "f32",
    np.int64: "i64",
    np.int32: "i32",
    np.bool_: "b1",
}
_FORMS: dict[frozenset[type], str] = {
    **{frozenset((kind,)): name for kind, name in _NAMES.items()},
    frozenset((int, float)): "py_float",
    frozenset((float, np.float64)): "f64",
}
"""By the types among the items."""
_DTYPES = {
    "py_float": np.float64, "py_int": np.int64, "py_bool": np.bool_,
    "f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "b1": np.bool_,
}  # fmt: skip


def columns(items: Sequence[Any]) -> tuple[Form, list[Any]] | None:
    """The form of the items, and the arrays; None where they are no numbers or tuples of numbers."""
    kinds = frozenset(map(type, items))
    form = _FORMS.get(kinds)
    if form is not None:
        try:
            return form, [np.array(items, _DTYPES[form])]
        except OverflowError:
            raise OverflowError(
                "an item of a list is a Python int too large for 64 bits, which compiled code computes with"
            ) from None
    if kinds != frozenset((tuple,)) or len(set(map(len, items))) != 1 or not items[0]:
        return None
    parts = [columns(column) for column in zip(*items, strict=True)]
    if any(part is None for part in parts):
        return None
    found = [part for part in parts if part is not None]
    return tuple(form for form, _ in found), [array for _, arrays in found for array in arrays]


def width(form: Form | None) -> int:
    """How many arrays there are for a list of this form; None is that of no items."""
    if form is None:
        return 0
    return 1 if isinstance(form, str) else sum(map(width, form))


def types_of(form: Form | None) -> Iterator[str]:
    """What the numbers in the arrays are."""
    if isinstance(form, str):
        yield form
    elif form is not None:
        for one in form:
            yield from types_of(one)


def items_of(form: Form | None, arrays: Iterator[Any]) -> list[Any]:
    """The items of a list again."""
    if form is None:
        return []
    if isinstance(form, str):
        array = next(arrays)
        return array.tolist() if form.startswith("py_") else list(array)
    return list(zip(*[items_of(one, arrays) for one in form], strict=True))


def parts_of(form: Form | None, items: Sequence[Any]) -> Iterator[Any]:
    """The arrays of a list of this form, which may be a list of cotangents."""
    if isinstance(form, str):
        yield np.array(items, _DTYPES[form])
    elif form is not None:
        parts: Any = zip(*items, strict=True) if items else [()] * len(form)
        for one, part in zip(form, parts, strict=True):
            yield from parts_of(one, part)


def replace(target: list[Any], items: list[Any]) -> None:
    """Give a list these items; what is there already and equal stays, an int among floats, too."""
    kinds = set(map(type, items))
    if len(kinds) == 1 and set(map(type, target)) <= kinds:
        target[:] = items
        return
    kept = [old if is_equal(old, new) else new for old, new in zip(target, items, strict=False)]
    target[:] = kept + items[len(kept) :]


def is_equal(old: Any, new: Any) -> bool:
    """True for numbers that are the same but perhaps for their types, and for tuples of such."""
    if isinstance(old, tuple) or isinstance(new, tuple):
        return type(old) is type(new) and all(map(is_equal, old, new))
    return repr(old) == repr(new) if type(old) is type(new) else old == new

"""The types of scalars and of array elements: what each is called, and what two of them have in common.

A Python scalar is `py_bool`, `py_int` or `py_float`; one of NumPy's has the name of its dtype (`b1`, `i8`,
`u8`, ..., `f64`). Signed and unsigned integers of a width are one IR type: the names tell which, and the ops
that compute with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, f32, f64, i1
from xdsl.ir import Attribute

PYTHON_SCALARS = ("py_bool", "py_int", "py_float")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
DTYPES = ("b1", *SIGNED, *UNSIGNED, "f32", "f64")
"""Our names of NumPy's dtypes, for array elements and NumPy scalars."""

IR_TYPE: dict[str, Attribute] = {
    "py_bool": i1,
    "py_int": IndexType(),
    "py_float": f64,
    "b1": i1,
    **{name: IntegerType(int(name[1:])) for name in (*SIGNED, *UNSIGNED)},
    "f32": f32,
    "f64": f64,
    "rng": IndexType(),
}

NUMPY_DTYPE: dict[str, np.dtype[Any]] = {
    "b1": np.dtype(np.bool_),
    **{name: np.dtype(f"{name[0]}{int(name[1:]) // 8}") for name in DTYPES[1:]},
}
DTYPE_NAME: dict[np.dtype[Any], str] = {v: k for k, v in NUMPY_DTYPE.items()}

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
RANGE: dict[str, tuple[int, int]] = {
    "b1": (0, 1),
    "py_bool": (0, 1),
    "py_int": (INT64_MIN, INT64_MAX),
    **{
        n: (int(np.iinfo(d).min), int(np.iinfo(d).max))
        for n, d in NUMPY_DTYPE.items()
        if d.kind in "iu"
    },
}
"""The least and the greatest value of each type of integers."""

JOIN_WITHIN_KIND = (
    ("py_bool", "b1"),
    ("py_int", *SIGNED, *UNSIGNED),
    ("py_float", "f32", "f64"),
)


class Ranged(Protocol):
    """A scalar's type and range, with or without a value."""

    @property
    def type(self) -> str: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...


class Mismatch(Exception):
    """Two paths give a name values that no one type covers. The text says which.

    Lists of known length were `made` at places where the next build may make others.
    """

    def __init__(
        self, text: str, *made: Any, objects: Iterable[type] = (), alike: bool = False
    ) -> None:
        super().__init__(text)
        self.made = made
        self.alike = alike
        """Both are of one kind, but what they are made of is known on one path each."""
        self.objects = tuple(objects)
        """The classes of the objects that meet."""


def join_types(a: Ranged, b: Ranged) -> str:
    """The type of a variable that holds now `a`, now `b`: strong beats weak, float beats int.

    Two Python scalars stay Python's. A Python int joins NumPy's ints in whose range it certainly is.
    """
    kinds = [next(k for k, types in enumerate(JOIN_WITHIN_KIND) if s.type in types) for s in (a, b)]
    if kinds == [1, 1]:
        return joined_ints(a, b)
    if kinds[0] == kinds[1]:
        types = JOIN_WITHIN_KIND[kinds[0]]
        return types[max(types.index(a.type), types.index(b.type))]
    lower, upper = (a, b) if kinds[0] < kinds[1] else (b, a)
    if lower.type in PYTHON_SCALARS:
        return upper.type
    if upper.type in PYTHON_SCALARS:
        return "f64" if kinds[0] == 2 or kinds[1] == 2 else "i64"
    return DTYPE_NAME[np.result_type(NUMPY_DTYPE[a.type], NUMPY_DTYPE[b.type])]


def joined_ints(a: Ranged, b: Ranged) -> str:
    """The type of two ints. None holds all of int64 and uint64."""
    for weak, strong in ((a, b), (b, a)):
        low, high = RANGE[strong.type]
        if weak.type == "py_int" and low <= weak.low <= weak.high <= high:
            return strong.type
    found = np.result_type(*(NUMPY_DTYPE.get(s.type, np.dtype(np.int64)) for s in (a, b)))
    if found.kind == "f":
        raise Mismatch(f"a number of type {a.type} on one path and of type {b.type} on another")
    return DTYPE_NAME[found]


def has_no_sign(from_: str, to: str) -> bool:
    """Whether a conversion reads an integer without a sign, or makes one of a float."""
    return from_ in UNSIGNED or (to in UNSIGNED and from_ in ("py_float", "f32", "f64"))

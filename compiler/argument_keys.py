"""Argument keys: the text that stands for the kind of one argument (`runtime.keys` writes it), parsed.

f64[?,?]C      a C-contiguous float64 matrix
f64[?,1]F      Fortran order, the last extent is 1
i32[?]S        any strides
f64[?]Cr       read-only, which the key says where the function may store to the array
py_int         a Python int
rng            a numpy.random.Generator
(f64,None)     a tuple of them
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ArrayKey:
    """An array: its dtype, its extents ("?" or "1"), its layout class, and whether a store to it raises.

    Of several tangents at once an element is as many numbers, its `lanes`, side by side.
    """

    dtype: str
    extents: tuple[str, ...]
    layout: str
    read_only: bool = False
    lanes: int = 1

    @property
    def rank(self) -> int:
        return len(self.extents)

    def __str__(self) -> str:
        extents = ",".join(self.extents)
        return f"{self.dtype}[{extents}]{self.layout}{'r' if self.read_only else ''}"


@dataclass(frozen=True)
class ScalarKey:
    """A scalar: `py_float`, `f32`, ..., or `None`; several tangents of one are an array of rank 1."""

    type: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.type


@dataclass(frozen=True)
class TupleKey:
    """A tuple."""

    items: tuple[Key, ...]

    def __str__(self) -> str:
        return f"({','.join(map(str, self.items))})"


Key = ArrayKey | ScalarKey | TupleKey

_ARRAY = re.compile(r"(\w+)\[([?1,]*)\]([CFS])(r?)\Z")


def parse(text: str) -> Key:
    """The key that `text` spells; ValueError where it spells none."""
    if text.startswith("(") and text.endswith(")"):
        return TupleKey(tuple(parse(item) for item in _split(text[1:-1])))
    if match := _ARRAY.match(text):
        extents = tuple(match[2].split(",")) if match[2] else ()
        return ArrayKey(match[1], extents, match[3], bool(match[4]))
    if not text.isidentifier():
        raise ValueError(f"not an argument key: {text!r}")
    return ScalarKey(text)


def leaves(key: Key) -> Iterator[ArrayKey | ScalarKey]:
    """The arrays and scalars that an argument of this key hands to compiled code."""
    if isinstance(key, TupleKey):
        for item in key.items:
            yield from leaves(item)
    elif key != ScalarKey("None"):
        yield key


def _split(text: str) -> list[str]:
    """The parts between the commas that no bracket encloses."""
    parts, depth, start = list[str](), 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text[start:].strip() else parts

"""What a Python package knows of an exported function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .exports import Export
from .signature import (
    CFunction,
)

GROUPS = ("arguments", "cotangents", "tangents", "results", "gradients")
"""The order of C parameters: what is the function's own, what comes in beside it, what goes out."""


Tree = Any
"""What a function returns: None, the name of a result, the position of an argument that is returned itself
(of tangents: of the argument whose tangent it is), or a tuple of trees."""
Returned = tuple[bool, tuple[str, ...]]
"""Of a result that is an array: whether it is memory that the function makes, and which arrays it may be."""


@dataclass(frozen=True)
class Either:
    """A number among the results that is Python's where a flag says so (`runtime.library_entries`)."""

    name: str
    type: str
    flag: int


@dataclass(frozen=True)
class Face:
    """An exported function as Python calls it."""

    export: Export
    function: CFunction
    roles: dict[str, tuple[str, int]]
    """Of each C parameter its group (`GROUPS`), and in derivatives the position that it belongs to."""
    trees: dict[str, Tree]
    """The result at "", its tangent at "_dot"."""
    sites: list[tuple[int, dict[str, Any]]]
    """What may be raised, with the status."""
    arrays: dict[str, Returned]

"""Jacobians and Hessians that have nothing but a diagonal: one run, along all elements.

The compiler says of code for several directions whether each element moves with one in its place alone
(`compiler/analysis/diagonal.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .keys import Array

if TYPE_CHECKING:
    from .jacobians import Start


def is_diagonal(start: Start, mode: str, lanes: int, blocks: Sequence[Sequence[Array]]) -> bool:
    """Whether these blocks, of each part of the result one for each argument, are diagonal."""
    if lanes == 1 or len(start.wrt) > 1:
        return False
    found = start.dispatcher.specialize(start.values, start.wrt, mode, lanes)
    square = start.shapes[0] * 2
    alike = all(row and row[0].shape == square for row in blocks)
    return found.metadata["tangents"]["diagonal"] and alike


def ones(start: Start, lanes: int) -> Array:
    """A direction along all elements; further lanes stand still."""
    made = np.zeros((*start.shapes[0], lanes), start.values[start.wrt[0]].dtype)
    made[..., 0] = 1.0
    return made


def put_diagonal(block: Array, dots: Array) -> None:
    """Put what each element moves of the one in its place into a block of zeros."""
    block.reshape(-1)[:: dots.size + 1] = dots.reshape(-1)

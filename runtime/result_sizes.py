"""How many floats a function returned when it last had arguments of these sizes.

It may be another number the next time; who asks goes by it where that costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .dispatch import Dispatcher

Sizes = tuple[Any, ...]
MANY = 256
"""So many sizes are remembered of each function."""


def sizes_among(values: Sequence[Any]) -> Sizes:
    """What the size of a result depends on: the shapes of arrays, and ints."""
    return tuple(
        value.shape
        if isinstance(value, np.ndarray)
        else value
        if isinstance(value, int)
        else type(value)
        for value in values
    )


def recall(dispatcher: Dispatcher, values: Sequence[Any]) -> int | None:
    return dispatcher.result_sizes.get(sizes_among(values))


def remember(dispatcher: Dispatcher, values: Sequence[Any], size: int) -> int:
    known = dispatcher.result_sizes
    if len(known) >= MANY:
        known.clear()
    known[sizes_among(values)] = size
    return size

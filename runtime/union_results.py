"""Results whose kind is known at run time only: None or a number, an object or None, one word or another.

The kernel returns a number that says which, and the parts of all of them; those of what it is not are there,
and mean nothing. Of its recipes at most one is of anything else than an object known while compiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .list_columns import width

Recipe = list[Any]


def is_choice(records: dict[str, Any] | None) -> bool:
    """Whether the kind of the result is known at run time only."""
    return records is not None and records["result"][0] == "choice"


def is_one_float(recipe: Recipe) -> bool:
    """True for the recipe of one number, or of something that is none."""
    if recipe[0] != "choice":
        return False
    return [one for one in recipe[1] if one[0] != "static"] == [["flat"]]


def require_float(value: Any) -> None:
    """Refuse the gradient of a call whose result turns out to be no number."""
    if not isinstance(value, float | np.floating):
        raise TypeError(f"a gradient is that of a float, and this call returns {value!r}")


def option_of(known: Sequence[tuple[Any, ...]], value: Any) -> int:
    """Which of several a value is: one of the objects known while compiling, or the other."""
    for k, one in enumerate(known):
        if one and one[0] is value:
            return k
    return next((k for k, one in enumerate(known) if not one), 0)


def nothing_of(recipe: Recipe) -> Iterator[Any]:
    """None for each part of a result of this recipe."""
    match recipe:
        case ["flat"] | ["item" | "picked", _]:
            yield None
        case ["tuple", _, items] | ["object", _, _, _, items] | ["list", items]:
            for item in items:
                yield from nothing_of(item)
        case ["choice", items]:
            yield None
            for item in items:
                yield from nothing_of(item)
        case ["kept", _, inner]:
            yield from nothing_of(inner)
        case ["numbers" | "placed", form]:
            yield from [None] * width(form)
        case _:
            pass

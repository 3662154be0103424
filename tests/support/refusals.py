"""What generators of programs cannot know beforehand: that a gradient is refused, by words of its reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import mutad

NO_GRADIENT = (
    "that the gradient must save",
    "that only this branch allocates",
    "that was made in an iteration of a loop",
)
"""Arrays and views that a branch makes or chooses, lists that an iteration makes, as the run finds out."""


@contextmanager
def unless_refused() -> Iterator[None]:
    """Nothing more is looked at where the gradient is refused for one of these reasons; others fail."""
    try:
        yield
    except mutad.CompileError as error:
        if not any(words in error.reason for words in NO_GRADIENT):
            raise

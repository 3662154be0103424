"""Programs of a vector, each run three ways: as CPython does, compiled, differentiated.

@on()                                    the result and its type, what is printed or raised, the
def area(x): ...                         contents of x afterwards, and `check_gradient`
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mutad import check_gradient, compile

X = np.array([0.7, 1.3, 0.4])


@dataclass
class WholePrograms:
    """The programs of a test file."""

    cases: list[tuple[Callable[..., Any], np.ndarray]] = field(default_factory=list)

    def on(self, *points: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The function is run at each of these points, else at X."""

        def record(function: Callable[..., Any]) -> Callable[..., Any]:
            for point in points or (X,):
                self.cases.append((function, np.array(point, float)))
            return function

        return record

    @property
    def names(self) -> list[str]:
        return [f"{f.__name__}-{k}" for k, (f, _) in enumerate(self.cases)]


def outcome(function: Callable[..., Any], x: np.ndarray) -> tuple[Any, str]:
    """The result of a call, or its exception; what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        try:
            result = function(x)
        except Exception as error:
            result = type(error), str(error)
    return result, printed.getvalue()


def agrees(function: Callable[..., Any], point: np.ndarray) -> None:
    """The compiled function does what `function` does; its gradient is that of differences."""
    mine, theirs = point.copy(), point.copy()
    want, said = outcome(function, theirs)
    got, printed = outcome(compile(function, cache=False), mine)
    assert type(got) is type(want), (got, want)
    np.testing.assert_equal(printed, said)
    np.testing.assert_array_equal(mine, theirs)
    if isinstance(want, tuple) and want and isinstance(want[0], type):
        assert got == want
        return
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-300)
    if isinstance(want, float):
        check_gradient(compile(grad=True, cache=False)(function), point.copy(), wrt=0)

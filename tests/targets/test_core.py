"""Gradients of the golden programs for each level of x86-64 that this CPU has, in turn.

The other tests make code for the CPU at hand. `make targets` runs all of them for each level.
"""

from __future__ import annotations

import runpy
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path

import pytest
from gradient_oracle import GradientCase

from mutad.runtime import target

CASES: list[GradientCase] = runpy.run_path(
    str(Path(__file__).parents[1] / "gradients" / "test_golden.py")
)["programs"].cases
LEVELS = target.runnable()[1:]
EVERYWHERE = ("blocks_through_views",)
"""Programs that were wrong on some CPU."""


def chosen() -> list[tuple[GradientCase, str]]:
    """The first row of each program for one level, every row of some for all."""
    first = [case for case in CASES if case.first]
    some = [case for case in CASES if case.function.__name__ in EVERYWHERE]
    return [*zip(first, cycle(LEVELS), strict=False), *product(some, LEVELS)]


@pytest.mark.parametrize(("case", "level"), chosen(), ids=str)
def test_pullback(case: GradientCase, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(target.VARIABLE, level)
    replace(case, options=(*case.options, ("opt", 3))).check_pullback()

"""Outputs of the same rows that one loop adds from their buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.codegen import map_points, strips

SIZES = (2, 3, 4, 5, 9, 17, 40, 256, 258, 259, 300, 515)


def beside(c: Any, v: Any) -> Any:
    """Adds to three columns of each row; to the middle one in the loop over the points."""
    mid, u = c[1:-1, 1:-1], v[1:-1, 1:-1]
    x = np.where(u > 0.0, u * (mid - c[:-2, 1:-1]), u * (c[2:, 1:-1] - mid))
    y = np.where(u > 0.2, u * (mid - c[1:-1, :-2]), u * (c[1:-1, 2:] - mid))
    return (np.exp(x) * np.sin(y)).sum()


def four(c: Any, v: Any) -> Any:
    mid, u = c[:, 2:-2], v[:, 2:-2]
    x = np.where(
        u > 0.0, np.exp(u * c[:, :-4] * c[:, 1:-3]), np.sin(u * c[:, 4:]) * c[:, 3:-1] * mid
    )
    return (x * x).sum()


def line(c: Any, v: Any) -> Any:
    """Of vectors, too."""
    c, v = c[0], v[0]
    x = np.where(v[1:-1] > 0.0, np.exp(v[1:-1] * c[:-2]), np.sin(v[1:-1] * c[2:]) * c[1:-1])
    return (x * x).sum()


def apart(c: Any, v: Any) -> Any:
    """Columns that are further apart than a margin is long are not together."""
    u = v[:, 6:-6]
    x = np.where(u > 0.0, np.exp(u * c[:, :-12]), np.sin(u * c[:, 12:]))
    return (x * x).sum()


PROGRAMS = (beside, four, line)


def arguments(columns: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    r = np.random.default_rng(columns)
    return r.normal(size=(5, columns)).astype(dtype), r.normal(size=(5, columns)).astype(dtype)


def counted(monkeypatch: Any) -> list[int]:
    """How many outputs each loop adds together that is written from now on."""
    found: list[int] = []
    add_together = strips.add_together

    def counting(nest: Any, group: Any, *rest: Any) -> None:
        found.append(len(group.columns))
        add_together(nest, group, *rest)

    monkeypatch.setattr(map_points, "add_together", counting)
    return found


@pytest.mark.parametrize(("function", "columns"), [(beside, 2), (four, 4), (line, 2)])
def test_columns_are_added_together(function: Any, columns: int, monkeypatch: Any) -> None:
    found = counted(monkeypatch)
    compile(function, grad=True, cache=False).grad(*arguments(30))
    assert max(found) == columns


def test_columns_far_apart_are_not(monkeypatch: Any) -> None:
    found = counted(monkeypatch)
    compile(apart, grad=True, cache=False).grad(*arguments(30))
    assert not found


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bits_are_those_of_a_loop_for_each(function: Any, dtype: Any, monkeypatch: Any) -> None:
    together: Any = compile(function, grad=True, cache=False)
    given = [arguments(n, dtype) for n in SIZES]
    found = [together.grad(*a) for a in given]

    def none(*of_a_nest: Any) -> list[Any]:
        return []

    monkeypatch.setattr(map_points, "groups_of", none)
    alone: Any = compile(function, grad=True, cache=False)
    for a, mine in zip(given, found, strict=True):
        assert mine.tobytes() == alone.grad(*a).tobytes()


@pytest.mark.parametrize("function", PROGRAMS)
def test_gradients_are_those_of_other_plans(function: Any) -> None:
    f: Any = compile(function, grad=True, cache=False)
    plain: Any = compile(function, grad=True, saves="all", opt=0, cache=False)
    for columns in SIZES:
        c, v = arguments(columns)
        expected = plain.grad(c, v)
        np.testing.assert_allclose(f.grad(c, v), expected, rtol=1e-11, atol=1e-12)
        kept = f.grad(np.asfortranarray(c), v[:, ::-1][:, ::-1])
        np.testing.assert_allclose(kept, expected, rtol=1e-11, atol=1e-12)


def test_zeros_keep_their_signs() -> None:
    """A margin is -0.0, which leaves every number as it is."""
    f: Any = compile(beside, grad=True, cache=False)
    plain: Any = compile(beside, grad=True, saves="all", opt=0, cache=False)
    c, v = -np.zeros((5, 40)), -np.ones((5, 40))
    assert f.grad(c, v).tobytes() == plain.grad(c, v).tobytes()

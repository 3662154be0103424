"""`sort` and `argsort` of what has few bits apart, many equal elements, or no order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mutad
from mutad.compiler.frontend.library import written_ranks

Array = np.ndarray
DRAWN = np.random.default_rng(7)
TYPES = tuple(
    np.dtype(t) for t in ("f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
)
LENGTHS = (0, 1, 2, 7, 63, 64, 65, 200, 1000, 4095, 4096, 9000)


def order(x):
    return np.argsort(x, kind="stable")


def values(x):
    return np.sort(x)


argsort, sort = mutad.compile(order, opt=1), mutad.compile(values, opt=1)


def is_sorted_as_numpy_does(x: Array) -> None:
    np.testing.assert_array_equal(argsort(x), np.argsort(x, kind="stable"))
    found, expected = sort(x), np.sort(x, kind="stable")
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_any_dtype_and_length(dtype: np.dtype, n: int) -> None:
    if dtype.kind == "f":
        x = (np.exp(DRAWN.normal(size=n) * 15) * DRAWN.choice([-1, 1], n)).astype(dtype)
    elif dtype.kind == "b":
        x = DRAWN.random(n) < 0.5
    else:
        x = np.frombuffer(DRAWN.bytes(n * dtype.itemsize), dtype).copy()
    is_sorted_as_numpy_does(x)


HARD: dict[str, Callable[[int], Array]] = {
    "special": lambda n: DRAWN.choice(
        [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, 1e308, -1e308], n
    ),
    "zeros of both signs": lambda n: DRAWN.choice([0.0, -0.0], n),
    "all NaN": lambda n: np.full(n, np.nan),
    "equal": lambda n: np.full(n, -2.5),
    "ascending": lambda n: np.arange(float(n)),
    "descending": lambda n: -np.arange(float(n)),
    "last bits": lambda n: 1.0 + DRAWN.integers(0, n, n) * 2.0**-52,
    "last bits behind others": lambda n: np.append(
        1.0 + DRAWN.integers(0, n, n - 1) * 2.0**-52, -3.0
    ),
    "last bits of negative numbers": lambda n: np.append(
        3.0, -1.0 - DRAWN.integers(0, n, n - 1) * 2.0**-52
    ),
    "two clusters": lambda n: DRAWN.choice([-1e-9, 1e9], n) * (1 + DRAWN.random(n) * 1e-12),
    "denormals": lambda n: DRAWN.integers(-n, n, n) * 5e-324,
    "rounded": lambda n: np.round(DRAWN.normal(size=n), 1),
}


@pytest.mark.parametrize("n", [5, 64, 300, 5000])
@pytest.mark.parametrize("kind", HARD)
def test_elements_that_are_hard_to_tell_apart(kind: str, n: int) -> None:
    is_sorted_as_numpy_does(HARD[kind](n))


@pytest.mark.parametrize("bits", [1, 8, 11, 24, 31, 33, 34, 62, 63])
def test_integers_of_so_many_bits(bits: int) -> None:
    for n in (100, 5000):
        x = DRAWN.integers(-(2**bits), 2**bits - 1, n, endpoint=True)
        is_sorted_as_numpy_does(x)
        is_sorted_as_numpy_does(np.append(x[1:], np.iinfo(np.int64).max))
        is_sorted_as_numpy_does(x.view(np.uint64))


def test_axes_and_strides() -> None:
    x = DRAWN.normal(size=(90, 4, 80))

    def both(x):
        y = x[::-1, :, ::2]
        return (
            np.sort(y, axis=0),
            np.argsort(y, axis=2),
            np.sort(x),
            np.argsort(x[:, 1, ::-3], axis=0),
        )

    for found, expected in zip(mutad.compile(both, opt=1)(x), both(x), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [50, 500])
def test_gradients_go_by_the_places(n: int) -> None:
    def weighted(x, w):
        return (np.sort(np.sin(x)) * w).sum() + np.sort(x * x)[::2].sum()

    function = mutad.compile(weighted, grad=True)
    drawn = np.random.default_rng(n)  # of its own: no two are nearly equal
    mutad.check_gradient(function, drawn.normal(size=n), drawn.normal(size=n))


def test_insertion_is_given_up_where_many_elements_differ_in_their_last_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So no data take the square of the length: the second round finds places in order."""
    n, rounds = 3_000, list[tuple[bool, bool]]()
    insert = written_ranks.inserted

    def watched(keys: Array, order: Array, most: int) -> bool:
        in_order = bool((np.diff(keys[order]) >= 0).all())
        rounds.append((in_order, insert(keys, order, most)))
        return rounds[-1][1]

    monkeypatch.setattr(written_ranks, "inserted", watched)
    keys = np.append(DRAWN.integers(0, n, n - 1), -(2**62))
    order, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    written_ranks.rank(keys.copy(), order, spare)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    assert rounds == [(False, False), (True, True)]

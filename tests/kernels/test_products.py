"""Products of matrices as kernels: NumPy's values, and the gradients of the CPU's code, for all forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import close
from device_programs import waves

import mutad


def plain(a, b):
    c = a @ b
    return (c * c).sum()


def transposed(a, b):
    c = a.T @ b.T
    c[1:, ::2] += 1.0
    return (c * c).sum()


def of_slices(a, b):
    c = np.ones((a.shape[0], b.shape[1]))
    c[::2] = a[::2, 1:] @ b[1:]
    c[1::2, ::-1] = a[::-2, ::-1][: c[1::2].shape[0]] @ b
    return (c * c * c).sum()


def chained(a, b):
    x = b
    for _ in range(3):
        x = np.tanh(a @ x) + x
    return (x * x).sum()


def stacked(a, b):
    return ((a @ b) ** 2).sum()


CASES = (
    (plain, (70, 33), (33, 130)),
    (plain, (1, 1), (1, 1)),
    (plain, (5, 0), (0, 3)),
    (plain, (0, 4), (4, 3)),
    (plain, (65, 70), (70,)),
    (plain, (65,), (65, 70)),
    (plain, (7, 1), (1, 3)),
    (plain, (128, 16), (16, 64)),
    (transposed, (20, 65), (66, 20)),
    (of_slices, (9, 20), (20, 70)),
    (chained, (17, 17), (17, 5)),
    (stacked, (3, 17, 5), (3, 5, 9)),
)


def name_of(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return getattr(value, "__name__", value)


SINGLE = (
    (plain, (70, 33), (33, 130), "f4"),
    (plain, (65, 70), (70,), "f4"),
    (transposed, (20, 35), (36, 20), "f4"),
)


@pytest.mark.parametrize(
    ("function", "first", "second", "dtype"), [*((*c, "f8") for c in CASES), *SINGLE], ids=name_of
)
def test_products_are_those_of_the_host(
    function: Callable[..., Any], first: tuple[int, ...], second: tuple[int, ...], dtype: str
) -> None:
    given = waves(*first, dtype=dtype) / 9, waves(*second, dtype=dtype) / 9
    found = [
        mutad.compile(function, grad=True, target=target, opt=1).value_and_grad(
            *(x.copy() for x in given), wrt=("a", "b")
        )
        for target in ("cpu", "cuda:host")
    ]
    (wanted, gradients), (value, own) = found
    close(value, wanted)
    close(value, function(*given))
    for one, other in zip(own, gradients, strict=True):
        close(one, other)


def test_integers_have_no_rounding() -> None:
    def product(a, b):
        return a @ b

    compiled = mutad.compile(product, target="cuda:host", opt=1)
    for dtype in ("i8", "i4", "u1"):
        a = np.arange(70 * 20).reshape(70, 20).astype(dtype)
        b = np.arange(20 * 3).reshape(20, 3).astype(dtype)
        assert np.array_equal(compiled(a, b), a @ b)


def test_nan_stays_where_it_is() -> None:
    """Beyond the edges of factors there is 0, and nothing of what is beside them."""

    def product(a, b):
        return a @ b

    compiled = mutad.compile(product, target="cuda:host", opt=1)
    whole = np.full((40, 40), np.nan)
    whole[3:20, 5:22] = waves(17, 17)
    a = whole[3:20, 5:22]
    assert np.allclose(compiled(a, a.T), a @ a.T, rtol=1e-13)
    a[2, 3] = np.inf
    with np.errstate(invalid="ignore"):
        wanted = a @ a
    assert np.array_equal(np.isfinite(compiled(a, a)), np.isfinite(wanted))


def test_two_runs_have_the_same_bits() -> None:
    compiled = mutad.compile(plain, grad=True, target="cuda:host", opt=1)
    a, b = waves(70, 300), waves(300, 65)
    first, second = (compiled.grad(a.copy(), b.copy(), wrt=("a", "b")) for _ in range(2))
    assert all(np.array_equal(x, y) for x, y in zip(first, second, strict=True))

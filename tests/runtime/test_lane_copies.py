"""Arrays from first axes to last ones and back, by machine code where the layout allows it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mutad import BatchDuplicated, compile
from mutad.runtime.lane_copies import FEW, turn, turned

LAYOUTS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], bool]] = {
    "as it comes": (lambda a: a, True),
    "parts of a larger array": (lambda a: np.concatenate([a, a])[3 : 3 + len(a)], True),
    "backwards": (lambda a: a[::-1], True),
    "every second": (lambda a: np.repeat(a, 2, axis=-1)[..., ::2], False),
    "Fortran's": (lambda a: np.asfortranarray(a), False),
    "read-only": (lambda a: np.broadcast_to(a, a.shape), True),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("lanes", "dtype"), [(8, "f8"), (24, "f8"), (8, "f4"), (3, "f8")])
def test_rows_become_columns_and_rows_again(layout: str, lanes: int, dtype: str) -> None:
    placed, compiled = LAYOUTS[layout]
    for shape in ((FEW + 5,), (7, 1, FEW // 4 + 1)):
        rows = placed(np.random.default_rng(0).normal(size=(lanes, *shape)).astype(dtype))
        columns = np.zeros((*shape, lanes), dtype)
        assert turned(columns, np.moveaxis(rows, 0, -1)) == (compiled and lanes % 8 == 0)
        turn(columns, np.moveaxis(rows, 0, -1))
        np.testing.assert_array_equal(columns, np.moveaxis(rows, 0, -1))
        again = np.zeros_like(rows)
        turn(np.moveaxis(again, 0, -1), columns)
        np.testing.assert_array_equal(again, rows)


def test_what_is_large_is_as_what_is_small() -> None:
    @compile(grad=True, opt=1)
    def cubes(x):
        x[1:] *= x[:-1] * x[1:]
        return x * x

    rng, n = np.random.default_rng(0), FEW + 3
    x, along, bars = rng.normal(size=n), *rng.normal(size=(2, 8, n))
    given = along.copy()
    dots = cubes.jvp(x.copy(), tangents={"x": given}, batch=8)[1]
    gradients = cubes.vjp(x.copy(), batch=8)[1](bars)
    beside = np.moveaxis(along, 0, -1).copy()
    wanted = cubes.pushforward(BatchDuplicated(x.copy(), beside))[1]
    np.testing.assert_array_equal(np.moveaxis(wanted, -1, 0), dots)
    np.testing.assert_array_equal(np.moveaxis(beside, -1, 0), given)
    np.testing.assert_allclose(
        (bars * dots).sum(axis=1), (gradients * along).sum(axis=1), rtol=1e-9
    )


def test_products_that_are_zero_cost_no_run() -> None:
    """Of a linear function nothing is left, whatever there is along."""

    @compile(grad=True, opt=1)
    def smoothed(x, steps):
        y = x.copy()
        for _ in range(steps):
            y[1:-1] = 0.5 * (y[:-2] + y[2:])
        return y.sum()

    along = np.full((8, 5), np.nan)
    products = smoothed.hvp(np.ones(5), 10**12, direction=along, batch=8)
    np.testing.assert_array_equal(products, np.zeros((8, 5)))

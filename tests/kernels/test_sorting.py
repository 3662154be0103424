"""Sorting on a device: runs are merged, a thread for each element; places are NumPy's to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import close
from device_oracle import strict
from on_device import on_device, on_host
from race_oracle import watched

import mutad
from mutad.compiler.frontend.library import written_ranks
from mutad.runtime import drivers

NAN, INF = np.nan, np.inf
VECTORS = (
    np.array([3.0, NAN, -0.0, 1.0, 0.0, INF, 1.0, -INF, NAN, 3.0]),
    np.array([2.5, -1.0, 2.5, NAN, 0.5], np.float32),
    np.array([4, -(2**63), 4, 2**63 - 1, 0, -3]),
    np.array([200, 3, 200, 0, 255], np.uint8),
    np.array([True, False, True, False]),
    np.zeros(0),
    np.ones(1),
    *(np.random.default_rng(n).integers(-n // 3, n // 3, n) for n in (3, 4, 5, 8, 9, 15, 17, 23)),
)
LONG = (
    *(
        np.random.default_rng(n).integers(-n // 3, n // 3, n)
        for n in (127, 128, 129, 256, 257, 3000)
    ),
    np.where(np.arange(700) % 7 == 0, NAN, np.cos(np.arange(700.0))),
    np.arange(900.0),
    np.arange(900.0)[::-1].copy(),
)


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few elements are merged as many are: threads are looked at one by one, which takes long."""
    monkeypatch.setattr(written_ranks, "RUN", 4)


def check_places(x: np.ndarray) -> None:
    for function in (argsort, sort):
        found = on_host(mutad.compile(function, opt=1, cache=False)(*on_device((x,))))
        kind: dict[str, Any] = {"kind": "stable"}
        wanted = getattr(np, function.__name__)(x, **kind)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def argsort(x):
    return np.argsort(x)


def sort(x):
    return np.sort(x)


@pytest.mark.parametrize("x", VECTORS, ids=lambda x: f"{x.dtype}{x.size}")
@pytest.mark.usefixtures("short_runs")
def test_places_are_numpys(x: np.ndarray) -> None:
    with watched():
        check_places(x)


@pytest.mark.parametrize("x", LONG, ids=lambda x: f"{x.dtype}{x.size}")
def test_places_of_many_elements_are_numpys(x: np.ndarray) -> None:
    with strict():
        check_places(x)


def weighted(x):
    return (np.sort(x) * np.arange(x.size)).sum()


def by_key(x):
    k = np.argsort(-x)
    return (x[k] ** 2 * np.arange(x.size)).sum()


def rows(x):
    k = np.argsort(x, axis=1)
    return (np.take_along_axis(x, k, axis=1) ** 3 * np.arange(x.size).reshape(x.shape)).sum()


def columns(x):
    return (np.sort(x, axis=0) ** 3 * np.arange(x.size).reshape(x.shape)).sum()


@pytest.mark.parametrize(("shape", "axis"), [((3, 260), 1), ((140, 4), 0), ((2, 130, 2), 1)])
def test_slabs_are_sorted_at_once(shape: tuple[int, ...], axis: int) -> None:
    """The launches are those of one slab."""
    x = np.random.default_rng(3).integers(0, 50, shape).astype(float)

    def order(x):
        return np.argsort(x, axis=axis)

    compiled = mutad.compile(order, opt=1)
    with strict():
        driver = drivers.begun["emulated"]
        given = on_device((x,))
        before = driver.launches
        found = on_host(compiled(*given))
        np.testing.assert_array_equal(found, np.argsort(x, axis=axis, kind="stable"))
        assert driver.launches - before <= 12


def test_launches_grow_as_the_logarithm() -> None:
    compiled, driver = mutad.compile(argsort, opt=1), drivers.begun["emulated"]
    with strict():
        taken = list[int]()
        for n in (1000, 2000, 4000):
            given = on_device((np.cos(np.arange(float(n))),))
            before = driver.launches
            compiled(*given)
            taken.append(driver.launches - before)
    assert taken[2] - taken[1] == taken[1] - taken[0] <= 2


@pytest.mark.parametrize(
    ("function", "shape"), [(weighted, 40), (by_key, 40), (rows, (3, 5)), (columns, (5, 3))]
)
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.usefixtures("short_runs")
def test_gradients_are_the_hosts(
    function: Callable[..., Any], shape: Any, deterministic: bool
) -> None:
    x = np.random.default_rng(2).standard_normal(shape)
    compiled = mutad.compile(function, grad=True, opt=1, deterministic=deterministic, cache=False)
    value, gradient = compiled.value_and_grad(x)
    with watched():
        found_value, found = compiled.value_and_grad(*on_device((x,)))
        close(found_value, value)
        close(on_host(found), gradient)


def test_all_of_it_is_for_many_threads() -> None:
    told = mutad.compile(weighted, grad=True, target="cuda:sm_90").explain(np.ones(9))
    assert not any(k.serial for k in told.kernels)

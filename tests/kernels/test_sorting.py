"""Sorting on a device: a thread for each element counts those before it; places are NumPy's to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import close
from on_device import on_device, on_host
from race_oracle import watched

import mutad

NAN, INF = np.nan, np.inf
VECTORS = (
    np.array([3.0, NAN, -0.0, 1.0, 0.0, INF, 1.0, -INF, NAN, 3.0]),
    np.array([2.5, -1.0, 2.5, NAN, 0.5], np.float32),
    np.array([4, -(2**63), 4, 2**63 - 1, 0, -3]),
    np.array([200, 3, 200, 0, 255], np.uint8),
    np.array([True, False, True, False]),
    np.zeros(0),
    np.ones(1),
    np.random.default_rng(1).integers(0, 40, 300).astype(float),
)


def argsort(x):
    return np.argsort(x)


def sort(x):
    return np.sort(x)


@pytest.mark.parametrize("x", VECTORS, ids=lambda x: f"{x.dtype}{x.size}")
def test_places_are_numpys(x: np.ndarray) -> None:
    with watched():
        for function in (argsort, sort):
            found = on_host(mutad.compile(function, opt=1)(*on_device((x,))))
            kind: dict[str, Any] = {"kind": "stable"}
            wanted = getattr(np, function.__name__)(x, **kind)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


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


@pytest.mark.parametrize(
    ("function", "shape"), [(weighted, 40), (by_key, 40), (rows, (3, 5)), (columns, (5, 3))]
)
@pytest.mark.parametrize("deterministic", [False, True])
def test_gradients_are_the_hosts(
    function: Callable[..., Any], shape: Any, deterministic: bool
) -> None:
    x = np.random.default_rng(2).standard_normal(shape)
    compiled = mutad.compile(function, grad=True, opt=1, deterministic=deterministic)
    value, gradient = compiled.value_and_grad(x)
    with watched():
        found_value, found = compiled.value_and_grad(*on_device((x,)))
        close(found_value, value)
        close(on_host(found), gradient)


def test_elements_are_counted_by_many_threads() -> None:
    told = mutad.compile(weighted, grad=True, target="cuda:sm_90").explain(np.ones(9))
    assert not any(k.serial for k in told.kernels)

"""Generated loops of products, collected into products of matrices, against loops that are not, and CPython.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from generated import function_of
from hypothesis import given
from hypothesis import strategies as st
from product_programs import product_program
from profiles import profile

import mutad
from mutad.compiler.transforms import product_blocks, raise_products
from mutad.compiler.transforms.collect_products import CollectProducts

SEEDS = st.integers(0, 2**32)
SIZES = ((7, 5), (1, 3), (0, 2), (12, 3))
ACTIVE = ("w", "u", "a", "x", "h0")


@pytest.fixture(autouse=True)
def short_loops_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nests are raised whatever their length."""
    monkeypatch.setattr(raise_products, "LEAST", 0)


def matrices(rng: random.Random, n: int, m: int, dtype: Any) -> list[np.ndarray[Any, Any]]:
    """The arguments, in some layout, with a value that is no number now and then."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    shapes = ((n, n), (n, m), (n, n), (n, m), (n,))
    found = [(0.3 * numbers.normal(size=shape)).astype(dtype) for shape in shapes]
    layout = rng.random()
    if layout < 0.3:
        found = [np.asfortranarray(array) for array in found]
    elif layout < 0.5:
        found = [np.repeat(array, 2, axis=0)[::2] for array in found]
    elif layout < 0.6:
        found = [array[::-1] for array in found]
    if rng.random() < 0.15 and n > 1:
        found[0][1, 1] = rng.choice((np.inf, np.nan))
    return found


def gradient_of(function: Callable[..., Any], arguments: list[Any], **options: Any) -> Any:
    compiled = mutad.compile(grad=True, cache=False, opt=1, **options)(function)
    return [compiled.value_and_grad(*found, wrt=ACTIVE) for found in arguments]


@profile(few=4)
@given(SEEDS)
def test_gradients_are_those_of_the_loop(seed: int) -> None:
    rng = random.Random(seed)
    source = product_program(rng)
    function, again = (function_of(source, "program", {"np": np}) for _ in range(2))
    dtype = rng.choice((np.float64, np.float64, np.float32))
    arguments = [matrices(rng, n, m, dtype) for n, m in SIZES]
    with patch.object(product_blocks, "BLOCK", rng.choice((1, 2, 3, 5, 32))):
        got = gradient_of(function, arguments)
    with patch.object(CollectProducts, "apply", lambda *_: None):
        want = gradient_of(again, arguments, saves="all")
    close = 1e-9 if dtype is np.float64 else 2e-3
    for found, mine, other in zip(arguments, got, want, strict=True):
        with np.errstate(all="ignore"):
            python = function(*(array.copy() for array in found))
            np.testing.assert_allclose(mine[0], python, rtol=close, atol=close)
            for x, y in zip(mine[1], other[1], strict=True):
                large = np.abs(y[np.isfinite(y)]).max(initial=1.0)
                np.testing.assert_allclose(x, y, rtol=close, atol=close * large)


@profile(few=2)
@given(SEEDS)
def test_values_under_fastmath_are_those_of_the_loop(seed: int) -> None:
    rng = random.Random(seed)
    function = function_of(product_program(rng), "program", {"np": np})
    with patch.object(product_blocks, "BLOCK", rng.choice((1, 2, 5, 32))):
        compiled = mutad.compile(cache=False, opt=1, fastmath=True)(function)
        for n, m in SIZES:
            found = matrices(rng, n, m, np.float64)
            python = function(*(array.copy() for array in found))
            if np.isfinite(python):
                np.testing.assert_allclose(compiled(*found), python, rtol=1e-9)

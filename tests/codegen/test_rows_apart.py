"""What an adjoint adds to other rows of a shadow needs no strip; what it adds to the same row does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import check_gradient, compile
from mutad.compiler.codegen.llvm_module import host
from mutad.compiler.codegen.vector_width import is_wide


def upwind(c: Any, v: Any) -> Any:
    """Of the five places that an inner point adds to, two are in its own row beside it."""
    mid = c[1:-1, 1:-1]
    x = np.where(v > 0.0, v * (mid - c[:-2, 1:-1]), v * (c[2:, 1:-1] - mid))
    y = np.where(v > 0.2, v * (mid - c[1:-1, :-2]), v * (c[1:-1, 2:] - mid))
    return (np.exp(x) * np.sin(y)).sum()


def rows_alone(c: Any, v: Any) -> Any:
    x = np.where(v > 0.0, np.exp(v * c[:-2, 1:-1]), np.sin(v * c[2:, 1:-1]) * c[1:-1, 1:-1])
    return (x * x).sum()


def whole_rows(c: Any, v: Any) -> Any:
    """The rows may be one run of memory: the loop along it meets an element twice."""
    x = np.where(v > 0.0, np.exp(v * c[:-2]), np.sin(v * c[2:]) * c[1:-1])
    return (x * x).sum()


def columns_alone(c: Any, v: Any) -> Any:
    x = np.where(v > 0.0, np.exp(v * c[1:-1, :-2]), np.sin(v * c[1:-1, 2:]) * c[1:-1, 1:-1])
    return (x * x).sum()


def planes(c: Any, v: Any) -> Any:
    inner = c[1:-1, 1:-1, 1:-1]
    x = np.where(v > 0.0, np.exp(v * c[:-2, 1:-1, 1:-1]), np.sin(v * c[1:-1, 2:, 1:-1]) * inner)
    return (x * x).sum()


def arguments(f: Callable[..., Any], shape: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    c = rng.uniform(-1.0, 1.0, shape)
    inner = (n - 2 for n in shape)
    beside = (shape[0] - 2, *shape[1:]) if f is whole_rows else tuple(inner)
    return c, rng.uniform(-1.0, 1.0, beside)


@pytest.mark.parametrize("shape", [(3, 3), (4, 12), (9, 40), (5, 300)])
@pytest.mark.parametrize("f", [upwind, rows_alone, whole_rows, columns_alone])
def test_each_element_gets_what_points_of_all_rows_give(
    f: Callable[..., Any], shape: tuple[int, ...]
) -> None:
    check_gradient(compile(f, grad=True, cache=False), *arguments(f, shape))


def test_of_planes() -> None:
    check_gradient(compile(planes, grad=True, cache=False), *arguments(planes, (4, 5, 20)))


@pytest.mark.parametrize(
    ("f", "strips"),
    [(upwind, 2), (rows_alone, 0), (whole_rows, 2), (columns_alone, 2), (planes, 0)],
)
def test_rows_apart_need_no_strips(f: Callable[..., Any], strips: int) -> None:
    shape = (4, 5, 20) if f is planes else (9, 40)
    text = compile(f, grad=True, cache=False).inspect("llvm", *arguments(f, shape), wrt=0)
    # A sum beside other strips has its terms from a buffer, too (`lane_sums`).
    for_sum = int(strips > 0 and is_wide(host().features))
    found = sum("%strip" in line and " = alloca " in line for line in text.splitlines())
    assert found == strips + for_sum

"""`check_rule` finds what is wrong with a rule, and what the function does that it does not declare."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import cython_special

import mutad
from mutad import GradientError, check_rule

ARGS = (2.0, np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0]))


def axpy() -> Any:
    @mutad.opaque
    def axpy(a, x, y):
        y[:] = a * x + y

    return axpy


def good(a, x, y):
    a.cotangent += (x.value * y.shadow).sum()
    x.shadow += a.value * y.shadow


def overwriting(a, x, y):
    a.cotangent += (x.value * y.shadow).sum()
    x.shadow[:] = a.value * y.shadow


def forgetting(a, x, y):
    x.shadow += a.value * y.shadow


def zeroing(a, x, y):
    a.cotangent += (x.value * y.shadow).sum()
    x.shadow += a.value * y.shadow
    y.shadow[:] = 0.0


def too_late(a, x, y):
    x.shadow += a.value * y.shadow
    y.shadow *= 1.5
    a.cotangent += (x.value * y.shadow).sum()


def with_rule(rule: Callable[..., None], **declared: Any) -> Any:
    function = axpy()
    mutad.rule(function, rule, **({"overwrites": "y"} | declared))
    return function


def test_a_right_rule_passes_and_leaves_the_arguments_alone() -> None:
    before = [np.copy(a) for a in ARGS]
    report = check_rule(with_rule(good, reads=("x", "y"), needs=("a", "x")), *ARGS)
    assert report.error < 1e-9
    for was, now in zip(before, ARGS, strict=True):
        np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize("rule", [overwriting, forgetting, zeroing, too_late])
def test_a_wrong_adjoint_is_found(rule: Callable[..., None]) -> None:
    with pytest.raises(GradientError, match="the rule of axpy: gradient"):
        check_rule(with_rule(rule), *ARGS)


def test_a_store_that_is_not_declared_is_found() -> None:
    with pytest.raises(GradientError, match="axpy stores to 'y'"):
        check_rule(with_rule(good, overwrites=()), *ARGS)


def test_a_read_that_is_not_declared_is_found() -> None:
    with pytest.raises(GradientError, match="axpy reads 'y'"):
        check_rule(with_rule(good, reads="x"), *ARGS)


def test_a_part_that_is_left_counts_as_read() -> None:
    @mutad.opaque
    def fill(x, y):
        y[1:] = x[1:]

    @fill.rule(reads="x", overwrites="y")
    def fill_rule(x, y):  # pyright: ignore[reportUnusedFunction]
        x.shadow[1:] += y.shadow[1:]
        y.shadow[1:] = 0.0

    with pytest.raises(GradientError, match="leaves a part of it"):
        check_rule(fill, *ARGS[1:])

    mutad.rule(fill, fill_rule, overwrites="y")
    check_rule(fill, *ARGS[1:])


def test_a_need_that_is_not_declared_does_not_compile() -> None:
    with pytest.raises(mutad.CompileError, match=r"reads `x\.value`, which it does not declare"):
        check_rule(with_rule(good, needs="a"), *ARGS)


def test_a_state_of_its_own_is_found() -> None:
    numbers = itertools.count()

    @mutad.opaque
    def counts(x: float) -> float:
        return x + next(numbers)

    @counts.rule
    def counts_rule(x, result):  # pyright: ignore[reportUnusedFunction]
        x.cotangent += result.cotangent

    with pytest.raises(GradientError, match="counts has a state of its own"):
        check_rule(counts, 1.0)


def test_rules_of_other_kinds_of_functions() -> None:
    def product(x, y):
        return x * y

    @mutad.rule(product)
    def product_rule(x, y, result):  # pyright: ignore[reportUnusedFunction]
        x.shadow += y.value * result.shadow
        y.shadow += x.value * result.shadow

    check_rule(product, ARGS[1], ARGS[2])
    check_rule(mutad.compile(product), ARGS[1], ARGS[2])

    @mutad.rule(cython_special.k0)
    def k0_rule(x, result):  # pyright: ignore[reportUnusedFunction]
        x.cotangent -= cython_special.k1(x.value) * result.cotangent

    check_rule(cython_special.k0, 1.5)

    @mutad.rule(cython_special.k1)
    def k1_rule(x, result):  # pyright: ignore[reportUnusedFunction]
        x.cotangent -= cython_special.k0(x.value) * result.cotangent

    with pytest.raises(GradientError, match="the rule of k1: gradient"):
        check_rule(cython_special.k1, 1.5)


def test_a_function_without_rule_is_refused() -> None:
    with pytest.raises(TypeError, match="axpy has no rule"):
        check_rule(axpy(), *ARGS)


def test_declarations_name_parameters() -> None:
    with pytest.raises(TypeError, match=r"overwrites='z': the rule's parameters are a, x, y"):
        with_rule(good, overwrites="z")
    with pytest.raises(TypeError, match=r"reads='x\.after'"):
        with_rule(good, reads="x.after")
    with pytest.raises(TypeError, match="names its parameters"):
        mutad.rule(axpy(), lambda *args: None)
    with pytest.raises(TypeError, match="takes a function"):
        mutad.rule(3.0)  # pyright: ignore[reportArgumentType]
    for function in (np.sin, np.mean, len, cython_special):
        with pytest.raises(TypeError, match=r"takes no rule|takes a function"):
            mutad.rule(function)
    with pytest.raises(TypeError, match="an opaque function returns None or one of"):
        mutad.opaque(lambda x: x, returns=list)

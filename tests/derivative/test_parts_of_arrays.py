"""Ops that read a part of an array as a whole, where the part is overwritten behind a branch: it is saved.

Each with the bytes that it has to save: the parts, never the arrays that they are parts of. Gradients are
held to differences, and to a plan that saves all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mutad import check_gradient, compile

RNG = np.random.default_rng(3)
N, M = 6, 3
MATRICES = RNG.normal(size=(N, M, M)) / 3
ROWS = RNG.normal(size=(N, M))
ROW = 8 * M


def block_thomas(a, b):
    n = a.shape[0]
    for i in range(1, n):
        b[i] -= a[i] @ b[i - 1]
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            b[i] -= a[i] @ b[i + 1]
    return (b * b).sum()


def in_columns(a, b):
    n = a.shape[0]
    for i in range(1, n):
        b[:, i] -= a[i] @ b[:, i - 1]
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            b[:, i] -= a[i] @ b[:, i + 1]
    return (b * b).sum()


def every_second(a, b):
    n = a.shape[0]
    for i in range(1, n):
        b[i, ::2] -= a[i] @ b[i - 1, 1::2]
        b[i, 1::2] -= a[i] @ b[i - 1, ::2]
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            b[i, ::2] -= a[i] @ b[i + 1, ::-2]
    return (b * b).sum()


def downward(a, b, i):
    b[i] -= a[i] @ b[i - 1]


def upward(a, b, i):
    if i < b.shape[0] - 1:
        b[i] -= a[i] @ b[i + 1]


def in_helpers(a, b):
    for i in range(1, a.shape[0]):
        downward(a, b, i)
    for i in range(a.shape[0] - 1, -1, -1):
        upward(a, b, i)
    return (b * b).sum()


def in_while(a, b):
    n, i = a.shape[0], 1
    while i < n:
        b[i] -= a[i] @ b[i - 1]
        i += 1
    for k in range(n - 1, -1, -1):
        if k < n - 1:
            b[k] -= a[k] @ b[k + 1]
    return (b * b).sum()


def two_products_of_a_row(a, b):
    n = a.shape[0]
    c = np.zeros(b.shape)
    for i in range(1, n):
        c[i] += a[i - 1] @ b[i - 1]
        b[i] -= a[i] @ b[i - 1]
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            b[i] -= a[i] @ b[i + 1]
    return (b * b).sum() + (c * c).sum()


def matrices_in_place(a, b):
    n = a.shape[0]
    for i in range(1, n):
        a[i] = a[i] @ a[i - 1]
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            a[i] = a[i + 1].T @ a[i]
    return (a * a).sum() + (b * b).sum()


def stepwise(a, b):
    for _ in range(4):
        for i in range(1, a.shape[0]):
            b[i] = np.tanh(a[i] @ b[i - 1])
            if i > 2:
                b[i - 2] += b[i] * b[i - 1]
    return (b * b).sum()


@dataclass(frozen=True)
class Case:
    function: Callable[..., Any]
    most: int
    """The bytes that it may save."""
    rows: Any = None

    @property
    def arguments(self) -> tuple[Any, ...]:
        return copy.deepcopy((MATRICES, ROWS if self.rows is None else self.rows))


CASES = (
    Case(block_thomas, (N - 1) * ROW),
    Case(in_columns, (N - 1) * ROW, ROWS.T.copy()),
    Case(every_second, (N - 1) * ROW, RNG.normal(size=(N, 2 * M))),
    Case(in_helpers, (N - 1) * ROW),
    Case(in_while, (N - 1) * ROW),
    Case(two_products_of_a_row, (N - 1) * ROW),
    Case(matrices_in_place, 3 * N * M * ROW),
)
NAMES = [case.function.__name__ for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_parts_are_saved(case: Case) -> None:
    receipt = compile(case.function, grad=True).explain(*case.arguments, run=True)
    assert receipt.saved_bytes is not None
    assert receipt.saved_bytes <= case.most


@pytest.mark.parametrize("case", [*CASES, Case(stepwise, 0)], ids=[*NAMES, "stepwise"])
def test_gradients(case: Case) -> None:
    made = compile(case.function, grad=True)
    check_gradient(made, *case.arguments)
    everything = compile(case.function, grad=True, saves="all")
    for ours, theirs in zip(
        made.grad(*case.arguments), everything.grad(*case.arguments), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", [block_thomas, stepwise])
def test_a_budget_changes_no_bit(function: Callable[..., Any]) -> None:
    arguments = copy.deepcopy((MATRICES, ROWS))
    whole = compile(function, grad=True).grad(*copy.deepcopy(arguments))
    tight = compile(function, grad=True, memory="2KB").grad(*copy.deepcopy(arguments))
    for ours, theirs in zip(tight, whole, strict=True):
        np.testing.assert_array_equal(ours, theirs)

"""Variables of several tangents lie as numbers do: every access says so, in functions of their own and threads."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler import pipeline
from mutad.compiler.request import Options, Request

SLOT = re.compile(r"(%\S+) = alloca (<\d+ x (?:double|float)>), align (\d+)")


def distances(x, m):
    total = 0.0
    for i in range(m.size):
        near = 0.0
        for j in range(m.size):
            p = x[j, 0] - x[i, 0]
            q = x[j, 1] - x[i, 1]
            near += m[j] / (p * p + q * q + 0.5)
        total += near * x[i, 0]
    return total


def row_by_row(x, m):
    for i in mutad.prange(x.shape[0]):
        best = 1.0
        for j in range(x.shape[1]):
            best = best * m[j] + x[i, j]
            x[i, j] = best * best


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("function", [distances, row_by_row])
def test_accesses_to_vectors_in_slots_say_how_these_lie(function: Any, parallel: bool) -> None:
    options = Options(lanes=3, parallel=parallel)
    keys = ("f64[?,?]C", "f64[?]C")
    request = Request(function, keys, mode="tangent", wrt=(0, 1), options=options)
    text = pipeline.run_stages(request, "llvm")
    slots = {m[1]: (m[2], m[3]) for m in SLOT.finditer(text)}
    assert slots
    for access in re.findall(r"(?:load|store) <\d+ x \w+>.*", text):
        used = re.search(r"ptr (%\S+?)(?:,|$)", access)
        if used is not None and used[1] in slots:
            assert f"align {slots[used[1]][1]}" in access


@pytest.mark.parametrize("opt", [0, 1])
def test_without_registers_for_variables_tangents_of_no_rows_are_zero(opt: int) -> None:
    f = mutad.compile(grad=True, opt=opt, cache=False)(distances)
    x, m = np.empty((0, 2)), np.empty(0)
    dots = np.empty((0, 2, 3)), np.empty((0, 3))
    pairs = map(mutad.BatchDuplicated, (x, m), dots)
    value, value_dot = f.pushforward(*pairs)
    assert value == 0.0
    np.testing.assert_array_equal(value_dot, np.zeros(3))

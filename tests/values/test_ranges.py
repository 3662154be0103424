"""Parts of ranges are ranges: what loops run over, their ends and their length are CPython's."""

import itertools

import numpy as np
import pytest
from gradient_oracle import GradientCase
from python_oracle import Case, Programs

programs = Programs()
on = programs.on

ENDS = [f"{n} {a} {b}" for n, a, b in itertools.product((0, 1, 6), (-9, -2, 0, 4), (-3, 0, 5, 20))]


@on(*ENDS, options={"opt": 1})
def parts(n, a, b):
    found = []
    for i in range(n)[::-1]:
        found.append(i)
    for i in range(1, n, 2)[a:]:
        found.append(i)
    for i in range(n, -3, -3)[:b]:
        found.append(i)
    for i in range(n)[a:b]:
        found.append(i)
    for k, i in enumerate(range(n)[a:b:-2]):
        found.append(k * i)
    for i in range(a, b, 2)[::-1][1:]:
        found.append(i)
    for i in reversed(range(n)[1:]):
        found.append(i)
    kept = range(n)[a:b:-1]
    found.append(len(kept) + 10 * kept.start + 100 * kept.step + 1000 * kept.stop)
    return np.array(found)


@on("")
def known():
    return list(range(5)[::-1]), sum(range(10)[::3]), range(10)[3:][1], len(range(9)[7:2:-2])


@on("7 2", "7 -1", "0 1")
def item_of_part(n, k):
    return range(n)[::-1][k]


def recurrence(x):
    y = np.zeros(len(x) + 1)
    for i in range(len(x))[::-1]:
        y[i] = x[i] * (1.0 + y[i + 1])
    return y[0]


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


def test_gradient_of_a_loop_that_runs_backwards() -> None:
    GradientCase(recurrence, lambda: (np.linspace(0.2, 0.9, 6),), relative=1e-6).check_pullback()

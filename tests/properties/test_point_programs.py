"""Generated programs whose points run in blocks of a few: values, exceptions and gradients are Python's.

`MUTAD_POINTS=2000` looks at as many programs, `MUTAD_POINTS=5000:6000` at those of these seeds.
"""

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from generated import seeds_of
from gradient_oracle import GradientCase, NotSmoothHereError
from line_programs import LineProgram, line_program
from point_programs import PointProgram, point_program
from python_oracle import Tolerance, assert_same_outcome, run

from mutad import compile
from mutad.compiler.transforms import point_sizes, vectorize_outer

IN_CI = "0:8"
OPTIONS = (("cache", False), ("opt", 1))
ROUNDING = Tolerance(ulp=64, terms=lambda *_: [1e3])


MAKERS = (point_program, line_program)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", seeds_of("MUTAD_POINTS", IN_CI))
def test_points_that_run_in_blocks(
    seed: int, make: Callable[[int], PointProgram | LineProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(point_sizes, "POINTS", (1, 8, 64)[seed % 3])
    program = make(seed)
    function = program.function()
    want = run(function, program.arguments)
    got = run(compile(function, cache=False, opt=1), program.arguments)
    assert_same_outcome(got, want, program.arguments, ROUNDING)
    if want.exception is not None:
        return
    case = GradientCase(function, program.arguments, relative=1e-5, options=OPTIONS)
    with suppress(NotSmoothHereError):
        if seed % 2:
            case.check_saves_all()
        case.check_pullback()


@pytest.mark.parametrize("make", MAKERS)
def test_the_programs_have_such_points(
    make: Callable[[int], PointProgram | LineProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the other test would look at nothing."""
    taken, replaced = list[bool](), vectorize_outer.replaced

    def noted(*loop: object) -> bool:
        taken.append(replaced(*loop))  # pyright: ignore[reportArgumentType]
        return taken[-1]

    monkeypatch.setattr(vectorize_outer, "replaced", noted)
    for seed in range(24):
        program = make(seed)
        run(compile(program.function(), cache=False, opt=0), program.arguments)
    assert taken.count(True) > 2


def largest(x):
    n, d = x.shape
    t = np.zeros(d)
    total = 0.0
    for i in range(n):
        for c in range(d):
            s = 0.0
            for e in range(c + 1):
                s += math.exp(x[i, c]) / (c + 1)
            t[c] = s
        total += t.max()
    return total


def test_a_derivative_is_split_evenly_among_the_largest_of_a_point() -> None:
    gradient = compile(largest, grad=True, cache=False, opt=1).grad(np.zeros((20, 4)))
    np.testing.assert_allclose(gradient, 0.25)


def nearest(x, w):
    total = 0.0
    for i in range(x.size):
        best = np.inf
        for c in range(w.size):
            away = math.sin(x[i] - w[c])
            if away * away < best:
                best = away * away
        total += best
    return total


def test_conditions_of_eight_points_share_a_byte() -> None:
    x, w = np.linspace(0.031, 1.1, 100), np.linspace(0.0, 1.0, 5)
    made = compile(nearest, grad=True, cache=False, opt=1)
    plan = made.explain(x, w)
    assert plan.saved_bytes == 5 * 13, str(plan)
    apart = x[:, None] - w
    best = apart[np.arange(100), np.argmin(np.sin(apart) ** 2, axis=1)]
    np.testing.assert_allclose(made.grad(x, w), np.sin(2.0 * best))

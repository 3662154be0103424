"""Generated steps over grids, several of them together: values, and gradients, are Python's.

`MUTAD_SKEWED=2000` looks at as many programs, `MUTAD_SKEWED=5000:6000` at those of these seeds.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from generated import seeds_of
from gradient_oracle import GradientCase
from skewed_programs import skewed_program, taped_program, vector_program

from mutad import compile
from mutad.compiler import pass_order
from mutad.compiler.transforms import fuse_rows, skew_steps, skew_vectors, unroll_steps

IN_CI = "0:6"


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps run together however small the grids are."""
    passes = [
        replace(p, cache=-1)
        if isinstance(p, skew_steps.SkewSteps | skew_vectors.SkewVectors)
        else p
        for p in pass_order.OPTIMIZE
    ]
    monkeypatch.setattr("mutad.compiler.stages.optimize.OPTIMIZE", tuple(passes))
    monkeypatch.setattr(fuse_rows, "SMALL", 0)
    monkeypatch.setattr(skew_vectors, "BLOCK", 64)
    monkeypatch.setattr(skew_vectors, "LONG", 64)


@pytest.mark.parametrize("seed", seeds_of("MUTAD_SKEWED", IN_CI))
def test_steps_that_run_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse_rows, "BLOCK", (1, 20, 60)[seed % 3])
    monkeypatch.setattr(fuse_rows, "NEAR", (1, 1 << 12, 60)[seed // 2 % 3])
    program = skewed_program(seed)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(program.function(), program.arguments, relative=1e-6, options=options)
    if seed % 3 == 0:
        case.check_saves_all()
    case.check_pullback()


@pytest.mark.parametrize("seed", seeds_of("MUTAD_SKEWED", IN_CI))
def test_steps_along_a_tape_that_run_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse_rows, "BLOCK", (4, 80, 240)[seed % 3])
    monkeypatch.setattr(fuse_rows, "NEAR", (1, 1 << 12, 60)[seed // 2 % 3])
    program = taped_program(seed)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(program.function(), program.arguments, relative=1e-6, options=options)
    if seed % 3 == 0:
        case.check_saves_all()
    case.check_pullback()


@pytest.mark.parametrize("seed", seeds_of("MUTAD_SKEWED", IN_CI))
def test_steps_over_vectors_that_run_together(seed: int) -> None:
    program = vector_program(seed)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(program.function(), program.arguments, relative=1e-6, options=options)
    if seed % 3 == 0:
        case.check_saves_all()
    case.check_pullback()


@pytest.mark.parametrize("steps", [0, 3, 4, 11])
@pytest.mark.parametrize("size", [40, 64, 65, 127, 500])
def test_steps_over_vectors_have_the_same_bits(
    size: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient copies the elements at both ends from one array to the other in each step."""

    def smoothed(x: Any, steps: Any) -> Any:
        u = x.copy()
        for _ in range(steps):
            u[1:-1] = 0.4 * u[:-2] + 0.3 * u[1:-1] + 0.25 * u[2:]
        return (u * u).sum()

    x = np.random.default_rng(size).random(size)
    together = compile(smoothed, grad=True, cache=False).value_and_grad(x, steps, wrt="x")
    monkeypatch.setattr(skew_vectors, "LONG", 1 << 40)
    alone = compile(smoothed, grad=True, cache=False).value_and_grad(x, steps, wrt="x")
    assert together[0] == alone[0]
    np.testing.assert_array_equal(together[1], alone[1])


def test_the_programs_over_vectors_have_such_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some only one end of the vectors has a map of its own, or none."""
    ends, write = list[int](), skew_vectors.Skewed.write

    def noted(skewed: skew_vectors.Skewed, *args: Any) -> None:
        ends.append(sum(skewed.steps.ends))
        write(skewed, *args)

    monkeypatch.setattr(skew_vectors.Skewed, "write", noted)
    for seed in range(12):
        program = vector_program(seed)
        compile(program.function(), grad=True, cache=False, opt=0).grad(*program.arguments())
    assert len(ends) > 2


def test_the_programs_have_such_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the other test would look at nothing."""
    together, write = list[int](), skew_steps.Skewed.write

    def noted(*args: object) -> None:
        together.append(1)
        write(*args)  # pyright: ignore

    monkeypatch.setattr(skew_steps.Skewed, "write", noted)
    for seed in range(12):
        program = skewed_program(seed)
        compile(program.function(), cache=False, opt=0)(*program.arguments())
    assert len(together) > 2


def test_the_taped_programs_have_such_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some all steps do the borders first, and of some two steps have temporaries."""
    ahead, write = list[int](), skew_steps.Skewed.write
    loops, unroll = list[int](), unroll_steps.unroll

    def noted_loop(loop: Any) -> None:
        loops.append(1)
        unroll(loop)

    monkeypatch.setattr(unroll_steps, "unroll", noted_loop)

    def noted(skewed: skew_steps.Skewed, *args: Any) -> None:
        ahead.append(len(skewed.ahead))
        write(skewed, *args)

    monkeypatch.setattr(skew_steps.Skewed, "write", noted)
    for seed in range(8):
        program = taped_program(seed)
        compile(program.function(), grad=True, cache=False, opt=0).grad(*program.arguments())
    assert any(ahead)
    assert loops

"""Generated programs as kernels, threads shuffled: values, effects and gradients are those of the CPU's code.

In place, and launched by compiled code through the emulated driver, where no threads may race.

`MUTAD_KERNELS=200` looks at as many of each kind, `MUTAD_KERNELS=500:600` at those of these seeds.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from assembled_kernels import assembled
from device_oracle import check_kernels, strict
from generated import seeds_of
from gradient_oracle import GradientCase, random_cotangent
from hypothesis import given
from on_device import on_device, on_host
from point_programs import point_program
from profiles import profile
from python_oracle import Outcome, run
from race_oracle import watched
from row_programs import row_program
from small_programs import SmallProgram, small_programs
from stencil_programs import stencil_program
from sweep_programs import sweep_program

import mutad

KINDS: dict[str, Callable[[int], Any]] = {
    "stencil": stencil_program,
    "row": row_program,
    "point": point_program,
    "sweep": sweep_program,
}
IN_CI = "0:2"


def outcome(
    compiled: Any, given: tuple[Any, ...], wrt: tuple[str, ...], bar: Any = None
) -> list[Any]:
    """What is returned, the gradients, and what is left of the arguments; or the exception, and these."""
    try:
        if bar is None:
            value, gradients = compiled.value_and_grad(*given, wrt=wrt)
            found = [value, *gradients]
        else:
            (value, *others), back = compiled.vjp(*given, wrt=wrt)
            found = [value, *others, *back(bar)]
    except (IndexError, ValueError, ArithmeticError, NameError) as error:
        found = [str(error)]
    return [*found, *given]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds_of("MUTAD_KERNELS", IN_CI))
def test_kernels_compute_what_the_cpu_does(kind: str, seed: int) -> None:
    """What is refused is no program of a device: some of the loops over elements."""
    program = KINDS[kind](seed)
    function, given = program.function(), program.arguments()
    names = inspect.signature(function).parameters
    wrt = tuple(n for n, a in zip(names, given, strict=True) if is_differentiable(a))
    options: dict[str, Any] = {"grad": True, "opt": 1, "cache": False}
    bar = cotangents(run(function, program.arguments))
    wanted = outcome(mutad.compile(function, **options), given, wrt, bar)
    given = program.arguments()
    try:
        found = outcome(mutad.compile(function, target="cuda:host", **options), given, wrt, bar)
    except mutad.CompileError:
        assert kind != "row", "rows of whole arrays are programs of a device"
        return
    same(found, wanted)
    looks = seed % 2 == 0 or "MUTAD_KERNELS" in os.environ
    with watched() if looks else strict(), assembled(f"{kind} {seed}"):
        there = on_device(program.arguments())
        there_bar = None if bar is None else on_device(bar)
        launched = outcome(mutad.compile(function, **options), there, wrt, there_bar)
        same([on_host(value) for value in launched], wanted)


@pytest.mark.parametrize("seed", [2, 76])
def test_arrays_that_a_stencil_does_not_fit_into(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of no points, and adjoints that gather from an empty window: no thread leaves its array."""
    monkeypatch.setenv("MUTAD_KERNELS", f"{seed}:{seed + 1}")  # threads are watched
    test_kernels_compute_what_the_cpu_does("stencil", seed)


def cotangents(plain: Outcome) -> tuple[Any, ...] | None:
    """Those of a program that returns several things, none of one that raises; None for one number."""
    if plain.exception is not None:
        return ()
    if not isinstance(plain.result, tuple):
        return None
    return random_cotangent(np.random.default_rng(1), plain.result)


def same(found: list[Any], wanted: list[Any]) -> None:
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, str):
            assert one == other
        else:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@profile(few=2, many=200)
@given(small_programs())
def test_every_call_of_small_programs(program: SmallProgram) -> None:
    """Loops, branches, views and shared memory: pulled back, pushed forward, multiplied by Hessians."""
    options = (("cache", False),)
    check_kernels(GradientCase(program.function(), program.arguments, options=options))


def is_differentiable(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")

"""Generated loop nests that overwrite what they read: gradients are derivatives, saving more changes nothing.

`MUTAD_SWEEPS=2000` looks at as many programs, `MUTAD_SWEEPS=5000:6000` at those of these seeds.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from generated import seeds_of
from gradient_oracle import GradientCase, NotSmoothHereError
from reach_oracle import check_cotangents_reach, check_tangents_reach
from same_bits import require_same_bits
from sweep_programs import SweepProgram, sweep_program
from tangent_oracle import check_batch

import mutad

IN_CI = "0:20"
VECTORS = 37
"""A size at which users' code has vectors, and numbers that are left."""


@pytest.mark.parametrize("seed", seeds_of("MUTAD_SWEEPS", IN_CI))
def test_gradients_of_sweeps(seed: int) -> None:
    program = sweep_program(seed)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(program.function(), program.arguments, relative=1e-6, options=options)
    case.check_saves_all()
    check_cotangents_reach(case)
    check_tangents_reach(case)
    check_batch(case)
    try:
        case.check_pullback()
    except NotSmoothHereError:
        pass  # What the differences cannot tell, saving everything has told.


@pytest.mark.parametrize("seed", seeds_of("MUTAD_SWEEPS", IN_CI)[::4])
def test_sweeps_within_the_least_budget(seed: int) -> None:
    """The same gradient, bit for bit, from as few saved bytes as possible."""
    check_least_budget(sweep_program(seed), opt=1)


ONE_VERSION = (573, 654, 1190)
"""Programs with functions in a branch, which LLVM vectorizes where nothing is saved; with loops that a step
takes apart; and with cells that a step of a step is handed."""


@pytest.mark.parametrize("seed", [*seeds_of("MUTAD_SWEEPS", IN_CI)[9::8], *ONE_VERSION])
def test_vector_code_of_sweeps_within_the_least_budget(seed: int) -> None:
    check_least_budget(replace(sweep_program(seed), n=VECTORS), opt=3)


ONE_ORDER = (1, 1010, 1219)
"""Programs with sums that are reordered: over elements, into a number that steps hand on, and over rows."""


@pytest.mark.parametrize("seed", ONE_ORDER)
def test_sums_of_sweeps_have_one_order_within_the_least_budget(seed: int) -> None:
    check_least_budget(replace(sweep_program(seed), n=VECTORS), opt=1)


def check_least_budget(program: SweepProgram, opt: int) -> None:
    wrt = ("u", "v")
    function, given = program.function(), program.arguments()
    free = mutad.compile(function, grad=True, opt=opt)
    value, gradients = free.value_and_grad(*given, wrt=wrt)
    memory = least_budget(function, program.arguments, wrt)
    again = program.arguments()
    tight = mutad.compile(function, grad=True, opt=opt, memory=memory)
    found_value, found_gradients = tight.value_and_grad(*again, wrt=wrt)
    require_same_bits((found_value, *found_gradients, *again), (value, *gradients, *given))


def least_budget(
    function: Callable[..., Any], given: Callable[[], tuple[Any, ...]], wrt: tuple[str, ...]
) -> int:
    """What errors ask for: those of loops that come later know of those before."""
    memory, larger = 0, 1
    while larger > memory:
        memory = larger
        try:
            mutad.compile(function, grad=True, opt=1, memory=memory).value_and_grad(
                *given(), wrt=wrt
            )
        except MemoryError as error:
            found = re.search(r"at least (\d+)", str(error))
            assert found is not None
            larger = int(found[1])
            assert larger > memory
    return memory

"""Generated time loops within budgets: the same gradients, of steps that are run again.

`MUTAD_STEPPED=2000` looks at as many programs, `MUTAD_STEPPED=5000:6000` at those of these seeds.
"""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from generated import seeds_of
from same_bits import require_same_bits
from stepped_programs import SteppedProgram, stepped_program

import mutad

IN_CI = "0:8"
WRT = ("u", "v", "w")


def outcome(program: SteppedProgram, memory: Any, saves: str = "minimal") -> list[Any]:
    """The value, the gradients and what the arrays hold afterwards; or the exception."""
    given = program.arguments()
    options: dict[str, Any] = {"opt": 1, "cache": False, "memory": memory, "saves": saves}
    gradient = mutad.compile(program.function(), grad=True, **options)
    try:
        value, gradients = gradient.value_and_grad(*given, wrt=WRT)
    except (ValueError, IndexError, OverflowError) as error:
        value, gradients = repr(error), ()
    return [value, *gradients, *given]


def outcome_of_others(program: SteppedProgram, memory: Any) -> list[Any]:
    """The same of `vjp`, called back when the arguments are gone, or of Hessian-vector products."""
    given = program.arguments()
    gradient = mutad.compile(program.function(), grad=True, opt=1, cache=False, memory=memory)
    try:
        if program.size % 2:
            direction = tuple(np.cos(np.arange(program.size) + k) for k in range(len(WRT)))
            value, first, second = gradient.value_grad_hvp(*given, wrt=WRT, direction=direction)
            return [value, *first, *second, *given]
        value, back = gradient.vjp(*given, wrt=WRT)
    except (ValueError, IndexError, OverflowError) as error:
        return [repr(error), *given]
    after = [np.array(one) for one in given]
    for one in given[: len(WRT)]:
        one[...] = np.nan
    return [value, *back(1.0), *back(0.5, u=np.ones(program.size)), *after]


def within(
    program: SteppedProgram, memory: int, of: Callable[..., list[Any]] = outcome
) -> tuple[list[Any], int | None]:
    """What a budget leads to, or the larger one that its error asks for."""
    try:
        return of(program, memory), None
    except MemoryError as error:
        least = re.search(r"at least (\d+)", str(error))
        larger = 0 if least is None else int(least[1])
    assert larger > memory
    return [], larger


def tightest(program: SteppedProgram, of: Callable[..., list[Any]]) -> tuple[list[Any], int]:
    """What the least budget leads to, and how many bytes that is."""
    memory, larger = 0, 1
    found: list[Any] = []
    while larger is not None:
        memory = larger
        found, larger = within(program, memory, of)
    return found, memory


def require_equal(found: list[Any], wanted: list[Any]) -> None:
    """Up to rounding: a gradient that saves all need not contract what another one does."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(one, str):
            assert one == other
        else:
            finite = np.isfinite(other)
            np.testing.assert_array_equal(np.where(finite, 0.0, one), np.where(finite, 0.0, other))
            scale = 1e-300 + np.abs(np.where(finite, other, 0.0)).max()
            of_both = (np.where(finite, a, 0.0) / scale for a in (one, other))
            np.testing.assert_allclose(*of_both, rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", seeds_of("MUTAD_STEPPED", IN_CI))
def test_gradients_within_budgets(seed: int) -> None:
    """What is known only at run time is refused."""
    program = stepped_program(seed)
    wanted = outcome(program, None, "all")
    free = outcome(program, None)
    require_equal(free, wanted)
    with suppress_unknown():
        found, memory = tightest(program, outcome)
        require_same_bits(found, free)
        require_same_bits(outcome(program, memory + memory // 3), free)
        require_same_bits(outcome(program, (memory, "disk")), free)
        others = tightest(program, outcome_of_others)[0]
        require_equal(others, outcome_of_others(program, None))


@contextmanager
def suppress_unknown() -> Generator[None]:
    try:
        yield
    except mutad.CompileError as error:
        if "known only at run time" not in str(error):
            raise

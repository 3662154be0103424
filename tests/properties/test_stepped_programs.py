"""Generated time loops within budgets: the same gradients, of steps that are run again.

`MUTAD_STEPPED=2000` looks at as many programs, `MUTAD_STEPPED=5000:6000` at those of these seeds.
"""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from stepped_programs import SteppedProgram, stepped_program

import mutad

IN_CI = "0:8"
WRT = ("u", "v", "w")


def seeds() -> range:
    first, _, last = os.environ.get("MUTAD_STEPPED", IN_CI).rpartition(":")
    return range(int(first or 0), int(last))


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


def within(program: SteppedProgram, memory: int) -> tuple[list[Any], int | None]:
    """What a budget leads to, or the larger one that its error asks for."""
    try:
        return outcome(program, memory), None
    except MemoryError as error:
        least = re.search(r"at least (\d+)", str(error))
        larger = 0 if least is None else int(least[1])
    assert larger > memory
    return [], larger


def require_equal(found: list[Any], wanted: list[Any]) -> None:
    """Up to rounding: what LLVM contracts in the one gradient it need not in the other."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(one, str):
            assert one == other
        else:
            scale = 1e-300 + np.abs(other).max()
            np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", seeds())
def test_gradients_within_budgets(seed: int) -> None:
    """What only a run can tell is refused."""
    program = stepped_program(seed)
    wanted = outcome(program, None, "all")
    require_equal(outcome(program, None), wanted)
    with suppress_unknown():
        memory, larger = 0, 1
        found: list[Any] = []
        while larger is not None:
            memory = larger
            found, larger = within(program, memory)
        require_equal(found, wanted)
        require_equal(outcome(program, memory + memory // 3), wanted)
        require_equal(outcome(program, (memory, "disk")), wanted)


@contextmanager
def suppress_unknown() -> Generator[None]:
    try:
        yield
    except mutad.CompileError as error:
        if "only a run can tell how much" not in str(error):
            raise

"""Generated programs whose points run in blocks of a few: values, exceptions and gradients are Python's.

`MUTAD_POINTS=2000` looks at as many programs, `MUTAD_POINTS=5000:6000` at those of these seeds.
"""

import os
from contextlib import suppress

import pytest
from gradient_oracle import GradientCase, NotSmoothHereError
from point_programs import point_program
from python_oracle import Tolerance, assert_same_outcome, run

from mutad import compile
from mutad.compiler.transforms import point_blocks, vectorize_outer

IN_CI = "0:8"
OPTIONS = (("cache", False), ("opt", 1))
ROUNDING = Tolerance(ulp=64, terms=lambda *_: [1e3])


def seeds() -> range:
    first, _, last = os.environ.get("MUTAD_POINTS", IN_CI).rpartition(":")
    return range(int(first or 0), int(last))


@pytest.mark.parametrize("seed", seeds())
def test_points_that_run_in_blocks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_blocks, "POINTS", (1, 4, 64)[seed % 3])
    program = point_program(seed)
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


def test_the_programs_have_such_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the other test would look at nothing."""
    taken, replaced = list[bool](), vectorize_outer.replaced

    def noted(*loop: object) -> bool:
        taken.append(replaced(*loop))  # pyright: ignore[reportArgumentType]
        return taken[-1]

    monkeypatch.setattr(vectorize_outer, "replaced", noted)
    for seed in range(8):
        program = point_program(seed)
        run(compile(program.function(), cache=False, opt=0), program.arguments)
    assert taken.count(True) > 2

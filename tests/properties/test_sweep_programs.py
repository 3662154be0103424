"""Generated loop nests that overwrite what they read: gradients are derivatives, saving more changes nothing.

`MUTAD_SWEEPS=2000` looks at as many programs, `MUTAD_SWEEPS=5000:6000` at those of these seeds.
"""

import os

import pytest
from gradient_oracle import GradientCase, NotSmoothHereError
from reach_oracle import check_cotangents_reach, check_tangents_reach
from sweep_programs import sweep_program
from tangent_oracle import check_batch

IN_CI = "0:20"


def seeds() -> range:
    first, _, last = os.environ.get("MUTAD_SWEEPS", IN_CI).rpartition(":")
    return range(int(first or 0), int(last))


@pytest.mark.parametrize("seed", seeds())
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

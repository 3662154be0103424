"""Generated stencils, whose adjoints gather: gradients are derivatives, and reach what they should.

`MUTAD_STENCILS=2000` looks at as many programs, `MUTAD_STENCILS=5000:6000` at those of these seeds.
"""

import pytest
from generated import seeds_of
from gradient_oracle import GradientCase, NotSmoothHereError
from reach_oracle import check_cotangents_reach
from stencil_programs import stencil_program

from mutad.compiler.transforms import fuse_rows

IN_CI = "0:8"


@pytest.mark.parametrize("seed", seeds_of("MUTAD_STENCILS", IN_CI))
def test_gradients_of_stencils(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:  # whole arrays, or a few rows at a time
        monkeypatch.setattr(fuse_rows, "BLOCK", (1, 4, 20)[seed % 3])
        monkeypatch.setattr(fuse_rows, "SMALL", 0)
        monkeypatch.setattr(fuse_rows, "NEAR", (1, 1 << 12, 60)[seed // 2 % 3])
        monkeypatch.setattr(fuse_rows, "CACHED", (1, 1 << 17)[seed // 3 % 2])
    program = stencil_program(seed)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(program.function(), program.arguments, relative=1e-6, options=options)
    case.check_saves_all()
    check_cotangents_reach(case)
    try:
        case.check_pullback()
    except NotSmoothHereError:
        pass  # What the differences cannot tell, saving everything has told.

"""Generated programs that hand rows on, in steps of a few elements: values, and gradients, are Python's.

`MUTAD_ROWS=2000` looks at as many programs, `MUTAD_ROWS=5000:6000` at those of these seeds.
"""

import pytest
from generated import seeds_of
from gradient_oracle import GradientCase
from row_programs import row_program

from mutad import compile
from mutad.compiler.transforms import fuse_rows

IN_CI = "0:6"


@pytest.mark.parametrize("seed", seeds_of("MUTAD_ROWS", IN_CI))
def test_rows_that_maps_hand_on(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse_rows, "BLOCK", (1, 4, 20)[seed % 3])
    monkeypatch.setattr(fuse_rows, "SMALL", 0)
    monkeypatch.setattr(fuse_rows, "NEAR", (1, 1 << 12, 60)[seed // 2 % 3])
    monkeypatch.setattr(fuse_rows, "CACHED", (1, 1 << 17)[seed // 3 % 2])
    monkeypatch.setattr(fuse_rows, "WIDE", (2, 1000)[seed % 2])
    program = row_program(seed)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(program.function(), program.arguments, relative=1e-6, options=options)
    if seed % 3 == 0:
        case.check_saves_all()
    case.check_pullback()


def test_the_programs_have_loops_over_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the other test would look at nothing."""
    shifts, emit = list[int](), fuse_rows.FusedRows.emit

    def noted(loop: fuse_rows.FusedRows) -> None:
        shifts.append(max(loop.run.shifts) if loop.rolled else 0)
        emit(loop)

    monkeypatch.setattr(fuse_rows.FusedRows, "emit", noted)
    for seed in range(6):
        program = row_program(seed)
        compile(program.function(), cache=False, opt=0)(*program.arguments())
    assert len(shifts) > 2
    assert max(shifts) > 0

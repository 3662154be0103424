"""Every library entry computes what NumPy computes: its own cases, for several shapes and dtypes."""

import numpy as np
import pytest
from library_programs import LibraryProgram, library_programs
from python_oracle import Tolerance, assert_same_outcome, compiled, run

PROGRAMS = list(library_programs())
SHAPES = ((7,), (3, 4), (0,), (1,))
FEW = Tolerance(ulp=4, terms=lambda *_: np.full(20, 4.0))
"""Four units in the last place, and for sums twenty terms of magnitude four."""


def takes_matrices(program: LibraryProgram) -> bool:
    return any(kind == "matrix" for _, kind in program.arguments)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_values_are_numpy_s(program: LibraryProgram, dtype) -> None:
    function = program.function()
    for shape in SHAPES if dtype is np.float64 else SHAPES[:2]:
        row = program.row(shape, dtype)
        want = run(function, row)
        assert_same_outcome(run(compiled(function), row), want, row, FEW)

"""Every differentiable library entry has the derivative that central differences measure."""

import pytest
from gradient_oracle import GradientCase
from library_programs import LibraryProgram, library_programs

PROGRAMS = [
    program
    for program in library_programs()
    if any(kind not in ("integer", "bool", "count", "special") for _, kind in program.arguments)
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_pullback(program: LibraryProgram) -> None:
    function = program.function()
    for shape in ((5,), (3, 4)):
        GradientCase(function, program.row(shape), relative=1e-6).check_pullback()

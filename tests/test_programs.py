"""The programs that `python -m benchmarks programs` times, at tiny sizes: Python's values, true gradients."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent))

PROGRAMS = importlib.import_module("benchmarks.programs.catalogue").PROGRAMS
measure = importlib.import_module("benchmarks.programs.measure")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_has_the_values_of_python_and_the_slopes_of_differences(program) -> None:
    measure.check_tiny(program, opt=1)


def test_no_program_changes_its_arguments() -> None:
    """They are called again and again on the same ones."""
    for program in PROGRAMS:
        given, kept = program.make(program.tiny), program.make(program.tiny)
        program.function(*given)
        assert measure.difference_of_all(given, kept) == 0.0, program.name

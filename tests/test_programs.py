"""The programs that `python -m benchmarks programs` times, at tiny sizes: Python's values, true gradients."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from c_files import needs

sys.path.append(str(Path(__file__).parent.parent))

PROGRAMS = importlib.import_module("benchmarks.programs.catalogue").PROGRAMS
report = importlib.import_module("benchmarks.programs.report")
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


SHOWN = """
import mutad
from benchmarks.long_programs import PROGRAMS as LONG
from benchmarks.programs.catalogue import PROGRAMS
for p in PROGRAMS:
    if p.name in ("gramschmidt", "lstm_loops", "particle_in_cell"):
        print(mutad.compile(p.function, grad=True).inspect("llvm", *p.make(p.tiny), wrt=p.wrt))
function, make = LONG["trained"]
print(mutad.compile(function, grad=True).inspect("llvm", *make(), wrt=0))
"""


def test_the_code_does_not_hang_on_the_hashes_of_strings(root: Path) -> None:
    """Nor on addresses: what is in a set, or sorted by identity, must not decide what is done first."""
    shown = [
        subprocess.run(
            [sys.executable, "-c", SHOWN], cwd=root, check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert shown[0].count("\ndefine ") > 40
    assert shown[0] == shown[1]


@needs("gcc")
def test_the_benchmark_measures_beside_code_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the peers that a user may not have."""
    (program,) = (program for program in PROGRAMS if program.name == "burgers")
    nobody = {"numba": None, "jax": None, "enzyme": None}
    row = measure.measured(program, program.tiny, nobody, rounds=1, seconds=0.0)
    assert {*row.primal} == {"ours", "NumPy", "by hand"}
    assert {*row.gradient} == {"ours", "by hand"}
    assert 0 < row.saved <= 200 * 12 * 8
    row.gradient["JAX"] = 8.0 * row.gradient["by hand"]
    report.show([row])
    shown = capsys.readouterr().out
    assert "gradient: ours / by hand: geometric mean" in shown
    assert "the most that can be had: gradient of JAX / by hand: geometric mean 8.00x" in shown
    assert "  / ours, if it took one primal: geometric mean" in shown

"""The example's model and the benchmarks' kernels, at small sizes: values, effects and gradients."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from c_files import STRICT, needs, run, sanitizers
from turns import has_turn

import mutad

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

KERNELS = importlib.import_module("benchmarks.kernels").KERNELS


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_benchmark_measures_what_is_right(kernel) -> None:
    level = {} if has_turn(kernel.name) else {"opt": 1}
    compiled = mutad.compile(kernel.function, grad=True, **level)
    arguments = kernel.make(small=True)
    np.testing.assert_allclose(compiled(*arguments), kernel.function(*arguments), rtol=1e-12)
    mutad.check_gradient(compiled, *arguments, wrt=kernel.wrt)


@pytest.fixture(scope="module")
def hillslope() -> ModuleType:
    return importlib.import_module("hillslope")


def small_problem(hillslope: ModuleType) -> tuple[np.ndarray, tuple]:
    terrain = hillslope.read_terrain()
    start = terrain.start[100:120, 200:218].copy()
    row, column = np.array([4, 9, 15]), np.array([3, 12, 7])
    bed = start[row, column]
    return start, (row, column, bed, terrain.dx, terrain.dy, 2000.0, 20)


def test_the_example_erodes_as_numpy_does(hillslope: ModuleType) -> None:
    start, physics = small_problem(hillslope)
    kappa = hillslope.true_kappa(start.shape)
    expected, actual = start.copy(), start.copy()
    hillslope.erode(expected, kappa, *physics)
    mutad.compile(hillslope.erode)(actual, kappa, *physics)
    np.testing.assert_array_equal(actual, expected)
    assert not np.array_equal(actual, start)


def test_the_example_saves_one_grid_a_step(hillslope: ModuleType) -> None:
    start, physics = small_problem(hillslope)
    model = mutad.compile(hillslope.misfit, grad=True)
    arguments = (np.log(hillslope.true_kappa(start.shape)), start, start + 1.0, *physics)
    steps, rivers = physics[-1], physics[0].size
    plan = model.explain(*arguments, wrt="log_kappa")
    bits = (rivers + 7) // 8  # whether each river has cut down to its bed
    assert plan.saved_bytes == steps * (8 * start.size + bits)
    _, slope = model.value_and_grad(*arguments, wrt="log_kappa")
    error = hillslope.directional_error(lambda at: model(at, *arguments[1:]), slope, arguments[0])
    assert error < 1e-6


@needs("cc")
@needs("make")
def test_a_c_program_finds_what_the_example_finds(tmp_path: Path) -> None:
    """`make demo-aot`, on a corner of the terrain: strict C99, with sanitizers."""
    flags = " ".join(("-std=c99", *STRICT, "-O1", *sanitizers(tmp_path, "cc")))
    told = (f"OUT={tmp_path}", f"PYTHON={sys.executable}", f"CFLAGS={flags}", "SIZE=--small")
    shown = run(ROOT / "examples" / "from_c", "make", "-s", *told)
    (in_c, in_python) = re.findall(r"iteration  5   misfit +([\d.]+)", shown)
    assert float(in_c) == pytest.approx(float(in_python), abs=0.5)
    (away,) = re.findall(r"misfits differ by (\S+),", shown)
    assert float(away) < 1e-10
    assert re.search(r"gradients +│ 6 +│ 6 ", shown)


def test_the_device_program_says_what_is_missing_and_runs_emulated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = importlib.import_module("device")
    if not mutad.cuda.is_available():
        assert program.main([]) == 0
        assert "There is no device to run this on" in capsys.readouterr().out
    assert program.main(["--emulated", "--size", "12", "--steps", "2"]) == 0
    shown = capsys.readouterr().out
    log_kappa, *rest = program.problem(12, 2)
    value, gradient = mutad.compile(program.misfit, grad=True).value_and_grad(log_kappa, *rest)
    assert f"misfit {value:.6g}, |gradient| {np.linalg.norm(gradient):.6g}" in shown

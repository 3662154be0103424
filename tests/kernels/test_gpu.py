"""`pytest -m gpu`: what tests run by the emulated driver, on NVIDIA's device: programs, races, benchmarks.

(With `test_device_calls.py` and `test_device_golden.py`, which run on either.) The bodies are run here,
small, by the emulated driver.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import device_oracle
import numpy as np
import pytest
from device_oracle import CPU_ONLY, check_on_device
from device_programs import PROGRAMS, named
from gradient_oracle import GradientCase, GradientPrograms
from meeting_programs import MEETING
from on_device import on_device, on_host
from point_programs import point_program
from row_programs import row_program
from stencil_programs import stencil_program
from sweep_programs import sweep_program

import mutad
from benchmarks import gpu

TABLES = sorted((Path(__file__).parents[1] / "gradients").glob("test_*.py"))
ALL = (*PROGRAMS, *((m.function, m.arguments, m.wrt) for m in MEETING))
GENERATED = (stencil_program, row_program, point_program, sweep_program)


@pytest.fixture(scope="module")
def cuda() -> None:
    """There is a device; skipped, with what is missing, elsewhere."""
    if not (available := mutad.cuda.is_available()):
        pytest.skip(available.reason)


needs_a_device = [pytest.mark.gpu, pytest.mark.usefixtures("cuda")]


def marked(test: Callable[..., None]) -> Callable[..., None]:
    for mark in needs_a_device:
        test = mark(test)
    return test


def cases_of(path: Path) -> list[GradientCase]:
    """The programs of a table, one row of each."""
    spec = importlib.util.spec_from_file_location(f"on_gpu_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    tables = [v for v in vars(module).values() if isinstance(v, GradientPrograms)]
    return [c for t in tables for c in t.first if CPU_ONLY.isdisjoint(dict(c.options))]


def every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_oracle, "ASKED", "programs")


def check_table(path: Path, most: int | None = None) -> None:
    """All programs of a table; what is wrong is told together."""
    wrong: list[str] = []
    for case in cases_of(path)[:most]:
        try:
            check_on_device(case)
        except AssertionError as error:
            wrong.append(f"{case}: {error}")
    assert not wrong, "\n".join(wrong)


def check_program(
    program: Callable[..., Any], given: tuple[Any, ...], wrt: tuple[str, ...]
) -> None:
    """Values, gradients and what is left of the arguments are the CPU's."""
    compiled = mutad.compile(program, grad=True, opt=1)
    outcomes: list[Any] = []
    for arguments in (given, on_device(given)):
        try:
            found = compiled.value_and_grad(*arguments, wrt=wrt) if wrt else compiled(*arguments)
        except (IndexError, ValueError, ArithmeticError, NameError) as error:
            found = str(error)
        except mutad.CompileError:
            return
        outcomes.append(on_host((found, arguments)))
    compare(outcomes[1], outcomes[0])


def compare(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            compare(one, other)
    elif isinstance(wanted, str):
        assert found == wanted
    else:
        np.testing.assert_allclose(
            found, wanted, rtol=1e-4 if is_single(wanted) else 1e-9, atol=1e-9
        )


def is_single(value: Any) -> bool:
    return np.asarray(value).dtype == np.float32


@marked
@pytest.mark.parametrize("path", TABLES, ids=lambda p: p.stem)
def test_gradient_programs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every_call(monkeypatch)
    check_table(path)


@marked
@pytest.mark.parametrize(("function", "arguments", "wrt"), ALL, ids=map(named, ALL))
def test_device_programs(
    function: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], wrt: tuple[str, ...]
) -> None:
    check_program(function, arguments(), wrt)


@marked
@pytest.mark.parametrize("kind", GENERATED)
@pytest.mark.parametrize("seed", range(40))
def test_generated_programs(kind: Callable[[int], Any], seed: int) -> None:
    check_generated(kind, seed)


def check_generated(kind: Callable[[int], Any], seed: int) -> None:
    made = kind(seed)
    function, given = made.function(), made.arguments()
    names = function.__code__.co_varnames
    floats = tuple(
        name
        for name, a in zip(names, given, strict=False)
        if isinstance(a, float) or (isinstance(a, np.ndarray) and a.dtype.kind == "f")
    )
    check_program(function, given, floats)


@marked
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck"])
def test_the_sanitizer_finds_nothing(tool: str) -> None:
    found = shutil.which("compute-sanitizer")
    if found is None:
        pytest.skip("compute-sanitizer is missing: it is in the CUDA toolkit")
    here = Path(__file__)
    tests = [str(here.with_name(n)) for n in ("test_device_golden.py", "test_device_calls.py")]
    asked = [found, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "pytest", "-q"]
    run = subprocess.run([*asked, "-m", "gpu", *tests], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@marked
def test_the_benchmark_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gpu.main(["--rounds", "1", "--plot", str(tmp_path / "gpu.svg")])
    assert "of the copy's bandwidth" in capsys.readouterr().out


# The same, small, without a device.


def test_bodies_run_by_the_emulated_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    every_call(monkeypatch)
    golden = next(p for p in TABLES if p.stem == "test_code_that_never_runs")
    with mutad.cuda.emulated() as driver:
        check_table(golden, 1)
        check_generated(point_program, 0)
        assert not driver.unexpected


def test_the_benchmark_says_what_is_missing_and_runs_emulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not mutad.cuda.is_available():
        gpu.main([])
        assert "There is no device to measure" in capsys.readouterr().out
    monkeypatch.setattr(gpu, "TINY", (6, 9))
    picture = tmp_path / "gpu.svg"
    gpu.main(["--emulated", "--plot", str(picture)])
    shown = capsys.readouterr().out
    for title in ("driver, GB/s", "bound of", "GFLOP/s", "plain launches"):
        assert title in shown
    drawn = picture.read_text()
    assert drawn.count('id="axes_') == 6


def test_there_are_five_sizes_of_each() -> None:
    assert {len(sizes) for sizes in (gpu.SIZES, gpu.TINY, gpu.SMALL)} == {5}


def test_bounds_of_gradients_are_what_must_move() -> None:
    """Bytes a point of a step, forward and back, over those of the primal."""
    given = (np.ones((8, 8)), np.ones((8, 8)), 0.05, 3)
    for program, most in ((gpu.linear, 3.0), (gpu.nonlinear, 4.5)):
        compiled = mutad.compile(program, grad=True, target="cuda:host", opt=1)
        assert gpu.bytes_of_gradient(compiled, given) <= most * 16

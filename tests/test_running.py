"""`mutad-opt --to=run` and `--run`: dumps are programs, with inputs by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mutad import opt
from mutad.compiler import pipeline
from mutad.compiler.request import Options, Request
from mutad.compiler.stage_dumps import dump_frontend

SCALED = 2.0


def squares(x: np.ndarray, k: float, p: tuple[int, float]) -> float:
    for i in range(x.size):
        x[i] = x[i] * x[i] * p[1]
        if x[i] > 100:
            raise ValueError(f"{x[i]} is too large")
    return x.sum() * k


KEYS = ("f64[?]C", "py_float", "(py_int,py_float)")
GIVEN = "x=[1, 2], k=0.5, p=(3, 1.5)"
LEFT = {"result": "3.75", "k_bar": "7.5", "x": "[1.5, 6]", "x_shadow": "[1.5, 3]"}


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The dumps of a gradient, by stage."""
    monkeypatch.setenv("MUTAD_DUMP", "frontend,simplify,adjoint,optimize")
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    pipeline.compile_request(
        Request(squares, KEYS, mode="gradient", wrt=(0, 1), options=Options(opt=1))
    )
    return {p.name.split("-")[-1].removesuffix(".mlir"): str(p) for p in tmp_path.iterdir()}


def ran(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, str]:
    """What a run prints."""
    opt.main(args)
    return dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("stage", ["frontend", "simplify", "adjoint", "optimize"])
def test_a_dump_is_run_through_the_rest_of_the_pipeline(
    stage: str, dumps: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(capsys, dumps[stage], "--to=run", "--args", GIVEN) == LEFT


def test_it_is_interpreted_as_it_stands(
    dumps: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    interpreted = "--to=run", "--interpret", "--args", GIVEN
    assert ran(capsys, dumps["adjoint"], *interpreted) == LEFT
    primal = {name: LEFT[name] for name in ("result", "x")}
    assert ran(capsys, dumps["frontend"], "--run", "--args", GIVEN) == primal


def test_inputs_and_outputs_may_be_files(dumps: dict[str, str], tmp_path: Path) -> None:
    given: dict[str, Any] = {"x": np.array([1.0, 2]), "k": 0.5, "p.0": 3, "p.1": 1.5}
    np.savez(tmp_path / "in.npz", **given, result_bar=2.0, x_shadow=np.array([1.0, 0]))
    files = "--args", str(tmp_path / "in.npz"), "--out", str(tmp_path / "out.npz")
    opt.main([dumps["frontend"], "--to=run", *files])
    with np.load(tmp_path / "out.npz") as left:
        assert {*left.files} == {*LEFT}
        assert left["x_shadow"].tolist() == [3.0, 6.0]  # what it held before is nothing
        assert left["k_bar"] == 15.0


@pytest.mark.parametrize("engine", [[], ["--interpret"]])
def test_what_the_program_raises_is_shown_with_its_line(
    engine: list[str], dumps: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    opt.main([dumps["adjoint"], "--to=run", *engine, "--args", "x=[1, 30], k=1, p=(0, 1.0)"])
    first, note, *arrays = capsys.readouterr().out.splitlines()
    assert first == "raises ValueError: 900.0 is too large"
    assert 'raise ValueError(f"{x[i]} is too large")' in note
    assert arrays == ["x = [1, 900]", "x_shadow = [0, 0]"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            "x=[1, 2], k=0.5",
            "no input 'p.0'; the program takes x: float64[?], k: float64, p.0: int64",
        ),
        (f"{GIVEN}, z=1", "no input is named z"),
        ("x=[[1, 2]], k=0.5, p=(3, 1.5)", "'x' has the shape (1, 2): it must be float64[?]"),
        ("x=[1j, 2], k=0.5, p=(3, 1.5)", "'x' is complex128: it must be float64"),
        ("x=[1, 2], k=[0.5], p=(3, 1.5)", "'k' is an array of shape (1,): it must be float64"),
        ("x=[1, 2], k=0.5, p=(0.5, 1.5)", "'p.0' is float64: it must be int64"),
        ("x=[1, 2", "no text such as"),
        ("nowhere.npz", "nowhere.npz"),
    ],
)
def test_inputs_that_do_not_fit_are_told(given: str, told: str, dumps: dict[str, str]) -> None:
    with pytest.raises(SystemExit) as ended:
        opt.main([dumps["adjoint"], "--to=run", "--args", given])
    assert told in str(ended.value.code)


def test_options_of_runs_need_a_run(dumps: dict[str, str]) -> None:
    with pytest.raises(SystemExit, match="--args, --out and --interpret are of runs"):
        opt.main([dumps["frontend"], "--args", GIVEN])


def draws(rng: np.random.Generator, n: int) -> float:
    return rng.standard_normal(n).sum() * SCALED


def test_a_generator_is_given_by_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    path = dump_frontend(Request(draws, ("rng", "py_int")))
    expected = f"{draws(np.random.default_rng(7), 5):.10g}"
    for engine in ("--run", "--to=run"):
        assert ran(capsys, path, engine, "--args", "rng=7, n=5") == {"result": expected}


def test_what_has_no_meaning_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "outside.mlir"
    path.write_text(
        "func.func @f(%a : memref<?xf64>, %i : index) -> f64 {\n"
        "  %x = memref.load %a[%i] : memref<?xf64>\n  func.return %x : f64\n}\n"
    )
    with pytest.raises(
        SystemExit, match=r"%x = memref\.load: it reaches outside of the 2 elements"
    ):
        opt.main([str(path), "--run", "--args", "a=[1, 2], i=2"])

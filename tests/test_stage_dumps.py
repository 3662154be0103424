"""A dump is a program: `mutad-opt --from --to` makes of it what the pipeline made, to the letter."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import opt
from mutad.compiler import pipeline, stage_dumps
from mutad.compiler.derivative.passes import Reverse
from mutad.compiler.diagnostics import CompilerFault
from mutad.compiler.request import Options, Request
from mutad.compiler.stage_dumps import RESUMED
from mutad.compiler.stages import adjoint
from mutad.compiler.transforms.remove_dead import RemoveDead

SCALE = np.linspace(1.0, 2.0, 3)


def squares(x: np.ndarray, pair: Any, *, steps: int) -> Any:
    for _ in range(steps):
        for i in range(x.size):
            if x[i] > 0.0:
                x[i] = x[i] * x[i] * pair[0]
    return x.sum() + pair[1], x


def scaled(x: np.ndarray) -> float:
    x *= SCALE
    return np.exp(x).sum()


def cubed(x: float) -> float:
    return x * x * x


@mutad.compile(grad=True)
def cubes(x: np.ndarray) -> float:
    return (x * x * x).sum()


def with_derivative(x: np.ndarray) -> float:
    return cubes.grad(x).sum()


ARGUMENTS = ("f64[?]C", "(py_float,py_float)", "py_int")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path / "dumps"))
    return tmp_path / "dumps"


def dumped(request: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTAD_DUMP", "frontend,simplify,plan,adjoint,optimize,llvm")
    pipeline.compile_request(request)


def goes_on_alike(folder: Path) -> None:
    """From each dump of a program, to each stage behind it."""
    files = {path.name.rsplit("-", 1)[1].split(".")[0]: path for path in sorted(folder.iterdir())}
    names = [s.name for s in pipeline.STAGES]
    for first in RESUMED:
        for last in files:
            if first in files and names.index(first) < names.index(last):
                out = folder.parent / "out"
                opt.main([str(files[first]), f"--from={first}", f"--to={last}", "-o", str(out)])
                assert out.read_text() == files[last].read_text(), (first, last)


@pytest.mark.parametrize(
    "mode", ["primal", "gradient", "vjp", "tangent", "hvp", "product", "reverse-hvp"]
)
def test_a_dump_goes_on_to_what_the_pipeline_makes(
    mode: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = 4 if mode == "tangent" else 1
    wrt = () if mode == "primal" else (0,)
    options = Options(opt=0, lanes=lanes, saves="all")
    dumped(Request(squares, ARGUMENTS, (), mode, wrt, options=options), monkeypatch)
    goes_on_alike(folder)


@pytest.mark.parametrize("function", [scaled, with_derivative])
def test_so_does_one_of_a_call(
    function: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUTAD_DUMP", "frontend,simplify,plan,adjoint,optimize,llvm")
    f = mutad.compile(function, grad=True, cache=False, opt=0)
    f.grad(np.linspace(0.5, 1.0, 3))
    programs = {path.name.rsplit(".", 2)[0] for path in folder.iterdir()}
    assert programs
    for program in programs:
        apart = folder.parent / program / "dumps"
        apart.mkdir(parents=True)
        for path in folder.glob(f"{program}.*"):
            path.rename(apart / path.name)
        goes_on_alike(apart)


@pytest.fixture
def dumps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """All dumps of a gradient, by stage or pass."""
    monkeypatch.setenv("MUTAD_DUMP", "all")
    request = Request(squares, ARGUMENTS, mode="gradient", wrt=(0,), options=Options(opt=0))
    pipeline.compile_request(request)
    return {path.name.split(".", 1)[1]: str(path) for path in folder.iterdir()}


def refused(args: Sequence[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        opt.main(args)
    return str(ended.value.code)


def test_the_head_says_what_the_dump_is_of(dumps: dict[str, str]) -> None:
    head = Path(dumps["2-simplify.mlir"]).read_text().split("\nbuiltin.module")[0]
    for line in (
        "// function: 'squares'",
        f"// place: ({__file__!r}, {squares.__code__.co_firstlineno})",
        "// parameters: ('x', 'pair')",
        "// keyword-only: ('steps',)",
        "// arguments: ('f64[?]C', '(py_float,py_float)', 'py_int')",
        "// mode: 'gradient'",
        "// stages: ('frontend', 'simplify')",
    ):
        assert line in head.splitlines()
    passed = Path(dumps["2-simplify.02-unify-extents.mlir"]).read_text()
    assert "// stages: ('frontend',)\n// passes: ('eliminate-common', 'unify-extents')" in passed


def test_how_not_to_go_on(dumps: dict[str, str], tmp_path: Path) -> None:
    plain = tmp_path / "plain.mlir"
    plain.write_text("func.func @f() { func.return }")
    simplified = dumps["2-simplify.mlir"]
    short = tmp_path / "short.mlir"
    short.write_text(Path(simplified).read_text().replace("// wrt: (0,)\n", ""))
    for args, told in (
        ([simplified, "--from=frontend", "--to=llvm"], "a dump of simplify: --from=simplify"),
        ([simplified, "--to=frontend"], "stages after simplify are plan, adjoint, optimize"),
        ([simplified, "--to=nosuch"], "--to=nosuch"),
        ([simplified, "--from=simplify"], "--from needs --to"),
        ([dumps["3-plan.mlir"], "--to=llvm"], "plan only shows"),
        ([dumps["2-simplify.02-unify-extents.mlir"], "--to=llvm"], "the pass unify-extents"),
        ([str(plain), "--to=llvm"], "no dump that MUTAD_DUMP wrote"),
        ([str(short), "--to=llvm"], "does not say: wrt"),
    ):
        assert told in refused(args)


def test_passes_of_the_stages_are_dumped_and_named(
    dumps: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Any, ctx: Any, module: Any) -> None:
        op = next(op for op in module.walk() if op.name == "ad.mul")
        raise KeyError(op.name)

    opt.main([dumps["2-simplify.mlir"], "--to=adjoint", "--dump-changed", "--only=squares"])
    assert "--- before reverse" in capsys.readouterr().err
    monkeypatch.setattr(RemoveDead, "apply", fails)
    message = refused([dumps["4-adjoint.mlir"], "--to=llvm"])
    assert "in the pass remove-dead" in message
    assert "again, alone: mutad-opt" in message
    assert __file__ in message


def test_a_pass_whose_options_cannot_be_said_fails_again_with_its_stage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Any, ctx: Any, module: Any) -> None:
        raise KeyError(self.finals)

    monkeypatch.setattr(Reverse, "apply", fails)
    request = Request(cubed, ("py_float",), mode="vjp", wrt=(0,))
    with pytest.raises(CompilerFault, match="in the pass reverse") as caught:
        pipeline.compile_request(request)
    command = caught.value.command
    assert command is not None
    assert command.endswith("--to=adjoint")
    assert "KeyError: ()" in refused(shlex.split(command)[1:])


def test_so_does_the_expansion_of_derivatives(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("nosuch")

    monkeypatch.setattr(adjoint, "expand", fails)
    with pytest.raises(CompilerFault, match="in the pass expand-derivatives") as caught:
        pipeline.compile_request(Request(cubed, ("py_float",)))
    command = caught.value.command
    assert command is not None
    assert command.endswith("--to=optimize")
    assert "KeyError: 'nosuch'" in refused(shlex.split(command)[1:])


@pytest.mark.parametrize("stage", ["llvm", "llvm-opt"])
def test_a_stage_that_fails_outside_of_passes_leaves_a_dump_to_go_on_from(
    stage: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(c: Any) -> None:
        raise KeyError("nosuch")

    failing = [replace(s, run=fails) if s.name == stage else s for s in pipeline.STAGES]
    for module in (pipeline, stage_dumps):
        monkeypatch.setattr(module, "STAGES", tuple(failing))
    request = Request(squares, ARGUMENTS, mode="gradient", wrt=(0,), options=Options(opt=0))
    with pytest.raises(CompilerFault, match=f"in the stage {stage}") as caught:
        pipeline.compile_request(request)
    command = caught.value.command
    assert command is not None
    assert command.endswith(f".mlir --to={stage}")
    again = refused(shlex.split(command)[1:])
    assert "KeyError: 'nosuch'" in again
    assert f"in the stage {stage}" in again
    assert f"{__file__}:{squares.__code__.co_firstlineno}" in again

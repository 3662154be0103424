"""`mutad bisect` names the pass that is wrong: one is broken on purpose, and what it leaves runs again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.passes import ModulePass

import mutad
from mutad import GradientError, bisect, opt
from mutad.compiler.derivative.passes import Forward, Reverse
from mutad.compiler.request import Options, Request
from mutad.compiler.stage_dumps import dump_frontend
from mutad.compiler.transforms.fuse_elementwise import FuseElementwise
from mutad.compiler.transforms.raise_loops import RaiseLoops
from mutad.dialects import ad

INPUTS = "u=[0.5, 1, 2, 0.25, 3], k=0.5, steps=3"


def sweep(u: np.ndarray, k: float, steps: int) -> float:
    for _ in range(steps):
        u[1:-1] += k * np.sin(u[:-2]) * (u[2:] - u[1:-1])
    for i in range(u.size):
        u[i] = u[i] * u[i]
    return u.sum()


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))

    def of(mode: str) -> str:
        wrt = () if mode == "primal" else (0, 1)
        keys = ("f64[?]C", "py_float", "py_int")
        return dump_frontend(Request(sweep, keys, mode=mode, wrt=wrt, options=Options(opt=1)))

    return of


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        bisect.entry(["bisect", *args])
    assert isinstance(ended.value.code, int), ended.value.code
    return ended.value.code


MODES = ["primal", "vjp", "tangent", "product", "reverse-hvp"]


@pytest.mark.parametrize("mode", MODES)
def test_no_pass_is_wrong(
    mode: str, dump: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(dump(mode), "--inputs", INPUTS) == 0
    assert "every pass keeps the answer" in capsys.readouterr().out


def breaks(kind: type[ModulePass], op: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pass change the second operand of the last op of a kind."""
    whole = kind.apply

    def apply(self: Any, ctx: Any, module: Any) -> None:
        whole(self, ctx, module)
        last = [one for one in module.walk() if isinstance(one, op)][-1]
        last.operands[1] = last.operands[0]

    monkeypatch.setattr(kind, "apply", apply)


@pytest.mark.parametrize(
    ("mode", "kind", "op", "named"),
    [
        ("primal", RaiseLoops, arith.SubfOp, "raise-loops of the stage simplify"),
        ("gradient", FuseElementwise, arith.SubfOp, "fuse-elementwise of the stage simplify"),
        ("gradient", Reverse, ad.MulOp, r"reverse\{.* of the stage adjoint"),
        ("vjp", Reverse, ad.MulOp, r"reverse\{.* of the stage adjoint"),
        ("tangent", Forward, arith.SubfOp, r"forward\{.* of the stage adjoint"),
        ("hvp", Forward, arith.SubfOp, r"forward\{.* of the stage adjoint"),
    ],
)
def test_the_pass_that_is_wrong_is_named_and_runs_again(
    mode: str,
    kind: type[ModulePass],
    op: type[Any],
    named: str,
    dump: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = dump(mode)
    breaks(kind, op, monkeypatch)
    assert run(path, "--inputs", INPUTS) == 1
    told = capsys.readouterr().out
    assert re.search(f"the pass {named} makes the answer wrong", told), told
    again = re.search(r"again, alone: mutad-opt (.*)", told)
    assert again is not None
    opt.main(shlex.split(again[1]))
    assert "result = " in capsys.readouterr().out


def test_what_is_expected_may_be_given(
    dump: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    u = np.array([0.5, 1, 2, 0.25, 3])
    value = sweep(u, 0.5, 3)
    np.savez(tmp_path / "right.npz", result=value, u=u)
    np.savez(tmp_path / "wrong.npz", result=value + 1)
    expecting = [dump("primal"), "--inputs", INPUTS, "--compiled", "--expect"]
    assert run(*expecting, str(tmp_path / "right.npz")) == 0
    assert run(*expecting, str(tmp_path / "wrong.npz")) == 1
    assert "what made the dump makes the answer wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["nowhere.mlir", "--inputs", INPUTS], "nowhere.mlir"),
        ([__file__, "--inputs", INPUTS], "no dump that MUTAD_DUMP wrote"),
    ],
)
def test_what_is_no_dump_is_told_and_is_2(
    args: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*args) == 2
    assert told in capsys.readouterr().err


def test_the_command_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bisect.entry([])
    shown = capsys.readouterr().err
    assert "mutad bisect " in shown
    assert "exit status" in shown


def test_the_version_names_what_makes_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        bisect.entry(["--version"])
    assert f"mutad {mutad.__version__}, xdsl " in capsys.readouterr().out


@mutad.compile(grad=True, cache=False, opt=1)
def checked(u: np.ndarray, k: float, steps: int) -> float:
    return sweep(u, k, steps)


def test_check_gradient_says_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    u = np.array([0.5, 1, 2, 0.25, 3])
    breaks(Reverse, ad.MulOp, monkeypatch)
    with pytest.raises(GradientError, match=r"with MUTAD_DUMP=frontend .* `mutad bisect` command"):
        mutad.check_gradient(checked, u, 0.5, 3)
    monkeypatch.setenv("MUTAD_DUMP", "frontend")
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    with pytest.raises(GradientError) as caught:
        mutad.check_gradient(checked, u, 0.5, 3)
    command = re.search(r"find the pass that is wrong: mutad bisect (.*)", str(caught.value))
    assert command is not None
    assert run(*shlex.split(command[1])) == 1
    assert "the pass reverse" in capsys.readouterr().out

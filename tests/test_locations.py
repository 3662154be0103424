"""Every op of every stage knows its place in the source; dumps carry the places, also when read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import Builtin, FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.parser import Parser

from mutad.compiler import pipeline
from mutad.compiler.pipeline import Request
from mutad.compiler.print_ir import module_text
from mutad.opt import MutadOpt

Opt = Callable[..., str]


@pytest.fixture
def opt(capsys: pytest.CaptureFixture[str]) -> Opt:
    """Runs `mutad-opt` and returns what it prints."""

    def run(path: Path, *options: str) -> str:
        MutadOpt("", args=[str(path), *options]).run()
        return capsys.readouterr().out

    return run


def squares(x: np.ndarray) -> Any:
    for i in range(x.size):
        x[i] = x[i] * x[i]
    return x.sum()


SQUARES = Request(squares, ("f64[?]C",), mode="gradient", wrt=(0,))
FIRST = squares.__code__.co_firstlineno


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The files that `MUTAD_DUMP` makes of `squares`, by stage."""
    stages = ("frontend", "simplify", "plan", "adjoint", "optimize")
    monkeypatch.setenv("MUTAD_DUMP", ",".join(stages))
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    pipeline.compile_request(SQUARES)
    return {stage: next(tmp_path.glob(f"*-{stage}.mlir")) for stage in stages}


def body(dump: str) -> str:
    """A dump without its head."""
    return "".join(line for line in dump.splitlines(True) if not line.startswith("//"))


def test_dumps_carry_locations_and_read_back_they_are_there(
    dumps: dict[str, Path], opt: Opt
) -> None:
    multiply = f"#test_locations_{FIRST + 2}_16"
    for path in dumps.values():
        text = path.read_text()
        assert f'{multiply} = loc("{__file__}":{FIRST + 2}:16)\n' in text
        assert f": f64 loc({multiply})\n" in text
        assert opt(path) == body(text)


def test_locations_can_be_hidden(dumps: dict[str, Path], opt: Opt) -> None:
    shown = pipeline.run_stages(SQUARES, "simplify")
    assert "loc" not in shown.replace("alloca", "")
    assert opt(dumps["simplify"], "--no-locs").rstrip() == shown


def test_the_plan_of_a_dump_names_the_lines(dumps: dict[str, Path], opt: Opt) -> None:
    plan = f"killed by array.map of line {FIRST + 2}, needed by arith.mulf of line {FIRST + 2}"
    printed = opt(dumps["simplify"], "-p", "print-plan")
    assert plan in printed
    assert printed == body(dumps["plan"].read_text())


def test_generic_ops_carry_locations(dumps: dict[str, Path], opt: Opt, tmp_path: Path) -> None:
    generic = tmp_path / "generic.mlir"
    generic.write_text(opt(dumps["adjoint"], "--print-op-generic"))
    assert opt(generic) == body(dumps["adjoint"].read_text())


def test_files_of_one_name_have_locations_of_their_own() -> None:
    places = ["a/model.py", "b/model.py", "3-d.py", 'a "quoted" one.py', "<string>", "größe.py"]
    ops = [test.TestOp() for _ in places]
    for op, place in zip(ops, places, strict=True):
        op.location = FileLineColLoc(StringAttr(place), IntAttr(12), IntAttr(5))
    text = module_text(ModuleOp([*ops, test.TestOp()]))
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    again = Parser(context, text).parse_module()
    assert [op.location for op in again.ops][:-1] == [op.location for op in ops]
    assert "loc(#model_12_5)" in text
    assert "loc(#model_12_5_1)" in text
    assert "unknown" not in text

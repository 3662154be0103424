"""`mutad-opt` and the hooks around passes: what is dumped, what is refused, what a failing pass leaves."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.passes import PassPipeline
from xdsl.rewriter import InsertPoint, Rewriter

import mutad
from mutad import opt
from mutad.compiler import pass_order, pipeline
from mutad.compiler.derivative.drop_guards import DropGuards
from mutad.compiler.derivative.passes import Forward, Reverse
from mutad.compiler.diagnostics import CompilerFault
from mutad.compiler.kernels.passes import DEVICE_PASSES
from mutad.compiler.pass_hooks import spec_of
from mutad.compiler.request import Request
from mutad.compiler.transforms.fold_constants import FoldConstants
from mutad.compiler.transforms.remove_dead import RemoveDead

TWO = """
func.func @first(%a : f64) -> f64 {
  %dead = arith.mulf %a, %a : f64
  func.return %a : f64
}
func.func @second(%b : f64) -> f64 {
  %dead = arith.addf %b, %b : f64
  func.return %b : f64
}
"""


@pytest.fixture
def two(tmp_path: Path) -> str:
    path = tmp_path / "two.mlir"
    path.write_text(TWO)
    return str(path)


def refused(*args: str) -> str:
    """The message with which `mutad-opt` ends."""
    with pytest.raises(SystemExit) as ended:
        opt.main(args)
    assert isinstance(ended.value.code, str)
    return ended.value.code


def test_each_pass_is_dumped(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    opt.main([two, "-p", "fold-constants,remove-dead", "--dump-after-each"])
    shown = capsys.readouterr()
    folded, removed = shown.err.split("// ----- after ")[1:]
    assert folded.startswith("fold-constants\n")
    assert folded.count("%dead") == 2
    assert removed.startswith("remove-dead\n")
    assert "%dead" not in removed
    assert "// -----" not in shown.out
    assert "@second" in shown.out


def test_what_changed_is_a_unified_diff(two: str, capsys: pytest.CaptureFixture[str]) -> None:
    opt.main([two, "-p", "fold-constants,remove-dead,fold-constants", "--dump-changed"])
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["--- before remove-dead", "+++ after remove-dead"]
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        "-    %dead = arith.mulf %a, %a : f64",
        "-    %dead = arith.addf %b, %b : f64",
    ]


def test_without_passes_the_program_is_printed(
    two: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opt.main([two, "--dump-after-each"])
    shown = capsys.readouterr()
    assert shown.out.count("%dead") == 2
    assert shown.err == ""


@pytest.mark.parametrize("option", ["--dump-after-each", "--dump-changed"])
def test_only_the_named_function_is_dumped(
    option: str, two: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opt.main([two, "-p", "remove-dead", option, "--only", "second"])
    shown = capsys.readouterr()
    assert "@second" in shown.err
    assert "@first" not in shown.err
    assert "@second" in shown.out
    assert "@first" in shown.out


def test_the_version_is_ours_and_that_of_xdsl(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        opt.main(["--version"])
    assert capsys.readouterr().out.startswith(f"mutad-opt {mutad.__version__}, with xDSL ")


def test_the_examples_of_the_help_name_passes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        opt.main(["--help"])
    named = re.findall(r"mutad-opt \S+ -p (\S+)", capsys.readouterr().out)
    ours = {p.name for p in pass_order.PASSES}
    assert {one for passes in named for one in passes.split(",")} - ours == set()
    assert len(named) > 1


def test_help_lists_our_passes_apart(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        opt.main(["--help"])
    shown = capsys.readouterr().out
    ours, others = shown.split("passes of mutad:\n")[1].split("\n\npasses of xDSL:\n")
    lines = [line.split(maxsplit=1) for line in ours.splitlines()]
    passes = (*pass_order.PASSES, *DEVICE_PASSES)
    assert sorted(p.name for p in passes) == [name for name, _ in lines]
    assert all(told.endswith((".", "(all floats).")) for _, told in lines)
    assert re.search(r"\bcanonicalize\b", others)
    assert "forward-stores" not in others
    assert "canonicalize" not in shown.split("passes of mutad:")[0]


UNREADABLE = [
    ("words.mlir", b"hello world\n", "words.mlir:1:7"),
    ("half.mlir", b"func.func @f(%a : f64) {", "half.mlir:1:"),
    ("undefined.mlir", b"func.func @f() -> f64 { func.return %a : f64 }", "%a"),
    ("bytes.mlir", b"\xff\xfe\x00\x01", "is not IR"),
    ("empty.md", b"# Title\n", "extension 'md'"),
    ("wrong.mlir", b"func.func @f() -> f64 { func.return }", "wrong.mlir: VerifyException"),
]


@pytest.mark.parametrize(("name", "text", "told"), UNREADABLE, ids=[row[0] for row in UNREADABLE])
def test_what_is_no_ir_is_an_error_message(
    name: str, text: bytes, told: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    message = refused(str(path), "-p", "remove-dead")
    assert message.startswith("mutad-opt: ")
    assert told in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["-p", "nosuch"], "nosuch"),
        (["-p", "reverse{nosuch=1}"], "nosuch"),
        (["-p", "reverse{"], "-p reverse{"),
        (["-p", "remove-dead", "--only", "first"], "--only"),
        (["-p", "remove-dead", "--dump-changed", "--only", "first,third"], "named third"),
    ],
)
def test_so_is_what_is_asked_wrongly(args: list[str], told: str, two: str) -> None:
    assert told in refused(two, *args)


def test_there_is_no_such_file() -> None:
    assert "nowhere.mlir" in refused("nowhere.mlir")


def test_a_traceback_is_there_when_asked_for(two: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RemoveDead, "apply", fails)
    with pytest.raises(KeyError):
        opt.main([two, "-p", "remove-dead", "--traceback"])


def fails(self: Any, ctx: Any, module: Any) -> None:
    op = next(op for op in module.walk() if op.name in ("arith.mulf", "ad.mul"))
    raise KeyError(op.name)


def test_a_refused_program_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "unknown.mlir"
    path.write_text(
        '"builtin.module"() ({ func.func @f(%x : f64) -> f64 {\n'
        '  %y = "test.op"(%x) : (f64) -> f64\n  func.return %y : f64 } }) : () -> ()\n'
    )
    message = refused(str(path), "-p", "reverse")
    assert "own fault" not in message
    assert "test.op" in message


def test_a_failing_pass_names_itself_and_leaves_what_it_began_with(
    two: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path / "dumps"))
    monkeypatch.setattr(RemoveDead, "apply", fails)
    message = refused(two, "-p", "fold-constants,remove-dead")
    assert "KeyError: 'arith.mulf'" in message
    assert "in the pass remove-dead" in message
    again = refused(*command_of(message))
    assert "KeyError: 'arith.mulf'" in again
    assert "again, alone" not in again


def test_ir_that_does_not_verify_is_the_fault_of_the_pass(
    two: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disorders(self: Any, ctx: Any, module: Any) -> None:
        op = next(op for op in module.walk() if op.name == "func.return")
        late = arith.ConstantOp(FloatAttr(0.0, f64))
        Rewriter.insert_op(late, InsertPoint.after(op))

    monkeypatch.setattr(RemoveDead, "apply", disorders)
    assert "in the pass remove-dead" in refused(two, "-p", "remove-dead")


def command_of(message: str) -> list[str]:
    found = re.search(r"again, alone: mutad-opt (.*)", message)
    assert found is not None
    return shlex.split(found[1])


def squares(x: np.ndarray) -> float:
    for i in range(x.size):
        x[i] = x[i] * x[i]
    return x.sum()


@pytest.mark.parametrize("mode", ["primal", "gradient", "vjp", "hvp"])
def test_a_fault_in_a_compilation_leaves_a_file_that_has_it_again(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    monkeypatch.setattr(RemoveDead, "apply", fails)
    wrt = () if mode == "primal" else (0,)
    with pytest.raises(CompilerFault) as caught:
        pipeline.compile_request(Request(squares, ("f64[?]C",), mode=mode, wrt=wrt))
    message = str(caught.value)
    assert "x[i] = x[i] * x[i]" in message
    assert "in the pass remove-dead" in message
    assert f"mutad {mutad.__version__}" in message
    assert "xdsl " in message
    again = refused(*command_of(message))
    assert "x[i] = x[i] * x[i]" in again
    assert "KeyError: 'arith.mulf'" in again
    monkeypatch.undo()
    opt.main([*command_of(message), "-o", str(tmp_path / "out.mlir")])


def test_a_pass_between_two_derivatives_names_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = FoldConstants.apply

    def fails_after_reverse(self: Any, ctx: Any, module: Any) -> None:
        if any(op.name == "ad.mul" for op in module.walk()):
            raise KeyError("late")
        runs(self, ctx, module)

    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    monkeypatch.setattr(FoldConstants, "apply", fails_after_reverse)
    request = Request(squares, ("f64[?]C",), mode="hvp", wrt=(0,))
    with pytest.raises(CompilerFault, match="in the pass fold-constants") as caught:
        pipeline.compile_request(request)
    assert "ad.mul" in Path(command_of(str(caught.value))[0]).read_text()


def test_every_pass_of_a_stage_is_known_by_its_specification() -> None:
    known = {p.name: (lambda p=p: p) for p in pass_order.PASSES}
    passes = (*pass_order.SIMPLIFY, *pass_order.OPTIMIZE, *pass_order.BEFORE_ANOTHER)
    reverse = Reverse("all", (0, 2), True, (1,), True)
    for one in (*passes, reverse, Forward((1,), (0,), 4)):
        assert PassPipeline.parse_spec(known, spec_of(one)).passes == (one,)


def test_all_dumps_are_those_of_the_stages_and_of_their_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUTAD_DUMP", "all")
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    pipeline.compile_request(Request(squares, ("f64[?]C",), mode="gradient", wrt=(0,)))
    texts = {p.name.split(".", 1)[1]: p.read_text() for p in sorted(tmp_path.iterdir())}
    stages = [f"{n}-{s.name}.{s.suffix}" for n, s in enumerate(pipeline.STAGES, 1)]
    assert [name for name in texts if name.count(".") == 1] == sorted(stages)
    optimize = (DropGuards(), *pass_order.OPTIMIZE)
    for stage, passes in (("2-simplify", pass_order.SIMPLIFY), ("5-optimize", optimize)):
        names = [f"{stage}.{n:02}-{p.name}.mlir" for n, p in enumerate(passes, 1)]
        assert [
            name for name in texts if name.startswith(f"{stage}.") and name.count(".") > 1
        ] == names
        last, left = (texts[n].split("builtin.module")[1] for n in (names[-1], f"{stage}.mlir"))
        assert last == left
    assert "4-adjoint.01-reverse.mlir" in texts
    assert "4-adjoint.02-factor-cotangents.mlir" in texts

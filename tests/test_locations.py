"""Every op of every stage knows its place in the source; dumps carry the places, also when read back."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import Builtin, FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import mutad
from mutad.compiler import pipeline
from mutad.compiler.compilation import Compilation
from mutad.compiler.print_ir import module_text
from mutad.compiler.request import Request
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


def stencil(x: np.ndarray, y: np.ndarray) -> Any:
    for _ in range(3):
        x[1:-1] += 0.25 * np.exp(y[:-2] - 2.0 * x[1:-1] + x[2:])
        for i in range(1, x.size):
            y[i] = y[i] * y[i - 1] if x[i] > 0.0 else np.sin(x[i])
    return (x * y).sum()


def ends_early(x: np.ndarray, y: np.ndarray) -> Any:
    total = 0.0
    for i in range(x.size):
        if y[i] < -5.0:
            raise ValueError("too small")
        x[i] = x[i] * y[i]
    while total < 10.0:
        total += (x @ x) * y[0]
        if total == 3.0:
            break
    return total


def subscripts(x: np.ndarray, y: np.ndarray) -> Any:
    for i in range(y.size):
        k = i * 2
        if k >= x.size:
            raise IndexError(k)
        y[i] += x[k] * x[k]
    return y.sum()


def grows(x: np.ndarray, y: np.ndarray) -> Any:
    made = []
    for i in range(x.size):
        made.append(x[i] * y[i])
        if made[-1] > 2.0:
            made[-1] = y[i]
    try:
        s = np.sort(np.array(made))[0] / y[0]
    except IndexError:
        s = 1.0
    return s * np.cumsum(y)[-1] + np.linalg.norm(np.outer(x, y) @ y)


def power(x: np.ndarray, n: int) -> Any:
    if n == 0:
        return x * 1.0
    x[0] = x[0] * x[1]
    return power(x, n - 1) * x


def recursive(x: np.ndarray, y: np.ndarray) -> Any:
    return power(x, 3) @ y


class Link:
    def __init__(self, value: float, after: Link | None) -> None:
        self.value = value
        self.after = after


def linked(x: np.ndarray, y: np.ndarray) -> Any:
    first = None
    for i in range(x.size):
        first = Link(x[i] * y[i], first)
    total, link = 0.0, first
    while link is not None:
        link.value *= link.value
        total += link.value
        link = link.after
    return total


def chosen(x: np.ndarray, y: np.ndarray) -> Any:
    z = np.zeros(x.size)
    for i in range(x.size):
        w = x if i > 2 else y
        if x[i] > 1.0:
            scratch = np.empty(4)
            scratch[:] = w[i]
            z[i] = scratch.sum() ** 2
    return z @ z


def squared(x: np.ndarray, y: np.ndarray) -> Any:
    for i in range(x.size):
        x[i] = x[i] * x[i]
    return x @ y


def cubes(v: np.ndarray) -> Any:
    return v**3


@mutad.rule(cubes)
def cubes_rule(v: Any, result: Any) -> None:
    v.shadow += 3.0 * v.value**2 * result.shadow


@mutad.tangent_rule(cubes)
def cubes_tangent(v: Any, result: Any) -> None:
    result.tangent[:] = 3.0 * v.value**2 * v.tangent


def with_rules(x: np.ndarray, y: np.ndarray) -> Any:
    return cubes(x) @ cubes(y)


inner = mutad.compile(grad=True)(squared)


def with_derivatives(x: np.ndarray, y: np.ndarray) -> Any:
    dx, dy = inner.grad(x, y, wrt=("x", "y"))
    return dx @ dy + (inner.hvp(x, y, wrt="x", direction=y) * y).sum()


PROGRAMS = (
    stencil, ends_early, subscripts, grows, recursive, linked, chosen, squared, with_rules,
)  # fmt: skip
MODES = ("gradient", "vjp", "tangent", "hvp", "product", "reverse-hvp")
CASES = [
    pytest.param(program, mode, id=f"{program.__name__}-{mode}")
    for program in PROGRAMS
    for mode in MODES
    if (program, mode) != (recursive, "reverse-hvp")  # it is refused
]


def assert_located(module: ModuleOp, where: str) -> None:
    lost = [op for op in module.body.walk() if isinstance(op.location, UnknownLoc)]
    assert not lost, f"{where}: " + "\n".join(map(str, lost[:5]))


@pytest.fixture
def checked_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each pass takes and leaves is checked."""
    around = Compilation.around

    @contextmanager
    def checked(c: Compilation, one: ModulePass, module: ModuleOp) -> Generator[None]:
        assert_located(module, f"before {one.name}")
        with around(c, one, module):
            yield
        assert_located(module, f"after {one.name}")

    monkeypatch.setattr(Compilation, "around", checked)


@pytest.mark.usefixtures("checked_passes")
@pytest.mark.parametrize(("program", "mode"), CASES)
def test_no_pass_loses_a_location(program: Callable[..., Any], mode: str) -> None:
    c = Compilation(Request(program, ("f64[?]C", "f64[?]C"), mode=mode, wrt=(0, 1)))
    for stage in pipeline.stages_for(c.request):
        if stage.name == "llvm":
            break
        stage.run(c)
        assert_located(c.module, f"after {stage.name}")


@pytest.mark.usefixtures("checked_passes")
@pytest.mark.parametrize("wrt", [None, ("x", "y")], ids=["primal", "gradient"])
def test_derivatives_inside_have_locations(wrt: Any) -> None:
    x = np.array([0.5, 1.5])
    assert "arith.mulf" in mutad.compile(grad=True)(with_derivatives).inspect(
        "optimize", x, x + 1.0, wrt=wrt
    )

"""The house stands: who imports whom, what the wheel holds, which ops know their source."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Operation

from mutad.compiler import pass_order, pipeline
from mutad.compiler.compilation import Compilation
from mutad.compiler.kernels.passes import DEVICE_PASSES
from mutad.compiler.request import Request
from mutad.runtime.differentiable_function import DifferentiableFunction
from mutad.runtime.function import DERIVATIVES

ROOMS = ("compiler", "dialects", "runtime")
MAY_IMPORT = {
    "dialects": {"dialects"},
    "compiler": {"compiler", "dialects"},
    "runtime": {"runtime"},
}


def sources(root: Path, room: str) -> Iterator[Path]:
    return (root / room).rglob("*.py")


def imported_rooms(path: Path, root: Path) -> Iterator[str]:
    """The rooms that a source file imports from, wherever in the file."""
    package = ["mutad", *path.relative_to(root).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module or "").split(".")]
            names = [".".join([*filter(None, module), alias.name]) for alias in node.names]
        for name in names:
            parts = name.split(".")
            assert parts[0] not in ROOMS, f"{path} imports {name} by its top-level name"
            if parts[0] == "mutad" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_run_one_way(room: str, root: Path) -> None:
    for path in sources(root, room):
        wrong = set(imported_rooms(path, root)) & {*ROOMS} - MAY_IMPORT[room]
        assert not wrong, f"{path} imports from {wrong}"


def test_importing_mutad_loads_no_compiler() -> None:
    heavy = "{'xdsl', 'scipy', 'llvmlite', 'rich', 'mutad.compiler', 'mutad.dialects'}"
    code = f"import sys, mutad; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_first_compilation_loads_little_that_it_does_not_use() -> None:
    """Each of these takes ten milliseconds: what reports, tables of tests and the commands need."""
    heavy = "{'importlib.metadata', 'email.message', 'numpy.random', 'rich', 'scipy', 'filecheck', "
    heavy += "'mutad.compiler.kernels', 'mutad.dialects.device', 'mutad.compiler.codegen.ptx'}"
    rooms = "pipeline", "frontend.build", "codegen.module_to_llvm", "codegen.entries.entry"
    modules = ", ".join(f"mutad.compiler.{room}" for room in rooms)
    code = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_wheel_holds_every_source(root: Path) -> None:
    from setuptools import find_packages

    packages = [p.replace(".", "/") for p in find_packages(str(root), include=["mutad*"])]
    held = {f"{p}/{f.name}" for p in packages for f in (root / p).glob("*.py")}
    written = {f"mutad/{p.name}" for p in (root / "mutad").glob("*.py")}
    for room in ROOMS:
        written |= {f"mutad/{p.relative_to(root)}" for p in sources(root, room)}
    assert held == written
    assert all((root / "mutad" / room).is_symlink() for room in ROOMS)


def test_the_wheel_holds_what_the_pages_are_made_of(root: Path) -> None:
    with (root / "pyproject.toml").open("rb") as file:
        patterns = tomllib.load(file)["tool"]["setuptools"]["package-data"]
    held = {
        path.relative_to(root)
        for package, names in patterns.items()
        for name in names
        for path in (root / "/".join(package.split(".")[1:])).glob(name)
    }
    files = {p for room in ROOMS for p in (root / room).rglob("*") if p.is_file()}
    written = {p.relative_to(root) for p in files if p.suffix not in (".py", ".pyc")}
    assert len(held) >= 3
    assert held == written


def test_no_module_is_named_like_a_thing_that_grows(root: Path) -> None:
    for room in ROOMS:
        names = {p.stem for p in sources(root, room)}
        assert not names & {"utils", "util", "helpers", "common", "misc", "core"}


WITHOUT_CYCLES = ("analysis", "derivative", "rules")
"""The packages of the compiler in which no module imports, by any way, one that imports it."""


def imports_within(package: Path, *, for_types: bool = True) -> dict[str, set[str]]:
    """For each module of a package the others that it imports, wherever in the file, for types or to run."""
    names = {p.stem for p in package.glob("*.py")}
    found: dict[str, set[str]] = {}
    for path in package.glob("*.py"):
        imported = found[path.stem] = set[str]()
        tree = ast.parse(path.read_text())
        typed = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for statement in node.body
            for inner in ast.walk(statement)
        }
        for node in ast.walk(tree):
            if node in typed and not for_types:
                continue
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                of_package = [alias.name for alias in node.names if alias.name in names]
                own = [node.module.split(".")[0]] if node.module else of_package or ["__init__"]
                imported.update(own)
    return found


def cycles_in(imports: dict[str, set[str]]) -> list[str]:
    """The modules on cycles, or between two: what is left when the ends are taken away, again and again."""
    left = dict(imports)
    while True:
        imported = {other for others in left.values() for other in others}
        ends = [n for n, others in left.items() if n not in imported or not others & left.keys()]
        if not ends:
            return sorted(left)
        for name in ends:
            del left[name]


def test_a_cycle_is_found() -> None:
    assert cycles_in({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == ["b", "c"]
    assert cycles_in({"a": {"b", "d"}, "b": {"d"}, "d": {"elsewhere"}}) == []


@pytest.mark.parametrize("package", WITHOUT_CYCLES)
def test_no_module_imports_itself_in_the_end(root: Path, package: str) -> None:
    assert cycles_in(imports_within(root / "compiler" / package)) == []


def test_of_the_runtime_no_modules_need_each_other_to_run(root: Path) -> None:
    """Only types do. Calls make functions, of which they import nothing, by `compiler_protocol.Make`."""
    assert cycles_in(imports_within(root / "runtime", for_types=False)) == []


def test_functions_without_gradient_know_what_is_missing() -> None:
    has = {n for n in vars(DifferentiableFunction) if not n.startswith("_")}
    assert has - {"has_gradient"} == {*DERIVATIVES}


LONGEST = 500
"""Lines of a module, but for tables."""
TABLES = {
    "compiler/frontend/library/elementwise.py": "a row for each ufunc",
    "compiler/frontend/library/written_sums.py": "functions of NumPy in Python, each short, and their cases",
    "compiler/frontend/syntax/language.py": "a row for each form of Python's grammar",
    "runtime/device_text.py": "one text of LLVM",
    "benchmarks/memory_programs.py": "pairs of programs",
}
"""Modules of rows or of a text that nobody reads from top to bottom, and what they have rows of."""
LARGE = {
    "compiler/frontend/build.py": 613,
    "compiler/frontend/consumers.py": 654,
    "compiler/frontend/context.py": 691,
    "compiler/frontend/data/constructing.py": 618,
    "compiler/frontend/data/list_methods.py": 815,
    "compiler/frontend/data/lists.py": 861,
    "compiler/frontend/exceptions.py": 579,
    "compiler/frontend/joins.py": 507,
    "compiler/frontend/loops.py": 539,
    "compiler/frontend/scalars.py": 582,
}
"""Modules of the frontend that are too long still: these may only become shorter."""


def test_modules_are_short(root: Path) -> None:
    rooms = (*ROOMS, "mutad", "benchmarks", "examples")
    paths = [p for room in rooms for p in (root / room).rglob("*.py")]
    own = {
        p.relative_to(root).as_posix(): p
        for p in paths
        if p.resolve() == root.resolve() / p.relative_to(root)
    }
    lengths = {name: len(path.read_text().splitlines()) for name, path in own.items()}
    assert not {n for n, k in lengths.items() if k > LARGE.get(n, LONGEST) and n not in TABLES}
    assert not {n for n in (*TABLES, *LARGE) if lengths.get(n, 0) <= LONGEST}, "short by now"


def smooth(u: np.ndarray, k: float, steps: int) -> float:
    total = 0.0
    for t in range(steps):
        u[1:-1] += k * np.exp(u[:-2] - 2 * u[1:-1] + u[2:])
        for i in range(u.size):
            if u[i] > 0:
                total += u[i] * u[i] * k
            else:
                u[i] = np.sin(u[i]) * t
    return total


def compiled(upto: str, mode: str = "gradient") -> ModuleOp:
    wrt = () if mode == "primal" else (0, 1)
    c = Compilation(Request(smooth, ("f64[?]C", "py_float", "py_int"), mode=mode, wrt=wrt))
    for stage in pipeline.stages_for(c.request):
        stage.run(c)
        if stage.name == upto:
            return c.module
    raise AssertionError(upto)


def without_location(module: ModuleOp) -> list[Operation]:
    return [op for op in module.body.walk() if isinstance(op.location, UnknownLoc)]


@pytest.mark.parametrize("mode", ["gradient", "vjp"])
@pytest.mark.parametrize("stage", ["frontend", "simplify", "adjoint", "optimize"])
def test_every_op_knows_its_source(stage: str, mode: str) -> None:
    lost = without_location(compiled(stage, mode))
    assert not lost, "\n".join(str(op) for op in lost[:10])


@pytest.mark.parametrize("mode", ["gradient", "vjp"])
@pytest.mark.parametrize("stage", ["frontend", "simplify", "adjoint", "optimize"])
def test_every_stage_leaves_valid_ir(stage: str, mode: str) -> None:
    compiled(stage, mode).verify()


PRIMAL_DIALECTS = {"func", "scf", "arith", "math", "memref", "array"}
LEGAL = {
    "frontend": PRIMAL_DIALECTS,
    "simplify": PRIMAL_DIALECTS,
    "adjoint": PRIMAL_DIALECTS | {"ad"},
    "optimize": PRIMAL_DIALECTS | {"ad"},
}
"""The dialects that each stage may leave."""


@pytest.mark.parametrize("stage", LEGAL)
def test_a_stage_leaves_only_its_dialects(stage: str) -> None:
    dialects = {op.name.split(".")[0] for op in compiled(stage).body.walk()}
    assert dialects <= LEGAL[stage]


def squares(a: np.ndarray) -> None:
    for i in range(1, a.size):
        a[i] = a[i] * a[i - 1]


def test_a_stage_is_shown_as_text(run_filecheck: Callable[[str, str], None]) -> None:
    request = Request(squares, ("f64[?]C",), mode="gradient", wrt=(0,))
    checks = """
      CHECK-LABEL: func.func @squares_gradient
      CHECK-SAME:  %a: memref<?xf64>, %a_shadow: memref<?xf64>
      CHECK:       ad.push
      CHECK:       array.loop
      CHECK:       array.loop
      CHECK:         memref.store {{.*}} %a_shadow
    """
    run_filecheck(pipeline.run_stages(request, "adjoint"), checks)


def test_every_pass_has_a_lit_test(root: Path) -> None:
    commands = "".join(p.read_text() for p in (root / "lit-tests").rglob("*.mlir"))
    passes = (*pass_order.PASSES, *DEVICE_PASSES)
    assert [p.name for p in passes if not re.search(rf"-p\W+{p.name}\b", commands)] == []


def test_stages_have_names_that_users_type() -> None:
    names = [s.name for s in pipeline.STAGES]
    assert names == [
        "frontend", "simplify", "plan", "adjoint", "optimize", "llvm", "llvm-opt", "assembly",
    ]  # fmt: skip


def test_an_unknown_stage_is_refused_with_the_names() -> None:
    with pytest.raises(ValueError, match="no stage named 'nosuch'; stages are frontend, simplify"):
        pipeline.run_stages(Request(smooth, ("f64[?]C", "py_float", "py_int")), "nosuch")


def test_a_gradient_stage_of_a_primal_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'adjoint' is one of gradients.*wrt=0\)"):
        pipeline.run_stages(Request(smooth, ("f64[?]C", "py_float", "py_int")), "adjoint")


def test_a_dump_is_one_file_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTAD_DUMP", "frontend,optimize,llvm")
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    pipeline.compile_request(Request(smooth, ("f64[?]C", "py_float", "py_int")))
    kinds = sorted(name.split(".", 1)[1] for name in os.listdir(tmp_path))
    assert kinds == ["1-frontend.mlir", "5-optimize.mlir", "6-llvm.ll"]


def test_times_are_printed_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUTAD_TIME", "1")
    pipeline.compile_request(Request(smooth, ("f64[?]C", "py_float", "py_int")))
    table = capsys.readouterr().err
    assert table.startswith("smooth (primal)")
    assert "llvm-opt" in table

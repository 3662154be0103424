"""What the pages show beside Python is true, too: command lines, make targets, C and Fortran."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from mutad import aot
from mutad.compiler.pass_order import PASSES
from mutad.opt import MutadOpt

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODEL = """
from mutad import compile


@compile
def loss(u: "f64[:]", kappa: float, steps: int) -> "f64":
    for _ in range(steps):
        u[1:-1] += kappa * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])
    return (u**2).sum()


@compile
def mean(field: "f64[:, :]") -> "f64":
    return field.mean()
"""


def lines_of(command: str) -> list[str]:
    """The lines of all pages, set in by four columns, that run a command."""
    texts = [page.read_text() for page in PAGES]
    return sorted({m for text in texts for m in re.findall(rf"^    ({command} .+)$", text, re.M)})


@pytest.mark.parametrize("line", lines_of("mutadc"))
def test_lines_of_mutadc_have_its_options(line: str) -> None:
    if "[options]" not in line:
        asked = aot.parser().parse_args(shlex.split(line.partition(" | ")[0])[1:])
        assert asked.model.endswith(".py")


@pytest.mark.parametrize("line", lines_of("mutad-opt"))
def test_lines_of_mutad_opt_have_its_options_and_passes(line: str) -> None:
    words = shlex.split(line.partition(" | ")[0])
    driver = MutadOpt(args=[word for word in words[1:] if not word.endswith(".mlir")])
    named = driver.args.passes.split(",") if driver.args.passes else []
    assert {*named} <= {one.name for one in PASSES}


def test_targets_of_make_are_there() -> None:
    texts = "\n".join(page.read_text() for page in PAGES)
    named = {
        *re.findall(r"`(?:\w+=\w+ )?make ([a-z-]+)", texts),
        *re.findall(r"^    make ([a-z-]+)", texts, re.M),
    }
    targets = {*re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)}
    assert named - targets == set()
    assert "test" in named


def blocks(language: str) -> list[str]:
    text = (ROOT / "docs" / "mutadc-c.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the library of the pages, its header and its Fortran module."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    derivatives = ["-O0", "--grad", "loss:u", "--value-and-grad", "loss:u"]
    assert aot.main(["model.py", *derivatives, "-o", "libmodel.so", "--header", "model.h"]) == 0
    assert aot.main(["model.py", *derivatives, "--emit", "fortran", "-o", "model.f90"]) == 0
    return tmp_path


def run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_c_of_the_page_compiles_and_runs(built: Path) -> None:
    arrays, call, *_ = blocks("c")
    own = arrays[arrays.index("double field") :].replace("u =", "v =").replace("field", "grid")
    text = f"#include <stdio.h>\n#include <model.h>\nint main(void) {{\n{own}{call}"
    text += 'printf("%d %d", status, (int)v.shape[1]);\nreturn 0;\n}\n'
    (built / "main.c").write_text(text)
    run("cc", "-std=c99", "-Wall", "-I.", "main.c", "-L.", "-lmodel", "-lm", "-Wl,-rpath,.")
    assert run("./a.out") == "0 4"


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="there is no gfortran")
def test_the_fortran_of_the_page_compiles_and_runs(built: Path) -> None:
    (block,) = blocks("fortran")
    declared, called = block.split("\n\n")
    text = f"program main\n{declared}\nu = 2\n{called}print '(f6.1)', value\nend program\n"
    (built / "main.f90").write_text(text)
    run("gfortran", "model.f90", "main.f90", "-L.", "-lmodel", "-lm", "-Wl,-rpath,.")
    assert run("./a.out").split() == ["400.0"]

"""The command `mutadc`: each option, what it refuses, what it leaves when it fails."""

from __future__ import annotations

import ctypes
import importlib
import io
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mutad import aot
from mutad.compiler.aot import command, outputs
from mutad.compiler.aot.dependencies import rules
from mutad.compiler.aot.emitters import EMITTERS, EVERY_KIND
from mutad.compiler.aot.outputs import Output, write_all
from mutad.runtime.target import can_choose

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="builds with a C compiler")

MODEL = """
import helper
from mutad import compile

print("imported")


@compile
def loss(u: "f64[:]", kappa: float, steps: int = 3) -> "f64":
    for _ in range(steps):
        u[1:-1] *= kappa * u[:-2]
    return helper.total(u)


@compile(saves="forbid")
def forbidden(u, k):
    u *= u
    return (u * k).sum()


@compile
def _own(u: "f64[:]"):
    return u.sum()


def plain(x, y):
    return x * y
"""
HELPER = "def total(u):\n    return u.sum()\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current one, with a module in it and one that it imports."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


def made(line: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit status of `mutadc`, and what it wrote to standard output and error."""
    try:
        status = aot.main(shlex.split(line))
    except SystemExit as ended:
        status = int(ended.code or 0)
    return status, *capfd.readouterr()


def left(folder: Path) -> list[str]:
    """The files that there are now beside the modules."""
    return sorted({p.name for p in folder.iterdir()} - {"model.py", "helper.py", "__pycache__"})


@needs_cc
def test_a_library_and_its_header(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = "model.py -o libmodel.so --header model.h --grad loss:u,kappa -O1"
    assert made(line, capfd) == (0, "", "imported\n")
    assert left(folder) == ["libmodel.so", "model.h"]
    library = ctypes.CDLL(str(folder / "libmodel.so"))
    assert all(hasattr(library, name) for name in ("loss", "loss_grad", "model_strerror"))
    header = (folder / "model.h").read_text()
    assert re.search(r"int loss_grad\(.*\bu_grad,.*\bkappa_grad", header, re.DOTALL)
    assert "forbidden" not in header
    assert "_own" not in header
    executable = {name: (folder / name).stat().st_mode & stat.S_IXUSR for name in left(folder)}
    assert executable == {"libmodel.so": stat.S_IXUSR, "model.h": 0}


@needs_cc
def test_what_it_exports_is_called(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = "model.py -O1 --signature 'plain(x: f64, y: f64) -> f64' --value-and-grad plain:y,x"
    assert made(line, capfd)[0] == 0
    called = ctypes.CDLL(str(folder / "libmodel.so")).plain_value_and_grad
    number, place = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
    called.argtypes = number, number, place, place, place, ctypes.c_void_p, ctypes.c_int64
    out = [number(), number(), number()]
    assert called(2.0, 5.0, *map(ctypes.byref, out), None, 0) == 0
    assert [one.value for one in out] == [10.0, 2.0, 5.0]


TEXTS = [
    ("llvm", r"define .*i32 @loss\("),
    ("asm", r"^loss:"),
    ("mlir", r"func\.func @loss\("),
    ("header", r"^int loss\("),
    ("fortran", r"^ +function loss\("),
    ("pkg-config", r"^Libs: -L\$\{libdir\} -lmodel$"),
]


@pytest.mark.parametrize(("kind", "told"), TEXTS)
def test_a_text_may_go_to_standard_output(
    kind: str, told: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = made(f"model.py -O1 --emit {kind} -o -", capfd)
    assert (status, err) == (0, "imported\n")
    assert re.search(told, out, re.MULTILINE)
    assert left(folder) == []


@needs_cc
@pytest.mark.parametrize(("kind", "start"), [("object", b"\x7fELF"), ("static", b"!<arch>\n")])
def test_other_files_have_names_of_their_own(
    kind: str, start: bytes, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "build").mkdir()
    assert made(f"model.py -O0 --emit {kind} -o build", capfd)[0] == 0
    (written,) = (folder / "build").iterdir()
    assert written.name == EMITTERS[kind].file.format("model")
    assert written.read_bytes().startswith(start)


@needs_cc
def test_a_folder_that_ends_in_a_slash_is_made(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert made("model.py -O0 -o build/ --header build/model.h", capfd)[0] == 0
    assert left(folder / "build") == ["libmodel.so", "model.h"]


def test_a_file_is_no_folder(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "build").write_text("kept")
    assert made("model.py -O0 --emit llvm -o build/", capfd)[0] != 0
    assert (folder / "build").read_text() == "kept"


def test_the_end_of_a_name_tells_the_kind(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert made("model.py -O0 -o other.ll", capfd)[0] == 0
    assert "define" in (folder / "other.ll").read_text()


def test_the_parser_knows_every_kind() -> None:
    assert EVERY_KIND == aot.KINDS


def test_functions_are_named_and_have_signatures(capfd: pytest.CaptureFixture[str]) -> None:
    line = (
        "model.py --emit header -o - -O0 --function loss --signature 'plain(x: f64, y: f64) -> f64'"
    )
    out = made(line, capfd)[1]
    assert "int plain(double x, double y," in out
    assert "int loss(" in out
    named = made("model.py --emit header -o - -O0 --signature 'plain(x: f64, y: f64)'", capfd)[1]
    assert "int loss(" not in named


DERIVATIVES = {
    "grad": "loss_grad",
    "value-and-grad": "loss_value_and_grad",
    "vjp": "loss_vjp",
    "jvp": "loss_jvp",
    "hvp": "loss_hvp",
}


def test_each_derivative_is_an_export(capfd: pytest.CaptureFixture[str]) -> None:
    asked = " ".join(f"--{name} loss:u" for name in DERIVATIVES)
    out = made(f"model.py --emit header -o - -O0 {asked}", capfd)[1]
    assert [s for s in DERIVATIVES.values() if f"int {s}(" not in out] == []
    assert {*DERIVATIVES} == {*aot.DERIVATIVES}


def test_names_have_a_prefix(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "clash.py").write_text("import math\ndef exp(x: float): return math.exp(x)\n")
    _, out, err = made("clash.py --grad exp --prefix my_ --emit header -o -", capfd)
    assert "way out" not in err
    assert "int my_exp(double x, double *MODEL" in out.replace("CLASH", "MODEL")
    assert "int my_exp_grad(" in out


def test_the_module_may_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MODEL.encode())))
    status, out, _ = made("- -O0 --emit header -o -", capfd)
    assert status == 0
    assert "int loss(" in out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"import nowhere")))
    status, _, err = made("- --emit llvm", capfd)
    assert (status, err.splitlines()[1]) == (1, "        import nowhere")


def test_dependencies_are_what_make_reads(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert made("model.py -O0 -o model.o --header model.h --deps model.d", capfd)[0] == 0
    first, *others = (folder / "model.d").read_text().splitlines()
    assert first == "model.o model.h: helper.py model.py"
    assert others == ["helper.py:", "model.py:"]
    if (make := shutil.which("make")) is not None:
        (folder / "Makefile").write_text("include model.d\nmodel.o model.h:\n\t@echo again $@\n")
        os.utime(folder / "helper.py", (2**31, 2**31))
        done = subprocess.run([make, "-s", "model.o"], capture_output=True, text=True, check=True)
        assert "again model.o" in done.stdout


def test_interrupted_is_130(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupts(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "exports_of", interrupts)
    status, _, err = made("model.py", capfd)
    assert (status, err) == (130, "imported\nmutadc: interrupted\n")


def test_names_are_escaped_for_make() -> None:
    assert rules(["a b.so"], ["/x/$y#.py"]).splitlines()[0] == r"a\ b.so: /x/$$y\#.py"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="levels of x86-64")
def test_the_cpu_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    asm = {
        cpu: made(f"model.py --emit asm -o - --cpu {cpu}", capfd)[1]
        for cpu in ("x86-64-v2", "x86-64-v3")
    }
    assert "ymm" not in asm["x86-64-v2"]
    assert "ymm" in asm["x86-64-v3"]


def test_the_target_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    line = "model.py --emit asm -o - --signature 'plain(x: f64, y: f64)'"
    assert "\tret\n" in made(f"{line} --target aarch64-linux-gnu", capfd)[1]
    if can_choose():
        out = made(f"{line} --target x86-64-v4,x86-64-v2", capfd)[1]
        assert "cpuid" in out
        assert "plain,@gnu_indirect_function" in out


def test_fastmath_and_levels(capfd: pytest.CaptureFixture[str]) -> None:
    signature = "--signature 'plain(x: f64, y: f64)' --emit llvm -o -"
    assert "fmul reassoc" in made(f"model.py --fastmath -O3 {signature}", capfd)[1]
    assert "fmul reassoc" not in made(f"model.py -O3 {signature}", capfd)[1]


def test_lines_are_for_debuggers(capfd: pytest.CaptureFixture[str]) -> None:
    line = "model.py -O3 --emit llvm -o - --grad loss:u,kappa --hvp loss"
    assert "DILocation" not in made(line, capfd)[1]
    out = made(f"{line} -g", capfd)[1]
    lines = {int(n) for n in re.findall(r"!DILocation\(line: (\d+)", out)}
    assert 11 in lines
    assert 'filename: "helper.py"' in out
    assert 'DISubprogram(name: "loss.grad"' in out
    assert made(line.replace("llvm -o -", "object") + " -g", capfd)[0] == 0


def test_what_compile_was_told_holds(capfd: pytest.CaptureFixture[str]) -> None:
    line = "model.py --emit mlir -o - --grad forbidden --signature 'forbidden(u: f64[:], k: f64)'"
    status, _, err = made(line, capfd)
    assert status == 1
    assert re.search(r'^model\.py:17:\d+: error: .*saves="forbid"', err, re.MULTILINE)


def test_saves_are_explained(capfd: pytest.CaptureFixture[str]) -> None:
    line = "model.py --emit header -o - -O0 --explain-saves --grad loss --jvp loss"
    _, out, err = made(line, capfd)
    assert "loss_grad(u: f64[?]C, kappa: py_float, steps: py_int) with respect to u" in err
    assert "8*steps*" in err
    assert "line 11 overwrites `u`" in err
    assert "loss_jvp(" in err
    assert "overwrites" not in out


def test_extents_have_jaxtypings_names(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "t.py").write_text(
        "import numpy as np\nfrom jaxtyping import Float64\nfrom mutad import compile\n\n\n"
        "@compile\ndef f(a: Float64[np.ndarray, 'n 3'], b: Float64[np.ndarray, 'n']):\n"
        "    return (a[:, 0] * b).sum()\n"
    )
    out = made("t.py --emit header -o - -O0", capfd)[1]
    assert "a: double, shape (n, 3), C order" in out
    assert "b: double, shape (n), contiguous" in out


def test_the_same_input_makes_the_same_bytes(folder: Path) -> None:
    found: list[bytes] = []
    line = "-m mutad.aot model.py -O1 -o model.o --header model.h --grad loss:u,kappa --jvp loss"
    for seed in ("1", "2"):
        command = [sys.executable, *line.split()]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        found.append((folder / "model.o").read_bytes() + (folder / "model.h").read_bytes())
    assert found[0] == found[1]


def test_passes_are_timed(capfd: pytest.CaptureFixture[str]) -> None:
    err = made("model.py --emit llvm -o - -O0 --time-passes --grad loss", capfd)[2]
    names = [line[:40].rstrip() for line in err.splitlines()[1:]]
    for name in ("loss", "loss_grad", "simplify", "  reverse", "llvm", "llvm -"):
        assert name in names
    assert all(line.endswith(" ms") for line in err.splitlines()[1:])


def test_verbose_says_what_is_made(capfd: pytest.CaptureFixture[str]) -> None:
    err = made("model.py -o model.o -O0 -v", capfd)[2]
    assert "mutadc: loss(u: f64[?]C, kappa: py_float, steps: py_int)\n" in err
    assert re.search(r"^mutadc: wrote model\.o, [\d,]+ bytes$", err, re.MULTILINE)


def test_progress_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    line = "model.py --emit header -o - -O0 --grad loss"
    assert made(line, capfd)[2] == "imported\n"
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")
    assert "loss_grad" in made(line, capfd)[2]


def test_help_fits_a_screen(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = made("--help", capfd)
    assert status == 0
    lines = out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    options = {n for a in aot.parser()._actions for n in a.option_strings}
    assert [name for name in options if name not in out] == []


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    import mutad

    assert made("--version", capfd) == (0, f"mutadc {mutad.__version__}\n", "")


COMPLETED = [
    ("mutadc --he", ["--header", "--help"]),
    ("mutadc --emit s", ["shared", "static"]),
    ("mutadc -O ", ["0", "1", "2", "3"]),
    ("mutadc mo", ["model.py"]),
    ("mutadc --header he", ["helper.py"]),
    ("mutadc --grad lo", []),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="runs bash")
def test_bash_completes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, script, _ = made("--completion bash", capfd)
    assert status == 0
    for line, words in COMPLETED:
        typed = line.split(" ")
        array = " ".join(shlex.quote(word) for word in typed)
        code = (
            f"{script}\nCOMP_WORDS=({array}); COMP_CWORD={len(typed) - 1}; _mutadc\n"
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert sorted(done.stdout.split()) == words, line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_is_completed(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    script = made(f"--completion {shell}", capfd)[1]
    names = {n for a in aot.parser()._actions for n in a.option_strings}
    spelt = {n: f"-l {n[2:]} " if shell == "fish" and n.startswith("--") else n for n in names}
    spelt |= {n: f"-s {n[1:]} " for n in names if shell == "fish" and not n.startswith("--")}
    assert [n for n, text in spelt.items() if text not in script] == []
    if (found := shutil.which(shell)) is not None:
        subprocess.run([found, "-n", "-c", script], check=True)


WRONG = [
    ("", "name a module"),
    ("model.py other.py", "unrecognized arguments: other.py"),
    ("model.py --nosuch", "unrecognized arguments: --nosuch"),
    ("model.py --head x.h", "unrecognized arguments: --head x.h"),
    ("model.py --emit nosuch", "invalid choice: 'nosuch'"),
    ("model.py -O4", "invalid choice: "),
    ("model.py -o", "expected one argument"),
    ("--completion tcsh", "invalid choice: 'tcsh'"),
    ("nowhere.py", "mutadc: nowhere.py: No such file or directory"),
    (".", "mutadc: .: Is a directory"),
    ("model.py -o -", "say with --emit what is written"),
    ("model.py -o - --emit shared", "--emit shared: it is not text"),
    ("model.py -o libmodel.so --emit llvm", "the name says shared, --emit llvm"),
    ("model.py -o nowhere/libmodel.so", "there is no folder nowhere"),
    ("model.py --header nowhere/model.h", "there is no folder nowhere"),
    ("model.py -o a.h --header ./a.h", "two outputs go to one place"),
    ("model.py --header model.py", "model.py would be overwritten"),
    ("model.py --cpu pentium", "--cpu pentium: use one of x86-64, "),
    ("model.py --function nosuch", "has no function 'nosuch'; there are loss, forbidden, _own, plain"),
    ("model.py --function helper", "has no function 'helper'"),
    ("model.py --grad nosuch", "has no function 'nosuch'"),
    ("model.py --grad loss:", "--grad loss:: write a function, or --grad loss:u,kappa"),
    ("model.py --grad loss:u,u", "a parameter is named twice"),
    ("model.py --grad loss:v", "--grad loss:v: the parameters are u, kappa, steps"),
    ("model.py --hvp loss:steps", "'steps' is not a float, and has no derivative"),
    ("model.py --grad loss --grad loss:kappa", "two exports have the symbol loss_grad"),
    ("model.py --target arm-linux-gnu", "--target arm-linux-gnu: use x86_64-linux-gnu, x86_64-linux-musl"),
    ("model.py --target x86-64-v2,aarch64-linux-gnu", "several are levels of x86-64"),
    ("model.py --target x86-64-v3,x86-64-v3", "name each level once"),
    ("model.py --target x86-64-v3 --cpu haswell", "--cpu haswell: --target x86-64-v3 names the CPU"),
    ("model.py --target aarch64-linux-gnu --cpu haswell", "--cpu haswell: use one of generic, cortex-a53"),
    ("model.py --target aarch64-linux-gnu --cpu native", "--cpu native: it is that of no --target"),
    ("model.py --prefix 2x", "--prefix 2x: no name in C begins so"),
    ("model.py --signature 'plain('", "<signature 1>:1:1: error: write a signature"),
    ("model.py --signature 'plain(x: f64)'", "the parameters of plain are (x, y)"),
    ("model.py --signature 'plain(x: f64, y: f64 = 1)'", "no defaults"),
    ("model.py --signature 'plain(x: f64, y: f46)'", "<signature 1>:1:18: error: the annotation 'f46'"),
    ("model.py --signature 'plain(x: f64, y: f64) -> f46'", "<signature 1>:1:26: error: the result"),
    ("model.py --signature 'plain(x: f64, y: None)'", "<signature 1>:1:18: error: parameter 'y': None"),
    ("model.py --signature 'plain(x, y)' --signature 'plain(x, y)'", "two signatures"),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["grad", "vjp", "hvp"])
def test_a_budget_is_refused(mode: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "from mutad import compile\n@compile(memory='1MB')\ndef tight(x: float): return x * x\n"
    (folder / "tight.py").write_text(text)
    status, out, err = made(f"tight.py --{mode} tight", capfd)
    assert (status, out) == (2, "")
    assert "compile tight without memory=" in err
    assert err.startswith("tight.py:3:1: ")


@pytest.mark.parametrize(("line", "told"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_usage_is_2(
    line: str, told: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = made(line, capfd)
    assert (status, out) == (2, "")
    assert told in err
    assert "Traceback" not in err
    assert left(folder) == []


PROGRAMS = [
    ("x = 1 +\n", "t.py:1:8: error: SyntaxError: invalid syntax"),
    ("import nowhere\n", "t.py:1:1: error: importing the module raises ModuleNotFoundError"),
    ("def f():\n    return 1 / 0\nf()\n", "t.py:2:12: error: importing the module raises ZeroDivision"),
    ("import sys\nsys.exit(3)\n", "t.py:2:1: error: importing the module raises SystemExit: 3"),
    ("def f(u): return u\n", "t.py:1:1: error: there is nothing to export"),
    ("@compile\ndef f(x: float, mode='a'): return x\n", "t.py:2:17: error: the default of parameter 'mode'"),
    ("@compile\ndef f(x: float, t=(1.0, 2)): return x\n", "way out: make each item a parameter"),
    ("@compile\ndef f(x: float):\n    return {'a': x}\n", "t.py:2:1: error: the function returns more than"),
    ("@compile\ndef f(u: 'f64[:]', n): return u\n", "t.py:2:20: error: parameter 'n' has no annotation"),
    ("@compile\ndef f(u: list[float]): return u\n", "t.py:2:10: error: the annotation list[float]"),
    ("@compile\ndef f(u: tuple[int, int]): return u[0]\n", "t.py:2:10: error: parameter 'u': a tuple"),
    ("@compile\ndef f(u: 'f64[:]') -> int: return u.sum()\n",
     "t.py:2:23: error: the function returns double, and its signature promises"),
    ("@compile\ndef f(u: 'f64[:]'): return u.nosuch\n", "t.py:2:28: error: "),
    ("@compile\ndef double(x: float): return x\n", "t.py:2:1: error: 'double' is a word of C"),
    ("@compile\ndef ß(x: float): return x\n", "t.py:2:1: error: 'ß' is no name in C"),
    ("@compile\ndef exp(x: float): return x\n", "t.py:2:1: error: 'exp' is a function of the C library"),
    ("@compile\ndef f(x: float): return {1: x}\n", "t.py:2:"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "told"), PROGRAMS, ids=[row[1] for row in PROGRAMS])
def test_an_error_in_the_program_is_1_at_its_line(
    text: str, told: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "t.py").write_text(text.replace("@compile", "@__import__('mutad').compile"))
    (folder / "libt.so").write_text("old")
    status, out, err = made("t.py -O0 --header t.h", capfd)
    assert (status, out) == (1, "")
    assert told in err
    assert "Traceback" not in err
    assert left(folder) == ["libt.so", "t.py"]
    assert (folder / "libt.so").read_text() == "old"


def test_a_missing_tool_is_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "nosuch-cc")
    status, _, err = made("model.py -O0", capfd)
    assert status == 1
    assert "mutadc: nosuch-cc: not found" in err
    assert left(folder) == []


def test_a_fault_is_no_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(command, "compile_exports", fails)
    status, _, err = made("model.py", capfd)
    assert status == 1
    assert "mutad's own fault, not the program's: KeyError" in err


def test_what_cannot_be_written_leaves_all_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").write_text("old")
    replaced = os.replace

    def fails_at_c(source: str, target: str) -> None:
        if target.endswith("c") and not source.endswith(".old"):
            raise OSError(28, "No space left on device", target)
        replaced(source, target)

    monkeypatch.setattr(outputs.os, "replace", fails_at_c)
    with pytest.raises(OSError, match="No space"):
        write_all({"a": Output(b"new"), "b": Output(b"new"), "c": Output(b"new")})
    assert left(folder) == ["a"]
    assert (folder / "a").read_text() == "old"
    monkeypatch.undo()


def test_links_are_followed_and_special_files_written_through(folder: Path) -> None:
    (folder / "real").write_text("old")
    (folder / "link").symlink_to("real")
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_all({"link": Output(b"new"), "pipe": Output(b"through"), "/dev/null": Output(b"x")})
        assert os.read(reader, 10) == b"through"
    finally:
        os.close(reader)
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == "new"
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)
    with pytest.raises(IsADirectoryError):
        write_all({"new": Output(b"x"), ".": Output(b"x")})
    assert "new" not in left(folder)


def test_commands_are_on_the_path(root: Path) -> None:
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    assert {*scripts} == {"mutad", "mutadc", "mutad-opt"}
    for target in scripts.values():
        module, name = target.split(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_the_command_is_a_module_and_loads_no_compiler_for_help() -> None:
    code = (
        "import sys, mutad.aot\n"
        "try: mutad.aot.main(['--help'])\n"
        "except SystemExit: print(sorted({'xdsl', 'llvmlite', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")
    done = subprocess.run(
        [sys.executable, "-m", "mutad.aot", "--version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("mutadc ")

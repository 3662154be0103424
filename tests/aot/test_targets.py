"""Libraries for other machines, and for several levels of ours: what is in them, and their numbers."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from c_client import Client, export

import mutad
from mutad import aot
from mutad.compiler.aot.header import header_text
from mutad.compiler.aot.levels import Together
from mutad.compiler.aot.library import compile_exports
from mutad.compiler.aot.linking import NoTool, compiler_for, shared_library, static_library
from mutad.compiler.codegen.llvm_module import machine_of
from mutad.compiler.request import Options
from mutad.runtime.target import CPUS, LEVELS, asked, can_choose, runnable

AARCH64 = asked("aarch64-linux-gnu", None)[0]
THREE = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
CROSS, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64"
TABLE = np.linspace(0.5, 1.5, 40)

on_aarch64 = pytest.mark.skipif(
    shutil.which(CROSS) is None or shutil.which(QEMU) is None, reason=f"runs {CROSS} and {QEMU}"
)
chooses = pytest.mark.skipif(not can_choose(), reason="x86-64 Linux with glibc chooses at load")


def sweep(u, kappa, steps):
    """Sums, products, quotients and roots alone: each is rounded once, everywhere."""
    for _ in range(steps):
        u[1:-1] += kappa * (u[:-2] - 2 * u[1:-1] + u[2:]) / np.sqrt(u[1:-1] * u[1:-1] + 1.0)
    return (u * u * TABLE[0]).sum()


def waves(u, v):
    return (np.exp(u) * np.sin(v) + np.tanh(u * v) * TABLE).sum()


def small(u, a, b, flag):
    return u[int(a)] + int(b) if flag else u[0]


N = "f64[?]C n"
EXPORTS = (
    export(sweep, {"u": N, "kappa": "py_float", "steps": "py_int"}),
    export(sweep, {"u": N, "kappa": "py_float", "steps": "py_int"}, "value_and_grad", (0, 1)),
    export(waves, {"u": N, "v": N}, "value_and_grad", (0, 1)),
    export(small, {"u": N, "a": "i8", "b": "u16", "flag": "py_bool"}),
)

PROGRAM = """
#include "model.h"
#include <stdio.h>

int main(void) {
    double u[40], du[40], v[40], dv[40], value, dk;
    int k, status = 0;
    for (k = 0; k < 40; k++) u[k] = (k * 7 % 11) / 8.0 - 0.5;
    model_f64_1 mu = {u, {40}, {1}}, mdu = {du, {40}, {1}}, mv = {v, {40}, {1}}, mdv = {dv, {40}, {1}};
    int a = 260, b = 65536 + 9, flag = 1;
    status |= small_alloc(&mu, (int8_t)a, (uint16_t)b, flag == 1, &value);
    printf("%a\\n", value);
    status |= sweep_value_and_grad_alloc(&mu, 0.125, 9, &value, &mdu, &dk);
    printf("%a\\n", value);
    for (k = 0; k < 40; k++) printf("%a\\n", u[k]);
    printf("%a\\n", dk);
    for (k = 0; k < 40; k++) printf("%a\\n", du[k]);
    for (k = 0; k < 40; k++) u[k] = k / 40.0, v[k] = 1.0 - u[k];
    status |= waves_value_and_grad_alloc(&mu, &mv, &value, &mdu, &mdv);
    printf("%a\\n", value);
    for (k = 0; k < 40; k++) printf("%a\\n%a\\n", du[k], dv[k]);
    return status;
}
"""


def expected() -> tuple[list[float], list[float]]:
    """What the program prints, computed just in time: what is rounded alike, and what libm, or the order of
    a gradient's sums, decides."""
    u = (np.arange(40) * 7 % 11) / 8.0 - 0.5
    exact = [float(u[4] + 9)]
    moved = u.copy()
    value, (du, dk) = mutad.compile(sweep, grad=True).value_and_grad(
        moved, 0.125, 9, wrt=("u", "kappa")
    )
    exact += [value, *moved]
    near = [dk, *du]
    u = np.arange(40) / 40.0
    value, (du, dv) = mutad.compile(waves, grad=True).value_and_grad(u, 1.0 - u, wrt=("u", "v"))
    return exact, [*near, value, *np.stack([du, dv], 1).ravel()]


def ran(folder: Path, compiler: str, emulator: list[str], archive: bytes, header: str) -> None:
    """Build the program with a static library, run it, and compare."""
    (folder / "libmodel.a").write_bytes(archive)
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text(PROGRAM)
    command = [compiler, "-O2", "-static", "main.c", "libmodel.a", "-lm", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run([*emulator, "./main"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [float.fromhex(line) for line in done.stdout.split()]
    exact, near = expected()
    assert found[: len(exact)] == exact
    np.testing.assert_allclose(found[len(exact) :], near, rtol=1e-13)


# Other machines.


def test_an_object_for_aarch64_has_nothing_of_x86() -> None:
    """Its machine is 183, EM_AARCH64; it calls libm, and no libmvec, which only new systems have."""
    library = compile_exports("model", EXPORTS, Options(target=AARCH64))
    code = library.object_code()
    assert code[:6] == b"\x7fELF\x02\x01"
    assert int.from_bytes(code[18:20], "little") == 183
    assert "x86" not in library.optimized_llvm()
    assert 'target triple = "aarch64-unknown-linux-gnu"' in library.optimized_llvm()
    assert "fadd\tv" in library.assembly()
    assert library.symbols["exp"] == "libm"
    assert not library.uses_libmvec
    # LLVM's options are the process's: code for ours in between changes nothing.
    compile_exports("model", EXPORTS[:1], Options()).object_code()
    assert library.object_code() == code


@on_aarch64
def test_aarch64_computes_the_same_numbers(tmp_path: Path) -> None:
    library = compile_exports("model", EXPORTS, Options(target=AARCH64))
    ran(
        tmp_path,
        CROSS,
        [QEMU],
        static_library("model", library.object_code()),
        header_text(library),
    )


@on_aarch64
def test_a_cross_compiler_links_shared_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    library = compile_exports("model", EXPORTS[:1], Options(target=AARCH64, opt=0))
    assert AARCH64 is not None
    made = shared_library("model", library.object_code(), library.promised, triple=AARCH64.triple)
    assert int.from_bytes(made[16:18], "little") == 3  # ET_DYN
    assert int.from_bytes(made[18:20], "little") == 183


def test_a_compiler_is_called_as_the_triple(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiler_for("") == "cc"
    assert compiler_for(f"{llvm.get_default_triple()}") == "cc"
    assert compiler_for("aarch64-unknown-linux-musl") == "aarch64-linux-musl-gcc"
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoTool, match=r"aarch64-linux-musl-gcc: not found; .* CC="):
        shared_library("model", b"", [], triple="aarch64-unknown-linux-musl")


def test_musl_has_no_libmvec() -> None:
    (target,) = asked("x86_64-linux-musl", "x86-64-v3")
    library = compile_exports("model", EXPORTS[2:3], Options(target=target, opt=1))
    assert not library.uses_libmvec
    assert "linux-musl" in library.optimized_llvm()


@pytest.mark.parametrize("arch", CPUS)
def test_llvm_knows_the_cpus(arch: str, capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM only says so where it does not. Those of x86-64 have at least what their level has: LLVM inlines
    functions of the level into theirs."""
    for cpu, features in CPUS[arch].items():
        machine = machine_of(1, asked(f"{arch}-linux-gnu", cpu)[0])
        level = next((name for name, has in LEVELS.items() if has == features), cpu)
        text = f"""
define internal i32 @inner(i32 %x) "target-cpu"="{level}" {{
  %y = mul i32 %x, 3
  ret i32 %y
}}
define i32 @outer(i32 %x) "target-cpu"="{cpu}" {{
  %y = call i32 @inner(i32 %x)
  ret i32 %y
}}"""
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = machine.triple
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        with llvm.create_pass_builder(machine, options) as builder:
            builder.getModulePassManager().run(module, builder)
        assert "call" not in str(module), cpu
    assert "not a recognized" not in capfd.readouterr().err


# Several levels.


class At:
    """A loaded library whose functions are those of one level."""

    def __init__(self, loaded: Any, symbols: Any, cpu: str) -> None:
        self.loaded, self.symbols, self.cpu = loaded, symbols, cpu

    def __getitem__(self, symbol: str) -> Any:
        return self.loaded[f"{symbol}.{self.cpu}" if symbol in self.symbols else symbol]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    first, *others = asked(",".join(THREE), None)
    return Client(tmp_path_factory.mktemp("levels"), "model", *EXPORTS, target=first, levels=others)


def numbers(client: Client) -> list[bytes]:
    """The bytes of all that the functions compute."""
    u, v = (np.arange(40) * 7 % 11) / 8.0 - 0.5, np.linspace(0, 1, 40)
    du, dv = np.empty(40), np.empty(40)
    found: list[Any] = [client("small", u, 3, 2, True), client("sweep", u, 0.125, 9), u.tobytes()]
    found += [client("sweep_value_and_grad", u, 0.125, 9, du), du.tobytes()]
    found += [client("waves_value_and_grad", u, v, du, dv), du.tobytes(), dv.tobytes()]
    return found


@chooses
def test_each_level_has_the_numbers_of_a_library_for_it_alone(
    client: Client, tmp_path: Path
) -> None:
    """Its functions are called as those of the level, which are hidden otherwise."""
    symbols = [f.symbol for f in client.library.functions]
    together = client.library.together()
    shown = together.llvm
    for symbol in symbols:
        for cpu in THREE:
            head = rf'define internal (?=.*@"?{symbol}\.{cpu}"?\()'
            shown, count = re.subn(head, "define ", shown)
            assert count == 1
    (tmp_path / "all.o").write_bytes(Together(shown, together.lowest, 3).object_code())
    subprocess.run(["cc", "-shared", "all.o", "-lm", "-o", "all.so"], cwd=tmp_path, check=True)
    chosen = numbers(client)
    has = [cpu for cpu in THREE if cpu in runnable()]
    for cpu in has:
        (tmp_path / cpu).mkdir()
        alone = Client(tmp_path / cpu, "model", *EXPORTS, target=asked(cpu, None)[0])
        found = numbers(alone)
        alone.loaded = At(ctypes.CDLL(str(tmp_path / "all.so")), symbols, cpu)
        assert numbers(alone) == found, cpu
        if cpu == has[-1]:
            assert chosen == found


@chooses
def test_a_python_package_has_all_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wide.py").write_text("def f(a, b):\n    return (a @ b).sum()\n")
    line = [
        "wide.py",
        "--signature",
        "f(a: f64[:, :], b: f64[:, :])",
        "--grad",
        "f:a",
        "--emit",
        "python",
    ]
    (tmp_path / "made").mkdir()
    assert aot.main([*line, "--target", ",".join(THREE), "-o", "made"]) == 0, capfd.readouterr().err
    names = ["nm", "-D", "--defined-only", "made/wide/libwide.so"]
    shown = subprocess.run(names, check=True, capture_output=True, text=True).stdout
    assert " i f_python\n" in shown
    assert " i f_grad_python\n" in shown
    script = "import numpy as np, wide; print(wide.f.grad(np.ones((2, 3)), np.eye(3))[0, 0])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "made", capture_output=True
    )
    assert done.stdout == b"1.0\n", done.stderr


@chooses
def test_code_of_each_level_is_that_of_a_library_for_it_alone(client: Client) -> None:
    asm = client.library.assembly()
    parts = re.split(r'^"?sweep\.x86-64-v\d"?:', asm, flags=re.MULTILINE)
    assert len(parts) == 4
    assert "ymm" not in parts[0] + parts[1].partition(".size")[0]
    assert "ymm" in asm
    assert "%k1" in asm
    assert client.library.object_code() == client.library.object_code()


@chooses
def test_only_promised_symbols_are_visible(client: Client) -> None:
    names = ["nm", "-D", "--defined-only", str(client.path)]
    shown = subprocess.run(names, check=True, capture_output=True, text=True).stdout.splitlines()
    assert sorted(line.split()[-1] for line in shown) == client.library.promised
    assert {line.split()[-1] for line in shown if line.split()[-2] == "i"} == {
        f.symbol for f in client.library.functions
    }


@chooses
@pytest.mark.parametrize("cpu", ["Nehalem", "Haswell"])
def test_the_level_is_chosen_at_load(client: Client, cpu: str, tmp_path: Path) -> None:
    """On a CPU of the lowest level, too, and in a program that is linked statically."""
    if shutil.which("qemu-x86_64") is None:
        pytest.skip("runs qemu-x86_64")
    archive = static_library("model", client.library.object_code())
    emulator = ["qemu-x86_64", "-cpu", cpu]
    ran(tmp_path, "cc", emulator, archive, header_text(client.library))

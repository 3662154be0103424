"""`mutadc -g`: gdb steps in the Python source through a C program."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mutad import aot

MODEL = """
def scale(u, k: float):
    u *= k


def loss(u: "f64[:]", k: float) -> float:
    scale(u, k)
    for i in range(1, len(u)):
        u[i] = u[i] * u[i - 1] + k
    return float((u**2).sum())
"""
CLIENT = """
#include "model.h"

int main(void) {
    double u[5] = {1, 2, 3, 4, 5}, result = 0;
    model_f64_1 a = {u, {5}, {1}};
    return loss_alloc(&a, 0.5, &result);
}
"""


@pytest.mark.skipif(
    shutil.which("gdb") is None or shutil.which("cc") is None, reason="there is no gdb, or no cc"
)
def test_gdb_steps_in_python_through_a_c_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "main.c").write_text(CLIENT)
    options = "--function loss -g -O1 -o libmodel.so --header model.h"
    assert aot.main(["model.py", *options.split()]) == 0
    subprocess.run(
        ["cc", "-g", "main.c", "-L.", "-lmodel", f"-Wl,-rpath,{tmp_path}", "-o", "main"], check=True
    )
    steps = ["set breakpoint pending on", "break model.py:9", "run", "backtrace", "print k", "next"]
    given = [part for step in steps for part in ("-ex", step)]
    done = subprocess.run(
        ["gdb", "-nx", "-batch", *given, "./main"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    shown = done.stdout
    assert "\n9\t        u[i] = u[i] * u[i - 1] + k\n#0 " in shown
    assert re.search(r"^#0 .*loss \(u=.*\) at .*model\.py:9$", shown, re.MULTILINE)
    assert re.search(r"^#\d .*main \(\) at .*main\.c:7$", shown, re.MULTILINE)
    assert "$1 = 0.5\n" in shown
    assert re.search(r"^8\t    for i in", shown, re.MULTILINE)

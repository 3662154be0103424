"""Upstream MLIR reads our IR: its dialects as they are, ours as dialects that it does not know.

In generic form, with `mlir-opt`, or with the `iree-opt` of `pip install iree-base-compiler`. All lit cases,
and what the stages leave.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from lit_programs import context
from xdsl.parser import Parser

from mutad.compiler import pipeline
from mutad.compiler.compilation import Compilation
from mutad.compiler.print_ir import module_text
from mutad.compiler.request import Request

LIT = Path(__file__).parents[1] / "lit-tests"
MLIR_OPT = shutil.which("mlir-opt") or shutil.which("iree-opt")


def sweep(u: np.ndarray, k: float, steps: int) -> float:
    for _ in range(steps):
        u[1:-1] += k * np.sin(u[:-2]) * u[2:]
        while u[0] < k:
            u[0] *= 2.0
    return u @ u


def modules() -> Iterator[str]:
    """The lit cases, and what each stage leaves, in generic form."""
    known = context()
    for path in sorted(LIT.rglob("*.mlir")):
        module = Parser(known, path.read_text()).parse_module()
        yield module_text(module, print_generic_format=True)
    for mode in ("gradient", "vjp"):
        request = Request(sweep, ("f64[?]C", "py_float", "py_int"), mode=mode, wrt=(0, 1))
        c = Compilation(request)
        for stage in pipeline.stages_for(request):
            if stage.name == "llvm":
                break
            stage.run(c)
            yield module_text(c.module, print_generic_format=True)


@pytest.mark.skipif(MLIR_OPT is None, reason="there is no mlir-opt on PATH")
def test_upstream_reads_what_we_print() -> None:
    text = "\n// -----\n".join(modules())
    command = [str(MLIR_OPT), "--allow-unregistered-dialect", "--split-input-file", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    assert done.stdout.count("@sweep") >= 8


def test_the_modules_are_there() -> None:
    assert len(list(modules())) > 55

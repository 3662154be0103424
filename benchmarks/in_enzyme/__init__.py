"""Gradients by Enzyme of the loop programs as plain C: a peer of the benchmark alone.

It takes two tools: `clang`, and `catalyst` of PyPI's `pennylane-catalyst`, which carries Enzyme. clang emits
IR without optimizing; catalyst optimizes, differentiates, optimizes; what it leaves is compiled with `-O3`,
by the LLVM that mutad uses. Where a tool is missing this peer is left out. MUTAD_BENCH_CLANG and
MUTAD_BENCH_CATALYST name them where they are not on the path.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .. import by_hand
from ..timing import console

FOLDER = Path(__file__).parent
SAME = {
    "jacobi_loops": "jacobi",
    "lu_slices": "lu_outer",
    "lstm": "lstm_loops",
    "gmm_slices": "gmm",
    "kmeans_slices": "kmeans",
}
"""Programs that are one in C."""
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-ffp-contract=on", "-S", "-emit-llvm")


@cache
def tools() -> tuple[str, str] | None:
    """clang and catalyst, or None and a line that says so."""
    clang, catalyst = (
        os.environ.get(f"MUTAD_BENCH_{name.upper()}") or shutil.which(name)
        for name in ("clang", "catalyst")
    )
    if clang is None or catalyst is None:
        console.print("[yellow]Enzyme needs clang and catalyst (pennylane-catalyst): left out")
        return None
    return clang, catalyst


def source(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> str:
    """The program, and `gradient`: its arguments, a pointer for each gradient, one for the value."""
    declared: list[str] = []
    passed: list[str] = []
    given: list[str] = []
    cleared: list[str] = []
    for p, value in zip(inspect.signature(function).parameters, arguments, strict=True):
        array = isinstance(value, np.ndarray)
        if p in wrt:
            cleared.append(f"memset({p}_bar, 0, {np.size(value)} * sizeof(double));")
        if array or p in wrt:
            declared.append(f"const double *{p}")
            passed.append(p if array else f"*{p}")
        else:
            declared.append(f"{'double' if isinstance(value, float) else 'int64_t'} {p}")
            passed.append(p)
        given.append(f"enzyme_dup, {p}, {p}_bar" if p in wrt else f"enzyme_const, {p}")
        extents = [f"{p}_{k}" for k in range(np.ndim(value))]
        declared += [f"int64_t {e}" for e in extents]
        passed += extents
        given += [f"enzyme_const, {e}" for e in extents]
    bars = [f"double *{p}_bar" for p in wrt]
    return f"""
#include "{FOLDER / SAME.get(name, name)}.c"
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
static void valued({", ".join(declared)}, double *value) {{
  *value = program({", ".join(passed)});
}}
void gradient({", ".join([*declared, *bars])}, double *value) {{
  double one = 1.0;
  {" ".join(cleared)}
  __enzyme_autodiff((void *)valued, {", ".join(given)}, enzyme_dup, value, &one);
}}
"""


def gradient(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> Callable[[], tuple[float, tuple[Any, ...]]] | None:
    """A call of Enzyme's gradient on these arguments, or None where it has none."""
    if not (FOLDER / f"{SAME.get(name, name)}.c").exists() or tools() is None:
        return None
    try:
        library = compiled(source(name, function, arguments, wrt))
    except subprocess.CalledProcessError as error:
        console.print(f"[yellow]Enzyme, {name}: {error.stderr.strip()[-200:]}")
        return None
    active = [p in wrt for p in inspect.signature(function).parameters]
    boxed = [np.array(a) if on and isinstance(a, float) else a for a, on in zip(arguments, active)]
    given = by_hand.flattened(tuple(boxed))
    shapes = [np.shape(a) for a, on in zip(arguments, active) if on]
    value = ctypes.c_double()

    def call(kept: Any = boxed) -> tuple[float, tuple[Any, ...]]:
        bars = tuple(np.empty(shape) for shape in shapes)
        library.gradient(
            *given, *(ctypes.c_void_p(b.ctypes.data) for b in bars), ctypes.byref(value)
        )
        return value.value, bars

    return call


def compiled(text: str) -> Any:
    clang, catalyst = tools() or ("", "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in.c").write_text(text)
        disabled = ("-Xclang", "-disable-llvm-passes")
        run(clang, *FLAGS, *disabled, folder / "in.c", "-o", folder / "in.ll")
        kept = ("--keep-intermediate", f"--workspace={folder}")
        run(catalyst, "--tool=llc", folder / "in.ll", "-o", folder / "unused", *kept)
        differentiated = (folder / "2_AfterEnzymePasses.ll").read_text()
        (folder / "out.o").write_bytes(optimized(differentiated))
        run("gcc", "-shared", "-o", folder / "out.so", folder / "out.o", "-lmvec", "-lm")
        return ctypes.CDLL(str(folder / "out.so"))


def run(*command: Any) -> None:
    subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)


def optimized(text: str) -> bytes:
    """An object file of IR, `-O3`."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    text = re.sub(r"^target triple.*$", "", text, flags=re.M)
    module = binding.parse_assembly(re.sub(r",[+-]avx10[^,\"]*", "", text))
    features = binding.get_host_cpu_features().flatten().split(",")
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=",".join(
            f for f in features if "avx10" not in f
        ),  # LLVM does not know its own name
        opt=3,
        reloc="pic",
    )
    module.triple = binding.get_default_triple()
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)

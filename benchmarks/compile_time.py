"""What a user waits for: importing mutad, the first call, the first call of the second process.

Every measurement is a process of its own; the disk cache is a fresh directory. First calls are timed
after the imports (of the compiler where something is compiled, else of LLVM's bindings), which have a
row of their own. The kernels are a few lines each; the programs of `long_programs` have lists, objects and
calls. Times are of the processor: what a user waits for on a machine that does nothing else.

Then the curve: the processor time of each stage for generated functions of growing size. Time that is linear
in the size doubles from column to column; the last column says what the last doubling multiplied.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from types import FunctionType

from rich.table import Table

from mutad.compiler.compilation import Compilation
from mutad.compiler.pipeline import stages_for
from mutad.compiler.request import Request

from .generated import loop_nest, scalar_lines, slice_lines
from .long_programs import PROGRAMS
from .timing import console, ratio, seconds, table

ROOT = Path(__file__).parent.parent

SETUP = f"""
import sys, time
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "examples")!r}]
import numpy as np
"""

TIMED = """
start = time.process_time()
{}
print(time.process_time() - start)
"""

COMPILER, LOADER = (
    "from mutad import _import_compiler; _import_compiler(cached=True)",
    "import llvmlite.binding",
)
"""What a first compilation imports: all of the compiler, whose dataclasses are in the disk cache."""
IMPORTS = {"import mutad": "import mutad", "and the compiler": COMPILER, "or to load only": LOADER}

KERNEL = """
from mutad import compile
from benchmarks.kernels import KERNELS
kernel = next(k for k in KERNELS if k.name == {name!r})
f = compile(kernel.function, grad={grad})
arguments = kernel.make(small=True)
call = lambda: {call}
"""
PROGRAM = """
from mutad import compile
from benchmarks.long_programs import PROGRAMS
function, make = PROGRAMS[{name!r}]
f = compile(function, grad={grad})
arguments = make()
call = lambda: {call}
"""
HILLSLOPE = """
import hillslope
call = hillslope.smallest_call()
"""
GRADIENT = "f.value_and_grad(*arguments, wrt=kernel.wrt)"

FIRST_CALLS = {
    "waves": KERNEL.format(name="waves", grad=False, call="f(*arguments)"),
    "jacobi_loops": KERNEL.format(name="jacobi_loops", grad=False, call="f(*arguments)"),
    "jacobi_loops, gradient": KERNEL.format(name="jacobi_loops", grad=True, call=GRADIENT),
    "nbody, gradient": KERNEL.format(name="nbody", grad=True, call=GRADIENT),
    "hillslope.py, gradient": HILLSLOPE,
}
for _name in PROGRAMS:
    FIRST_CALLS[_name] = PROGRAM.format(name=_name, grad=False, call="f(*arguments)")
    _gradient = PROGRAM.format(name=_name, grad=True, call="f.value_and_grad(*arguments)")
    FIRST_CALLS[f"{_name}, gradient"] = _gradient


LINES, SLICES, DEPTHS = (125, 250, 500, 1000, 2000), (25, 50, 100, 200), (3, 6, 12)
CURVES: dict[str, tuple[Callable[[int], FunctionType], tuple[str, ...], tuple[int, ...]]] = {
    "lines of scalar code": (scalar_lines, ("f64[?]C", "f64[?]C", "py_float", "py_int"), LINES),
    "lines of slices": (slice_lines, ("f64[?]C", "f64[?]C", "py_float"), SLICES),
    "loops deep": (loop_nest, ("f64[?]C", "py_float", "py_int"), DEPTHS),
}
SHOWN = 1e-4
"""A stage that takes less did nothing."""


def stage_seconds(
    function: FunctionType, arguments: tuple[str, ...], mode: str
) -> dict[str, float]:
    """The processor time of each stage of one compilation, in seconds."""
    request = Request(function, arguments, mode=mode, wrt=(0,) if mode == "gradient" else ())
    c = Compilation(request)
    spent: dict[str, float] = {}
    for stage in stages_for(request):
        start = process_time()
        stage.run(c)
        spent[stage.name] = process_time() - start
    return {stage: t for stage, t in spent.items() if t > SHOWN}


def curve(name: str, mode: str) -> Table:
    """Stages by sizes, and the factor of the last doubling."""
    make, arguments, sizes = CURVES[name]
    stage_seconds(make(sizes[0]), arguments, mode)  # the first compilation loads what all need
    found = [stage_seconds(make(size), arguments, mode) for size in sizes]
    made = table(f"{mode}: {name}", "stage", *map(str, sizes), "last doubling")
    for stage in found[-1]:
        times = [f.get(stage, 0.0) for f in found]
        made.add_row(stage, *map(seconds, times), ratio(times[-1] / max(times[-2], SHOWN)))
    totals = [sum(f.values()) for f in found]
    made.add_row("all", *map(seconds, totals), ratio(totals[-1] / totals[-2]))
    return made


def measure(program: str, cache: str) -> float:
    """The number that `program` prints, run in a process of its own.

    Python keeps the bytecode of modules, whatever the environment says: as it does for users.
    """
    env = {
        **os.environ,
        "MUTAD_CACHE_DIR": f"{cache}/code",
        "PYTHONPYCACHEPREFIX": f"{cache}/bytecode",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[-1])


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        measure(SETUP + TIMED.format(COMPILER), cache)  # which keeps what later processes find
        imports = table("imports, after NumPy's own", "", "time")
        for name, statement in IMPORTS.items():
            program = SETUP + ("import mutad\n" if name != "import mutad" else "")
            program += TIMED.format(statement)
            imports.add_row(
                name, seconds(statistics.median(measure(program, cache) for _ in range(5)))
            )
        found = table("first call, after imports", "function", "compiled", "from the disk cache")
        for name, program in FIRST_CALLS.items():
            cold = measure(SETUP + COMPILER + program + TIMED.format("call()"), cache)
            cached = SETUP + LOADER + program + TIMED.format("call()")
            found.add_row(
                name,
                seconds(cold),
                seconds(statistics.median(measure(cached, cache) for _ in range(3))),
            )
    console.print(imports, "", found, "")
    for name in CURVES:
        for mode in ("primal", "gradient"):
            console.print(curve(name, mode), "")


if __name__ == "__main__":
    main()

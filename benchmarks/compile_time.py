"""What a user waits for: importing mutad, the first call, the first call of the second process.

Every measurement is a process of its own; the disk cache is a fresh directory. First calls are timed
after the imports (of the compiler where something is compiled, else of LLVM's bindings), which have a
row of their own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .timing import console, seconds, table

ROOT = Path(__file__).parent.parent

SETUP = f"""
import sys, time
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "examples")!r}]
import numpy as np
"""

TIMED = """
start = time.perf_counter()
{}
print(time.perf_counter() - start)
"""

COMPILER, LOADER = (
    "import mutad.compiler.frontend.build, mutad.compiler.codegen.llvm_module",
    "import llvmlite.binding",
)
IMPORTS = {"import mutad": "import mutad", "and the compiler": COMPILER, "or to load only": LOADER}

KERNEL = """
from mutad import compile
from benchmarks.kernels import KERNELS
kernel = next(k for k in KERNELS if k.name == {name!r})
f = compile(kernel.function, grad={grad})
arguments = kernel.make(small=True)
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


def measure(program: str, cache: str) -> float:
    """The number that `program` prints, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MUTAD_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[-1])


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
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


if __name__ == "__main__":
    main()

"""What a user waits for: importing mutad, the first call, the first call of the second process.

Every measurement is a process of its own; the disk cache is a fresh directory.
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

IMPORT = (
    SETUP
    + """
start = time.perf_counter()
import mutad
print(time.perf_counter() - start)
"""
)

KERNEL = (
    SETUP
    + """
from mutad import compile
from benchmarks.kernels import KERNELS
kernel = next(k for k in KERNELS if k.name == {name!r})
f = compile(kernel.function, grad={grad})
arguments = kernel.make(small=True)
start = time.perf_counter()
{call}
print(time.perf_counter() - start)
"""
)

HILLSLOPE = (
    SETUP
    + """
import hillslope
call = hillslope.smallest_call()
start = time.perf_counter()
call()
print(time.perf_counter() - start)
"""
)

FIRST_CALLS = {
    "jacobi_loops, primal": KERNEL.format(name="jacobi_loops", grad=False, call="f(*arguments)"),
    "jacobi_loops, value_and_grad": KERNEL.format(
        name="jacobi_loops", grad=True, call="f.value_and_grad(*arguments, wrt=kernel.wrt)"
    ),
    "nbody, value_and_grad": KERNEL.format(
        name="nbody", grad=True, call="f.value_and_grad(*arguments, wrt=kernel.wrt)"
    ),
    "examples/hillslope.py, value_and_grad": HILLSLOPE,
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
        imported = statistics.median(measure(IMPORT, cache) for _ in range(5))
        console.print(f"import mutad, after NumPy: {seconds(imported)}\n")
        found = table("first call", "function", "compiled", "second process, from the disk cache")
        for name, program in FIRST_CALLS.items():
            cold = measure(program, cache)
            warm = statistics.median(measure(program, cache) for _ in range(3))
            found.add_row(name, seconds(cold), seconds(warm))
    console.print(found, "")


if __name__ == "__main__":
    main()

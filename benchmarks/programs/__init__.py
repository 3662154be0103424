"""`python -m benchmarks programs [name ...]`: whole programs, primal and gradient, against all peers.

Each program is plain NumPy, compiled as it stands. Its peers are NumPy, Numba on the same source, JAX (as a
user writes it, as an expert rewrites it), Enzyme on the same loops in C, and code by hand in C. All results
are compared before anything is timed; what disagrees is reported and not timed. Every contestant runs once a
round, on one thread, by the processor time of the process, so that what else runs on the machine adds little;
ratios are of medians.
"""

from __future__ import annotations

import argparse
import os
import random
import sys

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
"""What libraries read when they are loaded."""


def on_one_thread() -> None:
    """Start again, so that no library is loaded before it is told to use one thread."""
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        command = [sys.executable, "-m", "benchmarks", "programs", *sys.argv[2:]]
        os.execve(sys.executable, command, {**os.environ, **ONE_THREAD})
    os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks programs")
    parser.add_argument("names", nargs="*", help="programs; all of them where none is named")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.01, help="of one measurement")
    parser.add_argument("--sizes", action="store_true", help="all four sizes of each program")
    parser.add_argument("--quick", action="store_true", help="leave out JAX and Enzyme")
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the gradients (.svg, .png; matplotlib)"
    )
    parser.add_argument("--list", action="store_true", help="say which programs there are")
    return parser.parse_args(sys.argv[2:])


def main() -> None:
    given = options()
    on_one_thread()
    from . import plot, report
    from .catalogue import PROGRAMS
    from .measure import measured, peers

    known = {program.name: program for program in PROGRAMS}
    if given.list:
        for program in PROGRAMS:
            print(f"{program.name:16} {(program.function.__doc__ or '').splitlines()[0]}")
        return
    if wrong := [name for name in given.names if name not in known]:
        sys.exit(f"no program {', '.join(wrong)}; there are: {', '.join(known)}")
    chosen = [known[name] for name in given.names or known]
    libraries = peers(given.quick)
    rows = [
        measured(program, size, libraries, given.rounds, given.seconds)
        for program in chosen
        for size in (program.sizes if given.sizes else program.sizes[1:2])
    ]
    report.show(rows)
    if given.plot:
        plot.draw(rows, given.plot)

"""`python -m benchmarks [name ...]`: all tables, or the named ones; `programs` and `gpu` have arguments of
their own."""

from __future__ import annotations

import sys

from . import (
    batches,
    boundscheck,
    bridges,
    compile_time,
    control_flow,
    derivatives,
    device_figures,
    device_math,
    gpu,
    gradient,
    memory,
    overhead,
    primal,
    programs,
)
from .timing import console

BENCHMARKS = {
    "primal": primal.main,
    "gradient": gradient.main,
    "derivatives": derivatives.main,
    "batches": batches.main,
    "control_flow": control_flow.main,
    "memory": memory.main,
    "overhead": overhead.main,
    "bridges": bridges.main,
    "compile_time": compile_time.main,
    "boundscheck": boundscheck.main,
    "device_figures": device_figures.main,
    "device_math": device_math.main,
    "gpu": gpu.main,
}


def main() -> None:
    if sys.argv[1:2] == ["programs"]:  # what follows are its own arguments
        programs.main()
        return
    if sys.argv[1:2] == ["gpu"]:
        gpu.main(sys.argv[2:])
        return
    for name in sys.argv[1:] or BENCHMARKS:
        if name not in BENCHMARKS:
            sys.exit(f"unknown benchmark {name!r}; there are: {', '.join(BENCHMARKS)}")
        console.rule(name)
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()

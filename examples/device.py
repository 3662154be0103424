"""The demo's model on a GPU: a hillslope of 4096 x 4096 cells creeps, and its gradient runs there, too.

    python examples/device.py             needs an NVIDIA device; says what is missing where there is none
    python examples/device.py --emulated  a small grid, by the emulated driver: no device, and no speed

The model is that of `hillslope.py`, unchanged: plain NumPy, in place. Its arrays are on the device, so
that is where it runs: the gradient of the misfit with respect to each cell's diffusivity.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from hillslope import erode

import mutad

SIZE, STEPS = 4096, 40
SMALL, FEW = 48, 4


def misfit(log_kappa, z, observed, row, column, bed, dx, dt, steps):
    """Half the squared difference between the modelled and the observed terrain; `z` is worn down."""
    erode(z, np.exp(log_kappa), row, column, bed, dx, dx, dt, steps)
    return 0.5 * ((z - observed) ** 2).sum()


def problem(size: int, steps: int) -> tuple[Any, ...]:
    """Hills, what is left of them, and a river along each 64th row."""
    y, x = np.mgrid[:size, :size] / 64.0
    start = 40 * np.sin(x) * np.cos(1.3 * y) + 5 * np.sin(7 * x + 3 * y)
    observed = 0.9 * start
    row = np.repeat(np.arange(4, size - 4, 64), size - 8)
    column = np.tile(np.arange(4, size - 4), row.size // (size - 8))
    log_kappa = np.full((size, size), np.log(0.02))
    return log_kappa, start, observed, row, column, observed[row, column], 30.0, 2000.0, steps


def on_device(value: Any) -> Any:
    return mutad.device_array(value) if isinstance(value, np.ndarray) else value


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def run(size: int, steps: int) -> None:
    arguments = problem(size, steps)
    compiled = mutad.compile(misfit, grad=True)

    def fresh() -> tuple[Any, ...]:
        return tuple(map(on_device, arguments))

    def primal(given: tuple[Any, ...]) -> float:
        return seconds(lambda: compiled(*given))

    def both(given: tuple[Any, ...]) -> float:
        return seconds(lambda: compiled.value_and_grad(*given, wrt="log_kappa"))

    value, gradient = compiled.value_and_grad(*fresh(), wrt="log_kappa")
    slopes = gradient.copy_to_host()
    print(
        f"{size} x {size} cells, {steps} steps: misfit {value:.6g}, |gradient| {np.linalg.norm(slopes):.6g}"
    )
    compiled(*fresh())
    times = {
        "primal": min(primal(fresh()) for _ in range(3)),
        "value and gradient": min(both(fresh()) for _ in range(3)),
    }
    for name, taken in times.items():
        print(f"{name:20} {1e3 * taken:10.2f} ms, {1e3 * taken / steps:8.3f} ms a step")
    print(f"{'ratio':20} {times['value and gradient'] / times['primal']:10.2f}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="The demo's model, and its gradient, on a GPU.")
    parser.add_argument("--emulated", action="store_true", help="by the emulated driver, small")
    parser.add_argument("--size", type=int, help="cells along each axis")
    parser.add_argument("--steps", type=int)
    asked = parser.parse_args(arguments)
    if not asked.emulated and not (available := mutad.cuda.is_available()):
        print(f"There is no device to run this on: {available.reason}.")
        print(
            "What it needs: an NVIDIA GPU with its driver (r580 or later), and pip install 'mutad[cuda]'."
        )
        print("The same kernels by the emulated driver: python examples/device.py --emulated")
        return 0
    with mutad.cuda.emulated() if asked.emulated else nullcontext():
        run(
            asked.size or (SMALL if asked.emulated else SIZE),
            asked.steps or (FEW if asked.emulated else STEPS),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

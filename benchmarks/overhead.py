"""What one call costs when there is next to nothing to compute: an array of three elements."""

from __future__ import annotations

import numpy as np

from mutad import Duplicated, compile

from .timing import Call, console, interleaved, peer, seconds, table


def energy(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return total


def empty(x):
    return None


def main() -> None:
    x = np.arange(3.0)
    ours = compile(energy, grad=True)
    value_and_grad, v = ours.value_and_grad, np.ones(3)
    shadowed = Duplicated(x, np.zeros(3))
    ours.pullback(shadowed, cotangent=1.0)
    pullback, back = ours.pullback, ours.vjp(x)[1]
    contestants: dict[str, Call] = {
        "an empty Python function": lambda: empty(x),
        "mutad, primal": lambda: ours(x),
        "mutad, value_and_grad": lambda: value_and_grad(x),
        "mutad, jvp": lambda: ours.jvp(x, tangents={"x": v}),
        "mutad, hvp": lambda: ours.hvp(x, direction=v),
        "mutad, pullback": lambda: pullback(shadowed, cotangent=1.0),
        "mutad, vjp": lambda: ours.vjp(x),
        "mutad, back": lambda: back(1.0),
        "mutad, back with a final cotangent": lambda: back(1.0, x=v),
    }
    if (numba := peer("numba")) is not None:
        theirs = numba.njit(energy)
        contestants["numba, primal"] = lambda: theirs(x)
    if (jax := peer("jax")) is not None:
        jax.config.update("jax_enable_x64", True)

        def sum_of_squares(v):
            return (v * v).sum()

        jitted = jax.jit(sum_of_squares)
        with_gradient = jax.jit(jax.value_and_grad(sum_of_squares))
        contestants["JAX, primal"] = lambda: jax.block_until_ready(jitted(x))
        contestants["JAX, value_and_grad"] = lambda: jax.block_until_ready(with_gradient(x))
    times = interleaved(contestants, rounds=15)
    base = times["an empty Python function"]
    found = table("call overhead: 3 elements", "call", "time", "over an empty call")
    for name, t in times.items():
        found.add_row(name, seconds(t), seconds(t - base) if t > base else "-")
    console.print(found, "")


if __name__ == "__main__":
    main()

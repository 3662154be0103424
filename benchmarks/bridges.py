"""What a call through each bridge costs beside the compiled function itself: an array of three elements."""

from __future__ import annotations

import numpy as np

from mutad import compile

from .timing import Call, console, interleaved, peer, seconds, table


def energy(x):
    return (x * x).sum()


def main() -> None:
    a = np.arange(3.0)
    ours = compile(energy, grad=True)
    contestants: dict[str, Call] = {
        "mutad": lambda: ours(a),
        "mutad, value_and_grad": lambda: ours.value_and_grad(a),
    }

    from mutad.scipy import Problem

    problem = Problem(ours, a)
    contestants["scipy: Problem.value_and_grad"] = lambda: problem.value_and_grad(problem.start)
    if (torch := peer("torch")) is not None:
        import mutad.torch

        for_torch = mutad.torch.wrap(ours)
        plain, leaf = torch.from_numpy(a), torch.from_numpy(a.copy()).requires_grad_()
        contestants["torch: a call"] = lambda: for_torch(plain)
        contestants["torch: forward and backward"] = lambda: torch.autograd.grad(
            for_torch(leaf), leaf
        )
        contestants["torch: the same of its own x * x"] = lambda: torch.autograd.grad(
            (leaf * leaf).sum(), leaf
        )
    if (jax := peer("jax")) is not None:
        jax.config.update("jax_enable_x64", True)
        import mutad.jax

        for_jax, x = mutad.jax.wrap(ours), jax.numpy.asarray(a)
        jitted = jax.jit(for_jax)
        with_gradient = jax.jit(jax.value_and_grad(for_jax))
        contestants["jax: a call"] = lambda: jax.block_until_ready(for_jax(x))
        contestants["jax: a call under jit"] = lambda: jax.block_until_ready(jitted(x))
        contestants["jax: value_and_grad under jit"] = lambda: jax.block_until_ready(
            with_gradient(x)
        )
    times = interleaved(contestants, rounds=15)
    base = times["mutad"]
    found = table("bridges: 3 elements", "call", "time", "over mutad's")
    for name, t in times.items():
        found.add_row(name, seconds(t), seconds(t - base) if t > base else "-")
    console.print(found, "")


if __name__ == "__main__":
    main()

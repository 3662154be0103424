"""Tangents and Hessian-vector products on the kernels of `kernels.py`, beside JAX's own.

A tangent is over the primal, a Hessian-vector product over our gradient. Each call counts whole: its
result's allocation, too. JAX runs its version of the kernel, where there is one, compiled. The least time of
many rounds counts: others' work on the machine only ever adds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mutad import CompiledFunction, compile

from . import peers
from .kernels import KERNELS, Kernel
from .timing import Call, console, geometric_mean, interleaved, peer, ratio, seconds, table

MUTATING = {"jacobi_slices", "jacobi_loops", "burgers", "nbody"}
"""Kernels that store to their arrays in loops, which JAX rewrites."""


@dataclass(frozen=True)
class Case:
    """One kernel, what moves in it, and the direction."""

    kernel: Kernel
    ours: CompiledFunction
    arguments: tuple[Any, ...]
    names: tuple[str, ...]
    directions: tuple[Any, ...]

    @classmethod
    def of(cls, kernel: Kernel) -> Case:
        names = (kernel.wrt,) if isinstance(kernel.wrt, str) else kernel.wrt
        arguments = kernel.make()
        rng = np.random.default_rng(1)
        parameters = list(inspect.signature(kernel.function).parameters)
        shapes = [arguments[parameters.index(name)].shape for name in names]
        directions = tuple(rng.normal(size=shape) for shape in shapes)
        return cls(kernel, compile(kernel.function, grad=True), arguments, names, directions)

    def contestants(self) -> dict[str, Callable[[], Any]]:
        tangents = dict(zip(self.names, self.directions, strict=True))
        return {
            "primal": lambda: self.ours(*self.arguments),
            "tangent": lambda: self.ours.jvp(*self.arguments, tangents=tangents),
            "gradient": lambda: self.ours.value_and_grad(*self.arguments, wrt=self.names),
            "hvp": lambda: self.ours.hvp(
                *self.arguments, wrt=self.names, direction=self.directions
            ),
        }

    def peers(self, jax: Any) -> dict[str, Call]:
        """JAX's tangent and Hessian-vector product, once they agree with ours."""
        name = self.kernel.name
        function = peers.jax_versions(jax).get(name) if jax is not None else None
        if function is None:
            return {}
        tangent, product = jax_calls(jax, name, function, self)
        ours = self.contestants()
        agree(tangent()[1], ours["tangent"]()[1], name)
        for theirs, own in zip(product(), ours["hvp"](), strict=True):
            agree(theirs, own, name)
        return {"JAX tangent": tangent, "JAX hvp": product}


def jax_calls(
    jax: Any, name: str, function: Callable[..., Any], case: Case
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Compiled `jvp` and `jvp(grad)` that wait for their results."""
    parameters = list(inspect.signature(case.kernel.function).parameters)
    positions = tuple(parameters.index(n) for n in case.names)
    static = {p: case.arguments[p] for p in peers.JAX_STATIC.get(name, ())}

    def of_moving(others: dict[int, Any], *moving: Any) -> Any:
        values = {**static, **others, **dict(zip(positions, moving, strict=True))}
        return function(*(values[p] for p in range(len(parameters))))

    every = range(len(parameters))
    others = {p: case.arguments[p] for p in every if p not in positions and p not in static}
    moving = tuple(case.arguments[p] for p in positions)

    def tangent(others: dict[int, Any], moving: Any, directions: Any) -> Any:
        return jax.jvp(partial(of_moving, others), moving, directions)

    def product(others: dict[int, Any], moving: Any, directions: Any) -> Any:
        gradient = jax.grad(partial(of_moving, others), tuple(range(len(moving))))
        return jax.jvp(gradient, moving, directions)[1]

    def waiting(made: Any) -> Callable[[], Any]:
        return lambda: jax.block_until_ready(made(others, moving, case.directions))

    return waiting(jax.jit(tangent)), waiting(jax.jit(product))


def agree(theirs: Any, ours: Any, name: str) -> None:
    """Raise unless JAX computes what mutad does."""
    scale = float(np.abs(ours).max()) or 1.0
    np.testing.assert_allclose(
        np.asarray(theirs) / scale, np.asarray(ours) / scale, atol=1e-8, err_msg=name
    )


def main() -> None:
    jax = peer("jax")
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
    found = table(
        "derivatives: a tangent over the primal, a Hessian-vector product over a gradient",
        *("kernel", "primal", "tangent", "JAX / ours", "gradient", "hvp", "hvp / gradient"),
        "JAX / ours",
    )
    columns: dict[str, list[float]] = {"tangent": [], "hvp": [], "JAX tangent": [], "JAX hvp": []}
    mutating: list[float] = []
    for kernel in KERNELS:
        case = Case.of(kernel)
        contestants = {**case.contestants(), **case.peers(jax)}
        t = interleaved(contestants, rounds=41, seconds=0.002, pick=min)
        row = {"tangent": t["tangent"] / t["primal"], "hvp": t["hvp"] / t["gradient"]}
        if "JAX hvp" in t:
            row |= {f"JAX {mode}": t[f"JAX {mode}"] / t[mode] for mode in ("tangent", "hvp")}
            if kernel.name in MUTATING:
                mutating += [row["JAX tangent"], row["JAX hvp"]]
        for name, figure in row.items():
            columns[name].append(figure)
        found.add_row(
            kernel.name,
            seconds(t["primal"]),
            ratio(row["tangent"]),
            ratio(row.get("JAX tangent")),
            ratio(t["gradient"] / t["primal"]),
            seconds(t["hvp"]),
            ratio(row["hvp"]),
            ratio(row.get("JAX hvp")),
        )
    console.print(found)
    for name, figures in columns.items():
        if figures:
            console.print(f"{name}: geometric mean {geometric_mean(figures):.2f}x")
    if mutating:
        console.print(f"JAX over ours, kernels that mutate: {geometric_mean(mutating):.2f}x\n")


if __name__ == "__main__":
    main()

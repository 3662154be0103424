"""The gradient over the primal, on the kernels of `kernels.py`, and what others take for it.

`value_and_grad` counts whole: forward sweep, reverse sweep, the allocation of the result. The peers run
the same mathematics: JAX compiled, PyTorch eager, an adjoint written by hand and compiled by numba.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from mutad import compile

from . import peers
from .kernels import KERNELS, Kernel
from .primal import finish
from .timing import Call, interleaved, peer, ratio, seconds, table


def main() -> None:
    libraries = {name: peer(name) for name in ("numba", "jax", "torch")}
    if libraries["jax"] is not None:
        libraries["jax"].config.update("jax_enable_x64", True)
    if libraries["torch"] is not None:
        libraries["torch"].set_num_threads(1)
    found = table(
        "gradient: time of value_and_grad (everything divided by mutad's own primal)",
        *("kernel", "primal", "mutad", "ratio", "saved", "by hand", "JAX", "PyTorch"),
    )
    ratios: list[float] = []
    for kernel in KERNELS:
        ours = compile(kernel.function, grad=True)
        arguments = kernel.make()
        value, gradient = ours.value_and_grad(*arguments, wrt=kernel.wrt)
        contestants: dict[str, Call] = {
            "primal": lambda f=ours, a=arguments: f(*a),
            "mutad": lambda f=ours, a=arguments, w=kernel.wrt: f.value_and_grad(*a, wrt=w),
        }
        for name, call in competitors(kernel, libraries).items():
            agree(call(*arguments), value, gradient, name)
            contestants[name] = lambda f=call, a=arguments: f(*a)
        times = interleaved(contestants)
        over = {name: t / times["primal"] for name, t in times.items()}
        ratios.append(over["mutad"])
        saved = ours.explain(*arguments, wrt=kernel.wrt).saved_bytes
        shown = "by trips" if saved is None else f"{saved / 1e6:.3g} MB" if saved else "0"
        found.add_row(
            kernel.name,
            seconds(times["primal"]),
            seconds(times["mutad"]),
            ratio(over["mutad"]),
            shown,
            *(ratio(over.get(name)) for name in ("by hand", "JAX", "PyTorch")),
        )
    finish(found, ratios)


def competitors(kernel: Kernel, libraries: dict[str, Any]) -> dict[str, Any]:
    """The `value_and_grad` of each peer that has this kernel."""
    names = (kernel.wrt,) if isinstance(kernel.wrt, str) else kernel.wrt
    parameters = list(inspect.signature(kernel.function).parameters)
    positions = tuple(parameters.index(n) for n in names)
    made: dict[str, Any] = {}
    if (numba := libraries["numba"]) is not None and kernel.name in peers.BY_HAND:
        made["by hand"] = numba.njit(peers.BY_HAND[kernel.name])
    if (jax := libraries["jax"]) is not None:
        function = peers.jax_versions(jax).get(kernel.name)
        if function is not None:
            made["JAX"] = peers.jax_value_and_grad(jax, kernel.name, function, positions)
    if (torch := libraries["torch"]) is not None:
        function = peers.torch_versions(torch).get(kernel.name)
        if function is not None:
            made["PyTorch"] = peers.torch_value_and_grad(torch, function, positions)
    return made


def agree(theirs: Any, value: Any, gradient: Any, name: str) -> None:
    """Raise unless a peer computes what mutad does."""
    value2, gradient2 = theirs
    np.testing.assert_allclose(value, value2, rtol=1e-8, err_msg=name)
    ours = gradient if isinstance(gradient, tuple) else (gradient,)
    others = gradient2 if isinstance(gradient2, tuple | list) else (gradient2,)
    for a, b in zip(ours, others, strict=True):
        scale = float(np.abs(a).max()) or 1.0
        np.testing.assert_allclose(a / scale, np.asarray(b) / scale, atol=1e-8, err_msg=name)


if __name__ == "__main__":
    main()

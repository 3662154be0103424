"""What a gradient call saves and what it takes at its peak, against JAX and PyTorch.

saved   mutad: the receipt (where that is dynamic, what was measured); PyTorch: the bytes of the tensors
        that autograd packs, each storage once, without the arguments.
peak    mutad: counted by an allocator that its kernel is linked against, gradients included; JAX: temporaries
        and results of the compiled program, as XLA reports them. The last column compares with the better of
        JAX's two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mutad import compile
from mutad.runtime.measure import measure_gradient

from .memory_programs import PROGRAMS, Functional, Program
from .timing import console, geometric_mean, peer, table


def main() -> None:
    jax, torch = peer("jax"), peer("torch")
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
    if torch is not None:
        torch.set_num_threads(1)
    found = table(
        "memory of a gradient call (kB)",
        *("program", "saved", "PyTorch", "peak", "JAX", "checkpoint", "best / mutad"),
    )
    gains: list[float] = []
    for program in PROGRAMS:
        saved, peak, value, gradients = ours(program)
        theirs: dict[str, int] = {}
        torch_saved: int | None = None
        if jax is not None and program.jax:
            for name, remat in (("JAX", False), ("checkpoint", True)):
                theirs[name] = jax_peak(jax, program, remat, value, gradients)
        if torch is not None:
            torch_saved = torch_saved_bytes(torch, program, value, gradients)
        gain = min(theirs.values()) / peak if theirs else None
        gains += [] if gain is None else [gain]
        shown = [saved, torch_saved, peak, *map(theirs.get, ("JAX", "checkpoint"))]
        found.add_row(program.name, *map(kilobytes, shown), "-" if gain is None else f"{gain:.2f}x")
    console.print(found)
    if gains:
        console.print(
            f"geometric mean of the gains over the better JAX: {geometric_mean(gains):.2f}x"
        )


def kilobytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e3:,.1f}"


def ours(program: Program) -> tuple[int, int, float, tuple[Any, ...]]:
    """Saved bytes, peak bytes, value and gradients."""
    made = compile(program.function, grad=True)
    plan = made.explain(*program.make(), wrt=program.wrt)
    measured = measure_gradient(made, *program.make(), wrt=program.wrt)
    saved = plan.saved_bytes
    if saved is None:
        held = (plan.shadow_bytes or 0) - measured.shadows + (plan.temporary_bytes or 0)
        saved = measured.kernel - held
    value, gradients = made.value_and_grad(*program.make(), wrt=program.wrt)
    return saved, measured.total, value, gradients


def agree(name: str, theirs: tuple[Any, Any], value: float, gradients: tuple[Any, ...]) -> None:
    """Raise unless a peer computes what mutad does."""
    np.testing.assert_allclose(float(theirs[0]), value, rtol=1e-8, err_msg=name)
    for one, other in zip(theirs[1], gradients, strict=True):
        scale = float(np.abs(other).max()) or 1.0
        np.testing.assert_allclose(np.asarray(one) / scale, other / scale, atol=1e-8, err_msg=name)


# JAX


def jax_peak(
    jax: Any, program: Program, remat: bool, value: float, gradients: tuple[Any, ...]
) -> int:
    def loop(count: int, body: Any, state: Any) -> Any:
        return jax.lax.fori_loop(0, count, jax.checkpoint(body) if remat else body, state)

    f = Functional(jax.numpy, loop, lambda a, where, value: a.at[where].set(value))
    given = program.make()
    arrays = [p for p, a in enumerate(given) if isinstance(a, np.ndarray)]

    def function(*values: Any) -> Any:
        full = list(given)
        for p, value in zip(arrays, values, strict=True):
            full[p] = value
        return program.pure(f, *full)

    values = [given[p] for p in arrays]
    made = jax.jit(jax.value_and_grad(function, program.wrt)).lower(*values).compile()
    agree(f"JAX {program.name}", made(*values), value, gradients)
    used = made.memory_analysis()
    return used.temp_size_in_bytes + used.output_size_in_bytes


# PyTorch


def torch_call(torch: Any, program: Program) -> tuple[Any, list[Any]]:
    """The program on tensors, and those that are differentiated."""

    def loop(count: int, body: Any, state: Any) -> Any:
        for i in range(count):
            state = body(i, state)
        return state

    def put(a: Any, where: Any, value: Any) -> Any:
        a = a.clone()
        a[where] = value
        return a

    given = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in program.make()]
    for p in program.wrt:
        given[p].requires_grad_()
    return lambda: program.pure(Functional(torch, loop, put), *given), [
        given[p] for p in program.wrt
    ]


def torch_saved_bytes(
    torch: Any, program: Program, value: float, gradients: tuple[Any, ...]
) -> int:
    call, leaves = torch_call(torch, program)
    own = {leaf.untyped_storage().data_ptr() for leaf in leaves}
    storages: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        result = call()
    agree(
        f"PyTorch {program.name}",
        (result.detach(), torch.autograd.grad(result, leaves)),
        value,
        gradients,
    )
    return sum(s.nbytes() for s in storages.values())


if __name__ == "__main__":
    main()

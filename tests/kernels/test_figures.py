"""What is said of kernels without a device: launches, bytes, atomics; by the assembler, registers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from device_checks import ptxas
from device_programs import heat, waves
from meeting_programs import KS, added_at, gathered
from on_device import on_device, on_host
from race_oracle import watched

import mutad
from benchmarks import device_figures, gpu
from benchmarks.kernels import jacobi_slices


def receipt(function: Any, *args: Any, wrt: str, **options: Any) -> Any:
    compiled = mutad.compile(function, grad=True, target="cuda:sm_90", **options)
    return compiled.explain(*args, wrt=wrt)


def test_the_receipt_counts_launches_and_bytes() -> None:
    kernels = receipt(heat, waves(600), 0.1, 3, wrt="u").kernels
    within = [k for k in kernels if k.launches != (0,) * len(k.launches)]
    first = heat.__code__.co_firstlineno
    assert {line for k in within for line in k.launches} == {first + 1}
    assert sum(len(k.launches) for k in within) <= 4
    assert [k for k in within if k.line == first + 2] == within
    assert max(k.least for k in within) <= 40
    assert all(k.least <= k.loads + k.stores for k in kernels)
    assert not any(k.atomics or k.ordered for k in kernels)


def walls(u, n):
    for _ in range(n):
        u[0] = u[1]
        u *= 0.5 / u.max()
    return u.sum()


def chosen(u, n):
    for _ in range(n):
        u *= 0.9
        if u.sum() > 1.0:
            u *= u
    return u.sum()


def worn(u, limit):
    while u.max() > limit:
        u -= 0.1 * u * u
    return u.sum()


def test_the_receipt_says_which_loops_are_graphs() -> None:
    told = receipt(walls, waves(30), 3, wrt="u")
    assert [(one.fetches, one.graph) for one in told.loops] == [(0, True)] * 2
    told, first = receipt(chosen, waves(30), 3, wrt="u"), chosen.__code__.co_firstlineno
    forward = told.loops[0]
    assert (forward.line, forward.fetches, forward.graph) == (first + 1, 1, False)
    assert (
        f"1 fetch an iteration, no graph: the host fetches a number there (line {first + 3})"
        in str(told)
    )
    there, back = receipt(worn, waves(30), 0.1, wrt="u").loops
    assert (there.fetches, there.graph) == (1, False)
    assert (back.fetches, back.graph, back.reason) == (
        0,
        False,
        "what is saved there has no fixed place",
    )
    assert json.loads(json.dumps(told.to_dict()))["loops"][0]["reason_line"] == first + 3
    assert not mutad.compile(walls, grad=True).explain(waves(30), 3, wrt="u").loops


def test_the_receipt_says_where_threads_meet() -> None:
    line = gathered.__code__.co_firstlineno + 1
    told = receipt(gathered, waves(5), KS, KS, wrt="x")
    assert [(k.line, k.atomics) for k in told.kernels if k.atomics] == [(line, 1)]
    assert "1 atomic addition" in str(told)
    assert json.loads(json.dumps(told.to_dict()))["kernels"][0]["launches"]
    told = receipt(gathered, waves(5), KS, KS, wrt="x", deterministic=True)
    assert [k.line for k in told.kernels if k.ordered] == [line, line]  # of few iterations, of many
    assert "atomic" not in str(told)
    told = receipt(added_at, waves(5), KS, waves(6), wrt="u")
    assert "owners, in order" in str(told)
    assert "kernels" not in str(mutad.compile(heat, grad=True).explain(waves(600), 0.1, 3, wrt="u"))


@pytest.mark.parametrize(("dtype", "intensity", "shared"), [("f8", 8, 16640), ("f4", 32, 16512)])
def test_products_of_matrices_use_what_they_load_often(
    dtype: str, intensity: float, shared: int
) -> None:
    def product(a, b):
        c = a @ b
        return (c * c).sum()

    given = waves(70, 33, dtype=dtype), waves(33, 20, dtype=dtype)
    compiled = mutad.compile(product, grad=True, target="cuda:sm_90")
    kernels = [
        k for k in compiled.explain(*given, wrt=("a", "b")).kernels if k.intensity == intensity
    ]
    assert sum(len(k.launches) for k in kernels) == 3
    assert {k.shared for k in kernels} == {shared}
    for kind in ("sm_80", "sm_90", "sm_100"):
        target = mutad.compile(product, grad=True, target=f"cuda:{kind}")
        found = device_figures.resources(target.inspect("ptx", *given, wrt=("a", "b")), kind)
        own = [found[k.name] for k in kernels]
        assert not any(one.spilled for one in own)
        assert {one.shared for one in own} == {shared}
        assert max(one.registers for one in own) <= 192


def test_the_assembler_spills_nothing() -> None:
    assert ptxas() == device_figures.ptxas()
    compiled = mutad.compile(device_figures.heat, grad=True, target="cuda:sm_90")
    given = device_figures.GRID, 0.1, 3
    found = device_figures.resources(compiled.inspect("ptx", *given, wrt="u"))
    kernels = compiled.explain(*given, wrt="u").kernels
    assert found.keys() == {k.name for k in kernels}
    assert not any(one.spilled for one in found.values())
    assert max(one.registers for one in found.values()) <= 48
    assert {k.name: k.shared for k in kernels} == {n: one.shared for n, one in found.items()}


def test_a_shadow_that_is_first_touched_is_not_read() -> None:
    """The adjoint of a sweep from one grid to another stores: what is not in reach of it is at the edges."""
    kernels = receipt(jacobi_slices, device_figures.GRID, 3, wrt="start").kernels
    first, again = (k for k in kernels if "iteration" in k.launched)
    assert (first.loads, first.stores, first.least) == (32, 8, 16)
    assert (again.loads, again.stores, again.least) == (32, 8, 16)


@pytest.mark.parametrize(("program", "most"), [(gpu.linear, 2.0), (gpu.nonlinear, 3.5)])
def test_gradients_of_stencils_move_few_bytes(program: Any, most: float) -> None:
    """A step of the primal reads a grid and writes one, 16 bytes a point."""
    compiled = mutad.compile(program, grad=True, target="cuda:sm_90")
    given = np.ones((9, 9)), np.ones((9, 9)), 0.1, 3
    assert gpu.bytes_of_gradient(compiled, given) / 16 <= most


def test_what_iterations_copy_whole_is_exchanged() -> None:
    def paths(lengths, steps):
        d = lengths.copy()
        for k in range(steps):
            d[:, :] = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
        return (d * d).sum()

    given = waves(6, 6), 6
    kernels = receipt(paths, *given, wrt="lengths").kernels
    assert not any(k.loads == k.stores for k in kernels if "iteration" in k.launched)
    here = mutad.compile(paths, grad=True).grad(*given)
    with watched():
        there = mutad.compile(paths, grad=True).grad(*on_device(given))
        np.testing.assert_allclose(on_host(there), here, rtol=1e-13)


MOST = {
    "heat": (4, 128, 64, 48),
    "jacobi_slices": (2, 80, 32, 48),
    "burgers": (5, 144, 88, 48),
    "pairs": (0, 0, 0, 112),
    "gathered": (0, 0, 0, 48),
}
"""Of a step, forward and back: launches, bytes a point, the least of them; of all kernels the registers."""


@pytest.mark.parametrize("program", device_figures.PROGRAMS, ids=lambda p: p[0].__name__)
def test_static_figures_do_not_grow(program: Any) -> None:
    """What `python -m benchmarks device_figures` shows."""
    function, arguments, wrt = program
    compiled = mutad.compile(function, grad=True, target="cuda:sm_90")
    kernels = compiled.explain(*arguments, wrt=wrt).kernels
    step = [(k, sum(1 for line in k.launches if line)) for k in kernels]
    found = device_figures.resources(compiled.inspect("ptx", *arguments, wrt=wrt))
    launches, moved, least, registers = MOST[function.__name__]
    assert sum(n for _, n in step) <= launches
    assert sum(n * (k.loads + k.stores) for k, n in step) <= moved
    assert sum(n * k.least for k, n in step) <= least
    assert max(one.registers for one in found.values()) <= registers
    assert not any(one.spilled for one in found.values())


def test_an_interaction_of_n_body() -> None:
    """Ten operations, two of them a quotient and a root; none is fused unless it may be."""
    given = tuple(np.arange(64.0) for _ in range(3))
    shown = mutad.compile(gpu.bodies, target="cuda:sm_90").inspect("kernels", *given)
    (one,) = device_figures.interactions(shown).values()
    assert one == device_figures.Interaction(gpu.FLOPS_A_PAIR, 0, 2, 16, 16 / 256)


def test_an_interaction_in_machine_code() -> None:
    """What `docs/gpu-numbers.md` says of the peak."""
    given = tuple(np.arange(64.0) for _ in range(3))
    compiled = mutad.compile(gpu.bodies, target="cuda:sm_90")
    (one,) = device_figures.interactions(compiled.inspect("kernels", *given)).values()
    (kernel,) = device_figures.interactions(compiled.inspect("kernels", *given))
    shown = compiled.inspect("sass", *given)
    (loop,) = device_figures.machine_loops(shown, {kernel: one.shared}).values()
    assert one.operations < loop.floats < loop.instructions
    assert 0.16 < loop.share(one.operations) < 0.2 < one.operations / (2 * loop.floats)


def test_a_loop_of_machine_code_is_counted_per_interaction() -> None:
    shown = """
.text.pairs_0:
.L_x_1:
        /*0010*/                   LDS.64 R4, [R3] ;
        /*0020*/                   @!P0 DADD R4, R4, R6 ;
.L_x_2:
        /*0030*/                   LDS.128 R8, [R3+0x8] ;
        /*0040*/                   DFMA R4, R4, R6, R8 ;
        /*0050*/                   IADD3 R1, R1, 0x1, RZ ;
        /*0060*/              @!P0 BRA `(.L_x_2) ;
        /*0070*/              @!P0 BRA `(.L_x_1) ;
"""
    found = device_figures.machine_loops(shown, {"pairs_0": 8})
    assert found == {"pairs_0": device_figures.MachineLoop(2.0, 0.5, 2)}
    assert found["pairs_0"].clocks == 0.5
    assert found["pairs_0"].share(1) == 0.5

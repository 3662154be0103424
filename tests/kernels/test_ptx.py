"""PTX of kernels, by claim; `ptxas`, which is part of what development installs, takes all of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import assembled_kernels
import numpy as np
import pytest
from device_checks import assemble, assemble_all
from device_programs import (
    PROGRAMS,
    Arguments,
    bodies,
    chosen_by_sign,
    heat,
    layers,
    named,
    sums_along_axes,
    waves,
)
from lit_programs import context
from scalar_lines import lines_of, program
from turns import has_turn
from xdsl.parser import Parser

import mutad
from mutad.compiler.codegen.ptx import ptx_of
from mutad.compiler.kernels.outline_kernels import OutlineKernels

CONTEXT = context()
KINDS = ("sm_80", "sm_90", "sm_100")


def ptx(function: Callable[..., Any], *args: Any, kind: str = "sm_90", **how: Any) -> str:
    options = {k: how.pop(k) for k in ("fastmath",) if k in how}
    compiled = mutad.compile(function, grad=True, target=f"cuda:{kind}", **options)
    return compiled.inspect("ptx", *args, **how)


@pytest.mark.parametrize(("function", "arguments", "wrt"), PROGRAMS, ids=map(named, PROGRAMS))
def test_ptxas_takes_every_kernel(
    function: Callable[..., Any], arguments: Arguments, wrt: tuple[str, ...], tmp_path: Path
) -> None:
    """For each kind of device that code is likely to meet; today for those that have their turn."""
    kinds = [kind for kind in KINDS if has_turn(f"{function.__name__} {kind}")]
    ways: list[dict[str, Any]] = [{}, {"wrt": wrt}] if wrt else [{}]
    for how in ways:
        compiled = mutad.compile(function, grad=True, target="cuda:sm_80")
        shown = compiled.inspect("kernels", *arguments(), **how)
        module = Parser(CONTEXT, shown).parse_module()
        texts = {kind: ptx_of(module, kind) for kind in kinds}
        assemble_all(texts, tmp_path)
        for kind, text in texts.items():
            assert ".extern" not in text
            assert not text or f".target {kind}" in text


def test_what_runs_on_the_emulated_device_is_assembled_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assembled_kernels, "SEEN", set())
    seen = list[int]()
    for _ in range(2):
        with mutad.cuda.emulated(), assembled_kernels.assembled("here") as texts:
            mutad.compile(bodies, opt=1, cache=False)(*map(mutad.device_array, np.ones((2, 8))))
        seen.append(sum(text.count(".visible .entry") for text in texts))
    assert seen[0] > 1
    assert seen[1] == 0


def test_what_the_assembler_refuses_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembled_kernels, "SEEN", set())
    monkeypatch.setattr(
        assembled_kernels, "ptx_of", lambda *_, **__: ".version 8.0\n.target sm_90\nno\n"
    )
    with pytest.raises(AssertionError, match="ptxas"), mutad.cuda.emulated():
        with assembled_kernels.assembled("here"):
            mutad.compile(bodies, opt=1, cache=False)(*map(mutad.device_array, np.ones((2, 8))))


def test_arrays_are_in_global_memory_and_what_is_only_read_is_cached() -> None:
    text = ptx(heat, waves(600), 0.1, 3)
    assert "ld.global.nc.b64" in text
    assert "st.global.b64" in text
    assert not re.search(r"\b(ld|st)\.b64", text)  # no address of which nobody knows where it is
    assert ".maxntid 256" in text


def test_a_primal_is_not_contracted_unless_it_may_be() -> None:
    given = waves(600), 0.1, 3
    assert not re.search(r"\bfma\b", ptx(heat, *given))
    assert "fma.rn.f64" in ptx(heat, *given, fastmath=True)


def test_gradients_of_stencils_have_no_atomics() -> None:
    assert not re.search(r"\b(atom|red)\.", ptx(heat, waves(600), 0.1, 3, wrt="u"))


def test_sums_meet_in_shared_memory() -> None:
    text = ptx(sums_along_axes, waves(5, 300))
    assert "ld.shared.b64" in text
    assert "bar.sync" in text or "barrier.cta.sync" in text


def test_functions_of_the_c_library_are_mapped() -> None:
    for function, args in (
        (layers, (waves(3, 4), waves(2, 4, 4), waves(2, 4))),
        (chosen_by_sign, (waves(30), waves(30))),
        (powers, (waves(30),)),
    ):
        text = ptx(function, *args)
        assert ".extern" not in text


@pytest.mark.parametrize("type_", ["f64", "f32", "i64", "i32"])
def test_every_scalar_op_has_code(type_: str, tmp_path: Path) -> None:
    """LLVM ends the process at an operation that a device has not."""
    module = Parser(CONTEXT, program(type_, lines_of(type_))).parse_module()
    OutlineKernels().apply(CONTEXT, module)
    text = ptx_of(module, "sm_80")
    assert ".extern" not in text
    assemble(text, "sm_80", tmp_path)


def powers(x):
    return (x**x + np.arctan2(x, 2.0) + np.log1p(x) + np.cbrt(x) + np.sinh(x) * np.arcsinh(x)).sum()


def test_single_precision_stays_single() -> None:
    text = ptx(heat, waves(600, dtype="f4"), np.float32(0.1), 3)
    assert "mul.rn.f32" in text
    assert "f64" not in text


def test_what_runs_where_is_shown_without_arguments_of_an_annotated_function() -> None:
    def scaled(u: f64[:], k: float):  # noqa: F821
        u *= k

    compiled = mutad.compile(scaled, target="cuda:sm_90")
    assert "device.launch @scaled_0" in compiled.inspect("kernels")
    assert ".entry scaled_0(" in compiled.inspect("ptx")


def test_code_for_a_device_is_not_called() -> None:
    compiled = mutad.compile(bodies, target="cuda:sm_90")
    with pytest.raises(RuntimeError, match="runs on a device") as raised:
        compiled(waves(4), np.zeros(4))
    available = mutad.cuda.is_available()
    assert not available
    assert available.reason in str(available)
    assert "pass arrays of a device (mutad.device_array(x))" in str(raised.value)


def largest_again(z, w, steps):
    """Each step asks which elements were the largest; the reverse sweep makes all of them again."""
    t, total = np.zeros_like(z), 0.0
    for _ in range(steps):
        t[:] = np.tanh(z) * w[0] + np.exp(z * w[1])
        total += np.sum(np.where(t == t.max(axis=0), t * t, 0.0))
        z = z * z * w[0] + 0.1
    return total


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_what_both_sweeps_compute_is_rounded_alike(dtype: str) -> None:
    """The element that is made again is compared with the largest one: a fused `mul` would miss it.

    Both kernels have libdevice's `tanh` and `exp` as they are, and around them nothing that ptxas may fuse.
    """
    given = waves(5, 8, dtype=dtype), np.array([0.3, 0.7], dtype), 3
    wrt = {"wrt": ("z", "w")}
    compiled = mutad.compile(largest_again, grad=True, target="cuda:sm_90")
    text, shown = compiled.inspect("ptx", *given, **wrt), compiled.inspect("kernels", *given, **wrt)
    first, again, *_ = (k for k in shown.split("func.func private")[1:] if "math.tanh" in k)
    assert "oeq" in again
    assert "oeq" not in first
    chains = [[line.split(" = ")[1].split()[0] for line in made(k)] for k in (first, again)]
    assert chains[0] == chains[1][: len(chains[0])]
    assert not any("ad.adjoint" in line or "fastmath" in line for line in made(first))
    compared = next(k for k, line in enumerate(made(again)) if "oeq" in line)
    assert not any("ad.adjoint" in line or "fastmath" in line for line in made(again)[:compared])
    fused = [fused_in(text, kernel) for kernel in (first, again)]
    assert fused[1] - fused[0] == again.count("arith.addf") - first.count("arith.addf")
    assert not re.findall(r"\b(?:add|sub|mul|div|sqrt)\.(?!rn\.)[a-z.]*f(?:32|64)", text)


def made(kernel: str) -> list[str]:
    """The lines of a kernel that compute or compare numbers."""
    return re.findall(r".*(?:math\.\w+|arith\.(?:mul|add|cmp)f) .*", kernel)


def fused_in(text: str, kernel: str) -> int:
    name = kernel.split("(")[0].strip(" @")
    return text.split(f".entry {name}(")[1].split(".entry")[0].count("fma.rn")

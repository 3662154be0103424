"""Vectors that registers have no room for: each lies in one line of the cache."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import llvm_module


def waves(x: Any) -> Any:
    return (np.exp(-0.5 * x * x) * np.sin(3.0 * x) + np.cos(x) * np.log(1.0 + x * x)).sum()


SPILLED = re.compile(r"(\d*)\(%rsp\).*# (\d+)-byte (?:Folded )?(?:Spill|Reload)")
"""As LLVM says beside the instruction."""


@pytest.fixture
def assembly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The gradient's assembly for a CPU, with LLVM's comments."""
    monkeypatch.setenv("MUTAD_TARGET_CPU", request.param)
    made, machines = llvm_module.machine_of, []

    def commented(*given: Any, **named: Any) -> Any:
        machines.append(made(*given, **named))
        machines[-1].set_asm_verbosity(True)
        return machines[-1]

    monkeypatch.setattr(llvm_module, "machine_of", commented)
    text = mutad.compile(waves, grad=True).inspect("assembly", np.ones(5), wrt="x")
    for machine in machines:
        machine.set_asm_verbosity(False)
    return text


def functions_of(text: str) -> dict[str, str]:
    """The code of each function."""
    parts = re.split(r"^([\w.]+):.*# @.*$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("assembly", ["x86-64-v4", "x86-64-v3"], indirect=True)
def test_spilled_vectors_of_kernels_are_aligned(assembly: str) -> None:
    """As the stack is: it is no multiple of a vector's size where a kernel is called."""
    (kernel,) = [code for code in functions_of(assembly).values() if "andq\t$-64, %rsp" in code]
    spilled = [line for line in kernel.splitlines() if SPILLED.search(line) and "mm" in line]
    assert sum("Spill" in line for line in spilled) > 10
    for line in spilled:
        found = SPILLED.search(line)
        assert found is not None
        assert "vmovu" not in line
        assert int(found[1] or 0) % int(found[2]) == 0, line


@pytest.mark.parametrize("assembly", ["x86-64-v4"], indirect=True)
def test_functions_of_vectors_spill_nothing_but_for_large_numbers(assembly: str) -> None:
    """These the system's functions compute, one by one; the stack is not aligned there."""
    ours = {name: code for name, code in functions_of(assembly).items() if name.startswith("_ZGV")}
    assert any(map(SPILLED.search, ours.values()))
    for name, code in ours.items():
        quick, _, _ = code.partition("# %far")
        assert not SPILLED.search(quick), name

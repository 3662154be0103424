"""Vectors that registers have no room for: each lies in one line of the cache."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import llvm_module
from mutad.compiler.codegen.shared_code import shared_text
from mutad.runtime.target import chosen


def waves(x: Any) -> Any:
    return (np.exp(-0.5 * x * x) * np.sin(3.0 * x) + np.cos(x) * np.log(1.0 + x * x)).sum()


SPILLED = re.compile(r"(\d*)\(%rsp\).*# (\d+)-byte (?:Folded )?(?:Spill|Reload)")
"""As LLVM says beside the instruction."""


@pytest.fixture
def comments(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LLVM writes comments into assembly."""
    made, machines = llvm_module.machine_of, []

    def commented(*given: Any, **named: Any) -> Any:
        machines.append(made(*given, **named))
        machines[-1].set_asm_verbosity(True)
        return machines[-1]

    monkeypatch.setattr(llvm_module, "machine_of", commented)
    yield
    for machine in machines:
        machine.set_asm_verbosity(False)


def functions_of(text: str) -> dict[str, str]:
    """The code of each function."""
    parts = re.split(r"^([\w.]+):.*# @.*$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("cpu", ["x86-64-v4", "x86-64-v3"])
def test_spilled_vectors_of_kernels_are_aligned(
    cpu: str, comments: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the stack is: it is no multiple of a vector's size where a kernel is called."""
    monkeypatch.setenv("MUTAD_TARGET_CPU", cpu)
    assembly = mutad.compile(waves, grad=True).inspect("assembly", np.ones(5), wrt="x")
    (kernel,) = [code for code in functions_of(assembly).values() if "andq\t$-64, %rsp" in code]
    spilled = [line for line in kernel.splitlines() if SPILLED.search(line) and "mm" in line]
    assert sum("Spill" in line for line in spilled) > 10
    for line in spilled:
        found = SPILLED.search(line)
        assert found is not None
        assert "vmovu" not in line
        assert int(found[1] or 0) % int(found[2]) == 0, line


@pytest.mark.parametrize("function", ["exp", "expm1", "tanh", "log", "sin", "cos"])
def test_functions_of_vectors_spill_nothing_but_for_large_numbers(
    function: str, comments: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These the system's functions compute, one by one; the stack is not aligned there."""
    monkeypatch.setenv("MUTAD_TARGET_CPU", "x86-64-v4")
    made, _ = shared_text(json.dumps({"kind": "function", "name": function}), chosen())
    found = functions_of(llvm_module.assembly(made.module(), 3, chosen()))
    vectors = {name: code for name, code in found.items() if name.startswith("_ZGV")}
    assert len(vectors) == 3
    assert any(map(SPILLED.search, vectors.values())) is (function in ("sin", "cos"))
    for name, code in vectors.items():
        quick, _, _ = code.partition("# %far")
        assert not SPILLED.search(quick), name

"""Vectors that registers have no room for: each lies in one line of the cache."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mutad


def waves(x):
    return (np.exp(-0.5 * x * x) * np.sin(3.0 * x) + np.cos(x) * np.log(1.0 + x * x)).sum()


@pytest.mark.parametrize("cpu", ["x86-64-v4", "x86-64-v3"])
def test_spilled_vectors_are_aligned(monkeypatch: pytest.MonkeyPatch, cpu: str) -> None:
    """As the stack is: it is no multiple of a vector's size where a kernel is called."""
    monkeypatch.setenv("MUTAD_TARGET_CPU", cpu)
    f = mutad.compile(waves, grad=True)
    text = f.inspect("assembly", np.ones(5), wrt="x")
    assert "andq\t$-64, %rsp" in text
    stack = [line for line in text.splitlines() if re.search(r"\(%rsp\)", line)]
    spilled = [
        line for line in stack if re.search(r"vmova.*%[yz]mm", line)
    ]  # vmovu: of several numbers
    assert len(spilled) > 10
    for line in spilled:
        size = 64 if "%zmm" in line else 32
        assert int(re.search(r"(\d*)\(%rsp\)", line)[1] or 0) % size == 0, line

"""Python's garbage collector rests while a function compiles, and only then."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import mutad


def total(x):
    return np.sum(x)


def unknown(x):
    return x.nonsense()


def test_it_rests_during_a_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    from mutad.compiler.codegen import llvm_module

    seen: list[bool] = []
    emit = llvm_module.optimize_in_parts

    def watched(*arguments: Any) -> list[bytes]:
        seen.append(gc.isenabled())
        return emit(*arguments)

    monkeypatch.setattr(llvm_module, "optimize_in_parts", watched)
    assert mutad.compile(total, cache=False)(np.ones(3)) == 3
    assert set(seen) == {False}
    assert gc.isenabled()


def test_it_works_again_after_a_refusal() -> None:
    with pytest.raises(mutad.CompileError):
        mutad.compile(unknown, cache=False)(np.ones(3))
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        mutad.compile(total, cache=False)(np.ones(4))
        assert not gc.isenabled()
    finally:
        gc.enable()

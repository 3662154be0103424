"""`MUTAD_TARGET_CPU`: code for a level of x86-64 rather than for the CPU that we run on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import own_math
from mutad.compiler.codegen.vector_math import variants
from mutad.runtime import disk_cache, fingerprint, target
from mutad.runtime.target import LEVELS, Target


def waves(x):
    return np.exp(x * x).sum()


def compiled() -> mutad.CompiledFunction:
    return mutad.compile(waves, grad=True)


X = np.linspace(-1, 1, 50)


@pytest.mark.parametrize("name", target.runnable())
def test_values_and_gradients_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUTAD_TARGET_CPU", name)
    np.testing.assert_allclose(compiled()(X), waves(X), rtol=1e-14)
    np.testing.assert_allclose(compiled().grad(X), 2 * X * np.exp(X * X), rtol=1e-14)


def test_code_for_any_level_can_be_read(monkeypatch: pytest.MonkeyPatch):
    """Its registers, and its functions of `libmvec`."""
    for name, features in LEVELS.items():
        monkeypatch.setenv("MUTAD_TARGET_CPU", name)
        assert ("ymm" in compiled().inspect("assembly", X)) == ("avx2" in features)
        called = set(re.findall(r"@(_ZGV\w+_exp)\b", compiled().inspect("llvm", X)))
        wanted = {symbol for symbol, _ in variants("exp", features)}
        own = {symbol for symbol in wanted if own_math.is_own(symbol)}
        assert called == (own or wanted)  # narrower ones call ours


def test_names_that_are_no_levels_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUTAD_TARGET_CPU", "pentium")
    with pytest.raises(ValueError, match="MUTAD_TARGET_CPU=pentium: use one of x86-64, x86-64-v2"):
        compiled()(X)


def test_code_for_more_than_this_cpu_has_is_not_run(monkeypatch: pytest.MonkeyPatch):
    old = Target("westmere", LEVELS["x86-64-v2"])
    monkeypatch.setattr(target, "host", lambda: old)
    monkeypatch.setenv("MUTAD_TARGET_CPU", "x86-64-v3")
    for call in (compiled(), compiled().grad, compiled().vjp):
        with pytest.raises(RuntimeError, match=r"this CPU \(westmere\) has no avx, avx2, bmi"):
            call(X)
    assert "ymm" in compiled().inspect("assembly", X)


def test_each_level_has_entries_of_its_own_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    options = {"cache": True}

    def place() -> disk_cache.Place:
        return fingerprint.place_of(waves, ("f64[?]C",), (), "primal", (), options)

    monkeypatch.delenv("MUTAD_TARGET_CPU", raising=False)
    found = [place()]
    for name in LEVELS:
        monkeypatch.setenv("MUTAD_TARGET_CPU", name)
        found.append(place())
    assert len(set(found)) == len(found)
    assert None not in found


def test_the_machine_we_run_on_has_what_llvm_calls_by_these_names():
    """A level that asked for a feature under another name than LLVM's would be found nowhere."""
    import llvmlite.binding as llvm

    known = llvm.get_host_cpu_features()
    assert all(feature in known for level in LEVELS.values() for feature in level)
    assert LEVELS["x86-64-v2"] < LEVELS["x86-64-v3"] < LEVELS["x86-64-v4"]

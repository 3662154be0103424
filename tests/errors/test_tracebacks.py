"""What a user sees of a refusal beside its text: the line of the call, and nothing of the compiler."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad


def refused(x):
    return np.linalg.eigvals(x).sum()


def around(x):
    return refused(x + 1.0)


MODEL = mutad.compile(around, grad=True)
X = np.eye(2)
CALLS: list[Callable[[], Any]] = [
    lambda: MODEL(X),
    lambda: MODEL.grad(X),
    lambda: MODEL.value_and_grad(X),
    lambda: MODEL.vjp(X),
    lambda: MODEL.jvp(X, tangents={"x": X.copy()}),
    lambda: MODEL.hvp(X, direction=X.copy()),
    lambda: MODEL.jacobian(X),
    lambda: MODEL.explain(X),
    lambda: MODEL.inspect("frontend", X),
]


@pytest.mark.parametrize("call", CALLS)
def test_the_compiler_is_not_in_it(
    call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUTAD_FULL_TRACEBACK", raising=False)
    with pytest.raises(mutad.CompileError, match="eigvals is not compiled") as caught:
        call()
    entries = [
        e for e in traceback.extract_tb(caught.value.__traceback__) if e.filename != __file__
    ]
    assert len(entries) <= 3
    assert not any("compiler" in e.filename for e in entries)
    shown = "".join(traceback.format_exception(caught.value))
    assert "During handling" not in shown
    assert shown.count("called here") == 1


def test_the_compiler_is_in_it_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTAD_FULL_TRACEBACK", "1")
    with pytest.raises(mutad.CompileError) as caught:
        MODEL(X)
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert any("compiler" in e.filename for e in entries)

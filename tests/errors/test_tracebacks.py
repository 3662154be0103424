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


@mutad.opaque
def foreign(x):
    raise KeyError("mine")


def element(x):
    return x[x.size]


def through(x):
    return element(x) * x.sum()


def asking(x):
    return foreign(x.sum()) + x.sum()


@pytest.mark.parametrize(
    "mode", ["call", "grad", "value_and_grad", "vjp", "jvp", "hvp", "jacobian"]
)
def test_what_compiled_code_raises_comes_with_lines_of_the_program(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUTAD_FULL_TRACEBACK", raising=False)
    x = np.ones(3)
    given = {"jvp": {"tangents": {"x": x + 1.0}}, "hvp": {"direction": x + 1.0}}.get(mode, {})
    function: Any = mutad.compile(through, grad=True, cache=False, opt=0)
    for _ in range(2):  # the first call compiles
        with pytest.raises(IndexError) as caught:
            (function if mode == "call" else getattr(function, mode))(x, **given)
        entries = traceback.extract_tb(caught.value.__traceback__)
        ours = [e for e in entries if e.filename != __file__]
        assert len(ours) <= 2, ours
        assert entries[-1].name == "element"


def test_what_foreign_functions_raise_comes_with_their_lines() -> None:
    with pytest.raises(KeyError, match="mine") as caught:
        mutad.compile(asking, cache=False, opt=0)(np.ones(3))
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert len([e for e in entries if e.filename != __file__]) <= 2
    assert entries[-1].name == "foreign"


def test_what_there_is() -> None:
    assert {*mutad.__all__} <= {*dir(mutad)}
    assert not [n for n in dir(mutad) if n.startswith("_") and not n.startswith("__")]
    assert all(hasattr(mutad, name) for name in dir(mutad))

"""Names of any script, and those that end in a number, compile; dumps parse back; users read their own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from whole_programs import WholePrograms, X, agrees
from xdsl.context import Context
from xdsl.parser import Parser

import mutad
from mutad.compiler.names import as_hint, as_symbol, as_written, legal
from mutad.dialects.foreign import Foreign

PROGRAMS = WholePrograms()
on = PROGRAMS.on


@dataclass
class Ω:
    μ: float
    ξ: Any


@on()
def parameters(μ):
    return (μ * μ).sum()


@on()
def φ_of_the_script(x):
    return x.sum() * 2.0


@on()
def locals_and_loops(x):
    σ = 0.0
    for ι in range(len(x)):
        ŷ = x[ι] * x[ι]
        σ += ŷ
    for 値, 数 in enumerate(x):
        σ += 値 * 数
    return σ


@on()
def numbered(x_1):
    x_2 = np.sin(x_1)
    for i_10 in range(3):
        x_2[:] = x_2 * x_2 + x_1[i_10]
    return x_2.sum()


@on()
def carried(x):
    τ_1, größe = x[0], 0
    while τ_1 < 50.0:
        τ_1 = τ_1 * τ_1 + 1.0
        größe += 1
    return τ_1 * größe


@on()
def branches(x):
    if x[0] > 0.0:
        ζ = x[0] * x[1]
    else:
        ζ = x[1] * 2.0
    return ζ


@on()
def managed(x):
    with nullcontext(x) as данные:
        y = данные * данные
    return y.sum()


@on()
def nested_functions_and_keywords(x):
    def θ(α, *, ρ=2.0):
        return α * α * ρ

    return θ(x, ρ=3.0).sum()


@on()
def recursive(x):
    def φ(ν):
        return x[0] if ν < 1 else φ(ν - 1) * x[1]

    return φ(3)


@on()
def fields_of_objects(x):
    p = Ω(2.0, x)
    p.μ += x[1]
    p.ξ[0] = p.μ * x[2]
    return p.μ * p.ξ.sum()


@on()
def keys_of_dicts(x):
    d = {"μ": x[0], "a b": x[1], "": x[2], "0": 2.0, "x_1": 3.0}
    d["μ"] *= d["a b"]
    d["0"] += d["x_1"] * d[""]
    return d["μ"] * d["0"]


@on()
def lists_and_comprehensions(x):
    λ = [ß * ß for ß in x]
    λ.append(x[0])
    return sum(λ)


@on()
def rebound(x):
    ψ_1, ψ_2 = x.copy(), x * 2.0
    for _ in range(3):
        ψ_1, ψ_2 = ψ_2, ψ_1 * 0.5
        ψ_1[0] *= ψ_2[1]
    return (ψ_1 * ψ_2).sum()


@on()
def exceptions_and_patterns(x):
    try:
        match (x[0], x[1]):
            case (ά, έ) if ά > 100.0:
                return ά * έ
            case (ά, _):
                raise ValueError("ά")
    except ValueError as ώ:
        return ά * len(ώ.args)


@pytest.mark.parametrize(("function", "point"), PROGRAMS.cases, ids=PROGRAMS.names)
def test_values_and_gradients(function: Callable[..., Any], point: np.ndarray) -> None:
    agrees(function, point)


@pytest.mark.parametrize(("function", "point"), PROGRAMS.cases, ids=PROGRAMS.names)
def test_dumps_parse_back(context: Context, function: Callable[..., Any], point: Any) -> None:
    context.register_dialect(Foreign.name, lambda: Foreign)
    compiled = mutad.compile(function, grad=True, opt=0, cache=False)
    compiled.grad(point.copy())
    for stage in ("frontend", "plan", "optimize"):
        text = compiled.inspect(stage).rstrip("\n")
        assert text.isascii()
        assert str(Parser(context, text).parse_module()) == text
    assert compiled.inspect("llvm").isascii()


def squared(größe_1, ν):
    for _ in range(ν):
        größe_1[:] = größe_1 * größe_1
    return größe_1.sum()


def test_receipts_have_the_program_s_names() -> None:
    compiled = mutad.compile(squared, grad=True, cache=False, opt=1)
    made = compiled.explain(X.copy(), 2)
    (save,) = made.saves
    assert save.name == "größe_1"
    assert save.formula == made.formula == "8*ν*größe_1.shape[0]"
    assert "overwrites `größe_1`, `größe_1 * größe_1` on line" in save.why
    assert mutad.compile(φ_of_the_script, grad=True).explain(X).function == "φ_of_the_script"
    with pytest.raises(mutad.CompileError, match=r"8\*ν\*größe_1.shape\[0\] bytes"):
        mutad.compile(squared, grad=True, saves="forbid", cache=False).grad(X.copy(), 2)


def test_errors_have_the_program_s_names() -> None:
    def one_or_the_other(x):
        σ_1 = x if x[0] > 0.0 else 1.0
        return σ_1.sum()

    def unknown(x):
        return ψ * x  # noqa: F821  # pyright: ignore

    with pytest.raises(mutad.CompileError, match="σ_1"):
        mutad.compile(one_or_the_other, cache=False)(X)
    with pytest.raises(NameError, match="ψ"):
        mutad.compile(unknown, cache=False)(X)


@pytest.mark.parametrize(
    "name", ["x", "μ", "x_1", "μ_1", "größe_10_", "_", "_0", "__", "x__1", "值", "a_1b", "b.x_1"]
)
def test_a_spelling_can_be_read_back(name: str) -> None:
    for spell in (legal, as_hint):
        once = spell(name)
        assert spell(once) == once
        assert as_written(once) == name
        assert as_written(f"{once}_shadow") == f"{name}_shadow"
    assert as_hint(name) == legal(name) or name[-1].isdigit()


def test_what_has_no_name_is_called_something() -> None:
    assert [as_hint(name) for name in ("", "<>", "d['rate']", "0")] == [
        "value",
        "value",
        "d_rate",
        "_0--",
    ]
    assert as_symbol("<lambda>", "function") == "function"

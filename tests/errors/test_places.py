"""An error is at the innermost line of the user's, whatever is refused, with the calls that lead there."""

from __future__ import annotations

import ast
import functools
import inspect
import logging
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np
import pytest
from generated import function_of

import mutad
from mutad.compiler import pipeline
from mutad.compiler.diagnostics import CompilerFault, Span, is_library
from mutad.compiler.frontend.operators import Operators

X = np.array([0.7, 1.3, 0.4])
SPEC = ModuleSpec("found", None)
CASES: list[tuple[Callable[..., Any], str, str]] = []


def refused(at: str, says: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function is refused for a vector, at the text `at`, with the words `says`."""

    def record(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, at, says))
        return function

    return record


@refused("{x[0], x[1]}", "loop over sorted")
def loop_over_a_set(x):
    s = 0.0
    for v in {x[0], x[1]}:
        s += v
    return s


@refused("q.pop()", "`pop` of a set")
def pop_of_a_set(x):
    q = {1, 2, len(x)}
    return q.pop()


@refused("np.fft.rfft(x)", "rfft is not compiled")
def numpy_s_own_code(x):
    return np.fft.rfft(x)


@refused('logging.info("hi")', "info is not compiled")
def the_standard_library_s_own_code(x):
    logging.info("hi")
    return x.sum()


@refused("np.median(x, axis=(0,))", "along one axis")
def our_own_code(x):
    return np.median(x, axis=(0,))


@refused("np.array([[None] * len(x)])", "hold no number")
def an_array_of_nothing(x):
    return np.array([[None] * len(x)]).T


@refused("b[0]", "does not have enough dimensions")
def product_of_an_element(x):
    b = 2.0 * x
    b[0] @= 5.0
    return b


@refused("print(f\"{'|':e}\")", "Unknown format code 'e'")
def format_of_a_text(x):
    print(f"{'|':e}")
    return x.sum()


@refused("2 @ 3", "needs arrays")
def product_of_numbers(x):
    return x[2 @ 3]


@refused("SPEC(x)", "is not compiled")
def call_of_what_has_no_hash(x):
    return SPEC(x)


@refused("x.flags", "attribute .flags")
def called_back_from_our_own_code(x):
    return functools.reduce(lambda a, b: x.flags, [x, x])


@pytest.mark.parametrize(
    ("function", "at", "says"), CASES, ids=lambda c: getattr(c, "__name__", "")
)
def test_the_place_is_the_user_s(function: Callable[..., Any], at: str, says: str) -> None:
    with pytest.raises(mutad.CompileError) as caught:
        mutad.compile(function, cache=False)(X)
    error, span = caught.value, caught.value.span
    lines, first = inspect.getsourcelines(function)
    assert span is not None
    assert span.file == __file__
    assert lines[span.line - first][span.column : span.end_column] == at
    assert says in str(error)
    assert error.way_out
    shown = str(error).splitlines()
    assert not any(is_library(line.partition(":")[0]) for line in shown)


def outer(x):
    return 2.0 * middle(x)


def middle(x):
    s = 0.0
    for i in range(3):
        s += inner(x, i)
    return s


def inner(x, i):
    return x.nope[i]


def test_the_calls_that_lead_there_are_shown() -> None:
    with pytest.raises(mutad.CompileError) as caught:
        mutad.compile(outer, cache=False)(X)
    shown = [
        line.strip() for line in str(caught.value).splitlines() if not line.strip().startswith("^")
    ]
    assert shown[1] == "return x.nope[i]"
    assert [line for line in shown if line.endswith("called here")] == shown[2:6:2]
    assert shown[3:6:2] == ["s += inner(x, i)", "return 2.0 * middle(x)"]


def test_many_calls_are_not_all_shown() -> None:
    lines = ["def f0(x):", "    return x.nope"]
    for k in range(1, 12):
        lines += [f"def f{k}(x):", f"    return f{k - 1}(x)"]
    function = function_of("\n".join(lines), "f11")
    with pytest.raises(mutad.CompileError, match="and 3 more calls around") as caught:
        mutad.compile(function, cache=False)(X)
    assert str(caught.value).count("called here") == 8


def fails(x):
    y = x * 2.0
    return (y + x).sum()


def test_what_the_compiler_did_not_foresee_is_its_own_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    foreseen = Operators.binary

    def binary(self: Operators, node: ast.BinOp) -> Any:
        if isinstance(node.op, ast.Add):
            raise KeyError("unforeseen")
        return foreseen(self, node)

    monkeypatch.setattr(Operators, "binary", binary)
    with pytest.raises(CompilerFault, match="mutad's own fault") as caught:
        mutad.compile(fails, cache=False)(X)
    assert isinstance(caught.value.__cause__, KeyError)
    assert not isinstance(caught.value, mutad.CompileError)
    span = caught.value.span
    assert span is not None
    assert span.source().strip() == "return (y + x).sum()"
    assert "return (y + x).sum()" in str(caught.value)


def test_so_is_a_pass_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def work_on(op: Any) -> None:
        raise KeyError(op.name)

    def simplify(c: Any) -> None:
        work_on(next(op for op in c.module.walk() if op.name == "array.map"))

    stages = [
        pipeline.Stage(s.name, simplify, s.why) if s.name == "simplify" else s
        for s in pipeline.STAGES
    ]
    monkeypatch.setattr(pipeline, "STAGES", tuple(stages))
    with pytest.raises(CompilerFault, match=r"y = x \* 2.0") as caught:
        mutad.compile(fails, cache=False)(X)
    assert isinstance(caught.value.span, Span)


def test_which_files_are_a_library_s() -> None:
    assert is_library(ast.__file__)
    assert is_library(np.__file__)
    assert is_library(pipeline.__file__)
    assert not is_library(__file__)
    assert not is_library(pytest.__file__)
    assert not is_library("<stdin>")

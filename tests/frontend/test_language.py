"""Every construct of Python's grammar has a row, and every row's example does what the row says."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from generated import function_of

from mutad import CompileError, check_gradient, compile
from mutad.compiler.frontend.syntax.language import COMPILED, REASONS, REFUSED, Compiled, Refused

X = np.array([0.6, 1.3, -0.4, 2.2, 0.9])


def function(row: Compiled | Refused) -> Any:
    """The function `f` of a row's example, with source that can be found."""
    source = row.example.lstrip("\n")
    return function_of(source, "f")


def name(row: Compiled | Refused) -> str:
    return row.what if isinstance(row, Compiled) else row.reason


@pytest.mark.parametrize("row", COMPILED, ids=name)
def test_what_is_compiled_agrees_with_cpython_and_differences(row: Compiled) -> None:
    f = function(row)
    assert compile(f, cache=False)(X.copy()) == pytest.approx(f(X.copy()), rel=1e-14)
    check_gradient(compile(f, grad=True, cache=False, opt=1), X.copy())


def is_known(row: Refused) -> bool:
    """Whether this version of Python has the construct."""
    return all(hasattr(ast, node.__name__) for node in row.nodes)


@pytest.mark.parametrize("row", [row for row in REFUSED if is_known(row)], ids=name)
def test_what_is_refused_says_so_with_a_way_out(row: Refused) -> None:
    with pytest.raises(CompileError) as error:
        compile(function(row), cache=False)(X.copy())
    assert row.reason in str(error.value)
    assert row.way_out is None or f"way out: {row.way_out}" in str(error.value)
    assert "^" in str(error.value)


def test_no_construct_of_the_grammar_is_without_a_row() -> None:
    old = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice"}
    constructs = {
        node
        for base in (ast.stmt, ast.expr)
        for node in base.__subclasses__()
        if node.__module__ in ("ast", "_ast") and node.__name__ not in old
    }
    compiled = {node for row in COMPILED for node in row.nodes}
    assert not compiled & REASONS.keys()
    assert constructs - compiled - REASONS.keys() == set()

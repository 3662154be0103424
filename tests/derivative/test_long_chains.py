"""Gradients of programs in which each statement reads the two before it compile: the ways through such a
chain double with every other statement, and none of them is walked twice.
"""

import builtins
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import compile

LONG = 60
"""Statements: as many ways as nobody waits for."""


def defined(lines: list[str], name: str) -> Callable[..., Any]:
    source, file = "\n".join(lines) + "\n", f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"np": np}
    exec(builtins.compile(source, file, "exec"), scope)
    return scope["f"]


def chain(
    first: str, second: str, step: str, end: str, behind: str = "", statements: int = LONG
) -> Callable[..., Any]:
    """A function of `u` and `v` whose statement k computes `step` of the two before it.

    With a statement `behind` them, they are three steps in time.
    """
    names = [first, second, *(f"w{k}" for k in range(statements))]
    lines = [
        f"    {w} = {step.format(a=a, b=b)}"
        for a, b, w in zip(names, names[1:], names[2:], strict=False)
    ]
    if behind:
        lines = ["    u = u.copy()", "    for t in range(3):", *(f"    {line}" for line in lines)]
        lines.append(f"        {behind.format(last=names[-1])}")
    lines = ["def f(u, v):", *lines, f"    return {end.format(last=names[-1])}"]
    return defined(lines, f"chain {step} {end}")


@pytest.mark.parametrize(
    ("step", "end"),
    [("0.5 * {a} + 0.5 * {b}", "{last}.sum()"), ("0.5 * {a} + 0.5 * {b}", "({last} * u).sum()")],
)
def test_of_arrays(step: str, end: str) -> None:
    check(chain("u", "v", step, end))


def test_of_numbers_that_are_made_of_a_sum() -> None:
    check(chain("u.sum()", "v.sum()", "0.5 * {a} + 0.5 * {b}", "{last}"))


@pytest.mark.parametrize(
    ("step", "behind"),
    [
        ("({a} + {b}) % 5", "u[{last} :] *= v[: u.size - {last}]"),
        ("min({a} + 1, {b}, 5)", "u[: {last}] = np.sin(u[1 : {last} + 1])"),
    ],
)
def test_of_numbers_of_which_slices_are_made(step: str, behind: str) -> None:
    check(chain("t", "u.size // 2", step, "u.sum()", behind))


def test_of_arrays_whose_lengths_are_made_of_those_before() -> None:
    step = "np.concatenate(({a}[:2], {b}[2:]))"
    check(chain("u", "v", step, "np.roll({last}, 1).sum()", statements=16))


def test_of_one_long_sum() -> None:
    terms = " + ".join(f"np.sin(u * {k}.5) * v" for k in range(40))
    check(defined(["def f(u, v):", f"    return (u + {terms}).sum()"], "long sum"), rel=1e-5)


def check(function: Callable[..., Any], rel: float = 1e-6) -> None:
    u, v, away = np.linspace(0.1, 1.0, 8), np.linspace(0.5, 1.0, 8), 1e-6
    made = compile(function, grad=True, cache=False)
    assert made(u, v) == pytest.approx(function(u, v))
    du, dv = made.grad(u, v, wrt=("u", "v"))
    moved = (function(u + away, v + away) - function(u - away, v - away)) / (2 * away)
    assert du.sum() + dv.sum() == pytest.approx(moved, rel=rel)

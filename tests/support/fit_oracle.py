"""Second derivatives where every cotangent is exactly 0: at the exact fit of a least-squares problem.

For a program with results r and final contents a of its arguments, ::

    fit = sum((r - stop_gradient(r)) ** 2) + sum((a - stop_gradient(a)) ** 2)

is 0, its gradient is 0, and its Hessian is 2 J.T @ J, with J the derivative of the program: the product with
v, paired with v, is twice the square of the tangents in the direction v.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from argument_rows import make_arguments
from generated import function_of
from gradient_oracle import (
    GradientCase,
    Memory,
    in_float64,
    is_differentiable,
    random_direction,
)
from python_oracle import run

import mutad
from mutad import CompileError, Const, Duplicated

MODES = ("forward-over-reverse", "reverse-over-reverse")


def check_exact_fit(case: GradientCase, modes: Sequence[str] = MODES) -> None:
    """The gradient of the fit is 0, and its Hessian-vector product the normal equations', both ways."""
    plain, active, row = run(case.function, case.row), case.active(), in_float64(case.row)
    if plain.exception is not None:
        raise plain.exception
    fit = fit_of(case.function, plain.result, plain.arguments)
    compiled = mutad.compile(fit, **{"grad": True, "opt": 1, **dict(case.options)})
    memory = Memory(make_arguments(row), active)
    arguments = memory.arguments
    zeros = [np.zeros(o.size) for o in memory.owners]
    direction = random_direction(row, active, None, zeros, 2)
    along = tuple(
        memory.view(k, direction.moves).copy()
        if isinstance(arguments[k], np.ndarray)
        else direction.scalar_moves[k]
        for k in active
    )
    expected = 2.0 * sum(float(np.sum(np.square(d))) for d in moved(case, direction))
    for mode in modes:
        given = {"wrt": active, "direction": along, "mode": mode}
        try:
            value, gradient, product = compiled.value_grad_hvp(*make_arguments(row), **given)
        except CompileError as error:
            if getattr(error, "without_tangent", False):
                continue
            raise
        assert value == 0.0
        for g in gradient:
            np.testing.assert_array_equal(g, np.zeros(np.shape(g)))
        bars = memory.like(float)
        claimed = 0.0
        for k, p in zip(active, product, strict=True):
            if k in direction.scalar_moves:
                claimed += direction.scalar_moves[k] * float(p)
            else:
                memory.view(k, bars)[...] = p
        claimed += sum(float(np.dot(m, b)) for m, b in zip(direction.moves, bars, strict=True))
        np.testing.assert_allclose(claimed, expected, rtol=1e-8, atol=1e-12, err_msg=mode)


def moved(case: GradientCase, direction: Any) -> Iterator[Any]:
    """The tangents of all floats that the program returns, and of what its arguments end with."""
    active = case.active()
    memory = Memory(make_arguments(in_float64(case.row)), active)
    dots = [m.copy() for m in direction.moves]
    wrapped = [
        Const(a)
        if k not in active
        else Duplicated(a, memory.view(k, dots))
        if isinstance(a, np.ndarray)
        else Duplicated(a, direction.scalar_moves[k])
        for k, a in enumerate(memory.arguments)
    ]
    _, dot = case.compiled().pushforward(*wrapped)
    yield from (d for d in leaves(dot) if d is not None)
    for k in active:
        if isinstance(memory.arguments[k], np.ndarray):
            yield memory.view(k, dots)


def leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple):
        for item in tree:
            yield from leaves(item)
    else:
        yield tree


def fit_of(
    program: Callable[..., Any], result: Any, arguments: Sequence[Any]
) -> Callable[..., Any]:
    """The fit of a program, as a function of its arguments."""
    names = list(inspect.signature(program).parameters)
    paths = [*paths_of(result, "result")]
    pairs = zip(names, arguments, strict=True)
    paths += [n for n, a in pairs if isinstance(a, np.ndarray) and is_differentiable(a)]
    lines = [f"    total = total + np.sum(({p} - stop_gradient({p})) ** 2)" for p in paths]
    called = ", ".join(names)
    source = "\n".join(
        [
            f"def fit({called}):",
            f"    result = program({called})",
            "    total = 0.0",
            *lines,
            "    return total",
            "",
        ]
    )
    source += f"# of {getattr(program, '__code__', program)!r}\n"
    known = {"np": np, "program": program, "stop_gradient": mutad.stop_gradient}
    return function_of(source, "fit", known)


def paths_of(result: Any, path: str) -> Iterator[str]:
    """How the floats in a result are written."""
    if isinstance(result, tuple):
        for k, item in enumerate(result):
            yield from paths_of(item, f"{path}[{k}]")
    elif is_differentiable(result):
        yield path

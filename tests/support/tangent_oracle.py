"""Tangents and Hessian-vector products held against central differences, with respect to memory.

A tangent is the derivative of phi (see `gradient_oracle`) along one direction: <result_bar, result_dot> +
<final_bar, tangents of the final contents>. A Hessian-vector product is that of <w, gradient> for a random
w; the gradients themselves are held against differences of CPython elsewhere.
"""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
from argument_rows import make_arguments
from gradient_oracle import (
    STEPS,
    GradientCase,
    Memory,
    best_agreeing,
    differentiated,
    in_float64,
    paired_result,
    random_cotangent,
    random_direction,
)
from python_oracle import run

from mutad import CompileError, Const, Duplicated


def check_tangent(case: GradientCase) -> None:
    """`pushforward` along a random direction: result, effects, differences."""
    plain = run(case.function, case.row)
    if plain.exception is not None:
        raise plain.exception
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    active, result_bar = case.active(), random_cotangent(rng, plain.result)
    memory = Memory(case.arguments(), active)
    seen = memory.like(bool)
    for k in active:
        if isinstance(memory.arguments[k], np.ndarray):
            memory.view(k, seen)[...] = True
    bars = [np.where(s, rng.uniform(0.5, 1.5, s.size), 0.0) for s in seen]
    direction = random_direction(case.row, active, result_bar, bars, 0)
    dots = [m.astype(o.dtype) for m, o in zip(direction.moves, memory.owners, strict=True)]
    wrapped = [
        Const(a)
        if k not in active
        else Duplicated(a, memory.view(k, dots))
        if isinstance(a, np.ndarray)
        else Duplicated(a, direction.scalar_moves[k])
        for k, a in enumerate(memory.arguments)
    ]
    result, dot = case.compiled(opt=1).pushforward(*wrapped)
    case.assert_effects(plain, result, memory.arguments)
    if case.numeric:
        terms = [float(np.dot(b, d)) for b, d in zip(bars, dots, strict=True)]
        claimed = paired_dot(result_bar, dot) + sum(terms)
        assert_near(case, claimed, differentiated(case.function, direction), sum(map(abs, terms)))


def paired_dot(bar: Any, dot: Any) -> float:
    """<bar, dot>; of what has no derivative both are None."""
    if isinstance(bar, tuple):
        return sum(paired_dot(b, d) for b, d in zip(bar, dot, strict=True))
    assert (bar is None) == (dot is None)
    return 0.0 if bar is None else paired_result(bar, dot)


def check_hvp(case: GradientCase) -> None:
    """`value_grad_hvp` of a function with one float result: value, gradient, differences of gradients.

    Recursive functions are refused, and nothing else is.
    """
    function, active = case.compiled(opt=1), case.active()
    arguments = make_arguments(in_float64(case.row))
    memory = Memory(arguments, active)
    zeros = [np.zeros(o.size) for o in memory.owners]
    direction = random_direction(in_float64(case.row), active, 1.0, zeros, 1)
    rng = np.random.default_rng(2)
    weights = [rng.uniform(0.5, 1.5, o.size) for o in memory.owners]
    scalar_weights = {k: rng.uniform(0.5, 1.5) for k in direction.scalar_moves}
    along = tuple(
        memory.view(k, direction.moves).copy()
        if isinstance(arguments[k], np.ndarray)
        else direction.scalar_moves[k]
        for k in active
    )

    def weighed(gradients: tuple[Any, ...]) -> float:
        """<w, gradient>, each element of memory once."""
        bars = [np.zeros(o.size) for o in memory.owners]
        total = 0.0
        for k, g in zip(active, gradients, strict=True):
            if k in scalar_weights:
                total += scalar_weights[k] * float(g)
            else:
                memory.view(k, bars)[...] = g
        return total + sum(float(np.dot(w, b)) for w, b in zip(weights, bars, strict=True))

    def gradients_at(step: float) -> tuple[Any, ...]:
        return function.grad(*direction.moved(step), wrt=active)

    try:
        value, gradient, product = function.value_grad_hvp(*arguments, wrt=active, direction=along)
    except CompileError as error:
        if "second derivatives through recursive functions" in error.reason:
            return
        raise
    again = make_arguments(in_float64(case.row))
    assert value == function(*again)
    for got, want in zip(arguments, again, strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(
        weighed(gradient), weighed(gradients_at(0.0)), rtol=1e-11, atol=1e-12
    )
    coarse = [(weighed(gradients_at(h)) - weighed(gradients_at(-h))) / (2 * h) for h in STEPS]
    measured = best_agreeing([(4 * b - a) / 3 for a, b in itertools.pairwise(coarse)])
    assert_near(case, weighed(product), measured, abs(weighed(gradient)))


def assert_near(case: GradientCase, claimed: float, measured: float, size: float) -> None:
    allowed = case.tolerance * max(size, abs(measured), 1e-3)
    assert abs(claimed - measured) <= allowed, f"claims {claimed!r}, measured {measured!r}"

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
from argument_rows import make_arguments, memory_of
from gradient_oracle import (
    STEPS,
    GradientCase,
    Memory,
    at_the_same_place,
    best_agreeing,
    differentiated,
    in_float64,
    paired_result,
    random_cotangent,
    random_direction,
)
from python_oracle import run

from mutad import BatchDuplicated, CompileError, Const, Duplicated


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
    """`value_grad_hvp` of a function with one float result: value, gradient, differences of gradients."""
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
        """Those that `check_gradient` holds against differences."""
        return case.compiled(**case.level_of_calls).grad(*direction.moved(step), wrt=active)

    value, gradient, product = function.value_grad_hvp(*arguments, wrt=active, direction=along)
    again = make_arguments(in_float64(case.row))
    assert value == function(*again)
    for got, want in zip(arguments, again, strict=True):
        np.testing.assert_array_equal(got, want)
    if case.first:
        check_alone(case, active, along, again, product)
        check_reverse_over_reverse(case, active, along, (value, gradient, product))
    np.testing.assert_allclose(
        weighed(gradient), weighed(gradients_at(0.0)), rtol=1e-11, atol=1e-12
    )
    coarse = [(weighed(gradients_at(h)) - weighed(gradients_at(-h))) / (2 * h) for h in STEPS]
    measured = best_agreeing([(4 * b - a) / 3 for a, b in itertools.pairwise(coarse)])
    assert_near(case, weighed(product), measured, abs(weighed(gradient)))


def check_saved_by_products(case: GradientCase) -> None:
    """`explain` of both modes: what a product saves are the gradient's saves and tangents of some of them."""
    function, wrt = case.compiled(opt=1), case.active()
    gradient = function.explain(*case.arguments(), wrt=wrt)
    try:
        product = function.explain(*case.arguments(), wrt=wrt, mode="hvp")
    except CompileError as error:
        if getattr(error, "without_tangent", False):
            return
        raise
    assert function.explain(*case.arguments(), wrt=wrt, mode="tangent").saved_bytes == 0
    assert product.saves[: len(gradient.saves)] == gradient.saves
    if gradient.saved_bytes is not None:
        assert gradient.saved_bytes <= product.saved_bytes <= 2 * gradient.saved_bytes


def check_alone(
    case: GradientCase, active: tuple[int, ...], along: Any, after: Any, product: Any
) -> None:
    """`hvp` computes neither value nor gradient: the same product, the same effects of the call."""
    arguments = make_arguments(in_float64(case.row))
    alone = case.compiled(opt=1).hvp(*arguments, wrt=active, direction=along)
    for got, want in zip(alone, product, strict=True):
        size = float(np.max(np.abs(want), initial=0.0))
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12 * size)
    for got, want in zip(arguments, after, strict=True):
        np.testing.assert_array_equal(got, want)


def check_reverse_over_reverse(
    case: GradientCase, active: tuple[int, ...], along: Any, found: tuple[Any, Any, Any]
) -> None:
    """The same product by the adjoint of the gradient, which shares no rule of tangents with it."""
    value, gradient, product = case.compiled(opt=1).value_grad_hvp(
        *make_arguments(in_float64(case.row)),
        wrt=active,
        direction=along,
        mode="reverse-over-reverse",
    )
    assert value == found[0]
    for one, other, rtol in ((gradient, found[1], 1e-12), (product, found[2], 1e-9)):
        for got, want in zip(one, other, strict=True):
            size = float(np.max(np.abs(want), initial=0.0))
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * size)


def assert_near(case: GradientCase, claimed: float, measured: float, size: float) -> None:
    allowed = case.tolerance * max(size, abs(measured), 1e-3)
    assert abs(claimed - measured) <= allowed, f"claims {claimed!r}, measured {measured!r}"


LANES = 3


def check_batch(case: GradientCase) -> None:
    """Several tangents in one `pushforward`: each is what it is alone, up to the order of sums."""
    active, rng = case.active(), np.random.default_rng(zlib.crc32(str(case).encode()))
    function, memory = case.compiled(opt=1), Memory(case.arguments(), active)
    dots = [rng.uniform(-1.0, 1.0, (o.size, LANES)).astype(o.dtype) for o in memory.owners]
    numbers = {
        k: rng.uniform(-1.0, 1.0, LANES)
        for k in active
        if not isinstance(memory.arguments[k], np.ndarray)
    }
    alone: list[tuple[Any, Any, list[np.ndarray]]] = []
    for lane in range(LANES):
        own = Memory(case.arguments(), active)
        moves = [d[:, lane].copy() for d in dots]
        wrapped = [
            Const(a)
            if k not in active
            else Duplicated(a, numbers[k][lane] if k in numbers else own.view(k, moves))
            for k, a in enumerate(own.arguments)
        ]
        alone.append((*function.pushforward(*wrapped), moves))
    beside = [
        Const(a)
        if k not in active
        else BatchDuplicated(a, numbers[k] if k in numbers else in_lanes(memory, k, dots))
        for k, a in enumerate(memory.arguments)
    ]
    result, dot = function.pushforward(*beside)
    case.assert_effects(run(case.function, case.row), result, memory.arguments)
    for lane, (_, expected, moves) in enumerate(alone):
        assert_same(case, in_lane(dot, lane), expected)
        for owner, move in zip(dots, moves, strict=True):
            assert_same(case, owner[:, lane], move)


def check_hvp_batch(case: GradientCase) -> None:
    """Several Hessian-vector products in one call: each is what it is alone."""
    function, active = case.compiled(opt=1), case.active()
    if isinstance(case.row, str) and "&" in case.row:
        return  # directions of arguments that share memory have to agree in it
    rng = np.random.default_rng(3)
    shapes = [np.shape(make_arguments(in_float64(case.row))[k]) for k in active]
    along = tuple(rng.uniform(-1.0, 1.0, (LANES, *shape)) for shape in shapes)

    def product(direction: tuple[Any, ...], **batch: int) -> tuple[Any, ...]:
        arguments = make_arguments(in_float64(case.row))
        return function.hvp(*arguments, wrt=active, direction=direction, **batch)

    together = product(along, batch=LANES)
    for lane in range(LANES):
        alone = product(tuple(d[lane] for d in along))
        assert_same(case, tuple(t[lane] for t in together), alone)


def in_lanes(memory: Memory, position: int, dots: list[np.ndarray]) -> np.ndarray:
    """What an argument sees of buffers in which each element has its tangents side by side."""
    argument = memory.arguments[position]
    owner = next(k for k, o in enumerate(memory.owners) if o is memory_of(argument))
    buffer = np.zeros(memory.owners[owner].size, memory.owners[owner].dtype)
    view = at_the_same_place(argument, buffer)
    offset = view.__array_interface__["data"][0] - buffer.__array_interface__["data"][0]
    steps = (*(s * LANES for s in view.strides), view.itemsize)
    return np.ndarray((*view.shape, LANES), view.dtype, dots[owner], offset * LANES, steps)


def in_lane(dot: Any, lane: int) -> Any:
    """One lane of the tangent of a result."""
    if isinstance(dot, tuple):
        return tuple(in_lane(d, lane) for d in dot)
    return None if dot is None else dot[..., lane]


def assert_same(case: GradientCase, got: Any, expected: Any) -> None:
    """Equal up to rounding; the same tuples, the same NaN and None."""
    if isinstance(expected, tuple):
        for g, e in zip(got, expected, strict=True):
            assert_same(case, g, e)
        return
    assert (got is None) == (expected is None)
    if expected is not None:
        assert np.asarray(got).dtype == np.asarray(expected).dtype
        tolerance = 1e-4 if np.asarray(got).dtype == np.float32 else 1e-10
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)

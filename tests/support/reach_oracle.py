"""What is not a number stays so: the property that patterns of sparse Jacobians are found by.

A tangent (or cotangent) that is NaN in some elements must give one that is NaN wherever any move of these
elements gives one that is not zero. Both runs are the same code at the same point, so no tolerance is needed.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from argument_rows import make_arguments
from gradient_oracle import GradientCase, Memory, in_float64, random_cotangent
from python_oracle import run
from tangent_oracle import LANES, in_lane, in_lanes

from mutad import BatchDuplicated, Const, Duplicated


def check_tangents_reach(case: GradientCase) -> None:
    """`pushforward` along a random half of what moves."""
    rng, active = generator_of(case), case.active()
    memory = Memory(case.arguments(), active)
    halves = [rng.random(o.size) < 0.5 for o in memory.owners]
    scalars = {k: rng.random() < 0.5 for k in active}
    moves = rng.uniform(0.5, 1.5, 64)

    def found(mark: float) -> Any:
        memory = Memory(case.arguments(), active)
        dots = [
            np.where(half, np.resize(moves, half.size) * mark, 0.0).astype(o.dtype)
            for half, o in zip(halves, memory.owners, strict=True)
        ]
        wrapped = [
            Const(a)
            if k not in active
            else Duplicated(a, memory.view(k, dots))
            if isinstance(a, np.ndarray)
            else Duplicated(a, mark if scalars[k] else 0.0)
            for k, a in enumerate(memory.arguments)
        ]
        _, dot = case.compiled(opt=1).pushforward(*wrapped)
        return numbers_in((dot, *dots))

    assert_reached(found(1.0), found(np.nan))


def check_lanes_reach(case: GradientCase) -> None:
    """The same of tangents that go along together: one moves, one is NaN, the others stand still."""
    rng, active = generator_of(case), case.active()
    memory, lanes = Memory(case.arguments(), active), np.array([1.0, np.nan, *[0.0] * (LANES - 2)])

    def moved(size: int) -> Any:
        along = np.where(rng.random(size) < 0.5, rng.uniform(0.5, 1.5, size), 0.0)[:, None]
        return np.where(along == 0.0, 0.0, along * lanes)

    dots = [moved(o.size).astype(o.dtype) for o in memory.owners]
    wrapped = [
        Const(a)
        if k not in active
        else BatchDuplicated(
            a, in_lanes(memory, k, dots) if isinstance(a, np.ndarray) else moved(1)[0]
        )
        for k, a in enumerate(memory.arguments)
    ]
    _, dot = case.compiled(opt=1).pushforward(*wrapped)
    first, second, *others = (
        numbers_in((in_lane(dot, lane), *(d[:, lane] for d in dots))) for lane in range(LANES)
    )
    assert_reached(first, second)
    for other in others:
        assert not other.any(), other


def check_products_reach(case: GradientCase) -> None:
    """`hvp` along a random half of what moves."""
    active, function = case.active(), case.compiled(opt=1)

    def found(mark: float) -> Any:
        rng, arguments = generator_of(case), make_arguments(in_float64(case.row))
        memory = Memory(arguments, active)
        moves = [np.where(rng.random(o.size) < 0.5, mark, 0.0) for o in memory.owners]
        along = tuple(
            memory.view(k, moves).copy() if isinstance(arguments[k], np.ndarray) else mark
            for k in active
        )
        return numbers_in(function.hvp(*arguments, wrt=active, direction=along))

    assert_reached(found(1.0), found(np.nan))


def check_cotangents_reach(case: GradientCase) -> None:
    """`pullback` from a random half of the cotangents."""
    active, function = case.active(), case.compiled(saves="minimal", **case.level)
    result = run(case.function, case.row)

    def found(mark: float) -> Any:
        rng = generator_of(case)
        bar = halved(random_cotangent(rng, result.result, result.arguments), rng, mark)
        memory = Memory(case.arguments(), active)
        shadows = [
            np.where(rng.random(o.size) < 0.5, rng.uniform(0.5, 1.5, o.size) * mark, 0.0)
            for o in memory.owners
        ]
        own = [s.astype(o.dtype) for s, o in zip(shadows, memory.owners, strict=True)]
        _, bars = case.pull_back(function, memory, own, bar)
        return numbers_in((*bars.values(), *own))

    assert_reached(found(1.0), found(np.nan))


def generator_of(case: GradientCase) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(str(case).encode()))


def halved(bar: Any, rng: np.random.Generator, mark: float) -> Any:
    """A cotangent of which a random half is 0, and the rest is times `mark`."""
    if isinstance(bar, tuple):
        return tuple(halved(b, rng, mark) for b in bar)
    if isinstance(bar, np.ndarray):
        return np.where(rng.random(bar.shape) < 0.5, bar * mark, 0.0).astype(bar.dtype)
    return None if bar is None else type(bar)(bar * mark if rng.random() < 0.5 else 0.0)


def numbers_in(tree: Any) -> Any:
    """All numbers in a result's tangent, or in cotangents, in order."""
    if isinstance(tree, tuple | list):
        return np.concatenate([np.zeros(0), *map(numbers_in, tree)])
    return np.zeros(0) if tree is None else np.ravel(tree).astype(float)


def assert_reached(moved: Any, marked: Any) -> None:
    lost = np.flatnonzero((moved != 0.0) & ~np.isnan(marked))
    assert not lost.size, f"{moved[lost]} is lost at {lost}"

"""Several cotangents in one reverse sweep: each is what it is alone, up to the order of sums."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from gradient_oracle import GradientCase, Memory, contains_cotangent, random_cotangent
from python_oracle import run
from tangent_oracle import LANES, assert_same, in_lane, in_lanes

from mutad import Active, BatchDuplicated, Const, Duplicated


def check_cotangents_together(case: GradientCase) -> None:
    """`pullback` and `vjp` of a few cotangents, the last of them of zeros, beside calls for each."""
    check_pullback_together(case)
    check_vjp_together(case)


def check_pullback_together(case: GradientCase) -> None:
    """In place: shadows that lie side by side, with cotangents of final contents in them."""
    active, rng = case.active(), np.random.default_rng(zlib.crc32(str(case).encode()))
    function, memory = case.compiled(opt=1), Memory(case.arguments(), active)
    plain = run(case.function, case.row)
    bars = [random_cotangent(rng, plain.result, plain.arguments) for _ in range(LANES)]
    shadows = [rng.uniform(-1.0, 1.0, (o.size, LANES)).astype(o.dtype) for o in memory.owners]
    bars[-1] = zeros_like(bars[-1])
    for shadow in shadows:
        shadow[:, -1] = 0.0
    alone: list[tuple[list[np.ndarray], tuple[Any, ...]]] = []
    for lane, bar in enumerate(bars):
        own, moves = Memory(case.arguments(), active), [s[:, lane].copy() for s in shadows]
        wrapped = [
            Const(a)
            if k not in active
            else Duplicated(a, own.view(k, moves))
            if isinstance(a, np.ndarray)
            else Active(a)
            for k, a in enumerate(own.arguments)
        ]
        alone.append((moves, function.pullback(*wrapped, **keyword(bar))[1]))
    beside = [
        Const(a)
        if k not in active
        else BatchDuplicated(a, in_lanes(memory, k, shadows))
        if isinstance(a, np.ndarray)
        else Active(a)
        for k, a in enumerate(memory.arguments)
    ]
    if not any(isinstance(a, BatchDuplicated) for a in beside):
        return  # numbers alone do not say how many there are
    result, numbers = function.pullback(*beside, **keyword(stacked(bars, -1)))
    case.assert_effects(plain, result, memory.arguments)
    for lane, (moves, expected) in enumerate(alone):
        for shadow, move in zip(shadows, moves, strict=True):
            assert_same(case, shadow[:, lane], move)
        assert_same(case, in_lane(numbers, lane), tuple(map(np.asarray, expected)))


def check_vjp_together(case: GradientCase) -> None:
    """`vjp(batch=)`: cotangents and gradients along first axes, from one run of the primal."""
    active, rng = case.active(), np.random.default_rng(zlib.crc32(str(case).encode()))
    function = case.compiled(opt=1)
    arguments = case.arguments()
    result, together = function.vjp(*arguments, wrt=active, batch=LANES)
    case.assert_effects(run(case.function, case.row), result, arguments)
    bars = [random_cotangent(rng, result) for _ in range(LANES)]
    _, back = function.vjp(*case.arguments(), wrt=active)
    found = together(stacked(bars, 0)) if contains_cotangent(bars[0]) else together()
    for lane, bar in enumerate(bars):
        expected = back(bar) if contains_cotangent(bar) else back()
        assert_same(case, tuple(g[lane] for g in found), expected)


def keyword(bar: Any) -> dict[str, Any]:
    return {"cotangent": bar} if contains_cotangent(bar) else {}


def zeros_like(bar: Any) -> Any:
    if isinstance(bar, tuple):
        return tuple(map(zeros_like, bar))
    return None if bar is None else bar * 0


def stacked(bars: list[Any], axis: int) -> Any:
    """Cotangents of the same form as one: arrays with one more axis."""
    if isinstance(bars[0], tuple):
        return tuple(stacked(list(parts), axis) for parts in zip(*bars, strict=True))
    return None if bars[0] is None else np.stack(bars, axis)

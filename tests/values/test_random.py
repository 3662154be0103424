"""Draws from a generator that is passed in: NumPy's stream, to the bit, and the state that it leaves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad

Function = Callable[..., Any]
CASES: list[tuple[Function, tuple[Any, ...]]] = []


def on(*rows: tuple[Any, ...]) -> Callable[[Function], Function]:
    """Run the program on these arguments, after the generator."""

    def note(function: Function) -> Function:
        CASES.extend((function, row) for row in rows)
        return function

    return note


@on((), ())
def numbers(rng):
    return rng.random(), rng.standard_normal(), rng.standard_exponential(), rng.normal()


@on((7,), (0,), (1,))
def arrays(rng, n):
    return (
        rng.random(n),
        rng.standard_normal((n, 2)),
        rng.standard_exponential(size=n),
        rng.random((2, n), dtype=np.float32),
        rng.standard_normal(dtype=np.float32),
    )


@on((0.5, 2.0, 5), (-1, 0.0, 3), (0.0, -1.0, 3), (1.0, np.nan, 2), (np.float32(0.1), 1, 2))
def of_the_normal_distribution(rng, loc, scale, n):
    return rng.normal(loc, scale), rng.normal(loc, scale, n), rng.normal(scale=scale, size=(n, 1))


@on((-1.0, 2.0, 5), (2.0, 1.0, 5), (0.0, np.inf, 2), (3, 3, 2))
def of_the_uniform_distribution(rng, low, high, n):
    return rng.uniform(low, high), rng.uniform(low, high, size=n), rng.uniform(high=5.0)


@on((2.0, 4), (0.0, 2), (-2.0, 2), (-0.0, 2))
def of_the_exponential_distribution(rng, scale, n):
    return rng.exponential(scale), rng.exponential(scale, n)


@on((np.arange(3.0), np.ones((2, 1))), (np.arange(3), np.ones(3, np.float32)))
@on((np.arange(3.0), -np.ones(3)), (np.arange(3.0), np.ones(2)), (np.ones((0, 2)), np.ones(2)))
def parameters_that_are_arrays(rng, mu, sigma):
    return (
        rng.normal(mu, sigma),
        rng.uniform(mu, 5.0),
        rng.exponential(sigma),
        rng.normal(1.0, sigma),
    )


@on((0, 10), (-3, 5), (5, 5), (0, 0), (7, 3), (0, 1 << 40), (-(2**62), 2**62), (0, 2**32))
def integers(rng, low, high):
    return (
        rng.integers(low, high),
        rng.integers(low, high, size=(2, 3)),
        rng.integers(high),
        rng.integers(low, high, endpoint=True),
        rng.integers(low, high + 1, 4, np.int64),
        rng.integers(low, low + 1, dtype=int),
    )


@on((0,), (3,))
def integers_of_an_empty_range(rng, n):
    return rng.integers(5, 5, size=n)


@on((np.arange(6.0),), (np.arange(12).reshape(4, 3),), (np.zeros((0, 3)),), (np.zeros(0),))
@on((np.arange(12.0).reshape(4, 3)[::-1],), (np.arange(8.0).reshape(2, 4).T,), (np.ones((3, 0)),))
def shuffled(rng, x):
    rng.shuffle(x)
    y = rng.permutation(x)
    y[:1] = 0
    return y, rng.permutation(len(x))


@on((4,), (1,))
def chosen(rng, n):
    x = np.arange(1.0 * n)
    return rng.choice(n), rng.choice(n, 3), rng.choice(x), rng.choice(x, size=(2, 2))


@on((np.zeros((2, 4)), 3), (np.zeros((2, 2)), 2))
def drawn_into(rng, x, n):
    total = np.zeros_like(x)
    for _ in range(n):
        y = rng.standard_normal(out=x)
        total += y
        rng.random(out=total[0])
    return y, total


@on((20,), (0,))
def walk_until(rng, n):
    x = 0.0
    steps = 0
    while x < 2.0 and steps < n:
        x += rng.normal(0.2, 0.5) if rng.random() < 0.7 else -rng.random()
        steps += 1
    return x, steps


def step(rng, x):
    return x + rng.standard_normal(x.size)


@on((np.ones(3), 4))
def handed_on(rng, x, n):
    draw = rng.random
    for _ in range(n):
        x = step(rng, x) * draw()
    return x


@on((3,))
def drawn_in_the_order_of_the_program(rng, n):
    return rng.random(n) - rng.random(n) * (rng.random() + rng.random(n)[::-1])


@on((), ())
def asked_what_it_is(rng, default=None):
    source = rng if default is None else default
    if isinstance(rng, np.random.Generator) and not isinstance(rng, (int, np.ndarray)):
        return source.random()
    return 0.0


def state_of(rng: np.random.Generator) -> str:
    return repr(rng.bit_generator.state)


def outcome(function: Function, rng: Any, row: tuple[Any, ...]) -> tuple[Any, ...]:
    arguments = copy.deepcopy(row)
    try:
        with np.errstate(all="ignore"):
            result = function(rng, *arguments)
    except Exception as error:
        return type(error), str(error), arguments, state_of(rng)
    return result, arguments, state_of(rng)


def assert_same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        assert got.tobytes() == want.tobytes()
    elif isinstance(want, float) and np.isnan(want):
        assert np.isnan(got)
    else:
        assert got == want


@pytest.mark.parametrize(("function", "row"), CASES, ids=lambda v: getattr(v, "__name__", repr(v)))
def test_like_numpy(function: Function, row: tuple[Any, ...]) -> None:
    compiled = mutad.compile(function)
    for seed in (1, 2):
        rngs = np.random.default_rng(seed), np.random.default_rng(seed)
        assert_same(outcome(compiled, rngs[0], row), outcome(function, rngs[1], row))


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_bit_generator_has_its_stream(name: str) -> None:
    one, other = (np.random.Generator(getattr(np.random, name)(5)) for _ in range(2))
    compiled = mutad.compile(arrays)
    assert_same(compiled(one, 5), arrays(other, 5))
    assert_same(compiled(one, 3), arrays(other, 3))
    assert state_of(one) == state_of(other)


SOURCE = np.random.default_rng(3)


def from_outside(n):
    return SOURCE.normal(size=n)


def test_a_generator_from_outside_is_read_at_each_call() -> None:
    global SOURCE
    compiled = mutad.compile(from_outside)
    for seed in (3, 4):
        SOURCE = np.random.default_rng(seed)
        got = compiled(4)
        SOURCE = np.random.default_rng(seed)
        assert_same(got, from_outside(4))


def test_two_generators_are_two_streams() -> None:
    def both(a, b):
        return a.random() - b.random()

    compiled = mutad.compile(both)
    one, other = np.random.default_rng(1), np.random.default_rng(1)
    assert compiled(one, other) == 0.0
    assert compiled(one, one) != 0.0


def test_what_no_draw_is_made_of_is_refused() -> None:
    def gamma(rng):
        return rng.gamma(2.0)

    def weighted(rng, p):
        return rng.choice(3, p=p)

    rng = np.random.default_rng(1)
    with pytest.raises(mutad.CompileError, match=r"`.gamma` of a random generator is not compiled"):
        mutad.compile(gamma)(rng)
    with pytest.raises(mutad.CompileError, match="with replacement and without p="):
        mutad.compile(weighted)(rng, np.ones(3) / 3)

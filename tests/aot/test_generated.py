"""Programs as C functions, in all modes: their numbers are those of the just-in-time compiler.

Each call has an area of exactly the size that is asked for, with NaN in it, then other bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import counter_programs
import lane_programs
import numpy as np
import pytest
import raising_programs
import small_programs
import sweep_programs
from c_oracle import DERIVATIVES, CCase
from generated import Drawn

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="builds with a C compiler")
EVERY = ("primal", *DERIVATIVES)
Made = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]


def line(n: int = 5) -> Any:
    return np.arange(1, n + 1) / 9


def linear(u, v):
    return (u * u).sum() + v.sum()


def overwritten(u, v):
    v[:] = np.exp(u) * 2.0
    v *= u
    for i in range(u.size):
        u[i] = v[i] * u[i]
    return (v * v).sum() + u.sum()


def tables(a, b):
    a += a * b
    b[1:] *= a[:-1]
    return (a * b).sum()


def stepped(u, n):
    w = np.zeros(n)
    for _ in range(n):
        u *= 1.01 + 0.1 * u * u
    w[:] = u[0]
    return (u * u).sum() + w.sum()


def timed(u, end, dt):
    for _ in range(int(end / dt)):
        u *= 1.01 + 0.1 * u * u
    return (u * u).sum()


def narrow(a, b, k):
    a[1:] += b[:-1] * k
    return a.copy(), a * b, a.sum(), a > b, a[0] + k


def windows(a, x, n):
    for _ in range(n):
        x[:-1] += a * x[1:] * x[1:]
        x[:] = a * x[::-1] * x
    return (x * x).sum()


class OwnError(LookupError):
    pass


def raising_each(u, k):
    u[0] = 7.0
    if k == 0:
        raise KeyError("no")
    if k == 1:
        raise KeyError(k)
    if k == 2:
        raise OwnError(f"in {k} of {u.size}", "and more")
    if k == 3:
        raise ValueError
    if k == 4:
        raise OwnError(("a", k), 0.5)
    if k == 5:
        assert u[1] > 9.0, "too small"
    if k == 6:
        return u[k]
    if k == 7:
        u[1] = 1 // (k - 7)
    if k == 8:
        raise NotImplementedError("not yet {k}")
    return u[0]


def several(u, v, flags, k):
    w = np.where(flags, u * v, u)
    return w, (u[k], w.sum()), flags[k], None, u


@pytest.mark.parametrize(
    ("function", "makers"),
    [
        (linear, (lambda: (line(), line()), lambda: (line(0), line(1)))),
        (linear, (lambda: (line(6)[::2], line(9)[::-2]), lambda: (line(0)[::2], line(0)[::-1]))),
        (overwritten, (lambda: (line(6)[::2], line(9)[::-3]),)),
        (tables, (lambda: (np.asfortranarray(line(12).reshape(3, 4)), line(12).reshape(4, 3).T),)),
        (tables, (lambda: (line(48).reshape(3, 4, 4)[:, :, 1], line(3).reshape(3, 1) + np.zeros(4)),)),
        (stepped, (lambda: (line(), np.int32(3)), lambda: (line(1), np.int32(0)))),
        (stepped, (lambda: (line().astype("f4"), np.uint8(3)),)),
        (timed, (lambda: (line(), 1.0, 0.3), lambda: (line(0), 0.0, 1.0))),
        (narrow, (lambda: (np.arange(-3, 3, dtype="i1"), np.arange(6, dtype="i1"), np.int8(100)),)),
        (narrow, (lambda: (np.arange(6, dtype="u2"), np.arange(9, 3, -1, dtype="u2"), np.uint16(1)),)),
        (windows, (lambda: (np.float64(1.5), line(1), 1),)),
        (windows, (lambda: (1.5, line(), 2), lambda: (1.5, line(0), 2))),
        (raising_each, tuple((lambda k=k: (line(), k)) for k in range(10))),
        (several, (lambda: (line(), line(10)[::2], line() > 0.3, 4),
                   lambda: (line(), line(10)[::2], line() > 0.3, 5))),
    ],
)  # fmt: skip
def test_programs_do_as_the_just_in_time_compiler(function: Any, makers: Any) -> None:
    case = CCase(function, makers[0], EVERY)
    assert case.check(*makers[1:]) == []
    assert {*case.refused} <= (
        {"grad", "value_and_grad", "hvp"} if function in (several, narrow) else set()
    )
    assert case.calls


def drawn(strategy: Any, seed: int) -> Any:
    return Drawn(seed)(strategy())


def small(seed: int) -> Made:
    made = drawn(small_programs.small_programs, seed)
    object.__setattr__(made, "layout", ("strided", "apart")[seed % 2])
    return made.function(), made.arguments


def counter(seed: int) -> Made:
    made = drawn(counter_programs.counter_programs, seed)
    return made.function(), made.arguments


def lane(seed: int) -> Made:
    made = drawn(lane_programs.lane_programs, seed)
    return made.function(), lambda: made.arguments(9)


def raising(seed: int) -> Made:
    made = drawn(raising_programs.raising_programs, seed)

    def arguments() -> tuple[Any, ...]:
        rng = np.random.default_rng(seed)
        x, y, z = (rng.uniform(-2, 2, shape) for shape in (4, 4, (4, 4)))
        return x, y, z, rng.integers(-4, 4, 4), 0.7, seed % 5 - 2

    return made.function(), arguments


def sweep(seed: int) -> Made:
    made = sweep_programs.sweep_program(seed)
    return made.function(), made.arguments


@pytest.mark.parametrize(
    ("grammar", "seed"),
    [(small, 6), (small, 11), (counter, 3), (lane, 4), (raising, 21), (raising, 39), (sweep, 6)],
)
def test_generated_programs(grammar: Callable[[int], Made], seed: int) -> None:
    function, arguments = grammar(seed)
    modes = ("primal", DERIVATIVES[seed % 5], DERIVATIVES[(seed + 1) % 5])
    case = CCase(function, arguments, modes)
    assert case.check() == []
    assert case.calls
    assert not case.refused

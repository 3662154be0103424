"""Who owns what on the step stack: nobody's memory is given to another, and more is never too little."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from typing import Any

import budget_programs as programs
import numpy as np
import pytest
from budget_programs import compiled, least_of, outcome, some

from mutad.runtime import step_ownership, step_replay, step_stack, step_words
from mutad.runtime.step_ownership import Disowned, answered

Array = np.ndarray


def loops_in_branches(u: Array, v: Array, x: Array, m: int) -> float:
    """What a step keeps itself and what its loops need is largest in steps of different kinds."""
    k = 0
    while k < 2 and u[0] > -9.0:
        k += 1
        for i in range(m):
            if i % 2:
                j = 0
                while j < 2 and u[0] > -9.0:
                    j += 1
                    u *= 1.0 - 0.05 * v
                    v *= np.cos(u * v)
            else:
                for j in range(m):
                    x[j] *= 0.9 + 0.1 * v
            v += 0.02 * u
        for _ in range(m):
            for _ in range(2):
                v[:] = 0.1 * x[0] * v + 0.5 * v
                u *= np.cos(u * v)
            v[1:] = 0.5 * np.sin(u[:-1]) + 0.4 * v[:-1]
    return (u * v).sum() + x.sum()


def whiles_and_loops(u: Array, w: Array, n: int, m: int) -> float:
    """Loops of unknown length share what their step is told to keep with the loops that follow."""
    i = 0
    while i < n:
        i += 1
        j = 0
        while j < m:
            u[:] = 0.5 * np.tanh(w[0] * u) + 0.3 * u
            j += 1
        for a in range(m):
            for b in range(n):
                u[1:] = u[1:] * np.cos(u[:-1])
                w[b] *= 0.9 + 0.1 * u
            u += 0.01 * w[a]
    return (u * u).sum() + (w * w).sum()


def loops_that_follow(u: Array, w: Array, n: int, m: int) -> float:
    """In each step the second loop of loops takes from the first, beside what the step keeps in between."""
    for _ in range(n):
        for _ in range(m):
            for _ in range(m):
                u[1:-1] += 0.1 * u[1:-1] * w[2:] * (u[2:] - u[:-2])
            u *= 1.0 - 0.01 * u
        t = np.tanh(u * w)
        for k in range(m):
            for _ in range(k):
                w[1:-1] += 0.05 * w[1:-1] * t[2:] * (w[2:] - w[:-2])
            w *= 0.9 + 0.1 * t
        u += 0.1 * t * t
    return (u * w).sum()


Row = tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]
OWN_ROWS: list[Row] = [
    (loops_in_branches, (some(9), some(9), some(9, 9), 3), ("u", "v", "x")),
    (whiles_and_loops, (some(8), some(8, 8), 8, 2), ("u", "w")),
    (loops_that_follow, (some(9), some(9), 5, 4), ("u", "w")),
]
NAMES = (
    *("after_each_other", "two_in_each", "sweeps_until_small", "three_deep", "four_deep"),
    *("stages", "stages_in_each_step", "some_stages_in_each_step"),
)
WATCHED: list[Row] = [*OWN_ROWS, *(row for row in programs.ROWS if row[0].__name__ in NAMES)]


BYTES = [1]
"""The budget of what is compiled for one byte, from call to call."""


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def room(left: int) -> int:
    return max(0, left - 1 + BYTES[0]) & -step_words.WORD


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """`BYTES`, for code that is compiled meanwhile."""
    address = step_stack.address

    def found(symbol: str) -> int:
        here = ctypes.cast(room, ctypes.c_void_p).value
        return here if symbol == "mutad_steps_room" and here is not None else address(symbol)

    monkeypatch.setattr(step_stack, "address", found)
    BYTES[0] = 1
    return BYTES


@pytest.mark.parametrize(("function", "arguments", "wrt"), WATCHED)
def test_nobody_uses_what_another_owns(
    function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> None:
    free = outcome(compiled(function, None), arguments, wrt)
    with step_ownership.watched():
        least, found = least_of(function, arguments, wrt)
        assert found == free
        for memory in (least + least // 4, 2 * least):
            assert outcome(compiled(function, memory), arguments, wrt) == free


@pytest.mark.parametrize(("function", "arguments", "wrt"), OWN_ROWS)
def test_a_larger_budget_does_where_a_smaller_one_does(
    function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...], now: list[int]
) -> None:
    free = outcome(compiled(function, None), arguments, wrt)
    least, _ = least_of(function, arguments, wrt)
    tight = compiled(function, 1)
    for memory in range(least, 6 * least, max(8, least // 8)):
        now[0] = memory
        assert outcome(tight, arguments, wrt) == free


# --- What the watch finds ---------------------------------------------------------------------


@pytest.fixture
def stack() -> Generator[int]:
    """A stack of 8,000 bytes, which is watched."""
    own = step_replay.Replay(8000)
    with step_ownership.watched():
        yield own.stack


def begun(stack: int) -> int:
    """A loop of 5 steps, of which each keeps 400 bytes beside those of its loops; it stores its state."""
    head = answered(step_stack.begin, (stack, 5, 132, 800, 2000, 96, 0, 0, 400, 3, 64, 64))
    assert head > 0
    return head


def item(stack: int, head: int, size: int) -> int:
    """What compiled code does to keep something."""
    at = step_words.get(stack + step_words.CURSOR)
    for offset, value in enumerate((step_words.get(head + step_words.TOP), 0, 0, 0)):
        step_words.put(at + 8 * offset, value)
    step_words.put(head + step_words.TOP, at)
    step_words.put(stack + step_words.CURSOR, at + size)
    return at


def test_free_memory_holds_poison(stack: int) -> None:
    begun(stack)
    free = step_words.get(stack + step_words.CURSOR)
    assert step_words.get(free) == step_ownership.POISON
    assert np.isnan(ctypes.c_double.from_address(free).value)


def test_what_is_written_beyond_an_item_is_found(stack: int) -> None:
    head = begun(stack)
    step_words.put(step_words.get(stack + step_words.CURSOR) + 40, 7)
    with pytest.raises(Disowned, match="byte 208 of 8000 was written, which nobody owns"):
        answered(step_stack.ask, (stack, head, 5))


def test_copies_that_are_given_back_too_early_are_found(
    stack: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = begun(stack)
    assert step_words.get(head + step_words.COPIES)

    def forgets(stack: int, head: int, end: int) -> int:
        step_words.put(stack + step_words.END, step_words.get(stack + step_words.END) + 96)
        return step_words.KEEP

    with pytest.raises(Disowned, match=r"copies \(.*96 bytes\) is owned, and said to be free"):
        answered(forgets, (stack, head, 5))


def test_items_that_are_given_back_too_early_are_found(stack: int) -> None:
    head = begun(stack)
    answered(step_stack.ask, (stack, head, 5))
    item(stack, head, 136)

    def forgets(stack: int, head: int, end: int) -> int:
        step_words.put(stack + step_words.CURSOR, head + step_words.HEAD_BYTES)
        return step_words.KEEP

    with pytest.raises(Disowned, match=r"a state .* is owned, and said to be free"):
        answered(forgets, (stack, head, 5))


def test_a_step_that_keeps_more_than_it_may_is_found(stack: int) -> None:
    head = begun(stack)
    answered(step_stack.ask, (stack, head, 5))
    may = step_words.get(head + step_words.SAVED)
    at = item(stack, head, may + 8)
    step_words.put(at + step_words.ITEM_RECORD, 1)
    with pytest.raises(Disowned, match=f"a step keeps {may + 8} bytes, and may keep {may}"):
        answered(step_stack.ask, (stack, head, 5))


def test_the_end_of_the_stack_is_the_end(stack: int) -> None:
    head = begun(stack)
    step_words.put(stack + step_words.CURSOR, step_words.get(stack + step_words.END) + 8)
    with pytest.raises(Disowned, match="what is free is from byte"):
        answered(step_stack.ask, (stack, head, 5))

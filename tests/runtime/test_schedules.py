"""Schedules of checkpointed loops: as few steps as possible, and never more bytes than there are."""

import functools
import random
from collections.abc import Iterator

import checkpoint_schedules
import numpy as np
import pytest

from mutad.runtime import schedules


def replayed(decisions: np.ndarray, n: int, state: int, saved: int) -> tuple[int, int]:
    """Follow the decisions as compiled code does: how many steps are run, and the most bytes kept."""
    items: list[tuple[int, int]] = []  # the bytes of each, its step
    following: Iterator[int] = iter(decisions.tolist())
    ran = most = 0

    def keep(size: int, step: int) -> None:
        nonlocal most
        items.append((size, step))
        most = max(most, sum(size for size, _ in items))

    def run(step: int, end: int) -> None:
        nonlocal ran
        while step < end:
            decision = next(following)
            keep(saved if decision == 0 else state, step)
            kinds[len(items) - 1] = decision == 0
            ran += max(decision, 1)
            step += max(decision, 1)
        assert step == end

    kinds: dict[int, bool] = {}
    run(0, n)
    end = n
    while end:
        step = items[-1][1]
        if kinds[len(items) - 1]:
            assert step == end - 1
            items.pop()
            end -= 1
            continue
        decision = next(following)
        if decision == 0:
            items.pop()
            keep(saved, step)
            kinds[len(items) - 1] = True
            decision = 1
        ran += decision
        run(step + decision, end)
    assert not items
    assert next(following, None) is None
    return ran, most


def steps_of(n: int, state: int, saved: int, room: int) -> tuple[int, int]:
    decisions = schedules.steps(n, state, saved, room)
    assert decisions is not None
    assert len(decisions) * 4 <= schedules.PER_STEP * n
    ran, most = replayed(decisions, n, state, saved)
    assert ran == schedules.executed(decisions)
    return ran, most


@pytest.mark.parametrize(("n", "slots"), [(20, 1), (30, 3), (50, 12)])
def test_slots_of_one_size_are_used_as_well_as_possible(n: int, slots: int) -> None:
    oracle = checkpoint_schedules.MixedCheckpointSchedule(n, slots)
    counted = sum(
        action.n1 - action.n0
        for action in oracle
        if isinstance(action, checkpoint_schedules.Forward)
    )
    assert steps_of(n, 100, 100, (slots + 1) * 100)[0] == counted  # one for the step being reversed


@pytest.mark.parametrize(
    ("slots", "revolve", "least"),
    [(5, 7284, 6828), (10, 4636, 3921), (20, 3747, 2823), (40, 3097, 2142)],
)
def test_a_thousand_steps(slots: int, revolve: int, least: int) -> None:
    ran, most = steps_of(1000, 64, 64, (slots + 1) * 64)
    assert ran == least < 0.94 * revolve
    assert most <= (slots + 1) * 64


@functools.cache
def fewest(n: int, state: int, saved: int, room: int, stored: bool) -> float:
    """The least number of steps by the definition, in bytes."""
    if n == 0:
        return 0
    values = saved if not stored else saved - state
    found = float("inf") if room < values else 1 + fewest(n - 1, state, saved, room - values, False)
    if not stored and room >= state:
        return min(found, fewest(n, state, saved, room - state, True))
    if stored:
        for run in range(1, n):
            rest = fewest(n - run, state, saved, room, False)
            if run + rest < found:
                found = min(found, run + rest + fewest(run, state, saved, room, True))
    return found


@pytest.mark.parametrize(
    ("state", "saved", "room"), [(1, 3, 12), (3, 1, 12), (2, 3, 17), (1, 8, 25), (5, 2, 19)]
)
def test_two_sizes_are_used_as_well_as_possible(state: int, saved: int, room: int) -> None:
    for n in (1, 2, 5, 11, 20):
        assert steps_of(n, state, saved, room)[0] == fewest(n, state, saved, room, False)


@pytest.mark.parametrize("large", [False, True])
def test_no_schedule_takes_more_than_there_is(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if large:
        monkeypatch.setattr(schedules, "MOST_WORK", 0)
    schedules.steps.cache_clear()
    chance = random.Random(5)
    for _ in range(60):
        state, saved, n = chance.randint(1, 300), chance.randint(1, 300), chance.randint(1, 90)
        room = chance.randint(state + saved, 12 * (state + saved))
        assert steps_of(n, state, saved, room)[1] <= room
    schedules.steps.cache_clear()


def test_long_loops_are_planned_at_once() -> None:
    decisions = schedules.steps(300_000, 8000, 8000, 160_000)
    assert decisions is not None
    assert schedules.executed(decisions) < 6.5 * 300_000  # revolve: 7.2


def test_too_little_is_nothing() -> None:
    assert schedules.steps(10, 100, 50, 149) is None
    assert schedules.steps(3, 100, 50, 150) is not None  # no state is needed
    assert schedules.outcome(10, 100, 50, 0, 229) == (None, 230)
    assert schedules.outcome(10, 100, 50, 0, 230)[1] == 230
    assert schedules.outcome(10, 100, 50, 70, 580) == (10, 300)

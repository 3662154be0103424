"""Schedules of checkpointed loops: as few steps as possible, and never more bytes than there are."""

import functools
import random

import checkpoint_schedules
import pytest

from mutad.compiler.codegen.support import steps
from mutad.compiler.sizes import step_sizes
from mutad.runtime import raised_exceptions, schedules, step_stack, step_words


def steps_of(n: int, state: int, saved: int, room: int) -> tuple[int, int]:
    """Do as the plan says, as compiled code does: how many steps are run, and the most bytes kept."""
    plan = schedules.plan(n, state, saved, room)
    assert plan is not None
    items: list[tuple[int, bool]] = []  # the step of each, whether it is a state
    ran = most = 0

    def free() -> int:
        states = sum(is_state for _, is_state in items)
        return plan.free(states, len(items) - states)

    def keep(step: int, is_state: bool) -> None:
        nonlocal most
        items.append((step, is_state))
        most = max(most, sum(state if one else saved for _, one in items))

    def go_on(step: int, end: int) -> None:
        nonlocal ran
        while step < end:
            run = plan.ahead(end - step, free())
            if run.keeps_state:
                keep(step, True)
            for k in range(run.steps if run.keeps_values else 0):
                keep(step + k, False)
            ran += run.steps
            step += run.steps
        assert step == end

    go_on(0, n)
    end = n
    while end:
        step, is_state = items[-1]
        if not is_state:
            assert step == end - 1
            items.pop()
            end -= 1
            continue
        run = plan.again(end - step, free())
        if run == 0:
            items.pop()
            keep(step, False)
            run, step = 0, step + 1
            ran += 1
        ran += run
        go_on(step + run, end)
    assert not items
    assert ran == plan.executed(n, plan.sizes.all)
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
    schedules.plan.cache_clear()
    chance = random.Random(5)
    for _ in range(60):
        state, saved, n = chance.randint(1, 300), chance.randint(1, 300), chance.randint(1, 90)
        room = chance.randint(state + saved, 12 * (state + saved))
        assert steps_of(n, state, saved, room)[1] <= room
    schedules.plan.cache_clear()


@pytest.mark.parametrize(("state", "saved"), [(100, 300), (300, 100), (100, 100)])
def test_where_one_of_each_fits_two_of_the_larger_do_not(state: int, saved: int) -> None:
    for n in (2, 3, 7):
        assert steps_of(n, state, saved, 400 if state != saved else 200)[1] <= 400


def test_long_loops_are_planned_at_once() -> None:
    plan = schedules.plan(300_000, 8000, 8000, 160_000)
    assert plan is not None
    assert plan.ahead(300_000, plan.sizes.all).keeps_state
    assert 300_000 < schedules.about(300_000, 8000, 8000, 160_000) < 6.5 * 300_000  # revolve: 7.2


def test_estimates_are_near() -> None:
    for n, state, saved, room in [(300, 80, 100, 1000), (50, 10, 70, 400), (1000, 64, 64, 704)]:
        ran, _ = steps_of(n, state, saved, room)
        assert 0.9 * ran <= schedules.about(n, state, saved, room) <= 1.2 * ran


def test_too_little_is_nothing() -> None:
    assert schedules.plan(10, 100, 50, 149) is None
    assert schedules.plan(10, 100, 50, 150) is not None
    assert schedules.about(3, 100, 50, 150) == 3  # no state is needed
    assert schedules.about(4, 100, 50, 149) == schedules.FAR


def test_compiled_code_knows_the_words_of_the_stack() -> None:
    names = (
        "CURSOR END LAST LIMIT BASE WHOLE_END TOP UNTIL KIND STEP COPIES COUNT STATES VALUES SAVED STATE OWN "
        "KEEP STORE RUN WRITE FILE OWN_TOP OWN_END ITEM_STEP ITEM_RECORD ITEM_END"
    )
    for name in names.split():
        assert getattr(steps, name) == getattr(step_words, name), name
    assert steps.PENDING == raised_exceptions.PENDING
    assert step_sizes.HEAD == step_words.HEAD_BYTES
    assert step_sizes.ITEM == steps.ITEM_HEAD == step_words.ITEM_BYTES
    counts = {symbol: count for symbol, (_, count) in step_stack.FUNCTIONS.items()}
    assert counts == steps.CALLBACKS

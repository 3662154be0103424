"""Schedules with a file: never dearer than the literature's, and what is predicted is what is run."""

import functools

import checkpoint_schedules
import pytest

from mutad.runtime import file_schedules, schedules, spill_file, step_replay, step_words
from mutad.runtime.step_stack import HEAD_BYTES


def priced(schedule: checkpoint_schedules.CheckpointSchedule, each: float) -> float:
    """What a schedule of the oracle costs, in steps."""
    total = 0.0
    for action in schedule:
        if isinstance(action, checkpoint_schedules.EndReverse):
            break
        if isinstance(action, checkpoint_schedules.Forward):
            total += action.n1 - action.n0
            disk = checkpoint_schedules.StorageType.DISK
            total += each * (action.write_ics and action.storage == disk)
        elif isinstance(action, checkpoint_schedules.Copy | checkpoint_schedules.Move):
            total += each * (action.from_storage == checkpoint_schedules.StorageType.DISK)
    return total


@pytest.mark.parametrize(("n", "slots"), [(30, 2), (60, 3), (100, 4), (200, 5), (50, 1)])
def test_states_alone_in_memory_are_no_better(n: int, slots: int) -> None:
    each = file_schedules.price(64, 64)
    assert each == 4
    oracle = checkpoint_schedules.DiskRevolve(n, slots, uf=1, ub=1, wd=each, rd=each)
    found = file_schedules.about(n, 64, 64, (slots + 1) * 64)  # one for the step being reversed
    assert found < 0.97 * priced(oracle, each)


def counted(n: int, state: int, saved: int, room: int) -> tuple[float, int]:
    """What compiled code's decisions cost, in steps; and how many states are in the file at once."""
    writes, reads = 0, 0

    class Counting(step_replay.Pretended):
        def write(self, address: int, count: int, place: int) -> None:
            nonlocal writes
            writes += 1
            super().write(address, count, place)

        def read(self, address: int, count: int, place: int) -> None:
            nonlocal reads
            reads += 1
            super().read(address, count, place)

    own = step_replay.Replay(room + HEAD_BYTES)
    step_words.put(own.stack + step_words.FILE, own.stack)
    step_words.put(own.stack + step_words.FILE_END, spill_file.FIRST)
    spill_file.files[own.stack] = Counting()
    try:
        ((ran, _),) = own.run([(n, state, saved, saved, 0, 0, 0, 0, None)])
    finally:
        spill_file.closed(own.stack)
    assert step_words.get(own.stack + step_words.FILE_END) == spill_file.FIRST  # all is taken back
    peak = step_words.get(own.stack + step_words.FILE_PEAK) // state
    return ran + file_schedules.price(state, saved) * (writes + reads), peak


@pytest.mark.parametrize(
    ("n", "state", "saved", "room"),
    [
        (30, 64, 64, 192),
        (200, 64, 64, 384),
        (90, 40, 200, 600),
        (77, 200, 40, 1000),
        (9, 64, 64, 128),
    ],
)
def test_what_is_predicted_is_run(n: int, state: int, saved: int, room: int) -> None:
    cost, peak = counted(n, state, saved, room)
    assert peak
    assert cost == pytest.approx(file_schedules.about(n, state, saved, room), rel=0.02)
    plan = schedules.plan(n, state, saved, room)
    assert plan is not None
    assert cost <= plan.executed(n, plan.sizes.all)


@pytest.mark.parametrize(("n", "room"), [(1, 128), (5, 192), (14, 128), (20, 192)])
def test_the_program_finds_the_least(n: int, room: int) -> None:
    each = file_schedules.price(64, 64)
    inside = schedules.plan(40, 64, 64, room)
    assert inside is not None

    def alone(k: int) -> int:
        return k if k * 64 <= room else inside.executed(k, inside.sizes.all)

    @functools.cache
    def again(k: int) -> float:
        runs = [run + alone(k - run) + again(run) for run in range(1, k)]
        return each + min([alone(k), *runs])

    @functools.cache
    def ahead(k: int) -> float:
        return min([alone(k), *(each + r + ahead(k - r) + again(r) for r in range(1, k))])

    assert file_schedules.FilePlan(inside).costs[n] == ahead(n)


def test_long_loops_are_planned_in_blocks() -> None:
    n, room = 100_000, 64_000
    cost = file_schedules.about(n, 64, 64, room)
    assert (
        2 * n - 1000 < cost < 2.05 * n
    )  # each step is run twice but for the last ones, beside the transfers
    plan = file_schedules.plan(n, 64, 64, room)
    assert plan is not None
    assert plan.period == pytest.approx(1000, rel=0.25)


def test_a_dear_file_is_not_used() -> None:
    """States that are much larger than what a step saves cost more to write than to compute again."""
    assert file_schedules.price(8000, 80) > 7.9
    assert counted(12, 8000, 80, 8900)[1] == 0

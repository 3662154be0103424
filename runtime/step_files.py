"""What a checkpointed loop takes to the file of its call, and fetches: see `step_stack`."""

from __future__ import annotations

import ctypes

from . import file_schedules, spill_file
from .step_words import (
    AGAIN,
    COUNT,
    CURSOR,
    FILE,
    FILE_END,
    FILE_PEAK,
    FILED,
    FILED_STEP,
    ITEM_END,
    ITEM_RECORD,
    ITEM_STEP,
    KEEP,
    ROOM,
    SAVED,
    STATE,
    STATES,
    TOP,
    TURNED,
    VALUES,
    get,
    goes_upwards,
    put,
)


def file_plan_of(head: int, count: int = 0) -> file_schedules.FilePlan:
    sizes = (get(head + at) for at in (STATE, SAVED, ROOM))
    found = file_schedules.plan(count or get(head + COUNT), *sizes)
    assert found is not None
    return found


def written(stack: int, head: int, left: int) -> int:
    """How many steps are run from a state that goes to the file; 0 where none does."""
    at_bottom = not (get(head + STATES) or get(head + VALUES) or get(head + TURNED))
    return file_plan_of(head).ahead(left) if get(stack + FILE) and at_bottom else 0


def open_file(stack: int, context: int, name: int) -> int:
    """What memory has no room for goes to a file in a folder, whose name ends with a 0."""
    folder = ctypes.string_at(name).decode("utf-8", "surrogateescape")
    spill_file.opened(context, folder)
    put(stack + FILE, context)
    put(stack + FILE_END, spill_file.FIRST)
    return KEEP


def close_file(context: int) -> int:
    """The call ends."""
    spill_file.closed(context)
    return KEEP


def reserve(stack: int, head: int, n: int) -> None:
    """OSError where the file cannot hold the states of so many steps: before any is run."""
    plan, states = file_plan_of(head), int(goes_upwards(head))
    while n > 0 and not goes_upwards(head) and (run := plan.ahead(n)):
        n, states = n - run, states + 1
    if states:
        end = get(stack + FILE_END) + states * get(head + STATE)
        spill_file.of(get(stack + FILE)).reserve(end)


def write(stack: int, head: int) -> int:
    """Take the state on top to the file. Its words say where the one before is there, and of which step."""
    item, state, place = get(head + TOP), get(head + STATE), get(stack + FILE_END)
    put(item, get(head + FILED))
    put(item + ITEM_RECORD, get(head + FILED_STEP))
    spill_file.of(get(stack + FILE)).write(item, state, place)
    put(head + FILED, place)
    put(head + FILED_STEP, get(item + ITEM_STEP))
    put(stack + FILE_END, place + state)
    put(stack + FILE_PEAK, max(get(stack + FILE_PEAK), place + state - spill_file.FIRST))
    put(head + TOP, 0)
    put(head + STATES, 0)
    put(stack + CURSOR, item)
    return KEEP


def fetch(stack: int, head: int, end: int) -> int:
    """Nothing is left in memory on the way back to the step `end`: the last state in the file is next."""
    item, place, state = get(stack + CURSOR), get(head + FILED), get(head + STATE)
    step = get(head + FILED_STEP)
    file = spill_file.of(get(stack + FILE))
    file.read(item, state, place)
    if get(item):
        file.soon(state, get(item))
    again = 0 if goes_upwards(head) else file_plan_of(head).again(end - step)
    put(head + AGAIN, again)
    if not again:
        put(head + FILED, get(item))
        put(head + FILED_STEP, get(item + ITEM_RECORD))
        put(stack + FILE_END, place)
    for at in (0, ITEM_RECORD, ITEM_END):
        put(item + at, 0)
    put(item + ITEM_STEP, step)
    put(head + TOP, item)
    put(head + STATES, 1)
    put(stack + CURSOR, item + state)
    return KEEP

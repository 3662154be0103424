"""What compiled code asks while it runs the steps of checkpointed loops: where to keep what.

All such loops of a gradient call share one stack, in one piece of memory. What steps keep is pushed at its
lower end; at its upper end are the arrays on which steps are run again, and what steps keep that have loops
of their own: one piece each, as large as any of them needs. A loop that begins puts down a *head*, words of 8
bytes that say how it stands; behind it come its items, the last of which names the one below. So loops that
come one after the other, and those within a step of another, take and give back memory in turn.

A loop that begins while others wait to be reversed makes room: it takes the last items of the one before,
while that saves steps (`make_room`). A loop that others follow begins with a restart state.

A loop whose number of steps is unknown keeps the values of as many as there is room for. When there are
more, it keeps states instead, one every so many steps. When these fill the room, every second is dropped.

Where there is a *file*, states go there on the way forward, each with the place of the one before it, as long
as a loop has nothing in memory (`file_schedules`). The reverse sweep fetches the last of them when it has
done with what is in memory. So memory has room for all that is not in the file, and for one state.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

from . import file_schedules, raised_exceptions, schedules, step_ownership
from .step_files import close_file, fetch, file_plan_of, open_file, reserve, write, written
from .step_words import (
    AGAIN,
    BASE,
    COPIED,
    COPIES,
    COUNT,
    CURSOR,
    END,
    FAR,
    FILE,
    FILED,
    FILED_STEP,
    FOLLOWED,
    HEAD_BYTES,
    ITEM_END,
    ITEM_RECORD,
    ITEM_STEP,
    KEEP,
    KIND,
    LAST,
    LOW,
    NOMINAL,
    OWN,
    PARTS,
    PERIOD,
    PREVIOUS,
    ROOM,
    RUN,
    SAVED,
    STATE,
    STATES,
    STEP,
    STORE,
    TOP,
    TURNED,
    UNTIL,
    VALUES,
    WHOLE_END,
    WORD,
    WRITE,
    end_of,
    get,
    goes_upwards,
    put,
    set_end,
)


def about(stack: int, n: int, state: int, saved: int, bytes_: int) -> float:
    """About what so many steps cost, in steps, with a file where there is one."""
    of = file_schedules if get(stack + FILE) else schedules
    return of.about(n, state, saved, bytes_)


def room(bytes_: int) -> int:
    """How large the stack is made: not larger than all memory there is."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(0, min(bytes_, most)) & -WORD


# --- A loop begins ----------------------------------------------------------------------------


def begin(
    stack: int,
    n: int,
    state: int,
    low: int,
    full: int,
    copies: int,
    followed: int,
    upwards: int,
    least: int,
    *inner: int,
) -> int:
    """Put down the head of a loop of `n` steps, -1 where their number is unknown; where it is.

    Or, less than 0, minus the least number of bytes of the whole stack that would do.
    """
    need = copies + state + low
    upwards &= n > 1
    if n >= 0 and not upwards:
        need = min(need, n * low)
    if get(stack + LAST):
        make_room(stack, need, n, state, full, copies, followed, upwards)
    head = get(stack + CURSOR)
    free = end_of(stack) - head - HEAD_BYTES
    if free < need:
        return -least_bytes(stack, need)
    held = state + copies if least else state
    saved, on_states = low, free >= copies + state + low
    if followed and 0 <= n * low <= held and not upwards:
        on_states = False  # No other could take as much from it as all values are.
    if upwards:
        saved = max(low, min(full, free - copies - state) & -WORD)
    elif on_states:
        saved = share(stack, n, state, low, full, free - copies, inner)
    known = {
        KIND: KEEP, COUNT: n, SAVED: saved, STATE: state, ROOM: free - copies, COPIED: copies,
        FOLLOWED: followed and on_states, OWN: low - least, LOW: low, PREVIOUS: get(stack + LAST),
        PERIOD: FAR if upwards else 0,
    }  # fmt: skip
    for at in range(0, HEAD_BYTES, WORD):
        put(head + at, known.get(at, 0))
    put(stack + CURSOR, head + HEAD_BYTES)
    put(stack + LAST, head)
    if get(stack + FILE) and n * saved > free and (followed or not upwards):
        reserve(stack, head, n)
    if least and on_states:
        place_copies(stack, head)
    return head


def least_bytes(stack: int, need: int) -> int:
    """The least number of bytes of the whole stack in which a loop can begin that needs so many.

    The loops before it keep states where these are less than all their values, and there is room for them.
    """
    bytes_ = get(stack + WHOLE_END) - get(stack + BASE)
    if get(stack + FILE):
        return bytes_ - (end_of(stack) - get(stack + CURSOR)) + HEAD_BYTES + need
    heads, head = list[int](), get(stack + LAST)
    while head:
        heads.append(head)
        head = get(head + PREVIOUS)
    enough = bytes_ + 1
    while enough > bytes_:
        taken, more = 0, FAR
        for head in reversed(heads):
            taken += HEAD_BYTES
            values, state = known_values(head), get(head + STATE)
            held = state if get(head + OWN) == get(head + LOW) else state + get(head + COPIED)
            on_states = taken + get(head + COPIED) + state + get(head + LOW)
            if held < values and bytes_ < on_states:
                more = min(more, on_states)
            taken += held if held < values and bytes_ >= on_states else values
        enough = taken + HEAD_BYTES + need
        bytes_ = max(bytes_, min(enough, more))
    return bytes_


def known_values(head: int) -> int:
    """What a loop takes that keeps the values of all steps, and no state."""
    if goes_upwards(head):
        return FAR
    if get(head + COUNT) >= 0:
        return get(head + COUNT) * get(head + LOW)
    if get(head + STEP):
        return FAR
    return get(head + COPIED) if get(head + COPIES) else 0


def place_copies(stack: int, head: int) -> None:
    """At the upper end: where steps have loops, below what steps keep there themselves."""
    end = get(stack + END)
    put(head + COPIES, end - get(head + COPIED))
    set_end(stack, end - get(head + COPIED))


def make_room(
    stack: int, need: int, n: int, state: int, full: int, copies: int, followed: int, upwards: int
) -> None:
    """Take items from the loop before, from those on which it can go on without them.

    Where others follow, all but the first: none of them comes at what is below this loop.
    """
    before = get(stack + LAST)
    tops = restarts(stack, before)
    if not tops:
        return

    def left(top: int) -> int:
        """The bytes for what the loop keeps if the items above one are taken."""
        return end_of(stack) + tops[top] - end_below(before, top) - HEAD_BYTES

    def cost(top: int) -> float:
        """About how many steps both loops run then."""
        lost = get(before + COUNT) - get(top + ITEM_STEP if top else before + FILED_STEP)
        mine = about(stack, max(n, 1), state, full, left(top) - copies)
        sizes = get(before + STATE), get(before + SAVED)
        kept = end_below(before, top) - before
        return mine + about(stack, lost, *sizes, get(before + ROOM) - kept)

    possible = [top for top in tops if left(top) >= need]
    if followed or not possible:
        chosen = next(iter(tops))
    elif upwards:  # What more it had would not save steps.
        if end_of(stack) - get(stack + CURSOR) - HEAD_BYTES >= need:
            return
        chosen = possible[-1]
    elif n < 0:
        half = [t for t in possible if 2 * (t - before) <= get(before + ROOM)]
        chosen = half[-1] if half else possible[0]
    else:
        spread = possible[:: -(-len(possible) // PARTS)]
        chosen = min(spread, key=cost)
        all_of_it = end_of(stack) - get(stack + CURSOR) - HEAD_BYTES - copies
        kept = about(stack, n, state, full, all_of_it) if all_of_it >= need else FAR
        if kept <= cost(chosen):
            return
    take_above(stack, before, chosen)


def restarts(stack: int, head: int) -> dict[int, int]:
    """The restart states of a loop, the first first, 0 for all in the file; none where there is no first.

    With what the items above each have at the upper end.
    """
    found, item, last = list[tuple[int, int]](), get(head + TOP), 0
    end = begin = get(stack + END)
    while item:
        if get(item + ITEM_RECORD) == 0:
            found.append((item, end - begin))
        end = get(item + ITEM_END) or end
        last, item = item, get(item)
    if get(head + FILED):
        return {0: end - begin, **dict(found[::-1])}
    return dict(found[::-1]) if last and found and found[-1][0] == last else {}


def end_below(head: int, kept: int) -> int:
    """Where the items of a loop end if those above one are taken; 0: all of them."""
    return kept + get(head + STATE) if kept else head + HEAD_BYTES


def take_above(stack: int, head: int, kept: int) -> None:
    """Let a restart state be the last item of a loop; 0: let it have none in memory."""
    item = get(head + TOP)
    while item != kept:
        set_end(stack, get(item + ITEM_END) or get(stack + END))
        kind = STATES if get(item + ITEM_RECORD) == 0 else VALUES
        put(head + kind, get(head + kind) - 1)
        item = get(item)
    put(head + TOP, kept)
    put(stack + CURSOR, end_below(head, kept))


def share(
    stack: int, n: int, state: int, low: int, full: int, free: int, inner: tuple[int, ...]
) -> int:
    """The bytes for what a step keeps whose own loops take what they are given, from `low` to `full`.

    `inner`: of the largest of these the count, and the sizes of a state and of what a step keeps.
    """
    most = max(low, min(full, free - state))
    if most <= low:
        return low
    count, inner_state, inner_saved = inner
    if count <= 0:
        return (most if n <= 1 else max(low, most // 2)) & -WORD

    def cost(saved: int) -> float:
        """About how many steps of the inner loop are run."""
        steps = max(n, 1) if n >= 0 else NOMINAL
        within = saved - low + inner_state + inner_saved
        each = about(stack, count, inner_state, inner_saved, within)
        return (about(stack, steps, state, saved, free) - steps) * count + steps * each

    return min((low + ((most - low) * k // PARTS & -WORD) for k in range(PARTS + 1)), key=cost)


# --- Steps ------------------------------------------------------------------------------------


def ask(stack: int, head: int, end: int) -> int:
    """What to do at the step that the arrays stand before, on the way to the step `end`."""
    step = get(head + STEP)
    if goes_upwards(head):
        return store_only(stack, head)
    if get(head + COUNT) < 0:
        return explore(stack, head, step)
    saved, left = get(head + SAVED), end - step
    free = end_of(stack) - get(stack + CURSOR)
    waiting = 0 if get(head + COPIES) else get(head + COPIED)
    if not get(head + STATES) and not get(head + TURNED):
        with_copies = free - waiting - get(head + STATE)
        if get(head + FOLLOWED) and with_copies >= saved and not get(head + FILED):
            all_fit = left * saved <= with_copies
            if all_fit or not (run := written(stack, head, left)):
                return store_first(head, left, all_fit=all_fit)
            go(head, RUN, step + run)
            return WRITE
        if left * saved <= free:
            return go(head, KEEP, end)
    if left * saved <= free - waiting:
        return go(head, KEEP, end)
    if run := written(stack, head, left):
        go(head, RUN, step + run)
        return WRITE
    plan = plan_of(head)
    run = plan.ahead(left, plan.free(get(head + STATES), get(head + VALUES)))
    go(head, KEEP if run.keeps_values else RUN, step + run.steps)
    return STORE if run.keeps_state else KEEP


def store_first(head: int, left: int, *, all_fit: bool) -> int:
    """A restart state on which the loop can go on whatever later loops take."""
    if all_fit or left <= 1:
        go(head, KEEP, left)
    else:
        plan = plan_of(head)
        go(head, RUN, plan.again(left, plan.free(1, 0)) or left - 1)
    return STORE


def store_only(stack: int, head: int) -> int:
    """The restart state from which all steps are run again; in the file, where others may need the memory."""
    n, free = get(head + COUNT), end_of(stack) - get(stack + CURSOR)
    go(head, RUN, n)
    return (
        WRITE
        if get(stack + FILE) and get(head + FOLLOWED) and n * get(head + SAVED) > free
        else STORE
    )


def go(head: int, kind: int, until: int) -> int:
    put(head + KIND, kind)
    put(head + UNTIL, until)
    return kind


def plan_of(head: int) -> schedules.Plan:
    found = schedules.plan(*(get(head + at) for at in (COUNT, STATE, SAVED, ROOM)))
    assert found is not None
    return found


def explore(stack: int, head: int, step: int) -> int:
    """The same where the number of steps is unknown."""
    state, saved = get(head + STATE), get(head + SAVED)
    if not get(head + STATES) and not get(head + FILED):
        waiting = 0 if get(head + COPIES) else get(head + COPIED)
        free = end_of(stack) - get(stack + CURSOR) - waiting - state
        go(head, KEEP, free // saved)
        return STORE
    if get(stack + FILE):
        if not get(head + PERIOD):
            take_above(stack, head, next(iter(restarts(stack, head))))
            write(stack, head)
            put(head + PERIOD, file_plan_of(head, max(NOMINAL, 4 * step)).period)
        go(head, RUN, step + get(head + PERIOD))
        return WRITE
    sizes = schedules.units(state, saved, get(head + ROOM))
    assert sizes is not None
    most = (sizes.all - sizes.saved) // sizes.state
    if not get(head + PERIOD):
        take_above(stack, head, next(iter(restarts(stack, head))))
        put(head + PERIOD, max(1, step // PARTS))
    elif get(head + STATES) >= most:
        drop_every_second(stack, head)
        put(head + PERIOD, 2 * get(head + PERIOD))
    if get(head + STATES) >= most:
        return go(head, RUN, FAR)
    go(head, RUN, step + get(head + PERIOD))
    return STORE


def drop_every_second(stack: int, head: int) -> None:
    """All items are restart states of one size, one behind the other."""
    size, first = get(head + STATE), head + HEAD_BYTES
    kept = range(0, get(head + STATES), 2)
    for k, old in enumerate(kept):
        item = first + k * size
        ctypes.memmove(item, first + old * size, size)
        put(item, item - size if k else 0)
        put(head + TOP, item)
    put(head + STATES, len(kept))
    put(stack + CURSOR, first + len(kept) * size)


# --- The reverse sweep ------------------------------------------------------------------------


def turn(stack: int, head: int) -> int:
    """The reverse sweep begins: make place for copies, if steps are run again; how many there are, and 1."""
    if get(head + COUNT) < 0:
        put(head + COUNT, get(head + STEP))
    count = get(head + COUNT)
    put(head + TURNED, 1)
    if get(head + VALUES) < count and not get(head + COPIES):
        place_copies(stack, head)
    return count + 1


def restart(stack: int, head: int, end: int) -> int:
    """A restart state is on top, and the arrays are as it says: go on towards the step `end`."""
    item, saved = get(head + TOP), get(head + SAVED)
    step = get(item + ITEM_STEP)
    if goes_upwards(head):
        drop(stack, head)
        return go(head, KEEP, end)
    left, free = end - step, end_of(stack) - get(stack + CURSOR)
    if run := get(head + AGAIN):
        put(head + AGAIN, 0)
        drop(stack, head)
        return go(head, RUN, step + run)
    if left * saved <= free + get(head + STATE):
        run = 0
    else:
        plan = plan_of(head)
        run = plan.again(left, plan.free(get(head + STATES), get(head + VALUES)))
    if run:
        return go(head, RUN, step + run)
    drop(stack, head)
    return go(head, KEEP, step + 1)


def drop(stack: int, head: int) -> None:
    """Give up the state on top."""
    item = get(head + TOP)
    put(head + TOP, get(item))
    put(head + STATES, get(head + STATES) - 1)
    put(stack + CURSOR, item)


def finish(stack: int, head: int) -> int:
    """All steps are reversed: what the loop took is free."""
    put(stack + CURSOR, head)
    if get(head + COPIES):
        set_end(stack, get(head + COPIES) + get(head + COPIED))
    return KEEP


# --- For compiled code ------------------------------------------------------------------------

FUNCTIONS = {
    "mutad_steps_room": (room, 1),
    "mutad_steps_begin": (begin, 12),
    "mutad_steps_ask": (ask, 3),
    "mutad_steps_turn": (turn, 2),
    "mutad_steps_restart": (restart, 3),
    "mutad_steps_finish": (finish, 2),
    "mutad_steps_open": (open_file, 3),
    "mutad_steps_close": (close_file, 1),
    "mutad_steps_write": (write, 2),
    "mutad_steps_fetch": (fetch, 3),
}
"""By symbol, each with the number of its integers."""


OF_STACKS = (begin, ask, turn, restart, finish, write, fetch)
"""Those that are asked of a stack that has begun."""


@functools.cache
def callback(symbol: str) -> Any:
    function, count = FUNCTIONS[symbol]
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + count))(caught(function))


def caught(function: Callable[..., int]) -> Callable[..., int]:
    """Ctrl-C, a full disk: compiled code is told 0, and leaves."""

    def call(*numbers: int) -> int:
        try:
            if step_ownership.Watch.on and function in OF_STACKS:
                return step_ownership.answered(function, numbers)
            return function(*numbers)
        except BaseException as error:
            raised_exceptions.pending.error = error
            return 0

    return call


def address(symbol: str) -> int:
    """Where compiled code finds a function."""
    found = ctypes.cast(callback(symbol), ctypes.c_void_p).value
    assert found is not None
    return found

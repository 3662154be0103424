"""What compiled code asks while it runs the steps of checkpointed loops: where to keep what.

All such loops of a gradient call share one stack, in one piece of memory. What steps keep is pushed at its
lower end; at its upper end are the arrays on which steps are run again, and what steps keep that have loops
of their own. A loop that begins puts down a *head*, words of 8 bytes that say how it stands; behind it come
its items, the last of which names the one below. So loops that come one after the other, and those within a
step of another, take and give back memory in turn.

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

from . import file_schedules, raised_exceptions, schedules, spill_file

WORD = 8
CURSOR, END, LAST, LIMIT, BASE, WHOLE_END = 8, 16, *range(32, 64, WORD)
"""Words of the stack: the first byte that is free, the first that is not, the head of the loop that began
last, what this scope may not pass (0 where that is the end), where all begins and where it ends. The first
four are those of a tape."""
FILE, FILE_END, FILE_PEAK = range(88, 112, WORD)
"""Which file there is, by the context of the call, or 0; its first byte that is free; how many it had."""

TOP, UNTIL, KIND, STEP, COPIES, COUNT, STATES, VALUES, SAVED, STATE, OWN = range(0, 88, WORD)
"""Words of a head, those that compiled code knows: the item on top; up to which step it is known what to do,
and what; the step that the arrays stand before; the copies on which steps are run again; how many steps there
are, -1 where that is unknown; how many items there are of each kind; the most that a step's values take; the
bytes of a state's item; what of a step's values its own loops have nothing to do with."""
ROOM, PERIOD, COPIED, BEFORE, FOLLOWED, TURNED, FILED, FILED_STEP, AGAIN = range(88, 160, WORD)
"""The others: the bytes that the plan is for; every which step a state is kept; the bytes of the copies;
where the stack ended before them; whether other loops follow; 1 if the reverse sweep has begun, before it
where the stack will end then, if a loop took items; where in the file the last state is, or 0, and of which
step; how many steps are run from the one that was fetched, and stays there."""
HEAD_BYTES = 160
ITEM_STEP, ITEM_RECORD, ITEM_END, ITEM_BYTES = 8, 16, 24, 32

KEEP, STORE, RUN, WRITE = 1, 2, 3, 4
"""Kinds of what to do: to keep the values of steps; to keep the state, and then what the head says; to keep
nothing; to keep the state in the file. 0 is what an error in here becomes."""
NOMINAL, PARTS, FAR = 1000, 8, 1 << 62
"""What an unknown count is taken for; how many ways are tried to divide memory; behind all steps."""


def get(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def put(address: int, value: int) -> None:
    ctypes.c_int64.from_address(address).value = value


def end_of(stack: int) -> int:
    """What may be taken ends at the limit of the scope, if it has one, and of the stack."""
    limit, end = get(stack + LIMIT), get(stack + END)
    return min(limit, end) if limit else end


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
    least: int,
    *inner: int,
) -> int:
    """Put down the head of a loop of `n` steps, -1 where their number is unknown; where it is.

    Or, less than 0, minus the least number of bytes of the whole stack that would do.
    """
    need = copies + state + low
    if n >= 0:
        need = min(need, n * low)
    if get(stack + LAST):
        make_room(stack, need, n, state, full, copies, followed)
    head = get(stack + CURSOR)
    free = end_of(stack) - head - HEAD_BYTES
    if free < need:
        taken = head - get(stack + BASE) + get(stack + WHOLE_END) - get(stack + END)
        return -(taken + HEAD_BYTES + need)
    saved = low
    if free >= copies + state + low:
        saved = share(stack, n, state, low, full, free - copies, inner)
    known = {
        KIND: KEEP, COUNT: n, SAVED: saved, STATE: state, ROOM: free - copies, COPIED: copies,
        FOLLOWED: followed, OWN: low - least,
    }  # fmt: skip
    for at in range(0, HEAD_BYTES, WORD):
        put(head + at, known.get(at, 0))
    put(stack + CURSOR, head + HEAD_BYTES)
    put(stack + LAST, head)
    if get(stack + FILE) and n * saved > free:
        reserve(stack, head, n)
    if least and free >= copies + state + low:
        place_copies(stack, head)
    return head


def place_copies(stack: int, head: int) -> None:
    """At the upper end: where steps have loops, below what steps keep there themselves."""
    end = get(stack + END)
    put(head + BEFORE, end)
    put(head + COPIES, end - get(head + COPIED))
    put(stack + END, end - get(head + COPIED))


def make_room(
    stack: int, need: int, n: int, state: int, full: int, copies: int, followed: int
) -> None:
    """Take items from the loop before, from those on which it can go on without them.

    Where others follow, all but the first: none of them comes at what is below this loop.
    """
    before = get(stack + LAST)
    tops = restarts(before)
    if not tops:
        return
    free = end_of(stack) - HEAD_BYTES - copies

    def cost(top: int) -> float:
        """About how many steps both loops run if the items above one are taken."""
        end = end_below(before, top)
        lost = get(before + COUNT) - get(top + ITEM_STEP if top else before + FILED_STEP)
        mine = about(stack, max(n, 1), state, full, free - end)
        sizes = get(before + STATE), get(before + SAVED)
        return mine + about(stack, lost, *sizes, get(before + ROOM) - (end - before))

    possible = [t for t in tops if end_of(stack) - end_below(before, t) >= HEAD_BYTES + need]
    if followed or not possible:
        chosen = tops[0]
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
    upper = get(stack + END)
    take_above(stack, before, chosen)
    put(before + TURNED, max(get(before + TURNED), get(stack + END)))
    put(stack + END, upper)  # until its turn: what the step has put there since is in between


def restarts(head: int) -> list[int]:
    """The restart states of a loop, the first first, 0 for all in the file; none where there is no first."""
    found, item, last = list[int](), get(head + TOP), 0
    while item:
        if get(item + ITEM_RECORD) == 0:
            found.append(item)
        last, item = item, get(item)
    if get(head + FILED):
        return [0, *found[::-1]]
    return found[::-1] if last and found and found[-1] == last else []


def end_below(head: int, kept: int) -> int:
    """Where the items of a loop end if those above one are taken; 0: all of them."""
    return kept + get(head + STATE) if kept else head + HEAD_BYTES


def take_above(stack: int, head: int, kept: int) -> None:
    """Let a restart state be the last item of a loop; 0: let it have none in memory."""
    item = get(head + TOP)
    while item != kept:
        put(stack + END, get(item + ITEM_END) or get(stack + END))
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
        return most if n <= 1 else max(low, most // 2)

    def cost(saved: int) -> float:
        """About how many steps of the inner loop are run."""
        steps = max(n, 1) if n >= 0 else NOMINAL
        within = saved - low + inner_state + inner_saved
        each = about(stack, count, inner_state, inner_saved, within)
        return (about(stack, steps, state, saved, free) - steps) * count + steps * each

    return min((low + (most - low) * k // PARTS for k in range(PARTS + 1)), key=cost)


# --- Steps ------------------------------------------------------------------------------------


def ask(stack: int, head: int, end: int) -> int:
    """What to do at the step that the arrays stand before, on the way to the step `end`."""
    step = get(head + STEP)
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


def written(stack: int, head: int, left: int) -> int:
    """How many steps are run from a state that goes to the file; 0 where none does."""
    at_bottom = not (get(head + STATES) or get(head + VALUES) or get(head + TURNED))
    return file_plan_of(head).ahead(left) if get(stack + FILE) and at_bottom else 0


def go(head: int, kind: int, until: int) -> int:
    put(head + KIND, kind)
    put(head + UNTIL, until)
    return kind


def plan_of(head: int) -> schedules.Plan:
    found = schedules.plan(*(get(head + at) for at in (COUNT, STATE, SAVED, ROOM)))
    assert found is not None
    return found


def file_plan_of(head: int, count: int = 0) -> file_schedules.FilePlan:
    sizes = (get(head + at) for at in (STATE, SAVED, ROOM))
    found = file_schedules.plan(count or get(head + COUNT), *sizes)
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
            take_above(stack, head, restarts(head)[0])
            write(stack, head)
            put(head + PERIOD, file_plan_of(head, max(NOMINAL, 4 * step)).period)
        go(head, RUN, step + get(head + PERIOD))
        return WRITE
    sizes = schedules.units(state, saved, get(head + ROOM))
    assert sizes is not None
    most = (sizes.all - sizes.saved) // sizes.state
    if not get(head + PERIOD):
        take_above(stack, head, restarts(head)[0])
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


# --- The file ---------------------------------------------------------------------------------


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
    plan, states = file_plan_of(head), 0
    while n > 0 and (run := plan.ahead(n)):
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
    again = file_plan_of(head).again(end - step)
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


# --- The reverse sweep ------------------------------------------------------------------------


def turn(stack: int, head: int) -> int:
    """The reverse sweep begins: make place for copies, if steps are run again; how many there are, and 1."""
    if get(head + COUNT) < 0:
        put(head + COUNT, get(head + STEP))
    count = get(head + COUNT)
    if (upper := get(head + TURNED)) > 1:
        put(stack + END, upper)
    put(head + TURNED, 1)
    if get(head + VALUES) < count and not get(head + COPIES):
        place_copies(stack, head)
    return count + 1


def restart(stack: int, head: int, end: int) -> int:
    """A restart state is on top, and the arrays are as it says: go on towards the step `end`."""
    item, saved = get(head + TOP), get(head + SAVED)
    step = get(item + ITEM_STEP)
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
        put(stack + END, get(head + BEFORE))
    return KEEP


# --- For compiled code ------------------------------------------------------------------------

FUNCTIONS = {
    "mutad_steps_room": (room, 1),
    "mutad_steps_begin": (begin, 11),
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


@functools.cache
def callback(symbol: str) -> Any:
    function, count = FUNCTIONS[symbol]
    return ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + count))(caught(function))


def caught(function: Callable[..., int]) -> Callable[..., int]:
    """Ctrl-C, a full disk: compiled code is told 0, and leaves."""

    def call(*numbers: int) -> int:
        try:
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

"""How what steps keep lies in memory: the words of the stack, of a loop's head, and of an item.

Compiled code knows them too (`compiler/codegen/support/steps.py`). What is kept is *owned* until it is given
back: heads and items by the loop, the memory at the upper end by the loop whose copies lie there, or by the
item whose step keeps its own values there. No owner's memory lies in the middle of another's.
"""

from __future__ import annotations

import ctypes

WORD = 8
CURSOR, END, LAST, LIMIT, BASE, WHOLE_END = 8, 16, *range(32, 64, WORD)
"""Words of the stack: the first byte that is free, the first that is not, the head of the loop that began
last, what this scope may not pass (0 where that is the end), where all begins and where it ends. The first
four are those of a tape. What a scope takes at the upper end makes its limit as much smaller."""
FILE, FILE_END, FILE_PEAK = range(88, 112, WORD)
"""Which file there is, by the context of the call, or 0; its first byte that is free; how many it had."""
OWN_TOP, OWN_END = 112, 120
"""Of the step that is run and has loops: from where downwards what it keeps itself goes, and to where."""

TOP, UNTIL, KIND, STEP, COPIES, COUNT, STATES, VALUES, SAVED, STATE, OWN = range(0, 88, WORD)
"""Words of a head, those that compiled code knows: the item on top; up to which step it is known what to do,
and what; the step that the arrays stand before; the copies on which steps are run again; how many steps there
are, -1 where that is unknown; how many items there are of each kind; the most that a step's values take; the
bytes of a state's item; what of a step's values its own loops have nothing to do with, item and all."""
ROOM, PERIOD, COPIED, FOLLOWED, TURNED, FILED, FILED_STEP, AGAIN, LOW, PREVIOUS = range(
    88, 168, WORD
)
"""The others: the bytes that the plan is for; every which step a state is kept; the bytes of the copies;
whether other loops follow that may take items; whether the reverse sweep has begun; where in the file the
last state is, or 0, and of which step; how many steps are run from the one that was fetched, and stays there;
the least that a step's values take; the head of the loop before."""
HEAD_BYTES = 168
ITEM_STEP, ITEM_RECORD, ITEM_END, ITEM_BYTES = 8, 16, 24, 32
"""Words of an item, behind the address of the one below: its step; 0, or where the record of a step's values
is; where the stack ended before it, if a step has loops of its own: what it keeps itself is below that."""

KEEP, STORE, RUN, WRITE = 1, 2, 3, 4
"""Kinds of what to do: to keep the values of steps; to keep the state, and then what the head says; to keep
nothing; to keep the state in the file. 0 is what an error in here becomes."""
NOMINAL, PARTS, FAR = 1000, 8, 1 << 62
"""What an unknown count is taken for; how many ways are tried to divide memory; behind all steps."""


def get(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def put(address: int, value: int) -> None:
    ctypes.c_int64.from_address(address).value = value


def goes_upwards(head: int) -> bool:
    """Whether steps are reversed from the first to the last: only the state before the first is kept."""
    return get(head + PERIOD) == FAR


def end_of(stack: int) -> int:
    """What may be taken ends at the limit of the scope, if it has one, and of the stack."""
    limit, end = get(stack + LIMIT), get(stack + END)
    return min(limit, end) if limit else end


def set_end(stack: int, end: int) -> None:
    """Take memory at the upper end, or give some back: of the scope as well."""
    if limit := get(stack + LIMIT):
        put(stack + LIMIT, limit + end - get(stack + END))
    put(stack + END, end)

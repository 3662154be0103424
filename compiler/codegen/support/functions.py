"""The support functions by name, and what each calls."""

from __future__ import annotations

from collections.abc import Iterable

from . import handles, reserved, stack, steps
from .context import POOL, RESULTS, STACK_END, Functions
from .integer_powers import INTEGER_POWERS
from .poll import CLOCK_TEXT, POLL_TEXT
from .pool import POOL_SLOTS, TAKE
from .results import ALLOC_RESULT, END_OF_CALL, FREE_LIST
from .scratch import ALLOC, GROW, MARK, RELEASE
from .tapes import PUSH, TAPE_DATA, TAPE_GROW

DECLARATIONS = {
    "mutad_libc_malloc": "declare ptr @mutad_libc_malloc(i64)",
    "mutad_libc_free": "declare void @mutad_libc_free(ptr)",
    **stack.DECLARATIONS,
}

FUNCTIONS: Functions = {
    "mutad_alloc": (ALLOC, ("mutad_grow",)),
    "mutad_grow": (GROW, ("mutad_take",)),
    "mutad_mark": (MARK, ()),
    "mutad_release": (RELEASE, ("mutad_take",)),
    "mutad_alloc_result": (ALLOC_RESULT, ()),
    "mutad_tape_push": (PUSH, ("mutad_tape_data", "mutad_tape_grow")),
    "mutad_tape_data": (TAPE_DATA, ()),
    "mutad_tape_grow": (TAPE_GROW, ("mutad_tape_data", "mutad_take")),
    "mutad_end": (END_OF_CALL + FREE_LIST, ("mutad_take", "mutad_drop_result")),
    "mutad_drop_result": (reserved.drop_result(), ()),
    "mutad_drop_range": (reserved.drop_range(POOL, POOL_SLOTS), ()),
    "mutad_reserve": (reserved.reserve(RESULTS, POOL, POOL_SLOTS), ("mutad_drop_range",)),
    "mutad_clear": (reserved.CLEAR, ()),
    "mutad_tape_read": (handles.TAPE_READ, ("mutad_tape_data",)),
    "mutad_drop": (handles.DROP, ("mutad_end",)),
    "mutad_take": (TAKE, ("mutad_clock",)),
    "mutad_clock": (CLOCK_TEXT, ()),
    "mutad_find_stack": (stack.find_stack(STACK_END), ()),
    "mutad_poll": (POLL_TEXT, ("mutad_clock",)),
    **steps.FUNCTIONS,
    **INTEGER_POWERS,
}
"""Those of a kernel in a Python process."""

ALLOCATING = ("mutad_alloc", "mutad_reserve", "mutad_alloc_result", "mutad_tape_push")
"""A kernel that calls one of these has to run `mutad_end`."""


def closure(used: Iterable[str], functions: Functions = FUNCTIONS) -> set[str]:
    """The support functions used, and those that they use."""
    pending, found = list(used), set[str]()
    while pending:
        name = pending.pop()
        if name in functions and name not in found:
            found.add(name)
            pending.extend(functions[name][1])
    return found


def functions_text(
    used: Iterable[str], functions: Functions = FUNCTIONS
) -> tuple[list[str], list[str]]:
    """Definitions of the support functions used and of those they use, and the declarations needed."""
    definitions: list[str] = []
    declarations: set[str] = set()
    for name in sorted(closure(used, functions)):
        for line in functions[name][0].splitlines():
            (declarations.add if line.startswith("declare ") else definitions.append)(line)
    whole = "\n".join(definitions)
    declarations.update(line for symbol, line in DECLARATIONS.items() if f"@{symbol}(" in whole)
    return definitions, sorted(declarations)

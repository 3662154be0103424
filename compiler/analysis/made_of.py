"""What a number is computed of, each value asked once.

A recursive function would ask again for each way through a chain: 2^n times, where n statements use the two
before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import SSAValue


def all_made_of(
    values: Iterable[SSAValue], sources: Callable[[SSAValue], Iterable[SSAValue] | None]
) -> bool:
    """Whether the values, and all that they are computed of, are allowed.

    `sources` says what a value is computed of: nothing, where it need not be asked further, and None where it
    is not allowed.
    """
    pending = list(values)
    seen = set(pending)
    while pending:
        found = sources(pending.pop())
        if found is None:
            return False
        fresh = [v for v in dict.fromkeys(found) if v not in seen]
        seen.update(fresh)
        pending += fresh
    return True

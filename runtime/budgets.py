"""What users write for `memory=`: how many bytes a gradient may save.

compile(f, memory="256MiB")      compile(f, memory=1_000_000)
"""

from __future__ import annotations

import re
from typing import Any

UNITS = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}  # fmt: skip
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*\Z")
LARGEST = 1 << 62
REFUSED = {
    "vjp": "vjp", "hvp": "hvp", "product": "hvp", "reverse-hvp": "hvp",
}  # fmt: skip
"""By mode, the calls that save what their plan says, whatever the budget is."""


def bytes_of(memory: Any) -> int | None:
    """The number of bytes; None where there is no budget. ValueError where nobody can read it."""
    if memory is None:
        return None
    if isinstance(memory, int) and not isinstance(memory, bool):
        size = memory
    elif isinstance(memory, str) and (found := _WRITTEN.match(memory)) is not None:
        unit = UNITS.get(found[2].upper())
        if unit is None:
            raise refused(memory)
        whole, _, part = found[1].partition(".")
        size = int(whole) * unit + int(part or "0") * unit // 10 ** len(part)
    else:
        raise refused(memory)
    if not 0 < size < LARGEST:
        raise ValueError(f"memory={memory!r}: a budget is at least one byte, and less than 2**62")
    return size


def refused(memory: Any) -> ValueError:
    return ValueError(
        f'memory={memory!r}: use a number of bytes, or a text such as "256MiB", "1.5 GB" or "800kB"'
    )


def require_kept(memory: int | None, mode: str) -> None:
    """ValueError for a call that has no way to keep to a budget."""
    if memory and mode in REFUSED:
        raise ValueError(
            f"a function with `memory=` has no {REFUSED[mode]}: grad, value_and_grad and pullback keep to a "
            "budget; compile it without `memory=` for the others"
        )

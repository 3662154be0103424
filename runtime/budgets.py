"""What users write for `memory=`: how many bytes a gradient may save, and where what is more goes.

compile(f, memory="256MiB")    compile(f, memory=1_000_000)    compile(f, memory=("1GiB", "disk:/scratch"))
"""

from __future__ import annotations

import os
import re
from typing import Any, cast

UNITS = {
    "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}  # fmt: skip
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*\Z")
LARGEST = 1 << 62
DISK = "disk"


class TooLarge(MemoryError):
    """What `vjp` would keep is more than its budget; nothing is done yet, and all can be done again."""


def budget_of(memory: Any) -> tuple[int | None, str]:
    """The number of bytes, None where there is no budget, and the folder for files, "" for none.

    ValueError where it cannot be parsed. A folder is looked for when something goes there.
    """
    if not isinstance(memory, tuple):
        return bytes_of(memory), ""
    parts = cast("tuple[Any, ...]", memory)
    match parts:
        case (size, str() as where) if size is not None:
            kind, _, folder = where.partition(":")
            if kind == DISK:
                return bytes_of(size), os.path.abspath(folder or temporary())
        case _:
            pass
    raise ValueError(
        f'memory={memory!r}: of two, the first are bytes and the second is "disk:FOLDER", or "disk" for '
        'that of temporary files: ("1GiB", "disk:/scratch")'
    )


def temporary() -> str:
    import tempfile

    return tempfile.gettempdir()


def bytes_of(memory: Any) -> int | None:
    """The number of bytes; None where there is no budget. ValueError where it cannot be parsed."""
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
        f'memory={memory!r}: use a number of bytes, or a text such as "256MiB", "1.5 GB" or "800kB"; '
        'with a folder for what is more: ("1GiB", "disk:/scratch")'
    )

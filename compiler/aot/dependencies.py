"""What the outputs depend on, as make reads it: each Python file that was compiled in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence


def rules(outputs: Sequence[str], sources: Iterable[str], *, shorten: bool = False) -> str:
    """A rule with the outputs as targets, and an empty one for each source, which may be gone later.

    Files in the current folder have their short names if these are to be shortened.
    """
    listed = sorted({os.path.relpath(s) if shorten and is_below(s) else s for s in sources})
    first = f"{' '.join(map(escaped, outputs))}: {' '.join(map(escaped, listed))}\n"
    return first + "".join(f"{escaped(source)}:\n" for source in listed)


def is_below(path: str) -> bool:
    """Whether a file is in the current folder."""
    return os.path.isabs(path) and not os.path.relpath(path).startswith("..")


def escaped(path: str) -> str:
    """A file's name as make reads it."""
    return re.sub(r"([ #\\])", r"\\\1", path).replace("$", "$$")

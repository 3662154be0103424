"""How the program's names are spelled in the IR, and back.

The IR's names are ASCII, and xDSL takes a number at the end for its own (`x_1` is another value called `x`).
So what is not ASCII is spelled by its code, and a number at the end is closed by an empty code; no name of
Python's has a hyphen::

    μ      -3bc-          x_1      x_1--          x      x
"""

from __future__ import annotations

import re

_FOREIGN = re.compile(r"[^A-Za-z0-9_$.]")
_SPELLED = re.compile(r"(?:[A-Za-z0-9_$.]|-[0-9a-f]*-)+")
_NUMBERED = re.compile(r"_\d+$", re.ASCII)
_CODE = re.compile(r"-([0-9a-f]*)-")


def legal(name: str) -> str:
    """The name in characters that the IR takes; of what is spelled so already, the same."""
    if _SPELLED.fullmatch(name):
        return name
    return _FOREIGN.sub(lambda found: f"-{ord(found[0]):x}-", name)


def as_hint(name: str) -> str:
    """The name hint of a variable's value; `d['rate']` is called `d_rate`."""
    if re.search(r"[^\w.$]", name) and not _SPELLED.fullmatch(name):
        name = re.sub(r"[^\w.$]+", "_", name).strip("_")
    name = name or "value"
    spelled = legal(f"_{name}" if name[0].isdigit() else name)
    return f"{spelled}--" if _NUMBERED.search(spelled) else spelled


def as_symbol(name: str, nameless: str) -> str:
    """The symbol of a function; `nameless` of what has no name, `<lambda>`."""
    return legal(name) if name.isidentifier() else nameless


def as_written(spelled: str) -> str:
    """A name of the IR as the program writes it."""
    if "-" not in spelled:
        return spelled
    return _CODE.sub(lambda code: chr(int(code[1], 16)) if code[1] else "", spelled)

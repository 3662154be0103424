"""LLVM's IR to read, and the line of Python that each instruction comes from.

With debug metadata an instruction says its place (`debug_info`)::

    %x = load double, ptr %p.3, !dbg !14           ->    %x = load double, ptr %p.3      ("model.py", 7)
    !14 = !DILocation(line: 7, scope: !9)

What is for debuggers is left out, as in `assembly_lines`.
"""

from __future__ import annotations

import re

from .assembly_lines import Place
from .debug_info import unquoted, without_lines

NODE = re.compile(r"(!\d+) = (?:distinct )?!(DI\w+)\((.*)\)$")
FIELD = re.compile(r'(\w+): ("[^"]*"|[^,]+)')
ATTACHED = re.compile(r"!dbg (!\d+)")
RECORD = re.compile(r" *#dbg_")
"""What says where a variable is: no instruction, and no line to read."""


def llvm_lines(text: str) -> list[tuple[str, Place | None]]:
    """Each line of the IR without what is for debuggers, and where it comes from if that is known."""
    lines = [line for line in text.splitlines() if not RECORD.match(line)]
    found = [NODE.match(line) for line in lines]
    nodes = {f[1]: dict(FIELD.findall(f[3])) for f in found if f is not None}
    kept = [line for line, f in zip(lines, found, strict=True) if f is None]
    return [(without_lines(line), place_in(line, nodes)) for line in kept]


def place_in(line: str, nodes: dict[str, dict[str, str]]) -> Place | None:
    """The place that an instruction says; line 0 is none."""
    attached = ATTACHED.search(line)
    if attached is None or line.startswith("define"):
        return None
    location = nodes.get(attached[1], {})
    number, scope = int(location.get("line", 0)), nodes.get(location.get("scope", ""), {})
    file = nodes.get(scope.get("file", ""))
    if not number or file is None:
        return None
    folder, name = unquoted(file["directory"]), unquoted(file["filename"])
    return (f"{folder.rstrip('/')}/{name}" if folder else name), number

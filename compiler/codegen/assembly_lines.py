"""Assembly to read, and the line of Python that each instruction comes from.

What debug metadata adds to assembly is for assemblers; readers have the code alone, which is what there is
without debug metadata, and the places beside it::

            .loc    1 7 0                     ->      vaddsd  %xmm1, %xmm0, %xmm0      ("model.py", 7)
            vaddsd  %xmm1, %xmm0, %xmm0
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Place = tuple[str, int]
"""A file and a line of it."""

FILE = re.compile(r'\t\.file\t(\d+) ("(?:[^"\\]|\\.)*")(?: ("(?:[^"\\]|\\.)*"))?')
LOC = re.compile(r"\t\.loc\t(\d+) (\d+)")
SECTION = re.compile(r"\t\.(section|text|data|bss)\b")
OF_DEBUGGING = re.compile(r"\t\.section\t\.debug_")
UNREAD = re.compile(r"\.L(tmp|func_begin|sec_end)\d*:|\.Ldebug_\w+:|\t\.cfi_")


def source_lines(assembly: str) -> list[tuple[str, Place | None]]:
    """Each line of the assembly without what is for debuggers, and where it comes from if that is known.

    Directives for unwinding (`.cfi_`) are among that: functions that never unwind have them for debuggers.
    """
    return list(_read(assembly))


def without_debugging(assembly: str) -> str:
    """The assembly without what is for debuggers."""
    return "".join(f"{line}\n" for line, _ in _read(assembly))


def _read(assembly: str) -> Iterator[tuple[str, Place | None]]:
    files: dict[str, str] = {}
    place: Place | None = None
    skipping = False
    for line in assembly.splitlines():
        if SECTION.match(line):
            skipping = OF_DEBUGGING.match(line) is not None
        if found := FILE.match(line):
            files[found[1]] = _path(*found.groups()[1:])
        elif found := LOC.match(line):
            number = int(found[2])
            place = (files[found[1]], number) if number else None
        elif UNREAD.match(line) or skipping:
            continue
        else:
            if line.endswith(":") and not line.startswith((".", "\t")):
                place = None  # another function
            is_instruction = line.startswith("\t") and not line.startswith(("\t.", "\t#"))
            yield line, place if is_instruction else None


def _path(first: str, second: str | None) -> str:
    """`"folder" "name"`, or the name alone."""
    parts = [_unquoted(part) for part in (first, second) if part]
    return "/".join(part.rstrip("/") for part in parts)


def _unquoted(text: str) -> str:
    return re.sub(rb"\\([0-7]{3}|.)", _character, text[1:-1].encode()).decode(
        "utf-8", "surrogateescape"
    )


def _character(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8)]) if len(code) == 3 else code

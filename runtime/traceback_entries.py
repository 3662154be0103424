"""The entry in a traceback for the line of compiled code that raised.

Compiled code has no frames of Python's. So the entry has the frame of a generator, whose code is called and
placed as the user's function. It waits at its `yield`, and all its instructions have the line that raised: so
the frame, the entry and the instruction say the same to whoever asks (traceback, pytest, IPython, jaxlib).
"""

from __future__ import annotations

import functools
import linecache
import types
from collections.abc import Generator, Iterator

COMPILED = "<compiled>"
WAITING = next(
    constant
    for constant in compile("def waiting(): yield", COMPILED, "exec").co_consts
    if isinstance(constant, types.CodeType)
)
"""Of a generator without parameters."""


def entry_at(file: str, line: int) -> types.TracebackType:
    """The entry, innermost: Python puts those of the callers before it."""
    name, first = function_at(file, line)
    _, frame = _waiting(file, name, first, line)
    return types.TracebackType(None, frame, frame.f_lasti, line)


@functools.lru_cache(maxsize=1_000)
def _waiting(
    file: str, name: str, first: int, line: int
) -> tuple[Generator[None], types.FrameType]:
    """A generator that waits in that line, and its frame, which outlives it."""
    code = WAITING.replace(
        co_filename=file, co_name=name.rpartition(".")[2], co_qualname=name, co_firstlineno=first,
        co_linetable=_table(len(WAITING.co_code) // 2, line - first),
    )  # fmt: skip
    generator = types.FunctionType(code, {"__name__": COMPILED})()
    next(generator)
    return generator, generator.gi_frame


def _table(units: int, offset: int) -> bytes:
    """Says of so many units of code that they are so many lines after the first, without columns.

    As CPython's `Objects/locations.md` has it: an entry is of up to 8 units, and counts lines from the last.
    """
    table = bytearray()
    for start in range(0, units, 8):
        table.append(0b1_1101_000 | min(8, units - start) - 1)
        rest = abs(offset) << 1 | (offset < 0)
        while rest > 63:
            table.append(64 | rest & 63)
            rest >>= 6
        table.append(rest)
        offset = 0
    return bytes(table)


@functools.lru_cache(maxsize=1_000)
def function_at(file: str, line: int) -> tuple[str, int]:
    """The innermost function around a line: its qualified name, and the line that it begins at."""
    try:  # code, not a tree: of threads that make trees at once, Python 3.11 raises in one
        module = compile("".join(linecache.getlines(file)), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return COMPILED, line
    around = list(_functions_around(module, line))
    if not around:
        return "<module>", 1
    return ".".join(code.co_name for code in around), around[-1].co_firstlineno


def _functions_around(code: types.CodeType, line: int) -> Iterator[types.CodeType]:
    for inner in _within(code):
        if inner.co_firstlineno <= line <= _last_line(inner):
            if not inner.co_name.startswith("<"):
                yield inner
            yield from _functions_around(inner, line)


def _within(code: types.CodeType) -> Iterator[types.CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, types.CodeType))


def _last_line(code: types.CodeType) -> int:
    own = (line for _, _, line in code.co_lines() if line is not None)
    return max((*own, *map(_last_line, _within(code))), default=code.co_firstlineno)

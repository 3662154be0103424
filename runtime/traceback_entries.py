"""The entry in a traceback for the line of compiled code that raised.

Compiled code has no frames of Python's. So the entry has the frame of a generator that never runs, whose code
is called and placed as the user's function. A traceback takes the line from the entry; who asks the frame
(jaxlib, pytest) gets the line that its code begins at, so that is the same one.
"""

from __future__ import annotations

import functools
import linecache
import types
from collections.abc import Iterator

COMPILED = "<compiled>"
NOWHERE = -1
"""The index of no instruction: there are no columns to be marked."""
ONE_LINE = next(
    constant
    for constant in compile("def one(): yield", COMPILED, "exec").co_consts
    if isinstance(constant, types.CodeType)
)
"""Of a generator without parameters, all of whose instructions have the line that it begins at."""


def entry_at(file: str, line: int) -> types.TracebackType:
    """The entry, innermost: Python puts those of the callers before it."""
    return types.TracebackType(None, _frame(file, function_at(file, line), line), NOWHERE, line)


@functools.lru_cache(maxsize=1_000)
def _frame(file: str, name: str, line: int) -> types.FrameType:
    own = name.rpartition(".")[2]
    code = ONE_LINE.replace(co_filename=file, co_name=own, co_qualname=name, co_firstlineno=line)
    return types.FunctionType(code, {"__name__": COMPILED})().gi_frame


@functools.lru_cache(maxsize=1_000)
def function_at(file: str, line: int) -> str:
    """The qualified name of the innermost function around a line."""
    try:  # code, not a tree: of threads that make trees at once, Python 3.11 raises in one
        module = compile("".join(linecache.getlines(file)), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return COMPILED
    return ".".join(_names_around(module, line)) or "<module>"


def _names_around(code: types.CodeType, line: int) -> Iterator[str]:
    for inner in _within(code):
        if inner.co_firstlineno <= line <= _last_line(inner):
            if not inner.co_name.startswith("<"):
                yield inner.co_name
            yield from _names_around(inner, line)


def _within(code: types.CodeType) -> Iterator[types.CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, types.CodeType))


def _last_line(code: types.CodeType) -> int:
    own = (line for _, _, line in code.co_lines() if line is not None)
    return max((*own, *map(_last_line, _within(code))), default=code.co_firstlineno)

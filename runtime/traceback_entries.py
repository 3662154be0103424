"""The entry in a traceback for the line of compiled code that raised.

Compiled code has no frames of Python's. So the entry has the frame of a generator that never runs, whose code
is called and placed as the user's function; a traceback takes the line from the entry, not from the frame.
"""

from __future__ import annotations

import functools
import linecache
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

COMPILED = "<compiled>"
NOWHERE = -1
"""The index of no instruction: there are no columns to be marked."""


def entry_at(file: str, line: int) -> types.TracebackType:
    """The entry, innermost: Python puts those of the callers before it."""
    return types.TracebackType(None, _frame(file, function_at(file, line)), NOWHERE, line)


@functools.lru_cache(maxsize=1_000)
def _frame(file: str, name: str) -> types.FrameType:
    def never_run() -> Iterator[None]:
        yield

    own = name.rpartition(".")[2]
    code = never_run.__code__.replace(co_filename=file, co_name=own, co_qualname=name)
    return types.FunctionType(code, {"__name__": COMPILED})().gi_frame


@functools.lru_cache(maxsize=1_000)
def function_at(file: str, line: int) -> str:
    """The qualified name of the innermost function around a line."""
    import ast  # where something raises: `import mutad` is to be quick

    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return COMPILED
    return ".".join(_names_around(tree, line)) or "<module>"


def _names_around(node: ast.AST, line: int) -> Iterator[str]:
    import ast

    for inner in ast.iter_child_nodes(node):
        first, last = getattr(inner, "lineno", None), getattr(inner, "end_lineno", None)
        if first is not None and last is not None and not first <= line <= last:
            continue
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield inner.name
        yield from _names_around(inner, line)

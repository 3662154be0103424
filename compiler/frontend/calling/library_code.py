"""Calls of library functions that are Python code (`library.written`): inlined as any function is."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import TYPE_CHECKING

from ...diagnostics import CompileError
from ..library import written, written_matrices
from ..library.written_matrices import refuse as refuse
from ..values import BoundMethod, Static, Value

if TYPE_CHECKING:
    from .calls import Calls


def code_of(callee: object, args: list[Value], kwargs: dict[str, Value]) -> FunctionType | None:
    """The Python code of a library function; None where it has none, or needs none."""
    if isinstance(callee, BoundMethod):
        return written.METHODS.get(callee.name)
    try:
        found = written.FUNCTIONS.get(callee)
    except TypeError:  # unhashable
        return None
    return None if found is written_matrices.norm and len(args) + len(kwargs) == 1 else found


def call(
    lowering: Calls,
    code: FunctionType,
    callee: object,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.Call,
) -> Value:
    """Inline the code; what it refuses is refused at the call."""
    if isinstance(callee, BoundMethod):
        args = [callee.receiver, *args]
    frame, source = lowering.frame, lowering.frame.source
    try:
        return lowering.inline(code, args, kwargs, node)
    except CompileError as error:
        if error.span is None or error.span.file not in written.FILES:
            raise
        reason, _, way_out = error.reason.partition(": ")
        lowering.frame = frame
        raise CompileError(
            source.span(node), f"{code.__name__}: {reason}", way_out or error.way_out
        ) from None


def refused(lowering: Calls, args: list[Value], node: ast.Call) -> CompileError:
    """The code asks for a refusal."""
    (reason,) = args
    assert isinstance(reason, Static)
    return lowering.refusal(node, reason.object)

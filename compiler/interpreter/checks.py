"""What checks mean, and `print`: exceptions of the program, with their line."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    IndexType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ad, array
from ..diagnostics import line_of
from .frame import Frame
from .memory import Memref


def python_value(value: Any, type_: Attribute) -> Any:
    """A value as an exception's message or a `print` shows it."""
    if isinstance(value, Memref):
        return value.read()
    if isinstance(type_, IndexType):
        return int(value)
    if value.dtype.kind == "b":
        return bool(value)
    return float(value) if value.dtype == np.float64 else value


def shown(frame: Frame, values: Sequence[SSAValue]) -> list[Any]:
    return [python_value(frame.get(v), v.type) for v in values]


def raise_at(frame: Frame, op: Operation, kind: str, message: str, values: list[Any]) -> None:
    raised = frame.machine.host.exception(kind, message, values)
    if (place := line_of(op)) is not None:
        file, line, column = place
        text = linecache.getline(file, line).strip()
        raised.add_note(f"{file}:{line}:{column}: {text}")
    raise raised


def index(frame: Frame, op: array.IndexOp) -> None:
    given, extent = int(frame.get(op.index)), int(frame.get(op.extent))
    sign = op.sign.data
    found = given + extent if sign == "negative" or (sign == "any" and given < 0) else given
    if not 0 <= found < extent and op.unchecked is None:
        if op.message is not None:
            raise_at(frame, op, "IndexError", op.message.data, [])
        axis = op.axis.value.data
        message = f"index {{}} is out of bounds for axis {axis} with size {{}}"
        raise_at(frame, op, "IndexError", message, [given, extent])
    frame.values[op.result] = np.int64(found)


def raise_if(frame: Frame, op: array.RaiseIfOp) -> None:
    if frame.get(op.condition):
        values = shown(frame, op.operands_shown)
        raise_at(frame, op, op.exception.data, op.message.data, values)


class Retry(Exception):
    """A gradient without guards is not exact: the caller is to run that with guards."""


def retry_if(frame: Frame, op: ad.RetryIfOp) -> None:
    if frame.get(op.condition):
        raise Retry("0 times a value that is not finite: compile with guards=True")


EXACT: dict[type[Operation], tuple[str, Callable[[int, int], int]]] = {
    array.CheckedAddOp: ("+", lambda a, b: a + b),
    array.CheckedSubOp: ("-", lambda a, b: a - b),
    array.CheckedMulOp: ("*", lambda a, b: a * b),
}


def checked(frame: Frame, op: array.CheckedIntOp) -> None:
    sign, compute = EXACT[type(op)]
    a, b = int(frame.get(op.lhs)), int(frame.get(op.rhs))
    found = compute(a, b)
    if not -(2**63) <= found < 2**63:
        message = f"{{}} {sign} {{}} does not fit in 64 bits"
        raise_at(frame, op, "OverflowError", message, [a, b])
    frame.values[op.result] = np.int64(found)


def print_values(frame: Frame, op: array.PrintOp) -> None:
    if op.leaves is None:
        frame.machine.host.show(op.format.data, shown(frame, op.values))

"""Activations of functions: the values so far, and what runs one op.

What a program asks of the world around it (exceptions, `print`, functions in C) the `Host` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects import ad, foreign
from ..diagnostics import line_of
from .memory import Memref, Tape, Undefined, dtype_of
from .races import Watch
from .scalars import SCALARS


class Unknown(Exception):
    """What the program asks for is nowhere in the IR: a Python function, an op of another dialect."""


class Host(Protocol):
    """The world around a program."""

    def exception(self, name: str, message: str, shown: list[Any]) -> BaseException:
        """The exception of this class, its message filled."""
        ...

    def show(self, form: str, shown: list[Any]) -> None:
        """`print`."""
        ...

    def call(self, op: foreign.CallOp, values: list[Any]) -> Any:
        """Call a function that is not in the IR; its result, if it has one."""
        ...


class Machine:
    """Runs functions of one module."""

    def __init__(self, module: ModuleOp, host: Host, ops: Ops, steps: int | None = None) -> None:
        self.module = module
        self.host = host
        self.ops = ops
        self.left = steps
        self.functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
        self.records: list[list[Any]] = []
        """What activations have kept for their adjoints; a record is a number from 1 on."""
        self.derived: dict[ad.DerivativeOp, Any] = {}

    def call(self, function: func.FuncOp, arguments: Sequence[Any], depth: int) -> list[Any]:
        """What a function returns."""
        frame = Frame(self, depth)
        block = function.body.block
        frame.bind(block.args, arguments)
        return frame.run(block)

    def function(self, name: str) -> func.FuncOp:
        if name not in self.functions:
            raise Unknown(f"there is no function @{name}")
        return self.functions[name]

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Undefined("it takes too many steps")


@dataclass
class Frame:
    """One activation of a function: the values that its ops have made."""

    machine: Machine
    depth: int
    """How many calls may still be nested."""
    values: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    watch: Watch | None = None
    """Looks at what a thread of a device touches, where this is one."""

    def get(self, value: SSAValue) -> Any:
        return self.values[value]

    def all(self, values: Sequence[SSAValue]) -> list[Any]:
        return [self.values[v] for v in values]

    def bind(self, names: Sequence[SSAValue], values: Sequence[Any]) -> None:
        self.values.update(zip(names, values, strict=True))

    def run(self, block: Block) -> list[Any]:
        """Run a block; the operands of its terminator."""
        last = block.last_op
        for op in block.ops:
            if op is last and op.has_trait(IsTerminator):
                return self.all(op.operands)
            self.execute(op)
        return []

    def execute(self, op: Operation) -> None:
        """Run one op; what goes wrong in it is said of it."""
        self.machine.step()
        rule = SCALARS.get(type(op))
        try:
            if rule is not None:
                self.values[op.results[0]] = rule(op, *self.all(op.operands))
            elif (run := self.machine.ops.get(type(op))) is not None:
                run(self, op)
            else:
                raise Unknown("no op that the interpreter knows")
        except (Undefined, Unknown) as error:
            if not hasattr(error, "op"):
                error.op = op  # pyright: ignore[reportAttributeAccessIssue]
                error.args = (f"{said(op)}: {error}",)
            raise


def said(op: Operation) -> str:
    """An op, with its line where it has one."""
    place = line_of(op)
    results = ", ".join(f"%{r.name_hint or '?'}" for r in op.results)
    shown = f"{results} = {op.name}" if results else op.name
    return shown if place is None else f"{place[0]}:{place[1]}: {shown}"


Ops = Mapping[type[Operation], Callable[[Frame, Any], None]]
"""What each op does that is no pure scalar code."""


def number(value: Any, type_: Attribute) -> Any:
    """A number, or several, in the type that the IR has."""
    if isinstance(value, Tape | Memref) or value is None:
        return value
    if isinstance(type_, MemRefType):
        return value
    if not isinstance(type_, IndexType | IntegerType | VectorType) and not hasattr(
        type_, "bitwidth"
    ):
        return value
    return np.asarray(value).astype(dtype_of(type_))[()]

"""Code that is being emitted: what the two sweeps have in common."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue

from ..rules.table import Scalars


class Emission:
    """Emits a function made of `function`, op by op, into `entry` and the blocks inside."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.entry = Block()
        self.block = self.entry
        """The current place is its end."""
        self.location = function.location
        """Where the op is that is being swept."""
        self.scalars = Scalars(self.append)

    def append(self, op: Operation) -> None:
        """Put an op at the current place, located where the op is that is being swept."""
        op.location = self.location
        self.block.add_op(op)

    def insert(self, op: Operation) -> None:
        """Put an op at the current place that knows where it comes from."""
        self.block.add_op(op)

    def emit(self, op: Operation) -> SSAValue:
        """Put an op at the current place; its first result."""
        self.append(op)
        return op.results[0]

    @contextmanager
    def at(self, block: Block) -> Generator[None]:
        """For a while the current place is the end of `block`."""
        outer, self.block = self.block, block
        yield
        self.block = outer

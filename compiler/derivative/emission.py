"""Code that is being emitted: what the two sweeps have in common."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects import func
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad
from ..diagnostics import WithoutLanes, refusal
from ..rules.table import Scalars
from .sanitizer_marks import is_watched


class Emission:
    """Emits a function made of `function`, op by op, into `entry` and the blocks inside."""

    def __init__(self, function: func.FuncOp, lanes: int = 1) -> None:
        self.function = function
        self.lanes = lanes
        """How many derivatives each value has, in one vector."""
        self.watched = is_watched(function)
        if self.watched and lanes > 1:
            way_out = "take them one at a time"
            text = "with `MUTAD_SANITIZE=grad` several derivatives do not go along at once"
            raise refusal(function, text, way_out, WithoutLanes)
        self.entry = Block()
        self.block = self.entry
        """The current place is its end."""
        self.location = function.location
        """Where the op is that is being swept."""
        self.scalars = Scalars(self.append)

    def wide(self, primal: Attribute) -> Attribute:
        """The type of the derivatives of a value, or of memory: its own, or of vectors of them."""
        return ad.wide(primal, self.lanes)

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

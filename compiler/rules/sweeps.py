"""What a rule may ask of the sweep that it emits code into.

Rules are written against these protocols, not against the sweeps: they know neither plans nor tapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, overload

from xdsl.dialects import func, scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from .access import Activity, Contents
from .table import Scalars

PRIMAL, SHADOW = "primal", "shadow"


class Sweep(Protocol):
    """What both sweeps are: code that is being emitted into `entry`, of `function`."""

    @property
    def function(self) -> func.FuncOp: ...
    @property
    def activity(self) -> Activity: ...
    @property
    def entry(self) -> Block: ...
    @property
    def block(self) -> Block:
        """The current place is its end."""
        ...

    @property
    def scalars(self) -> Scalars:
        """Emits scalar code at the sweep's current place."""
        ...

    @property
    def lanes(self) -> int:
        """How many derivatives each value has, in one vector."""
        ...

    def wide(self, primal: Attribute, /) -> Attribute:
        """The type of the derivative of a value: its own, or of several derivatives at once."""
        ...

    def at(self, block: Block, /) -> AbstractContextManager[None]:
        """For a while the current place is the end of `block`."""
        ...

    def append(self, op: Operation, /) -> None:
        """Put an op at the current place, located where the op is that is being swept."""
        ...

    def insert(self, op: Operation, /) -> None:
        """Put an op at the current place, with the location that it has."""
        ...

    def emit(self, op: Operation, /) -> SSAValue:
        """Put an op at the current place; its first result."""
        ...


class Primal(Protocol):
    """Primal values and memory as a reverse sweep has them again."""

    def get(self, value: SSAValue, /) -> SSAValue: ...
    def memref(self, value: SSAValue, kind: str, /) -> SSAValue:
        """A memref itself (`PRIMAL`, what it holds when the reverse sweep comes by) or its `SHADOW`."""
        ...

    def contents(self, read: Contents | BlockArgument, source: SSAValue, /) -> SSAValue:
        """A memref that holds what was read of `source`."""
        ...

    def extent(self, source: SSAValue, axis: int, block: Block, /) -> SSAValue: ...


class MapAdjoint(Protocol):
    """An adjoint map under construction, over the points of a primal map."""

    @property
    def scalars(self) -> Scalars: ...
    def get(self, value: SSAValue, /) -> SSAValue:
        """A primal value of the body."""
        ...

    def read(self, source: SSAValue, /) -> SSAValue:
        """One element of an array at the current point."""
        ...

    def write(self, out: SSAValue, kind: str, value: SSAValue, /) -> None: ...
    def add(self, value: SSAValue, contribution: SSAValue, /) -> None:
        """Add to the cotangent of a value of the body."""
        ...

    def propagate(self) -> None:
        """Reverse the body, and hand the cotangents of what came from outside on."""
        ...

    def finish(self) -> None: ...
    def emit(self) -> None:
        """The whole adjoint of a map that stores or adds."""
        ...


class ReverseSweep(Sweep, Protocol):
    """The sweep that emits adjoints, last op first."""

    @property
    def primal(self) -> Primal: ...
    def take_bar(self, value: SSAValue, /) -> SSAValue | None:
        """The complete cotangent of a scalar, where its definition is reversed; None for 0."""
        ...

    def add_bar(self, value: SSAValue, contribution: SSAValue, /) -> None: ...
    def map_adjoint(self, op: array.MapOp, /) -> MapAdjoint: ...
    def reverse_loop(self, op: array.LoopOp, /) -> None: ...
    def reverse_branches(self, op: scf.IfOp, /) -> None: ...


class TangentSweep(Sweep, Protocol):
    """The sweep that emits each op with its tangent, in the program's order."""

    def clone(self, op: Operation, /) -> Operation:
        """The op itself, without its regions; its results are what `value` then finds."""
        ...

    def value(self, value: SSAValue, /) -> SSAValue:
        """A scalar or memref of the function in the code that is emitted."""
        ...

    def values(self, values: Sequence[SSAValue], /) -> list[SSAValue]: ...
    @overload
    def dot(self, value: SSAValue, /) -> SSAValue | None: ...
    @overload
    def dot(self, value: SSAValue, /, *, zero: bool) -> SSAValue: ...
    def set_dot(self, value: SSAValue, dot: SSAValue | None, /) -> None: ...
    def clone_dot(self, op: Operation, operands: Mapping[SSAValue, SSAValue], /) -> SSAValue:
        """The op that makes memory once more, for tangents."""
        ...

    def bind(self, old: SSAValue, fresh: SSAValue, /) -> None:
        """From here on `old` is `fresh`."""
        ...

    def run(self, source: Block, target: Block, end: Callable[[Operation], None], /) -> None:
        """The ops of `source` with their tangents into `target`; `end` emits the terminator."""
        ...


def bind_with_tangents(
    sweep: TangentSweep,
    old: Sequence[SSAValue],
    fresh: Sequence[SSAValue],
    moving: Sequence[SSAValue],
) -> None:
    """From here on `old` are the first of `fresh`; the others are the tangents of those that are `moving`."""
    for one, now in zip(old, fresh, strict=False):
        sweep.bind(one, now)
    for one, dot in zip(moving, fresh[len(old) :], strict=True):
        sweep.set_dot(one, dot)

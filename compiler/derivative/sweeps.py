"""What the helpers of the reverse sweep may ask of it, and of the primal values that it recovers.

The rules ask less (`compiler.rules.sweeps`). These protocols also know the plan, and in which block of the
reverse sweep a value is recovered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from ..rules import sweeps
from .available_values import Known
from .forward_sweep import ForwardSweep
from .plan import Plan, Save
from .prologues import Prologues
from .versions import Version


class Primal(sweeps.Primal, Protocol):
    """Primal values and memory as the reverse sweep has them again."""

    @property
    def plan(self) -> Plan: ...
    @property
    def alias(self) -> AliasAnalysis: ...
    @property
    def forward(self) -> ForwardSweep: ...
    @property
    def lanes(self) -> int:
        """How many cotangents each value has, in one vector."""
        ...

    @property
    def top(self) -> Block:
        """The outermost block of the primal, whose values the reverse sweep still sees."""
        ...

    @property
    def prologues(self) -> Prologues: ...
    @property
    def known(self) -> Known: ...
    @property
    def induction(self) -> dict[array.LoopOp, SSAValue]:
        """The counters of the loops around the current place, as the reverse sweep counts."""
        ...

    def is_open(self, block: Block, /) -> bool:
        """Whether it is the reverse of `block` that is being written, not a branch chosen again."""
        ...

    def at_place(self, primal: Block, reverse: Block, /) -> AbstractContextManager[None]: ...
    def early(self, value: SSAValue, primal: Block, /) -> SSAValue: ...
    def compute(
        self, op: Operation, block: Block, get: Callable[[SSAValue], SSAValue], /
    ) -> SSAValue: ...
    def either(
        self, op: scf.IfOp, found: Callable[[int, Block], list[SSAValue]], /
    ) -> Sequence[SSAValue]: ...
    def copy_of(self, version: Version, /) -> SSAValue: ...
    def segment(self, save: Save, /) -> SSAValue: ...
    def slot(self, save: Save, block: Block, /) -> SSAValue: ...


class Sweep(sweeps.Sweep, Protocol):
    """The reverse sweep, as those see it who emit a part of it."""

    @property
    def primal(self) -> Primal: ...
    def bar_cell(self, value: SSAValue, /) -> SSAValue: ...

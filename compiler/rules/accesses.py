"""What a rule says of an op: which memory it touches, which primal values its adjoint reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from xdsl.ir import Operation, SSAValue

AccessKind = Literal["read", "write"]


@dataclass(frozen=True)
class Access:
    """One way in which an op touches one of its memrefs.

    `must`: whenever the op runs, every element of the footprint is touched.
    `whole`: all elements of the memref are meant, whatever the op itself touches.
    """

    op: Operation
    memref: SSAValue
    kind: AccessKind
    must: bool = True
    whole: bool = False


@dataclass(frozen=True)
class Contents:
    """What the memref operand `index` of `op` holds just before `op` (or just after it)."""

    op: Operation
    index: int
    after: bool = False

    @property
    def memref(self) -> SSAValue:
        return self.op.operands[self.index]


Need = SSAValue | Contents
Flow = tuple[SSAValue, SSAValue]


class Activity(Protocol):
    """Which values and memories carry a derivative."""

    def active(self, value: SSAValue, /) -> bool: ...
    def may_alias(self, a: SSAValue, b: SSAValue, /) -> bool:
        """Whether two memrefs may share an element."""
        ...

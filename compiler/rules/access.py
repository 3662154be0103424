"""What a rule says of an op: which memory it touches, which primal values its adjoint reads.

Both are tuples, which are made and hashed fast: every analysis makes an access of each load and store.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from xdsl.ir import Operation, SSAValue

AccessKind = Literal["read", "write"]


class Access(NamedTuple):
    """One way in which an op touches one of its memrefs.

    `must`: whenever the op runs, every element of the footprint is touched.
    `whole`: all elements of the memref are meant, whatever the op itself touches.
    """

    op: Operation
    memref: SSAValue
    kind: AccessKind
    must: bool = True
    whole: bool = False


class Contents(NamedTuple):
    """What the memref operand `at` of `op` holds just before `op` (or just after it)."""

    op: Operation
    at: int
    after: bool = False

    @property
    def memref(self) -> SSAValue:
        return self.op.operands[self.at]


Need = SSAValue | Contents
Flow = tuple[SSAValue, SSAValue]


class Activity(Protocol):
    """Which values and memories carry a derivative."""

    def active(self, value: SSAValue, /) -> bool: ...
    def may_alias(self, a: SSAValue, b: SSAValue, /) -> bool:
        """Whether two memrefs may share an element."""
        ...

"""The ops of a block that touch memory, found by root: most ops of a block touch none of one array."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import merge

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.views import is_memref
from .memory_effects import MemoryEffects

NAMES = (
    array.ViewOp, array.CollapseOp, array.StrideOp, array.LoopOp, memref.CastOp, memref.DimOp
)  # fmt: skip
"""Ops that touch no element of their memrefs themselves; what is in a loop is looked at by itself."""


class Touches:
    """The ops of a block that touch memory, found by root."""

    def __init__(self, block: Block, alias: AliasAnalysis, effects: MemoryEffects) -> None:
        self.alias = alias
        self.places: dict[Operation, int] = {op: k for k, op in enumerate(block.ops)}
        self.ops = list(self.places)
        self.anywhere: list[int] = []
        """The places of those that may touch any memory."""
        self.by_root: dict[SSAValue, list[int]] = {}
        for k, op in enumerate(self.ops):
            if effects.of(op).opaque:
                self.anywhere.append(k)
                continue
            for root in {root for value in touched_by(op) for root in alias.roots(value)}:
                self.by_root.setdefault(root, []).append(k)

    def back_from(self, op: Operation, memory: SSAValue) -> Iterator[Operation]:
        """The ops that may touch the memory, from `op` back to the beginning of the block."""
        end = self.places[op] + 1
        for k in merge(*(downwards(some, end) for some in self.near(memory)), reverse=True):
            if self.ops[k].parent is not None:  # it was not erased
                yield self.ops[k]

    def behind(self, place: int, memory: SSAValue) -> Iterator[Operation]:
        """The ops behind a place that may touch the memory, in order."""
        before = place
        for k in merge(*(upwards(some, place + 1) for some in self.near(memory))):
            if k != before and self.ops[k].parent is not None:
                yield self.ops[k]
            before = k

    def near(self, memory: SSAValue) -> list[list[int]]:
        """The places of ops that may touch the memory, by root."""
        roots = {r for root in self.alias.roots(memory) for r in self.alias.interfering(root)}
        return [self.anywhere, *(self.by_root[r] for r in roots if r in self.by_root)]

    def put_in_place(self, op: Operation, made: Operation) -> None:
        """Note that an op has taken the place of another."""
        self.places[made] = self.places[op]
        self.ops[self.places[op]] = made


def downwards(places: Sequence[int], end: int) -> Iterator[int]:
    """Those before the end, the last first."""
    for k in reversed(range(bisect_left(places, end))):
        yield places[k]


def upwards(places: Sequence[int], first: int) -> Iterator[int]:
    """Those from the first on."""
    for k in range(bisect_left(places, first), len(places)):
        yield places[k]


def touched_by(op: Operation) -> Iterator[SSAValue]:
    """The memrefs of which the op, or one inside, may read or write an element."""
    for inner in every_op(op):
        if not isinstance(inner, NAMES) and not is_end_of_loop(inner):
            yield from filter(is_memref, inner.operands)


def is_end_of_loop(op: Operation) -> bool:
    return isinstance(op, array.YieldOp) and isinstance(op.parent_op(), array.LoopOp)

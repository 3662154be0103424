"""Which rebindings by copy the program could tell from real ones, asked when the function is built.

In `rebinding` a name that a loop rebinds to new arrays is a buffer, which begins as a copy of the array that
the name was before the loop. That is that array itself, in Python, until the name is rebound: so nobody may
write to one of the two and look at the other. Of variables that take each other's arrays, each may be what
any of them was; of loops in loops, the inner one's array may be that from before the outer one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.ir import Operation, Region, SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..library import overlap
from .roots import accesses, branches_to, is_made_in, roots, writes

if TYPE_CHECKING:
    from ..context import Rebinding

Roots = frozenset[SSAValue]


@dataclass(frozen=True)
class Later:
    """What follows some op, or runs again around it: the memory written, and the memory looked at."""

    written: Sequence[Roots]
    seen: Roots


class Visibility:
    """Asked about the rebindings of one function. `order` numbers its ops."""

    def __init__(
        self, e: Emitter, rebindings: Sequence[Rebinding], order: Mapping[Operation, int]
    ) -> None:
        self.e = e
        self.rebindings = rebindings
        self.order = order
        self.own = {copy for r in rebindings for copy in r.copies}
        self._later: dict[Operation, Later] = {}

    @cached_property
    def by_buffer(self) -> dict[SSAValue, Rebinding]:
        return {self.e.now(r.buffer): r for r in self.rebindings}

    @cached_property
    def initials(self) -> dict[SSAValue, Roots]:
        return {buffer: roots(self.e, r.initial) for buffer, r in self.by_buffer.items()}

    def is_visible(self, r: Rebinding) -> bool:
        """True where the program could tell."""
        if r.start not in self.order:
            return False
        buffer = roots(self.e, r.buffer) | roots(self.e, r.after or r.buffer)
        initial, twins = self.real_memory(r)
        for root in initial:
            later = self.later(outermost(r.start, frozenset([root])))
            writes_root = any(self.touch(root, found) for found in later.written)
            if not writes_root and not any(buffer & found for found in later.written):
                continue
            private = isinstance(root.owner, array.AllocOp)
            if not private or (twins | {root}) & later.seen:
                return True
        return False

    def real_memory(self, r: Rebinding) -> tuple[Roots, Roots]:
        """The memory from before the loop that the variable may really be, and the buffers of others that may
        really be the same: not by way of this one."""
        initial, own = self.traced(self.e.now(r.buffer), frozenset())
        others = self.by_buffer.keys() - own
        twins = {b for b in others if initial & self.traced(b, own)[0]}
        return initial, frozenset(twins)

    def traced(self, buffer: SSAValue, without: Roots) -> tuple[Roots, Roots]:
        """What a buffer may begin as a copy of, and the buffers on the way: those that it takes over in its
        loop, those of loops around."""
        found, pending = {buffer}, [buffer]
        while pending:
            one = self.by_buffer[pending.pop()]
            taken = {self.e.now(b) for b in one.sources} & self.by_buffer.keys()
            taken = {b for b in taken if self.by_buffer[b].loop is one.loop}
            initial = self.initials[self.e.now(one.buffer)] & self.by_buffer.keys()
            others = (taken | initial) - found - without
            found |= others
            pending += others
        return frozenset[SSAValue]().union(*(self.initials[b] for b in found)), frozenset(found)

    def later(self, begins: Operation) -> Later:
        if begins not in self._later:
            taken = branches_to(begins)
            ops = [
                op
                for op, k in self.order.items()
                if k >= self.order[begins] and op not in self.own and is_reached(op, taken)
            ]
            written = [roots(self.e, w, taken) for op in ops for w in writes(op)]
            seen = {root for op in ops for m in accesses(op) for root in roots(self.e, m, taken)}
            self._later[begins] = Later(written, frozenset(seen))
        return self._later[begins]

    def touch(self, root: SSAValue, others: Roots) -> bool:
        return any(not overlap.distinct_roots(self.e, root, other) for other in others)


def outermost(op: Operation, initial: Roots) -> Operation:
    """The op, or the outermost loop around it that runs again while `initial` lives on."""
    found = op
    above = op.parent_op()
    while above is not None:
        if isinstance(above, array.LoopOp):
            body = above.body.block
            if not all(is_made_in(r, body) for r in initial):
                found = above
        above = above.parent_op()
    return found


def is_reached(op: Operation, taken: Mapping[Operation, Region]) -> bool:
    """False for an op that is on another side of a branch than the one that was taken."""
    return not taken or all(taken.get(b, side) is side for b, side in branches_to(op).items())

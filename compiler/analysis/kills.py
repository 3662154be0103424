"""Which store destroys a value that the adjoint still wants to read.

The adjoint runs after the whole function, so a value in memory survives to it only if no store that
executes later, *in any later iteration of any loop around it*, may overwrite it::

    array.loop %i to %n do {
      %x = memref.load %u[%i1]        // %i1 = %i + 1: killed by the store, one iteration later
      %y = arith.mulf %x, %x : f64
      memref.store %y, %u[%i]
    }

What an access touches is killed by the store that comes first in execution order: later in the same
iteration, then in later iterations of the innermost loop, then outwards. Memory allocated
in a loop is released at the end of the iteration, memory allocated in a branch at the end of the branch:
the terminator kills what is left.

A branch that always raises (`array.RAISES`) kills nothing: no adjoint runs after it. Nor does a store to
elements that were never touched (`array.FRESH`).

Not handled: stores that write back the same value, and values restored later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from xdsl.dialects import func, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import ad, array
from ..rules import Access
from .alias import AliasAnalysis
from .dependence import Dependence
from .memory_ssa import MemorySSA


class Kills:
    """The killer of each access of one function."""

    def __init__(
        self,
        function: func.FuncOp,
        alias: AliasAnalysis | None = None,
        ssa: MemorySSA | None = None,
    ) -> None:
        self.function = function
        self.alias = alias or AliasAnalysis(function)
        self.ssa = ssa or MemorySSA(function, self.alias)
        self.dependence: Dependence = self.ssa.dependence
        self._known: dict[tuple[Operation, SSAValue, str, bool], Operation | None] = {}

    def killer(self, access: Access) -> Operation | None:
        """The first op, later in execution than `access`, that may overwrite what it touches."""
        return self._find(access, itself=access.kind == "read")

    def killer_of(self, memref: SSAValue, after: Operation) -> Operation | None:
        """The first op, later in execution than `after`, that may overwrite any element of `memref`."""
        return self._find(Access(after, memref, "read", whole=True), itself=False)

    def later_writes(self, access: Access) -> Iterator[tuple[Access, array.LoopOp | None]]:
        """Every later write that may overwrite what `access` touches, nearest first.

        With each the level at which it may: None in the same iteration of the loops around both,
        else in a later iteration of this loop.
        """
        itself = access.kind == "read"
        candidates, places = self.ssa.writes_to(access.memref)
        for k in range(bisect_left(places, self.ssa.order[access.op]), len(candidates)):
            write = candidates[k]
            if self._comes_later(access, write, itself) and self._meets(access, write, None):
                yield write, None
        for scope in reversed(self.dependence.loops(access.op.parent)):
            for k in self.ssa.inside(scope, places):
                if self._meets(access, candidates[k], scope):
                    yield candidates[k], scope

    def runs_after(self, write: Access, access: Access) -> bool:
        """Within one iteration of all loops around both, the write runs after the access."""
        return self._comes_later(access, write, access.kind == "read")

    def outlives_the_primal(self, access: Access) -> bool:
        """What `access` touches and no store overwrites is there when the adjoint asks for it."""
        scopes = (*self.dependence.loops(access.op.parent), None)
        return all(self._release(access, scope) is None for scope in scopes)

    def _find(self, access: Access, *, itself: bool) -> Operation | None:
        key = (access.op, access.memref, access.kind, access.whole)
        if key not in self._known:
            self._known[key] = self._compute(access, itself)
        return self._known[key]

    def _compute(self, access: Access, itself: bool) -> Operation | None:
        candidates, places = self.ssa.writes_to(access.memref)
        begin = bisect_left(places, self.ssa.order[access.op])
        for scope in (*reversed(self.dependence.loops(access.op.parent)), None):
            within = range(len(places)) if scope is None else self.ssa.inside(scope, places)
            for k in range(begin, within.stop):
                write = candidates[k]
                if self._comes_later(access, write, itself) and self._meets(access, write, None):
                    return write.op
            begin = within.stop
            if (end := self._release(access, scope)) is not None:
                return end
            for k in within if scope is not None else ():
                if self._meets(access, candidates[k], scope):
                    return candidates[k].op
        return None

    def _meets(self, access: Access, write: Access, level: array.LoopOp | None) -> bool:
        """The write may touch what is accessed. What the caller does is not asked of subscripts.

        Else an access that provably never runs would survive here, and in the reverse sweep, where less
        is known of counters and conditions, it would seem to read what the caller may have changed.
        """
        if isinstance(write.op, ad.HandoverOp):
            return True
        return not is_fresh(write) and self.dependence.may_meet(access, write, level)

    def _comes_later(self, access: Access, write: Access, itself: bool) -> bool:
        """Within one iteration of all loops around both, the write runs after the access."""
        if write.op is access.op:
            # An op reads before it writes; of several outputs, any other may be written later.
            return itself or (access.kind == "write" and write.memref is not access.memref)
        if self.ssa.order[write.op] < self.ssa.order[access.op]:
            return False
        if access.op.regions and access.op.is_ancestor(write.op):
            return False
        return not exclusive(access.op, write.op)

    def _release(self, access: Access, scope: array.LoopOp | None) -> Operation | None:
        """The end of the iteration of `scope`, if the memory of `access` is released there.

        Without a loop, the end of the branch: the reverse sweep does not see what a branch allocates.
        """
        for root in self.alias.roots(access.memref):
            owner = root.owner
            if not isinstance(owner, Operation) or owner.parent is self.function.body.block:
                continue
            loops = self.dependence.loops(owner.parent)
            if (loops[-1] if loops else None) is scope:
                return block_within(owner, scope or self.function).last_op
        return None


def block_within(op: Operation, outer: Operation) -> Block:
    """The block of `outer` that contains `op`; of a function, the outermost branch."""
    block = op.parent
    while block is not None and (parent := block.parent_op()) is not outer:
        assert parent is not None
        if isinstance(outer, func.FuncOp) and parent.parent_op() is outer:
            break
        block = parent.parent
    assert block is not None
    return block


def is_fresh(write: Access) -> bool:
    """True for a store to elements that were never touched before."""
    if array.FRESH in write.op.attributes:
        return True
    owner = write.memref.owner
    while isinstance(owner, array.AnyView | memref.CastOp):
        if array.FRESH in owner.attributes:
            return True
        owner = owner.source.owner
    return False


def exclusive(a: Operation, b: Operation) -> bool:
    """True when the ops stand in different branches of one `scf.if`."""
    branches: dict[Operation, Block] = {}
    op: Operation | None = a
    while op is not None:
        block, parent = op.parent, op.parent_op()
        if isinstance(parent, scf.IfOp) and block is not None:
            branches[parent] = block
        op = parent
    op = b
    while op is not None:
        block, parent = op.parent, op.parent_op()
        if parent is not None and parent in branches:
            return branches[parent] is not block
        op = parent
    return False

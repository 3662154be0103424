"""Which write a read sees: LLVM's MemorySSA on structured regions.

All of memory is one variable. Each op that may write is a MemoryDef of it, each op that only reads a
MemoryUse, each loop header and branch join that a write reaches a MemoryPhi, and what the caller
passed in is liveOnEntry. Printed as LLVM does it::

    memref.store %x, %a[%i]          // 1 = MemoryDef(liveOnEntry)
    array.loop %i to %n do {         // 2 = MemoryPhi(1, 3)
      %y = memref.load %a[%i]        // MemoryUse(2)
      memref.store %y, %b[%i]        // 3 = MemoryDef(2)
    }

The chain says nothing about which memory; `clobber` walks it with footprints and dependence tests,
and `version` answers for one base at a time.

A branch that always raises (`array.RAISES`) has its own chain and none of its writes is seen outside.

The value of a loop's MemoryPhi after the loop is the phi itself, as in LLVM. `version` tells
the two apart, because the contents differ.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..rules import Access, accesses, writes
from .alias import ROOT_OPS, AliasAnalysis, if_blocks
from .dependence import Dependence


@dataclass(eq=False)
class LiveOnEntry:
    """Memory as the caller left it."""

    def __str__(self) -> str:
        return "liveOnEntry"


@dataclass(eq=False)
class MemoryDef:
    """An op that may write memory, which was `before`."""

    op: Operation
    before: MemoryAccess
    number: int

    def __str__(self) -> str:
        return f"{self.number} = MemoryDef({label(self.before)})"


@dataclass(eq=False)
class MemoryUse:
    """An op that reads memory and writes none."""

    op: Operation
    before: MemoryAccess

    def __str__(self) -> str:
        return f"MemoryUse({label(self.before)})"


@dataclass(eq=False)
class MemoryPhi:
    """Memory where several ways meet: at a loop's header (on entry, from the latch), or after an `scf.if`."""

    op: Operation
    number: int
    incoming: list[MemoryAccess] = field(default_factory=list["MemoryAccess"])

    def __str__(self) -> str:
        return f"{self.number} = MemoryPhi({', '.join(map(label, self.incoming))})"


MemoryAccess = LiveOnEntry | MemoryDef | MemoryPhi


def label(access: MemoryAccess) -> str:
    return "liveOnEntry" if isinstance(access, LiveOnEntry) else str(access.number)


class RootVersion(NamedTuple):
    """The contents of one root: as `op` left them, as they were on entry (None), or merged at `op`.

    "phi": at the header of loop `op`; "exit": after loop or branch `op`.
    """

    op: Operation | None
    place: Literal["entry", "after", "phi", "exit"]


class Version(NamedTuple):
    """The contents of a base at a point: equal versions of one moment are equal contents."""

    base: SSAValue
    roots: frozenset[tuple[SSAValue, RootVersion]]


class MemorySSA:
    """The memory accesses of one function."""

    def __init__(
        self,
        function: func.FuncOp,
        alias: AliasAnalysis | None = None,
        dependence: Dependence | None = None,
    ) -> None:
        self.function = function
        self.alias = alias or AliasAnalysis(function)
        self.dependence = dependence or Dependence(function, self.alias)
        self.live_on_entry = LiveOnEntry()
        self._defs: dict[Operation, MemoryDef] = {}
        self._uses: dict[Operation, MemoryUse] = {}
        self._phis: dict[Operation, MemoryPhi] = {}
        self._reaching: dict[Operation, MemoryAccess] = {}
        self._number = 0
        self.order: dict[Operation, int] = {}
        self._writes_of = {op: found for op in every_op(function) if (found := writes(op))}
        self._writing = with_ops_around(self._writes_of)
        self._number_ops(function)
        self._changes: dict[SSAValue, dict[Block, list[int]]] = {}
        self._changers: dict[SSAValue, dict[Block, list[Operation]]] = {}
        self._changes_of_several: dict[
            tuple[frozenset[SSAValue], Block], tuple[list[Operation], list[int]]
        ] = {}
        self._writes: dict[SSAValue, list[Access]] = {}
        self._writes_to: dict[frozenset[SSAValue], tuple[list[Access], list[int]]] = {}
        self._record_writes()
        self._record_changes(function)
        if function.body.blocks.first is not None:
            self._walk_block(function.body.blocks.first, self.live_on_entry)

    # The chain.

    def definition(self, op: Operation) -> MemoryDef | None:
        """The definition of memory that `op` is, if it may write."""
        return self._defs.get(op)

    def use(self, op: Operation) -> MemoryUse | None:
        """The use of memory that `op` is, if it only reads."""
        return self._uses.get(op)

    def phi(self, op: Operation) -> MemoryPhi | None:
        """The phi at the header of a loop, or after an `scf.if`, if writes reach it."""
        return self._phis.get(op)

    def reaching(self, op: Operation) -> MemoryAccess:
        """The nearest definition or phi of memory before `op`, an op that reads or writes."""
        return self._reaching[op]

    def _walk_block(self, block: Block, state: MemoryAccess) -> MemoryAccess:
        for op in block.ops:
            state = self._walk_op(op, state)
        return state

    def _walk_op(self, op: Operation, state: MemoryAccess) -> MemoryAccess:
        self._reaching[op] = state
        if isinstance(op, array.LoopOp):
            return self._walk_loop(op, state)
        if isinstance(op, scf.IfOp):
            return self._walk_if(op, state)
        touched = accesses(op)
        if any(a.kind == "write" for a in touched):
            state = self._defs[op] = MemoryDef(op, state, self._next())
        elif touched:
            self._uses[op] = MemoryUse(op, state)
        return state

    def _walk_loop(self, op: array.LoopOp, state: MemoryAccess) -> MemoryAccess:
        if op in self._writing:
            phi = self._phis[op] = MemoryPhi(op, self._next(), [state])
            state = phi
        header = state
        if op.condition_block is not None:
            state = self._walk_block(op.condition_block, state)
        after_condition = state
        state = self._walk_block(op.body.block, state)
        if op in self._phis:
            self._phis[op].incoming.append(state)
        if op.count is not None and after_condition is not header:
            # The count may end the loop before the condition is evaluated once more.
            return header
        return after_condition

    def _walk_if(self, op: scf.IfOp, state: MemoryAccess) -> MemoryAccess:
        ends = [self._walk_block(block, state) for block in if_blocks(op)]
        if array.RAISES in op.attributes:
            return state
        if len(ends) < 2:
            ends.append(state)
        if all(end is ends[0] for end in ends):
            return ends[0]
        phi = self._phis[op] = MemoryPhi(op, self._next(), ends)
        return phi

    def _next(self) -> int:
        self._number += 1
        return self._number

    # Clobbers.

    def clobber(self, access: Access) -> MemoryAccess:
        """The last definition that may have written what `access` touches, or the phi where several meet."""
        return self._walk_up(self._reaching[access.op], access)

    def _walk_up(
        self, state: MemoryAccess, access: Access, stop: MemoryAccess | None = None
    ) -> MemoryAccess:
        """From `state` upwards to the first access that matters, or to `stop`."""
        while state is not stop:
            if isinstance(state, LiveOnEntry):
                return state
            if isinstance(state, MemoryDef):
                if self._may_clobber(state.op, access, None):
                    return state
                state = state.before
            elif isinstance(state.op, array.LoopOp):
                loop = state.op
                inside = loop in self.dependence.loops(access.op.parent)
                level = loop if inside else None
                if any(self._may_clobber(op, access, level) for op in self._writers(loop)):
                    return state
                state = state.incoming[0]
            else:
                before = self._reaching[state.op]
                ends = [self._walk_up(end, access, before) for end in state.incoming]
                if any(end is not ends[0] for end in ends):
                    return state
                state = ends[0]
                if state is not before:
                    return state
        return state

    def _may_clobber(self, op: Operation, access: Access, level: array.LoopOp | None) -> bool:
        return any(
            self.alias.may_alias(write.memref, access.memref)
            and self.dependence.may_meet(write, access, level)
            for write in self._writes_of[op]
        )

    def _writers(self, loop: array.LoopOp) -> Iterator[Operation]:
        return (op for op in walk_normal(loop) if op in self._defs)

    # Versions.

    def version(self, memref: SSAValue, op: Operation) -> Version:
        """A token of the contents of the base of `memref` just before `op`."""
        base = self._origin(memref)
        return Version(
            base,
            frozenset((root, self.root_version(root, op)) for root in self.alias.roots(base)),
        )

    def version_block(self, memref: SSAValue, op: Operation) -> Block:
        """The outermost block around `op` where a copy of the base equals what `op` reads.

        The copy stands right before the op of that block that is or encloses `op`. The
        base is defined there, and no loop on the way writes it.
        """
        base = self._origin(memref)
        roots = self.alias.roots(base)
        owner = base.owner
        home = owner if isinstance(owner, Block) else owner.parent
        block = op.parent
        assert block is not None
        anchor = op
        while block is not home:
            parent = block.parent_op()
            outer = None if parent is None else parent.parent
            if parent is None or outer is None or parent is self.function:
                break
            if any(self._changed_before(root, anchor, block, parent) for root in roots):
                break
            anchor, block = parent, outer
        return block

    def unchanged_since(self, read: Access) -> Operation:
        """An op around or before a read, as far out and then as early as it can be proved: what is read has
        not changed since.

        So the contents of the whole base there serve the read, although the rest of it may change between.
        """
        base = self.alias.base(read.memref)
        home = base.owner if isinstance(base.owner, Block) else base.owner.parent
        roots = self.alias.roots(base)
        op = read.op
        while (block := op.parent) is not None:
            changes, places = self._changes_of(roots, block)
            at = bisect_left(places, self.order[op])
            for k in range(at - 1, -1, -1):
                if changes[k] is base.owner or self._clobbered_in(changes[k], read, None):
                    return changes[k + 1] if k + 1 < at else op
            since = changes[0] if at else op
            parent = block.parent_op()
            if block is home or parent is None or parent is self.function:
                return since
            if isinstance(parent, array.LoopOp):
                if parent.condition_block is not None and parent in self._writing:
                    return since
                if self._clobbered_in(parent, read, parent):
                    return since
            elif not isinstance(parent, scf.IfOp):
                return since
            op = parent
        return op

    def _changes_of(
        self, roots: frozenset[SSAValue], block: Block
    ) -> tuple[Sequence[Operation], Sequence[int]]:
        """The ops of a block that may change any of the roots, in order, with their numbers."""
        if len(roots) == 1:
            (root,) = roots
            return self.changes(root, block), self.places(root, block)
        found = self._changes_of_several.get((roots, block))
        if found is None:
            places = {self.order[c]: c for root in roots for c in self.changes(root, block)}
            numbers = sorted(places)
            found = [places[n] for n in numbers], numbers
            self._changes_of_several[roots, block] = found
        return found

    def _clobbered_in(self, op: Operation, read: Access, level: array.LoopOp | None) -> bool:
        """An op, or what is in it, may have written what is read: later in the same block, or in a later
        iteration of `level`."""
        found, places = self.writes_to(read.memref)
        return any(self.dependence.may_meet(found[k], read, level) for k in self.inside(op, places))

    # All writes.

    def writes_to(self, memref: SSAValue) -> tuple[Sequence[Access], Sequence[int]]:
        """All writes to memory that may be that of `memref`, in program order, with their ops' numbers."""
        roots = self.alias.roots(memref)
        found = self._writes_to.get(roots)
        if found is None:
            of_any = {w: None for root in roots for w in self._writes.get(root, ())}
            writes = sorted(of_any, key=lambda write: self.order[write.op])
            found = self._writes_to[roots] = writes, [self.order[w.op] for w in writes]
        return found

    def inside(self, op: Operation, places: Sequence[int]) -> range:
        """Which of these numbers, in order, are those of an op and of what is in it."""
        first = bisect_left(places, self.order[op])
        return range(first, bisect_right(places, self.order[last_within(op)], first))

    def _record_writes(self) -> None:
        for op in walk_normal(self.function):
            for write in self._writes_of.get(op, ()):
                for root in self._touched(write):
                    self._writes.setdefault(root, []).append(write)

    def _touched(self, write: Access) -> set[SSAValue]:
        """The roots whose memory a write may change."""
        return {r for root in self.alias.roots(write.memref) for r in self.alias.interfering(root)}

    def _changed_before(
        self, root: SSAValue, anchor: Operation, block: Block, parent: Operation
    ) -> bool:
        """The root may differ between the start of `parent` and `anchor`, in its region `block`."""
        if isinstance(parent, array.LoopOp):
            return self._writes_root(parent, root)
        return self._last_change(root, anchor, block) is not None

    def _origin(self, memref: SSAValue) -> SSAValue:
        base = self.alias.base(memref)
        while (entered := self.alias.held(base)) is not base:
            base = self.alias.base(entered)
        return base

    def root_version(self, root: SSAValue, op: Operation) -> RootVersion:
        """The version of one root just before `op`."""
        while True:
            block = op.parent
            if block is None:
                return RootVersion(None, "entry")
            change = self._last_change(root, op, block)
            if change is not None:
                merged = isinstance(change, array.LoopOp | scf.IfOp)
                return RootVersion(change, "exit" if merged else "after")
            parent = block.parent_op()
            if parent is None or parent is self.function:
                return RootVersion(None, "entry")
            if isinstance(parent, array.LoopOp) and self._writes_root(parent, root):
                if block is parent.body.block and parent.condition_block is not None:
                    last = self._last_change(root, None, parent.condition_block)
                    if last is not None:
                        merged = isinstance(last, array.LoopOp | scf.IfOp)
                        return RootVersion(last, "exit" if merged else "after")
                return RootVersion(parent, "phi")
            op = parent

    def _writes_root(self, op: Operation, root: SSAValue) -> bool:
        assert op.parent is not None
        return bool(self.inside(op, self.places(root, op.parent)))

    def _last_change(
        self, root: SSAValue, before: Operation | None, block: Block
    ) -> Operation | None:
        """The last op of `block` before `before` that may change the root, itself or inside."""
        ops = self._changers.get(root, {}).get(block)
        if not ops:
            return None
        if before is None:
            return ops[-1]
        at = bisect_left(self._changes[root][block], self.order[before])
        return ops[at - 1] if at else None

    def changes(self, root: SSAValue, block: Block) -> Sequence[Operation]:
        """The ops of `block` that may change a root, themselves or inside, in order."""
        return self._changers.get(root, {}).get(block, ())

    def places(self, root: SSAValue, block: Block) -> Sequence[int]:
        """The numbers of these ops."""
        return self._changes.get(root, {}).get(block, ())

    def changes_back(self, root: SSAValue, last: Operation) -> Iterator[Operation]:
        """These ops of the block of one of them, from that one backwards."""
        assert last.parent is not None
        ops = self.changes(root, last.parent)
        at = bisect_left(self.places(root, last.parent), self.order[last])
        return (ops[k] for k in range(at, -1, -1))

    def _number_ops(self, function: func.FuncOp) -> None:
        for number, op in enumerate(every_op(function)):
            self.order[op] = number

    def _record_changes(self, function: func.FuncOp) -> None:
        """For each root and block, in order, the ops of that block that change it, themselves or inside."""
        for op in every_op(function):
            changed: set[SSAValue] = set()
            if isinstance(op, ROOT_OPS):
                changed.update(op.results)
            for write in self._writes_of.get(op, ()):
                changed |= self._touched(write)
            for root in changed:
                self._record_change(root, op)

    def _record_change(self, root: SSAValue, op: Operation) -> None:
        current: Operation | None = op
        while current is not None and current is not self.function:
            if array.RAISES in current.attributes:
                return
            block = current.parent
            if block is None:
                return
            ops = self._changers.setdefault(root, {}).setdefault(block, [])
            if ops and ops[-1] is current:
                return
            ops.append(current)
            self._changes.setdefault(root, {}).setdefault(block, []).append(self.order[current])
            current = current.parent_op()


def with_ops_around(writing: Iterable[Operation]) -> set[Operation]:
    """The ops that may write memory, themselves or inside."""
    found: set[Operation] = set()
    for op in writing:
        current: Operation | None = op
        while (
            current is not None and current not in found and array.RAISES not in current.attributes
        ):
            found.add(current)
            current = current.parent_op()
    return found


def last_within(op: Operation) -> Operation:
    """The last of an op and what is in it."""
    for region in reversed(op.regions):
        if region.last_block is not None and region.last_block.last_op is not None:
            return last_within(region.last_block.last_op)
    return op


def walk_normal(op: Operation) -> Iterator[Operation]:
    """`op` and what it contains, without the branches that always raise."""
    if array.RAISES in op.attributes:
        return
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from walk_normal(inner)

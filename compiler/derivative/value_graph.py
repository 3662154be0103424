"""What each needed value can be recovered from: the graph that the plan cuts.

A node is a scalar, the contents that an op reads of a memref, or the *version* of a whole array: five shifted
reads of one grid cost one grid, not five. A node is *free* if all that it is recovered from survives to the
reverse sweep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from xdsl.dialects import func, memref, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from ..analysis.kills import Kills
from ..analysis.memory_ssa import MemorySSA
from ..analysis.needed import Needed
from ..rules import Access, Contents, Need
from ..rules.descriptors import descriptor_values
from .equal_loads import twins
from .inversions import kept_operands
from .mirrored_contents import Mirror, Mirrors
from .neighbours import Neighbour, Neighbours, without_cycles
from .plan import How, Invert, Node, Reload, RollBack, Saved
from .prices import Prices, takes_long
from .refills import Refill, Refills
from .rollback import Rollbacks, Rolled, is_around
from .segments import is_recomputable, value_block
from .versions import Version, is_growable


class ValueGraph:
    """The values of one function that the adjoint asks for, and what they are had from."""

    def __init__(
        self,
        function: func.FuncOp,
        needed: Needed,
        *,
        trusting: bool,
        bytes_alone: bool = False,
        refused: Collection[Version] = (),
        sizes: dict[Need, Operation] | None = None,
    ) -> None:
        self.function = function
        self.needed = needed
        self.needs = needed.by | (sizes or {})
        """What adjoints read, and what the `sizes` of tapes are computed of."""
        self.alias = needed.activity.alias
        self.trusting = trusting
        """Whether what is said of memory is believed."""
        self.refused = refused
        """Contents that are not to be made again."""
        self.rollable: dict[Node, Rolled] = {}
        """Loads that may be rolled back; what they take is in the function before it is analysed."""
        if trusting:
            self.rollable |= {**Rollbacks(function, needed).found}
        self.ssa = MemorySSA(function, self.alias)
        self.kills = Kills(function, self.alias, self.ssa)
        self.prices = Prices(self.kills, bytes_alone=bytes_alone)
        self.refills = Refills(self.ssa)
        self.refill_of: dict[Version, Refill] = {}
        self.mirrors = Mirrors(self.kills)
        self.mirror_of: dict[Version, Mirror] = {}
        self.neighbours = Neighbours(self.kills)
        self.neighbours_of: dict[Version, list[Neighbour]] = {}
        self.handed_on: Mapping[Version, Neighbour] = {}
        """The variables that are had as neighbours."""
        self.again: dict[Node, tuple[Node, ...] | None] = {}
        """What a node can be computed from once more; None where it cannot."""
        self.free: dict[Node, bool] = {}
        self.found: dict[Node, How] = {}
        """How nodes are had of which more than their operands says so."""
        self.version_of: dict[Node, Version] = {}
        """Killed reads, and the contents of the whole array that serve them where they are not saved."""
        self.earlier_of: dict[Node, Version] = {}
        """Killed reads, and earlier contents of the whole array that serve them, too."""
        self.taken: Collection[Version | None] = ()
        """The earlier contents that do serve them."""
        self.reader_of: dict[Version, Operation] = {}
        """Where the contents of an array are first asked for."""
        self.reading: dict[Version, Operation | None] = {}
        """An op that reads them in that block, as a whole where one does."""
        self.killer: dict[Node, Operation | None] = {}
        self.twin_of = twins(function, self.ssa, self.needs) if trusting else {}
        """What is read, with what an earlier op has read that is the same."""
        self._visited: dict[Node, bool] = {}
        self._works: dict[Node, float] = {}
        self.order = self._upstream(self.needs)
        """Operands before users."""
        if trusting:
            self._find_neighbours()
        for node in self.order:
            self.free[node] = self._is_free(node)

    def sources(self, node: Node) -> Iterator[Node]:
        """All that a node is had from where it is neither saved nor had in another way."""
        yield from self.again[node] or ()
        if isinstance(node, Version) and (neighbour := self.handed_on.get(node)) is not None:
            yield from (neighbour.value, neighbour.entry)
        if (version := self.copy_for(node)) is not None:
            yield version

    def is_lost(self, node: Node) -> bool:
        """Whether a node can be had in no other way than by saving it."""
        return self.again[node] is None and node not in self.handed_on

    def copy_for(self, node: Node) -> Version | None:
        """The contents of the whole array that serve a killed read where it is not saved."""
        earlier = self.earlier_of.get(node)
        return earlier if earlier in self.taken else self.version_of.get(node)

    def at_top_level(self, value: SSAValue) -> bool:
        return value_block(value) is self.function.body.block

    def is_rollable(self, node: Node) -> bool:
        """A killed load, or what cannot be computed again, that may be rolled back."""
        lost = self.killer.get(node) is not None or self.again[node] is None
        return node in self.rollable and lost

    def killer_behind(self, node: Node) -> Operation | None:
        """The store because of which `node` cannot be had again."""
        pending: list[Node] = [node]
        seen = set[Node]()
        while pending:
            n = pending.pop()
            if n in seen:
                continue
            seen.add(n)
            if (killer := self.killer.get(n)) is not None:
                return killer
            pending.extend(self.again.get(n) or ())
        return None

    def _upstream(self, needs: Iterable[Node]) -> list[Node]:
        """Every node that a need depends on, operands before users."""
        order: list[Node] = []
        state = self._visited
        stack: list[tuple[Node, bool]] = [(n, False) for n in needs]
        while stack:
            node, ready = stack.pop()
            if ready:
                if not state[node]:
                    state[node] = True
                    order.append(node)
                continue
            if node in state:
                continue
            state[node] = False
            stack.append((node, True))
            self.again[node] = self._again(node)
            stack.extend((n, False) for n in self.sources(node))
            if (earlier := self.earlier_of.get(node)) is not None:
                stack.append((earlier, False))
            if self.is_rollable(node):
                stack.extend((n, False) for n in self.rollable[node].takes)
        return order

    def _find_neighbours(self) -> None:
        """Variables whose contents are those of values one iteration ago; adds what these are had from."""
        start = 0
        while start < len(self.order):
            lost = [
                n for n in self.order[start:] if isinstance(n, Version) and self.again[n] is None
            ]
            start = len(self.order)
            for version in lost:
                found = list(self.neighbours.of(version))
                if found:
                    self.neighbours_of[version] = found
                    neighbour = found[0]
                    self._note_reader(neighbour.entry, neighbour.loop)
                    self.killer.setdefault(neighbour.entry, self.killer[version])
                    self.order += self._upstream((neighbour.value, neighbour.entry))
        without_cycles(self.neighbours_of)

    def _again(self, node: Node) -> tuple[Node, ...] | None:
        if isinstance(node, Version):
            return self._filled_again(node)
        if node in self.twin_of:
            return (self.twin_of[node],)
        if isinstance(node, Contents):
            return self._memory_again(node, node.op, node.memref, node.after)
        if self.at_top_level(node):
            return ()
        if isinstance(node, BlockArgument):
            parent = node.owner.parent_op()
            if isinstance(parent, array.MapOp):
                return self._memory_again(node, parent, parent.ins[node.index], False)
            return ()
        op = node.owner
        assert isinstance(op, Operation)
        match op:
            case memref.LoadOp():
                return self._memory_again(node, op, op.memref, False, op.indices)
            case array.LoopOp():
                if op.condition_block is None and op.count is not None:
                    return (op.count,)
                return None
            case memref.DimOp():
                return (op.index, *descriptor_values(op.source))
            case _:
                return tuple(op.operands) if is_recomputable(op) else None

    def _filled_again(self, version: Version) -> tuple[Node, ...] | None:
        """What contents are made of: what the ops take that fill an array, or those before a loop."""
        if not self.trusting or version in self.refused:
            return None
        mirror = self.mirrors.of(version)
        if mirror is not None:
            self.mirror_of[version] = mirror
            if mirror.entry is not None and mirror.loop is not None:
                self._note_reader(mirror.entry, mirror.loop)
                self.killer.setdefault(mirror.entry, self.killer[version])
            return tuple(mirror.takes)
        refill = self.refills.of(version)
        if refill is None:
            return None
        self.refill_of[version] = refill
        takes: list[Node] = list(dict.fromkeys(refill.takes()))
        if refill.start is not None:
            self._note_reader(refill.start, refill.reader)
            self.killer.setdefault(refill.start, refill.steps[0])
            takes.append(refill.start)
        return tuple(takes)

    def _memory_again(
        self,
        node: Node,
        op: Operation,
        source: SSAValue,
        after: bool,
        indices: Iterable[SSAValue] = (),
    ) -> tuple[Node, ...] | None:
        """A read of memory: its subscripts and view; with a version to read from where it is killed."""
        if after:
            follower = op.next_op
            assert follower is not None
            killer = self.kills.killer_of(source, op)
        else:
            follower = op
            killer = self.kills.killer(Access(op, source, "read", True))
        numbers = (*indices, *descriptor_values(source))
        base = self.alias.base(source)
        unkept = self.trusting or (isinstance(node, Contents) and is_growable(base))
        if killer is None and unkept:
            return numbers
        self.killer[node] = killer
        if isinstance(node, Contents) or self.trusting:
            version = self.version_of[node] = self._current(base, follower, killer)
            if self.trusting and not after:
                since = self.ssa.unchanged_since(Access(op, source, "read"))
                earlier = self._current(base, since, killer)
                if earlier != version:
                    self.earlier_of[node] = earlier
            return numbers
        return None

    def _current(self, base: SSAValue, reader: Operation, killer: Operation | None) -> Version:
        """What an array holds before an op."""
        version = Version(base, self.ssa.version(base, reader))
        self.killer.setdefault(version, killer)
        self._note_reader(version, reader)
        return version

    def _note_reader(self, version: Version, reader: Operation) -> None:
        """Contents are copied, if they are, before the first op that reads them."""
        anchor = self._anchor(version.base, reader)
        known = self.reading.get(version)
        if known is None or isinstance(known, memref.LoadOp):
            reads = reader is anchor and not isinstance(reader, array.LoopOp | scf.IfOp)
            self.reading[version] = reader if reads else known
        first = self.reader_of.get(version)
        if first is None or self._comes_before(anchor, first):
            self.reader_of[version] = anchor

    def _comes_before(self, op: Operation, other: Operation) -> bool:
        """Whether an op stands before another one in the block that they share."""
        order = self.ssa.order
        return op.parent is other.parent and order[op] <= order[other]

    def _anchor(self, base: SSAValue, reader: Operation) -> Operation:
        """The op, in the outermost block where the version is current, that encloses the reader."""
        block = self.ssa.version_block(base, reader)
        op = reader
        while op.parent_block() is not block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        return op

    # What is free.

    def _is_free(self, node: Node) -> bool:
        if not isinstance(node, Version) and self.twin_of.get(node) in self.found:
            # The op that is undone there, or the store, is none of this op's.
            del self.twin_of[node]
            self.again[node] = self._again(node)
        earlier = self.earlier_of.get(node)
        if earlier is not None and self.free.get(earlier, False):
            self.version_of[node] = earlier
        if self._is_kept(node):
            return True
        sources = self.again[node] is not None and list(self.sources(node))
        if sources is not False and all(self.free.get(n, False) for n in sources):
            return not isinstance(node, Version) or not self.worth_saving(node)
        if self.trusting and isinstance(node, SSAValue):
            store = self._surviving_store(node)
            if store is not None:
                self.found[node] = store
                return True
            return self._comes_back(node) or self._rolls_back(node)
        return False

    def _is_kept(self, node: Node) -> bool:
        """True where what takes long to compute (a function, a quotient) lies in memory that survives."""
        if not self.trusting or not isinstance(node, SSAValue):
            return False
        op = node.owner
        if self.at_top_level(node) or not isinstance(op, Operation) or not takes_long(op):
            return False
        store = self._surviving_store(node)
        if store is not None:
            self.found[node] = store
        return store is not None

    def worth_saving(self, version: Version) -> bool:
        """True where to make contents again, of what is had, takes longer than a copy is worth."""
        return self.work(version) >= self.prices.of_version(version, self.reader_of[version])

    def work(self, node: Node) -> float:
        """The price of making contents again, or an element by a function; other scalar code has none."""
        found = self._works.get(node)
        if found is None:
            found = self._works[node] = self._work(node)  # each choice of groups asks for all
        return found

    def _work(self, node: Node) -> float:
        if isinstance(node, SSAValue):
            return self.prices.of_function(node)
        refill = self.refill_of.get(node) if isinstance(node, Version) else None
        return 0.0 if refill is None else self.prices.work(refill)

    def _rolls_back(self, value: SSAValue) -> bool:
        """True where a load is rolled back by what is free."""
        rolled = self.rollable.get(value) if self.is_rollable(value) else None
        if rolled is None or not all(self.free.get(n, False) for n in rolled.takes):
            return False
        if not self.had_in_branches(rolled, ()):
            return False
        self.found[value] = RollBack(rolled)
        return True

    def had_in_branches(self, rolled: Rolled, saved: Collection[Saved]) -> bool:
        """What undoing asks for in branches is read or computed there, from nothing that they saved."""
        pending, seen = list(rolled.inside), set[SSAValue]()
        while pending:
            value, home = pending.pop()
            if value in seen or is_around(value_block(value), home):
                continue
            seen.add(value)
            found = self.found.get(value)
            if isinstance(found, Reload) and isinstance(found.stored, memref.StoreOp):
                numbers: tuple[Node, ...] | None = (
                    *numbers_of(Access(found.stored, found.stored.memref, "write")),
                )
            elif value in saved or self.killer.get(value) is not None:
                return False
            else:
                numbers = None if found is not None else self.again[value]
            if numbers is None:
                return False
            pending.extend((n, home) for n in numbers if isinstance(n, SSAValue))
        return True

    def _comes_back(self, value: SSAValue) -> bool:
        """True where an operation on `value` can be undone, whose result survives.

        One of its own block: what stands in a branch, or in a map, need not have run.
        """
        for use in value.uses:
            if use.operation.parent is not value_block(value):
                continue
            kept = kept_operands(use)
            if kept is None or not all(self.known_free(v) for v in kept):
                continue
            result = use.operation.results[0]
            store = self._surviving_store(result)
            if store is not None:
                self.found[result] = store
                self.found[value] = Invert(use.operation)
                return True
        return False

    def _surviving_store(self, value: SSAValue) -> Reload | None:
        """A store of `value`, in its own block, that nothing overwrites and that can be found again."""
        for use in value.uses:
            op = use.operation
            if isinstance(op, memref.StoreOp) and op.value is value:
                if op.parent_block() is not value_block(value):
                    continue
                numbers = (*op.indices, *descriptor_values(op.memref))
                target, owner, output = op.memref, op, 0
            elif isinstance(op, array.YieldOp) and isinstance(op.parent_op(), array.MapOp):
                owner = op.parent_op()
                assert isinstance(owner, array.MapOp)
                if (
                    owner.out_kinds[use.index] != "store"
                    or value_block(value) is not owner.body.block
                ):
                    continue
                output = use.index
                target = owner.outs[output]
                numbers = tuple(descriptor_values(target))
            else:
                continue
            if not all(self.known_free(n) for n in numbers):
                continue
            if self.kills.killer(Access(owner, target, "write", True)) is None:
                return Reload(owner, output)
        return None

    def known_free(self, value: SSAValue) -> bool:
        """Free, judged on its own: constants, inductions, and pure code on those."""
        pending, seen = [value], set[SSAValue]()
        while pending:
            v = pending.pop()
            if v in seen or self.at_top_level(v) or self.free.get(v, False):
                continue
            seen.add(v)
            if isinstance(v, BlockArgument):
                if isinstance(v.owner.parent_op(), array.MapOp):
                    return False
                continue
            op = v.owner
            assert isinstance(op, Operation)
            if isinstance(op, memref.DimOp):
                pending.extend(descriptor_values(op.source))
            elif is_recomputable(op):
                pending.extend(op.operands)
            elif (
                isinstance(op, array.LoopOp) and op.condition_block is None and op.count is not None
            ):
                pending.append(op.count)
            else:
                return False
        return True

    def trivially_free(self, value: SSAValue) -> bool:
        """Constants, inductions, values of the top level, and scalar code on those."""
        pending, seen = [value], set[SSAValue]()
        while pending:
            v = pending.pop()
            if v in seen or self.at_top_level(v):
                continue
            seen.add(v)
            owner = v.owner
            if isinstance(owner, Block):
                if not isinstance(owner.parent_op(), array.LoopOp):
                    return False
            elif is_recomputable(owner):
                pending.extend(owner.operands)
            else:
                return False
        return True


def numbers_of(access: Access) -> Iterator[SSAValue]:
    """The numbers that an access takes to be made again."""
    op = access.op
    if isinstance(op, memref.LoadOp | memref.StoreOp) and not access.whole:
        yield from op.indices
    yield from descriptor_values(access.memref)

"""What to reload, what to recompute, what to save.

Every needed value is had again in one of four ways, cheapest first:

- *free*: it is a constant, an induction variable, or a value of the function's top level, which
  the reverse sweep of the same call still sees;
- *reload*: it was read from memory (or stored to memory) that nothing overwrites afterwards;
- *recompute*: it is pure scalar code, or a whole array that one map fills, from what is had again;
- *save*: it is written to a tape in the forward sweep.

Which values to save is a minimum vertex cut. Its graph has a node for each value between what
cannot be had again (reads that a later store kills) and what is needed; a node's capacity is its
bytes times the trips of the loops around it. Besides the values themselves, the *version* of a
whole array is a node: five shifted reads of one grid cost one grid, not five. Sizes that are
not constants count as `NOMINAL` each, so the cut compares orders of magnitude, and then n with n - 1.

A read can also be saved at the store that kills it, together with all others that this store kills: the
*old contents* of the store (`overwritten`). Which of them to save is chosen before the cut, and the
cheapest choice is taken: `selection`.

    minimal   save the cut
    all       save every needed value that is not free: the reference that needs no analysis
    forbid    refuse a program that needs any save

For those who look for an error in a plan, `minimal:3` decides on the first three needed values as
`minimal` does, and saves the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, i1, i8
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects import array
from ..analysis.activity import Activity
from ..analysis.alias import AliasAnalysis
from ..analysis.kills import Kills
from ..analysis.memory_ssa import MemorySSA
from ..analysis.needed import Needed
from ..diagnostics import line_of
from ..rules import Access, Contents, Need
from ..rules.descriptors import descriptor_values
from .bits import PER_BYTE
from .capacities import Nominal
from .invariance import Invariance
from .inversions import kept_operands
from .min_cut import INFINITE, min_vertex_cut
from .overwritten import (
    Answer,
    Margins,
    Overwrites,
    Overwritten,
    encloses,
    is_view,
    margins_of,
    places_of,
    served,
    symbols_of,
)
from .rollback import Rollbacks, Rolled, Stretch, cycle_in, is_around
from .segments import (
    base_extents,
    bytes_of,
    comes_before,
    is_recomputable,
    rectangular,
    value_block,
)
from .selection import cheapest, worthwhile
from .versions import Version, maker_of

VERSION_PREMIUM = 1.0
"""Bytes: a copy of a whole array is a sweep of its own, so a value of the same size is preferred."""

OLD_CONTENTS_PREMIUM = 0.5
"""Bytes: the old contents of a store are saved where they are fewer than the values that they serve."""


Node = SSAValue | Contents | Version
Saved = Node | Overwritten


@dataclass(frozen=True)
class Save:
    """One thing that the forward sweep writes to a tape.

    The segment is pushed before `push_before` and indexed by the induction variables of `loops`
    (outermost first), then by the value's own dimensions.
    """

    node: Saved
    at: Operation
    """The op that defines the value; where memory is copied, the op before which."""
    source: Operation
    """The op that reads or computes the value: of old contents, the first."""
    killer: Operation | None
    needed_by: Operation
    element: Attribute
    loops: tuple[array.LoopOp, ...]
    push_before: Operation
    margins: Margins
    """For each of `loops`, how many of its first and last iterations are not saved."""

    @property
    def in_bits(self) -> bool:
        """Whether the innermost of `loops` saves eight truths in a byte: scalars, one an iteration."""
        scalar = isinstance(self.node, SSAValue) and not isinstance(self.at, array.MapOp)
        return scalar and self.element == i1 and bool(self.loops)

    @property
    def stored(self) -> Attribute:
        """The elements of the segment."""
        return i8 if self.in_bits else self.element


@dataclass
class Plan:
    """The decisions for one function; `saves` in program order."""

    function: func.FuncOp
    needed: Needed
    saves: list[Save]
    stored_at: dict[SSAValue, Operation]
    """Values had again from where the program stored them (a `memref.store` or a map's output)."""
    inverted: dict[SSAValue, Operation]
    """Values had again by undoing an operation whose result is `stored_at` some place."""
    versions: dict[Node, Version]
    """Killed reads, and the contents of the whole array that serve them where they are not saved."""
    answers: dict[Node, Answer]
    """Values that are had again from the old contents of the stores that overwrite them."""
    rolled: dict[SSAValue, Rolled]
    """Values of integer cells that are had again by undoing what came later."""

    def save_of(self, node: Saved) -> Save | None:
        return self._by_node().get(node)

    def _by_node(self) -> dict[Saved, Save]:
        if not hasattr(self, "_index"):
            self._index = {s.node: s for s in self.saves}
        return self._index


def make_plan(function: func.FuncOp, alias: AliasAnalysis, activity: Activity, saves: str) -> Plan:
    """Plan the gradient of `function`. `saves` is "minimal", "all" or "forbid".

    Raises CompileError where "forbid" meets a value that must be saved.
    """
    needed = Needed(function, activity)
    return _Planner(function, alias, needed, saves).plan()


class _Planner:
    def __init__(
        self, function: func.FuncOp, alias: AliasAnalysis, needed: Needed, saves: str
    ) -> None:
        self.function = function
        self.alias = alias
        self.needed = needed
        self.mode, _, trusted = saves.partition(":")
        self.trusted = int(trusted) if trusted else None
        self.rollable: dict[Node, Rolled] = {}
        """Loads that may be rolled back; what they take is in the function before it is analysed."""
        if self.mode != "all":
            self.rollable |= {**Rollbacks(function, needed).found}
        self.ssa = MemorySSA(function, alias)
        self.kills = Kills(function, alias, self.ssa)
        self.again: dict[Node, tuple[Node, ...] | None] = {}
        self.free: dict[Node, bool] = {}
        self.stored_at: dict[SSAValue, Operation] = {}
        self.inverted: dict[SSAValue, Operation] = {}
        self.version_of: dict[Node, Version] = {}
        self.version_reader: dict[Version, Operation] = {}
        self.killer: dict[Node, Operation | None] = {}
        self.overwrites = Overwrites(self.kills)
        self.answers: dict[Node, Answer] = {}
        self.margins: dict[Overwritten, Margins] = {}
        self.capacities: dict[Saved, float] = {}
        self.nominal = Nominal(self.overwrites.subscripts)
        self.invariance = Invariance(self.kills)
        self.rolled: dict[Node, Rolled] = {}
        """Loads that are rolled back, as far as that is decided."""

    def plan(self) -> Plan:
        order = self._upstream(self.needed.by)
        for node in order:
            self.free[node] = self._is_free(node)
        cut = self._everything() if self.mode == "all" else self._cut(order)
        if self.trusted is not None:
            cut |= self._distrusted(self.trusted)
        answers = {n: a for n, a in self.answers.items() if n not in cut and served(a, cut)}
        wanted = self._wanted(cut, answers)
        versions = {n: v for n, v in self.version_of.items() if n not in cut}
        answers = {n: a for n, a in answers.items() if n in wanted}
        rolled: dict[SSAValue, Rolled] = {
            r.value: r for n, r in self.rolled.items() if n in wanted and n not in cut
        }
        margins = margins_of(answers)
        position = {op: i for i, op in enumerate(self.function.walk())}
        records = [self._save(n, wanted[n], answers, margins) for n in cut if n in wanted]
        records.sort(key=lambda s: position[s.at])
        plan = Plan(
            self.function,
            self.needed,
            records,
            dict(self.stored_at),
            self.inverted,
            versions,
            answers,
            rolled,
        )
        if self.mode == "all":
            plan.stored_at.clear()
            plan.inverted.clear()
        if self.mode == "forbid" and records:
            from .forbid import forbidden  # its text has words and formulas, which read plans

            raise forbidden(plan)
        return plan

    # The graph.

    def _upstream(self, needs: Iterable[Need]) -> list[Node]:
        """Every node that a need depends on, operands before users."""
        order: list[Node] = []
        state: dict[Node, bool] = {}
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
            again = self._again(node)
            self.again[node] = again
            stack.extend((n, False) for n in again or ())
            version = self.version_of.get(node)
            if version is not None:
                stack.append((version, False))
            if self._is_rollable(node):
                stack.extend((n, False) for n in self.rollable[node].takes)
        return order

    def _again(self, node: Node) -> tuple[Node, ...] | None:
        """What `node` can be computed from once more; None where it cannot."""
        if isinstance(node, Version):
            maker = None if self.mode == "all" else maker_of(node)
            return None if maker is None else (*maker[0].extents, maker[0].yielded[maker[1]])
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
                return self._dim_again(op)
            case _:
                return tuple(op.operands) if is_recomputable(op) else None

    def _dim_again(self, op: memref.DimOp) -> tuple[Node, ...]:
        return (op.index, *descriptor_values(op.source))

    def _memory_again(
        self,
        node: Node,
        op: Operation,
        source: SSAValue,
        after: bool,
        indices: Iterable[SSAValue] = (),
    ) -> tuple[Node, ...] | None:
        """A read of memory: its subscripts and view; with a version to read from where it is killed."""
        access = Access(op, source, "read", True)
        if after:
            follower = op.next_op
            assert follower is not None
            killer = self.kills.killer_of(source, op)
        else:
            follower = op
            killer = self.kills.killer(access)
        numbers = (*indices, *descriptor_values(source))
        base = self.alias.base(source)
        unkept = self.mode != "all" or (isinstance(node, Contents) and is_growable(base))
        if killer is None and unkept:
            return numbers
        self.killer[node] = killer
        if isinstance(node, Contents) or self.mode != "all":
            version = Version(base, self.ssa.version(base, follower))
            self.version_of[node] = version
            self.killer.setdefault(version, killer)
            reader = self._version_anchor(base, follower)
            first = self.version_reader.get(version)
            if first is None or comes_before(reader, first):
                self.version_reader[version] = reader
            return numbers
        return None

    def _version_anchor(self, base: SSAValue, reader: Operation) -> Operation:
        """The op, in the outermost block where the version is current, that encloses the reader."""
        block = self.ssa.version_block(base, reader)
        op = reader
        while op.parent_block() is not block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        return op

    def _is_free(self, node: Node) -> bool:
        again = self.again[node]
        version = self.version_of.get(node)
        served = version is None or self.free.get(version, False)
        if again is not None and served and all(self.free.get(n, False) for n in again):
            return True
        if self.mode != "all" and isinstance(node, SSAValue):
            store = self._surviving_store(node)
            if store is not None:
                self.stored_at[node] = store
                return True
            return self._comes_back(node) or self._rolls_back(node)
        return False

    def _rolls_back(self, value: SSAValue) -> bool:
        """True where a load is rolled back by what is free."""
        rolled = self.rollable.get(value) if self._is_rollable(value) else None
        if rolled is None or not all(self.free.get(n, False) for n in rolled.takes):
            return False
        if not self._had_in_branches(rolled, ()):
            return False
        self.rolled[value] = rolled
        return True

    def _had_in_branches(self, rolled: Rolled, saved: Collection[Saved]) -> bool:
        """What undoing asks for in branches is read or computed there, from nothing that they saved."""
        pending, seen = list(rolled.inside), set[SSAValue]()
        while pending:
            value, home = pending.pop()
            if value in seen or is_around(value_block(value), home):
                continue
            seen.add(value)
            store = self.stored_at.get(value)
            if isinstance(store, memref.StoreOp):
                numbers: tuple[Node, ...] | None = (*numbers_of(store, store.memref),)
            elif value in saved or value in self.rolled or self.killer.get(value) is not None:
                return False
            else:
                numbers = None if value in self.inverted else self.again[value]
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
            if kept is None or not all(self._known_free(v) for v in kept):
                continue
            result = use.operation.results[0]
            store = self._surviving_store(result)
            if store is not None:
                self.stored_at[result] = store
                self.inverted[value] = use.operation
                return True
        return False

    def _surviving_store(self, value: SSAValue) -> Operation | None:
        """A store of `value`, in its own block, that nothing overwrites and that can be found again."""
        for use in value.uses:
            op = use.operation
            if isinstance(op, memref.StoreOp) and op.value is value:
                if op.parent_block() is not value_block(value):
                    continue
                numbers = (*op.indices, *descriptor_values(op.memref))
                target, owner = op.memref, op
            elif isinstance(op, array.YieldOp) and isinstance(op.parent_op(), array.MapOp):
                owner = op.parent_op()
                assert isinstance(owner, array.MapOp)
                if (
                    owner.out_kinds[use.index] != "store"
                    or value_block(value) is not owner.body.block
                ):
                    continue
                target = owner.outs[use.index]
                numbers = tuple(descriptor_values(target))
            else:
                continue
            if not all(self._known_free(n) for n in numbers):
                continue
            if self.kills.killer(Access(owner, target, "write", True)) is None:
                return owner
        return None

    def _known_free(self, value: SSAValue) -> bool:
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

    # The cut.

    def _everything(self) -> set[Saved]:
        """Save every needed value that is not trivially free, and no analysis is trusted."""
        cut: set[Saved] = set()
        for need in self.needed.by:
            if isinstance(need, Contents):
                cut |= {self.version_of[need]} if need in self.version_of else set()
            elif not self._trivially_free(need):
                cut.add(need)
        return cut

    def _distrusted(self, trusted: int) -> set[Saved]:
        """Those of the needed values behind the first `trusted` that are not trivially free."""
        found: set[Saved] = set()
        for need in list(self.needed.by)[trusted:]:
            if isinstance(need, Contents):
                found |= {self.version_of[need]} if need in self.version_of else set()
            elif not self._trivially_free(need):
                found.add(need)
                self.stored_at.pop(need, None)
        return found

    def _trivially_free(self, value: SSAValue) -> bool:
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

    def _cut(self, order: list[Node]) -> set[Saved]:
        """The cheapest set of nodes from which every need can be had."""
        self._find_answers(order)
        groups_of = {n: frozenset(i.of for i in a.instances) for n, a in self.answers.items()}
        price = {group: self._capacity(group) for group in self.margins}
        groups: list[Overwritten | Stretch] = [
            *worthwhile(price, groups_of, self._capacity),
            *dict.fromkeys(r.stretch for r in self._rollable(order).values()),
        ]
        best: dict[frozenset[Overwritten | Stretch], set[Saved]] = {}

        def cost(chosen: frozenset[Overwritten | Stretch]) -> float:
            given = {n for n, gs in groups_of.items() if gs <= chosen}
            rolled = {n: r for n, r in self._rollable(order).items() if r.stretch in chosen}
            broken = self._cycles_broken(order, given, rolled)
            cut = self._cut_beside(order, given | broken, rolled)
            best[chosen] = {*(g for g in chosen if isinstance(g, Overwritten)), *broken, *cut}
            return sum(map(self._capacity, best[chosen]))

        chosen = cheapest(groups, cost)
        cut = best[chosen]
        answered = {n for n, gs in groups_of.items() if gs <= chosen}
        rolled = {
            n: r
            for n, r in self._rollable(order).items()
            if r.stretch in chosen and n not in cut and n not in answered
        }
        self.rolled |= rolled
        impossible = [n for n, r in rolled.items() if not self._had_in_branches(r, cut)]
        if not impossible:
            return cut
        for node in rolled:
            del self.rolled[node]
        for node in impossible:
            del self.rollable[node]
        return self._cut(order)

    def _rollable(self, order: list[Node]) -> dict[Node, Rolled]:
        """What is not free, and may be rolled back by what is not."""
        return {n: self.rollable[n] for n in order if not self.free[n] and self._is_rollable(n)}

    def _is_rollable(self, node: Node) -> bool:
        """A killed load, or what cannot be computed again, that may be rolled back."""
        lost = self.killer.get(node) is not None or self.again[node] is None
        return node in self.rollable and lost

    def _cycles_broken(
        self, order: list[Node], given: set[Node], rolled: dict[Node, Rolled]
    ) -> set[Node]:
        """The cheapest value of each cycle in which a cell is rolled back by what depends on it."""
        broken = set[Node]()

        def operands(node: Node) -> Iterable[Node]:
            found: Iterable[Node]
            if node in rolled:
                found = rolled[node].takes
            else:
                version = self.version_of.get(node)
                found = (*(self.again[node] or ()), *(() if version is None else (version,)))
            return (n for n in found if not (self.free[n] or n in given or n in broken))

        if not rolled:
            return broken
        starts = [n for n in order if not self.free[n] and n not in given]
        while (cycle := cycle_in(starts, operands)) is not None:
            broken.add(min(cycle, key=self._capacity))
            starts = [n for n in starts if n not in broken]
        return broken

    def _cut_beside(
        self, order: list[Node], given: set[Node], rolled: dict[Node, Rolled]
    ) -> set[Node]:
        """The minimum cut where the nodes `given` are had without it, and `rolled` by what they take."""
        nodes = [n for n in order if not self.free[n] and n not in given]
        if not nodes:
            return set()
        capacity: dict[Node, float] = {n: self._capacity(n) for n in nodes}
        edges: dict[Node, list[Node]] = {n: [] for n in nodes}
        sources: list[Node] = []
        for node in nodes:
            back = rolled.get(node)
            again = self.again[node] if back is None else back.takes
            version = self.version_of.get(node) if back is None else None
            if version is not None and version in edges:
                edges[version].append(node)
            if again is None:
                sources.append(node)
            for operand in again or ():
                if operand in edges:
                    edges[operand].append(node)
        sinks = [n for n in self.needed.by if n in edges]
        return min_vertex_cut(capacity, edges, sources, sinks)

    def _find_answers(self, order: list[Node]) -> None:
        """Which killed values the old contents of stores would serve."""
        for node in order:
            if not self.free[node] and isinstance(node, SSAValue | Contents):
                answer = next(filter(None, map(self._answer, places_of(node))), None)
                if answer is not None and (not answer.dims or is_view(answer)):
                    self.answers[node] = answer
        self.margins = margins_of(self.answers)
        self.capacities.clear()

    def _answer(self, access: Access) -> Answer | None:
        """The old contents that serve an access, where all numbers that find them again are free."""
        op = access.op
        indices = op.indices if isinstance(op, memref.LoadOp | memref.StoreOp) else ()
        if not all(map(self._known_free, (*indices, *descriptor_values(access.memref)))):
            return None
        answer = self.overwrites.first(access)
        if answer is None:
            return None
        known = all(s in answer.dims or self._number_again(s, op) for s in symbols_of(answer))
        return answer if known else None

    def _number_again(self, number: SSAValue, reader: Operation) -> bool:
        """A number (or an array, for its extents) of an answer can be had where the reader is reversed."""
        if self.at_top_level(number):
            return True
        if isinstance(number.type, MemRefType):
            return False
        if encloses(value_block(number), reader):
            return self._known_free(number)
        op = number.owner
        return (
            isinstance(op, Operation)
            and is_recomputable(op)
            and all(self._number_again(o, reader) for o in op.operands)
        )

    def _capacity(self, node: Saved) -> float:
        """The bytes of a save, nominally."""
        found = self.capacities.get(node)
        if found is None:
            found = self.capacities[node] = self._bytes(node)
        return found

    def _bytes(self, node: Saved) -> float:
        if isinstance(node, Contents):
            return INFINITE
        if isinstance(node, Overwritten):
            loops, push_before = rectangular(node.store, node.extents)
            size = bytes_of(node.element) * self.nominal.trips(cast(Block, push_before.parent))
            size *= prod(map(self.nominal.size, node.extents))
            for loop, (first, last) in zip(loops, self.margins[node], strict=True):
                size *= max(self.nominal.trips_of(loop) - first - last, 1.0)
            return size + OLD_CONTENTS_PREMIUM
        if isinstance(node, Version):
            base_type = cast(MemRefType[Attribute], node.base.type)
            size = float(bytes_of(base_type.element_type))
            for axis in range(base_type.get_num_dims()):
                size *= self.nominal.extent(node.base, axis)
            if is_growable(node.base):
                size *= array.UNBOUNDED  # addresses, not memory
            block = self.version_reader[node].parent_block()
            assert block is not None
            return size * self.nominal.trips(block) + VERSION_PREMIUM
        if isinstance(node.type, MemRefType):
            return INFINITE
        block = value_block(node)
        size = float(bytes_of(node.type))
        parent = block.parent_op()
        if isinstance(parent, array.MapOp):
            for extent in parent.extents:
                size *= self.nominal.size(extent)
            return max(size, 1e-3) * self.nominal.trips(block)
        assert isinstance(node.owner, Operation)
        loops, push_before = rectangular(node.owner, [], self._unchanging(node))
        size *= self.nominal.trips(cast(Block, push_before.parent))
        if node.type == i1 and loops:
            size /= PER_BYTE
        return max(size, 1e-3) * prod(map(self.nominal.trips_of, loops))

    def _unchanging(self, node: Saved) -> frozenset[array.LoopOp]:
        """The loops around a scalar that one place serves."""
        if self.mode == "all" or not isinstance(node, SSAValue):
            return frozenset()
        if isinstance(node, BlockArgument) or isinstance(node.owner.parent_op(), array.MapOp):
            return frozenset()
        return self.invariance.loops(node)

    def at_top_level(self, value: SSAValue) -> bool:
        return value_block(value) is self.function.body.block

    # Where a save goes.

    def _save(
        self,
        node: Saved,
        needed_by: Operation,
        answers: dict[Node, Answer],
        margins: dict[Overwritten, Margins],
    ) -> Save:
        if isinstance(node, Version):
            at = self.version_reader[node]
            block = at.parent_block()
            assert block is not None
            base_type = cast(MemRefType[Attribute], node.base.type)
            own, element, source = base_extents(node.base), base_type.element_type, at
        elif isinstance(node, Overwritten):
            at, own, element = node.store, node.extents, node.element
            readers = (n for n, a in answers.items() if any(i.of == node for i in a.instances))
            source = min(map(defining_op, readers), key=self.ssa.order.__getitem__)
        else:
            assert isinstance(node, SSAValue)
            block = value_block(node)
            parent = block.parent_op()
            owner = node.owner
            if isinstance(parent, array.MapOp):
                at, own = parent, list(parent.extents)
                block = cast(Block, parent.parent_block())
            else:
                assert isinstance(owner, Operation)
                at, own = owner, []
            element, source = node.type, at
        loops, push_before = rectangular(at, own, self._unchanging(node))
        unsaved = margins[node] if isinstance(node, Overwritten) else ((0, 0),) * len(loops)
        killer = self._killer_behind(node)
        return Save(node, at, source, killer, needed_by, element, loops, push_before, unsaved)

    def _killer_behind(self, node: Saved) -> Operation | None:
        """The store because of which `node` cannot be had again."""
        if isinstance(node, Overwritten):
            return node.store
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

    def _wanted(self, cut: set[Saved], answers: dict[Node, Answer]) -> dict[Saved, Operation]:
        """Each node that is really asked for, with an op whose adjoint needs it."""
        wanted: dict[Saved, Operation] = {}
        for need, op in self.needed.by.items():
            pending: list[Saved] = [need]
            while pending:
                node = pending.pop()
                if node in wanted:
                    continue
                wanted[node] = op
                if not isinstance(node, Overwritten):
                    pending.extend(self._asked_for(node, cut, answers))
        return wanted | {n: op for n, op in self.needed.by.items() if n in wanted}

    def _asked_for(
        self, node: Node, cut: set[Saved], answers: dict[Node, Answer]
    ) -> Iterator[Saved]:
        """What a node is had from, in the order of preference of `PrimalValues`."""
        answer, version = answers.get(node), self.version_of.get(node)
        if node in cut:
            return
        if answer is not None:
            yield from (one.of for one in answer.instances)
            yield from (s for s in symbols_of(answer) if not isinstance(s.type, MemRefType))
            if answer.may_survive:
                yield from numbers_of(answer.access.op, answer.access.memref)
        elif isinstance(node, SSAValue) and node in self.stored_at:
            store = self.stored_at[node]
            if isinstance(store, memref.StoreOp):
                yield from numbers_of(store, store.memref)
        elif isinstance(node, SSAValue) and node in self.inverted:
            op = self.inverted[node]
            yield from (*op.results, *(o for o in op.operands if o is not node))
        elif node in self.rolled:
            yield from self.rolled[node].takes
        elif node in self.again:
            yield from self.again[node] or ()
            if version is not None:
                yield version
        elif isinstance(node, SSAValue) and isinstance(op := node.owner, Operation):
            scalars = op.operands if is_recomputable(op) else ()
            yield from (o for o in scalars if not isinstance(o.type, MemRefType))


def numbers_of(op: Operation, accessed: SSAValue) -> Iterator[SSAValue]:
    """The numbers that an access takes to be made again."""
    if isinstance(op, memref.LoadOp | memref.StoreOp):
        yield from op.indices
    yield from descriptor_values(accessed)


def defining_op(node: Node) -> Operation:
    """The op that computes or reads a value; of a map's element, the map."""
    if isinstance(node, Contents):
        return node.op
    assert isinstance(node, SSAValue)
    owner = node.owner if isinstance(node.owner, Operation) else node.owner.parent_op()
    assert owner is not None
    return owner


def is_growable(base: SSAValue) -> bool:
    """True for memory that is mostly addresses: nobody copies it whole."""
    return isinstance(base.owner, Operation) and array.GROWABLE in base.owner.attributes


def is_release(killer: Operation | None) -> bool:
    """True for the end of a block, which releases the memory that the block has allocated."""
    return killer is not None and killer.has_trait(IsTerminator)


def killing_line(save: Save) -> tuple[str, int, int] | None:
    """Where the program overwrites what is saved; for a variable, where its next value is computed."""
    killer = save.killer
    if killer is None:
        return None
    if isinstance(killer, memref.StoreOp) and isinstance(killer.memref.owner, memref.AllocaOp):
        value = killer.value.owner
        if isinstance(value, Operation) and value.parent_block() is killer.parent_block():
            return line_of(value)
    return line_of(killer)

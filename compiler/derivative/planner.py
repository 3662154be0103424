"""What to reload, what to recompute, what to save.

Every needed value is had again in one of these ways (`plan.How`), cheapest first:

- *free*: it is a constant, an induction variable, or a value of the function's top level, which
  the reverse sweep of the same call still sees;
- *reload*: it was read from memory (or stored to memory) that nothing overwrites afterwards;
- *recompute*: it is pure scalar code, or the contents of a private array, which the ops that filled it make
  again (`refills`), on what is had again; or an exact operation on it is undone (`inversions`, `rollback`);
- *save*: it is written to a tape in the forward sweep.

Which values to save is a minimum vertex cut (`choice`). Its graph has a node for each value between what
cannot be had again (reads that a later store kills) and what is needed (`value_graph`); a node's capacity is
its bytes times the trips of the loops around it. Besides the values themselves, the *version* of a
whole array is a node: five shifted reads of one grid cost one grid, not five. So is what an op reads of an
array (`Contents`): a product of a row costs a row. Sizes that are
not constants count as `NOMINAL` each, so the cut compares orders of magnitude, and then n with n - 1. To fill
an array again has a price, too (`prices`).

A read can also be saved at the store that kills it, together with all others that this store kills: the
*old contents* of the store (`overwritten`). Which of them to save is chosen before the cut, and the
cheapest choice is taken: `selection`.

    minimal   save the cut; that of "fewest" where functions are spared by longer tapes than it has
    fewest    the same where bytes alone count: no function is spared by a save
    all       save every needed value that is not free: the reference that needs no analysis
    forbid    refuse a program that needs any save

For those who look for an error in a plan, `minimal:3` decides on the first three needed values as
`minimal` does, and saves the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.activity import Activity
from ..analysis.needed import Needed
from ..rules import Access, Contents, Need
from .choice import Choice, dear, defining_op, everything
from .forbid import forbidden
from .overwritten import Overwritten, margins_of, served, symbols_of
from .plan import (
    RECOMPUTE,
    Free,
    How,
    Invert,
    Node,
    Plan,
    ReadMirror,
    ReadNeighbour,
    ReadOld,
    Recompute,
    Reload,
    RollBack,
    Save,
    Saved,
)
from .replays import replay_loops
from .replays_apart import replay_apart
from .segments import Margins, Segment, enclosing_loops, is_recomputable
from .value_graph import ValueGraph, numbers_of
from .versions import Version


def make_plan(function: func.FuncOp, activity: Activity, saves: str) -> Plan:
    """Plan the gradient of `function`. `saves` is "minimal", "fewest", "all" or "forbid".

    Raises CompileError where "forbid" meets a value that must be saved.
    """
    needed = Needed(function, activity)
    mode, _, trusted = saves.partition(":")
    most = int(trusted) if trusted else None
    plan, graph = plan_of(function, needed, mode, most)
    if graph.prices.spares and plan.saves:
        fewest, its_graph = plan_of(function, needed, "fewest", most)
        if not are_no_longer(plan.saves, fewest.saves):
            plan, graph = fewest, its_graph
    if mode == "forbid" and plan.saves:
        raise forbidden(plan)
    if saves == "minimal":
        replay_apart(plan, graph)
        replay_loops(plan, graph)
    return plan


def plan_of(
    function: func.FuncOp, needed: Needed, mode: str, trusted: int | None
) -> tuple[Plan, ValueGraph]:
    """The plan of a mode, and what it was made of."""
    refused = frozenset[Version]()
    sizes: dict[Need, Operation] = {}
    trusting, bytes_alone = mode != "all", mode == "fewest"
    while True:
        graph = ValueGraph(
            function,
            needed,
            trusting=trusting,
            bytes_alone=bytes_alone,
            refused=refused,
            sizes=sizes,
        )
        planner = Planner(graph, trusted)
        plan = planner.plan()
        lost, unasked = planner.lost_contents(), planner.unasked_sizes(plan)
        if not lost and not unasked:
            return plan, graph
        refused |= lost
        sizes |= unasked


def are_no_longer(saves: Sequence[Save], others: Sequence[Save]) -> bool:
    """Each save is over extents that one of the others is over, too: a multiple of their bytes at most."""
    extents = [extents_of(save.segment) for save in others]
    return all(any(extents_of(save.segment) <= of for of in extents) for save in saves)


def extents_of(segment: Segment) -> Counter[object]:
    """What the size of all that is saved is a product of: trips and extents, without constants."""
    loops = [*segment.loops, *enclosing_loops(cast(Block, segment.push_before.parent))]
    numbers = [*(loop if loop.count is None else loop.count for loop in loops), *segment.own]
    return Counter(n for n in numbers if not is_constant(n))


def is_constant(number: object) -> bool:
    return isinstance(number, SSAValue) and array.constant_value(number) is not None


class Planner:
    """Decides for one function; believes analyses for the first `trusted` of its needs, or for all."""

    def __init__(self, graph: ValueGraph, trusted: int | None = None) -> None:
        self.graph = graph
        self.choice = Choice(graph)
        self.trusted = trusted
        self.hows: dict[Saved, How] = {}

    def plan(self) -> Plan:
        graph = self.graph
        cut = self.choice.cut() if graph.trusting else everything(graph)
        if self.trusted is not None:
            cut |= dear(graph, list(graph.needs)[self.trusted :])
        answers = {n: a for n, a in self.choice.answers.items() if n not in cut and served(a, cut)}
        ways: dict[Node, How] = {n: ReadOld(a) for n, a in answers.items()}
        wanted = self._wanted(cut, ways)
        margins = margins_of({n: a for n, a in answers.items() if n in wanted})
        position = {op: i for i, op in enumerate(every_op(graph.function))}
        readers: dict[Overwritten, Operation] = {}
        for node, how in ways.items():
            if node in wanted and isinstance(how, ReadOld):
                reader = how.answer.access.op if isinstance(node, Version) else defining_op(node)
                for one in how.answer.instances:
                    first = readers.setdefault(one.of, reader)
                    readers[one.of] = min(first, reader, key=graph.ssa.order.__getitem__)
        saves = [self._save(n, wanted, readers, margins) for n in wanted if n in cut]
        saves.sort(key=lambda s: position[s.at])
        self.hows |= {s.node: s for s in saves}
        for node, twin in graph.twin_of.items():
            if self.hows.get(node) is RECOMPUTE:
                self.hows[node] = self.hows[twin]
        return Plan(graph.function, graph.needed, saves, self.hows)

    # How each value is had.

    def _how(self, node: Node, cut: set[Saved], ways: dict[Node, How]) -> How:
        """How a node is had that is not saved: the one place that says which way goes before which."""
        graph = self.graph
        if node in ways:
            return ways[node]
        if node in graph.found:
            return graph.found[node]
        if isinstance(node, Version):
            if node in graph.mirror_of:
                return ReadMirror(graph.mirror_of[node])
            if node in graph.handed_on:
                return ReadNeighbour(graph.handed_on[node])
            return Recompute(graph.refill_of.get(node))
        version = graph.copy_for(node)
        if version is not None:
            return Reload(copy=version)
        if node in graph.twin_of:
            return RECOMPUTE
        if isinstance(node, Contents) or isinstance(node.owner, memref.LoadOp):
            return Reload()
        return Free() if graph.at_top_level(node) else RECOMPUTE

    def _wanted(self, cut: set[Saved], ways: dict[Node, How]) -> dict[Saved, Operation]:
        """Each node that is really asked for, with an op whose adjoint needs it; notes how each is had."""
        wanted: dict[Saved, Operation] = {}
        for need, op in self.graph.needs.items():
            pending: list[Saved] = [need]
            while pending:
                node = pending.pop()
                if node in wanted:
                    continue
                wanted[node] = op
                if node not in cut and not isinstance(node, Overwritten):
                    how = self.hows[node] = self._how(node, cut, ways)
                    pending.extend(self._asked_for(node, how))
        return wanted | {n: op for n, op in self.graph.needs.items() if n in wanted}

    def _asked_for(self, node: Node, how: How) -> Iterator[Saved]:
        """What a node is had from."""
        match how:
            case ReadOld(answer):
                yield from (one.of for one in answer.instances)
                yield from (s for s in symbols_of(answer) if not isinstance(s.type, MemRefType))
                if answer.may_survive:
                    yield from numbers_of(answer.access)
            case Reload(stored=memref.StoreOp() as store):
                yield from numbers_of(Access(store, store.memref, "write"))
            case Invert(op):
                yield from (*op.results, *(o for o in op.operands if o is not node))
            case RollBack(rolled):
                yield from rolled.takes
            case Reload(stored=Operation()):
                pass
            case _ if node in self.graph.again:
                yield from self.graph.sources(node)
            case _ if isinstance(node, SSAValue) and isinstance(op := node.owner, Operation):
                scalars = op.operands if is_recomputable(op) else ()
                yield from (o for o in scalars if not isinstance(o.type, MemRefType))
            case _:
                pass

    # Where a save goes.

    def _save(
        self,
        node: Saved,
        wanted: dict[Saved, Operation],
        readers: Mapping[Overwritten, Operation],
        margins: dict[Overwritten, Margins],
    ) -> Save:
        graph = self.graph
        killer: Operation | None
        if isinstance(node, Overwritten):
            at = killer = node.store
            source: Operation = readers[node]
        else:
            at = source = graph.reader_of[node] if isinstance(node, Version) else defining_op(node)
            killer = graph.killer_behind(node)
        unsaved = margins[node] if isinstance(node, Overwritten) else None
        segment = graph.prices.segment(node, at, unsaved, trusting=graph.trusting)
        return Save(node, at, source, killer, wanted[node], segment)

    def unasked_sizes(self, plan: Plan) -> dict[Need, Operation]:
        """What sizes of tapes are computed of that is not asked for, with who needs what is saved there.

        A count that is saved in an inner loop is not at hand where the tape around that loop is popped: there
        it is computed again.
        """
        found: dict[Need, Operation] = {}
        for save in plan.saves:
            for number in save.segment.computed_of():
                if number not in self.hows and not self.graph.trivially_free(number):
                    found[number] = save.needed_by
        return found

    # What cannot be had where contents are made again.

    def lost_contents(self) -> frozenset[Version]:
        """Contents that branches or loops fill, with what is only popped as those are reversed."""
        around = self._around_pushes()
        return frozenset(
            node
            for node, how in self.hows.items()
            if isinstance(node, Version)
            and isinstance(how, Recompute)
            and self._is_lost(node, around)
        )

    def _around_pushes(self) -> set[Operation]:
        """The ops before which something is pushed, or where something is rolled back, and those around."""
        found = set[Operation]()
        for how in self.hows.values():
            op: Operation | None = None
            if isinstance(how, Save):
                op = how.push_before
            elif isinstance(how, RollBack):
                op = how.rolled.at
            while op is not None and op not in found:
                found.add(op)
                op = op.parent_op()
        return found

    def _is_lost(self, version: Version, around: Collection[Operation]) -> bool:
        refill = self.graph.refill_of[version]
        nested = [step for step in refill.steps if step.regions and step in around]
        pending: list[Saved] = [version]
        seen = set[Saved]()
        while pending and nested:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            how = self.hows.get(node, RECOMPUTE)
            if isinstance(how, Save):
                if any(step.is_ancestor(how.push_before) for step in nested):
                    return True
            elif isinstance(how, RollBack):
                if any(step.is_ancestor(how.rolled.at) for step in nested):
                    return True
            elif not isinstance(node, Overwritten):
                pending.extend(self._asked_for(node, how))
        return False

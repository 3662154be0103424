"""Which nodes of the graph to save: a minimum cut, after choices that a cut cannot make.

Old contents of stores, and rolled-back cells, are a second way to recover a value; a cut has no node for
that. So sets of them are chosen first (`selection`), and each set is priced by the cut that it leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects import array
from ..analysis.made_of import all_made_of
from ..rules import Access, Contents
from .first_overwrites import Overwrites, places_of
from .min_cut import INFINITE, Cuts, Vertex
from .mirrored_contents import follows
from .neighbours import Neighbour
from .overwritten import Answer, Overwritten, is_mosaic, is_view, margins_of, symbols_of
from .plan import Node, RollBack, Saved
from .prices import OLD_CONTENTS_PREMIUM
from .rollback import Rolled, Stretch, cycle_in
from .segments import Margins, encloses, is_inside, is_recomputable, rectangular, value_block
from .selection import cheapest, worthwhile
from .value_graph import ValueGraph, numbers_of
from .versions import Version

Group = Overwritten | Stretch | Version | Neighbour
"""What is chosen before the cut: old contents that are saved, what is rolled back, earlier contents that
reads are served by in place of those at the read, variables that are had of the iteration before."""


class Choice:
    """The cheapest saves of one function."""

    def __init__(self, graph: ValueGraph) -> None:
        self.graph = graph
        self.free = graph.free
        self.overwrites = Overwrites(graph.kills)
        self.answers: dict[Node, Answer] = {}
        """Values that the old contents of stores would serve."""
        self.margins: dict[Overwritten, Margins] = {}
        self._prices: dict[Saved, float] = {}
        self._find_answers()

    def cut(self) -> set[Saved]:
        """The cheapest set of nodes from which every need can be had; notes what is rolled back."""
        groups_of = {n: frozenset(i.of for i in a.instances) for n, a in self.answers.items()}
        price = {group: self.price(group) for group in self.margins}
        rollable = self._rollable()
        groups: list[Group] = [
            *worthwhile(price, groups_of, self.price),
            *dict.fromkeys(r.stretch for r in rollable.values()),
            *self._earlier(),
            *self._neighbours(),
        ]
        best: dict[frozenset[Group], set[Saved]] = {}
        self._take(())
        varying = self._varying(groups, [*groups_of, *rollable])
        live = [n for n in self.graph.order if not self.free[n]]
        cuts = Cuts(live, self._vertices((n for n in live if n not in varying), (), {}))

        def cost(chosen: frozenset[Group]) -> float:
            self._take(chosen)
            given = {n for n, gs in groups_of.items() if gs <= chosen}
            rolled = {n: r for n, r in rollable.items() if r.stretch in chosen}
            broken = self._cycles_broken(given, rolled)
            if not self._can_be_handed_on(given, rolled):
                best[chosen] = set()
                return INFINITE
            # The minimum cut where these are had without it, and the price of contents that are made again.
            if broken <= varying.keys():
                cut, work = cuts.cut(self._vertices(varying, given | broken, rolled))
            else:
                cut, work = Cuts(live, {}).cut(self._vertices(live, given | broken, rolled))
            best[chosen] = {*(g for g in chosen if isinstance(g, Overwritten)), *broken, *cut}
            return fsum(map(self.price, best[chosen])) + work  # of a set: the same in any order

        chosen = cheapest(groups, cost)
        self._take(chosen)
        cut = best[chosen]
        answered = {n for n, gs in groups_of.items() if gs <= chosen}
        rolled = {
            n: r
            for n, r in rollable.items()
            if r.stretch in chosen and n not in cut and n not in answered
        }
        self.graph.found |= {n: RollBack(r) for n, r in rolled.items()}
        impossible = [n for n, r in rolled.items() if not self.graph.had_in_branches(r, cut)]
        if not impossible:
            return cut
        for node in rolled:
            del self.graph.found[node]
        for node in impossible:
            del self.graph.rollable[node]
        return self.cut()

    def price(self, node: Saved) -> float:
        """The bytes of a save, nominally."""
        found = self._prices.get(node)
        if found is None:
            found = self._prices[node] = self._price(node)
        return found

    def _price(self, node: Saved) -> float:
        prices = self.graph.prices
        match node:
            case Contents():
                return prices.of_contents(node)
            case Overwritten():
                segment = prices.segment(node, node.store, self.margins[node])
                return prices.of_segment(segment) + OLD_CONTENTS_PREMIUM
            case Version():
                return prices.of_version(node, self.graph.reader_of[node])
            case _ if isinstance(node.type, MemRefType):
                return INFINITE
            case _:
                return prices.of_segment(prices.segment(node, defining_op(node)))

    def _rollable(self) -> dict[Node, Rolled]:
        """What is not free, and may be rolled back by what is not."""
        graph = self.graph
        return {
            n: graph.rollable[n] for n in graph.order if not self.free[n] and graph.is_rollable(n)
        }

    def _earlier(self) -> list[Version]:
        """Earlier contents of arrays of which one copy costs less than all that it serves."""
        earlier_of = self.graph.earlier_of.items()
        of = {n: frozenset([v]) for n, v in earlier_of if not self.free[n]}
        price = {v: self.price(v) for vs in of.values() for v in vs}
        return worthwhile(price, of, self.price)

    def _neighbours(self) -> list[Neighbour]:
        """Variables that are not free, and are neighbours of what can be on a tape."""
        free, found = self.free, self.graph.found
        return [
            n
            for v, of_v in self.graph.neighbours_of.items()
            for n in of_v
            if not (free[v] or any(free.get(t, True) for t in n.on_tape))
            and n.through.isdisjoint(found)
        ]

    def _take(self, chosen: Collection[Group]) -> None:
        """Let the graph be what it is where these are chosen."""
        graph = self.graph
        graph.taken = [g for g in chosen if isinstance(g, Version)]
        graph.handed_on = {
            v: n for v, found in graph.neighbours_of.items() for n in found if n in chosen
        }

    def _can_be_handed_on(self, given: Collection[Node], rolled: Collection[Node]) -> bool:
        """Whether what is had in another way than from the cut is had of the iteration before as well."""
        asked = ((v, n.loop) for n in self.graph.handed_on.values() for v in n.through)
        return all(
            v not in rolled and (v not in given or self._is_found_in(self.answers[v], loop))
            for v, loop in asked
        )

    def _is_found_in(self, answer: Answer, loop: array.LoopOp) -> bool:
        """Old contents can be found of the iteration before, in the reverse of an iteration of `loop`."""
        numbers = [*symbols_of(answer)]
        if answer.may_survive:
            numbers += numbers_of(answer.access)
        pushed = [rectangular(i.of.store, i.of.extents)[1] for i in answer.instances]
        return all(
            not is_inside(n, loop) if isinstance(n.type, MemRefType) else follows(n, loop)
            for n in numbers
        ) and not any(loop is not op and loop.is_ancestor(op) for op in pushed)

    def _cycles_broken(self, given: set[Node], rolled: dict[Node, Rolled]) -> set[Node]:
        """The cheapest value of each cycle in which a cell is rolled back by what depends on it."""
        broken = set[Node]()

        def operands(node: Node) -> Iterable[Node]:
            found = rolled[node].takes if node in rolled else self.graph.sources(node)
            return (n for n in found if not (self.free[n] or n in given or n in broken))

        if not rolled:
            return broken
        starts = [n for n in self.graph.order if not self.free[n] and n not in given]
        while (cycle := cycle_in(starts, operands)) is not None:
            broken.add(min(cycle, key=self.price))
            starts = [n for n in starts if n not in broken]
        return broken

    def _varying(self, groups: Iterable[Group], nodes: Iterable[Node]) -> dict[Node, None]:
        """The nodes, with all others of which it depends on the chosen groups how they are had."""
        graph, chosen = self.graph, set(groups)
        found = [*nodes, *(n for n, v in graph.earlier_of.items() if v in chosen)]
        for version, neighbours in graph.neighbours_of.items():
            found.append(version)
            found += (n for one in neighbours for n in (*one.on_tape, *one.variables))
        return dict.fromkeys(n for n in found if n in self.free and not self.free[n])

    def _vertices(
        self, nodes: Iterable[Node], given: Collection[Node], rolled: Mapping[Node, Rolled]
    ) -> dict[Node, Vertex[Node]]:
        """Nodes for a cut where those `given` are had without it, and `rolled` by what they take."""
        graph, needs = self.graph, self.graph.needs
        handed_on = graph.handed_on
        to_save = {v for n in handed_on.values() for v in n.to_save(handed_on)}
        found: dict[Node, Vertex[Node]] = {}
        for node in nodes:
            pieced = node in given
            if pieced and not isinstance(node, Version):
                continue  # an element of old contents
            price, is_sink = self.price(node), node in needs
            work = self.work(node, given)
            if pieced:
                found[node] = Vertex(price, (), False, is_sink, work)
                continue
            back = rolled.get(node)
            takes = tuple(graph.sources(node) if back is None else back.takes)
            is_source = node in to_save or (back is None and graph.is_lost(node))
            found[node] = Vertex(price, takes, is_source, is_sink, work)
        return found

    def work(self, node: Node, pieced: Collection[Node]) -> float:
        """The price of having a node again: contents put together, or what computes it."""
        if node not in pieced:
            return self.graph.work(node)
        if not isinstance(node, Version):
            return 0.0  # an element of old contents
        return self.graph.prices.to_put_together(node, self.graph.reader_of[node])

    # Old contents.

    def _find_answers(self) -> None:
        """Which killed values the old contents of stores would serve.

        Where an op reads an array as a whole, and no view of old contents serves it, what the array held can
        be put together.
        """
        unserved: dict[Version, None] = {}
        for node in self.graph.order:
            if self.free[node] or not isinstance(node, SSAValue | Contents):
                continue
            answer = next(filter(None, map(self._answer, places_of(node))), None)
            version = self.graph.version_of.get(node)
            if answer is not None and (not answer.dims or is_view(answer)):
                self.answers[node] = answer
            elif version is not None and not self.free[version]:
                unserved[version] = None
        for version in unserved:
            reader = self.graph.reading[version]
            if reader is None or isinstance(reader, memref.LoadOp):
                continue
            answer = self._answer(Access(reader, version.base, "read", whole=True))
            if answer is not None and is_mosaic(answer):
                self.answers[version] = answer
        self.margins = margins_of(self.answers)

    def _answer(self, access: Access) -> Answer | None:
        """The old contents that serve an access, where all numbers that find them again are free."""
        op = access.op
        if not all(map(self.graph.known_free, numbers_of(access))):
            return None
        answer = self.overwrites.first(access)
        if answer is None:
            return None
        known = all(s in answer.dims or self._number_again(s, op) for s in symbols_of(answer))
        return answer if known else None

    def _number_again(self, number: SSAValue, reader: Operation) -> bool:
        """A number (or an array, for its extents) of an answer can be had where the reader is reversed."""

        def sources(value: SSAValue) -> Sequence[SSAValue] | None:
            if self.graph.at_top_level(value):
                return ()
            if isinstance(value.type, MemRefType):
                return None
            if encloses(value_block(value), reader):
                return () if self.graph.known_free(value) else None
            op = value.owner
            return op.operands if isinstance(op, Operation) and is_recomputable(op) else None

        return all_made_of([number], sources)


def everything(graph: ValueGraph) -> set[Saved]:
    """Every needed value that is not trivially free: no analysis is trusted."""
    return dear(graph, graph.needs)


def dear(graph: ValueGraph, needs: Iterable[SSAValue | Contents]) -> set[Saved]:
    """Those that are not trivially free; of contents, the array."""
    return set(_dear(graph, needs))


def _dear(graph: ValueGraph, needs: Iterable[SSAValue | Contents]) -> Iterator[Saved]:
    for need in needs:
        if isinstance(need, Contents):
            if need in graph.version_of:
                yield graph.version_of[need]
        elif not graph.trivially_free(need):
            yield need


def defining_op(node: SSAValue | Contents) -> Operation:
    """The op that computes or reads a value; of a map's element, the map."""
    if isinstance(node, Contents):
        return node.op
    parent = value_block(node).parent_op()
    if isinstance(parent, array.MapOp):
        return parent
    owner = parent if isinstance(node, BlockArgument) else node.owner
    assert isinstance(owner, Operation)
    return owner

"""What the iterations of a replayed loop save, each for itself.

A tape of all iterations also serves the iteration before: what that one leaves is what this one overwrites::

    for k in range(n):
        b += f(a)               saved: b, which the update of the next iteration overwrites
        a += b * b              the adjoint reads it there

Iterations that run again, a few at a time, have no next one at the end. There each iteration saves what it
reads. What only the iteration before would have read is not saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ...dialects import array
from ..analysis.affine import Affine
from .choice import defining_op
from .overwritten import Answer, Overwritten
from .plan import How, Plan, ReadNeighbour, ReadOld, Save, Saved
from .value_graph import ValueGraph
from .versions import Version


@dataclass(frozen=True)
class OwnSaves:
    """What one iteration saves in place of a tape of all."""

    kept: Save | None
    """The tape's own values; None where only other iterations read them."""
    reads: Mapping[Saved, Save]
    """What would have been read of the tape as another iteration saved it."""

    @property
    def every(self) -> Iterator[Save]:
        if self.kept is not None:
            yield self.kept
        yield from self.reads.values()


@dataclass(frozen=True)
class Readers:
    """What is read in other iterations than those that saved it."""

    of: Mapping[Saved, Mapping[Saved, Answer]]
    """What is read of each tape of old contents."""
    of_neighbours: frozenset[array.LoopOp]
    """The loops that have variables of the iteration before."""


def readers_in(plan: Plan) -> Readers:
    of: dict[Saved, dict[Saved, Answer]] = {}
    loops = set[array.LoopOp]()
    for node, how in plan.hows.items():
        if isinstance(how, ReadOld):
            for one in how.answer.instances:
                of.setdefault(one.of, {})[node] = how.answer
        elif isinstance(how, ReadNeighbour):
            loops.add(how.neighbour.loop)
    return Readers(of, frozenset(loops))


def own_saves(
    save: Save, all_readers: Readers, graph: ValueGraph, loop: array.LoopOp
) -> OwnSaves | None:
    """What each iteration saves in place of a tape; None where that is not enough."""
    if loop not in save.loops:
        return OwnSaves(save, {})
    if loop in all_readers.of_neighbours:
        return None
    readers = all_readers.of.get(save.node, {})
    others = [n for n, answer in readers.items() if not is_of_own(answer, save, loop)]
    reads_again: dict[Saved, Save] = {}
    for node in others:
        own = saved_itself(node, save, graph, loop)
        if own is None:
            return None
        reads_again[node] = own
    if len(others) == len(readers) and isinstance(save.node, Overwritten):
        return OwnSaves(None, reads_again)
    kept = of_one_iteration(save, loop) if save.margins[0] == (0, 0) else None
    return None if kept is None else OwnSaves(kept, reads_again)


def is_of_own(answer: Answer, save: Save, loop: array.LoopOp) -> bool:
    """Whether what is read of a tape was saved by the iteration that asks."""
    own = Affine.of(loop.induction)
    return all(one.of != save.node or one.at[0] == own for one in answer.instances)


def of_one_iteration(save: Save, loop: array.LoopOp) -> Save | None:
    """The save with a segment for each iteration of the loop, which is the outermost."""
    segment = save.segment
    before = loop.body.block.find_ancestor_op_in_block(save.at)
    if before is None or segment.loops[:1] != (loop,):
        return None
    inner = {"loops": segment.loops[1:], "margins": segment.margins[1:], "push_before": before}
    return replace(save, segment=replace(segment, **inner))


def saved_itself(node: Saved, tape: Save, graph: ValueGraph, loop: array.LoopOp) -> Save | None:
    """A save, in each iteration, of what is read."""
    if isinstance(node, Overwritten):
        return None
    at = graph.reader_of[node] if isinstance(node, Version) else defining_op(node)
    if not loop.is_ancestor(at):
        return None
    segment = graph.prices.segment(node, at, trusting=graph.trusting)
    own = replace(tape, node=node, at=at, source=at, segment=segment)
    if segment.in_bits or not (segment.own or len(segment.loops) > 1):
        return None
    return of_one_iteration(own, loop) if loop in segment.loops else own


def hows_of_one_iteration(plan: Plan, instead: Mapping[Save, OwnSaves]) -> dict[Saved, How]:
    """How values are had where saves became those of one iteration."""
    nodes = {s.node: len(s.loops) - len(own.kept.loops) for s, own in instead.items() if own.kept}
    hows: dict[Saved, How] = {}
    for node, how in plan.hows.items():
        if isinstance(how, Save) and how in instead and (kept := instead[how].kept) is not None:
            hows[node] = kept
        elif isinstance(how, ReadOld):
            hows[node] = ReadOld(of_own_iteration(how.answer, nodes))
    for own in instead.values():
        hows.update(own.reads)
    return hows


def of_own_iteration(answer: Answer, nodes: Mapping[Saved, int]) -> Answer:
    """An answer of which some segments belong to one iteration of the outermost loop now."""
    instances = tuple(
        replace(one, at=one.at[nodes[one.of] :], margins=one.margins[nodes[one.of] :])
        if one.of in nodes
        else one
        for one in answer.instances
    )
    return replace(answer, instances=instances)

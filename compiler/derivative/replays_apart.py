"""Loops whose iterations are replayed one by one: no iteration changes what another one starts from.

::

    for j in range(n):                                    saved: a[j] for each k < j
        for k in range(j):
            r[k, j] = np.dot(q[k], a[j])
            a[j] -= q[k] * r[k, j]
        q[j] = a[j] / norm(a[j])

This is a replay (`replays`) of stretches of one iteration, and needs no state for each of them: what the
iteration finds in `a[j]` was there before the loop. So one copy of `a` serves all iterations, and a tape for
each update of one row. It never takes more memory than the tapes of all rows, so a plan has it wherever it is
possible, while longer stretches are for long tapes alone.

`SIDE_BY_SIDE` iterations are replayed at a time, on tapes that lie side by side in one array. So later passes
see loops over rows and may take several rows at once (`jam-maps`).

Besides what `replays` refuses: arrays of which an iteration touches, or saves with all the others, what
another one stores to; tapes whose longest one is not known before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Subscripts
from ..analysis.dependence import Dependence
from ..analysis.made_of import all_made_of
from ..analysis.views import strip_views
from ..rules import Access, accesses
from ..rules.descriptors import descriptor_values
from ..transforms.interchange import known_before
from .own_saves import OwnSaves
from .plan import Plan, Replay, Save
from .replays import LESS, Finder, adopt, can_be_replayed
from .segments import ArrayExtent, Segment, extents_of_base, is_inside, is_recomputable
from .value_graph import ValueGraph
from .versions import Version

SIDE_BY_SIDE = 4
"""Iterations that are replayed at a time: as many as `jam-maps` takes at once."""


def replay_apart(plan: Plan, graph: ValueGraph) -> None:
    """Let loops of the function's top level be replayed iteration by iteration, where that is possible."""
    for loop in plan.function.body.block.ops:
        if isinstance(loop, array.LoopOp) and can_be_replayed(loop):
            found = ApartFinder(plan, graph, loop).find()
            if found is not None:
                adopt(plan, found)


class ApartFinder(Finder):
    """Finds what is cloned of one loop, whose iterations start from what was there before it."""

    def __init__(self, plan: Plan, graph: ValueGraph, loop: array.LoopOp) -> None:
        super().__init__(plan, graph, loop)
        self.final: set[tuple[Operation, SSAValue]] = set()
        """What maps read that nothing overwrites afterwards."""
        self.places = {op: k for k, op in enumerate(self.body.ops)}
        self.last = max(map(self._place, (save.at for save in self.tapes)), default=0)
        """Where in an iteration the last tape is filled."""

    def _place(self, op: Operation) -> int:
        found = self.body.find_ancestor_op_in_block(op)
        assert found is not None
        return self.places[found]

    def _comes_too_late(self, op: Operation) -> bool:
        place = self._place(op)
        return place > self.last or (place == self.last and op.parent is self.body)

    def find(self) -> tuple[Replay, dict[Save, OwnSaves]] | None:
        found = super().find()
        if found is None or self._copies_whole(found[1]) or not self._are_apart():
            return None
        replayed, instead = found
        late = frozenset(op for op in self._inside() if self._comes_too_late(op))
        return replace(replayed, apart=True, final=frozenset(self.final), late=late), instead

    def _inside(self) -> Iterator[Operation]:
        return (op for op in self.loop.walk() if op is not self.loop)

    def _touch(self, op: Operation, memory: SSAValue) -> None:
        if self._is_final(op, memory):
            self.final.add((op, memory))
        else:
            super()._touch(op, memory)

    def _is_final(self, op: Operation, memory: SSAValue) -> bool:
        """Whether a map reads what the program leaves there: rows that were finished before."""
        if not isinstance(op, array.MapOp) or memory in op.outs:
            return False
        survives = self.graph.kills.killer(Access(op, memory, "read")) is None
        outside = survives and not is_inside(strip_views(memory), self.loop)
        return outside and all(map(self.at_hand, descriptor_values(memory)))

    def _own_saves(self, save: Save) -> OwnSaves | None:
        own = super()._own_saves(save)
        return own if own is not None and all(map(self._has_longest, own.every)) else None

    def _has_longest(self, save: Save) -> bool:
        """Whether an iteration saves once, and how much at most is known before the loop."""
        numbers = [d.number for d in save.segment.dimensions]
        known = (isinstance(n, ArrayExtent) or slope(n, self.loop) is not None for n in numbers)
        return save.push_before.parent is self.body and all(known)

    def _state(self, base: SSAValue, save: Save) -> Save:
        """What is kept of an array: its contents before the loop."""
        element = cast(MemRefType[Attribute], base.type).element_type
        own, by_columns = extents_of_base(base), self._goes_along_columns(base)
        own = own[::-1] if by_columns else own
        segment = Segment(element, (), self.loop, (), own, by_columns=by_columns)
        version = Version(base, self.graph.ssa.version(base, self.loop))
        return replace(save, node=version, at=self.loop, segment=segment)

    def _copies_whole(self, found: Mapping[Save, OwnSaves]) -> bool:
        """Whether an iteration saves all of an array: also what other iterations store to."""
        saves = (save for own in found.values() for save in own.every)
        return any(isinstance(s.node, Version) and s.node.base in self.states for s in saves)

    def _are_apart(self) -> bool:
        """Whether no iteration stores to what another one touches of the arrays with a state."""
        dependence = Dependence(self.graph.function, self.graph.alias)
        found = [
            a
            for op in self._inside()
            if op in self.cloned or self._comes_too_late(op)
            for a in accesses(op)
            if strip_views(a.memref) in self.states
            if a.kind != "read" or (op in self.cloned and not self._is_final(op, a.memref))
        ]
        return not any(
            dependence.may_meet(a, b, self.loop)
            for a in found
            for b in found
            if "write" in (a.kind, b.kind) and strip_views(a.memref) is strip_views(b.memref)
        )

    def _pays(self, found: Mapping[Save, OwnSaves]) -> bool:
        if not self._leaves_out():
            return False
        prices = self.graph.prices
        states = sum(
            prices.of_segment(self._state(base, save).segment) for base, save in self.states.items()
        )
        share = SIDE_BY_SIDE / max(prices.nominal.trips_of(self.loop), 1.0)
        tape = sum(prices.of_segment(save.segment) for save in found)
        return states + share * tape <= tape / LESS


def slope(value: SSAValue, loop: array.LoopOp) -> int | None:
    """By how much a number grows with the iteration of a loop that computes it; None if that is unknown."""
    if not is_inside(value, loop):
        return 0
    if not is_computed(value, loop):
        return None
    form = Subscripts().affine(value)
    rest = form - Affine({loop.induction: form.terms.get(loop.induction, 0)})
    return form.terms.get(loop.induction, 0) if known_before(rest, loop) else None


def is_computed(value: SSAValue, loop: array.LoopOp) -> bool:
    """Whether a number of an iteration is pure code on its counter and what was there before the loop."""

    def sources(v: SSAValue) -> Sequence[SSAValue] | None:
        if not is_inside(v, loop) or v is loop.induction:
            return ()
        op = v.owner
        return op.operands if isinstance(op, Operation) and is_recomputable(op) else None

    return all_made_of([value], sources)

"""Loops whose reverse sweep fills a tape again, stretch by stretch, from states and values that are at hand.

A loop that updates an array in place saves its contents in each iteration::

    for k in range(n):                                   saved: y, n times
        alpha[k] = -(r[k] + np.dot(r[k-1::-1], y[:k]))
        y[:k] += alpha[k] * y[k-1::-1]

Most of the work is the sum. Its result is at hand in the reverse sweep, and the update alone makes the next
contents of `y` from those before. So the forward sweep keeps `y` of every `EVERY`-th iteration only: a
*state*. The reverse sweep goes through the loop in stretches of as many iterations. It first runs the updates
of a stretch from its state, which fill a tape; then it takes that tape from its top, as it would have taken
the whole one. The tape stays in the cache, and its memory serves all stretches.

Why here: after the plan, of which it takes the decisions. A `Replay` names what is cloned: the ops that store
to the *replayed* arrays (those with a state, and scratch arrays of an iteration), and what they compute. Cut
off is whatever is at hand:

- a number that the plan frees, recomputes, reloads, or saves for all iterations at once;
- what an op reads of memory that nothing overwrites afterwards.

Where no sum is left out, whole steps run again: then a stretch is short (`WHOLE_STEPS`), and the tape must be
longer for it to pay.

Refused: loops that carry arrays, end early, or are marked (parallel ones, those of a budget); updates by
functions, quotients, sums, products (`@`) and calls; states that are not much smaller than the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import cast

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.in_place import stands_still
from ..analysis.views import strip_views, views_between
from ..rules import Access, Contents, writes
from ..rules.descriptors import descriptor_values
from .overwritten import Answer, Overwritten, symbols_of
from .own_saves import OwnSaves, hows_of_one_iteration, own_saves, readers_in
from .plan import Free, How, Plan, ReadOld, Recompute, Reload, Replay, Save
from .prices import ACCESS, effort, takes_long
from .replayed_ops import base_of, is_column, is_set_first, is_sum, taken_in_body
from .segments import ArrayExtent, Segment, encloses, extents_of_base, is_inside, is_recomputable
from .value_graph import ValueGraph, numbers_of
from .versions import Version, is_growable

EVERY, WHOLE_STEPS = 16, 4
"""Iterations of a stretch, where a sum is left out, and where nothing is."""

WORTH_WHOLE_STEPS = 4
"""How many times what is otherwise enough must be saved less where whole steps run again.

Measured: tapes of 25 MB that only gradients touch stay in a third-level cache, and cost 0.85x of the steps;
those of 50 MB cost as much on a quiet machine, and 1.25x on a busy one, those of 100 MB 1.25x.
"""

LONGEST_STRETCH = 6_000_000
"""Bytes that whole steps may fill again at a time: with 8 MB the rows come from where the tape would."""

MOST_WORK = 1 / 12
"""What a whole step may take for each byte of tape, as `prices` counts."""

AGAIN = 3
"""What a byte costs that is saved or made again, where others are: as many of a tape that no cache holds."""

REPLAYS, REPLAYABLE, IN_WHOLE_STEPS = "replays", "replayable", "whole_steps"
"""The attributes of a function whose loops are to be replayed, of one whose loops could be, and of a gradient
that runs whole steps again."""

LESS = 2.0
"""How many times smaller than the tape the states must be, at nominal sizes."""


class Unavailable(Exception):
    """Something that the updates take is not at hand, or would take too long to compute again."""


def replay_loops(plan: Plan, graph: ValueGraph) -> None:
    """Let the loops of the function's top level be replayed where that is possible and pays.

    Where the function is not marked, only say that it could be. Those that leave out sums come first: where
    there are some, no other loop runs its steps again.
    """
    ops = plan.function.body.block.ops
    loops = [op for op in ops if isinstance(op, array.LoopOp) and can_be_replayed(op)]
    loops = [loop for loop in loops if loop not in plan.replays]
    found = [one for loop in loops if (one := Finder(plan, graph, loop).find()) is not None]
    parts = not all(runs_whole_steps(replayed) for replayed, _ in found)
    plan.worth = 1 if parts else WORTH_WHOLE_STEPS
    plan.can_replay = bool(found) and REPLAYS not in plan.function.attributes
    for loop in loops if found and not plan.can_replay else ():
        one = Finder(plan, graph, loop).find()
        if one is not None and runs_whole_steps(one[0]) is not parts:
            adopt(plan, one)


def runs_whole_steps(replayed: Replay) -> bool:
    return any(state.segment.every == WHOLE_STEPS for state in replayed.states.values())


def can_be_replayed(loop: array.LoopOp) -> bool:
    counted = loop.count is not None and loop.condition_block is None
    return counted and not loop.carried and not loop.attributes


def adopt(plan: Plan, made: tuple[Replay, Mapping[Save, OwnSaves]]) -> None:
    """Put a replay, and what saves became by it, in the plan."""
    replayed, instead = made
    position = min(plan.saves.index(save) for save in instead)
    plan.saves[position:position] = replayed.states.values()
    plan.saves[:] = [save for save in plan.saves if save not in instead]
    plan.hows |= hows_of_one_iteration(plan, instead)
    plan.replays[replayed.loop] = replayed


class Finder:
    """Finds what is cloned of one loop."""

    def __init__(self, plan: Plan, graph: ValueGraph, loop: array.LoopOp) -> None:
        self.plan, self.graph, self.loop = plan, graph, loop
        self.body = loop.body.block
        self.tapes = [save for save in plan.saves if self._is_tape(save)]
        self.cloned: set[Operation] = set()
        self.arrays: set[SSAValue] = set()
        self.every = EVERY
        self.states: dict[SSAValue, Save] = {}
        """The replayed arrays from outside the loop, each with the save because of which it is one."""
        self._readers = readers_in(plan)
        self._now: Save | None = None
        self._pending: list[Callable[[], None]] = []
        self._at_hand: dict[SSAValue, bool] = {}

    def _is_tape(self, save: Save) -> bool:
        """Whether a save has arrays of each iteration of the loop, in a form that can be filled again."""
        segment = save.segment
        in_loop = self.loop in save.loops or encloses(self.body, save.push_before)
        return in_loop and bool(segment.own or len(save.loops) > 1) and not save.in_bits

    def find(self) -> tuple[Replay, dict[Save, OwnSaves]] | None:
        found: dict[Save, OwnSaves] = {}
        for save in self.tapes:
            own = self._own_saves(save)
            before = set(self.cloned), set(self.arrays), dict(self.states)
            try:
                if own is None:
                    raise Unavailable
                for one in own.every:
                    self._fill(one)
                found[save] = own
            except Unavailable:
                self.cloned, self.arrays, self.states = before
                self._pending = []
        if not found or not self.states or not self._pays(found):
            return None
        of_its_own = {base_of(save): save for save in found}
        states = {b: self._state(b, of_its_own.get(b, s)) for b, s in self.states.items()}
        saves = tuple(one for own in found.values() for one in own.every)
        cloned, arrays = frozenset(self.cloned), frozenset(self.arrays)
        return Replay(self.loop, states, saves, cloned, arrays), found

    # What is kept.

    def _own_saves(self, save: Save) -> OwnSaves | None:
        """What each iteration saves in place of a tape."""
        own = own_saves(save, self._readers, self.graph, self.loop)
        return None if own is None or any(one.segment.turned for one in own.every) else own

    def _state(self, base: SSAValue, save: Save) -> Save:
        """What is kept of an array: its contents at the beginning of every so many-th iteration."""
        first = self.body.first_op
        assert first is not None
        element = cast(MemRefType[Attribute], base.type).element_type
        own, by_columns = extents_of_base(base), self._goes_along_columns(base)
        segment = Segment(
            element,
            (self.loop,),
            self.loop,
            ((0, 0),),
            own[::-1] if by_columns else own,
            every=self.every,
            by_columns=by_columns,
        )
        version = Version(base, self.graph.ssa.version(base, first))
        return replace(save, node=version, at=first, segment=segment)

    def _goes_along_columns(self, base: SSAValue) -> bool:
        """Whether the clones touch nothing of a matrix but columns, which then lie in one piece."""
        users = [use.operation for use in base.uses]
        inside = [op for op in users if op in self.cloned]
        views = [op for op in users if isinstance(op, array.AnyView | memref.CastOp)]
        if not inside or not all(map(self.loop.is_ancestor, views)):
            return False
        return all(isinstance(op, array.ViewOp) and is_column(op) for op in inside)

    # Whether it pays.

    def _leaves_out(self) -> bool:
        """Whether a sum as long as the longest update is not among what is cloned."""
        maps = (op for op in self.cloned if isinstance(op, array.MapOp))
        longest = max(map(self._points, maps), default=0.0)
        left = (op for op in self.loop.walk() if op not in self.cloned or self._only_saves(op))
        return any(is_sum(op) and self._points(op) >= longest / 2 for op in left)

    def _only_saves(self, op: Operation) -> bool:
        """Whether a map is cloned for what it saves, and not for what it stores."""
        return isinstance(op, array.MapOp) and not any(map(self._is_replayed, op.outs))

    def _points(self, op: Operation) -> float:
        nominal = self.graph.prices.nominal
        own = prod(map(nominal.size, op.extents)) if isinstance(op, array.MapOp) else 1.0
        return own * nominal.trips(cast(Block, op.parent))

    def _pays(self, found: Mapping[Save, OwnSaves]) -> bool:
        self.every = EVERY if self._leaves_out() else WHOLE_STEPS
        prices = self.graph.prices
        states = sum(
            prices.of_segment(self._state(base, save).segment) for base, save in self.states.items()
        )
        stretch = self.every / prices.nominal.trips_of(self.loop)
        tape = sum(prices.of_segment(save.segment) for save in found)
        again = (one.segment for own in found.values() for one in own.every)
        if self.every == WHOLE_STEPS and sum(map(self._work, self.cloned)) > MOST_WORK * tape:
            return False
        return states + stretch * sum(map(prices.of_segment, again)) <= tape / LESS

    def _work(self, op: Operation) -> float:
        """What an op takes that runs once more, in all iterations."""
        match op:
            case array.MapOp():
                values = [
                    v for o, v in zip(op.outs, op.yielded, strict=True) if self._is_replayed(o)
                ]
                each = sum(ACCESS + effort(v, op.body.block) for v in values)
            case memref.StoreOp():
                each = ACCESS + effort(op.value, cast(Block, op.parent))
            case _:
                return 0.0
        return each * self._points(op)

    def _is_replayed(self, memory: SSAValue) -> bool:
        return strip_views(memory) in self.arrays

    # What is cloned.

    def _fill(self, save: Save) -> None:
        """Clone what fills a segment of the save."""
        self._now = save
        if isinstance(save.node, Version):
            self._replay(save.node.base)
        elif isinstance(save.node, Overwritten):
            self._replay(strip_views(save.node.target))
            self._keep(save.node.store)
            self._touch(save.node.store, save.node.target)
        elif isinstance(save.node, Contents):
            self._check(not save.node.after)
            self._touch(save.node.op, save.node.memref)
        elif isinstance(save.at, array.MapOp):
            self._keep(save.at)
            self._compute(save.at, save.node)
        else:
            self._keep(save.at)
        self._keep_around(save.at)
        for number in (*save.segment.own, *(loop.count for loop in save.loops)):
            if isinstance(number, ArrayExtent):
                self._check(not is_inside(number.base, self.loop))
            else:
                self._want(cast(SSAValue, number))
        while self._pending:
            self._pending.pop()()

    def _check(self, holds: bool) -> None:
        if not holds:
            raise Unavailable

    def _want(self, value: SSAValue) -> None:
        """Have a number: at hand, or by cloning what computes it."""
        if not self.at_hand(value):
            self._check(isinstance(value.owner, Operation))
            self._keep(cast(Operation, value.owner))

    def _keep(self, op: Operation) -> None:
        if op in self.cloned:
            return
        self.cloned.add(op)
        self._keep_around(op)
        match op:
            case array.MapOp():
                self._check(op.shifts is None)
                for number in op.extents:
                    self._want(number)
                self._pending.append(lambda: self._compute_stored(op))
            case memref.StoreOp():
                for value in (op.value, *op.indices):
                    self._want(value)
                self._touch(op, op.memref)
            case memref.LoadOp():
                for value in op.indices:
                    self._want(value)
                self._touch(op, op.memref)
            case array.ViewOp() | array.CollapseOp() | array.AllocOp():
                self._check(not (op.attributes.keys() & {array.GROWABLE}))
                for value in op.operands:
                    if not isinstance(value.type, MemRefType):
                        self._want(value)
            case memref.CastOp():
                pass
            case _:
                self._check(is_recomputable(op) and not takes_long(op))
                for value in op.operands:
                    self._want(value)

    def _keep_around(self, op: Operation) -> None:
        """Clone the loops and branches in which an op stands."""
        around = op.parent_op()
        while around is not self.loop and around not in self.cloned:
            assert around is not None
            self.cloned.add(around)
            match around:
                case array.LoopOp():
                    self._check(around.count is not None and around.condition_block is None)
                    self._check(not around.carried and array.CLAIMED not in around.attributes)
                    self._want(cast(SSAValue, around.count))
                case scf.IfOp():
                    self._check(not around.results and array.RAISES not in around.attributes)
                    self._want(around.cond)
                case _:
                    raise Unavailable
            around = around.parent_op()

    def _compute_stored(self, op: array.MapOp) -> None:
        """What a map stores to replayed arrays; asked again when there are more of them."""
        for out, value in zip(op.outs, op.yielded, strict=True):
            if strip_views(out) in self.arrays and not self._comes_too_late(op):
                self._check(not stands_still(out))
                self._touch(op, out)
                self._compute(op, value)

    def _compute(self, op: array.MapOp, value: SSAValue) -> None:
        """What a value of a map's body takes."""
        for part in taken_in_body(op, value):
            if isinstance(part, BlockArgument) and part.owner is op.body.block:
                self._touch(op, op.ins[part.index])
            elif isinstance(part.owner, Operation) and part.owner.parent is op.body.block:
                self._check(is_recomputable(part.owner) and not takes_long(part.owner))
            else:
                self._want(part)

    def _touch(self, op: Operation, memory: SSAValue) -> None:
        """Memory that a clone reads or writes: it is there, or one of the replayed arrays."""
        base = strip_views(memory)
        if base not in self.arrays:
            survives = self.graph.kills.killer(Access(op, memory, "read")) is None
            if survives and not is_inside(base, self.loop):
                for number in descriptor_values(memory):
                    self._check(self.at_hand(number))
                return
            self._replay(base)
        for view in views_between(memory, base):
            if is_inside(view.results[0], self.loop):
                self._keep(view)

    def _replay(self, base: SSAValue) -> None:
        """Clone all that the loop stores to an array."""
        if base in self.arrays:
            return
        alias, owner = self.graph.alias, base.owner
        is_cell = is_set_first(base, self.loop)
        self._check(is_cell or self._can_have_state(base))
        self._check(len(alias.interfering(base)) == 1)
        self.arrays.add(base)
        if is_inside(base, self.loop):
            self._keep(cast(Operation, owner))
        elif not is_cell:
            assert self._now is not None
            self.states[base] = self._now
        for op, memory in self._stores.get(base, ()):
            if not self._comes_too_late(op):
                self._check(strip_views(memory) is base)
                self._check(isinstance(op, array.MapOp | memref.StoreOp))
                self._keep(op)
                self._touch(op, memory)
                if isinstance(op, array.MapOp):
                    self._pending.append(lambda op=op: self._compute_stored(op))

    @cached_property
    def _stores(self) -> dict[SSAValue, list[tuple[Operation, SSAValue]]]:
        """What stores in the loop to each root, in order, and where."""
        found: dict[SSAValue, list[tuple[Operation, SSAValue]]] = {}
        for op in every_op(self.loop):
            for write in writes(op):
                for root in self.graph.alias.roots(write.memref):
                    found.setdefault(root, []).append((op, write.memref))
        return found

    def _comes_too_late(self, op: Operation) -> bool:
        """Whether nothing that is replayed reads what an op stores."""
        return False

    def _can_have_state(self, base: SSAValue) -> bool:
        """An array of the function's own, made before the loop or in each iteration, or an argument."""
        owner = base.owner
        made = isinstance(owner, array.AllocOp) or (
            isinstance(owner, Block) and isinstance(owner.parent_op(), func.FuncOp)
        )
        if not made or not isinstance(base.type, MemRefType) or is_growable(base):
            return False
        return array.is_contiguous(cast(MemRefType[Attribute], base.type)) and (
            is_inside(base, self.loop) or self.graph.at_top_level(base)
        )

    # What is at hand.

    def at_hand(self, value: SSAValue) -> bool:
        """Whether the reverse sweep has a number of any iteration, in any order."""
        if not is_inside(value, self.loop):
            return True
        if value not in self._at_hand:
            self._at_hand[value] = False  # while it is looked at
            self._at_hand[value] = self._is_at_hand(value)
        return self._at_hand[value]

    def _is_at_hand(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            around = value.owner.parent_op()
            return isinstance(around, array.LoopOp) and value is around.induction
        how: How | None = self.plan.hows.get(value)
        match how:
            case Save():
                return how.segment.is_scalar and self._is_for_all(how)
            case ReadOld(answer):
                return self._answers(answer)
            case Reload(stored=memref.StoreOp() as store):
                return self._stays(Access(store, store.memref, "write"))
            case Reload(stored=None, copy=None) if isinstance(value.owner, memref.LoadOp):
                return self._stays(Access(value.owner, value.owner.memref, "read"))
            case None | Recompute(refill=None) | Free():
                return self._is_computed(cast(Operation, value.owner), how)
            case _:
                return False

    def _is_for_all(self, save: Save) -> bool:
        """Whether a save lies on no tape that is taken from its top."""
        return save.push_before.parent is self.graph.function.body.block and save not in self.tapes

    def _answers(self, answer: Answer) -> bool:
        for one in answer.instances:
            save = self.plan.save_of(one.of)
            if save is None or not self._is_for_all(save):
                return False
        if any(
            isinstance(s.type, MemRefType) and is_inside(s, self.loop) for s in symbols_of(answer)
        ):
            return False
        numbers = [s for s in symbols_of(answer) if not isinstance(s.type, MemRefType)]
        return all(map(self.at_hand, numbers)) and self._stays(answer.access)

    def _stays(self, access: Access) -> bool:
        """Whether memory that is known to survive can be found."""
        if is_inside(strip_views(access.memref), self.loop):
            return False
        return all(map(self.at_hand, numbers_of(access)))

    def _is_computed(self, op: Operation, how: How | None) -> bool:
        match op:
            case memref.LoadOp() if how is None:
                read = Access(op, op.memref, "read")
                return self.graph.kills.killer(read) is None and self._stays(read)
            case array.LoopOp():
                counted = op.condition_block is None and op.count is not None
                return counted and self.at_hand(cast(SSAValue, op.count))
            case _:
                scalars = not any(isinstance(o.type, MemRefType) for o in op.operands)
                if not scalars or not is_recomputable(op) or takes_long(op):
                    return False
                return all(map(self.at_hand, op.operands))

"""The reverse of a replayed loop: where that of a stretch of iterations begins, its tapes are filled again.

::

    array.loop %s to %trips do {
      %k = %trips - 1 - %s
      scf.if %k % 8 == 7 or %s == 0 {
        array.map ins(%y_saved[%k / 8]) outs(%y_again)      // the state that the forward sweep kept
        array.loop %i to %k % 8 + 1 do {
          %y_saved_1 = ad.push %tape(%n)
          ...                                               // the updates of iteration %k / 8 * 8 + %i
        }
      }
      %y_saved_2 = ad.pop %tape(%n)
      ...                                                   // the adjoint, as without stretches
    }

What is cloned, and why it may be: `replays`. The clones are written as the forward sweep writes the primal,
with the saves that it leaves out. What they take of the primal is had as it is in the reverse of the body.
Old contents that several maps read are copied to the tape before the first of them, which all read the copy:
then no map waits for another that reads the array by another view.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from ...dialects import ad, array
from ...dialects.within import ops_of_kind
from ..analysis.affine import affine, extent
from ..analysis.views import strip_views, views_between
from ..rules import writes
from ..rules.builders import extents_of, index, transfer, whole_lines
from ..rules.sweeps import PRIMAL
from .forward_sweep import ForwardSweep, copy_hints, is_at_hand, state_at
from .old_contents import OldContents
from .overwritten import Answer, Overwritten
from .plan import ReadOld, Replay, Save, hint_of
from .replayed_ops import taken_in_body
from .segments import ArrayExtent, comes_before, is_inside
from .sweeps import Primal, Sweep
from .versions import Version


class Values(dict[SSAValue, SSAValue]):
    """The values of the primal as clones have them: their own, or as the reverse sweep has them again."""

    def __init__(self, primal: Primal) -> None:
        super().__init__()
        self.primal = primal

    def __missing__(self, value: SSAValue) -> SSAValue:
        if isinstance(value.type, MemRefType):
            found = self.primal.memref(value, PRIMAL)
        else:
            found = self.primal.get(value)
        self[value] = found
        return found

    def __contains__(self, value: object) -> bool:
        return True

    def get(self, value: SSAValue, default: object = None) -> SSAValue:  # pyright: ignore
        return self[value]


class ReplaySweep(ForwardSweep):
    """Writes the clones of one loop."""

    def __init__(self, sweep: Sweep, replay: Replay) -> None:
        primal = sweep.primal
        plan = replace(primal.plan, saves=list(replay.saves))
        super().__init__(plan, primal.forward.entry, Values(primal))
        self.sweep, self.primal, self.replay = sweep, primal, replay
        self.every = next(iter(replay.states.values())).segment.every
        self.rows_of: dict[Save, SSAValue] = {}
        """The arrays a row of which is the segment of an iteration."""
        self.make_tapes()
        self._early: dict[Operation, list[Save]] = {}
        """Saves of old contents that are made before the op that reads them first."""
        self._copied: list[Save] = []
        """Those that have been made."""
        self._of_earlier: dict[Operation, list[tuple[Save, SSAValue]]] = {}
        """What maps save for earlier ones, which read the same and store nothing."""
        for save in filter(self._can_be_early, replay.saves):
            reader = self._first_reader(save)
            if reader is not None:
                self._early.setdefault(reader, []).append(save)
                self._pushed_before[save.push_before].remove(save)
                self._pushed_before.setdefault(reader, []).append(save)
        for base, state in replay.states.items():
            self.values[base] = self._copy_of(base, state)
        for cell in ops_of_kind(plan.function, memref.AllocaOp):
            if cell.memref in replay.arrays:
                element = cell.memref.type.element_type
                self.values[cell.memref] = primal.prologues.cell(element, cell.location)
        self._rebuild_views()

    def make_tapes(self) -> None:
        primal = self.primal
        for save in self.replay.saves:
            base = self._array_saved_by(save)
            if base is not None and not lies_in_rows(save, self.replay.loop):
                self.rows_of[save] = self._array_of_rows(base, save)
                continue
            self.tapes[save] = primal.forward.tapes[save] = primal.prologues.tape(save.at.location)
            if lies_in_rows(save, self.replay.loop):
                self.rows_of[save] = self._rows_on_tape(save)

    @contextmanager
    def blocks(self, trips: SSAValue) -> Generator[tuple[SSAValue, SSAValue | None]]:
        """Around the loop over so many iterations: how many it has, and the first of these."""
        yield trips, None

    def _array_saved_by(self, save: Save) -> SSAValue | None:
        """The array of which an iteration saves a part, once, where its rows have room for that."""
        around, part = save.push_before.parent_op(), saved_part(save)
        while isinstance(around, scf.IfOp):
            around = around.parent_op()
        if around is not self.replay.loop or save.loops or part is None:
            return None
        base, own = strip_views(part), save.segment.own
        state = self.replay.states.get(base)
        if state is None or state.segment.by_columns or save.segment.turned:
            return None
        if not is_along(part, base):
            return None
        sizes = [extent(n.base, n.axis) if isinstance(n, ArrayExtent) else affine(n) for n in own]
        return base if sizes == [extent(part, axis) for axis in range(rank_of(base))] else None

    def _array_of_rows(self, base: SSAValue, save: Save) -> SSAValue:
        """A row for each iteration of a stretch, and one for what the last one leaves (`step-on-rows`)."""
        emit = self.sweep.emit
        extents = [index(self.every + 1, emit), *self._extents_of(base)]
        rows = array.AllocOp(extents, save.stored)
        rows.attributes[ad.ROWS] = UnitAttr()
        rows.memref.name_hint = f"{base.name_hint or 'array'}_rows"
        return emit(rows)

    def _extents_of(self, base: SSAValue) -> list[SSAValue]:
        owner, forward = base.owner, self.primal.forward.values
        if isinstance(owner, array.AllocOp):
            return [forward[e] for e in owner.extents]
        return extents_of(forward[base], self.sweep.emit)

    def _copy_of(self, base: SSAValue, state: Save) -> SSAValue:
        """An array of the clones' own, before all stretches."""
        extents, emit = self._extents_of(base), self.sweep.emit
        by_columns, name = state.segment.by_columns, f"{base.name_hint or 'array'}_again"
        if not by_columns:
            copy = emit(array.AllocOp(extents, state.element))
            copy.name_hint = name
            return copy
        rows, columns = extents
        lines = [columns, whole_lines(rows, state.element, emit)]
        copy = emit(array.AllocOp(lines, state.element))
        copy.name_hint = name
        zero, one = index(0, emit), index(1, emit)
        return emit(array.ViewOp(copy, [zero, zero], [1, 0], extents, [one, one]))

    def _rows_on_tape(self, save: Save) -> SSAValue:
        """The rows of a save, one for each iteration of a stretch, before all stretches (`step-on-tape`)."""
        emit, primal = self.sweep.emit, self.primal
        sizes = save.segment.sizes(
            lambda n: primal.get(n),
            lambda base, axis: extents_of(primal.forward.values[base], emit)[axis],
            emit,
        )
        trips = primal.get(self.replay.loop.trips)
        count = emit(arith.MinSIOp(trips, index(self.every, emit)))
        push = ad.PushOp(self.tapes[save], [count, *sizes], save.stored)
        push.attributes[ad.REFILLED] = UnitAttr()
        push.memref.name_hint = f"{hint_of(save)}_saved"
        push.location = save.at.location
        self.sweep.append(push)
        return push.memref

    def before(self, induction: SSAValue, done: SSAValue) -> None:
        """Fill the tapes where the reverse of a stretch begins, after so many iterations."""
        sweep = self.sweep
        emit, last = sweep.emit, index(self.every - 1, sweep.emit)
        place = emit(arith.AndIOp(induction, last))
        self.primal.forward.rows |= {s: (rows, place) for s, rows in self.rows_of.items()}
        is_last = emit(arith.CmpiOp(place, last, "eq"))
        is_first = emit(arith.CmpiOp(done, index(0, emit), "eq"))
        begins = emit(arith.OrIOp(is_last, is_first))
        inner = Block()
        with sweep.at(inner):
            span = emit(arith.ShRUIOp(induction, index(self.every.bit_length() - 1, emit)))
            count = emit(arith.AddiOp(place, index(1, emit)))
            self._fill(span, emit(arith.SubiOp(induction, place)), count)
            sweep.append(scf.YieldOp())
        sweep.append(scf.IfOp(begins, [], [inner], [Block([scf.YieldOp()])]))

    def _fill(self, span: SSAValue, first: SSAValue, count: SSAValue) -> None:
        """Fill the tapes of so many iterations from `first` on."""
        sweep, primal = self.sweep, self.primal
        for base, state in self.replay.states.items():
            copy = self.values[base]
            extents = extents_of(copy, sweep.emit)
            segment = primal.forward.segments[state]
            kept = state_at(segment, state, [span], extents, sweep.block)
            sweep.append(transfer(kept, copy, extents))
        self.run_again(first, count)

    def run_again(self, first: SSAValue, count: SSAValue) -> None:
        """The updates of so many iterations."""
        sweep, loop = self.sweep, self.replay.loop
        body = Block(arg_types=[IndexType()])
        self.rows = {s: (rows, body.args[0]) for s, rows in self.rows_of.items()}
        with sweep.at(body):
            counter = sweep.emit(arith.AddiOp(first, body.args[0]))
            counter.name_hint = loop.induction.name_hint
            self.values[loop.induction] = counter
            self._clone_block(loop.body.block, body)
        sweep.append(array.LoopOp(count, [], body))

    def _rebuild_views(self) -> None:
        """The views of the copies that are made before the loop."""
        loop = self.replay.loop
        for op in loop.walk():
            for memory in (o for o in op.operands if isinstance(o.type, MemRefType)):
                base = strip_views(memory)
                own = base in self.replay.states or isinstance(base.owner, memref.AllocaOp)
                if op not in self.replay.cloned or not own or base not in self.replay.arrays:
                    continue
                for view in reversed(views_between(memory, base)):
                    if not is_inside(view.results[0], loop):
                        self._rebuild(view)

    def _rebuild(self, view: Operation) -> None:
        assert isinstance(view, array.AnyView | memref.CastOp)
        source, emit = self.values[view.source], self.sweep.emit
        if isinstance(view, memref.CastOp):
            type_ = cast(MemRefType[Attribute], view.dest.type)
            self.values[view.dest] = emit(memref.CastOp.get(source, type_))
        else:
            self.values[view.results[0]] = emit(view.of(source, self.primal.get))

    # Clones.

    def _clone_block(self, source: Block, target: Block) -> None:
        """What is cloned of a block, and the values of the block that this takes before it."""
        primal, loop = self.primal, source.parent_op()
        known, inductions = primal.known.mark(), dict(primal.induction)
        counted = isinstance(loop, array.LoopOp)
        if counted:
            counter = self.values[loop.induction]
            primal.known.values[loop.induction] = primal.induction[loop] = counter
        primal.prologues.begin(source, target)
        super()._clone_block(source, target)
        primal.prologues.close(source)
        primal.known.leave(target, known)
        if counted:
            primal.induction.pop(loop)
            primal.induction.update(inductions)

    def _clone_one(self, op: Operation, target: Block) -> None:
        for save in self._early.get(op, ()):
            self._keep_old(save, cast(Overwritten, save.node), target)
            self._copied.append(save)
        if op in self.replay.cloned and isinstance(op, array.AnyView):
            made = op.of(self.values[op.source], self.values.__getitem__)
            target.add_op(made)
            copy_hints(op, made, self.values)
        elif op in self.replay.cloned or op.has_trait(IsTerminator):
            super()._clone_one(op, target)

    def _clone_map(self, op: array.MapOp, target: Block) -> None:
        """A map that stores to replayed arrays alone, and saves."""
        late, arrays = op in self.replay.late, self.replay.arrays
        outs = [k for k, out in enumerate(op.outs) if not late and strip_views(out) in arrays]
        saves = [(s, cast(SSAValue, s.node)) for s in self._saved_in_map.get(op, ())]
        saves += self._of_earlier.get(op, [])
        if not outs and (later := next_map(op, saves, self.replay.cloned)) is not None:
            pairs = [
                (s, argument_of(later, op.ins[cast(BlockArgument, v).index])) for s, v in saves
            ]
            self._of_earlier.setdefault(later, []).extend(pairs)
            return
        for save in self._copied_before.get(op, ()):
            if is_at_hand(save.node, save) and save not in self._copied:
                saves.append((save, argument_of(op, cast(Overwritten, save.node).target)))
        wanted = [*(op.yielded[k] for k in outs), *(value for _, value in saves)]
        taken = {part for value in wanted for part in taken_in_body(op, value)}
        read = [a for a in op.body.block.args if a in taken]
        sources = [self._source(op, a, target) for a in read]
        body = Block(arg_types=[a.type for a in read])
        for old, fresh in zip(read, body.args, strict=True):
            fresh.name_hint = old.name_hint
            self.values[old] = fresh
        for inner in op.body.block.ops:
            if not taken.isdisjoint(inner.results):
                clone = inner.clone_without_regions(self.values)
                body.add_op(clone)
                copy_hints(inner, clone, self.values)
        body.add_op(array.YieldOp([self.values[v] for v in wanted]))
        extents = [self.values[e] for e in op.extents]
        slots = [self.slot(save, target, extents) for save, _ in saves]
        clone = array.MapOp(
            extents,
            sources,
            [self.values[op.outs[k]] for k in outs] + slots,
            [*(op.out_kinds[k] for k in outs), *("store" for _ in slots)],
            Region(body),
        )
        clone.location = op.location
        target.add_op(clone)

    # Old contents on the tape.

    def _can_be_early(self, save: Save) -> bool:
        """Whether what a map overwrites may be copied before another op of its block."""
        if not is_at_hand(save.node, save) or save.push_before is not save.at or save.loops:
            return False
        return all(e.owner not in self.replay.cloned for e in cast(Overwritten, save.node).extents)

    def _first_reader(self, save: Save) -> Operation | None:
        """The first op of the block that reads the old contents by another view; nothing stores since."""
        old = cast(Overwritten, save.node)
        base, found = strip_views(old.target), None
        op = save.at.prev_op
        while op is not None and op is not old.target.owner:
            if op in self.replay.cloned:
                if op.regions and not isinstance(op, array.MapOp):
                    break
                if any(strip_views(w.memref) is base for w in writes(op)):
                    break
                if isinstance(op, array.MapOp) and self._reads_old(op, old):
                    found = op
            op = op.prev_op
        return found

    def _reads_old(self, op: array.MapOp, old: Overwritten) -> bool:
        hows = map(self.plan.hows.get, op.body.block.args)
        answers = [how.answer for how in hows if isinstance(how, ReadOld)]
        return any(not a.may_survive and all(one.of == old for one in a.instances) for a in answers)

    def _source(self, op: array.MapOp, argument: BlockArgument, target: Block) -> SSAValue:
        """What a map reads: of old contents that are on the tape by now, those."""
        memory = op.ins[argument.index]
        if (op, memory) in self.replay.final:
            with self.primal.at_place(cast(Block, op.parent), target):
                return self.primal.memref(memory, PRIMAL)
        for save in self._copied:
            if memory is cast(Overwritten, save.node).target and not comes_before(save.at, op):
                return self.slot(save, target, [self.values[e] for e in op.extents])
        how = self.plan.hows.get(argument)
        if isinstance(how, ReadOld) and self._is_copied(how.answer):
            block = cast(Block, op.parent)
            with self.primal.at_place(block, target):
                extents = [self.values[e] for e in op.extents]
                return OnTape(self, block).view(how.answer, extents)
        return self.values[memory]

    def _is_copied(self, answer: Answer) -> bool:
        copied = {save.node for save in self._copied}
        return not answer.may_survive and all(one.of in copied for one in answer.instances)


class OnTape(OldContents):
    """Old contents on the tapes that are being filled."""

    def __init__(self, sweep: ReplaySweep, block: Block) -> None:
        super().__init__(sweep.primal, block)
        self.segments = sweep.segments

    def segment(self, save: Save) -> SSAValue:
        return self.segments[save]


def saved_part(save: Save) -> SSAValue | None:
    """The array, or the part of one, of which a save keeps each element."""
    node = save.node
    if isinstance(node, Version):
        return node.base
    if isinstance(node, Overwritten):
        return node.target
    if isinstance(save.at, array.MapOp) and node in save.at.body.block.args:
        return save.at.ins[cast(BlockArgument, node).index]
    return None


def is_along(part: SSAValue, base: SSAValue) -> bool:
    """Whether a part has the axes of its array, and no element twice."""
    view = part.owner
    return part is base or (
        isinstance(view, array.ViewOp)
        and view.source is base
        and view.source_dims == tuple(range(rank_of(base)))
        and all(array.constant_value(step) not in (None, 0) for step in view.steps)
    )


def rank_of(memory: SSAValue) -> int:
    return cast(MemRefType[Attribute], memory.type).get_num_dims()


def lies_in_rows(save: Save, loop: array.LoopOp) -> bool:
    """Whether each iteration of the loop pushes one segment, all of them of one size."""
    numbers = [dimension.number for dimension in save.segment.dimensions]
    values = [n.base if isinstance(n, ArrayExtent) else n for n in numbers]
    once = save.push_before.parent_block() is loop.body.block
    return once and not any(is_inside(value, loop) for value in values)


def argument_of(op: array.MapOp, memory: SSAValue) -> SSAValue:
    """An element of what a map reads."""
    return op.body.block.args[op.ins.index(memory)]


def next_map(
    op: array.MapOp, saves: Sequence[tuple[Save, SSAValue]], cloned: Collection[Operation]
) -> array.MapOp | None:
    """The map that is cloned next, where it reads all that `op` saves, which stores nothing itself."""
    if not all(isinstance(v, BlockArgument) and v.owner is op.body.block for _, v in saves):
        return None
    later = op.next_op
    while later is not None and not (isinstance(later, array.MapOp) and later in cloned):
        if later in cloned and (later.regions or writes(later)):
            return None
        later = later.next_op
    if later is None or list(later.extents) != list(op.extents):
        return None
    reads = [op.ins[cast(BlockArgument, v).index] for _, v in saves]
    return later if all(read in later.ins for read in reads) else None

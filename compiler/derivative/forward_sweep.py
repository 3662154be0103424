"""The forward sweep: the primal, op for op, that also writes to tapes what the plan saves.

Before::

    func.func @f(%x : memref<?xf64>, %n : index) {
      %trips = array.loop %i to %n do {
        %a = memref.load %x[%i] : memref<?xf64>
        %b = arith.mulf %a, %a : f64
        memref.store %b, %x[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After (the forward half of the gradient)::

    %tape = ad.tape
    %a_saved = ad.push %tape(%n) : memref<?xf64>
    %trips = array.loop %i to %n do {
      %a = memref.load %x[%i] : memref<?xf64>
      memref.store %a, %a_saved[%i] : memref<?xf64>
      ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import activation, ad, array, foreign
from ..rules import Contents
from ..rules.builders import Emit, extents_of, transfer, transpose
from ..rules.calls import private_functions
from ..rules.routines import inlined, is_kept, primal_of
from ..rules.table import index_constant
from . import bits
from .overwritten import Overwritten
from .plan import Plan, Save, Saved, hint_of
from .segments import as_it_lies, is_inside, is_recomputable
from .steps import Running, RunSteps, call_of
from .versions import Version


class ForwardSweep:
    """Clones the primal into the gradient function, with the saves."""

    def __init__(self, plan: Plan, entry: Block, arguments: dict[SSAValue, SSAValue]) -> None:
        self.plan = plan
        self.entry = entry
        self.values: dict[SSAValue, SSAValue] = arguments
        """Each primal value in the gradient function, as the forward sweep computes it."""
        self.tapes: dict[Save, SSAValue] = {}
        self.segments: dict[Save, SSAValue] = {}
        """The segment each save writes to, as pushed."""
        self.rows: dict[Save, tuple[SSAValue, SSAValue]] = {}
        """Of saves whose segments are rows of one array (`replay_sweep`), that array, and which row it is."""
        self.steps: dict[array.LoopOp, Running] = {}
        """What runs the steps of each checkpointed loop."""
        self.bytes: dict[Save, SSAValue] = {}
        """The cell of each save that puts eight truths in a byte."""
        self._pushed_before: dict[Operation, list[Save]] = {}
        self._copied_before: dict[Operation, list[Save]] = {}
        self._saved_after: dict[Operation, list[Save]] = {}
        self._saved_in_map: dict[Operation, list[Save]] = {}
        for save in plan.saves:
            self._pushed_before.setdefault(save.push_before, []).append(save)
            if isinstance(save.node, Version | Overwritten) or is_before(save.node):
                self._copied_before.setdefault(save.at, []).append(save)
            elif isinstance(save.at, array.MapOp) and isinstance(save.node, SSAValue):
                self._saved_in_map.setdefault(save.at, []).append(save)
            else:
                self._saved_after.setdefault(save.at, []).append(save)

    def run(self) -> None:
        for save in self.plan.saves:
            tape = ad.TapeOp()
            tape.location = save.at.location
            self.entry.add_op(tape)
            self.tapes[save] = tape.tape
            if save.in_bits:
                cell = memref.AllocaOp.get(save.stored, shape=[])
                self.bytes[save] = emitter(self.entry, save.at)(cell)
                cell.memref.name_hint = f"{hint_of(save)}_byte"
        self._clone_block(self.plan.function.body.block, self.entry)

    def _clone_block(self, source: Block, target: Block) -> None:
        for op in source.ops:
            for save in self._pushed_before.get(op, ()):
                self._push(save, target)
            for save in self._copied_before.get(op, ()):
                if isinstance(save.node, Contents):
                    self._copy_part(save, save.node, target)
                elif isinstance(save.node, Overwritten):
                    if not is_at_hand(save.node, save):
                        self._keep_old(save, save.node, target)
                else:
                    self._copy_version(save, target)
            if not isinstance(op, func.ReturnOp):
                self._clone_one(op, target)
            for save in self._saved_after.get(op, ()):
                if isinstance(save.node, Contents):
                    self._copy_part(save, save.node, target)
                else:
                    self._store(save, target)

    def _clone_one(self, op: Operation, target: Block) -> None:
        if isinstance(op, array.MapOp):
            self._clone_map(op, target)
        else:
            self._clone_op(op, target)

    def _clone_op(self, op: Operation, target: Block) -> None:
        if isinstance(op, foreign.RuleCallOp) and not is_kept(op):
            arguments = [self.values[o] for o in op.operands]
            results = inlined(primal_of(op), arguments, target.add_op, self.entry)
            self.values.update(zip(op.results, results, strict=True))
            return
        if isinstance(op, array.LoopOp) and activation.CHECKPOINTED in op.attributes:
            private = private_functions(self.plan.function.parent_op())
            step = private[call_of(op).target]
            self.steps[op] = RunSteps(op, target, self.entry).run(self.values, step)
            return
        clone = op.clone_without_regions(self.values)
        if isinstance(clone, activation.CallOp) and self.plan.needed.has_adjoint(op):
            clone.keep_record()
        target.add_op(clone)
        copy_hints(op, clone, self.values)
        for region, cloned_region in zip(op.regions, clone.regions, strict=True):
            for block in region.blocks:
                inner = Block(arg_types=[a.type for a in block.args])
                for old, fresh in zip(block.args, inner.args, strict=True):
                    fresh.name_hint = old.name_hint
                    self.values[old] = fresh
                cloned_region.add_block(inner)
                self._clone_block(block, inner)

    def _clone_map(self, op: array.MapOp, target: Block) -> None:
        """A map that saves elements, its own or those that it overwrites, has more outputs: the segments."""
        saves = self._saved_in_map.get(op, ())
        kept = [s for s in self._copied_before.get(op, ()) if is_at_hand(s.node, s)]
        body = Block(arg_types=[a.type for a in op.body.block.args])
        for old, fresh in zip(op.body.block.args, body.args, strict=True):
            fresh.name_hint = old.name_hint
            self.values[old] = fresh
        for inner in op.body.block.ops:
            if not isinstance(inner, array.YieldOp):
                self._clone_op(inner, body)
        yields = [self.values.get(v, v) for v in op.yielded]
        yields += [self.values[cast(SSAValue, s.node)] for s in saves]
        yields += [body.args[op.ins.index(cast(Overwritten, s.node).target)] for s in kept]
        body.add_op(array.YieldOp(yields))
        extents = [self.values[e] for e in op.extents]
        packed = [s for s in saves if s.in_packed_rows]
        truths = {s: emitter(target, op)(array.AllocOp(extents, i1)) for s in packed}
        for save, made in truths.items():
            made.name_hint = hint_of(save)
        slots = [truths.get(s) or self.slot(s, target, extents) for s in (*saves, *kept)]
        clone = array.MapOp(
            extents,
            [self.values[m] for m in op.ins],
            [self.values[m] for m in op.outs] + slots,
            [*op.out_kinds, *("store" for _ in slots)],
            Region(body),
        )
        clone.location = op.location
        target.add_op(clone)
        for save, made in truths.items():
            emit = emitter(target, op)
            sizes = [*extents[:-1], bits.bytes_for(extents[-1], emit)]
            bits.pack(made, self.slot(save, target, sizes), extents, op, emit)

    # Segments.

    def _push(self, save: Save, target: Block) -> None:
        """Push the segment: one dimension for each indexing loop, then the value's own."""
        counts = self._sizes(save, target)
        if save in self.rows:
            rows, place = self.rows[save]
            segment = segment_slot(rows, [place], counts, target)
        else:
            segment = emitter(target, save.at)(ad.PushOp(self.tapes[save], counts, save.stored))
        segment.name_hint = f"{hint_of(save)}_saved"
        if save.segment.turned:
            segment = as_it_lies(segment, emitter(target, save.at))
        self.segments[save] = segment

    def _sizes(self, save: Save, target: Block) -> list[SSAValue]:
        extents = self._extents(save, target)
        return save.segment.sizes(
            lambda n: self._number(n, save, target), extents, emitter(target, save.at)
        )

    def _extents(self, save: Save, target: Block) -> Callable[[SSAValue, int], SSAValue]:
        """Finds the extents of an array, each array's at once."""
        known: dict[SSAValue, list[SSAValue]] = {}

        def extent(base: SSAValue, axis: int) -> SSAValue:
            if base not in known:
                known[base] = extents_of(self.values[base], emitter(target, save.at))
            return known[base][axis]

        return extent

    def _number(self, value: SSAValue, save: Save, target: Block) -> SSAValue:
        """`value` here, before the loops: as computed already, or computed early (it is pure)."""
        made: dict[Operation, Operation] = {}

        def here(v: SSAValue) -> SSAValue:
            if v in self.values and not is_inside(v, save.push_before):
                return self.values[v]
            op = v.owner
            assert isinstance(op, Operation)
            assert is_recomputable(op), v
            if op not in made:
                made[op] = op.clone({o: here(o) for o in op.operands})
                target.add_op(made[op])
            return made[op].results[list(op.results).index(v)]  # pyright: ignore

        return here(value)

    def slot(self, save: Save, target: Block, own: Sequence[SSAValue]) -> SSAValue:
        """The part of the segment that belongs to the current iteration."""
        inductions = [self.values[loop.induction] for loop in save.loops]
        return segment_slot(self.segments[save], inductions, own, target)

    def _store(self, save: Save, target: Block) -> None:
        inductions = [self.values[loop.induction] for loop in save.loops]
        value = self.values[cast(SSAValue, save.node)]
        if save.in_bits:
            emit = emitter(target, save.at)
            bits.store_bit(self.segments[save], self.bytes[save], inductions, value, emit)
            return
        store = memref.StoreOp.get(value, self.segments[save], inductions)
        store.location = save.at.location
        target.add_op(store)

    def _keep_old(self, save: Save, old: Overwritten, target: Block) -> None:
        """Save what the store will overwrite, in the iterations that are asked for."""
        inductions = [self.values[loop.induction] for loop in save.loops]
        firsts = [first for first, _ in save.margins]
        places = [less(i, first, target) for i, first in zip(inductions, firsts, strict=True)]
        inside = self._inside_margins(save, target)
        block = target if inside is None else Block()
        source, segment = self.values[old.target], self.segments[save]
        if isinstance(old.store, array.MapOp):
            own = [self.values[e] for e in old.extents]
            copy_into(source, segment_slot(segment, places, own, block), own, block, save.at)
        else:
            load = memref.LoadOp.get(source, [self.values[i] for i in old.store.indices])
            load.res.name_hint = hint_of(save)
            keep = memref.StoreOp.get(load.res, segment, places)
            for op in (load, keep):
                op.location = save.at.location
                block.add_op(op)
        if inside is not None:
            block.add_op(scf.YieldOp())
            branch = scf.IfOp(inside, [], [block], [Block([scf.YieldOp()])])
            branch.location = save.at.location
            target.add_op(branch)

    def _inside_margins(self, save: Save, target: Block) -> SSAValue | None:
        """The condition that this iteration is saved; None where all are."""
        holds: SSAValue | None = None
        for loop, (first, last) in zip(save.loops, save.margins, strict=True):
            induction = self.values[loop.induction]
            bounds: list[tuple[str, SSAValue]] = []
            if first:
                bounds.append(("sge", constant(first, target)))
            if last:
                count = self._number(cast(SSAValue, loop.count), save, target)
                bounds.append(("slt", less(count, last, target)))
            for predicate, bound in bounds:
                compare = arith.CmpiOp(induction, bound, predicate)
                target.add_op(compare)
                if holds is None:
                    holds = compare.result
                else:
                    both = arith.AndIOp(holds, compare.result)
                    target.add_op(both)
                    holds = both.result
        return holds

    def _copy_part(self, save: Save, read: Contents, target: Block) -> None:
        """Save what an op reads of an array, or leaves there."""
        source = self.values[read.memref]
        own = extents_of(source, emitter(target, save.at))
        copy_into(source, self.slot(save, target, own), own, target, save.at)

    def _copy_version(self, save: Save, target: Block) -> None:
        if save.segment.every > 1:
            self._copy_state(save, target)
            return
        base = self.values[cast(Version, save.node).base]
        own = extents_of(base, emitter(target, save.at))
        places = [self.values[loop.induction] for loop in save.loops]
        slot = state_at(self.segments[save], save, places, own, target)
        copy_into(base, slot, own, target, save.at)

    def _copy_state(self, save: Save, target: Block) -> None:
        """The same where a stretch of iterations begins (`replays`)."""
        emit, every = emitter(target, save.at), save.segment.every
        induction = self.values[save.loops[0].induction]
        rest = emit(arith.AndIOp(induction, constant(every - 1, target)))
        begins = emit(arith.CmpiOp(rest, constant(0, target), "eq"))
        inner = Block()
        inner_emit = emitter(inner, save.at)
        base = self.values[cast(Version, save.node).base]
        own = extents_of(base, inner_emit)
        shift = constant(every.bit_length() - 1, inner)
        place = inner_emit(arith.ShRUIOp(induction, shift))
        state = state_at(self.segments[save], save, [place], own, inner)
        copy_into(base, state, own, inner, save.at)
        inner.add_op(scf.YieldOp())
        branch = scf.IfOp(begins, [], [inner], [Block([scf.YieldOp()])])
        branch.location = save.at.location
        target.add_op(branch)


def is_before(node: Saved) -> bool:
    """Whether it is what an op reads, and not what it leaves."""
    return isinstance(node, Contents) and not node.after


def is_at_hand(node: Saved, save: Save) -> bool:
    """Whether the map that overwrites something reads it anyhow, element for element, at every iteration."""
    return (
        isinstance(node, Overwritten)
        and isinstance(node.store, array.MapOp)
        and save.at is node.store
        and node.target in node.store.ins
        and not any(first + last for first, last in save.margins)
    )


def emitter(target: Block, like: Operation) -> Emit:
    """Appends to `target`, located where `like` is."""

    def emit(op: Operation) -> SSAValue:
        op.location = like.location
        target.add_op(op)
        return op.results[0] if op.results else op.operands[0]

    return emit


def constant(value: int, target: Block) -> SSAValue:
    op = index_constant(value)
    target.add_op(op)
    return op.result


def less(value: SSAValue, by: int, target: Block) -> SSAValue:
    """`value - by`, computed at the end of `target` where that is something else."""
    if by == 0:
        return value
    op = arith.SubiOp(value, constant(by, target))
    target.add_op(op)
    return op.result


def segment_slot(
    segment: SSAValue, inductions: Sequence[SSAValue], own: Sequence[SSAValue], target: Block
) -> SSAValue:
    """The slice of a segment at the given inductions: its leading dimensions are dropped."""
    if not inductions:
        return segment
    zero, one = index_constant(0), index_constant(1)
    target.add_op(zero)
    target.add_op(one)
    lead = len(inductions)
    view = array.ViewOp(
        segment,
        [*inductions, *(zero.result for _ in own)],
        [lead + d for d in range(len(own))],
        list(own),
        [one.result for _ in own],
    )
    target.add_op(view)
    return view.result


def state_at(
    segment: SSAValue,
    save: Save,
    places: Sequence[SSAValue],
    own: Sequence[SSAValue],
    target: Block,
) -> SSAValue:
    """One of the copies that are kept of an array with the extents `own`."""
    if not save.segment.by_columns:
        return segment_slot(segment, places, own, target)
    return transpose(segment_slot(segment, places, own[::-1], target), emitter(target, save.at))


def copy_into(
    source: SSAValue, out: SSAValue, extents: Sequence[SSAValue], target: Block, like: Operation
) -> None:
    """A map that copies `source` to `out`, located where `like` is."""
    copy = transfer(source, out, extents)
    copy.location = like.location
    target.add_op(copy)


def copy_hints(op: Operation, clone: Operation, values: dict[SSAValue, SSAValue]) -> None:
    clone.location = op.location
    for old, fresh in zip(op.results, clone.results, strict=True):
        fresh.name_hint = old.name_hint
        values[old] = fresh

"""Let rows that a reverse sweep updates again go along their tapes, where each has one of its own.

Iterations that are replayed one by one (`derivative/replays_apart`) copy a row to their tape before each
update, and then update it in place. The update may as well read what the tape has, and store to the next row
of it. As `step-on-rows`, of a loop in a loop: each iteration of the outer one starts from a row of an array
that no other iteration touches.

Before::

    !row = memref<?xf64, strided<[1]>>
    !tape = memref<?x?xf64, strided<[?, 1]>>
    func.func @f(%x : memref<?x?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %a = array.alloc(%n, %m) : memref<?x?xf64>
      array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %tapes = array.alloc(%c4, %n, %m) {ad.tapes} : memref<4x?x?xf64>
      %trips = array.loop %j to %c4 do {
        %tape = array.view %tapes[%j, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1)
            : memref<4x?x?xf64> -> !tape
        %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
        %trips_1 = array.loop %k to %j do {
          %saved = array.view %tape[%k, %c0] dims [1] extents(%m) steps(%c1) : !tape -> !row
          array.map(%m) ins(%row : !row) outs(%row, %saved : !row, !row) kinds ["store", "store"] {
          ^bb0(%e : f64):
            %square = arith.mulf %e, %e : f64
            array.yield %square, %e : f64, f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>>
    func.func @f(%x : memref<?x?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %a = array.alloc(%n, %m) : memref<?x?xf64>
      array.map(%n, %m) ins(%x : memref<?x?xf64>) outs(%a : memref<?x?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %2 = arith.addi %n, %1 : index
      %tapes = array.alloc(%c4, %2, %m) {ad.tapes} : memref<4x?x?xf64>
      %trips = array.loop %j to %c4 do {
        %row = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
        %row_1 = array.view %tapes[%j, %0, %0] dims [2] extents(%m) steps(%1) : memref<4x?x?xf64> -> !row
        array.map(%m) ins(%row : !row) outs(%row_1 : !row) kinds ["store"] {
        ^bb0(%3 : f64):
          array.yield %3 : f64
        }
        %trips_1 = array.loop %k to %j do {
          %row_2 = array.view %tapes[%j, %k, %0] dims [2] extents(%m) steps(%1) : memref<4x?x?xf64> -> !row
          %4 = arith.addi %k, %1 : index
          %row_3 = array.view %tapes[%j, %4, %0] dims [2] extents(%m) steps(%1) : memref<4x?x?xf64> -> !row
          array.map(%m) ins(%row_2 : !row) outs(%row_3 : !row) kinds ["store"] {
          ^bb0(%e_1 : f64):
            %square = arith.mulf %e_1, %e_1 : f64
            array.yield %square : f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

The array is a copy of another one now, which `read-originals` reads instead. Legality: a map fills the array
before the outer loop, and after that nothing uses it but an iteration of that loop, by the one name of its
row. What the inner loop does to the row up to the save, and in the map that is the first to store to it, is
done to row k of the tape; all behind that to row k + 1. What is done before the inner loop is done to row 0,
what is done behind it to the row behind the last one. That no two iterations have one row, and that nothing
asks for what is behind the last save, `ad.tapes` says.

Kept: steps that store to a part of the row, or under a condition; parts of rows; tapes of which the type says
how many rows they have.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import ad, array
from ...dialects.within import ops_of_kind
from ..diagnostics import locate
from ..rules.builders import index, transfer
from .exchange_arrays import is_plain
from .memory_effects import functions
from .saved_steps import USING, Save, ancestor, is_one, is_zero, namings, root_of, saver, writes
from .step_on_rows import steps_alone
from .step_on_tape import before


@dataclass(frozen=True)
class StepOnTapes(ModulePass):
    """Compute what replayed iterations save, each in rows of its own, in the rows that have it."""

    name = "step-on-tapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for tapes in list(ops_of_kind(function, array.AllocOp)):
                step = step_of(tapes) if ad.TAPES in tapes.attributes else None
                if step is not None:
                    rewrite(step)


@dataclass
class Step:
    """A loop each of whose iterations saves a row, then stores to it."""

    tapes: array.AllocOp
    outer: array.LoopOp
    """Around the loop: its iterations have tapes, and rows, of their own."""
    loop: array.LoopOp
    save: Save
    row: array.ViewOp
    store: array.MapOp
    """The first to store to the row behind the save, or along with it."""


def step_of(tapes: array.AllocOp) -> Step | None:
    """The step that saves to the tapes, where it may go from one row of them to the next."""
    if not all(isinstance(use.operation, array.ViewOp) for use in tapes.memref.uses):
        return None  # who asks how long they are
    if tapes.memref.type.get_shape()[1] != DYNAMIC_INDEX:
        return None  # their type says how many rows there are
    save = saver(tapes)
    loop = None if save is None else save.map.parent_op()
    outer = None if loop is None else loop.parent_op()
    if save is None or not isinstance(loop, array.LoopOp) or not isinstance(outer, array.LoopOp):
        return None
    row = None if save.source is None else save.source.owner
    if not isinstance(row, array.ViewOp) or row.parent is not outer.body.block:
        return None
    if not steps_alone(loop) or not is_own_row(save, tapes, loop, outer):
        return None
    if tuple(row.extents) != tuple(save.map.extents) or not row.is_before_in_block(loop):
        return None
    store = first_store(row.result, save, loop)
    if store is None or not starts_anew(row, outer, tapes):
        return None
    return Step(tapes, outer, loop, save, row, store)


def is_own_row(save: Save, tapes: array.AllocOp, loop: array.LoopOp, outer: array.LoopOp) -> bool:
    """Whether the save goes to row k of tape j, and the outer loop names no other rows."""
    row = save.row.owner
    tape = row.source.owner if isinstance(row, array.ViewOp) else None
    if not isinstance(row, array.ViewOp) or not isinstance(tape, array.ViewOp):
        return False
    others = (use.operation for use in tapes.memref.uses if use.operation is not tape)
    if tape.source is not tapes.memref or any(outer.is_ancestor(op) for op in others):
        return False
    if any(use.operation is not row for use in tape.result.uses):
        return False
    sized = tuple(row.extents) == tuple(save.map.extents)
    return sized and is_part(tape, outer.induction) and is_part(row, loop.induction)


def is_part(view: array.ViewOp, number: SSAValue) -> bool:
    """Whether a view is what an array has at this index of its first axis."""
    return (
        view.offsets[0] is number
        and all(map(is_zero, view.offsets[1:]))
        and view.source_dims == tuple(range(1, len(view.offsets)))
        and all(map(is_one, view.steps))
    )


def first_store(row: SSAValue, save: Save, loop: array.LoopOp) -> array.MapOp | None:
    """The first map of an iteration to store to the row, where it stores to all of it."""
    body = loop.body.block
    first: tuple[Operation, Operation] | None = None
    for use in row.uses:
        at = ancestor(use.operation, body)
        stores = at is not None and writes(use.operation, row)
        if at is not None and stores and (first is None or at.is_before_in_block(first[0])):
            first = at, use.operation
    if first is None or first[0].is_before_in_block(save.map):
        return None
    at, store = first
    if at is not store or not isinstance(store, array.MapOp) or not is_plain(store):
        return None
    kinds = [kind for out, kind in zip(store.outs, store.out_kinds, strict=True) if out is row]
    return store if kinds == ["store"] and [*store.extents] == [*save.map.extents] else None


def starts_anew(row: array.ViewOp, outer: array.LoopOp, tapes: array.AllocOp) -> bool:
    """Whether each iteration finds in its row, by its one name, what a map has stored before all of them."""
    made = root_of(row.result).owner
    if not isinstance(made, array.AllocOp) or made.parent is not tapes.parent:
        return False
    if {array.GROWABLE, array.STACK, array.CLEARED} & made.attributes.keys():
        return False
    fill: Operation | None = None
    for op, name in namings(made.memref):
        if not isinstance(op, USING):
            return False
        if name is row.result:
            if not outer.is_ancestor(op):
                return False
        elif fill is None and is_filled_by(op, name, row.source):
            fill = op
        else:
            return False
    around = ancestor(outer, made.parent)
    if fill is None or around is None or fill.parent is not made.parent:
        return False
    return fill.is_before_in_block(around)


def is_filled_by(op: Operation, name: SSAValue, whole: SSAValue) -> bool:
    """Whether a map does nothing but store to all of the array of which rows are taken."""
    if not isinstance(op, array.MapOp) or not is_plain(op) or op.out_kinds != ("store",):
        return False
    if name is not whole or name not in op.outs or name in op.ins:
        return False
    made = whole.owner
    assert isinstance(made, array.AllocOp | array.ViewOp)
    return list(op.extents) == list(made.extents)


def rewrite(step: Step) -> None:
    """Give the tapes one row more, and the row the names of their rows."""
    loop, body, row, tapes = step.loop, step.loop.body.block, step.row, step.tapes
    saved = step.save.row.owner
    rest = step.save.drop()
    if step.store is step.save.map:
        assert rest is not None
        step.store = rest
    assert isinstance(saved, array.ViewOp)
    tape = saved.source.owner
    for view in (saved, tape):
        if isinstance(view, array.ViewOp) and view.result.first_use is None:
            Rewriter.erase_op(view)
    emit = before(tapes, step.store)
    zero, one = index(0, emit), index(1, emit)
    tapes.operands[1] = emit(arith.AddiOp(tapes.extents[1], one))
    extents = list(row.extents)

    def version(number: SSAValue, at: Operation) -> SSAValue:
        offsets = [step.outer.induction, number, *(zero for _ in extents)]
        dims, steps = range(2, len(offsets)), [one for _ in extents]
        view = array.ViewOp(tapes.memref, offsets, dims, extents, steps)
        view.result.name_hint = row.result.name_hint
        return before(at, step.store)(view)

    uses = list(row.result.uses)
    assert row.next_op is not None
    assert body.first_op is not None
    start = row.next_op
    first = version(zero, start)
    copy = transfer(row.result, first, extents)
    locate(copy, step.store.location)
    assert start.parent is not None
    start.parent.insert_op_before(copy, start)
    assert loop.next_op is not None
    last = version(loop.trips, loop.next_op)
    start = body.first_op
    now = version(loop.induction, start)
    then = version(before(start, step.store)(arith.AddiOp(loop.induction, one)), start)
    for use in uses:
        op = use.operation
        at = ancestor(op, body)
        if at is None:
            early = within(op, step.outer).is_before_in_block(loop)
            op.operands[use.index] = first if early else last
        elif at is step.store:
            inputs = len(step.store.extents) + len(step.store.ins)
            op.operands[use.index] = then if use.index >= inputs else now
        else:
            op.operands[use.index] = now if at.is_before_in_block(step.store) else then
    owner = last.owner
    if last.first_use is None and isinstance(owner, Operation):
        Rewriter.erase_op(owner)


def within(op: Operation, loop: array.LoopOp) -> Operation:
    """The op of the loop's body that this one is, or is in."""
    found = ancestor(op, loop.body.block)
    assert found is not None
    return found

"""Let the steps that a reverse sweep runs again go from one row of their array to the next.

A replayed loop (`derivative/replays`) copies what it updates to a row of an array of rows, then updates it in
place: two passes over it, where the update may as well read the row and store to the next one. As
`step-on-tape`, for rows that grow or shrink, and for arrays that nothing asks for but the steps.

Before::

    !row = memref<?xf64, strided<[1]>>
    func.func @f(%x : memref<?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c17 = arith.constant 17 : index
      %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
      %u = array.alloc(%m) : memref<?xf64>
      array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %trips = array.loop %k to %n do {
        %row = array.view %rows[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<17x?xf64> -> !row
        array.map(%m) ins(%u : memref<?xf64>) outs(%row : !row) kinds ["store"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
        ^bb0(%e : f64):
          %square = arith.mulf %e, %e : f64
          array.yield %square : f64
        }
        array.yield
      }
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>>
    func.func @f(%x : memref<?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c17 = arith.constant 17 : index
      %rows = array.alloc(%c17, %m) {ad.rows} : memref<17x?xf64>
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %u = array.view %rows[%0, %0] dims [1] extents(%m) steps(%1) : memref<17x?xf64> -> !row
      array.map(%m) ins(%x : memref<?xf64>) outs(%u : !row) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %trips = array.loop %k to %n do {
        %u_1 = array.view %rows[%k, %0] dims [1] extents(%m) steps(%1) : memref<17x?xf64> -> !row
        %2 = arith.addi %k, %1 : index
        %u_2 = array.view %rows[%2, %0] dims [1] extents(%m) steps(%1) : memref<17x?xf64> -> !row
        array.map(%m) ins(%u_1 : !row) outs(%u_2 : !row) kinds ["store"] {
        ^bb0(%e_1 : f64):
          %square = arith.mulf %e_1, %e_1 : f64
          array.yield %square : f64
        }
        array.yield
      }
      func.return
    }

Legality: the array is filled before the loop, in its block, and nothing uses it afterwards. In an iteration,
nothing stores to it up to the save. The first store behind that is a map over what was saved, which is the
whole array, or its first elements. If it is these, an iteration reads no others, and stores those behind
them, one by one, by which the next iteration has more. Of the row behind the last, and of elements that no
iteration saves, `ad.rows` says that nothing asks for them.

Kept: steps that store to a part of what they save; saves and stores under a condition; reads behind the store
where rows grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import ad, array
from ...dialects.within import ops_of_kind
from ..analysis.affine import Affine, Extent, Symbol, Term, affine, is_natural, replaced
from ..rules.builders import index
from .exchange_arrays import is_plain
from .hoist_checks import is_counted
from .memory_effects import functions
from .saved_steps import USING, Save, ancestor, is_one, is_zero, namings, root_of, saver, writes
from .step_on_tape import Names, Rows, before, remove, uses_of


@dataclass(frozen=True)
class StepOnRows(ModulePass):
    """Compute what a replayed loop saves in the rows that have it."""

    name = "step-on-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for rows in list(ops_of_kind(function, array.AllocOp)):
                step = step_of(rows) if ad.ROWS in rows.attributes else None
                if step is not None:
                    rewrite(step)


@dataclass
class Step:
    """A loop each of whose iterations saves an array, or its first elements, then stores to them."""

    rows: array.AllocOp
    loop: array.LoopOp
    save: Save
    made: array.AllocOp
    """The array."""
    store: array.MapOp
    """The first to store to the array behind the save, or along with it."""


def step_of(rows: array.AllocOp) -> Step | None:
    """The step that saves to the rows, where it may go from one to the next."""
    save = saver(rows)
    loop = None if save is None else save.map.parent_op()
    if save is None or not isinstance(loop, array.LoopOp) or not steps_alone(loop):
        return None
    if not is_row(save, rows, loop) or save.source is None:
        return None
    made = root_of(save.source).owner
    if not isinstance(made, array.AllocOp) or made.parent is not rows.parent:
        return None
    kept = {array.GROWABLE, array.STACK, array.CLEARED} & made.attributes.keys()
    if kept or list(made.extents) != list(rows.extents)[1:]:
        return None
    if not is_first_part(save.source, made, save.map) or not is_filled_before(made, loop):
        return None
    store = first_store(made, save, loop)
    if store is None:
        return None
    step = Step(rows, loop, save, made, store)
    whole = tuple(save.map.extents) == tuple(made.extents)
    return step if whole or has_what_it_reads(step) else None


def steps_alone(loop: array.LoopOp) -> bool:
    special = {array.CLAIMED, array.EXCLUSIVE, array.OWN_BYTES} & loop.attributes.keys()
    return is_counted(loop) and not loop.carried and not special


def is_row(save: Save, rows: array.AllocOp, loop: array.LoopOp) -> bool:
    """Whether the save goes to the first elements of the iteration's row, and the loop names no other row."""
    row = save.row.owner
    if not isinstance(row, array.ViewOp) or row.source is not rows.memref:
        return False
    others = (use.operation for use in rows.memref.uses if use.operation is not row)
    if any(loop.is_ancestor(op) for op in others):
        return False
    at = row.offsets[0] is loop.induction and all(map(is_zero, row.offsets[1:]))
    walked = row.source_dims == tuple(range(1, len(row.offsets)))
    sized = tuple(row.extents) == tuple(save.map.extents)
    return at and walked and sized and all(map(is_one, row.steps))


def is_first_part(name: SSAValue, made: array.AllocOp, op: array.MapOp) -> bool:
    """Whether a map goes through the whole of an array, or through its first elements, by this name."""
    if name is made.memref:
        return tuple(op.extents) == tuple(made.extents)
    view = name.owner
    return (
        isinstance(view, array.ViewOp)
        and view.source is made.memref
        and view.source_dims == tuple(range(len(view.offsets)))
        and all(map(is_zero, view.offsets))
        and all(map(is_one, view.steps))
        and tuple(op.extents) == tuple(view.extents)
    )


def is_filled_before(made: array.AllocOp, loop: array.LoopOp) -> bool:
    """Whether a map fills all of the array in the loop's block, and is the first to use it there.

    All other uses are in the loop, or between.
    """
    first: tuple[Operation, Operation] | None = None
    for op, _ in namings(made.memref):
        if not isinstance(op, USING):
            return False
        if loop.is_ancestor(op):
            continue
        at = ancestor(op, loop.parent)
        if at is None or not at.is_before_in_block(loop):
            return False
        if first is None or at.is_before_in_block(first[0]):
            first = at, op
    if first is None or first[0] is not first[1]:
        return False
    fill = first[1]
    return (
        isinstance(fill, array.MapOp)
        and is_plain(fill)
        and not any(root_of(one) is made.memref for one in fill.ins)
        and tuple(fill.extents) == tuple(made.extents)
        and any(
            out is made.memref and kind == "store"
            for out, kind in zip(fill.outs, fill.out_kinds, strict=True)
        )
    )


def first_store(made: array.AllocOp, save: Save, loop: array.LoopOp) -> array.MapOp | None:
    """The first map of an iteration to store to the array, where it stores to all that was saved."""
    body = loop.body.block
    stores = [
        (at, op)
        for op, name in namings(made.memref)
        if (at := ancestor(op, body)) is not None and writes(op, name)
    ]
    first: tuple[Operation, Operation] | None = None
    for at, op in stores:
        if first is None or at.is_before_in_block(first[0]):
            first = at, op
    if first is None or first[0].is_before_in_block(save.map):
        return None
    at, store = first
    if at is not store or not isinstance(store, array.MapOp) or not is_plain(store):
        return None
    stored = [k for k, out in enumerate(store.outs) if root_of(out) is made.memref]
    if len(stored) != 1 or store.out_kinds[stored[0]] != "store":
        return None
    saved = tuple(store.extents) == tuple(save.map.extents)
    return store if saved and is_first_part(store.outs[stored[0]], made, store) else None


# Rows that are not whole.


def has_what_it_reads(step: Step) -> bool:
    """Whether each iteration reads only elements that it saves, and the one before has stored them."""
    if len(step.made.extents) != 1:
        return False
    body, saved = step.loop.body.block, affine(step.save.map.extents[0])
    behind: set[int] = set()
    for op, name in namings(step.made.memref):
        at = ancestor(op, body)
        if at is None or isinstance(op, memref.DimOp):
            continue
        if at is step.store or at.is_before_in_block(step.store):
            if not reads_less(op, name, step.made.memref, saved):
                return False
        elif isinstance(op, memref.StoreOp) and at is op and name is step.made.memref:
            place = affine(op.indices[0]) - saved
            if not place.is_constant or place.constant < 0:
                return False
            behind.add(place.constant)
        else:
            return False
    counter = step.loop.induction
    if not all(symbol is counter or stays(symbol, step.loop) for symbol in symbols_of(saved)):
        return False
    more = replaced(saved, {counter: Affine.of(counter) + 1}) - saved
    return more.is_constant and behind >= set(range(more.constant))


def symbols_of(form: Affine) -> Iterator[Symbol]:
    """What a number is computed from, down to what analysis does not look into."""
    for symbol in form.terms:
        if isinstance(symbol, Term):
            for arg in symbol.args:
                yield from symbols_of(arg)
        else:
            yield symbol


def stays(symbol: Symbol, loop: array.LoopOp) -> bool:
    """Whether a symbol is the same in all iterations of the loop."""
    assert not isinstance(symbol, Term)
    owner = (symbol.memref if isinstance(symbol, Extent) else symbol).owner
    inside = owner.parent_op() if isinstance(owner, Block) else owner
    return inside is None or not loop.is_ancestor(inside)


def reads_less(op: Operation, name: SSAValue, whole: SSAValue, count: Affine) -> bool:
    """Whether an op uses no element of the whole but the first ones, of this name or through a subscript."""
    if isinstance(op, memref.LoadOp):
        return name is whole and is_natural(count - 1 - affine(op.indices[0]))
    view = name.owner
    if not isinstance(op, array.MapOp) or not is_plain(op) or not isinstance(view, array.ViewOp):
        return False
    if view.source is not whole or view.source_dims != (0,):
        return False
    offset, step = affine(view.offsets[0]), array.constant_value(view.steps[0])
    if step == -1:
        return is_natural(count - 1 - offset)
    return step == 1 and is_natural(count - offset - affine(view.extents[0]))


# The rewrite.


def rewrite(step: Step) -> None:
    """Give the array the names of the rows."""
    body, made, row = step.loop.body.block, step.made, step.save.row.owner
    rest = step.save.drop()
    if step.store is step.save.map:
        assert rest is not None
        step.store = rest
    assert isinstance(row, array.ViewOp)
    if row.result.first_use is None:
        Rewriter.erase_op(row)
    later = made if step.rows.is_before_in_block(made) else step.rows
    assert later.next_op is not None
    emit = before(later.next_op, step.store)
    zero, one = index(0, emit), index(1, emit)
    rows = Rows(step.rows.memref, made, zero, one)
    first = rows.at(zero, emit)
    assert body.first_op is not None
    emit = before(body.first_op, step.store)
    now = rows.at(step.loop.induction, emit)
    then = rows.at(emit(arith.AddiOp(step.loop.induction, one)), emit)
    assert isinstance(then.owner, Operation)
    names = Names(made.memref, body, then.owner)
    for use in uses_of(made.memref):
        op = use.operation
        at = ancestor(op, body)
        if at is None:
            version = first
        elif at is step.store:
            version = then if use.index >= len(step.store.extents) + len(step.store.ins) else now
        else:
            version = now if at.is_before_in_block(step.store) else then
        op.operands[use.index] = names.of(op.operands[use.index], version, at is not None)
    remove(made)

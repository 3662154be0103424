"""Loops whose iterations save an array, then store to it: what `step-on-tape` and `step-on-rows` look for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from ...dialects import ad, array
from .exchange_arrays import is_plain
from .hoist_checks import is_counted
from .map_outputs import with_outputs

USING = (array.ViewOp, array.MapOp, memref.LoadOp, memref.StoreOp, memref.DimOp)
"""What may be done with an array that lies on the tape."""


@dataclass(frozen=True)
class Save:
    """The output of a map that stores to a segment: tangents are saved by the map that saves primals."""

    map: array.MapOp
    output: int

    @property
    def row(self) -> SSAValue:
        return self.map.outs[self.output]

    @property
    def source(self) -> SSAValue | None:
        """What is saved, where that is an array as it is."""
        value = self.map.yielded[self.output]
        plain = is_plain(self.map) and self.map.out_kinds[self.output] == "store"
        if not plain or value.owner is not self.map.body.block:
            return None
        return self.map.ins[self.map.body.block.args.index(value)]

    def drop(self) -> array.MapOp | None:
        """Leave what else the map stores."""
        others = [k for k in range(len(self.map.outs)) if k != self.output]
        return with_outputs(self.map, others)


@dataclass
class Step:
    """A loop each of whose iterations saves an array, then stores to it."""

    push: ad.PushOp
    loop: array.LoopOp
    save: Save
    made: array.AllocOp
    """The array."""
    store: array.MapOp
    """The first to store to the array behind the save, or along with it."""
    window: array.ViewOp | None
    """The part of the array that it stores to; None of the whole."""
    early: list[Operation]
    """What the extents of the tape are computed of, behind the array."""


def step_of(push: ad.PushOp) -> Step | None:
    """The step that saves to a segment, where it may go from row to row."""
    if sum(isinstance(use.operation, ad.PushOp | ad.PopOp) for use in push.tape.uses) != 1:
        return None  # a stack of segments keeps its order
    save = saver(push)
    loop = None if save is None else save.map.parent_op()
    if save is None or not isinstance(loop, array.LoopOp) or not is_step(loop, push):
        return None
    source = save.source
    if source is None or not saves_whole(save, push, loop):
        return None
    made = source.owner
    if not isinstance(made, array.AllocOp) or not is_own(made, loop, tuple(save.map.extents)):
        return None
    if ad.REFILLED in push.attributes:
        return found_step(push, loop, save, made, []) if is_filled_before(made, loop) else None
    early = behind([push.tape, *push.extents], made)
    return None if early is None else found_step(push, loop, save, made, early)


def saver(push: ad.PushOp | array.AllocOp) -> Save | None:
    """The output that stores to rows of the segment, or array, where no other does."""
    found: list[Save] = []
    for op, name in namings(push.memref):
        if isinstance(op, array.MapOp):
            found += [Save(op, k) for k, out in enumerate(op.outs) if out is name]
        elif not isinstance(op, memref.LoadOp) and (
            not isinstance(op, memref.DimOp) or name is push.memref  # there may be one row more
        ):
            return None
    return found[0] if len(found) == 1 else None


def is_step(loop: array.LoopOp, push: ad.PushOp) -> bool:
    special = {array.CLAIMED, array.EXCLUSIVE, array.OWN_BYTES} & loop.attributes.keys()
    if not is_counted(loop) or loop.carried or special:
        return False
    if ad.REFILLED in push.attributes:
        return ancestor(loop, push.parent) is not None
    return loop.parent is push.parent and push.extents[0] is loop.count


def saves_whole(save: Save, push: ad.PushOp, loop: array.LoopOp) -> bool:
    """Whether the elements of an array are saved in the iteration's row, each at its place."""
    row = save.row.owner
    if not isinstance(row, array.ViewOp) or row.source is not push.memref:
        return False
    whole = {tuple(push.extents[1:]), tuple(save.map.extents), tuple(row.extents)}
    at = row.offsets[0] is loop.induction and all(map(is_zero, row.offsets[1:]))
    walked = row.source_dims == tuple(range(1, len(save.map.extents) + 1))
    return len(whole) == 1 and at and walked and all(map(is_one, row.steps))


def is_zero(value: SSAValue) -> bool:
    return array.constant_value(value) == 0


def is_one(value: SSAValue) -> bool:
    return array.constant_value(value) == 1


def namings(whole: SSAValue) -> Iterator[tuple[Operation, SSAValue]]:
    """Who uses the elements of an array, and by which name; views are names."""
    pending = [whole]
    while pending:
        name = pending.pop()
        for use in name.uses:
            if isinstance(use.operation, array.ViewOp):
                pending.append(use.operation.result)
            else:
                yield use.operation, name


def is_own(made: array.AllocOp, loop: array.LoopOp, extents: tuple[SSAValue, ...]) -> bool:
    """Whether an array beside the loop is used by its own name alone: it may be anywhere."""
    kept = {array.GROWABLE, array.STACK, array.CLEARED} & made.attributes.keys()
    if kept or ancestor(loop, made.parent) is None or tuple(made.extents) != extents:
        return False
    named = (isinstance(op, USING) and ancestor(op, made.parent) for op, _ in namings(made.memref))
    return all(named)


def is_filled_before(made: array.AllocOp, loop: array.LoopOp) -> bool:
    """Whether an array from further out is used in a loop alone, and filled right before it."""
    others = [op for op, _ in namings(made.memref) if not loop.is_ancestor(op)]
    fill = others[0] if len(others) == 1 else None
    if not isinstance(fill, array.MapOp):
        return False
    stored = [k for k, out in enumerate(fill.outs) if out is made.memref]
    whole = fill.shifts is None and tuple(fill.extents) == tuple(made.extents)
    first = fill.parent is loop.parent and fill.is_before_in_block(loop)
    return whole and first and len(stored) == 1 and fill.out_kinds[stored[0]] == "store"


def found_step(
    push: ad.PushOp,
    loop: array.LoopOp,
    save: Save,
    made: array.AllocOp,
    early: list[Operation],
) -> Step | None:
    """The step, with the first map from the save on that stores to a box of the array."""
    whole, body = made.memref, loop.body.block
    first: tuple[Operation, Operation, SSAValue] | None = None
    for op, name in namings(whole):
        at = ancestor(op, body)
        if at is None or not writes(op, name) or at.is_before_in_block(save.map):
            continue
        if first is None or at.is_before_in_block(first[0]):
            first = at, op, name
    if first is None:
        return None
    at, store, name = first
    if at is not store or not isinstance(store, array.MapOp) or not is_plain(store):
        return None
    stored = [k for k, out in enumerate(store.outs) if root_of(out) is whole]
    if len(stored) != 1 or store.out_kinds[stored[0]] != "store":
        return None
    if name is whole:
        all_ = tuple(store.extents) == tuple(made.extents)
        return Step(push, loop, save, made, store, None, early) if all_ else None
    window = name.owner
    if not isinstance(window, array.ViewOp) or window.source is not whole or not is_box(window):
        return None
    if tuple(window.extents) != tuple(store.extents):
        return None
    return Step(push, loop, save, made, store, window, early)


def writes(op: Operation, name: SSAValue) -> bool:
    return isinstance(op, memref.StoreOp) or (isinstance(op, array.MapOp) and name in op.outs)


def root_of(name: SSAValue) -> SSAValue:
    while isinstance(name.owner, array.ViewOp):
        name = name.owner.source
    return name


def is_box(view: array.ViewOp) -> bool:
    """Whether a view has all axes of its array in order, and all elements between two corners."""
    return view.source_dims == tuple(range(len(view.offsets))) and all(map(is_one, view.steps))


def behind(values: Iterable[SSAValue], made: array.AllocOp) -> list[Operation] | None:
    """What values are computed of behind an array, in its block; None where that cannot go before it."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        op = pending.pop().owner
        if isinstance(op, Block) or op.parent is not made.parent or op in found:
            continue
        if op.is_before_in_block(made):
            continue
        if not op.has_trait(Pure) or op.regions:
            return None
        found.add(op)
        pending += op.operands
    assert made.parent is not None
    return [op for op in made.parent.ops if op in found]


def rename(old: SSAValue, new: SSAValue, behind: Operation | None = None) -> list[array.ViewOp]:
    """Use another array in place of one, and parts of it in place of parts: these, which nothing uses now.

    Parts that were named before the op `behind`, in its block, are named in front of it.
    """
    views: list[array.ViewOp] = []
    pending = [(old, new)]
    while pending:
        name, instead = pending.pop()
        for use in list(name.uses):
            op = use.operation
            if not isinstance(op, array.ViewOp):
                op.operands[use.index] = instead
                continue
            view = op.of(instead, lambda number: number)
            view.location, view.result.name_hint = op.location, op.result.name_hint
            assert op.parent is not None
            if behind is not None and op.parent is behind.parent and op.is_before_in_block(behind):
                op.parent.insert_op_before(view, behind)
            else:
                op.parent.insert_op_after(view, op)
            pending.append((op.result, view.result))
            views.append(op)
    return views


def ancestor(op: Operation, block: Block | None) -> Operation | None:
    """The op of the block that this one is, or is in."""
    at: Operation | None = op
    while at is not None and at.parent is not block:
        at = at.parent_op()
    return at

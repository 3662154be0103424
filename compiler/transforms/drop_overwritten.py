"""Drop what a whole-array op writes to local arrays and nothing reads; let the first sum be a store.

Shadows of temporaries are filled with zero, added to, read, and zeroed again. Runs after the
derivative, before local arrays leave their loops: each of these fills is a sweep over memory.

Before::

    func.func @f(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
      %zero = arith.constant 0.0 : f64
      %t = array.alloc(%n) : memref<?xf64>
      array.map(%n) outs(%t : memref<?xf64>) kinds ["store"] {
        array.yield %zero : f64
      }
      array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["add"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      array.map(%n) ins(%t : memref<?xf64>) outs(%b, %t : memref<?xf64>, memref<?xf64>)
          kinds ["add", "store"] {
      ^bb0(%y : f64):
        array.yield %y, %zero : f64, f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
      %zero = arith.constant 0.0 : f64
      %t = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      array.map(%n) ins(%t : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["add"] {
      ^bb0(%y : f64):
        array.yield %y : f64
      }
      func.return
    }

Only arrays that end with the block they are allocated in, and only ops that stand in that block: a
write inside a branch or a loop is kept, and counts as a read of what was there. The first sum is a store
for arguments, too, that hold nothing before (`ad.unseen`); so is the first matrix product. What maps write to
a part of an array is dropped where only other parts are read later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import ad, array
from ..analysis.footprint import Footprints, Region
from ..analysis.parts import are_apart, part_of_map
from ..rules import accesses, evaluates_body, is_whole_array, rule_of
from ..rules.table import constant_float
from .map_outputs import with_outputs
from .memory_effects import functions


@dataclass(frozen=True)
class DropOverwritten(ModulePass):
    """Remove map outputs that are dead: overwritten or deallocated before any read."""

    name = "drop-overwritten"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for block in function.body.block.walk_blocks():
                drop_in(block)


Places = dict[Operation, int]
"""By op how far in its block it stands: what takes its place stands there."""


def drop_in(block: Block) -> None:
    places: Places = {op: k for k, op in enumerate(block.ops)}
    for op in tuple(places):
        if isinstance(op, array.AllocOp) and array.GROWABLE not in op.attributes:
            touching = users_in(block, op.memref)
            if touching is not None:
                store_first_sum(op.memref, in_order(touching, places), places)
                touching = users_in(block, op.memref)
                assert touching is not None
                drop_unread(op.memref, in_order(touching, places)[::-1], places)
    for fill in fills_of_arguments(block):
        touching = users_in(block, fill.outs[0])
        if touching is not None:
            later = in_order(touching, places)
            later = later[later.index(fill) :]
            if store_first_sum(fill.outs[0], later, places) or is_overwritten(fill, later[1:]):
                Rewriter.erase_op(fill)


def in_order(ops: Iterable[Operation], places: Places) -> list[Operation]:
    return sorted(ops, key=places.__getitem__)


def fills_of_arguments(block: Block) -> list[array.MapOp]:
    """The maps that set arguments of a function to zero which held nothing before."""
    if not isinstance(block.parent_op(), func.FuncOp):
        return []
    return [op for op in block.ops if unseen_fill(op) is not None and isinstance(op, array.MapOp)]


def unseen_fill(op: Operation) -> SSAValue | None:
    """The argument that the op sets to zero, if that held nothing before."""
    if not isinstance(op, array.MapOp) or ad.UNSEEN not in op.attributes or len(op.outs) != 1:
        return None
    (out,) = op.outs
    is_argument = isinstance(out, BlockArgument) and isinstance(out.owner.parent_op(), func.FuncOp)
    return out if is_argument and constant_float(op.yielded[0]) == 0.0 else None


def is_overwritten(fill: array.MapOp, following: Sequence[Operation]) -> bool:
    """Whether the next op that touches what is filled stores to all of it."""
    (out,), touching = fill.outs, (op for op in following if not isinstance(op, memref.DimOp))
    return any(writes_whole(op, out, fill.extents) for op in islice(touching, 1))


def users_in(block: Block, allocated: SSAValue) -> set[Operation] | None:
    """The ops of `block` in which the array is used; None where it may outlive the block."""
    users: set[Operation] = set()
    names, seen = [allocated], {allocated}
    while names:
        for use in names.pop().uses:
            op = use.operation
            if isinstance(op, array.AnyView):
                if op.result not in seen:
                    seen.add(op.result)
                    names.append(op.result)
                continue
            if not only_touches(op):
                return None
            ancestor = block.find_ancestor_op_in_block(op)
            assert ancestor is not None
            users.add(ancestor)
    return users


def only_touches(op: Operation) -> bool:
    """Whether an op uses arrays without giving them another name or letting them leave."""
    uses = array.PrintOp | array.StrideOp | memref.LoadOp | memref.StoreOp | memref.DimOp
    return isinstance(op, uses) or is_whole_array(op)


def store_first_sum(array_: SSAValue, users: Sequence[Operation], places: Places) -> bool:
    """Where a whole sum follows a fill with zero, store it instead; whether that was so."""
    touching = [op for op in users if not isinstance(op, memref.DimOp)]
    if len(touching) < 2:
        return False
    fill, first = touching[:2]
    if not isinstance(fill, array.MapOp) or (
        unseen_fill(fill) is not array_ and not is_zero_fill(fill, array_)
    ):
        return False
    if is_whole_array(first) and not evaluates_body(first):
        return store_added(array_, first, fill.extents)
    if not isinstance(first, array.MapOp) or roots_of(first.ins).count(array_):
        return False
    if roots_of(first.outs).count(array_) != 1 or not covers(first, fill.extents):
        return False
    k = roots_of(first.outs).index(array_)
    if first.outs[k] is not array_ or first.out_kinds[k] != "add":
        return False
    kinds = [*first.out_kinds]
    kinds[k] = "store"
    put_in_place(first, with_outputs(first, range(len(kinds)), kinds), places)
    return True


def put_in_place(op: Operation, made: Operation | None, places: Places) -> None:
    """Note that an op has taken the place of another, if anything has."""
    if made is not None:
        places[made] = places[op]


def store_added(array_: SSAValue, first: Operation, extents: Sequence[SSAValue]) -> bool:
    """Let an op that adds to all of the array, and reads it nowhere else, store to it; whether it can."""
    rule = rule_of(type(first))
    added = rule.added(first)
    memrefs = [o for o in first.operands if isinstance(o.type, MemRefType)]
    if len(added) != 1 or roots_of(memrefs).count(array_) != 1:
        return False
    return spans(added[0], array_, extents) and rule.store_instead(first)


def spans(value: SSAValue, array_: SSAValue, extents: Sequence[SSAValue]) -> bool:
    """Whether a value is all of an array of these extents: itself, or its axes in another order."""
    view = value.owner
    if value is array_ or not isinstance(view, array.ViewOp) or view.source is not array_:
        return value is array_
    axes = view.source_dims
    starts, steps = (map(array.constant_value, numbers) for numbers in (view.offsets, view.steps))
    if sorted(axes) != [*range(len(extents))] or {*starts} != {0} or {*steps} != {1}:
        return False
    return all(map(are_equal, view.extents, (extents[d] for d in axes)))


def writes_whole(op: Operation, array_: SSAValue, extents: Sequence[SSAValue]) -> bool:
    """Whether an op stores to all of the array, whatever that held."""
    if is_whole_array(op) and not evaluates_body(op):
        touching = [a for a in accesses(op) if roots_of([a.memref]) == [array_]]
        stores = all(a.kind == "write" and a.must for a in touching)
        return stores and any(spans(a.memref, array_, extents) for a in touching)
    if not isinstance(op, array.MapOp) or array_ in roots_of(op.ins) or not covers(op, extents):
        return False
    kinds = [kind for out, kind in zip(op.outs, op.out_kinds, strict=True) if out is array_]
    return kinds == ["store"] and roots_of(op.outs).count(array_) == 1 and op.gathers is None


def drop_unread(array_: SSAValue, backwards: Sequence[Operation], places: Places) -> None:
    """Walk from the end of the array's life to its start, dropping writes that nothing reads."""
    later, extents = Later(), extents_of(array_)
    for op in backwards:
        if not isinstance(op, array.MapOp):
            if writes_whole(op, array_, extents):
                later = Later()
            elif not isinstance(op, memref.DimOp):
                later.everything = True
            continue
        outs, ins = roots_of(op.outs), roots_of(op.ins)
        keep: list[int] = []
        for k in reversed(range(len(outs))):
            if outs[k] is not array_:
                keep.insert(0, k)
            elif later.reads(op, op.outs[k]):
                keep.insert(0, k)
                if op.outs[k] is array_ and op.out_kinds[k] == "store" and covers(op, extents):
                    later = Later()
                elif op.out_kinds[k] != "store":
                    later.add(op, op.outs[k])
        read = [memref_ for memref_, root in zip(op.ins, ins, strict=True) if root is array_]
        for memref_ in read:
            later.add(op, memref_)
        if len(keep) < len(outs):
            put_in_place(op, with_outputs(op, keep), places)


@dataclass
class Later:
    """What of an array is read from a point of a block on, as far as parts of it go."""

    everything: bool = False
    parts: list[Region] = field(default_factory=list[Region])
    footprints: Footprints = field(default_factory=Footprints)

    def add(self, op: array.MapOp, memref_: SSAValue) -> None:
        part = part_of_map(self.footprints, op, memref_) if op.gathers is None else None
        if part is None:
            self.everything = True
        else:
            self.parts.append(part)

    def reads(self, op: array.MapOp, memref_: SSAValue) -> bool:
        """Whether something may read what an output of a map writes."""
        if self.everything or not self.parts:
            return self.everything
        part = part_of_map(self.footprints, op, memref_) if op.gathers is None else None
        return part is None or not all(are_apart(part, other) for other in self.parts)


def roots_of(memrefs: Sequence[SSAValue]) -> list[SSAValue]:
    """The arrays that these memrefs are views of."""
    roots: list[SSAValue] = []
    for value in memrefs:
        while isinstance(value.owner, array.AnyView):
            value = value.owner.source
        roots.append(value)
    return roots


def extents_of(array_: SSAValue) -> Sequence[SSAValue]:
    """Those that the array was allocated with."""
    alloc = array_.owner
    assert isinstance(alloc, array.AllocOp)
    return alloc.extents


def are_equal(a: SSAValue, b: SSAValue) -> bool:
    known = array.constant_value(a)
    return a is b or (known is not None and known == array.constant_value(b))


def covers(op: array.MapOp, extents: Sequence[SSAValue]) -> bool:
    """True when these are the extents of the map's index space."""
    return len(extents) == len(op.extents) and all(map(are_equal, extents, op.extents))


def is_zero_fill(op: array.MapOp, array_: SSAValue) -> bool:
    if tuple(op.outs) != (array_,) or op.out_kinds != ("store",):
        return False
    return covers(op, extents_of(array_)) and constant_float(op.yielded[0]) == 0.0

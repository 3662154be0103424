"""Compute what a map stores in the loop that reads it: the array between them is no more.

`z += a * x`, then a loop that adds `z[i] * x[i]` in order: the sum goes point by point, so the map before it
was left alone, and `z` goes to memory and comes back. Here the map's body moves to the head of the loop's.
Runs behind the last derivative (whole arrays have the better adjoint), where maps have what they share a loop
with, and before temporaries leave loops.

Before::

    func.func @f(%n : index, %x : memref<?xf64>) -> f64 {
      %total = memref.alloca() : memref<f64>
      %z = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%x : memref<?xf64>) outs(%z : memref<?xf64>) kinds ["store"] {
      ^bb0(%a : f64):
        %p = arith.mulf %a, %a : f64
        array.yield %p : f64
      }
      %trips = array.loop %i to %n do {
        %v = memref.load %z[%i] : memref<?xf64>
        %old = memref.load %total[] : memref<f64>
        %sum = arith.addf %old, %v : f64
        memref.store %sum, %total[] : memref<f64>
        array.yield
      }
      %r = memref.load %total[] : memref<f64>
      func.return %r : f64
    }

After::

    func.func @f(%n : index, %x : memref<?xf64>) -> f64 {
      %total = memref.alloca() : memref<f64>
      %z = array.alloc(%n) : memref<?xf64>
      %trips = array.loop %i to %n do {
        %0 = memref.load %x[%i] : memref<?xf64>
        %p = arith.mulf %0, %0 : f64
        %old = memref.load %total[] : memref<f64>
        %sum = arith.addf %old, %p : f64
        memref.store %sum, %total[] : memref<f64>
        array.yield
      }
      %r = memref.load %total[] : memref<f64>
      func.return %r : f64
    }

A map over vectors is sunk where all that it stores are arrays made in the same block, which afterwards only
the loop reads, each iteration its own element; where nothing in between, nor the loop, writes what the map
reads; and where it multiplies and adds a few numbers: what takes longer is computed as vectors. The map may
be longer than the loop if it fills all of its arrays: what the loop reads is in them. A branch in between
that ends with an exception, with checks that the loop is rid of, gets a copy of the map; of two such branches
with one condition the second goes. Arrays that such a branch alone uses are made there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.views import is_memref, strip_views
from .drop_overwritten import only_touches
from .maps_as_loops import is_scalar_code
from .memory_effects import MemoryEffects, functions

QUICK = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.NegfOp,
    arith.ConstantOp,
    vector.BroadcastOp,
    array.YieldOp,
)
"""What a map that is sunk computes."""

FEW = 24
"""Ops of the body of a map that is sunk."""


@dataclass(frozen=True)
class SinkMaps(ModulePass):
    """Compute a map's elements in the only loop that reads them."""

    name = "sink-maps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for block in tuple(function.body.block.walk_blocks()):
                if sink_all(function, block):
                    while sink_all(function, block):
                        pass
                    drop_repeated(block)
                    move_arrays(block)


def loops_of(block: Block) -> list[array.LoopOp]:
    """The loops of a block that go point by point through scalar code."""
    return [
        op
        for op in block.ops
        if isinstance(op, array.LoopOp)
        and op.count is not None
        and op.condition_block is None
        and not op.carried
        and all(map(is_scalar_code, op.body.block.ops))
    ]


def sink_all(function: func.FuncOp, block: Block) -> bool:
    """Sink what may be into each loop of a block; whether there was any."""
    loops = loops_of(block)
    place = {op: k for k, op in enumerate(block.ops)} if loops else {}
    sunk = False
    for loop in loops:
        while sink_in(function, loop, place):
            sunk = True
    return sunk


def sink_in(function: func.FuncOp, loop: array.LoopOp, place: Mapping[Operation, int]) -> bool:
    """Sink the nearest map before the loop that may be; whether there was one."""
    for before in maps_before(loop, place):
        if is_quick(before) and is_read_in(before, loop, place):
            effects = MemoryEffects(function)
            inputs = frozenset(root for value in before.ins for root in effects.roots(value))
            between = ops_between(before, loop)
            if not any(effects.of(op).writes_any(inputs) for op in (*between, loop)):
                sink(before, loop, between)
                return True
    return False


def maps_before(loop: array.LoopOp, place: Mapping[Operation, int]) -> list[array.MapOp]:
    """The maps before a loop that store arrays that it reads, the nearest first."""
    found: set[array.MapOp] = set()
    for made in {strip_views(op.memref) for op in loop.walk() if isinstance(op, memref.LoadOp)}:
        if isinstance(made.owner, array.AllocOp) and made.owner.parent is loop.parent:
            users = [op for op in users_of(made) if isinstance(op, array.MapOp)]
            found.update(op for op in users if place.get(op, place[loop]) < place[loop])
    return sorted(found, key=place.__getitem__, reverse=True)


def ops_between(first: Operation, last: Operation) -> list[Operation]:
    found: list[Operation] = []
    op = first.next_op
    while op is not None and op is not last:
        found.append(op)
        op = op.next_op
    return found


def is_quick(op: array.MapOp) -> bool:
    """Whether a map goes over vectors, each point by itself, and costs next to nothing."""
    return (
        len(op.extents) == 1
        and not (op.window or op.origin or op.shifts)
        and all(kind == "store" for kind in op.out_kinds)
        and len(op.body.block.ops) <= FEW
        and all(isinstance(inner, QUICK) for inner in op.body.block.ops)
        and all(beginning(value) is not None for value in (*op.ins, *op.outs))
    )


def beginning(value: SSAValue) -> SSAValue | None:
    """The vector whose element i is that of this vector: itself, or what it is a view of the beginning of."""
    view = value.owner
    if isinstance(view, array.ViewOp):
        offsets, steps = (tuple(map(array.constant_value, v)) for v in (view.offsets, view.steps))
        if offsets != (0,) or steps != (1,) or view.source_dims != (0,):
            return None
        return beginning(view.source)
    kind = value.type
    return value if isinstance(kind, MemRefType) and len(kind.shape) == 1 else None


def is_read_in(op: array.MapOp, loop: array.LoopOp, place: Mapping[Operation, int]) -> bool:
    """Whether the loop alone reads what the map stores, each iteration its own element."""
    block, loads = loop.parent, 0
    assert block is not None
    arrays = [beginning(value) for value in op.outs]
    if len({*arrays}) < len(arrays):
        return False
    for made in arrays:
        allocated = made.owner if made is not None else None
        if not isinstance(allocated, array.AllocOp) or allocated.parent is not block:
            return False
        if array.GROWABLE in allocated.attributes:
            return False
        if op.extents[0] is not loop.count and op.extents[0] is not allocated.extents[0]:
            return False
        for user in users_of(allocated.memref):
            above = block.find_ancestor_op_in_block(user) if user is not None else None
            if user is None or above is None:
                return False
            if isinstance(user, memref.DimOp) or place[above] <= place[op]:
                continue
            if array.RAISES in above.attributes and place[above] < place[loop]:
                continue
            if above is not loop or not isinstance(user, memref.LoadOp):
                return False
            if [*user.indices] != [loop.induction] or beginning(user.memref) is not made:
                return False
            loads += 1
    return loads > 0


def users_of(value: SSAValue) -> Iterator[Operation | None]:
    """The ops that use an array, by whatever name; None where it may get away."""
    for use in value.uses:
        if isinstance(use.operation, array.AnyView):
            yield from users_of(use.operation.result)
        else:
            yield use.operation if only_touches(use.operation) else None


def sink(op: array.MapOp, loop: array.LoopOp, between: list[Operation]) -> None:
    arrays = {beginning(value) for value in op.outs}
    for other in between:
        if array.RAISES in other.attributes and reads(other, arrays):
            first = other.regions[0].block.first_op
            assert first is not None
            other.regions[0].block.insert_op_before(op.clone(), first)
    body, values = loop.body.block, dict[SSAValue, SSAValue]()
    before, new = [*body.ops], list[Operation]()
    for argument, value in zip(op.body.block.args, op.ins, strict=True):
        source = beginning(value)
        assert source is not None
        load = memref.LoadOp.get(source, [loop.induction])
        load.location = op.location
        new.append(load)
        values[argument] = load.res
    new += [one.clone(values) for one in op.body.block.ops if not isinstance(one, array.YieldOp)]
    body.insert_ops_before(new, before[0])
    numbers = (values.get(value, value) for value in op.yielded)
    stored = dict(zip(map(beginning, op.outs), numbers, strict=True))
    for one in before:
        if isinstance(one, memref.LoadOp) and (of := beginning(one.memref)) in stored:
            one.res.replace_all_uses_with(stored[of])
            Rewriter.erase_op(one)
    Rewriter.erase_op(op)


def reads(op: Operation, arrays: set[SSAValue | None]) -> bool:
    """Whether there is a use of the arrays in the op's regions."""
    return any(
        is_memref(value) and strip_views(value) in arrays
        for inner in op.walk()
        for value in inner.operands
    )


def drop_repeated(block: Block) -> None:
    """Drop branches that raise where an earlier one of the same condition would have."""
    conditions: set[SSAValue] = set()
    for op in tuple(block.ops):
        if isinstance(op, scf.IfOp) and array.RAISES in op.attributes:
            if op.cond in conditions:
                Rewriter.erase_op(op)
            conditions.add(op.cond)


def move_arrays(block: Block) -> None:
    """Make arrays in the branch that alone uses them, if that ends with an exception."""
    for op in reversed([*block.ops]):
        if isinstance(op, array.ViewOp) and not op.result.uses:
            Rewriter.erase_op(op)
    for op in tuple(block.ops):
        if isinstance(op, array.AllocOp):
            users = {block.find_ancestor_op_in_block(use.operation) for use in op.memref.uses}
            if len(users) == 1:
                (user,) = users
                if user is not None and array.RAISES in user.attributes:
                    inside = user.regions[0].block
                    op.detach()
                    assert inside.first_op is not None
                    inside.insert_op_before(op, inside.first_op)

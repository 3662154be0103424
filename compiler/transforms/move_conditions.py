"""Move conditions that store to arrays into the bodies of their loops.

The reverse sweep reverses what bodies do, and conditions run once more than bodies. So a condition that
changes what others read becomes the first part of the body, and a flag says whether the loop goes on. Runs
after `drop-carried`, which leaves few loops that carry arrays.

Before::

    func.func @f(%x : memref<f64>, %c : f64) {
      %trips = array.loop %i while {
      ^bb0(%j : index):
        %a = memref.load %x[] : memref<f64>
        %b = arith.mulf %a, %c : f64
        memref.store %b, %x[] : memref<f64>
        %more = arith.cmpf ogt, %b, %c : f64
        array.condition %more
      } do {
        array.print "again"
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x : memref<f64>, %c : f64) {
      %more_flag = memref.alloca() : memref<i1>
      %yes = arith.constant true
      memref.store %yes, %more_flag[] : memref<i1>
      %trips = array.loop %i while {
      ^bb0(%j : index):
        %goes_on = memref.load %more_flag[] : memref<i1>
        array.condition %goes_on
      } do {
        %a = memref.load %x[] : memref<f64>
        %b = arith.mulf %a, %c : f64
        memref.store %b, %x[] : memref<f64>
        %more = arith.cmpf ogt, %b, %c : f64
        memref.store %more, %more_flag[] : memref<i1>
        scf.if %more {
          array.print "again"
        }
        array.yield
      }
      func.return
    }

Where the trip count is used, the iteration that only found out is not counted.

Not handled: loops that carry arrays, and what calls of foreign functions store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i1,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.views import strip_views
from ..rules import writes


@dataclass(frozen=True)
class MoveConditions(ModulePass):
    """Move a loop's condition into its body if it stores to arrays from outside."""

    name = "move-conditions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in ops_of_kind(op, array.LoopOp):
            if loop.condition_block is not None and not loop.carried and changes_arrays(loop):
                move_into_body(loop, loop.condition_block)


def changes_arrays(loop: array.LoopOp) -> bool:
    """True where the condition stores to floats that are used elsewhere, too."""
    block = loop.condition_block
    assert block is not None
    roots = {strip_views(w.memref) for op in block.walk() for w in writes(op)}
    return any(is_float(root) and is_used_outside(root, block) for root in roots)


def is_float(memref_: SSAValue) -> bool:
    type_ = memref_.type
    return isinstance(type_, MemRefType) and isinstance(
        type_.element_type, Float32Type | Float64Type
    )


def is_used_outside(root: SSAValue, block: Block) -> bool:
    """True where an op that is not in `block` uses the array; of an argument, the caller does."""
    if isinstance(root.owner, Block):
        return True
    return any(block.find_ancestor_op_in_block(op) is None for op in users(root))


def users(root: SSAValue) -> Iterator[Operation]:
    """The ops that use an array or a view of it, but for those that make views."""
    pending = [root]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, array.AnyView | memref.CastOp):
                pending.append(op.results[0])
            else:
                yield op


def move_into_body(loop: array.LoopOp, condition: Block) -> None:
    """The rewrite."""
    flag = memref.AllocaOp.get(i1, shape=[])
    flag.memref.name_hint = "more_flag"
    entry(loop).insert_op_before(flag, first_op(entry(loop)))
    yes = arith.ConstantOp(IntegerAttr(1, i1))
    set_ = memref.StoreOp.get(yes.result, flag.memref, [])
    home = loop.parent_block()
    assert home is not None
    home.insert_ops_before([yes, set_], loop)
    count_without_last(loop, flag, home)

    body, last = loop.body.block, condition.last_op
    assert isinstance(last, array.ConditionOp)
    more = last.condition
    own = [op for op in body.ops if op is not body.last_op]
    last.detach()
    last.erase()
    condition.args[0].replace_all_uses_with(body.args[0])
    taken = Block()
    for op in own:
        op.detach()
        taken.add_op(op)
    taken.add_op(scf.YieldOp())
    branch = scf.IfOp(more, [], [taken])
    noted = memref.StoreOp.get(more, flag.memref, [])
    found = list(condition.ops)
    for op in found:
        op.detach()
    body.insert_ops_before([*found, noted, branch], first_op(body))
    goes_on = memref.LoadOp.get(flag.memref, [])
    goes_on.results[0].name_hint = "goes_on"
    condition.add_ops([goes_on, array.ConditionOp(goes_on.results[0])])
    for op in (flag, yes, set_, branch, *taken.ops, noted, *condition.ops):
        if op not in own:
            op.location = loop.location


def count_without_last(loop: array.LoopOp, flag: memref.AllocaOp, home: Block) -> None:
    """The trips that count are one less, where the condition ended the loop."""
    uses = list(loop.trips.uses)
    if not uses:
        return
    ended = memref.LoadOp.get(flag.memref, [])
    zero, one = (arith.ConstantOp(IntegerAttr(n, IndexType())) for n in (0, 1))
    extra = arith.SelectOp(ended.results[0], zero.result, one.result)
    trips = arith.SubiOp(loop.trips, extra.result)
    trips.result.name_hint = loop.trips.name_hint
    made = [ended, zero, one, extra, trips]
    for op in made:
        op.location = loop.location
    home.insert_ops_after(made, loop)
    for use in uses:
        use.operation.operands[use.index] = trips.result


def entry(op: Operation) -> Block:
    """The entry block of the function around `op`."""
    while not isinstance(op, func.FuncOp):
        above = op.parent_op()
        assert above is not None
        op = above
    return op.body.block


def first_op(block: Block) -> Operation:
    assert block.first_op is not None
    return block.first_op

"""Compute an elementwise temporary where it is used, instead of storing it.

An `array.map` that fills a fresh array which one later map of the same block alone reads, element
for element, is evaluated inside that map. Runs before the derivative: an array that does not exist
has no shadow, and no store kills it.

Before::

    func.func @f(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
      %t = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.mulf %x, %x : f64
        array.yield %y : f64
      }
      array.map(%n) ins(%t, %a : memref<?xf64>, memref<?xf64>) outs(%b : memref<?xf64>) kinds ["add"] {
      ^bb1(%y1 : f64, %x1 : f64):
        %z = arith.addf %y1, %x1 : f64
        array.yield %z : f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %a : memref<?xf64>, %b : memref<?xf64>) {
      array.map(%n) ins(%a : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["add"] {
      ^bb0(%x : f64):
        %y = arith.mulf %x, %x : f64
        %z = arith.addf %y, %x : f64
        array.yield %z : f64
      }
      func.return
    }

Kept apart: a temporary with several readers (it would be computed twice) or read through a view
(a shift, a broadcast), inputs that are overwritten in between, and a consumer that writes an input
of the producer anywhere but at the very same element (`analysis.in_place`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.in_place import InPlace
from .memory_effects import MemoryEffects, functions


@dataclass(frozen=True)
class FuseElementwise(ModulePass):
    """Evaluate a map inside the only map that reads its result."""

    name = "fuse-elementwise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            fuse_in(function)


def fuse_in(function: func.FuncOp) -> None:
    in_place, effects = InPlace(function), MemoryEffects(function)
    for op in every_op(function):
        if not isinstance(op, array.AllocOp):
            continue
        pair = producer_and_consumer(op)
        if pair is not None and may_be_delayed(*pair, in_place, effects):
            fuse(*pair)
            Rewriter.erase_op(op)


def producer_and_consumer(temporary: array.AllocOp) -> tuple[array.MapOp, array.MapOp] | None:
    """The one map that fills the temporary and the one that reads it, in this order."""
    value = temporary.memref
    users = {use.operation for use in value.uses}
    if len(users) != 2:
        return None
    first, second = users
    if not isinstance(first, array.MapOp) or not isinstance(second, array.MapOp):
        return None
    producer, consumer = (first, second) if value in first.outs else (second, first)
    fills = tuple(producer.outs) == (value,) and producer.out_kinds == ("store",)
    reads = value in consumer.ins and value not in consumer.outs and value not in producer.ins
    same_points = all(map(are_equal, producer.extents, consumer.extents))
    in_order = producer.parent is consumer.parent and comes_before(producer, consumer)
    return (producer, consumer) if fills and reads and same_points and in_order else None


def are_equal(a: SSAValue, b: SSAValue) -> bool:
    known = array.constant_value(a)
    return a is b or (known is not None and known == array.constant_value(b))


def comes_before(a: Operation, b: Operation) -> bool:
    """True when `a` stands before `b` in their block."""
    op = a.next_op
    while op is not None and op is not b:
        op = op.next_op
    return op is b


def may_be_delayed(
    producer: array.MapOp, consumer: array.MapOp, in_place: InPlace, effects: MemoryEffects
) -> bool:
    """True when the producer computes the same at the consumer's place, point for point."""
    read = effects.of(producer).reads - effects.roots(producer.outs[0])
    op = producer.next_op
    while op is not None and op is not consumer:
        if effects.of(op).writes_any(read):
            return False
        op = op.next_op
    return in_place.allows(producer, consumer)


def fuse(producer: array.MapOp, consumer: array.MapOp) -> None:
    """Put one map in the consumer's place that also evaluates the producer's body."""
    temporary = producer.outs[0]
    ins = list(dict.fromkeys((*producer.ins, *(i for i in consumer.ins if i is not temporary))))
    body = Block(arg_types=[element_type(i) for i in ins])
    element: dict[SSAValue, SSAValue] = dict(zip(ins, body.args, strict=True))
    element[temporary] = move_body(producer, body, element)[0]
    yielded = move_body(consumer, body, element)
    end = array.YieldOp(yielded)
    end.location = consumer.location
    body.add_op(end)
    fused = array.MapOp(
        tuple(consumer.extents), ins, tuple(consumer.outs), consumer.out_kinds, body
    )
    fused.location = consumer.location
    fused.attributes.update(consumer.attributes)
    Rewriter.erase_op(producer)
    Rewriter.replace_op(consumer, fused)


def element_type(memref: SSAValue) -> Attribute:
    assert isinstance(memref.type, MemRefType)
    return memref.type.element_type


def move_body(op: array.MapOp, to: Block, element: dict[SSAValue, SSAValue]) -> Sequence[SSAValue]:
    """Move the scalar code of `op` to the end of `to`; returns the elements that it yields."""
    block = op.body.block
    for memref, arg in zip(op.ins, block.args, strict=True):
        arg.replace_all_uses_with(element[memref])
    yielded = op.yielded
    for inner in tuple(block.ops):
        if not isinstance(inner, array.YieldOp):
            inner.detach()
            to.add_op(inner)
    return yielded

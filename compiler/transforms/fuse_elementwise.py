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

The producer may stand before a branch that the consumer is in: it is evaluated where it is wanted. Index
spaces that a check on the way compares are one past it. A consumer that `reads_first` may be given anything:
what it overwrites is for `resolve-overlap` to see.

Kept apart: a temporary that several maps read (it would be computed twice) or that is read through another
view (a shift, a broadcast), inputs that are overwritten in between, and a consumer that writes an input
of the producer anywhere but at the very same element (`analysis.in_place`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i32
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.array import READS_FIRST
from ...dialects.within import ops_of_kind
from ..analysis.affine import equal_numbers
from ..analysis.equal_extents import equalities
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
    """What several maps read stays, though fusion make them one: the next run looks at it again."""
    temporaries = ops_of_kind(function, array.AllocOp)
    delays = Delays(function)
    for op in reversed([t for t in temporaries if producer_and_consumer(t) is not None]):
        pair = producer_and_consumer(op)
        if pair is not None and delays.allow(*pair):
            named = [name for out in pair[0].outs for name in names_of(out)]
            fuse(*pair)
            for gone in named:
                assert isinstance(gone, Operation)
                Rewriter.erase_op(gone)


def producer_and_consumer(temporary: array.AllocOp) -> tuple[array.MapOp, array.MapOp] | None:
    """The one map that fills the temporary, all of it or one view of it, and the one that reads it.

    The same map reads what else the producer fills.
    """
    pair = filled_and_read(temporary)
    if pair is None:
        return None
    made = [names_of(out)[-1] for out in pair[0].outs]
    same = (isinstance(op, array.AllocOp) and filled_and_read(op) == pair for op in made)
    return pair if all(same) else None


def filled_and_read(temporary: array.AllocOp) -> tuple[array.MapOp, array.MapOp] | None:
    uses = list(temporary.memref.uses)
    if len(uses) == 1 and isinstance(view := uses[0].operation, array.ViewOp):
        uses = list(view.result.uses)
    writers = [use.operation for use in uses if is_output(use)]
    readers = {use.operation for use in uses} - {*writers}
    if len(writers) != 1 or len(readers) != 1:
        return None
    (producer,), (consumer,) = writers, readers
    if not isinstance(producer, array.MapOp) or not isinstance(consumer, array.MapOp):
        return None
    if consumer.gathers is not None:
        return None
    fills = {*producer.out_kinds} == {"store"} and sum(u.operation is producer for u in uses) == 1
    return (producer, consumer) if fills else None


def names_of(out: SSAValue) -> list[Operation | Block]:
    """What names an output, the array last."""
    named = [out.owner]
    while isinstance(view := named[-1], array.ViewOp):
        named.append(view.source.owner)
    return named


def is_output(use: Use) -> bool:
    """Whether a map writes to what it uses here."""
    op = use.operation
    return (
        isinstance(op, array.MapOp)
        and op.gathers is None
        and (use.index >= len(op.operands) - len(op.kinds.data))
    )


class Delays:
    """Which producers compute the same at the consumer's place, point for point, in one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function

    @cached_property
    def effects(self) -> MemoryEffects:
        return MemoryEffects(self.function)

    @cached_property
    def in_place(self) -> InPlace:
        return InPlace(self.function)

    def allow(self, producer: array.MapOp, consumer: array.MapOp) -> bool:
        return self.reach(producer, consumer) and (
            READS_FIRST in consumer.attributes
            or self.roots(consumer.outs).isdisjoint(self.roots(producer.ins))
            or self.in_place.allows(producer, consumer)
        )

    def reach(self, producer: array.MapOp, consumer: array.MapOp) -> bool:
        """Whether the maps have the same points, and what the producer reads stays up to the consumer."""
        read = self.roots(producer.ins)
        pairs = zip(producer.extents, consumer.extents, strict=True)
        unlike = {(n, m) for n, m in pairs if not equal_numbers(n, m)}
        for op in backwards(consumer):
            if op is producer:
                return not unlike
            if self.effects.of(op).writes_any(read):
                return False
            if unlike and isinstance(op, array.RaiseIfOp):
                unlike -= {pair for n, m in equalities(op.condition) for pair in ((n, m), (m, n))}
        return False

    def roots(self, memrefs: Iterable[SSAValue]) -> frozenset[SSAValue]:
        return frozenset(root for m in memrefs for root in self.effects.roots(m))


def backwards(op: Operation) -> Iterator[Operation]:
    """What runs before an op, the nearest first, as far as the op certainly runs at most once after it."""
    while True:
        while op.prev_op is not None:
            op = op.prev_op
            yield op
        around = op.parent_op()
        if not isinstance(around, scf.IfOp):
            return
        op = around


def fuse(producer: array.MapOp, consumer: array.MapOp) -> None:
    """Evaluate the producer's body at the start of the consumer's."""
    block, element = consumer.body.block, elements(consumer)
    for memref, arg in zip(producer.ins, producer.body.block.args, strict=True):
        if memref not in element:
            element[memref] = block.insert_arg(arg.type, len(block.args))
            element[memref].name_hint = arg.name_hint
        arg.replace_all_uses_with(element[memref])
    results, (*moved, _) = producer.yielded, producer.body.block.ops
    for op in moved:
        op.detach()
    Rewriter.insert_op(moved, InsertPoint.at_start(block))
    for out, result in zip(producer.outs, results, strict=True):
        read = element.pop(out)
        read.replace_all_uses_with(result)
        block.erase_arg(read)
    set_ins(consumer, list(element))
    Rewriter.erase_op(producer)


def elements(op: array.MapOp) -> dict[SSAValue, BlockArgument]:
    """The body's argument for each input; an input that is there twice has one from here on."""
    found: dict[SSAValue, BlockArgument] = {}
    for memref, arg in zip(op.ins, op.body.block.args, strict=True):
        if memref in found:
            arg.replace_all_uses_with(found[memref])
            op.body.block.erase_arg(arg)
        else:
            found[memref] = arg
    return found


def set_ins(op: array.MapOp, ins: Sequence[SSAValue]) -> None:
    """Let the map, which gathers nothing, read these, for which its body has arguments."""
    sizes = [len(op.extents), len(ins), len(op.outs), 0, 0]
    op.operands = [*op.extents, *ins, *op.outs]
    op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)

"""Update an array from its own mirror image pair by pair, from both ends.

`y += alpha * y[::-1]` reads all of its right side before it stores, so it takes a temporary, and two passes.
But only elements that mirror each other meet: the pairs are independent. A map over half of the points
computes both elements of a pair, and another one that in the middle. The adjoint of such an update is one,
too. Runs behind the derivative, whose rules see whole arrays, and before `fuse-rows`, which splits maps.

Before::

    func.func @f(%u : memref<?xf64>, %n : index, %a : f64) {
      %c0 = arith.constant 0 : index
      %cm1 = arith.constant -1 : index
      %last = arith.addi %n, %cm1 : index
      %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1)
          : memref<?xf64> -> memref<?xf64, strided<[-1]>>
      %t = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%back : memref<?xf64, strided<[-1]>>) outs(%t : memref<?xf64>) kinds ["store"] {
      ^bb0(%x : f64):
        %y = arith.mulf %a, %x : f64
        array.yield %y : f64
      }
      array.map(%n) ins(%t : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%z : f64):
        array.yield %z : f64
      }
      func.return
    }

After::

    !front = memref<?xf64, strided<[1]>>
    !back = memref<?xf64, strided<[-1]>>
    func.func @f(%u : memref<?xf64>, %n : index, %a : f64) {
      %c0 = arith.constant 0 : index
      %cm1 = arith.constant -1 : index
      %last = arith.addi %n, %cm1 : index
      %back = array.view %u[%last] dims [0] extents(%n) steps(%cm1) : memref<?xf64> -> !back
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %2 = arith.constant 2 : index
      %3 = arith.constant -1 : index
      %4 = arith.maxsi %n, %0 : index
      %half = arith.floordivsi %4, %2 : index
      %5 = arith.muli %half, %2 : index
      %rest = arith.subi %4, %5 : index
      %end = arith.subi %4, %1 : index
      %back_1 = array.view %back[%0] dims [0] extents(%half) steps(%1) : !back -> !back
      %back_2 = array.view %back[%end] dims [0] extents(%half) steps(%3) : !back -> !front
      %u_1 = array.view %u[%0] dims [0] extents(%half) steps(%1) : memref<?xf64> -> !front
      %u_2 = array.view %u[%end] dims [0] extents(%half) steps(%3) : memref<?xf64> -> !back
      array.map(%half) ins(%back_1, %back_2 : !back, !front) outs(%u_1, %u_2 : !front, !back)
          kinds ["store", "store"] {
      ^bb0(%x : f64, %x_1 : f64):
        %y = arith.mulf %a, %x : f64
        %y_1 = arith.mulf %a, %x_1 : f64
        array.yield %y, %y_1 : f64, f64
      }
      %back_3 = array.view %back[%half] dims [0] extents(%rest) steps(%1) : !back -> !back
      %u_3 = array.view %u[%half] dims [0] extents(%rest) steps(%1) : memref<?xf64> -> !front
      array.map(%rest) ins(%back_3 : !back) outs(%u_3 : !front) kinds ["store"] {
      ^bb0(%x_2 : f64):
        %y_2 = arith.mulf %a, %x_2 : f64
        array.yield %y_2 : f64
      }
      func.return
    }

What such a map saves as it is, is copied before it, by a map of its own: rows that are stored from both ends
took longer than that. Kept: updates from a part that is shifted, from a mirror image along several axes, or
from other views as well; outputs that share memory; minima, maxima and products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import AnyFloat, MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import ad, array
from ...dialects.within import ops_of_kind
from ..analysis.affine import Affine, Symbol, Term, affine, replaced
from ..analysis.alias import AliasAnalysis
from ..analysis.footprint import Dimension, Footprints, Point
from ..analysis.in_place import InPlace, stands_still
from ..analysis.views import strip_views
from ..diagnostics import locate
from ..rules.builders import Emit, element_of, index, transfer
from ..rules.table import ADJOINT
from .fuse_elementwise import Delays, fuse, names_of, producer_and_consumer
from .map_outputs import with_outputs
from .memory_effects import functions
from .step_on_tape import before


@dataclass(frozen=True)
class PairMirrored(ModulePass):
    """Compute the elements of arrays that are updated from their mirror images in pairs."""

    name = "pair-mirrored"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            pairing = Pairing(function)
            for made in reversed(list(ops_of_kind(function, array.AllocOp))):
                pair = producer_and_consumer(made)
                axis = None if pair is None else pairing.axis(*pair)
                if pair is not None and axis is not None:
                    rewrite(*pair, axis)
                    pairing = Pairing(function)


Position = tuple[SSAValue, tuple[Affine, ...]]
"""An array, and the subscripts of the element of it that a point of a map has."""


@dataclass
class Pairing:
    """What is asked of the maps of one function, while it stays as it is."""

    function: func.FuncOp

    @cached_property
    def alias(self) -> AliasAnalysis:
        return AliasAnalysis(self.function)

    @cached_property
    def in_place(self) -> InPlace:
        return InPlace(self.function)

    @cached_property
    def footprints(self) -> Footprints:
        return Footprints(self.alias)

    @cached_property
    def delays(self) -> Delays:
        return Delays(self.function)

    def axis(self, producer: array.MapOp, consumer: array.MapOp) -> int | None:
        """The axis along which the consumer, with what it reads evaluated inside, has pairs of points."""
        delays, outs = self.delays, consumer.outs
        if not can_be_paired(producer, consumer) or not delays.reach(producer, consumer):
            return None
        if any(self.alias.may_alias(a, b) for k, a in enumerate(outs) for b in outs[:k]):
            return None
        if delays.allow(producer, consumer):
            return None  # for fuse-elementwise, in any order
        axes = (a for a in range(len(consumer.extents)) if self.is_mirrored(producer, consumer, a))
        return next(axes, None)

    def is_mirrored(self, producer: array.MapOp, consumer: array.MapOp, axis: int) -> bool:
        """Whether a pair of points that mirror each other along an axis reads nothing that others write."""
        return all(
            not self.alias.may_alias(out, read)
            or self.meets_in_pair(reader, consumer, out, read, axis)
            for reader in (producer, consumer)
            for read in reader.ins
            for out in consumer.outs
        )

    def meets_in_pair(
        self, reader: array.MapOp, writer: array.MapOp, out: SSAValue, read: SSAValue, axis: int
    ) -> bool:
        written, found = self.position(writer, out), self.position(reader, read)
        if written is not None and found in (written, mirrored(writer, written, axis)):
            return not stands_still(out)
        return self.in_place.apart(reader, read, writer, out)

    def position(self, op: array.MapOp, memref: SSAValue) -> Position | None:
        """Where the element of a point is; None where that is unknown."""
        point: list[Dimension] = [Point(Affine.of(counter(a))) for a in range(len(op.extents))]
        region = self.footprints.through_views(memref, point)
        found = tuple(d.at for d in region.dimensions if isinstance(d, Point))
        return (region.base, found) if len(found) == len(region.dimensions) else None


def can_be_paired(producer: array.MapOp, consumer: array.MapOp) -> bool:
    """Whether nothing of the maps is about their order, and both elements of a pair can be written."""
    kinds = zip(consumer.out_kinds, consumer.outs, strict=True)
    return not (producer.attributes or consumer.attributes or consumer.gathers) and all(
        (kind == "add" and isinstance(element_of(out), AnyFloat))
        or (kind == "store" and not stands_still(out))
        for kind, out in kinds
    )


def counter(axis: int) -> Term:
    """The counter of a map along an axis."""
    return Term("point", (Affine(constant=axis),))


def mirrored(op: array.MapOp, position: Position, axis: int) -> Position:
    """The position at the point on the other side of an axis."""
    base, at = position
    other = affine(op.extents[axis]) - Affine.of(counter(axis)) - 1
    point: dict[Symbol, Affine] = {c: Affine.of(c) for c in map(counter, range(len(op.extents)))}
    point[counter(axis)] = other
    return base, tuple(replaced(one, point) for one in at)


def stands_along(memref: SSAValue, axis: int) -> bool:
    """Whether all points along an axis have one element."""
    assert isinstance(memref.type, MemRefType)
    return array.strides_of(memref.type)[axis] == 0


def rewrite(producer: array.MapOp, consumer: array.MapOp, axis: int) -> None:
    """Let the consumer compute what it reads, of the points at both ends of an axis at once."""
    named = [name for out in producer.outs for name in names_of(out)]
    fuse(producer, consumer)
    for gone in named:
        assert isinstance(gone, Operation)
        Rewriter.erase_op(gone)
    fused = with_saves_before(consumer)
    function = fused.parent_op()
    while not isinstance(function, func.FuncOp):
        assert function is not None
        function = function.parent_op()
    asked = Pairing(function)
    positions = {m: asked.position(fused, m) for m in (*fused.ins, *fused.outs)}
    Halves(fused, axis, positions).write()


def with_saves_before(op: array.MapOp) -> array.MapOp:
    """Copy what outputs store as it is, and the map reads nothing of, before it; what is left of the map."""
    read = {strip_views(m) for m in op.ins}
    arguments = list(op.body.block.args)
    kept = list[int]()
    for k, (out, kind, value) in enumerate(zip(op.outs, op.out_kinds, op.yielded, strict=True)):
        if (
            kind != "store"
            or not isinstance(value, BlockArgument)
            or value not in arguments
            or not is_fresh(strip_views(out), read)
        ):
            kept.append(k)
            continue
        copied = transfer(op.ins[value.index], out, tuple(op.extents))
        copied.body.block.args[0].name_hint = value.name_hint
        locate(copied, op.location)
        Rewriter.insert_op(copied, InsertPoint.before(op))
    left = with_outputs(op, kept)
    assert left is not None
    return left


def is_fresh(base: SSAValue, read: set[SSAValue]) -> bool:
    """Whether an array is a segment of a tape, which the map does not read."""
    return isinstance(base.owner, ad.PushOp) and base not in read


@dataclass
class Halves:
    """A map on its way to one over half of its points, and one over those in the middle."""

    op: array.MapOp
    axis: int
    positions: dict[SSAValue, Position | None]
    emit: Emit = field(init=False)
    ins: list[SSAValue] = field(default_factory=list[SSAValue])
    known: dict[object, int] = field(default_factory=dict[object, int])
    """The inputs that elements are read from, by their positions."""

    def __post_init__(self) -> None:
        self.emit = before(self.op, self.op)
        zero, self.one, two, self.minus = (index(n, self.emit) for n in (0, 1, 2, -1))
        self.zero, count = zero, self.op.extents[self.axis]
        size = self.emit(arith.MaxSIOp(count, zero))
        self.half = self.emit(arith.FloorDivSIOp(size, two))
        twice = self.emit(arith.MuliOp(self.half, two))
        self.rest = self.emit(arith.SubiOp(size, twice))
        self.end = self.emit(arith.SubiOp(size, self.one))
        self.half.name_hint, self.rest.name_hint, self.end.name_hint = "half", "rest", "end"

    def write(self) -> None:
        op = self.op
        self.both()
        self.middle()
        Rewriter.erase_op(op)

    def both(self) -> None:
        """The map over pairs."""
        op, sides = self.op, (False, True)
        places = [[self.place(m, back) for m in op.ins] for back in sides]
        added = [
            [self.place(m, back) if self.is_loaded(k) else -1 for k, m in enumerate(op.outs)]
            for back in sides
        ]
        body = Block(arg_types=[element_of(m) for m in self.ins])
        values = [self.evaluate(body, numbers) for numbers in places]
        outs, kinds, yielded = list[SSAValue](), list[array.MapKind](), list[SSAValue]()
        for k, (out, kind) in enumerate(zip(op.outs, op.out_kinds, strict=True)):
            pair = [found[k] for found in values]
            if stands_along(out, self.axis):
                pair = [self.sum(body, pair[0], pair[1], op.yielded[k])]
            elif self.is_loaded(k):
                old = (body.args[numbers[k]] for numbers in added)
                pair = [self.sum(body, o, v, op.yielded[k]) for o, v in zip(old, pair, strict=True)]
                kind = "store"
            outs += [self.part(out, back) for back in sides[: len(pair)]]
            kinds += [kind] * len(pair)
            yielded += pair
        end = array.YieldOp(yielded)
        locate(end, op.location)
        body.add_op(end)
        self.emit_map(array.MapOp(self.extents(self.half), self.ins, outs, kinds, body))

    def is_loaded(self, k: int) -> bool:
        """Whether an output is an addition to elements of which each point has its own."""
        return self.op.out_kinds[k] == "add" and not stands_still(self.op.outs[k])

    def evaluate(self, body: Block, numbers: Sequence[int]) -> list[SSAValue]:
        """What the map yields at one of the two points, whose inputs have these numbers."""
        values: dict[SSAValue, SSAValue] = {}
        for argument, number in zip(self.op.body.block.args, numbers, strict=True):
            values[argument] = body.args[number]
            values[argument].name_hint = argument.name_hint
        *computing, _ = self.op.body.block.ops
        for inner in computing:
            body.add_op(inner.clone(values))
        return [values.get(v, v) for v in self.op.yielded]

    def sum(self, body: Block, a: SSAValue, b: SSAValue, like: SSAValue) -> SSAValue:
        """A sum of the adjoint, where what is added is of it."""
        added = arith.AddfOp(a, b)
        if isinstance(like.owner, Operation) and ADJOINT in like.owner.attributes:
            added.attributes[ADJOINT] = UnitAttr()
        locate(added, self.op.location)
        body.add_op(added)
        return added.result

    def place(self, memref: SSAValue, back: bool) -> int:
        """The number of the input that has the elements of one side; both read what mirrors itself once."""
        position = self.positions[memref]
        if position is not None and back:
            position = mirrored(self.op, position, self.axis)
        key = (memref, back) if position is None else position
        if key not in self.known:
            self.known[key] = len(self.ins)
            self.ins.append(self.part(memref, back))
        return self.known[key]

    def middle(self) -> None:
        """The map of what has no other side."""
        made = self.op.clone()
        parts = {m: self.view(m, self.half, self.rest, self.one) for m in self.positions}
        operands = [parts.get(m, m) for m in self.op.operands]
        made.operands = [*self.extents(self.rest), *operands[len(self.op.extents) :]]
        self.emit_map(made)

    def emit_map(self, made: array.MapOp) -> None:
        locate(made, self.op.location)
        Rewriter.insert_op(made, InsertPoint.before(self.op))

    def extents(self, along: SSAValue) -> list[SSAValue]:
        return [along if a == self.axis else n for a, n in enumerate(self.op.extents)]

    def part(self, memref: SSAValue, back: bool) -> SSAValue:
        """The elements from the beginning of the axis, or from its end."""
        start, step = (self.end, self.minus) if back else (self.zero, self.one)
        return self.view(memref, start, self.half, step)

    def view(self, memref: SSAValue, start: SSAValue, count: SSAValue, step: SSAValue) -> SSAValue:
        rank = len(self.op.extents)
        offsets = [start if a == self.axis else self.zero for a in range(rank)]
        steps = [step if a == self.axis else self.one for a in range(rank)]
        made = array.ViewOp(memref, offsets, range(rank), self.extents(count), steps)
        made.result.name_hint = memref.name_hint
        return self.emit(made)

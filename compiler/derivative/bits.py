"""Saved truths (a branch taken, the side of a minimum) as bits: eight iterations share a byte.

The innermost loop that indexes a segment runs from 0 upwards, so an iteration keeps the bits of those before
it and drops the rest, which are of the byte before: the iteration that would start the byte may save nothing
(a loop in it that does not run). The byte is at hand in a cell, which becomes a register::

    %place = arith.shrui %j, 3
    %shift = arith.index_cast (%j & 7) : index to i8
    %kept = %byte[] & ((1 << %shift) - 1) : i8
    %byte[] = %kept | %side << %shift
    memref.store %byte[], %side_saved[%i, %place]

What a map computes for a strip of points (`transforms/vectorize_outer`) goes through an array of its own,
which is packed into bytes after the map, and unpacked in the reverse sweep. A strip has a multiple of eight
points, but for the last one: so all of them take as many bytes as their points would together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1, i8
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..rules.builders import Emit, index

PER_BYTE = 8


def bytes_for(count: SSAValue, emit: Emit) -> SSAValue:
    """How many bytes hold `count` bits (none where it is negative)."""
    return places_for(count, PER_BYTE, emit)


def places_for(count: SSAValue, per: int, emit: Emit) -> SSAValue:
    """How many places hold `count` things, `per` to a place, a power of two (none where it is negative)."""
    more = emit(arith.AddiOp(count, index(per - 1, emit)))
    rounded = emit(arith.MaxSIOp(more, index(0, emit)))
    return emit(arith.ShRUIOp(rounded, index(per.bit_length() - 1, emit)))


def store_bit(
    segment: SSAValue, cell: SSAValue, at: Sequence[SSAValue], truth: SSAValue, emit: Emit
) -> None:
    """Write the bit of the iteration `at`; `cell` has the byte of the iteration before."""
    place, shift = place_of(at, emit)
    old = emit(memref.LoadOp.get(cell, []))
    one = emit(arith.ConstantOp(IntegerAttr(1, i8)))
    before = emit(arith.SubiOp(emit(arith.ShLIOp(one, shift)), one))
    kept = emit(arith.AndIOp(old, before))
    bit = emit(arith.ShLIOp(emit(arith.ExtUIOp(truth, i8)), shift))
    byte = emit(arith.OrIOp(kept, bit))
    emit(memref.StoreOp.get(byte, cell, []))
    emit(memref.StoreOp.get(byte, segment, place))


def load_bit(segment: SSAValue, at: Sequence[SSAValue], emit: Emit) -> SSAValue:
    """Read the bit of the iteration `at`."""
    place, shift = place_of(at, emit)
    byte = emit(memref.LoadOp.get(segment, place))
    return emit(arith.TruncIOp(emit(arith.ShRUIOp(byte, shift)), i1))


def place_of(at: Sequence[SSAValue], emit: Emit) -> tuple[list[SSAValue], SSAValue]:
    """The subscripts of the byte, and which of its bits it is."""
    *outer, inner = at
    place = emit(arith.ShRUIOp(inner, index(3, emit)))
    bit = emit(arith.AndIOp(inner, index(PER_BYTE - 1, emit)))
    return [*outer, place], emit(arith.IndexCastOp(bit, i8))


# Rows of truths.


@dataclass(frozen=True)
class Strip:
    """The points of one strip of `whole`: `max(min(whole - counter * size, size), 0)`."""

    whole: SSAValue
    counter: SSAValue
    size: SSAValue

    @property
    def fills_bytes(self) -> bool:
        """All strips but the last one have a multiple of eight points."""
        owner = self.size.owner
        parts = owner.operands if isinstance(owner, arith.MuliOp) else (self.size,)
        return any((array.constant_value(part) or 1) % PER_BYTE == 0 for part in parts)


def strip_of(number: object) -> Strip | None:
    """What the number is, if it is the length of a strip."""
    if not isinstance(number, SSAValue) or not isinstance(number.owner, arith.MaxSIOp):
        return None
    least = number.owner.lhs.owner
    if array.constant_value(number.owner.rhs) != 0 or not isinstance(least, arith.MinSIOp):
        return None
    left = least.lhs.owner
    start = left.rhs.owner if isinstance(left, arith.SubiOp) else None
    if not isinstance(left, arith.SubiOp) or not isinstance(start, arith.MuliOp):
        return None
    return Strip(left.lhs, start.lhs, start.rhs) if start.rhs is least.rhs else None


def are_packed(number: object) -> bool:
    """Whether truths of so many points are packed."""
    strip = strip_of(number)
    return strip is not None and strip.fills_bytes


def pack(
    truths: SSAValue, segment: SSAValue, extents: Sequence[SSAValue], like: Operation, emit: Emit
) -> None:
    """Write rows of truths, eight to a byte: full bytes, then one for what is left of a row."""

    def byte(at: list[SSAValue], emit: Emit) -> None:
        *row, place = at
        start = emit(arith.MuliOp(place, index(PER_BYTE, emit)))
        found: SSAValue | None = None
        for k in range(PER_BYTE):
            source = [*row, emit(arith.AddiOp(start, index(k, emit)))]
            one = emit(arith.ExtUIOp(emit(memref.LoadOp.get(truths, source)), i8))
            bit = emit(arith.ShLIOp(one, emit(arith.ConstantOp(IntegerAttr(k, i8)))))
            found = bit if found is None else emit(arith.OrIOp(found, bit))
        assert found is not None
        emit(memref.StoreOp.get(found, segment, at))

    def one_more(at: list[SSAValue], emit: Emit) -> None:
        *row, k = at
        truth = emit(memref.LoadOp.get(truths, [*row, emit(arith.AddiOp(first, k))]))
        shift = emit(arith.IndexCastOp(k, i8))
        old = emit(memref.LoadOp.get(segment, [*row, whole]))
        none = emit(arith.ConstantOp(IntegerAttr(0, i8)))
        starts = emit(arith.CmpiOp(shift, none, "eq"))
        kept = emit(arith.SelectOp(starts, none, old))
        bit = emit(arith.ShLIOp(emit(arith.ExtUIOp(truth, i8)), shift))
        emit(memref.StoreOp.get(emit(arith.OrIOp(kept, bit)), segment, [*row, whole]))

    *rows, count = extents
    whole, first, left = divided(count, emit)
    nest([*rows, whole], like, emit, byte)
    nest([*rows, left], like, emit, one_more)


def unpack(
    segment: SSAValue, truths: SSAValue, extents: Sequence[SSAValue], like: Operation, emit: Emit
) -> None:
    """Read rows of truths."""

    def whole_byte(at: list[SSAValue], emit: Emit) -> None:
        *row, place = at
        first = emit(arith.MuliOp(place, index(PER_BYTE, emit)))
        byte = emit(memref.LoadOp.get(segment, at))
        for k in range(PER_BYTE):
            shift = emit(arith.ConstantOp(IntegerAttr(k, i8)))
            bit = emit(arith.TruncIOp(emit(arith.ShRUIOp(byte, shift)), i1))
            emit(memref.StoreOp.get(bit, truths, [*row, emit(arith.AddiOp(first, index(k, emit)))]))

    def one(at: list[SSAValue], emit: Emit) -> None:
        *row, k = at
        place = [*row, emit(arith.AddiOp(first, k))]
        emit(memref.StoreOp.get(load_bit(segment, place, emit), truths, place))

    *rows, count = extents
    whole, first, left = divided(count, emit)
    nest([*rows, whole], like, emit, whole_byte)
    nest([*rows, left], like, emit, one)


def divided(count: SSAValue, emit: Emit) -> tuple[SSAValue, SSAValue, SSAValue]:
    """How many bytes are full, how many truths these have, and how many are left."""
    whole = emit(arith.ShRUIOp(count, index(3, emit)))
    first = emit(arith.MuliOp(whole, index(PER_BYTE, emit)))
    return whole, first, emit(arith.SubiOp(count, first))


def nest(
    counts: Sequence[SSAValue],
    like: Operation,
    emit: Emit,
    body: Callable[[list[SSAValue], Emit], None],
    *counters: SSAValue,
) -> None:
    """Loops, and in them what `body` emits for their counters; located where `like` is."""
    if not counts:
        body(list(counters), emit)
        return
    block = Block(arg_types=[IndexType()])

    def inside(op: Operation) -> SSAValue:
        op.location = like.location
        block.add_op(op)
        return op.results[0] if op.results else block.args[0]

    nest(counts[1:], like, inside, body, *counters, block.args[0])
    inside(array.YieldOp())
    emit(array.LoopOp(counts[0], (), block))

"""Saved truths (a branch taken, the side of a minimum) as bits: eight iterations share a byte.

The innermost loop that indexes a segment runs from 0 upwards, so its first of eight iterations starts the
byte and the others add to it. The byte is at hand in a cell, which becomes a register::

    %place = arith.shrui %j, 3
    %shift = arith.index_cast (%j & 7) : index to i8
    %kept = arith.select (%shift == 0), 0, %byte[] : i8
    %byte[] = %kept | %side << %shift
    memref.store %byte[], %side_saved[%i, %place]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1, i8
from xdsl.ir import Operation, SSAValue

PER_BYTE = 8

Emit = Callable[[Operation], SSAValue]
"""Puts an op where the code goes, and returns its result."""


def bytes_for(count: SSAValue, emit: Emit) -> SSAValue:
    """How many bytes hold `count` bits (none where it is negative)."""
    more = emit(arith.AddiOp(count, index(PER_BYTE - 1, emit)))
    rounded = emit(arith.MaxSIOp(more, index(0, emit)))
    return emit(arith.ShRUIOp(rounded, index(3, emit)))


def store_bit(
    segment: SSAValue, cell: SSAValue, at: Sequence[SSAValue], truth: SSAValue, emit: Emit
) -> None:
    """Write the bit of the iteration `at`; `cell` has the byte of the iteration before."""
    place, shift = place_of(at, emit)
    old = emit(memref.LoadOp.get(cell, []))
    none = emit(arith.ConstantOp(IntegerAttr(0, i8)))
    starts = emit(arith.CmpiOp(shift, none, "eq"))
    kept = emit(arith.SelectOp(starts, none, old))
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


def index(value: int, emit: Emit) -> SSAValue:
    return emit(arith.ConstantOp(IntegerAttr(value, IndexType())))

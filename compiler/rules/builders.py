"""Small maps and views that rules and sweeps emit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from ..diagnostics import locate
from .table import float_constant

Emit = Callable[[Operation], SSAValue]


def element_of(value: SSAValue) -> Attribute:
    """The element type of a memref."""
    return cast(MemRefType[Attribute], value.type).element_type


def index(value: int, emit: Emit) -> SSAValue:
    return emit(arith.ConstantOp(array.index_number(value)))


def extents_of(value: SSAValue, emit: Emit) -> list[SSAValue]:
    """The extents of a memref: constants, or asked for."""
    extents: list[SSAValue] = []
    for axis, known in enumerate(cast(MemRefType[Attribute], value.type).get_shape()):
        number = index(known if known >= 0 else axis, emit)
        extents.append(number if known >= 0 else emit(memref.DimOp(value, number)))
    return extents


def fill(
    target: SSAValue, extents: Sequence[SSAValue], like: Operation, number: float = 0.0
) -> array.MapOp:
    """A map that sets `target` to a number, located where `like` is."""
    body = Block()
    value = float_constant(number, element_of(target))
    body.add_op(value)
    body.add_op(array.YieldOp([value.result]))
    made = array.MapOp(extents, [], [target], ["store"], body)
    locate(made, like.location)
    return made


def transfer(
    source: SSAValue, target: SSAValue, extents: Sequence[SSAValue], kind: str = "store"
) -> array.MapOp:
    """A map that stores, or adds, each element of `source` to that of `target`."""
    body = Block(arg_types=[element_of(source)])
    body.add_op(array.YieldOp([body.args[0]]))
    return array.MapOp(extents, [source], [target], [kind], body)


def memory_in_order(
    like: MemRefType[Attribute],
    extents: Sequence[SSAValue],
    element: Attribute,
    emit: Emit,
    take: Callable[[Sequence[SSAValue], Attribute], Operation] = array.AllocOp,
) -> SSAValue:
    """Compact memory in the order of an array of this type: Fortran's where its type says so.

    `take` makes the op that has the memory.
    """
    rank = len(extents)
    if not array.is_by_columns(like):
        return emit(take(extents, element))
    made = emit(take(extents[::-1], element))
    zero, one = index(0, emit), index(1, emit)
    order = list(range(rank))[::-1]
    return emit(array.ViewOp(made, [zero] * rank, order, list(extents), [one] * rank))


LINE, LONG = 64, 8
"""The bytes of a cache line; rows of so many lines and more begin where a line does (`whole_lines`)."""


def whole_lines(length: SSAValue, element: Attribute, emit: Emit) -> SSAValue:
    """How far apart long rows lie that all begin where a cache line does: then no vector is in two lines."""
    width = element.bitwidth // 8 if isinstance(element, AnyFloat) else LINE
    if LINE % width or width == LINE:
        return length
    per = LINE // width
    up, each = emit(arith.AddiOp(length, index(per - 1, emit))), index(per, emit)
    whole = emit(arith.MuliOp(emit(arith.FloorDivSIOp(up, each)), each))
    long = emit(arith.CmpiOp(length, index(LONG * per, emit), "sge"))
    return emit(arith.SelectOp(long, whole, length))


def transpose(matrix: SSAValue, emit: Emit) -> SSAValue:
    rows, columns = extents_of(matrix, emit)
    zero, one = index(0, emit), index(1, emit)
    return emit(array.ViewOp(matrix, [zero, zero], [1, 0], [columns, rows], [one, one]))


def common_type(types: Sequence[MemRefType[Attribute]]) -> MemRefType[Attribute]:
    """The type that all of these can be cast to: what differs is known at run time."""
    first = types[0]
    if all(t == first for t in types):
        return first
    shapes = zip(*(t.get_shape() for t in types), strict=True)
    shape = [s[0] if len(set(s)) == 1 else DYNAMIC_INDEX for s in shapes]
    if all(map(array.is_contiguous, types)):
        return MemRefType(first.element_type, shape)
    strides = zip(*map(array.strides_of, types), strict=True)
    return array.strided(
        first.element_type, shape, [s[0] if len(set(s)) == 1 else None for s in strides]
    )

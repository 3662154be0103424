"""Lower an adjoint map over a matrix to scalar loops, where rows add to one row. Part of `unroll_and_jam`.

What is a row, or a column, to all points is read and added to where it lies, so that iterations are seen to
share it. Within a map additions come in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat, MemRefType, UnitAttr
from xdsl.ir import Attribute, SSAValue

from ...dialects import array
from .interchange import Writer, body_like, loop_of
from .maps_as_loops import is_adjoint, is_scalar_code

STILL, ALONG = 0, 1
"""The strides of an axis along which all is one element, or elements lie side by side."""


def adds_to_a_row(op: array.MapOp) -> bool:
    """True of an adjoint map over a matrix that only adds, to one row for all rows among others.

    Half of what goes along a row has to be one row for all: else a map's own loop is as fast.
    """
    plain = len(op.extents) == 2 and op.gathers is None and array.READS_FIRST not in op.attributes
    if not plain or any(kind != "add" for kind in op.out_kinds):
        return False
    if not all(map(is_adjoint, op.yielded)) or not all(map(is_scalar_code, op.body.block.ops)):
        return False
    read, written = [strides_of(m) for m in op.ins], [strides_of(m) for m in op.outs]
    moved = [*read, *written, *written]  # what is added to is loaded and stored
    if any(along not in (STILL, ALONG) for _, along in moved):
        return False
    moving = sum(along == ALONG for _, along in moved)
    return (STILL, ALONG) in written and 2 * moved.count((STILL, ALONG)) >= moving


def strides_of(source: SSAValue) -> tuple[object, ...]:
    """The strides of a matrix of numbers; none of other elements."""
    type_ = source.type
    assert isinstance(type_, MemRefType)
    element: Attribute = type_.element_type
    return tuple(array.strides_of(type_)) if isinstance(element, AnyFloat) else (None, None)


def as_nest(op: array.MapOp) -> array.LoopOp:
    """The nest that does what the map does, before it."""
    rows, _ = body_like(op)
    points, writer = body_like(op)
    counters = rows.args[0], points.args[0]
    values: dict[SSAValue, SSAValue] = {}
    for argument, source in zip(op.body.block.args, op.ins, strict=True):
        values[argument] = writer.emit(load_at(source, counters, writer))
    writer.copy(list(op.body.block.ops)[:-1], values)
    for value, target in zip(op.yielded, op.outs, strict=True):
        old = writer.emit(place := load_at(target, counters, writer))
        total = arith.AddfOp(old, values.get(value, value))
        total.attributes["ad.adjoint"] = UnitAttr()
        writer.emit(total)
        writer.block.add_op(memref.StoreOp.get(total.result, place.memref, list(place.indices)))
    rows.add_op(loop_of(op.extents[1], points, op))
    nest = loop_of(op.extents[0], rows, op)
    block = op.parent
    assert block is not None
    block.insert_op_before(nest, op)
    return nest


def load_at(source: SSAValue, counters: Sequence[SSAValue], writer: Writer) -> memref.LoadOp:
    """The element of a point; where views make one element of many, that of what is viewed."""
    places = list(counters)
    while isinstance(view := source.owner, array.ViewOp) and STILL in strides_of(source):
        places = places_in(view, places, writer)
        source = view.source
    return memref.LoadOp.get(source, places)


def places_in(view: array.ViewOp, at: Sequence[SSAValue], writer: Writer) -> list[SSAValue]:
    """Where an element of a view is in what is viewed."""
    places = list(view.offsets)
    for counter, dimension, step in zip(at, view.source_dims, view.steps, strict=True):
        if dimension < 0:
            continue
        moved = counter
        if array.constant_value(step) != 1:
            moved = writer.emit(arith.MuliOp(counter, step))
        at_start = array.constant_value(places[dimension]) == 0
        places[dimension] = moved if at_start else writer.sum(moved, places[dimension])
    return places

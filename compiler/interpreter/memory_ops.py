"""What the ops that make, name and access memory mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array
from .frame import Frame
from .memory import Memref, Undefined, fresh, has_layout
from .overlaps import share_bytes


def shape_of(frame: Frame, extents: Sequence[SSAValue]) -> tuple[int, ...]:
    return tuple(int(frame.get(e)) for e in extents)


def alloc(frame: Frame, op: array.AllocOp) -> None:
    zero = array.ZERO in op.attributes or array.CLEARED in op.attributes
    type_ = op.memref.type
    frame.values[op.memref] = fresh(type_, shape_of(frame, op.extents), zero=zero)


def cell(frame: Frame, op: memref.AllocaOp | memref.AllocOp) -> None:
    frame.values[op.memref] = fresh(op.memref.type, op.memref.type.get_shape())


def load(frame: Frame, op: memref.LoadOp) -> None:
    source: Memref = frame.get(op.memref)
    place = source.place(frame.all(op.indices))
    if frame.watch is not None:
        frame.watch.touched(source, place, write=False)
    frame.values[op.res] = source.root.cells[place].copy()


def store(frame: Frame, op: memref.StoreOp) -> None:
    target: Memref = frame.get(op.memref)
    place = target.place(frame.all(op.indices))
    if frame.watch is not None:
        frame.watch.touched(target, place, write=True)
    target.root.cells[place] = frame.get(op.value)


def load_lanes(frame: Frame, op: vector.LoadOp) -> None:
    source: Memref = frame.get(op.base)
    places = lanes_at(frame, source, op, op.result.type, write=False)
    frame.values[op.result] = source.root.cells[places].copy()


def store_lanes(frame: Frame, op: vector.StoreOp) -> None:
    target: Memref = frame.get(op.base)
    places = lanes_at(frame, target, op, op.vector.type, write=True)
    target.root.cells[places] = frame.get(op.vector)


def lanes_at(
    frame: Frame, m: Memref, op: vector.LoadOp | vector.StoreOp, type_: Attribute, *, write: bool
) -> list[int]:
    """The places of elements side by side."""
    assert isinstance(type_, VectorType)
    *others, first = (int(i) for i in frame.all(op.indices))
    places = [m.place([*others, first + k]) for k in range(type_.get_shape()[0])]
    if frame.watch is not None:
        for place in places:
            frame.watch.touched(m, place, write=write)
    return places


def dim(frame: Frame, op: memref.DimOp) -> None:
    frame.values[op.result] = np.int64(frame.get(op.source).shape[int(frame.get(op.index))])


def stride(frame: Frame, op: array.StrideOp) -> None:
    frame.values[op.result] = np.int64(frame.get(op.source).strides[op.axis.value.data])


def cast_memref(frame: Frame, op: memref.CastOp) -> None:
    source: Memref = frame.get(op.source)
    promise(source, cast(MemRefType[Attribute], op.dest.type))
    frame.values[op.dest] = source


def promise(m: Memref, type_: MemRefType[Attribute]) -> None:
    """Undefined where a memref is not what its type says."""
    if not has_layout(m, type_):
        raise Undefined(f"shape {m.shape} with strides {m.strides} is no {type_}")


def view(frame: Frame, op: array.ViewOp) -> None:
    source: Memref = frame.get(op.source)
    starts = frame.all(op.offsets)
    offset = source.offset + sum(int(s) * n for s, n in zip(starts, source.strides, strict=True))
    steps = [int(s) for s in frame.all(op.steps)]
    strides = tuple(
        0 if d < 0 else source.strides[d] * step
        for d, step in zip(op.source_dims, steps, strict=True)
    )
    made = Memref(source.root, offset, shape_of(frame, op.extents), strides)
    promise(made, op.result.type)
    frame.values[op.result] = made


def collapse(frame: Frame, op: array.CollapseOp) -> None:
    source: Memref = frame.get(op.source)
    first, end = op.merged
    shape = shape_of(frame, op.extents)
    merged = range(first, end)
    if op.units is not None:
        merged = [d for d in merged if source.shape[d] != 1] or [end - 1]
    strides = (*source.strides[:first], source.strides[merged[-1]], *source.strides[end:])
    made = Memref(source.root, source.offset, shape, strides)
    if 0 not in shape and not np.array_equal(made.places().ravel(), source.places().ravel()):
        raise Undefined("the dimensions do not follow each other in memory")
    promise(made, op.result.type)
    frame.values[op.result] = made


def overlap(frame: Frame, op: array.OverlapOp) -> None:
    a, b = frame.get(op.a), frame.get(op.b)
    frame.values[op.result] = np.bool_(share_bytes(a, b))


OPS: Mapping[type[Operation], Callable[[Frame, Any], None]] = {
    array.AllocOp: alloc,
    memref.AllocaOp: cell,
    memref.AllocOp: cell,
    memref.LoadOp: load,
    memref.StoreOp: store,
    vector.LoadOp: load_lanes,
    vector.StoreOp: store_lanes,
    memref.DimOp: dim,
    memref.CastOp: cast_memref,
    array.StrideOp: stride,
    array.ViewOp: view,
    array.CollapseOp: collapse,
    array.OverlapOp: overlap,
}
"""What each op does."""

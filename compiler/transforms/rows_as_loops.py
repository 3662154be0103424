"""A map over a row as a loop that keeps the order of its additions. Part of `tile_registers`."""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from ...dialects import array
from .interchange import body_like, loop_of
from .maps_as_loops import is_adjoint, is_scalar_code


def may_be_loop(op: array.MapOp) -> bool:
    """True of a map over a vector that updates one number for each point, in scalar code."""
    plain = op.gathers is None and not op.window and not op.origin
    if not plain or array.READS_FIRST in op.attributes or len(op.extents) != 1:
        return False
    match list(op.out_kinds):
        case ["add"]:
            pass
        case ["store"] if op.outs[0] in op.ins:
            pass
        case _:
            return False
    return all(map(is_scalar_code, op.body.block.ops))


def as_loop(op: array.MapOp) -> array.LoopOp:
    """The loop that does what such a map does, before it."""
    body, writer = body_like(op)
    place, values = [body.args[0]], dict[SSAValue, SSAValue]()
    for argument, source in zip(op.body.block.args, op.ins, strict=True):
        values[argument] = writer.emit(memref.LoadOp.get(source, place))
    writer.copy(list(op.body.block.ops)[:-1], values)
    (value,) = (values.get(v, v) for v in op.yielded)
    (target,) = op.outs
    if list(op.out_kinds) == ["add"]:
        old = writer.emit(memref.LoadOp.get(target, place))
        total = arith.AddfOp(old, value)
        if all(map(is_adjoint, op.yielded)):
            total.attributes["ad.adjoint"] = UnitAttr()
        value = writer.emit(total)
    writer.block.add_op(memref.StoreOp.get(value, target, place))
    for made in body.ops:
        made.location = op.location
    loop = loop_of(op.extents[0], body, op)
    block = op.parent
    assert block is not None
    block.insert_op_before(loop, op)
    return loop

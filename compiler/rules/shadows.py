"""Shadows: their types, and scratch ones for arguments without any."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad, array
from .builders import fill, memory_in_order
from .sweeps import ReverseSweep


def shadow_type(primal: Attribute) -> Attribute:
    """Compact where the primal is contiguous, in C or Fortran order; else of any strides; of tapes a tape."""
    if isinstance(primal, ad.TapeType):
        return primal
    assert isinstance(primal, MemRefType)
    if array.is_contiguous(primal) or (
        primal.get_num_dims() > 1 and array.strides_of(primal)[0] == 1
    ):
        return primal
    shape = primal.get_shape()
    return array.strided(primal.element_type, shape, [None] * len(shape))


def cotangent_type(result: Attribute) -> Attribute:
    """A scalar's own type; for an array one of any strides."""
    if not isinstance(result, MemRefType):
        return result
    shape = result.get_shape()
    return array.strided(result.element_type, shape, [None] * len(shape))


def scratch_shadow(
    sweep: ReverseSweep, op: Operation, operand: SSAValue, element: Attribute
) -> SSAValue:
    """Zeros in place of the shadow of an argument of `op` that is not active."""
    block = cast(Block, op.parent_block())
    type_ = cast(MemRefType[Attribute], operand.type)
    extents = [sweep.primal.extent(operand, axis, block) for axis in range(type_.get_num_dims())]
    scratch = memory_in_order(type_, extents, element, sweep.emit)
    scratch.name_hint = f"{operand.name_hint or 'array'}_unused"
    sweep.append(fill(scratch, extents, op))
    return scratch

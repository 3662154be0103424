"""The cotangents of array results: are they of the results' shapes, and into which shadows do they go?

A cotangent comes from the caller, who may not know the shape of the result. What does not agree raises
before the primal has any effect, where the result's extents can be had on entry::

    %wrong = arith.cmpi ne, %y_bar_n, %n : index
    array.raise_if %wrong, "ValueError", "the cotangent of the result has shape ({},), ..."
    ... the primal
    array.map(%n) ins(%y_bar) outs(%y_shadow) kinds ["add"] ...

Where only the primal tells them (the number of entries that are kept, say) it raises between the sweeps:
before any shadow is written. `ad.AS_MANY_AS_IT_TAKES` as extents stands for a cotangent that is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...dialects import ad, array
from ..analysis.affine import Subscripts
from ..analysis.alias import AliasAnalysis
from ..analysis.views import strip_casts
from ..rules.builders import Emit, extents_of

HARMLESS = (
    arith.ConstantOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    arith.CmpiOp,
    arith.SelectOp,
    array.FloorDivOp,
    array.FloorModOp,
)
"""Code on integers that can be computed before the checks that guard it."""


class EntryExtents:
    """Extents of a function's results, computed on entry to its gradient."""

    def __init__(self, alias: AliasAnalysis, values: dict[SSAValue, SSAValue], emit: Emit) -> None:
        self.alias = alias
        self.subscripts = Subscripts()
        self.values = dict(values)
        """The function's arguments and what was computed of them."""
        self.emit = emit

    def of(self, result: SSAValue) -> list[SSAValue] | None:
        """All extents of a memref, or None where the primal has to run first."""
        rank = cast(MemRefType[Attribute], result.type).get_num_dims()
        found = [self.extent(result, axis) for axis in range(rank)]
        return None if None in found else cast("list[SSAValue]", found)

    def extent(self, source: SSAValue, axis: int) -> SSAValue | None:
        source = strip_casts(source)
        known = cast(MemRefType[Attribute], source.type).get_shape()[axis]
        if known >= 0:
            return self.emit(arith.ConstantOp(IntegerAttr(known, IndexType())))
        owner = source.owner
        if isinstance(owner, array.AllocOp | array.AnyView):
            return self.value(owner.extents[axis])
        if isinstance(owner, array.LoopOp):
            alike = self.carried_alike(owner, source, axis)
            return None if alike is None else self.extent(alike, axis)
        if isinstance(source, BlockArgument) and source in self.values:
            number = self.emit(arith.ConstantOp(IntegerAttr(axis, IndexType())))
            return self.emit(memref.DimOp(self.values[source], number))
        return None

    def carried_alike(self, loop: array.LoopOp, result: SSAValue, axis: int) -> SSAValue | None:
        """What entered the loop in the place of `result`, if all that it may be is as long."""
        if None in self.alias.permutation(loop):
            return None
        first, *others = loop.carried
        for other in others:
            if self.subscripts.extent(other, axis) != self.subscripts.extent(first, axis):
                return None
        return first

    def value(self, number: SSAValue) -> SSAValue | None:
        """An integer, computed on entry."""
        found = self.values.get(number)
        if found is not None:
            return found
        op = number.owner
        if isinstance(op, Block):
            return None
        if isinstance(op, memref.DimOp):
            axis = array.constant_value(op.index)
            return None if axis is None else self.extent(op.source, axis)
        if not isinstance(op, HARMLESS):
            return None
        operands = [self.value(o) for o in op.operands]
        if None in operands:
            return None
        clone = op.clone(dict(zip(op.operands, cast("list[SSAValue]", operands), strict=True)))
        found = self.values[number] = self.emit(clone)
        return found


def require_extents(
    bar: SSAValue, extents: Sequence[SSAValue], emit: Emit, append: Callable[[Operation], None]
) -> None:
    """Raise unless the cotangent `bar` has these extents, or is 0 everywhere."""
    if not extents:
        return
    given = extents_of(bar, emit)
    wrong: SSAValue | None = None
    for one, wanted in zip(given, extents, strict=True):
        differs = emit(arith.CmpiOp(one, wanted, "ne"))
        wrong = differs if wrong is None else emit(arith.OrIOp(wrong, differs))
    assert wrong is not None
    nothing = emit(arith.ConstantOp(IntegerAttr(ad.AS_MANY_AS_IT_TAKES, IndexType())))
    some = emit(arith.CmpiOp(given[0], nothing, "ne"))
    shape = "({},)" if len(extents) == 1 else f"({', '.join('{}' for _ in extents)})"
    append(
        array.RaiseIfOp(
            emit(arith.AndIOp(wrong, some)),
            "ValueError",
            f"the cotangent of the result has shape {shape}, not {shape}",
            [*given, *extents],
        )
    )

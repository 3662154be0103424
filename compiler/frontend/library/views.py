"""Views of arrays: transposed, broadcast, every so many elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....dialects import array
from ....dialects.array import constant_value
from ...analysis.affine import affine
from ...analysis.views import strip_casts
from ..emitter import Emitter
from ..values import Array
from .shapes import compare, extents_of, step_along


def broadcast_to(e: Emitter, a: Array, extents: Sequence[SSAValue]) -> Array:
    """`a` seen with these extents: itself, or a view that stands still where it is broadcast."""
    own = extents_of(e, a.memref)
    if own == tuple(extents):
        return a
    missing = len(extents) - len(own)
    axes: list[int] = [-1] * missing
    steps: list[SSAValue] = [e.index(0)] * missing
    for axis, (n, target) in enumerate(zip(own, extents[missing:], strict=True)):
        step = step_along(e, n, target)
        axes.append(-1 if step == 0 else axis)
        steps.append(stretched(e, n) if step is None else e.index(step))
    if not missing and all(constant_value(s) == 1 for s in steps):
        return a
    return view(e, a, [e.index(0)] * len(own), axes, extents, steps)


def stretched(e: Emitter, extent: SSAValue) -> SSAValue:
    """The step of an array along an axis that is broadcast where its extent is 1 by accident."""
    return e.emit(arith.SelectOp(compare(e, "eq", extent, e.index(1)), e.index(0), e.index(1)))


def view(
    e: Emitter,
    a: Array,
    offsets: Sequence[SSAValue],
    axes: Sequence[int],
    extents: Sequence[SSAValue],
    steps: Sequence[SSAValue],
) -> Array:
    op = array.ViewOp(a.memref, offsets, axes, extents, steps)
    return Array(e.emit(op, a.memref.name_hint), a.dtype)


def transposed(e: Emitter, a: Array, axes: Sequence[int] | None = None) -> Array:
    """The axes in another order, reversed by default."""
    order = list(range(a.rank))[::-1] if axes is None else list(axes)
    if order == list(range(a.rank)):
        return Array(a.memref, a.dtype, whole=True)
    own = extents_of(e, a.memref)
    return view(e, a, [e.index(0)] * a.rank, order, [own[d] for d in order], [e.index(1)] * a.rank)


def view_key(memref: SSAValue) -> object:
    """Equal for memrefs that are certainly the same view of the same memory."""
    memref = strip_casts(memref)
    owner = memref.owner
    if isinstance(owner, array.CollapseOp):
        return view_key(owner.source), owner.merged
    if not isinstance(owner, array.ViewOp):
        return memref
    return (
        view_key(owner.source),
        owner.source_dims,
        *(tuple(map(affine, group)) for group in (owner.offsets, owner.extents, owner.steps)),
    )

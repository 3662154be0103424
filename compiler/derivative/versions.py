"""The contents of whole arrays between stores, and the maps that make them whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.ir import SSAValue

from ...dialects import array
from ..analysis.affine import Subscripts
from ..analysis.memory_ssa import Version as MemoryVersion


@dataclass(frozen=True)
class Version:
    """The contents of a whole array while no store changes them, read by `reader`."""

    base: SSAValue
    token: object


def maker_of(version: Version) -> tuple[array.MapOp, int] | None:
    """The map, and which of its outputs, that made the whole contents of an array; None otherwise."""
    token = cast(MemoryVersion, version.token)
    if len(token.roots) != 1:
        return None
    ((root, state),) = token.roots
    op = state.op
    if not isinstance(root.owner, array.AllocOp) or not isinstance(op, array.MapOp):
        return None
    for position, (out, kind) in enumerate(zip(op.outs, op.out_kinds, strict=True)):
        if version.base is root and kind == "store" and is_all_of(out, root):
            return op, position
    return None


def is_all_of(view: SSAValue, allocated: SSAValue) -> bool:
    """True when `view` is `allocated`, element for element: it may be a slice from 0 to its extent."""
    owner = view.owner
    if view is allocated:
        return True
    if not isinstance(owner, array.ViewOp) or owner.source is not allocated:
        return False
    assert isinstance(allocated.owner, array.AllocOp)
    extents, affine = allocated.owner.extents, Subscripts().affine
    return (
        list(owner.source_dims) == list(range(len(extents)))
        and all(array.constant_value(o) == 0 for o in owner.offsets)
        and all(array.constant_value(s) == 1 for s in owner.steps)
        and all(affine(a) == affine(b) for a, b in zip(owner.extents, extents, strict=True))
    )

"""Names of memory: views and casts of memrefs, and what they are views of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import array


def is_memref(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType)


def strip_views(value: SSAValue) -> SSAValue:
    """The memref that `value` is a view of, through any chain of views and casts."""
    while is_kind_of_view(type(owner := value.owner)):
        value = cast("array.AnyView | memref.CastOp", owner).source
    return value


@cache
def is_kind_of_view(kind: type) -> bool:
    return issubclass(kind, array.ViewOp | array.CollapseOp | memref.CastOp)


def views_between(memory: SSAValue, base: SSAValue) -> Sequence[Operation]:
    """The views that lead from an array to memory of it, innermost first."""
    found: list[Operation] = []
    while memory is not base:
        owner = memory.owner
        assert isinstance(owner, array.AnyView | memref.CastOp)
        found.append(owner)
        memory = owner.source
    return found


def strip_casts(value: SSAValue) -> SSAValue:
    """The memref that `value` is in another type."""
    while isinstance(value.owner, memref.CastOp):
        value = value.owner.source
    return value


def is_collapsed(view: SSAValue) -> bool:
    """True where dimensions became one, as the array lies: an array that lies otherwise has no such view."""
    while isinstance(owner := view.owner, array.AnyView | memref.CastOp):
        if isinstance(owner, array.CollapseOp):
            return True
        view = owner.source
    return False

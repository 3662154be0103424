"""Refuse, by line, what has no place: the device does not run it, and the host has no array to run it on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.dialects import func, memref, scf
from xdsl.ir import Operation

from ...dialects import ad, array
from ...dialects.within import every_op
from ..analysis.alias import enclosing_loops
from ..analysis.carried_cells import cell_of
from ..analysis.views import is_memref
from ..diagnostics import refusal
from ..rules import Access, accesses
from . import nest_kernels
from .placement import Placement
from .updates import Sharing

KEPT = (
    array.ViewOp, array.CollapseOp, array.StrideOp, array.OverlapOp, array.AllocOp, array.LoopOp,
    array.YieldOp, array.MapOp, array.MatmulOp, memref.DimOp, memref.CastOp, memref.LoadOp, memref.StoreOp,
    memref.AllocaOp, scf.IfOp, scf.YieldOp, func.ReturnOp, ad.PushOp, ad.PopOp,
)  # fmt: skip
"""Ops that the host has arrays of the device for, or that become kernels."""


def refuse_placeless(
    function: func.FuncOp,
    kernels: Sequence[Operation],
    serial: Collection[Operation],
    placement: Placement,
    sharing: Sharing,
) -> None:
    """`serial`: the kernels of one thread."""
    inside = {inner for op in kernels for inner in op.walk()}
    for op in every_op(function):
        if op in inside or op is function:
            continue
        touches = any(is_memref(v) and placement.has(v) for v in op.operands)
        if touches and not isinstance(op, KEPT):
            raise refusal(
                op,
                "this needs an array where Python runs, and the array is on the device",
                "do it outside of the compiled function, or compile the function for the CPU",
            )
        if isinstance(op, array.AllocOp) and is_list(op, placement):
            raise refusal(
                op,
                "this list, dict or set grows, and a kernel reads it: a device has none",
                "use an array of the size that is needed, or compile the function for the CPU",
            )
        if touches and isinstance(op, memref.LoadOp | memref.StoreOp):
            refuse_element(op, kernels, sharing)
    for one in accesses_of([op for op in kernels if op not in serial]):
        if cell_of(one.memref) in placement.roots:
            raise refusal(
                one.op,
                "this is a variable here and an element of an array there: a thread cannot have both",
                "copy the element to a variable of its own, or compile the function for the CPU",
            )


def accesses_of(kernels: Sequence[Operation]) -> Iterator[Access]:
    """What threads do to memory in loops over elements."""
    for op in kernels:
        if isinstance(op, array.LoopOp):
            for inner in op.walk():
                yield from accesses(inner)


def is_list(op: array.AllocOp, placement: Placement) -> bool:
    """Whether an array that grows is the device's."""
    return array.GROWABLE in op.attributes and op.memref in placement.roots


def refuse_element(op: Operation, kernels: Sequence[Operation], sharing: Sharing) -> None:
    """The host may touch an element between kernels; it does not go through arrays that way."""
    loops = enclosing_loops(op)
    if not loops or is_raising(op) or any(loops[-1].is_ancestor(k) for k in kernels):
        return
    alone = [x for x in loops if not any(x.is_ancestor(k) for k in kernels)]
    independent = [x for x in alone if sharing.of(x) is not None]
    loop = independent[0] if independent else loops[-1]
    found = nest_kernels.obstacle(loop, sharing.of(loop), sharing) or (
        "this loop reads elements of an array one by one, which are on the device",
        "use a reduction of the whole array (sum, max), or compile the function for the CPU",
    )
    raise refusal(loop, *found)


def is_raising(op: Operation) -> bool:
    """Whether the op is in a branch that ends in an exception."""
    above: Operation | None = op
    while above is not None:
        if array.RAISES in above.attributes:
            return True
        above = above.parent_op()
    return False

"""Whether a derivative of several directions is nothing but traffic of numbers.

Directions share the primal's run, its scalar recurrences, its elementary functions and products. Where there
is none of that, each direction alone is vector code over points, as fast as its arrays come; several share
only the loads of the primal's numbers, and need a cache as many times as large::

    v[1:-1] = 0.5 * (u[:-2] + u[2:])          streams: sums and products of whole arrays
    total += x[i] * y[i]                      streams: a sum into one number
    x[i] = (b[i] - a[i] * x[i - 1]) / d[i]    does not: an element waits for the one before
    v[:] = np.exp(u)                          does not: one exponential serves all directions

Where code streams, the runtime takes the directions of large arrays one at a time
(`runtime/sequential_directions.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator, NoMemoryEffect

from ...dialects import ad, array
from ..analysis.additions import is_cell, place_of
from ..analysis.made_of import all_made_of
from .work_estimate import FUNCTION, cost_of

PLAIN = (
    *(memref.AllocaOp, memref.LoadOp, memref.StoreOp, memref.DimOp, memref.CastOp),
    *(array.AllocOp, array.ViewOp, array.CollapseOp, array.StrideOp, array.OverlapOp),
    *(array.LoopOp, array.MapOp, array.YieldOp, array.IndexOp, array.RaiseIfOp, array.CheckedIntOp),
    *(ad.TapeOp, ad.PushOp, ad.PopOp, ad.HandoverOp, ad.DetachOp, ad.ReaderOp, ad.RetryIfOp),
    *(scf.IfOp, scf.YieldOp, func.ReturnOp),
)
"""Ops that do nothing which is seen outside, but for stores, as all without effects."""


def streams(module: ModuleOp) -> bool:
    """Whether that holds of all functions of a module."""
    return all(op_streams(op) for function in module.ops for op in reached(function))


def repeats(module: ModuleOp) -> bool:
    """Whether numbers come by several times: a loop in which a map goes over the same elements each time.

    Directions that lie side by side are worth being taken apart for that.
    """
    loops = (op for op in module.walk() if isinstance(op, array.LoopOp))
    return any(
        isinstance(op, array.MapOp)
        and not any(is_placed_by(out, loop.induction) for out in op.outs)
        for loop in loops
        for op in loop.walk()
    )


def is_placed_by(value: SSAValue, counter: SSAValue) -> bool:
    """Whether a view, or a number, is computed of a counter."""

    def sources(v: SSAValue) -> Sequence[SSAValue] | None:
        if v is counter:
            return None
        return v.owner.operands if isinstance(v.owner, Operation) else ()

    return not all_made_of([value], sources)


def reached(op: Operation) -> Iterator[Operation]:
    """The ops inside, without those that run on the way to an exception."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield inner
                if array.RAISES not in inner.attributes:
                    yield from reached(inner)


def op_streams(op: Operation) -> bool:
    if isinstance(op, array.LoopOp):
        return op.condition_block is None and (has_loops(op) or not is_recurrence(op))
    if isinstance(op, PLAIN):
        return True
    return (
        op.has_trait(NoMemoryEffect) and not op.has_trait(IsTerminator) and cost_of(op) < FUNCTION
    )


def has_loops(loop: array.LoopOp) -> bool:
    """Whether it is maps, and other loops, that do its work."""
    return any(isinstance(op, array.MapOp | array.LoopOp) for op in loop.walk() if op is not loop)


def is_recurrence(loop: array.LoopOp) -> bool:
    """Whether an innermost loop may read what another iteration has stored to an array; sums it may have."""
    stored = {place_of(op) for op in loop.walk() if isinstance(op, memref.StoreOp)}
    read = {place_of(op) for op in loop.walk() if isinstance(op, memref.LoadOp)}
    written = {array_ for array_, _ in stored if not is_cell(array_)}
    return any(array_ in written for array_, _ in read - stored)

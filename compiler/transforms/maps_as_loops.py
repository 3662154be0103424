"""A map over vectors as a loop of scalar code. Part of `raise_products`, `gather_sums`, `tile_registers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from ...dialects import array
from ..analysis.additions import is_cell
from .interchange import body_like, loop_of


def is_scalar_code(op: Operation) -> bool:
    """Loads, stores, views and numbers, none of which may raise."""
    if op.regions or array.is_operation_that_may_raise(op):
        return False
    if isinstance(op, memref.LoadOp | memref.StoreOp | memref.DimOp | array.IndexOp):
        return True
    return op.has_trait(Pure) or isinstance(op, array.YieldOp) or op.name.startswith("arith.")


def may_be_loop(op: array.MapOp) -> bool:
    """True for a map over vectors, point by point, that adds or leaves values as they are."""
    if len(op.extents) != 1 or op.window or op.origin:
        return False
    kept = all(
        kind == "add" or (kind == "store" and leaves(op, k)) for k, kind in enumerate(op.out_kinds)
    )
    return kept and all(map(is_scalar_code, op.body.block.ops))


def updates_a_row(op: array.MapOp) -> bool:
    """True of a map over a vector that updates one number for each point, in scalar code."""
    plain = op.gathers is None and not op.window and not op.origin
    if not plain or array.READS_FIRST in op.attributes or len(op.extents) != 1:
        return False
    kinds = list(op.out_kinds)
    if kinds != ["add"] and (kinds != ["store"] or op.outs[0] not in op.ins):
        return False
    return all(map(is_scalar_code, op.body.block.ops))


def leaves(op: array.MapOp, output: int) -> bool:
    """True when the map stores what it has read from there."""
    value = op.yielded[output]
    ins = dict(zip(op.body.block.args, op.ins, strict=True))
    return value in op.body.block.args and ins.get(value) is op.outs[output]  # pyright: ignore


def as_loop(op: array.MapOp, fastmath: bool) -> array.LoopOp:
    """The loop that does what the map does, before it."""
    body, writer = body_like(op)
    counter, values = body.args[0], dict[SSAValue, SSAValue]()
    for argument, source in zip(op.body.block.args, op.ins, strict=True):
        values[argument] = writer.emit(memref.LoadOp.get(*element(source, counter)))
    writer.copy(list(op.body.block.ops)[:-1], values)
    for k, (value, target, kind) in enumerate(zip(op.yielded, op.outs, op.out_kinds, strict=True)):
        if kind == "store" and leaves(op, k):
            continue
        place, made = element(target, counter), values.get(value, value)
        if kind == "add":
            old = writer.emit(memref.LoadOp.get(*place))
            total = arith.AddfOp(old, made)
            # Within a map sums come in any order; one that a loop goes on with does where the adjoint's may.
            if is_cell(place[0]) or is_adjoint(value) or fastmath:
                total.attributes["ad.adjoint"] = UnitAttr()
            made = writer.emit(total)
        writer.block.add_op(memref.StoreOp.get(made, *place))
    loop = loop_of(op.extents[0], body, op)
    block = op.parent
    assert block is not None
    block.insert_op_before(loop, op)
    return loop


def is_adjoint(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and "ad.adjoint" in value.owner.attributes


def element(source: SSAValue, counter: SSAValue) -> tuple[SSAValue, Sequence[SSAValue]]:
    """Where the element of a vector is; of a cell that is one to all points, the cell."""
    view = source.owner
    if isinstance(view, array.ViewOp) and is_cell(view.source) and not view.offsets:
        return view.source, []
    return source, [counter]


def attempted(
    leaf: array.LoopOp | array.MapOp, fastmath: bool, attempt: Callable[[array.LoopOp], bool]
) -> bool:
    """Attempt something on a loop, or on a map as a loop; the map is back where it comes to nothing."""
    if isinstance(leaf, array.LoopOp):
        return attempt(leaf)
    loop = as_loop(leaf, fastmath)
    leaf.detach()
    if attempt(loop):
        leaf.erase()
        return True
    block = loop.parent
    assert block is not None
    block.insert_op_before(leaf, loop)
    loop.detach()
    loop.erase(safe_erase=False)
    return False

"""The primal that counts what its gradient would save: `explain(..., run=True)`.

It is the forward sweep, tapes and all. Each push adds the bytes of its segment to a counter, and the counters
are the results, one for each save of the plan::

    %s = ad.push %t(%n) : memref<?xf64>        count[] += 8 * n
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import ad
from ..rules.table import index_constant
from .extremum_sides import forget_sides
from .forward_sweep import ForwardSweep
from .function_attributes import inherit_locations
from .reverse import plan_gradient
from .segments import bytes_of


def counting_function(
    function: func.FuncOp,
    active_arguments: Sequence[int],
    saves: str,
    finals: Sequence[int] | None = None,
) -> func.FuncOp:
    """A function of the primal's arguments: how many bytes each save of the plan of its gradient takes."""
    plan = plan_gradient(function, active_arguments, saves, finals)
    own = function.body.block.args
    entry = Block(arg_types=[a.type for a in own])
    for old, fresh in zip(own, entry.args, strict=True):
        fresh.name_hint = old.name_hint
    sweep = ForwardSweep(plan, entry, dict(zip(own, entry.args, strict=True)))
    sweep.run()
    counters = [counter(entry, sweep.tapes[save]) for save in plan.saves]
    for op in list(entry.ops):
        if isinstance(op, ad.HandoverOp):
            op.detach()
            op.erase()
    loads = [memref.LoadOp.get(cell, []) for cell in counters]
    results = [load.res for load in loads]
    entry.add_ops([*loads, func.ReturnOp(*results)])
    types = [a.type for a in entry.args], [r.type for r in results]
    made = func.FuncOp(f"{function.sym_name.data}_counted", types, Region(entry))
    forget_sides(made)
    made.location = function.location
    made.attributes.update(function.attributes)
    inherit_locations(made)
    return made


def counter(entry: Block, tape: SSAValue) -> SSAValue:
    """A cell to which each push on the tape adds its bytes."""
    cell, zero = memref.AllocaOp.get(IndexType(), shape=[]), index_constant(0)
    first = entry.first_op
    assert first is not None
    entry.insert_ops_before([cell, zero, memref.StoreOp.get(zero.result, cell.memref, [])], first)
    for use in list(tape.uses):
        if isinstance(push := use.operation, ad.PushOp):
            add_bytes(push, cell.memref)
    return cell.memref


def add_bytes(push: ad.PushOp, cell: SSAValue) -> None:
    assert isinstance(push.memref.type, MemRefType)
    start = index_constant(bytes_of(push.memref.type.element_type))
    ops: list[Operation] = [start]
    size = start.result
    for extent in push.extents:
        ops.append(factor := arith.MuliOp(size, extent))
        size = factor.result
    ops.append(old := memref.LoadOp.get(cell, []))
    ops.append(total := arith.AddiOp(old.res, size))
    ops.append(memref.StoreOp.get(total.result, cell, []))
    for op in ops:
        op.location = push.location
    block = push.parent
    assert block is not None
    block.insert_ops_after(ops, push)

"""Let the backward function of a step work on cells of its own, as the loop does.

Within a budget the function of a step is handed the cotangents of the numbers that steps hand on, in cells of
its caller. Passes know what a loop does with a variable of its function, and not what it does with memory
of others: so they leave sums in their order that they reorder in the gradient without a budget. Why here:
before all that looks at cells.

Before::

    func.func private @f_step_backward(%i : index, %s_shadow : memref<f64>) attributes {live = array<i64>} {
      %s_bar = memref.load %s_shadow[] : memref<f64>
      %u_bar = arith.addf %s_bar, %s_bar {ad.adjoint} : f64
      memref.store %u_bar, %s_shadow[] : memref<f64>
      func.return
    }

After::

    func.func private @f_step_backward(%i : index, %s_shadow : memref<f64>) attributes {live = array<i64>} {
      %s_shadow_1 = memref.alloca() : memref<f64>
      %0 = memref.load %s_shadow[] : memref<f64>
      memref.store %0, %s_shadow_1[] : memref<f64>
      %s_bar = memref.load %s_shadow_1[] : memref<f64>
      %u_bar = arith.addf %s_bar, %s_bar {ad.adjoint} : f64
      memref.store %u_bar, %s_shadow_1[] : memref<f64>
      %1 = memref.load %s_shadow_1[] : memref<f64>
      memref.store %1, %s_shadow[] : memref<f64>
      func.return
    }

Steps within a step are handed what the step was: those cells live longer than it (`activation.steps`). Around
these ops, and calls, the number is put there and had again. Backward functions raise nothing, so the end is
the only way out of them; what a view hands to such an op stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import AnyFloat, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import activation
from ..diagnostics import locate
from .memory_effects import functions
from .privatize_cells import uses_of

CALLING = "activation."
"""The dialect of the ops that hand memory to other functions."""


@dataclass(frozen=True)
class LocalizeCells(ModulePass):
    """Let the backward functions of steps work on cells of their own."""

    name = "localize-cells"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in filter(is_backward_step, functions(op)):
            for cell in filter(is_handed_number, function.body.block.args):
                localize(function, cell)


def localize(function: func.FuncOp, cell: SSAValue) -> None:
    users = [use for use in cell.uses if not is_call(use.operation)]
    calls = list(dict.fromkeys(use.operation for use in cell.uses if is_call(use.operation)))
    first, last = function.body.block.first_op, function.body.block.last_op
    assert first is not None
    assert last is not None
    assert isinstance(cell.type, MemRefType)
    own = memref.AllocaOp.get(cell.type.element_type, shape=[])
    own.memref.name_hint = cell.name_hint
    for use in users:
        use.operation.operands[use.index] = own.memref
    put(own, first)
    move(cell, own.memref, first)
    for call in calls:
        move(own.memref, cell, call)
        assert call.next_op is not None
        move(cell, own.memref, call.next_op)
    move(own.memref, cell, last)


def move(source: SSAValue, target: SSAValue, before: Operation) -> None:
    """Write ops that copy a number from cell to cell."""
    load = memref.LoadOp.get(source, [])
    put(load, before)
    put(memref.StoreOp.get(load.res, target, []), before)


def put(op: Operation, before: Operation) -> None:
    block = before.parent
    assert block is not None
    locate(op, before.location)
    block.insert_op_before(op, before)


def is_backward_step(function: func.FuncOp) -> bool:
    """Whether the function runs a step backwards."""
    name = function.sym_name.data
    return activation.LIVE in function.attributes and name.endswith(activation.BACKWARD)


def is_handed_number(cell: SSAValue) -> bool:
    """Whether an argument is a cell of a float that the function uses, but for handing it on."""
    if not isinstance(cell.type, MemRefType) or cell.type.get_num_dims():
        return False
    if not isinstance(cell.type.element_type, AnyFloat):
        return False
    direct = [use.operation for use in cell.uses]
    through_views = [op for op in uses_of(cell) if op not in direct]
    return any(not is_call(op) for op in direct) and not any(map(is_call, through_views))


def is_call(op: Operation) -> bool:
    return op.name.startswith(CALLING)

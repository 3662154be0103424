"""Give each iteration scalar variables of its own, where none is handed on.

With `parallel=True` only, before the derivative: a value in a variable that all iterations share is killed by
the next iteration, which would save it then, for the one before; so iterations that are independent in the
primal would not be in its forward sweep.

Before::

    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      %s = memref.alloca() : memref<f64>
      %trips = array.loop %i to %n do {
        %a = memref.load %x[%i] : memref<?xf64>
        memref.store %a, %s[] : memref<f64>
        %b = memref.load %s[] : memref<f64>
        memref.store %b, %y[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      %trips = array.loop %i to %n do {
        %s = memref.alloca() : memref<f64>
        %a = memref.load %x[%i] : memref<?xf64>
        memref.store %a, %s[] : memref<f64>
        %b = memref.load %s[] : memref<f64>
        memref.store %b, %y[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

Kept outside: what is read after the loop, or before an iteration has stored to it. Without `unset` also what
an iteration may leave as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.carried_cells import condition_of, entered, roles
from .memory_effects import functions


@dataclass(frozen=True)
class PrivatizeCells(ModulePass):
    """Privatize scalars in memory: move them into the loops whose iterations share no value in them."""

    name = "privatize-cells"

    unset: bool = False
    """Iterations own what they store to in a branch, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            loops = [loop for loop in function.walk() if isinstance(loop, array.LoopOp)]
            private = {loop: own_cells(loop, unset=self.unset) for loop in loops}
            # A cell that iterations of an inner loop leave unset may be one that those of an outer one share.
            for loop in reversed(loops) if self.unset else loops:
                for cell in private[loop]:
                    if all(is_in_some(use, cell, private) for use in uses_of(cell)):
                        localize(cell, loop)


def own_cells(loop: array.LoopOp, *, unset: bool) -> list[SSAValue]:
    """The cells in which each iteration has its own value; with `unset` also those in which it may have none.

    It reads none then. Within a budget such cells would change the order of sums. But what the condition of a
    `while` computes is always an iteration's own, where the `while` stands in a branch.
    """
    counted = loop.condition_block is None
    return [
        cell
        for cell, role in roles(loop).items()
        if role.name == "private"
        or (
            counted
            and role.name == "carried"
            and (unset or any(map(is_in_condition, uses_of(cell))))
            and not entered(loop.body.block, cell)[0]
        )
    ]


def is_in_condition(op: Operation) -> bool:
    """Whether an op is in the condition of a `while`."""
    block: Block | None = op.parent
    while block is not None and (parent := block.parent_op()) is not None:
        if block is condition_of(parent):
            return True
        block = parent.parent
    return False


def uses_of(cell: SSAValue) -> Iterator[Operation]:
    """What uses the cell, views of it looked through."""
    for use in cell.uses:
        if isinstance(use.operation, array.ViewOp):
            yield from uses_of(use.operation.result)
        else:
            yield use.operation


def is_in_some(op: Operation, cell: SSAValue, private: dict[array.LoopOp, list[SSAValue]]) -> bool:
    """The op is in a loop whose iterations each have their own value in the cell."""
    return any(cell in cells and is_within(op, loop) for loop, cells in private.items())


def localize(cell: SSAValue, loop: array.LoopOp) -> None:
    """Let the loop have a cell of its own instead."""
    block = loop.body.block
    if any(is_within(op, loop) for op in uses_of(cell)):  # else an outer loop has its own already
        assert block.first_op is not None
        use_copy(cell, loop, block.first_op)
        remove_unused(cell)


def use_copy(value: SSAValue, loop: array.LoopOp, before: Operation) -> SSAValue:
    """A copy of the op that makes a cell, or a view of one, which the loop uses instead."""
    owner = value.owner
    assert isinstance(owner, memref.AllocaOp | array.ViewOp)
    own = owner.clone()
    own.location = owner.location
    own.results[0].name_hint = value.name_hint
    block = before.parent_block()
    assert block is not None
    block.insert_op_before(own, before)
    for use in list(value.uses):
        user = use.operation
        if is_within(user, loop):
            user.operands[use.index] = own.results[0]
        elif isinstance(user, array.ViewOp) and any(
            is_within(op, loop) for op in uses_of(user.result)
        ):
            view = use_copy(user.result, loop, before)
            assert isinstance(view.owner, array.ViewOp)
            view.owner.operands[0] = own.results[0]
    return own.results[0]


def remove_unused(value: SSAValue) -> None:
    """Remove the op, and views of what it makes, where nothing uses it any more."""
    for use in list(value.uses):
        if isinstance(use.operation, array.ViewOp):
            remove_unused(use.operation.result)
    owner = value.owner
    if value.first_use is None and isinstance(owner, Operation):
        owner.detach()
        owner.erase()


def is_within(op: Operation, loop: array.LoopOp) -> bool:
    block: Block | None = op.parent
    while block is not None and (parent := block.parent_op()) is not None:
        if parent is loop:
            return True
        block = parent.parent
    return False

"""The two sweeps over a checkpointed loop: its steps as one op each.

The loop's body is a call of a private function (`checkpoint_loops`)::

    %trips = array.loop %i to %n do {                forward  %kept = activation.steps @f_step %n ... (%u)
      %r = activation.call @f_step(%i, %u) frames 0
    } {checkpointed = 1000 : i64}                    reverse  activation.reverse_steps @f_step %kept ... (%u)
                                                                shadows (%u_shadow) of [0] ...

Arrays that the loop permutes are arguments in the order in which they enter it; `moves` says how they take
turns. The sizes of a restart state and of a step's values are measured last (`sizes.step_sizes`); until then
they are 0. Where a loop stands in a branch, the reverse sweep reads its numbers from cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects import activation, array
from ..analysis.alias import permutation_order
from ..analysis.views import strip_casts
from ..rules.builders import extents_of, transfer
from ..rules.calls import listed, private_functions, shadow_of
from ..rules.sweeps import ReverseSweep
from ..rules.table import index_constant


def call_of(loop: array.LoopOp) -> activation.CallOp:
    """The body of a checkpointed loop."""
    found = loop.body.block.first_op
    assert isinstance(found, activation.CallOp)
    return found


def initial(loop: array.LoopOp, value: SSAValue) -> SSAValue:
    """What a value of the body is in the first iteration."""
    carried = list(loop.body_carried)
    return loop.carried[carried.index(value)] if value in carried else value


def moves_of(loop: array.LoopOp) -> list[int]:
    """For each argument of the step the one whose array it is in the next iteration."""
    arguments = list(call_of(loop).arguments[1:])
    carried = list(loop.body_carried)
    turned = dict(zip(carried, map(strip_casts, loop.yielded), strict=True))
    return [
        arguments.index(turned.get(a, a)) if a in turned else k for k, a in enumerate(arguments)
    ]


@dataclass
class Running:
    """A checkpointed loop in the forward sweep, and what the reverse sweep has of it."""

    op: activation.StepsOp
    kept: SSAValue
    """The cell that says where what is kept begins."""
    arguments: list[SSAValue]
    """As the reverse sweep may have them: numbers of branches in cells."""


class RunSteps:
    """Writes the steps of a loop at the end of `target`, a block of the gradient function `entry`."""

    def __init__(self, loop: array.LoopOp, target: Block, entry: Block) -> None:
        self.loop, self.target, self.entry = loop, target, entry

    def run(self, values: dict[SSAValue, SSAValue], step: func.FuncOp) -> Running:
        """Notes in `values` what the loop's results are there."""
        loop, add, call = self.loop, self.add, call_of(self.loop)
        budget = cast("IntegerAttr[Any]", loop.attributes[activation.CHECKPOINTED]).value.data
        nothing = add(index_constant(0))
        if loop.count is None:
            count = add(index_constant(-1))
        else:
            count = add(arith.MaxSIOp(values[loop.count], nothing))
        arguments = [values[initial(loop, a)] for a in call.arguments[1:]]
        reads, writes = ([k.value.data - 1 for k in of or ()] for of in (call.reads, call.writes))
        changing = activation.in_turns(writes, moves_of(loop))
        for k in listed_on(loop, activation.OVERWRITTEN):
            if k not in changing:
                arguments[k] = self.copied(arguments[k])
        assert [a.type for a in arguments] == [a.type for a in step.body.block.args[1:]]
        live = [k - 1 for k in listed_on(step, activation.LIVE)]
        flag = cast("IntegerAttr[Any] | None", loop.attributes.get(activation.FLAG))
        steps = activation.StepsOp(
            call.target, [count, *[nothing] * 7], arguments, moves_of(loop), reads, writes, live,
            budget, None if flag is None else flag.value.data,
            followed=activation.FOLLOWED in loop.attributes,
        )  # fmt: skip
        if activation.FLOWS in call.attributes:
            steps.attributes[activation.FLOWS] = call.attributes[activation.FLOWS]
        add(steps)
        values[loop.trips] = steps.trips if flag is not None else count
        self.bind_results(values, values[loop.trips])
        kept = self.in_cell(steps.kept)
        return Running(steps, kept, [self.to_cross(a) for a in arguments])

    def bind_results(self, values: dict[SSAValue, SSAValue], trips: SSAValue) -> None:
        """The arrays that the loop carries, after so many turns."""
        loop, add = self.loop, self.add
        results = [values[c] for c in loop.carried]
        turn = [list(loop.body_carried).index(strip_casts(y)) for y in loop.yielded]
        if (order := permutation_order(turn)) > 1:
            rest = add(arith.RemSIOp(trips, add(index_constant(order))))
            body = Block(arg_types=[IndexType(), *(r.type for r in results)])
            body.add_op(array.YieldOp([body.args[1 + k] for k in turn]))
            replay = array.LoopOp(rest, results, body)
            add(replay)
            results = list(replay.results_carried)
        for old, now in zip(loop.results_carried, results, strict=True):
            now.name_hint = now.name_hint or old.name_hint
            values[old] = now

    def add(self, op: Operation) -> SSAValue:
        op.location = self.loop.location
        self.target.add_op(op)
        return op.results[0] if op.results else op.operands[0]

    def add_outside(self, op: Operation) -> SSAValue:
        """Before the branches in which the loop stands."""
        if self.target is self.entry:
            return self.add(op)
        above = self.target.parent_op()
        while above is not None and above.parent is not self.entry:
            above = above.parent_op()
        assert above is not None
        op.location = self.loop.location
        self.entry.insert_op_before(op, above)
        return op.results[0] if op.results else op.operands[0]

    def in_cell(self, value: SSAValue) -> SSAValue:
        cell = self.add_outside(memref.AllocaOp.get(value.type, shape=[]))
        cell.name_hint = f"{value.name_hint or 'value'}_cell"
        self.add(memref.StoreOp.get(value, cell, []))
        return cell

    def to_cross(self, value: SSAValue) -> SSAValue:
        """A number of a branch is had again from a cell."""
        inside = self.target is not self.entry and not isinstance(value.type, MemRefType)
        return self.in_cell(value) if inside else value

    def copied(self, source: SSAValue) -> SSAValue:
        """A copy of an array, or of a cell."""
        type_ = cast("MemRefType[Attribute]", source.type)
        if not type_.get_num_dims():
            return self.in_cell(self.add(memref.LoadOp.get(source, [])))
        extents = extents_of(source, self.add_outside)
        order = order_of_copy(type_)
        made = self.add_outside(array.AllocOp([extents[k] for k in order], type_.element_type))
        if order != sorted(order):
            zero, one = (self.add_outside(index_constant(n)) for n in (0, 1))
            dims, rank = [order.index(k) for k in sorted(order)], len(order)
            made = self.add_outside(array.ViewOp(made, [zero] * rank, dims, extents, [one] * rank))
        if made.type != type_:
            made = self.add_outside(memref.CastOp.get(made, type_))
        made.name_hint = f"{source.name_hint or 'array'}_copy"
        self.add(transfer(source, made, extents))
        return made


def can_be_copied(type_: MemRefType[Attribute]) -> bool:
    """Whether new memory can be laid out as the type says: in rows, along one axis, or it does not say."""
    known = [stride for stride in array.strides_of(type_) if stride is not None]
    return array.is_contiguous(type_) or known in ([], [1])


def is_of_any_strides(type_: Attribute) -> bool:
    """Whether it is an array of which the type does not say how it lies: a copy lies in rows."""
    if not isinstance(type_, MemRefType) or not type_.get_num_dims():
        return False
    return all(stride is None for stride in array.strides_of(type_))


def order_of_copy(type_: MemRefType[Attribute]) -> list[int]:
    """The axes of the memory of a copy that is laid out as the type says: the one with stride 1 last."""
    assert can_be_copied(type_)
    strides = array.strides_of(type_)
    order = list(range(len(strides)))
    return order if array.is_contiguous(type_) else sorted(order, key=lambda k: strides[k] == 1)


def listed_on(op: Operation, name: str) -> list[int]:
    """What an attribute of the loop, or of its step, lists."""
    found = op.attributes[name]
    assert isinstance(found, DenseArrayBase)
    return [int(k) for k in found.get_values()]


def reverse_steps(sweep: ReverseSweep, loop: array.LoopOp, running: Running) -> None:
    """Emit the same steps backwards, at the sweep's current place."""
    call = call_of(loop)
    callee = private_functions(sweep.function.parent_op())[call.target]
    types: list[Attribute] = [a.type for a in callee.body.block.args]
    of = listed(callee, "shadows")
    shadows = [shadow_of(sweep, call, initial(loop, call.arguments[k]), types[k]) for k in of]
    assert not listed(callee, "scalars")
    assert all(isinstance(s.type, MemRefType) for s in shadows)

    def load(cell: SSAValue) -> SSAValue:
        return sweep.emit(memref.LoadOp.get(cell, []))

    pairs = zip(running.arguments, running.op.arguments, strict=True)
    arguments = [a if a.type == given.type else load(a) for a, given in pairs]
    kept = load(running.kept)
    sweep.append(
        activation.ReverseStepsOp(running.op, kept, arguments, shadows, [k - 1 for k in of])
    )


def drop_untouched_shadows(module: ModuleOp) -> None:
    """Steps take no shadow that they do not use.

    Where one is kept, what is added to it before and after the loop would be two sums, not one.
    """
    loops: dict[str, list[activation.ReverseStepsOp]] = {}
    for op in module.walk():
        if isinstance(op, activation.ReverseStepsOp):
            loops.setdefault(f"{op.target}{activation.BACKWARD}", []).append(op)
    private = private_functions(module)
    for name, ops in loops.items():
        callee, count = private[name], len(ops[0].shadows)
        shadows = callee.body.block.args[len(callee.body.block.args) - count :]
        moved = {k for op in ops for k, of in enumerate(op.of) if op.permutation[of] != of}
        kept = [k for k, s in enumerate(shadows) if k in moved or s.first_use is not None]
        if len(kept) == count or callee.attributes.get("overlaps", ArrayAttr([])) != ArrayAttr([]):
            continue
        of = listed(callee, "shadows")
        callee.attributes["shadows"] = DenseArrayBase.from_list(i64, [of[k] for k in kept])
        for shadow in [s for k, s in enumerate(shadows) if k not in kept]:
            callee.body.block.erase_arg(shadow)
        callee.update_function_type()
        for op in ops:
            taken = [op.shadows[k] for k in kept]
            less = activation.ReverseStepsOp(
                op, op.kept, op.arguments, taken, [op.of[k] for k in kept]
            )
            less.location = op.location
            Rewriter.replace_op(op, less)

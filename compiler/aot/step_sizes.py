"""Say at each checkpointed loop what its steps keep, and what the budget leaves it.

Why here: after everything else, for it reads off what the code generator allocates, as `work_size` does.

Before::

    %kept = activation.steps @f_step %count within %budget beside %c0 state %c0 saved %c0 or %c0 ...

After::

    %n = memref.dim %u, %c0 : memref<?xf64>
    %bytes = arith.muli %c8, %n : index
    %state = arith.addi %c24, %bytes : index              an item's head, and the arrays of a restart state
    %saved = arith.addi %c72, %bytes : index              the same, the record of a step and its segments
    %kept = activation.steps @f_step %count within %budget beside %c0 state %state saved %saved or %all ...

What is `beside` it is what the rest of the function saves. Where steps save different amounts, it is the most
that one saves. Refused where only a run can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import AnyFloat, IndexType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import activation, ad, array
from ..analysis.alias import AliasAnalysis
from ..codegen.activations_to_llvm import slots_in_record
from ..codegen.entry_guard import Form
from ..codegen.steps_to_llvm import TOO_LITTLE
from ..diagnostics import refusal
from ..rules.builders import extents_of
from ..rules.calls import private_functions
from .amounts import ZERO, Amount, Amounts, held, unknown
from .entry_numbers import Arithmetic
from .entry_values import EntryValues, why
from .work_size import WORD, Effect, Measure, clean, equal_extents

HEAD = 24
"""Bytes of an item beside what it holds: where the item below it is, the step, the kind."""
UNBOUNDED = 1 << 62
"""More bytes than any budget has."""
LINK = 8
"""Bytes of a segment beside its contents."""


@dataclass(frozen=True)
class MeasureSteps(ModulePass):
    """Put the sizes of what is kept at checkpointed loops."""

    name = "measure-steps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, func.FuncOp)]:
            measure_steps(function, None, ())


def measure_steps(
    function: func.FuncOp, whole: func.FuncOp | None, assumed: Sequence[Form]
) -> None:
    """Put the sizes at the checkpointed loops of a function; `whole`: the one that runs no step again."""
    for steps in [op for op in function.body.block.ops if isinstance(op, activation.StepsOp)]:
        before = Block()
        arithmetic = Arithmetic(before, checked=False)
        arithmetic.place = steps
        for k, size in (
            (2, saved_beside(function, steps, assumed, arithmetic)),
            (3, size_of_state(function, steps, arithmetic)),
            (4, most_saved(function, steps, arithmetic)),
            (5, saved_in_whole(function, whole, arithmetic)),
        ):
            steps.operands[k] = size
        for op in list(before.ops):
            op.detach()
            cast(Block, steps.parent).insert_op_before(op, steps)


def measure_saved(
    kernel: func.FuncOp, assumed: Sequence[Form], memory: int, *, alone: bool
) -> None:
    """Add the function that computes what a gradient saves; one that is `alone` checks it where it begins.

    Where only a run can tell there is none: then all is done in steps, or refused.
    """
    measure = Measure(kernel, assumed, checked=not alone)
    total = saved_on_tapes(measure)
    block = cast(Block, kernel.parent)
    if alone:
        refuse_unknown(total, kernel)
        a, first = measure.a, kernel.body.block.first_op
        assert first is not None
        a.place = kernel
        saved = a.value(total.number)
        larger = a.emit(arith.CmpiOp(saved, a.value(memory), "sgt")).results[0]
        a.emit(array.RaiseIfOp(larger, "MemoryError", TOO_LITTLE, [a.value(memory), saved]))
        for op in list(a.block.ops):
            op.detach()
            kernel.body.block.insert_op_before(op, first)
    elif total.unknown is None:
        function = measure.function(total)
        clean(function)
        block.insert_op_before(function, kernel)
    else:
        kernel.detach()
        kernel.erase()


def saved_in_whole(function: func.FuncOp, whole: func.FuncOp | None, a: Arithmetic) -> SSAValue:
    """What another function of the same arguments saves; more than any budget where only a run can tell."""
    if whole is None or whole is function:
        return a.value(UNBOUNDED)
    pairs = zip(whole.body.block.args, function.body.block.args, strict=True)
    total = saved_on_tapes(
        Beside(whole, [p for p in pairs if not isinstance(p[0].type, AnyFloat)], a)
    )
    return a.value(UNBOUNDED if total.unknown is not None else total.number)


def saved_beside(
    function: func.FuncOp, steps: activation.StepsOp, assumed: Sequence[Form], a: Arithmetic
) -> SSAValue:
    """What is on the tapes of the function itself."""
    measure = Measure(function, assumed, checked=False)
    measure.block, measure.a.block = a.block, a.block
    total = saved_on_tapes(measure)
    refuse_unknown(total, steps)
    return a.value(total.number)


def saved_on_tapes(measure: Measure) -> Amount:
    """The bytes of all segments that a kernel's tapes hold at most at one time."""
    total = ZERO
    for op in measure.kernel.walk():
        if isinstance(op, ad.TapeOp):
            total = measure.amounts.add(total, measure.held_by(op))
        elif isinstance(op, activation.CallOp) and op.keeps_record:
            return unknown(why("how deep a recursive function goes", op))
    return total


def size_of_state(function: func.FuncOp, steps: activation.StepsOp, a: Arithmetic) -> SSAValue:
    """The bytes of the arrays that are copied, and of the item's head."""
    measure = Beside(function, [], a)
    total = ZERO
    for k in steps.states:
        array_ = steps.arguments[k]
        extents = extents_of(array_, lambda op: a.emit(op).results[0])
        total = measure.amounts.add(total, measure.size_here(steps, array_, extents))
    return a.value(a.add(total.number, HEAD))


def most_saved(function: func.FuncOp, steps: activation.StepsOp, a: Arithmetic) -> SSAValue:
    """The bytes of the largest record of a step with its segments, and of the item's head."""
    forward = private_functions(function.parent_op())[f"{steps.target}{activation.FORWARD}"]
    body = Block(arg_types=[IndexType()])
    outside, a.block = a.block, body
    arguments = [body.args[0], *steps.arguments]
    pairs = zip(forward.body.block.args, arguments, strict=True)
    measure = Beside(forward, [p for p in pairs if not isinstance(p[0].type, AnyFloat)], a)
    pushed = measure.pushed()
    refuse_unknown(pushed, steps)
    record = HEAD + WORD * max(slots_in_record(forward), 1)
    one = a.value(a.add(pushed.number, record))
    a.block = outside
    if body.args[0].first_use is None:
        for op in list(body.ops):
            op.detach()
            outside.add_op(op)
        return one
    most = memref.AllocaOp.get(IndexType(), shape=[])
    a.emit(most)
    a.emit(memref.StoreOp.get(a.value(0), most.memref, []))
    a.block = body
    reached = a.larger(a.emit(memref.LoadOp.get(most.memref, [])).results[0], one)
    a.emit(memref.StoreOp.get(a.value(reached), most.memref, []))
    a.emit(array.YieldOp())
    a.block = outside
    a.emit(array.LoopOp(steps.count, [], body))
    return a.emit(memref.LoadOp.get(most.memref, [])).results[0]


def refuse_unknown(size: Amount, at: Operation) -> None:
    if size.unknown is not None:
        raise refusal(
            at,
            f"only a run can tell how much the gradient saves, so no budget can be kept ({size.unknown})",
            "leave out `memory=`, or let extents and counts of inner loops be known before the loop",
        )


class Beside(Measure):
    """Measures a private function where it is called."""

    def __init__(
        self, kernel: func.FuncOp, pairs: Sequence[tuple[SSAValue, SSAValue]], a: Arithmetic
    ) -> None:
        self.kernel = kernel
        self.alias = AliasAnalysis(kernel)
        self.block, self.a = a.block, a
        self.amounts = Amounts(a)
        self.values = EntryValues(self.alias, list(pairs), a, equal_extents(kernel, ()))
        self.written: set[array.LoopOp] = set()
        self.effects: dict[Operation, Effect] = {}
        self.relevant: set[Operation] = set()

    def pushed(self) -> Amount:
        """The bytes of the segments that a forward function leaves."""
        effects: dict[Operation, Effect] = {}
        for op in self.kernel.walk():
            if isinstance(op, ad.PushOp):
                effects[op] = lambda op=op: held(self.linked(op))
        return self._whole(effects).peak

    def linked(self, op: ad.PushOp) -> Amount:
        size = self.size(op, op.memref, op.extents, WORD)
        return self.amounts.add(size, Amount(LINK, 1)) if size.unknown is None else size

    def size_here(self, like: Operation, memory: SSAValue, extents: Sequence[SSAValue]) -> Amount:
        """The bytes of an array whose extents are values of the function that is written."""
        for extent in extents:
            self.values.bind(extent, extent)
        return self.size(like, memory, extents, WORD)

"""Say at each checkpointed loop what its steps keep, and what the budget leaves all of them.

Why here: after everything else, for it reads off what the code generator allocates, as `work_size` does.

Before::

    %kept, %n = activation.steps @f_step %count state %c0 saved %c0 to %c0 around %c0 ... within 1000

After::

    activation.stack within %budget beside %others or %all
    %n = memref.dim %u, %c0 : memref<?xf64>
    %bytes = arith.muli %c8, %n : index
    %state = arith.addi %c24, %bytes : index              an item's head, and the arrays of a restart state
    %saved = arith.addi %c72, %bytes : index              the same, the record of a step and its segments
    %kept, %n = activation.steps @f_step %count state %state saved %saved to %saved around %c0 ...

What is `beside` the stack is what the rest of the function saves. Where steps save different amounts, it is
the most that one saves. Where a step has checkpointed loops of its own, what it keeps itself lies in one
piece. Beside that it saves at least what its loops cannot do without, and at most what they like. Refused
where that is known only at run time.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import activation, ad, array, foreign
from ...dialects.within import every_op, module_of
from ..analysis.alias import AliasAnalysis
from ..analysis.effects import is_private
from ..codegen.activations_to_llvm import slots_in_record
from ..codegen.entries.guard import Form
from ..codegen.kernel_state import size_of
from ..codegen.steps_to_llvm import TOO_LITTLE
from ..derivative import replays
from ..diagnostics import CompileError, refusal
from ..rules import runs_once
from ..rules.calls import private_functions
from .amounts import WORD, ZERO, Amount, Amounts, held, unknown
from .entry_numbers import Arithmetic, Number
from .entry_values import EntryValues, Undetermined, Why, why
from .equal_extents import equal_extents
from .work_size import Effect, Measure, clean

ITEM, HEAD = 32, 168
"""Bytes of an item beside what it holds; of what says how a loop stands."""
UNBOUNDED = 1 << 60
"""More bytes than any budget has."""
TOO_LARGE = "mutad.runtime.budgets:TooLarge"
FOLLOWED = (
    *(ad.TapeOp, ad.DetachOp, ad.HandoverOp, ad.SegmentOp, ad.RetryIfOp),
    *(activation.CallOp, activation.TooDeepOp, activation.StackOp, activation.StepsOp),
    *(func.FuncOp, foreign.RuleCallOp),
)
"""What the derivative adds to a program, and calls of functions that are in the module too."""
LINK = 8
"""Bytes of a segment beside its contents."""


@dataclass(frozen=True)
class MeasureSteps(ModulePass):
    """Put the sizes of what is kept at checkpointed loops."""

    name = "measure-steps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, func.FuncOp) and not is_private(f)]:
            measure_steps(function, None, ())


def measure_steps(
    function: func.FuncOp, whole: func.FuncOp | None, assumed: Sequence[Form], folder: str = ""
) -> None:
    """Put the sizes at the checkpointed loops of a function, and of the steps of these.

    `whole`: the function that runs no step again; `folder`: for the file of what memory has no room for.
    """
    every = [function, *private_functions(function.parent_op()).values()]
    found = [op for f in every for op in f.walk() if isinstance(op, activation.StepsOp)]
    for steps in found:
        before = Block()
        a = Arithmetic(before, checked=False)
        a.place = steps
        for k, size in enumerate(StepSizes(steps, Here(a), a).numbers()):
            steps.operands[1 + k] = a.value(size)
        move_before(before, steps)
    if any(steps.parent_op() is not None and function.is_ancestor(steps) for steps in found):
        put_stack(function, whole, assumed, found[0].memory.value.data, folder)


def put_stack(
    function: func.FuncOp,
    whole: func.FuncOp | None,
    assumed: Sequence[Form],
    memory: int,
    folder: str,
) -> None:
    """The memory of all loops, where the function begins."""
    measure = Measure(function, assumed, checked=False)
    first = function.body.block.first_op
    assert first is not None
    total, a = saved_on_tapes(measure), measure.a
    a.place = first
    refuse_unknown(total, function)
    others = a.value(total.number)
    everything = saved_in_whole(function, whole, a)
    a.emit(activation.StackOp(a.value(memory), others, everything, folder))
    move_before(a.block, first)


def move_before(block: Block, op: Operation) -> None:
    for one in list(block.ops):
        one.detach()
        cast(Block, op.parent).insert_op_before(one, op)


LEAVE_OUT = "leave out `memory=`, or let extents and counts of inner loops be known before the loop"


def measure_saved(
    kernel: func.FuncOp,
    assumed: Sequence[Form],
    memory: int,
    *,
    alone: bool,
    way_out: str = LEAVE_OUT,
) -> None:
    """Add the function that computes what a gradient saves; one that is `alone` checks it where it begins.

    Where that is dynamic there is none: then all is done in steps, or refused, with a `way_out`.
    """
    measure = Measure(kernel, assumed, checked=not alone)
    total = saved_on_tapes(measure)
    if alone:
        refuse_unknown(total, kernel, way_out)
        a, first = measure.a, kernel.body.block.first_op
        assert first is not None
        a.place = kernel
        saved = a.value(total.number)
        larger = a.emit(arith.CmpiOp(saved, a.value(memory), "sgt")).results[0]
        a.emit(array.RaiseIfOp(larger, "MemoryError", TOO_LITTLE, [a.value(memory), saved]))
        move_before(a.block, first)
    elif total.unknown is None:
        put_size(measure, total)
    else:
        kernel.detach()
        kernel.erase()


def measure_short(kernel: func.FuncOp, assumed: Sequence[Form]) -> None:
    """Add the function that computes what a gradient saves beside which there is one for long tapes.

    Where that is dynamic all tapes are its own.
    """
    measure = Measure(kernel, assumed, checked=True)
    total = saved_on_tapes(measure)
    if total.unknown is not None:
        del kernel.attributes[activation.LONGEST]
    else:
        put_size(measure, total)


def measure_long(kernel: func.FuncOp, replayed: func.FuncOp, assumed: Sequence[Form]) -> None:
    """Add the function that computes how much less the other gradient saves, which runs updates again.

    What that one saves counts `AGAIN` times. The kernel is left out, or where what one of the two saves is
    dynamic, the other one.
    """
    measure = Measure(kernel, assumed, checked=True)
    total, a = saved_on_tapes(measure), measure.a
    passed = zip(replayed.body.block.args, measure.block.args, strict=True)
    called = Called(replayed, dict(passed), Here(a), a)
    others = saved_on_tapes(called)
    if total.unknown is not None or others.unknown is not None:
        replayed.detach()
        replayed.erase()
        return
    less = a.sub(total.number, a.mul(replays.AGAIN, others.number))
    if replays.IN_WHOLE_STEPS in replayed.attributes:
        filled = saved_on_tapes(called, refilled=True)
        room = a.sub(replays.LONGEST_STRETCH, filled.number)
        less = a.binary(arith.MinSIOp, less, a.mul(room, 1 << 20))
    put_size(measure, replace(total, number=a.at_least_zero(less)))
    replayed.attributes[activation.LONGEST] = replayed.attributes[activation.CHECKPOINTED]
    kernel.detach()
    kernel.erase()


def put_size(measure: Measure, total: Amount) -> None:
    """Add the function that computes a number of bytes."""
    function = measure.function(total)
    clean(function)
    cast(Block, measure.kernel.parent).insert_op_before(function, measure.kernel)


def refuse_large(module: ModuleOp, assumed: Sequence[Form], memory: int) -> None:
    """Let what `vjp` runs first raise where it would keep more than a budget, before it does anything.

    It is an exception of the runtime's own where the gradient may be run as a whole later, from copies of the
    arguments. Where that is known only at run time it always is.
    """
    kernel = next(f for f in module.ops if isinstance(f, func.FuncOp) and not is_private(f))
    measure = Handed(kernel, assumed, checked=False)
    total, a = measure.pushed(), measure.a
    once = any(runs_once(op) and not isinstance(op, FOLLOWED) for op in every_op(module)[1:])
    if once:
        refuse_unknown(total, kernel)
    first = kernel.body.block.first_op
    assert first is not None
    a.place = kernel
    known = total.unknown is None
    saved = a.value(total.number if known else UNBOUNDED)
    larger = a.emit(arith.CmpiOp(saved, a.value(memory), "sgt")).results[0]
    kind = "MemoryError" if once else TOO_LARGE
    a.emit(array.RaiseIfOp(larger, kind, TOO_LITTLE, [a.value(memory), saved]))
    move_before(a.block, first)


class Handed(Measure):
    """Measures a function that leaves its tapes to another."""

    def pushed(self) -> Amount:
        effects: dict[Operation, Effect] = {}
        for op in self.kernel.walk():
            if isinstance(op, ad.PushOp):
                effects[op] = lambda op=op: held(self.size(op, op.memref, op.extents, WORD))
            elif isinstance(op, activation.CallOp) and op.keeps_record:
                return unknown(why("how deep a recursive function goes", op))
        return self._whole(effects).peak


def saved_in_whole(function: func.FuncOp, whole: func.FuncOp | None, a: Arithmetic) -> SSAValue:
    """What another function of the same arguments saves; more than any budget where that is dynamic."""
    if whole is None or whole is function:
        return a.value(UNBOUNDED)
    passed = zip(whole.body.block.args, function.body.block.args, strict=True)
    total = saved_on_tapes(Called(whole, dict(passed), Here(a), a))
    return a.value(UNBOUNDED if total.unknown is not None else total.number)


def saved_on_tapes(measure: Measure, *, refilled: bool = False) -> Amount:
    """The bytes of all segments that a kernel's tapes hold at most at one time; of those `refilled` alone."""
    total = ZERO
    for op in measure.kernel.walk():
        if refilled and isinstance(op, ad.TapeOp) and not is_refilled(op):
            continue
        if isinstance(op, ad.TapeOp):
            total = measure.amounts.add(total, measure.held_by(op))
        elif isinstance(op, activation.CallOp) and op.keeps_record:
            return unknown(why("how deep a recursive function goes", op))
    return total


def is_refilled(tape: ad.TapeOp) -> bool:
    return any(ad.REFILLED in use.operation.attributes for use in tape.tape.uses)


def refuse_unknown(size: Amount, at: Operation, way_out: str = LEAVE_OUT) -> None:
    if size.unknown is not None:
        raise refused(size.unknown, at, way_out)


def refused(reason: Why, at: Operation, way_out: str = LEAVE_OUT) -> CompileError:
    return refusal(
        at,
        f"how much the gradient saves is known only at run time, so no budget can be kept ({reason})",
        way_out,
    )


# --- Numbers of a function where it is called -------------------------------------------------


class Here:
    """The values of a function at a place of it: they are what they are."""

    def __init__(self, a: Arithmetic) -> None:
        self.a = a

    def of(self, value: SSAValue) -> SSAValue:
        return value

    def number(self, value: SSAValue) -> Number:
        known = array.constant_value(value)
        return value if known is None else known

    def extent(self, memory: SSAValue, axis: int) -> Number:
        known = cast("MemRefType[Attribute]", memory.type).get_shape()[axis]
        if known >= 0:
            return known
        return self.a.emit(memref.DimOp(memory, self.a.value(axis))).results[0]

    @contextmanager
    def within(self, block: Block) -> Generator[None]:
        outside, self.a.block = self.a.block, block
        yield
        self.a.block = outside


class CalledValues(EntryValues):
    """The values of a function that is called: its arguments are values of the caller."""

    def __init__(
        self,
        kernel: func.FuncOp,
        passed: dict[SSAValue, SSAValue],
        caller: Here | EntryValues,
        a: Arithmetic,
    ) -> None:
        super().__init__(AliasAnalysis(kernel), [], a, equal_extents(kernel, ()))
        self.passed, self.caller = passed, caller

    def _compute(self, value: SSAValue) -> SSAValue:
        if value in self.passed and not isinstance(value.type, MemRefType):
            return self.caller.of(self.passed[value])
        return super()._compute(value)

    def number(self, value: SSAValue) -> Number:
        """A size, or a bound of it: that of an array which only one of two branches fills."""
        try:
            return super().number(value)
        except Undetermined:
            if not isinstance(op := value.owner, arith.SelectOp):
                raise
            return self.a.larger(self.number(op.lhs), self.number(op.rhs))

    def extent(self, memory: SSAValue, axis: int) -> Number:
        if memory in self.passed:
            return self.caller.extent(self.passed[memory], axis)
        return super().extent(memory, axis)


class Called(Measure):
    """Measures a function where it is called."""

    def __init__(
        self,
        kernel: func.FuncOp,
        passed: dict[SSAValue, SSAValue],
        caller: Here | EntryValues,
        a: Arithmetic,
    ) -> None:
        self.kernel, self.a, self.block = kernel, a, a.block
        self.amounts = Amounts(a)
        self.values = CalledValues(kernel, passed, caller, a)
        self.alias = self.values.alias
        self.written: set[array.LoopOp] = set()
        self.effects: dict[Operation, Effect] = {}
        self.relevant: set[Operation] = set()

    def kept(self) -> Amount:
        """The bytes of the segments that a forward function leaves."""
        found = [op for op in self.kernel.walk() if isinstance(op, ad.PushOp)]
        return self._whole({op: lambda op=op: held(self.linked(op)) for op in found}).peak

    def kept_by(self, inner: dict[activation.StepsOp, Number]) -> Number:
        """The bytes of what its loops keep."""
        return self._whole(
            {op: lambda n=n: held(Amount(n, 1)) for op, n in inner.items()}
        ).peak.number

    def linked(self, op: ad.PushOp) -> Amount:
        size = self.size(op, op.memref, op.extents, WORD)
        return self.amounts.add(size, Amount(LINK, 1)) if size.unknown is None else size


class StepSizes:
    """What the steps of one loop keep, by numbers of the function that calls them."""

    def __init__(
        self, steps: activation.StepsOp, caller: Here | EntryValues, a: Arithmetic
    ) -> None:
        self.steps, self.caller, self.a = steps, caller, a
        self.forward = private_functions(module_of(steps))[f"{steps.target}{activation.FORWARD}"]
        try:
            self.state = a.add(self.arrays(steps.states), ITEM)
            self.copies = self.arrays(steps.changing)
            self.count = self.trips()
            own, least, full, *largest = self.most()
        except Undetermined as error:
            raise refused(error.why, steps) from error
        self.low, self.full = a.add(own, least), a.add(own, full)
        self.inner = [least, *largest]

    def numbers(self) -> list[Number]:
        """The sizes of a state and of a step, what its loops need, and the largest's count and sizes."""
        return [self.state, self.low, self.full, *self.inner]

    def arrays(self, listed: Sequence[int]) -> Number:
        """The bytes of arguments, each rounded up."""
        a, total = self.a, cast(Number, 0)
        for k in listed:
            memory = self.steps.arguments[k]
            type_ = cast("MemRefType[Attribute]", memory.type)
            size: Number = size_of(type_.element_type)
            for axis in range(type_.get_num_dims()):
                size = a.mul(size, self.caller.extent(memory, axis))
            exact = size_of(type_.element_type) % WORD == 0
            total = a.add(total, size if exact else a.rounded_up(size, WORD))
        return total

    def trips(self) -> Number:
        """How many steps there are; -1 where that is known only when the loop runs."""
        if self.steps.goes_on is not None:
            return -1
        try:
            return self.caller.number(self.steps.count)
        except Undetermined:
            return -1

    def at_least(self) -> Number:
        """What the loop cannot do without."""
        return self.a.add(self.a.add(self.copies, self.state), self.a.add(self.low, HEAD))

    def at_most(self) -> Number:
        """What it keeps that runs no step again; upwards each is."""
        if self.steps.upwards is not None:
            return self.a.add(self.a.add(self.copies, self.state), self.a.add(self.full, HEAD))
        if self.count == -1:
            return UNBOUNDED
        whole = self.a.add(self.a.mul(self.a.at_least_zero(self.count), self.full), HEAD)
        if self.steps.followed is None:
            return whole
        return self.a.add(whole, self.a.add(self.copies, self.state))

    def most(self) -> list[Number]:
        """Of the step that keeps most, by number; where steps differ, a loop over all of them finds out."""
        a, body = self.a, Block(arg_types=[IndexType()])
        with self.caller.within(body):
            found = self.of_step(body.args[0])
        if body.args[0].first_use is None:
            for op in list(body.ops):
                op.detach()
                a.block.add_op(op)
            return found
        if self.count == -1:
            refuse_unknown(unknown(why("how often a loop runs", self.steps)), self.steps)
        cells = [memref.AllocaOp.get(IndexType(), shape=[]) for _ in found]
        for cell in cells:
            a.emit(cell)
            a.emit(memref.StoreOp.get(a.value(0), cell.memref, []))
        with self.caller.within(body):
            for cell, one in zip(cells, found, strict=True):
                before = a.emit(memref.LoadOp.get(cell.memref, [])).results[0]
                reached = a.value(a.larger(before, a.value(one)))
                a.emit(memref.StoreOp.get(reached, cell.memref, []))
            a.emit(array.YieldOp())
        a.emit(array.LoopOp(a.value(self.count), [], body))
        return [a.emit(memref.LoadOp.get(cell.memref, [])).results[0] for cell in cells]

    def of_step(self, number: SSAValue) -> list[Number]:
        """What the step of this number keeps, its loops at least and at most; the largest's numbers.

        The more there is for a loop that goes downwards, the fewer steps it runs: such a loop is the largest.
        """
        a, arguments = self.a, self.forward.body.block.args
        passed: dict[SSAValue, SSAValue] = dict(
            zip(arguments[1:], self.steps.arguments, strict=True)
        )
        called = Called(self.forward, passed, self.caller, a)
        called.values.bind(arguments[0], number)
        # Before all branches: what is written in one is not known in the other, nor behind them.
        inner = {
            op: StepSizes(op, called.values, a)
            for op in self.forward.walk()
            if isinstance(op, activation.StepsOp)
        }
        segments = called.kept()
        refuse_unknown(segments, self.steps)
        own = a.add(segments.number, ITEM + WORD * max(slots_in_record(self.forward), 1))
        least = called.kept_by({op: one.at_least() for op, one in inner.items()})
        full = called.kept_by({op: one.at_most() for op, one in inner.items()})
        largest: list[Number] = [0, 0, 0]
        most: Number = 0
        downwards = [one for op, one in inner.items() if op.upwards is None]
        for one in downwards or inner.values():
            larger = a.compare("sgt", one.at_most(), most)
            most = a.choose(larger, one.at_most(), most)
            shown = (one.count, one.state, one.low)
            largest = [a.choose(larger, x, y) for x, y in zip(shown, largest, strict=True)]
        return [own, least, full, *largest]

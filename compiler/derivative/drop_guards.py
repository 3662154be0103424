"""Derivatives without the guards of strong zeros, and a check whether that was exact.

A guard (`ad.mul`, `ad.div`) makes 0 of 0 times what is not finite. Without it the result is NaN. Cotangents
and tangents are only added, multiplied, divided, and chosen by values of the primal; a NaN survives all this.
So a derivative without guards either equals that with guards, or is NaN. If a call hands out no NaN, all its
derivatives are exact::

    %p = ad.mul %y_bar, %x : f64             %p = arith.mulf %y_bar, %x : f64
    ...                                      ...
    func.return %p : f64                     %wrong = arith.cmpf uno, %p, %p : f64
                                             ad.retry_if %wrong
                                             func.return %p : f64

Otherwise the caller runs code with guards instead. So the call must be repeatable: it prints nothing, draws
no random numbers and calls no foreign code. Its stores to arguments are undone: each such array is copied on
entry, and put back before the second call. (The caller makes new shadows and cotangents that start from 0.)

Private functions follow those that call them: both sweeps over recursive functions, and over the steps of
a checkpointed loop. A gradient within a budget has guards where the one without a budget has them, so
both compute the same numbers.

Guards also stay where a NaN may reach an op that turns it into a number (`nan_flow`); where a tangent is
stored to an argument and the primal may raise later, because the caller then sees what is there; and where
the check and the copies cost more than the guards (`worthwhile`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    VectorType,
    f64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import activation, ad, array
from ...dialects.within import every_op, is_kind
from ..analysis.alias import enclosing_loops
from ..analysis.effects import is_private
from ..rules import is_repeatable, writes
from ..rules.builders import extents_of, transfer
from ..rules.calls import listed
from ..rules.table import float_constant, index_constant
from ..transforms.map_outputs import is_pure
from .hessian_products import moving_arguments, shadow_arguments
from .nan_flow import NanFlow, is_float
from .plain_guards import make_plain
from .share_reciprocals import share_reciprocals
from .touched_parts import Part, TouchedParts

BALANCED = (
    *(ad.TapeOp, ad.PushOp, ad.PopOp),
    *(activation.CallOp, activation.TooDeepOp, activation.StepsOp, activation.ReverseStepsOp),
)
"""Ops that take memory of the call, and that a whole function has given back in the end: it can run again."""

FEW = 4
"""So many guards of an element cost more than to look at its gradient (2 do not, 6 do); in scalar code 1."""
COPY = 2
"""To copy an argument and to look at it cost so many times what it costs to look at a gradient alone."""
DEEP = 100
"""Guards of recursive functions are done as often as in so many loops."""


@dataclass(frozen=True)
class DropGuards(ModulePass):
    """Replace guarded products and quotients of derivatives by plain ones, and check the results for NaN."""

    name = "drop-guards"
    unchecked: bool = False
    """All is assumed to be finite (`fastmath`): no guard stays, and nothing is looked at."""
    fused: bool = False
    """The CPU has a fused multiply-add (`share_reciprocals`)."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.unchecked:
            make_plain(guards_among(op.walk()), unchecked=True)
            return
        functions = [one for one in op.ops if isinstance(one, func.FuncOp)]
        for group in groups_of(functions):
            if guards_among(o for f in group for o in every_op(f)):
                drop_together(group, fused=self.fused)


def groups_of(functions: Sequence[func.FuncOp]) -> list[list[func.FuncOp]]:
    """Each function that is called from outside, with the private ones that it calls.

    Those that call the same ones are together, and the two gradients of which one keeps to a budget.
    """
    private = {f.sym_name.data: f for f in functions if is_private(f)}
    groups: list[dict[func.FuncOp, None]] = []
    for function in functions:
        if is_private(function):
            continue
        found, waiting = dict.fromkeys([function]), [function]
        while waiting:
            for name in activation.called_by(waiting.pop()):
                if name in private and private[name] not in found:
                    found[private[name]] = None
                    waiting.append(private[name])
        budgeted = activation.CHECKPOINTED in function.attributes and groups
        near = [g for g in groups if not found.keys().isdisjoint(g)] or (
            [groups[-1]] if budgeted else []
        )
        groups = [g for g in groups if g not in near]
        groups.append({f: None for g in (*near, found) for f in g})
    return [list(group) for group in groups]


def drop_together(group: Sequence[func.FuncOp], *, fused: bool) -> None:
    """Drop the guards of all functions, or of none; the first one tells whether it is worthwhile."""
    called = (f for f in group if not is_private(f))
    if not all(f.attributes.keys() & {"shadows", "moved"} for f in called):
        return
    if not all(can_run_again(f) for f in group):
        return
    guards = guards_among(o for f in group for o in every_op(f))
    if not all(is_float(g.result) for g in guards):
        return
    flow = NanFlow(group)
    if not flow.follow(guards):
        return
    derivatives = [Derivative(f, flow) for f in flow.outcomes]
    if derivatives[0].worthwhile() and not any(d.may_be_left_halfway() for d in derivatives):
        for derivative in derivatives:
            derivative.check()
        make_plain(share_reciprocals(guards, fused=fused))


def can_run_again(function: func.FuncOp) -> bool:
    """Whether the ops of a function leave nothing behind but what they store."""
    inner = every_op(function)[1:]
    return all(isinstance(op, BALANCED) or is_pure(op) or is_repeatable(type(op)) for op in inner)


class Derivative:
    """A gradient or tangent function, what it hands out, and what it changes."""

    def __init__(self, function: func.FuncOp, flow: NanFlow) -> None:
        self.function = function
        self.private = flow.private
        block = function.body.block
        terminator = block.last_op
        assert isinstance(terminator, func.ReturnOp)
        self.end = terminator
        seen = dict.fromkeys((*block.args, *terminator.arguments))
        self.outcomes = [v for v in seen if v in flow.outcomes[function]]
        fresh = {block.args[k] for k in made_by_caller(function)}
        self.alias = flow.alias[function]
        touched = TouchedParts(function, self.alias)
        self.changed = [a for a in touched.arguments() if a not in fresh]
        """What a call stores to, and has to undo."""
        arrays = [v for v in self.outcomes if isinstance(v.type, MemRefType)]
        self.parts = {v: touched.of(v) if v in fresh else (None,) * rank_of(v) for v in arrays}
        """Where a NaN may be in each of these arrays: of one that comes as zeros what is added to."""

    def may_be_left_halfway(self) -> bool:
        """Whether an exception may leave a NaN where the caller sees it."""
        seen = {v for v in self.outcomes if v in self.changed}
        if not seen:
            return False
        stored = False
        for op in self.function.body.block.ops:
            inner = every_op(op)
            stored = stored or any(
                not self.alias.interfering(root).isdisjoint(seen)
                for one in inner
                for access in writes(one)
                for root in self.alias.roots(access.memref)
            )
            if stored and any(may_raise(one) for one in inner):
                return True
        return False

    def worthwhile(self) -> bool:
        """Whether guards cost more than to look at what comes out, and to copy what is changed."""
        looked_at = [part.count(None) for part in self.parts.values()]
        copied = [rank_of(a) for a in self.changed]
        rank, weight = max((*looked_at, *copied), default=0), 0
        for guard, depth in self._guards():
            if depth > rank:
                return True
            if depth == rank > 0:
                weight += 1 if isinstance(guard.parent_op(), array.MapOp) else FEW
        return weight >= FEW * max(len(looked_at) + COPY * len(copied), 1)

    def _guards(self) -> Iterator[tuple[Operation, int]]:
        """The guards, each with in how many dimensions it is done again and again."""
        callees = activation.called_by(self.function)
        steps = {
            op.target for op in every_op(self.function) if isinstance(op, activation.CheckpointedOp)
        }
        for guard in guards_among(every_op(self.function)):
            yield guard, depth_of(guard)
        for name in dict.fromkeys(callees):
            further = 1 if any(name.startswith(step) for step in steps) else DEEP
            for guard in guards_among(every_op(self.private[name])):
                yield guard, depth_of(guard) + further

    def check(self) -> None:
        """Look for NaN among what is handed out, before it is: count them."""
        copies = self._copies()
        counter = Counter(self.end)
        for value in self.outcomes:
            if isinstance(value.type, MemRefType):
                counter.count_elements(value, primal_of(value, self.function), self.parts[value])
            else:
                counter.add(counter.count(value))
        zero = counter.emit(arith.ConstantOp(FloatAttr(0.0, f64)))
        total = counter.emit(memref.LoadOp.get(counter.cell, []))
        wrong = counter.emit(arith.CmpfOp(total, zero, "ogt"))
        if copies:
            undone = Block()
            for argument, (copy, extents) in copies.items():
                undone.add_op(transfer(copy, argument, extents))
            undone.add_op(scf.YieldOp())
            counter.emit(scf.IfOp(wrong, [], Region(undone), Region(Block([scf.YieldOp()]))))
        counter.emit(ad.RetryIfOp(wrong))

    def _copies(self) -> dict[SSAValue, tuple[SSAValue, list[SSAValue]]]:
        """Copies of what is changed, taken on entry; each with its extents."""
        first = self.function.body.block.first_op
        assert first is not None
        entry = Emitter(first)
        found: dict[SSAValue, tuple[SSAValue, list[SSAValue]]] = {}
        for argument in self.changed:
            assert isinstance(argument.type, MemRefType)
            extents = extents_of(argument, entry.emit)
            copy = entry.emit(array.AllocOp(extents, argument.type.element_type))
            copy.name_hint = f"{argument.name_hint or 'argument'}_before"
            entry.emit(transfer(argument, copy, extents))
            found[argument] = copy, extents
        return found


def primal_of(value: SSAValue, function: func.FuncOp) -> SSAValue:
    """Of a tangent function the argument that a tangent, or a shadow, is of, whose extents it has.

    Anything else itself: the second half of a split gradient has no primals among its arguments.
    """
    if "moving" not in function.attributes:
        return value
    args = function.body.block.args
    moving = zip(moving_arguments(function), listed(function, "moving"), strict=True)
    of: dict[SSAValue, SSAValue] = {args[place]: args[k] for place, k in moving}
    if "shadows" in function.attributes:
        shadows = zip(shadow_arguments(function), listed(function, "shadows"), strict=True)
        of |= {args[place]: args[k] for place, k in shadows}
    while value in of:
        value = of[value]
    return value


def made_by_caller(function: func.FuncOp) -> Iterator[int]:
    """The arguments that a caller makes anew where a call is made anew: shadows, and tangents beside them.

    Directions of Hessian products are copies where they are stored to; those of tangents are the caller's.
    """
    if "shadows" not in function.attributes:
        return
    shadows = shadow_arguments(function)
    yield from shadows
    if "moving" in function.attributes:
        yield from moving_arguments(function)


def may_raise(op: Operation) -> bool:
    calls = isinstance(op, activation.CallOp | activation.CheckpointedOp)
    return calls or array.is_operation_that_may_raise(op)


def rank_of(value: SSAValue) -> int:
    assert isinstance(value.type, MemRefType)
    return value.type.get_num_dims()


def guards_among(ops: Iterable[Operation]) -> list[ad.MulOp | ad.DivOp]:
    found = [op for op in ops if is_kind(type(op), ad.MulOp, ad.DivOp)]
    return cast("list[ad.MulOp | ad.DivOp]", found)


class Emitter:
    """Puts ops before an op."""

    def __init__(self, before: Operation) -> None:
        self.before = before

    def emit(self, op: Operation) -> SSAValue:
        """Insert an op; its first result, if it has any."""
        block = self.before.parent
        assert block is not None
        for one in op.walk():
            one.location = self.before.location
        block.insert_op_before(op, self.before)
        return op.results[0] if op.results else op.operands[0]


class Counter(Emitter):
    """Code that counts NaNs in a cell. (Truths: nothing that may be folded as x - x is.)"""

    def __init__(self, before: Operation) -> None:
        super().__init__(before)
        zero = self.emit(arith.ConstantOp(FloatAttr(0.0, f64)))
        self.cell = self.emit(memref.AllocaOp.get(f64, shape=[]))
        self.cell.name_hint = "wrong"
        self.emit(memref.StoreOp.get(zero, self.cell, []))

    def count(self, value: SSAValue) -> SSAValue:
        """1 for NaN, 0 for a number."""
        made = counted(value)
        for op in made:
            self.emit(op)
        return made[-1].results[0]

    def add(self, number: SSAValue) -> None:
        total = self.emit(memref.LoadOp.get(self.cell, []))
        self.emit(memref.StoreOp.get(self.emit(arith.AddfOp(total, number)), self.cell, []))

    def count_elements(self, array_: SSAValue, like: SSAValue, part: Part) -> None:
        """Count those of a part of an array, which has the extents of another one."""
        assert isinstance(array_.type, MemRefType)
        element = array_.type.element_type
        zero = self.emit(arith.ConstantOp(IntegerAttr(0, IndexType())))
        extents: list[SSAValue] = []
        for k in range(array_.type.get_num_dims()):
            axis = self.emit(arith.ConstantOp(IntegerAttr(k, IndexType())))
            extents.append(self.emit(memref.DimOp(like, axis)))
        if any(part):
            array_, extents = self.part_of(array_, extents, part)
        several = isinstance(element, VectorType)
        cell = self.cell_of_zeros(element) if several else self.cell
        rank = len(extents)
        view = self.emit(array.ViewOp(cell, [], [-1] * rank, extents, [zero] * rank))
        body = Block(arg_types=[element])
        made = nothing_of(body.args[0]) if several else counted(body.args[0])
        body.add_ops([*made, array.YieldOp([made[-1].results[0]])])
        self.emit(array.MapOp(extents, [array_], [view], ["add"], body))
        if several:
            self.add(self.count(self.emit(memref.LoadOp.get(cell, []))))

    def part_of(
        self, array_: SSAValue, extents: Sequence[SSAValue], part: Part
    ) -> tuple[SSAValue, list[SSAValue]]:
        """A view of as much of the part as there is; its extents."""
        zero, one = (self.emit(index_constant(k)) for k in (0, 1))
        offsets, kept = [zero] * len(part), [*extents]
        for k, span in enumerate(part):
            if span is not None:
                first, last = (self.emit(index_constant(at)) for at in span)
                behind = self.emit(arith.MinSIOp(extents[k], last))
                offsets[k] = first
                kept[k] = self.emit(arith.MaxSIOp(self.emit(arith.SubiOp(behind, first)), zero))
        rank = len(part)
        return self.emit(array.ViewOp(array_, offsets, range(rank), kept, [one] * rank)), kept

    def cell_of_zeros(self, type_: Attribute) -> SSAValue:
        zero = self.emit(float_constant(0.0, type_))
        cell = self.emit(memref.AllocaOp.get(type_, shape=[]))
        cell.name_hint = "wrong"
        self.emit(memref.StoreOp.get(zero, cell, []))
        return cell


def counted(value: SSAValue) -> list[Operation]:
    """Ops the last of which gives 1 for NaN, 0 for a number; of a vector 1 where one of its lanes is NaN."""
    summed = sum_of_lanes(value)
    number = summed[-1].results[0] if summed else value
    one, none = (arith.ConstantOp(FloatAttr(x, f64)) for x in (1.0, 0.0))
    is_nan = arith.CmpfOp(number, number, "uno")
    return [*summed, one, none, is_nan, arith.SelectOp(is_nan.result, one.result, none.result)]


def nothing_of(value: SSAValue) -> list[Operation]:
    """Ops the last of which gives 0 in each lane that is finite, NaN in others: they are cheap to add up.

    An infinity is taken for a NaN: then a call is made anew for nothing.
    """
    zero = float_constant(0.0, value.type)
    return [zero, arith.MulfOp(value, zero.result)]


def sum_of_lanes(value: SSAValue) -> list[Operation]:
    """Ops that add up the lanes of a vector: NaN where one is, and of opposite infinities."""
    if not isinstance(value.type, VectorType):
        return []
    made: list[Operation] = []
    numbers: list[SSAValue] = []
    for lane in range(value.type.get_shape()[0]):
        place = index_constant(lane)
        one = vector.ExtractOp(value, [place.result], value.type.element_type)
        made += [place, one]
        numbers.append(one.result)
    while len(numbers) > 1:
        pairs = [arith.AddfOp(*two) for two in zip(numbers[::2], numbers[1::2], strict=False)]
        made += pairs
        numbers = [p.result for p in pairs] + numbers[2 * len(pairs) :]
    return made


def depth_of(op: Operation) -> int:
    """In how many dimensions an op is done again and again: of loops, and of a map."""
    parent = op.parent_op()
    points = len(parent.extents) if isinstance(parent, array.MapOp) else 0
    return len(enclosing_loops(op)) + points

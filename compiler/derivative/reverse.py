"""Reverse mode: the gradient function of a function.

The gradient function runs the primal (see `forward_sweep`), then the program backwards. Loops run
their iterations in the opposite order, branches take the branch that was taken, every op propagates
the cotangents of its results to its operands, memory has shadows::

    x = load a[i]       a_shadow[i] += x_bar
    store x, a[i]       x_bar += a_shadow[i];  a_shadow[i] = 0
    z = x * y           x_bar += z_bar * y;    y_bar += z_bar * x

Arguments of the result: the primal's, then the shadow of each active memref argument, then the
cotangent of each active result. Results: the primal's, then the cotangent of each active scalar
argument. Of several cotangents at once, in as many *lanes*, each is a vector, and shadows hold
vectors: the primal runs once, and what is saved is saved once. The attribute `filled` lists the
arguments that may hold anything before. What is emitted for an op, its rule says: `compiler.rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnitAttr,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import activation, ad, array
from ..analysis.alias import AliasAnalysis, overlapping_arguments
from ..diagnostics import refusal
from ..rules import rule_of
from ..rules.builders import extents_of, fill, transfer
from ..rules.routines import is_routine
from ..rules.shadows import cotangent_type, shadow_type
from ..rules.sweeps import SHADOW
from ..rules.table import float_constant
from .activations import (
    Activities,
    activity_of,
    describe_activities,
    refuse_to_save,
)
from .copied_operands import copy_operands
from .cotangents import EntryExtents, require_extents
from .emission import Emission
from .extremum_sides import forget_sides, name_sides
from .forward_sweep import ForwardSweep
from .function_attributes import inherit_locations, mirror_overlaps
from .loop_blocks import is_loop_of_numbers
from .map_adjoint import MapAdjoint
from .plan import Plan
from .planner import make_plan
from .primal_values import PrimalValues
from .replay_apart_sweep import sweep_of
from .replay_sweep import ReplaySweep
from .replays import REPLAYABLE, REPLAYS
from .sanitizer_marks import ITERATION, is_whole, looking, mark, touched
from .segments import value_block
from .steps import reverse_steps
from .versions import mark_growable


def activities_of(
    function: func.FuncOp, active_arguments: Sequence[int], finals: Sequence[int] | None = None
) -> Activities | None:
    """What is active in the private functions that a function calls; None where it calls none."""
    if not activation.calls(function):
        return None
    return describe_activities(function, activity_of(function, active_arguments, finals))


def gradient_of(
    function: func.FuncOp,
    active_arguments: Sequence[int],
    saves: str,
    finals: Sequence[int] | None = None,
    *,
    fresh: bool = False,
    lanes: int = 1,
) -> func.FuncOp:
    """The gradient function.

    `active_arguments` are indices of IR arguments with a float (element) type. `saves` is
    "minimal", "all" or "forbid" (see `plan`). With `finals` it is made to be split (see `plan_gradient`).
    Shadows are added to; where they are `fresh`, they are set to zero before. `lanes`: how many cotangents
    there are of each value. Raises CompileError for what has no gradient.
    """
    plan = plan_gradient(function, active_arguments, saves, finals)
    gradient = ReverseSweep(function, plan, lanes, fresh=fresh).run()
    if plan.can_replay:
        function.attributes[REPLAYABLE] = IntegerAttr(plan.worth, i64)
    inherit_locations(gradient)
    forget_sides(gradient)
    return gradient


def plan_gradient(
    function: func.FuncOp,
    active_arguments: Sequence[int],
    saves: str,
    finals: Sequence[int] | None = None,
) -> Plan:
    """The analyses and the plan that the gradient is written against.

    With `finals` the plan is that of `vjp`, which returns to the caller between the two sweeps: the function
    ends with an `ad.handover`, and `finals` are the arguments whose final contents may have a cotangent.
    """
    name_sides(function)
    mark_growable(function)
    activity = activity_of(function, active_arguments, finals)
    describe_activities(function, activity)
    if saves == "forbid":
        refuse_to_save(function, activity)
    if finals is not None:
        hand_over(function, activity.alias)
    if copy_operands(function, activity):
        activity = activity_of(function, active_arguments, finals)
    return make_plan(function, activity, saves)


def hand_over(function: func.FuncOp, alias: AliasAnalysis) -> None:
    """Put an `ad.handover` of all that the caller can see at the end of the function, once.

    Of a view that is returned, the whole array: its memory is the caller's. Growable arrays end with the
    first half: how much of them a tape would have to keep is unknown.
    """
    top, last = function.body.block, function.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    if is_to_be_split(function):
        return
    seen: dict[SSAValue, None] = dict.fromkeys(top.args)
    for result in last.arguments:
        if isinstance(result.type, MemRefType):
            roots = alias.roots(result)
            made_here = [v for op in top.ops for v in op.results if v in roots]
            seen |= dict.fromkeys([alias.base(result), *made_here])
    for made in top.ops:
        if isinstance(made, array.AllocOp) and array.GROWABLE in made.attributes:
            seen[made.memref] = None
    op = ad.HandoverOp([v for v in seen if isinstance(v.type, MemRefType)])
    op.location = last.location
    top.insert_op_before(op, last)


def is_to_be_split(function: func.FuncOp) -> bool:
    last = function.body.block.last_op
    return last is not None and isinstance(last.prev_op, ad.HandoverOp)


def only_function(module: ModuleOp) -> func.FuncOp:
    functions = [op for op in module.ops if isinstance(op, func.FuncOp) and not is_routine(op)]
    assert len(functions) == 1
    return functions[0]


def is_memory(value: SSAValue) -> bool:
    """A memref or a tape: its cotangents are memory beside it."""
    return isinstance(value.type, MemRefType | ad.TapeType)


class ReverseSweep(Emission):
    """Emits the gradient function of one function from its plan."""

    def __init__(
        self, function: func.FuncOp, plan: Plan, lanes: int = 1, *, fresh: bool = False
    ) -> None:
        super().__init__(function, lanes)
        self.fresh = fresh
        self.reversed: Operation | None = None
        """The op of the primal whose adjoint is being emitted."""
        self.plan = plan
        self.needed = plan.needed
        self.activity = plan.needed.activity
        self.alias = self.activity.alias
        self.top = function.body.block
        self.bars: dict[SSAValue, SSAValue] = {}
        """Cotangents of scalars used only in the block that defines them."""
        self.cells: dict[SSAValue, SSAValue] = {}
        """Cells of the cotangents of scalars that inner blocks use."""

    def run(self) -> func.FuncOp:
        terminator = self.top.last_op
        assert isinstance(terminator, func.ReturnOp)
        args = list(self.top.args)
        self.active_memory = [a for a in args if is_memory(a) and self.activity.active(a)]
        self.active_scalars = [a for a in args if not is_memory(a) and self.activity.active(a)]
        self.active_results = [
            k for k, r in enumerate(self._returned(terminator)) if self.activity.active(r)
        ]
        types = [a.type for a in args]
        types += [self.wide(shadow_type(a.type)) for a in self.active_memory]
        results = [terminator.arguments[k].type for k in self.active_results]
        types += [self.wide(cotangent_type(type_)) for type_ in results]
        self.entry = self.block = Block(arg_types=types)
        primal_args = self.entry.args[: len(args)]
        for old, fresh in zip(args, primal_args, strict=True):
            fresh.name_hint = old.name_hint
        values: dict[SSAValue, SSAValue] = dict(zip(args, primal_args, strict=True))
        to_check = self._check_on_entry(values, terminator)
        self.forward = ForwardSweep(self.plan, self.entry, values)
        self.forward.run()
        self.primal = PrimalValues(self.plan, self.alias, self.forward, self.lanes)
        shadows = self.entry.args[len(args) : len(args) + len(self.active_memory)]
        for argument, shadow in zip(self.active_memory, shadows, strict=True):
            shadow.name_hint = f"{argument.name_hint}_shadow"
            if isinstance(argument.type, ad.TapeType):
                self.primal.known.tapes[argument] = shadow
            else:
                self.primal.known.memrefs[(argument, SHADOW)] = shadow
        self._meet_results(terminator, to_check)
        self.filled = [*self._fill_fresh(values)] if self.fresh else []
        self._reverse(terminator)
        return self._finish(terminator)

    def _returned(self, terminator: func.ReturnOp) -> Sequence[SSAValue]:
        """The results without the hidden ones, which the function's caller does not see."""
        hidden = self.function.attributes.get("hidden")
        count = cast("IntegerAttr[Any]", hidden).value.data if hidden is not None else 0
        return terminator.arguments[: len(terminator.arguments) - count]

    def _check_on_entry(
        self, values: dict[SSAValue, SSAValue], terminator: func.ReturnOp
    ) -> set[SSAValue]:
        """Check the shapes of cotangents; those of the results that are returned here cannot be yet.

        A gradient to be split has them from who has seen the results.
        """
        unchecked: set[SSAValue] = set()
        self.location = terminator.location
        on_entry = EntryExtents(self.alias, values, self.emit)
        for result, bar in self._cotangents(terminator):
            bar.name_hint = f"{result.name_hint or 'result'}_bar"
            if not isinstance(result.type, MemRefType) or is_to_be_split(self.function):
                continue
            extents = on_entry.of(result)
            if extents is None:
                unchecked.add(bar)
            else:
                require_extents(bar, extents, self.emit, self.append)
        return unchecked

    def _cotangents(self, terminator: func.ReturnOp) -> list[tuple[SSAValue, SSAValue]]:
        """The active results, each with its cotangent."""
        bars = self.entry.args[len(self.entry.args) - len(self.active_results) :]
        return [
            (terminator.arguments[k], bar) for k, bar in zip(self.active_results, bars, strict=True)
        ]

    def _fill_fresh(self, values: dict[SSAValue, SSAValue]) -> Iterator[SSAValue]:
        """Set the shadows of arguments to zero where the reverse sweep begins; those that were.

        Not those that share memory with others: who makes them knows where each of them lies.
        """
        shared = overlapping_arguments(self.function)
        for argument in self.active_memory:
            if isinstance(argument.type, MemRefType) and argument not in shared:
                shadow = self.primal.known.memrefs[(argument, SHADOW)]
                extents = extents_of(values[argument], self.emit)
                zeros = fill(shadow, extents, self.function)
                zeros.attributes[ad.UNSEEN] = UnitAttr()
                self.append(zeros)
                yield argument

    def _meet_results(self, terminator: func.ReturnOp, to_check: set[SSAValue]) -> None:
        """Check the shapes of cotangents that could not be on entry; tapes have theirs."""
        self.location = terminator.location
        for result, bar in self._cotangents(terminator):
            if bar in to_check:
                extents = extents_of(self.forward.values[result], self.emit)
                require_extents(bar, extents, self.emit, self.append)
            elif isinstance(result.type, ad.TapeType):
                self.primal.known.tapes[result] = bar

    def _reverse(self, terminator: func.ReturnOp) -> None:
        self.primal.open(self.top, self.entry)
        for result, bar in self._cotangents(terminator):
            if isinstance(result.type, MemRefType):
                shadow = self.primal.memref(result, SHADOW)
                self.append(transfer(bar, shadow, extents_of(shadow, self.emit), "add"))
            elif not is_memory(result):
                self.add_bar(result, bar)
        self.reverse_ops(self.top)

    def _finish(self, terminator: func.ReturnOp) -> func.FuncOp:
        results = [self.forward.values[r] for r in terminator.arguments]
        for argument in self.active_scalars:
            bar = self.take_bar(argument)
            results.append(bar or self.scalars.constant(0.0, self.wide(argument.type)))
        self.primal.close(self.top)
        ret = func.ReturnOp(*results)
        ret.location = terminator.location
        self.entry.add_op(ret)
        gradient = func.FuncOp(
            f"{self.function.sym_name.data}_gradient",
            ([a.type for a in self.entry.args], [r.type for r in results]),
            Region(self.entry),
        )
        gradient.location = self.function.location
        gradient.attributes.update(self.function.attributes)
        gradient.attributes.pop("hidden", None)  # they are the last no more
        gradient.attributes.pop(REPLAYS, None)
        first, args = len(self.top.args), list(self.top.args)
        shadows = {args.index(a): first + k for k, a in enumerate(self.active_memory)}
        mirror_overlaps(gradient, shadows)
        self._describe(gradient)
        return gradient

    def _describe(self, gradient: func.FuncOp) -> None:
        """Say which arguments have shadows, which results cotangents, which scalars gradients."""
        args = list(self.top.args)
        listed = {
            "shadows": [args.index(a) for a in self.active_memory],
            "cotangents": self.active_results,
            "scalars": [args.index(a) for a in self.active_scalars],
        }
        if self.fresh:
            first = len(args)
            filled = [k for k, a in enumerate(self.active_memory) if a in self.filled]
            listed["filled"] = [first + k for k in filled]
        for name, indices in listed.items():
            gradient.attributes[name] = DenseArrayBase.from_list(i64, indices)

    # Cotangents of scalars.

    def add_bar(self, value: SSAValue, contribution: SSAValue) -> None:
        """Add to the cotangent of `value`; nothing where it is not active."""
        if not self.activity.active(value):
            return
        contribution = self.scalars.cast(contribution, value.type)
        self.mark(contribution, value)
        if self._needs_cell(value):
            cell = self.bar_cell(value)
            old = self.emit(memref.LoadOp.get(cell, []))
            total = self.scalars.add(old, contribution)
            self.mark(total, value, is_sum=True)
            self.append(memref.StoreOp.get(total, cell, []))
            return
        old = self.bars.get(value)
        self.bars[value] = contribution if old is None else self.scalars.add(old, contribution)
        self.mark(self.bars[value], value, is_sum=True)
        if self.bars[value].name_hint is None:
            self.bars[value].name_hint = f"{value.name_hint or 'v'}_bar"

    def mark(self, made: SSAValue, of: SSAValue, *, is_sum: bool = False) -> None:
        """Say what a cotangent is of and by what, where that is asked for."""
        if self.watched:
            mark(made, "cotangent", of, None if is_sum else self.reversed)

    def append(self, op: Operation) -> None:
        reversed_ = self.reversed
        if self.watched and isinstance(op, memref.StoreOp) and isinstance(reversed_, memref.LoadOp):
            mark(op.value, "cotangent", reversed_.res, None)
        super().append(op)

    def take_bar(self, value: SSAValue) -> SSAValue | None:
        """The complete cotangent of `value`, where its definition is reversed; None for 0."""
        if value in self.cells:
            return self.emit(memref.LoadOp.get(self.cells[value], []))
        return self.bars.pop(value, None)

    def bar_cell(self, value: SSAValue) -> SSAValue:
        """The cell of a cotangent, zeroed where the reverse of the value's block begins."""
        cell = self.cells.get(value)
        if cell is None:
            type_ = self.wide(value.type)
            cell = self.primal.prologues.cell(type_, self.location)
            cell.name_hint = f"{value.name_hint or 'v'}_bar"
            block = value_block(value)
            zero = float_constant(0.0, type_)
            self.primal.prologues.append(block, zero)
            self.primal.prologues.append(block, memref.StoreOp.get(zero.result, cell, []))
            self.cells[value] = cell
        return cell

    def _needs_cell(self, value: SSAValue) -> bool:
        if value in self.cells:
            return True
        block = value_block(value)
        return any(use.operation.parent_block() is not block for use in value.uses)

    # The sweep.

    def reverse_ops(self, block: Block) -> None:
        """The adjoints of the ops of `block`, last first."""
        for op in reversed(list(block.ops)):
            if self.needed.has_adjoint(op) or op in self.primal.rolling.reversed:
                self.location = op.location
                self.reverse_op(op)

    def reverse_op(self, op: Operation) -> None:
        rolling = self.primal.rolling
        self.reversed = op
        if op in rolling.reversed and isinstance(op, memref.StoreOp):
            rolling.reverse_store(self, op)
            return
        rule_of(type(op)).adjoint(op, self)
        if self.watched and is_whole(op):
            for read in filter(self.activity.active, touched(op, "read")):
                shadow = self.primal.memref(read, SHADOW)
                extents = extents_of(shadow, self.emit)
                self.append(looking(shadow, extents, "cotangent", read, op))

    def map_adjoint(self, op: array.MapOp) -> MapAdjoint:
        """An adjoint map over the points of `op`, to be built and emitted here."""
        return MapAdjoint(self, op)

    def reverse_loop(self, op: array.LoopOp) -> None:
        """The iterations that ran, last first, over permuted memrefs permuted back."""
        if op in self.forward.steps:
            reverse_steps(self, op, self.forward.steps[op])
            return
        if (condition := op.condition_block) is not None and any(
            self.needed.has_adjoint(o) for o in condition.ops
        ):
            raise refusal(
                op,
                "the condition of this `while` changes memory that the gradient needs",
                "compute what it needs in the loop's body",
            )
        again = sweep_of(self, self.plan.replays.get(op))
        trips = self.primal.get(op.trips)
        with nullcontext((trips, None)) if again is None else again.blocks(trips) as (count, first):
            self.reverse_iterations(op, count, first, again)

    def reverse_iterations(
        self, op: array.LoopOp, trips: SSAValue, first: SSAValue | None, again: ReplaySweep | None
    ) -> None:
        """So many iterations of a loop, from the `first` one on, by default that of the loop."""
        permutation = [cast(int, p) for p in self.alias.permutation(op)]
        inverse = [permutation.index(p) for p in range(len(permutation))]
        carried = list(op.body_carried)
        kept = [(p, self.primal.memrefs.kind_with_extents(c)) for p, c in enumerate(carried)]
        shadowed = [(p, SHADOW) for p, c in enumerate(carried) if self.activity.active_memref(c)]
        slots = [*dict.fromkeys((*kept, *shadowed))]
        inits = [self.primal.memref(op.results_carried[p], kind) for p, kind in slots]
        body = Block(arg_types=[IndexType(), *(i.type for i in inits)])
        with self.at(body):
            one = self.emit(arith.ConstantOp(IntegerAttr(1, IndexType())))
            last = self.emit(arith.SubiOp(trips, one))
            induction = self.emit(arith.SubiOp(last, body.args[0]))
            if first is not None:
                induction = self.emit(arith.AddiOp(first, induction))
            induction.name_hint = op.induction.name_hint
            if self.watched and isinstance(induction.owner, Operation):
                induction.owner.attributes[ITERATION] = UnitAttr()
            self.primal.known.values[op.induction] = induction
            self.primal.induction[op] = induction
            for p, kind in slots:
                # Slots of one cycle share their roots, so all of them are here, or none.
                within = body.args[1 + slots.index((inverse[p], kind))]
                name = carried[p].name_hint or "array"
                within.name_hint = f"{name}_shadow" if kind == SHADOW else name
                self.primal.known.memrefs[(carried[p], kind)] = within
            if again is not None:
                again.before(induction, body.args[0])
            self.primal.open(op.body.block, body)
            self.reverse_ops(op.body.block)
            self.primal.close(op.body.block)
            self.location = op.location
            now = self.primal.known.memrefs
            self.append(array.YieldOp([now[(carried[p], kind)] for p, kind in slots]))
        loop = array.LoopOp(trips, inits, body)
        if array.CLAIMED in op.attributes:
            loop.attributes[array.EXCLUSIVE] = UnitAttr()
        elif is_loop_of_numbers(op):
            loop.attributes[array.OF_NUMBERS] = UnitAttr()
        self.append(loop)

    def reverse_branches(self, op: scf.IfOp) -> None:
        condition = self.primal.get(op.cond)
        bars = {i: b for i, r in enumerate(op.results) if (b := self.take_bar(r)) is not None}
        regions: list[Region] = []
        for region in op.regions:
            inner = Block()
            if region.blocks:
                source = region.block
                terminator = source.last_op
                assert isinstance(terminator, scf.YieldOp)
                with self.at(inner):
                    self.primal.open(source, inner)
                    for i, bar in bars.items():
                        self.add_bar(terminator.operands[i], bar)
                    self.reverse_ops(source)
                    self.primal.close(source)
            inner.add_op(scf.YieldOp())
            regions.append(Region(inner))
        self.location = op.location
        self.append(scf.IfOp(condition, [], regions[0], regions[1]))

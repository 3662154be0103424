"""Make the body of a loop whose gradient saves most a private function, so that its steps can be run again.

Why here: before the derivative, which writes a forward and a backward function of it (`activation_pairs`).
The reverse sweep then runs steps again from restart states where a budget does not hold the saved values of
all (`activation.steps`).

Before::

    func.func @f(%u : memref<?xf64>, %k : f64, %n : index) {
      %trips = array.loop %i to %n do {
        array.map(...) ins(%u) outs(%u) ...
        array.yield
      }
      func.return
    }

After::

    func.func @f(%u : memref<?xf64>, %k : f64, %n : index) {
      %k_cell = memref.alloca() : memref<f64>
      memref.store %k, %k_cell[] : memref<f64>
      %trips = array.loop %i to %n do {
        %r = activation.call @f_step(%i, %u, %k_cell : index, memref<?xf64>, memref<f64>) frames 0
          reads [1, 2] writes [1]
        array.yield
      } {checkpointed = 1000000 : i64, overwritten = array<i64>}
      func.return
    }
    func.func private @f_step(%i : index, %u : memref<?xf64>, %k_cell : memref<f64>) { ... }

A float that is active comes in a cell, and is read at each use, so that its cotangent is added up as in the
loop itself. `overwritten` lists the arrays that the function writes after the loop: what the steps only read
of them is read again of a copy.

Refused are loops that may end early, that stand in others or in branches, that call what cannot be run twice
(functions in C, `print`, recursive functions), that change arrays which grow, or arrays that may overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import activation, ad, array, foreign
from ..analysis import footprint
from ..analysis.activity import Activity
from ..analysis.alias import AliasAnalysis
from ..analysis.effects import list_effects, mark_overlaps
from ..analysis.footprint import Footprints, covers
from ..rules import reads, writes
from ..rules.routines import is_routine
from .activations import activity_of
from .passes import chosen, functions
from .plan import Save
from .primal_values import computed_again
from .reverse import plan_gradient
from .segments import enclosing_loops
from .split import is_integer_code
from .steps import moves_of
from .versions import is_growable

ONCE = (
    activation.CallOp, activation.TooDeepOp, foreign.CallOp, foreign.RuleCallOp, array.PrintOp,
    ad.DerivativeOp, ad.SegmentOp,
)  # fmt: skip
"""What is not run a second time."""


@dataclass(frozen=True)
class CheckpointLoops(ModulePass):
    """Make a function of the body of the loop that saves most, and mark the loop with the budget in bytes.

    `active` are argument indices, by default all floats.
    """

    name = "checkpoint-loops"
    memory: int
    active: tuple[int, ...] | None = None
    saves: str = "minimal"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(f, func.FuncOp) and is_routine(f) for f in op.ops):
            return
        for function in functions(op):
            active = chosen(function, self.active)
            loop = loop_to_checkpoint(function, active, self.saves)
            if loop is not None:
                Outline(function, loop, active).run(self.memory)


# --- Which loop -------------------------------------------------------------------------------


def loop_to_checkpoint(
    function: func.FuncOp, active: Sequence[int], saves: str
) -> array.LoopOp | None:
    """The loop of the top level of which most is saved, if it can be checkpointed."""
    planned = function.clone()
    ModuleOp([planned])
    found = plan_gradient(planned, active, "minimal" if saves == "forbid" else saves).saves
    loops = zip(loops_of(function), loops_of(planned), strict=True)
    ranked = [
        (max(weights), loop)
        for loop, copy in loops
        if (
            weights := [weight(s) for s in found if s.push_before is copy or copy.is_ancestor(s.at)]
        )
    ]
    alias = AliasAnalysis(function)
    ranked = [(w, loop) for w, loop in ranked if can_be_checkpointed(loop, alias)]
    return max(ranked, key=lambda pair: pair[0])[1] if ranked else None


def loops_of(function: func.FuncOp) -> list[array.LoopOp]:
    return [op for op in function.body.block.ops if isinstance(op, array.LoopOp)]


def weight(save: Save) -> int:
    """How many numbers the size of a save is the product of."""
    pushed = list(enclosing_loops(cast(Block, save.push_before.parent)))
    return len(pushed) + len(save.segment.dimensions)


def can_be_checkpointed(loop: array.LoopOp, alias: AliasAnalysis) -> bool:
    if loop.count is None or loop.condition_block is not None or None in alias.permutation(loop):
        return False
    if any(isinstance(op, ONCE) or is_growing(op) for op in loop.walk()):
        return False
    arrays = arrays_of(loop, alias)
    if any(is_growable(a) for a in arrays):
        return False
    changed = {root for op in loop.walk() for w in writes(op) for root in alias.roots(w.memref)}
    return not any(
        alias.may_alias(a, b)
        and not alias.apart_in_turn(a, b)
        and any(alias.interferes(x, y) for x in alias.roots(a) | alias.roots(b) for y in changed)
        for a, b in combinations(arrays, 2)
    )


def is_growing(op: Operation) -> bool:
    return isinstance(op, array.AllocOp) and array.GROWABLE in op.attributes


def arrays_of(loop: array.LoopOp, alias: AliasAnalysis) -> list[SSAValue]:
    """The arrays from outside that the body uses, each whole: first those that the loop carries."""
    found = dict.fromkeys(loop.body_carried)
    for value in outer_values(loop):
        if isinstance(value.type, MemRefType):
            found[alias.base(value)] = None
    return list(found)


def outer_values(loop: array.LoopOp) -> Iterator[SSAValue]:
    """What the ops of the body use and the loop does not define."""
    body = loop.body.block
    for op in body.walk():
        for operand in op.operands:
            if not is_inside(operand, body):
                yield operand


def is_inside(value: SSAValue, body: Block) -> bool:
    block: Block | None = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None and block is not body:
        above = block.parent_op()
        block = None if above is None else above.parent
    return block is body


# --- The function -----------------------------------------------------------------------------


class Outline:
    """Makes the body of one loop a function."""

    def __init__(self, function: func.FuncOp, loop: array.LoopOp, active: Sequence[int]) -> None:
        self.function, self.loop = function, loop
        self.alias = AliasAnalysis(function)
        self.activity: Activity = activity_of(function, active, None)
        self.entry = Block(arg_types=[IndexType()])
        self.prologue: list[Operation] = []
        self.operands: list[SSAValue] = [loop.induction]
        self.here: dict[SSAValue, SSAValue] = {loop.induction: self.entry.args[0]}
        """What values of the function are called in the body's."""
        self.cells: dict[SSAValue, SSAValue] = {}
        """The cells, as the body has them, of active floats."""

    def run(self, memory: int) -> None:
        loop, body = self.loop, self.loop.body.block
        self.entry.args[0].name_hint = loop.induction.name_hint
        carried, live = list(loop.body_carried), live_in(loop, self.alias)
        for value in arrays_of(loop, self.alias):
            self.take(value)
        permutation = [cast(int, p) for p in self.alias.permutation(loop)]
        for op in list(body.ops):
            if not isinstance(op, array.YieldOp):
                op.detach()
                self.entry.add_op(op)
        self.bring_operands()
        end = func.ReturnOp()
        end.location = loop.location
        self.entry.add_op(end)
        first = self.entry.first_op
        assert first is not None
        for op in self.prologue:
            self.entry.insert_op_before(op, first)
        step = self.step()
        call = activation.CallOp(step.sym_name.data, self.operands, [], 0)
        old = body.last_op
        assert old is not None
        again = array.YieldOp([carried[p] for p in permutation])
        for op in (call, again):
            op.location = loop.location
        body.insert_op_before(call, old)
        body.insert_op_before(again, old)
        old.detach()
        old.erase()
        loop.attributes[activation.CHECKPOINTED] = IntegerAttr(memory, i64)
        overwritten = [k for k, a in enumerate(self.operands[1:]) if self.is_overwritten_later(a)]
        loop.attributes[activation.OVERWRITTEN] = DenseArrayBase.from_list(i64, overwritten)
        pairs = [
            (i, j)
            for (i, a), (j, b) in combinations(enumerate(self.operands), 2)
            if isinstance(a.type, MemRefType)
            and isinstance(b.type, MemRefType)
            and self.alias.may_alias(a, b)
            and not self.alias.apart_in_turn(a, b)
        ]
        mark_overlaps(step, pairs)
        list_effects([self.function, step], {step.sym_name.data: step})
        writes = [k.value.data - 1 for k in call.writes or ()]
        changing = [k + 1 for k in activation.in_turns(writes, moves_of(loop))]
        step.attributes[activation.CHANGING] = DenseArrayBase.from_list(i64, changing)
        found = [k for k, a in enumerate(self.operands) if a in live]
        step.attributes[activation.LIVE] = DenseArrayBase.from_list(i64, found)

    def step(self) -> func.FuncOp:
        """The private function, beside the other."""
        types = [a.type for a in self.entry.args]
        step = func.FuncOp(
            f"{self.function.sym_name.data}_step", (types, []), Region(self.entry), "private"
        )
        step.location = self.loop.location
        module = self.function.parent
        assert module is not None
        module.insert_op_after(step, self.function)
        return step

    def is_overwritten_later(self, value: SSAValue) -> bool:
        """Whether an argument is an array that the function writes after the loop."""
        if not isinstance(value.type, MemRefType) or value in self.loop.body_carried:
            return False
        later: list[Operation] = []
        op = self.loop.next_op
        while op is not None:
            later.append(op)
            op = op.next_op
        return not self.alias.roots(value).isdisjoint(roots_written(later, self.alias))

    def in_cell(self, value: SSAValue) -> SSAValue:
        """A number in a cell of its own, before the loop."""
        cell = memref.AllocaOp.get(value.type, shape=[])
        cell.memref.name_hint = f"{value.name_hint or 'value'}_cell"
        for op in (cell, memref.StoreOp.get(value, cell.memref, [])):
            op.location = self.loop.location
            cast(Block, self.loop.parent).insert_op_before(op, self.loop)
        return cell.memref

    # What the body takes from outside.

    def bring_operands(self) -> None:
        for op in list(self.entry.walk()):
            for index, operand in enumerate(op.operands):
                if operand in self.here or not is_inside(operand, self.entry):
                    op.operands[index] = self.bring(operand, op)

    def bring(self, value: SSAValue, user: Operation) -> SSAValue:
        """A value of the function, in the body's."""
        if value in self.here:
            return self.here[value]
        if (
            isinstance(value.type, AnyFloat)
            and not is_constant(value)
            and self.activity.active(value)
        ):
            return self.read(value, user)
        found = self.here[value] = self.brought(value)
        found.name_hint = found.name_hint or value.name_hint
        return found

    def brought(self, value: SSAValue) -> SSAValue:
        op = value.owner
        if isinstance(op, Operation) and is_plain(op) and self.is_at_hand(op):
            operands = {o: self.bring(o, op) for o in op.operands}
            again = (
                computed_again(op, operands.__getitem__)
                if is_integer_code(op)
                else op.clone(operands)
            )
            again.location = op.location
            self.prologue.append(again)
            return again.results[list(op.results).index(value)]  # pyright: ignore[reportArgumentType]
        return self.take(value)

    def is_at_hand(self, op: Operation) -> bool:
        """Of an array that the body does not use its extents are numbers from outside."""
        return not isinstance(op, memref.DimOp) or self.alias.base(op.source) in self.here

    def take(self, value: SSAValue) -> SSAValue:
        """One more argument."""
        fresh = self.here[value] = self.entry.insert_arg(value.type, len(self.entry.args))
        fresh.name_hint = value.name_hint
        self.operands.append(value)
        return fresh

    def read(self, value: SSAValue, user: Operation) -> SSAValue:
        """An active float, read of its cell where it is used."""
        cell = self.cells.get(value)
        if cell is None:
            cell = self.cells[value] = self.take(self.in_cell(value))
        at = user
        while isinstance(above := at.parent_op(), array.MapOp):
            at = above
        load = memref.LoadOp.get(cell, [])
        load.res.name_hint = value.name_hint
        load.location = user.location
        cast(Block, at.parent).insert_op_before(load, at)
        return load.res


def is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, arith.ConstantOp)


def is_plain(op: Operation) -> bool:
    """What the body has again rather than being given it: the analyses see through it."""
    if isinstance(op, memref.DimOp | memref.CastOp | array.AnyView):
        return True
    return is_constant(op.results[0]) or is_integer_code(op) if len(op.results) == 1 else False


def live_in(loop: array.LoopOp, alias: AliasAnalysis) -> set[SSAValue]:
    """The arrays of which an iteration may read what is in them when it begins.

    A read is of the iteration's own where one op before it, in the body itself, has overwritten all that it
    reads.
    """
    footprints = Footprints(alias)
    arrays = arrays_of(loop, alias)
    live, whole, parts = set[SSAValue](), set[SSAValue](), list[footprint.Region]()
    for op in loop.body.block.ops:
        for read in (access for inner in op.walk() for access in reads(inner)):
            base, region = alias.base(read.memref), footprints.of(read)
            if base not in whole and not any(covers(part, region) for part in parts):
                live |= {a for a in arrays if a is base or alias.roots(a) & alias.roots(base)}
        if isinstance(op, array.MapOp) or not op.regions:
            for write in filter(lambda access: access.must, writes(op)):
                base, region = alias.base(write.memref), footprints.of(write)
                parts.append(region)
                if region.exact and region.dimensions == footprints.entire(base).dimensions:
                    whole.add(base)
    return live


def roots_written(ops: Sequence[Operation], alias: AliasAnalysis) -> set[SSAValue]:
    """The memory that ops may write, themselves or inside."""
    return {
        other
        for op in ops
        for inner in op.walk()
        for write in writes(inner)
        for root in alias.roots(write.memref)
        for other in alias.interfering(root)
    }

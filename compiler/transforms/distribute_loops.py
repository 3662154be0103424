"""Split an innermost loop into its chain, in the program's order, and what may be vectors, in blocks.

A loop that adds up in the program's order, or goes through a recurrence, computes everything else one by one
as well. Where that is much, `analysis/loop_parts` takes the body apart. A block of iterations goes through
the first part, leaving values in small arrays on the stack, then through the next one (loop distribution
with scalar expansion, strip-mined). Each element and each cell sees the same loads and stores in the same
order, so values do not change in a single bit; only the adjoint's additions come in another order.

Before::

    func.func @f(%x : memref<?xf64>, %total : memref<f64>, %n : index) {
      %trips = array.loop %i to %n do {
        %a = memref.load %x[%i] : memref<?xf64>
        %b = math.exp %a : f64
        %s = memref.load %total[] : memref<f64>
        %t = arith.addf %s, %b : f64
        memref.store %t, %total[] : memref<f64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x: memref<?xf64>, %total: memref<f64>, %n: index) {
      %0 = arith.constant 0 : index
      %1 = arith.constant 128 : index
      %trips = arith.maxsi %n, %0 : index
      %2 = arith.constant 127 : index
      %3 = arith.addi %trips, %2 : index
      %4 = arith.constant 7 : index
      %5 = arith.shrui %3, %4 : index
      %6 = arith.constant 16 : index
      %7 = array.loop %8 to %5 do {
        %9 = array.alloc(%1) {stack} : memref<128xf64>
        %10 = arith.muli %8, %1 : index
        %11 = arith.subi %trips, %10 : index
        %12 = arith.minsi %1, %11 : index
        %13 = arith.cmpi slt, %12, %6 : index
        scf.if %13 {
          %14 = array.loop %k to %12 do {
            %i = arith.addi %10, %k : index
            %a = memref.load %x[%i] : memref<?xf64>
            %b = math.exp %a : f64
            %s = memref.load %total[] : memref<f64>
            %t = arith.addf %s, %b : f64
            memref.store %t, %total[] : memref<f64>
            array.yield
          }
        } else {
          %15 = array.loop %k_1 to %12 do {
            %i_1 = arith.addi %10, %k_1 : index
            %a_1 = memref.load %x[%i_1] : memref<?xf64>
            %b_1 = math.exp %a_1 : f64
            memref.store %b_1, %9[%k_1] : memref<128xf64>
            array.yield
          }
          %16 = array.loop %k_2 to %12 do {
            %i_2 = arith.addi %10, %k_2 : index
            %b_2 = memref.load %9[%k_2] : memref<128xf64>
            %s_1 = memref.load %total[] : memref<f64>
            %t_1 = arith.addf %s_1, %b_2 : f64
            memref.store %t_1, %total[] : memref<f64>
            array.yield
          }
        }
        array.yield
      }
      func.return
    }

Several tangents of a number are a vector already, so a loop over them is none to LLVM: there the numbers of
the primal go first, as vectors over the iterations.

An exception must find memory as Python leaves it. Conditions of `array.raise_if` that need nothing that the
loop stores are computed first, for the whole block, before it stores anything. Where one holds, the block
runs as the program has it, and raises where Python would. So do blocks of a few iterations.

The order of additions must not hang on what a step within a budget has saved: where the adjoint adds up, or a
chain is shortened, the functions of steps do what the gradient does that saves all (`decided_sums`).

Kept: loops that may raise in another way, that branch (but to choose what to load), that hold loops or
whole-array work, whose ordered part is most of the work, loops over `prange`, and those of recursive
functions, whose stack is not large. Runs last: analyses and derivatives read the program in its own order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    i64,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import activation, array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.additions import additions_in
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import Role, roles
from ..analysis.dependence import Dependence
from ..analysis.effects import is_private
from ..analysis.loop_parts import LoopParts
from ..diagnostics import locate
from ..rules import evaluates_body
from .decided_sums import DecidedSums, runs_steps
from .hoist_checks import Before, is_counted
from .memory_effects import functions
from .stage_plan import LEAST, Candidate, Plan, cost, is_given, is_pure, is_value, scalar_ops
from .undo_shortening import is_shortened, pays_alone, undo_shortening

BLOCK = 128
"""Iterations of a block: a power of two."""

FEW = 16
"""Blocks of fewer iterations run as the program has them."""

STAGES = 8
"""Loops that would be more are kept."""

BUFFERS, WORDS = 16, 32
"""Loops with more values that go from one stage to the next, or with more numbers in these, are kept: the
stack is not endless."""

LARGE = 400
"""Bodies of more ops are kept."""


@dataclass(frozen=True)
class DistributeLoops(ModulePass):
    """Distribute loops: split recurrences from work that vectorizes."""

    name = "distribute-loops"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apart, short = DecidedSums(), DecidedSums()
        for function in functions(op):
            deep = is_private(function) and any(ops_of_kind(function, activation.CallOp))
            alias = AliasAnalysis(function)
            for loop in list(leaves(function.body.block)):
                if not deep and distributed(function, loop, alias, self.fastmath, apart):
                    continue
                if is_shortened(loop):
                    place = loop.location
                    if short.prefers(function, place, wanted=pays_alone(loop)):
                        short.changed(place)
                    else:
                        undo_shortening(loop)


def leaves(block: Block) -> Iterator[array.LoopOp]:
    """The counted loops with nothing but scalar code in them."""
    for op in block.ops:
        if array.RAISES in op.attributes or array.SMALL in op.attributes or evaluates_body(op):
            continue
        if isinstance(op, array.LoopOp) and is_leaf(op):
            yield op
            continue
        for region in op.regions:
            for inner in region.blocks:
                yield from leaves(inner)


def is_leaf(loop: array.LoopOp) -> bool:
    plain = is_counted(loop) and not loop.carried
    claimed = {array.CLAIMED, array.EXCLUSIVE} & loop.attributes.keys()
    return plain and not claimed and all(is_scalar_code(op) for op in scalar_ops(loop))


def is_scalar_code(op: Operation) -> bool:
    """Loads, stores, pure code, choices between loads, and what raises where a condition holds."""
    if not all(is_value(r.type) for r in op.results):
        return False
    if isinstance(op, scf.IfOp):
        inside = [o for o in every_op(op)[1:] if not isinstance(o, scf.YieldOp)]
        return bool(op.results) and all(
            isinstance(o, scf.IfOp | memref.LoadOp) or is_pure(o) for o in inside
        )
    return isinstance(op, memref.LoadOp | memref.StoreOp | array.RaiseIfOp) or is_pure(op)


def distributed(
    function: func.FuncOp,
    loop: array.LoopOp,
    alias: AliasAnalysis,
    fastmath: bool,
    decided: DecidedSums,
) -> bool:
    """Split the loop if that is exact and worth it."""
    assert loop.count is not None
    known = array.constant_value(loop.count)
    if known is not None and known < 2 * FEW:
        return False
    ops = scalar_ops(loop)
    if len(ops) > LARGE:
        return False
    follows = runs_steps(function) and loop.location in decided.places
    if sum(map(cost, ops)) < LEAST and not follows:
        return False
    cells = roles(loop)
    candidate = Candidate.of(loop, cells)
    dependence = Dependence(function, alias)
    additions = additions_in(loop, alias.may_alias, fastmath)
    free = free_sums(cells, fastmath)
    parts = LoopParts(loop, candidate.nodes, dependence, additions, free)
    if not parts.known:
        return False
    first = parts.closure([op.condition for op in candidate.raising])
    if first is None or any(looks_up(op, candidate) for op in first):
        return False
    stages = parts.stages(first if candidate.raising else None)
    plan = Plan(candidate, parts, stages)
    if len(plan.buffered) > BUFFERS or plan.words > WORDS:
        return False
    if not 1 < len(stages) <= STAGES:
        return False
    wanted, reordered = plan.worthwhile(), bool(additions or free or is_shortened(loop))
    if reordered:
        wanted = decided.prefers(function, loop.location, wanted=wanted)
    if not wanted:
        return False
    if reordered:
        decided.changed(loop.location)
    Blocks(candidate, plan).write()
    return True


def free_sums(cells: dict[SSAValue, Role], fastmath: bool) -> set[SSAValue]:
    """The cells that only take terms, in any order."""
    sums = {cell: role for cell, role in cells.items() if role.name == "reduction"}
    return {cell for cell, role in sums.items() if fastmath or not role.ordered}


def looks_up(op: Operation, candidate: Candidate) -> bool:
    """A load whose place the data decide: it may be there only if nothing has raised."""
    if not isinstance(op, memref.LoadOp):
        return bool(op.regions)
    return not all(is_given(i, candidate.loop, set(candidate.free)) for i in op.indices)


class Blocks:
    """Writes the loop over blocks."""

    def __init__(self, candidate: Candidate, plan: Plan) -> None:
        self.candidate = candidate
        self.plan = plan
        self.loop = candidate.loop
        self.outside = Before(self.loop)
        self.body = Block(arg_types=[IndexType()])
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.before = {load.res: self._hoisted(load) for load in candidate.kept.values()}

    def _hoisted(self, load: memref.LoadOp) -> SSAValue:
        made = load.clone()
        self.outside.insert(made)
        return made.res

    def write(self) -> None:
        outside, loop, body = self.outside, self.loop, self.body
        assert loop.count is not None
        zero, size = outside.constant(0), outside.constant(BLOCK)
        count = outside.emit(arith.MaxSIOp(loop.count, zero))
        up = outside.emit(arith.AddiOp(count, outside.constant(BLOCK - 1)))
        blocks = outside.emit(arith.ShRUIOp(up, outside.constant(BLOCK.bit_length() - 1)))
        few = outside.constant(FEW)
        for value in self.plan.buffered:
            buffer = array.AllocOp([size], value.type)
            buffer.attributes[array.STACK] = UnitAttr()
            self.buffers[value] = added(body, buffer)
        start = added(body, arith.MuliOp(body.args[0], size))
        left = added(body, arith.SubiOp(count, start))
        length = added(body, arith.MinSIOp(size, left))
        plain = added(body, arith.CmpiOp(length, few, "slt"))
        stages = range(len(self.plan.stages))
        if self.candidate.raising:
            plain = self._or_raises(plain, zero, length, start)
            stages = stages[1:]
        apart = [self._stage(k, length, start) for k in stages if self.plan.ops(k)]
        as_it_was = [self._as_it_was(length, start), scf.YieldOp()]
        body.add_op(scf.IfOp(plain, [], as_it_was, [*apart, scf.YieldOp()]))
        body.add_op(array.YieldOp())
        made = array.LoopOp(blocks, (), body)
        outside.insert(made)
        locate(made, loop.location)
        loop.trips.replace_all_uses_with(count)
        loop.detach()
        loop.erase()

    def _or_raises(
        self, plain: SSAValue, zero: SSAValue, length: SSAValue, start: SSAValue
    ) -> SSAValue:
        """Whether the block is small, or something raises in it: the first stage says so."""
        body = self.body
        failed = added(body, memref.AllocaOp.get(i64, shape=[]))
        nothing = added(body, arith.ConstantOp(IntegerAttr(0, i64)))
        body.add_op(memref.StoreOp.get(nothing, failed, []))
        guarded = added(body, arith.SelectOp(plain, zero, length))
        body.add_op(self._stage(0, guarded, start, failed))
        found = added(body, memref.LoadOp.get(failed, []))
        raises = added(body, arith.CmpiOp(found, nothing, "ne"))
        return added(body, arith.OrIOp(plain, raises))

    def _begun(self, start: SSAValue) -> tuple[Block, dict[SSAValue, SSAValue]]:
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = "k"
        at = arith.AddiOp(start, body.args[0])
        at.result.name_hint = self.loop.induction.name_hint
        return body, {self.loop.induction: added(body, at)}

    def _as_it_was(self, length: SSAValue, start: SSAValue) -> array.LoopOp:
        body, values = self._begun(start)
        for op in self.loop.body.block.ops:
            body.add_op(op.clone(values))
        made = array.LoopOp(length, (), body)
        undo_shortening(made)
        return made

    def _stage(
        self, k: int, length: SSAValue, start: SSAValue, failed: SSAValue | None = None
    ) -> array.LoopOp:
        """The loop of a stage; with `failed` it says whether anything raises."""
        body, values = self._begun(start)
        for load, before in self.before.items():
            values[load] = before
        counter = body.args[0]
        for value in self.plan.loaded[k]:
            values[value] = added(body, memref.LoadOp.get(self.buffers[value], [counter]))
            values[value].name_hint = value.name_hint
        for op in self.plan.ops(k):
            body.add_op(op.clone(values))
            for result in op.results:
                if self.plan.buffered.get(result) == k:
                    body.add_op(memref.StoreOp.get(values[result], self.buffers[result], [counter]))
        if failed is not None:
            total = added(body, memref.LoadOp.get(failed, []))
            for op in self.candidate.raising:
                condition = values.get(op.condition, op.condition)
                one = added(body, arith.ExtUIOp(condition, i64))
                total = added(body, arith.OrIOp(total, one))
            body.add_op(memref.StoreOp.get(total, failed, []))
        body.add_op(array.YieldOp())
        return array.LoopOp(length, (), body)


def added(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]

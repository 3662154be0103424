"""Run loops of maps, and the maps beside them, for one block of rows after the other.

`for q in range(9): rho += f[q]` goes over all of `rho` nine times, and what comes next over all of `f`
again. Where each row is computed from the same rows alone, all of the loop runs for a few rows before it runs
for the next ones: what it goes over again is in the cache. Runs after `fuse-rows`, which takes maps that hand
temporaries on, and does not look into loops.

Before::

    func.func @f(%r : memref<?x?xf64>, %f : memref<9x?x?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      %trips = array.loop %q to %c9 do {
        %v = array.view %f[%q, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1)
            : memref<9x?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
        array.map(%n, %m) ins(%r, %v : memref<?x?xf64>, memref<?x?xf64, strided<[?, 1]>>)
            outs(%r : memref<?x?xf64>) kinds ["store"] {
        ^bb0(%a : f64, %b : f64):
          %s = arith.addf %a, %b : f64
          array.yield %s : f64
        }
        array.yield
      }
      func.return
    }

After::

    !some = memref<?x?xf64, strided<[?, 1]>>
    !grid = memref<?x?xf64>
    func.func @f(%r: memref<?x?xf64>, %f: memref<9x?x?xf64>, %n: index, %m: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %2 = arith.maxsi %n, %0 : index
      %3 = arith.muli %1, %m : index
      %4 = arith.maxsi %3, %1 : index
      %5 = arith.constant 512 : index
      %6 = arith.floordivsi %5, %4 : index
      %7 = arith.muli %4, %2 : index
      %8 = arith.constant 8192 : index
      %9 = arith.cmpi slt, %7, %8 : index
      %10 = arith.select %9, %2, %6 : index
      %rows = arith.maxsi %10, %1 : index
      %11 = arith.subi %rows, %1 : index
      %12 = arith.addi %2, %11 : index
      %steps = arith.floordivsi %12, %rows : index
      %13 = array.loop %step to %steps do {
        %first = arith.muli %step, %rows : index
        %14 = arith.subi %2, %first : index
        %count = arith.minsi %rows, %14 : index
        %trips = array.loop %q to %c9 do {
          %v = array.view %f[%q, %c0, %c0] dims [1, 2] extents(%n, %m) steps(%c1, %c1)
              : memref<9x?x?xf64> -> !some
          %r_1 = array.view %r[%first, %0] dims [0, 1] extents(%count, %m) steps(%1, %1) : !grid -> !some
          %v_1 = array.view %v[%first, %0] dims [0, 1] extents(%count, %m) steps(%1, %1) : !some -> !some
          array.map(%count, %m) ins(%r_1, %v_1 : !some, !some) outs(%r_1 : !some) kinds ["store"] {
          ^bb0(%a: f64, %b: f64):
            %s = arith.addf %a, %b : f64
            array.yield %s : f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

Legality. The loop over blocks changes places with those in it. Any two accesses of which one writes, and
that may touch the same memory, must be of one array, along the same axis from the same start, which no loop
moves: then row i of one meets row i of the other alone, and those are in one block, where all comes in the
order in which it came. Nothing in the loops raises, stores otherwise, or writes to a tape.

Sums to what has no rows come in another order, which adjoint code may: the cotangent of a number that all
elements are multiplied with.

Kept: maps that gather, vectors, and arrays that are in the first cache as a whole (at run time: one block is
all of them then); sums to what has no rows, whose order the program has written; and loops in which each map
touches other elements in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import NoMemoryEffect

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.carried_cells import is_outside
from ..diagnostics import locate
from .entry_checks import numbers_in
from .hoist_checks import Before, is_counted
from .memory_effects import functions
from .rolling_buffers import is_free
from .row_runs import Analyses, Use, rows_are_slow, uses_of

BLOCK = 512
"""The elements of an array in one block: those of a few arrays are in the first cache."""
WHOLE = 1 << 13
"""Arrays of fewer elements are one block."""
MOST = 64
"""The most operands of maps in one loop."""


@dataclass(frozen=True)
class BlockRows(ModulePass):
    """Run loops of maps for one block of rows after the other."""

    name = "block-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            blocks = [b for b in function.body.block.walk_blocks() if any(map(is_loop, b.ops))]
            analyses = Analyses(function) if blocks else None
            for block in blocks:
                assert analyses is not None
                for run in list(runs_of(block, analyses)):
                    if run.pays():
                        write(run)


def is_loop(op: Operation) -> bool:
    """True for a loop of maps over rows, and nothing that must not run once for each block."""
    if not isinstance(op, array.LoopOp) or op.carried or not is_counted(op):
        return False
    marked = op.attributes.keys() - {array.OF_NUMBERS}
    return not marked and op.trips.first_use is None and all(map(is_part, op.body.block.ops))


def is_part(op: Operation) -> bool:
    return is_map(op) or is_loop(op) or is_plain(op)


def is_map(op: Operation) -> bool:
    """True for a map over rows, point by point."""
    if not isinstance(op, array.MapOp) or op.attributes or op.window or op.origin:
        return False
    points = len(op.extents) > 1 and op.gathers is None and rows_are_slow(op)
    return points and all(map(is_pure, op.body.block.ops))


def is_plain(op: Operation) -> bool:
    """Scalar code that may run again, or sooner where nothing writes what it loads."""
    return isinstance(op, memref.LoadOp | array.YieldOp) or is_pure(op)


def is_pure(op: Operation) -> bool:
    if op.regions or array.is_operation_that_may_raise(op):
        return False
    return op.has_trait(NoMemoryEffect) or isinstance(op, array.YieldOp)


@dataclass
class Run:
    """Maps of one block, and loops of maps, over the same rows."""

    members: list[Operation] = field(default_factory=list[Operation])
    uses: list[Use] = field(default_factory=list[Use])
    """What the maps touch."""
    loaded: set[SSAValue] = field(default_factory=set[SSAValue])
    """Roots that scalar code reads, in the members and between them."""

    ordered: set[SSAValue] = field(default_factory=set[SSAValue])
    """What the maps write by more than sums that may be in any order."""

    def pays(self) -> bool:
        """Whether iterations of a loop go over the same elements."""
        return any(
            is_outside(use.operand, loop)
            for loop in self.members
            if isinstance(loop, array.LoopOp)
            for op in ops_of_kind(loop, array.MapOp)
            for use in uses_of(op)
        )

    def admits(self, op: Operation, analyses: Analyses) -> bool:
        """Add one more map, or loop of maps, where rows stay apart; whether it was added."""
        if not is_map(op) and not is_loop(op):
            return False
        own = maps_in(op)
        found = [use for one in own for use in uses_of(one)]
        uses, loaded = [*self.uses, *found], self.loaded | loads_in(op, analyses)
        if not found or len(uses) > MOST:
            return False
        if isinstance(op, array.LoopOp) and not all(
            is_outside(e, op) for m in own for e in m.extents
        ):
            return False
        maps = [*own, *(m for one in self.members[:1] for m in maps_in(one)[:1])]
        if len({analyses.affine(m.extents[0]) for m in maps}) != 1:
            return False
        if any(
            use.written and not loaded.isdisjoint(analyses.effects.roots(use.operand))
            for use in uses
        ):
            return False
        loops = [one for one in (*self.members, op) if isinstance(one, array.LoopOp)]
        ordered = self.ordered | {m for one in own for m in ordered_outputs(one, analyses)}
        pairs = ((one, other) for at, one in enumerate(uses) for other in uses[at:])
        if not all(
            are_free_sums(one, other, ordered) or row_by_row(one, other, loops, analyses)
            for one, other in pairs
        ):
            return False
        self.members.append(op)
        self.uses, self.loaded, self.ordered = uses, loaded, ordered
        return True

    def lets_pass(self, op: Operation, analyses: Analyses) -> bool:
        """True for an op between members that may just as well run before them all."""
        if isinstance(op, array.AllocOp):
            return True
        if isinstance(op, array.YieldOp) or not is_plain(op):
            return False
        roots = loads_in(op, analyses)
        if any(
            u.written and not roots.isdisjoint(analyses.effects.roots(u.operand)) for u in self.uses
        ):
            return False
        self.loaded |= roots
        return True


def runs_of(block: Block, analyses: Analyses) -> Iterator[Run]:
    """The longest runs, from the first op of the block to the last."""
    run = Run()
    for op in block.ops:
        if run.admits(op, analyses) or (run.members and run.lets_pass(op, analyses)):
            continue
        if run.members:
            yield run
            run = Run()
            run.admits(op, analyses)
    yield run


def maps_in(op: Operation) -> list[array.MapOp]:
    return [op] if isinstance(op, array.MapOp) else ops_of_kind(op, array.MapOp)


def loads_in(op: Operation, analyses: Analyses) -> set[SSAValue]:
    """The roots of what scalar code loads."""
    loads = [op] if isinstance(op, memref.LoadOp) else ops_of_kind(op, memref.LoadOp)
    return {root for load in loads for root in analyses.effects.roots(load.memref)}


def ordered_outputs(op: array.MapOp, analyses: Analyses) -> list[SSAValue]:
    """What a map stores to, or adds up in the order of the program."""
    return [
        out
        for k, out in enumerate(op.outs)
        if op.out_kinds[k] != "add" or not is_free(op, k, analyses)
    ]


def are_free_sums(one: Use, other: Use, ordered: set[SSAValue]) -> bool:
    """Whether both add to the same elements, in any order."""
    both = one.written and other.written and one.operand is other.operand
    return both and one.operand not in ordered


def row_by_row(one: Use, other: Use, loops: list[array.LoopOp], analyses: Analyses) -> bool:
    """Whether two accesses need no order, or rows of one meet the same rows of the other alone."""
    if not one.written and not other.written:
        return True
    if not analyses.alias.may_alias(one.operand, other.operand):
        return True
    a, b = analyses.walk(one.operand), analyses.walk(other.operand)
    if a is None or b is None or not a.is_like(b) or a.start != b.start:
        return False
    return all(
        is_outside(number, loop)
        for number in numbers_in(a.start)
        if isinstance(number, SSAValue)
        for loop in loops
    ) and all(is_outside(a.base, loop) for loop in loops)


def write(run: Run) -> None:
    """Put a loop over blocks of rows around the run, in the place of its last member."""
    last = run.members[-1]
    behind = last.next_op
    assert behind is not None
    before, model = Before(behind, last), maps_in(run.members[0])[0]
    zero, one = before.constant(0), before.constant(1)
    all_ = before.emit(arith.MaxSIOp(model.extents[0], zero))
    length: SSAValue = before.constant(1)
    for extent in tuple(model.extents)[1:]:
        length = before.emit(arith.MuliOp(length, extent))
    length = before.emit(arith.MaxSIOp(length, one))
    rows = before.emit(arith.FloorDivSIOp(before.constant(BLOCK), length))
    elements = before.emit(arith.MuliOp(length, all_))
    few = before.compare("slt", elements, before.constant(WHOLE))
    rows = before.emit(arith.SelectOp(few, all_, rows))
    rows = before.emit(arith.MaxSIOp(rows, one))
    rows.name_hint = "rows"
    more = before.plus(all_, before.minus_one(rows))
    steps = before.emit(arith.FloorDivSIOp(more, rows))
    steps.name_hint = "steps"

    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = "step"
    first = arith.MuliOp(body.args[0], rows)
    first.result.name_hint = "first"
    left = arith.SubiOp(all_, first.result)
    count = arith.MinSIOp(rows, left.result)
    count.result.name_hint = "count"
    body.add_ops([first, left, count])
    for member in run.members:
        member.detach()
        body.add_op(member)
        for op in maps_in(member):
            take_rows(op, first.result, count.result, zero, one)
    body.add_op(array.YieldOp())
    before.insert(array.LoopOp(steps, [], body))


def take_rows(
    op: array.MapOp, low: SSAValue, count: SSAValue, zero: SSAValue, one: SSAValue
) -> None:
    """Let a map do some of its rows."""
    extents = [count, *tuple(op.extents)[1:]]
    rank = len(extents)
    views: dict[SSAValue, SSAValue] = {}
    for operand in (*op.ins, *op.outs):
        if operand not in views:
            offsets, steps = [low, *[zero] * (rank - 1)], [one] * rank
            view = array.ViewOp(operand, offsets, range(rank), extents, steps)
            view.result.name_hint = operand.name_hint
            locate(view, op.location)
            Rewriter.insert_op(view, InsertPoint.before(op))
            views[operand] = view.result
    op.operands = [*extents, *(views[m] for m in (*op.ins, *op.outs))]

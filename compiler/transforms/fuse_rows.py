"""Run maps that follow each other row by row: what one hands to the next stays in the cache.

`u[1:-1] = f(u)` fills a temporary and copies it: two sweeps over memory, and an array as large as `u`. A
softmax goes over its argument again and again, an adjoint takes a shadow out before it adds to it. Here such
maps become one loop over blocks of rows, and a temporary shrinks to the rows that are still to be read, a
*rolling buffer*. Runs after the last derivative (whole arrays have the better adjoint), on maps that gather
as well as on others, while temporaries are still allocated where they are used.

Before::

    func.func @f(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) {
      %t = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%x : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
      ^bb0(%a : f64):
        array.yield %a : f64
      }
      array.map(%n) ins(%t : memref<?xf64>) outs(%x, %y : memref<?xf64>, memref<?xf64>)
          kinds ["store", "add"] {
      ^bb1(%b : f64):
        array.yield %b, %b : f64, f64
      }
      func.return
    }

After::

    !some = memref<?xf64, strided<[1]>>
    func.func @f(%n : index, %x : memref<?xf64>, %y : memref<?xf64>) {
      %0 = arith.constant 0 : index
      %n_1 = arith.maxsi %n, %0 : index
      %1 = arith.constant 1024 : index
      %2 = arith.constant 2048 : index
      %3 = arith.cmpi slt, %n_1, %2 : index
      %4 = arith.select %3, %n_1, %1 : index
      %5 = arith.minsi %4, %n_1 : index
      %6 = arith.constant 1 : index
      %rows = arith.maxsi %5, %6 : index
      %7 = arith.constant -1 : index
      %8 = arith.addi %n_1, %7 : index
      %9 = arith.addi %8, %rows : index
      %steps = array.floordiv %9, %rows : index
      %t = array.alloc(%rows) : memref<?xf64>
      %trips = array.loop %step to %steps do {
        %first = arith.muli %step, %rows : index
        %10 = arith.addi %first, %rows : index
        %11 = arith.minsi %10, %n_1 : index
        %12 = arith.subi %11, %first : index
        %count = arith.maxsi %12, %0 : index
        %x_1 = array.view %x[%first] dims [0] extents(%count) steps(%6) : memref<?xf64> -> !some
        %t_1 = array.view %t[%0] dims [0] extents(%count) steps(%6) : memref<?xf64> -> !some
        array.map(%count) ins(%x_1 : !some) outs(%t_1 : !some) kinds ["store"] {
        ^bb0(%a : f64):
          array.yield %a : f64
        }
        %y_1 = array.view %y[%first] dims [0] extents(%count) steps(%6) : memref<?xf64> -> !some
        array.map(%count) ins(%t_1 : !some) outs(%x_1, %y_1 : !some, !some) kinds ["store", "add"] {
        ^bb1(%b : f64):
          array.yield %b, %b : f64, f64
        }
        array.yield
      }
      func.return
    }

Legality. A map does its row i at time `i + shift`; maps of one time run in their order. Where an earlier map
touches in row i what a later one touches in row i + d, and one of them writes, the later one stays behind:
`shift(later) >= shift(earlier) - d`, so what was done first is done first. The store of a stencil follows one
row behind its sum. Two operands that may share memory must be of one array, walked alike along the rows, a
constant distance apart; else the maps are not joined. Points of one map have no order, so nothing is asked
within a map. Sums over rows are "add"s, whose order is free. Maps need not have equally many rows: each does
those of a step that it has.

A map that gathers touches in row i the rows i - s to i of its inputs, s its largest shift, also where it
reads the nearest: its window begins at row 0, and it has s rows more. What it looks at in a step is a smaller
window, in which its own rows begin at an `origin`.

A temporary shrinks where all its uses are in the loop. Its row is in the buffer from the first time that it
may be touched to the last; after each step the rows that are still to be read move to the front. Nothing is
promised of what a fresh array holds, so each element that is read was written in the loop. Where a step has
one row, and rows are touched in two steps, nothing moves: rows r and r + 2 are at one place, and are never
there at one time. A map that looks at both rows of a buffer needs them side by side, and in order.

Ops between the maps run before them all if they touch nothing that the maps write, else behind them all, if
nothing up to there needs them. Maps before and behind those with temporaries come along where they go over
the same arrays, but for sums over all rows that the program has written.

Kept apart: maps that hand on no temporary, arrays that lie column by column, maps between which something
touches their memory, or raises where others would see that they have run; and of vectors those that gather,
or have other numbers of elements (steps through them gain nothing, and cost short calls a fifth).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, ModuleOp, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ..rules.builders import element_of, transfer
from .fold_constants import is_nonnegative
from .memory_effects import functions
from .rolling_buffers import LINE, Rolled, is_temporary, worthwhile
from .row_runs import Analyses, Run, reach_of, runs_of, uses_of

BLOCK = 1024
"""The numbers of an array that one step works on, where rows are shorter: they stay in the first cache."""
CACHED = 1 << 17
"""The numbers that all buffers hold together (a MB), unless the rows that are read later are more."""
NEAR = 1 << 12
"""The numbers that a step touches, of all arrays together (32 kB), where it costs little to do few rows."""
SMALL = 1 << 13
"""Arrays of fewer numbers are in the first cache as a whole."""
PART = 1024
"""The elements of vectors that one step works on: rows of one number cost a step least."""
SHORT = 1 << 11
"""Vectors of fewer elements are one step."""
WIDE = 1 << 16
"""Rows that are longer than this, and are still to be read later, are no better than the whole array."""


@dataclass(frozen=True)
class FuseRows(ModulePass):
    """Fuse maps that pass arrays on along their first axis into one loop over blocks of rows."""

    name = "fuse-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            blocks = [b for b in function.body.block.walk_blocks() if any(map(is_temporary, b.ops))]
            if blocks:
                fuse_in(function, blocks)


def fuse_in(function: func.FuncOp, blocks: Sequence[Block]) -> None:
    analyses = Analyses(function)
    for block in blocks:
        for run in list(runs_of(block, analyses)):
            found = worthwhile(run, analyses)
            if found is not None:
                FusedRows(*found, found[0].rows_held(analyses)).emit()


@dataclass(frozen=True)
class Rows:
    """What a step of a loop does of the rows of a map, or looks at."""

    low: SSAValue
    count: SSAValue
    first: SSAValue
    """The first row of maps that lag behind no other."""


class FusedRows:
    """Writes the loop of a run in the place of its last map."""

    def __init__(
        self, run: Run, temporaries: Sequence[Rolled], held: tuple[int, int] | None = None
    ) -> None:
        self.run = run
        self.rolled = temporaries
        self.held = held
        """What `Run.rows_held` says, where a step is to be no larger than the first cache."""
        self.single: SSAValue | None = None
        """Whether a step has one row, so that buffers of two rows take turns; None where they never do."""
        self.last: Operation = run.maps[-1]
        self.body = Block(arg_types=[IndexType()])
        self.inside = False
        """Whether ops go to the body of the loop, not before it."""
        self.together = 1
        """How many times the maps go through the rows of a step, each time others."""
        self.numbers: dict[int, SSAValue] = {}
        self.buffers: dict[SSAValue, tuple[Rolled, SSAValue]] = {}
        """By operand of a map the temporary that it is a view of, and the buffer in its place."""
        self.parts: dict[tuple[SSAValue, Rows], SSAValue] = {}
        """What a step touches of an operand."""

    def emit(self) -> None:
        counts: dict[SSAValue, SSAValue] = {}
        for op in self.run.maps:
            if op.extents[0] not in counts:
                counts[op.extents[0]] = self.count_of(op)
        rows, steps = self.sizes(counts)
        if self.may_take_turns():
            self.single = self.put(arith.CmpiOp(rows, self.number(1), "eq"))
        kept = [(one, self.buffer(one, rows)) for one in self.rolled]
        step = self.body.args[0]
        step.name_hint = "step"
        loop = array.LoopOp(steps, [], self.body)
        self.put(loop)
        self.inside = True
        first = self.put(arith.MuliOp(step, rows), "first")
        places: dict[tuple[int, SSAValue], Rows] = {}
        for op, shift in zip(self.run.maps, self.run.shifts, strict=True):
            count = counts[op.extents[0]]
            if (shift, count) not in places:
                places[shift, count] = self.rows_of_step(shift, first, rows, count)
            self.move(op, places[shift, count])
        for one, buffer in kept:
            if one.more:
                self.slide(one, buffer, rows)
        self.add(array.YieldOp())
        self.put_behind()
        for op in self.run.maps:
            Rewriter.erase_op(op)
        for one in self.rolled:
            erase_unused(one.alloc)

    def may_take_turns(self) -> bool:
        """Whether rows are lines, each is touched in two steps, and a map touches one row at a time."""
        kept = [one for one in self.rolled if one.more]
        operands = {operand for one in kept for operand in one.starts}
        reach = (
            reach_of(op, use)
            for op in self.run.maps
            for use in uses_of(op)
            if use.operand in operands
        )
        lines = all(one.more == 1 and len(one.alloc.extents) == 2 for one in kept)
        return bool(kept) and lines and not any(reach)

    def put_behind(self) -> None:
        """Move the ops that wait for the maps behind the loop."""
        block, place = self.last.parent, self.last
        assert block is not None
        op: Operation = self.run.maps[0]
        while op is not self.last:
            following = op.next_op
            assert following is not None
            if op in self.run.waiting:
                op.detach()
                block.insert_op_after(op, place)
                place = op
            op = following

    # Small things.

    def add(self, op: Operation) -> None:
        """Add an op to the loop, or before it."""
        op.location = self.last.location
        if self.inside:
            self.body.add_op(op)
        else:
            Rewriter.insert_op(op, InsertPoint.before(self.last))

    def put(self, op: Operation, hint: str | None = None) -> SSAValue:
        self.add(op)
        if hint is not None:
            op.results[0].name_hint = hint
        return op.results[0]

    def number(self, value: int) -> SSAValue:
        """A constant, made once, before the loop."""
        if value not in self.numbers:
            made = arith.ConstantOp(array.index_number(value))
            made.location = self.last.location
            before = self.body.parent_op() if self.inside else self.last
            assert before is not None
            Rewriter.insert_op(made, InsertPoint.before(before))
            self.numbers[value] = made.result
        return self.numbers[value]

    def more(self, value: SSAValue, by: int) -> SSAValue:
        return self.put(arith.AddiOp(value, self.number(by))) if by else value

    # How much a step does.

    def count_of(self, op: array.MapOp) -> SSAValue:
        """How many rows a map has."""
        count = op.extents[0]
        return (
            count if is_nonnegative(count) else self.put(arith.MaxSIOp(count, self.number(0)), "n")
        )

    def sizes(self, counts: dict[SSAValue, SSAValue]) -> tuple[SSAValue, SSAValue]:
        """How many rows a step works on, and how many steps there are."""
        behind = max((one.more for one in self.rolled), default=0)
        all_ = self.times(counts)
        length, lanes = self.length_of_rows(), self.lanes()
        if length is None:
            rows, size, small = self.number(PART // lanes), all_, SHORT
        else:
            rows = self.put(array.FloorDivOp(self.number(BLOCK // lanes // self.together), length))
            rows = self.put(arith.MaxSIOp(rows, self.fitting(length, lanes, behind)))
            if self.held is not None and self.may_take_turns():
                rows = self.put(arith.MinSIOp(rows, self.near(self.held, length, lanes)))
            size, small = self.put(arith.MuliOp(length, all_)), SMALL
        whole = self.put(arith.CmpiOp(size, self.number(small // lanes), "slt"))
        rows = self.put(arith.SelectOp(whole, all_, rows))
        if behind and length is not None:
            wide = self.put(arith.CmpiOp(length, self.number(WIDE // lanes), "sgt"))
            rows = self.put(arith.SelectOp(wide, all_, rows))
        rows = self.put(arith.MinSIOp(rows, all_))
        rows = self.put(arith.MaxSIOp(rows, self.number(max(behind, 1))), "rows")
        up = self.put(arith.AddiOp(self.more(all_, -1), rows))
        return rows, self.put(array.FloorDivOp(up, rows), "steps")

    def fitting(self, length: SSAValue, lanes: int, behind: int) -> SSAValue:
        """The rows that make it cheap to move those still to be read, as far as the buffers stay in the
        second cache: a row that goes to memory and back is dearer than one that is moved."""
        if not behind:
            return self.number(1)
        share = self.number(CACHED // lanes // len(self.rolled))
        fit = self.put(array.FloorDivOp(share, length))
        return self.put(arith.MinSIOp(fit, self.number(4 * behind)))

    def near(self, held: tuple[int, int], length: SSAValue, lanes: int) -> SSAValue:
        """The rows of a step for which all that it touches stays in the first cache, from the first map to
        the last, and for the next step; at least 1."""
        arrays, between = held
        fit = self.put(array.FloorDivOp(self.number(NEAR // lanes), length))
        fit = self.put(array.FloorDivOp(self.more(fit, -between), self.number(max(arrays, 1))))
        return self.put(arith.MaxSIOp(fit, self.number(1)))

    def lanes(self) -> int:
        """How many numbers an element has: of several tangents it has one for each."""
        elements = [element_of(m) for op in self.run.maps for m in (*op.ins, *op.outs)]
        return max(e.get_shape()[0] if isinstance(e, VectorType) else 1 for e in elements)

    def times(self, counts: dict[SSAValue, SSAValue]) -> SSAValue:
        """When the last map has done its last row."""
        latest: dict[SSAValue, int] = {}
        for op, shift in zip(self.run.maps, self.run.shifts, strict=True):
            count = counts[op.extents[0]]
            latest[count] = max(latest.get(count, 0), shift)
        ends = [self.more(count, shift) for count, shift in latest.items()]
        total = ends[0]
        for end in ends[1:]:
            total = self.put(arith.MaxSIOp(total, end))
        return total

    def length_of_rows(self) -> SSAValue | None:
        """The elements of the longest row, at least 1; None where a row is one element."""
        rank = max(len(m.extents) for m in self.run.maps)
        if rank == 1:
            return None
        inner = dict.fromkeys(tuple(m.extents)[1:] for m in self.run.maps if len(m.extents) == rank)
        lengths = [self.product(e) for e in inner if any(map(is_not_one, e))]
        longest = self.number(1)
        for length in lengths:
            longest = self.put(arith.MaxSIOp(length, longest))
        return longest

    def product(self, extents: Sequence[SSAValue]) -> SSAValue:
        total = extents[0]
        for extent in extents[1:]:
            total = self.put(arith.MuliOp(total, extent))
        return total

    def rows_of_step(
        self, shift: int, first: SSAValue, rows: SSAValue, all_: SSAValue, *, late: bool = False
    ) -> Rows:
        """The rows that a map with this shift works on in a step: those that exist (`late` ones may not)."""
        zero = self.number(0)
        low = self.more(first, -shift)
        high = self.put(arith.MinSIOp(self.put(arith.AddiOp(low, rows)), all_))
        low = self.put(arith.MaxSIOp(low, zero)) if shift or late else low
        count = self.put(arith.MaxSIOp(self.put(arith.SubiOp(high, low)), zero), "count")
        return Rows(low, count, first)

    def rows_around(self, how: array.Gathers, own: Rows) -> Rows:
        """The rows of its inputs that a map looks at which gathers."""
        zero, reach = self.number(0), max(s[0] for s in how.shifts)
        low = self.put(arith.MaxSIOp(self.more(own.low, -reach), zero))
        high = self.put(arith.AddiOp(own.low, own.count))
        high = self.put(arith.MinSIOp(high, how.window[0]))
        count = self.put(arith.MaxSIOp(self.put(arith.SubiOp(high, low)), zero), "count")
        return Rows(low, count, own.first)

    # Maps and their operands.

    def move(self, op: array.MapOp, own: Rows) -> None:
        """Let the map do its rows of one step, in the loop."""
        extents, how, looked_at = [own.count, *tuple(op.extents)[1:]], op.gathers, own
        inner = tuple(op.extents)[1:]
        if how is not None:
            looked_at = self.rows_around(how, own)
            inner = how.window[1:]
            origin = self.put(arith.SubiOp(own.low, looked_at.low))
            how = replace(
                how,
                window=(looked_at.count, *inner),
                origin=(origin, *[self.number(0)] * len(inner)),
            )
        ins = [self.part(m, looked_at, inner) for m in op.ins]
        outs = [self.part(m, own, tuple(op.extents)[1:]) for m in op.outs]
        body = op.detach_region(op.body)
        op.add_region(Region(Block()))
        made = array.MapOp(extents, ins, outs, op.out_kinds, body, how)
        made.attributes.update(op.attributes)
        self.add(made)
        made.location = op.location

    def part(self, operand: SSAValue, rows: Rows, inner: Sequence[SSAValue]) -> SSAValue:
        """Some rows of an operand, in the buffer where there is one."""
        key = (operand, rows)
        if key not in self.parts:
            if operand not in self.buffers:
                self.parts[key] = self.rows_of(operand, rows.low, [rows.count, *inner])
            else:
                one, buffer = self.buffers[operand]
                row = self.number(one.starts[operand] + one.back)
                if rows.low is not rows.first:
                    row = self.put(arith.AddiOp(self.put(arith.SubiOp(rows.low, rows.first)), row))
                if one.more and self.single is not None:
                    turn = self.more(rows.low, one.starts[operand])
                    turn = self.put(arith.RemSIOp(turn, self.number(one.more + 1)))
                    row = self.put(arith.SelectOp(self.single, turn, row))
                there = self.rows_of(buffer, row, [rows.count, *one.alloc.extents[1:]])
                self.parts[key] = self.through(operand, one, there, rows.count)
        return self.parts[key]

    def rows_of(self, whole: SSAValue, low: SSAValue, extents: Sequence[SSAValue]) -> SSAValue:
        """A view of some rows, from `low` on."""
        rank, zero, one = len(extents), self.number(0), self.number(1)
        offsets = [low, *[zero] * (rank - 1)]
        view = array.ViewOp(whole, offsets, range(rank), extents, [one] * rank)
        return self.put(view, whole.name_hint)

    # Buffers.

    def buffer(self, one: Rolled, rows: SSAValue) -> SSAValue:
        """The buffer in the place of a temporary."""
        element = one.alloc.memref.type.element_type  # pyright: ignore
        held = rows
        if (
            one.more
        ):  # certainly not negative: else the buffer would not leave a loop around this one
            held = self.put(arith.MaxSIOp(self.more(rows, one.more), self.number(1)))
        inner = [*one.alloc.extents[1:]]
        if one.more and self.single is not None:
            inner[-1] = self.put(arith.SelectOp(self.single, self.lines(inner[-1]), inner[-1]))
        alloc = array.AllocOp([held, *inner], element)
        made = self.put(alloc, one.alloc.memref.name_hint)
        self.buffers |= dict.fromkeys(one.starts, (one, made))
        return made

    def lines(self, columns: SSAValue) -> SSAValue:
        """So many columns that a row of doubles begins at a line of the cache, an odd number of lines behind
        the one before: rows do not compete for the same places."""
        lines = self.put(array.FloorDivOp(self.more(columns, LINE - 1), self.number(LINE)))
        odd = self.put(arith.OrIOp(lines, self.number(1)))
        return self.put(arith.MuliOp(odd, self.number(LINE)))

    def through(self, operand: SSAValue, one: Rolled, rows: SSAValue, count: SSAValue) -> SSAValue:
        """The view of a temporary that a map took, of some rows of its buffer."""
        if operand is one.alloc.memref:
            return rows
        view = operand.owner
        assert isinstance(view, array.ViewOp)
        inner = self.through(view.source, one, rows, count)
        offsets, extents = list(view.offsets), list(view.extents)
        offsets[0], extents[view.source_dims.index(0)] = self.number(0), count
        made = array.ViewOp(inner, offsets, view.source_dims, extents, view.steps)
        return self.put(made, view.result.name_hint)

    def slide(self, one: Rolled, buffer: SSAValue, rows: SSAValue) -> None:
        """Keep the last rows of the buffer for the next step."""
        more = self.number(one.more)
        if self.single is not None:
            more = self.put(arith.SelectOp(self.single, self.number(0), more))
        extents = [more, *one.alloc.extents[1:]]
        old = self.rows_of(buffer, rows, extents)
        moved = transfer(old, self.rows_of(buffer, self.number(0), extents), extents)
        self.add(moved)
        for op in moved.walk():
            op.location = self.last.location


def is_not_one(extent: SSAValue) -> bool:
    return array.constant_value(extent) != 1


def erase_unused(op: Operation) -> None:
    """Erase a temporary, with its views."""
    for use in tuple(op.results[0].uses):
        erase_unused(use.operation)
    Rewriter.erase_op(op)

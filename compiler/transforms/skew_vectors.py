"""Run some steps of a loop over vectors together, block by block: time skewing.

A step of a stencil along a line goes over all of its vectors. Where these are larger than the first cache,
each step takes them from the second one. Here four steps become one loop over blocks of 512 elements, in
which each step stays a line of the cache behind the one before: a block that is in the first cache goes
through all four. `skew-steps` does the same with rows of grids.

Before::

    func.func @f(%x : memref<?xf64>, %steps : index, %n : index) {
      %c1 = arith.constant 1 : index
      %t = array.alloc(%n) : memref<?xf64>
      %trips, %u, %v = array.loop %k to %steps
          carry(%a = %x : memref<?xf64>, %b = %t : memref<?xf64>) do {
        array.map(%n) ins(%a, %a : memref<?xf64>, memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {
        ^bb0(%e : f64, %g : f64):
          %s = arith.mulf %e, %g : f64
          array.yield %s : f64
        }
        array.yield %b, %a : memref<?xf64>, memref<?xf64>
      }
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>>
    func.func @f(%x: memref<?xf64>, %steps: index, %n: index) {
      %c1 = arith.constant 1 : index
      %t = array.alloc(%n) : memref<?xf64>
      %0 = arith.constant 0 : index
      %1 = arith.constant 8 : index
      %2 = memref.dim %x, %0 : memref<?xf64>
      %3 = arith.muli %1, %2 : index
      %4 = arith.addi %0, %3 : index
      %5 = memref.dim %t, %0 : memref<?xf64>
      %6 = arith.muli %1, %5 : index
      %7 = arith.addi %4, %6 : index
      %8 = arith.constant 131072 : index
      %9 = arith.cmpi sgt, %7, %8 : index
      %10 = arith.constant 4 : index
      %11 = arith.constant 2048 : index
      %12 = arith.cmpi sge, %n, %11 : index
      %13 = arith.andi %9, %12 : i1
      %trips = arith.maxsi %steps, %0 : index
      %14 = arith.divsi %trips, %10 : index
      %15 = arith.select %13, %14, %0 : index
      %16 = arith.muli %15, %10 : index
      %17 = arith.subi %trips, %16 : index
      %18 = arith.constant 535 : index
      %19 = arith.addi %n, %18 : index
      %20 = arith.constant 512 : index
      %21 = arith.divsi %19, %20 : index
      %22 = array.loop %23 to %15 do {
        %24 = arith.muli %23, %10 : index
        %25 = arith.constant 512 : index
        %26 = array.loop %block to %21 do {
          %27 = arith.muli %block, %25 : index
          %28 = arith.constant 8 : index
          %29 = arith.constant 0 : index
          %30 = arith.constant 16 : index
          %31 = arith.constant 1 : index
          %32, %33, %34 = array.loop %k to %10 carry(%a = %x : memref<?xf64>, %b = %t : memref<?xf64>) do {
            %35 = arith.muli %k, %28 : index
            %first = arith.subi %27, %35 : index
            %36 = arith.subi %n, %30 : index
            %37 = arith.addi %first, %25 : index
            %38 = arith.cmpi slt, %first, %30 : index
            %39 = arith.cmpi sgt, %first, %36 : index
            %40 = arith.select %39, %n, %first : index
            %41 = arith.select %38, %29, %40 : index
            %42 = arith.cmpi slt, %37, %30 : index
            %43 = arith.cmpi sgt, %37, %36 : index
            %44 = arith.select %43, %n, %37 : index
            %45 = arith.select %42, %29, %44 : index
            %count = arith.subi %45, %41 : index
            %46 = arith.cmpi sgt, %count, %29 : index
            %47 = arith.cmpi eq, %41, %29 : index
            %48 = arith.andi %46, %47 : i1
            %49 = arith.addi %41, %count : index
            %50 = arith.cmpi sgt, %count, %29 : index
            %51 = arith.cmpi eq, %49, %n : index
            %52 = arith.andi %50, %51 : i1
            %a_1 = array.view %a[%41] dims [0] extents(%count) steps(%31) : memref<?xf64> -> !row
            %b_1 = array.view %b[%41] dims [0] extents(%count) steps(%31) : memref<?xf64> -> !row
            array.map(%count) ins(%a_1, %a_1 : !row, !row) outs(%b_1 : !row) kinds ["store"] {
            ^bb0(%e: f64, %g: f64):
              %s = arith.mulf %e, %g : f64
              array.yield %s : f64
            }
            array.yield %b, %a : memref<?xf64>, memref<?xf64>
          }
          array.yield
        }
        array.yield
      }
      %trips_1, %u, %v = array.loop %k_1 to %17
          carry(%a_2 = %x : memref<?xf64>, %b_2 = %t : memref<?xf64>) do {
        %k_2 = arith.addi %16, %k_1 : index
        array.map(%n) ins(%a_2, %a_2 : memref<?xf64>, memref<?xf64>)
            outs(%b_2 : memref<?xf64>) kinds ["store"] {
        ^bb0(%e_1: f64, %g_1: f64):
          %s_1 = arith.mulf %e_1, %g_1 : f64
          array.yield %s_1 : f64
        }
        array.yield %b_2, %a_2 : memref<?xf64>, memref<?xf64>
      }
      func.return
    }

Maps of a few elements at an end of the vectors (`exchange-copied` and `step-on-tape` copy what no step
changes) go with the first block of their step, or with the last one.

Legality: let a step's blocks begin and end nowhere near an end of the vectors (`MARGIN`). Then what touches
an element there is in the first block of each step, or in the last, and these come in the order of the steps.
All other elements are touched by the one long map of each step alone. What a later step does with such an
element comes behind what an earlier one does, if no map reaches further than it stays behind. Each element
has the same operations in the same order: values keep their bits.

Kept: loops that do anything but maps over vectors, or whose maps may raise; sums; steps with two long maps;
vectors that are in the first cache; and steps each of which has a row of a tape: the caches fetch rows ahead
that are gone through in one piece, and from the third cache blocks of four rows took 1.03x of the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.affine import Affine
from ..analysis.carried_cells import is_outside
from ..analysis.dependence import Problem
from ..rules.rule import rank_of
from .block_rows import is_pure
from .counters import in_groups
from .fuse_rows import FusedRows, Rows
from .hoist_checks import Before, is_counted
from .memory_effects import functions
from .row_runs import Analyses, Run, Use, Walk, uses_of
from .skew_steps import (
    bytes_of,
    come_back,
    copies_of,
    have_fixed_extents,
    invariants,
    may_skew,
    step_of,
)

TOGETHER = 4
"""How many steps run together."""
BLOCK = 512
"""The elements of a block: those of a dozen vectors are in the first cache."""
BEHIND = 8
"""The elements that a step stays behind the one before: blocks of all steps begin at lines."""
REACH = 3
"""How many elements before its own, and behind it, a point may touch."""
NARROW = 4
"""The most elements of a map at an end."""
MARGIN = 16
"""The elements at either end that are in one block: a point that touches what is at an end is there."""
MOST = 4
"""The most maps of a step."""
CACHE = 1 << 17
"""The bytes of vectors that stay in the first cache, or near it, from one step to the next."""
LONG = 4 * BLOCK
"""The elements of vectors that have enough blocks."""


@dataclass(frozen=True)
class SkewVectors(ModulePass):
    """Run some steps of a loop over vectors together, block by block."""

    name = "skew-vectors"
    cache: int = CACHE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in [one for one in function.walk() if isinstance(one, array.LoopOp)]:
                if is_steps(loop) and come_back(loop, TOGETHER) and have_fixed_extents(loop):
                    skew(loop, function, self.cache)


def is_steps(loop: array.LoopOp) -> bool:
    """True for a counted loop of maps over vectors, and index arithmetic."""
    ops = [*loop.body.block.ops]
    maps = [op for op in ops if isinstance(op, array.MapOp)]
    return (
        is_counted(loop)
        and not loop.attributes
        and 0 < len(maps) <= MOST
        and all(len(m.extents) == 1 and may_skew(m) for m in maps)
        and all(isinstance(op, array.MapOp) or is_pure(op) for op in ops)
    )


def skew(loop: array.LoopOp, function: func.FuncOp, cache: int) -> None:
    """Put a loop over several steps at a time before the loop, which does those that are left."""
    if not Steps(loop, Analyses(function)).are_near():
        return
    copies, before = copies_of(loop, TOGETHER, ()), Before(loop)
    steps = Steps(copies, Analyses(function))
    size = None
    if steps.are_orderly():
        size = bytes_of(Run(steps.long[:1], [0]), copies, steps.analyses, before)
    Rewriter.erase_op(copies)
    if size is None:
        return
    for op in invariants(loop):
        op.detach()
        before.insert(op)
    Skewed(loop, steps).write(before.compare("sgt", size, before.constant(cache)), before)


class Steps:
    """Copies of the body of a loop, one behind the other: what their maps touch."""

    def __init__(self, copies: array.LoopOp, analyses: Analyses) -> None:
        self.copies, self.analyses = copies, analyses
        self.maps = [op for op in copies.body.block.ops if isinstance(op, array.MapOp)]
        self.of_one = len(self.maps) // TOGETHER
        self.at_ends = [self._is_narrow(op) for op in self.maps]
        self.long = [op for op, narrow in zip(self.maps, self.at_ends, strict=True) if not narrow]
        self.first = Affine()
        """The element that the first point of the long map stores to."""
        self.ends: list[bool] = []
        """Of each map of a step whether it goes along the other end of the vectors than the first one."""

    def are_orderly(self) -> bool:
        """Whether each step may stay a line behind the one before."""
        if len(self.long) != TOGETHER or not self.are_near():
            return False
        for op, narrow in zip(self.maps[: self.of_one], self.at_ends, strict=False):
            if narrow:
                end = self._end_of(op)
                if end is None:
                    return False
                self.ends.append(end)
            else:
                self.ends.append(False)
        return self._stay_behind() and self._walk_alike()

    def are_near(self) -> bool:
        """Whether long maps touch what is near them alone: so it is of the loop if it is of copies."""
        if not self.long or not all(map(self._is_row, self.long)):
            return False
        written = self.analyses.walk(self.long[0].outs[0])
        if written is None:
            return False
        self.first = written.start
        return all(map(self._is_near, self.long))

    def _is_narrow(self, op: array.MapOp) -> bool:
        problem = Problem(self.analyses.dependence, None)
        problem.at_least(Affine(constant=NARROW + 1), self.analyses.affine(op.extents[0]), 0)
        return not problem.may_hold()

    def _is_row(self, op: array.MapOp) -> bool:
        """Whether a map that gathers has the elements around those of its window, and no others."""
        how = op.gathers
        if how is None:
            return True
        shifts = [s[0] for s in how.shifts]
        more = self.analyses.affine(op.extents[0]) - self.analyses.affine(how.window[0])
        if how.origin or not shifts or min(shifts) != 0:
            return False
        return more == Affine(constant=max(shifts))

    def _walk(self, use: Use) -> Walk | None:
        """How a map goes along a vector; None where it goes along a row of a matrix, as of a tape."""
        walk = self.analyses.walk(use.operand)
        along = walk is not None and walk.step == 1 and rank_of(walk.base) == 1
        return walk if along else None

    def _is_near(self, op: array.MapOp) -> bool:
        """Whether each point touches elements near its own alone, or what stands still."""
        how = op.gathers
        back = 0 if how is None else max((s[0] for s in how.shifts), default=0)
        for use in uses_of(op):
            walk = self._walk(use)
            if walk is None and (use.written or not self._stands_still(use.operand)):
                return False
            away = Affine() if walk is None else walk.start - self.first
            least = away.constant - (0 if use.written else back)
            if not away.is_constant or least < -REACH or away.constant > REACH:
                return False
        return True

    def _stands_still(self, operand: SSAValue) -> bool:
        """Whether an operand is the same in each step, and none changes it."""
        if not is_outside(operand, self.copies):
            return False
        written = (use.operand for op in self.maps for use in uses_of(op) if use.written)
        return not any(self.analyses.alias.may_alias(operand, other) for other in written)

    def _end_of(self, op: array.MapOp) -> bool | None:
        """Whether a narrow map goes along the other end of the vectors; None where it is elsewhere."""
        length = self.analyses.affine(self.long[0].extents[0])
        found: set[bool] = set()
        for use in uses_of(op):
            walk = self._walk(use)
            if walk is None or op.gathers is not None:
                return None
            away = walk.start - self.first
            other = not away.is_constant
            away = away - length if other else away
            if not away.is_constant or abs(away.constant) > REACH:
                return None
            found.add(other)
        return found.pop() if len(found) == 1 else None

    def _stay_behind(self) -> bool:
        """Whether no long map touches what an earlier step's has not done with."""
        for (j, earlier), (k, later) in combinations(enumerate(self.long), 2):
            for a, b in product(uses_of(earlier), uses_of(later)):
                if a.written or b.written:
                    behind = self.analyses.distance(earlier, a, later, b)
                    if behind is None or behind > BEHIND * (k - j):
                        return False
        return True

    def _walk_alike(self) -> bool:
        """Whether what may be one memory is walked in one way by all maps."""
        alias = self.analyses.alias
        uses = [use for op in self.maps for use in uses_of(op)]
        for a, b in combinations(uses, 2):
            if not (a.written or b.written) or not alias.may_alias(a.operand, b.operand):
                continue
            if alias.apart_in_turn(a.operand, b.operand):
                continue
            if not self.analyses.walks_alike(a.operand, b.operand):
                return False
        return True


@dataclass(frozen=True)
class Skewed:
    """A loop of steps of which some run together."""

    loop: array.LoopOp
    steps: Steps

    def write(self, large: SSAValue, before: Before) -> None:
        """Put the loop over several steps before the loop, which does those that are left."""
        loop, long = self.loop, self.long_map(self.loop.body.block)
        times = before.constant(TOGETHER)
        many = before.compare("sge", long.extents[0], before.constant(LONG))
        large = before.emit(arith.AndIOp(large, many))
        groups = in_groups(loop, times, before, large)
        late = self.phase() + BEHIND * (TOGETHER - 1) + BLOCK - 1
        blocks = before.plus(long.extents[0], before.constant(late))
        blocks = before.emit(arith.DivSIOp(blocks, before.constant(BLOCK)))
        body = Block(arg_types=[IndexType()])
        before.insert(array.LoopOp(groups.number, [], body))
        self.write_blocks(body, times, blocks)
        groups.do_the_rest(loop)

    def long_map(self, block: Block) -> array.MapOp:
        maps = [op for op in block.ops if isinstance(op, array.MapOp)]
        return maps[self.steps.at_ends.index(False)]

    def phase(self) -> int:
        """How many elements before their own blocks begin, so that they store from lines on."""
        first = self.steps.first
        return first.constant % BEHIND if first.is_constant else 0

    def write_blocks(self, body: Block, times: SSAValue, blocks: SSAValue) -> None:
        """The loop over blocks of elements, and in it that over the steps."""
        loop, end = self.loop, array.YieldOp()
        start = arith.MuliOp(body.args[0], times)
        block = Block(arg_types=[IndexType()])
        block.args[0].name_hint = "block"
        body.add_ops([start, array.LoopOp(blocks, [], block), end])
        step, carried = step_of(loop, start.result, ())
        maps = [op for op in step.ops if isinstance(op, array.MapOp)]
        rows = FusedRows(Run(maps, [0] * len(maps)), ())
        rows.last, rows.body, rows.inside = end, block, True
        first = rows.put(arith.MuliOp(block.args[0], rows.number(BLOCK)))
        first = rows.more(first, -self.phase())
        block.add_ops([array.LoopOp(times, loop.carried, step), array.YieldOp()])
        rows.body = step
        late = rows.put(arith.MuliOp(step.args[0], rows.number(BEHIND)))
        low = rows.put(arith.SubiOp(first, late), "first")
        length, zero = self.long_map(step).extents[0], rows.number(0)
        own = self.part(rows, low, length)
        begins = self.at(rows, own, own.low, zero)
        ends = self.at(rows, own, rows.put(arith.AddiOp(own.low, own.count)), length)
        for op, narrow, other in zip(maps, self.steps.at_ends, self.steps.ends, strict=False):
            if narrow:
                count = rows.put(arith.SelectOp(ends if other else begins, op.extents[0], zero))
                rows.move(op, Rows(zero, count, zero))
            else:
                rows.move(op, own)
            Rewriter.erase_op(op)
        step.add_op(array.YieldOp(carried))
        for op in body.walk():
            if op.parent in (body, block, step) and not isinstance(op, array.MapOp):
                op.location = loop.location

    def part(self, rows: FusedRows, low: SSAValue, length: SSAValue) -> Rows:
        """The elements of a block: those near an end belong to the block with the end."""
        zero, margin = rows.number(0), rows.number(MARGIN)
        last = rows.put(arith.SubiOp(length, margin))
        cuts: list[SSAValue] = []
        for cut in (low, rows.more(low, BLOCK)):
            near = rows.put(arith.CmpiOp(cut, margin, "slt"))
            far = rows.put(arith.CmpiOp(cut, last, "sgt"))
            cut = rows.put(arith.SelectOp(far, length, cut))
            cuts.append(rows.put(arith.SelectOp(near, zero, cut)))
        return Rows(cuts[0], rows.put(arith.SubiOp(cuts[1], cuts[0]), "count"), zero)

    def at(self, rows: FusedRows, own: Rows, cut: SSAValue, end: SSAValue) -> SSAValue:
        """Whether a block that has elements begins, or ends, there."""
        some = rows.put(arith.CmpiOp(own.count, rows.number(0), "sgt"))
        there = rows.put(arith.CmpiOp(cut, end, "eq"))
        return rows.put(arith.AndIOp(some, there))

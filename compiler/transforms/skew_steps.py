"""Run some steps of a loop over grids together, row by row: time skewing.

A step of a stencil goes over all of its grids. Where they are larger than the cache, each step takes them
from memory again. Here four steps become one loop over blocks of rows, in which each step stays as many rows
behind the one before as it must: a row that is in the cache goes through all four. `fuse-rows` does the same
with the maps of one step; its loop and its delays (`row_runs`) serve here.

Before::

    func.func @f(%u : memref<?x?xf64>, %v : memref<?x?xf64>, %steps : index, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %t to %steps do {
        array.map(%n, %n) ins(%u : memref<?x?xf64>) outs(%v : memref<?x?xf64>) kinds ["add"] {
        ^bb0(%a : f64):
          array.yield %a : f64
        }
        %below = array.view %v[%c1, %c0] dims [0, 1] extents(%n, %n) steps(%c1, %c1)
            : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
        array.map(%n, %n) ins(%below : memref<?x?xf64, strided<[?, 1]>>)
            outs(%u : memref<?x?xf64>) kinds ["store"] {
        ^bb0(%a : f64):
          array.yield %a : f64
        }
        array.yield
      }
      func.return
    }

After, with `together=2`::

    !rows = memref<?x?xf64, strided<[?, 1]>>
    !grid = memref<?x?xf64>
    func.func @f(%u: !grid, %v: !grid, %steps: index, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 0 : index
      %1 = arith.constant 8 : index
      %2 = memref.dim %u, %0 : !grid
      %3 = arith.muli %1, %2 : index
      %4 = arith.constant 1 : index
      %5 = memref.dim %u, %4 : !grid
      %6 = arith.muli %3, %5 : index
      %7 = arith.addi %0, %6 : index
      %8 = memref.dim %v, %0 : !grid
      %9 = arith.muli %1, %8 : index
      %10 = memref.dim %v, %4 : !grid
      %11 = arith.muli %9, %10 : index
      %12 = arith.addi %7, %11 : index
      %13 = arith.constant 131072 : index
      %14 = arith.cmpi sgt, %12, %13 : index
      %below = array.view %v[%c1, %c0] dims [0, 1] extents(%n, %n) steps(%c1, %c1) : !grid -> !rows
      %15 = arith.constant 2 : index
      %trips = arith.maxsi %steps, %0 : index
      %16 = arith.divsi %trips, %15 : index
      %17 = arith.select %14, %16, %0 : index
      %18 = arith.muli %17, %15 : index
      %19 = arith.subi %trips, %18 : index
      %20 = array.loop %21 to %17 do {
        %22 = arith.muli %21, %15 : index
        %23 = arith.constant 0 : index
        %n_1 = arith.maxsi %n, %23 : index
        %24 = arith.constant 2 : index
        %25 = arith.addi %n_1, %24 : index
        %26 = arith.constant 1 : index
        %27 = arith.maxsi %n, %26 : index
        %28 = arith.constant 512 : index
        %29 = array.floordiv %28, %27 : index
        %30 = arith.maxsi %29, %26 : index
        %31 = arith.muli %27, %25 : index
        %32 = arith.constant 8192 : index
        %33 = arith.cmpi slt, %31, %32 : index
        %34 = arith.select %33, %25, %30 : index
        %35 = arith.minsi %34, %25 : index
        %rows = arith.maxsi %35, %26 : index
        %36 = arith.constant -1 : index
        %37 = arith.addi %25, %36 : index
        %38 = arith.addi %37, %rows : index
        %steps_1 = array.floordiv %38, %rows : index
        %39 = array.loop %step to %steps_1 do {
          %40 = arith.muli %step, %rows : index
          %41 = array.loop %t to %15 do {
            %43 = arith.muli %t, %26 : index
            %first = arith.subi %40, %43 : index
            %44 = arith.addi %first, %rows : index
            %45 = arith.minsi %44, %n_1 : index
            %46 = arith.maxsi %first, %23 : index
            %47 = arith.subi %45, %46 : index
            %count = arith.maxsi %47, %23 : index
            %u_1 = array.view %u[%46, %23] dims [0, 1] extents(%count, %n) steps(%26, %26)
                : !grid -> !rows
            %v_1 = array.view %v[%46, %23] dims [0, 1] extents(%count, %n) steps(%26, %26)
                : !grid -> !rows
            array.map(%count, %n) ins(%u_1 : !rows) outs(%v_1 : !rows) kinds ["add"] {
            ^bb0(%a: f64):
              array.yield %a : f64
            }
            %48 = arith.addi %first, %36 : index
            %49 = arith.addi %48, %rows : index
            %50 = arith.minsi %49, %n_1 : index
            %51 = arith.maxsi %48, %23 : index
            %52 = arith.subi %50, %51 : index
            %count_1 = arith.maxsi %52, %23 : index
            %below_1 = array.view %below[%51, %23] dims [0, 1] extents(%count_1, %n) steps(%26, %26)
                : !rows -> !rows
            %u_2 = array.view %u[%51, %23] dims [0, 1] extents(%count_1, %n) steps(%26, %26)
                : !grid -> !rows
            array.map(%count_1, %n) ins(%below_1 : !rows) outs(%u_2 : !rows) kinds ["store"] {
            ^bb0(%a_1: f64):
              array.yield %a_1 : f64
            }
            array.yield
          }
          array.yield
        }
        array.yield
      }
      %trips_1 = array.loop %t_1 to %19 do {
        %53 = arith.addi %18, %t_1 : index
        array.map(%n, %n) ins(%u : !grid) outs(%v : !grid) kinds ["add"] {
        ^bb0(%a_2: f64):
          array.yield %a_2 : f64
        }
        array.map(%n, %n) ins(%below : !rows) outs(%u : !grid) kinds ["store"] {
        ^bb0(%a_3: f64):
          array.yield %a_3 : f64
        }
        array.yield
      }
      func.return
    }

A gradient's forward sweep steps from one version of a grid on its tape to the next, and copies the borders
that no step changes. No row of a step has to wait for these, so the four steps do them first.

Legality is that of `fuse-rows`: the maps of four copies of the body must be one run. So each element has the
same operations, and gets what is added to it in the same order: the values keep their bits.

Kept: loops that do anything but maps, or whose maps may raise; sums over rows, whose order would change;
vectors, which are in the cache; and steps that cannot follow within a few rows. Steps with temporaries are
for `fuse-rows` alone: the rows that several of them still need are dearer than what they save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.affine import Affine
from ..analysis.carried_cells import is_outside
from ..analysis.dependence import Dependence, Problem
from ..rules.builders import element_of
from .block_rows import is_pure
from .counters import in_groups
from .fuse_rows import FusedRows
from .hoist_checks import Before, is_counted
from .memory_effects import functions
from .row_runs import Analyses, Run, runs_of, uses_of

TOGETHER = 4
"""How many steps run together; half as many where they cannot."""
MOST = 3
"""The most maps of a step: each has two nests then, and is compared with all others."""
BORDERS = 4
"""The most maps of a step beside these that go along a border."""
NARROW = 4
"""The most rows, or columns, of a border."""
CACHE = 1 << 17
"""The bytes of grids that stay in the first cache, or near it, from one step to the next."""


@dataclass(frozen=True)
class SkewSteps(ModulePass):
    """Run some steps of a loop over grids together, row by row."""

    name = "skew-steps"
    cache: int = CACHE
    together: int = TOGETHER

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in [one for one in function.walk() if isinstance(one, array.LoopOp)]:
                if is_steps(loop):
                    skew(loop, function, self)


def is_steps(loop: array.LoopOp) -> bool:
    """True for a counted loop of maps, some of them over grids, and index arithmetic."""
    ops = [*loop.body.block.ops]
    maps = [op for op in ops if isinstance(op, array.MapOp)]
    return (
        is_counted(loop)
        and not loop.attributes
        and len(maps) <= MOST + BORDERS
        and any(len(m.extents) > 1 for m in maps)
        and all(map(may_skew, maps))
        and all(isinstance(op, array.MapOp) or is_pure(op) for op in ops)
    )


def may_skew(op: array.MapOp) -> bool:
    return not op.attributes and all(map(is_pure, op.body.block.ops))


def skew(loop: array.LoopOp, function: func.FuncOp, options: SkewSteps) -> None:
    """Put a loop over several steps at a time before the loop, which does those that are left."""
    ahead = borders(loop, function)
    if sum(isinstance(op, array.MapOp) for op in loop.body.block.ops) - len(ahead) > MOST:
        return
    for times in range(options.together, 1, -1):
        if not come_back(loop, times) or not have_fixed_extents(loop):
            continue
        copies = copies_of(loop, times, ahead)
        analyses = Analyses(function)
        found = one_run(copies, times, analyses)
        before = Before(loop)
        size = None if found is None else bytes_of(found[0], copies, analyses, before)
        Rewriter.erase_op(copies)
        if found is not None and size is not None:
            large = before.compare("sgt", size, before.constant(options.cache))
            for op in invariants(loop):
                op.detach()
                before.insert(op)
            Skewed(loop, times, *found, ahead).write(large, before)
            return


def borders(loop: array.LoopOp, function: func.FuncOp) -> Sequence[array.MapOp]:
    """The maps along borders, where no other map touches before them what they touch: all steps may do these
    first. None of them where one may not."""
    maps = [op for op in loop.body.block.ops if isinstance(op, array.MapOp)]
    if len(maps) == 1:
        return ()
    dependence = Analyses(function).dependence
    narrow = [op for op in maps if is_narrow(op, dependence)]
    for at, other in enumerate(maps):
        for op in narrow if other not in narrow else ():
            levels = (loop, None) if at < maps.index(op) else (loop,)
            for a, b in product(uses_of(other), uses_of(op)):
                if (a.written or b.written) and any(
                    dependence.may_meet(a.access(other), b.access(op), level) for level in levels
                ):
                    return ()
    return narrow if len(narrow) < len(maps) else ()


def is_narrow(op: array.MapOp, dependence: Dependence) -> bool:
    """Whether a map goes along a few rows, or a few columns."""
    for extent in op.extents if len(op.extents) > 1 else ():
        problem = Problem(dependence, None)
        number = dependence.footprints.subscripts.affine(extent)
        problem.at_least(Affine(constant=NARROW + 1), number, 0)
        if not problem.may_hold():
            return True
    return False


def come_back(loop: array.LoopOp, times: int) -> bool:
    """Whether the carried grids are where they were after so many iterations."""
    grids = [*loop.body_carried]
    if any(v not in grids for v in loop.yielded):
        return False
    place = [*range(len(grids))]
    for _ in range(times):
        place = [place[grids.index(v)] for v in loop.yielded]
    return place == [*range(len(grids))]


def copies_of(loop: array.LoopOp, times: int, without: Sequence[Operation]) -> array.LoopOp:
    """A loop before the loop, to look at, whose body is that of so many iterations, without some maps."""
    old, count, block = loop.body.block, loop.count, loop.parent
    assert count is not None
    assert block is not None
    body = Block(arg_types=[a.type for a in old.args])
    number = arith.ConstantOp(IntegerAttr(1, IndexType()))
    body.add_op(number)
    iteration: SSAValue = body.args[0]
    carried: Sequence[SSAValue] = body.args[1:]
    for _ in range(times):
        carried = copied(old, body, [iteration, *carried], without)
        following = arith.AddiOp(iteration, number.result)
        body.add_op(following)
        iteration = following.result
    body.add_op(array.YieldOp(carried))
    made = array.LoopOp(count, loop.carried, body)
    block.insert_op_before(made, loop)
    return made


def copied(
    old: Block, new: Block, arguments: Sequence[SSAValue], without: Sequence[Operation]
) -> list[SSAValue]:
    """Add the ops of one body to another, with other arguments, and without some; what it yields then."""
    values: dict[SSAValue, SSAValue] = dict(zip(old.args, arguments, strict=True))
    for op in old.ops:
        if not isinstance(op, array.YieldOp) and op not in without:
            new.add_op(op.clone(values))
    assert old.last_op is not None
    return [values.get(v, v) for v in old.last_op.operands]


def one_run(copies: array.LoopOp, times: int, analyses: Analyses) -> tuple[Run, int] | None:
    """The maps of the first copy, where all copies are one run, each equally many rows behind the one before;
    with that number. None where they are not, where a map adds up rows, and for steps that need not stay
    behind, which `block-rows` has."""
    maps = [op for op in copies.body.block.ops if isinstance(op, array.MapOp)]
    run = next(runs_of(copies.body.block, analyses))
    written = [use.operand for op in maps for use in uses_of(op) if use.written]
    if len(run.maps) != len(maps) or run.waiting or not all(map(analyses.walk, written)):
        return None
    of_one = len(maps) // times
    behind = run.shifts[of_one] - run.shifts[0]
    if behind < 1 or any(
        b - a != behind for a, b in zip(run.shifts, run.shifts[of_one:], strict=False)
    ):
        return None
    return Run(run.maps[:of_one], run.shifts[:of_one]), behind


def invariants(loop: array.LoopOp) -> list[Operation]:
    """The ops of the body, but for maps, that are the same in all iterations."""
    found: list[Operation] = []
    for op in loop.body.block.ops:
        varying = (o for o in op.operands if not is_outside(o, loop) and o.owner not in found)
        if is_pure(op) and not isinstance(op, array.YieldOp) and not any(varying):
            found.append(op)
    return found


def have_fixed_extents(loop: array.LoopOp) -> bool:
    """Whether all maps of the loop have as many points in each iteration."""
    fixed = invariants(loop)
    return all(
        is_outside(extent, loop) or extent.owner in fixed
        for op in loop.body.block.ops
        if isinstance(op, array.MapOp)
        for extent in (*op.extents, *op.window)
    )


@dataclass(frozen=True)
class Skewed:
    """A loop of steps of which some run together."""

    loop: array.LoopOp
    times: int
    run: Run
    """The maps of one step."""
    behind: int
    """How many rows a step stays behind the one before."""
    ahead: Sequence[array.MapOp]
    """The maps that all steps do first."""

    def write(self, large: SSAValue, before: Before) -> None:
        """Put the loop over several steps before the loop, which does those that are left."""
        times, body = before.constant(self.times), Block(arg_types=[IndexType()])
        groups = in_groups(self.loop, times, before, large)
        before.insert(array.LoopOp(groups.number, [], body))
        self.write_blocks(body, times)
        groups.do_the_rest(self.loop)

    def write_blocks(self, body: Block, times: SSAValue) -> None:
        """The loop over blocks of rows, and in it that over the steps."""
        end = array.YieldOp()
        start = arith.MuliOp(body.args[0], times)
        body.add_ops([start, end])
        if self.ahead:
            maps = [op for op in self.loop.body.block.ops if isinstance(op, array.MapOp)]
            along, carried = step_of(
                self.loop, start.result, [m for m in maps if m not in self.ahead]
            )
            along.add_op(array.YieldOp(carried))
            body.insert_op_before(array.LoopOp(times, self.loop.carried, along), end)
        step, carried = step_of(self.loop, start.result, self.ahead)
        maps = [op for op in step.ops if isinstance(op, array.MapOp)]
        latest = [shift + (self.times - 1) * self.behind for shift in self.run.shifts]
        rows = FusedRows(Run(maps, latest), ())
        rows.last, rows.together = end, self.times
        models = {op.extents[0]: op for op in maps}
        counts = {extent: rows.count_of(op) for extent, op in models.items()}
        size, blocks = rows.sizes(counts)
        block = Block(arg_types=[IndexType()])
        block.args[0].name_hint = "step"
        rows.put(array.LoopOp(blocks, [], block))
        first = arith.MuliOp(block.args[0], size)
        block.add_ops([first, array.LoopOp(times, self.loop.carried, step), array.YieldOp()])
        rows.body, rows.inside = step, True
        late = rows.put(arith.MuliOp(step.args[0], rows.number(self.behind)))
        low = rows.put(arith.SubiOp(first.result, late), "first")
        for op, shift in zip(maps, self.run.shifts, strict=True):
            rows.move(op, rows.rows_of_step(shift, low, size, counts[op.extents[0]], late=True))
            Rewriter.erase_op(op)
        step.add_op(array.YieldOp(carried))
        for op in body.walk():
            if op.parent in (body, block, step) and not isinstance(op, array.MapOp):
                op.location = self.loop.location


def step_of(
    loop: array.LoopOp, start: SSAValue, without: Sequence[array.MapOp]
) -> tuple[Block, list[SSAValue]]:
    """The body of a loop over the steps from `start` on, without some maps; what it yields."""
    old = loop.body.block
    step = Block(arg_types=[a.type for a in old.args])
    for mine, theirs in zip(step.args, old.args, strict=True):
        mine.name_hint = theirs.name_hint
    iteration = arith.AddiOp(start, step.args[0])
    iteration.location = loop.location
    step.add_op(iteration)
    carried = copied(old, step, [iteration.result, *step.args[1:]], without)
    for op in reversed(tuple(step.ops)):
        if is_pure(op) and not any(r.uses or r in carried for r in op.results):
            Rewriter.erase_op(op)
    return step, carried


def bytes_of(run: Run, loop: array.LoopOp, analyses: Analyses, before: Before) -> SSAValue:
    """What the grids of a step hold: of a tape one segment."""
    rank = max(len(m.extents) for m in run.maps)
    walks = (analyses.walk(use.operand) for m in run.maps for use in uses_of(m))
    entered = dict(zip(loop.body_carried, loop.carried, strict=True))
    total: SSAValue = before.constant(0)
    for base in dict.fromkeys(walk.base for walk in walks if walk is not None):
        grid = entered.get(base, base)
        axes = len(grid.type.get_shape()) if isinstance(grid.type, MemRefType) else 0
        if axes >= rank:
            size: SSAValue = before.constant(width_of(element_of(grid)))
            for axis in range(axes - rank, axes):
                extent = before.emit(memref.DimOp(grid, before.constant(axis)))
                size = before.emit(arith.MuliOp(size, extent))
            total = before.plus(total, size)
    return total


def width_of(element: Attribute) -> int:
    """The bytes of an element of an array."""
    number = element.element_type if isinstance(element, VectorType) else element
    lanes = element.get_shape()[0] if isinstance(element, VectorType) else 1
    bits = number.bitwidth if isinstance(number, FixedBitwidthType) else 64
    return lanes * ((bits + 7) // 8)

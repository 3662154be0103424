"""Unroll a loop over grids by two where a step has temporaries, so that two steps go row by row.

A step of a stencil that is stored in place goes through a temporary, of which `fuse-rows` keeps a few rows.
What no step changes (velocities, coefficients) each step takes from memory, all of it. Where the maps of two
steps are one run of `fuse-rows`, with all temporaries, two steps become one body: a row is taken once for
both.

Before::

    !grid = memref<?x?xf64>
    func.func @f(%u : !grid, %k : !grid, %steps : index, %n : index) {
      %trips = array.loop %t to %steps do {
        %w = array.alloc(%n, %n) : !grid
        array.map(%n, %n) ins(%u, %k : !grid, !grid) outs(%w : !grid) kinds ["store"] {
        ^bb0(%a : f64, %b : f64):
          %c = arith.mulf %a, %b : f64
          array.yield %c : f64
        }
        array.map(%n, %n) ins(%w : !grid) outs(%u : !grid) kinds ["store"] {
        ^bb0(%a : f64):
          array.yield %a : f64
        }
        array.yield
      }
      func.return
    }

After::

    !grid = memref<?x?xf64>
    func.func @f(%u: !grid, %k: !grid, %steps: index, %n: index) {
      %0 = arith.constant 2 : index
      %1 = arith.constant 0 : index
      %trips = arith.maxsi %steps, %1 : index
      %2 = arith.divsi %trips, %0 : index
      %3 = arith.muli %2, %0 : index
      %4 = arith.subi %trips, %3 : index
      %5 = arith.constant 1 : index
      %6 = array.loop %t to %2 do {
        %7 = arith.muli %t, %0 : index
        %8 = arith.addi %7, %1 : index
        %w = array.alloc(%n, %n) : !grid
        array.map(%n, %n) ins(%u, %k : !grid, !grid) outs(%w : !grid) kinds ["store"] {
        ^bb0(%a: f64, %b: f64):
          %c = arith.mulf %a, %b : f64
          array.yield %c : f64
        }
        array.map(%n, %n) ins(%w : !grid) outs(%u : !grid) kinds ["store"] {
        ^bb0(%a_1: f64):
          array.yield %a_1 : f64
        }
        %9 = arith.addi %7, %5 : index
        %w_1 = array.alloc(%n, %n) : !grid
        array.map(%n, %n) ins(%u, %k : !grid, !grid) outs(%w_1 : !grid) kinds ["store"] {
        ^bb0(%a_2: f64, %b_1: f64):
          %c_1 = arith.mulf %a_2, %b_1 : f64
          array.yield %c_1 : f64
        }
        array.map(%n, %n) ins(%w_1 : !grid) outs(%u : !grid) kinds ["store"] {
        ^bb0(%a_3: f64):
          array.yield %a_3 : f64
        }
        array.yield
      }
      %trips_1 = array.loop %t_1 to %4 do {
        %10 = arith.addi %3, %t_1 : index
        %w_2 = array.alloc(%n, %n) : !grid
        array.map(%n, %n) ins(%u, %k : !grid, !grid) outs(%w_2 : !grid) kinds ["store"] {
        ^bb0(%a_4: f64, %b_2: f64):
          %c_2 = arith.mulf %a_4, %b_2 : f64
          array.yield %c_2 : f64
        }
        array.map(%n, %n) ins(%w_2 : !grid) outs(%u : !grid) kinds ["store"] {
        ^bb0(%a_5: f64):
          array.yield %a_5 : f64
        }
        array.yield
      }
      func.return
    }

Each element has the same operations in the same order: values keep their bits. Two steps, because the rows of
four are more than the first cache holds (the reverse sweep of `upwind`, in C: 0.79x of the time of single
steps, with four 0.92x).

Kept: what `skew-steps` keeps, but for temporaries; vectors; and steps that store to every grid, which gain
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..rules.rule import rank_of
from .block_rows import is_pure
from .counters import in_groups
from .hoist_checks import Before, is_counted
from .memory_effects import functions
from .rolling_buffers import is_temporary, worthwhile
from .row_runs import Analyses, Run, runs_of, uses_of
from .skew_steps import come_back, copied, copies_of, may_skew

TOGETHER = 2
"""How many steps are one body."""
MOST = 3
"""The most maps of a step: each is compiled three times then."""


@dataclass(frozen=True)
class UnrollSteps(ModulePass):
    """Unroll a loop over grids by two where a step has temporaries."""

    name = "unroll-steps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in [one for one in function.walk() if isinstance(one, array.LoopOp)]:
                if is_steps(loop) and come_back(loop, TOGETHER) and go_together(loop, function):
                    unroll(loop)


def is_steps(loop: array.LoopOp) -> bool:
    """True for a counted loop of maps over grids, temporaries and index arithmetic."""
    ops = [*loop.body.block.ops]
    maps = [op for op in ops if isinstance(op, array.MapOp)]
    return (
        is_counted(loop)
        and not loop.attributes
        and len(maps) <= MOST
        and all(len(m.extents) > 1 and may_skew(m) for m in maps)
        and any(map(is_temporary, ops))
        and all(isinstance(op, array.MapOp) or is_temporary(op) or is_pure(op) for op in ops)
    )


def go_together(loop: array.LoopOp, function: func.FuncOp) -> bool:
    """Whether `fuse-rows` will have one loop for the maps of two steps, and something gains by it."""
    copies = copies_of(loop, TOGETHER, ())
    ops, analyses = [*copies.body.block.ops], Analyses(function)
    run = next(runs_of(copies.body.block, analyses))
    found = worthwhile(run, analyses)
    together = (
        not run.waiting
        and found is not None
        and len(found[0].maps) == sum(isinstance(op, array.MapOp) for op in ops)
        and len(found[1]) == sum(map(is_temporary, ops))
        and reads_what_stays(run, analyses)
    )
    Rewriter.erase_op(copies)
    return together


def reads_what_stays(run: Run, analyses: Analyses) -> bool:
    """Whether the maps read a grid that none of them stores to."""
    uses = [use for op in run.maps for use in uses_of(op)]
    stored = {r for use in uses if use.written for r in analyses.effects.roots(use.operand)}
    rank = len(run.maps[0].extents)
    walks = [analyses.walk(use.operand) for use in uses if not use.written]
    return any(
        walk is not None
        and rank_of(walk.base) == rank
        and stored.isdisjoint(analyses.effects.roots(walk.base))
        for walk in walks
    )


def unroll(loop: array.LoopOp) -> None:
    """Put a loop of two steps before the loop, which does the one that may be left."""
    before, old = Before(loop), loop.body.block
    times = before.constant(TOGETHER)
    groups = in_groups(loop, times, before)
    body = Block(arg_types=[a.type for a in old.args])
    for mine, theirs in zip(body.args, old.args, strict=True):
        mine.name_hint = theirs.name_hint
    start, carried = arith.MuliOp(body.args[0], times), [*body.args[1:]]
    made: list[Operation] = [start]
    body.add_op(start)
    for k in range(TOGETHER):
        iteration = arith.AddiOp(start, before.constant(k))
        body.add_op(iteration)
        carried = copied(old, body, [iteration.result, *carried], ())
        made.append(iteration)
    made.append(array.YieldOp(carried))
    body.add_op(made[-1])
    for op in made:
        op.location = loop.location
    before.insert(array.LoopOp(groups.number, loop.carried, body))
    groups.do_the_rest(loop)

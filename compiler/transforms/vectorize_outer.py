"""Run a loop in blocks of iterations, each statement for a whole block, where the inner loops are serial.

A sum in the order of the program, or a running maximum, is computed one step after the other. But where the
iterations of a loop around it do not depend on each other, they may take each step side by side, in vectors:
the loop over the points of a block goes inside, scratch memory gets an axis for the points, and what does not
depend on the point is computed once for all of them. Runs before loops are raised to maps and before the
derivative: then the adjoint goes through the same blocks, in maps.

Before::

    func.func @f(
        %x : memref<?x?xf64>, %w : memref<?xf64>, %y : memref<?xf64>, %n : index, %d : index, %zero : f64
    ) {
      %s = memref.alloca() : memref<f64>
      %trips = array.loop %i to %n do {
        memref.store %zero, %s[] : memref<f64>
        %trips_1 = array.loop %e to %d do {
          %a = memref.load %x[%e, %i] : memref<?x?xf64>
          %b = memref.load %w[%e] : memref<?xf64>
          %c = arith.mulf %a, %b : f64
          %v = math.exp %c : f64
          %old = memref.load %s[] : memref<f64>
          %sum = arith.addf %old, %v : f64
          memref.store %sum, %s[] : memref<f64>
          array.yield
        }
        %r = memref.load %s[] : memref<f64>
        memref.store %r, %y[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(
        %x: memref<?x?xf64>, %w: memref<?xf64>, %y: memref<?xf64>, %n: index, %d: index, %zero: f64
    ) {
      %s = memref.alloca() : memref<f64>
      %0 = arith.constant 64 : index
      %1 = arith.constant 1 : index
      %2 = arith.subi %0, %1 : index
      %3 = arith.addi %n, %2 : index
      %4 = array.floordiv %3, %0 : index
      %5 = arith.constant 0 : index
      %6 = array.loop %block to %4 do {
        %start = arith.muli %block, %0 : index
        %7 = arith.subi %n, %start : index
        %8 = arith.minsi %7, %0 : index
        %points = arith.maxsi %8, %5 : index
        %s_1 = array.alloc(%points) : memref<?xf64>
        %9 = array.loop %point to %points do {
          memref.store %zero, %s_1[%point] : memref<?xf64>
          array.yield
        }
        %10 = array.loop %e to %d do {
          %11 = array.loop %point_1 to %points do {
            %i = arith.addi %start, %point_1 : index
            %a = memref.load %x[%e, %i] : memref<?x?xf64>
            %b = memref.load %w[%e] : memref<?xf64>
            %c = arith.mulf %a, %b : f64
            %v = math.exp %c : f64
            %old = memref.load %s_1[%point_1] : memref<?xf64>
            %sum = arith.addf %old, %v : f64
            memref.store %sum, %s_1[%point_1] : memref<?xf64>
            array.yield
          }
          array.yield
        }
        %12 = array.loop %point_2 to %points do {
          %r = memref.load %s_1[%point_2] : memref<?xf64>
          %i_1 = arith.addi %start, %point_2 : index
          memref.store %r, %y[%i_1] : memref<?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

Legal where a point reads of what points store only what it has stored itself, but for cells that are handed
on outside of the inner loops, and those go point by point (`analysis/point_loops` decides). So each element,
and each sum, has its own operations in their own order: no bit changes. Where something raises, the points
of that block run as they were written.

Kept: loops over `prange`, whose iterations are for threads; loops in which nothing goes step by step, or
nothing costs more than an addition; loops that read a column of what is not read again, unless each element
waits for a division, or the like, of the one before; branches that do more than compute; and loops over what
they overwrite, but for what a point has stored itself, or only adds to. What a point reads in an inner loop,
the same in each iteration, is read before that loop (`load_early`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.affine import affine
from ..analysis.alias import AliasAnalysis
from ..analysis.point_loops import PointLoop
from ..rules import evaluates_body
from .hoist_checks import is_counted
from .memory_effects import functions
from .point_blocks import PointBlocks
from .straight_points import TOTAL, expect_raises, load_early, load_late, straighten, unroll_maps

FEW = 16
"""A loop of fewer iterations, where that is known, is no block."""

LARGE = 400
"""Loops with more ops are kept: blocks of them would fit no cache, and take long to compile."""


@dataclass(frozen=True)
class VectorizeOuter(ModulePass):
    """Vectorize an outer loop: run blocks of its iterations side by side through the inner loops."""

    name = "vectorize-outer"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            vectorize_in(function, function.body.block)


def vectorize_in(function: func.FuncOp, block: Block) -> None:
    """Replace the outermost loops of the block for which that is legal, and worth it."""
    for op in tuple(block.ops):
        if array.RAISES in op.attributes or evaluates_body(op):
            continue
        if isinstance(op, array.LoopOp) and is_candidate(op) and replaced(function, op):
            continue
        for region in op.regions:
            for inner in region.blocks:
                vectorize_in(function, inner)


def is_candidate(loop: array.LoopOp) -> bool:
    """Counted loops with loops, or maps, of scalar code in them."""
    inside = [op for op in every_op(loop)[1:] if not is_within_raise(op, loop)]
    kept = {array.CLAIMED, array.EXCLUSIVE, array.SMALL}
    if not is_counted(loop) or loop.carried or kept & loop.attributes.keys() or len(inside) > LARGE:
        return False
    known = array.constant_value(loop.count) if loop.count is not None else None
    if known is not None and known < FEW:
        return False
    nested = any(isinstance(op, array.LoopOp | array.MapOp) for op in inside)
    if not nested or not may_cost(inside) or not all(is_known(op, loop) for op in inside):
        return False
    return not any(isinstance(op, array.LoopOp) and is_triangular(op, loop) for op in inside)


def is_triangular(inner: array.LoopOp, loop: array.LoopOp) -> bool:
    """The trips of an inner loop go by the counter: `PointLoop` would refuse it, after most of the work."""
    return inner.count is not None and loop.induction in affine(inner.count).terms


def may_cost(ops: Sequence[Operation]) -> bool:
    """False where it never pays, whatever is found of points: see `pays`. What a map leaves may be a sum."""
    steps = sum(isinstance(op, LINKS) for op in ops)
    steps += sum(len(op.outs) for op in ops if isinstance(op, array.MapOp))
    return steps >= LONG or any(isinstance(op, scf.IfOp) or is_costly(op) for op in ops)


def is_known(op: Operation, loop: array.LoopOp) -> bool:
    """Scalar code, and what becomes scalar code."""
    match op:
        case array.LoopOp():
            return is_counted(op) and not op.carried
        case array.AllocOp():
            return array.GROWABLE not in op.attributes
        case memref.DimOp():
            return not isinstance(op.source.owner, Operation) or not loop.is_ancestor(
                op.source.owner
            )
        case (
            memref.LoadOp() | memref.StoreOp() | array.ViewOp() | array.MapOp() | array.YieldOp()
            | scf.IfOp() | scf.YieldOp() | array.IndexOp() | array.RaiseIfOp() | array.CastOp()
        ):  # fmt: skip
            return True
        case _:
            return not op.regions and op.name.startswith(("arith.", "math.", "special."))


def is_within_raise(op: Operation, loop: array.LoopOp) -> bool:
    """The op is in a branch of the loop that always raises."""
    parent = op.parent_op()
    while parent is not None and parent is not loop:
        if array.RAISES in parent.attributes:
            return True
        parent = parent.parent_op()
    return False


def replaced(function: func.FuncOp, loop: array.LoopOp) -> bool:
    """Replace the loop by blocks, if that is legal and worth it."""
    copy = loop.clone()
    block = loop.parent
    assert block is not None
    block.insert_op_before(copy, loop)
    expect_raises(copy)
    branches = straighten(copy)
    extremes = unroll_maps(copy)
    load_early(copy, AliasAnalysis(function))
    worth = False
    if extremes is not None:
        points = PointLoop(function, copy, loop)
        worth = points.refusal() is None and all(e.fits(points) for e in extremes.values())
        if worth := worth and pays(points, branches):
            load_late(copy, points.alias)
            PointBlocks(function, loop, points, extremes).build()
    Rewriter.erase_op(copy)
    if worth:
        Rewriter.erase_op(loop)
    return worth


# What it costs.


def pays(points: PointLoop, branches: int) -> bool:
    """Inner loops go step by step, something costs more than an addition, and memory is read in order."""
    inner = [op for op in points.ops if isinstance(op, array.LoopOp)]
    costly = branches > 0 or any(is_costly(op) and points.varies(op) for op in points.ops)
    costly = costly or any(is_long(one, points) for one in inner if goes_step_by_step(one))
    steps = any(map(goes_step_by_step, inner)) or goes_along_chain(points)
    if not costly or not steps or is_in_place(points):
        return False
    return not points.columns() or any(waits_for_costly(loop, points) for loop in inner)


def is_in_place(points: PointLoop) -> bool:
    """Points overwrite what they read: beside that, a derivative would save what lies in scratch memory."""
    visible = points.written.keys() - points.private - points.carried
    loads = [op for op in points.ops if isinstance(op, memref.LoadOp)]
    met = {
        m for m in {op.memref for op in loads} if any(points.alias.may_alias(a, m) for a in visible)
    }
    return any(op.memref in met and not points.is_own(op) and not is_added_to(op) for op in loads)


def is_added_to(load: memref.LoadOp) -> bool:
    """What is loaded is only added to, in place: no derivative needs it."""
    uses = list(load.res.uses)
    added = uses[0].operation if len(uses) == 1 else None
    if isinstance(added, arith.SubfOp) and uses[0].index == 1:
        return False
    if not isinstance(added, arith.AddfOp | arith.SubfOp) or added.lhs is added.rhs:
        return False
    stored = [use.operation for use in added.result.uses]
    return len(stored) == 1 and all(
        isinstance(s, memref.StoreOp)
        and s.memref is load.memref
        and list(s.indices) == list(load.indices)
        for s in stored
    )


def is_costly(op: Operation) -> bool:
    return isinstance(op, arith.DivfOp) or (
        op.name.startswith(("math.", "special.")) and not isinstance(op, (*TOTAL, math.FmaOp))
    )


LONG = 6
"""Products and sums of a step that take longer, one after the other, than arrays of what is carried do."""


LINKS = (arith.MulfOp, arith.AddfOp, arith.SubfOp)


def is_long(loop: array.LoopOp, points: PointLoop) -> bool:
    """Whether a step is that long."""
    own = [op for op in loop.body.block.ops if isinstance(op, LINKS)]
    return sum(map(points.varies, own)) >= LONG


def goes_step_by_step(loop: array.LoopOp) -> bool:
    """Each iteration goes on with a number that the one before has left in a cell."""
    own = list(loop.body.block.ops)
    loaded = {op.memref for op in own if isinstance(op, memref.LoadOp) and is_float(op.res)}
    stored = {op.memref for op in own if isinstance(op, memref.StoreOp)}
    return any(is_fixed_place(memory, own, loop) for memory in loaded & stored)


def goes_along_chain(points: PointLoop) -> bool:
    """A number waits for one that the same point has stored to an array in the iteration before."""
    return any(is_link(op, points) for op in points.ops)


def is_link(op: Operation, points: PointLoop) -> TypeGuard[memref.LoadOp]:
    """The op reads what the iteration before has left in an array."""
    if not isinstance(op, memref.LoadOp) or not is_float(op.res):
        return False
    return op.memref in points.written.keys() & points.varying and points.is_handed_on(op)


def waits_for_costly(loop: array.LoopOp, points: PointLoop) -> bool:
    """An iteration waits for a division, say, of the one before: then rows may as well lie far apart."""
    late: set[SSAValue] = set()
    costly: set[SSAValue] = set()
    begun: set[SSAValue] = set()
    for op in loop.body.block.ops:
        if is_link(op, points):
            late.add(op.res)
            begun.add(op.memref)
        elif isinstance(op, memref.StoreOp):
            if op.value in costly and op.memref in begun:
                return True
        elif any(o in late for o in op.operands):
            late.update(op.results)
            if is_costly(op) or any(o in costly for o in op.operands):
                costly.update(op.results)
    return False


def is_float(value: SSAValue) -> bool:
    return isinstance(value.type, AnyFloat)


def is_fixed_place(memory: SSAValue, ops: list[Operation], loop: array.LoopOp) -> bool:
    """What is stored lies where it lay in the iteration before."""
    stores = [op for op in ops if isinstance(op, memref.StoreOp) and op.memref is memory]
    return all(
        not (isinstance(i.owner, Operation) and loop.is_ancestor(i.owner))
        and i is not loop.induction
        for s in stores
        for i in s.indices
    )

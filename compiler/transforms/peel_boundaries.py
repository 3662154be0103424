"""Take the first and last iterations out of a loop that asks in each whether it is one of them.

A reverse sweep that reads a neighbour's saved value has none at the edge and asks for it in each iteration:
a branch, or a subscript that is no sum, which keeps LLVM from making vectors. Which iterations they are is
known before the loop, where the condition compares the counter with a constant, or with the count less a
constant. These run by themselves; for the others the condition is decided. No iteration moves.

Before::

    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %i to %n do {
        %before = arith.subi %i, %c1 : index
        %j = arith.maxsi %before, %c0 : index
        %a = memref.load %x[%j] : memref<?xf64>
        memref.store %a, %y[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x: memref<?xf64>, %y: memref<?xf64>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 0 : index
      %trips = arith.maxsi %n, %0 : index
      %1 = arith.constant 1 : index
      %2 = arith.minsi %trips, %1 : index
      %3 = arith.subi %trips, %2 : index
      %4 = array.loop %i to %2 do {
        %before = arith.subi %i, %c1 : index
        %j = arith.maxsi %before, %c0 : index
        %a = memref.load %x[%j] : memref<?xf64>
        memref.store %a, %y[%i] : memref<?xf64>
        array.yield
      } {small}
      %5 = array.loop %k to %3 do {
        %i_1 = arith.addi %1, %k : index
        %a_1 = memref.load %x[%k] : memref<?xf64>
        memref.store %a_1, %y[%i_1] : memref<?xf64>
        array.yield
      }
      func.return
    }

Kept: loops that hold loops or whole-array work, those of conditions on data or on other counters, and those
that would lose more than a few iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, UnitAttr, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.affine import Affine, Subscripts
from ..diagnostics import locate
from ..rules import evaluates_body, is_whole_array
from .fold_constants import fold_in
from .hoist_checks import Before, is_counted
from .memory_effects import functions

MOST = 4
"""Iterations that are taken from one end, at most."""

LARGE = 200
"""Bodies of more ops are kept: they would be there three times."""


@dataclass(frozen=True)
class PeelBoundaries(ModulePass):
    """Peel iterations at the ends of a loop, where that decides conditions of the others."""

    name = "peel-boundaries"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            subscripts = Subscripts()
            for loop in list(leaves(function.body.block)):
                ends = Ends.of(loop, subscripts)
                if ends.decided and ends.first + ends.last > 0:
                    peel(loop, ends)


def leaves(block: Block) -> Iterator[array.LoopOp]:
    """The counted loops without loops and whole-array work in them."""
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
    claimed = {array.CLAIMED, array.EXCLUSIVE} & loop.attributes.keys()
    return (
        is_counted(loop)
        and len(every_op(loop)) <= LARGE
        and not loop.carried
        and not claimed
        and not any(
            isinstance(o, array.LoopOp | array.AllocOp) or is_whole_array(o)
            for o in every_op(loop)[1:]
        )
    )


@dataclass(frozen=True)
class Ends:
    """How many iterations of each end are apart, and what each op is in all others: a bool, or an operand."""

    first: int
    last: int
    decided: dict[Operation, bool]

    @staticmethod
    def of(loop: array.LoopOp, subscripts: Subscripts) -> Ends:
        first = last = 0
        decided: dict[Operation, bool] = {}
        for op in every_op(loop)[1:]:
            found = ends_of(op, loop, subscripts)
            if found is not None:
                decided[op] = found.holds
                first, last = max(first, found.first), max(last, found.last)
        return Ends(first, last, decided)


@dataclass(frozen=True)
class Edge:
    """What a comparison is in all iterations but for some at one end."""

    holds: bool
    first: int = 0
    last: int = 0


def ends_of(op: Operation, loop: array.LoopOp, subscripts: Subscripts) -> Edge | None:
    """What a comparison is, or whether the first operand of `max` or `min` is the one."""
    if not isinstance(op, arith.CmpiOp | arith.MaxSIOp | arith.MinSIOp):
        return None
    if not isinstance(op.lhs.type, IndexType):
        return None
    difference = subscripts.affine(op.lhs) - subscripts.affine(op.rhs)
    if isinstance(op, arith.MaxSIOp):
        return at_least(difference, loop, subscripts)
    if isinstance(op, arith.MinSIOp):
        return at_least(Affine() - difference, loop, subscripts)
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    return compared(predicate, difference, loop, subscripts)


def compared(
    predicate: str, difference: Affine, loop: array.LoopOp, subscripts: Subscripts
) -> Edge | None:
    """A comparison of the difference with 0."""
    one, swapped = Affine({}, 1), Affine() - difference
    match predicate:
        case "sge":
            return at_least(difference, loop, subscripts)
        case "sgt":
            return at_least(difference - one, loop, subscripts)
        case "sle":
            return at_least(swapped, loop, subscripts)
        case "slt":
            return at_least(swapped - one, loop, subscripts)
        case "eq" | "ne":
            above = at_least(difference - one, loop, subscripts)
            below = at_least(swapped - one, loop, subscripts)
            if above is None or below is None or not (above.holds or below.holds):
                return None
            ends = max(above.first, below.first), max(above.last, below.last)
            return Edge(predicate == "ne", *ends)
        case _:
            return None


def at_least(number: Affine, loop: array.LoopOp, subscripts: Subscripts) -> Edge | None:
    """`number >= 0`, where it is the counter or less the counter, plus what is known at one end."""
    assert loop.count is not None
    slope = number.terms.get(loop.induction, 0)
    if abs(slope) != 1:
        return None
    counter = Affine({loop.induction: slope})
    begin = number - counter  # in the first iteration
    end = begin + (subscripts.affine(loop.count) - Affine({}, 1)) * slope  # in the last one
    if begin.is_constant:
        # Up from `begin`: it holds from the iteration -begin on. Down: up to the iteration `begin`.
        before = -begin.constant if slope > 0 else begin.constant + 1
        return bounded(Edge(slope > 0, first=max(before, 0)))
    if end.is_constant:
        after = end.constant + 1 if slope > 0 else -end.constant
        return bounded(Edge(slope < 0, last=max(after, 0)))
    return None


def bounded(edge: Edge) -> Edge | None:
    return edge if edge.first <= MOST and edge.last <= MOST else None


def peel(loop: array.LoopOp, ends: Ends) -> None:
    """Two or three loops for one: the first iterations, those in between, the last ones."""
    assert loop.count is not None
    outside = Before(loop)
    rest = count = outside.emit(arith.MaxSIOp(loop.count, outside.constant(0)))
    loop.trips.replace_all_uses_with(count)
    start: SSAValue | None = None
    if ends.first:
        start = outside.emit(arith.MinSIOp(count, outside.constant(ends.first)))
        rest = outside.emit(arith.SubiOp(count, start))
        outside.insert(part(loop, start, None, small=True))
        start = outside.constant(ends.first)
    last = outside.emit(arith.MinSIOp(rest, outside.constant(ends.last))) if ends.last else rest
    if ends.last:
        rest = outside.emit(arith.SubiOp(rest, last))
    between = part(loop, rest, start, small=False)
    outside.insert(between)
    if ends.last:
        begin = outside.emit(arith.SubiOp(count, last))
        outside.insert(part(loop, last, begin, small=True))
    old, copies = every_op(loop), every_op(between)
    copy_of = dict(zip(old[1:], copies[len(copies) - len(old) + 1 :], strict=True))
    for op, holds in ends.decided.items():
        decide(copy_of[op], holds)
    fold_in(between.body.block)
    loop.detach()
    loop.erase()


def part(
    loop: array.LoopOp, count: SSAValue, start: SSAValue | None, *, small: bool
) -> array.LoopOp:
    """The loop over `count` iterations from `start` on."""
    body = Block(arg_types=[IndexType()])
    counter: SSAValue = body.args[0]
    counter.name_hint = loop.induction.name_hint
    if start is not None:
        at = arith.AddiOp(start, counter)
        locate(at, loop.location)
        at.result.name_hint = counter.name_hint
        counter.name_hint = "k"
        body.add_op(at)
        counter = at.result
    values: dict[SSAValue, SSAValue] = {loop.induction: counter}
    for op in loop.body.block.ops:
        body.add_op(op.clone(values))
    made = array.LoopOp(count, (), body)
    if small:
        made.attributes[array.SMALL] = UnitAttr()
    locate(made, loop.location)
    return made


def decide(op: Operation, holds: bool) -> None:
    """Put what is known in the place of a comparison, or of a choice by one."""
    if isinstance(op, arith.CmpiOp):
        known = arith.ConstantOp(IntegerAttr(int(holds), i1))
        known.location = op.location
        Rewriter.replace_op(op, known)
    else:
        Rewriter.replace_op(op, [], [op.operands[0 if holds else 1]])

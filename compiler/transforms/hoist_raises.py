"""Ask before a loop nest whether any of its iterations raises; run it without asking where none does.

A check of data (the domain of `math.log`, a divisor) keeps a loop from being vectorized, or raised to a
map. Where its condition depends on nothing that the nest computes, a small loop of conditions alone,
which is vectorized, comes first. If one holds, the nest as written runs, and raises where Python would,
with memory as Python leaves it. No raise moves.

Before::

    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %zero : f64) {
      %trips = array.loop %i to %n do {
        %v = memref.load %x[%i] : memref<?xf64>
        %negative = arith.cmpf olt, %v, %zero : f64
        array.raise_if %negative, "ValueError", "math domain error"
        %r = math.sqrt %v : f64
        memref.store %r, %y[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %zero : f64) {
      %raises = memref.alloca() : memref<i1>
      %false = arith.constant false
      memref.store %false, %raises[] : memref<i1>
      %asked = array.loop %j to %n do {
        %w = memref.load %x[%j] : memref<?xf64>
        %below = arith.cmpf olt, %w, %zero : f64
        %before = memref.load %raises[] : memref<i1>
        %any = arith.ori %before, %below : i1
        memref.store %any, %raises[] : memref<i1>
        array.yield
      }
      %bad = memref.load %raises[] : memref<i1>
      scf.if %bad {
        %trips_1 = array.loop %i_1 to %n do {
          %v_1 = memref.load %x[%i_1] : memref<?xf64>
          %negative_1 = arith.cmpf olt, %v_1, %zero : f64
          array.raise_if %negative_1, "ValueError", "math domain error"
          %r_1 = math.sqrt %v_1 : f64
          memref.store %r_1, %y[%i_1] : memref<?xf64>
          array.yield
        }
      } else {
      } {raises}
      %trips = array.loop %i to %n do {
        %v = memref.load %x[%i] : memref<?xf64>
        %negative = arith.cmpf olt, %v, %zero : f64
        %r = math.sqrt %v : f64
        memref.store %r, %y[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

Kept: checks of what the nest itself computes or overwrites, of what takes long to compute (it would be
computed twice), under an `if` or in a `while`, and in nests that may raise for other reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ..diagnostics import locate
from ..rules import evaluates_body
from .hoist_checks import is_counted
from .hoist_invariants import is_movable
from .memory_effects import MemoryEffects, Roots, functions

FEW = 12
"""Conditions that take more arithmetic than this are asked where they stand."""

CHEAP = (math.AbsFOp, array.CastOp, array.IndexOp, memref.DimOp)
"""What may be computed twice, besides arithmetic."""


@dataclass(frozen=True)
class HoistRaises(ModulePass):
    """Replace the checks of data in each outermost nest by one before it."""

    name = "hoist-raises"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            nests = list(plain_nests(function.body.block))
            effects = MemoryEffects(function) if nests else None
            for loop in nests:
                assert effects is not None
                if Nest(loop, effects.of(loop).writes, effects).asks_only_what_is_given():
                    hoist(loop, function)


def plain_nests(block: Block) -> Iterator[array.LoopOp]:
    """The outermost nests of counted loops whose only exceptions are checks of data."""
    for op in block.ops:
        if isinstance(op, array.LoopOp) and is_plain(op):
            if any(isinstance(o, array.RaiseIfOp) for o in op.walk()):
                yield op
        elif not evaluates_body(op) and array.RAISES not in op.attributes:
            for region in op.regions:
                for inner in region.blocks:
                    yield from plain_nests(inner)


def is_plain(loop: array.LoopOp) -> bool:
    """Loads, stores, arithmetic and checks of data in counted loops."""
    return all(
        (is_counted(op) and not op.carried)
        if isinstance(op, array.LoopOp)
        else isinstance(op, memref.LoadOp | memref.StoreOp | array.RaiseIfOp | array.YieldOp)
        or is_movable(op)
        for op in loop.walk()
    )


@dataclass
class Nest:
    """A nest, and what its conditions are computed from."""

    loop: array.LoopOp
    written: Roots
    effects: MemoryEffects
    asked: set[Operation] = field(default_factory=set[Operation])
    """The ops in it that its conditions need."""

    def asks_only_what_is_given(self) -> bool:
        for op in self.loop.walk():
            if isinstance(op, array.RaiseIfOp) and not self._is_given(op.condition):
                return False
            if isinstance(op, array.LoopOp) and not self._is_outside(op.count):  # pyright: ignore
                return False
        return sum(not isinstance(op, memref.LoadOp | array.IndexOp) for op in self.asked) <= FEW

    def _is_given(self, value: SSAValue) -> bool:
        """The nest has no part in the value, which is cheap to compute."""
        op = value.owner
        if self._is_outside(value) or isinstance(op, Block) or op in self.asked:
            return True
        if isinstance(op, memref.LoadOp):
            if not self.effects.roots(op.memref).isdisjoint(self.written):
                return False
        elif not isinstance(op, CHEAP) and not op.name.startswith("arith."):
            return False
        self.asked.add(op)
        return all(map(self._is_given, op.operands))

    def _is_outside(self, value: SSAValue) -> bool:
        owner = value.owner
        home = owner.parent_op() if isinstance(owner, Block) else owner
        return home is None or not self.loop.is_ancestor(home)


def hoist(loop: array.LoopOp, function: func.FuncOp) -> None:
    """Put the question before the nest, with the nest as it is for where something raises."""
    entry = function.body.block
    cell = memref.AllocaOp.get(i1, shape=[])
    cell.memref.name_hint = "raises"
    cell.location = loop.location
    first = entry.first_op
    assert first is not None
    Rewriter.insert_op(cell, InsertPoint.before(first))

    def emit(op: Operation) -> Operation:
        locate(op, loop.location)
        Rewriter.insert_op(op, InsertPoint.before(loop))
        return op

    never = arith.ConstantOp(IntegerAttr(0, i1))
    emit(never)
    emit(memref.StoreOp.get(never.result, cell.memref, []))
    emit(question(loop, cell.memref))
    bad = memref.LoadOp.get(cell.memref, [])
    emit(bad)
    branch = scf.IfOp(bad.res, [], [loop.clone(), scf.YieldOp()], [scf.YieldOp()])
    branch.attributes[array.RAISES] = UnitAttr()
    emit(branch)
    for op in tuple(loop.walk()):
        if isinstance(op, array.RaiseIfOp):
            Rewriter.erase_op(op)


def question(loop: array.LoopOp, cell: SSAValue) -> array.LoopOp:
    """The nest's conditions alone; the cell tells whether one holds."""
    asked = loop.clone()
    for op in tuple(asked.walk()):
        if isinstance(op, memref.StoreOp):
            Rewriter.erase_op(op)
        elif isinstance(op, array.RaiseIfOp):
            before = memref.LoadOp.get(cell, [])
            either = arith.OrIOp(before.res, op.condition)
            keep = memref.StoreOp.get(either.result, cell, [])
            for made in (before, either, keep):
                made.location = op.location
            Rewriter.replace_op(op, [before, either, keep], [])
    for op in reversed(tuple(asked.walk())):
        is_kept = isinstance(op, memref.StoreOp | array.YieldOp) or op is asked
        if isinstance(op, array.LoopOp) and not isinstance(op.body.block.first_op, array.YieldOp):
            is_kept = True
        if not is_kept and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
    return asked

"""Look up once, before a loop, where all its iterations touch an array.

The adjoint of `s += w[i, j] * x[index[i]]` adds to one element in each iteration over `j`, and looks up in
each where that is. The loops of codegen then take it for an element that may be any (`leaf_loops`): they add
through memory, in order. Where another statement has looked up the same before the loop, they add in a
register, in any order. So all do, and a step within a budget adds as the whole gradient does, of which parts
have been saved. Why here: passes that move loops want no branches between them, and those behind it look at
innermost loops alone.

Before::

    func.func @f(%s : memref<?xf64>, %index : memref<?xi64>, %w : memref<?xf64>, %i : index, %n : index) {
      %trips = array.loop %j to %n do {
        %k = memref.load %index[%i] : memref<?xi64>
        %at = array.cast %k : i64 -> index
        %x = memref.load %w[%j] : memref<?xf64>
        %a = memref.load %s[%at] : memref<?xf64>
        %b = arith.addf %a, %x : f64
        memref.store %b, %s[%at] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%s : memref<?xf64>, %index : memref<?xi64>, %w : memref<?xf64>, %i : index, %n : index) {
      %0 = arith.constant 0 : index
      %1 = arith.cmpi sgt, %n, %0 : index
      %k = scf.if %1 -> (i64) {
        %2 = memref.load %index[%i] : memref<?xi64>
        scf.yield %2 : i64
      } else {
        %3 = arith.constant 0 : i64
        scf.yield %3 : i64
      }
      %at = array.cast %k : i64 -> index
      %trips = array.loop %j to %n do {
        %x = memref.load %w[%j] : memref<?xf64>
        %a = memref.load %s[%at] : memref<?xf64>
        %b = arith.addf %a, %x : f64
        memref.store %b, %s[%at] : memref<?xf64>
        array.yield
      }
      func.return
    }

Where the loop has no iteration, the element may not exist: so nothing is looked up. Kept: loads of floats, or
of arrays that the loop writes, loads in branches, and those in loops that may raise, before which the program
asks in the loop itself whether there is such an element.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import every_op
from ..diagnostics import locate
from .hoist_checks import Before, is_counted
from .hoist_invariants import hoist_from, is_from_outside
from .memory_effects import MemoryEffects, functions


@dataclass(frozen=True)
class HoistLoads(ModulePass):
    """Move loads of integers that do not change before the loop."""

    name = "hoist-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            effects: MemoryEffects | None = None
            for loop in list(function.walk(region_first=True)):
                if isinstance(loop, array.LoopOp) and looks_up(loop):
                    effects = effects or MemoryEffects(function)
                    hoist_loads(loop, effects)


def looks_up(loop: array.LoopOp) -> bool:
    """Whether a loop looks up integers, and raises nothing before."""
    return (
        is_counted(loop)
        and any(load_of(op) is not None for op in loop.body.block.ops)
        and not any(map(array.is_operation_that_may_raise, every_op(loop)))
    )


def hoist_loads(loop: array.LoopOp, effects: MemoryEffects) -> None:
    """Move what is looked up alike in all iterations before the loop (inner loops have gone first)."""
    assert loop.count is not None
    hoist_from(loop)  # the conditions under which inner loops look up
    written = effects.of(loop)
    while True:
        found = [(op, load) for op in loop.body.block.ops if (load := load_of(op)) is not None]
        same = [
            (op, load)
            for op, load in found
            if all(is_from_outside(v, loop) for v in (*op.operands, *load.operands))
            and not written.writes_any(effects.roots(load.memref))
        ]
        if not same:
            return
        for op, load in same:
            look_up_before(loop, loop.count, op, load)
        hoist_from(loop)


def load_of(op: Operation) -> memref.LoadOp | None:
    """The load of an integer from an array: in a loop, or where one that was in a loop stands now."""
    if isinstance(op, scf.IfOp) and len(op.results) == 1:
        (first, *there), (otherwise, *rest) = op.true_region.block.ops, op.false_region.block.ops
        ends = isinstance(otherwise, arith.ConstantOp) and len(there) == len(rest) == 1
        if not ends or there[0].operands[0].owner is not first:
            return None
        op = first if rest[0].operands[0].owner is otherwise else otherwise
    if not isinstance(op, memref.LoadOp) or not op.indices:
        return None
    return op if isinstance(op.res.type, IntegerType) else None


def look_up_before(
    loop: array.LoopOp, count: SSAValue, moved: Operation, load: memref.LoadOp
) -> None:
    """Move a load, or the branch that it is in, before the loop."""
    here = Before(loop, load)
    length = array.constant_value(count)
    runs = None
    if length is None or length < 1:
        runs = here.compare("sgt", count, here.constant(0))
    moved.detach()
    if runs is None:
        here.insert(moved)
    elif isinstance(moved, scf.IfOp):
        moved.operands[0] = here.emit(arith.AndIOp(moved.cond, runs))
        here.insert(moved)
    else:
        here.insert(made := guarded(load, runs))
        result = made.results[0]
        result.name_hint = load.res.name_hint
        load.res.replace_uses_with_if(result, lambda use: use.operation.parent_op() is not made)


def guarded(load: memref.LoadOp, runs: SSAValue) -> scf.IfOp:
    """The load where the condition holds, else 0."""
    assert isinstance(load.res.type, IntegerType)
    nothing = arith.ConstantOp(IntegerAttr(0, load.res.type))
    there, otherwise = (Block([op, scf.YieldOp(op.results[0])]) for op in (load, nothing))
    made = scf.IfOp(runs, [load.res.type], [there], [otherwise])
    for op in made.walk():
        locate(op, load.location)
    return made

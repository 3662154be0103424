"""Compile a function for arrays that are as long as the loops over them suggest.

`for i in range(x.size): z[i] += x[i]` needs a `z` that is not shorter than `x`. It is mostly as long, but a
check tells only that it is not shorter, so maps over all of `z` and those over as many elements as `x` has
share no loop. Where the function has both, on one array, over points that are the same ones then, it is
written twice: for equal lengths, as if these were one number, and as it was. Runs after the last derivative,
before maps are joined.

Before::

    !view = memref<?xf64, strided<[1]>>
    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>) {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : index
      %n = memref.dim %x, %c0 : memref<?xf64>
      %m = memref.dim %y, %c0 : memref<?xf64>
      %last = arith.subi %n, %one : index
      %short = arith.cmpi sge, %last, %m : index
      array.raise_if %short, "IndexError", "{}" (%last : index)
      %v = array.view %y[%c0] dims [0] extents(%n) steps(%one)
          : memref<?xf64> -> !view
      array.map(%n) ins(%x : memref<?xf64>) outs(%v : !view) kinds ["add"] {
      ^bb0(%a : f64):
        array.yield %a : f64
      }
      array.map(%m) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
      ^bb1(%b : f64):
        %d = arith.addf %b, %b : f64
        array.yield %d : f64
      }
      func.return
    }

After::

    !view = memref<?xf64, strided<[1]>>
    func.func @f(%x: memref<?xf64>, %y: memref<?xf64>) {
      %0 = arith.constant 0 : index
      %n = memref.dim %x, %0 : memref<?xf64>
      %m = memref.dim %y, %0 : memref<?xf64>
      %1 = arith.cmpi eq, %n, %m : index
      scf.if %1 {
        %c0 = arith.constant 0 : index
        %one = arith.constant 1 : index
        %n_1 = memref.dim %x, %c0 : memref<?xf64>
        %m_1 = memref.dim %y, %c0 : memref<?xf64>
        %last = arith.subi %n, %one : index
        %short = arith.cmpi sge, %last, %n : index
        array.raise_if %short, "IndexError", "{}"(%last : index)
        %v = array.view %y[%c0] dims [0] extents(%n) steps(%one) : memref<?xf64> -> !view
        array.map(%n) ins(%x : memref<?xf64>) outs(%v : !view) kinds ["add"] {
        ^bb0(%a: f64):
          array.yield %a : f64
        }
        array.map(%n) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
        ^bb0(%b: f64):
          %d = arith.addf %b, %b : f64
          array.yield %d : f64
        }
      } else {
        %c0_1 = arith.constant 0 : index
        %one_1 = arith.constant 1 : index
        %n_2 = memref.dim %x, %c0_1 : memref<?xf64>
        %m_2 = memref.dim %y, %c0_1 : memref<?xf64>
        %last_1 = arith.subi %n_2, %one_1 : index
        %short_1 = arith.cmpi sge, %last_1, %m_2 : index
        array.raise_if %short_1, "IndexError", "{}"(%last_1 : index)
        %v_1 = array.view %y[%c0_1] dims [0] extents(%n_2) steps(%one_1) : memref<?xf64> -> !view
        array.map(%n_2) ins(%x : memref<?xf64>) outs(%v_1 : !view) kinds ["add"] {
        ^bb0(%a_1: f64):
          array.yield %a_1 : f64
        }
        array.map(%m_2) ins(%y : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
        ^bb0(%b_1: f64):
          %d_1 = arith.addf %b_1, %b_1 : f64
          array.yield %d_1 : f64
        }
      }
      func.return
    }

The second half of a split gradient has no checks: the first half made them. There a view that has one length,
of an array that has another, tells that the one is not more than the other.

Kept: functions that return arrays, save to tapes, call others, or are long; lengths that nothing compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import ad, array
from ...dialects.within import every_op
from ..analysis.affine import affine
from ..analysis.alias import AliasAnalysis
from ..analysis.effects import is_private
from ..rules import is_repeatable
from .fold_constants import is_handed_extent
from .hoist_checks import Before
from .map_outputs import is_pure
from .memory_effects import functions

LONG = 250
"""Functions of more ops are not written twice."""

Lengths = tuple[SSAValue, SSAValue]
"""Two extents of arguments, the first at most as long as the second where the function goes on."""


@dataclass(frozen=True)
class AssumeLengths(ModulePass):
    """Version a function: for arguments of equal lengths, and for any."""

    name = "assume-lengths"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if not is_private(function) and may_be_twice(function):
                for lengths in compared(function):
                    if meet(function, *lengths):
                        write_twice(function, *lengths)
                        break


def may_be_twice(function: func.FuncOp) -> bool:
    """Whether the function is short, returns numbers, and leaves nothing behind but what it stores."""
    ops = every_op(function)[1:]
    if len(ops) > LONG or any(isinstance(t, MemRefType) for t in function.function_type.outputs):
        return False
    return all(isinstance(op, ad.RetryIfOp) or is_pure(op) or is_repeatable(type(op)) for op in ops)


def compared(function: func.FuncOp) -> Iterator[Lengths]:
    """The lengths of two arguments that a check, or a view, in the function's own block compares."""
    for op in function.body.block.ops:
        if isinstance(op, array.RaiseIfOp):
            yield from in_condition(op.condition)
        elif isinstance(op, scf.IfOp) and array.RAISES in op.attributes:
            yield from in_condition(op.cond)
        elif isinstance(op, array.ViewOp) and isinstance(op.source.owner, array.AllocOp):
            yield from in_view(op, op.source.owner)


def in_view(view: array.ViewOp, whole: array.AllocOp) -> Iterator[Lengths]:
    """The lengths of a view, and of the array that it is a view of, where they are different ones."""
    for dim, n in zip(view.source_dims, view.extents, strict=True):
        m = whole.extents[dim] if dim >= 0 else n
        if m is not n and all(isinstance(v, BlockArgument) and is_handed_extent(v) for v in (n, m)):
            yield n, m


def in_condition(condition: SSAValue) -> Iterator[Lengths]:
    """The lengths of which the first, less 1, is compared with the second."""
    op = condition.owner
    if isinstance(op, arith.OrIOp | arith.AndIOp):
        yield from in_condition(op.lhs)
        yield from in_condition(op.rhs)
    elif isinstance(op, arith.CmpiOp) and op.predicate.value.data == AT_LEAST:
        found, other = length_in(op.lhs), op.rhs
        if found is None or affine(op.lhs) != affine(found) - 1:
            return
        if is_length(other) and found is not other:
            yield found, other


def length_in(value: SSAValue) -> SSAValue | None:
    """The one length that a sum is made of, if it is one: what is not folded yet adds zeros."""
    if is_length(value):
        return value
    op = value.owner
    if not isinstance(op, arith.AddiOp | arith.SubiOp):
        return None
    found = [v for v in map(length_in, op.operands) if v is not None]
    return found[0] if len(found) == 1 else None


AT_LEAST = 5
"""The number of the predicate `sge`."""


def is_length(value: SSAValue) -> bool:
    """Whether it is an extent of an argument."""
    op = value.owner
    return isinstance(op, memref.DimOp) and isinstance(op.source, BlockArgument)


def meet(function: func.FuncOp, n: SSAValue, m: SSAValue) -> bool:
    """Whether maps that touch one array go over the same points if the lengths are equal, and only then."""
    alias = AliasAnalysis(function)
    maps = [op for op in function.body.block.ops if isinstance(op, array.MapOp)]
    touched = {op: {r for v in (*op.ins, *op.outs) for r in alias.roots(v)} for op in maps}

    def points(op: array.MapOp) -> list[SSAValue]:
        return [n if extent is m else extent for extent in op.extents]

    return any(
        points(a) == points(b)
        and list(a.extents) != list(b.extents)
        and not touched[a].isdisjoint(touched[b])
        for a, b in combinations(maps, 2)
    )


def write_twice(function: func.FuncOp, n: SSAValue, m: SSAValue) -> None:
    """Put a branch around all that the function does."""
    block = function.body.block
    ops, first, end = list(block.ops), block.first_op, block.last_op
    assert first is not None
    assert isinstance(end, func.ReturnOp)
    outside = Before(first)
    own = [copied(value, outside) for value in (n, m)]
    equal = outside.compare("eq", *own)
    results = list(end.arguments)
    mapped: dict[SSAValue, SSAValue] = {v: own[0] for v in (n, m) if isinstance(v, BlockArgument)}
    slow, fast = Block(), Block()
    for op in ops[:-1]:
        op.detach()
        slow.add_op(op)
    for op in slow.ops:
        clone = op.clone(mapped)
        fast.add_op(clone)
        mapped.update(zip(op.results, clone.results, strict=True))
    lengths = [mapped[v] for v in (n, m) if not isinstance(v, BlockArgument)]
    for value in lengths:
        value.replace_all_uses_with(own[0])
    for branch, values in ((fast, [mapped.get(r, r) for r in results]), (slow, results)):
        yielded = scf.YieldOp(*[own[0] if v in lengths else v for v in values])
        yielded.location = end.location
        branch.add_op(yielded)
    types = [r.type for r in results]
    made = scf.IfOp(equal, types, Region(fast), Region(slow))
    made.location = end.location
    block.insert_op_before(made, end)
    end.operands = list(made.results)
    for result, name in zip(made.results, results, strict=True):
        result.name_hint = name.name_hint


def copied(length: SSAValue, outside: Before) -> SSAValue:
    """The same extent, on entry."""
    if isinstance(length, BlockArgument):
        return length
    op = length.owner
    assert isinstance(op, memref.DimOp)
    axis = array.constant_value(op.index)
    assert axis is not None
    made = memref.DimOp(op.source, outside.constant(axis))
    made.result.name_hint = length.name_hint
    return outside.emit(made)

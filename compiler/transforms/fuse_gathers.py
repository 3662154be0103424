"""Let one map gather for several arrays, where the same points give to them and the same numbers are read.

`gather-adds` makes a map for each shadow. The shadows of a system, and a shadow and its tangent, collect from
the same points: their maps read the same cotangents and the same partials, each from memory again.

Before::

    func.func @f(%n : index, %m : index, %v : memref<?xf64>, %s : memref<?xf64>, %t : memref<?xf64>) {
      %a = array.alloc(%m) : memref<?xf64>
      %b = array.alloc(%m) : memref<?xf64>
      array.map(%m) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%a : memref<?xf64>)
          kinds ["store"] window(%n) shifts [0, 1] zeros [0, 1] {
      ^bb0(%x : f64, %y : f64):
        %0 = arith.addf %x, %y : f64
        array.yield %0 : f64
      }
      array.map(%m) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%b : memref<?xf64>)
          kinds ["store"] window(%n) shifts [0, 1] zeros [0, 1] {
      ^bb0(%x : f64, %y : f64):
        %0 = arith.subf %x, %y : f64
        array.yield %0 : f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %m : index, %v : memref<?xf64>, %s : memref<?xf64>, %t : memref<?xf64>) {
      %a = array.alloc(%m) : memref<?xf64>
      %b = array.alloc(%m) : memref<?xf64>
      array.map(%m) ins(%v, %v : memref<?xf64>, memref<?xf64>)
          outs(%a, %b : memref<?xf64>, memref<?xf64>) kinds ["store", "store"]
          window(%n) shifts [0, 1] zeros [0, 1] {
      ^bb0(%x : f64, %y : f64):
        %0 = arith.addf %x, %y : f64
        %1 = arith.subf %x, %y : f64
        array.yield %0, %1 : f64, f64
      }
      func.return
    }

An input that is 0 outside of the window for one of them, and what is nearest for the other, is 0 for both,
where the other computes only sums and products of it: what it adds there is 0 anyway (`gather-adds`), and
stays finite. Otherwise the fused map has the input twice.

Kept apart: maps over other points, or other windows; maps that share less than half of what one reads, or
read more than registers hold; memory that one writes and the other touches; ops with effects between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from ...dialects import ad, array
from ..analysis.affine import equal_numbers
from ..analysis.alias import AliasAnalysis
from .gather_adds import apart
from .memory_effects import functions

MOST_INPUTS = 12
"""The most that one map reads, for each point."""

POLYNOMIAL = (arith.AddfOp, arith.SubfOp, arith.NegfOp, arith.MulfOp, ad.MulOp)
"""What is finite at 0 where it is finite elsewhere."""

Key = tuple[SSAValue, tuple[int, ...]]
"""An input, and how it is shifted."""


@dataclass(frozen=True)
class FuseGathers(ModulePass):
    """Fuse maps that gather from the same points."""

    name = "fuse-gathers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            fuse_in(function)


def fuse_in(function: func.FuncOp) -> None:
    alias: AliasAnalysis | None = None
    for op in list(function.walk()):
        while isinstance(op, array.MapOp) and (later := next_gather(op)) is not None:
            alias = alias or AliasAnalysis(function)
            if not shares_enough(op, later) or not independent(op, later, alias):
                break
            op = fuse(op, later)


def next_gather(op: array.MapOp) -> array.MapOp | None:
    """The map behind this one over the same points, where nothing between them has effects."""
    how = op.gathers
    if how is None or op.parent is None:
        return None
    later = op.next_op
    while later is not None and (later.has_trait(Pure) or isinstance(later, memref.DimOp)):
        later = later.next_op
    if not isinstance(later, array.MapOp) or later.gathers is None:
        return None
    theirs = later.gathers
    alike = how.fresh == theirs.fresh and op.attributes == later.attributes
    mine = (op.extents, how.window, how.origin)
    other = (later.extents, theirs.window, theirs.origin)
    return later if alike and all(map(equal, mine, other)) else None


def equal(mine: Sequence[SSAValue], other: Sequence[SSAValue]) -> bool:
    return len(mine) == len(other) and all(map(equal_numbers, mine, other))


def keys(op: array.MapOp) -> list[Key]:
    how = op.gathers
    assert how is not None
    return list(zip(op.ins, how.shifts, strict=True))


def shares_enough(op: array.MapOp, later: array.MapOp) -> bool:
    mine, other = {*keys(op)}, {*keys(later)}
    least = min(len(mine), len(other))
    return 2 * len(mine & other) >= least > 0 and len(mine | other) <= MOST_INPUTS


def independent(op: array.MapOp, later: array.MapOp, alias: AliasAnalysis) -> bool:
    """Whether neither map writes what the other touches."""
    return all(
        apart(alias, out, touched)
        for one, other in ((op, later), (later, op))
        for out in one.outs
        for touched in (*other.ins, *other.outs)
    )


def fuse(op: array.MapOp, later: array.MapOp) -> array.MapOp:
    """One map in the place of the later one."""
    how, theirs = op.gathers, later.gathers
    assert how is not None
    assert theirs is not None
    block, added = op.body.block, later.body.block
    ins, shifts, zeros = list(op.ins), list(how.shifts), {*how.zeros}
    known = {key: k for k, key in reversed([*enumerate(keys(op))])}
    for k, (key, argument) in enumerate(zip(keys(later), added.args, strict=True)):
        number, zero = known.get(key), k in theirs.zeros
        if number is not None and (number in zeros) != zero:
            other = argument if number in zeros else block.args[number]
            number = number if is_polynomial_in(other) else None
        if number is None:
            number = len(ins)
            ins.append(key[0])
            shifts.append(key[1])
            block.insert_arg(argument.type, number).name_hint = argument.name_hint
        if zero:
            zeros.add(number)
        argument.replace_all_uses_with(block.args[number])
    values = [*op.yielded, *later.yielded]
    last, end = block.last_op, added.last_op
    assert last is not None
    assert end is not None
    for inner in [*added.ops][:-1]:
        inner.detach()
        block.insert_op_before(inner, last)
    both = array.YieldOp(values)
    both.location = last.location
    Rewriter.replace_op(last, both)
    gathers = replace(how, shifts=tuple(shifts), zeros=frozenset(zeros))
    outs, kinds = [*op.outs, *later.outs], [*op.out_kinds, *later.out_kinds]
    region = op.detach_region(op.body)
    fused = array.MapOp(tuple(op.extents), ins, outs, kinds, region, gathers)
    fused.location = op.location
    fused.attributes.update(op.attributes)
    Rewriter.insert_op(fused, InsertPoint.before(later))
    for old in (op, later):
        Rewriter.erase_op(old)
    return fused


def is_polynomial_in(argument: SSAValue) -> bool:
    """Whether a body computes nothing but sums and products of one of its arguments, and of other numbers."""
    seen: set[Operation] = set()
    pending = [argument]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, array.YieldOp) or op in seen:
                continue
            if not isinstance(op, POLYNOMIAL):
                return False
            seen.add(op)
            pending += op.results
    return True

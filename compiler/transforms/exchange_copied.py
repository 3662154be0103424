"""Exchange two arrays in place of copying one before an iteration overwrites it.

The adjoint of `u[1:-1] += f(u)` reads the shadow of `u` while it stores to it, so it reads a copy. Where the
iteration stores all that was copied anew, it may store to a second array, and read the first one as it is.
The few elements that were not copied are, and the next iteration takes the second array for the first.

Before::

    !part = memref<?xf64, strided<[1]>>
    func.func @f(%x : memref<?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %size = arith.addi %m, %c1 : index
      %u = array.alloc(%size) : memref<?xf64>
      %inner = array.view %u[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> !part
      %outer = array.view %u[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> !part
      %t = array.alloc(%m) : memref<?xf64>
      %trips = array.loop %k to %n do {
        array.map(%m) ins(%inner : !part) outs(%t : memref<?xf64>) kinds ["store"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.map(%size) ins(%t : memref<?xf64>) outs(%outer : !part) kinds ["add"]
            window(%m) shifts [1] zeros [0] fresh [1] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.yield
      }
      array.map(%size) ins(%u : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      func.return
    }

After::

    !part = memref<?xf64, strided<[1]>>
    func.func @f(%x: memref<?xf64>, %n: index, %m: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %size = arith.addi %m, %c1 : index
      %u = array.alloc(%size) : memref<?xf64>
      %inner = array.view %u[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> !part
      %outer = array.view %u[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> !part
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %t = array.alloc(%size) : memref<?xf64>
      %trips, %u_1, %t_1 = array.loop %k to %n carry(%u_2 = %u : memref<?xf64>,
          %t_2 = %t : memref<?xf64>) do {
        %inner_1 = array.view %u_2[%c1] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> !part
        %outer_1 = array.view %t_2[%c0] dims [0] extents(%size) steps(%c1) : memref<?xf64> -> !part
        %2 = arith.minsi %c1, %size : index
        %3 = array.view %u_2[%0] dims [0] extents(%2) steps(%1) : memref<?xf64> -> !part
        %4 = array.view %t_2[%0] dims [0] extents(%2) steps(%1) : memref<?xf64> -> !part
        array.map(%2) ins(%3 : !part) outs(%4 : !part) kinds ["store"] {
        ^bb0(%5: f64):
          array.yield %5 : f64
        }
        array.map(%size) ins(%inner_1 : !part) outs(%outer_1 : !part) kinds ["add"]
            window(%m) shifts [1] zeros [0] fresh [1] {
        ^bb0(%e: f64):
          array.yield %e : f64
        }
        array.yield %t_2, %u_2 : memref<?xf64>, memref<?xf64>
      }
      array.map(%size) ins(%u_1 : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
      ^bb0(%e_1: f64):
        array.yield %e_1 : f64
      }
      func.return
    }

Kept: arrays that the iteration uses for anything else, that leave the function, or that have views from
before the loop which are used behind it. Runs where `exchange-arrays` does, for the same reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.affine import affine
from ..diagnostics import locate
from ..rules.builders import element_of, index
from .exchange_arrays import exchange, is_copy, is_whole, may_carry
from .memory_effects import functions
from .saved_steps import ancestor, is_box
from .step_on_tape import Names, before, keep_edges, uses_of

USING = (array.MapOp, memref.LoadOp, memref.StoreOp, memref.DimOp)


@dataclass(frozen=True)
class Copied:
    """A copy, and the map that reads it and stores over what it was made of."""

    loop: array.LoopOp
    copy: array.MapOp
    fill: array.MapOp
    kept: array.AllocOp
    """What is copied from."""
    part: array.ViewOp
    """The part of it that is copied."""


@dataclass(frozen=True)
class ExchangeCopied(ModulePass):
    """Store to a second array in place of copying what an iteration overwrites."""

    name = "exchange-copied"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in list(ops_of_kind(function, array.LoopOp)):
                found = next(copied_in(loop), None)
                if found is not None:
                    store_elsewhere(found)


def copied_in(loop: array.LoopOp) -> Iterator[Copied]:
    if not may_carry(loop):
        return
    for copy in loop.body.block.ops:
        if isinstance(copy, array.MapOp) and is_copy(copy):
            (source,), (target,) = copy.ins, copy.outs
            part, fill = source.owner, only_reader(target, copy)
            if fill is None or not isinstance(part, array.ViewOp):
                continue
            kept = part.source.owner
            if not isinstance(kept, array.AllocOp) or not is_whole(kept, loop, tuple(kept.extents)):
                continue
            found = Copied(loop, copy, fill, kept, part)
            if stores_all(found) and is_only_used(found):
                yield found


def only_reader(target: SSAValue, copy: array.MapOp) -> array.MapOp | None:
    """The one map behind the copy that reads the array, which nothing else uses."""
    loop, made = copy.parent_op(), target.owner
    if not isinstance(made, array.AllocOp) or not isinstance(loop, array.LoopOp):
        return None
    if not is_whole(made, loop, tuple(copy.extents)):
        return None
    users = {use.operation for use in target.uses} - {copy}
    fill = users.pop() if len(users) == 1 else None
    if not isinstance(fill, array.MapOp) or fill.parent is not copy.parent:
        return None
    return (
        fill
        if target in fill.ins and target not in fill.outs and copy.is_before_in_block(fill)
        else None
    )


def stores_all(found: Copied) -> bool:
    """Whether the map stores to all that is copied, without looking at what was there."""
    fill, part, how = found.fill, found.part, found.fill.gathers
    if how is None or how.fresh is None or how.origin or len(fill.outs) != 1:
        return False
    (out,) = fill.outs
    whole = out.owner
    if not isinstance(whole, array.ViewOp) or not (is_box(whole) and is_box(part)):
        return False
    sizes = zip(fill.extents, how.window, part.extents, found.copy.extents, strict=True)
    return (
        whole.source is part.source
        and all(w is p is c for _, w, p, c in sizes)
        and all(
            affine(at) == affine(low) + shift and shift >= 0
            for at, low, shift in zip(part.offsets, whole.offsets, how.fresh, strict=True)
        )
        and all(
            (room := affine(size) - affine(inner)).is_constant and room.constant >= shift
            for size, inner, shift in zip(fill.extents, how.window, how.fresh, strict=True)
        )
    )


def is_only_used(found: Copied) -> bool:
    """Whether the iteration uses the array in these two maps alone."""
    loop, block = found.loop, found.loop.parent
    assert block is not None
    inside: list[tuple[Operation, int]] = []
    for use in uses_of(found.kept.memref):
        if ancestor(use.operation, loop.body.block) is not None:
            inside.append((use.operation, use.index))
        elif not is_beside(use, found):
            return False
    reads, writes = ends(found.copy), ends(found.fill)
    return sorted(inside, key=lambda i: i[0] is found.fill) == [
        (found.copy, reads - 1),
        (found.fill, writes),
    ]


def ends(op: array.MapOp) -> int:
    """The first operand behind the inputs of a map."""
    return len(op.extents) + len(op.ins)


def is_beside(use: Use, found: Copied) -> bool:
    """Whether a use outside of the loop says which array it means: no view from before is used behind it."""
    op, loop, block = use.operation, found.loop, found.loop.parent
    at = None if block is None else ancestor(op, block)
    if at is None or not isinstance(op, USING):
        return False
    name = op.operands[use.index].owner
    while isinstance(name, array.ViewOp):
        made = None if block is None else ancestor(name, block)
        if made is None or made.is_before_in_block(loop) is not at.is_before_in_block(loop):
            return False
        name = name.source.owner
    return True


def store_elsewhere(found: Copied) -> None:
    """Let the map read the array, and store to another that the next iteration has for it."""
    loop, copy, fill, kept, part = found.loop, found.copy, found.fill, found.kept, found.part
    body, (copied,), (out,) = loop.body.block, copy.outs, fill.outs
    emit: Callable[[Operation], SSAValue] = before(loop, fill)
    zero, one = index(0, emit), index(1, emit)
    second = array.AllocOp(list(kept.extents), element_of(kept.memref))
    second.memref.name_hint = copied.name_hint
    emit(second)
    assert body.first_op is not None
    start = arith.AddiOp(zero, one)
    locate(start, fill.location)
    body.insert_op_before(start, body.first_op)
    names = Names(kept.memref, body, start)
    source = names.of(part.result, kept.memref, True)
    target = names.of(out, second.memref, True)
    for k, operand in enumerate(fill.operands):
        if operand is copied:
            fill.operands[k] = source
        elif k == ends(fill):
            fill.operands[k] = target
    keep_edges(part, kept, (kept.memref, second.memref), (zero, one), fill, fill)
    Rewriter.erase_op(copy)
    Rewriter.erase_op(start)
    made = copied.owner
    assert isinstance(made, Operation)
    Rewriter.erase_op(made)
    exchange(loop, kept.memref, second.memref)

"""Compute what a function returns as a sum where the reverse sweep goes over the same elements.

`(u * u).sum()` reads `u`, and so does its adjoint right behind it: two sweeps over memory, where one will do.
Runs behind the last derivative, when maps have what they touch, and before `fuse-rows`, which moves maps.

Before::

    func.func @f(%n : index, %u : memref<?xf64>, %s : memref<?xf64>) -> f64 {
      %total = memref.alloca() : memref<f64>
      %c0 = arith.constant 0 : index
      %sum = array.view %total[] dims [-1] extents(%n) steps(%c0)
          : memref<f64> -> memref<?xf64, strided<[0]>>
      array.map(%n) ins(%u : memref<?xf64>) outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x : f64):
        %y = arith.mulf %x, %x : f64
        array.yield %y : f64
      }
      %value = memref.load %total[] : memref<f64>
      array.map(%n) ins(%u : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
      ^bb1(%x1 : f64):
        %two = arith.addf %x1, %x1 : f64
        array.yield %two : f64
      }
      func.return %value : f64
    }

After::

    func.func @f(%n : index, %u : memref<?xf64>, %s : memref<?xf64>) -> f64 {
      %total = memref.alloca() : memref<f64>
      %c0 = arith.constant 0 : index
      %sum = array.view %total[] dims [-1] extents(%n) steps(%c0)
          : memref<f64> -> memref<?xf64, strided<[0]>>
      array.map(%n) ins(%u : memref<?xf64>) outs(%s, %sum : memref<?xf64>, memref<?xf64, strided<[0]>>)
          kinds ["store", "add"] {
      ^bb0(%x : f64):
        %y = arith.mulf %x, %x : f64
        %two = arith.addf %x, %x : f64
        array.yield %two, %y : f64, f64
      }
      %value = memref.load %total[] : memref<f64>
      func.return %value : f64
    }

Why it is the same: nothing between the two writes what the sum reads, nor does the later map; and nobody
reads the sum before the later map is done, for what is computed of it is only returned, and moves behind.

Kept apart: sums that are used for anything else, which must have the same bits wherever a step is run again;
sums that read what the later map does not (that would be one more stream, or keep a temporary); maps over
other extents; maps that gather; sums of elements that lie apart. LLVM vectorizes those beside a store and not
alone: they would have other bits than within a budget, whose steps run on contiguous copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ..analysis.affine import equal_numbers
from ..analysis.views import strip_views
from .fuse_elementwise import elements
from .map_outputs import is_pure
from .memory_effects import MemoryEffects, functions


@dataclass(frozen=True)
class FuseReductions(ModulePass):
    """Compute returned sums in the later map that goes over the same elements."""

    name = "fuse-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            maps = {
                m: k for k, m in enumerate(function.body.block.ops) if isinstance(m, array.MapOp)
            }
            sums = [m for m in maps if is_sum(m)]
            effects = MemoryEffects(function) if sums else None
            for sum_ in sums:
                assert effects is not None
                later = place_for(sum_, maps, effects) if sum_ in maps else None
                if later is not None:
                    maps[fuse(sum_, later)] = maps.pop(later)


def is_sum(op: array.MapOp) -> bool:
    """Whether a map combines its points into one number each, in cells that are only returned."""
    plain = op.gathers is None and not op.attributes and "store" not in op.out_kinds
    read = bool(op.ins) and all(lies_in_rows(m) for m in op.ins)
    return plain and read and all(is_returned(cell_of(out), op) for out in op.outs)


def lies_in_rows(memref_: SSAValue) -> bool:
    """Whether the elements of a row are certainly next to each other."""
    type_ = memref_.type
    assert isinstance(type_, MemRefType)
    strides = type_.get_strides()
    return strides is not None and (not strides or strides[-1] == 1)


def cell_of(out: SSAValue) -> SSAValue | None:
    """The cell that an output stands still in."""
    cell = strip_views(out)
    found = isinstance(cell.owner, memref.AllocaOp) and cell.owner.memref.type.get_num_dims() == 0
    return cell if found else None


def is_returned(cell: SSAValue | None, op: array.MapOp) -> bool:
    """Whether what is read from a cell goes nowhere but to results of the function."""
    return cell is not None and all(is_harmless(use.operation, op) for use in cell.uses)


def is_harmless(user: Operation, op: array.MapOp) -> bool:
    """Whether a use of a cell is by the sum itself, sets the cell, or reads it to return that."""
    match user:
        case memref.LoadOp():
            return is_for_return(user)
        case memref.StoreOp():
            return True
        case array.ViewOp():
            return all(use.operation is op for use in user.result.uses)
        case _:
            return False


def is_for_return(op: Operation) -> bool:
    """Whether all that is computed of an op's results goes nowhere but to results of the function."""
    pending, seen = [op], set[Operation]()
    while pending:
        users = {use.operation for result in pending.pop().results for use in result.uses} - seen
        seen |= users
        inner = [user for user in users if not isinstance(user, func.ReturnOp)]
        if not all(is_pure(user) and not user.regions for user in inner):
            return False
        pending += inner
    return True


def place_for(
    op: array.MapOp, maps: dict[array.MapOp, int], effects: MemoryEffects
) -> array.MapOp | None:
    """The next map that reads all that the sum reads, if nothing up to there is in the way.

    `maps` says how far in the block each is.
    """
    users = dict.fromkeys(use.operation for use in op.ins[0].uses)
    behind_it = [m for m in users if isinstance(m, array.MapOp) and maps.get(m, -1) > maps[op]]
    along = (m for m in behind_it if goes_along(op, m))
    place = min(along, key=maps.__getitem__, default=None)
    if place is None:
        return None
    read = frozenset(root for m in op.ins for root in effects.roots(m))
    cells = frozenset(root for m in op.outs for root in effects.roots(m))
    for later in behind(op):
        if later is place:
            break
        found = effects.of(later)
        if found.writes_any(read | cells):
            return None
        if found.reads_any(cells) and not isinstance(later, memref.LoadOp):
            return None
    written = frozenset(root for m in place.outs for root in effects.roots(m))
    return place if written.isdisjoint(read | cells) else None


def behind(op: Operation) -> Iterator[Operation]:
    while op.next_op is not None:
        op = op.next_op
        yield op


def goes_along(op: array.MapOp, later: array.MapOp) -> bool:
    """Whether a later map goes over the same points, and reads what the sum reads."""
    return (
        later.gathers is None
        and len(op.extents) == len(later.extents)
        and all(map(equal_numbers, op.extents, later.extents))
        and {*op.ins} <= {*later.ins}
    )


def fuse(op: array.MapOp, later: array.MapOp) -> array.MapOp:
    """Evaluate the sum's body at the start of the later one's, and what is read of it behind; that map."""
    wait(op, later)
    block, element = later.body.block, elements(later)
    for memref_, argument in zip(op.ins, op.body.block.args, strict=True):
        argument.replace_all_uses_with(element[memref_])
    yielded, (*moved, _) = op.yielded, op.body.block.ops
    for inner in moved:
        inner.detach()
    Rewriter.insert_op(moved, InsertPoint.at_start(block))
    last = block.last_op
    assert last is not None
    end = array.YieldOp([*later.yielded, *yielded])
    end.location = last.location
    Rewriter.replace_op(last, end)
    outs, kinds = [*later.outs, *op.outs], [*later.out_kinds, *op.out_kinds]
    extents, region = tuple(later.extents), later.detach_region(later.body)
    made = array.MapOp(extents, list(element), outs, kinds, region)
    made.location = later.location
    made.attributes.update(later.attributes)
    Rewriter.replace_op(later, made)
    Rewriter.erase_op(op)
    return made


def wait(op: array.MapOp, later: array.MapOp) -> None:
    """Move the loads of the sum, and what is computed of them, behind the later map."""
    cells = {cell_of(out) for out in op.outs}
    late: set[Operation] = set()
    place: Operation = later
    for between in [*behind(op)]:
        if between is later:
            return
        loads = isinstance(between, memref.LoadOp) and between.memref in cells
        if loads or any(o.owner in late for o in between.operands):
            late.add(between)
            between.detach()
            Rewriter.insert_op(between, InsertPoint.after(place))
            place = between

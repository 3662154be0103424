"""Turn cells whose every read is known into values: no memory, no store, nothing to save.

A cell is a rank-0 `memref.alloca`, a mutable Python variable. It is promoted when every load of it
reads one certain store, or one certain store for each way through an `scf.if`, which then yields it.

Before::

    func.func @f(%c : i1, %x : f64, %y : f64) -> f64 {
      %cell = memref.alloca() : memref<f64>
      scf.if %c {
        memref.store %x, %cell[] : memref<f64>
      } else {
        memref.store %y, %cell[] : memref<f64>
      }
      %r = memref.load %cell[] : memref<f64>
      func.return %r : f64
    }

After::

    func.func @f(%c : i1, %x : f64, %y : f64) -> f64 {
      %r = scf.if %c -> (f64) {
        scf.yield %x : f64
      } else {
        scf.yield %y : f64
      }
      func.return %r : f64
    }

Not promoted: cells that a loop stores and reads again (loops carry memrefs only), or that a
whole-array op reads or writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op
from .memory_effects import functions


@dataclass(frozen=True)
class PromoteScalars(ModulePass):
    """Replace a cell by the values stored to it."""

    name = "promote-scalars"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            cells = set(simple_cells(function))
            reading = Reading(cells)
            reading.follow(function.body.block, {})
            promote(function, cells - reading.uncertain, reading)


@dataclass(frozen=True, eq=False)
class Join:
    """What a cell holds after an `scf.if` that stores it in some branch."""

    op: scf.IfOp
    cell: SSAValue
    then: Held
    otherwise: Held


Held = SSAValue | Join
Cells = dict[SSAValue, Held | None]
"""What each cell holds at a point; None where it is not certain."""


def simple_cells(function: func.FuncOp) -> list[SSAValue]:
    """The rank-0 allocas that are only loaded and stored."""
    return [
        op.memref
        for op in every_op(function)
        if isinstance(op, memref.AllocaOp)
        and op.memref.type.get_num_dims() == 0
        and all(is_access(u.operation, op.memref) for u in op.memref.uses)
    ]


def is_access(op: Operation, cell: SSAValue) -> bool:
    return isinstance(op, memref.LoadOp) or (
        isinstance(op, memref.StoreOp) and op.value is not cell
    )


@dataclass
class Reading:
    """One walk over the function, in the order of execution."""

    cells: set[SSAValue]
    read: dict[memref.LoadOp, Held] = field(default_factory=dict[memref.LoadOp, Held])
    """What each load certainly reads."""
    uncertain: set[SSAValue] = field(default_factory=set[SSAValue])
    """Cells with a load that may read several stores."""

    def follow(self, block: Block, held: Cells) -> None:
        for op in block.ops:
            match op:
                case memref.StoreOp() if op.memref in self.cells:
                    held[op.memref] = op.value
                case memref.LoadOp() if op.memref in self.cells:
                    value = held.get(op.memref)
                    if value is None:
                        self.uncertain.add(op.memref)
                    else:
                        self.read[op] = value
                case scf.IfOp():
                    self.follow_branches(op, held)
                case array.LoopOp():
                    for cell in self.stored_in(op):
                        held[cell] = None
                    for region in op.regions:
                        for inner in region.blocks:
                            self.follow(inner, dict(held))
                case _:
                    pass

    def follow_branches(self, op: scf.IfOp, held: Cells) -> None:
        ends: list[Cells] = []
        for region in op.regions:
            end = dict(held)
            for block in region.blocks:
                self.follow(block, end)
            ends.append(end)
        then, otherwise = ends
        if array.RAISES in op.attributes:  # nothing runs after it
            then = otherwise
        for cell in {**then, **otherwise}:
            a, b = then.get(cell), otherwise.get(cell)
            if a is b:
                held[cell] = a
            else:
                held[cell] = None if a is None or b is None else Join(op, cell, a, b)

    def stored_in(self, loop: array.LoopOp) -> set[SSAValue]:
        return {
            op.memref
            for op in every_op(loop)
            if isinstance(op, memref.StoreOp) and op.memref in self.cells
        }


def promote(function: func.FuncOp, cells: set[SSAValue], reading: Reading) -> None:
    """Make the joins that the loads of `cells` need, then replace the loads and drop the cells."""
    read = {load: held for load, held in reading.read.items() if load.memref in cells}
    replaced: dict[SSAValue, SSAValue] = {}
    made: dict[Join, SSAValue] = {}

    def value_of(held: Held) -> SSAValue:
        value = made[held] if isinstance(held, Join) else held
        while value in replaced:
            value = replaced[value]
        return value

    wanted = joins_needed(list(read.values()))
    for op in [o for o in function.body.walk(region_first=True) if isinstance(o, scf.IfOp)]:
        if joins := wanted.get(op):
            wider = with_more_results(
                op, [(value_of(j.then), value_of(j.otherwise), j.cell.name_hint) for j in joins]
            )
            replaced.update(zip(op.results, wider.results, strict=False))
            made.update(zip(joins, wider.results[len(op.results) :], strict=True))
    for load, held in read.items():
        value = value_of(held)
        replaced[load.res] = value
        Rewriter.replace_op(load, [], [value])
    for cell in cells:
        for use in tuple(cell.uses):
            use.operation.detach()
            use.operation.erase()
        alloca = cell.owner
        assert isinstance(alloca, Operation)
        alloca.detach()
        alloca.erase()


def joins_needed(held: list[Held]) -> dict[scf.IfOp, list[Join]]:
    """The joins among `held` and those that they are made of, by the op that yields them."""
    needed: dict[Join, None] = {}
    while held:
        value = held.pop()
        if isinstance(value, Join) and value not in needed:
            needed[value] = None
            held += [value.then, value.otherwise]
    by_op: dict[scf.IfOp, list[Join]] = {}
    for join in needed:
        by_op.setdefault(join.op, []).append(join)
    return by_op


def with_more_results(op: scf.IfOp, more: list[tuple[SSAValue, SSAValue, str | None]]) -> scf.IfOp:
    """Put in the place of `op` one that also yields the pairs of `more`; the old op is erased."""
    regions = [op.detach_region(r) for r in tuple(op.regions)]
    for region, values in zip(
        regions, zip(*((a, b) for a, b, _ in more), strict=True), strict=True
    ):
        extend_yield(region, values, op.location)
    types = [*op.result_types, *(a.type for a, _, _ in more)]
    wider = scf.IfOp(op.cond, types, regions[0], regions[1])
    wider.location = op.location
    wider.attributes.update(op.attributes)
    for result, old in zip(wider.results, op.results, strict=False):
        result.name_hint = old.name_hint
    for result, (_, _, hint) in zip(wider.results[len(op.results) :], more, strict=True):
        result.name_hint = hint
    Rewriter.replace_op(op, wider, wider.results[: len(op.results)])
    return wider


def extend_yield(region: Region, values: tuple[SSAValue, ...], location: LocationAttr) -> None:
    """Let the region (perhaps a missing else) yield `values` too."""
    if region.blocks.first is None:
        region.add_block(Block([scf.YieldOp()]))
    block = region.block
    last = block.last_op
    assert isinstance(last, scf.YieldOp)
    wider = scf.YieldOp(*last.operands, *values)
    wider.location = location
    Rewriter.replace_op(last, wider)

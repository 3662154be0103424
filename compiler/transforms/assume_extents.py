"""Compile a loop for the row length that its subscripts suggest.

Points in space are rows of three numbers: `x[j, 0]`, `x[j, 1]`, `x[j, 2]`. How long a row is, only the array
knows, so a vector of first numbers is gathered one by one. Where the length is known, LLVM loads whole rows
and takes them apart in registers. Where a loop reads the numbers 0 to k of each row, all of them and no
other, the row most likely has k + 1: the loop runs on views that say so where it has, and as it was
elsewhere.

Before::

    func.func @f(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %i to %n do {
        %a = memref.load %x[%i, %c0] : memref<?x?xf64>
        %b = memref.load %x[%i, %c1] : memref<?x?xf64>
        %c = arith.addf %a, %b : f64
        memref.store %c, %y[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    !rows = memref<?x2xf64, strided<[2, 1]>>
    func.func @f(%x: memref<?x?xf64>, %y: memref<?xf64>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 1 : index
      %1 = memref.dim %x, %0 : memref<?x?xf64>
      %2 = arith.constant 2 : index
      %3 = arith.cmpi eq, %1, %2 : index
      scf.if %3 {
        %4 = arith.constant 0 : index
        %5 = memref.dim %x, %4 : memref<?x?xf64>
        %6 = arith.constant 2 : index
        %7 = arith.constant 1 : index
        %x_1 = array.view %x[%4, %4] dims [0, 1] extents(%5, %6) steps(%7, %7) : memref<?x?xf64> -> !rows
        %trips = array.loop %i to %n do {
          %a = memref.load %x_1[%i, %c0] : !rows
          %b = memref.load %x_1[%i, %c1] : !rows
          %c = arith.addf %a, %b : f64
          memref.store %c, %y[%i] : memref<?xf64>
          array.yield
        }
      } else {
        %trips_1 = array.loop %i_1 to %n do {
          %a_1 = memref.load %x[%i_1, %c0] : memref<?x?xf64>
          %b_1 = memref.load %x[%i_1, %c1] : memref<?x?xf64>
          %c_1 = arith.addf %a_1, %b_1 : f64
          memref.store %c_1, %y[%i_1] : memref<?xf64>
          array.yield
        }
      }
      func.return
    }

Kept: rows of which one number is read, or numbers that the loop computes; arrays that are not contiguous;
loops that hold loops or whole-array work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.carried_cells import is_outside
from .hoist_checks import Before
from .memory_effects import functions
from .peel_boundaries import leaves

LONGEST = 8
"""Longer rows are not guessed: to load them whole would not pay."""


@dataclass(frozen=True)
class AssumeExtents(ModulePass):
    """Version loops over short rows: for the row length that the subscripts suggest, and for any."""

    name = "assume-extents"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in list(leaves(function.body.block)):
                rows = rows_read(loop)
                if rows:
                    assume(loop, rows)


def rows_read(loop: array.LoopOp) -> dict[SSAValue, int]:
    """The arrays of which the loop reads whole rows, and how long these are if they end where it does."""
    found: dict[SSAValue, list[Operation]] = {}
    for op in every_op(loop)[1:]:
        for operand in op.operands:
            if is_table(operand, loop):
                found.setdefault(operand, []).append(op)
    lengths = {table: length_of(ops, table, loop) for table, ops in found.items()}
    return {table: length for table, length in lengths.items() if length}


def is_table(value: SSAValue, loop: array.LoopOp) -> bool:
    """A contiguous array from outside the loop, of rows whose length is not known."""
    type_ = value.type
    return (
        isinstance(type_, MemRefType)
        and array.is_contiguous(type_)
        and type_.get_num_dims() > 1
        and type_.get_shape()[-1] == DYNAMIC_INDEX
        and is_outside(value, loop)
    )


def length_of(ops: Sequence[Operation], table: SSAValue, loop: array.LoopOp) -> int:
    """One more than the last number that is read; 0 where not all before it are, or others may be."""
    numbers: set[int] = set()
    moves = False
    for op in ops:
        if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref is not table:
            return 0
        number = array.constant_value(op.indices[-1])
        if number is None:
            return 0
        numbers.add(number)
        moves |= not all(is_outside(i, loop) for i in op.indices)
    length = len(numbers)
    whole = moves and 1 < length <= LONGEST and numbers == set(range(length))
    return length if whole else 0


def assume(loop: array.LoopOp, rows: dict[SSAValue, int]) -> None:
    """Put a branch in the place of the loop."""
    assert loop.count is not None
    outside = Before(loop)
    holds: SSAValue | None = None
    for table, length in rows.items():
        assert isinstance(table.type, MemRefType)
        axis = outside.constant(table.type.get_num_dims() - 1)
        extent = outside.emit(memref.DimOp(table, axis))
        one = outside.compare("eq", extent, outside.constant(length))
        holds = one if holds is None else outside.emit(arith.AndIOp(holds, one))
    assert holds is not None
    if loop.trips.first_use is not None:
        loop.trips.replace_all_uses_with(
            outside.emit(arith.MaxSIOp(loop.count, outside.constant(0)))
        )
    slow, end = loop.clone(), scf.YieldOp()
    branch = scf.IfOp(holds, [], [end], [slow, scf.YieldOp()])
    outside.insert(branch)
    loop.detach()
    end.parent_block().insert_op_before(loop, end)  # pyright: ignore[reportOptionalMemberAccess]
    inside = Before(loop)
    for table, length in rows.items():
        view = view_of(table, length, inside)
        for op in every_op(loop)[1:]:
            if isinstance(op, memref.LoadOp | memref.StoreOp) and op.memref is table:
                op.operands[0 if isinstance(op, memref.LoadOp) else 1] = view


def view_of(table: SSAValue, length: int, inside: Before) -> SSAValue:
    """All of the array, of a type that knows how long a row is."""
    type_ = table.type
    assert isinstance(type_, MemRefType)
    rank = type_.get_num_dims()
    extents = [inside.emit(memref.DimOp(table, inside.constant(d))) for d in range(rank - 1)]
    extents.append(inside.constant(length))
    starts, steps = [inside.constant(0)] * rank, [inside.constant(1)] * rank
    plain = array.ViewOp(table, starts, list(range(rank)), extents, steps)
    shape = [DYNAMIC_INDEX] * (rank - 1) + [length]
    strides = [None] * (rank - 2) + [length, 1]
    view = array.ViewOp.create(
        operands=list(plain.operands),
        properties=dict(plain.properties),
        result_types=[array.strided(type_.element_type, shape, strides)],
    )
    plain.erase()
    view.result.name_hint = table.name_hint
    inside.insert(view)
    return view.result

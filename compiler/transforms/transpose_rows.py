"""Let a nest that goes through short rows again and again find their numbers apart.

Points in space are rows of three numbers, `x[j, 0]`, `x[j, 1]`, `x[j, 2]`. A vector of first numbers is put
together of three vectors each time it is read, and taken apart each time it is added to. Where a loop around
comes back to the same rows, a copy that lies by columns is made before it, and read in their place. What is
added to rows (by the adjoint, whose additions may come in any order) is added to columns that start from
zeros, and to the rows behind the loop. The values that are read stay what they are.

Before::

    func.func @f(%x : memref<?x?xf64>, %y : memref<?xf64>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %i to %n do {
        %trips_1 = array.loop %j to %n do {
          %a = memref.load %x[%j, %c0] : memref<?x?xf64>
          %b = memref.load %x[%j, %c1] : memref<?x?xf64>
          %c = arith.mulf %a, %b : f64
          memref.store %c, %y[%i] : memref<?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x: memref<?x?xf64>, %y: memref<?xf64>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 8 : index
      %1 = arith.cmpi sge, %n, %0 : index
      scf.if %1 {
        %2 = arith.constant 0 : index
        %3 = arith.maxsi %n, %2 : index
        %4 = arith.constant 2 : index
        %x_columns = array.alloc(%4, %3) : memref<2x?xf64>
        %5 = arith.constant 1 : index
        %6 = array.view %x[%2, %2] dims [1, 0] extents(%4, %3) steps(%5, %5)
            : memref<?x?xf64> -> memref<2x?xf64, strided<[1, ?]>>
        array.map(%4, %3) ins(%6 : memref<2x?xf64, strided<[1, ?]>>) outs(%x_columns : memref<2x?xf64>)
            kinds ["store"] {
        ^bb0(%7: f64):
          array.yield %7 : f64
        }
        %trips = array.loop %i to %n do {
          %trips_1 = array.loop %j to %n do {
            %a = memref.load %x_columns[%c0, %j] : memref<2x?xf64>
            %b = memref.load %x_columns[%c1, %j] : memref<2x?xf64>
            %c = arith.mulf %a, %b : f64
            memref.store %c, %y[%i] : memref<?xf64>
            array.yield
          }
          array.yield
        }
      } else {
        %trips_2 = array.loop %i_1 to %n do {
          %trips_3 = array.loop %j_1 to %n do {
            %a_1 = memref.load %x[%j_1, %c0] : memref<?x?xf64>
            %b_1 = memref.load %x[%j_1, %c1] : memref<?x?xf64>
            %c_1 = arith.mulf %a_1, %b_1 : f64
            memref.store %c_1, %y[%i_1] : memref<?xf64>
            array.yield
          }
          array.yield
        } {small}
      }
      func.return
    }

Kept: rows of which one number is read, or numbers that the loop computes; rows that the nest stores to, or
reads while it adds to them; rows under a condition, or in a nest that may raise, where they may not exist;
inner loops whose rows differ from one iteration around to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.additions import additions_in
from ..analysis.affine import Affine, Subscripts
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import is_outside
from ..diagnostics import locate
from ..rules import accesses, rule_of
from ..rules.builders import fill, transfer
from .assume_extents import LONGEST
from .hoist_checks import Before, is_counted
from .interchange import known_before
from .memory_effects import functions
from .peel_boundaries import leaves

LEAST = 8
"""Rows that are come back to fewer times are read where they lie."""


@dataclass(frozen=True)
class TransposeRows(ModulePass):
    """Let nests over short rows work on transposed copies of these rows."""

    name = "transpose-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for leaf in list(leaves(function.body.block)):
                nest = leaf.parent_op()
                if isinstance(nest, array.LoopOp) and comes_back(nest):
                    tables = list(Tables(function, nest, leaf).found())
                    if tables:
                        turn(nest, leaf, tables)


def comes_back(nest: array.LoopOp) -> bool:
    """A loop that runs as often as it says, whatever it computes."""
    marked = {array.CLAIMED, array.EXCLUSIVE, array.SMALL, array.RAISES} & nest.attributes.keys()
    if not is_counted(nest) or nest.carried or marked:
        return False
    known = None if nest.count is None else array.constant_value(nest.count)
    inner = every_op(nest)[1:]
    return (known is None or known >= LEAST) and not any(
        array.is_operation_that_may_raise(op)
        or rule_of(type(op)).opaque
        or (isinstance(op, array.LoopOp) and not is_counted(op))
        for op in inner
    )


@dataclass(frozen=True)
class Table:
    """Rows of an array that an inner loop goes along, from `first` on, or down to it."""

    memref: SSAValue
    leading: tuple[SSAValue, ...]
    """The subscripts before that of the row."""
    first: Affine
    length: int
    """How many numbers of a row there are."""
    added: bool
    """They are added to; else they are read."""
    uses: tuple[memref.LoadOp | memref.StoreOp, ...]


class Tables:
    """The rows that one nest of two loops goes through again and again."""

    def __init__(self, function: func.FuncOp, nest: array.LoopOp, leaf: array.LoopOp) -> None:
        self.function, self.nest, self.leaf = function, nest, leaf
        self.forms = Subscripts()

    def found(self) -> Iterator[Table]:
        assert self.leaf.count is not None
        if not known_before(self.forms.affine(self.leaf.count), self.nest):
            return
        moving: dict[SSAValue, list[memref.LoadOp | memref.StoreOp]] = {}
        for op in self.leaf.body.block.ops:
            if isinstance(op, memref.LoadOp | memref.StoreOp) and self.moves(op):
                moving.setdefault(op.memref, []).append(op)
        for value, uses in moving.items():
            table = self.table(value, uses)
            if table is not None:
                yield table

    @cached_property
    def alias(self) -> AliasAnalysis:
        return AliasAnalysis(self.function)

    @cached_property
    def additions(self) -> set[Operation]:
        return additions_in(self.nest, self.alias.may_alias, fastmath=False)

    def moves(self, op: memref.LoadOp | memref.StoreOp) -> bool:
        """Whether the inner loop goes from row to row of a compact array from outside."""
        assert isinstance(op.memref.type, MemRefType)
        if len(op.indices) < 2 or not array.is_contiguous(op.memref.type):
            return False
        return (
            is_outside(op.memref, self.nest)
            and self.leaf.induction in self.forms.affine(op.indices[-2]).terms
        )

    def table(
        self, value: SSAValue, uses: Sequence[memref.LoadOp | memref.StoreOp]
    ) -> Table | None:
        """The array's rows, where all of these ops agree on them."""
        one = uses[0]
        leading, first = tuple(one.indices[:-2]), self.first_row(one)
        numbers = {array.constant_value(op.indices[-1]) for op in uses}
        whole = 1 < len(numbers) <= LONGEST and numbers == set(range(len(numbers)))
        agree = all(tuple(op.indices[:-2]) == leading for op in uses) and all(
            self.first_row(op) == first for op in uses
        )
        outside = all(is_outside(v, self.nest) for v in leading)
        if first is None or not (whole and agree and outside):
            return None
        added = any(isinstance(op, memref.StoreOp) for op in uses)
        near = [
            access
            for op in every_op(self.nest)[1:]
            for access in accesses(op)
            if self.alias.may_alias(access.memref, value)
        ]
        if added:
            free = all(access.op in self.additions for access in near)
        else:
            free = all(access.kind == "read" for access in near)
        if not free:
            return None
        return Table(value, leading, first, len(numbers), added, tuple(uses))

    def first_row(self, op: memref.LoadOp | memref.StoreOp) -> Affine | None:
        """The first of the rows that the inner loop goes through one by one, upwards or downwards."""
        assert self.leaf.count is not None
        row, counter = self.forms.affine(op.indices[-2]), self.leaf.induction
        factor = row.terms[counter]
        first = row - Affine({counter: factor})
        if factor == -1:
            first = first - self.forms.affine(self.leaf.count) + 1
        return first if abs(factor) == 1 and known_before(first, self.nest) else None


def turn(nest: array.LoopOp, leaf: array.LoopOp, tables: Sequence[Table]) -> None:
    """Put a branch in the place of the nest, unless it is known to come back often enough."""
    assert nest.count is not None
    assert leaf.count is not None
    if array.constant_value(nest.count) is None:
        outside = Before(nest)
        often = outside.compare("sge", nest.count, outside.constant(LEAST))
        if nest.trips.first_use is not None:
            nest.trips.replace_all_uses_with(
                outside.emit(arith.MaxSIOp(nest.count, outside.constant(0)))
            )
        few, end = nest.clone(), scf.YieldOp()
        few.attributes[array.SMALL] = UnitAttr()
        outside.insert(scf.IfOp(often, [], [end], [few, scf.YieldOp()]))
        nest.detach()
        block = end.parent_block()
        assert block is not None
        block.insert_op_before(nest, end)
    before = Before(nest)
    rows = before.emit(arith.MaxSIOp(leaf.count, before.constant(0)))
    for table in tables:
        columns = columns_of(table, rows, before)
        if table.added:
            add_back(table, columns, rows, nest, before)
        for op in table.uses:
            at = Before(op).number(Subscripts().affine(op.indices[-2]) - table.first)
            place = columns, op.indices[-1], at
            load = isinstance(op, memref.LoadOp)
            op.operands = [*place] if load else [op.operands[0], *place]


def columns_of(table: Table, rows: SSAValue, before: Before) -> SSAValue:
    """Columns in new memory: zeros, or copies."""
    memory = table.memref
    assert isinstance(memory.type, MemRefType)
    extents = [before.constant(table.length), rows]
    made = array.AllocOp(extents, memory.type.element_type)
    made.memref.name_hint = f"{memory.name_hint or 'rows'}_columns"
    before.insert(made)
    if table.added:
        before.insert(fill(made.memref, extents, before.op))
        return made.memref
    rank = memory.type.get_num_dims()
    there = view_of(table, (rank - 1, rank - 2), extents, before)
    before.insert(there)
    copy = transfer(there.result, made.memref, extents)
    locate(copy, before.op.location)
    before.insert(copy)
    return made.memref


def view_of(
    table: Table, dims: Sequence[int], extents: Sequence[SSAValue], before: Before
) -> array.ViewOp:
    place = [*table.leading, before.number(table.first), before.constant(0)]
    return array.ViewOp(table.memref, place, dims, extents, [before.constant(1)] * 2)


def add_back(
    table: Table, columns: SSAValue, rows: SSAValue, nest: array.LoopOp, before: Before
) -> None:
    """Behind the nest, what the columns came to is added to the rows."""
    assert isinstance(table.memref.type, MemRefType)
    rank, zero = table.memref.type.get_num_dims(), before.constant(0)
    extents = [rows, before.constant(table.length)]
    rows_there = view_of(table, (rank - 2, rank - 1), extents, before)
    across = array.ViewOp(columns, [zero, zero], [1, 0], extents, [before.constant(1)] * 2)
    added = transfer(across.result, rows_there.result, extents, "add")
    at: Operation = nest
    for op in (rows_there, across, added):
        locate(op, nest.location)
        block = nest.parent_block()
        assert block is not None
        block.insert_op_after(op, at)
        at = op

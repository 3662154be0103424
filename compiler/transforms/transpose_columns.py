"""Read the columns of a matrix that a nest of loops goes through again and again from a transposed copy.

A map along a column touches a cache line for each element. Where a loop goes from column to column, and one
around it comes back to all of them, a copy that lies the other way is made once and read along its rows. The
values, and their order, stay what they are.

Before::

    func.func @f(%a : memref<?x?xf64>, %x : memref<?x?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %i to %n do {
        %row = array.view %x[%i, %c0] dims [1] extents(%n) steps(%c1)
            : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
        %trips_1 = array.loop %k to %m do {
          %column = array.view %a[%c0, %k] dims [0] extents(%n) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
          array.map(%n) ins(%column : memref<?xf64, strided<[?]>>) outs(%row : memref<?xf64, strided<[1]>>)
              kinds ["add"] {
          ^bb0(%e : f64):
            array.yield %e : f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    func.func @f(%a: memref<?x?xf64>, %x: memref<?x?xf64>, %n: index, %m: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %2 = memref.dim %a, %1 : memref<?x?xf64>
      %3 = arith.cmpi sge, %0, %0 : index
      %4 = arith.subi %2, %0 : index
      %5 = arith.minsi %m, %4 : index
      %6 = arith.cmpi sgt, %n, %0 : index
      %7 = arith.andi %6, %3 : i1
      %8 = arith.maxsi %5, %0 : index
      %9 = arith.select %7, %8, %0 : index
      %10 = memref.dim %a, %0 : memref<?x?xf64>
      %11 = arith.minsi %n, %10 : index
      %12 = arith.maxsi %0, %11 : index
      %a_columns = array.alloc(%9, %12) : memref<?x?xf64>
      %13 = array.view %a[%0, %0] dims [1, 0] extents(%9, %12) steps(%1, %1)
          : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
      array.map(%9, %12) ins(%13 : memref<?x?xf64, strided<[1, ?]>>)
          outs(%a_columns : memref<?x?xf64>) kinds ["store"] {
      ^bb0(%14: f64):
        array.yield %14 : f64
      }
      %trips = array.loop %i to %n do {
        %row = array.view %x[%i, %c0] dims [1] extents(%n) steps(%c1)
            : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
        %trips_1 = array.loop %k to %m do {
          %15 = arith.constant 0 : index
          %column = array.view %a_columns[%k, %15] dims [1] extents(%n) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
          array.map(%n) ins(%column : memref<?xf64, strided<[1]>>)
              outs(%row : memref<?xf64, strided<[1]>>) kinds ["add"] {
          ^bb0(%e: f64):
            array.yield %e : f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

Kept: columns of arrays that the nest writes to, those that are read once, matrices that do not lie by
rows, and views of views. Runs last: products of matrices read columns as they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.affine import Affine, Subscripts, extreme
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.slabs import Span, at, computable, is_outside, span_of
from ..diagnostics import locate
from ..rules import rule_of, writes
from .hoist_checks import Before, is_counted
from .interchange import known_before
from .memory_effects import functions
from .pack_columns import lies_by_rows, mark_sums

LEAST = 4
"""Columns that are come back to fewer times, where that is known, are read where they lie."""


@dataclass(frozen=True)
class TransposeColumns(ModulePass):
    """Read columns from a transposed copy."""

    name = "transpose-columns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            found = list(columns(function))
            if found:
                Copies(function).read(found)


def columns(function: func.FuncOp) -> Iterator[array.ViewOp]:
    """The views of columns that maps read, one after the other."""
    for view in ops_of_kind(function, array.ViewOp):
        source = view.source.type
        assert isinstance(source, MemRefType)
        if view.source_dims != (0,) or len(view.offsets) != 2 or not lies_by_rows(source):
            continue
        users = [use.operation for use in view.result.uses]
        if users and all(isinstance(u, array.MapOp) and view.result not in u.outs for u in users):
            yield view


@dataclass(frozen=True)
class Part:
    """What a nest reads of a matrix: columns `first + factor * k`, `rows` of them."""

    matrix: SSAValue
    nest: array.LoopOp
    along: array.LoopOp
    """The loop that goes from column to column."""
    first: Affine
    factor: int
    rows: Span


class Copies:
    """The transposed copies of one function's matrices."""

    def __init__(self, function: func.FuncOp) -> None:
        self.alias = AliasAnalysis(function)
        self.forms = Subscripts()
        self.made: dict[Part, SSAValue] = {}

    def read(self, found: list[array.ViewOp]) -> None:
        for view in found:
            part = self.part_read(view)
            if part is not None:
                self.turn(view, part)

    def part_read(self, view: array.ViewOp) -> Part | None:
        """What is read in the outermost loop that comes back to the columns, and stores to none."""
        loops = enclosing_loops(view)[::-1]
        column = self.forms.affine(view.offsets[1])
        moving = [loop for loop in loops if column.terms.get(loop.induction, 0)]
        if len(moving) != 1 or self.forms.affine(view.steps[0]) != Affine(constant=1):
            return None
        (along,) = moving
        found: Part | None = None
        for loop in loops[loops.index(along) + 1 :]:
            if not is_outside(view.source, loop) or not self.may_read_ahead(loop, view.source):
                break
            found = self.part(view, loop, along, column) or found
        return found

    def part(
        self, view: array.ViewOp, nest: array.LoopOp, along: array.LoopOp, column: Affine
    ) -> Part | None:
        """The same of one loop, where it is known before."""
        factor = column.terms[along.induction]
        if factor not in (1, -1):
            return None
        first = column - Affine({along.induction: factor})
        begin, extent = (self.forms.affine(v) for v in (view.offsets[0], view.extents[0]))
        if not is_counted(along) or along.count is None or nest.count is None:
            return None
        known = [first, self.forms.affine(along.count), self.forms.affine(nest.count)]
        moving = computable(begin, nest) and computable(extent, nest)
        if not moving or not all(known_before(form, nest) for form in known):
            return None
        rows, counter = span_of(begin, extent), nest.induction
        last = known[2] - 1
        ends = [
            Span(at(rows.begin, counter, t), at(rows.end, counter, t)) for t in (Affine(), last)
        ]
        if "mixed" in rows.moves(counter):
            return None
        low = extreme("max", extreme("min", ends[0].begin, ends[1].begin), Affine())
        high = extreme("max", ends[0].end, ends[1].end)
        # An iteration may raise before it reads: beyond the matrix there is nothing to copy.
        high = extreme("min", high, self.forms.extent(view.source, 0))
        return Part(view.source, nest, along, first, factor, Span(low, high))

    def may_read_ahead(self, loop: array.LoopOp, matrix: SSAValue) -> bool:
        known = None if loop.count is None else array.constant_value(loop.count)
        plain = is_counted(loop) and not loop.carried and array.SMALL not in loop.attributes
        if not plain or (known is not None and known < LEAST):
            return False
        return not any(
            rule_of(type(op)).opaque
            or any(self.alias.may_alias(write.memref, matrix) for write in writes(op))
            for op in loop.walk()
        )

    def turn(self, view: array.ViewOp, part: Part) -> None:
        """Let the column be a row of the copy."""
        if part not in self.made:
            self.made[part] = transposed(part, self.forms)
        here = Before(view)
        row = here.number(self.forms.affine(view.offsets[0]) - part.rows.begin)
        place = [part.along.induction, row]
        turned = array.ViewOp(self.made[part], place, [1], view.extents, view.steps)
        turned.result.name_hint = view.result.name_hint
        here.insert(turned)
        mark_sums(view)
        for use in list(view.result.uses):
            use.operation.operands[use.index] = turned.result
        view.detach()
        view.erase()


def transposed(part: Part, forms: Subscripts) -> SSAValue:
    """A copy of the part that lies by columns; empty where the nest does not run."""
    matrix, before = part.matrix, Before(part.nest)
    assert isinstance(matrix.type, MemRefType)
    assert part.along.count is not None
    assert part.nest.count is not None
    zero, one = before.constant(0), before.constant(1)
    width, first = before.number(forms.extent(matrix, 1)), before.number(part.first)
    if part.factor > 0:
        left, inside = arith.SubiOp(width, first), before.compare("sge", first, zero)
    else:
        left, inside = arith.AddiOp(first, one), before.compare("slt", first, width)
    count = before.number(forms.affine(part.along.count))
    count = before.emit(arith.MinSIOp(count, before.emit(left)))
    runs = before.compare("sgt", part.nest.count, zero)
    some = before.emit(arith.AndIOp(runs, inside))
    columns = before.emit(arith.SelectOp(some, before.emit(arith.MaxSIOp(count, zero)), zero))
    rows, low = before.number(part.rows.count), before.number(part.rows.begin)
    made = array.AllocOp([columns, rows], matrix.type.element_type)
    made.memref.name_hint = f"{matrix.name_hint or 'matrix'}_columns"
    before.insert(made)
    place, factor = [low, first], before.constant(part.factor)
    across = array.ViewOp(matrix, place, [1, 0], [columns, rows], [factor, one])
    before.insert(across)
    body = Block(arg_types=[matrix.type.element_type])
    body.add_op(array.YieldOp([*body.args]))
    copy = array.MapOp([columns, rows], [across.result], [made.memref], ["store"], body)
    locate(copy, part.nest.location)
    before.insert(copy)
    return made.memref

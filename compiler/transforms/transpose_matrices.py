"""Let matrices lie by columns while a nest of loops goes through them column by column.

Maps along columns touch a cache line for each element, and their elements make no vectors. The matrix is
copied before the nest, turned around, and back behind it if any column was stored to. Each element sees the
same operations in the same order; only sums over a column, which may be taken in any order, may have other
last bits.

Before::

    func.func @f(%a : memref<?x?xf64>, %r : f64) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = memref.dim %a, %c0 : memref<?x?xf64>
      %n = memref.dim %a, %c1 : memref<?x?xf64>
      %trips = array.loop %k to %n do {
        %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1)
            : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
        %trips_1 = array.loop %i to %k do {
          %q = array.view %a[%c0, %i] dims [0] extents(%m) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
          array.map(%m) ins(%p, %q : memref<?xf64, strided<[?]>>, memref<?xf64, strided<[?]>>)
              outs(%p : memref<?xf64, strided<[?]>>) kinds ["store"] {
          ^bb0(%x : f64, %y : f64):
            %z = arith.mulf %y, %r : f64
            %less = arith.subf %x, %z : f64
            array.yield %less : f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    func.func @f(%a: memref<?x?xf64>, %r: f64) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = memref.dim %a, %c0 : memref<?x?xf64>
      %n = memref.dim %a, %c1 : memref<?x?xf64>
      %0 = arith.constant 0 : index
      %1 = memref.dim %a, %0 : memref<?x?xf64>
      %2 = arith.constant 1 : index
      %3 = memref.dim %a, %2 : memref<?x?xf64>
      %4 = arith.constant 7 : index
      %5 = arith.addi %1, %4 : index
      %6 = arith.constant 8 : index
      %7 = arith.floordivsi %5, %6 : index
      %8 = arith.muli %7, %6 : index
      %9 = arith.constant 64 : index
      %10 = arith.cmpi sge, %1, %9 : index
      %11 = arith.select %10, %8, %1 : index
      %a_columns = array.alloc(%3, %11) : memref<?x?xf64>
      %12 = array.view %a[%0, %0] dims [1, 0] extents(%3, %1) steps(%2, %2)
          : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
      %13 = array.view %a_columns[%0, %0] dims [0, 1] extents(%3, %1) steps(%2, %2)
          : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
      array.map(%3, %1) ins(%12 : memref<?x?xf64, strided<[1, ?]>>)
          outs(%13 : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
      ^bb0(%14: f64):
        array.yield %14 : f64
      }
      %trips = array.loop %k to %n do {
        %p = array.view %a_columns[%k, %c0] dims [1] extents(%m) steps(%c1)
            : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
        %trips_1 = array.loop %i to %k do {
          %q = array.view %a_columns[%i, %c0] dims [1] extents(%m) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
          array.map(%m) ins(%p, %q : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>)
              outs(%p : memref<?xf64, strided<[1]>>) kinds ["store"] {
          ^bb0(%x: f64, %y: f64):
            %z = arith.mulf %y, %r : f64
            %less = arith.subf %x, %z : f64
            array.yield %less : f64
          }
          array.yield
        }
        array.yield
      }
      %15 = array.view %a_columns[%0, %0] dims [1, 0] extents(%1, %3) steps(%2, %2)
          : memref<?x?xf64> -> memref<?x?xf64, strided<[1, ?]>>
      array.map(%1, %3) ins(%15 : memref<?x?xf64, strided<[1, ?]>>)
          outs(%a : memref<?x?xf64>) kinds ["store"] {
      ^bb0(%16: f64):
        array.yield %16 : f64
      }
      func.return
    }

A matrix that the function has made, and that a few maps outside of loops use otherwise, needs no copies.
It is allocated by columns, and the others go through it as it lies.

Where the function has only filled the matrix before, and it is copied back, the copy is filled instead. A
nest goes on with the copy of the nest before it, where nothing has stored to the matrix in between.

Long rows of the copy begin where cache lines do.

It pays where a loop goes through all columns, one by one, and a loop in it comes back to them: the copies are
as much work as two iterations of an inner loop.

A map in the nest that copies the whole matrix, less often than others go along its columns, reads it where it
lies then: the states of a loop that runs again (`derivative.replays`).

Kept: matrices of which the nest touches anything else but columns, in maps; nests that may raise, in which
memory is to be as Python leaves it; and those in loops whose iterations are for threads: others write to it
meanwhile. Runs after products are made, which read columns as they lie, and before `transpose_columns`, for
matrices that are only read, a part of them as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.affine import Affine, Subscripts, Term
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.in_place import stands_still
from ..analysis.slabs import is_outside
from ..analysis.views import strip_views
from ..diagnostics import locate
from ..rules import accesses
from ..rules.builders import transfer, whole_lines
from .column_copies import ColumnCopy, filled, only_fill
from .hoist_checks import Before
from .memory_effects import functions
from .pack_columns import lies_by_rows, mark_sums
from .saved_steps import USING, namings, rename
from .transpose_rows import comes_back


@dataclass(frozen=True)
class TransposeMatrices(ModulePass):
    """Let nests that go through columns work on transposed copies, copied back behind them."""

    name = "transpose-matrices"
    threads: bool = False
    """Iterations of loops are for threads."""
    own: bool = False
    """Only matrices that the function has made: what is one by columns has a shadow by columns."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            copies: dict[SSAValue, ColumnCopy] = {}
            for view in list(columns(function)):
                made = isinstance(view.source.owner, array.AllocOp)
                if view.parent is not None and (made or not self.own):
                    turn(function, view, copies, threads=self.threads, own=self.own)


def turn(
    function: func.FuncOp,
    view: array.ViewOp,
    copies: dict[SSAValue, ColumnCopy],
    *,
    threads: bool,
    own: bool,
) -> None:
    """Turn the matrix of a column for the outermost loop for which that can be done.

    `copies` has the last copy of each matrix.
    """
    for nest in enclosing_loops(view):
        shared = {array.CLAIMED, array.EXCLUSIVE} & nest.attributes.keys()
        if is_outside(view.source, nest) and comes_back(nest):
            found = Matrix(function, nest, view.source)
            if found.pays() and found.is_all():
                found.write(copies, as_it_lies=not own)
                return
        if threads or shared:
            return


def columns(function: func.FuncOp) -> Iterator[array.ViewOp]:
    """The views of columns of matrices that lie by rows."""
    return (view for view in ops_of_kind(function, array.ViewOp) if is_column(view))


def is_column(op: Operation | Block) -> bool:
    if not isinstance(op, array.ViewOp) or op.source_dims != (0,) or len(op.offsets) != 2:
        return False
    assert isinstance(op.source.type, MemRefType)
    return lies_by_rows(op.source.type)


class Matrix:
    """A matrix, and a nest that touches nothing but its columns."""

    def __init__(self, function: func.FuncOp, nest: array.LoopOp, matrix: SSAValue) -> None:
        self.function, self.nest, self.matrix = function, nest, matrix
        self.forms = Subscripts()

    @cached_property
    def views(self) -> list[array.ViewOp]:
        return [v for v in ops_of_kind(self.nest, array.ViewOp) if v.source is self.matrix]

    @cached_property
    def maps(self) -> list[array.MapOp]:
        """What goes along the columns."""
        users = (use.operation for view in self.views for use in view.result.uses)
        return [op for op in users if isinstance(op, array.MapOp)]

    def pays(self) -> bool:
        """Whether a loop goes through all columns, and a loop in it comes back to some."""
        if not all(map(is_column, self.views)):
            return False
        all_ = self.forms.extent(self.matrix, 1)
        through = [loop for view in self.views for loop in self.through(view, all_)]
        return any(
            loop is not inner and loop.is_ancestor(inner)
            for op in self.maps
            for inner in enclosing_loops(op)[-1:]
            for loop in through
        )

    def through(self, view: array.ViewOp, all_: Affine) -> Iterator[array.LoopOp]:
        """The loops of which each iteration has a column of its own, with which all have one."""
        column = self.forms.affine(view.offsets[1])
        for loop in enclosing_loops(view):
            steps = abs(column.terms.get(loop.induction, 0))
            if steps == 1 and loop.count is not None:
                count = self.forms.affine(loop.count)
                if count == all_ or is_strip(count, loop, all_):
                    yield loop

    def is_all(self) -> bool:
        """Whether nothing else in the nest touches the memory of the matrix, but copies of the whole."""
        if any(len(op.extents) != 1 for op in self.maps) or self.escapes():
            return False
        alias = AliasAnalysis(self.function)
        mine = {view.result for view in self.views}
        touched = [a for op in every_op(self.nest)[1:] for a in accesses(op)]
        return all(
            a.memref in mine
            or (a.op in self.copies and a.kind == "read")
            or not alias.may_alias(a.memref, self.matrix)
            for a in touched
        )

    @cached_property
    def copies(self) -> list[array.MapOp]:
        """Maps that copy the whole matrix, less often than others go along its columns."""
        users = (u.operation for u in self.matrix.uses if self.nest.is_ancestor(u.operation))
        depth = max((len(enclosing_loops(op)) for op in self.maps), default=0)
        return [
            op
            for op in users
            if isinstance(op, array.MapOp)
            and list(op.ins) == [self.matrix]
            and len(op.outs) == 1
            and op.out_kinds == ("store",)
            and op.shifts is None
            and len(enclosing_loops(op)) < depth
        ]

    def escapes(self) -> bool:
        """Whether anything but maps has a column, or anything but views of columns the matrix."""
        others = [
            use.operation
            for view in self.views
            for use in view.result.uses
            if not isinstance(use.operation, array.MapOp)
        ]
        uses = [u.operation for u in self.matrix.uses if self.nest.is_ancestor(u.operation)]
        return bool(others) or any(op not in (*self.views, *self.copies) for op in uses)

    @cached_property
    def is_stored_to(self) -> bool:
        return any(view.result in op.outs for op in self.maps for view in self.views)

    # Another order of the elements.

    def may_lie_by_columns(self) -> bool:
        """Whether the function has made the matrix, and all else that uses it is of columns, or a few maps.

        Sums over all of it have an order, which is that of an array by rows: they keep it.
        """
        made = self.matrix.owner
        if not isinstance(made, array.AllocOp):
            return False
        if {array.GROWABLE, array.STACK, array.CLEARED} & made.attributes.keys():
            return False
        strided = set[Operation]()
        for op, name in namings(self.matrix):
            if isinstance(op, memref.DimOp) or is_column(name.owner):
                continue
            if not isinstance(op, USING) or enclosing_loops(op) != enclosing_loops(made):
                return False
            if isinstance(op, array.MapOp):
                if op.gathers is not None or any(map(stands_still, op.outs)):
                    return False
                others = (m for m in (*op.ins, *op.outs) if strip_views(m) is not self.matrix)
                if any(map(is_by_rows, others)):
                    strided.add(op)
        return len(strided) <= 1 + self.is_stored_to

    def lie_by_columns(self, made: array.AllocOp) -> None:
        before = Before(made)
        rows, width = made.extents
        element = made.memref.type.element_type
        columns = array.AllocOp([width, whole_lines(rows, element, before.emit)], element)
        columns.memref.name_hint = f"{made.memref.name_hint or 'matrix'}_columns"
        before.insert(columns)
        standing = across(columns.memref, [rows, width], before)
        standing.result.name_hint = made.memref.name_hint
        before.insert(standing)
        for op in list(ops_of_kind(self.function, array.ViewOp)):
            if op.source is made.memref and is_column(op):
                mark_sums(op)
        for op in (*reversed(rename(made.memref, standing.result)), made):
            Rewriter.erase_op(op)

    # The copy.

    def write(self, copies: dict[SSAValue, ColumnCopy], *, as_it_lies: bool) -> None:
        made = self.matrix.owner
        if isinstance(made, array.AllocOp) and as_it_lies and self.may_lie_by_columns():
            self.lie_by_columns(made)
            return
        before, matrix, earlier = Before(self.nest), self.matrix, copies.get(self.matrix)
        rows, width = (before.number(self.forms.extent(matrix, axis)) for axis in (0, 1))
        if earlier is None or not earlier.lasts(self.function, matrix, self.nest):
            earlier = self.copied(before, rows, width)
        columns, since = earlier.columns, earlier.since
        if self.copies:
            standing = across(columns, [rows, width], before)
            self.insert([standing], before.op)
            for op in self.copies:
                op.operands[op.operands.index(matrix)] = standing.result
        if self.is_stored_to:
            standing = across(columns, [rows, width], before)
            since = transfer(standing.result, matrix, [rows, width])
            self.insert([standing, since], self.nest.next_op)
        copies[matrix] = ColumnCopy(columns, since)
        for view in self.views:
            turned(view, columns)

    def copied(self, before: Before, rows: SSAValue, width: SSAValue) -> ColumnCopy:
        """A copy, made before the nest. Of a matrix that is copied back, and was only filled, the copy is."""
        matrix = self.matrix
        assert isinstance(matrix.type, MemRefType)
        element = matrix.type.element_type
        made = array.AllocOp([width, whole_lines(rows, element, before.emit)], element)
        made.memref.name_hint = f"{matrix.name_hint or 'matrix'}_columns"
        before.insert(made)
        fill = only_fill(matrix, self.nest) if self.is_stored_to else None
        lying, own = (
            across(matrix, [width, rows], before),
            along(made.memref, [width, rows], before),
        )
        if fill is not None:
            lying.erase()
            first = filled(fill, own.result, [width, rows])
            self.insert([own, first], before.op)
            Rewriter.erase_op(fill)
        else:
            first = transfer(lying.result, own.result, [width, rows])
            self.insert([lying, own, first], before.op)
        return ColumnCopy(made.memref, first)

    def insert(self, ops: Sequence[Operation], anchor: Operation | None) -> None:
        block = self.nest.parent
        assert block is not None
        assert anchor is not None
        for op in ops:
            locate(op, self.nest.location)
            block.insert_op_before(op, anchor)


def is_strip(count: Affine, loop: array.LoopOp, all_: Affine) -> bool:
    """Whether a loop, with the one around it, goes through so many iterations, a few at a time."""
    around = loop.parent_op()
    terms = [(s, factor) for s, factor in count.terms.items()]
    if not isinstance(around, array.LoopOp) or len(terms) != 1 or count.constant:
        return False
    (term, factor), counter = terms[0], around.induction
    if not isinstance(term, Term) or (term.kind, factor) != ("min", 1):
        return False
    size = next((a.constant for a in term.args if a.is_constant), 0)
    return size > 0 and all_ - Affine({counter: size}) in term.args


def is_by_rows(value: SSAValue) -> bool:
    """Whether it is a matrix whose rows are contiguous."""
    assert isinstance(value.type, MemRefType)
    strides = array.strides_of(value.type)
    return len(strides) == 2 and strides[1] == 1


def across(matrix: SSAValue, extents: Sequence[SSAValue], before: Before) -> array.ViewOp:
    """The matrix with its rows as columns."""
    zero, one = before.constant(0), before.constant(1)
    return array.ViewOp(matrix, [zero, zero], [1, 0], extents, [one, one])


def along(matrix: SSAValue, extents: Sequence[SSAValue], before: Before) -> array.ViewOp:
    """The matrix without what its rows are longer."""
    zero, one = before.constant(0), before.constant(1)
    return array.ViewOp(matrix, [zero, zero], [0, 1], extents, [one, one])


def turned(view: array.ViewOp, columns: SSAValue) -> None:
    """Let a column be a row of the copy."""
    row, column = view.offsets
    made = array.ViewOp(columns, [column, row], [1], view.extents, view.steps)
    made.result.name_hint = view.result.name_hint
    Before(view).insert(made)
    mark_sums(view)
    view.result.replace_all_uses_with(made.result)
    view.detach()
    view.erase()

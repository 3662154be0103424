"""Run four iterations of a loop around a loop of maps at once, and put what they share into one map.

    for j in range(n):                            for j in range(0, n - 3, 4):
        for k in range(j):                            for k in range(j):
            r[k, j] = np.dot(q[k], a[j])                  r[k, j : j + 4] = dots of q[k], a[j], ..., a[j + 3]
            a[j] -= q[k] * r[k, j]                        a[j], ..., a[j + 3] -= q[k] * r[k, j], ...
        q[j] = a[j] / norm(a[j])                      for d in range(j, j + 4):
                                                          the rest of row d, and q[d]
                                                  ...

Four dot products in one loop load `q[k]` once, and need not wait for each other's last additions; so do four
updates. The four rows that are updated stay in the cache meanwhile. Where the program has the loops the other
way around, and updates all later rows by `q[k]` as soon as there is one, the loops are interchanged first.
`unroll-and-jam` does this for loops of scalars, `analysis/loop_order` says when it may. Each element sees the
same operations in the same order; the terms of a dot product may come in any order.

Before::

    func.func @f(%a : memref<?x?xf64>, %q : memref<?x?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %j to %n do {
        %trips_1 = array.loop %k to %m do {
          %row = array.view %a[%j, %c0] dims [1] extents(%n) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
          %by = array.view %q[%k, %c0] dims [1] extents(%n) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
          array.map(%n) ins(%by, %row : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>)
              outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
          ^bb0(%x : f64, %y : f64):
            %z = arith.subf %y, %x : f64
            array.yield %z : f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>>
    func.func @f(%a: memref<?x?xf64>, %q: memref<?x?xf64>, %n: index, %m: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 4 : index
      %1 = arith.floordivsi %n, %0 : index
      %2 = arith.constant 0 : index
      %3 = arith.maxsi %1, %2 : index
      %4 = array.loop %j to %3 do {
        %5 = arith.constant 4 : index
        %6 = arith.muli %j, %5 : index
        %7 = arith.constant 0 : index
        %8 = arith.maxsi %m, %7 : index
        %9 = arith.constant 1 : index
        %10 = arith.addi %6, %9 : index
        %11 = arith.constant 2 : index
        %12 = arith.addi %6, %11 : index
        %13 = arith.constant 3 : index
        %14 = arith.addi %6, %13 : index
        %row = array.view %a[%6, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> !row
        %row_1 = array.view %a[%10, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> !row
        %row_2 = array.view %a[%12, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> !row
        %row_3 = array.view %a[%14, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> !row
        %15 = array.loop %k to %8 do {
          %by = array.view %q[%k, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> !row
          array.map(%n) ins(%by, %row, %row_1, %row_2, %row_3 : !row, !row, !row, !row, !row)
            outs(%row, %row_1, %row_2, %row_3 : !row, !row, !row, !row)
            kinds ["store", "store", "store", "store"] {
          ^bb0(%x: f64, %y: f64, %y_1: f64, %y_2: f64, %y_3: f64):
            %z = arith.subf %y, %x : f64
            %z_1 = arith.subf %y_1, %x : f64
            %z_2 = arith.subf %y_2, %x : f64
            %z_3 = arith.subf %y_3, %x : f64
            array.yield %z, %z_1, %z_2, %z_3 : f64, f64, f64, f64
          }
          array.yield
        }
        array.yield
      }
      %16 = arith.muli %3, %0 : index
      %17 = arith.subi %n, %16 : index
      %trips = array.loop %j_1 to %17 do {
        %j_2 = arith.addi %16, %j_1 : index
        %trips_1 = array.loop %k_1 to %m do {
          %row_4 = array.view %a[%j_2, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> !row
          %by_1 = array.view %q[%k_1, %c0] dims [1] extents(%n) steps(%c1) : memref<?x?xf64> -> !row
          array.map(%n) ins(%by_1, %row_4 : !row, !row) outs(%row_4 : !row) kinds ["store"] {
          ^bb0(%x_1: f64, %y_4: f64):
            %z_4 = arith.subf %y_4, %x_1 : f64
            array.yield %z_4 : f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

Scalars that each iteration sets anew are four. Kept: nests that share nothing, or whose order matters; inner
loops with anything but maps and scalar code in them, of rows that are not all of one length, or, at run time,
too short to be vectors, or too long for five to stay in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.affine import Affine, Subscripts
from ..analysis.carried_cells import cell_of, roles
from ..analysis.footprint import Point, Range
from ..analysis.loop_order import AtLeast, Interchange, Jam, LoopOrder, Parts, legal, may_jam
from ..analysis.views import strip_views
from ..rules import Access
from ..rules.builders import element_of
from .interchange import (
    LoopPair,
    interchange,
    is_outside,
    known_before,
    pair_of,
)
from .jammed_maps import JammedMaps, Out, is_of_adjoint
from .memory_effects import functions
from .privatize_cells import uses_of
from .run_upwards import run_upwards
from .scalar_nests import ScalarNest, accesses_of, inner_loops
from .tile_registers import is_plain
from .unroll_and_jam import TIMES

WAYS = (Jam(from_end=False, ragged_first=False), Jam(from_end=True, ragged_first=True))
"""What is tried: in the program's order, and as an adjoint goes, which comes to what is common last."""


@dataclass(frozen=True)
class JamMaps(ModulePass):
    """Unroll loops around loops of maps, and fuse the copies of each map."""

    name = "jam-maps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for inner in [one for one in ops_of_kind(function, array.LoopOp) if is_of_maps(one)]:
                outer = inner.parent_op()
                if isinstance(outer, array.LoopOp) and is_plain(outer):
                    MapNest(function, outer, fastmath=False).rewrite()


def is_of_maps(loop: array.LoopOp) -> bool:
    """Whether a loop has maps over rows of one length, and scalar code."""
    ops = list(loop.body.block.ops)[:-1]
    maps = [op for op in ops if isinstance(op, array.MapOp)]
    plain = is_plain(loop) and not any(op.regions for op in ops if op not in maps)
    if not plain or not maps or not all(len(one.extents) == 1 for one in maps):
        return False
    (length,) = maps[0].extents
    return all(one.extents[0] is length for one in maps)


def can_be_merged(op: array.MapOp) -> bool:
    """Whether a map only stores to rows, or adds to them."""
    numbers = all(isinstance(element_of(out), AnyFloat) for out in op.outs)
    plain = op.gathers is None and not op.attributes and {*op.out_kinds} <= {"store", "add"}
    return len(op.extents) == 1 and plain and numbers


class MapNest(ScalarNest):
    """A loop with a loop of maps in it."""

    def movable(self, op: Operation) -> bool:
        if isinstance(op, array.MapOp):
            return can_be_merged(op)
        return isinstance(op, array.ViewOp) or super().movable(op)

    def rewrite(self) -> None:
        pair = self.of_rows()
        if pair is not None and not self.shares(pair, pair.outer, pair.inner):
            pair = self.by_rows(pair)
        parts = None if pair is None else self.parts(pair)
        if pair is None or parts is None:
            return
        for way in WAYS:
            added = self.added(way, pair)
            apart = not self.takes_turns(added) and self.are_apart(way, parts, added)
            if apart and may_jam(way, TIMES, parts, self.order):
                JammedMaps(pair, way, own_cells(pair), added).build()
                return

    def are_apart(self, way: Jam, parts: Parts, added: set[Out]) -> bool:
        """Whether no two iterations that share the maps meet in them, but where both add to one row."""
        at, _ = way.place(parts)
        same, inside = (AtLeast(at, 0, at, 1), AtLeast(at, 1, at, 0)), parts.inside
        others = [a for a in inside if (a.op, a.memref) not in added]
        adding = [a for a in inside if (a.op, a.memref) in added]
        return not (
            self.order.any_meet(inside, others, parts.outer, *same)
            or self.order.any_meet(others, adding, parts.outer, *same)
        )

    def takes_turns(self, added: set[Out]) -> bool:
        """Whether two maps of an iteration add to one row: then iterations would not add one by one."""
        alias = self.dependence.alias
        return any(
            a is not b and alias.may_alias(one, other) for a, one in added for b, other in added
        )

    def added(self, way: Jam, pair: LoopPair) -> set[Out]:
        """The rows to which maps of the adjoint only add: for all iterations that share the map, the same."""
        return {
            (op, out)
            for op in pair.inside
            if isinstance(op, array.MapOp)
            for out, kind, term in zip(op.outs, op.out_kinds, op.yielded, strict=True)
            if kind == "add" and is_of_adjoint(term) and out not in op.ins
            if op.outs.count(out) == 1 and self.is_shared(op, out, way, pair)
        }

    def is_shared(self, op: array.MapOp, row: SSAValue, way: Jam, pair: LoopPair) -> bool:
        """Whether the row is certainly the same where iterations of the outer loop have one inner loop."""
        if cell_of(row) is not None:
            return False
        outer, inner, trips = pair.outer, pair.inner, pair.trips
        for dimension in self.dependence.region(Access(op, row, "read")).dimensions:
            if isinstance(dimension, Range) and dimension.step is None:
                return False
            at = dimension.at if isinstance(dimension, Point) else dimension.start
            at = trips.resolved(at, outer.induction)
            across, along = (at.terms.get(o.induction, 0) for o in (outer, inner))
            across += along * trips.slope if way.from_end else 0
            moving = Affine({o.induction: at.terms.get(o.induction, 0) for o in (outer, inner)})
            if across or not known_before(at - moving, outer):
                return False
        return True

    def interchanged(self) -> LoopPair | None:
        """The pair with its loops interchanged, where it did not go row by row already."""
        pair = self.of_rows()
        if pair is None or self.shares(pair, pair.outer, pair.inner):
            return None
        return self.by_rows(pair)

    def of_rows(self) -> LoopPair | None:
        """The loops, if all rows have one length."""
        pair = self.pair(self.loop)
        length = None if pair is None else length_of(pair)
        if pair is None or self.open or length is None or not is_outside(length, pair.outer):
            return None
        return pair

    def by_rows(self, pair: LoopPair) -> LoopPair | None:
        """The pair with its loops interchanged, so that all that is done to a row is done before the next.

        The inner loop has the rows behind that of the outer one. Counted from the last one, each row has a
        number of its own.
        """
        inner, forms = pair.inner, self.dependence.footprints.subscripts
        parts = self.parts(pair) if pair.trips.slope < 0 and pair.exact(forms) else None
        if parts is None or not self.order.independent(parts.inside, inner):
            return None
        run_upwards(inner)
        self.look_again()
        turned = pair_of(pair.outer, Subscripts())
        parts = None if turned is None else self.parts(turned)
        way = Interchange(down=True, aligned=True)
        if (
            turned is None
            or parts is None
            or not self.shares(turned, inner, turned.outer)
            or not self.stays(turned, inner, turned.outer)
            or not legal(way, parts, self.order, turned=True)
        ):
            run_upwards(inner)
            return None
        following = turned.outer.next_op
        interchange(turned, way)
        self.look_again()
        made = None if following is None else following.prev_op
        while made is not None and not (isinstance(made, array.LoopOp) and inner_loops(made)):
            made = made.prev_op  # what came behind the inner loop has a loop of its own
        assert isinstance(made, array.LoopOp)
        return pair_of(made, Subscripts())

    @property
    def order(self) -> LoopOrder:
        return LoopOrder(self.dependence, set())

    def shares(self, pair: LoopPair, still: array.LoopOp, moving: array.LoopOp) -> bool:
        """Whether maps read a row that only one of the loops moves along."""
        maps = [op for op in pair.inside if isinstance(op, array.MapOp)]
        return any(
            self.moves(op, m, still, moving) == (False, True) for op in maps for m in op.ins
        ) and any(
            self.moves(op, m, still, moving) == (True, False) or is_step(op, m)
            for op in maps
            for m in op.outs
        )

    def stays(self, pair: LoopPair, still: array.LoopOp, moving: array.LoopOp) -> bool:
        """Whether maps store to no other rows than those that the other loop does not move along."""
        maps = [op for op in pair.inside if isinstance(op, array.MapOp)]
        written = [
            self.moves(op, m, still, moving) for op in maps for m in op.outs if cell_of(m) is None
        ]
        return {*written} == {(True, False)}

    def moves(
        self, op: array.MapOp, row: SSAValue, *loops: array.LoopOp
    ) -> tuple[bool, ...] | None:
        """Which of the loops move along the rows; None where that is unknown."""
        region = self.dependence.region(Access(op, row, "read"))
        ats = [d.at if isinstance(d, Point) else d.start for d in region.dimensions]
        unknown = any(isinstance(d, Range) and d.step is None for d in region.dimensions)
        return (
            None if unknown else tuple(any(at.terms.get(o.induction) for at in ats) for o in loops)
        )

    def parts(self, pair: LoopPair) -> Parts | None:
        """What the pair touches, but for cells of which each iteration has its own."""
        loaded = (memref.LoadOp, array.MapOp)
        if any(isinstance(op, loaded) for op in (*pair.sunk, *pair.again)):
            return None
        if pair.before and pair.after:
            return None  # a cell of both would be set for another iteration in between
        own = own_cells(pair)
        before, inside, after = (
            [a for a in accesses_of(ops) if cell_of(a.memref) not in own]
            for ops in (pair.before, pair.inside, pair.after)
        )
        return Parts(pair.outer, pair.inner, pair.trips, before, inside, after)


def is_step(op: array.MapOp, row: SSAValue) -> bool:
    """Whether a map makes this row of another one of the same array: as an update, in memory of its own."""
    whole = strip_views(row)
    return any(m is not row and strip_views(m) is whole for m in op.ins)


def length_of(pair: LoopPair) -> SSAValue | None:
    """The length of the rows."""
    return next((op.extents[0] for op in pair.inside if isinstance(op, array.MapOp)), None)


def own_cells(pair: LoopPair) -> set[SSAValue | None]:
    """The cells that each iteration of one of the loops sets anew, and that nothing else reads."""
    loops = dict.fromkeys(roles(pair.outer), pair.outer)
    loops |= dict.fromkeys(roles(pair.inner), pair.inner)
    found = {**roles(pair.outer), **roles(pair.inner)}
    return {
        cell
        for cell, loop in loops.items()
        if found[cell].name == "private"
        and all(loop.is_ancestor(op) or isinstance(op, memref.StoreOp) for op in uses_of(cell))
    }

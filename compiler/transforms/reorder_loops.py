"""Run the loops of a nest in the order in which memory is read fastest, where no value changes.

A loop whose innermost counter goes down a column, or that adds to one element again and again, waits for
memory or for the last addition. With the other loop innermost the same elements are computed side by side,
each by the same additions in the same order (`analysis/loop_order` has the argument). The adjoint's
additions may come in any order, under `fastmath` all may, so that these loops may also run upwards
(`run_upwards`), as may loops of maps (`upward_rows`).

Before::

    func.func @f(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %trips = array.loop %j to %n do {
        %trips_1 = array.loop %k to %m do {
          %x = memref.load %b[%k, %j] : memref<?x?xf64>
          %y = memref.load %v[%k] : memref<?xf64>
          %z = arith.mulf %x, %y : f64
          %old = memref.load %c[%c0, %j] : memref<?x?xf64>
          %sum = arith.addf %old, %z : f64
          memref.store %sum, %c[%c0, %j] : memref<?x?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    func.func @f(%c : memref<?x?xf64>, %b : memref<?x?xf64>, %v : memref<?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %trips = array.loop %k to %m do {
        %trips_1 = array.loop %j to %n do {
          %x = memref.load %b[%k, %j] : memref<?x?xf64>
          %y = memref.load %v[%k] : memref<?xf64>
          %z = arith.mulf %x, %y : f64
          %old = memref.load %c[%c0, %j] : memref<?x?xf64>
          %sum = arith.addf %old, %z : f64
          memref.store %sum, %c[%c0, %j] : memref<?x?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

What would go down a column of rows that an outer loop has finished is read from a transposed copy of these
(`finished_rows`), where there are many rows.

An exception must find memory as Python leaves it: a nest in which something may raise is kept, unless all
that may is checks of subscripts that can be decided before it. Then the reordered nest runs where they hold,
and the nest as it was (`array.SMALL`) elsewhere.

Kept: nests with branches, with whole-array ops or allocations in them, loops that carry memrefs, pairs of
loops that have more than the inner one between them, and loops over `prange`, whose iterations are for
threads. Runs last: analyses and derivatives read the program in its own order.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.affine import Affine, Subscripts
from ..analysis.alias import AliasAnalysis
from ..analysis.loop_order import AtLeast, Interchange, LoopOrder, legal
from ..analysis.nest_proofs import all_of
from ..analysis.strides import stride
from ..rules import Access
from .decided_sums import DecidedSums
from .finished_rows import FinishedRows, finished_rows, read_along_rows
from .hoist_invariants import hoist_from
from .interchange import LoopPair, interchange, pair_of
from .memory_effects import functions
from .run_upwards import run_upwards
from .scalar_nests import ScalarNest, accesses_of, are_many, leaves_in, parts_of, scalar_nests
from .upward_rows import rows_upwards
from .upward_steps import steps_upwards

FEW = 16
"""A loop of fewer iterations, where that is known, is not made the innermost one."""

WORTH = 2.0
"""The cost of an iteration must shrink by this factor."""


@dataclass(frozen=True)
class ReorderLoops(ModulePass):
    """Interchange loops, and reverse those that count down, where that is exact and faster."""

    name = "reorder-loops"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sums = DecidedSums(), DecidedSums(), DecidedSums()
        for function in functions(op):
            nests = list(scalar_nests(function.body.block))
            alias = AliasAnalysis(function) if nests else None
            for loop in nests:
                Nest(function, loop, self.fastmath, alias).reorder(*sums[:2])
            rows_upwards(function, self.fastmath, sums[2])
        steps_upwards(op, self.fastmath, sums[2])


class Nest(ScalarNest):
    """One outermost nest."""

    def reorder(self, upwards: DecidedSums, interchanged: DecidedSums) -> None:
        """Let innermost loops run upwards, then put the loop around each innermost if that pays."""
        self.upwards, self.interchanged = upwards, interchanged
        for leaf in leaves_in(self.loop):
            self._turned(leaf)
            outer = leaf.parent_op()
            if isinstance(outer, array.LoopOp):
                for made in self._interchanged(outer):
                    self._turned(made)

    # One loop that counts down.

    def _turned(self, loop: array.LoopOp) -> None:
        """Let the loop run upwards if it goes down, and that is exact."""
        ops = list(loop.body.block.ops)[:-1]
        if not all(self.movable(op) for op in ops):
            return
        found = accesses_of(ops)
        ways = [stride(self.dependence, a, loop) for a in found]
        sums = self.additions(loop)
        pays = ways.count("down") > ways.count("unit")
        if not self._preferred(loop, sums, self.upwards, pays=pays) or are_many(found):
            return
        order = LoopOrder(self.dependence, sums)
        if order.independent(found, loop) and self.committed():
            self.upwards.changed(loop.location)
            run_upwards(loop)
            self.look_again()

    def _preferred(
        self, loop: array.LoopOp, sums: set[Operation], decided: DecidedSums, *, pays: bool
    ) -> bool:
        """Whether to reorder a loop: one with sums as in the gradient that runs no step again."""
        return decided.prefers(self.function, loop.location, wanted=pays) if sums else pays

    # Two loops.

    def _interchanged(self, outer: array.LoopOp) -> list[array.LoopOp]:
        """The innermost loops of the interchanged nest; none where it is kept."""
        pair = self.pair(outer)
        if pair is None:
            return []
        few = array.constant_value(outer.count) if outer.count is not None else None
        if few is not None and few < FEW:
            return []
        inside = accesses_of(pair.inside)
        if are_many(inside):
            return []
        sums = self.additions(outer)
        order = LoopOrder(self.dependence, sums)
        columns = self._columns(inside, outer)
        pays = self._worth(pair, inside, order, columns)
        if not self._preferred(outer, sums, self.interchanged, pays=pays):
            return []
        way = self._way(pair, inside, order)
        if way is None or not self.committed():
            return []
        if columns:
            if self.beside(all_of([rows.are_many for rows in columns.values()])) is None:
                return []
            read_along_rows(columns)
        self.interchanged.changed(outer.location)
        pair = pair_of(outer, Subscripts())  # Checks are other ops now.
        block = outer.parent
        assert pair is not None
        assert block is not None
        known = set(block.ops)
        interchange(pair, way)
        self.look_again()
        made = [op for op in block.ops if isinstance(op, array.LoopOp) and op not in known]
        leaves = [leaf for loop in made for leaf in leaves_in(loop)]
        for leaf in leaves:
            hoist_from(leaf)  # Elements that stand still are seen to (`leaf_loops`).
        return leaves

    def _way(
        self, pair: LoopPair, inside: Sequence[Access], order: LoopOrder
    ) -> Interchange | None:
        parts = parts_of(pair, inside, order)
        if parts is None:
            return None
        exact = pair.exact(self.dependence.footprints.subscripts)
        return next((way for way in parts.ways(exact=exact) if legal(way, parts, order)), None)

    # What it costs.

    def _columns(
        self, inside: Sequence[Access], outer: array.LoopOp
    ) -> dict[Operation, FinishedRows]:
        """The loads that go down columns of finished rows, with the outer loop innermost."""
        known = self.loop, self.dependence, self.alias
        found = {a.op: finished_rows(a.op, outer, *known) for a in inside}
        return {op: rows for op, rows in found.items() if rows is not None}

    def _worth(
        self,
        pair: LoopPair,
        inside: Sequence[Access],
        order: LoopOrder,
        columns: Container[Operation],
    ) -> bool:
        """Whether an iteration with the outer loop innermost is much cheaper; columns can lie along rows."""
        now = [stride(self.dependence, a, pair.inner) for a in inside]
        then = [
            "unit" if a.op in columns else stride(self.dependence, a, pair.outer) for a in inside
        ]
        if price(then, vectors=True) * WORTH > price(now, vectors=False):
            return False
        k = Affine.of(pair.inner.induction)
        same = (AtLeast(k, 0, k, 1), AtLeast(k, 1, k, 0))
        vectors_now = order.independent(inside, pair.inner)
        vectors_then = not order.any_meet(inside, inside, pair.outer, *same)
        return price(then, vectors=vectors_then) * WORTH <= price(now, vectors=vectors_now)


def price(ways: Sequence[str], *, vectors: bool) -> float:
    """What an iteration costs, in cycles, roughly: additions that wait for each other take 4, and so does
    an access that is far from the last one; of a vector, eight iterations share the rest."""
    each = {"still": 0.0, "unit": 0.125, "down": 0.25, "far": 4.0}
    near = sum(each[way] for way in ways)
    return near + (0.25 if vectors else 4.0)

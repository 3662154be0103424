"""Fuse two adjacent nests where the rows of one continue those of the other.

Elimination row by row updates a row up to the diagonal in one nest and from there on in another one. As one
nest it may go column by column, so that rows share what they read and what they add to (`unroll_and_jam`)::

    for i in range(n - 1, -1, -1):                     for k in range(n - 2, -1, -1):
        for k in range(i):                                 for i in range(n - 1, k, -1):
            for j in range(i, n):                              for j in range(k + 1, n):
                s[k, j] += s[i, j] * a[i, k]                       s[k, j] += s[i, j] * a[i, k]
        for k in range(i - 1, -1, -1):                         s[i, k] /= a[k, k]
            for j in range(k + 1, i):
                s[k, j] += s[i, j] * a[i, k]
            s[i, k] /= a[k, k]

Three steps, each proved by what the accesses may touch (`analysis/loop_order`): iteration k of both loops in
one, the first of them turned around where it must; one innermost loop for both ranges; the loop around them
inside. Where one of them is not exact, or iterations of the loop that comes inside would share no more than
those of the other one, the nest stays as it is.

Before::

    func.func @f(%a : memref<?x?xf64>, %s : memref<?x?xf64>, %n : index) {
      %c1 = arith.constant 1 : index
      %last = arith.subi %n, %c1 : index
      %trips = array.loop %r to %n do {
        %i = arith.subi %last, %r : index
        %right = arith.subi %n, %i : index
        %trips_1 = array.loop %k to %i do {
          %trips_2 = array.loop %t to %right do {
            %j = arith.addi %i, %t : index
            %x = memref.load %s[%i, %j] : memref<?x?xf64>
            %f = memref.load %a[%i, %k] : memref<?x?xf64>
            %p = arith.mulf %x, %f : f64
            %old = memref.load %s[%k, %j] : memref<?x?xf64>
            %sum = arith.addf %old, %p {ad.adjoint} : f64
            memref.store %sum, %s[%k, %j] : memref<?x?xf64>
            array.yield
          }
          array.yield
        }
        %before = arith.subi %i, %c1 : index
        %trips_3 = array.loop %d to %i do {
          %k = arith.subi %before, %d : index
          %first = arith.addi %k, %c1 : index
          %left = arith.subi %i, %first : index
          %trips_4 = array.loop %t to %left do {
            %j = arith.addi %first, %t : index
            %x = memref.load %s[%i, %j] : memref<?x?xf64>
            %f = memref.load %a[%i, %k] : memref<?x?xf64>
            %p = arith.mulf %x, %f : f64
            %old = memref.load %s[%k, %j] : memref<?x?xf64>
            %sum = arith.addf %old, %p {ad.adjoint} : f64
            memref.store %sum, %s[%k, %j] : memref<?x?xf64>
            array.yield
          }
          %y = memref.load %s[%i, %k] : memref<?x?xf64>
          %pivot = memref.load %a[%k, %k] : memref<?x?xf64>
          %q = arith.divf %y, %pivot : f64
          memref.store %q, %s[%i, %k] : memref<?x?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    func.func @f(%a: memref<?x?xf64>, %s: memref<?x?xf64>, %n: index) {
      %c1 = arith.constant 1 : index
      %last = arith.subi %n, %c1 : index
      %0 = arith.constant -1 : index
      %1 = arith.addi %n, %0 : index
      %2 = arith.constant 1 : index
      %3 = arith.subi %1, %2 : index
      %4 = array.loop %d to %1 do {
        %5 = arith.subi %3, %d : index
        %6 = arith.subi %1, %5 : index
        %7 = arith.minsi %n, %6 : index
        %8 = array.loop %r to %7 do {
          %i = arith.subi %last, %r : index
          %9 = arith.constant 1 : index
          %10 = arith.subi %i, %9 : index
          %11 = arith.subi %10, %5 : index
          %first = arith.addi %5, %c1 : index
          %left = arith.subi %i, %first : index
          %12 = arith.addi %11, %r : index
          %13 = arith.constant 1 : index
          %14 = arith.addi %12, %13 : index
          %trips = array.loop %t to %14 do {
            %j = arith.addi %first, %t : index
            %x = memref.load %s[%i, %j] : memref<?x?xf64>
            %f = memref.load %a[%i, %5] : memref<?x?xf64>
            %p = arith.mulf %x, %f : f64
            %old = memref.load %s[%5, %j] : memref<?x?xf64>
            %sum = arith.addf %old, %p {ad.adjoint} : f64
            memref.store %sum, %s[%5, %j] : memref<?x?xf64>
            array.yield
          }
          %y = memref.load %s[%i, %5] : memref<?x?xf64>
          %pivot = memref.load %a[%5, %5] : memref<?x?xf64>
          %q = arith.divf %y, %pivot : f64
          memref.store %q, %s[%i, %5] : memref<?x?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

Kept: nests in which something may raise, loops with more in them than this, and loops over `prange`. Runs
behind `reorder_loops`, which brings innermost loops along rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.affine import Affine, replaced
from ..analysis.footprint import Point
from ..analysis.loop_order import AtLeast, Interchange, LoopOrder, legal
from ..rules import Access
from .hoist_checks import Before, is_counted
from .interchange import body_like, interchange, loop_of
from .memory_effects import functions
from .run_upwards import run_upwards
from .same_bodies import Place, Seam, is_subscript, seam_of
from .scalar_nests import (
    ScalarNest,
    accesses_of,
    are_many,
    inner_loops,
    leaves_in,
    parts_of,
    scalar_nests,
)


@dataclass(frozen=True)
class FuseAdjacentNests(ModulePass):
    """Fuse adjacent nests whose ranges adjoin, and move the loop around them inside."""

    name = "fuse-adjacent-nests"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for nest in list(scalar_nests(function.body.block)):
                for loop in [one for one in ops_of_kind(nest, array.LoopOp) if is_row(one)]:
                    Nest(function, nest, self.fastmath).join(loop)


def is_row(outer: array.LoopOp) -> bool:
    """True for a loop around two loops, each around one innermost loop, and no other code but subscripts."""
    loops = inner_loops(outer)
    leaves = [leaf for loop in loops for leaf in inner_loops(loop)]
    rest = [op for op in list(outer.body.block.ops)[:-1] if op not in loops]
    return (
        len(loops) == 2
        and all(len(inner_loops(loop)) == 1 for loop in loops)
        and not any(inner_loops(leaf) for leaf in leaves)
        and is_counted(outer)
        and not outer.attributes
        and all(map(is_plain, (*loops, *leaves)))
        and all(map(is_subscript, rest))
    )


def is_plain(loop: array.LoopOp) -> bool:
    marked = loop.attributes.keys() - {array.OF_NUMBERS}
    return is_counted(loop) and not marked and loop.trips.first_use is None


class Nest(ScalarNest):
    """One outermost nest."""

    def join(self, outer: array.LoopOp) -> bool:
        """Join the two nests in a loop, and bring the loop inside, where that is exact and pays."""
        ops = [op for op in every_op(outer)[1:] if not isinstance(op, array.LoopOp | array.YieldOp)]
        if self.open or not all(map(self.movable, ops)) or are_many(accesses_of(ops)):
            return False
        order = LoopOrder(self.dependence, self.additions(outer))
        seam = next((s for s in self._seams(outer) if self._fits(s, order)), None)
        if seam is None:
            return False
        kept = outer.clone()
        if self._brought_inside(outer, build(seam)):
            return True
        Rewriter.replace_op(outer, kept)
        self.look_again()
        return False

    # One loop for two.

    def _seams(self, outer: array.LoopOp) -> list[Seam]:
        first, second = inner_loops(outer)
        if not all(map(is_subscript, between(first, second))):
            return []
        ways = (seam_of(first, second, self.dependence, turned=turned) for turned in (False, True))
        return [seam for seam in ways if seam is not None]

    def _fits(self, seam: Seam, order: LoopOrder) -> bool:
        """Whether iteration k of both loops may be one: nothing comes before what it came after."""
        first, second = accesses_of(body_of(seam.first)), accesses_of(body_of(seam.second))
        if seam.turned and not order.independent(first, seam.first):
            return False
        at, k = seam.place, Affine.of(seam.second.induction)
        if order.any_meet(first, second, None, AtLeast(at, 0, k, 1, 1)):
            return False
        if seam.first_is_low:
            return True
        together = AtLeast(at, 0, k, 1), AtLeast(k, 1, at, 0)
        one, other = accesses_of([seam.first_leaf]), accesses_of([seam.second_leaf])
        return not order.any_meet(one, other, None, *together)

    # The loop around them.

    def _brought_inside(self, outer: array.LoopOp, joined: array.LoopOp) -> bool:
        """Let the loop around the joined one run in it."""
        for turned in (False, True):
            if turned:
                run_upwards(joined)
            self.look_again()
            pair = self.pair(outer)
            order = LoopOrder(self.dependence, self.additions(outer))
            parts = parts_of(pair, accesses_of(pair.inside), order) if pair is not None else None
            way = Interchange(down=turned, aligned=False)
            if pair is None or parts is None or not self._pays(outer, joined):
                continue
            if legal(way, parts, order, turned=turned):
                block = outer.parent
                assert block is not None
                known = set(block.ops)
                interchange(pair, way)
                self.look_again()
                made = [op for op in block.ops if isinstance(op, array.LoopOp) and op not in known]
                for leaf in (leaf for loop in made for leaf in leaves_in(loop)):
                    self._settle(leaf)
                return True
        return False

    def _settle(self, leaf: array.LoopOp) -> None:
        """Say the count without what certainly makes no difference, so that rows are seen to have one."""
        assert leaf.count is not None
        form = self.dependence.footprints.subscripts.affine(leaf.count)
        settled = Place(self.dependence, leaf).settled(form)
        if settled != form:
            leaf.operands[0] = Before(leaf).number(settled)

    def _pays(self, outer: array.LoopOp, joined: array.LoopOp) -> bool:
        """Whether iterations of the outer loop share more of what the innermost one goes along."""
        (leaf,) = inner_loops(joined)
        found = accesses_of([leaf])
        return self._shared(found, leaf, outer) > self._shared(found, leaf, joined)

    def _shared(self, found: Sequence[Access], leaf: array.LoopOp, loop: array.LoopOp) -> int:
        """How many accesses go along with the innermost loop, in the same row whatever `loop` counts."""
        return sum(self._goes_along(access, leaf, loop) for access in found)

    def _goes_along(self, access: Access, leaf: array.LoopOp, loop: array.LoopOp) -> bool:
        along = False
        for dimension in self.dependence.region(access).dimensions:
            if not isinstance(dimension, Point):
                return False
            if leaf.induction in dimension.at.terms:
                along = True
            elif any(self.dependence.varies(s, loop) for s in dimension.at.terms if moves(s, loop)):
                return False
        return along


def moves(symbol: object, loop: array.LoopOp) -> bool:
    """True for the counter of a loop, and for what is not a counter."""
    if not isinstance(symbol, SSAValue) or symbol is loop.induction:
        return True
    owner = symbol.owner
    return isinstance(owner, Operation) or not isinstance(owner.parent_op(), array.LoopOp)


# One loop in the place of two.


def body_of(loop: array.LoopOp) -> list[Operation]:
    return list(loop.body.block.ops)[:-1]


def around(loop: array.LoopOp) -> tuple[list[Operation], list[Operation]]:
    """What stands before the innermost loop, and what stands behind it."""
    ops = body_of(loop)
    at = ops.index(inner_loops(loop)[0])
    return ops[:at], ops[at + 1 :]


def between(first: array.LoopOp, second: array.LoopOp) -> list[Operation]:
    """What would come between the innermost loops."""
    return [*around(first)[1], *around(second)[0]]


def build(seam: Seam) -> array.LoopOp:
    """Put one loop in the place of both."""
    first, second = seam.first, seam.second
    assert second.count is not None
    before = Before(first)
    body, writer = body_like(second)
    k = body.args[0]
    at = k
    if seam.turned:
        at = writer.emit(arith.SubiOp(before.minus_one(second.count), k))
    of_first: dict[SSAValue, SSAValue] = {first.induction: at}
    of_second: dict[SSAValue, SSAValue] = {second.induction: k}
    writer.copy(around(first)[0], of_first)
    writer.copy(around(second)[0], of_second)
    leaf = seam.first_leaf if seam.first_is_low else seam.second_leaf
    writer.copy([leaf], of_first if seam.first_is_low else of_second)
    (made,) = (op for op in body.ops if isinstance(op, array.LoopOp))
    made.operands[0] = Before(made).number(replaced(seam.count, {second.induction: Affine.of(k)}))
    writer.copy(around(second)[1], of_second)
    joined = loop_of(second.count, body, second)
    Before(second).insert(joined)
    for loop in (first, second):
        loop.detach()
        loop.erase()
    return joined

"""Run four iterations of a loop at once, with one innermost loop for all, where no value changes.

What they all read or update is loaded, and stored, once instead of four times, and four sums that are made
in the program's order go on side by side. Each element keeps its order of additions
(`analysis/loop_order`).

Before::

    func.func @f(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
      %trips = array.loop %k to %n do {
        %trips_1 = array.loop %j to %m do {
          %x = memref.load %b[%k, %j] : memref<?x?xf64>
          %old = memref.load %c[%j] : memref<?xf64>
          %sum = arith.addf %old, %x : f64
          memref.store %sum, %c[%j] : memref<?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    func.func @f(%c : memref<?xf64>, %b : memref<?x?xf64>, %n : index, %m : index) {
      %0 = arith.constant 4 : index
      %1 = arith.floordivsi %n, %0 : index
      %2 = arith.constant 16 : index
      %3 = arith.cmpi sge, %m, %2 : index
      %4 = arith.constant 1125899906842624 : index
      %5 = arith.constant 0 : index
      %6 = arith.select %3, %4, %5 : index
      %7 = arith.minsi %1, %6 : index
      %8 = arith.maxsi %7, %5 : index
      %9 = array.loop %k to %8 do {
        %10 = arith.constant 4 : index
        %11 = arith.muli %k, %10 : index
        %12 = arith.constant 0 : index
        %13 = arith.maxsi %m, %12 : index
        %14 = arith.constant 1 : index
        %15 = arith.addi %11, %14 : index
        %16 = arith.constant 2 : index
        %17 = arith.addi %11, %16 : index
        %18 = arith.constant 3 : index
        %19 = arith.addi %11, %18 : index
        %20 = array.loop %j to %13 do {
          %x = memref.load %b[%11, %j] : memref<?x?xf64>
          %old = memref.load %c[%j] : memref<?xf64>
          %sum = arith.addf %old, %x : f64
          %x_1 = memref.load %b[%15, %j] : memref<?x?xf64>
          %sum_1 = arith.addf %sum, %x_1 : f64
          %x_2 = memref.load %b[%17, %j] : memref<?x?xf64>
          %sum_2 = arith.addf %sum_1, %x_2 : f64
          %x_3 = memref.load %b[%19, %j] : memref<?x?xf64>
          %sum_3 = arith.addf %sum_2, %x_3 : f64
          memref.store %sum_3, %c[%j] : memref<?xf64>
          array.yield
        }
        array.yield
      }
      %21 = arith.muli %8, %0 : index
      %22 = arith.subi %n, %21 : index
      %trips = array.loop %k_1 to %22 do {
        %k_2 = arith.addi %21, %k_1 : index
        %trips_1 = array.loop %j_1 to %m do {
          %x_4 = memref.load %b[%k_2, %j_1] : memref<?x?xf64>
          %old_1 = memref.load %c[%j_1] : memref<?xf64>
          %sum_4 = arith.addf %old_1, %x_4 : f64
          memref.store %sum_4, %c[%j_1] : memref<?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }
Where the inner loops differ in length, what they have in common is jammed, their first iterations or their
last ones. The rest, the ragged end, runs in the program's own order, before the common part or, as in the
adjoint of this one, after it, with what stands beside the inner loop::

    for k in range(i):                            for k in range(0, i - 3, 4):
        a[i, k] /= a[k, k]                            for d in range(k, k + 4):
        for j in range(k + 1, i):                         a[i, d] /= a[d, d]
            a[i, j] -= a[i, k] * a[k, j]                  for j in range(d + 1, k + 4):
                                                              a[i, j] -= a[i, d] * a[d, j]
                                                      for j in range(k + 4, i):
                                                          a[i, j] = (((a[i, j] - a[i, k] * a[k, j]) - ...
                                                  for k in range(i - i % 4, i): ...

A map that updates one row in each iteration of a loop (`x += a[k] * b[k]`) is an inner loop as well.
An adjoint map over a matrix that adds to one row for all its rows (of a rank-1 update in slices, say) is made
a nest first, where rows may share that row then (`maps_as_nests`).

Kept: iterations that share nothing, or compute so much that a load is little beside it; and what
`reorder_loops` keeps. Runs after it: its innermost loops go along rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.affine import Affine, Subscripts
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..analysis.footprint import Point
from ..analysis.loop_order import Jam, LoopOrder, jams, may_jam
from ..rules import Access, accesses
from .counters import count_from
from .hoist_checks import Before
from .hoist_invariants import hoist_from
from .interchange import LoopPair, Writer, body_like, is_outside, loop_of, pair_of
from .maps_as_loops import attempted, updates_a_row
from .maps_as_nests import adds_to_a_row, as_nest
from .memory_effects import functions
from .scalar_nests import (
    ScalarNest,
    accesses_of,
    are_many,
    inner_loops,
    leaves_in,
    parts_of,
    scalar_nests,
)
from .tile_registers import is_plain

TIMES = 4
"""So many iterations run at once."""

LEAST = 16
"""Shorter innermost loops are kept, at run time; twice as long ones, where they differ in length."""

ALWAYS = 1 << 50


@dataclass(frozen=True)
class UnrollAndJam(ModulePass):
    """Unroll a loop around an innermost one, and fuse the copies of the inner loop."""

    name = "unroll-and-jam"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""
    threads: bool = False
    """Maps are left to threads."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            nests = list(scalar_nests(function.body.block))
            alias = AliasAnalysis(function) if nests else None
            for loop in nests:
                leaves = [leaf for leaf in leaves_in(loop) if leaf is not loop]
                if leaves and array.SMALL not in loop.attributes:
                    nest = Nest(function, loop, self.fastmath, alias)
                    nest.threads = self.threads
                    for leaf in leaves:
                        nest.jam(leaf)
            for one in [] if self.threads else list(ops_of_kind(function, array.MapOp)):
                if adds_to_a_row(one):
                    self.jam_rows(function, one)
                elif updates_one_row(one):
                    attempted(one, self.fastmath, partial(jam_map, function))

    def jam_rows(self, function: func.FuncOp, op: array.MapOp) -> None:
        """Let rows of a map share what they add to one row; a map that cannot stays."""
        nest = as_nest(op)
        (leaf,) = inner_loops(nest)
        jammed = Nest(function, nest, self.fastmath).jam(leaf)
        Rewriter.erase_op(op if jammed else nest)


def updates_one_row(op: array.MapOp) -> bool:
    """Whether all that a loop does is to update one row again and again, by this map."""
    loop = op.parent_op()
    stores = list(op.out_kinds) == ["store"] and updates_a_row(op)
    if not isinstance(loop, array.LoopOp) or not is_plain(loop) or not stores:
        return False
    alone = not any(o.regions for o in loop.body.block.ops if o is not op)
    return alone and is_outside(op.outs[0], loop)


def jam_map(function: func.FuncOp, leaf: array.LoopOp) -> bool:
    """Let iterations of the loop around a map, as a loop, share it."""
    outer = leaf.parent_op()
    assert isinstance(outer, array.LoopOp)
    nest = Nest(function, outer, fastmath=False)
    nest.views = True
    return nest.jam(leaf)


class Nest(ScalarNest):
    """One outermost nest; what `threads` share keeps its iterations apart."""

    threads = False
    views = False
    """Views are made in it."""

    def movable(self, op: Operation) -> bool:
        return (self.views and isinstance(op, array.ViewOp)) or super().movable(op)

    def jam(self, leaf: array.LoopOp) -> bool:
        """Let iterations of the loop around an innermost one share it, where that pays; whether they do."""
        outer = leaf.parent_op()
        pair = self.pair(outer) if isinstance(outer, array.LoopOp) else None
        if pair is None or not all(map(is_cheap, pair.inside)):
            return False
        inside = accesses_of(pair.inside)
        order = LoopOrder(self.dependence, self.additions(pair.outer))
        if are_many(inside):
            return False
        ways = [way for way in jams(pair.trips) if self._gains(pair, inside, order, way)]
        parts = parts_of(pair, inside, order, again=not self.threads) if ways else None
        if parts is None:
            return False
        way = next((way for way in ways if may_jam(way, TIMES, parts, order)), None)
        if way is None or not self.committed():
            return False
        pair = pair_of(pair.outer, Subscripts())  # Checks are other ops now.
        assert pair is not None
        common = unroll_and_jam(pair, way)
        self.look_again()
        merge_elements(common, self.dependence)
        return True

    def _gains(self, pair: LoopPair, inside: Sequence[Access], order: LoopOrder, way: Jam) -> bool:
        """Whether iterations share what the inner loop goes along, or have sums of their own that wait.

        Where inner loops differ in length, the ragged ends have their price: iterations must share a quarter
        of it. Of sums in the program's order that differ in length one runs while the next one begins, as it
        is.
        """
        moving, shared = 0, 0
        for access in inside:
            steps = self._steps(access, pair, way)
            if steps is None:
                continue
            outer, inner = steps
            if access.kind == "write" and not inner and not order.is_free(access):
                return pair.trips.slope == 0
            moving += inner
            shared += inner and not outer
        return shared > 0 if pair.trips.slope == 0 else 4 * shared >= moving > 0

    def _steps(self, access: Access, pair: LoopPair, way: Jam) -> tuple[bool, bool] | None:
        """Whether iterations of the outer loop, and of the inner one, touch other elements."""
        region = self.dependence.region(access)
        outer, inner, moves = pair.outer.induction, pair.inner.induction, (False, False)
        for dimension in region.dimensions:
            if not isinstance(dimension, Point):
                return None
            terms = dict(dimension.at.terms)
            along, across = terms.pop(inner, 0), terms.pop(outer, 0)
            if any(self.dependence.varies(s, pair.outer) for s in terms):
                return None
            if way.from_end:
                across += along * pair.trips.slope
            moves = moves[0] or across != 0, moves[1] or along != 0
        return moves


def is_cheap(op: Operation) -> bool:
    """True for what takes no longer than a load does."""
    return not (op.name.startswith("math.") or isinstance(op, arith.DivfOp))


def unroll_and_jam(pair: LoopPair, jam: Jam) -> array.LoopOp:
    """Put the jammed nest in the place of the pair; the innermost loop that is common to all."""
    return Jammed(pair, jam).build()


class Jammed:
    """Writes the nest."""

    few_is_small = True
    """What runs beside the common loop has scalars."""

    def __init__(self, pair: LoopPair, jam: Jam) -> None:
        assert pair.outer.count is not None
        self.pair = pair
        self.jam = jam
        self.before = Before(pair.outer)
        self.count: SSAValue = pair.outer.count

    def build(self) -> array.LoopOp:
        pair, before = self.pair, self.before
        blocks = self.blocks()
        body, writer = body_like(pair.outer)
        first = writer.times(body.args[0], TIMES)
        common = writer.emit(
            arith.MaxSIOp(self.trips(first, self.shortest, writer), writer.constant(0))
        )
        self.beside(writer, first, common, ahead=True)
        jammed = self.common(first, common)
        body.add_op(jammed)
        self.beside(writer, first, common, ahead=False)
        before.insert(loop_of(blocks, body, pair.outer))
        self.rest(before.times(blocks, TIMES))
        hoist_from(jammed)
        return jammed

    @property
    def slope(self) -> int:
        return self.pair.trips.slope

    @property
    def shortest(self) -> int:
        """Which of the inner loops has the fewest iterations."""
        return TIMES - 1 if self.slope < 0 else 0

    def blocks(self) -> SSAValue:
        """How many times four iterations there are; none where the inner loops are short."""
        before, rest = self.before, self.pair.trips.rest
        times = before.emit(arith.FloorDivSIOp(self.count, before.constant(TIMES)))
        longest = before.number(rest)
        least = 2 * LEAST if self.slope else LEAST
        if self.slope > 0:
            longest = before.plus(longest, before.minus_one(self.count))
        long = before.compare("sge", longest, before.constant(least))
        most = before.emit(arith.SelectOp(long, before.constant(ALWAYS), before.constant(0)))
        times = before.emit(arith.MinSIOp(times, most))
        return before.emit(arith.MaxSIOp(times, before.constant(0)))

    def trips(self, first: SSAValue, iteration: int | SSAValue, writer: Writer) -> SSAValue:
        """The inner loop's count in an iteration from `first` on; negative where it makes none."""
        total = self.before.number(self.pair.trips.rest)
        if not self.slope:
            return total
        k = writer.sum(first, iteration)
        kind = arith.AddiOp if self.slope > 0 else arith.SubiOp
        return writer.emit(kind(total, k))

    def beside(self, writer: Writer, first: SSAValue, common: SSAValue, *, ahead: bool) -> None:
        """What runs ahead of the common loop, or after it, for each of the iterations."""
        pair = self.pair
        ragged = bool(self.slope) and self.jam.ragged_first == ahead
        others = pair.before if ahead else pair.after
        if not ragged and not others:
            return
        body, inner = body_like(pair.outer)
        k = inner.emit(arith.AddiOp(first, body.args[0]))
        values: dict[SSAValue, SSAValue] = {pair.outer.induction: k}
        if ahead:
            inner.copy(others, dict(values))
        if ragged:
            count = inner.emit(arith.SubiOp(self.trips(first, body.args[0], inner), common))
            block, leaf = body_like(pair.inner)
            j: SSAValue = block.args[0]
            if not self.jam.from_end:
                j = leaf.emit(arith.AddiOp(common, j))
            leaf.copy(pair.inside, {**values, pair.inner.induction: j})
            body.add_op(loop_of(count, block, pair.inner))
        if not ahead:
            inner.copy(others, dict(values))
        few = loop_of(writer.constant(TIMES), body, pair.outer)
        if self.few_is_small:
            few.attributes[array.SMALL] = UnitAttr()
        writer.block.add_op(few)

    def common(self, first: SSAValue, count: SSAValue) -> array.LoopOp:
        """The iterations that all inner loops have."""
        pair = self.pair
        body, writer = body_like(pair.inner)
        for d in range(TIMES):
            shift = self.slope * (d - self.shortest) if self.jam.from_end else 0
            values = {
                pair.outer.induction: writer.sum(first, d),
                pair.inner.induction: writer.sum(body.args[0], shift),
            }
            writer.copy(pair.inside, values)
        return loop_of(count, body, pair.inner)

    def rest(self, done: SSAValue) -> None:
        """The iterations that are left over, as they were."""
        outer = self.pair.outer
        left = self.before.emit(arith.SubiOp(self.count, done))
        if outer.trips.first_use is not None:
            ran = self.before.emit(arith.MaxSIOp(self.count, self.before.constant(0)))
            outer.trips.replace_all_uses_with(ran)
        count_from(done, outer)
        outer.operands[0] = left


# One body for all.


def merge_elements(loop: array.LoopOp, dependence: Dependence) -> None:
    """What one of the iterations stores the next one has at hand, and stores in its place."""
    same_subscripts(loop)
    held: dict[Element, SSAValue] = {}
    waiting: dict[Element, memref.StoreOp] = {}
    by_element: dict[Element, Operation] = {}

    def meets(element: Element, op: Operation) -> bool:
        (mine,), (other,) = accesses(by_element[element]), accesses(op)
        if not dependence.alias.may_alias(mine.memref, other.memref):
            return False
        return dependence.may_meet(mine, other, None)

    for op in tuple(loop.body.block.ops):
        if not isinstance(op, memref.LoadOp | memref.StoreOp):
            continue
        element = op.memref, tuple(op.indices)
        if isinstance(op, memref.LoadOp):
            if element in held:
                Rewriter.replace_op(op, [], [held[element]])
                continue
            for other in [e for e in waiting if meets(e, op)]:
                del waiting[other]
            held[element] = op.res
            by_element[element] = op
        else:
            for other in [e for e in held if e != element and meets(e, op)]:
                del held[other]
            last = waiting.pop(element, None)
            held[element] = op.value
            by_element[element] = waiting[element] = op
            if last is not None:
                Rewriter.erase_op(last)


Element = tuple[SSAValue, tuple[SSAValue, ...]]
"""A memref and the subscripts of one of its elements."""


def same_subscripts(loop: array.LoopOp) -> None:
    """Give equal subscripts of a loop's own block one value."""
    forms, known = Subscripts(), dict[Affine, SSAValue]()
    for op in loop.body.block.ops:
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            for at, operand in enumerate(op.operands):
                if operand in op.indices:
                    op.operands[at] = known.setdefault(forms.affine(operand), operand)

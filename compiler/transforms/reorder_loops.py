"""Run the loops of a nest in the order in which memory is read fastest, where no value changes.

A loop whose innermost counter goes down a column, or that adds to one element again and again, waits for
memory or for the last addition. With the other loop innermost the same elements are computed side by side,
each by the same additions in the same order (`analysis/loop_order` has the argument). The adjoint's
additions may come in any order, under `fastmath` all may, so that these loops may also run upwards
(`run_upwards`).

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

An exception must find memory as Python leaves it: a nest in which something may raise is kept, unless all
that may is checks of subscripts that can be decided before it. Then the reordered nest runs where they hold,
and the nest as it was (`array.CHECKED`) elsewhere.

Kept: nests with branches, with whole-array ops or allocations in them, loops that carry memrefs, pairs of
loops that have more than the inner one between them, and loops over `prange`, whose iterations are for
threads. Runs last: analyses and derivatives read the program in its own order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.additions import additions_in
from ..analysis.affine import Affine, Subscripts
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..analysis.footprint import Point
from ..analysis.loop_order import AtLeast, Interchange, LoopOrder, Parts, legal
from ..analysis.nest_proofs import Condition, NestProofs, all_of
from ..analysis.views import is_memref, strip_casts
from ..rules import Access, accesses, evaluates_body, is_whole_array
from .entry_checks import decided_before
from .hoist_checks import is_counted
from .hoist_invariants import hoist_from
from .interchange import LoopPair, interchange, pair_of
from .memory_effects import functions
from .run_upwards import run_upwards

PAIRS = 400
"""Nests in which more pairs of accesses would have to be compared are kept."""

FEW = 16
"""A loop of fewer iterations, where that is known, is not made the innermost one."""

WORTH = 2.0
"""The cost of an iteration must shrink by this factor."""


@dataclass(frozen=True)
class ReorderLoops(ModulePass):
    """Interchange loops, and turn around those that count down, where that is exact and faster."""

    name = "reorder-loops"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in list(scalar_nests(function.body.block)):
                Nest(function, loop, self.fastmath).reorder()


def scalar_nests(block: Block) -> Iterator[array.LoopOp]:
    """The outermost counted loops with nothing but scalar code and such loops in them."""
    for op in block.ops:
        if array.RAISES in op.attributes or evaluates_body(op):
            continue
        if isinstance(op, array.LoopOp) and is_plain_nest(op):
            yield op
            continue
        for region in op.regions:
            for inner in region.blocks:
                yield from scalar_nests(inner)


def is_plain_nest(loop: array.LoopOp) -> bool:
    return not any(
        isinstance(o, array.AllocOp)
        or is_whole_array(o)
        or (isinstance(o, array.LoopOp) and not (is_counted(o) and not o.carried))
        for o in every_op(loop)
    )


class Nest:
    """One outermost nest."""

    def __init__(self, function: func.FuncOp, loop: array.LoopOp, fastmath: bool) -> None:
        self.loop = loop
        self.fastmath = fastmath
        self.alias = AliasAnalysis(function)
        self.function = function
        self.dependence = Dependence(function, self.alias)
        subscripts = self.dependence.footprints.subscripts
        proofs = NestProofs(loop, subscripts, self.alias)
        self.open: dict[Operation, Condition] = proofs.provable(set())
        """The checks that are decided on entry."""

    def reorder(self) -> None:
        """Let innermost loops run upwards, then put the loop around each innermost if that pays."""
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
        if not all(self._movable(op) for op in ops):
            return
        found = accesses_of(ops)
        ways = [self.stride(a, loop) for a in found]
        if ways.count("down") <= ways.count("unit") or len(found) ** 2 > PAIRS:
            return
        order = LoopOrder(self.dependence, self._additions(loop))
        if order.independent(found, loop) and self._committed():
            run_upwards(loop)
            self._look_again()

    # Two loops.

    def _interchanged(self, outer: array.LoopOp) -> list[array.LoopOp]:
        """The innermost loops of the interchanged nest; none where it is kept."""
        blocks = [outer.body.block, *(o.body.block for o in inner_loops(outer))]
        ops = [op for block in blocks for op in list(block.ops)[:-1]]
        plain = is_counted(outer) and not {array.CLAIMED, array.EXCLUSIVE} & outer.attributes.keys()
        if not plain or not all(isinstance(op, array.LoopOp) or self._movable(op) for op in ops):
            return []
        pair = pair_of(outer, self.dependence.footprints.subscripts)
        if pair is None:
            return []
        few = array.constant_value(outer.count) if outer.count is not None else None
        if few is not None and few < FEW:
            return []
        inside = accesses_of(pair.inside)
        if len(inside) ** 2 > PAIRS:
            return []
        order = LoopOrder(self.dependence, self._additions(outer))
        if not self._worth(pair, inside, order):
            return []
        way = self._way(pair, inside, order)
        if way is None or not self._committed():
            return []
        pair = pair_of(outer, Subscripts())  # Checks are other ops now.
        block = outer.parent
        assert pair is not None
        assert block is not None
        known = set(block.ops)
        interchange(pair, way)
        self._look_again()
        made = [op for op in block.ops if isinstance(op, array.LoopOp) and op not in known]
        leaves = [leaf for loop in made for leaf in leaves_in(loop)]
        for leaf in leaves:
            hoist_from(leaf)  # Elements that stand still are seen to (`leaf_loops`).
        return leaves

    def _way(
        self, pair: LoopPair, inside: Sequence[Access], order: LoopOrder
    ) -> Interchange | None:
        before, after = accesses_of(pair.before), accesses_of(pair.after)
        loads = accesses_of(pair.sunk)
        if order.any_meet(loads, [*before, *inside], None):
            return None  # What was loaded once would be another value later.
        parts = Parts(pair.outer, pair.inner, pair.trips, before, inside, after)
        exact = pair.exact(self.dependence.footprints.subscripts)
        return next((way for way in parts.ways(exact=exact) if legal(way, parts, order)), None)

    # What it costs.

    def _worth(self, pair: LoopPair, inside: Sequence[Access], order: LoopOrder) -> bool:
        """Whether an iteration with the outer loop innermost is much cheaper."""
        now = [self.stride(a, pair.inner) for a in inside]
        then = [self.stride(a, pair.outer) for a in inside]
        if price(then, vectors=True) * WORTH > price(now, vectors=False):
            return False
        k = Affine.of(pair.inner.induction)
        same = (AtLeast(k, 0, k, 1), AtLeast(k, 1, k, 0))
        vectors_now = order.independent(inside, pair.inner)
        vectors_then = not order.any_meet(inside, inside, pair.outer, *same)
        return price(then, vectors=vectors_then) * WORTH <= price(now, vectors=vectors_now)

    def stride(self, access: Access, loop: array.LoopOp) -> str:
        """How far apart iterations of `loop` touch memory: "still", "unit", "down" or "far"."""
        region = self.dependence.region(access)
        type_ = strip_casts(region.base).type
        assert isinstance(type_, MemRefType)
        counters = [o.induction for o in ops_of_kind(loop, array.LoopOp)]
        distance: int | None = 0
        for dimension, step in zip(region.dimensions, array.strides_of(type_), strict=True):
            if not isinstance(dimension, Point):
                return "far"
            factor = dimension.at.terms.get(loop.induction, 0)
            others = [s for s in dimension.at.terms if s not in counters]
            if any(self.dependence.varies(s, loop) for s in others):
                return "far"
            if factor:
                distance = None if step is None or distance is None else distance + factor * step
        names = {0: "still", 1: "unit", -1: "down"}
        return "far" if distance is None else names.get(distance, "far")

    # What may be moved.

    def _movable(self, op: Operation) -> bool:
        """Loads, stores and scalar code that certainly does not raise in the nest."""
        if op.regions or any(map(is_memref, op.results)):
            return False
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            return True
        if array.is_operation_that_may_raise(op):
            return op in self.open
        if isinstance(op, array.IndexOp | array.CheckedIntOp):
            return True
        known = op.has_trait(Pure) or isinstance(op, memref.DimOp)
        return known or op.name.startswith(("arith.", "math."))

    def _additions(self, loop: array.LoopOp) -> set[Operation]:
        return additions_in(loop, self.alias.may_alias, self.fastmath)

    # Before the first change.

    def _committed(self) -> bool:
        """Take the checks out of the nest, with the nest as it was beside it; False where that cannot be."""
        if not self.open:
            return True
        condition = decided_before(self.loop, all_of(list(self.open.values())))
        if condition is None:
            return False
        loop, block = self.loop, self.loop.parent
        assert block is not None
        assert loop.count is not None
        slow = loop.clone()
        slow.attributes[array.CHECKED] = UnitAttr()
        if loop.trips.first_use is not None:
            zero = condition.constant(0)
            ran = condition.emit(arith.MaxSIOp(loop.count, zero))
            loop.trips.replace_all_uses_with(ran)
        following = loop.next_op
        loop.detach()
        branch = scf.IfOp(condition.holds, [], [loop, scf.YieldOp()], [slow, scf.YieldOp()])
        branch.location = loop.location
        assert following is not None
        block.insert_op_before(branch, following)
        for op in self.open:
            without_check(op)
        self.open = {}
        return True

    def _look_again(self) -> None:
        """Forget what was known of values that have changed."""
        self.dependence = Dependence(self.function, self.alias)


def price(ways: Sequence[str], *, vectors: bool) -> float:
    """What an iteration costs, in cycles, roughly: additions that wait for each other take 4, and so does
    an access that is far from the last one; of a vector, eight iterations share the rest."""
    each = {"still": 0.0, "unit": 0.125, "down": 0.25, "far": 4.0}
    near = sum(each[way] for way in ways)
    return near + (0.25 if vectors else 4.0)


def accesses_of(ops: Sequence[Operation]) -> list[Access]:
    return [a for op in ops for a in accesses(op)]


def inner_loops(loop: array.LoopOp) -> list[array.LoopOp]:
    """The loops directly in a loop."""
    return [op for op in loop.body.block.ops if isinstance(op, array.LoopOp)]


def leaves_in(loop: array.LoopOp) -> list[array.LoopOp]:
    """The loops, this one or in it, that have nothing but code without regions in them."""
    return [
        op
        for op in ops_of_kind(loop, array.LoopOp)
        if not any(o.regions for o in op.body.block.ops)
    ]


def without_check(op: Operation) -> None:
    """The op where it is known not to raise."""
    made: Operation
    match op:
        case array.CheckedAddOp():
            made = arith.AddiOp(op.lhs, op.rhs)
        case array.CheckedSubOp():
            made = arith.SubiOp(op.lhs, op.rhs)
        case array.CheckedMulOp():
            made = arith.MuliOp(op.lhs, op.rhs)
        case _:
            op.properties["unchecked"] = UnitAttr()
            return
    made.location = op.location
    Rewriter.replace_op(op, made)

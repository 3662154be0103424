"""Turn loops over old elements, some of which come in scalars, into whole-array maps.

In ::

    left = u[0]
    for i in range(1, n - 1):
        mid = u[i]
        u[i] = mid + k * mid * (left - 2.0 * mid + u[i + 1])
        left = mid

every iteration reads elements as they were before the loop; `left` only hands one on (a fixed-order
recurrence). So this is a statement on slices. If the adjoint needs what the stores of a time loop kill, it is
better as one: each version of the array is computed on the tape (`step-on-tape`), where the loop stores each
element twice; and the adjoint gathers, in any order, where that of the loop hands cotangents on, in reverse
order. Where nothing is saved the loop is better, because it needs no second array. That is why the pass runs
before gradients alone, and asks what the adjoint needs.

Before::

    func.func @f(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
      %left = memref.alloca() : memref<f64>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %u = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %count = arith.maxsi %m, %c0 : index
      %trips = array.loop %t to %steps do {
        %first = memref.load %u[%c0] : memref<?xf64>
        memref.store %first, %left[] : memref<f64>
        %trips_1 = array.loop %i to %count do {
          %j = arith.addi %i, %c1 : index
          %old = memref.load %left[] : memref<f64>
          %mid = memref.load %u[%j] : memref<?xf64>
          %product = arith.mulf %mid, %old : f64
          memref.store %product, %u[%j] : memref<?xf64>
          memref.store %mid, %left[] : memref<f64>
          array.yield
        }
        array.yield
      }
      %r = memref.load %u[%m] : memref<?xf64>
      func.return %r : f64
    }

After::

    !view = memref<?xf64, strided<[1]>>
    func.func @f(%x : memref<?xf64>, %n : index, %m : index, %steps : index) -> f64 {
      %left = memref.alloca() : memref<f64>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %u = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %count = arith.maxsi %m, %c0 : index
      %trips = array.loop %t to %steps do {
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %lefts = array.view %u[%zero] dims [0] extents(%count) steps(%one) : memref<?xf64> -> !view
        %mids = array.view %u[%one] dims [0] extents(%count) steps(%one) : memref<?xf64> -> !view
        %new = array.view %u[%one] dims [0] extents(%count) steps(%one) : memref<?xf64> -> !view
        %temporary = array.alloc(%count) : memref<?xf64>
        array.map(%count) ins(%lefts, %mids : !view, !view) outs(%temporary : memref<?xf64>)
            kinds ["store"] {
        ^bb0(%old : f64, %mid : f64):
          %product = arith.mulf %mid, %old : f64
          array.yield %product : f64
        }
        array.map(%count) ins(%temporary : memref<?xf64>) outs(%new : !view) kinds ["store"] {
        ^bb1(%v : f64):
          array.yield %v : f64
        }
        array.yield
      }
      %r = memref.load %u[%m] : memref<?xf64>
      func.return %r : f64
    }

Legality: a load of the array is of an element that no earlier iteration stores to. What a scalar hands on is
such an element, or what another such scalar hands on; before the loop it holds the element that the iteration
before the first one would hand on, which nothing stores to in between; after the loop nothing reads it.

Kept: scalars that hand on what is computed; two stores; arrays that are not the function's own, or of which a
step sets elements before the loop; arrays that are not saved; cotangents that go elsewhere, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import is_cell
from ..analysis.needed import Needed
from ..rules import is_opaque, writes
from ..transforms.raise_loops import Nest, Place, before, is_simple
from ..transforms.resolve_overlap import resolve_in
from ..transforms.saved_steps import ancestor
from .activations import activity_of
from .passes import chosen, functions


@dataclass(frozen=True)
class RaiseRecurrences(ModulePass):
    """Replace loops over old elements by maps, where the adjoint needs what they overwrite.

    `active` are argument indices, by default all floats; `finals` as in `reverse`.
    """

    name = "raise-recurrences"
    active: tuple[int, ...] | None = None
    finals: tuple[int, ...] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            alias = AliasAnalysis(function)
            found = [one for step in steps_of(function) if (one := recurrence_of(step, alias))]
            if not found:
                continue
            activity = activity_of(function, chosen(function, self.active), self.finals)
            needed = Needed(function, activity)
            for one in [one for one in found if one.is_worth_it(needed)]:
                one.raise_to_map()
            resolve_in(function)


def steps_of(function: func.FuncOp) -> Iterator[array.LoopOp]:
    """Innermost loops that are the one loop of an iteration of a loop at the top of the function."""
    for outer in function.body.block.ops:
        if isinstance(outer, array.LoopOp) and is_simple(outer):
            inner = [op for op in outer.body.block.ops if op.regions]
            loop = inner[0] if len(inner) == 1 else None
            if isinstance(loop, array.LoopOp) and is_simple(loop) and is_innermost(loop):
                yield loop


def is_innermost(loop: array.LoopOp) -> bool:
    return not any(op.regions for op in loop.body.block.ops)


def recurrence_of(loop: array.LoopOp, alias: AliasAnalysis) -> Recurrence | None:
    """The loop, where a map says the same."""
    nest = Nest((loop,), alias)
    places = nest.places() or []
    stores = [p for p in places if isinstance(p.op, memref.StoreOp)]
    kept = [p for p in stores if not is_cell(p.memref)]
    if len(kept) != 1:
        return None
    cells = {p.memref: p for p in stores if p is not kept[0]}
    found = Recurrence(nest, places, kept[0], cells)
    return found if len(cells) == len(stores) - 1 and found.is_exact() else None


@dataclass
class Recurrence:
    """A loop that stores to one array, and hands on old elements in cells."""

    nest: Nest
    places: list[Place]
    """All accesses, in order; those of cells as they are."""
    store: Place
    cells: dict[SSAValue, Place]
    """By cell, the store to it."""
    handed: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    """By cell, where an iteration's load of the cell would find the element in its array."""
    begun: list[Operation] = field(default_factory=list[Operation])
    """The stores to cells before the loop, of what the first iteration loads."""

    @property
    def loop(self) -> array.LoopOp:
        return self.nest.loops[0]

    # Legality.

    def is_exact(self) -> bool:
        (at, *more) = self.store.subscripts or (None,)
        if at is None or more or abs(at.factor) != 1 or not self._is_own():
            return False
        loads = [p for p in self.places if isinstance(p.op, memref.LoadOp)]
        own = [p for p in loads if p.memref not in self.cells]
        if not all(self._is_old(p) for p in own):
            return False
        if not all(before(p.op, self.cells[p.memref].op) for p in loads if p.memref in self.cells):
            return False
        for cell in self.cells:
            place = self._handed(cell, own, ())
            if place is None or not self._begins_with(cell, place) or self._is_read_later(cell):
                return False
            self.handed[cell] = place
        return self.nest.computable(self.store.op.operands[0])

    def _is_own(self) -> bool:
        """The function's own array, made beside the outer loop, in which else elements are set behind."""
        made, outer = self.store.memref.owner, self.loop.parent_op()
        assert outer is not None
        if not isinstance(made, array.AllocOp) or made.parent is not outer.parent:
            return False
        if made.attributes.keys() & {array.GROWABLE, array.STACK, array.CLEARED}:
            return False
        others = [op for op in outer.walk() if op is not self.store.op]
        near = self.nest.alias.may_alias
        stores = [op for op in others if any(near(w.memref, made.memref) for w in writes(op))]
        behind = all(
            isinstance(op, memref.StoreOp)
            and op.parent is self.loop.parent
            and self.loop.is_before_in_block(op)
            for op in stores
        )
        return behind and not any(map(is_opaque, others))

    def _is_old(self, load: Place) -> bool:
        """No earlier iteration, nor this one before, stores to what is loaded."""
        if not self.nest.alias.may_alias(load.memref, self.store.memref):
            return True
        if load.memref is not self.store.memref:
            return False
        ahead: set[int] = set()
        for a, b in zip(load.subscripts, self.store.subscripts, strict=True):
            distance = a.rest - b.rest
            if a.loop != b.loop or a.factor != b.factor or not distance.is_constant:
                return False
            if a.factor:
                if distance.constant % a.factor:
                    return True
                ahead.add(distance.constant // a.factor)
            elif distance.constant:
                return True
        (turns,) = ahead if len(ahead) == 1 else (-1,)
        return turns > 0 or (turns == 0 and before(load.op, self.store.op))

    def _handed(
        self, cell: SSAValue, loads: Sequence[Place], seen: tuple[SSAValue, ...]
    ) -> Place | None:
        """The element that the iteration before leaves in the cell; None of what it computes."""
        value = self.cells[cell].op.operands[0]
        if cell in seen or not isinstance(value.owner, memref.LoadOp):
            return None
        if value.owner.memref in self.cells:
            place = self._handed(value.owner.memref, loads, (*seen, cell))
        else:
            place = next((p for p in loads if p.op is value.owner), None)
        return None if place is None else shifted(place)

    def _begins_with(self, cell: SSAValue, place: Place) -> bool:
        """Before the loop the cell holds the element that is at the place in the first iteration."""
        begin = self.loop.prev_op
        while begin is not None and cell not in begin.operands:
            begin = begin.prev_op
        load = begin.value.owner if isinstance(begin, memref.StoreOp) else None
        if begin is None or not isinstance(load, memref.LoadOp) or load.parent is not begin.parent:
            return False
        near, op = self.nest.alias.may_alias, load.next_op
        while op is not None and op is not self.loop:
            wrong = any(near(w.memref, place.memref) for w in writes(op))
            if wrong or op.regions or is_opaque(op):
                return False
            op = op.next_op
        self.begun.append(begin)
        at = tuple(map(self.nest.forms.affine, load.indices))
        return load.memref is place.memref and at == tuple(s.rest for s in place.subscripts)

    def _is_read_later(self, cell: SSAValue) -> bool:
        """What the loop leaves in the cell may be read: no store stands between, in the block of one."""
        uses = [use.operation for use in cell.uses]
        stores = [op for op in uses if isinstance(op, memref.StoreOp)]
        others = [op for op in uses if not isinstance(op, memref.StoreOp)]
        if not all(isinstance(op, memref.LoadOp) for op in others):
            return True
        return not all(self.loop.is_ancestor(op) or self._is_set_anew(op, stores) for op in others)

    def _is_set_anew(self, load: Operation, stores: Sequence[memref.StoreOp]) -> bool:
        for store in stores:
            at, mine = ancestor(load, store.parent), ancestor(self.loop, store.parent)
            if at is None or self.loop.is_ancestor(store) or not store.is_before_in_block(at):
                continue
            if mine is None or mine.is_before_in_block(store) or at.is_before_in_block(mine):
                return True
        return False

    # Profit.

    def is_worth_it(self, needed: Needed) -> bool:
        """The plan will save the array, and cotangents go to it alone, so that its shadow gathers.

        One number that several elements make is saved itself.
        """
        active, old = needed.activity.active, self._old()
        if any(active(v) and v not in old for v in self._entering()):
            return False
        values = [v for v in needed.by if isinstance(v, SSAValue)]
        found = [made for v in values if (made := self._elements(v, old))]
        return len(found) > 1 or any(len(made) == 1 for made in found)

    def _old(self) -> set[SSAValue]:
        """What is loaded of the array, or handed on of it."""
        loads = [p for p in self.places if isinstance(p.op, memref.LoadOp)]
        at = ((p.op.results[0], self.handed.get(p.memref, p)) for p in loads)
        return {value for value, place in at if place.memref is self.store.memref}

    def _entering(self) -> Iterator[SSAValue]:
        """What the body computes with."""
        for op in self.loop.body.block.ops:
            if isinstance(op, memref.LoadOp):
                yield op.res
            elif not isinstance(op, memref.StoreOp):
                yield from (v for v in op.operands if self.nest.is_outside(v))

    def _elements(self, value: SSAValue, old: set[SSAValue]) -> set[SSAValue]:
        """The elements of the array that a value of the body is computed of."""
        pending, seen = [value], set[SSAValue]()
        while pending:
            one = pending.pop()
            if one in seen or self.nest.is_outside(one):
                continue
            seen.add(one)
            if isinstance(one.owner, Operation) and not isinstance(one.owner, memref.LoadOp):
                pending += one.owner.operands
        return seen & old

    # The map.

    def raise_to_map(self) -> None:
        loads = [
            replace(self.handed.get(p.memref, p), op=p.op)
            for p in self.places
            if isinstance(p.op, memref.LoadOp)
        ]
        places = [*loads, self.store]
        if any(s.factor < 0 for s in self.store.subscripts):
            places = [self._upwards(p) for p in places]
        made = self.nest.build(places, places[-1:])
        made.attributes[array.READS_FIRST] = UnitAttr()
        for store in self.begun:
            load = store.operands[0].owner
            Rewriter.erase_op(store)
            if isinstance(load, memref.LoadOp) and load.res.first_use is None:
                Rewriter.erase_op(load)

    def _upwards(self, place: Place) -> Place:
        """The place, with the iterations in the opposite order."""
        count = self.loop.count
        assert count is not None
        if isinstance(count.owner, arith.MaxSIOp) and array.constant_value(count.owner.rhs) == 0:
            count = count.owner.lhs  # below 0 there are no elements to be at another place
        last = self.nest.forms.affine(count) - 1
        return replace(
            place,
            subscripts=tuple(
                replace(s, factor=-s.factor, rest=s.rest + last * s.factor)
                for s in place.subscripts
            ),
        )


def shifted(place: Place) -> Place:
    """Where the place was one iteration before."""
    return replace(
        place,
        subscripts=tuple(replace(s, rest=s.rest + -s.factor) for s in place.subscripts),
    )

"""Turn loops whose iterations are independent into whole-array maps.

An explicit loop over elements that reads and writes at affine subscripts, and whose iterations do
not meet, says the same as a statement on slices; as a map its adjoint is a map too, which
vectorizes, where the adjoint of the loop would scatter. Runs after hoist-checks (a map does not
raise) and before the analyses.

Before::

    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = arith.maxsi %n, %c0 : index
      %trips = array.loop %i to %m do {
        %j = arith.addi %i, %c1 : index
        %a = memref.load %x[%j] : memref<?xf64>
        %b = arith.mulf %a, %a : f64
        memref.store %b, %y[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    !view = memref<?xf64, strided<[1]>>
    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = arith.maxsi %n, %c0 : index
      %one = arith.constant 1 : index
      %x_view = array.view %x[%one] dims [0] extents(%m) steps(%one) : memref<?xf64> -> !view
      %zero = arith.constant 0 : index
      %y_view = array.view %y[%zero] dims [0] extents(%m) steps(%one) : memref<?xf64> -> !view
      array.map(%m) ins(%x_view : !view) outs(%y_view : !view) kinds ["store"] {
      ^bb0(%a : f64):
        %b = arith.mulf %a, %a : f64
        array.yield %b : f64
      }
      func.return
    }

Of several stores to one element the last is taken: a map stores to an element once. Kept: loops that
accumulate in a cell, whose iterations read what others write, that may raise, that branch, or that
compute with the induction itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from ...dialects import array
from ..analysis.affine import Affine, Extent, Subscripts, Term
from ..analysis.alias import AliasAnalysis
from ..rules import evaluates_body
from .fold_constants import is_nonnegative
from .hoist_checks import Before, is_counted


@dataclass(frozen=True)
class RaiseLoops(ModulePass):
    """Replace each nest of independent iterations by an `array.map`."""

    name = "raise-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if not isinstance(function, func.FuncOp):
                continue
            alias = AliasAnalysis(function)
            for nest in list(innermost_nests(function.body.block)):
                while nest and not Nest(nest, alias).raised():
                    nest = nest[1:]


def innermost_nests(block: Block) -> Iterator[tuple[array.LoopOp, ...]]:
    """Maximal perfect nests of counted loops, outermost loop first."""
    for op in block.ops:
        if array.RAISES in op.attributes or evaluates_body(op):
            continue
        if isinstance(op, array.LoopOp) and is_simple(op):
            loops = perfect_nest(op)
            if not any(inner.regions for inner in loops[-1].body.block.ops):
                yield loops
                continue
            for loop in loops[-1:]:
                yield from innermost_nests(loop.body.block)
            continue
        for region in op.regions:
            for inner in region.blocks:
                yield from innermost_nests(inner)


def is_simple(loop: array.LoopOp) -> bool:
    return is_counted(loop) and not loop.carried


def perfect_nest(loop: array.LoopOp) -> tuple[array.LoopOp, ...]:
    """`loop` and the loops directly inside it, as long as there is nothing but pure code beside them."""
    loops = [loop]
    while True:
        ops = list(loops[-1].body.block.ops)[:-1]
        inner = [o for o in ops if isinstance(o, array.LoopOp)]
        rest = [o for o in ops if not isinstance(o, array.LoopOp)]
        if len(inner) != 1 or not is_simple(inner[0]) or not all(is_pure(o) for o in rest):
            return tuple(loops)
        loops.append(inner[0])


def is_pure(op: Operation) -> bool:
    """Scalar code that neither raises nor touches memory."""
    if isinstance(op, array.IndexOp):
        return op.unchecked is not None
    if op.regions or isinstance(op, memref.LoadOp | memref.StoreOp | array.CheckedIntOp):
        return False
    return (
        op.has_trait(Pure)
        or isinstance(op, memref.DimOp)
        or op.name.startswith(("arith.", "math."))
    )


@dataclass(frozen=True)
class Subscript:
    """One dimension of an access: `factor * induction + rest`, or just `rest`."""

    loop: int | None
    factor: int
    rest: Affine


@dataclass
class Place:
    """A load or store with its subscripts."""

    op: memref.LoadOp | memref.StoreOp
    memref: SSAValue
    subscripts: tuple[Subscript, ...]


@dataclass
class Nest:
    """A nest that may be raised."""

    loops: tuple[array.LoopOp, ...]
    alias: AliasAnalysis
    forms: Subscripts = field(default_factory=Subscripts)

    def raised(self) -> array.MapOp | None:
        """Raise the nest if that is exact: the map in its place."""
        places = self.independent()
        if places is None:
            return None
        stores = [p for p in places if isinstance(p.op, memref.StoreOp)]
        return self.build(
            places, [s for k, s in enumerate(stores) if not overwritten(s, stores[k + 1 :])]
        )

    def independent(self) -> list[Place] | None:
        """All accesses in program order, where a map may make them in any; else None."""
        places = self.places() or []
        stores = [p for p in places if isinstance(p.op, memref.StoreOp)]
        if not stores or not all(self.is_injective(s) for s in stores):
            return None
        if not all(self._compatible(s, p) for s in stores for p in places if p is not s):
            return None
        return places if all(self.computable(s.op.operands[0]) for s in stores) else None

    # What is in the nest.

    def places(self) -> list[Place] | None:
        """All accesses in program order; None where something else than pure code is beside them."""
        for loop in self.loops:
            assert loop.count is not None
            if not self.is_outside(loop.count):
                return None
        places: list[Place] = []
        for op in list(self.loops[-1].body.block.ops)[:-1]:
            if isinstance(op, memref.LoadOp | memref.StoreOp):
                place = self._place(op)
                if place is None:
                    return None
                places.append(place)
            elif not is_pure(op):
                return None
        return places

    def _place(self, op: memref.LoadOp | memref.StoreOp) -> Place | None:
        if not self.is_outside(op.memref):
            return None
        subscripts = [self.subscript_of(i) for i in op.indices]
        known = [s for s in subscripts if s is not None]
        moving = [s.loop for s in known if s.loop is not None]
        if len(known) < len(subscripts) or len(set(moving)) < len(moving):
            return None
        return Place(op, op.memref, tuple(known))

    def subscript_of(self, index: SSAValue) -> Subscript | None:
        form = self.forms.affine(index)
        inductions = [loop.induction for loop in self.loops]
        moving = {s: f for s, f in form.terms.items() if s in inductions}
        rest = form - Affine(moving)
        if len(moving) > 1 or not all(self._known(s) for s in rest.terms):
            return None
        for symbol, factor in moving.items():
            return Subscript(inductions.index(symbol), factor, rest)  # pyright: ignore[reportArgumentType]
        return Subscript(None, 0, rest)

    def _known(self, symbol: object) -> bool:
        if isinstance(symbol, Extent):
            return self.is_outside(symbol.memref)
        if isinstance(symbol, Term):
            return False
        assert isinstance(symbol, SSAValue)
        return isinstance(symbol.type, IndexType) and self.is_outside(symbol)

    def is_outside(self, value: SSAValue) -> bool:
        owner = value.owner
        inside = owner.parent_op() if isinstance(owner, Block) else owner
        return inside is None or not self.loops[0].is_ancestor(inside)

    # Whether its iterations are independent.

    def is_injective(self, store: Place) -> bool:
        """No two iterations store to the same element."""
        return {s.loop for s in store.subscripts if s.loop is not None} == set(
            range(len(self.loops))
        )

    def _compatible(self, store: Place, other: Place) -> bool:
        """What an iteration stores, no other iteration accesses, and no load comes after it."""
        if not self.alias.may_alias(store.memref, other.memref):
            return True
        if self.alias.apart_in_turn(store.memref, other.memref):
            return True
        if store.memref is not other.memref:
            return False
        if store.subscripts == other.subscripts:
            return isinstance(other.op, memref.StoreOp) or before(other.op, store.op)
        return any(apart(a, b) for a, b in zip(store.subscripts, other.subscripts, strict=True))

    def computable(self, value: SSAValue) -> bool:
        """A value that loads and outer values determine: the inductions themselves do not enter."""
        pending, seen = [value], set[SSAValue]()
        while pending:
            v = pending.pop()
            if v in seen or self.is_outside(v):
                continue
            seen.add(v)
            if isinstance(v.owner, Block) or v.owner.regions:
                return False
            if not isinstance(v.owner, memref.LoadOp):
                pending.extend(v.owner.operands)
        return True

    # The map.

    def build(self, places: list[Place], stores: list[Place]) -> array.MapOp:
        outermost = self.loops[0]
        emitter = Before(outermost)
        extents = [self._extent(loop, emitter) for loop in self.loops]
        body = Block()
        ins: list[SSAValue] = []
        values: dict[SSAValue, SSAValue] = {}
        elements: dict[tuple[SSAValue, tuple[Subscript, ...]], SSAValue] = {}
        for place in places:
            if isinstance(place.op, memref.LoadOp):
                key = (place.memref, place.subscripts)
                if key not in elements:
                    ins.append(self._view(place, extents, emitter))
                    elements[key] = body.insert_arg(place.op.res.type, len(body.args))
                    elements[key].name_hint = place.op.res.name_hint
                values[place.op.res] = elements[key]
        stored = {s.op.operands[0] for s in stores}
        for op in self._needed_for(stored):
            clone = op.clone(values)
            body.add_op(clone)
            values.update(zip(op.results, clone.results, strict=True))
        yields = [values.get(s.op.operands[0], s.op.operands[0]) for s in stores]
        body.add_op(array.YieldOp(yields))
        outs = [self._view(s, extents, emitter) for s in stores]
        result = array.MapOp(extents, ins, outs, ["store"] * len(outs), body)
        emitter.insert(result)
        result.location = stores[-1].op.location
        outermost.trips.replace_all_uses_with(extents[0])
        outermost.detach()
        outermost.erase()
        return result

    def _needed_for(self, values: set[SSAValue]) -> list[Operation]:
        """The pure ops of the nest that compute `values`, in order."""
        wanted = {v for v in values if not self.is_outside(v)}
        needed: list[Operation] = []
        for loop in reversed(self.loops):
            for op in reversed(list(loop.body.block.ops)):
                if isinstance(op, memref.LoadOp | memref.StoreOp) or op.regions:
                    continue
                if any(r in wanted for r in op.results):
                    needed.append(op)
                    wanted.update(o for o in op.operands if not self.is_outside(o))
        return needed[::-1]

    def _extent(self, loop: array.LoopOp, emitter: Before) -> SSAValue:
        count = loop.count
        assert count is not None
        if is_nonnegative(count):
            return count
        return emitter.emit(arith.MaxSIOp(count, emitter.constant(0)))

    def _view(self, place: Place, extents: list[SSAValue], emitter: Before) -> SSAValue:
        dims, steps = [-1] * len(extents), [emitter.constant(1)] * len(extents)
        for axis, subscript in enumerate(place.subscripts):
            if subscript.loop is not None:
                dims[subscript.loop] = axis
                steps[subscript.loop] = emitter.constant(subscript.factor)
        offsets = [emitter.number(s.rest) for s in place.subscripts]
        view = array.ViewOp(place.memref, offsets, dims, extents, steps)
        emitter.insert(view)
        view.location = place.op.location
        hint = place.memref.name_hint
        view.result.name_hint = f"{hint}_view" if hint else None
        return view.result


def before(a: Operation, b: Operation) -> bool:
    """True when `a` stands before `b` in their block."""
    op: Operation | None = a.next_op
    while op is not None:
        if op is b:
            return True
        op = op.next_op
    return False


def overwritten(store: Place, later: list[Place]) -> bool:
    """True when a later store of the iteration is to the same element: nothing loads it in between."""
    return any(s.memref is store.memref and s.subscripts == store.subscripts for s in later)


def apart(a: Subscript, b: Subscript) -> bool:
    """The two subscripts differ, whatever the iterations."""
    distance = a.rest - b.rest
    if not distance.is_constant:
        return False
    if a.loop is None and b.loop is None:
        return distance.constant != 0
    return distance.constant % gcd(a.factor, b.factor) != 0

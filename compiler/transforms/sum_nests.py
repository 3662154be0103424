"""What a nest adds to which elements, and with which of its counters they move. Part of `gather_sums`.

Each axis of `t[i + a, j + b, c] += ...` has a place: two counters that are added up, or one. What is in no
place is summed, and so is the inner one of two: the element p of the first axis gets its terms from the a
between p - count(i) + 1 and p, and i is p - a.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..analysis.additions import additions_in, is_cell
from ..analysis.affine import Affine, Subscripts
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..analysis.footprint import Point
from ..rules import accesses
from .interchange import is_outside, known_before
from .maps_as_loops import is_scalar_code
from .raise_products import Element, parts_of_addition

ELEMENTWISE = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp)
"""What a term is made of, in vectors."""

FACTORS = 8
"""Terms that read more elements are kept where they are."""

Way = Literal["still", "unit", "far"]


@dataclass(frozen=True)
class Place:
    """The counters with which an axis moves: two are added up, and the second one of them is summed."""

    loop: array.LoopOp
    other: array.LoopOp | None = None


@dataclass
class Sum:
    """A statement `target += term` of the innermost loop, whose additions may come in any order."""

    nest: SumNest
    store: memref.StoreOp
    load: memref.LoadOp
    term: SSAValue
    target: Element
    factors: dict[SSAValue, Element] = field(default_factory=dict[SSAValue, Element])
    """What the term is made of: what is loaded, and from where."""
    places: list[Place] = field(default_factory=list[Place])
    """Of the axes that move, in order."""

    @cached_property
    def summed(self) -> list[array.LoopOp]:
        """The loops that add to one element, the outermost first."""
        moving = {place.loop for place in self.places}
        return [loop for loop in self.nest.loops if loop not in moving]

    @property
    def is_dot(self) -> bool:
        """Whether the innermost loop adds to one element, too."""
        return self.nest.leaf in self.summed

    @cached_property
    def rows(self) -> array.LoopOp | None:
        """The loop whose iterations share a tile: all of them have the same loops inside."""
        found = [p.loop for p in self.places if p.other is None and p.loop is not self.nest.leaf]
        return found[-1] if found else None

    def counters_of(self, value: SSAValue) -> frozenset[SSAValue]:
        """The counters that a number of the term depends on."""
        if value in self.factors:
            forms = self.factors[value].subscripts
            return frozenset(c for c in self.nest.counters if any(f.terms.get(c, 0) for f in forms))
        owner = value.owner
        if not isinstance(owner, Operation) or is_outside(value, self.nest.outermost):
            return frozenset()
        return frozenset[SSAValue]().union(*map(self.counters_of, owner.operands))


class SumNest:
    """Loops, each around the next one, of lengths that are known before the first one."""

    def __init__(
        self, function: func.FuncOp, loops: Sequence[array.LoopOp], fastmath: bool
    ) -> None:
        self.loops = loops
        self.outermost, self.leaf = loops[0], loops[-1]
        self.counters = [loop.induction for loop in loops]
        self.fastmath = fastmath
        self.alias = AliasAnalysis(function)
        self.dependence = Dependence(function, self.alias)
        self.forms = Subscripts()

    @cached_property
    def counts(self) -> dict[SSAValue, Affine]:
        return {
            loop.induction: self.forms.affine(loop.count)
            for loop in self.loops
            if loop.count is not None
        }

    @property
    def ops(self) -> Iterator[Operation]:
        """What is in the loops beside loops."""
        for loop in self.loops:
            yield from (o for o in loop.body.block.ops if not isinstance(o, array.LoopOp))

    def sums(self) -> list[Sum]:
        """The statements, where the elements of each may have their terms one after the other; else none."""
        if not all(known_before(count, self.outermost) for count in self.counts.values()):
            return []
        if any(loop.trips.first_use is not None for loop in self.loops):
            return []
        if not all(map(is_scalar_code, self.ops)):
            return []
        stores = [op for op in self.ops if isinstance(op, memref.StoreOp)]
        free = additions_in(self.leaf, self.alias.may_alias, self.fastmath)
        if not stores or not free.issuperset(stores):
            return []
        loads = [op for op in self.ops if isinstance(op, memref.LoadOp) and op not in free]
        if any(self.alias.may_alias(a.memref, b.memref) for a in loads for b in stores):
            return []
        if len({op.value.type for op in stores}) > 1:
            return []
        found = [one for op in stores if (one := self._sum(op)) is not None and self._places(one)]
        return found if len(found) == len(stores) else []

    def element(self, op: memref.LoadOp | memref.StoreOp) -> Element | None:
        (access,) = accesses(op)
        region = self.dependence.region(access)
        points = [d.at for d in region.dimensions if isinstance(d, Point)]
        if len(points) < len(region.dimensions) or not is_outside(region.base, self.outermost):
            return None
        if is_cell(region.base) or not all(
            known_before(self.rest(form), self.outermost) for form in points
        ):
            return None
        return Element(region.base, tuple(points))

    def rest(self, form: Affine) -> Affine:
        """What is left of a subscript where all counters are 0."""
        return form - Affine({c: form.terms.get(c, 0) for c in self.counters})

    def _sum(self, store: memref.StoreOp) -> Sum | None:
        target = self.element(store)
        load, term = parts_of_addition(store)
        if target is None or store.parent is not self.leaf.body.block:
            return None
        one = Sum(self, store, load, term, target)
        return one if self._is_term(term, one) and 0 < len(one.factors) <= FACTORS else None

    def _is_term(self, term: SSAValue, one: Sum) -> bool:
        """Whether a value is made of elements, and of numbers from outside, by simple arithmetic."""
        seen, pending = set[SSAValue](), [term]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            owner = value.owner
            if value.type != one.store.value.type:
                return False
            if is_outside(value, self.outermost) or isinstance(owner, arith.ConstantOp):
                continue
            if isinstance(owner, memref.LoadOp):
                element = self.element(owner)
                if element is None:
                    return False
                one.factors[value] = element
            elif isinstance(owner, ELEMENTWISE):
                pending += reversed(owner.operands)
            else:
                return False
        return True

    # Where the element is.

    def signs(self, one: Sum) -> dict[SSAValue, int]:
        """The direction in which each loop is to run: in which its element moves, or what it reads."""
        found: dict[SSAValue, int] = {}
        for element in (one.target, *one.factors.values()):
            for form in element.subscripts:
                for counter in self.counters:
                    if factor := form.terms.get(counter, 0):
                        found.setdefault(counter, 1 if factor > 0 else -1)
        return found

    def _places(self, one: Sum) -> bool:
        """Find the place of each axis; False where a counter moves two of them, or they cannot be told."""
        known = dict(zip(self.counters, self.loops, strict=True))
        seen: set[array.LoopOp] = set()
        for form in one.target.subscripts:
            loops = [known[c] for c in self.counters if form.terms.get(c, 0)]
            factors = {form.terms[loop.induction] for loop in loops}
            if len(loops) > 2 or seen.intersection(loops):
                return False
            if len(loops) == 2 and not factors <= {1, -1}:
                return False
            seen.update(loops)
            if loops:
                one.places.append(Place(*loops))
        return bool(one.places)

    def way(self, element: Element, sign: int) -> Way:
        """How far apart the elements of two iterations of the innermost loop are."""
        moving = [
            (axis, factor)
            for axis, form in enumerate(element.subscripts)
            if (factor := form.terms.get(self.leaf.induction, 0))
        ]
        if not moving:
            return "still"
        type_ = element.base.type
        assert isinstance(type_, MemRefType)
        last = len(element.subscripts) - 1
        near = moving == [(last, sign)] and array.strides_of(type_)[-1] == 1
        return "unit" if near else "far"

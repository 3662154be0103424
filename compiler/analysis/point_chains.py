"""Has an iteration of a loop, a point, stored itself what it reads of an array?

In ::

    for j in range(m):                       # a point
        q[0] = u[0, j]
        for i in range(1, n):
            p[i] = r / (b - p[i - 1])
            q[i] = (u[i, j] + q[i - 1]) * p[i]
        for i in range(n - 1, -1, -1):
            v[i, j] = q[i]

each load of `q` reads what its point has stored. The last loop reads elements that a loop before it has
stored (`_filled`). The first loop is a *chain*: it reads what its iteration before has stored, and first what
stood before it. Of `p` the first element is *outside*: no point stores it, so all of them find the same.

All is proved with the ranges of the counters (`dependence.Problem`); what is not proved is not true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Literal

from xdsl.dialects import memref
from xdsl.ir import Block, Operation

from ...dialects import array
from .affine import Affine, Symbol, Term
from .dependence import Dependence, Problem

MOST = 3
"""More stores that may have reached an element are not looked at."""

Interval = tuple[Affine, Affine]
"""All numbers from the first to the second; none where that is less."""

Source = Literal["own", "outside"]
"""Where a load finds its element: its point has stored it, or that, or no point stores it."""


@dataclass
class PointChains:
    """Answers for the loads in one loop over points."""

    loop: array.LoopOp
    dependence: Dependence
    stores: Sequence[memref.StoreOp]
    handed_on: set[memref.LoadOp] = field(default_factory=set[memref.LoadOp])
    """The loads that have turned out to read what the iteration before has stored."""
    _known: dict[memref.LoadOp, Source | None] = field(
        default_factory=dict[memref.LoadOp, "Source | None"]
    )

    def source(self, load: memref.LoadOp) -> Source | None:
        """Where all elements that the load reads come from; None where that is not known."""
        if load not in self._known:
            self._known[load] = self._find(load)
        return self._known[load]

    def _find(self, load: memref.LoadOp) -> Source | None:
        stores = [s for s in self.stores if s.memref is load.memref]
        place = self._place(load)
        if self._is_filled(place, stores, load, load):
            return "own"
        parent = load.parent_op()
        while isinstance(parent, array.LoopOp) and parent is not self.loop:
            if any(self._follows(place, s, parent) for s in stores):
                first = self._first(place, stores, parent, load)
                if first is not None:
                    self.handed_on.add(load)
                return first
            parent = parent.parent_op()
        return None

    def _place(self, op: memref.LoadOp | memref.StoreOp) -> list[Affine]:
        return [self.dependence.footprints.subscripts.affine(i) for i in op.indices]

    def _follows(self, read: Sequence[Affine], store: memref.StoreOp, loop: array.LoopOp) -> bool:
        """An iteration of the loop reads what the one before it has surely stored."""
        k, moves = loop.induction, False
        if store.parent is not loop.body.block or loop.condition_block is not None:
            return False
        for stored, wanted in zip(self._place(store), read, strict=True):
            step = stored.terms.get(k, 0)
            if stored - step != wanted or self._moves(without(stored, k), [loop]):
                return False
            moves = moves or step != 0
        return moves

    # The first element of a chain.

    def _first(
        self,
        place: Sequence[Affine],
        stores: Sequence[memref.StoreOp],
        chain: array.LoopOp,
        load: memref.LoadOp,
    ) -> Source | None:
        start = [without(form, chain.induction) for form in place]
        if self._is_filled(start, stores, chain, load):
            return "own"
        apart = all(self._is_apart(start, self._place(s), s) for s in stores)
        return "outside" if apart else None

    def _is_apart(
        self, start: Sequence[Affine], place: Sequence[Affine], store: memref.StoreOp
    ) -> bool:
        """No iteration of any point stores there: on one axis all stores lie on one side."""
        return any(self._on_one_side(a, b, store) for a, b in zip(start, place, strict=True))

    def _on_one_side(self, start: Affine, form: Affine, store: memref.StoreOp) -> bool:
        counters = {p.induction for p in self._loops_around(store)}
        inner = Affine({s: c for s, c in form.terms.items() if s in counters})
        away = form - inner - start
        if not away.is_constant or any(self.dependence.varies(s, self.loop) for s in start.terms):
            return False
        signs = {c > 0 for c in inner.terms.values()} | {away.constant > 0}
        return away.constant != 0 and len(signs) == 1

    def _loops_around(self, op: Operation) -> list[array.LoopOp]:
        """The loops between an op and that over the points."""
        found: list[array.LoopOp] = []
        parent = op.parent_op()
        while parent is not None and parent is not self.loop:
            if isinstance(parent, array.LoopOp):
                found.append(parent)
            parent = parent.parent_op()
        return found

    # What loops before have stored.

    def _is_filled(
        self,
        place: Sequence[Affine],
        stores: Sequence[memref.StoreOp],
        position: Operation,
        context: Operation,
    ) -> bool:
        """Stores before `position` have reached the element, which is read where the context is run."""
        found = [box for s in stores if (box := self._box(s, position)) is not None]
        if len(found) > MOST:
            return False
        for one in found:
            if all(map(partial(self._is_between, context), one, place)):
                return True
        if len(place) > 1 or len(found) < 2:
            return False
        ((wanted,), intervals) = place, [one[0] for one in found]
        return not any(
            self._may_be_beside(wanted, intervals, sides, context)
            for sides in product((False, True), repeat=len(intervals))
        )

    def _box(self, store: memref.StoreOp, position: Operation) -> list[Interval] | None:
        """What the loops around the store, run as a whole before the position, have stored, axis by axis."""
        around = loops_before(store, position, self.loop)
        if around is None:
            return None
        counters = [loop.induction for loop in around]
        counts: dict[Symbol, Affine] = {}
        for loop in around:
            assert loop.count is not None
            counts[loop.induction] = self.dependence.footprints.subscripts.affine(loop.count)
        if any(self._moves(n, around) for n in counts.values()):
            return None
        found: list[Interval] = []
        for form in self._place(store):
            inner = [k for k in counters if mentions(form, k)]
            low = high = form
            if inner:
                k = inner[0]
                if len(inner) > 1 or k not in counts or abs(form.terms.get(k, 0)) != 1:
                    return None
                low = high = without(form, k)
                if form.terms[k] == 1:
                    high += counts.pop(k) - 1
                else:
                    low -= counts.pop(k) - 1
            if self._moves(low, around):
                return None
            found.append((low, high))
        return None if counts else found

    def _moves(self, form: Affine, loops: Sequence[array.LoopOp]) -> bool:
        """The number may be another one in another iteration of one of the loops."""
        return any(self.dependence.varies(s, loop) for s in form.terms for loop in loops)

    def _is_between(self, context: Operation, interval: Interval, value: Affine) -> bool:
        if interval == (value, value):
            return True
        return not any(
            self._may_be_beside(value, [interval], [side], context) for side in (False, True)
        )

    def _may_be_beside(
        self,
        value: Affine,
        intervals: Sequence[Interval],
        sides: Sequence[bool],
        context: Operation,
    ) -> bool:
        """The value may be below each interval, or above those whose side is True."""
        problem = Problem(self.dependence, None)
        problem.state_context(context, 1)
        for (low, high), above in zip(intervals, sides, strict=True):
            if above:
                problem.at_least(high, value, 1, gap=1)
            else:
                problem.at_least(value, low, 1, gap=1)
        return problem.may_hold()


def loops_before(
    store: memref.StoreOp, position: Operation, outermost: array.LoopOp
) -> list[array.LoopOp] | None:
    """The loops around a store that have been run, as a whole, before the position; None if others may be."""
    around: list[array.LoopOp] = []
    op: Operation = store
    while True:
        block = op.parent
        if block is None or block.parent_op() is None:
            return None
        inside = ancestor_in(block, position)
        if inside is not None:
            return around if op is not inside and op.is_before_in_block(inside) else None
        parent = block.parent_op()
        if not isinstance(parent, array.LoopOp) or parent is outermost or parent.count is None:
            return None
        if parent.condition_block is not None or block is not parent.body.block:
            return None
        around.append(parent)
        op = parent


def ancestor_in(block: Block, op: Operation) -> Operation | None:
    """The op of the block that has `op` in it."""
    found: Operation | None = op
    while found is not None and found.parent is not block:
        found = found.parent_op()
    return found


# Forms.


def without(form: Affine, k: Symbol) -> Affine:
    """The number where the counter is 0."""
    return Affine({s: c for s, c in form.terms.items() if s is not k}, form.constant)


def mentions(form: Affine, k: Symbol) -> bool:
    return k in form.terms or mentions_in_term(form, k)


def mentions_in_term(form: Affine, k: Symbol) -> bool:
    terms = [s for s in form.terms if isinstance(s, Term)]
    return any(mentions(arg, k) for term in terms for arg in term.args)

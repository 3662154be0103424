"""What dependence analysis knows about innermost scalar loops, for LLVM to use.

LLVM sees addresses; we see subscripts, loop ranges and which roots are disjoint. Four facts matter:

- An element that the loop loads and stores at the same place in every iteration, and touches in no
  other way, lives in a register: loaded before the loop, stored after it (an *accumulator*).
- An element that every iteration reads, and none writes, is loaded once, before the loop.
- Where all that the loop does to an array is adding to its elements, the additions may come in any
  order (if they are the adjoint's, which may be reassociated). Then what is added at one place is
  summed from zero in a register and added after the loop, even if other additions meet that place.
- Where no iteration writes what another one touches, the loop is *parallel*: LLVM vectorizes it
  without run-time checks, also where its own analysis would give up.

Of a loop that stores elements, and has vectors of them in memory too, nothing is known.

::

    array.loop %j to %n do {
      a[i, j] -= a[i, k] * a[k, j]          // i > k and j > k: parallel, a[i, k] is constant
      s[i, k] += a[i, j] * t[j]             // an accumulator
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import activation, ad, array, foreign
from ...dialects.within import every_op
from ..analysis.additions import Place, additions_in, is_cell, place_of
from ..analysis.carried_cells import roles
from ..analysis.dependence import Dependence
from ..analysis.made_of import all_made_of
from ..analysis.near_accesses import NearAccesses
from ..rules import Access, accesses, is_whole_array
from ..rules.builders import element_of
from ..rules.math import is_transcendental
from .vector_width import may_be_long

PAIRS = 160
"""Loops in which more pairs of accesses would have to be compared are left to LLVM."""


@dataclass(frozen=True)
class Accumulator:
    """A place that lives in a register during the loop."""

    place: Place
    from_zero: bool
    """The register starts at zero and is added to memory, rather than taking its place."""


@dataclass(frozen=True)
class LeafFacts:
    """What is known about an innermost loop."""

    accumulators: tuple[Accumulator, ...] = ()
    constants: tuple[Place, ...] = ()
    """Places that are read, and that the loop does not write: loaded before it."""
    parallel: bool = False
    sequential: bool = False
    """Some iteration computes with what another one writes, or does more than to compute."""
    chained: bool = False
    """Some iteration may read what one before it writes to an array."""


def leaf_facts(
    loop: array.LoopOp, dependence: Dependence, proved: set[Operation], fastmath: bool
) -> LeafFacts:
    """The facts about a counted loop that contains no other; none where it may raise."""
    found: list[Access] = []
    lanes = False
    if loop.condition_block is not None or loop.carried:
        return LeafFacts(sequential=True)
    for op in every_op(loop):
        if op is loop:
            continue
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            if not is_cell(op.memref):
                found += accesses(op)
        elif isinstance(op, vector.LoadOp | vector.StoreOp):
            lanes = True
        elif (
            isinstance(
                op,
                (
                    array.LoopOp
                    | array.AllocOp
                    | array.PrintOp
                    | ad.PushOp
                    | ad.PopOp
                    | foreign.CallOp
                    | activation.CallOp,
                ),
            )
            or is_whole_array(op)
            or (array.is_operation_that_may_raise(op) and op not in proved)
        ):
            return LeafFacts(sequential=True)
    of_place: dict[Place, list[Access]] = {}
    for a in found:
        of_place.setdefault(placed(a), []).append(a)
    writes = [a for a in found if a.kind == "write"]
    if not writes:
        return LeafFacts()
    if lanes:  # A place is one element: whether it is among those of a vector is not looked at.
        return LeafFacts(sequential=True)
    conflicts = Conflicts(loop, dependence, found)
    if conflicts.pairs() > PAIRS:
        return LeafFacts(chained=True)
    additions = additions_in(loop, dependence.alias.may_alias, fastmath)
    accumulators: list[Accumulator] = []
    for place in dict.fromkeys(map(placed, writes)):
        if not stands_still(place, loop):
            continue
        inside = of_place[place]
        always = [a for a in inside if a.op.parent is loop.body.block]
        if not always:
            continue  # Under a condition: the place may not exist.
        others = [a for a in conflicts.near(always[0]) if placed(a) != place]
        if others and all(a.op in additions for a in (*inside, *others)):
            accumulators.append(Accumulator(place, from_zero=True))
        elif not any(conflicts.ever(always[0], b) for b in others):
            accumulators.append(Accumulator(place, from_zero=False))
    places = {a.place for a in accumulators}
    rest = [a for a in found if placed(a) not in places]
    constants = conflicts.constants(rest)
    pairs = [
        (w, a)
        for w in rest
        if w.kind == "write"
        for a in conflicts.near(w)
        if placed(a) not in places
    ]
    parallel = not any(conflicts.across(w, a) for w, a in pairs)
    carried = any(
        a.kind == "read" and a.op not in additions for p in places for a in of_place[p]
    )  # what is only stored no iteration takes from the one before
    reads = ((w, a) for w, a in pairs if a.kind == "read")
    chained = not parallel and any(conflicts.flows(w, r) for w, r in reads)
    return LeafFacts(tuple(accumulators), constants, parallel, carried or not parallel, chained)


def are_side_by_side(loop: array.LoopOp, facts: LeafFacts) -> bool:
    """Whether LLVM may compute functions of several iterations at once: none needs a float of another one."""
    if facts.sequential or not any(map(is_transcendental, every_op(loop))):
        return False
    return not any(
        (role.name == "carried" or role.ordered) and isinstance(element_of(cell), AnyFloat)
        for cell, role in roles(loop).items()
    )


def is_recurrence(loop: array.LoopOp) -> bool:
    """Whether a cell carries more than a sum from one iteration to the next."""
    return any(role.name == "carried" for role in roles(loop).values())


def may_be_narrow(loop: array.LoopOp, facts: LeafFacts, fastmath: bool) -> bool:
    """Whether LLVM may be told how wide the loop's vectors are.

    Then it adds up terms in any order, and prints of loops that it cannot make vectors of: so no iteration
    computes with what the one before left, or adds to it in order.
    """
    assert loop.count is not None
    return (
        not facts.sequential
        and may_be_long(loop.count, loop)
        and not any(
            role.name == "carried" or (role.ordered and not fastmath)
            for role in roles(loop).values()
        )
    )


def only_adds_in_order(loop: array.LoopOp) -> bool:
    """Whether an innermost loop only adds to cells, in order, what a few ops compute.

    Such sums wait for the one before, and meanwhile what is added next is there. Vectors would be computed to
    be taken apart, by the units that add.
    """
    cells: set[SSAValue] = set()
    quick = 0
    for op in loop.body.block.ops:
        if isinstance(op, memref.StoreOp):
            if not is_cell(op.memref) or not adds_to(op.memref, op.value):
                return False
            cells.add(op.memref)
        elif isinstance(op, QUICK):
            if "ad.adjoint" in op.attributes:
                return False
            quick += 1
        elif not isinstance(op, (memref.LoadOp, array.YieldOp, *MOVES)):
            return False
    few = quick <= FEW * len(cells)
    return few and bool(cells) and all(isinstance(element_of(c), AnyFloat) for c in cells)


def adds_to(cell: SSAValue, value: SSAValue) -> bool:
    """Whether a value is what the cell held, with something added."""

    def sources(v: SSAValue) -> Sequence[SSAValue] | None:
        if isinstance(v.owner, memref.LoadOp) and v.owner.memref is cell:
            return None
        return v.owner.operands if isinstance(v.owner, arith.AddfOp) else ()

    return isinstance(value.owner, arith.AddfOp) and not all_made_of([value], sources)


QUICK = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp)
FEW = 5
"""So many take no longer than a sum waits for the one before: two units of two to four cycles."""


def is_bounded_by_memory(loop: array.LoopOp) -> bool:
    """Whether each iteration touches an element of its own: then the loop ends where the array does."""
    moving: set[SSAValue] = {loop.induction}
    for op in every_op(loop):
        if isinstance(op, TOUCHES) and not moving.isdisjoint(op.indices):
            return True
        of_either = isinstance(op, arith.SelectOp) and moving.issuperset(op.operands[1:])
        if of_either or (isinstance(op, MOVES) and not moving.isdisjoint(op.operands)):
            moving.update(op.results)
    return False


TOUCHES = (memref.LoadOp, memref.StoreOp, vector.LoadOp, vector.StoreOp)

MOVES = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.IndexCastOp, array.IndexOp)
"""The ops of which other operands give other results, but for products with 0."""


class Conflicts:
    """Which accesses of a loop, near each other, may touch one element."""

    def __init__(self, loop: array.LoopOp, dependence: Dependence, found: list[Access]) -> None:
        self._loop = loop
        self._dependence = dependence
        self._near = NearAccesses(dependence.alias, found)

    def near(self, access: Access) -> list[Access]:
        """Those that touch the same arrays, as far as is known."""
        return self._near.to(access.memref)

    def pairs(self) -> int:
        """How many pairs have to be compared."""
        return self._near.pairs()

    def constants(self, found: list[Access]) -> tuple[Place, ...]:
        """The places that stand still and are only read, though writes are near."""
        body = self._loop.body.block
        read = {
            placed(a): a
            for a in found
            if a.op.parent is body and stands_still(placed(a), self._loop)
        }
        near = {p: [w for w in self.near(a) if w.kind == "write"] for p, a in read.items()}
        return tuple(
            place
            for place, access in read.items()
            if near[place] and not any(self.ever(w, access) for w in near[place])
        )

    def across(self, a: Access, b: Access) -> bool:
        """In different iterations."""
        meet = self._dependence.may_meet
        return meet(a, b, self._loop) or meet(b, a, self._loop)

    def flows(self, write: Access, read: Access) -> bool:
        """Into a later iteration."""
        return self._dependence.may_meet(write, read, self._loop)

    def ever(self, a: Access, b: Access) -> bool:
        """In any iterations; in one of them it is the same question in both orders."""
        return self._dependence.may_meet(a, b, None) or self.across(a, b)


def placed(access: Access) -> Place:
    """Where a load or store is."""
    assert isinstance(access.op, memref.LoadOp | memref.StoreOp)
    return place_of(access.op)


def stands_still(place: Place, loop: array.LoopOp) -> bool:
    """The place is named by values from outside the loop."""
    return all(is_outside(v, loop) for v in (place[0], *place[1]))


def is_outside(value: SSAValue, loop: array.LoopOp) -> bool:
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        parent = block.parent_op()
        if parent is loop:
            return False
        block = parent.parent if parent is not None else None
    return True

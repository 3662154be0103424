"""What dependence analysis knows about innermost scalar loops, for LLVM to use.

LLVM sees addresses; we see subscripts, loop ranges and which roots are disjoint. Two facts matter:

- An element that the loop loads and stores at the same place in every iteration, and touches in no
  other way, lives in a register: loaded before the loop, stored after it (an *accumulator*).
- Where no iteration writes what another one touches, the loop is *parallel*: LLVM vectorizes it
  without run-time checks, also where its own analysis would give up.

::

    array.loop %j to %n do {
      a[i, j] -= a[i, k] * a[k, j]          // i > k and j > k: parallel
      s[i, k] += a[i, j] * t[j]             // an accumulator
    }
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref, scf
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import ad, array
from ..analysis.dependence import Dependence
from ..analysis.footprint import Access, accesses

PAIRS = 120
"""Loops in which more pairs of accesses would have to be compared are left to LLVM."""

Place = tuple[SSAValue, tuple[SSAValue, ...]]
"""A memref and the subscripts of one of its elements."""


@dataclass(frozen=True)
class LeafFacts:
    """What is known about an innermost loop."""

    accumulators: tuple[Place, ...] = ()
    parallel: bool = False


def place_of(op: memref.LoadOp | memref.StoreOp) -> Place:
    return op.memref, tuple(op.indices)


def leaf_facts(loop: array.LoopOp, dependence: Dependence, proved: set[Operation]) -> LeafFacts:
    """The facts about a counted loop that contains no other; none where it may raise."""
    found: list[tuple[Access, Place]] = []
    if loop.condition_block is not None or loop.carried:
        return LeafFacts()
    for op in loop.walk():
        if op is loop:
            continue
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            if not is_cell(op.memref):
                found += [(a, place_of(op)) for a in accesses(op)]
        elif isinstance(
            op,
            (
                array.LoopOp | array.MapOp | array.MatmulOp | array.AllocOp,
                array.PrintOp | ad.PushOp | ad.PopOp,
            ),
        ) or (array.is_operation_that_may_raise(op) and op not in proved):
            return LeafFacts()
    if not any(a.kind == "write" for a, _ in found):
        return LeafFacts()
    conflicts = Conflicts(loop, dependence, [a for a, _ in found])
    if conflicts.pairs() > PAIRS:
        return LeafFacts()
    candidates = {p for a, p in found if a.kind == "write" and stands_still(p, loop)}
    accumulators: list[Place] = []
    for place in candidates:
        inside = [a for a, p in found if p == place]
        others = [a for a, p in found if p != place]
        unconditional = any(a.op.parent is loop.body.block for a in inside)
        if unconditional and not any(conflicts.ever(a, b) for a in inside[:1] for b in others):
            accumulators.append(place)
    rest = [a for a, p in found if p not in accumulators]
    writes = [a for a in rest if a.kind == "write"]
    parallel = not any(conflicts.across(w, a) for w in writes for a in rest)
    return LeafFacts(tuple(accumulators), parallel)


class Conflicts:
    """Which accesses of a loop may touch one element."""

    def __init__(self, loop: array.LoopOp, dependence: Dependence, found: list[Access]) -> None:
        self._loop = loop
        self._dependence = dependence
        self._found = found

    def near(self, a: Access, b: Access) -> bool:
        return self._dependence.alias.may_alias(a.memref, b.memref)

    def pairs(self) -> int:
        """How many pairs have to be compared."""
        writes = [a for a in self._found if a.kind == "write"]
        return sum(self.near(w, a) for w in writes for a in self._found)

    def across(self, a: Access, b: Access) -> bool:
        """In different iterations."""
        if not self.near(a, b):
            return False
        meet = self._dependence.may_meet
        return meet(a, b, self._loop) or meet(b, a, self._loop)

    def ever(self, a: Access, b: Access) -> bool:
        if not self.near(a, b):
            return False
        meet = self._dependence.may_meet
        return meet(a, b, None) or meet(b, a, None) or self.across(a, b)


def is_cell(value: SSAValue) -> bool:
    """A scalar variable: LLVM keeps it in a register."""
    return isinstance(value.owner, memref.AllocaOp)


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


def raises_always(op: scf.IfOp) -> bool:
    """An `scf.if` whose first branch ends with an exception: cold code."""
    return array.RAISES in op.attributes

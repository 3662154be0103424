"""May the iterations of a loop, or of two nested ones, run in another order?

An order is legal where every two accesses that may touch one element, one of them a write, come in the
order in which they came. So each element sees the same stores in the same order, and each load reads what
it read: values do not change in a single bit. Exempt are additions of the adjoint to one element
(`additions`), which may come in any order.

Whether two instances of accesses meet is a system of inequalities (`dependence`); the order of their
iterations is stated with it. In ::

    for j in range(n):
        for k in range(j):
            a[i, j] -= a[i, k] * a[k, j]

the load of `a[i, k]` in the iteration (j', k') reads what (j, k) stored where `k' = j`. With k outside,
it would come before that store if `k' < k`. But `k < j`, so it never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..rules import Access
from .affine import Affine, Term
from .dependence import Dependence, Problem


@dataclass(frozen=True)
class AtLeast:
    """`high >= low + gap`, each number in the iteration of the earlier access (0) or of the later one (1)."""

    high: Affine
    high_side: int
    low: Affine
    low_side: int
    gap: int = 0

    def state(self, problem: Problem) -> None:
        terms = dict(problem.row(self.high, self.high_side))
        for variable, factor in problem.row(self.low, self.low_side).items():
            terms[variable] = terms.get(variable, 0) - factor
        constant = self.high.constant - self.low.constant - self.gap
        problem.system.at_least_zero(terms, constant)


class LoopOrder:
    """Answers for the accesses of one nest; `additions` are those that may come in any order."""

    def __init__(self, dependence: Dependence, additions: set[Operation]) -> None:
        self._dependence = dependence
        self._additions = additions

    def meet(self, a: Access, b: Access, level: array.LoopOp | None, *known: AtLeast) -> bool:
        """True when `a`, then `b`, may touch one element, and their order matters.

        `level` as in `Dependence.may_meet`; `known` is what else holds of the two iterations.
        """
        if a.kind == b.kind == "read" or {a.op, b.op} <= self._additions:
            return False
        if not self._dependence.alias.may_alias(a.memref, b.memref):
            return False
        problem = self._dependence.problem(a, b, level)
        if isinstance(problem, bool):
            return problem
        for fact in known:
            fact.state(problem)
        return problem.may_hold()

    def is_free(self, access: Access) -> bool:
        """True for half of an addition that may come in any order."""
        return access.op in self._additions

    def any_meet(
        self,
        earlier: Sequence[Access],
        later: Sequence[Access],
        level: array.LoopOp | None,
        *known: AtLeast,
    ) -> bool:
        """True when some of the earlier accesses may meet some of the later ones."""
        return any(self.meet(a, b, level, *known) for a in earlier for b in later)

    def any_changed(self, reads: Sequence[Access], others: Sequence[Access]) -> bool:
        """True when one of the others may write, in the same iteration, what is read: additions, too."""
        return any(
            self._dependence.may_meet(read, other, None)
            for read in reads
            for other in others
            if other.kind != "read" and self._dependence.alias.may_alias(read.memref, other.memref)
        )

    def independent(self, accesses: Sequence[Access], loop: array.LoopOp) -> bool:
        """True when the iterations of `loop` may run in any order, at once even."""
        return not self.any_meet(accesses, accesses, loop)


@dataclass(frozen=True)
class Trips:
    """The count of an inner loop: `slope * j + rest`, j the counter of the loop around it."""

    count: Affine
    slope: int
    rest: Affine

    def resolved(self, form: Affine, counter: SSAValue) -> Affine:
        """A number of the inner loop, where the count is `slope * j + rest`, if not 0."""
        symbols = list(self.count.terms)
        if len(symbols) != 1 or not isinstance(symbols[0], Term) or self.count.constant:
            return form
        known = self.rest + Affine({counter: self.slope})
        return form + (known - self.count) * form.terms.get(symbols[0], 0)


@dataclass(frozen=True)
class Interchange:
    """How a nest `for j: before; for k: inside; after` may run with k outside.

    `down`: k runs from its last value to its first one. What stands before, or after, the inner loop runs
    for all j first, or last, unless it is `aligned`: then that of j runs in the step k = count(j), which is
    the first that j has no part in. It stands before the step's loop (`after`, k runs upwards) or behind
    it (`before`, k runs downwards).
    """

    down: bool
    aligned: bool


@dataclass(frozen=True)
class Parts:
    """The accesses of a nest of two loops: before the inner loop, in it, and after it."""

    outer: array.LoopOp
    inner: array.LoopOp
    trips: Trips
    before: Sequence[Access]
    inside: Sequence[Access]
    after: Sequence[Access]

    def ways(self, *, exact: bool) -> Iterable[Interchange]:
        """What may be tried; `exact`: each step k = count(j) is there for one j, and no other is."""
        yield Interchange(down=False, aligned=False)
        if self.after and exact:
            yield Interchange(down=False, aligned=True)
        yield Interchange(down=True, aligned=False)
        if self.before and exact:
            yield Interchange(down=True, aligned=True)


def legal(way: Interchange, nest: Parts, order: LoopOrder, *, turned: bool = False) -> bool:
    """True when the interchange keeps the order of all that meets.

    `turned`: k counts up, but the program's order is that in which it counts down (all of it is inside).
    """
    return (
        inside_keeps(way, nest, order, turned=turned)
        and before_keeps(way, nest, order)
        and after_keeps(way, nest, order)
        and not order.any_meet(nest.after, nest.before, nest.outer)
    )


def inside_keeps(way: Interchange, nest: Parts, order: LoopOrder, *, turned: bool = False) -> bool:
    """(j, k) and (j', k') with j < j' change places where k' is run before k."""
    k, inside = Affine.of(nest.inner.induction), nest.inside
    sooner = AtLeast(k, 1, k, 0, 1) if way.down else AtLeast(k, 0, k, 1, 1)
    if order.any_meet(inside, inside, nest.outer, sooner):
        return False
    return way.down == turned or order.independent(inside, nest.inner)


def before_keeps(way: Interchange, nest: Parts, order: LoopOrder) -> bool:
    """What stands before the inner loop."""
    before, inside, outer = nest.before, nest.inside, nest.outer
    if not before:
        return True
    if not (way.down and way.aligned):
        return not order.any_meet(inside, before, outer)
    k, count = Affine.of(nest.inner.induction), nest.trips.count
    return not (
        order.any_meet(before, inside, outer, AtLeast(k, 1, count, 0))
        or order.any_meet(inside, before, outer, AtLeast(count, 1, k, 0, 1))
        or (nest.trips.slope > 0 and order.any_meet(before, before, outer))
    )


def after_keeps(way: Interchange, nest: Parts, order: LoopOrder) -> bool:
    """What stands after it."""
    after, inside, outer = nest.after, nest.inside, nest.outer
    if not after:
        return True
    if way.down or not way.aligned:
        return not order.any_meet(after, inside, outer)
    k, count = Affine.of(nest.inner.induction), nest.trips.count
    return not (
        order.any_meet(after, inside, outer, AtLeast(count, 0, k, 1, 1))
        or order.any_meet(inside, after, outer, AtLeast(k, 0, count, 1))
        or (nest.trips.slope < 0 and order.any_meet(after, after, outer))
    )


# Several iterations at once.


@dataclass(frozen=True)
class Jam:
    """How some iterations of `for j: before; for k: inside; after` may share one loop over k.

    Their inner loops have the first iterations in common, or, `from_end`, the last ones. The other ones, the
    ragged end, run for one j after the other; `ragged_first`: before the common loop, else after it.
    What stands before the inner loop, or after it, goes with the ragged ends, or runs for all j ahead of the
    common loop, or after it. A loop whose last iterations are common and run first does not keep its own
    order: that takes iterations that are independent (an adjoint, which comes to the diagonal last).
    """

    from_end: bool
    ragged_first: bool

    def place(self, nest: Parts) -> tuple[Affine, Affine]:
        """Where k stands in the common loop, and how many k there are: the same of all j at one time."""
        k, count = Affine.of(nest.inner.induction), nest.trips.rest
        count = count + Affine({nest.outer.induction: nest.trips.slope})
        return (count - k - 1 if self.from_end else k), count


def jams(trips: Trips) -> Iterable[Jam]:
    """What may be tried."""
    yield Jam(from_end=False, ragged_first=False)
    if trips.slope:
        yield Jam(from_end=True, ragged_first=False)
        yield Jam(from_end=True, ragged_first=True)
        yield Jam(from_end=False, ragged_first=True)


def may_jam(way: Jam, times: int, nest: Parts, order: LoopOrder) -> bool:
    """True when so many iterations of the outer loop may share the inner one."""
    j = Affine.of(nest.outer.induction)
    near = AtLeast(j, 0, j, 1, 1 - times)
    at, count = way.place(nest)
    before, inside, after, outer = nest.before, nest.inside, nest.after, nest.outer
    sooner, later = AtLeast(at, 1, at, 0, 1), AtLeast(at, 0, at, 1, 1)
    if not way.ragged_first:
        common = AtLeast(count, 0, at, 1, 1)
        return not (
            order.any_meet([*inside, *after], before, outer, near)
            or order.any_meet(inside, inside, outer, near, common, later)
            or order.any_meet(after, inside, outer, near, common)
            or (
                way.from_end
                and (
                    order.any_meet(inside, inside, outer, near, common, sooner)
                    or not order.independent(inside, nest.inner)
                )
            )
        )
    common = AtLeast(count, 1, at, 0, 1)
    return not (
        order.any_meet(inside, before, outer, near, common)
        or order.any_meet(inside, inside, outer, near, common, sooner)
        or order.any_meet(after, [*before, *inside], outer, near)
        or (
            not way.from_end
            and (
                order.any_meet(inside, inside, outer, near, common, later)
                or not order.independent(inside, nest.inner)
            )
        )
    )

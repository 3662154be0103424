"""Arrays in numbers: which of some arrays one is, and what view of it.

A loop that rebinds an array in a way that is known only at run time keeps these numbers in cells, as it
keeps any scalar, and makes the array from them where an iteration starts::

    for i in range(n):          %which = memref.load %u_which[]
        if i % 2:               %first = arith.cmpi eq, %which, %c0
            u, v = v, u         %u, %v = scf.if %first { yield %a, %b } else { yield %b, %a }
        u[1:] += v[:-1]         ...
                                memref.store %which_1, %u_which[]

So the analyses, the plan and the reverse sweep meet scalars in cells and choices by `scf.if`, which
they know. Which axes of a base a view walks (a row, a column, a transpose) is a number, too: one of the
orders of axes that the builds before this one have met. Where bases differ in rank (`row = x`, then
`row = a[i]`), those of lower rank are seen with new axes in front. Arrays that are at any time a
permutation of the bases are chosen by one `scf.if` together: that two of them never are the same memory
is then plain to see.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from ....dialects import array
from ...analysis.views import strip_casts
from ...rules.rule import rank_of
from ..emitter import Emitter
from ..joins import cast, common_type
from ..library import shapes
from .roots import is_made_in, is_placeholder


class Undescribed(Exception):
    """An array that is no view of one of the bases."""


Axes = tuple[int, ...]
"""Of a view: for each dimension the axis of the base. The last is 1, the one before it 2; 0 is a new axis.
(So an order of axes stays what it is where a base of higher rank joins the others.)"""


@dataclass(frozen=True)
class View:
    """What `array.view` takes of a base: one of some orders of axes, and the numbers."""

    orders: tuple[Axes, ...]
    order: SSAValue
    extents: tuple[SSAValue, ...]
    steps: tuple[SSAValue, ...]
    offsets: tuple[SSAValue, ...]
    """From the last axis of the base to the first of the base with most axes."""

    def reordered(self, e: Emitter, orders: Sequence[Axes], found: Iterable[Axes] = ()) -> View:
        """The view, its orders of axes (now `found`) being numbered as in `orders`."""
        places = [orders.index(axes) for axes in (tuple(found) or self.orders)]
        known = array.constant_value(self.order)
        order = e.index(places[known or 0])
        if known is None and len(set(places)) > 1:
            for k, place in enumerate(places[1:], 1):
                here = e.emit(arith.CmpiOp(self.order, e.index(k), "eq"))
                order = e.emit(arith.SelectOp(here, e.index(place), order))
        return replace(self, orders=tuple(orders), order=order)


@dataclass(frozen=True)
class Descriptor:
    """The base `which`, entire or a view of it."""

    which: SSAValue
    view: View | None = None

    @property
    def numbers(self) -> tuple[SSAValue, ...]:
        v = self.view
        return (
            (self.which,) if v is None else (self.which, v.order, *v.extents, *v.steps, *v.offsets)
        )

    def with_numbers(self, numbers: Sequence[SSAValue]) -> Descriptor:
        v = self.view
        if v is None:
            return Descriptor(numbers[0])
        which, order, *rest = numbers
        rank = len(v.extents)
        parts = rest[:rank], rest[rank : 2 * rank], rest[2 * rank :]
        return Descriptor(which, View(v.orders, order, *map(tuple, parts)))

    def in_orders(self, e: Emitter, orders: Sequence[Axes]) -> Descriptor:
        """With the orders of axes numbered like this; without any where none is known."""
        view = self.view.reordered(e, orders) if self.view and orders else self.view
        return Descriptor(self.which, view)


BaseName = tuple[str, int]
"""Which base: the n-th array of a name bound before the loop; of "" the n-th argument."""


Leaf = tuple[tuple[tuple[int, ...], int, str], int]
"""An array of a loop's variable: the variable's key, and which of its arrays."""


@dataclass(frozen=True)
class Form:
    """What one build teaches the next of an array kept in numbers.

    `moving`: the positions of the numbers that change. `group`: the variables' leaves that are a
    permutation of the bases together with this one; empty where it is on its own. `orders`: of a view,
    those of the base's axes that it may have.
    """

    bases: tuple[BaseName, ...]
    entire: bool
    moving: frozenset[int] = frozenset()
    group: tuple[Leaf, ...] = ()
    orders: tuple[Axes, ...] = ()


@dataclass
class Described:
    """An array variable's leaf in numbers: those that change are in cells."""

    form: Form
    bases: tuple[SSAValue, ...]
    like: Descriptor
    """What does not change, and the form of it all."""
    raised: tuple[SSAValue, ...]
    """The bases, all of one rank."""
    cells: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """The cells of the numbers that change."""
    now: SSAValue | None = None
    """The array as the current iteration finds it."""


# --- From an array to its numbers ---------------------------------------------------------------


class Describer:
    """Emits the numbers of arrays, at the end of the current block."""

    def __init__(
        self,
        e: Emitter,
        bases: Sequence[SSAValue],
        *,
        entire: bool,
    ) -> None:
        self.e = e
        self.bases = list(bases)
        self.entire = entire

    def describe(self, value: SSAValue) -> Descriptor:
        """The numbers of `value`; Undescribed where it is not one of the bases, or a view of one."""
        found = self._describe(value)
        return found if self.entire else self._explicit(found, value)

    def _describe(self, value: SSAValue) -> Descriptor:
        value = strip_casts(value)
        if value in self.bases:
            return Descriptor(self.e.index(self.bases.index(value)))
        owner = value.owner
        match owner:
            case array.ViewOp() if not self.entire:
                return self._through(self.describe(owner.source), owner)
            case scf.IfOp():
                return self._branch(owner, result_index(value))
            case array.LoopOp():
                return self._after_loop(owner, result_index(value) - 1)
            case _ if is_placeholder(value):
                return Descriptor(self.e.index(0))
            case _:
                raise Undescribed

    def _explicit(self, found: Descriptor, value: SSAValue) -> Descriptor:
        """With the numbers of a view that is all of the base."""
        if found.view is not None:
            return found
        zero, extents = self.e.index(0), self.e.extents(value)
        axes = tuple(range(len(extents), 0, -1))
        steps = (self.e.index(1),) * len(axes)
        offsets = (zero,) * max(map(rank_of, self.bases), default=0)
        return Descriptor(found.which, View((axes,), zero, tuple(extents), steps, offsets))

    def _through(self, source: Descriptor, op: array.ViewOp) -> Descriptor:
        """The view `op` of an array of which the numbers are known."""
        e, v = self.e, source.view
        assert v is not None
        offsets = list(v.offsets)
        for d, (start, step) in enumerate(zip(op.offsets, v.steps, strict=True)):
            for axis in range(1, len(offsets) + 1):
                share = self._share(v, [axes[d] == axis for axes in v.orders], start, step)
                offsets[axis - 1] = shapes.sum_of(e, offsets[axis - 1], share)
        steps = [
            e.index(1) if d < 0 else shapes.times(e, v.steps[d], step)
            for d, step in zip(op.source_dims, op.steps, strict=True)
        ]
        found = [tuple(axes[d] if d >= 0 else 0 for d in op.source_dims) for axes in v.orders]
        orders = list(dict.fromkeys(found))
        view = replace(v.reordered(e, orders, found), extents=tuple(op.extents), steps=tuple(steps))
        return Descriptor(source.which, replace(view, offsets=tuple(offsets)))

    def _share(self, v: View, here: list[bool], start: SSAValue, step: SSAValue) -> SSAValue:
        """What a start adds to the offset of an axis: nothing in the orders where another axis is meant."""
        e, nothing, known = self.e, self.e.index(0), array.constant_value(v.order)
        if array.constant_value(start) == 0 or not any(here):
            return nothing
        if known is not None and not here[known]:
            return nothing
        share = shapes.times(e, start, step)
        for k, is_meant in enumerate(here if known is None else ()):
            if not is_meant:
                other = e.emit(arith.CmpiOp(v.order, e.index(k), "eq"))
                share = e.emit(arith.SelectOp(other, nothing, share))
        return share

    def _branch(self, op: scf.IfOp, number: int) -> Descriptor:
        ends = [last_of(region.block) for region in op.regions]
        values = [end.operands[number] for end in ends]
        if not any(is_made_in(v, r.block) for v, r in zip(values, op.regions, strict=True)):
            then, otherwise = map(self.describe, values)
            return self._joined(op.cond, then, otherwise)
        found = list[Descriptor]()
        for end, value in zip(ends, values, strict=True):
            with before_end(self.e, end):
                found.append(self.describe(value))
        orders = orders_of(found)
        like = found[0].in_orders(self.e, orders)
        cells = [self.e.cell(n.type, "number") for n in like.numbers]
        for end, one in zip(ends, found, strict=True):
            with before_end(self.e, end):
                numbers = one.in_orders(self.e, orders).numbers
                for cell, n in zip(cells, numbers, strict=True):
                    self.e.store(n, cell)
        return like.with_numbers([self.e.load(cell) for cell in cells])

    def _after_loop(self, op: array.LoopOp, slot: int) -> Descriptor:
        """What an array of a loop that permutes is after it: the trip count tells."""
        orbit = [slot]
        slots = {a: k for k, a in enumerate(op.body_carried)}
        while True:
            following = slots.get(strip_casts(op.yielded[orbit[-1]]))
            if following is None:
                raise Undescribed
            if following == slot:
                break
            orbit.append(following)
        found = self.describe(op.carried[slot])
        if len(orbit) > 1:
            turns = self.e.emit(arith.RemSIOp(op.trips, self.e.index(len(orbit))))
            for k, at in enumerate(orbit[1:], 1):
                here = self.e.emit(arith.CmpiOp(turns, self.e.index(k), "eq"))
                found = self._joined(here, self.describe(op.carried[at]), found)
        return found

    def _joined(self, condition: SSAValue, a: Descriptor, b: Descriptor) -> Descriptor:
        orders = orders_of((a, b))
        a, b = (one.in_orders(self.e, orders) for one in (a, b))
        pairs = zip(a.numbers, b.numbers, strict=True)
        return a.with_numbers(
            [m if m is n else self.e.emit(arith.SelectOp(condition, m, n)) for m, n in pairs]
        )


def orders_of(found: Iterable[Descriptor]) -> list[Axes]:
    """The orders of axes of all of them."""
    return list(dict.fromkeys(axes for d in found if d.view for axes in d.view.orders))


def nothing_of(e: Emitter, bases: Sequence[SSAValue], form: Form, rank: int) -> Descriptor:
    """The numbers of an array that is not bound yet: an empty view."""
    zero, one = e.index(0), e.index(1)
    if form.entire:
        return Descriptor(zero)
    orders = form.orders or ((0,) * rank,)
    offsets = (zero,) * max(map(rank_of, bases))
    return Descriptor(zero, View(orders, zero, (zero,) * rank, (one,) * rank, offsets))


def result_index(value: SSAValue) -> int:
    assert isinstance(value, OpResult)
    return value.index


def last_of(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op


@contextmanager
def before_end(e: Emitter, end: Operation) -> Generator[None]:
    """Emit before the terminator of a finished block."""
    block = end.parent
    assert block is not None
    end.detach()
    try:
        with e.at(block):
            yield
    finally:
        block.add_op(end)


# --- From numbers to arrays ---------------------------------------------------------------------


def chosen(e: Emitter, which: SSAValue, bases: Sequence[SSAValue]) -> SSAValue:
    """The base that `which` names."""
    conditions = compared(e, which, len(bases))

    def among(first: int) -> list[SSAValue]:
        if first == len(bases) - 1:
            return [bases[first]]
        return either(e, conditions[first], lambda: [bases[first]], lambda: among(first + 1))

    return among(0)[0]


def permuted(e: Emitter, whiches: Sequence[SSAValue], bases: Sequence[SSAValue]) -> list[SSAValue]:
    """The bases in the order that `whiches` say, no two of which are the same."""
    conditions = [compared(e, which, len(bases)) for which in whiches[:-1]]

    def order(level: int, left: tuple[int, ...]) -> list[SSAValue]:
        def among(n: int) -> list[SSAValue]:
            def here() -> list[SSAValue]:
                rest = (*left[:n], *left[n + 1 :])
                return [bases[left[n]], *(order(level + 1, rest) if rest else [])]

            if n == len(left) - 1:
                return here()
            return either(e, conditions[level][left[n]], here, lambda: among(n + 1))

        return among(0)

    return order(0, tuple(range(len(bases))))


def compared(e: Emitter, which: SSAValue, count: int) -> list[SSAValue]:
    """Whether it is the first base, the second, ... (Made before the choice, not in its branches:
    the reverse sweep makes the choice again, and must find them.)"""
    numbers = range(count - (count == 2))
    return [e.emit(arith.CmpiOp(which, e.index(k), "eq"), which.name_hint) for k in numbers]


def either(
    e: Emitter,
    condition: SSAValue,
    here: Callable[[], list[SSAValue]],
    otherwise: Callable[[], list[SSAValue]],
) -> list[SSAValue]:
    regions, types = list[Region](), list[Attribute]()
    for arm in (here, otherwise):
        block = Block()
        with e.at(block):
            values = arm()
            e.insert(scf.YieldOp(*values))
        types = [v.type for v in values]
        regions.append(Region(block))
    return list(e.insert(scf.IfOp(condition, types, regions[0], regions[1])).results)


def of_one_type(e: Emitter, arrays: Sequence[SSAValue]) -> list[SSAValue]:
    """The arrays under the type that keeps what all of their types know."""
    found = arrays[0].type
    for one in arrays[1:]:
        assert isinstance(found, MemRefType)
        assert isinstance(one.type, MemRefType)
        found = common_type(found, one.type)
    assert isinstance(found, MemRefType)
    return [cast(e, one, found) for one in arrays]


def of_one_rank(e: Emitter, bases: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
    """The arrays, those of lower rank than others with new axes in front."""
    most, zero, one = max(map(rank_of, bases), default=0), e.index(0), e.index(1)

    def raised(base: SSAValue) -> SSAValue:
        own = e.extents(base)
        added = most - len(own)
        if not added:
            return base
        dims, extents = [-1] * added + [*range(len(own))], [one] * added + [*own]
        view = array.ViewOp(base, [zero] * len(own), dims, extents, [one] * most)
        return e.emit(view, base.name_hint)

    return tuple(map(raised, bases))


def viewed(e: Emitter, base: SSAValue, view: View, *, moves: bool) -> SSAValue:
    """The view of a base, its axes in one of the orders, which `moves` or stays the same."""
    rank = rank_of(base)

    def ordered(axes: Axes) -> SSAValue:
        dims = [rank - axis if axis else -1 for axis in axes]
        return e.emit(array.ViewOp(base, view.offsets[::-1], dims, view.extents, view.steps))

    if not moves:
        return ordered(view.orders[array.constant_value(view.order) or 0])
    return chosen(e, view.order, of_one_type(e, [ordered(axes) for axes in view.orders]))


# --- What is a permutation of what ---------------------------------------------------------------


def unwound(values: Sequence[SSAValue], known: Set[SSAValue]) -> frozenset[SSAValue] | None:
    """The arrays of which `values` are, whatever happens, a permutation; None where two are one.

    Branches that yield, and loops that permute, the same arrays in any order are seen through,
    but not the arrays that are `known`.
    """
    left = {strip_casts(v) for v in values}
    if len(left) < len(values):
        return None
    progress = True
    while progress:
        progress = False
        for owner in dict.fromkeys(v.owner for v in left):
            if not isinstance(owner, scf.IfOp | array.LoopOp) or known & set(owner.results):
                continue
            outcome = [k for k, r in enumerate(owner.results) if r in left]
            if isinstance(owner, scf.IfOp):
                before = before_branch(owner, outcome, known)
            else:
                before = before_loop(owner, [k - 1 for k in outcome])
            if before is None:
                continue
            left -= set(owner.results)
            if left & before:
                return None
            left |= before
            progress = True
            break
    return frozenset(left)


def before_branch(
    op: scf.IfOp, results: list[int], known: Set[SSAValue]
) -> frozenset[SSAValue] | None:
    ends = [last_of(region.block).operands for region in op.regions]
    then, otherwise = (unwound([end[k] for k in results], known) for end in ends)
    return then if then == otherwise else None


def before_loop(op: array.LoopOp, slots: list[int]) -> frozenset[SSAValue] | None:
    own = {a: k for k, a in enumerate(op.body_carried)}
    if {own.get(strip_casts(op.yielded[s])) for s in slots} != set(slots):
        return None
    found = frozenset(strip_casts(op.carried[s]) for s in slots)
    return found if len(found) == len(slots) else None


def arrays_now(e: Emitter, group: Sequence[tuple[Described, Sequence[SSAValue]]]) -> list[SSAValue]:
    """The arrays of one group, made from their numbers; a group of several is a permutation."""
    first = group[0][0]
    bases = of_one_type(e, first.raised)
    descriptors = [d.like.with_numbers(numbers) for d, numbers in group]
    if len(group) > 1:
        return permuted(e, [d.which for d in descriptors], bases)
    (descriptor,) = descriptors
    base = (
        chosen(e, descriptor.which, bases) if 0 in first.cells else constant_base(descriptor, bases)
    )
    view, moves = descriptor.view, 1 in first.cells
    return [base if view is None else viewed(e, base, view, moves=moves)]


def constant_base(descriptor: Descriptor, bases: Sequence[SSAValue]) -> SSAValue:
    which = array.constant_value(descriptor.which)
    assert which is not None
    return bases[which]

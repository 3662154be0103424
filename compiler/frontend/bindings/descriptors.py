"""Arrays in numbers: which of some arrays one is, and what view of it.

A loop that rebinds an array in a way that only the run can tell keeps these numbers in cells, as it
keeps any scalar, and makes the array from them where an iteration starts::

    for i in range(n):          %which = memref.load %u_which[]
        if i % 2:               %first = arith.cmpi eq, %which, %c0
            u, v = v, u         %u, %v = scf.if %first { yield %a, %b } else { yield %b, %a }
        u[1:] += v[:-1]         ...
                                memref.store %which_1, %u_which[]

So the analyses, the plan and the reverse sweep meet scalars in cells and choices by `scf.if`, which
they know. Arrays that are at any time a permutation of the bases are chosen by one `scf.if` together:
that two of them never are the same memory is then plain to see.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from ....dialects import array
from ...analysis.views import strip_casts
from ..emitter import Emitter
from ..joins import cast, common_type
from ..library import shapes
from .roots import is_made_in, is_placeholder


class Undescribed(Exception):
    """An array that is no view of one of the bases."""


@dataclass(frozen=True)
class View:
    """What `array.view` takes of a base: for each dimension the base's, and the numbers."""

    dims: tuple[int, ...]
    offsets: tuple[SSAValue, ...]
    extents: tuple[SSAValue, ...]
    steps: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Descriptor:
    """The base `which`, entire or a view of it."""

    which: SSAValue
    view: View | None = None

    @property
    def numbers(self) -> tuple[SSAValue, ...]:
        v = self.view
        return (self.which,) if v is None else (self.which, *v.offsets, *v.extents, *v.steps)

    def with_numbers(self, numbers: Sequence[SSAValue]) -> Descriptor:
        v = self.view
        if v is None:
            return Descriptor(numbers[0])
        parts, first = list[tuple[SSAValue, ...]](), 1
        for part in (v.offsets, v.extents, v.steps):
            parts.append(tuple(numbers[first : first + len(part)]))
            first += len(part)
        return Descriptor(numbers[0], View(v.dims, *parts))


BaseName = tuple[str, int, tuple[int, ...]]
"""Which base: the n-th array of a name bound before the loop; of "" the n-th argument. With its axes in
another order, these; of an array of lower rank there are new ones in front."""


Leaf = tuple[tuple[tuple[int, ...], int, str], int]
"""An array of a loop's variable: the variable's key, and which of its arrays."""


@dataclass(frozen=True)
class Form:
    """What one build teaches the next of an array kept in numbers.

    `moving`: the positions of the numbers that change. `group`: the variables' leaves that are a
    permutation of the bases together with this one; empty where it is on its own.
    """

    bases: tuple[BaseName, ...]
    entire: bool
    moving: frozenset[int] = frozenset()
    group: tuple[Leaf, ...] = ()
    axes: tuple[int, ...] = ()
    """Of a view: for each of its dimensions, that of the base."""


@dataclass
class Described:
    """An array variable's leaf in numbers: those that change are in cells."""

    form: Form
    bases: tuple[SSAValue, ...]
    like: Descriptor
    """What does not change, and the form of it all."""
    cells: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """The cells of the numbers that change."""
    now: SSAValue | None = None
    """The array as the current iteration finds it."""

    @property
    def base_type(self) -> MemRefType[Attribute]:
        types = [b.type for b in self.bases]
        found = types[0]
        assert isinstance(found, MemRefType)
        for type_ in types[1:]:
            assert isinstance(type_, MemRefType)
            found = common_type(found, type_)
        return found


# --- From an array to its numbers ---------------------------------------------------------------


class Describer:
    """Emits the numbers of arrays, at the end of the current block."""

    def __init__(
        self,
        e: Emitter,
        bases: Sequence[SSAValue],
        *,
        entire: bool,
        turned: Callable[[Descriptor], Descriptor] = lambda found: found,
    ) -> None:
        self.e = e
        self.bases = list(bases)
        self.entire = entire
        self.turned = turned
        """The descriptor with the axes of the base in one order, as branches must have them (`turning`)."""

    def describe(self, value: SSAValue) -> Descriptor:
        """The numbers of `value`; Undescribed where it is not one of the bases, or a view of one."""
        found = self._describe(value)
        return found if self.entire else self._explicit(found, value)

    def _describe(self, value: SSAValue) -> Descriptor:
        value = strip_casts(value)
        if value in self.bases:
            return Descriptor(self.e.index(self.bases.index(value)))
        for k, made in enumerate(base.owner for base in self.bases):
            if isinstance(made, array.ViewOp) and made.source is value and -1 in made.source_dims:
                return self._without_more_axes(Descriptor(self.e.index(k)), made)
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

    def _without_more_axes(self, base: Descriptor, made: array.ViewOp) -> Descriptor:
        """The array of which a base is made that has more axes."""
        own = [made.source_dims.index(d) for d in range(len(made.offsets))]
        v = self._explicit(base, made.result).view
        assert v is not None
        extents, steps = (tuple(part[d] for d in own) for part in (v.extents, v.steps))
        return Descriptor(base.which, View(tuple(own), v.offsets, extents, steps))

    def _explicit(self, found: Descriptor, value: SSAValue) -> Descriptor:
        """With the numbers of a view that is all of the base."""
        if found.view is not None:
            return found
        zero, one = self.e.index(0), self.e.index(1)
        extents = self.e.extents(value)
        rank = len(extents)
        view = View(tuple(range(rank)), (zero,) * rank, tuple(extents), (one,) * rank)
        return Descriptor(found.which, view)

    def _through(self, source: Descriptor, op: array.ViewOp) -> Descriptor:
        """The view `op` of an array of which the numbers are known."""
        e, v = self.e, source.view
        assert v is not None
        offsets = list(v.offsets)
        for d, start, step in zip(v.dims, op.offsets, v.steps, strict=True):
            if d >= 0:
                offsets[d] = shapes.sum_of(e, offsets[d], shapes.times(e, start, step))
        dims = tuple(-1 if d < 0 else v.dims[d] for d in op.source_dims)
        steps = [
            e.index(1) if d < 0 else shapes.times(e, v.steps[d], step)
            for d, step in zip(op.source_dims, op.steps, strict=True)
        ]
        return Descriptor(source.which, View(dims, tuple(offsets), tuple(op.extents), tuple(steps)))

    def _branch(self, op: scf.IfOp, number: int) -> Descriptor:
        ends = [last_of(region.block) for region in op.regions]
        values = [end.operands[number] for end in ends]
        if not any(is_made_in(v, r.block) for v, r in zip(values, op.regions, strict=True)):
            then, otherwise = (self.turned(self.describe(v)) for v in values)
            return self._joined(op.cond, then, otherwise)
        found = list[Descriptor]()
        cells = list[SSAValue]()
        for end, value in zip(ends, values, strict=True):
            with before_end(self.e, end):
                one = self.turned(self.describe(value))
                cells = cells or [self.e.cell(n.type, "number") for n in one.numbers]
                same_form(found[0] if found else one, one)
                for cell, n in zip(cells, one.numbers, strict=True):
                    self.e.store(n, cell)
            found.append(one)
        return found[0].with_numbers([self.e.load(cell) for cell in cells])

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
        same_form(a, b)
        pairs = zip(a.numbers, b.numbers, strict=True)
        return a.with_numbers(
            [m if m is n else self.e.emit(arith.SelectOp(condition, m, n)) for m, n in pairs]
        )


def nothing_of(e: Emitter, base: SSAValue, axes: tuple[int, ...]) -> Descriptor:
    """The numbers of an array that is not bound yet: an empty view."""
    zero = e.index(0)
    assert isinstance(base.type, MemRefType)
    zeros = (zero,) * base.type.get_num_dims()
    return Descriptor(zero, View(axes, zeros, (zero,) * len(axes), (e.index(1),) * len(axes)))


def axes_of(value: SSAValue, known: dict[SSAValue, tuple[int, ...]]) -> tuple[int, ...] | None:
    """For each dimension of an array that of its base; None of a placeholder."""
    value = strip_casts(value)
    owner = value.owner
    if value in known:
        return known[value]
    if is_placeholder(value):
        return None
    if isinstance(owner, array.ViewOp):
        source = axes_of(owner.source, known)
        return (
            None if source is None else tuple(source[d] if d >= 0 else d for d in owner.source_dims)
        )
    if isinstance(owner, scf.IfOp):
        found = (
            axes_of(last_of(r.block).operands[result_index(value)], known) for r in owner.regions
        )
        return next((axes for axes in found if axes is not None), None)
    assert isinstance(value.type, MemRefType)
    return tuple(range(value.type.get_num_dims()))


def same_form(a: Descriptor, b: Descriptor) -> None:
    alike = (a.view and a.view.dims) == (b.view and b.view.dims)
    if not alike or len(a.numbers) != len(b.numbers):
        raise Undescribed


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


def viewed(e: Emitter, base: SSAValue, view: View) -> SSAValue:
    return e.emit(array.ViewOp(base, view.offsets, view.dims, view.extents, view.steps))


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
    bases = [cast(e, b, first.base_type) for b in first.bases]
    descriptors = [d.like.with_numbers(numbers) for d, numbers in group]
    if len(group) > 1:
        return permuted(e, [d.which for d in descriptors], bases)
    (descriptor,) = descriptors
    base = (
        chosen(e, descriptor.which, bases) if 0 in first.cells else constant_base(descriptor, bases)
    )
    return [base if descriptor.view is None else viewed(e, base, descriptor.view)]


def constant_base(descriptor: Descriptor, bases: Sequence[SSAValue]) -> SSAValue:
    which = array.constant_value(descriptor.which)
    assert which is not None
    return bases[which]

"""Variables of a loop that are one array in some iterations, and are changed in place: a pool of arrays.

    for i in range(n):                     arrays 0 and 1: `cur` and `best` before the loop; 2 and 3: buffers
        cur = step(cur)                    array.loop ... {
        if cur[0] < best[0]:                 %cur = scf.if %cur_which == 0 { array 0 } else { ... }
            best = cur                       ...
        best[1] *= 0.5                       copy %new to the buffer that neither name is left with
                                             memref.store %2, %cur_which[]; memref.store %2, %best_which[] }

Each variable is one of the arrays from before the loop or of as many buffers as there are variables;
which, a number in a cell says. Arrays that an iteration makes, and leaves to some of them, are copied to
buffers that no variable has kept: there are enough. So two names are one array here if and only if they
are in Python, and what follows sees numbers in cells and choices by `scf.if`, which it knows.

Only loops that `rebinding` and `forms` would refuse become this: a buffer for each variable is faster.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import array
from ...analysis.affine import affine
from ...analysis.views import strip_casts
from ...diagnostics import CompileError, Span
from ..joins import cast, common_type
from ..scalars import logical_not
from . import resizing
from .deferred_allocs import Unshaped, refuse_other_shape
from .descriptors import (
    BaseName,
    Describer,
    Descriptor,
    Leaf,
    Undescribed,
    chosen,
    last_of,
    result_index,
)
from .roots import is_fresh_in, is_made_in, is_placeholder, roots

if TYPE_CHECKING:
    from ..context import Rebinding
    from ..emitter import Emitter
    from ..facts import Facts
    from ..joins import Binding
    from .forms import Forms
    from .rebinding import Place, Variable


@dataclass
class Pool:
    """The variables of one pool in one loop, and the arrays that they may be."""

    members: list[tuple[Variable, Place]]
    others: list[SSAValue]
    """The arrays from before the loop."""
    buffers: list[SSAValue] = field(default_factory=list[SSAValue])
    span: Span | None = None

    @property
    def arrays(self) -> list[SSAValue]:
        return [*self.others, *self.buffers]


# --- In a loop ----------------------------------------------------------------------------------


def enter(lowering: Forms, variables: Sequence[Variable], before: dict[str, Binding]) -> None:
    """Make the pools of a loop, ahead of it."""
    groups: dict[frozenset[Leaf], list[tuple[Variable, Place]]] = {}
    for variable in variables:
        for place in variable.places:
            if place.kind == "pooled":
                group = lowering.facts.pooled[variable.key, place.leaf]
                groups.setdefault(group, []).append((variable, place))
    for group, members in groups.items():
        found = named_before(before)
        wanted = {b for leaf in group for b in lowering.facts.pool_bases.get(leaf, ())}
        others = [strip_casts(p.initial) for _, p in members if p.initial is not None]
        others += [one for one, name in found.items() if name in wanted]
        pool = Pool(members, list(dict.fromkeys(a for a in others if not is_placeholder(a))))
        make_buffers(lowering, pool)
        for variable, place in members:
            assert place.initial is not None
            first = strip_casts(place.initial)
            which = pool.others.index(first) if first in pool.others else 0
            place.pool = pool
            place.ssa = lowering.e.cell(IndexType(), f"{variable.name}_which")
            lowering.e.store(lowering.e.index(which), place.ssa)


def named_before(before: dict[str, Binding]) -> dict[SSAValue, BaseName]:
    """Arrays by the names that they have before the loop."""
    from .forms import arrays_in

    found = dict[SSAValue, BaseName]()
    for name, binding in sorted(before.items()):
        for k, one in enumerate(arrays_in(binding)):
            found.setdefault(strip_casts(one.memref), (name, k))
    return found


def make_buffers(lowering: Forms, pool: Pool) -> None:
    """A buffer for each variable, shaped as an array from before the loop, or as `deferred_allocs` finds."""
    e = lowering.e
    variable, place = pool.members[0]
    assert place.initial is not None
    type_ = place.initial.type
    assert isinstance(type_, MemRefType)
    like = next((a for a in pool.others if not resizing.may_be_nothing(a)), None)
    if like is None:
        like = lowering.buffers.make(type_, variable.name)
        pool.buffers.append(like)
    while len(pool.buffers) < len(pool.members):
        made = e.emit(array.AllocOp(e.extents(like), type_.element_type), variable.name)
        pool.buffers.append(made)


def present(lowering: Forms, place: Place) -> SSAValue:
    """The array, as an iteration or what follows the loop finds it."""
    e, pool = lowering.e, place.pool
    assert pool is not None
    which = e.load(place.ssa)
    assert isinstance(which.owner, Operation)
    lowering.loads.append(which.owner)
    place.which = which
    type_ = pool.arrays[0].type
    for one in pool.arrays[1:]:
        assert isinstance(type_, MemRefType)
        assert isinstance(one.type, MemRefType)
        type_ = common_type(type_, one.type)
    assert isinstance(type_, MemRefType)
    now = chosen(e, which, [cast(e, a, type_) for a in pool.arrays])
    for axis, extents in enumerate(zip(*map(e.extents, pool.arrays), strict=True)):
        if all(affine(n) == affine(extents[-1]) for n in extents):
            e.dims[now, axis] = extents[-1]
    return now


class Numbers(Describer):
    """Which array of a pool, or of those that an iteration made, a variable is."""

    def __init__(self, lowering: Forms, pool: Pool, block: Block) -> None:
        super().__init__(lowering.e, pool.arrays, entire=True)
        self.block = block
        self.heads = {strip_casts(p.now): p.which for _, p in pool.members if p.now and p.which}
        self.made = list[SSAValue]()
        self.missing = list[SSAValue]()

    def _describe(self, value: SSAValue) -> Descriptor:
        value = strip_casts(value)
        if value in self.heads:
            return Descriptor(self.heads[value])
        if value in self.bases:
            return Descriptor(self.e.index(self.bases.index(value)))
        if is_fresh_in(value, self.block) and not is_placeholder(value):
            if value not in self.made:
                self.made.append(value)
            return Descriptor(self.e.index(len(self.bases) + self.made.index(value)))
        try:
            return super()._describe(value)
        except Undescribed:
            if is_made_in(value, self.block):
                raise
            self.missing.append(value)
            return Descriptor(self.e.index(0))


def leave(
    lowering: Forms, variables: Sequence[Variable], block: Block, before: dict[str, Binding]
) -> None:
    """Keep what an iteration leaves: the numbers, and copies of the arrays that it made."""
    pools = {id(p.pool): p.pool for v in variables for p in v.places if p.pool is not None}
    for pool in pools.values():
        numbers = Numbers(lowering, pool, block)
        found = list[SSAValue]()
        for variable, place in pool.members:
            value = place.now if place.end is None else place.end
            assert value is not None
            try:
                found.append(numbers.describe(value).which)
            except Undescribed:
                what = "a view of an array that has another name too"
                lowering.refuse_rebinding(variable.name, what)
        learn_missing(lowering, pool, numbers.missing, before)
        if not lowering.facts.changed and shaped(lowering, pool):
            keep(lowering, pool, found)


def learn_missing(
    lowering: Forms, pool: Pool, missing: Sequence[SSAValue], before: dict[str, Binding]
) -> None:
    """Let the next build know the arrays from before the loop that variables become in it."""
    names = named_before(before)
    for value in missing:
        if value not in names:
            what = "an array that was made before the loop and has no name"
            lowering.refuse_rebinding(pool.members[0][0].name, what)
        variable, place = pool.members[0]
        lowering.facts.pool_base((variable.key, place.leaf), names[value])


def shaped(lowering: Forms, pool: Pool) -> bool:
    """Give buffers that were made for the loop their shape."""
    try:
        for _, place in pool.members:
            if place.end is not None:
                lowering.buffers.shape(pool.buffers[0], place.end)
    except Unshaped:
        lowering.refuse_rebinding(
            pool.members[0][0].name,
            "an array that has another name, its length found out in the loop",
        )
    return True


def keep(lowering: Forms, pool: Pool, found: Sequence[SSAValue]) -> None:
    """Find buffers for the new arrays, copy them there, store the numbers."""
    from .rebinding import where

    e, first, count = lowering.e, len(pool.others), len(pool.arrays)
    kept = list[SSAValue]()
    copied = list[SSAValue | None]()
    for k, which in enumerate(found):
        known = array.constant_value(which)
        if known is not None and known < count:
            kept.append(which)
            copied.append(None)
            continue
        is_new = e.emit(arith.CmpiOp(which, e.index(count), "uge"))
        goes_to = free_buffer(e, [*found[:k], *found[k + 1 :], *kept], first, len(pool.buffers))
        for earlier, place in zip(found, kept, strict=False):
            same = e.emit(arith.CmpiOp(which, earlier, "eq"))
            goes_to = e.emit(arith.SelectOp(same, place, goes_to))
            is_first = logical_not(e, same)
            is_new = e.emit(arith.AndIOp(is_new, is_first))
        copied.append(is_new)
        is_kept = e.emit(arith.CmpiOp(which, e.index(count), "ult"))
        kept.append(e.emit(arith.SelectOp(is_kept, which, goes_to)))
    for (variable, place), which, is_new in zip(pool.members, kept, copied, strict=True):
        e.store(which, place.ssa)
        if is_new is not None:
            at = e.emit(arith.SubiOp(which, e.index(first)))
            buffer, name = chosen(e, at, pool.buffers), variable.name
            where(e, is_new, partial(copy_new, lowering, pool, place, buffer, name))


def copy_new(lowering: Forms, pool: Pool, place: Place, buffer: SSAValue, name: str) -> None:
    """Copy an array that an iteration made to one of the buffers."""
    e, new = lowering.e, place.end
    assert new is not None
    refuse_other_shape(e, e.extents(new), e.extents(pool.buffers[0]), name)
    lowering.pool_copies.append(lowering.copy(new, buffer))


def free_buffer(e: Emitter, taken: Sequence[SSAValue], first: int, count: int) -> SSAValue:
    """The first of `count` buffers, numbered from `first`, that is not among `taken`."""
    found = e.index(first + count - 1)
    for number in reversed(range(first, first + count - 1)):
        is_taken: SSAValue | None = None
        for one in taken:
            same = e.emit(arith.CmpiOp(one, e.index(number), "eq"))
            is_taken = same if is_taken is None else e.emit(arith.OrIOp(is_taken, same))
        if is_taken is None:
            found = e.index(number)
        else:
            found = e.emit(arith.SelectOp(is_taken, found, e.index(number)))
    return found


# --- Which variables ----------------------------------------------------------------------------


@contextmanager
def instead(lowering: Forms, variables: Sequence[Variable]) -> Generator[None]:
    """Where a rebinding is refused, let the next build make a pool of the variables."""
    widened = widen(lowering, variables)
    try:
        yield
    except CompileError as error:
        if widened:
            return
        names = lowering.not_kept.get(error, ())
        leaves = arrays_at_end(lowering, variables)
        group = linked(lowering, (leaf for leaf in leaves if leaf[0][-1] in names), leaves)
        ends = [leaves[leaf].end for leaf in group]
        has_views = any(e is not None and is_view_of(e, lowering.e.block) for e in ends)
        if not group or has_views or not lowering.facts.pool(group):
            raise


def is_of_use(facts: Facts, r: Rebinding) -> bool:
    """Let the next build make a pool of a variable, and no first iterations on their own; False where this
    one had a pool."""
    if not facts.pool([((*r.loop.key, r.name), r.leaf)]):
        return False
    facts.peeled.pop(r.loop.key, None)
    return True


def widen(lowering: Forms, variables: Sequence[Variable]) -> bool:
    """Let the next build have those in a pool that may be one array with one in it."""
    leaves = arrays_at_end(lowering, variables)
    widened = False
    for leaf, place in leaves.items():
        if place.kind == "pooled" and leaf in lowering.facts.pooled:
            group = linked(lowering, [*lowering.facts.pooled[leaf]], leaves)
            if not group <= lowering.facts.pooled[leaf]:
                widened |= lowering.facts.pool(group)
    return widened


def is_view_of(value: SSAValue, block: Block) -> bool:
    """True for an array that may be a view which this block made."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        value = strip_casts(pending.pop())
        if value in seen or not is_made_in(value, block):
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, array.AnyView):
            return True
        if isinstance(owner, scf.IfOp):
            number = result_index(value)
            pending += [last_of(r.block).operands[number] for r in owner.regions]
        elif isinstance(owner, array.LoopOp):
            pending += owner.carried
    return False


def arrays_at_end(lowering: Forms, variables: Sequence[Variable]) -> dict[Leaf, Place]:
    return {
        (v.key, p.leaf): p
        for v in variables
        for p in v.places
        if p.kind != "cell" and p.end is not None
    }


def linked(lowering: Forms, first: Iterable[Leaf], leaves: dict[Leaf, Place]) -> frozenset[Leaf]:
    """The leaves that may be one array with those, or become one."""
    memory = {
        leaf: (roots(lowering.e, place.end) if place.end is not None else frozenset[SSAValue]())
        for leaf, place in leaves.items()
    }
    own = {leaf: memory_of(place) for leaf, place in leaves.items()}
    found = set(first)
    pending = list(found)
    while pending:
        one = pending.pop()
        if one not in memory:
            continue
        for other in leaves.keys() - found:
            a, b = memory[one] | own[one], memory[other] | own[other]
            if (a & memory[other] or b & memory[one]) and has_alike(leaves[one], leaves[other]):
                found.add(other)
                pending.append(other)
    return frozenset(found)


def memory_of(place: Place) -> frozenset[SSAValue]:
    """The memory that a loop has made for the variable."""
    if place.kind == "buffer":
        return frozenset([place.ssa])
    return frozenset() if place.pool is None else frozenset(place.pool.buffers)


def has_alike(a: Place, b: Place) -> bool:
    """True for arrays of one rank and dtype."""
    types = [p.end.type for p in (a, b) if p.end is not None]
    return (
        len(
            {
                (t.element_type, t.get_num_dims()) if isinstance(t, MemRefType) else None
                for t in types
            }
        )
        == 1
    )

"""Elements that several iterations of a loop touch: how threads come to them without a race.

Iterations of a loop may meet in elements of arrays: adjoints of gathers add to what many have read, the
program itself adds at subscripts that are read from an array (`np.add.at`, histograms). In the order in which
they are tried:

1. `uniform`: all iterations add to one element. Threads add up in registers and meet in shared memory, as
   those of a reduction do; no atomics.
2. `gathered`: an inner loop owns the elements, so a block collects each (`gathered_sums`).
3. Sums that may be made in any order (adjoints, integers, `prange`, `fastmath`) are *atomic*: a load, an
   addition and a store are one op of the device's. Not where the program is compiled `deterministic`.
4. *In order* (`Ordered`): every thread goes through all iterations, and does those that touch what it owns.
   Two iterations that meet have one owner, so an element sees what the program does, in its order, whatever
   that is: sums of floating-point numbers are the CPU's to the bit, and the last store stays. Threads have
   the subscripts to read of all iterations, so it is slower than atomics.

In order is a loop where a subscript says who the owner is: all that iterations may meet in they reach at one
and the same subscript, in the same dimension each time, and the loop does not change what it is read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from ...dialects import array, device
from ..analysis.carried_cells import Role, cell_of, is_outside, roles
from ..analysis.independence import (
    PAIRS,
    Addition,
    Independence,
    Independent,
    may_run_in_threads,
)
from ..analysis.near_accesses import NearAccesses
from ..analysis.views import strip_views
from ..rules import Access, accesses
from .additions_to_elements import (
    Place,
    additions_to,
    is_uniform,
    place_of_addition,
    put_before,
    steps_of,
)
from .gathered_sums import gatherable
from .kernel import Writer, zero_of

MOST_SUMS = 16
"""Elements that all iterations of a loop add to: each takes 2 KiB of the block's shared memory."""

# Sums.


def make_atomic(one: Addition) -> None:
    """Let the device add the terms, their sum at once."""
    here = Writer(partial(put_before, one.store), one.store.location)
    whole: SSAValue | None = None
    for total in one.totals:
        term = total.rhs if is_on_the_way(total.lhs, one) else total.lhs
        away = isinstance(total, arith.SubfOp | arith.SubiOp)
        if whole is not None:
            whole = here.emit(type(total)(whole, term))
        else:
            whole = opposite(term, here) if away else term
    assert whole is not None
    here.add(device.AtomicAddOp(whole, *place_of_addition(one)))
    for op in (one.store, *reversed(one.totals), one.load):
        Rewriter.erase_op(op)


def opposite(value: SSAValue, here: Writer) -> SSAValue:
    if isinstance(value.type, AnyFloat):
        return here.emit(arith.NegfOp(value))
    return here.emit(arith.SubiOp(here.emit(zero_of(value.type)), value))


def is_on_the_way(value: SSAValue, one: Addition) -> bool:
    return value is one.load.res or value.owner in one.totals


# In order.


@dataclass(frozen=True)
class Ordered:
    """A loop whose iterations are shared out by the element that they touch."""

    cells: dict[SSAValue, Role]
    loops: tuple[array.LoopOp, ...]
    """The loop, and those right inside of it that all threads go through as well."""
    keys: dict[SSAValue, tuple[SSAValue, int]]
    """Subscripts that say who the owner is, each with an array and the dimension in which it is one."""

    @property
    def summed(self) -> tuple[SSAValue, ...]:
        """No addition is atomic."""
        return ()


def ordered(loop: array.LoopOp, independence: Independence) -> Ordered | None:
    """None where no subscript tells iterations that meet from others."""
    if not all(may_run_in_threads(op) for op in loop.walk()):
        return None
    levels: list[array.LoopOp] = []
    inner: array.LoopOp | None = loop
    while inner is not None and hands_nothing_on(inner):
        levels.append(inner)
        places = meeting(levels, independence)
        if places is None:
            return None
        common = common_subscripts(places)
        found = {v: at for v, at in common.items() if is_of_level(v, levels)}
        if found and all(is_fixed(v, loop, independence) for v in found):
            return Ordered(roles(loop), tuple(levels), found)
        inner = only_loop(inner, independence)
    return None


def hands_nothing_on(loop: array.LoopOp) -> bool:
    """Whether iterations have to do with each other in arrays only."""
    if not is_counted(loop):
        return False
    return not any(is_handed_on(loop, cell, role) for cell, role in roles(loop).items())


def is_counted(loop: array.LoopOp) -> bool:
    return loop.count is not None and loop.condition_block is None and not loop.carried


def is_handed_on(loop: array.LoopOp, cell: SSAValue, role: Role) -> bool:
    """Whether iterations have more to do with a variable than each for itself."""
    if role.name == "private":
        return any(
            not loop.is_ancestor(use.operation) and is_read(use.operation, cell)
            for use in cell.uses
        )
    return role.name != "read"


def is_read(op: Operation, cell: SSAValue) -> bool:
    return not (isinstance(op, memref.StoreOp) and op.memref is cell)


def meeting(levels: Sequence[array.LoopOp], independence: Independence) -> list[Place] | None:
    """Where iterations of nested loops may meet, each array under one name; None where it is less simple."""
    loop = levels[0]
    found = [a for op in loop.walk() for a in accesses(op) if cell_of(a.memref) is None]
    writes = [a for a in found if a.kind == "write"]
    near = NearAccesses(independence.alias, found)
    if near.pairs() > PAIRS:
        return None
    places: dict[Place, None] = {}
    for write in writes:
        others = near.to(write.memref)
        if not any(independence.meet(one, write, a) for a in others for one in levels):
            continue
        for one in (write, *others):
            place = place_of(one)
            if place is None or not is_outside(place[0], loop) or place[0] is not name_of(write):
                return None
            places[place] = None
    return list(places)


def place_of(one: Access) -> Place | None:
    """The array and the subscripts of an element; those of a view that is one element are its own."""
    if not isinstance(one.op, memref.LoadOp | memref.StoreOp):
        return None
    target, indices = one.op.memref, tuple(one.op.indices)
    while isinstance(view := target.owner, array.ViewOp) and not view.source_dims:
        target, indices = view.source, tuple(view.offsets)
    return target, indices


def name_of(one: Access) -> SSAValue | None:
    place = place_of(one)
    return None if place is None else place[0]


def common_subscripts(places: Sequence[Place]) -> dict[SSAValue, tuple[SSAValue, int]]:
    """The values that are a subscript, always of the same dimension, at each place of each array."""
    found: dict[SSAValue, tuple[SSAValue, int]] | None = None
    for target in dict.fromkeys(m for m, _ in places):
        rows = [indices for m, indices in places if m is target]
        same = {
            column[0]: (target, axis)
            for axis, column in enumerate(zip(*rows, strict=True))
            if all(v is column[0] for v in column)
        }
        found = same if found is None else {v: at for v, at in found.items() if v in same}
    return found or {}


def is_of_level(value: SSAValue, levels: Sequence[array.LoopOp]) -> bool:
    """Whether one of these loops makes the value, in each of its iterations."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    return any(block is one.body.block for one in levels)


def only_loop(loop: array.LoopOp, independence: Independence) -> array.LoopOp | None:
    """The loop right inside, where nothing else there has an effect."""
    ops = list(loop.body.block.ops)[:-1]
    inner = [op for op in ops if isinstance(op, array.LoopOp)]
    if len(inner) != 1 or inner[0].trips.first_use is not None:
        return None
    rest = [op for op in ops if op is not inner[0]]
    return inner[0] if all(is_steady(op, loop, independence) for op in rest) else None


def is_fixed(value: SSAValue, loop: array.LoopOp, independence: Independence) -> bool:
    """Whether a value is what it would have been before the loop: all threads agree on it."""
    return all(is_steady(op, loop, independence) for op in steps_of([value], loop))


def is_steady(op: Operation, loop: array.LoopOp, independence: Independence) -> bool:
    """Whether the op has no effect, and computes what it would have computed before the loop."""
    if isinstance(op, memref.LoadOp):
        stores = (s.memref for s in loop.walk() if isinstance(s, memref.StoreOp))
        return not any(independence.alias.may_alias(op.memref, m) for m in stores)
    plain = op.has_trait(Pure) or isinstance(op, array.IndexOp | memref.DimOp)
    return plain and not op.regions


@dataclass(frozen=True)
class Split:
    """The additions of a loop that iterations may meet in, by how they are made.

    Those that are left when the others are gone, and meet no longer, stay as they are.
    """

    gathered: list[tuple[Addition, array.LoopOp]]
    """With the inner loop whose iterations own the elements."""
    uniform: dict[Place, list[Addition]]
    atomic: list[Addition]


class Sharing:
    """How the iterations of the loops of one function are shared out."""

    def __init__(self, independence: Independence, *, deterministic: bool) -> None:
        self.independence = independence
        self.deterministic = deterministic

    def of(self, loop: array.LoopOp) -> Independent | Ordered | None:
        """None where an iteration needs what others have done, in more than one element."""
        told = self.independence.of(loop)
        if told is None:
            return ordered(loop, self.independence)
        if self.needs_atomics(loop, told):
            return ordered(loop, self.independence) or told
        return told

    def needs_atomics(self, loop: array.LoopOp, told: Independent | Ordered) -> bool:
        """Whether it cannot be a kernel, for atomics are forbidden."""
        if not self.deterministic or isinstance(told, Ordered) or not told.summed:
            return False
        return bool(self.split(loop, told).atomic)

    def split(self, loop: array.LoopOp, told: Independent) -> Split:
        """How each addition is made that several iterations may make to one element."""
        found = Split([], {}, [])
        left = list[Addition]()
        for one in additions_to(loop, told.summed):
            place = place_of_addition(one)
            inner = gatherable(loop, told, one, self.independence)
            if is_uniform(one, loop) and (place in found.uniform or len(found.uniform) < MOST_SUMS):
                found.uniform.setdefault(place, []).append(one)
            elif inner is not None:
                found.gathered.append((one, inner))
            else:
                left.append(one)
        bases = {strip_views(one.store.memref) for one in left if self.meets(one, left, loop)}
        found.atomic.extend(one for one in left if strip_views(one.store.memref) in bases)
        return found

    def meets(self, one: Addition, others: Sequence[Addition], loop: array.LoopOp) -> bool:
        """Whether some other iteration may add to the element."""
        meet, alias = self.independence.meet, self.independence.alias
        write = Access(one.store, one.store.memref, "write")
        near = (x.store for x in others if alias.may_alias(x.store.memref, one.store.memref))
        return any(meet(loop, write, Access(x, x.memref, "write")) for x in near)

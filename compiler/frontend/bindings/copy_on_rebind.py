"""Arrays that a loop changes in place, and rebinds to new ones in some iterations only.

    for t in range(n):              %buffer = array.alloc(...)
        u[0] = 0.0                  memref.store %false, %moved[]
        v = step(u)                 array.loop ... {
        if is_better(v):              %has_moved = memref.load %moved[]
            u = v                     %u = scf.if %has_moved { yield %buffer } else { yield %before }
                                      ...
                                      scf.if %better { copy %v to %buffer; memref.store %true, %moved[] } }

Until the first of these iterations the name is the array from before the loop, whoever else has it; from then
on the loop's own memory. So the analyses meet a truth in a cell and a choice by `scf.if`, which they know.
Where every iteration makes a new array, the first one is on its own instead (`peeling`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from ...analysis.views import strip_casts
from ..joins import cast
from ..scalars import logical_not
from .deferred_allocs import refuse_other_shape
from .descriptors import before_end, either, last_of, result_index
from .roots import is_fresh_in, is_inside, is_placeholder

if TYPE_CHECKING:
    from ..emitter import Emitter
    from .rebinding import Place, Rebindings


class Undecided(Exception):
    """An array that is neither new nor the one that the iteration began with."""


def moved_cell(e: Emitter, name: str) -> SSAValue:
    """The cell that says whether a name has left the array from before the loop."""
    cell = e.cell(i1, f"{name}_moved")
    e.store(e.constant(False, "py_bool").ssa, cell)
    return cell


def present(lowering: Rebindings, place: Place) -> SSAValue:
    """The array, as an iteration or what follows the loop finds it."""
    e, initial = lowering.e, place.initial
    assert place.moved is not None
    assert initial is not None
    assert isinstance(initial.type, MemRefType)
    has_moved = e.load(place.moved)
    assert isinstance(has_moved.owner, Operation)
    lowering.loads.append(has_moved.owner)
    own = cast(e, place.ssa, initial.type) if place.ssa.type != initial.type else place.ssa
    (now,) = either(e, has_moved, lambda: [own], lambda: [initial])
    for axis, extent in enumerate(e.extents(place.ssa)):
        e.dims[now, axis] = extent
    return now


def arrive(lowering: Rebindings, place: Place, leaf: SSAValue, name: str) -> list[Operation]:
    """Copy what an iteration leaves into the buffer where it is new; the copies.

    Undecided where that is known only at run time.
    """
    e = lowering.e
    new = is_new(e, leaf, place, e.block)
    if new is False:
        return []
    block = e.block if new is True else Block()
    with e.at(block):
        refuse_other_shape(e, e.extents(leaf), e.extents(place.ssa), name)
        copy = lowering.copy(leaf, place.ssa)
        assert place.moved is not None
        e.store(e.constant(True, "py_bool").ssa, place.moved)
        if new is not True:
            e.insert(scf.YieldOp())
    if new is not True:
        e.insert(scf.IfOp(new, [], Region(block), Region()))
    return [copy]


def is_new(e: Emitter, value: SSAValue, place: Place, body: Block) -> SSAValue | bool:
    """Whether `value` was made in this iteration; else it is what the iteration began with."""
    value = strip_casts(value)
    owner = value.owner
    if value is place.now or is_placeholder(value):
        return False
    if is_fresh_in(value, body):
        return True
    if not isinstance(owner, scf.IfOp) or not is_inside(owner, body):
        raise Undecided
    found = list[SSAValue | bool]()
    ends = [last_of(region.block) for region in owner.regions]
    for end in ends:
        with before_end(e, end):
            found.append(is_new(e, end.operands[result_index(value)], place, body))
    then, otherwise = found
    if isinstance(then, bool) and isinstance(otherwise, bool):
        return then if then is otherwise else owner.cond if then else logical_not(e, owner.cond)
    cell = e.cell(i1, "is_new")
    for end, new in zip(ends, found, strict=True):
        with before_end(e, end):
            e.store(e.constant(new, "py_bool").ssa if isinstance(new, bool) else new, cell)
    return e.load(cell)

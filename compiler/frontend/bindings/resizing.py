"""Arrays of which a loop changes the shape: `a = np.append(a, v)`, `x = 0.5 * (x[::2] + x[1::2])`.

    while x.size > 1:               %room = array.alloc {growable}      and a copy of %x
        x = x[::2] + x[1::2]        array.loop ... {
                                      %n = memref.load %x_extent[]
                                      %x = array.view %room extents(%n)
                                      ...
                                      copy %new to the view of its own extent; memref.store %m, %x_extent[] }

So such a name is a view of one buffer, as long as memory goes, and the extents are numbers in cells: nothing
below the frontend knows arrays that change their shape. After the loop the name is a fresh array again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, UnitAttr
from xdsl.ir import Operation, SSAValue

from ....dialects import array
from ...analysis.affine import Affine, Symbol, Term, affine
from ...analysis.views import strip_casts, strip_views
from ..library import shapes
from .deferred_allocs import agrees
from .descriptors import last_of, result_index
from .roots import is_inside, is_placeholder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .rebinding import Place, Rebindings


def place_of(lowering: Rebindings, initial: SSAValue, name: str) -> Place:
    """Room for an array of any shape, which begins as a copy of `initial`."""
    from .rebinding import Place

    e = lowering.e
    assert isinstance(initial.type, MemRefType)
    room = array.AllocOp.create(
        operands=[e.index(array.UNBOUNDED)],
        result_types=[MemRefType(initial.type.element_type, [DYNAMIC_INDEX])],
        attributes={array.GROWABLE: UnitAttr()},
    )
    with e.at(lowering.homes[-1]):
        e.insert(room, name)
    e.rooms.add(room.results[0])
    cells = [e.cell(IndexType(), f"{name}_extent") for _ in initial.type.get_shape()]
    place = Place("buffer", room.results[0], initial=initial, sizes=cells)
    place.own.append(keep(lowering, place, initial))
    return place


def is_shapeless(leaf: SSAValue) -> bool:
    """True for an array that may or may not be there at run time."""
    return not is_placeholder(strip_casts(leaf)) and may_be_nothing(leaf)


def may_be_nothing(leaf: SSAValue) -> bool:
    """True where the run may find no array here, and so no extents."""
    leaf = strip_views(leaf)
    owner = leaf.owner
    if isinstance(owner, scf.IfOp):
        ends = (last_of(region.block) for region in owner.regions)
        return any(may_be_nothing(end.operands[result_index(leaf)]) for end in ends)
    room = isinstance(owner, array.AllocOp) and array.GROWABLE in owner.attributes
    return room or is_placeholder(leaf)


def keep(lowering: Rebindings, place: Place, leaf: SSAValue) -> Operation:
    """Copy an array into its room, and note its extents."""
    e, extents = lowering.e, lowering.e.extents(leaf)
    size = product(lowering, extents)
    if array.constant_value(size) is None:
        full = e.emit(arith.CmpiOp(size, e.index(array.UNBOUNDED), "ugt"))
        e.insert(array.RaiseIfOp(full, "MemoryError", ""))
    copy = lowering.copy(leaf, view(lowering, place, extents))
    for cell, extent in zip(place.sizes, extents, strict=True):
        e.store(extent, cell)
    return copy


def present(lowering: Rebindings, place: Place) -> SSAValue:
    """The array, as an iteration finds it."""
    extents = [lowering.e.load(cell) for cell in place.sizes]
    lowering.loads += [n.owner for n in extents if isinstance(n.owner, Operation)]
    return view(lowering, place, extents)


def outlived(lowering: Rebindings, place: Place) -> SSAValue:
    """The array after the loop: in memory of its own."""
    e = lowering.e
    assert place.now is not None
    assert isinstance(place.now.type, MemRefType)
    fresh = e.emit(array.AllocOp(e.extents(place.now), place.now.type.element_type))
    place.own.append(lowering.copy(place.now, fresh))
    return fresh


def view(lowering: Rebindings, place: Place, extents: Sequence[SSAValue]) -> SSAValue:
    """The room, seen with these extents in C order."""
    e, steps = lowering.e, list[SSAValue]()
    step = e.index(1)
    for extent in reversed(extents):
        steps.insert(0, step)
        step = shapes.times(e, step, extent)
    return e.emit(array.ViewOp(place.ssa, [e.index(0)], [0] * len(extents), extents, steps))


def product(lowering: Rebindings, extents: Sequence[SSAValue]) -> SSAValue:
    size = lowering.e.index(1)
    for extent in extents:
        size = shapes.times(lowering.e, size, extent)
    return size


# When an array changes its shape.


def resizes(
    lowering: Rebindings,
    leaf: SSAValue,
    wanted: Sequence[SSAValue],
    others: Sequence[Sequence[SSAValue]],
) -> bool:
    """True where an iteration leaves another shape than it began with, and not by accident.

    It does where an extent is computed from what the extents of the loop's variables were (n + 1, n // 2), is
    larger or smaller by what is no difference of extents, or is found out in the iteration. Otherwise it is
    that of another array, and mostly the same: the function assumes so of its arguments. Where it cannot, or
    nothing may be assumed, the array changes its shape.
    """
    before = (wanted, *others)
    symbols = {symbol for shape in before for n in shape for symbol in symbols_in(affine(n))}
    for shape in shapes_of(lowering, leaf):
        for axis, (extent, old) in enumerate(zip(shape, wanted, strict=True)):
            found = list(alternatives(extent))
            if affine(old) in found:
                continue
            same_axis = {affine(other[axis]) for other in others if len(other) > axis}
            for new in found:
                changed = is_other_length(new - affine(old)) or is_found_out(lowering, new)
                computed = new not in same_axis and not symbols.isdisjoint(symbols_in(new))
                if changed or computed:
                    return True
        if not agrees(lowering.e, shape, wanted):
            return True
    return False


def is_other_length(change: Affine) -> bool:
    """True for a difference that is positive, or negative, as far as can be seen."""
    return len({n > 0 for n in (change.constant, *change.terms.values()) if n}) == 1


def shapes_of(lowering: Rebindings, value: SSAValue) -> Iterator[Sequence[SSAValue]]:
    """The extents of the arrays that `value` may be after an iteration: through branches."""
    value = strip_casts(value)
    owner = value.owner
    if isinstance(owner, scf.IfOp) and is_inside(owner, lowering.e.block):
        for region in owner.regions:
            yield from shapes_of(lowering, last_of(region.block).operands[result_index(value)])
    elif not is_placeholder(value):
        yield lowering.e.extents(value)


def alternatives(extent: SSAValue) -> Iterator[Affine]:
    """What an extent may be: where arrays are broadcast, the run selects."""
    owner = extent.owner
    if isinstance(owner, arith.SelectOp):
        yield from alternatives(owner.lhs)
        yield from alternatives(owner.rhs)
    else:
        yield affine(extent)


def symbols_in(value: Affine) -> Iterator[Symbol]:
    for symbol in value.terms:
        yield symbol
        if isinstance(symbol, Term):
            for argument in symbol.args:
                yield from symbols_in(argument)


def is_found_out(lowering: Rebindings, number: Affine) -> bool:
    """True for what the iteration finds in memory or by a loop."""
    for symbol in symbols_in(number):
        owner = symbol.owner if isinstance(symbol, SSAValue) else None
        while isinstance(owner, array.CastOp | arith.IndexCastOp):
            owner = owner.operands[0].owner
        if isinstance(owner, memref.LoadOp) and stands_for_another(owner):
            continue
        if isinstance(owner, memref.LoadOp | array.LoopOp) and is_inside(owner, lowering.e.block):
            return True
    return False


def stands_for_another(load: memref.LoadOp) -> bool:
    """True for an extent that is not known yet (`deferred_allocs`): its cell is not written."""
    cell = load.memref
    return isinstance(cell.owner, memref.AllocaOp) and not any(
        isinstance(use.operation, memref.StoreOp) for use in cell.uses
    )

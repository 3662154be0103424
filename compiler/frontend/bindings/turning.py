"""Views with their axes in another order: a base with its axes in that order is one more base.

    for _ in range(n):              %turned = array.view %a dims(1, 0)         before the loop
        a = a.T                     array.loop ... {
                                      %now = scf.if %which == 0 { yield %a } else { yield %turned }
                                      ...
                                      %after = arith.select %which == 0, 1, 0

So the order that an array has at a moment is part of which base it is, a number; its offsets change places.
Where bases differ in rank (`row = x`, then `row = a[i]`), those of lower rank have new axes in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ....dialects import array
from ..emitter import Emitter
from .descriptors import BaseName, Descriptor, View, compared

Axes = tuple[int, ...]
"""Of a base that is turned: for each of its axes, that of the array it is made of. Empty: as they are."""


def turned_array(e: Emitter, base: SSAValue, axes: Axes) -> SSAValue:
    """The array with its axes in this order; one of lower rank has new axes in front before that."""
    assert isinstance(base.type, MemRefType)
    added = len(axes) - base.type.get_num_dims()
    if not axes or added < 0:
        return base
    own, one = e.extents(base), e.index(1)
    dims = [max(d - added, -1) for d in axes]
    extents = [own[d] if d >= 0 else one for d in dims]
    view = array.ViewOp(base, [e.index(0)] * len(own), dims, extents, [one] * len(axes))
    return e.emit(view, base.name_hint)


def of_one_rank(e: Emitter, bases: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
    """The arrays, those of lower rank than others with new axes in front."""
    ranks = [len(e.extents(b)) for b in bases]
    most = tuple(range(max(ranks, default=0)))
    return tuple(
        turned_array(e, b, most if n < len(most) else ()) for b, n in zip(bases, ranks, strict=True)
    )


def order_between(wanted: Axes, found: Axes, rank: int) -> Axes | None:
    """The order of a base's axes that turns a view of dimensions `found` into one of `wanted`."""
    if len(wanted) != len(found):
        return None
    to = dict(zip(wanted, found, strict=True))
    if any((d < 0) != (f < 0) for d, f in to.items()):
        return None
    left, right = ([d for d in range(rank) if d not in dims] for dims in (wanted, found))
    if len(left) != len(right) or max((*wanted, *found), default=0) >= rank:
        return None
    to |= dict(zip(left, right, strict=True))
    return tuple(to[d] for d in range(rank))


def name_turned(name: BaseName, order: Axes) -> BaseName:
    """The name of a base whose axes are put in this order."""
    source, k, axes = name
    rank = max(len(axes), len(order))
    before = axes or tuple(range(rank))
    after = tuple(before[order[d]] if d < len(order) else before[d] for d in range(rank))
    return source, k, () if after == tuple(range(rank)) else after


def with_turned(names: Iterable[BaseName], order: Axes) -> frozenset[BaseName]:
    """The names, and those of the bases turned once, twice, and so on."""
    found = set(names)
    pending = list(found)
    while pending:
        one = name_turned(pending.pop(), order)
        if one not in found:
            found.add(one)
            pending.append(one)
    return frozenset(found)


def described_by(
    e: Emitter, found: Descriptor, dims: Axes, order: Axes, names: Sequence[BaseName]
) -> Descriptor:
    """The descriptor of the same array as a view of dimensions `dims`, of the turned bases."""
    v = found.view
    assert v is not None
    offsets = tuple(v.offsets[order[d]] if d < len(order) else n for d, n in enumerate(v.offsets))
    places = [names.index(name_turned(name, order)) for name in names]
    known = array.constant_value(found.which)
    if known is not None:
        which = e.index(places[known])
    else:
        which = e.index(places[-1])
        for here, place in zip(compared(e, found.which, len(names)), places[:-1], strict=False):
            which = e.emit(arith.SelectOp(here, e.index(place), which))
    return Descriptor(which, View(dims, offsets, v.extents, v.steps))

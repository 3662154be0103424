"""May two arrays share memory? Asked while the function is still being built.

So it sees no loop as a whole: what a loop carries is known from `Emitter.carried`. Assignments do not ask:
`resolve-overlap` decides for them, with the analyses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType
from xdsl.ir import BlockArgument, Operation, Region, SSAValue

from ....dialects import array
from ...analysis.affine import Affine, Term, affine, extent
from ...analysis.views import strip_casts, strip_views
from ..emitter import Carried, Emitter
from . import shapes


def disjoint(e: Emitter, a: SSAValue, b: SSAValue) -> bool:
    """True when no element of `a` is an element of `b`."""
    base_a, base_b = strip_views(a), strip_views(b)
    if base_a is base_b:
        return any(apart(x, y) for x, y in zip(walks(a), walks(b), strict=True))
    return disjoint_memory(e, base_a, base_b)


def meet(e: Emitter, a: SSAValue, b: SSAValue) -> bool:
    """True when two arrays that are not `disjoint` share memory in all runs, or in nearly all: the same
    array, one and a view of it, views shifted by a constant, and arguments that share memory."""
    base_a, base_b = strip_views(a), strip_views(b)
    whole = strip_casts(a) is base_a or strip_casts(b) is base_b
    if base_a is not base_b:
        both = strip_casts(a) is base_a and strip_casts(b) is base_b
        return both and base_a.owner is e.entry and base_b.owner is e.entry
    pairs = zip(walks(a), walks(b), strict=True)
    return whole or all((x.offset - y.offset).is_constant for x, y in pairs)


# --- Different memory -------------------------------------------------------------------------


def disjoint_memory(e: Emitter, a: SSAValue, b: SSAValue) -> bool:
    """True when two memrefs that are no views come from different memory."""
    carried = carried_by(e, a)
    if carried is not None and b is not a and b in carried.arguments:
        return all(disjoint(e, x, y) for x, y in combinations(carried.initial, 2))
    if isinstance(a.owner, scf.IfOp) and a.owner is b.owner and a is not b:
        i, j = (list(a.owner.results).index(v) for v in (a, b))  # pyright: ignore
        ends = [region.block.last_op for region in a.owner.regions]
        if all(end is not None and disjoint(e, end.operands[i], end.operands[j]) for end in ends):
            return True
    roots_b = list(roots(e, b))
    return all(distinct_roots(e, x, y) for x in roots(e, a) for y in roots_b)


NO_BRANCHES: Mapping[Operation, Region] = {}


def roots(
    e: Emitter, value: SSAValue, taken: Mapping[Operation, Region] = NO_BRANCHES
) -> Iterator[SSAValue]:
    """The arguments, allocations and unknown memrefs that `value` may be, where the sides of branches
    that were `taken` are known."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        value = pending.pop()
        while (found := strip_views(e.now(value))) is not value:
            value = found
        if value in seen:
            continue
        seen.add(value)
        carried = carried_by(e, value)
        owner = value.owner
        if carried is not None:
            pending.extend(carried.initial)
        elif isinstance(owner, scf.IfOp):
            position = next(k for k, r in enumerate(owner.results) if r is value)
            for region in (taken[owner],) if owner in taken else owner.regions:
                last = region.block.last_op
                assert last is not None
                pending.append(last.operands[position])
        else:
            yield value


def carried_by(e: Emitter, value: SSAValue) -> Carried | None:
    """What the loop carries that `value` is carried by, or has left."""
    if value in e.carried:
        return e.carried[value]
    owner = value.owner
    loop = owner.parent_op() if isinstance(value, BlockArgument) else owner
    if not isinstance(loop, array.LoopOp):
        return None
    seen = value.owner.args[1:] if isinstance(value, BlockArgument) else loop.results[1:]
    return Carried(tuple(seen), tuple(loop.carried)) if value in seen else None


def distinct_roots(e: Emitter, a: SSAValue, b: SSAValue) -> bool:
    if a is b:
        return False
    fresh = [isinstance(v.owner, array.AllocOp | memref.AllocaOp) for v in (a, b)]
    argument = [v.owner is e.entry for v in (a, b)]
    if all(argument):
        return not arguments_overlap(e, a, b)
    return all(f or g for f, g in zip(fresh, argument, strict=True))


def arguments_overlap(e: Emitter, a: SSAValue, b: SSAValue) -> bool:
    function = e.entry.parent_op()
    if not isinstance(function, func.FuncOp):
        return True
    overlaps = function.attributes.get("overlaps")
    if overlaps is None:
        return False
    assert isinstance(overlaps, ArrayAttr)
    assert isinstance(a, BlockArgument)
    assert isinstance(b, BlockArgument)
    for pair in overlaps:
        assert isinstance(pair, ArrayAttr)
        if {i.value.data for i in pair if isinstance(i, IntegerAttr)} == {a.index, b.index}:
            return True
    return False


# --- The same memory --------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """How a view moves along one dimension of its base: offset + step * (0 ... extent - 1).

    `step` is None where it is unknown; `axis` is the dimension of the view that does it, or -1.
    """

    offset: Affine
    extent: Affine
    step: int | None
    axis: int


def walks(value: SSAValue) -> list[Walk]:
    """The walk of a view along each dimension of its base."""
    value = strip_casts(value)
    owner = value.owner
    if isinstance(owner, array.ViewOp):
        return [through(w, owner) for w in walks(owner.source)]
    if isinstance(owner, array.CollapseOp):
        return [collapsed(w, owner) for w in walks(owner.source)]
    assert isinstance(value.type, MemRefType)
    return [Walk(Affine(), extent(value, d), 1, d) for d in range(value.type.get_num_dims())]


def through(w: Walk, view: array.ViewOp) -> Walk:
    """What the view makes of the walk of its source."""
    if w.axis < 0 or w.step is None:
        return w
    offset = w.offset + affine(view.offsets[w.axis]) * w.step
    if w.axis not in view.source_dims:
        return Walk(offset, Affine(constant=1), 1, -1)
    if view.source_dims.count(w.axis) > 1:
        return Walk(offset, Affine(), None, -1)
    axis = view.source_dims.index(w.axis)
    by = array.constant_value(view.steps[axis])
    return Walk(offset, affine(view.extents[axis]), None if by is None else w.step * by, axis)


def collapsed(w: Walk, view: array.CollapseOp) -> Walk:
    """What merging dimensions makes of a walk: where one of them is, is unknown from then on."""
    first, end = view.merged
    if first <= w.axis < end:
        return Walk(w.offset, Affine(), None, -1)
    return replace(w, axis=w.axis - (end - first - 1)) if w.axis >= end else w


def apart(a: Walk, b: Walk) -> bool:
    """True when the two walks, neither of them empty, certainly have no position in common."""
    if a.step is None or b.step is None:
        return False
    shift = a.offset - b.offset
    if a.step == b.step and abs(a.step) > 1 and shift.is_constant and shift.constant % a.step:
        return True
    (low_a, high_a), (low_b, high_b) = ends(a), ends(b)
    return shapes.is_at_least(low_a - high_b, 1) or shapes.is_at_least(low_b - high_a, 1)


def ends(w: Walk) -> tuple[Affine, Affine]:
    """The lowest and highest position of a walk that is not empty: max(n, 0) is n there."""
    assert w.step is not None
    last = w.offset + (without_clamp(w.extent) - 1) * w.step
    return (w.offset, last) if w.step >= 0 else (last, w.offset)


def without_clamp(n: Affine) -> Affine:
    if n.constant == 0 and len(n.terms) == 1:
        ((symbol, factor),) = n.terms.items()
        if factor == 1 and isinstance(symbol, Term) and symbol.kind == "max":
            zero, inner = sorted(symbol.args, key=lambda a: not a.is_constant)
            if zero == Affine():
                return inner
    return n

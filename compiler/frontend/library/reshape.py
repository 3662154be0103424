"""`reshape`, `ravel`, `flatten`: views where NumPy's are views, copies where NumPy copies.

The dimensions of the two shapes are brought into groups of equal size. In each group the array's become
one dimension, where they follow each other in memory, and that is walked in steps that nest::

    %v = array.collapse %a dims [0, 2] extents(%nm) : ... -> ...                      # a.reshape(-1)
    %m = array.view %v[%c0] dims [0, 0] extents(%p, %q) steps(%q, %c1) : ... -> ...   # .reshape(p, q)

Where they certainly do not follow each other the result is a copy. Where that is dynamic, it is
chosen there by an `scf.if`: a view or a copy, of which the analyses see both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, SSAValue

from ....dialects import array
from ....dialects.array import constant_value
from ...analysis.affine import Affine, affine, product
from ..emitter import Emitter
from ..values import PYTHON_SCALARS, Array, NoneValue, Scalar, Static, Tuple, Value
from . import layout, shapes, views
from .assignment import assign_view
from .cases import Case
from .dtypes import dtype_of
from .maps import allocate, extents_of, viewable
from .new_shape import wanted_extents

WAY_OUT = "write .flatten() where a copy will do, or reshape before it is sliced or transposed"


def reshape(e: Emitter, value: Value, shape: Sequence[Value], order: Value | None = None) -> Value:
    """`value.reshape(*shape)`: a view or a copy, as NumPy decides; a copy of a value without a name."""
    x = viewable(e, value)
    if isinstance(x, Scalar):
        if shape == [Tuple(())] and x.type not in PYTHON_SCALARS:
            return x
        x = allocate(e, [], dtype_of(x), "number")
        assign_view(e, x, value)
    if len(shape) == 1 and isinstance(shape[0], Tuple) and not shape[0].items:
        return only_element(e, x)
    wanted = wanted_extents(e, shape, extents_of(e, x))
    if is_fortran_order(e, order):
        return backwards(e, seen_as(e, backwards(e, x), wanted[::-1]))
    return seen_as(e, x, wanted)


def in_place(e: Emitter, x: Array, shape: Value) -> Array:
    """`x.shape = shape`: the array where it is, in another shape."""
    wanted = wanted_extents(e, [shape], extents_of(e, x))
    parts = groups(shapes.extents_of(e, x.memref), wanted)
    if all(len(g.own) == len(g.wanted) == 1 for g in parts):
        return x
    if not all(layout.nested(e, layout.walks(e, x.memref, g.own)) is True for g in parts):
        e.fail(
            "whether this shape fits in place depends on the strides",
            way_out="bind what .reshape() gives: y = y.reshape(...)",
        )
    return viewed(e, x, wanted, parts, units=False)


def only_element(e: Emitter, a: Array) -> Array:
    """`a.reshape(())`: a view without axes; ValueError where there are more elements, or none."""
    own = shapes.extents_of(e, a.memref)
    wrong = [shapes.compare(e, "ne", n, e.index(1)) for n in own if constant_value(n) != 1]
    if wrong:
        message = "cannot reshape array of size {} into shape ()"
        size = [shapes.product(e, own)]
        e.insert(array.RaiseIfOp(shapes.either(e, wrong), "ValueError", message, size))
    return views.view(e, a, [e.index(0)] * a.rank, [], [], []) if own else a


def ravel(e: Emitter, value: Value, order: Value | None = None) -> Value:
    """`value.ravel()`: a view where the elements follow each other in memory, else a copy."""
    x = viewable(e, value)
    if isinstance(x, Scalar):
        return flatten(e, x)
    x = backwards(e, x) if is_fortran_order(e, order) else x
    answer = follow_each_other(e, x, WAY_OUT)
    if answer is False:
        return flattened(e, x)
    group = Group(range(x.rank), range(1))
    size = [shapes.product(e, shapes.extents_of(e, x.memref))]
    if answer is True:
        return viewed(e, x, size, [group], units=False)
    flat = allocate(e, size, x.dtype, "flat")

    def copy() -> Array:
        fill_from(e, flat, x)
        return flat

    return chosen(e, answer, lambda: viewed(e, x, size, [group], units=True), copy)


def contiguous(e: Emitter, x: Array, dtype: str) -> Array:
    """`np.ascontiguousarray(x)`: the array itself where it lies in C order without gaps, else a copy."""
    if not x.rank:
        x = seen_as(e, x, [e.index(1)])
    way_out = "write .copy() where a copy will do"
    answer = x.dtype == dtype and follow_each_other(e, x, way_out)
    if answer is True:
        return x
    fresh = allocate(e, extents_of(e, x), dtype, "copy")

    def copy() -> Array:
        assign_view(e, fresh, x)
        return fresh

    if answer is False:
        return copy()
    return chosen(e, answer, lambda: x, copy)


def follow_each_other(e: Emitter, x: Array, way_out: str) -> SSAValue | bool:
    """Whether the elements do, in C order: known, or a condition that is asked at run time."""
    if e.scattered and layout.is_scattered_argument(e, x.memref):
        return False
    group = Group(range(x.rank), range(1))
    answer = layout.nested(e, layout.walks(e, x.memref, group.own), Affine(constant=1))
    if answer is None:
        e.fail("whether this is a view or a copy depends on the strides", way_out)
    refuse_shadow(e, x, group, answer)
    return answer


def flatten(e: Emitter, value: Value, order: Value | None = None) -> Array:
    """`value.flatten()`: always a copy."""
    x = viewable(e, value)
    if isinstance(x, Scalar):
        e.fail("flatten of a number is not compiled", way_out="use np.full(1, number)")
    return flattened(e, backwards(e, x) if is_fortran_order(e, order) else x)


def is_fortran_order(e: Emitter, order: Value | None) -> bool:
    """Whether `order=` asks for "F"; the default is "C"."""
    if order is None or isinstance(order, NoneValue):
        return False
    if not isinstance(order, Static) or order.object not in ("C", "F"):
        e.fail('order= is "C" or "F" here', way_out="say which of the two is meant")
    return order.object == "F"


def backwards(e: Emitter, x: Array) -> Array:
    """The array transposed: what is in Fortran order is then in C order."""
    return views.transposed(e, x)


def in_order(e: Emitter, value: Value) -> Value:
    """`written_matrices.in_order`: `value.ravel()`, for reading only."""
    x = viewable(e, value)
    if isinstance(x, Array) and not layout.is_scattered_argument(e, x.memref):
        return in_a_row(e, x)
    return ravel(e, value)


def in_a_row(e: Emitter, x: Array) -> Array:
    """The elements in C order, for reading only: a view where that is certain, else a copy."""
    if x.rank == 1:
        return x
    group = Group(range(x.rank), range(1))
    if layout.nested(e, layout.walks(e, x.memref, group.own)) is not True:
        return flattened(e, x)
    return viewed(e, x, [shapes.product(e, shapes.extents_of(e, x.memref))], [group], units=False)


def flattened(e: Emitter, x: Array) -> Array:
    """A fresh vector of the elements in C order."""
    extents = extents_of(e, x)
    result = allocate(e, [shapes.product(e, extents)], x.dtype, "flat")
    fill_from(e, result, x)
    return result


def fill_from(e: Emitter, flat: Array, x: Array) -> None:
    """Write the elements of `x`, in C order, to a vector."""
    assign_view(e, split(e, flat, 0, extents_of(e, x)), x)


# --- The same elements in another shape ---------------------------------------------------------


def seen_as(e: Emitter, x: Array, wanted: Sequence[SSAValue]) -> Array:
    """`x` with these extents, which have as many elements."""
    return regrouped(e, x, wanted, groups(shapes.extents_of(e, x.memref), wanted))


@dataclass(frozen=True)
class Group:
    """Neighbouring dimensions of the array, and those of the new shape that have as many elements."""

    own: range
    wanted: range


def groups(own: Sequence[SSAValue], wanted: Sequence[SSAValue]) -> list[Group]:
    """The finest groups that are provably of equal size, from either end; the rest is one more."""
    front = cuts(own, wanted)
    start_own, start_wanted = front[-1]
    back = cuts(own[start_own:][::-1], wanted[start_wanted:][::-1])
    ends = [(len(own) - i, len(wanted) - j) for i, j in reversed(back)]
    bounds = list(dict.fromkeys([*front, *ends]))
    return [Group(range(i, k), range(j, m)) for (i, j), (k, m) in pairwise(bounds)]


def cuts(own: Sequence[SSAValue], wanted: Sequence[SSAValue]) -> list[tuple[int, int]]:
    """The places up to which both shapes have provably as many elements."""
    sizes = {size: k for k, size in reversed(list(enumerate(running(own))))}
    found, at = [(0, 0)], 0
    for j, size in enumerate(running(wanted)):
        if j and sizes.get(size, -1) > at:
            at = sizes[size]
            found.append((at, j))
    return found


def running(extents: Sequence[SSAValue]) -> list[Affine]:
    """The product of the first extents, for each number of them."""
    sizes = [Affine(constant=1)]
    for n in extents:
        sizes.append(product(sizes[-1], affine(n)))
    return sizes


def regrouped(
    e: Emitter,
    x: Array,
    wanted: Sequence[SSAValue],
    parts: Sequence[Group],
    spare: Array | None = None,
) -> Array:
    """`x` in the new shape: a view where the dimensions of each group follow each other, else a copy.

    `spare`: memory for a copy that is needed only at run time.
    """
    if all(len(g.own) == len(g.wanted) == 1 for g in parts):
        return replace(x, whole=True)
    answers = [layout.nested(e, layout.walks(e, x.memref, g.own)) for g in parts]
    if None in answers:
        e.fail("whether this is a view or a copy depends on the strides", way_out=WAY_OUT)
    if all(answer is True for answer in answers):
        return viewed(e, x, wanted, parts, units=False)
    cuts = [
        c
        for g, a in zip(parts, answers, strict=True)
        if a is not True
        for c in finer(e, x, wanted, g)
    ]
    conditions = [a for a in answers if isinstance(a, SSAValue)]
    if spare is None and (cuts or False not in answers):
        spare = allocate(e, [shapes.product(e, wanted)], x.dtype, "flat")

    def copy() -> Array:
        if spare is None:
            return copied(e, x, wanted)
        fill_from(e, spare, x)
        return split(e, spare, 0, wanted)

    def whole_groups() -> Array:
        if False in answers:
            return copy()
        for g, answer in zip(parts, answers, strict=True):
            refuse_shadow(e, x, g, answer)
        holds = conditions[0]
        for other in conditions[1:]:
            holds = e.emit(arith.AndIOp(holds, other))
        return chosen(e, holds, lambda: viewed(e, x, wanted, parts, units=True), copy)

    def from_cut(k: int) -> Array:
        if k == len(cuts):
            return whole_groups()
        cut = cuts[k]
        two = [h for g in parts for h in (cut.halves if g is cut.group else (g,))]
        return chosen(
            e, cut.holds, lambda: regrouped(e, x, wanted, two, spare), lambda: from_cut(k + 1)
        )

    return from_cut(0)


def viewed(
    e: Emitter, x: Array, wanted: Sequence[SSAValue], parts: Sequence[Group], *, units: bool
) -> Array:
    """The view, the groups from the last to the first."""
    for g in reversed(parts):
        x = collapsed(e, x, g.own, units=units) if g.own else x
        axes = range(g.own.start, g.own.start + (1 if g.own else 0))
        x = spread(e, x, axes, [wanted[k] for k in g.wanted])
    return x


@dataclass(frozen=True)
class Cut:
    """A place where a group is two, should the run find that the shapes have as many elements up to it."""

    group: Group
    halves: tuple[Group, Group]
    holds: SSAValue


def finer(e: Emitter, x: Array, wanted: Sequence[SSAValue], g: Group) -> list[Cut]:
    """The places where a group may turn out to be two."""
    own = shapes.extents_of(e, x.memref)
    found = list[Cut]()
    for i in range(g.own.start + 1, g.own.stop):
        for j in range(g.wanted.start + 1, g.wanted.stop):
            first = shapes.product(e, own[g.own.start : i])
            second = shapes.product(e, wanted[g.wanted.start : j])
            if (affine(first) - affine(second)).is_constant:
                continue  # they are not equal, or that would be the end of a group
            halves = (
                Group(range(g.own.start, i), range(g.wanted.start, j)),
                Group(range(i, g.own.stop), range(j, g.wanted.stop)),
            )
            found.append(Cut(g, halves, shapes.compare(e, "eq", first, second)))
    if len(found) > CUTS:
        e.fail("in too many ways this could be a view", way_out=WAY_OUT)
    return found


CUTS = 4
"""How many places for cuts are compiled in; each is a reshape of its own."""


def chosen(
    e: Emitter, condition: SSAValue, here: Callable[[], Array], otherwise: Callable[[], Array]
) -> Array:
    """One of two arrays of the same shape, at run time."""
    blocks, arrays = [Block(), Block()], list[Array]()
    for block, made in zip(blocks, (here, otherwise), strict=True):
        with e.at(block):
            arrays.append(made())
    types = [a.type for a in arrays]
    shape = [
        m if m == n else DYNAMIC_INDEX for m, n in zip(*(t.get_shape() for t in types), strict=True)
    ]
    type_ = array.strided(types[0].element_type, shape, [None] * len(shape))
    for block, a in zip(blocks, arrays, strict=True):
        with e.at(block):
            e.insert(scf.YieldOp(e.emit(memref.CastOp.get(a.memref, type_), "reshaped")))
    branch = scf.IfOp(condition, [type_], [blocks[0]], [blocks[1]])
    return Array(e.emit(branch, "reshaped"), arrays[0].dtype)


def copied(e: Emitter, x: Array, target: Sequence[SSAValue]) -> Array:
    """A fresh array of this shape with the elements of `x` in C order."""
    result = allocate(e, target, x.dtype, "reshaped")
    extents = shapes.extents_of(e, x.memref)
    flat = collapsed(e, result, range(len(target)))
    assign_view(e, split(e, flat, 0, extents), x)
    return result


def collapsed(e: Emitter, x: Array, axes: range, *, units: bool = False) -> Array:
    """`x` with neighbouring dimensions as one, of which it is known that they follow each other."""
    if not array.is_contiguous(x.type):
        x, axes = without_units(e, x, axes)
    extents = shapes.extents_of(e, x.memref)
    if len(axes) == 1:
        return x
    merged = shapes.product(e, [extents[d] for d in axes])
    kept = [*extents[: axes.start], merged, *extents[axes.stop :]]
    op = array.CollapseOp(x.memref, axes.start, axes.stop, kept, units=units)
    return Array(e.emit(op, x.memref.name_hint), x.dtype)


def without_units(e: Emitter, x: Array, axes: range) -> tuple[Array, range]:
    """`x` without those of the dimensions that certainly have one element, whose strides say nothing."""
    extents = shapes.extents_of(e, x.memref)
    gone = [d for d in axes if constant_value(extents[d]) == 1][: len(axes) - 1]
    if not gone:
        return x, axes
    kept = [d for d in range(x.rank) if d not in gone]
    zeros, ones = [e.index(0)] * x.rank, [e.index(1)] * len(kept)
    seen = views.view(e, x, zeros, kept, [extents[d] for d in kept], ones)
    return seen, range(axes.start, axes.stop - len(gone))


def split(e: Emitter, x: Array, axis: int, extents: Sequence[SSAValue]) -> Array:
    """`x` with one of its dimensions seen as several."""
    return spread(e, x, range(axis, axis + 1), extents)


def spread(e: Emitter, x: Array, axes: range, extents: Sequence[SSAValue]) -> Array:
    """`x` with dimensions, all but one of which have one element, seen with these extents."""
    if len(axes) == len(extents) == 1:
        return replace(x, whole=True)
    own = shapes.extents_of(e, x.memref)
    walked = next((d for d in axes if constant_value(own[d]) != 1), -1)
    dims: list[int] = []
    steps: list[SSAValue] = []
    step = e.index(1)
    for n in reversed(extents):
        stands = walked < 0 or constant_value(n) == 1
        dims.append(-1 if stands else walked)
        steps.append(e.index(0) if stands else step)
        step = shapes.times(e, step, n)
    before, after = range(axes.start), range(axes.stop, x.rank)
    one = e.index(1)
    return views.view(
        e,
        x,
        [e.index(0)] * x.rank,
        [*before, *dims[::-1], *after],
        [*own[: axes.start], *extents, *own[axes.stop :]],
        [one for _ in before] + steps[::-1] + [one for _ in after],
    )


def refuse_shadow(e: Emitter, x: Array, g: Group, nested: SSAValue | bool | None) -> None:
    """NotImplementedError where a group's dimensions follow each other, and those of the shadow do not."""
    dims = layout.walks(e, x.memref, g.own, of_shadow=True)
    if not isinstance(nested, SSAValue) or len(dims) < 2:
        return
    mirrored = layout.nested(e, dims)
    if mirrored is True:
        return
    wrong = nested
    if isinstance(mirrored, SSAValue):
        wrong = e.emit(arith.AndIOp(nested, e.emit(arith.XOrIOp(mirrored, layout.truth(e, True)))))
    e.insert(array.RaiseIfOp(wrong, "NotImplementedError", APART))


APART = "mutad: a reshape that is a view of an array with gaps: pass a copy of the array"


CASES: tuple[Case, ...] = (
    Case("x.reshape(1, -1, 1)", {"x": "vector"}),
    Case(
        "(np.reshape(s, (1, 1)), np.reshape(s * 2, ()), np.reshape(np.float32(2), ()))",
        {"s": "scalar"},
    ),
    Case("np.reshape(x, (n, 1))", {"x": "vector", "n": "count"}),
    Case("np.arange(6 * n).reshape(2, n, -1)", {"n": "count"}),
    Case("(a * 2).reshape(-1)", {"a": "matrix"}),
    Case("a.flatten() + np.ravel(a + 1)", {"a": "matrix"}),
    Case('a.T.reshape(-1) + a.reshape(-1, order="F")', {"a": "matrix"}),
)

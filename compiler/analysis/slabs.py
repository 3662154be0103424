"""Which rectangle of an array a matrix is in each iteration of a loop, and which part the iterations share.

A *slab* is a matrix that is a view of an array from outside of the loop. The loop's counter says where it
begins and how long it is. In ::

    for i in range(n):
        c[i, i + 1:] += a[i, :] @ b[:, i + 1:]

`b[:, i + 1:]` begins at element (0, i + 1). Its columns are a *span* whose beginning moves and whose end does
not: the iterations 4 to 7 share the columns from 8 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from ...dialects import array
from .affine import Affine, Extent, Subscripts, Symbol, Term, extreme
from .views import strip_casts

Dim = Literal["n", "k", "m"]
"""A dimension of the product `c[n, m] = a[n, k] b[k, m]`."""

Way = Literal["still", "up", "down", "mixed"]
"""How a number changes from one iteration to the next."""


def is_outside(value: SSAValue, loop: array.LoopOp) -> bool:
    inside = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    return inside is None or not loop.is_ancestor(inside)


def computable(form: Affine, loop: array.LoopOp) -> bool:
    """True when the number is known before the loop, but for the loop's counter."""
    return all(symbol_is_known(s, loop) for s in form.terms)


def symbol_is_known(symbol: Symbol, loop: array.LoopOp) -> bool:
    if symbol is loop.induction:
        return True
    if isinstance(symbol, Term):
        return symbol.kind in ("max", "min") and all(computable(a, loop) for a in symbol.args)
    value = symbol.memref if isinstance(symbol, Extent) else symbol
    is_index = isinstance(symbol, Extent) or isinstance(value.type, IndexType)
    return is_index and is_outside(value, loop)


def way_of(form: Affine, counter: SSAValue) -> Way:
    """How the number changes with the counter."""
    return joined({turned(way_of_symbol(s, counter), f) for s, f in form.terms.items()})


def way_of_symbol(symbol: Symbol, counter: SSAValue) -> Way:
    if isinstance(symbol, Term):
        return joined({way_of(a, counter) for a in symbol.args})
    return "up" if symbol is counter else "still"


def turned(way: Way, factor: int) -> Way:
    if factor > 0 or way in ("still", "mixed"):
        return way
    return "down" if way == "up" else "up"


def joined(ways: set[Way]) -> Way:
    moving = ways - {"still"}
    if not moving:
        return "still"
    return moving.pop() if len(moving) == 1 else "mixed"


def at(form: Affine, counter: SSAValue, value: Affine) -> Affine:
    """The number where the counter is `value`."""
    total = Affine(constant=form.constant)
    for symbol, factor in form.terms.items():
        if symbol is counter:
            total = total + value * factor
        elif isinstance(symbol, Term):
            a, b = (at(arg, counter, value) for arg in symbol.args)
            total = total + extreme(symbol.kind, a, b) * factor
        else:
            total = total + Affine({symbol: factor})
    return total


@dataclass(frozen=True)
class Span:
    """Subscripts of one dimension: from `begin` on, those before `end`; none where it lies before."""

    begin: Affine
    end: Affine

    @property
    def count(self) -> Affine:
        return extreme("max", self.end - self.begin, Affine())

    def moves(self, counter: SSAValue) -> tuple[Way, Way]:
        return way_of(self.begin, counter), way_of(self.end, counter)


def span_of(begin: Affine, extent: Affine) -> Span:
    """What begins there and has so many subscripts: `max(e, 0)` of them is up to `begin + e`."""
    if extent.constant == 0 and len(extent.terms) == 1:
        ((symbol, factor),) = extent.terms.items()
        if factor == 1 and isinstance(symbol, Term) and symbol.kind == "max":
            rest = [a for a in symbol.args if not (a.is_constant and a.constant <= 0)]
            if len(rest) == 1:
                extent = rest[0]
    return Span(begin, shifted(extent, begin))


def shifted(form: Affine, by: Affine) -> Affine:
    """Their sum, the smaller of two numbers as the smaller of two sums."""
    if form.constant == 0 and len(form.terms) == 1:
        ((symbol, factor),) = form.terms.items()
        if factor == 1 and isinstance(symbol, Term) and symbol.kind in ("max", "min"):
            a, b = (shifted(arg, by) for arg in symbol.args)
            return extreme(symbol.kind, a, b)
    return form + by


@dataclass(frozen=True)
class Slab:
    """A matrix as a view of `base`: where it begins, and the axis that each of its dimensions goes along."""

    base: SSAValue
    begin: tuple[Affine, ...]
    axes: Mapping[int, int]
    """By dimension of the matrix; a dimension of one element may go along none."""
    steps: Mapping[int, int]


def slab_of(
    matrix: SSAValue, loop: array.LoopOp, forms: Subscripts, *, beyond: bool = False
) -> Slab | None:
    """The matrix as a view of what lies outside of the loop; None where it is no simple one.

    `beyond`: what is a view outside of the loop is followed, too.
    """
    memref = strip_casts(matrix)
    begin = [Affine(), Affine()]
    axes, steps = {0: 0, 1: 1}, {0: 1, 1: 1}
    while not is_outside(memref, loop) or (beyond and isinstance(memref.owner, array.ViewOp)):
        view = memref.owner
        if not isinstance(view, array.ViewOp):
            return None
        offsets = [forms.affine(o) for o in view.offsets]
        new_axes, new_steps = dict[int, int](), dict[int, int]()
        for result_axis, source_axis in enumerate(view.source_dims):
            step = forms.affine(view.steps[result_axis])
            if source_axis < 0:
                continue
            if not step.is_constant:
                return None
            offsets[source_axis] = offsets[source_axis] + begin[result_axis] * step.constant
            for dimension, axis in axes.items():
                if axis == result_axis:
                    new_axes[dimension] = source_axis
                    new_steps[dimension] = steps[dimension] * step.constant
        if len(set(new_axes.values())) < len(new_axes):
            return None  # a diagonal
        begin, axes, steps = offsets, new_axes, new_steps
        memref = strip_casts(view.source)
    if not all(computable(form, loop) for form in begin):
        return None
    return Slab(memref, tuple(begin), axes, steps)

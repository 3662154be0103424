"""Two innermost loops with one body, of which one goes on where the other ends: in `fuse_adjacent_nests`.

They stand in two loops, one behind the other. Iteration k of one is compared with iteration k of the other::

    for j in range(i, n):         s[k, j] -= s[i, j] * a[i, k]
    for j in range(k + 1, i):     s[k, j] -= s[i, j] * a[i, k]

The second one ends where the first one begins, so that both are one loop from k + 1 to n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Subscripts, Symbol, Term, extreme, replaced
from ..analysis.dependence import Dependence, Problem
from .interchange import known_before
from .scalar_nests import inner_loops


@dataclass(frozen=True)
class Seam:
    """How the innermost loops of two loops fit together."""

    first: array.LoopOp
    second: array.LoopOp
    turned: bool
    """The first one runs the other way around."""
    first_is_low: bool
    """The innermost loop of the second one goes on where that of the first one ends; else the other way."""
    place: Affine
    """The iteration of the second loop that goes with one of the first, by the counter of the first."""
    count: Affine
    """The iterations of both innermost loops, by the counter of the second loop and what is known before."""

    @property
    def first_leaf(self) -> array.LoopOp:
        return inner_loops(self.first)[0]

    @property
    def second_leaf(self) -> array.LoopOp:
        return inner_loops(self.second)[0]


def seam_of(
    first: array.LoopOp, second: array.LoopOp, dependence: Dependence, *, turned: bool
) -> Seam | None:
    """How they fit; None where they do not."""
    forms = dependence.footprints.subscripts
    (one,), (other,) = inner_loops(first), inner_loops(second)
    assert first.count is not None
    assert second.count is not None
    assert one.count is not None
    assert other.count is not None
    here = Place(dependence, other)
    count = forms.affine(second.count)
    if forms.affine(first.count) != count:
        return None
    a, b = Affine.of(first.induction), Affine.of(second.induction)
    as_second: dict[Symbol, Affine] = {first.induction: count - 1 - b if turned else b}
    shift = shift_of(one, other, forms, as_second)
    if shift is None:
        return None
    as_other = {**as_second, one.induction: Affine.of(other.induction) - shift}
    if not same_bodies(one, other, here, as_other):
        return None
    counts = replaced(forms.affine(one.count), as_second), forms.affine(other.count)
    first_is_low = here.is_zero(shift + counts[0])
    if not first_is_low and not here.is_zero(shift - counts[1]):
        return None
    low, high = counts if first_is_low else counts[::-1]
    if not here.is_natural(low):
        return None
    if not here.is_natural(high):
        high = extreme("max", high, Affine())
    total = here.settled(low + high)
    if not known_before(total - b * total.terms.get(second.induction, 0), second):
        return None
    return Seam(first, second, turned, first_is_low, count - 1 - a if turned else a, total)


# The bodies.


def shift_of(
    one: array.LoopOp, other: array.LoopOp, forms: Subscripts, as_second: Mapping[Symbol, Affine]
) -> Affine | None:
    """What the other loop's counter is more than this one's where they touch the same elements."""
    for x, y in zip(skeleton(one), skeleton(other), strict=False):
        for mine, its in zip(x.operands, y.operands, strict=False):
            if not isinstance(mine.type, IndexType) or not isinstance(its.type, IndexType):
                continue
            a, b = replaced(forms.affine(mine), as_second), forms.affine(its)
            if a.terms.get(one.induction) == b.terms.get(other.induction) == 1:
                return a - Affine.of(one.induction) - b + Affine.of(other.induction)
    return None


def same_bodies(
    one: array.LoopOp, other: array.LoopOp, here: Place, as_other: Mapping[Symbol, Affine]
) -> bool:
    """Whether both loops do the same, the symbols of the first as numbers of the second."""
    affine = here.dependence.footprints.subscripts.affine
    same: dict[SSAValue, SSAValue] = {}

    def equal(mine: SSAValue, its: SSAValue) -> bool:
        if mine.type != its.type:
            return False
        if isinstance(mine.type, IndexType):
            return here.is_zero(replaced(affine(mine), as_other) - affine(its))
        return same.get(mine, mine) is its

    mine, its = skeleton(one), skeleton(other)
    if len(mine) != len(its):
        return False
    for x, y in zip(mine, its, strict=True):
        alike = x.name == y.name and x.properties == y.properties and x.attributes == y.attributes
        if not alike or len(x.operands) != len(y.operands):
            return False
        if not all(map(equal, x.operands, y.operands)):
            return False
        same.update(zip(x.results, y.results, strict=True))
    return True


def skeleton(loop: array.LoopOp) -> list[Operation]:
    """What a body does but for computing subscripts."""
    return [op for op in loop.body.block.ops if not is_subscript(op)]


def is_subscript(op: Operation) -> bool:
    """True for what computes a number of elements or a place."""
    return (
        not op.regions
        and not isinstance(op, memref.LoadOp)
        and bool(op.results)
        and all(isinstance(r.type, IndexType) for r in op.results)
    )


# What is known there.


@dataclass(frozen=True)
class Place:
    """Numbers where `op` stands."""

    dependence: Dependence
    op: Operation

    def is_natural(self, form: Affine) -> bool:
        """True when the number is certainly not negative."""
        if form.is_constant:
            return form.constant >= 0
        problem = Problem(self.dependence, None)
        problem.state_context(self.op, 0)
        problem.at_least(form, Affine(constant=-1), 0)
        return not problem.may_hold()

    def is_zero(self, form: Affine) -> bool:
        if form.is_constant:
            return form.constant == 0
        return self.is_natural(form) and self.is_natural(-form)

    def settled(self, form: Affine) -> Affine:
        """The number with each "max" and "min" in it replaced by what it certainly is."""
        for symbol, factor in form.terms.items():
            if isinstance(symbol, Term) and symbol.kind in ("max", "min"):
                for one in symbol.args:
                    if self.is_zero(one - Affine.of(symbol)):
                        return self.settled(form + (one - Affine.of(symbol)) * factor)
        return form

"""How arrays lie in memory, as far as their types and views tell: do dimensions follow each other?

Strides are products of extents and steps, so that they can be compared symbolically: `a[1:]` of a matrix in
C order has the strides (m, 1) and the extents (n - 1, m), and m is 1 * m. What the run alone tells
becomes a condition on the same numbers, for `scf.if` to choose a view or a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i1
from xdsl.ir import SSAValue

from ....dialects import array
from ....dialects.array import constant_value, is_contiguous, strides_of
from ...analysis.affine import Affine, Extent, Term, affine, extreme, factors, product
from ...analysis.views import strip_casts
from ..emitter import Emitter
from . import shapes
from .overlap import without_clamp


@dataclass(frozen=True)
class Walk:
    """A dimension that a view goes through: its extent and its stride in elements."""

    extent: SSAValue
    stride: Affine


def walks(
    e: Emitter, memref: SSAValue, axes: Sequence[int], *, of_shadow: bool = False
) -> list[Walk]:
    """The dimensions `axes` of an array, without those that certainly have one element.

    `of_shadow`: as its shadow lies, which has no gaps where an argument has some.
    """
    extents = shapes.extents_of(e, memref)
    strides = strides_in_elements(e, memref, of_shadow=of_shadow)
    return [Walk(extents[d], strides[d]) for d in axes if constant_value(extents[d]) != 1]


def strides_in_elements(e: Emitter, memref: SSAValue, *, of_shadow: bool = False) -> list[Affine]:
    """The strides of an array; a symbol of its own where nothing is known."""
    memref = strip_casts(memref)
    owner = memref.owner
    extents = [affine(n) for n in shapes.extents_of(e, memref)]
    if isinstance(owner, array.ViewOp):
        source = strides_in_elements(e, owner.source, of_shadow=of_shadow)
        return [
            Affine() if d < 0 else product(source[d], affine(step))
            for d, step in zip(owner.source_dims, owner.steps, strict=True)
        ]
    if isinstance(owner, array.CollapseOp) and owner.units is None:
        first, end = owner.merged
        source = strides_in_elements(e, owner.source, of_shadow=of_shadow)
        return [*source[:first], *source[end - 1 :]]
    type_ = memref.type
    assert isinstance(type_, MemRefType)
    if is_contiguous(type_) or (of_shadow and is_scattered_argument(e, memref)):
        return compact(extents[::-1])[::-1]
    if is_fortran_argument(e, memref):
        return compact(extents)
    return [
        Affine.of(unknown_stride(memref, d)) if s is None else Affine(constant=s)
        for d, s in enumerate(strides_of(type_))
    ]


def compact(extents: Sequence[Affine]) -> list[Affine]:
    """The strides of dimensions without gaps, the innermost first."""
    strides = [Affine(constant=1)]
    for n in extents[:-1]:
        strides.append(product(strides[-1], n))
    return strides[: len(extents)]


def is_fortran_argument(e: Emitter, memref: SSAValue) -> bool:
    """True for an argument that lies in Fortran order, without gaps."""
    assert isinstance(memref.type, MemRefType)
    return memref.owner is e.entry and len(s := strides_of(memref.type)) > 1 and s[0] == 1


def is_scattered_argument(e: Emitter, memref: SSAValue) -> bool:
    """True for an argument whose elements follow each other in no order; transposed, too."""
    memref = strip_casts(memref)
    if (transposed := whole_source(e, memref)) is not None:
        return is_scattered_argument(e, transposed)
    assert isinstance(memref.type, MemRefType)
    plain = is_contiguous(memref.type) or is_fortran_argument(e, memref)
    return memref.owner is e.entry and not plain


def whole_source(e: Emitter, memref: SSAValue) -> SSAValue | None:
    """The array that `memref` has all of, its dimensions in another order; None where it does not."""
    view = memref.owner
    if not isinstance(view, array.ViewOp) or sorted(view.source_dims) != list(
        range(len(view.offsets))
    ):
        return None
    own = shapes.extents_of(e, view.source)
    entire = all(
        constant_value(step) == 1 and shapes.equal(n, own[d])
        for d, step, n in zip(view.source_dims, view.steps, view.extents, strict=True)
    )
    return view.source if entire else None


def unknown_stride(memref: SSAValue, axis: int) -> Term:
    return Term("stride", (Affine.of(Extent(memref, axis)),))


# --- Do they follow each other? ---------------------------------------------------------------


def nested(
    e: Emitter, dims: Sequence[Walk], innermost: Affine | None = None
) -> SSAValue | bool | None:
    """Whether the dimensions follow each other: always, never, or a condition; None where nothing can tell.

    With `innermost` the last of them must have that stride. Dimensions of one element do not matter,
    and an array without elements is nested, or not, as is convenient.
    """
    expected = [product(d.stride, affine(d.extent)) for d in dims[1:]]
    expected += [] if innermost is None else [innermost]
    pairs = list(zip((d.stride for d in dims), expected, strict=False))
    if all(stride == wanted for stride, wanted in pairs):
        return True
    if all(is_not_one(e, affine(d.extent)) for d in dims) and any(differ(e, *p) for p in pairs):
        return False
    return condition(e, dims, innermost)


def is_not_one(e: Emitter, extent: Affine) -> bool:
    """True where the extent is never 1, or the function is compiled for arguments with which it is not."""
    if never_one(e, extent):
        return True
    if e.assumed is None:
        return False
    two, one = Affine(constant=2), Affine(constant=1)
    form = extreme("min", extent, two) - extreme("min", extent, one) * 2  # 0, but -1 at 1
    conditions = shapes.conditions_for(e, form, Affine())
    if conditions is None:
        return False
    e.assumed |= conditions
    return True


def never_one(e: Emitter, extent: Affine) -> bool:
    """True when it is certainly not 1: another constant, or an extent of an argument."""
    if extent.is_constant:
        return extent.constant != 1
    (symbol, factor), *others = extent.terms.items()
    of_argument = isinstance(symbol, Extent) and symbol.memref.owner is e.entry
    return not extent.constant and not others and factor == 1 and of_argument


def differ(e: Emitter, left: Affine, right: Affine) -> bool:
    """True when the two are certainly not equal, the extents that they are made of not being 0."""
    (c, mine), (d, theirs) = constant_and_rest(left), constant_and_rest(right)
    for factor in list(mine):
        if factor in theirs:
            mine.remove(factor)
            theirs.remove(factor)
    if mine and theirs:
        gap = without_clamp(mine[0]) * c - without_clamp(theirs[0]) * d
        return len(mine) == len(theirs) == 1 and gap.is_constant and gap.constant != 0
    if not mine and not theirs:
        return c != d
    many, constant, other = (mine, c, d) if mine else (theirs, d, c)
    return all(never_one(e, f) for f in many) and abs(constant) * 2 ** len(many) > abs(other)


def constant_and_rest(form: Affine) -> tuple[int, list[Affine]]:
    """The factors of a product, the constant ones apart."""
    return (form.constant, []) if form.is_constant else factors(form)


def condition(e: Emitter, dims: Sequence[Walk], innermost: Affine | None) -> SSAValue | None:
    """The condition that the dimensions follow each other, where their strides can be computed."""
    numbers = [number(e, d.stride) for d in dims]
    follows = None if innermost is None else number(e, innermost)
    strides = [n for n in numbers if n is not None]
    if len(strides) < len(dims):
        return None
    holds, begun = truth(e, True), truth(e, follows is not None)
    follows = e.index(0) if follows is None else follows
    for d, stride in zip(reversed(dims), reversed(strides), strict=True):
        unit = shapes.compare(e, "eq", d.extent, e.index(1))
        fits = shapes.compare(e, "eq", stride, follows)
        fresh = e.emit(arith.XOrIOp(begun, truth(e, True)))
        holds = e.emit(arith.AndIOp(holds, shapes.either(e, [fits, unit, fresh])))
        further = shapes.times(e, stride, d.extent)
        follows = e.emit(arith.SelectOp(unit, follows, further))
        begun = e.emit(arith.OrIOp(begun, e.emit(arith.XOrIOp(unit, truth(e, True)))))
    return holds


def truth(e: Emitter, value: bool) -> SSAValue:
    return e.emit(arith.ConstantOp(IntegerAttr(int(value), i1)))


def number(e: Emitter, form: Affine) -> SSAValue | None:
    """The integer that `form` is, computed here; None where it has parts that no op computes."""
    total: SSAValue | None = None
    for symbol, factor in form.terms.items():
        part = number_of(e, symbol)
        if part is None:
            return None
        part = shapes.times(e, part, e.index(factor))
        total = part if total is None else e.emit(arith.AddiOp(total, part))
    if total is None or form.constant:
        constant = e.index(form.constant)
        total = constant if total is None else e.emit(arith.AddiOp(total, constant))
    return total


def number_of(e: Emitter, symbol: SSAValue | Extent | Term) -> SSAValue | None:
    match symbol:
        case Extent(memref, axis):
            return e.extents(memref)[axis]
        case Term("stride", (of,)):
            ((extent, _),) = of.terms.items()
            assert isinstance(extent, Extent)
            known = extent.memref.owner is e.entry
            return e.stride(extent.memref, extent.axis) if known else None
        case Term(kind, args):
            op = {"mul": arith.MuliOp, "max": arith.MaxSIOp, "min": arith.MinSIOp}.get(kind)
            if op is None:
                return None
            a, b = (number(e, part) for part in args)
            return None if a is None or b is None else e.emit(op(a, b))
        case _:
            return symbol

"""Extents: integer arithmetic that stays affine, what is provable about them, and broadcasting.

A stencil statement needs no check and no step known only at run time, because its extents are
provably equal: with `%e = max(%n - 2, 0)` for each of `u[1:-1]`, `u[2:]` and `u[:-2]`, the
comparison of their linear forms (`analysis.affine`) says so.

Only an extent that the program computes can be 1 at run time without its type saying so: unit
extents of arguments are part of the specialization. See Note [Extents that are 1 by accident].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, OpResult, SSAValue

from ....dialects import array
from ....dialects.array import constant_value
from ...analysis.affine import Affine, Extent, Term, affine, equal_numbers, never_above
from ...analysis.affine import extent as extent_of
from ...analysis.views import strip_casts
from ..emitter import Emitter, Form, Number, is_placeholder
from ..values import EXTENT_MAX, INT64_MAX, Scalar, Tuple

# --- Integers ---------------------------------------------------------------------------------


def plus(e: Emitter, value: SSAValue, constant: int) -> SSAValue:
    """value + constant, the constant merged into the sums and maxima that `value` is made of."""
    known = constant_value(value)
    if known is not None:
        return e.index(known + constant)
    if constant == 0:
        return value
    owner = value.owner
    if isinstance(owner, arith.AddiOp) and (inner := constant_value(owner.rhs)) is not None:
        return plus(e, owner.lhs, inner + constant)
    if isinstance(owner, arith.MaxSIOp) and (floor := constant_value(owner.rhs)) is not None:
        return at_least(e, plus(e, owner.lhs, constant), floor + constant)
    return e.emit(arith.AddiOp(value, e.index(constant)))


def minus(e: Emitter, left: SSAValue, right: SSAValue) -> SSAValue:
    known = constant_value(right)
    if known is not None:
        return plus(e, left, -known)
    difference = affine(left) - affine(right)
    if difference.is_constant:
        return e.index(difference.constant)
    return e.emit(arith.SubiOp(left, right))


def sum_of(e: Emitter, left: SSAValue, right: SSAValue) -> SSAValue:
    for a, b in ((left, right), (right, left)):
        known = constant_value(b)
        if known is not None:
            return plus(e, a, known)
    return e.emit(arith.AddiOp(left, right))


def times(e: Emitter, left: SSAValue, right: SSAValue) -> SSAValue:
    a, b = constant_value(left), constant_value(right)
    if a is not None and b is not None:
        return e.index(a * b)
    if a == 1:
        return right
    return left if b == 1 else e.emit(arith.MuliOp(left, right))


def at_least(e: Emitter, value: SSAValue, floor: int) -> SSAValue:
    """max(value, floor)."""
    known = constant_value(value)
    if known is not None:
        return e.index(max(known, floor))
    owner = value.owner
    if isinstance(owner, arith.MaxSIOp) and (inner := constant_value(owner.rhs)) is not None:
        return value if inner >= floor else at_least(e, owner.lhs, floor)
    if is_at_least(affine(value), floor):
        return value
    return e.emit(arith.MaxSIOp(value, e.index(floor)))


def at_most(e: Emitter, value: SSAValue, ceiling: SSAValue) -> SSAValue:
    """min(value, ceiling)."""
    difference = affine(ceiling) - affine(value)
    if is_at_least(difference, 0):
        return value
    if is_at_least(-difference, 0):
        return ceiling
    return e.emit(arith.MinSIOp(value, ceiling))


def divided_up(e: Emitter, value: SSAValue, by: int) -> SSAValue:
    """ceil(value / by), for by > 0."""
    if by == 1:
        return value
    known = constant_value(value)
    if known is not None:
        return e.index(-(-known // by))
    if INT64_MAX - by < EXTENT_MAX:
        return e.emit(arith.CeilDivSIOp(value, e.index(by)))
    return e.emit(array.FloorDivOp(plus(e, value, by - 1), e.index(by)))


def product(e: Emitter, extents: Sequence[SSAValue]) -> SSAValue:
    total = e.index(1)
    for extent in extents:
        total = times(e, total, extent)
    return total


def compare(e: Emitter, predicate: str, left: SSAValue, right: SSAValue) -> SSAValue:
    return e.emit(arith.CmpiOp(left, right, predicate))


def either(e: Emitter, conditions: Sequence[SSAValue]) -> SSAValue:
    """The disjunction of one or more conditions."""
    total = conditions[0]
    for condition in conditions[1:]:
        total = e.emit(arith.OrIOp(total, condition))
    return total


# --- What is provable -------------------------------------------------------------------------


def is_at_least(value: Affine, floor: int) -> bool:
    """True when value >= floor is certain from the bounds of each symbol on its own."""
    least = value.constant
    for symbol, factor in value.terms.items():
        bound = lower_bound(symbol) if factor > 0 else upper_bound(symbol)
        if bound is None:
            return False
        least += factor * bound
    return least >= floor


def lower_bound(symbol: SSAValue | Extent | Term) -> int | None:
    """A constant that the symbol is never below, or None."""
    match symbol:
        case Extent():
            return 0
        case Term(kind="max"):
            return max((a.constant for a in symbol.args if a.is_constant), default=None)
        case Term(kind="min"):
            return 0 if all(is_at_least(a, 0) for a in symbol.args) else None
        case Term(kind="floordiv"):
            return 0 if is_at_least(symbol.args[0], 0) else None
        case _:
            return None


def upper_bound(symbol: SSAValue | Extent | Term) -> int | None:
    """A constant that the symbol is never above, or None."""
    if isinstance(symbol, Term) and symbol.kind == "min":
        return min((a.constant for a in symbol.args if a.is_constant), default=None)
    return None


def at_most_one(extent: SSAValue) -> bool:
    """True for an extent that is 1 unless the slice lies outside: that of `a[:, k : k + 1]`."""
    return constant_value(extent) is None and never_above(affine(extent), 1)


def equal(left: SSAValue, right: SSAValue) -> bool:
    """True when the two extents are certainly equal."""
    return equal_numbers(left, right)


def never_one(e: Emitter, extent: SSAValue) -> bool:
    """True when the extent is certainly not 1: another constant, or an extent of an argument."""
    form = affine(extent)
    if form.is_constant:
        return form.constant != 1
    if form.constant or len(form.terms) != 1:
        return False
    ((symbol, factor),) = form.terms.items()
    return factor == 1 and isinstance(symbol, Extent) and symbol.memref.owner is e.entry


# --- Extents of arrays ------------------------------------------------------------------------


def extents_of(e: Emitter, memref: SSAValue) -> tuple[SSAValue, ...]:
    """The extents of a memref.

    Those of a carried memref are its initial ones' where these provably agree: so a ping-pong
    `u, v = v, u` has one shape.
    """
    memref = strip_casts(memref)
    carried = e.carried.get(memref)
    if carried is None:
        return e.extents(memref)
    shapes = [extents_of(e, i) for i in carried.initial if i.type == memref.type]
    if all(same_shape(shapes[0], s) for s in shapes[1:]):
        return shapes[0]
    return e.extents(memref)


def same_shape(left: Sequence[SSAValue], right: Sequence[SSAValue]) -> bool:
    return len(left) == len(right) and all(map(equal, left, right))


def shape_tuple(extents: Sequence[SSAValue]) -> Tuple:
    """`array.shape` as a Python tuple."""
    return Tuple(tuple(length(n) for n in extents))


def length(extent: SSAValue) -> Scalar:
    """An extent as a Python int."""
    known = constant_value(extent)
    if known is not None:
        return Scalar("py_int", extent, known, known, known)
    return Scalar("py_int", extent, low=0, high=EXTENT_MAX)


def shape_format(rank: int) -> str:
    """How NumPy writes a shape, `{}` for each extent: "({},)" or "({},{})"."""
    return "(" + ",".join(["{}"] * rank) + ("," if rank == 1 else "") + ")"


# --- Broadcasting -----------------------------------------------------------------------------

BINARY_MISMATCH = "operands could not be broadcast together with shapes {shapes}"


def broadcast_extents(
    e: Emitter,
    shapes: Sequence[Sequence[SSAValue]],
    message: str = BINARY_MISMATCH,
    out: Sequence[SSAValue] | None = None,
    exception: str = "ValueError",
) -> tuple[SSAValue, ...]:
    """The extents to which the shapes broadcast; `exception` where they do not.

    `message` gets NumPy's words; "{shapes}" becomes all shapes, each with a blank behind it, and
    last that of `out`, the array that the result goes to.
    """
    given = {tuple(s) for s in shapes if s}
    if len(given) == 1:
        return given.pop()
    rank = max((len(s) for s in shapes), default=0)
    result: list[SSAValue] = []
    found = Mismatches()
    for axis in range(-rank, 0):
        result.append(_broadcast_axis(e, [s[axis] for s in shapes if len(s) >= -axis], found))
    named = shapes if out is None else [*shapes, out]
    found.raise_all(e, with_shapes(message, named), [n for s in named for n in s], exception)
    return tuple(result)


@dataclass
class Mismatches:
    """Conditions under which extents do not go together, collected over the axes of one operation."""

    wrong: list[SSAValue] = field(default_factory=list[SSAValue])
    broken: list[SSAValue] = field(default_factory=list[SSAValue])
    """Assumptions that do not hold, though the entry has checked them: `unify_extents` reads them."""

    def require(
        self, e: Emitter, extent: SSAValue, target: SSAValue, *, fixed: bool = True
    ) -> None:
        """`extent` must be `target`'s equal, or 1; or `target` is 1, unless that is `fixed`."""
        if constant_value(extent) == 1 or equal(extent, target):
            return
        pair = pair_of(extent, target)
        if any(pair in e.settled.get(block, ()) for block in (e.block, e.entry)):
            return
        e.settled.setdefault(e.block, set()).add(pair)
        differs = compare(e, "ne", extent, target)
        if never_one(e, extent) and (fixed or never_one(e, target)):
            self.wrong.append(differs)
        elif not at_most_one(extent) and agree(e, extent, target):
            self.broken.append(differs)
            self.broken += [compare(e, "ne", *pair) for pair in extents_compared(e, extent, target)]
        else:
            wrong = e.emit(arith.AndIOp(differs, compare(e, "ne", extent, e.index(1))))
            if not fixed and not never_one(e, target):
                wrong = e.emit(arith.AndIOp(wrong, compare(e, "ne", target, e.index(1))))
            self.wrong.append(wrong)

    def raise_all(
        self, e: Emitter, message: str, shown: Sequence[SSAValue], exception: str = "ValueError"
    ) -> None:
        if self.wrong:
            e.insert(array.RaiseIfOp(either(e, self.wrong), exception, message, shown))
        if self.broken:
            e.insert(array.RaiseIfOp(either(e, self.broken), "SystemError", BROKEN))


BROKEN = array.ENTRY_EQUAL


def pair_of(left: SSAValue, right: SSAValue) -> frozenset[object]:
    return frozenset((affine(left), affine(right)))


def agree(e: Emitter, left: SSAValue, right: SSAValue) -> bool:
    """True where the two are equal under what the function assumes of its arguments, or now does."""
    pair = pair_of(left, right)
    if pair in e.agreed:
        return True
    if e.assumed is None:
        return False
    conditions = conditions_for(e, affine(left), affine(right))
    if conditions is None:
        return False
    e.assumed |= conditions
    e.agreed.add(pair)
    return True


def conditions_for(e: Emitter, left: Affine, right: Affine) -> set[Form] | None:
    """Forms that are 0 where the two are equal, whatever they depend on but the arguments."""
    difference = left - right
    if difference.is_constant:
        return None if difference.constant else set()
    form = form_of(e, difference)
    if form is not None:
        return {form}
    for symbol, factor in difference.terms.items():
        if isinstance(symbol, Extent) and (among := choices(e, symbol.memref)):
            # One of several arrays: as long as the first, where all of them are.
            first, *others = (extent_of(one, symbol.axis) for one in among)
            alike = [conditions_for(e, first, other) for other in others]
            rest = difference - Affine.of(symbol) * factor + first * factor
            alike.append(conditions_for(e, rest, Affine()))
            found = [forms for forms in alike if forms is not None]
            return set[Form]().union(*found) if len(found) == len(alike) else None
    # min(k, n) and min(k, m), in a loop over k, are equal where n and m are.
    differing = operands_that_differ(difference)
    return None if differing is None else conditions_for(e, *differing)


def operands_that_differ(difference: Affine) -> tuple[Affine, Affine] | None:
    """What the two maxima, or minima, are taken of that are subtracted, where it is one number of each."""
    if len(difference.terms) != 2 or difference.constant:
        return None
    (one, f), (other, g) = difference.terms.items()
    if (
        not isinstance(one, Term)
        or not isinstance(other, Term)
        or one.kind != other.kind
        or f != -g
    ):
        return None
    mine = [a for a in one.args if a not in other.args]
    theirs = [a for a in other.args if a not in one.args]
    if len(mine) != 1 or len(theirs) != 1 or len(one.args) != len(other.args):
        return None
    return mine[0], theirs[0]


def extents_compared(
    e: Emitter, left: SSAValue, right: SSAValue
) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The extents of arrays that loops carry which agree where the interiors of these arrays have agreed.

    The entry has compared the arrays themselves (`conditions_for`), from which more follows: a copy of one
    has the size of a copy of another.
    """
    differing = operands_that_differ(affine(left) - affine(right))
    if differing is None:
        return
    difference = differing[0] - differing[1]
    symbols = [s for s in difference.terms if isinstance(s, Extent) and s.memref in e.carried]
    if len(symbols) != 2 or len(difference.terms) != 2 or difference.constant:
        return
    if sum(difference.terms.values()) == 0:
        one, other = (e.extents(s.memref)[s.axis] for s in symbols)
        yield one, other


def choices(e: Emitter, memref: SSAValue) -> tuple[SSAValue, ...]:
    """The arrays one of which a loop carries, or a branch has chosen; empty for any other array.

    What stands for no array, behind an exception, is none of them: its extents mean nothing.
    """
    owner = memref.owner
    if memref in e.carried:
        return tuple(a for a in e.carried[memref].initial if a.type == memref.type)
    if isinstance(memref, OpResult) and isinstance(owner, scf.IfOp):
        ends = (region.block.last_op for region in owner.regions)
        chosen = (end.operands[memref.index] for end in ends if end is not None)
        return tuple(a for a in chosen if not is_placeholder(strip_casts(a)))
    if isinstance(owner, array.LoopOp):
        return tuple(a for a in owner.carried if a.type == memref.type)
    return ()


def form_of(e: Emitter, value: Affine) -> Form | None:
    """`value` as a form of the arguments' extents and ints; None where it depends on more."""
    numbers = list[tuple[int, Number]]()
    for symbol, factor in value.terms.items():
        number = number_of(e, symbol)
        if number is None:
            return None
        numbers.append((factor, number))
    return value.constant, tuple(sorted(numbers, key=repr))


def number_of(e: Emitter, symbol: SSAValue | Extent | Term) -> Number | None:
    """The symbol as a number that the entry can compute; None where it is none."""
    if isinstance(symbol, Term):
        forms = [form_of(e, argument) for argument in symbol.args]
        known = tuple(form for form in forms if form is not None)
        return (symbol.kind, known) if len(known) == len(forms) else None
    source, axis = (symbol.memref, symbol.axis) if isinstance(symbol, Extent) else (symbol, -1)
    if isinstance(source, BlockArgument) and source.owner is e.entry:
        return source.index, axis
    return None


def raise_mismatch(
    e: Emitter, wrong: Sequence[SSAValue], message: str, shapes: Sequence[Sequence[SSAValue]]
) -> None:
    """ValueError when one of the conditions holds."""
    if wrong:
        shown = [n for s in shapes for n in s]
        text = with_shapes(message, shapes)
        e.insert(array.RaiseIfOp(either(e, wrong), "ValueError", text, shown))


def with_shapes(message: str, shapes: Sequence[Sequence[SSAValue]]) -> str:
    return message.replace("{shapes}", "".join(shape_format(len(s)) + " " for s in shapes))


def _broadcast_axis(e: Emitter, extents: list[SSAValue], found: Mismatches) -> SSAValue:
    distinct: list[SSAValue] = []
    narrow = [n for n in extents if at_most_one(n)]
    wide = [n for n in extents if n not in narrow and constant_value(n) != 1]
    for n in sorted(wide or narrow, key=lambda n: constant_value(n) is None):
        if constant_value(n) != 1 and not any(equal(n, d) for d in distinct):
            distinct.append(n)
    if not distinct:
        return e.index(1)
    result = next((n for n in distinct if never_one(e, n)), distinct[0])
    for n in distinct:
        found.require(e, n, result, fixed=False)
        if n is not result and not never_one(e, result) and step_along(e, n, result) != 1:
            # What is 1 by accident is stretched to the others.
            result = e.emit(arith.SelectOp(compare(e, "eq", result, e.index(1)), n, result))
    for n in narrow if wide else ():
        found.require(e, n, result)
    return result


# --- Views, structurally ----------------------------------------------------------------------


# Note [Extents that are 1 by accident]
#
# `v[1:-1] = u[:-2] + u[2:]` on two arguments is the everyday statement of a stencil, and says
# nothing about their extents n and m that would make n - 2 and m - 2 provably equal. NumPy
# broadcasts when n - 2 is 1 at run time and m - 2 is not. To be ready for that, every view of u would
# need a step known only at run time: its footprint would be unknown to the analyses, and in-place
# updates would look like overlaps. So the function *assumes* that they are equal: a condition on its
# arguments, which its entry checks. Where the condition fails, the function is compiled once more,
# with nothing assumed: there such a view has the step `n == 1 ? 0 : 1`. Extents that no condition on
# the arguments makes equal (`x[i : i + k] * w`) have that step in any case.


def step_along(e: Emitter, extent: SSAValue, target: SSAValue) -> int | None:
    """The step of an array along an axis of a statement that has `target` points there: 1; 0 where it is
    broadcast; None where that is known only at run time (given that mismatches have raised)."""
    if constant_value(extent) == 1:
        return 0 if constant_value(target) != 1 else 1
    if equal(extent, target):
        return 1
    if at_most_one(extent):
        return 0
    if never_one(e, extent) or pair_of(extent, target) in e.agreed:
        return 1
    return None

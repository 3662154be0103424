"""Subscripts and extents as linear combinations of symbols.

`affine(%i1)` of `%i1 = arith.addi %i, %c1` is `%i + 1`. A symbol is an SSA value that is not computed
linearly, the extent of a memref (`Extent`, the same symbol for every `memref.dim` that asks for
it), or a term of a few nonlinear operations on such combinations (`Term`), equal for equal arguments.

An SSA value defined in a loop is a symbol within one iteration only: `dependence` keeps the
iterations apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from weakref import WeakKeyDictionary

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, i64
from xdsl.ir import Block, BlockArgument, SSAValue

from ...dialects import array
from .views import strip_casts

DEPTH = 60
"""Expressions deeper than this are taken as symbols."""


@dataclass(frozen=True)
class Extent:
    """The extent of dimension `axis` of a memref that is no view."""

    memref: SSAValue
    axis: int

    def __str__(self) -> str:
        return f"dim({name(self.memref)}, {self.axis})"


@dataclass(frozen=True)
class Term:
    """A nonlinear operation on linear combinations: "max", "min", "floordiv" (by a constant) or "mul"."""

    kind: str
    args: tuple[Affine, ...]

    def __hash__(self) -> int:
        known = self.__dict__
        if "hash" not in known:
            known["hash"] = hash((self.kind, self.args))
        return known["hash"]

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.args))})"


Symbol = SSAValue | Extent | Term


class Affine:
    """An immutable sum of integer multiples of symbols and a constant."""

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, terms: Mapping[Symbol, int] | None = None, constant: int = 0) -> None:
        self.terms: dict[Symbol, int] = {s: c for s, c in terms.items() if c} if terms else {}
        self.constant = constant
        self._hash: int | None = None

    @staticmethod
    def of(symbol: Symbol) -> Affine:
        return Affine({symbol: 1})

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return self._moved(other)
        if not other.terms:
            return self._moved(other.constant)
        terms = dict(self.terms)
        for symbol, factor in other.terms.items():
            terms[symbol] = terms.get(symbol, 0) + factor
        return Affine(terms, self.constant + other.constant)

    def _moved(self, by: int) -> Affine:
        """The sum with another constant."""
        if not by:
            return self
        made = Affine(constant=self.constant + by)
        made.terms = self.terms
        return made

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        return Affine({s: c * factor for s, c in self.terms.items()}, self.constant * factor)

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return self._moved(-other)
        if not other.terms:
            return self._moved(-other.constant)
        terms = dict(self.terms)
        for symbol, factor in other.terms.items():
            terms[symbol] = terms.get(symbol, 0) - factor
        return Affine(terms, self.constant - other.constant)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Affine)
            and self.constant == other.constant
            and self.terms == other.terms
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.constant, frozenset(self.terms.items())))
        return self._hash

    def __str__(self) -> str:
        parts: list[str] = []
        for symbol, factor in self.terms.items():
            shown = name(symbol) if isinstance(symbol, SSAValue) else str(symbol)
            sign = "- " if factor < 0 else "+ " if parts else ""
            parts.append(sign + (shown if abs(factor) == 1 else f"{abs(factor)} * {shown}"))
        if self.constant or not parts:
            sign = "- " if self.constant < 0 else "+ " if parts else ""
            parts.append(f"{sign}{abs(self.constant)}")
        return (
            " ".join(parts).replace("- ", "-", 1) if parts[0].startswith("- ") else " ".join(parts)
        )

    __repr__ = __str__


def name(value: SSAValue) -> str:
    """`%u`, or `%` and a position where the value has no name."""
    if value.name_hint:
        return f"%{value.name_hint}"
    return f"%arg{value.index}" if isinstance(value, BlockArgument) else "%_"


def affine(value: SSAValue) -> Affine:
    """`value`, an integer, as a linear combination."""
    return Subscripts().affine(value)


def equal_numbers(a: SSAValue, b: SSAValue) -> bool:
    """Whether two integers are certainly equal; what both are made of is looked at once."""
    forms = Subscripts()
    return a is b or forms.affine(a) == forms.affine(b)


def extent(memref: SSAValue, axis: int) -> Affine:
    """The extent of a dimension of any memref, views included."""
    return Subscripts().extent(memref, axis)


class Subscripts:
    """`affine` with a memory, for one function that does not change meanwhile."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Affine] = {}

    def affine(self, value: SSAValue, depth: int = 0) -> Affine:
        found = self._known.get(value)
        if found is None:
            if depth > DEPTH:
                return Affine.of(value)
            found = self._compute(value, depth + 1)
            if size(found) > LARGEST:
                found = Affine.of(value)
            self._known[value] = found
        return found

    def extent(self, memref: SSAValue, axis: int, depth: int = 0) -> Affine:
        memref = strip_casts(memref)
        assert isinstance(memref.type, MemRefType)
        known = memref.type.get_shape()[axis]
        if known != DYNAMIC_INDEX:
            return Affine(constant=known)
        owner = memref.owner
        if isinstance(owner, array.AnyView | array.AllocOp):
            return self.affine(owner.extents[axis], depth)
        return Affine.of(Extent(memref, axis))

    def _compute(self, value: SSAValue, depth: int) -> Affine:
        owner = value.owner
        if isinstance(owner, Block):
            return Affine.of(counter(value))
        constant = array.constant_value(value)
        if constant is not None:
            return Affine(constant=constant)
        if not isinstance(value.type, IndexType) and not isinstance(owner, arith.IndexCastOp):
            return Affine.of(value)  # NumPy's integers wrap around; a Python int does not.
        match owner:
            case arith.AddiOp() | array.CheckedAddOp():
                return self.affine(owner.lhs, depth) + self.affine(owner.rhs, depth)
            case arith.SubiOp() | array.CheckedSubOp():
                return self.affine(owner.lhs, depth) - self.affine(owner.rhs, depth)
            case arith.MuliOp() | array.CheckedMulOp():
                return product(self.affine(owner.lhs, depth), self.affine(owner.rhs, depth))
            case arith.MaxSIOp():
                return extreme("max", self.affine(owner.lhs, depth), self.affine(owner.rhs, depth))
            case arith.MinSIOp():
                return extreme("min", self.affine(owner.lhs, depth), self.affine(owner.rhs, depth))
            case arith.SelectOp():
                kind = kind_of_extreme(owner)
                if kind is None:
                    return Affine.of(value)
                return extreme(kind, self.affine(owner.lhs, depth), self.affine(owner.rhs, depth))
            case arith.FloorDivSIOp() | array.FloorDivOp():
                return self._division(value, owner.lhs, owner.rhs, depth)
            case arith.CeilDivSIOp():
                up = self._division(value, owner.lhs, owner.rhs, depth, negated=True)
                return up if up == Affine.of(value) else -up
            case array.FloorModOp():
                lhs, rhs = self.affine(owner.lhs, depth), self.affine(owner.rhs, depth)
                quotient = self._division(value, owner.lhs, owner.rhs, depth)
                if quotient == Affine.of(value):
                    return quotient
                return lhs - quotient * rhs.constant
            case arith.IndexCastOp():
                # Between index and i64 the number stays what it is; narrower ones stay symbols.
                wide = is_wide(owner.input) and is_wide(value)
                return self.affine(owner.input, depth) if wide else Affine.of(value)
            case array.IndexOp():
                sign = owner.sign.data
                if sign == "nonneg":
                    return self.affine(owner.index, depth)
                if sign == "negative":
                    return self.affine(owner.index, depth) + self.affine(owner.extent, depth)
                return Affine.of(value)
            case memref.DimOp():
                axis = array.constant_value(owner.index)
                return Affine.of(value) if axis is None else self.extent(owner.source, axis, depth)
            case _:
                return Affine.of(value)

    def _division(
        self, value: SSAValue, lhs: SSAValue, rhs: SSAValue, depth: int, *, negated: bool = False
    ) -> Affine:
        """lhs // rhs (or -lhs // rhs) for a positive constant rhs; else `value` itself as a symbol."""
        top, bottom = self.affine(lhs, depth), self.affine(rhs, depth)
        if not bottom.is_constant or bottom.constant <= 0:
            return Affine.of(value)
        return floor_division(-top if negated else top, bottom.constant)


def size(a: Affine) -> int:
    """How many symbols a form has, written out: nested terms double with each number that is used twice."""
    return sum(1 + sum(map(size, s.args)) if isinstance(s, Term) else 1 for s in a.terms)


def is_wide(value: SSAValue) -> bool:
    """True for types that hold 64-bit integers."""
    return value.type in (IndexType(), i64)


def counter(value: SSAValue) -> SSAValue:
    """A loop's counter as its body sees it, for the argument of the condition region too."""
    if isinstance(value, BlockArgument) and value.index == 0:
        loop = value.owner.parent_op()
        if isinstance(loop, array.LoopOp):
            return loop.induction
    return value


def product(a: Affine, b: Affine) -> Affine:
    if a.is_constant:
        return b * a.constant
    if b.is_constant:
        return a * b.constant
    (c, left), (d, right) = factors(a), factors(b)
    total, *rest = sorted([*left, *right], key=rank)
    for factor in rest:
        total = Affine.of(Term("mul", (total, factor)))
    return total * (c * d)


def factors(a: Affine) -> tuple[int, list[Affine]]:
    """A constant and what it is multiplied with: products are equal in whatever order they were made."""
    if a.constant or len(a.terms) != 1:
        return 1, [a]
    ((symbol, constant),) = a.terms.items()
    if not isinstance(symbol, Term) or symbol.kind != "mul":
        return constant, [Affine.of(symbol)]
    return constant, [f for part in symbol.args for f in factors(part)[1]]


def ordered(a: Affine, b: Affine) -> tuple[Affine, Affine]:
    """The two operands of a commutative operation in an order that does not depend on how they came."""
    return (a, b) if rank(a) <= rank(b) else (b, a)


_serials: WeakKeyDictionary[SSAValue, int] = WeakKeyDictionary()
_serial = count()

Rank = tuple[object, ...]


def rank(a: Affine) -> Rank:
    """What puts sums in order: the same in all processes, as hashes are not."""
    return a.constant, tuple(
        sorted((rank_of(symbol), factor) for symbol, factor in a.terms.items())
    )


def rank_of(symbol: Symbol) -> Rank:
    """The same of symbols: values in the order in which they were first asked for."""
    match symbol:
        case Extent(memref, axis):
            return 1, rank_of(memref), axis
        case Term(kind, args):
            return 2, kind, tuple(map(rank, args))
        case _:
            if (serial := _serials.get(symbol)) is None:
                serial = _serials[symbol] = next(_serial)
            return 0, serial


def extreme(kind: str, a: Affine, b: Affine) -> Affine:
    difference = a - b
    if difference.is_constant or is_natural(difference):
        pick_a = (difference.constant >= 0) == (kind == "max")
        return a if pick_a else b
    if is_natural(-difference):
        return b if kind == "max" else a
    return Affine.of(Term(kind, ordered(a, b)))


def kind_of_extreme(op: arith.SelectOp) -> str | None:
    """Whether of two numbers it is always the greater one, or the lesser."""
    asked = op.cond.owner
    if not isinstance(asked, arith.CmpiOp):
        return None
    greater = GREATER.get(asked.predicate.value.data)
    if greater is None or {asked.lhs, asked.rhs} != {op.lhs, op.rhs}:
        return None
    return "max" if greater == (asked.lhs is op.lhs) else "min"


GREATER = {2: False, 3: False, 4: True, 5: True}
"""Of the signed predicates of `arith.cmpi` that order numbers: whether they ask for a greater one."""


def replaced(form: Affine, numbers: Mapping[Symbol, Affine]) -> Affine:
    """The combination with other numbers in the place of some symbols, in its terms as well."""
    total = Affine(constant=form.constant)
    for symbol, factor in form.terms.items():
        total = total + number_of(symbol, numbers) * factor
    return total


def number_of(symbol: Symbol, numbers: Mapping[Symbol, Affine]) -> Affine:
    if symbol in numbers:
        return numbers[symbol]
    if not isinstance(symbol, Term):
        return Affine.of(symbol)
    a, b = (replaced(arg, numbers) for arg in symbol.args)
    match symbol.kind:
        case "floordiv":
            return floor_division(a, b.constant)
        case "mul":
            return product(a, b)
        case _:
            return extreme(symbol.kind, a, b)


def is_natural(form: Affine) -> bool:
    """True for a sum of extents and counters, which are never negative."""
    return form.constant >= 0 and all(f > 0 and is_count(s) for s, f in form.terms.items())


def is_positive(form: Affine) -> bool:
    """True for a sum of such numbers and more, and for the greater of it and another."""
    if form.constant >= 1 or len(form.terms) != 1:
        return form.constant >= 1 and is_natural(form)
    ((symbol, factor),) = form.terms.items()
    if not isinstance(symbol, Term) or symbol.kind != "max":
        return False
    return factor > 0 and form.constant == 0 and any(map(is_positive, symbol.args))


def is_count(symbol: Symbol) -> bool:
    if isinstance(symbol, BlockArgument) and symbol.index == 0:
        return isinstance(symbol.owner.parent_op(), array.LoopOp)
    return isinstance(symbol, Extent)


MOST_FORMS = 256
"""Of an extent that takes more forms than this to bound nothing is said: sums have one for each choice."""


def never_above(form: Affine, ceiling: int) -> bool:
    """True when form <= ceiling is certain: `max(min(k + 1, n) - k, 0)` is never above 1."""
    known: dict[Affine, bool] = {}

    def is_below(form: Affine) -> bool:
        if form.is_constant:
            return form.constant <= ceiling
        if form not in known:
            known[form] = False
            known[form] = len(known) < MOST_FORMS and any(
                all(map(is_below, left)) if every else any(map(is_below, left))
                for every, left in without_choices(form)
            )
        return known[form]

    return is_below(form)


def without_choices(form: Affine) -> Iterator[tuple[bool, Iterator[Affine]]]:
    """For each "max" or "min" in a form whether all choices must be bounded, and the choices."""
    for symbol, factor in form.terms.items():
        if factor == 1 and isinstance(symbol, Term) and symbol.kind in ("max", "min"):
            rest = form - Affine({symbol: 1})
            yield symbol.kind == "max", (rest + argument for argument in symbol.args)


def floor_division(top: Affine, bottom: int) -> Affine:
    """top // bottom, the multiples of `bottom` taken out."""
    whole = Affine({s: c // bottom for s, c in top.terms.items() if c % bottom == 0})
    rest = Affine({s: c for s, c in top.terms.items() if c % bottom}, top.constant)
    if rest.is_constant:
        return whole + rest.constant // bottom
    whole = whole + rest.constant // bottom
    rest = Affine(rest.terms, rest.constant % bottom)
    return whole + Affine.of(Term("floordiv", (rest, Affine(constant=bottom))))


LARGEST = 64
"""A form of more symbols is not followed: the number is one of its own."""

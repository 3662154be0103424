"""What a scalar rule is made of, and the scalar code it is written in.

It has one `Term` for each operand of its op: the values it *needs* from the primal (names of
operands or results) and the operand's cotangent, given the result's cotangent and those values.
Linear ops need nothing. Which terms are used depends on which operands are active, so a product
with one active factor needs the other factor only.

*Strong zeros*: a cotangent of 0 times a partial that is not finite is 0 (`Scalars.times`, `over`).
It is what makes `np.where(x > 0, np.sqrt(x), 0.0)` differentiable at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import TypeAlias, cast

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad, array

ADJOINT = "ad.adjoint"
"""Marks the ops of adjoint code, which may contract and reassociate."""
COLLECTED = "ad.collected"
"""Marks a product of the adjoint that stands for a sum: no sum is contracted with it, for none is with a sum.
So it does not matter whether a map adds it to an element, or to what another map has computed."""
EDGE = "ad.edge"
"""Marks the comparisons of an adjoint that ask whether a value is at an edge, or on which side of a kink."""


def is_bound(op: Operation) -> bool:
    """Whether a minimum, a maximum or a comparison has a constant side: as a clip, and relu, have."""
    return any(isinstance(value.owner, arith.ConstantOp) for value in op.operands[:2])


def mark_edge(op: Operation) -> None:
    op.attributes[EDGE] = UnitAttr()


Linear: TypeAlias = "Callable[[Scalars, SSAValue], SSAValue]"
ByOne: TypeAlias = "Callable[[Scalars, SSAValue, SSAValue], SSAValue]"
ByTwo: TypeAlias = "Callable[[Scalars, SSAValue, SSAValue, SSAValue], SSAValue]"


@dataclass(frozen=True)
class Term:
    """How one operand's cotangent is made: `formula(scalars, result_bar, *needed values)`."""

    needs: tuple[str, ...]
    formula: Linear | ByOne | ByTwo

    def cotangent(self, s: Scalars, bar: SSAValue, values: list[SSAValue]) -> SSAValue:
        """The operand's cotangent; `values` are the needed ones, in order."""
        return cast("Callable[..., SSAValue]", self.formula)(s, bar, *values)


@dataclass
class Scalars:
    """Emits scalar adjoint code through `insert`, which places and locates an op.

    A constant exists once in each block.
    """

    insert: Callable[[Operation], None]
    constants: dict[tuple[Block, float, Attribute], SSAValue] = field(default_factory=dict)

    def emit(self, op: Operation) -> SSAValue:
        op.attributes[ADJOINT] = UnitAttr()
        self.insert(op)
        return op.results[0]

    def constant(self, value: float, like: SSAValue | Attribute) -> SSAValue:
        type_ = like.type if isinstance(like, SSAValue) else like
        op = float_constant(value, type_)
        self.insert(op)
        block = op.parent_block()
        assert block is not None
        first = self.constants.setdefault((block, value, type_), op.result)
        if first is not op.result:
            op.detach()
            op.erase()
        return first

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.AddfOp(a, b))

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.SubfOp(a, b))

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.MulfOp(*self.alike(a, b)))

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.DivfOp(*self.alike(a, b)))

    def alike(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Both operands of a product: the number among them for each derivative of a vector of them."""
        if isinstance(a.type, VectorType) and not isinstance(b.type, VectorType):
            return a, self.emit(vector.BroadcastOp(b, a.type))
        if isinstance(b.type, VectorType) and not isinstance(a.type, VectorType):
            return self.emit(vector.BroadcastOp(a, b.type)), b
        return a, b

    def neg(self, a: SSAValue) -> SSAValue:
        return self.emit(arith.NegfOp(a))

    def sqrt(self, a: SSAValue) -> SSAValue:
        return self.emit(math.SqrtOp(a))

    def square(self, a: SSAValue) -> SSAValue:
        return self.mul(a, a)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.CmpfOp(a, b, predicate))

    def is_zero(self, a: SSAValue) -> SSAValue:
        return self.compare("oeq", a, self.constant(0.0, a))

    def at_edge(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """A comparison that decides nothing but a partial: one of a function that is continuous where the
        operands are equal, so that another last bit of `a` gives a derivative that is as good."""
        op = arith.CmpfOp(a, b, predicate)
        mark_edge(op)
        return self.emit(op)

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.SelectOp(condition, a, b))

    def zero_where(self, condition: SSAValue, a: SSAValue) -> SSAValue:
        return self.select(condition, self.constant(0.0, a), a)

    def times(self, bar: SSAValue, partial: SSAValue) -> SSAValue:
        """`bar * partial` with a strong zero; a plain product where the partial is certainly finite."""
        if is_finite(partial):
            return self.mul(bar, partial)
        return self.emit(ad.MulOp(*self.alike(bar, partial)))

    def times_both(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """`a * b` where a zero of either is strong."""
        return self.emit(ad.MulOp(*self.alike(a, b), both=True))

    def over(self, bar: SSAValue, divisor: SSAValue) -> SSAValue:
        """`bar / divisor` with a strong zero."""
        plain = is_finite(divisor) and constant_float(divisor) not in (0.0, None)
        if plain:
            return self.div(bar, divisor)
        return self.emit(ad.DivOp(*self.alike(bar, divisor)))

    def scaled(self, bar: SSAValue, factor: float) -> SSAValue:
        return self.mul(bar, self.constant(factor, bar))

    def cast(self, a: SSAValue, to: Attribute) -> SSAValue:
        if isinstance(a.type, VectorType):
            to = VectorType(cast(AnyFloat, to), a.type.shape)
        return a if a.type == to else self.emit(array.CastOp(a, to))


def float_constant(value: float, type_: Attribute) -> arith.ConstantOp:
    """A float, or a vector that holds it everywhere."""
    if isinstance(type_, VectorType):
        return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(type_, [value]))
    return arith.ConstantOp(FloatAttr(value, cast(AnyFloat, type_)))


def constant_float(value: SSAValue) -> float | None:
    """The float that `value` certainly is, everywhere, or None."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    match owner.value:
        case FloatAttr() as number:
            return number.value.data
        case DenseIntOrFPElementsAttr() as numbers if numbers.is_splat():
            return cast(float, next(numbers.iter_values()))
        case _:
            return None


def is_finite(value: SSAValue) -> bool:
    """True where `value` is certainly neither infinite nor NaN: a constant, an integer, or its opposite."""
    match value.owner:
        case arith.ConstantOp():
            number = constant_float(value)
            return number is not None and isfinite(number)
        case array.CastOp() as op:
            return isinstance(op.value.type, IndexType | IntegerType)
        case arith.SIToFPOp() | arith.UIToFPOp():
            return True
        case arith.NegfOp() | math.AbsFOp() as op:
            return is_finite(op.operands[0])
        case _:
            return False


def pass_on(s: Scalars, bar: SSAValue) -> SSAValue:
    return bar


LINEAR = Term((), pass_on)
"""The cotangent passes unchanged."""


def index_constant(value: int) -> arith.ConstantOp:
    return arith.ConstantOp(array.index_number(value))


def true_constant() -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(1, i1))

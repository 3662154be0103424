"""The stages of a map that computes numbers and vectors of tangents: loops over the same points, one by one.

::

    array.map ... {                          numbers     p = exp(x);  y = p;  tame &= p is finite
      p = math.exp %x                        vectors     y_dot = x_dot * p            where all are tame
      y_dot = ad.mul %x_dot, broadcast(p)                y_dot = x_dot * (x_dot == 0 ? 0 : p)   elsewhere
    }

A loop over vectors is none that LLVM would vectorize over points, so what is numbers has a loop of its own,
and hands on through stack buffers. There it is cheap to see, too, which partials are finite: products with
strong zeros are then plain products. And quotients are products with reciprocals, one for all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad
from .kernel_state import KernelState, value_type
from .scalar_text import fast_flags, float_of
from .vectors_to_llvm import spread

LEAST_NORMAL = {"double": 2.0**-1022, "float": 2.0**-126}
"""What a reciprocal must not be below: such have fewer digits."""


Quotients = dict[Operation, tuple[str, str]]
"""Quotients of numbers, with their divisors and the reciprocals of these (`invariant_divisors`)."""


@dataclass(frozen=True)
class Guards:
    """The products and quotients with strong zeros, each with the number that vectors are multiplied by."""

    factors: dict[Operation, SSAValue] = field(default_factory=dict[Operation, SSAValue])
    divisors: dict[Operation, SSAValue] = field(default_factory=dict[Operation, SSAValue])

    def __bool__(self) -> bool:
        return bool(self.factors or self.divisors)


@dataclass(frozen=True)
class Stage:
    """The part of a map that one loop over points computes; by default all of it."""

    wide: bool | None = None
    """Whether it is what has vectors for elements, or what has numbers."""
    taken: frozenset[SSAValue] = frozenset()
    """Numbers that it reads from the buffers of the stage before."""
    guards: Guards = Guards()
    tame: bool = False
    """Whether all numbers of the guards are finite here, and normal where they are divided by."""
    quotients: Quotients = field(default_factory=Quotients)
    """What is divided by a product here."""

    def does(self, element: Attribute) -> bool:
        """Whether values of this type are computed here."""
        return self.wide is None or self.wide == isinstance(element, VectorType)

    @property
    def checks(self) -> bool:
        """Whether it is here that numbers are looked at."""
        return self.wide is False and bool(self.guards)


WHOLE = (Stage(),)


def stages_of(
    body: Block, stores_numbers: bool, overwritten: Sequence[SSAValue]
) -> tuple[Stage, ...]:
    """Numbers before vectors, where a map has both, and no number is of a vector.

    `overwritten` are the elements of inputs that storing numbers may overwrite.
    """
    made = {op: isinstance(op.results[0].type, VectorType) for op in body.ops if op.results}
    wide = [op for op, is_wide in made.items() if is_wide]
    computed = {
        op for op, is_wide in made.items() if not is_wide and not isinstance(op, arith.ConstantOp)
    }
    guards = guards_of(wide)
    if any(isinstance(o.type, VectorType) for op in computed for o in op.operands):
        return WHOLE
    if not wide or not (computed or stores_numbers or guards):
        return WHOLE
    used = {o for op in wide for o in op.operands if not isinstance(o.type, VectorType)}
    taken = frozenset(v for v in used if v.owner in computed or v in overwritten)
    return Stage(wide=False, guards=guards), Stage(wide=True, taken=taken, guards=guards)


def guards_of(wide: Sequence[Operation]) -> Guards:
    """The products of a vector and a number, and the quotients."""
    guards = Guards()
    for op in wide:
        if not isinstance(op, ad.MulOp | ad.DivOp) or not isinstance(
            op.rhs.owner, vector.BroadcastOp
        ):
            continue
        if isinstance(op, ad.DivOp):
            guards.divisors[op] = op.rhs.owner.source
        elif op.both is None:
            guards.factors[op] = op.rhs.owner.source
    return guards


def in_order(body: Block, values: frozenset[SSAValue]) -> Iterator[SSAValue]:
    """The values of a body in its order: the same text for the same map."""
    yield from (a for a in body.args if a in values)
    yield from (r for op in body.ops for r in op.results if r in values)


def wild(state: KernelState, guards: Guards, reciprocals: dict[SSAValue, str]) -> str:
    """1 where a number of the guards is none that a plain product may have, as an i64.

    `reciprocals` takes those of divisors.
    """
    text, found = state.text, ""
    for value in dict.fromkeys((*guards.factors.values(), *guards.divisors.values())):
        type_ = value_type(value.type)
        fabs = state.intrinsic(f"llvm.fabs.{'f64' if type_ == 'double' else 'f32'}", type_, type_)
        tests = (
            [(state.scalar(value), "uge", float("inf"))] if value in guards.factors.values() else []
        )
        if value in guards.divisors.values():
            reciprocals[value] = reciprocal(state, value)
            tests.append((reciprocals[value], "uge", float("inf")))
            tests.append((reciprocals[value], "ult", LEAST_NORMAL[type_]))
        for number, predicate, bound in tests:
            size = text.value(f"call {type_} @{fabs}({type_} {number})")
            bad = text.value(f"fcmp {predicate} {type_} {size}, {float_of(bound, value.type)}")
            found = text.value(f"or i1 {found}, {bad}") if found else bad
    return text.value(f"zext i1 {found} to i64")


def reciprocal(state: KernelState, value: SSAValue) -> str:
    type_ = value_type(value.type)
    return state.text.value(f"fdiv {type_} {float_of(1.0, value.type)}, {state.scalar(value)}")


def tame_product(state: KernelState, op: Operation, factor: str) -> None:
    """The vector times a number, given as a vector, or as one for all lanes."""
    result, type_ = op.results[0], value_type(op.results[0].type)
    bar = state.scalar(op.operands[0])
    flags = fast_flags(state, op)
    state.scalars[result] = state.text.value(f"fmul{flags} {type_} {bar}, {factor}")


def emit_wide(
    state: KernelState, op: Operation, stage: Stage, reciprocals: dict[SSAValue, str]
) -> None:
    """An op on vectors, without masks where numbers are tame."""
    if stage.tame and op in stage.guards.factors:
        tame_product(state, op, state.scalar(op.operands[1]))
    elif stage.tame and op in stage.guards.divisors:
        divisor = stage.guards.divisors[op]
        found = reciprocals.get(divisor) or reciprocal(state, divisor)
        tame_product(state, op, spread(state, found, divisor.type, op.results[0].type))
    else:
        state.emit(op)

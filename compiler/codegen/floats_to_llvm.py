"""Arithmetic of floats as LLVM instructions: see `scalars_to_llvm`.

Floating point: no flags by default, so values are exactly those of the ops in their order. An op that
carries `ad.adjoint` may be contracted and reassociated, and a quotient by a constant be a product; all may
under `fastmath`.

Adjoint code contracts a sum with a product here, by what is computed from what alone. LLVM, which might,
would decide it by what else is around; so it may reorder no sums but those of a loop. The same code then
computes the same numbers wherever it stands: in a loop, or in the function of a step that is run again.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from math import inf

from xdsl.dialects import arith, memref, vector
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array
from ..analysis.additions import is_cell, place_of
from ..rules.table import ADJOINT, COLLECTED, constant_float
from .kernel_state import KernelState, number_type, value_type
from .leaf_loops import is_outside
from .scalar_text import (
    FREE_SUM,
    Rule,
    fast_flags,
    float_of,
    float_text,
    negated,
    truth_type,
    vector_suffix,
)


def float_binary(instruction: str) -> Rule:
    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = value_type(op.results[0].type)
        return state.text.value(
            f"{instruction}{fast_flags(state, op)} {type_} {args[0]}, {args[1]}"
        )

    return rule


def product(state: KernelState, op: Operation, args: list[str]) -> str:
    return written_product(state, op, args[0], args[1])


def written_product(state: KernelState, op: Operation, left: str, right: str) -> str:
    """A product, with which a sum may be contracted if it is the adjoint's."""
    type_ = value_type(op.results[0].type)
    made = state.text.value(f"fmul{fast_flags(state, op)} {type_} {left}, {right}")
    if ADJOINT in op.attributes:
        state.last_bits = state.last_bits.more(work=1)
    if ADJOINT in op.attributes and COLLECTED not in op.attributes:
        state.products[op.results[0]] = made, left, right
    return made


LARGEST_DIVISOR = {"double": 2.0**1000, "float": 2.0**100}
"""Constants up to that size, and down to its reciprocal, have one without loss of digits."""


def quotient(state: KernelState, op: Operation, args: list[str]) -> str:
    """A quotient; in adjoint code that by a constant is a product with the reciprocal."""
    divisor, number = op.operands[1], number_type(op.results[0].type)
    if isinstance(divisor.owner, vector.BroadcastOp):
        divisor = divisor.owner.source
    known = constant_float(divisor) if "ad.adjoint" in op.attributes else None
    largest = LARGEST_DIVISOR.get(value_type(number), 0.0)
    if known is not None and largest and 1.0 / largest <= abs(known) <= largest:
        return written_product(state, op, args[0], float_of(1.0 / known, op.results[0].type))
    by = constant_float(divisor) if "fma" in state.features and not state.fastmath else None
    if by is not None and is_odd(by, value_type(number)):
        waits = state.recurrent and value_type(op.results[0].type) == "double"
        return (in_two_parts if waits else corrected)(state, op, args[0], by)
    return float_binary("fdiv")(state, op, args)


ODD = {"double": 2.0**50, "float": 2.0**21}
"""Odd integers below it are divided by without a division: see Note [Quotients by constants]."""


def is_odd(divisor: float, type_: str) -> bool:
    return 1.0 < abs(divisor) < ODD.get(type_, 0.0) and abs(divisor) % 2.0 == 1.0


def corrected(state: KernelState, op: Operation, value: str, divisor: float) -> str:
    """The quotient by an odd integer, to the last bit: see Note [Quotients by constants]."""
    text, result = state.text, op.results[0].type
    type_ = value_type(result)
    by, reciprocal = float_of(divisor, result), float_of(1.0 / divisor, result)
    suffix = {"double": "f64", "float": "f32"}.get(type_) or vector_suffix(type_)
    fma = state.intrinsic(f"llvm.fma.{suffix}", type_, f"{type_}, {type_}, {type_}")
    near = text.value(f"fmul {type_} {value}, {reciprocal}")
    less = negated(state, type_, near)
    rest = text.value(f"call {type_} @{fma}({type_} {less}, {type_} {by}, {type_} {value})")
    nearest = text.value(
        f"call {type_} @{fma}({type_} {rest}, {type_} {reciprocal}, {type_} {near})"
    )
    wrong = text.value(f"fcmp one {type_} {rest}, {float_of(0.0, result)}")
    return text.value(f"select {truth_type(result)} {wrong}, {type_} {nearest}, {type_} {near}")


LEAST_IN_PARTS = 2.0**-800
"""Of smaller numbers the product with the second part has too few digits."""


def in_two_parts(state: KernelState, op: Operation, value: str, divisor: float) -> str:
    """The same, in the time of two products: see Note [Quotients by constants].

    Zeros, infinities, NaNs, and numbers too small are divided, in a cold block: that is more to do, and
    less to wait for.
    """
    text, first = state.text, 1.0 / divisor
    second = float(1 / Fraction(divisor) - Fraction(first))
    fma = state.intrinsic("llvm.fma.f64", "double", "double, double, double")
    fabs = state.intrinsic("llvm.fabs.f64", "double", "double")
    size = text.value(f"bitcast double {text.value(f'call double @{fabs}(double {value})')} to i64")
    least, infinite = (bits_of(number) for number in (LEAST_IN_PARTS, inf))
    beyond = text.value(f"sub i64 {size}, {least}")
    odd = text.value(f"icmp uge i64 {beyond}, {infinite - least}")
    weights = text.metadata.node('!"branch_weights", i32 1, i32 1048575')
    rest = text.value(f"fmul double {value}, {float_text(second, 'double')}")
    factor = float_text(first, "double")
    found = text.value(f"call double @{fma}(double {value}, double {factor}, double {rest})")
    before, cold, on = text.block, text.label("divided"), text.label("on")
    text.do(f"br i1 {odd}, label %{cold}, label %{on}, !prof {weights}")
    with text.in_cold(cold):
        exact = text.value(f"fdiv double {value}, {float_text(divisor, 'double')}")
        text.branch(on)
    text.start(on)
    return text.value(f"phi double [ {found}, %{before} ], [ {exact}, %{cold} ]")


def bits_of(number: float) -> int:
    return int.from_bytes(struct.pack("<d", number), "little")


def sum_(state: KernelState, op: Operation, args: list[str]) -> str:
    """A sum or a difference."""
    type_, flags = value_type(op.results[0].type), fast_flags(state, op)
    plus = isinstance(op, arith.AddfOp)
    if "ad.adjoint" in op.attributes and not state.fastmath:
        state.last_bits = state.last_bits.more(work=1)
        if plus and adds_in_place(op):
            flags = FREE_SUM
            state.last_bits = state.last_bits.more(sums=1)
        for k in (1, 0):
            factors = contracted(state, op, k, args[k])
            if factors is not None:
                left, right = factors
                other = args[1 - k]
                if not plus and k:
                    left = negated(state, type_, left)
                elif not plus:
                    other = negated(state, type_, other)
                return multiply_add(state, type_, flags, (left, right), other)
    return state.text.value(f"{'fadd' if plus else 'fsub'}{flags} {type_} {args[0]}, {args[1]}")


def multiply_add(
    state: KernelState, type_: str, flags: str, factors: tuple[str, str], other: str
) -> str:
    suffix = {"double": "f64", "float": "f32"}.get(type_) or vector_suffix(type_)
    name = state.intrinsic(f"llvm.fmuladd.{suffix}", type_, f"{type_}, {type_}, {type_}")
    shown = ", ".join(f"{type_} {v}" for v in (*factors, other))
    return state.text.value(f"call{flags} {type_} @{name}({shown})")


def contracted(state: KernelState, op: Operation, k: int, shown: str) -> tuple[str, str] | None:
    """The factors of an operand that is a product of the same block."""
    return factors_of(state, op.operands[k], shown, op)


def factors_of(
    state: KernelState, value: SSAValue, shown: str, user: Operation
) -> tuple[str, str] | None:
    """The factors of a value, as it was written, that is a product in the block of its user."""
    found, made = state.products.get(value), value.owner
    if found is None or found[0] != shown or not isinstance(made, Operation):
        return None
    return found[1:] if made.parent is user.parent else None


def adds_in_place(op: arith.AddfOp) -> bool:
    """Whether terms are added to a variable, or to an element that is the same in each iteration."""
    last = op
    while isinstance(user := only_user(last), arith.AddfOp) and is_of_adjoint(user, op):
        last = user
    store = only_user(last)
    if not isinstance(store, memref.StoreOp) or store.value is not last.result:
        return False
    if not continues(op, store):
        return False
    loop = op.parent_op()
    return is_cell(store.memref) or (
        isinstance(loop, array.LoopOp)
        and all(is_outside(v, loop) for v in (store.memref, *store.indices))
    )


def is_of_adjoint(other: Operation, op: Operation) -> bool:
    """Whether another sum, in the same block, may be reordered with this one."""
    return "ad.adjoint" in other.attributes and other.parent is op.parent


def only_user(op: Operation) -> Operation | None:
    return next(iter(op.results[0].uses)).operation if op.results[0].has_one_use() else None


def continues(op: arith.AddfOp, store: memref.StoreOp) -> bool:
    """Whether a sum begins with what was where it is stored, on which no term depends.

    (LLVM would make one product of `s + 0.1 * s`, in a loop and not in a step.)
    """
    for operand in op.operands:
        owner = operand.owner
        if isinstance(owner, memref.LoadOp) and place_of(owner) == place_of(store):
            return owner.res.has_one_use()
        if (
            isinstance(owner, arith.AddfOp)
            and is_of_adjoint(owner, op)
            and only_user(owner) is op
            and continues(owner, store)
        ):
            return True
    return False


def strong_product(state: KernelState, op: Operation, args: list[str]) -> str:
    """`ad.mul`: the partial is masked, not the product, which may then be contracted with an addition."""
    assert isinstance(op, ad.MulOp)
    text, type_, (bar, partial) = state.text, value_type(op.result.type), args
    if state.plain:
        return written_product(state, op, bar, partial)
    zero, truth = float_of(0.0, op.result.type), truth_type(op.result.type)
    is_zero = text.value(f"fcmp oeq {type_} {bar}, {zero}")
    masked = text.value(f"select {truth} {is_zero}, {type_} {zero}, {type_} {partial}")
    if op.both is not None:
        absorbs = text.value(f"fcmp oeq {type_} {partial}, {zero}")
        bar = text.value(f"select {truth} {absorbs}, {type_} {zero}, {type_} {bar}")
    return written_product(state, op, bar, masked)


def strong_quotient(state: KernelState, op: Operation, args: list[str]) -> str:
    """`ad.div`."""
    text, type_, (bar, divisor) = state.text, value_type(op.results[0].type), args
    result = op.results[0].type
    quotient = text.value(f"fdiv{fast_flags(state, op)} {type_} {bar}, {divisor}")
    if state.plain:
        return quotient
    zero, truth = float_of(0.0, result), truth_type(result)
    is_zero = text.value(f"fcmp oeq {type_} {bar}, {zero}")
    return text.value(f"select {truth} {is_zero}, {type_} {zero}, {type_} {quotient}")


def negf(state: KernelState, op: Operation, args: list[str]) -> str:
    type_ = value_type(op.results[0].type)
    return state.text.value(f"fneg{fast_flags(state, op)} {type_} {args[0]}")


def divmod_of_floats(state: KernelState, type_: str, args: list[str]) -> tuple[str, str]:
    """Quotient and remainder, step by step as NumPy's `npy_divmod` (and CPython) take them."""
    text, (a, b) = state.text, args
    zero, half, one = (float_text(x, type_) for x in (0.0, 0.5, 1.0))
    suffix = "f64" if type_ == "double" else "f32"
    copysign = state.intrinsic(f"llvm.copysign.{suffix}", type_, f"{type_}, {type_}")
    floor_of = state.intrinsic(f"llvm.floor.{suffix}", type_, type_)

    def value(instruction: str) -> str:
        return text.value(instruction)

    def select(condition: str, x: str, y: str) -> str:
        return value(f"select i1 {condition}, {type_} {x}, {type_} {y}")

    plain = value(f"fdiv {type_} {a}, {b}")
    rest = value(f"frem {type_} {a}, {b}")
    difference = value(f"fsub {type_} {a}, {rest}")
    quotient = value(f"fdiv {type_} {difference}, {b}")
    has_rest = value(f"fcmp une {type_} {rest}, {zero}")
    b_negative = value(f"fcmp olt {type_} {b}, {zero}")
    rest_negative = value(f"fcmp olt {type_} {rest}, {zero}")
    mixed = value(f"xor i1 {b_negative}, {rest_negative}")
    wrong = value(f"and i1 {has_rest}, {mixed}")
    moved = value(f"fadd {type_} {rest}, {b}")
    lower = value(f"fsub {type_} {quotient}, {one}")
    signed_zero = value(f"call {type_} @{copysign}({type_} {zero}, {type_} {b})")
    modulus = select(wrong, moved, select(has_rest, rest, signed_zero))
    quotient = select(wrong, lower, quotient)
    nonzero = value(f"fcmp une {type_} {quotient}, {zero}")
    floor = value(f"call {type_} @{floor_of}({type_} {quotient})")
    excess = value(f"fsub {type_} {quotient}, {floor}")
    too_low = value(f"fcmp ogt {type_} {excess}, {half}")
    above = value(f"fadd {type_} {floor}, {one}")
    rounded = select(too_low, above, floor)
    zero_quotient = value(f"call {type_} @{copysign}({type_} {zero}, {type_} {plain})")
    floored = select(nonzero, rounded, zero_quotient)
    by_zero = value(f"fcmp oeq {type_} {b}, {zero}")
    return select(by_zero, plain, floored), select(by_zero, rest, modulus)


def compare_floats(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, arith.CmpfOp)
    predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
    return state.text.value(f"fcmp {predicate} {value_type(op.lhs.type)} {args[0]}, {args[1]}")


# Note [Quotients by constants]
#
# x / d takes as long as eight products or more. With z = RN(1/d), q = RN(x z) and r = x - d q it is
# RN(q + r z), for an odd integer d below 2^50. Let u be the unit of q's last digit, and e = 2^-53.
#
# - r has no error: x and q are multiples of u (|q| < |x|), and |r| <= d (|x z - x/d| + u/2) < 1.6 d u, less
#   than 2^53 u. That holds for numbers too small to be normal, too.
# - q + r z is x/d + r (z - 1/d), off by less than 1.6 u e. A number m halfway between two results is a
#   multiple of u/4, so x - d m is one. It is not 0: m has one digit more than x may have, the first and the
#   last of which are 1, so that d m, d being odd, has as many or more. Hence x/d is at least u/(4d) > 1.6 u e
#   away from m, and q + r z on the same side of it.
# - r is 0 for zeros, whose sign q has, and NaN for infinities and NaNs: there q is the quotient.
#
# With y = RN(1/d - z) it is RN(x z + RN(x y)), too, where no product is too small to be normal: y is at
# least 2^-154 (1 - d z is a multiple of the unit of z's last digit, and not 0) and at most e z, off by e^2 z;
# so the second product is off by 2 e^2 z |x| (1 + e) < 2 u e (1 + e)^2, less than u/(4d). That waits for one
# product less, and for no comparison. It needs another way for infinities, and zeros, whose sign it may lose.
#
# Even divisors are kept: three times the least number, divided by 6, is halfway.

"""Scalar ops of `arith`, `math` and `array` as LLVM instructions.

One function for a family of ops, found through `SCALAR_OPS`. Each takes the kernel state, the op and
its operands as LLVM text, and returns the text of the result.

Floating point: no flags by default, so values are exactly those of the ops in their order. An op that
carries `ad.adjoint` may be contracted and reassociated, and a quotient by a constant be a product; all may
under `fastmath`.

Adjoint code contracts a sum with a product here, by what is computed from what alone. LLVM, which might,
would decide it by what else is around; so it may reorder no sums but those of a loop. The same code then
computes the same numbers wherever it stands: in a loop, or in the function of a step that is run again.

No instruction here is undefined for any operand: integer division, shifts and conversions are guarded and
give what NumPy gives."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects import arith, math, memref, vector
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from ...dialects import ad, array, foreign, special
from ..analysis.additions import is_cell, place_of
from ..rules.table import constant_float
from . import gamma, vector_math
from .kernel_state import KernelState, lanes_of, number_type, value_type
from .leaf_loops import is_outside
from .llvm_text import integer

Rule = Callable[[KernelState, Operation, list[str]], str]

FAST = " reassoc nsz arcp contract afn"
FREE_SUM = " reassoc"


def fast_flags(state: KernelState, op: Operation) -> str:
    """The fast-math flags of an op, each preceded by a space."""
    if state.fastmath:
        return FAST
    if "ad.adjoint" in op.attributes:
        by_constant = isinstance(op, arith.DivfOp) and isinstance(op.rhs.owner, arith.ConstantOp)
        return " arcp" if by_constant else ""
    flags = op.properties.get("fastmath")
    if isinstance(flags, arith.FastMathFlagsAttr) and flags.data:
        return "".join(f" {f.value}" for f in sorted(flags.data))
    return ""


def float_text(value: float, type_: str) -> str:
    """A float constant, exact."""
    if type_ == "float":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def float_of(value: float, type_: Attribute) -> str:
    """A float constant of an IR type; of a vector the same in every lane."""
    number = value_type(number_type(type_))
    shown = float_text(value, number)
    return f"splat ({number} {shown})" if isinstance(type_, VectorType) else shown


def truth_type(type_: Attribute) -> str:
    """The LLVM type of a comparison of two values."""
    return f"<{lanes_of(type_)} x i1>" if isinstance(type_, VectorType) else "i1"


def constant(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, arith.ConstantOp)
    value, type_ = op.value, value_type(op.result.type)
    if isinstance(op.result.type, VectorType):
        number = constant_float(op.result)
        assert number is not None
        return float_of(number, op.result.type)
    if isa(value, IntegerAttr):
        number = value.value.data
        if type_ == "i1":
            return "true" if number else "false"
        return integer_text(number, type_)
    assert isinstance(value, FloatAttr)
    return float_text(value.value.data, type_)


def integer_text(number: int, type_: str) -> str:
    """An integer constant, wrapped around."""
    bits = int(type_[1:])
    number &= (1 << bits) - 1
    return str(number - (1 << bits) if number >> (bits - 1) else number)


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
    if "ad.adjoint" in op.attributes:
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
    return float_binary("fdiv")(state, op, args)


def sum_(state: KernelState, op: Operation, args: list[str]) -> str:
    """A sum or a difference."""
    type_, flags = value_type(op.results[0].type), fast_flags(state, op)
    plus = isinstance(op, arith.AddfOp)
    if "ad.adjoint" in op.attributes and not state.fastmath:
        if plus and adds_in_place(op):
            flags = FREE_SUM
            state.last_bits = replace(state.last_bits, sums=state.last_bits.sums + 1)
        for k in (1, 0):
            factors = contracted(state, op, k, args[k])
            if factors is not None:
                left, right = factors
                other = args[1 - k]
                if not plus and k:
                    left = negated(state, type_, left)
                elif not plus:
                    other = negated(state, type_, other)
                suffix = {"double": "f64", "float": "f32"}.get(type_) or vector_suffix(type_)
                name = state.intrinsic(
                    f"llvm.fmuladd.{suffix}", type_, f"{type_}, {type_}, {type_}"
                )
                shown = ", ".join(f"{type_} {v}" for v in (left, right, other))
                return state.text.value(f"call{flags} {type_} @{name}({shown})")
    return state.text.value(f"{'fadd' if plus else 'fsub'}{flags} {type_} {args[0]}, {args[1]}")


def negated(state: KernelState, type_: str, value: str) -> str:
    return state.text.value(f"fneg {type_} {value}")


def vector_suffix(type_: str) -> str:
    """As intrinsics have it: `<4 x double>` is v4f64."""
    lanes, _, number = type_.strip("<>").partition(" x ")
    return f"v{lanes}{'f64' if number == 'double' else 'f32'}"


def contracted(state: KernelState, op: Operation, k: int, shown: str) -> tuple[str, str] | None:
    """The factors of an operand that is a product of the same block."""
    operand = op.operands[k]
    found = state.products.get(operand)
    if found is None or found[0] != shown:
        return None
    made = operand.owner
    return found[1:] if isinstance(made, Operation) and made.parent is op.parent else None


def adds_in_place(op: arith.AddfOp) -> bool:
    """Whether a term is added to a variable, or to an element that is the same in each iteration."""
    if not op.result.has_one_use():
        return False
    (use,) = op.result.uses
    store = use.operation
    if not isinstance(store, memref.StoreOp) or use.index:
        return False
    loads = [o.owner for o in op.operands if isinstance(o.owner, memref.LoadOp)]
    if not any(place_of(load) == place_of(store) for load in loads):
        return False
    loop = op.parent_op()
    return is_cell(store.memref) or (
        isinstance(loop, array.LoopOp)
        and all(is_outside(v, loop) for v in (store.memref, *store.indices))
    )


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


def broadcast(state: KernelState, op: Operation, args: list[str]) -> str:
    """One number in every lane."""
    return spread(state, args[0], op.operands[0].type, op.results[0].type)


def extract(state: KernelState, op: Operation, args: list[str]) -> str:
    """One lane of a vector."""
    vector_, lane = args
    type_ = value_type(op.operands[0].type)
    return state.text.value(f"extractelement {type_} {vector_}, i64 {lane}")


def insert(state: KernelState, op: Operation, args: list[str]) -> str:
    """A vector with another number in one lane."""
    number, vector_, lane = args
    types = (value_type(o.type) for o in op.operands)
    element, type_, _ = types
    return state.text.value(f"insertelement {type_} {vector_}, {element} {number}, i64 {lane}")


def spread(state: KernelState, number: str, from_: Attribute, to: Attribute) -> str:
    """A vector that holds a number in every lane."""
    source, type_ = value_type(from_), value_type(to)
    if not number.startswith("%"):
        return f"splat ({source} {number})"
    first = state.text.value(f"insertelement {type_} poison, {source} {number}, i64 0")
    mask = f"<{lanes_of(to)} x i32> zeroinitializer"
    return state.text.value(f"shufflevector {type_} {first}, {type_} poison, {mask}")


def negf(state: KernelState, op: Operation, args: list[str]) -> str:
    type_ = value_type(op.results[0].type)
    return state.text.value(f"fneg{fast_flags(state, op)} {type_} {args[0]}")


def wrapping(instruction: str) -> Rule:
    """Integer add, sub, mul: NumPy's integers wrap around, a Python int (`index`) never does."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = op.results[0].type
        if str(type_) == "index":
            fold = {"add": state.text.add, "sub": state.text.sub, "mul": state.text.mul}[
                instruction
            ]
            return fold(args[0], args[1])
        return state.text.value(f"{instruction} {value_type(type_)} {args[0]}, {args[1]}")

    return rule


def integer_binary(instruction: str) -> Rule:
    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = value_type(op.results[0].type)
        return state.text.value(f"{instruction} {type_} {args[0]}, {args[1]}")

    return rule


def on_bits(numbers: Rule, bits: Callable[[KernelState, list[str]], str]) -> Rule:
    """A rule of integers; of `i1`, which is 0 or -1 (without a sign 1), what it comes to on bits."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        is_bit = value_type(op.results[0].type) == "i1"
        return bits(state, args) if is_bit else numbers(state, op, args)

    return rule


def both(state: KernelState, args: list[str]) -> str:
    """A quotient of bits: 0 by 0, and the least by -1 is the least."""
    return state.text.value(f"and i1 {args[0]}, {args[1]}")


def neither(_state: KernelState, _args: list[str]) -> str:
    """A remainder of bits."""
    return "false"


def first_alone(state: KernelState, args: list[str]) -> str:
    """A bit that is shifted out."""
    stays = state.text.value(f"xor i1 {args[1]}, true")
    return state.text.value(f"and i1 {args[0]}, {stays}")


def first(_state: KernelState, args: list[str]) -> str:
    """A bit that is a sign."""
    return args[0]


def guarded_divisor(state: KernelState, type_: str, args: list[str], *, signed: bool = True) -> str:
    """The divisor, but 1 where the machine's division would trap (by 0, and least // -1)."""
    known = None if args[1].startswith("%") else int(args[1])
    if known is not None and known not in (0, -1):
        return args[1]
    text = state.text
    bad = text.value(f"icmp eq {type_} {args[1]}, 0")
    if signed:
        least = text.value(f"icmp eq {type_} {args[0]}, {-(1 << (int(type_[1:]) - 1))}")
        minus_one = text.value(f"icmp eq {type_} {args[1]}, -1")
        overflows = text.value(f"and i1 {least}, {minus_one}")
        bad = text.value(f"or i1 {bad}, {overflows}")
    return text.value(f"select i1 {bad}, {type_} 1, {type_} {args[1]}")


def truncating_division(instruction: str) -> Rule:
    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = value_type(op.results[0].type)
        divisor = guarded_divisor(state, type_, args, signed=instruction[0] == "s")
        found = state.text.value(f"{instruction} {type_} {args[0]}, {divisor}")
        if instruction[1:] == "rem":
            return found  # The guard divides by 1: the remainder is 0.
        return unless_zero(state, type_, args[1], found)

    return rule


def unless_zero(state: KernelState, type_: str, divisor: str, quotient: str) -> str:
    """0 where the divisor is 0, else the quotient."""
    zero = state.text.value(f"icmp eq {type_} {divisor}, 0")
    return state.text.value(f"select i1 {zero}, {type_} 0, {type_} {quotient}")


def ceil_division(state: KernelState, op: Operation, args: list[str]) -> str:
    """ceil(a / b) = -floor(-a / b)."""
    type_ = value_type(op.results[0].type)
    negated = state.text.value(f"sub {type_} 0, {args[0]}")
    quotient = floor_division_of_integers(state, type_, [negated, args[1]])
    return state.text.value(f"sub {type_} 0, {quotient}")


def unsigned_ceil_division(state: KernelState, op: Operation, args: list[str]) -> str:
    type_ = value_type(op.results[0].type)
    text = state.text
    divisor = guarded_divisor(state, type_, args, signed=False)
    quotient = text.value(f"udiv {type_} {args[0]}, {divisor}")
    rest = text.value(f"urem {type_} {args[0]}, {divisor}")
    more = text.value(f"icmp ne {type_} {rest}, 0")
    up = text.value(f"zext i1 {more} to {type_}")
    total = text.value(f"add {type_} {quotient}, {up}")
    return unless_zero(state, type_, args[1], total)


def floor_division_of_integers(state: KernelState, type_: str, args: list[str]) -> str:
    if not args[0].startswith("%") and not args[1].startswith("%"):
        return integer_text(int(args[0]) // int(args[1]), type_) if int(args[1]) else "0"
    text = state.text
    divisor = guarded_divisor(state, type_, args)
    quotient = text.value(f"sdiv {type_} {args[0]}, {divisor}")
    rest = text.value(f"srem {type_} {args[0]}, {divisor}")
    down = text.value(f"zext i1 {differ_in_sign(state, type_, rest, divisor)} to {type_}")
    floor = text.value(f"sub {type_} {quotient}, {down}")
    known = None if args[1].startswith("%") else int(args[1])
    return floor if known else unless_zero(state, type_, args[1], floor)


def differ_in_sign(state: KernelState, type_: str, rest: str, divisor: str) -> str:
    """True where a nonzero remainder has not the divisor's sign."""
    text = state.text
    nonzero = text.value(f"icmp ne {type_} {rest}, 0")
    mixed = text.value(f"xor {type_} {rest}, {divisor}")
    negative = text.value(f"icmp slt {type_} {mixed}, 0")
    return text.value(f"and i1 {nonzero}, {negative}")


def floor_div(state: KernelState, op: Operation, args: list[str]) -> str:
    type_ = value_type(op.results[0].type)
    if type_ in ("double", "float"):
        return divmod_of_floats(state, type_, args)[0]
    return floor_division_of_integers(state, type_, args)


def floor_mod(state: KernelState, op: Operation, args: list[str]) -> str:
    type_ = value_type(op.results[0].type)
    if type_ in ("double", "float"):
        return divmod_of_floats(state, type_, args)[1]
    if not args[1].startswith("%") or not is_subscript(op):
        return remainder(state, type_, args)
    # A subscript that is wrapped mostly is in range: a branch costs less than a division.
    text = state.text
    divide, done = text.label("divide"), text.label("wrapped")
    positive = text.value(f"icmp sgt {type_} {args[1]}, 0")
    most = text.value(f"select i1 {positive}, {type_} {args[1]}, {type_} 0")
    is_rest = text.value(f"icmp ult {type_} {args[0]}, {most}")
    before = text.block
    text.branch_if(is_rest, done, divide)
    text.start(divide)
    rest = remainder(state, type_, args)
    text.branch(done)
    text.start(done)
    return text.value(f"phi {type_} [ {args[0]}, %{before} ], [ {rest}, %{divide} ]")


def is_subscript(op: Operation) -> bool:
    users = (use.operation for use in op.results[0].uses)
    return any(isinstance(u, array.IndexOp | memref.LoadOp | memref.StoreOp) for u in users)


def remainder(state: KernelState, type_: str, args: list[str]) -> str:
    """Of a division that rounds down: it has the divisor's sign."""
    text, divisor = state.text, guarded_divisor(state, type_, args)
    rest = text.value(f"srem {type_} {args[0]}, {divisor}")
    moved = text.value(f"add {type_} {rest}, {divisor}")
    wrong = differ_in_sign(state, type_, rest, divisor)
    return text.value(f"select i1 {wrong}, {type_} {moved}, {type_} {rest}")


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


def shift(instruction: str) -> Rule:
    """Shifts by the width and more give 0, or the sign, as in NumPy."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        text, type_ = state.text, value_type(op.results[0].type)
        bits = int(type_[1:])
        by = None if args[1].startswith("%") else int(args[1])
        if by is not None and 0 <= by < bits:
            return text.value(f"{instruction} {type_} {args[0]}, {args[1]}")
        inside = text.value(f"icmp ult {type_} {args[1]}, {bits}")
        limit = bits - 1 if instruction == "ashr" else 0
        amount = text.value(f"select i1 {inside}, {type_} {args[1]}, {type_} {limit}")
        shifted = text.value(f"{instruction} {type_} {args[0]}, {amount}")
        if instruction == "ashr":
            return shifted
        return text.value(f"select i1 {inside}, {type_} {shifted}, {type_} 0")

    return rule


def compare_integers(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, arith.CmpiOp)
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    return state.text.value(f"icmp {predicate} {value_type(op.lhs.type)} {args[0]}, {args[1]}")


def compare_floats(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, arith.CmpfOp)
    predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
    return state.text.value(f"fcmp {predicate} {value_type(op.lhs.type)} {args[0]}, {args[1]}")


def select(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, arith.SelectOp)
    type_ = value_type(op.result.type)
    condition = compared_wide(state, op) or args[0]
    return state.text.value(f"select i1 {condition}, {type_} {args[1]}, {type_} {args[2]}")


def compared_wide(state: KernelState, op: arith.SelectOp) -> str | None:
    """The condition of a choice between a float64 and a float32 that it compares, compared as float64.

    What is compared is the same. But LLVM takes `x < 0.0f ? 0.0 : (double)x` for a maximum that need not
    tell zeros apart (llvm-project issue 157254), and a -0.0 becomes 0.0; `(double)x < 0.0` it does not.
    """
    compared = op.cond.owner
    makers = [v.owner for v in (op.lhs, op.rhs)]
    widened = [m.operands[0] for m in makers if isinstance(m, arith.ExtFOp | array.CastOp)]
    if not isinstance(compared, arith.CmpfOp) or not any(w in compared.operands for w in widened):
        return None
    if value_type(compared.lhs.type) == value_type(op.result.type):
        return None
    source, target = value_type(compared.lhs.type), value_type(op.result.type)
    wide = [
        state.text.value(f"fpext {source} {state.scalar(v)} to {target}") for v in compared.operands
    ]
    predicate = arith.CMPF_COMPARISON_OPERATIONS[compared.predicate.value.data]
    return state.text.value(f"fcmp {predicate} {target} {wide[0]}, {wide[1]}")


def convert(instruction: str) -> Rule:
    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        source, target = value_type(op.operands[0].type), value_type(op.results[0].type)
        if source == target:
            return args[0]
        return state.text.value(f"{instruction} {source} {args[0]} to {target}")

    return rule


def index_cast(state: KernelState, op: Operation, args: list[str]) -> str:
    return resize(state, value_type(op.operands[0].type), value_type(op.results[0].type), args[0])


def resize(state: KernelState, source: str, target: str, value: str, *, signed: bool = True) -> str:
    """An integer in another width."""
    if source == target:
        return value
    wider = int(target[1:]) > int(source[1:])
    widen = "sext" if signed else "zext"
    return state.text.value(f"{widen if wider else 'trunc'} {source} {value} to {target}")


def float_to_integer(state: KernelState, op: Operation, args: list[str]) -> str:
    source, target = value_type(op.operands[0].type), value_type(op.results[0].type)
    if target == "i64" and is_checked(op):
        return state.text.value(f"fptosi {source} {args[0]} to {target}")
    return to_integer(state, source, target, args[0])


def is_checked(op: Operation) -> bool:
    """Code before the op, in its block, has raised where its operand is NaN or needs more than 64 bits."""
    (value,) = op.operands
    compares = [use.operation for use in value.uses]
    found = {
        (arith.CMPF_COMPARISON_OPERATIONS[c.predicate.value.data], constant_float(c.rhs))
        for c in compares
        if isinstance(c, arith.CmpfOp) and c.lhs is value and raises_before(c, op)
    }
    return found >= {("uno", None), ("oge", 2.0**63), ("olt", -(2.0**63))}


def raises_before(condition: Operation, op: Operation) -> bool:
    """The condition, alone or with others, has been false where the op runs."""
    for use in condition.results[0].uses:
        user = use.operation
        if isinstance(user, arith.OrIOp) and raises_before(user, op):
            return True
        raises = isinstance(user, array.RaiseIfOp) and use.index == 0
        if raises and user.parent is op.parent and user.is_before_in_block(op):
            return True
    return False


def to_integer(state: KernelState, source: str, target: str, value: str) -> str:
    """Truncation; NaN and what does not fit become the least integer, as on x86: of 32 bits at least."""
    text, bits = state.text, int(target[1:])
    if bits < 32:
        return resize(state, "i32", target, to_integer(state, source, "i32", value))
    least = float_text(-(2.0 ** (bits - 1)), source)
    if source == "double" and bits == 32:
        low = text.value(f"fcmp ogt double {value}, {float_text(-(2.0**31) - 1, source)}")
    else:
        low = text.value(f"fcmp oge {source} {value}, {least}")
    high = text.value(f"fcmp olt {source} {value}, {float_text(2.0 ** (bits - 1), source)}")
    fits = text.value(f"and i1 {low}, {high}")
    converted = text.value(f"fptosi {source} {value} to {target}")
    return text.value(f"select i1 {fits}, {target} {converted}, {target} {-(1 << (bits - 1))}")


def to_unsigned(state: KernelState, source: str, target: str, value: str) -> str:
    """Truncation modulo 2**bits of what fits 64 bits with a sign, or without, as on x86."""
    if target != "i64":
        wide = "i64" if target == "i32" else "i32"
        return resize(state, wide, target, to_integer(state, source, wide, value))
    text, half = state.text, float_text(2.0**63, source)
    large = text.value(f"fcmp oge {source} {value}, {half}")
    below = text.value(f"fsub {source} {value}, {half}")
    upper = text.value(f"xor i64 {to_integer(state, source, target, below)}, {-(1 << 63)}")
    return text.value(
        f"select i1 {large}, i64 {upper}, i64 {to_integer(state, source, target, value)}"
    )


def cast(state: KernelState, op: Operation, args: list[str]) -> str:
    """`array.cast`: NumPy's `astype` for one element."""
    source, target = value_type(op.operands[0].type), value_type(op.results[0].type)
    text, value = state.text, args[0]
    floats = ("double", "float")
    if source == target:
        return value
    if isinstance(to := op.results[0].type, VectorType):
        narrower = value_type(number_type(to)) == "float"
        return text.value(f"{'fptrunc' if narrower else 'fpext'} {source} {value} to {target}")
    if target == "i1":
        if source in floats:
            return text.value(f"fcmp une {source} {value}, {float_text(0.0, source)}")
        return text.value(f"icmp ne {source} {value}, 0")
    if source == "i1":
        return text.value(f"{'uitofp' if target in floats else 'zext'} i1 {value} to {target}")
    if source in floats and target in floats:
        return text.value(
            f"{'fptrunc' if target == 'float' else 'fpext'} {source} {value} to {target}"
        )
    assert isinstance(op, array.CastOp)
    signed = op.unsigned is None
    if source in floats:
        return (to_integer if signed else to_unsigned)(state, source, target, value)
    if target in floats:
        return text.value(f"{'sitofp' if signed else 'uitofp'} {source} {value} to {target}")
    return resize(state, source, target, value, signed=signed)


def intrinsic(stem: str, flags: str = "") -> Rule:
    """An LLVM intrinsic overloaded on the result type."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = value_type(op.results[0].type)
        suffix = {"double": "f64", "float": "f32"}.get(type_, type_)
        name = state.intrinsic(f"llvm.{stem}.{suffix}", type_, ", ".join([type_] * len(args)))
        fast = fast_flags(state, op) if type_ in ("double", "float") else ""
        if flags and flags not in fast:
            fast += flags
        shown = ", ".join(f"{type_} {a}" for a in args)
        return state.text.value(f"call{fast} {type_} @{name}({shown})")

    return rule


def with_poison_flag(stem: str) -> Rule:
    """An intrinsic with a second operand that says whether its edge case is poison: it is not."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = value_type(op.results[0].type)
        name = state.intrinsic(f"llvm.{stem}.{type_}", type_, f"{type_}, i1")
        return state.text.value(f"call {type_} @{name}({type_} {args[0]}, i1 false)")

    return rule


def libm(function: str) -> Rule:
    """A function of the C math library, with its vector versions."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        return call_libm(
            state, function, value_type(op.results[0].type), args, fast_flags(state, op)
        )

    return rule


def call_libm(
    state: KernelState, function: str, type_: str, args: list[str], fast: str = ""
) -> str:
    symbol = function if type_ == "double" else f"{function}f"
    parameters = ", ".join([type_] * len(args))
    state.declare(symbol, f"declare {type_} @{symbol}({parameters})", "libm")
    attributes = "nounwind willreturn memory(none)"
    found = vector_math.variants(symbol, state.features)
    if found:
        state.last_bits = replace(state.last_bits, calls=state.last_bits.calls + 1)
        attributes += f" {vector_math.attribute(found)}"
        for name, lanes in found:
            if name not in state.declarations:
                state.declare(
                    name, vector_math.declaration(name, lanes, type_, len(args)), "libmvec"
                )
                state.kept_alive.append(name)
    shown = ", ".join(f"{type_} {a}" for a in args)
    return state.text.value(
        f"call{fast} {type_} @{symbol}({shown}) {state.attribute_group(attributes)}"
    )


def rsqrt(state: KernelState, op: Operation, args: list[str]) -> str:
    root = intrinsic("sqrt")(state, op, args)
    type_ = value_type(op.results[0].type)
    return state.text.value(f"fdiv{fast_flags(state, op)} {type_} {float_text(1.0, type_)}, {root}")


def float_to_integer_power(state: KernelState, op: Operation, args: list[str]) -> str:
    type_, power = value_type(op.results[0].type), value_type(op.operands[1].type)
    exponent = state.text.value(f"sitofp {power} {args[1]} to {type_}")
    return call_libm(state, "pow", type_, [args[0], exponent], fast_flags(state, op))


def integer_power(state: KernelState, op: Operation, args: list[str]) -> str:
    """Repeated squaring; unrolled for a small constant exponent."""
    type_ = value_type(op.results[0].type)
    exponent = integer(args[1])
    if exponent is not None and 0 <= exponent <= 16:
        result, power = "1", args[0]
        while exponent:
            if exponent & 1:
                result = state.text.value(f"mul {type_} {result}, {power}")
            exponent >>= 1
            if exponent:
                power = state.text.value(f"mul {type_} {power}, {power}")
        return result
    function = f"mutad_ipow_{type_}"
    state.support.add(function)
    return state.text.value(f"call {type_} @{function}({type_} {args[0]}, {type_} {args[1]})")


def gamma_of(state: KernelState, op: Operation, args: list[str]) -> str:
    return call_own(state, op, args, "mutad_gamma", gamma.gamma, ("tgamma",))


def polygamma_of(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, special.PolygammaOp)
    order = op.ORDER
    state.intrinsic("llvm.roundeven.f64", "double", "double")
    name = f"mutad_polygamma_{order}"
    return call_own(state, op, args, name, lambda: gamma.polygamma(order), ("log", "tan"))


def call_own(
    state: KernelState,
    op: Operation,
    args: list[str],
    name: str,
    text: Callable[[], str],
    uses: tuple[str, ...],
) -> str:
    """A call of a function of doubles that the module has once; `uses`: of the C library."""
    if name not in state.functions:
        state.functions[name] = text()
        for symbol in uses:
            state.declare(symbol, f"declare double @{symbol}(double)", "libm")
    (x,), type_ = args, value_type(op.results[0].type)
    if type_ == "double":
        return state.text.value(f"call double @{name}(double {x})")
    wide = state.text.value(f"fpext {type_} {x} to double")
    found = state.text.value(f"call double @{name}(double {wide})")
    return state.text.value(f"fptrunc double {found} to {type_}")


SCALAR_OPS: dict[type[Operation], Rule] = {
    arith.ConstantOp: constant,
    arith.AddfOp: sum_,
    arith.SubfOp: sum_,
    arith.MulfOp: product,
    arith.DivfOp: quotient,
    ad.MulOp: strong_product,
    ad.DivOp: strong_quotient,
    vector.BroadcastOp: broadcast,
    vector.ExtractOp: extract,
    vector.InsertOp: insert,
    arith.NegfOp: negf,
    arith.MinimumfOp: intrinsic("minimum", " nsz"),
    arith.MaximumfOp: intrinsic("maximum", " nsz"),
    arith.MinnumfOp: intrinsic("minnum", " nsz"),
    arith.MaxnumfOp: intrinsic("maxnum", " nsz"),
    arith.AddiOp: wrapping("add"),
    arith.SubiOp: wrapping("sub"),
    arith.MuliOp: wrapping("mul"),
    arith.DivSIOp: on_bits(truncating_division("sdiv"), both),
    arith.RemSIOp: on_bits(truncating_division("srem"), neither),
    arith.DivUIOp: on_bits(truncating_division("udiv"), both),
    arith.RemUIOp: on_bits(truncating_division("urem"), neither),
    arith.CeilDivSIOp: on_bits(ceil_division, both),
    arith.CeilDivUIOp: on_bits(unsigned_ceil_division, both),
    arith.FloorDivSIOp: on_bits(floor_div, both),
    arith.MinSIOp: intrinsic("smin"),
    arith.MaxSIOp: intrinsic("smax"),
    arith.MinUIOp: intrinsic("umin"),
    arith.MaxUIOp: intrinsic("umax"),
    arith.AndIOp: integer_binary("and"),
    arith.OrIOp: integer_binary("or"),
    arith.XOrIOp: integer_binary("xor"),
    arith.ShLIOp: on_bits(shift("shl"), first_alone),
    arith.ShRSIOp: on_bits(shift("ashr"), first),
    arith.ShRUIOp: on_bits(shift("lshr"), first_alone),
    arith.CmpiOp: compare_integers,
    arith.CmpfOp: compare_floats,
    arith.SelectOp: select,
    arith.BitcastOp: convert("bitcast"),
    arith.IndexCastOp: index_cast,
    arith.FPToSIOp: float_to_integer,
    arith.SIToFPOp: convert("sitofp"),
    arith.UIToFPOp: convert("uitofp"),
    arith.ExtFOp: convert("fpext"),
    arith.TruncFOp: convert("fptrunc"),
    arith.TruncIOp: convert("trunc"),
    arith.ExtSIOp: convert("sext"),
    arith.ExtUIOp: convert("zext"),
    array.CastOp: cast,
    foreign.StopGradientOp: lambda _state, _op, args: args[0],
    foreign.NoDerivativeOp: lambda _state, _op, args: args[0],
    array.FloorDivOp: floor_div,
    array.FloorModOp: floor_mod,
    math.AbsFOp: intrinsic("fabs"),
    math.AbsIOp: with_poison_flag("abs"),
    math.CeilOp: intrinsic("ceil"),
    math.FloorOp: intrinsic("floor"),
    math.TruncOp: intrinsic("trunc"),
    math.RoundOp: intrinsic("round"),
    math.RoundEvenOp: intrinsic("roundeven"),
    math.CopySignOp: intrinsic("copysign"),
    math.SqrtOp: intrinsic("sqrt"),
    math.FmaOp: intrinsic("fma"),
    math.CountLeadingZerosOp: with_poison_flag("ctlz"),
    math.CountTrailingZerosOp: with_poison_flag("cttz"),
    math.CtPopOp: intrinsic("ctpop"),
    math.RsqrtOp: rsqrt,
    math.FPowIOp: float_to_integer_power,
    math.IPowIOp: integer_power,
    math.ExpOp: libm("exp"),
    math.Exp2Op: libm("exp2"),
    math.ExpM1Op: libm("expm1"),
    math.LogOp: libm("log"),
    math.Log2Op: libm("log2"),
    math.Log10Op: libm("log10"),
    math.Log1pOp: libm("log1p"),
    math.SinOp: libm("sin"),
    math.CosOp: libm("cos"),
    math.TanOp: libm("tan"),
    math.AsinOp: libm("asin"),
    math.AcosOp: libm("acos"),
    math.AtanOp: libm("atan"),
    math.SinhOp: libm("sinh"),
    math.CoshOp: libm("cosh"),
    math.TanhOp: libm("tanh"),
    math.AsinhOp: libm("asinh"),
    math.AcoshOp: libm("acosh"),
    math.AtanhOp: libm("atanh"),
    math.Atan2Op: libm("atan2"),
    math.PowFOp: libm("pow"),
    math.CbrtOp: libm("cbrt"),
    math.ErfOp: libm("erf"),
    special.ErfcOp: libm("erfc"),
    special.GammaOp: gamma_of,
    special.LogGammaOp: libm("lgamma"),
    special.DigammaOp: polygamma_of,
    special.TrigammaOp: polygamma_of,
    special.TetragammaOp: polygamma_of,
}

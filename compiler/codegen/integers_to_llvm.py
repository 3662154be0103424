"""Arithmetic of integers as LLVM instructions: see `scalars_to_llvm`.

Division and shifts are guarded, and give what NumPy gives. A floor division may be one of floats.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref
from xdsl.ir import Operation

from ...dialects import array
from .floats_to_llvm import divmod_of_floats
from .kernel_state import KernelState, value_type
from .scalar_text import Rule, integer_text


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

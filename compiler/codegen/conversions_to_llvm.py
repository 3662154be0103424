"""Conversions between types of numbers, as LLVM instructions: guarded, with what NumPy gives."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from ...dialects import array
from ..rules.table import constant_float
from .kernel_state import KernelState, number_type, value_type
from .scalar_text import Rule, float_text


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
        if signed and target == "i64" and is_checked(op):
            return text.value(f"fptosi {source} {value} to {target}")
        return (to_integer if signed else to_unsigned)(state, source, target, value)
    if target in floats:
        return text.value(f"{'sitofp' if signed else 'uitofp'} {source} {value} to {target}")
    return resize(state, source, target, value, signed=signed)

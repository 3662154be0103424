"""Constants, types and fast-math flags of scalar code, as LLVM text."""

from __future__ import annotations

import struct
from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation

from .kernel_state import KernelState, lanes_of, number_type, value_type

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


def integer_text(number: int, type_: str) -> str:
    """An integer constant, wrapped around."""
    bits = int(type_[1:])
    number &= (1 << bits) - 1
    return str(number - (1 << bits) if number >> (bits - 1) else number)


def negated(state: KernelState, type_: str, value: str) -> str:
    return state.text.value(f"fneg {type_} {value}")


def vector_suffix(type_: str) -> str:
    """As intrinsics have it: `<4 x double>` is v4f64."""
    lanes, _, number = type_.strip("<>").partition(" x ")
    return f"v{lanes}{'f64' if number == 'double' else 'f32'}"

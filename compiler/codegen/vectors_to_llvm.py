"""Numbers to and from the lanes of a vector, as LLVM instructions."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from .kernel_state import KernelState, value_type


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
    return in_every_lane(state, number, source, type_)


def in_every_lane(state: KernelState, value: str, source: str, type_: str) -> str:
    """The same of LLVM's types."""
    lanes = type_.strip("<>").partition(" x ")[0]
    first = state.text.value(f"insertelement {type_} poison, {source} {value}, i64 0")
    mask = f"<{lanes} x i32> zeroinitializer"
    return state.text.value(f"shufflevector {type_} {first}, {type_} poison, {mask}")

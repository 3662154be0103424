"""What leaves the kernel or calls back: subscript checks, raises, checked integers, prints.

Each place that may raise has a number in the site table, and a cold block that fills the raise
record of the context and returns 1::

    %j = array.index %i, %n axis 0     %outside = icmp uge i64 %i, %n
                                       br i1 %outside, label %raise, label %ok, !prof {unlikely}
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array
from .joint_checks import joint_checks
from .kernel_state import PYTHON_RAISED, RETRY, KernelState, type_name
from .llvm_text import integer

PRINT_SLOT = 64
"""Byte offset of the print callback in the context."""

CHECKED: dict[type[Operation], tuple[str, str]] = {
    array.CheckedAddOp: ("add", "+"),
    array.CheckedSubOp: ("sub", "-"),
    array.CheckedMulOp: ("mul", "*"),
}


def site_of(
    state: KernelState, op: Operation, exception: str, message: str, operands: list[str]
) -> int:
    number = state.site(op, exception=exception, message=message, operands=operands)
    name_source(state, number)
    return number


def name_source(state: KernelState, number: int) -> None:
    entry = state.sites[number]
    if "source" not in entry:
        entry["source"] = linecache.getline(entry["file"], entry["line"]).rstrip("\n")


def lower_index(state: KernelState, op: array.IndexOp) -> None:
    """Wrap a negative subscript, check the range (unless it is proved)."""
    text = state.text
    index, extent = state.scalars[op.index], state.scalars[op.extent]
    sign = op.sign.data
    if op in state.proved:
        result = text.add(index, extent) if sign == "negative" else index
    else:
        result = index
        if sign == "negative":
            result = text.add(index, extent)
        elif sign == "any":
            known = integer(index)
            if known is None:
                negative = text.value(f"icmp slt i64 {index}, 0")
                wrapped = text.value(f"add i64 {index}, {extent}")
                result = text.value(f"select i1 {negative}, i64 {wrapped}, i64 {index}")
            elif known < 0:
                result = text.add(index, extent)
        if op.unchecked is None:
            outside = text.value(
                f"icmp slt i64 {extent}, 1" if is_rest(op) else f"icmp uge i64 {result}, {extent}"
            )
            if op.message is not None:
                site = site_of(state, op, "IndexError", op.message.data, [])
                state.raise_when(outside, site, [])
            else:
                axis = op.axis.value.data
                message = f"index {{}} is out of bounds for axis {axis} with size {{}}"
                site = site_of(state, op, "IndexError", message, ["index", "index"])
                payload = [(index, op.index.type), (extent, op.extent.type)]
                state.raise_when(outside, site, payload)
    state.scalars[op.result] = result


def is_rest(op: array.IndexOp) -> bool:
    """Whether the subscript is a rest of a division by the extent: within it where there is any element."""
    rest = op.index.owner
    return (
        isinstance(rest, array.FloorModOp) and rest.rhs is op.extent and op.sign.data != "negative"
    )


def lower_raise_if(state: KernelState, op: array.RaiseIfOp) -> None:
    """The last of several checks asks for all of them."""
    joint = joint_checks(op)
    if joint is None:
        raise_if(state, op)
    elif op is joint.checks[-1]:
        joint.emit(state, lambda check: raise_if(state, check))


def raise_if(state: KernelState, op: array.RaiseIfOp) -> None:
    shown = [type_name(o.type) for o in op.operands_shown]
    site = site_of(state, op, op.exception.data, op.message.data, shown)
    payload = [(state.scalars[o], o.type) for o in op.operands_shown]
    state.raise_when(state.scalars[op.condition], site, payload)


def lower_checked(state: KernelState, op: array.CheckedIntOp) -> None:
    text = state.text
    lhs, rhs = state.scalars[op.lhs], state.scalars[op.rhs]
    if op in state.proved:
        form, _ = CHECKED[type(op)]
        state.scalars[op.result] = {"add": text.add, "sub": text.sub, "mul": text.mul}[form](
            lhs, rhs
        )
        return
    state.scalars[op.result] = raise_overflow(state, op, lhs, rhs)


def raise_overflow(state: KernelState, op: Operation, lhs: str, rhs: str) -> str:
    """The sum, difference or product of two ints; OverflowError where it does not fit."""
    text, (form, sign) = state.text, CHECKED[type(op)]
    stem = f"llvm.s{form}.with.overflow.i64"
    name = state.intrinsic(stem, "{ i64, i1 }", "i64, i64")
    pair = text.value(f"call {{ i64, i1 }} @{name}(i64 {lhs}, i64 {rhs})")
    result = text.value(f"extractvalue {{ i64, i1 }} {pair}, 0")
    overflow = text.value(f"extractvalue {{ i64, i1 }} {pair}, 1")
    message = f"{{}} {sign} {{}} does not fit in 64 bits"
    site = site_of(state, op, "OverflowError", message, ["index", "index"])
    state.raise_when(overflow, site, [(v, op.operands[k].type) for k, v in enumerate((lhs, rhs))])
    return result


def lower_print(state: KernelState, op: array.PrintOp) -> None:
    """Lay out the values in a payload and call back."""
    shown = [type_name(v.type) for v in op.values]
    what = {} if op.leaves is None else {"leaves": op.leaves.value.data}
    number = state.site(op, print=op.format.data, operands=shown, **what)
    name_source(state, number)
    call_back(state, number, op.values)


def call_back(
    state: KernelState, number: int, values: Sequence[SSAValue], room: int = 0
) -> tuple[str, int]:
    """Call Python code with what these values are in a payload; its address, and how many words they take.

    `room`: so many words behind them are for results.
    """
    text = state.text
    fields: list[str] = []
    for v in values:
        if isinstance(v.type, MemRefType):
            d = state.memrefs[v]
            fields += [f"ptr {d.pointer}", *(f"i64 {x}" for x in (*d.extents, *d.strides))]
        else:
            fields.append(state.widened(state.scalars[v], v.type))
    payload = text.alloca(f"[{max(1, len(fields) + room)} x i64]", "payload")
    for k, field in enumerate(fields):
        at = text.value(f"getelementptr i64, ptr {payload}, i64 {k}")
        text.do(f"store {field}, ptr {at}, align 8")
    callback = text.value(f"load ptr, ptr {state.context_slot(PRINT_SLOT)}, align 8")
    status = text.value(f"call i32 {callback}(ptr %ctx, i64 {number}, ptr {payload})")
    state.return_when(text.value(f"icmp ne i32 {status}, 0"), PYTHON_RAISED)
    return payload, len(fields)


def lower_retry_if(state: KernelState, op: ad.RetryIfOp) -> None:
    state.return_when(state.scalars[op.condition], RETRY)


CHECK_OPS: dict[type[Operation], Callable[[KernelState, Any], None]] = {
    array.IndexOp: lower_index,
    array.RaiseIfOp: lower_raise_if,
    array.CheckedAddOp: lower_checked,
    array.CheckedSubOp: lower_checked,
    array.CheckedMulOp: lower_checked,
    array.PrintOp: lower_print,
    ad.RetryIfOp: lower_retry_if,
}

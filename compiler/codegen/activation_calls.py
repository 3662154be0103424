"""Calls of recursive functions, as LLVM text: see `activations_to_llvm`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import SSAValue

from ...dialects import activation
from .arena import make_arena
from .kernel_state import KernelState, value_type
from .support.context import RECURSION_LIMIT, STACK_END

FRAME = 32 * 1024
"""Room on the stack for the frame of a call, in bytes: buffers of distributed loops lie there."""


def symbol(name: str) -> str:
    """The LLVM name of a private function."""
    return f"activation_{name}"


def begin(state: KernelState, calls: Sequence[activation.CallOp]) -> None:
    """Where a kernel that calls such functions starts: the end of the stack, the depth, the arena."""
    if any(map(keeps_record, calls)):
        make_arena(state)
    state.support.add("mutad_find_stack")
    state.text.do("call void @mutad_find_stack(ptr %ctx)")
    at = state.context_slot(RECURSION_LIMIT)
    state.depth = state.text.value(f"load i64, ptr {at}, align 8", "depth")


def shown_fields(state: KernelState, value: SSAValue) -> list[str]:
    """A value as arguments of a call."""
    if not isinstance(value.type, MemRefType):
        return [state.typed(value)]
    d = state.memrefs[value]
    return [f"ptr {d.pointer}", *(f"i64 {x}" for x in (*d.extents, *d.strides))]


def lower_activation(state: KernelState, op: activation.CallOp) -> None:
    """Call, leave where it failed, take the results."""
    text = state.text
    frames = op.frames.value.data
    deeper = text.value(f"sub i64 {state.depth}, {frames}", "depth")
    fields = [f for a in op.arguments for f in shown_fields(state, a)]
    shown = ", ".join(["ptr %ctx", f"i64 {deeper}", *fields])
    kind = result_type([*([op.record] if keeps_record(op) else []), *op.called])
    every = text.value(f"call fastcc {kind} @{symbol(op.target)}({shown})", "all")
    status = text.value(f"extractvalue {kind} {every}, 0", "status")
    label = text.label("leave")
    with text.in_cold(label):
        state.leave(status)
    text.branch_if_unlikely(text.value(f"icmp ne i32 {status}, 0"), label)
    state.scalars[op.record] = "0"
    results = [*([op.record] if keeps_record(op) else []), *op.called]
    for k, result in enumerate(results):
        state.scalars[result] = text.value(
            f"extractvalue {kind} {every}, {k + 1}", result.name_hint
        )


def lower_too_deep(state: KernelState, op: activation.TooDeepOp) -> None:
    """The depth is used up, or the stack nearly is: it must hold one more frame of the caller's size."""
    text = state.text
    name = state.intrinsic("llvm.frameaddress.p0", "ptr", "i32")
    here = text.value(f"call ptr @{name}(i32 0)", "frame")
    end = text.value(f"load ptr, ptr {state.context_slot(STACK_END)}, align 8", "end")
    limit = text.value(f"getelementptr i8, ptr {end}, i64 {FRAME}", "limit")
    deep = text.value(f"icmp sle i64 {state.depth}, {op.frames.value.data}")
    used_up = text.value(f"icmp ult ptr {here}, {limit}")
    state.scalars[op.deep] = text.value(f"or i1 {deep}, {used_up}", "deep")


def keeps_record(op: activation.CallOp) -> bool:
    """True for a call of a forward function."""
    return op.keeps_record


def result_type(results: Sequence[SSAValue]) -> str:
    """What a function with these results returns: its status first."""
    return f"{{ {', '.join(['i32', *(value_type(r.type) for r in results)])} }}"


def kept_count(function: func.FuncOp, name: str) -> int:
    """How many values a forward function keeps ("keeps"), a backward function reads ("kept")."""
    listed = function.attributes.get(name)
    return listed.value.data if isinstance(listed, IntegerAttr) else 0

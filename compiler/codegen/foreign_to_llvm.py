"""Calls of C functions and of Python functions.

A C function is called directly, by a symbol that the loader binds::

    %r = foreign.call "c" "mutad_special_j0" ...     %r = call double @mutad_special_j0(double %x, i32 0)

A Python function is called back through the entry, as `print` is: its arguments lie in a payload, its
result is left behind them. What it raises leaves the kernel as it is.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import foreign
from .checks_to_llvm import call_back, name_source
from .kernel_state import KernelState

C_TYPES = {
    "f64": "double", "f32": "float", "i64": "i64", "u64": "i64", "i32": "i32", "u32": "i32",
    "b1": "i1 zeroext",
    "py_float": "double", "c_float": "float", "py_int": "i64", "c_int": "i32", "c_uint": "i32",
    "py_bool": "i1 zeroext", "ptr": "ptr", "": "void",
}  # fmt: skip


def lower_call(state: KernelState, op: foreign.CallOp) -> None:
    if op.convention.data == "python":
        call_python(state, op)
    else:
        call_c(state, op)


def call_c(state: KernelState, op: foreign.CallOp) -> None:
    types = [C_TYPES[t.data] for t in op.types] + ["i32"] * op.trailing.value.data
    values = [pointer_or_number(state, v) for v in op.operands] + ["0"] * op.trailing.value.data
    symbol, outcome = op.callee.data, C_TYPES[op.outcome.data]
    result = " ".join(reversed(outcome.split()))
    state.declare(symbol, f"declare {result} @{symbol}({', '.join(types)})", op.origin.data)
    shown = ", ".join(f"{t} {v}" for t, v in zip(types, values, strict=True))
    call = f"call {result} @{symbol}({shown}) {state.attribute_group('nounwind')}"
    if not op.called:
        state.text.do(call)
        return
    state.scalars[op.called[0]] = state.text.value(call, op.called[0].name_hint)


def pointer_or_number(state: KernelState, value: SSAValue) -> str:
    if isinstance(value.type, MemRefType):
        return state.memrefs[value].pointer
    return state.scalars[value]


def call_python(state: KernelState, op: foreign.CallOp) -> None:
    text = state.text
    kinds = [
        f"memref<{t.data},{v.type.get_num_dims()}>" if isinstance(v.type, MemRefType) else t.data
        for v, t in zip(op.operands, op.types, strict=True)
    ]
    number = state.site(
        op,
        call=int(op.origin.data.removeprefix("constant:")),
        operands=kinds,
        writes=["write" in e.data for e in op.effects],
        result=op.outcome.data or None,
    )
    name_source(state, number)
    payload, words = call_back(state, number, op.operands, room=1)
    for result in op.called:
        at = text.value(f"getelementptr i64, ptr {payload}, i64 {words}")
        state.scalars[result] = state.load(at, result.type, "", result.name_hint)

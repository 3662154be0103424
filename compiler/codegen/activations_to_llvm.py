"""Recursive functions, as LLVM functions beside the kernel, and the calls of them.

::

    %r, %y = activation.call @f(%x)    %next = sub i64 %depth, 1
                                       %all = call { i32, double } @f(ptr %ctx, i64 %next, double %x)
                                       %status = extractvalue { i32, double } %all, 0    ; 0, or leave
                                       %y = extractvalue { i32, double } %all, 1

`%depth` is how many calls may still be nested, from `sys.getrecursionlimit()` downwards. Where it is used up,
or the native stack nearly is, the function raises RecursionError. Now and then it asks for interrupts.

The forward function of a gradient returns its record's address as well: a block of 8-byte slots on the
*arena*, the tape of all activations of a call, which holds what the backward function reads. Its tapes are
chains of segments on the arena, so a tape is one word.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import SSAValue

from ...dialects import ad
from ..names import as_written
from ..rules.calls import records_of
from .activation_calls import kept_count, result_type, shown_fields, symbol
from .arena import arena_push
from .checks_to_llvm import site_of
from .function_to_llvm import KernelWriter
from .handles import Record
from .kernel_state import OK, value_type
from .polls import poll_if
from .steps_driver import has_steps, is_step
from .support.context import STACK_END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .debug_info import DebugInfo, Subject

DEPTH = "%depth"
POLL_DEPTHS = 15
"""Interrupts are asked for where the depth has these bits clear."""


class ActivationWriter(KernelWriter):
    """Writes one private function."""

    def write(self) -> list[str]:
        state, text = self.state, self.text
        last = self.function.body.block.last_op
        assert isinstance(last, func.ReturnOp)
        self.kept = kept_count(self.function, "keeps")
        self.kind = result_type(last.arguments[: len(last.arguments) - self.kept])
        if self.kept_forward:
            self.kind = self.kind.replace("i32", "i32, i64", 1)
        state.returns = self.kind
        state.depth = DEPTH
        state.chained = self.function.attributes.get("chained") is not None
        if is_step(self.function):
            state.arena_push = "mutad_steps_" + ("far" if has_steps(self.function) else "near")
        parameters = self.parameters()
        self.guard()
        scratch = self.mark(self.function.body.block)
        self.scratch = scratch
        self.emit_block(self.function.body.block)
        shown = ", ".join(["ptr noalias %ctx", f"i64 {DEPTH}", *parameters])
        head = f"define internal fastcc {self.kind} @{symbol(self.name)}({shown}) nounwind"
        return [f"{head} {self.attachment()}{{", text.text(), "}"]

    def shown_name(self, subject: Subject) -> str:
        return as_written(self.name)

    def describe_parameters(self, debug: DebugInfo) -> None:
        """Its parameters are another function's than those that are known."""

    @property
    def kept_forward(self) -> bool:
        return "keeps" in self.function.attributes

    def parameters(self) -> list[str]:
        """Of each record that the function is given the address; then its own."""
        arguments = list(self.function.body.block.args)
        addresses: list[str] = []
        for number, count in enumerate(records_of(self.function)):
            held, arguments = arguments[:count], arguments[count:]
            name = f"%record{number or ''}"
            self.text.do(f"{name} = inttoptr i64 {name}.at to ptr")
            Record(slots_of(held), name).bind(self.state, held)
            addresses.append(f"i64 {name}.at")
        return [*addresses, *self.parameters_of(arguments)]

    def guard(self) -> None:
        """Raise RecursionError where no more calls may be nested; ask for interrupts now and then."""
        state, text = self.state, self.text
        site = site_of(
            state, self.function, "RecursionError", "maximum recursion depth exceeded", []
        )
        name = state.intrinsic("llvm.frameaddress.p0", "ptr", "i32")
        here = text.value(f"call ptr @{name}(i32 0)", "frame")
        end = text.value(f"load ptr, ptr {state.context_slot(STACK_END)}, align 8", "end")
        deep = text.value(f"icmp sle i64 {DEPTH}, 0")
        used_up = text.value(f"icmp ult ptr {here}, {end}")
        state.raise_when(text.value(f"or i1 {deep}, {used_up}"), site, [])
        self.poll_every_depth()

    def poll_every_depth(self) -> None:
        text = self.text
        if not self.state.memory.polls:
            return
        low = text.value(f"and i64 {DEPTH}, {POLL_DEPTHS}")
        due = text.value(f"icmp eq i64 {low}, 0")
        poll_if(self.state, due, POLL_DEPTHS)

    def finish(self, op: func.ReturnOp) -> None:
        state, text = self.state, self.text
        results = op.arguments[: len(op.arguments) - self.kept]
        values = [f"{value_type(r.type)} {state.scalars[r]}" for r in results]
        if self.kept_forward:
            values.insert(0, f"i64 {self.keep(op.arguments[len(results) :])}")
        self.release(self.scratch)
        whole = "poison"
        for k, value in enumerate([f"i32 {OK}", *values]):
            whole = text.value(f"insertvalue {self.kind} {whole}, {value}, {k}")
        text.do(f"ret {self.kind} {whole}")

    def keep(self, values: Sequence[SSAValue]) -> str:
        """Put what the backward function reads into a record; its address."""
        state, text = self.state, self.text
        size = sum(map(slot_count, values))
        record = arena_push(state, str(8 * max(size, 1)))
        for first, value in zip(slots_of(values), values, strict=True):
            for k, field in enumerate(self.kept_fields(value)):
                at = text.value(f"getelementptr inbounds i64, ptr {record}, i64 {first + k}")
                text.do(f"store {field}, ptr {at}, align 8")
        return text.value(f"ptrtoint ptr {record} to i64", "record")

    def kept_fields(self, value: SSAValue) -> list[str]:
        state = self.state
        if isinstance(value.type, MemRefType):
            return shown_fields(state, value)
        if isinstance(value.type, ad.TapeType):
            top = state.text.value(f"load i64, ptr {state.scalars[value]}, align 8")
            return [f"i64 {top}"]
        return [state.widened(state.scalars[value], value.type)]


def slots_of(values: Sequence[SSAValue]) -> tuple[int, ...]:
    """The first slot of each value in a record."""
    slots: list[int] = []
    at = 0
    for value in values:
        slots.append(at)
        at += slot_count(value)
    return tuple(slots)


def slots_in_record(forward: func.FuncOp) -> int:
    """How many slots the record of a forward function has."""
    last = forward.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    kept = kept_count(forward, "keeps")
    return sum(map(slot_count, last.arguments[len(last.arguments) - kept :]))


def slot_count(value: SSAValue) -> int:
    """The slots of a value in a record: an array's address, extents and strides; a number for each lane."""
    match value.type:
        case MemRefType() as type_:
            return 1 + 2 * type_.get_num_dims()
        case VectorType() as type_:
            return prod(type_.get_shape())
        case _:
            return 1

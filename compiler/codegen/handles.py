"""What a split gradient keeps between its two kernels, as LLVM text.

The forward kernel leaves what it keeps behind its results: a *record* of 8-byte slots, scalars first
widened, memrefs as pointer, extents and strides, tapes as their four words, the arena last. The backward
kernel takes the record's address and loads its first arguments from there::

    %arena = ad.detach           %arena = load ptr, ptr %tape.chunks      the chunks are no longer the call's
    %t = ad.reader %kept         %tape = alloca [4 x i64]                 a copy of the words: popping
                                 store (load %kept), ptr %tape            moves its own cursor
    %s = ad.pop %t(%n)           %s = call ptr @mutad_tape_read(ptr %tape, i64 %bytes)

Nothing here writes to the record or to the tapes' chunks, so several threads may read them at once.
`mutad_drop` gives the chunks back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ad, array
from .kernel_state import KernelState, value_type
from .support.context import TAPE_CHUNKS, TAPE_WORDS

WORDS = TAPE_WORDS


@dataclass(frozen=True)
class Record:
    """Where the first arguments of a backward kernel are found: the slots of the record."""

    slots: tuple[int, ...]
    pointer: str = "%record"

    def bind(self, state: KernelState, arguments: Sequence[SSAValue]) -> str:
        """Load these arguments; the kernel's parameter that they come from."""
        for slot, argument in zip(self.slots, arguments, strict=False):
            if isinstance(argument.type, MemRefType):
                state.memrefs[argument] = self.memref(state, slot, argument.type)
            else:
                state.scalars[argument] = self.scalar(state, slot, argument.type)
        return f"ptr {self.pointer}"

    def at(self, state: KernelState, slot: int) -> str:
        return state.text.value(f"getelementptr inbounds i64, ptr {self.pointer}, i64 {slot}")

    def load(self, state: KernelState, slot: int, type_: str = "i64") -> str:
        return state.text.value(f"load {type_}, ptr {self.at(state, slot)}, align 8", "kept")

    def memref(self, state: KernelState, slot: int, type_: MemRefType[Attribute]) -> Any:
        rank = type_.get_num_dims()
        pointer = self.load(state, slot, "ptr")
        numbers = [self.load(state, slot + 1 + k) for k in range(2 * rank)]
        strides = None if array.is_contiguous(type_) else tuple(numbers[rank:])
        return state.descriptor(type_, pointer, tuple(numbers[:rank]), strides)

    def scalar(self, state: KernelState, slot: int, type_: Attribute) -> str:
        """The reverse of `KernelState.widened`."""
        match value_type(type_):
            case "ptr":
                return self.at(state, slot)
            case "i1" | "i8" | "i16" | "i32" as narrow:
                return state.text.value(f"trunc i64 {self.load(state, slot)} to {narrow}")
            case "float":
                bits = state.text.value(f"trunc i64 {self.load(state, slot)} to i32")
                return state.text.value(f"bitcast i32 {bits} to float")
            case whole:
                return self.load(state, slot, whole)


def tape_words(state: KernelState, tape: SSAValue) -> list[str]:
    """The words of a tape, as values for result slots."""
    slot = state.scalars[tape]
    words: list[str] = []
    for k in range(WORDS):
        at = state.text.value(f"getelementptr inbounds i64, ptr {slot}, i64 {k}")
        words.append(f"i64 {state.text.value(f'load i64, ptr {at}, align 8')}")
    return words


def lower_detach(state: KernelState, op: ad.DetachOp) -> None:
    """Take the chunks of all tapes from the context: the end of the call does not free them."""
    state.support.add("mutad_drop")
    at = state.context_slot(TAPE_CHUNKS)
    chunks = state.text.value(f"load i64, ptr {at}, align 8", "arena")
    state.text.do(f"store i64 0, ptr {at}, align 8")
    state.scalars[op.arena] = chunks


def lower_reader(state: KernelState, op: ad.ReaderOp) -> None:
    if state.chained:
        state.scalars[op.tape] = slot = state.text.alloca("i64", "tape")
        top = state.text.value(f"load i64, ptr {state.scalars[op.source]}, align 8")
        state.text.do(f"store i64 {top}, ptr {slot}, align 8")
        return
    slot = state.text.alloca(f"[{WORDS} x i64]", "tape")
    words = state.text.value(f"load [{WORDS} x i64], ptr {state.scalars[op.source]}, align 8")
    state.text.do(f"store [{WORDS} x i64] {words}, ptr {slot}, align 8")
    state.scalars[op.tape] = slot


HANDLE_OPS: dict[type[Operation], Callable[[KernelState, Any], None]] = {
    ad.DetachOp: lower_detach,
    ad.ReaderOp: lower_reader,
}

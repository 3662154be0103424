"""The arena: memory for the records and the tapes of activations, as LLVM text.

It is one tape of the kernel, of which nothing is popped: an activation's record holds where its tapes end,
and each segment of such a tape holds where the segment before it is. So activations that are nested in any
way share one stack of chunks, and the backward functions find theirs by address.
"""

from __future__ import annotations

from .kernel_state import OUT_OF_MEMORY, KernelState
from .support.context import ARENA, TAPE_WORDS

TAPE_PUSH = "mutad_tape_push"


def make_arena(state: KernelState) -> None:
    """An empty arena, of which the context knows."""
    slot = state.text.alloca(f"[{TAPE_WORDS} x i64]", "arena")
    state.text.do(f"store [{TAPE_WORDS} x i64] zeroinitializer, ptr {slot}")
    state.text.do(f"store ptr {slot}, ptr {state.context_slot(ARENA)}, align 8")
    state.support.add(TAPE_PUSH)


def arena_push(state: KernelState, size: str) -> str:
    """Memory on the arena, for as long as the call keeps its tapes."""
    text = state.text
    at = state.context_slot(ARENA)
    arena = text.value(f"load ptr, ptr {at}, align 8", "arena")
    function = state.arena_push or TAPE_PUSH
    state.support.add(function)
    given = f"ptr %ctx, ptr {arena}" if function == TAPE_PUSH else f"ptr {arena}"
    found = text.value(f"call ptr @{function}({given}, i64 {size})", "kept")
    state.return_when(text.value(f"icmp eq ptr {found}, null"), OUT_OF_MEMORY)
    return found


def chained_push(state: KernelState, tape: str, size: str) -> str:
    """A segment of a tape that is a chain: 8 bytes in front of it hold where the one before is."""
    text = state.text
    longer = text.value(f"add i64 {size}, 8")
    huge = text.value(f"icmp eq i64 {size}, -1")
    block = arena_push(state, text.value(f"select i1 {huge}, i64 -1, i64 {longer}"))
    before = text.value(f"load i64, ptr {tape}, align 8")
    text.do(f"store i64 {before}, ptr {block}, align 8")
    text.do(f"store ptr {block}, ptr {tape}, align 8")
    return text.value(f"getelementptr inbounds i8, ptr {block}, i64 8", "segment")


def chained_pop(state: KernelState, tape: str) -> str:
    """The last segment of a chain, which then ends before it."""
    text = state.text
    block = text.value(f"load ptr, ptr {tape}, align 8")
    before = text.value(f"load i64, ptr {block}, align 8")
    text.do(f"store i64 {before}, ptr {tape}, align 8")
    return text.value(f"getelementptr inbounds i8, ptr {block}, i64 8", "segment")

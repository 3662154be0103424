"""What compiled host code calls where kernels run on a device: functions of the runtime, and one of its own.

The functions of the runtime (`mutad.runtime.device_text`) launch kernels and hand out the device's memory:
blocks whose records the context begins at `BLOCKS`, and segments of tapes, in one list with the chunks of the
host's tapes. An odd address in that list is a segment's.

Ahead of time the device's memory may be an area of the caller's (`AREA`), with two ends as the host's has
(`area`): scratch is taken from `BLOCKS` on upwards, what lives until the call ends from `AREA_END` downwards.
"""

from __future__ import annotations

from . import callbacks, functions
from .area import TAPE
from .context import ARENA, LAST_POLL, Functions
from .results import END_OF_CALL

BLOCKS = ARENA
"""Byte offset in the context of the first record of a block: a device runs no recursive functions."""

AREA_END = LAST_POLL
"""Byte offset of the address behind an area of the device: nothing polls there."""

DEVICE = "mutad_device"
"""Stands among the support functions of a kernel for all below."""

DECLARATIONS = {
    "mutad_device_launch": "declare i32 @mutad_device_launch(ptr, i64, ptr)",
    "mutad_device_product": "declare i32 @mutad_device_product(ptr, i64, ptr, ptr)",
    "mutad_device_alloc": "declare ptr @mutad_device_alloc(ptr, i64, i64)",
    "mutad_device_release": "declare void @mutad_device_release(ptr, ptr)",
    "mutad_device_keep": "declare void @mutad_device_keep(ptr, ptr)",
    "mutad_device_end": "declare void @mutad_device_end(ptr)",
    "mutad_device_push": "declare ptr @mutad_device_push(ptr, ptr, i64)",
    "mutad_device_pop": "declare ptr @mutad_device_pop(ptr)",
    "mutad_device_read": "declare ptr @mutad_device_read(ptr)",
    "mutad_device_drop_segment": "declare ptr @mutad_device_drop_segment(ptr)",
    "mutad_device_fetch": "declare i32 @mutad_device_fetch(ptr, i64, ptr)",
    "mutad_device_put": "declare i32 @mutad_device_put(ptr, i64, ptr)",
    "mutad_device_is_replayed": "declare i1 @mutad_device_is_replayed(i64, i64)",
    "mutad_device_plan": "declare i64 @mutad_device_plan(i64, i64)",
    "mutad_device_iteration": "declare i32 @mutad_device_iteration(i64)",
    "mutad_device_repeat": "declare i32 @mutad_device_repeat()",
    "mutad_device_has_conditions": "declare i1 @mutad_device_has_conditions()",
    "mutad_device_while_begin": "declare i32 @mutad_device_while_begin(ptr)",
    "mutad_device_while_body": "declare i32 @mutad_device_while_body(ptr)",
    "mutad_device_while_end": "declare i32 @mutad_device_while_end(ptr)",
}

AREA_DECLARATIONS = {
    "mutad_area_alloc": "declare ptr @mutad_area_alloc(ptr, i64, i64)",
    "mutad_area_release": "declare void @mutad_area_release(ptr, ptr)",
    "mutad_area_end": "declare void @mutad_area_end(ptr)",
    "mutad_area_push": "declare ptr @mutad_area_push(ptr, ptr, i64)",
    "mutad_area_pop": "declare ptr @mutad_area_pop(ptr, ptr, i64)",
}

FREE_LIST = """
define internal void @mutad_free_list(ptr %ctx, ptr %first) noinline optnone nounwind {
  br label %look
look:
  %chunk = phi ptr [ %first, %0 ], [ %next, %host ], [ %after, %device ]
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %done, label %which
which:
  %address = ptrtoint ptr %chunk to i64
  %low = and i64 %address, 1
  %odd = icmp eq i64 %low, 1
  br i1 %odd, label %device, label %host
host:
  %next = load ptr, ptr %chunk
  call void @mutad_give(ptr %ctx, ptr %chunk)
  br label %look
device:
  %after = call ptr @mutad_device_drop_segment(ptr %chunk)
  br label %look
done:
  ret void
}
"""


AREA = f"""
define ptr @mutad_area_alloc(ptr %ctx, i64 %bytes, i64 %kind) {{
  %cursor.at = getelementptr i8, ptr %ctx, i64 {BLOCKS}
  %end.at = getelementptr i8, ptr %ctx, i64 {AREA_END}
  %cursor = load i64, ptr %cursor.at
  %end = load i64, ptr %end.at
  %possible = call i64 @llvm.umin.i64(i64 %bytes, i64 4611686018427387904) ; -1 is too much
  %more = add i64 %possible, 63
  %size = and i64 %more, -64
  %room = sub i64 %end, %cursor
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %which, label %none
which:
  %scratch = icmp eq i64 %kind, 0
  br i1 %scratch, label %below, label %above
below:
  %next = add i64 %cursor, %size
  store i64 %next, ptr %cursor.at
  %first = inttoptr i64 %cursor to ptr
  ret ptr %first
above:
  %top = sub i64 %end, %size
  store i64 %top, ptr %end.at
  %found = inttoptr i64 %top to ptr
  ret ptr %found
none:
  ret ptr null
}}
define void @mutad_area_release(ptr %ctx, ptr %mark) {{
  %cursor.at = getelementptr i8, ptr %ctx, i64 {BLOCKS}
  store ptr %mark, ptr %cursor.at
  ret void
}}
define void @mutad_area_end(ptr %ctx) {{
  %cursor.at = getelementptr i8, ptr %ctx, i64 {BLOCKS}
  store ptr null, ptr %cursor.at
  call void @mutad_device_end(ptr %ctx)
  ret void
}}
{TAPE.replace("mutad_tape", "mutad_area").replace("internal ", "").replace("alwaysinline ", "")}"""
"""An area of the device as memory: it goes with what a library calls to have kernels run."""


def end_of_call(function: str) -> str:
    """What a kernel runs at its end, so that the device's memory is given back, too."""
    before = f"nounwind {{\n  call void @{function}(ptr %ctx)"
    return END_OF_CALL.replace("nounwind {", before, 1) + FREE_LIST


AFTER = functions.FUNCTIONS["mutad_end"][1]

FUNCTIONS: Functions = {
    **functions.FUNCTIONS,
    "mutad_end": (end_of_call("mutad_device_end"), AFTER),
}
POOL_FUNCTIONS: Functions = {
    **callbacks.FUNCTIONS,
    "mutad_end": (end_of_call("mutad_device_end"), AFTER),
}
AREA_FUNCTIONS: Functions = {
    **callbacks.FUNCTIONS,
    "mutad_end": (end_of_call("mutad_area_end"), AFTER),
}

"""What compiled host code calls where kernels run on a device: functions of the runtime, and one of its own.

The functions of the runtime (`mutad.runtime.device_text`) launch kernels and hand out the device's memory:
blocks whose records the context begins at `BLOCKS`, and segments of tapes, in one list with the chunks of the
host's tapes. An odd address in that list is a segment's.
"""

from __future__ import annotations

from . import functions
from .context import ARENA, Functions
from .results import END_OF_CALL

BLOCKS = ARENA
"""Byte offset in the context of the first record of a block: a device runs no recursive functions."""

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

END = (
    END_OF_CALL.replace("nounwind {", "nounwind {\n  call void @mutad_device_end(ptr %ctx)", 1)
    + FREE_LIST
)

FUNCTIONS: Functions = {
    **functions.FUNCTIONS,
    "mutad_end": (END, functions.FUNCTIONS["mutad_end"][1]),
}

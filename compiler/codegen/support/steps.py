"""Support functions of checkpointed loops: the stack of what is kept.

Which word of the stack and of a loop's head is where, `runtime/step_words.py` says; `runtime/step_stack.py`
decides what is kept. An item begins with four words: the item below, the step, 0 or the address of the
step's record, and where the stack ended before it, 0 where that is as it was.
"""

from __future__ import annotations

CURSOR, END, LAST, LIMIT, BASE, WHOLE_END, BUDGET, OTHERS, WHOLE, FILE = 8, 16, *range(32, 96, 8)
OWN_TOP, OWN_END = 112, 120
"""Byte offsets in the stack. Those from `BUDGET` to `WHOLE` are for the words of errors; the last two are of
a step that has loops: from where downwards its own values go, and where their memory begins."""
STACK_WORDS = 16
TOP, UNTIL, KIND, STEP, COPIES, COUNT, STATES, VALUES, SAVED, STATE, OWN = range(0, 88, 8)
"""Byte offsets in a head."""
KEEP, STORE, RUN, WRITE = 1, 2, 3, 4
"""What is done with the next steps."""
PENDING = "pending"
"""What a site raises that says so: what the runtime could not do."""
ITEM_STEP, ITEM_RECORD, ITEM_END, ITEM_HEAD = 8, 16, 24, 32

CALLBACKS = {
    "mutad_steps_room": 1,
    "mutad_steps_begin": 12,
    "mutad_steps_ask": 3,
    "mutad_steps_turn": 2,
    "mutad_steps_restart": 3,
    "mutad_steps_finish": 2,
    "mutad_steps_open": 3,
    "mutad_steps_close": 1,
    "mutad_steps_write": 2,
    "mutad_steps_fetch": 3,
}
"""What the runtime decides: how many integers each function is given."""


def declaration(symbol: str) -> str:
    return f"declare i64 @{symbol}({', '.join(['i64'] * CALLBACKS[symbol])})"


_PUSHED = "ptr %stack, ptr %head, i64 %bytes, i64 %kind"

PUSH = f"""
define internal ptr @mutad_steps_push({_PUSHED}) noinline nounwind {{
  %item = call ptr @mutad_steps_near(ptr %stack, i64 %bytes)
  %none = icmp eq ptr %item, null
  br i1 %none, label %exhausted, label %made
made:
  %top.at = getelementptr i8, ptr %head, i64 {TOP}
  %below = load ptr, ptr %top.at
  store ptr %below, ptr %item
  %now.at = getelementptr i8, ptr %head, i64 {STEP}
  %now = load i64, ptr %now.at
  %step.at = getelementptr i8, ptr %item, i64 {ITEM_STEP}
  store i64 %now, ptr %step.at
  %record.at = getelementptr i8, ptr %item, i64 {ITEM_RECORD}
  store i64 0, ptr %record.at
  %far.at = getelementptr i8, ptr %item, i64 {ITEM_END}
  store i64 0, ptr %far.at
  store ptr %item, ptr %top.at
  %count.at = getelementptr i8, ptr %head, i64 %kind
  %count = load i64, ptr %count.at
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at
  ret ptr %item
exhausted:
  ret ptr null
}}
"""
"""`%kind`: where the head counts items of the kind."""

POP = f"""
define internal void @mutad_steps_pop(ptr %stack, ptr %head) noinline nounwind {{
  %top.at = getelementptr i8, ptr %head, i64 {TOP}
  %item = load ptr, ptr %top.at
  %below = load ptr, ptr %item
  store ptr %below, ptr %top.at
  %cursor.at = getelementptr i8, ptr %stack, i64 {CURSOR}
  store ptr %item, ptr %cursor.at
  %count.at = getelementptr i8, ptr %head, i64 {VALUES}
  %count = load i64, ptr %count.at
  %less = sub i64 %count, 1
  store i64 %less, ptr %count.at
  %far.at = getelementptr i8, ptr %item, i64 {ITEM_END}
  %far = load i64, ptr %far.at
  %end.at = getelementptr i8, ptr %stack, i64 {END}
  %end = load i64, ptr %end.at
  %as.it.was = icmp eq i64 %far, 0
  %left = select i1 %as.it.was, i64 %end, i64 %far
  store i64 %left, ptr %end.at
  ret void
}}
"""
"""Takes the values of a step, which are on top."""

FAR = f"""
define internal ptr @mutad_steps_far(ptr %stack, i64 %bytes) noinline nounwind {{
  %possible = call i64 @llvm.umin.i64(i64 %bytes, i64 4611686018427387904) ; -1 is too much
  %more = add i64 %possible, 7
  %size = and i64 %more, -8
  %top.at = getelementptr i8, ptr %stack, i64 {OWN_TOP}
  %top = load i64, ptr %top.at
  %end.at = getelementptr i8, ptr %stack, i64 {OWN_END}
  %end = load i64, ptr %end.at
  %room = sub i64 %top, %end
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %take, label %exhausted
take:
  %next = sub i64 %top, %size
  store i64 %next, ptr %top.at
  %found = inttoptr i64 %next to ptr
  ret ptr %found
exhausted:
  ret ptr null
}}
declare i64 @llvm.umin.i64(i64, i64)
"""
"""Memory of a step whose loops have the lower end: of its own piece at the upper one."""

NEAR = f"""
define internal ptr @mutad_steps_near(ptr %stack, i64 %bytes) alwaysinline nounwind {{
  %possible = call i64 @llvm.umin.i64(i64 %bytes, i64 4611686018427387904) ; -1 is too much
  %more = add i64 %possible, 7
  %size = and i64 %more, -8
  %cursor.at = getelementptr i8, ptr %stack, i64 {CURSOR}
  %cursor = load i64, ptr %cursor.at
  %end.at = getelementptr i8, ptr %stack, i64 {END}
  %end = load i64, ptr %end.at
  %room = sub i64 %end, %cursor
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %take, label %exhausted
take:
  %next = add i64 %cursor, %size
  store i64 %next, ptr %cursor.at
  %found = inttoptr i64 %cursor to ptr
  ret ptr %found
exhausted:
  ret ptr null
}}
declare i64 @llvm.umin.i64(i64, i64)
"""
"""Memory at the lower end."""

FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "mutad_steps_near": (NEAR, ()),
    "mutad_steps_push": (PUSH, ("mutad_steps_near",)),
    "mutad_steps_pop": (POP, ()),
    "mutad_steps_far": (FAR, ()),
}
"""Each with what it calls."""

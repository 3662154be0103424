"""Support functions of checkpointed loops: the stack of what is kept, and the schedule.

What the two sweeps share is `kept`, words of 8 bytes: the four of a tape (`support`), whose one chunk is the
whole budget; the top item; the next decision; the step that the arrays stand before; where the copies are on
which steps are run again, 0 where none is; the bytes of a restart state's item.

An item begins with three words: the item below, the step, and 0 or the address of the step's record.
"""

from __future__ import annotations

TOP, NEXT, STEP, COPIES, STATE = 32, 40, 48, 56, 64
"""Byte offsets, behind the words of the tape."""
KEPT_WORDS = 9
ITEM_STEP, ITEM_RECORD, ITEM_HEAD = 8, 16, 24
PER_STEP = 8
"""Bytes of the schedule for each step: two decisions at most."""
BEGUN, EXHAUSTED = -1, -2
"""What `mutad_steps_begin` returns, else the least number of bytes that would do."""

SCHEDULE = "declare i64 @mutad_schedule(i64, i64, i64, i64, ptr)"

_PARAMETERS = "ptr %ctx, ptr %kept, i64 %n, i64 %budget, i64 %state, i64 %saved, i64 %copies"


def begin(arena: int) -> str:
    """`arena`: the offset in the context."""
    return f"""
define internal i64 @mutad_steps_begin({_PARAMETERS}) noinline optnone nounwind {{
  call void @llvm.memset.p0.i64(ptr %kept, i8 0, i64 {8 * KEPT_WORDS}, i1 false)
  %arena.at = getelementptr i8, ptr %ctx, i64 {arena}
  store ptr %kept, ptr %arena.at
  %plan = mul i64 %n, {PER_STEP}
  %pair = call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 %n, i64 %saved)
  %product = extractvalue {{ i64, i1 }} %pair, 0
  %wrapped = extractvalue {{ i64, i1 }} %pair, 1
  %values = select i1 %wrapped, i64 4611686018427387904, i64 %product
  %all = add i64 %values, %plan
  %two = add i64 %state, %saved
  %again = add i64 %two, %copies
  %some = add i64 %again, %plan
  %least = call i64 @llvm.smin.i64(i64 %all, i64 %some)
  %fits = icmp sle i64 %all, %budget
  %enough = icmp sle i64 %least, %budget
  br i1 %enough, label %plan.it, label %too.little
too.little:
  ret i64 %least
plan.it:
  %taken = add i64 %plan, %copies
  %rest = sub i64 %budget, %taken
  %room = select i1 %fits, i64 %values, i64 %rest
  %bytes = select i1 %fits, i64 %all, i64 %budget
  %base = call ptr @mutad_tape_push(ptr %ctx, ptr %kept, i64 %bytes)
  %none = icmp eq ptr %base, null
  br i1 %none, label %exhausted, label %made
made:
  %count = call i64 @mutad_schedule(i64 %n, i64 %state, i64 %saved, i64 %room, ptr %base)
  %failed = icmp slt i64 %count, 0
  br i1 %failed, label %exhausted, label %planned
planned:
  %next.at = getelementptr i8, ptr %kept, i64 {NEXT}
  store ptr %base, ptr %next.at
  %copies.begin = getelementptr i8, ptr %base, i64 %plan
  %items.begin = getelementptr i8, ptr %base, i64 %taken
  %copied = select i1 %fits, ptr null, ptr %copies.begin
  %copies.at = getelementptr i8, ptr %kept, i64 {COPIES}
  store ptr %copied, ptr %copies.at
  %items = select i1 %fits, ptr %copies.begin, ptr %items.begin
  %cursor.at = getelementptr i8, ptr %kept, i64 8
  store ptr %items, ptr %cursor.at
  %state.at = getelementptr i8, ptr %kept, i64 {STATE}
  store i64 %state, ptr %state.at
  ret i64 {BEGUN}
exhausted:
  ret i64 {EXHAUSTED}
}}
declare {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{SCHEDULE}
"""


PUSH = f"""
define internal ptr @mutad_steps_push(ptr %ctx, ptr %kept, i64 %bytes) noinline nounwind {{
  %item = call ptr @mutad_tape_push(ptr %ctx, ptr %kept, i64 %bytes)
  %none = icmp eq ptr %item, null
  br i1 %none, label %exhausted, label %made
made:
  %top.at = getelementptr i8, ptr %kept, i64 {TOP}
  %below = load ptr, ptr %top.at
  store ptr %below, ptr %item
  %now.at = getelementptr i8, ptr %kept, i64 {STEP}
  %now = load i64, ptr %now.at
  %step.at = getelementptr i8, ptr %item, i64 {ITEM_STEP}
  store i64 %now, ptr %step.at
  %record.at = getelementptr i8, ptr %item, i64 {ITEM_RECORD}
  store i64 0, ptr %record.at
  store ptr %item, ptr %top.at
  ret ptr %item
exhausted:
  ret ptr null
}}
"""

POP = f"""
define internal void @mutad_steps_pop(ptr %kept) noinline nounwind {{
  %top.at = getelementptr i8, ptr %kept, i64 {TOP}
  %item = load ptr, ptr %top.at
  %below = load ptr, ptr %item
  store ptr %below, ptr %top.at
  %cursor.at = getelementptr i8, ptr %kept, i64 8
  store ptr %item, ptr %cursor.at
  ret void
}}
"""


def functions(arena: int) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Each with what it calls."""
    return {
        "mutad_steps_begin": (begin(arena), ("mutad_tape_push",)),
        "mutad_steps_push": (PUSH, ("mutad_tape_push",)),
        "mutad_steps_pop": (POP, ()),
    }

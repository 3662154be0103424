"""Support functions of kernels that get their memory from their caller: an area of a size that is known on
entry. LLVM text.

No malloc, no poll, nothing of Python. The context holds on entry

- at `CURSOR` the first address of the area, a multiple of 64 and not 0 (of an area without bytes, too),
- at `END` the address behind its last byte, a multiple of 64,
- at `ROOM` how many bytes there are, `END - CURSOR`,

and zeros elsewhere (`RECURSION_LIMIT` holds how many calls of recursive functions may be nested). `ROOM` is
the fewest bytes that were free at any time since: what the call took at its peak is what it held on entry
less what it holds now. Where an area is too small the kernel returns 3, and may have stored to its arguments.

The area has two ends. *Scratch* grows from below: `mutad_alloc` moves `CURSOR` up, and the end of an
iteration (`mutad_release`) moves it back to where a `mutad_mark` was taken. What lives until the call ends,
results and tapes, is taken from above: `END` moves down. A tape reserves at once the most that it will hold
(`ad.tape reserves`), so its segments lie side by side, and tapes with different lifetimes leave no holes.
Sizes are rounded up to 64 bytes, those of segments to 8; nothing else is added, so the peak is the sum of
these. Memory of size 0 takes no bytes.
"""

from __future__ import annotations

from .context import CURSOR, END, PEAK, STACK_END, Functions
from .integer_powers import INTEGER_POWERS
from .stack import guess_stack

ROOM = PEAK

assert CURSOR == 0

_ROOM = f"""
declare i64 @llvm.umin.i64(i64, i64)
define internal i64 @mutad_rounded(i64 %bytes) alwaysinline nounwind {{
  %possible = call i64 @llvm.umin.i64(i64 %bytes, i64 4611686018427387904) ; -1 is too much
  %more = add i64 %possible, 63
  %size = and i64 %more, -64
  ret i64 %size
}}
define internal void @mutad_count(ptr %ctx, i64 %room) alwaysinline nounwind {{
  %least.at = getelementptr i8, ptr %ctx, i64 {ROOM}
  %least = load i64, ptr %least.at
  %now = call i64 @llvm.umin.i64(i64 %least, i64 %room)
  store i64 %now, ptr %least.at
  ret void
}}
"""

_ALLOC = f"""
define internal noalias ptr @mutad_alloc(ptr %ctx, i64 %bytes) noinline nounwind {{
  %end.at = getelementptr i8, ptr %ctx, i64 {END}
  %cursor = load i64, ptr %ctx
  %end = load i64, ptr %end.at
  %size = call i64 @mutad_rounded(i64 %bytes)
  %room = sub i64 %end, %cursor
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %bump, label %none
bump:
  %next = add i64 %cursor, %size
  store i64 %next, ptr %ctx
  %left = sub i64 %room, %size
  call void @mutad_count(ptr %ctx, i64 %left)
  %found = inttoptr i64 %cursor to ptr
  ret ptr %found
none:
  ret ptr null
}}
"""

_MARK = """
define internal ptr @mutad_mark(ptr %ctx) alwaysinline nounwind {
  %cursor = load ptr, ptr %ctx
  ret ptr %cursor
}
define internal void @mutad_release(ptr %ctx, ptr %mark) alwaysinline nounwind {
  store ptr %mark, ptr %ctx
  ret void
}
"""

_ALLOC_RESULT = f"""
define internal noalias ptr @mutad_alloc_result(ptr %ctx, i64 %bytes) noinline nounwind {{
  %end.at = getelementptr i8, ptr %ctx, i64 {END}
  %cursor = load i64, ptr %ctx
  %end = load i64, ptr %end.at
  %size = call i64 @mutad_rounded(i64 %bytes)
  %room = sub i64 %end, %cursor
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %take, label %none
take:
  %top = sub i64 %end, %size
  store i64 %top, ptr %end.at
  %left = sub i64 %room, %size
  call void @mutad_count(ptr %ctx, i64 %left)
  %found = inttoptr i64 %top to ptr
  ret ptr %found
none:
  ret ptr null
}}
define internal void @mutad_keep(ptr %ctx, ptr %block) alwaysinline nounwind {{
  ret void
}}
"""

# A tape: nothing, cursor, end, nothing.
TAPE = """
define internal ptr @mutad_tape_push(ptr %ctx, ptr %tape, i64 %bytes) alwaysinline nounwind {
  %cursor.at = getelementptr i8, ptr %tape, i64 8
  %end.at = getelementptr i8, ptr %tape, i64 16
  %cursor = load i64, ptr %cursor.at
  %end = load i64, ptr %end.at
  %possible = call i64 @llvm.umin.i64(i64 %bytes, i64 4611686018427387904) ; -1 is too much
  %more = add i64 %possible, 7
  %size = and i64 %more, -8
  %room = sub i64 %end, %cursor
  %fits = icmp ule i64 %size, %room
  %next = add i64 %cursor, %size
  %kept = select i1 %fits, i64 %next, i64 %cursor
  store i64 %kept, ptr %cursor.at
  %there = select i1 %fits, i64 %cursor, i64 0
  %found = inttoptr i64 %there to ptr
  ret ptr %found
}
define internal ptr @mutad_tape_pop(ptr %ctx, ptr %tape, i64 %bytes) alwaysinline nounwind {
  %cursor.at = getelementptr i8, ptr %tape, i64 8
  %cursor = load i64, ptr %cursor.at
  %more = add i64 %bytes, 7
  %size = and i64 %more, -8
  %top = sub i64 %cursor, %size
  store i64 %top, ptr %cursor.at
  %found = inttoptr i64 %top to ptr
  ret ptr %found
}
declare i64 @llvm.umin.i64(i64, i64)
"""

FUNCTIONS: Functions = {
    "mutad_room": (_ROOM, ()),
    "mutad_alloc": (_ALLOC, ("mutad_room",)),
    "mutad_mark": (_MARK, ()),
    "mutad_release": ("", ("mutad_mark",)),
    "mutad_alloc_result": (_ALLOC_RESULT, ("mutad_room",)),
    "mutad_tape_push": (TAPE, ()),
    "mutad_find_stack": (guess_stack(STACK_END), ()),
    **INTEGER_POWERS,
}
"""The support functions that such a kernel may use."""

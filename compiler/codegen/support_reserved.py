"""Address space for arrays that grow: reserved at once, real where it is touched. LLVM text.

A growable array needs one base address, whatever its length comes to be. The system hands out more
addresses than there is memory; a page of them costs nothing until something is stored there, and it
reads as 0 then.
Each place of the code has one range in a call, found again by its number: a list that a loop makes anew
in each iteration takes the pages of the one before.

The record of a range is one of those of the results, `{next, base + 1, number}`: the odd address tells
them apart.
"""

from __future__ import annotations

import sys

RESERVED_BYTES = 1 << 36

_NO_RESERVE = 0x1042 if sys.platform == "darwin" else 0x4022
"""MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE."""

DROP_RESULT = f"""
define internal void @mutad_drop_result(ptr %block) noinline optnone nounwind {{
  %address = ptrtoint ptr %block to i64
  %low = and i64 %address, 1
  %reserved = icmp eq i64 %low, 1
  br i1 %reserved, label %unmap, label %free
unmap:
  %base = getelementptr i8, ptr %block, i64 -1
  %ignored = call i32 @munmap(ptr %base, i64 {RESERVED_BYTES})
  ret void
free:
  call void @mutad_libc_free(ptr %block)
  ret void
}}
declare i32 @munmap(ptr, i64)
"""


def reserve(results: int) -> str:
    """`mutad_reserve`; the list of records is at the byte offset `results` of the context."""
    return f"""
define internal noalias ptr @mutad_reserve(ptr %ctx, i64 %number) noinline optnone nounwind {{
entry:
  %list.at = getelementptr i8, ptr %ctx, i64 {results}
  %first = load ptr, ptr %list.at
  br label %look
look:
  %record = phi ptr [ %first, %entry ], [ %next, %on ]
  %none = icmp eq ptr %record, null
  br i1 %none, label %fresh, label %compare
compare:
  %base.at = getelementptr i8, ptr %record, i64 8
  %odd = load ptr, ptr %base.at
  %address = ptrtoint ptr %odd to i64
  %low = and i64 %address, 1
  %reserved = icmp eq i64 %low, 1
  br i1 %reserved, label %numbered, label %on
numbered:
  %number.at = getelementptr i8, ptr %record, i64 16
  %this = load i64, ptr %number.at
  %same = icmp eq i64 %this, %number
  br i1 %same, label %found, label %on
on:
  %next = load ptr, ptr %record
  br label %look
found:
  %again = getelementptr i8, ptr %odd, i64 -1
  ret ptr %again
fresh:
  %made = call ptr @mutad_libc_malloc(i64 24)
  %no.record = icmp eq ptr %made, null
  br i1 %no.record, label %fail, label %map
map:
  %range = call ptr @mmap(ptr null, i64 {RESERVED_BYTES}, i32 3, i32 {_NO_RESERVE}, i32 -1, i64 0)
  %where = ptrtoint ptr %range to i64
  %refused = icmp eq i64 %where, -1
  br i1 %refused, label %give.back, label %keep
keep:
  store ptr %first, ptr %made
  %made.base.at = getelementptr i8, ptr %made, i64 8
  %tagged = getelementptr i8, ptr %range, i64 1
  store ptr %tagged, ptr %made.base.at
  %made.number.at = getelementptr i8, ptr %made, i64 16
  store i64 %number, ptr %made.number.at
  store ptr %made, ptr %list.at
  ret ptr %range
give.back:
  call void @mutad_libc_free(ptr %made)
  br label %fail
fail:
  ret ptr null
}}
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
"""

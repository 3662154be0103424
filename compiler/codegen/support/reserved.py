"""Address space for arrays that grow: reserved at once, real where it is touched. LLVM text.

A growable array needs one base address, whatever its length comes to be. The system hands out more
addresses than there is memory; a page of them costs nothing until something is stored there, and it
reads as 0 then. Each place of the code has one range in a call, found again by its number: a list that a
loop makes anew in each iteration takes the pages of the one before.

After a call that ended well a few ranges wait for the next one, with the pages that they have (the first
of them: the rest goes back to the system). Those of shadows wait apart: the reverse sweep leaves them
zero, as it found them.

The record of a range is one of those of the results, `{next, base + 1, number, mutad_drop_range}`: the odd
address tells them apart. The number of a shadow's is odd. (The function is in the record so that kernels
without ranges name nothing of the system.)
"""

from __future__ import annotations

import sys

RESERVED_BYTES = 1 << 36
RECORD_BYTES = 32
KEPT_BYTES = 1 << 26
"""So much of a range keeps its pages between calls."""

SLOTS = 4
"""So many ranges of either kind wait in the process: behind the blocks of the pool."""

FAR, TRIES = 1 << 45, 256
"""Where ranges are asked for, one behind the other: far from where the system puts mappings, which so keep
together. Machine code and its constants must not be further apart than 2 GiB."""

_NO_RESERVE = 0x1042 if sys.platform == "darwin" else 0x4022
"""MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE."""


def drop_result(
    free_block: str = "call void @mutad_libc_free(ptr %block)",
    free_record: str = "call void @mutad_libc_free(ptr %record)",
) -> str:
    """`mutad_drop_result`: what a record holds is freed, a range as its record says; so is the record."""
    return f"""
define internal void @mutad_drop_result(ptr %ctx, ptr %record, i32 %status) noinline optnone nounwind {{
entry:
  %block.at = getelementptr i8, ptr %record, i64 8
  %block = load ptr, ptr %block.at
  %address = ptrtoint ptr %block to i64
  %low = and i64 %address, 1
  %reserved = icmp eq i64 %low, 1
  br i1 %reserved, label %range, label %free
range:
  %drop.at = getelementptr i8, ptr %record, i64 24
  %drop = load ptr, ptr %drop.at
  call void %drop(ptr %ctx, ptr %record, i32 %status)
  br label %done
free:
  {free_block}
  br label %done
done:
  {free_record}
  ret void
}}
"""


def drop_range(pool: int, first: int) -> str:
    """`mutad_drop_range`: the range of a record goes back to the system, or waits for the next call.

    `pool` is the byte offset of the pool in the context, `first` the first slot for ranges in it.
    """
    return f"""
define internal void @mutad_drop_range(ptr %ctx, ptr %record, i32 %status) noinline optnone nounwind {{
entry:
  %block.at = getelementptr i8, ptr %record, i64 8
  %block = load ptr, ptr %block.at
  %base = getelementptr i8, ptr %block, i64 -1
  %pool.at = getelementptr i8, ptr %ctx, i64 {pool}
  %pool = load ptr, ptr %pool.at
  %pooled = icmp ne ptr %pool, null
  %well = icmp eq i32 %status, 0
  %wait = and i1 %pooled, %well
  br i1 %wait, label %trim, label %unmap
trim:
  %rest = getelementptr i8, ptr %base, i64 {KEPT_BYTES}
  %trimmed = call i32 @madvise(ptr %rest, i64 {RESERVED_BYTES - KEPT_BYTES}, i32 4)
  %clean = icmp eq i32 %trimmed, 0
  br i1 %clean, label %place, label %unmap
place:
  %number.at = getelementptr i8, ptr %record, i64 16
  %number = load i64, ptr %number.at
  %kind = and i64 %number, 1
  %skipped = mul i64 %kind, {SLOTS}
  %from = add i64 %skipped, {first}
  %to = add i64 %from, {SLOTS}
  br label %look
look:
  %slot = phi i64 [ %from, %place ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr %pool, i64 %slot
  %swap = cmpxchg ptr %slot.at, ptr null, ptr %base acq_rel monotonic
  %taken = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %taken, label %done, label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, %to
  br i1 %more, label %look, label %unmap
unmap:
  %ignored = call i32 @munmap(ptr %base, i64 {RESERVED_BYTES})
  br label %done
done:
  ret void
}}
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
"""


CLEAR = f"""
define internal void @mutad_clear(ptr %base) noinline optnone nounwind {{
entry:
  %ignored = call i32 @madvise(ptr %base, i64 {RESERVED_BYTES}, i32 4)
  ret void
}}
declare i32 @madvise(ptr, i64, i32)
"""
"""`mutad_clear`: a range reads as 0 again, for its pages go back to the system."""


def reserve(
    results: int,
    pool: int,
    first: int,
    make_record: str = f"call ptr @mutad_libc_malloc(i64 {RECORD_BYTES})",
    free_record: str = "call void @mutad_libc_free(ptr %made)",
) -> str:
    """`mutad_reserve`; the list of records is at the byte offset `results` of the context."""
    return f"""
define internal ptr @mutad_reserve(ptr %ctx, i64 %number) noinline optnone nounwind {{
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
  %made = {make_record}
  %no.record = icmp eq ptr %made, null
  br i1 %no.record, label %fail, label %ask
ask:
  %kind = and i64 %number, 1
  %skipped = mul i64 %kind, {SLOTS}
  %from = add i64 %skipped, {first}
  %to = add i64 %from, {SLOTS}
  %pool.at = getelementptr i8, ptr %ctx, i64 {pool}
  %pool = load ptr, ptr %pool.at
  %alone = icmp eq ptr %pool, null
  br i1 %alone, label %seek, label %waiting
waiting:
  %slot = phi i64 [ %from, %ask ], [ %slot.next, %empty ]
  %slot.at = getelementptr ptr, ptr %pool, i64 %slot
  %old = atomicrmw xchg ptr %slot.at, ptr null acq_rel
  %nothing = icmp eq ptr %old, null
  br i1 %nothing, label %empty, label %keep
empty:
  %slot.next = add i64 %slot, 1
  %more = icmp ult i64 %slot.next, %to
  br i1 %more, label %waiting, label %seek
seek:
  br label %map
map:
  %try = phi i64 [ 0, %seek ], [ %try.next, %elsewhere ]
  %distance = mul i64 %try, {RESERVED_BYTES}
  %wanted = add i64 %distance, {FAR}
  %hint = inttoptr i64 %wanted to ptr
  %range = call ptr @mmap(ptr %hint, i64 {RESERVED_BYTES}, i32 3, i32 {_NO_RESERVE}, i32 -1, i64 0)
  %where = ptrtoint ptr %range to i64
  %refused = icmp eq i64 %where, -1
  br i1 %refused, label %give.back, label %compare.place
compare.place:
  %there = icmp eq i64 %where, %wanted
  %try.next = add i64 %try, 1
  %last = icmp eq i64 %try.next, {TRIES}
  %good = or i1 %there, %last
  br i1 %good, label %keep, label %elsewhere
elsewhere:
  %undone = call i32 @munmap(ptr %range, i64 {RESERVED_BYTES})
  br label %map
keep:
  %given = phi ptr [ %range, %compare.place ], [ %old, %waiting ]
  store ptr %first, ptr %made
  %made.base.at = getelementptr i8, ptr %made, i64 8
  %tagged = getelementptr i8, ptr %given, i64 1
  store ptr %tagged, ptr %made.base.at
  %made.number.at = getelementptr i8, ptr %made, i64 16
  store i64 %number, ptr %made.number.at
  %made.drop.at = getelementptr i8, ptr %made, i64 24
  store ptr @mutad_drop_range, ptr %made.drop.at
  store ptr %made, ptr %list.at
  ret ptr %given
give.back:
  {free_record}
  br label %fail
fail:
  ret ptr null
}}
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
"""

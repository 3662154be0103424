"""Large blocks wait in the process for the next call. LLVM text."""

from __future__ import annotations

import sys

from . import reserved
from .context import POOL
from .poll import TICKS

POOL_SLOTS, POOLED_FROM, POOLED_TO = 16, 1 << 18, 1 << 29
"""How many blocks the process keeps between calls, and of what sizes in bytes."""

WAITING = 8 * (POOL_SLOTS + 2 * reserved.SLOTS)
"""Where the pool says how many bytes of blocks wait, and behind that how many may."""

HUGE_FROM, PAGE = 1 << 22 if sys.platform == "linux" else 1 << 62, 1 << 12
"""New blocks of so many bytes ask for huge pages (`MADV_HUGEPAGE`)."""

_IDLE = 500 * TICKS
"""About 10 s: a block that waited for so long goes when the next one is kept."""

TAKE = f"""
define internal ptr @mutad_take(ptr %ctx, i64 %bytes) noinline optnone nounwind {{
entry:
  %pool.at = getelementptr i8, ptr %ctx, i64 {POOL}
  %pool = load ptr, ptr %pool.at
  %pooled = icmp ne ptr %pool, null
  %large = icmp uge i64 %bytes, {POOLED_FROM}
  %look.first = and i1 %pooled, %large
  br i1 %look.first, label %look, label %fresh
look:
  %slot = phi i64 [ 0, %entry ], [ %next, %on ]
  %best = phi ptr [ null, %entry ], [ %best.now, %on ]
  %least = phi i64 [ -1, %entry ], [ %least.now, %on ]
  %slot.at = getelementptr ptr, ptr %pool, i64 %slot
  %block = atomicrmw xchg ptr %slot.at, ptr null acq_rel
  %none = icmp eq ptr %block, null
  br i1 %none, label %on, label %measure
measure:
  %size = load i64, ptr %block
  %enough = icmp uge i64 %size, %bytes
  %eightfold = shl i64 %bytes, 3
  %near = icmp ule i64 %size, %eightfold
  %fits = and i1 %enough, %near
  %smaller = icmp ult i64 %size, %least
  %better = and i1 %fits, %smaller
  %back = select i1 %better, ptr %best, ptr %block
  %best.here = select i1 %better, ptr %block, ptr %best
  %least.here = select i1 %better, i64 %size, i64 %least
  %displaced = atomicrmw xchg ptr %slot.at, ptr %back acq_rel
  call void @mutad_forget(ptr %pool, ptr %displaced)
  br label %on
on:
  %best.now = phi ptr [ %best, %look ], [ %best.here, %measure ]
  %least.now = phi i64 [ %least, %look ], [ %least.here, %measure ]
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {POOL_SLOTS}
  br i1 %more, label %look, label %chosen
chosen:
  %missing = icmp eq ptr %best.now, null
  br i1 %missing, label %fresh, label %reuse
reuse:
  %count.at = getelementptr i8, ptr %pool, i64 {WAITING}
  %counted = atomicrmw sub ptr %count.at, i64 %least.now acq_rel
  %again = getelementptr i8, ptr %best.now, i64 64
  ret ptr %again
fresh:
  %whole = add i64 %bytes, 64
  %made = call ptr @mutad_libc_malloc(i64 %whole)
  %exhausted = icmp eq ptr %made, null
  br i1 %exhausted, label %fail, label %good
good:
  store i64 %bytes, ptr %made
  %data = getelementptr i8, ptr %made, i64 64
  %huge = icmp uge i64 %bytes, {HUGE_FROM}
  br i1 %huge, label %advise, label %ready
advise:
  %first = ptrtoint ptr %made to i64
  %beyond = add i64 %first, %whole
  %up = add i64 %first, {PAGE - 1}
  %from = and i64 %up, {-PAGE}
  %to = and i64 %beyond, {-PAGE}
  %length = sub i64 %to, %from
  %from.at = inttoptr i64 %from to ptr
  %ignored = call i32 @madvise(ptr %from.at, i64 %length, i32 14)
  br label %ready
ready:
  ret ptr %data
fail:
  ret ptr null
}}
declare i32 @madvise(ptr, i64, i32)
define internal void @mutad_forget(ptr %pool, ptr %block) noinline optnone nounwind {{
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %some
some:
  %size = load i64, ptr %block
  %count.at = getelementptr i8, ptr %pool, i64 {WAITING}
  %before = atomicrmw sub ptr %count.at, i64 %size acq_rel
  call void @mutad_libc_free(ptr %block)
  br label %done
done:
  ret void
}}
define internal void @mutad_give(ptr %ctx, ptr %data) noinline optnone nounwind {{
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %measure
measure:
  %block = getelementptr i8, ptr %data, i64 -64
  %size = load i64, ptr %block
  %pool.at = getelementptr i8, ptr %ctx, i64 {POOL}
  %pool = load ptr, ptr %pool.at
  %pooled = icmp ne ptr %pool, null
  %large = icmp uge i64 %size, {POOLED_FROM}
  %small = icmp ule i64 %size, {POOLED_TO}
  %between = and i1 %large, %small
  %keep = and i1 %between, %pooled
  br i1 %keep, label %count, label %drop
count:
  %count.at = getelementptr i8, ptr %pool, i64 {WAITING}
  %before = atomicrmw add ptr %count.at, i64 %size acq_rel
  %after = add i64 %before, %size
  %limit.at = getelementptr i8, ptr %pool, i64 {WAITING + 8}
  %limit = load i64, ptr %limit.at
  %many = icmp ugt i64 %after, %limit
  br i1 %many, label %too.many, label %stamp
too.many:
  call void @mutad_forget(ptr %pool, ptr %block)
  ret void
stamp:
  %now = call i64 @mutad_clock()
  %stamp.at = getelementptr i8, ptr %block, i64 8
  store i64 %now, ptr %stamp.at
  br label %look
look:
  %slot = phi i64 [ 0, %stamp ], [ %next, %on ]
  %newer = phi ptr [ %block, %stamp ], [ %older, %on ]
  %slot.at = getelementptr ptr, ptr %pool, i64 %slot
  %older = atomicrmw xchg ptr %slot.at, ptr %newer acq_rel
  %empty = icmp eq ptr %older, null
  br i1 %empty, label %done, label %age
age:
  %older.at = getelementptr i8, ptr %older, i64 8
  %kept.at = load i64, ptr %older.at
  %waited = sub i64 %now, %kept.at
  %stale = icmp sgt i64 %waited, {_IDLE}
  br i1 %stale, label %oldest, label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {POOL_SLOTS}
  br i1 %more, label %look, label %oldest
oldest:
  call void @mutad_forget(ptr %pool, ptr %older)
  ret void
drop:
  call void @mutad_libc_free(ptr %block)
  ret void
done:
  ret void
}}
"""

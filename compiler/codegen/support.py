"""What kernels call in their own module: scratch memory, tapes, results, the poll. LLVM text.

All state is in the context that the entry hands in (288 bytes, see the offsets below), so kernels
are re-entrant. Memory comes from `malloc` in chunks; `mutad_end`, which every kernel that allocates
runs on every way out, gives all of it back but the memory of returned arrays. Where the context has
a pool, a few large blocks wait in it for the next call, whose pages are then there already. The
smallest that is large enough is taken; where one too many is given back, the one that has waited longest
is freed.

- *Scratch* is a stack: `mutad_alloc` bumps a cursor; a loop iteration that allocates takes a
  `mutad_mark` and goes back to it. An emptied chunk is kept for the next iteration; where one iteration
  emptied several, one that holds all of them is made next. Only small requests get room to spare.
- A *tape* is a stack of segments in chunks of its own (`{chunk, cursor, end, spare}`); segments are
  multiples of 8 bytes.
- *Reserved* ranges are address space for arrays that grow, one for each place of the code, which get
  pages where they are touched. Their records are among those of the results (`support_reserved`).
- *Results* are single `malloc` blocks with a record `{next, block}` each: what was not returned
  (an exception, the other branch) is freed.

What runs seldom is `optnone`: optimizing it would cost more than it ever gains.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping

from . import support_handles, support_reserved, support_stack, support_steps

CURSOR, END, CHUNKS, TAPE_CHUNKS, IN_USE, PEAK, RESULTS, POLL = range(0, 64, 8)
LAST_POLL, SPARE, POOL, EMPTIED = 224, 240, 248, 256
RECURSION_LIMIT, STACK_END, ARENA = 264, 272, 280
"""Byte offsets in the context. `IN_USE` and `PEAK` count the bytes that tapes hold."""

POOL_SLOTS, POOLED_FROM, POOLED_TO = 16, 1 << 18, 1 << 29
"""How many blocks the process keeps between calls, and of what sizes in bytes."""
WAITING = 8 * (POOL_SLOTS + 2 * support_reserved.SLOTS)
"""Where the pool says how many bytes of blocks wait, and behind that how many may."""

HUGE_FROM, PAGE = 1 << 22 if sys.platform == "linux" else 1 << 62, 1 << 12
"""New blocks of so many bytes ask for huge pages (`MADV_HUGEPAGE`)."""

KEPT_FROM = 1 << 16
"""A call's further block of so many bytes is made large enough to be kept, or malloc gives its pages back."""

TAPE_WORDS = 4

_MALLOC = "declare ptr @mutad_libc_malloc(i64)"
_FREE = "declare void @mutad_libc_free(ptr)"
DECLARATIONS = {
    "mutad_libc_malloc": _MALLOC, "mutad_libc_free": _FREE, **support_stack.DECLARATIONS,
}  # fmt: skip


def _counter() -> tuple[str, int]:
    """LLVM's cycle counter on this machine, and about 20 ms of it."""
    if platform.machine() in ("x86_64", "AMD64"):
        return "llvm.readcyclecounter", 50_000_000
    return "llvm.readsteadycounter", 500_000


_CLOCK, _TICKS = _counter()
_IDLE = 500 * _TICKS
"""About 10 s: a block that waited for so long goes when the next one is kept."""

_ALLOC = f"""
define internal noalias ptr @mutad_alloc(ptr %ctx, i64 %bytes) noinline nounwind {{
  %end.at = getelementptr i8, ptr %ctx, i64 {END}
  %cursor = load i64, ptr %ctx
  %end = load i64, ptr %end.at
  %huge = icmp ugt i64 %bytes, 4611686018427387904
  %one = call i64 @llvm.umax.i64(i64 %bytes, i64 1) ; memory of size 0 has an address too
  %more = add i64 %one, 63
  %size = and i64 %more, -64
  %room = sub i64 %end, %cursor
  %small = icmp ule i64 %size, %room
  %fits.not = xor i1 %huge, true
  %fits = and i1 %small, %fits.not
  br i1 %fits, label %bump, label %slow
bump:
  %next = add i64 %cursor, %size
  store i64 %next, ptr %ctx
  %found = inttoptr i64 %cursor to ptr
  ret ptr %found
slow:
  br i1 %huge, label %none, label %grow
grow:
  %slow.found = call ptr @mutad_grow(ptr %ctx, i64 %size)
  ret ptr %slow.found
none:
  ret ptr null
}}
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
"""

# A chunk: its predecessor, its end, then data from the next multiple of 64 on.
_GROW = f"""
define internal ptr @mutad_grow(ptr %ctx, i64 %size) noinline optnone nounwind {{
  %end.at = getelementptr i8, ptr %ctx, i64 {END}
  %chunks.at = getelementptr i8, ptr %ctx, i64 {CHUNKS}
  %spare.at = getelementptr i8, ptr %ctx, i64 {SPARE}
  %old = load ptr, ptr %chunks.at
  %spare = load ptr, ptr %spare.at
  %none = icmp eq ptr %spare, null
  br i1 %none, label %fresh, label %try
try:
  %spare.end.at = getelementptr i8, ptr %spare, i64 8
  %spare.end = load i64, ptr %spare.end.at
  %spare.data = call i64 @mutad_chunk_data(ptr %spare)
  %spare.room = sub i64 %spare.end, %spare.data
  %enough = icmp uge i64 %spare.room, %size
  br i1 %enough, label %reuse, label %fresh
reuse:
  store ptr null, ptr %spare.at
  br label %enter
fresh:
  call void @mutad_give(ptr %ctx, ptr %spare)
  store ptr null, ptr %spare.at
  %emptied.at = getelementptr i8, ptr %ctx, i64 {EMPTIED}
  %emptied = load i64, ptr %emptied.at
  store i64 0, ptr %emptied.at
  %another = icmp ne ptr %old, null
  %worth = icmp uge i64 %size, {KEPT_FROM}
  %more = select i1 %worth, i64 {POOLED_FROM}, i64 16384
  %floor = select i1 %another, i64 %more, i64 4096
  %wanted = call i64 @llvm.umax.i64(i64 %emptied, i64 %floor)
  %least = call i64 @llvm.umax.i64(i64 %size, i64 %wanted)
  %bytes = add i64 %least, 128
  %block = call ptr @mutad_take(ptr %ctx, i64 %bytes)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %exhausted, label %made
made:
  %block.end = getelementptr i8, ptr %block, i64 %bytes
  %block.end.at = getelementptr i8, ptr %block, i64 8
  store ptr %block.end, ptr %block.end.at
  br label %enter
enter:
  %chunk = phi ptr [ %spare, %reuse ], [ %block, %made ]
  store ptr %old, ptr %chunk
  store ptr %chunk, ptr %chunks.at
  %last.at = getelementptr i8, ptr %chunk, i64 8
  %last = load i64, ptr %last.at
  store i64 %last, ptr %end.at
  %data = call i64 @mutad_chunk_data(ptr %chunk)
  %next = add i64 %data, %size
  store i64 %next, ptr %ctx
  %found = inttoptr i64 %data to ptr
  ret ptr %found
exhausted:
  ret ptr null
}}
define internal i64 @mutad_chunk_data(ptr %chunk) alwaysinline nounwind {{
  %at = ptrtoint ptr %chunk to i64
  %past = add i64 %at, 95
  %data = and i64 %past, -64
  ret i64 %data
}}
declare i64 @llvm.umax.i64(i64, i64)
"""

_MARK = """
define internal ptr @mutad_mark(ptr %ctx) alwaysinline nounwind {
  %cursor = load ptr, ptr %ctx
  ret ptr %cursor
}
"""

_RELEASE = f"""
define internal void @mutad_release(ptr %ctx, ptr %mark) noinline optnone nounwind {{
entry:
  %end.at = getelementptr i8, ptr %ctx, i64 {END}
  %chunks.at = getelementptr i8, ptr %ctx, i64 {CHUNKS}
  %spare.at = getelementptr i8, ptr %ctx, i64 {SPARE}
  br label %look
look:
  %sum = phi i64 [ 0, %entry ], [ %more, %pop ]
  %chunk = load ptr, ptr %chunks.at
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %empty, label %inside
inside:
  %last.at = getelementptr i8, ptr %chunk, i64 8
  %last = load ptr, ptr %last.at
  %above = icmp ugt ptr %mark, %chunk
  %below = icmp ule ptr %mark, %last
  %here = and i1 %above, %below
  br i1 %here, label %back, label %pop
pop:
  %previous = load ptr, ptr %chunk
  store ptr %previous, ptr %chunks.at
  %spare = load ptr, ptr %spare.at
  call void @mutad_give(ptr %ctx, ptr %spare)
  store ptr %chunk, ptr %spare.at
  %begin = ptrtoint ptr %chunk to i64
  %finish = ptrtoint ptr %last to i64
  %bytes = sub i64 %finish, %begin
  %more = add i64 %sum, %bytes
  br label %look
back:
  store ptr %mark, ptr %ctx
  store ptr %last, ptr %end.at
  br label %unite
empty:
  store ptr null, ptr %ctx
  store ptr null, ptr %end.at
  br label %unite
unite:
  %kept = load ptr, ptr %spare.at
  %nothing = icmp eq i64 %sum, 0
  br i1 %nothing, label %done, label %compare
compare:
  %kept.last.at = getelementptr i8, ptr %kept, i64 8
  %kept.last = load i64, ptr %kept.last.at
  %kept.begin = ptrtoint ptr %kept to i64
  %kept.bytes = sub i64 %kept.last, %kept.begin
  %several = icmp ugt i64 %sum, %kept.bytes
  br i1 %several, label %give, label %done
give:
  call void @mutad_give(ptr %ctx, ptr %kept)
  store ptr null, ptr %spare.at
  %emptied.at = getelementptr i8, ptr %ctx, i64 {EMPTIED}
  store i64 %sum, ptr %emptied.at
  br label %done
done:
  ret void
}}
"""

KEEP = f"""
define internal void @mutad_keep(ptr %ctx, ptr %block) noinline optnone nounwind {{
entry:
  %list.at = getelementptr i8, ptr %ctx, i64 {RESULTS}
  %first = load ptr, ptr %list.at
  br label %look
look:
  %record = phi ptr [ %first, %entry ], [ %next, %on ]
  %none = icmp eq ptr %record, null
  br i1 %none, label %done, label %compare
compare:
  %block.at = getelementptr i8, ptr %record, i64 8
  %this = load ptr, ptr %block.at
  %same = icmp eq ptr %this, %block
  br i1 %same, label %found, label %on
on:
  %next = load ptr, ptr %record
  br label %look
found:
  store ptr null, ptr %block.at
  ret void
done:
  ret void
}}
"""
"""`mutad_keep`: a block that is returned is the caller's from then on."""

_ALLOC_RESULT = f"""
define internal noalias ptr @mutad_alloc_result(ptr %ctx, i64 %bytes) noinline optnone nounwind {{
  %record = call ptr @mutad_libc_malloc(i64 16)
  %no.record = icmp eq ptr %record, null
  br i1 %no.record, label %exhausted, label %registered
registered:
  %size = call i64 @llvm.umax.i64(i64 %bytes, i64 1) ; malloc(0) may be null: exhausted memory here
  %block = call ptr @mutad_libc_malloc(i64 %size)
  %list.at = getelementptr i8, ptr %ctx, i64 {RESULTS}
  %list = load ptr, ptr %list.at
  store ptr %list, ptr %record
  %block.at = getelementptr i8, ptr %record, i64 8
  store ptr %block, ptr %block.at
  store ptr %record, ptr %list.at
  ret ptr %block
exhausted:
  ret ptr null
}}
declare i64 @llvm.umax.i64(i64, i64)
{KEEP}"""

_TAPE = f"""
define internal ptr @mutad_tape_push(ptr %ctx, ptr %tape, i64 %bytes) alwaysinline nounwind {{
  %in.use.at = getelementptr i8, ptr %ctx, i64 {IN_USE}
  %peak.at = getelementptr i8, ptr %ctx, i64 {PEAK}
  %in.use = load i64, ptr %in.use.at
  %total = add i64 %in.use, %bytes
  store i64 %total, ptr %in.use.at
  %peak = load i64, ptr %peak.at
  %higher = icmp ugt i64 %total, %peak
  %top = select i1 %higher, i64 %total, i64 %peak
  store i64 %top, ptr %peak.at
  %cursor.at = getelementptr i8, ptr %tape, i64 8
  %end.at = getelementptr i8, ptr %tape, i64 16
  %cursor = load i64, ptr %cursor.at
  %end = load i64, ptr %end.at
  %possible = call i64 @llvm.umin.i64(i64 %bytes, i64 4611686018427387904) ; -1 is too much
  %more = add i64 %possible, 7
  %size = and i64 %more, -8
  %room = sub i64 %end, %cursor
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %bump, label %slow
bump:
  %next = add i64 %cursor, %size
  store i64 %next, ptr %cursor.at
  %found = inttoptr i64 %cursor to ptr
  %empty = icmp eq i64 %cursor, 0
  %result = select i1 %empty, ptr %tape, ptr %found
  ret ptr %result
slow:
  %slow.found = call ptr @mutad_tape_grow(ptr %ctx, ptr %tape, i64 %bytes)
  ret ptr %slow.found
}}
define internal ptr @mutad_tape_pop(ptr %ctx, ptr %tape, i64 %bytes) alwaysinline nounwind {{
  %in.use.at = getelementptr i8, ptr %ctx, i64 {IN_USE}
  %in.use = load i64, ptr %in.use.at
  %total = sub i64 %in.use, %bytes
  store i64 %total, ptr %in.use.at
  %more = add i64 %bytes, 7
  %size = and i64 %more, -8
  %cursor.at = getelementptr i8, ptr %tape, i64 8
  %chunk = load ptr, ptr %tape
  %cursor = load i64, ptr %cursor.at
  %data = ptrtoint ptr %chunk to i64
  %first = add i64 %data, 64
  %at.start = icmp eq i64 %cursor, %first
  br i1 %at.start, label %slow, label %fast
slow:
  %back = call i64 @mutad_tape_back(ptr %tape, i64 %size)
  br label %fast
fast:
  %from = phi i64 [ %cursor, %0 ], [ %back, %slow ]
  %top = sub i64 %from, %size
  store i64 %top, ptr %cursor.at
  %found = inttoptr i64 %top to ptr
  ret ptr %found
}}
declare i64 @llvm.umin.i64(i64, i64)
"""

# A tape's chunk: next of all tape chunks, predecessor in the tape, its end, the cursor when it was
# left, next of the spare chunks; data from byte 64 on. A tape: chunk, cursor, end, spare chunks.
_TAPE_GROW = f"""
define internal ptr @mutad_tape_grow(ptr %ctx, ptr %tape, i64 %bytes) noinline optnone nounwind {{
  %huge = icmp ugt i64 %bytes, 4611686018427387904
  br i1 %huge, label %exhausted, label %sized
sized:
  %more = add i64 %bytes, 7
  %size = and i64 %more, -8
  %cursor.at = getelementptr i8, ptr %tape, i64 8
  %end.at = getelementptr i8, ptr %tape, i64 16
  %spare.at = getelementptr i8, ptr %tape, i64 24
  %old = load ptr, ptr %tape
  %cursor = load i64, ptr %cursor.at
  %first = icmp eq ptr %old, null
  br i1 %first, label %find, label %leave
leave:
  %left.at = getelementptr i8, ptr %old, i64 24
  store i64 %cursor, ptr %left.at
  br label %find
find:
  br label %look
look:
  %link = phi ptr [ %spare.at, %find ], [ %next.link, %on ]
  %spare = load ptr, ptr %link
  %none = icmp eq ptr %spare, null
  br i1 %none, label %fresh, label %try
try:
  %next.link = getelementptr i8, ptr %spare, i64 32
  %spare.end.at = getelementptr i8, ptr %spare, i64 16
  %spare.end = load i64, ptr %spare.end.at
  %spare.data = ptrtoint ptr %spare to i64
  %spare.room = sub i64 %spare.end, %spare.data
  %with.header = add i64 %size, 64
  %enough = icmp uge i64 %spare.room, %with.header
  br i1 %enough, label %reuse, label %on
on:
  br label %look
reuse:
  %rest = load ptr, ptr %next.link
  store ptr %rest, ptr %link
  br label %enter
fresh:
  %old.at = ptrtoint ptr %old to i64
  %old.end = load i64, ptr %end.at
  %old.size = sub i64 %old.end, %old.at
  %quarter = lshr i64 %old.size, 2 ; at most a fifth of a tape that grows is not used
  %larger = add i64 %old.size, %quarter
  %bounded = call i64 @llvm.umin.i64(i64 %larger, i64 16777216)
  %floor = call i64 @llvm.umax.i64(i64 %bounded, i64 1024)
  %padded = call i64 @llvm.umax.i64(i64 %size, i64 %floor)
  %large = icmp uge i64 %size, 16384 ; one that would leave much of a chunk unused gets its own
  %fourfold = shl i64 %size, 2
  %filling = icmp uge i64 %fourfold, %floor
  %own = and i1 %large, %filling
  %least = select i1 %own, i64 %size, i64 %padded
  %total = add i64 %least, 64
  %block = call ptr @mutad_take(ptr %ctx, i64 %total)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %exhausted, label %made
made:
  %all.at = getelementptr i8, ptr %ctx, i64 {TAPE_CHUNKS}
  %all = load ptr, ptr %all.at
  store ptr %all, ptr %block
  store ptr %block, ptr %all.at
  %block.end = getelementptr i8, ptr %block, i64 %total
  %block.end.at = getelementptr i8, ptr %block, i64 16
  store ptr %block.end, ptr %block.end.at
  br label %enter
enter:
  %chunk = phi ptr [ %spare, %reuse ], [ %block, %made ]
  %previous.at = getelementptr i8, ptr %chunk, i64 8
  store ptr %old, ptr %previous.at
  store ptr %chunk, ptr %tape
  %last.at = getelementptr i8, ptr %chunk, i64 16
  %last = load i64, ptr %last.at
  store i64 %last, ptr %end.at
  %data = getelementptr i8, ptr %chunk, i64 64
  %next = getelementptr i8, ptr %data, i64 %size
  store ptr %next, ptr %cursor.at
  ret ptr %data
exhausted:
  ret ptr null
}}
define internal i64 @mutad_tape_back(ptr %tape, i64 %size) noinline optnone nounwind {{
  %cursor.at = getelementptr i8, ptr %tape, i64 8
  %end.at = getelementptr i8, ptr %tape, i64 16
  %spare.at = getelementptr i8, ptr %tape, i64 24
  %chunk = load ptr, ptr %tape
  %cursor = load i64, ptr %cursor.at
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %stay, label %move
stay:
  ret i64 %cursor
move:
  %previous.at = getelementptr i8, ptr %chunk, i64 8
  %previous = load ptr, ptr %previous.at
  store ptr %previous, ptr %tape
  %spares = load ptr, ptr %spare.at
  %spare.link.at = getelementptr i8, ptr %chunk, i64 32
  store ptr %spares, ptr %spare.link.at
  store ptr %chunk, ptr %spare.at
  %last.at = getelementptr i8, ptr %previous, i64 16
  %last = load i64, ptr %last.at
  store i64 %last, ptr %end.at
  %left.at = getelementptr i8, ptr %previous, i64 24
  %left = load i64, ptr %left.at
  ret i64 %left
}}
declare i64 @llvm.umin.i64(i64, i64)
"""

END_OF_CALL = f"""
define internal void @mutad_end(ptr %ctx, i32 %status) noinline optnone nounwind {{
  %chunks.at = getelementptr i8, ptr %ctx, i64 {CHUNKS}
  %chunks = load ptr, ptr %chunks.at
  call void @mutad_free_list(ptr %ctx, ptr %chunks)
  %spare.at = getelementptr i8, ptr %ctx, i64 {SPARE}
  %spare = load ptr, ptr %spare.at
  call void @mutad_give(ptr %ctx, ptr %spare)
  %tapes.at = getelementptr i8, ptr %ctx, i64 {TAPE_CHUNKS}
  %tapes = load ptr, ptr %tapes.at
  call void @mutad_free_list(ptr %ctx, ptr %tapes)
  %results.at = getelementptr i8, ptr %ctx, i64 {RESULTS}
  %first = load ptr, ptr %results.at
  br label %look
look:
  %record = phi ptr [ %first, %0 ], [ %next, %on ]
  %none = icmp eq ptr %record, null
  br i1 %none, label %done, label %on
on:
  %next = load ptr, ptr %record
  call void @mutad_drop_result(ptr %ctx, ptr %record, i32 %status)
  br label %look
done:
  ret void
}}
"""

_FREE_LIST = """
define internal void @mutad_free_list(ptr %ctx, ptr %first) noinline optnone nounwind {
  br label %look
look:
  %chunk = phi ptr [ %first, %0 ], [ %next, %on ]
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %done, label %on
on:
  %next = load ptr, ptr %chunk
  call void @mutad_give(ptr %ctx, ptr %chunk)
  br label %look
done:
  ret void
}
"""

_POOL = f"""
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

_POLL_TEXT = f"""
define internal i32 @mutad_poll(ptr %ctx) noinline nounwind {{
  %now = call i64 @mutad_clock()
  %last.at = getelementptr i8, ptr %ctx, i64 {LAST_POLL}
  %last = load i64, ptr %last.at
  %since = sub i64 %now, %last
  %due = icmp ugt i64 %since, {_TICKS}
  br i1 %due, label %slow, label %go.on
slow:
  store i64 %now, ptr %last.at
  %first = icmp eq i64 %last, 0
  %poll.at = getelementptr i8, ptr %ctx, i64 {POLL}
  %poll = load ptr, ptr %poll.at
  %nobody = icmp eq ptr %poll, null
  %skip = or i1 %first, %nobody
  br i1 %skip, label %go.on, label %ask
ask:
  %answer = call i32 %poll(ptr %ctx)
  ret i32 %answer
go.on:
  ret i32 0
}}
"""

_CLOCK_TEXT = f"""
define internal i64 @mutad_clock() alwaysinline nounwind {{
  %now = call i64 @{_CLOCK}()
  ret i64 %now
}}
declare i64 @{_CLOCK}()
"""


def _integer_power(type_: str) -> str:
    return f"""
define internal {type_} @mutad_ipow_{type_}({type_} %base, {type_} %exponent) nounwind memory(none) {{
entry:
  %negative = icmp slt {type_} %exponent, 0
  br i1 %negative, label %zero, label %look
look:
  %left = phi {type_} [ %exponent, %entry ], [ %half, %on ]
  %power = phi {type_} [ %base, %entry ], [ %square, %on ]
  %result = phi {type_} [ 1, %entry ], [ %product, %on ]
  %done = icmp eq {type_} %left, 0
  br i1 %done, label %end, label %on
on:
  %odd = and {type_} %left, 1
  %is.odd = icmp ne {type_} %odd, 0
  %factor = select i1 %is.odd, {type_} %power, {type_} 1
  %product = mul {type_} %result, %factor
  %square = mul {type_} %power, %power
  %half = lshr {type_} %left, 1
  br label %look
zero:
  ret {type_} 0
end:
  ret {type_} %result
}}
"""


Functions = Mapping[str, tuple[str, tuple[str, ...]]]
"""Each support function (with its companions), and what it calls."""

INTEGER_POWERS: Functions = {
    f"mutad_ipow_i{n}": (_integer_power(f"i{n}"), ()) for n in (8, 16, 32, 64)
}

FUNCTIONS: Functions = {
    "mutad_alloc": (_ALLOC, ("mutad_grow",)),
    "mutad_grow": (_GROW, ("mutad_take",)),
    "mutad_mark": (_MARK, ()),
    "mutad_release": (_RELEASE, ("mutad_take",)),
    "mutad_alloc_result": (_ALLOC_RESULT, ()),
    "mutad_tape_push": (_TAPE, ("mutad_tape_grow",)),
    "mutad_tape_grow": (_TAPE_GROW, ("mutad_take",)),
    "mutad_end": (END_OF_CALL + _FREE_LIST, ("mutad_take", "mutad_drop_result")),
    "mutad_drop_result": (support_reserved.drop_result(), ()),
    "mutad_drop_range": (support_reserved.drop_range(POOL, POOL_SLOTS), ()),
    "mutad_reserve": (support_reserved.reserve(RESULTS, POOL, POOL_SLOTS), ("mutad_drop_range",)),
    "mutad_clear": (support_reserved.CLEAR, ()),
    "mutad_tape_read": (support_handles.TAPE_READ, ()),
    "mutad_drop": (support_handles.DROP, ("mutad_end",)),
    "mutad_take": (_POOL, ("mutad_clock",)),
    "mutad_clock": (_CLOCK_TEXT, ()),
    "mutad_find_stack": (support_stack.find_stack(STACK_END), ()),
    "mutad_poll": (_POLL_TEXT, ("mutad_clock",)),
    **support_steps.FUNCTIONS,
    **INTEGER_POWERS,
}
"""Those of a kernel in a Python process."""

ALLOCATING = ("mutad_alloc", "mutad_reserve", "mutad_alloc_result", "mutad_tape_push")
"""A kernel that calls one of these has to run `mutad_end`."""


def closure(used: Iterable[str], functions: Functions = FUNCTIONS) -> set[str]:
    """The support functions used, and those that they use."""
    pending, found = list(used), set[str]()
    while pending:
        name = pending.pop()
        if name in functions and name not in found:
            found.add(name)
            pending.extend(functions[name][1])
    return found


def functions_text(
    used: Iterable[str], functions: Functions = FUNCTIONS
) -> tuple[list[str], list[str]]:
    """Definitions of the support functions used and of those they use, and the declarations needed."""
    definitions: list[str] = []
    declarations: set[str] = set()
    for name in sorted(closure(used, functions)):
        for line in functions[name][0].splitlines():
            (declarations.add if line.startswith("declare ") else definitions.append)(line)
    whole = "\n".join(definitions)
    declarations.update(line for symbol, line in DECLARATIONS.items() if f"@{symbol}(" in whole)
    return definitions, sorted(declarations)

"""Tapes: stacks of segments in chunks of their own. LLVM text."""

from __future__ import annotations

from .context import IN_USE, PEAK, TAPE_CHUNKS

HEADER = 64
"""Bytes of a chunk before its data, which begins at the next multiple of 64, or as many bytes behind it as
the chunk's end is behind one."""

TAPE_DATA = f"""
define internal i64 @mutad_tape_data(ptr %chunk, i64 %end) alwaysinline nounwind {{
  %at = ptrtoint ptr %chunk to i64
  %past = add i64 %at, {HEADER + 63}
  %line = and i64 %past, -64
  %lead = and i64 %end, 63
  %data = or i64 %line, %lead
  ret i64 %data
}}
"""

PUSH = f"""
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
  %end.at = getelementptr i8, ptr %tape, i64 16
  %end = load i64, ptr %end.at
  %first = call i64 @mutad_tape_data(ptr %chunk, i64 %end)
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
# left, next of the spare chunks; data from byte 64 on. A tape: chunk, cursor, end, spare chunks. Without a
# chunk, cursor and end are how many bytes the first one is expected to need, a multiple of 64, 0 where that
# is not known, plus how far behind a line the data of all chunks begins. A chunk's end is as far behind one.
TAPE_GROW = f"""
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
  %spare.data = call i64 @mutad_tape_data(ptr %spare, i64 %spare.end)
  %spare.room = sub i64 %spare.end, %spare.data
  %enough = icmp uge i64 %spare.room, %size
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
  %lead = and i64 %old.end, 63
  %told = and i64 %old.end, -64
  %expected = select i1 %first, i64 %told, i64 0
  %is.expected = icmp ne i64 %expected, 0
  %filled = sub i64 %old.end, %old.at
  %old.size = select i1 %first, i64 0, i64 %filled
  %quarter = lshr i64 %old.size, 2 ; at most a fifth of a tape that grows is not used
  %larger = add i64 %old.size, %quarter
  %bounded = call i64 @llvm.umin.i64(i64 %larger, i64 16777216)
  %floor = call i64 @llvm.umax.i64(i64 %bounded, i64 1024)
  %padded = call i64 @llvm.umax.i64(i64 %size, i64 %floor)
  %large = icmp uge i64 %size, 16384 ; one that would leave much of a chunk unused gets its own
  %fourfold = shl i64 %size, 2
  %filling = icmp uge i64 %fourfold, %floor
  %own = and i1 %large, %filling
  %step = select i1 %own, i64 %size, i64 %padded
  %whole = call i64 @llvm.umax.i64(i64 %size, i64 %expected)
  %least = select i1 %is.expected, i64 %whole, i64 %step
  %least.more = add i64 %least, 63
  %lines = and i64 %least.more, -64
  %behind = or i64 %lines, %lead
  %total = add i64 %behind, {HEADER + 64}
  %block = call ptr @mutad_take(ptr %ctx, i64 %total)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %fail, label %made
fail:
  br i1 %is.expected, label %smaller, label %exhausted
smaller: ; something may raise before the tape is full
  store i64 0, ptr %cursor.at
  store i64 0, ptr %end.at
  %found = call ptr @mutad_tape_grow(ptr %ctx, ptr %tape, i64 %bytes)
  ret ptr %found
made:
  %all.at = getelementptr i8, ptr %ctx, i64 {TAPE_CHUNKS}
  %all = load ptr, ptr %all.at
  store ptr %all, ptr %block
  store ptr %block, ptr %all.at
  %block.data = call i64 @mutad_tape_data(ptr %block, i64 %lead)
  %block.end = add i64 %block.data, %lines
  %block.end.at = getelementptr i8, ptr %block, i64 16
  store i64 %block.end, ptr %block.end.at
  br label %enter
enter:
  %chunk = phi ptr [ %spare, %reuse ], [ %block, %made ]
  %previous.at = getelementptr i8, ptr %chunk, i64 8
  store ptr %old, ptr %previous.at
  store ptr %chunk, ptr %tape
  %last.at = getelementptr i8, ptr %chunk, i64 16
  %last = load i64, ptr %last.at
  store i64 %last, ptr %end.at
  %data = call i64 @mutad_tape_data(ptr %chunk, i64 %last)
  %next = add i64 %data, %size
  store i64 %next, ptr %cursor.at
  %found.here = inttoptr i64 %data to ptr
  ret ptr %found.here
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

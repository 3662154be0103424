"""Scratch memory is a stack of chunks: what is allocated in an iteration goes at its end. LLVM text."""

from __future__ import annotations

from .context import CHUNKS, EMPTIED, END, SPARE
from .pool import POOLED_FROM

KEPT_FROM = 1 << 16
"""A call's further block of so many bytes is made large enough to be kept, or malloc gives its pages back."""

ALLOC = f"""
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
GROW = f"""
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

MARK = """
define internal ptr @mutad_mark(ptr %ctx) alwaysinline nounwind {
  %cursor = load ptr, ptr %ctx
  ret ptr %cursor
}
"""

RELEASE = f"""
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

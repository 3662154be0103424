"""Support functions for tapes that outlive their call: to read one, and to give the memory back."""

from __future__ import annotations

# The chunk that precedes a tape's ends where it was left: see `support`.
TAPE_READ = """
define internal ptr @mutad_tape_read(ptr %ctx, ptr %tape, i64 %bytes) alwaysinline nounwind {
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
  %back = call i64 @mutad_tape_previous(ptr %tape, i64 %size)
  br label %fast
fast:
  %from = phi i64 [ %cursor, %0 ], [ %back, %slow ]
  %top = sub i64 %from, %size
  store i64 %top, ptr %cursor.at
  %found = inttoptr i64 %top to ptr
  ret ptr %found
}
define internal i64 @mutad_tape_previous(ptr %tape, i64 %size) noinline optnone nounwind {
  %cursor.at = getelementptr i8, ptr %tape, i64 8
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
  %left.at = getelementptr i8, ptr %previous, i64 24
  %left = load i64, ptr %left.at
  ret i64 %left
}
"""

DROP = """
define internal void @mutad_drop(ptr %ctx, ptr %chunks) noinline optnone nounwind {
  call void @mutad_free_list(ptr %ctx, ptr %chunks)
  ret void
}
"""

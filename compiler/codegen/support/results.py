"""Blocks of arrays that may be returned, and the end of a call, which frees all the others. LLVM text."""

from __future__ import annotations

from .context import CHUNKS, RESULTS, SPARE, TAPE_CHUNKS

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

ALLOC_RESULT = f"""
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

FREE_LIST = """
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

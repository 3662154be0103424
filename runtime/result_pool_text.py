"""The machine code of the pool for large arrays (`result_pool`): functions for NumPy's handler. LLVM text."""

from __future__ import annotations

SLOTS, POOLED_FROM, POOLED_TO = 16, 1 << 18, 1 << 25
"""How many blocks wait, and of what sizes in bytes. Larger ones glibc always has from the system, in huge
pages: those that nothing is stored to cost nothing, so filling old ones with zeros could be slower."""

SECONDS = 2
"""How long a block waits before it goes at the next large array."""

SCRATCH_SLOTS, SCRATCH_BLOCKS, RANGE_BYTES = 24, 16, 1 << 36
"""The pool that kernels have for scratch (`result_pool.scratch_pool`): its slots, how many of them are for
blocks, and the bytes of each range of addresses in the others."""


def text(most: int, context: int = 0) -> str:
    """The handler's functions, and a call of `PyArray_Zeros` or `PyArray_Empty` with the handler set, by
    which entries make large arrays.

    A block: what the default handler gave, then before a multiple of 64 bytes `{given, bytes, since}`, then
    data. `bytes` is how many there are, `since` the second from which on it waits. No more than `most` bytes
    wait; `context` is what the default handler is called with.
    """
    return f"""
@slots = internal global [{SLOTS} x ptr] zeroinitializer
@waiting = internal global i64 0
@swept = internal global i64 0

declare ptr @default_malloc(ptr, i64)
declare ptr @default_calloc(ptr, i64, i64)
declare void @default_free(ptr, ptr, i64)
declare void @mutad_libc_free(ptr)
declare i64 @mutad_libc_time(ptr)
declare i32 @munmap(ptr, i64)
declare ptr @PyDataMem_GetHandler()
declare ptr @PyDataMem_SetHandler(ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
@default_handler = external global i8
@our_handler = external global i8
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @drop(ptr %data) nounwind {{
  %header = getelementptr i8, ptr %data, i64 -32
  %given = load ptr, ptr %header
  %bytes.at = getelementptr i8, ptr %data, i64 -24
  %bytes = load i64, ptr %bytes.at
  %whole = add i64 %bytes, 128
  call void @default_free(ptr inttoptr (i64 {context} to ptr), ptr %given, i64 %whole)
  ret void
}}

; Put a block into a slot, if that is empty still: else it goes.
define internal void @put_back(ptr %slot, ptr %data) nounwind {{
  %swap = cmpxchg ptr %slot, ptr null, ptr %data acq_rel monotonic
  %empty = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %empty, label %done, label %full
full:
  call void @forget(ptr %data)
  br label %done
done:
  ret void
}}

; A block that waited no longer does, and goes.
define internal void @forget(ptr %data) nounwind {{
  %bytes.at = getelementptr i8, ptr %data, i64 -24
  %bytes = load i64, ptr %bytes.at
  %before = atomicrmw sub ptr @waiting, i64 %bytes acq_rel
  call void @drop(ptr %data)
  ret void
}}

; The blocks that wait for so many seconds or longer go.
define internal void @sweep(i64 %now, i64 %seconds) nounwind {{
entry:
  br label %look
look:
  %slot = phi i64 [ 0, %entry ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr @slots, i64 %slot
  %data = atomicrmw xchg ptr %slot.at, ptr null acq_rel
  %none = icmp eq ptr %data, null
  br i1 %none, label %on, label %measure
measure:
  %since.at = getelementptr i8, ptr %data, i64 -16
  %since = load i64, ptr %since.at
  %age = sub i64 %now, %since
  %old = icmp sge i64 %age, %seconds
  br i1 %old, label %go, label %stay
go:
  call void @forget(ptr %data)
  br label %on
stay:
  call void @put_back(ptr %slot.at, ptr %data)
  br label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %look, label %done
done:
  ret void
}}

; Once a second.
define internal void @sweep_old(i64 %now) nounwind {{
  %last = atomicrmw xchg ptr @swept, i64 %now acq_rel
  %same = icmp eq i64 %last, %now
  br i1 %same, label %done, label %old
old:
  call void @sweep(i64 %now, i64 {SECONDS})
  br label %done
done:
  ret void
}}

; All that waits goes; so do the blocks and ranges that kernels left in the pool for scratch.
define void @mutad_pool_release(ptr %scratch) nounwind {{
entry:
  call void @sweep(i64 0, i64 {-(1 << 63)})
  br label %look
look:
  %slot = phi i64 [ 0, %entry ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr %scratch, i64 %slot
  %block = atomicrmw xchg ptr %slot.at, ptr null acq_rel
  %none = icmp eq ptr %block, null
  br i1 %none, label %on, label %some
some:
  %is.block = icmp ult i64 %slot, {SCRATCH_BLOCKS}
  br i1 %is.block, label %free, label %unmap
free:
  %size = load i64, ptr %block
  %count.at = getelementptr ptr, ptr %scratch, i64 {SCRATCH_SLOTS}
  %before = atomicrmw sub ptr %count.at, i64 %size acq_rel
  call void @mutad_libc_free(ptr %block)
  br label %on
unmap:
  %unmapped = call i32 @munmap(ptr %block, i64 {RANGE_BYTES})
  br label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {SCRATCH_SLOTS}
  br i1 %more, label %look, label %done
done:
  ret void
}}

define i64 @mutad_pool_waiting() nounwind {{
  %bytes = load atomic i64, ptr @waiting acquire, align 8
  ret i64 %bytes
}}

; A block that waits and has so many bytes, at most twice as many; else null.
define internal ptr @take(i64 %bytes) nounwind {{
entry:
  %large = icmp uge i64 %bytes, {POOLED_FROM}
  br i1 %large, label %look, label %fail
look:
  %slot = phi i64 [ 0, %entry ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr @slots, i64 %slot
  %data = atomicrmw xchg ptr %slot.at, ptr null acq_rel
  %none = icmp eq ptr %data, null
  br i1 %none, label %on, label %measure
measure:
  %size.at = getelementptr i8, ptr %data, i64 -24
  %size = load i64, ptr %size.at
  %half = lshr i64 %size, 1
  %enough = icmp uge i64 %size, %bytes
  %near = icmp ule i64 %half, %bytes
  %fits = and i1 %enough, %near
  br i1 %fits, label %found, label %stay
stay:
  call void @put_back(ptr %slot.at, ptr %data)
  br label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %look, label %fail
found:
  %before = atomicrmw sub ptr @waiting, i64 %size acq_rel
  ret ptr %data
fail:
  ret ptr null
}}

define internal ptr @fresh(i64 %bytes, i1 %zero) nounwind {{
  %huge = icmp ugt i64 %bytes, 4611686018427387904
  br i1 %huge, label %fail, label %ask
ask:
  %whole = add i64 %bytes, 128
  br i1 %zero, label %zeros, label %anything
zeros:
  %made.zero = call ptr @default_calloc(ptr inttoptr (i64 {context} to ptr), i64 1, i64 %whole)
  br label %made
anything:
  %made.any = call ptr @default_malloc(ptr inttoptr (i64 {context} to ptr), i64 %whole)
  br label %made
made:
  %given = phi ptr [ %made.zero, %zeros ], [ %made.any, %anything ]
  %exhausted = icmp eq ptr %given, null
  br i1 %exhausted, label %fail, label %good
good:
  %address = ptrtoint ptr %given to i64
  %past = add i64 %address, 95
  %rounded = and i64 %past, -64
  %data = inttoptr i64 %rounded to ptr
  %header = getelementptr i8, ptr %data, i64 -32
  store ptr %given, ptr %header
  %bytes.at = getelementptr i8, ptr %data, i64 -24
  store i64 %bytes, ptr %bytes.at
  ret ptr %data
fail:
  ret ptr null
}}

define ptr @mutad_pool_malloc(ptr %context, i64 %bytes) nounwind {{
  %old = call ptr @take(i64 %bytes)
  %none = icmp eq ptr %old, null
  br i1 %none, label %make, label %found
found:
  ret ptr %old
make:
  %new = call ptr @fresh(i64 %bytes, i1 false)
  ret ptr %new
}}

define ptr @mutad_pool_calloc(ptr %context, i64 %count, i64 %size) nounwind {{
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue {{ i64, i1 }} %product, 0
  %over = extractvalue {{ i64, i1 }} %product, 1
  br i1 %over, label %fail, label %ask
ask:
  %old = call ptr @take(i64 %bytes)
  %none = icmp eq ptr %old, null
  br i1 %none, label %make, label %found
found:
  call void @llvm.memset.p0.i64(ptr align 64 %old, i8 0, i64 %bytes, i1 false)
  ret ptr %old
make:
  %new = call ptr @fresh(i64 %bytes, i1 true)
  ret ptr %new
fail:
  ret ptr null
}}

define void @mutad_pool_free(ptr %context, ptr %data, i64 %ignored) nounwind {{
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %measure
measure:
  %bytes.at = getelementptr i8, ptr %data, i64 -24
  %bytes = load i64, ptr %bytes.at
  %large = icmp uge i64 %bytes, {POOLED_FROM}
  %near = icmp ule i64 %bytes, {POOLED_TO}
  %keep = and i1 %large, %near
  br i1 %keep, label %count, label %other
other:
  call void @drop(ptr %data)
  br label %done
count:
  %now = call i64 @mutad_libc_time(ptr null)
  call void @sweep_old(i64 %now)
  %since.at = getelementptr i8, ptr %data, i64 -16
  store i64 %now, ptr %since.at
  %before = atomicrmw add ptr @waiting, i64 %bytes acq_rel
  %after = add i64 %before, %bytes
  %many = icmp ugt i64 %after, {most}
  br i1 %many, label %full, label %look
look:
  %slot = phi i64 [ 0, %count ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr @slots, i64 %slot
  %swap = cmpxchg ptr %slot.at, ptr null, ptr %data acq_rel monotonic
  %empty = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %empty, label %done, label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %look, label %full
full:
  call void @forget(ptr %data)
  br label %done
done:
  ret void
}}

define ptr @mutad_pool_realloc(ptr %context, ptr %data, i64 %bytes) nounwind {{
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %move, label %measure
measure:
  %size.at = getelementptr i8, ptr %data, i64 -24
  %size = load i64, ptr %size.at
  %half = lshr i64 %size, 1
  %enough = icmp uge i64 %size, %bytes
  %near = icmp ule i64 %half, %bytes
  %fits = and i1 %enough, %near
  br i1 %fits, label %stay, label %move
stay:
  ret ptr %data
move:
  %had = phi i64 [ 0, %0 ], [ %size, %measure ]
  %new = call ptr @mutad_pool_malloc(ptr %context, i64 %bytes)
  %exhausted = icmp eq ptr %new, null
  br i1 %exhausted, label %fail, label %copy
copy:
  %kept = call i64 @llvm.umin.i64(i64 %had, i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %kept, i1 false)
  call void @mutad_pool_free(ptr %context, ptr %data, i64 %had)
  ret ptr %new
fail:
  ret ptr null
}}

; A program that has set another handler than NumPy's default keeps it.
define ptr @mutad_pool_array(i32 %rank, ptr %extents, ptr %dtype, i32 %fortran, ptr %function) {{
entry:
  %kind = alloca ptr
  %error = alloca ptr
  %trace = alloca ptr
  br label %ask
ask:
  %theirs = call ptr @PyDataMem_GetHandler()
  %unknown = icmp eq ptr %theirs, null
  br i1 %unknown, label %unset, label %compare
compare:
  call void @Py_DecRef(ptr %theirs)
  %default = icmp eq ptr %theirs, @default_handler
  br i1 %default, label %set, label %plain
set:
  %old = call ptr @PyDataMem_SetHandler(ptr @our_handler)
  %failed = icmp eq ptr %old, null
  br i1 %failed, label %unset, label %make
unset:
  call void @PyErr_Clear()
  br label %plain
plain:
  %usual = call ptr %function(i32 %rank, ptr %extents, ptr %dtype, i32 %fortran)
  ret ptr %usual
make:
  %array = call ptr %function(i32 %rank, ptr %extents, ptr %dtype, i32 %fortran)
  call void @PyErr_Fetch(ptr %kind, ptr %error, ptr %trace)
  %ours = call ptr @PyDataMem_SetHandler(ptr %old)
  call void @Py_DecRef(ptr %old)
  %stuck = icmp eq ptr %ours, null
  br i1 %stuck, label %restore, label %drop.ours
drop.ours:
  call void @Py_DecRef(ptr %ours)
  br label %restore
restore:
  %kind.set = load ptr, ptr %kind
  %error.set = load ptr, ptr %error
  %trace.set = load ptr, ptr %trace
  call void @PyErr_Restore(ptr %kind.set, ptr %error.set, ptr %trace.set)
  ret ptr %array
}}
"""

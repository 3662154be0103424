"""The thread pool of `parallel=True`, as LLVM text: one module a process, linked by `thread_pool`.

A *region* is a body and a number of chunks that are independent of each other::

    i32 body(ptr frame, ptr ctx, i64 chunk, i1 caller, ptr record)

returns a kernel's status; where that is not 0 it leaves its raise record behind `record`. `mutad_threads_run`
runs all chunks and returns the status, and the record, of the least chunk that failed: what the serial loop
would have met first. Chunks behind a failed one need not run. A status of 2 is an exception that Python has
already: from the caller's own thread it goes before all others; from a worker it says that it has left a
chunk behind a failed one.

- The caller takes part. Each participant has a range of chunks of its own, so that the same thread goes on
  with the same part of an array in the next region, and then helps the others with theirs.
- Nobody has to wait for a worker that has not woken up yet: the others do its chunks. What the caller waits
  for are chunks that were begun, at most one a worker.
- Waiting is passive (condition variables) after a short spin, for regions that follow each other.
- There is one region at a time. Who comes meanwhile from another thread runs its chunks by itself.
- Workers block all signals, and touch nothing of Python. They end in `mutad_threads_close`.
- A child process has none of them: `mutad_threads_forget` makes the pool as new.
"""

from __future__ import annotations

import platform

MOST = 256
"""Threads that a region may have."""

SPIN = 400
"""Looks for the next region, or the end of this one, before a thread sleeps: some ten microseconds."""

RECORD = 24
"""8-byte words of a raise record, at most."""

PAUSE = (
    "call void @llvm.x86.sse2.pause()"
    if platform.machine() in ("x86_64", "AMD64")
    else "fence seq_cst"
)

SYSTEM = (
    "pthread_create", "pthread_join", "pthread_sigmask", "pthread_mutex_lock", "pthread_mutex_unlock",
    "pthread_cond_wait", "pthread_cond_broadcast",
)  # fmt: skip
"""What is called of the system, as `mutad_libc_...`. Zeros are an initialized mutex or condition here."""

ENTRIES = (
    "mutad_threads_run",
    "mutad_threads_failed",
    "mutad_threads_limit",
    "mutad_threads_close",
    "mutad_threads_forget",
)

TEXT = f"""
@mutex = internal global [16 x i64] zeroinitializer, align 64
@wake = internal global [16 x i64] zeroinitializer, align 64
@ended = internal global [16 x i64] zeroinitializer, align 64
@threads = internal global [{MOST} x i64] zeroinitializer, align 64
@limit = internal global i64 1, align 64
@workers = internal global i64 0
@closing = internal global i64 0
@busy = internal global i64 0, align 64
@generation = internal global i64 0, align 64
@active = internal global i64 0, align 64
@open = internal global i64 0
@body = internal global ptr null
@frame = internal global ptr null
@context = internal global ptr null
@chunks = internal global i64 0
@parts = internal global i64 0
@failed = internal global i64 0, align 64
@status = internal global i32 0
@record = internal global [{RECORD} x i64] zeroinitializer, align 64
@next = internal global [{MOST} x [8 x i64]] zeroinitializer, align 64

; The chunks of a region on this thread.
define internal i32 @alone(ptr %body, ptr %frame, ptr %ctx, i64 %chunks, ptr %record) {{
entry:
  br label %look
look:
  %chunk = phi i64 [ 0, %entry ], [ %following, %go ]
  %more = icmp slt i64 %chunk, %chunks
  br i1 %more, label %go, label %done
go:
  %status = call i32 %body(ptr %frame, ptr %ctx, i64 %chunk, i1 true, ptr %record)
  %following = add i64 %chunk, 1
  %good = icmp eq i32 %status, 0
  br i1 %good, label %look, label %bad
done:
  ret i32 0
bad:
  ret i32 %status
}}

; The first chunk of a participant's range.
define internal i64 @first(i64 %part) {{
  %chunks = load i64, ptr @chunks
  %parts = load i64, ptr @parts
  %scaled = mul i64 %chunks, %part
  %first = udiv i64 %scaled, %parts
  ret i64 %first
}}

; Take part in the region: first one's own range, then those of the others.
define internal void @participate(i64 %part, i1 %caller) {{
entry:
  %kept = alloca [{RECORD} x i64], align 64
  %parts = load i64, ptr @parts
  %body = load ptr, ptr @body
  %frame = load ptr, ptr @frame
  %ctx = load ptr, ptr @context
  br label %range
range:
  %helped = phi i64 [ 0, %entry ], [ %helped.more, %exhausted ]
  %sum = add i64 %part, %helped
  %whose = urem i64 %sum, %parts
  %behind = add i64 %whose, 1
  %end = call i64 @first(i64 %behind)
  %next = getelementptr [8 x i64], ptr @next, i64 %whose
  br label %take
take:
  %chunk = atomicrmw add ptr %next, i64 1 monotonic
  %there = icmp slt i64 %chunk, %end
  br i1 %there, label %wanted, label %exhausted
wanted:
  %failed = load atomic i64, ptr @failed acquire, align 8
  %before = icmp slt i64 %chunk, %failed
  br i1 %before, label %go, label %take
go:
  %status = call i32 %body(ptr %frame, ptr %ctx, i64 %chunk, i1 %caller, ptr %kept)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %take, label %bad
bad:
  %raised = icmp eq i32 %status, 2
  %worker = xor i1 %caller, true
  %stopped = and i1 %raised, %worker
  br i1 %stopped, label %take, label %told
told:
  call void @fail(i64 %chunk, i32 %status, ptr %kept)
  br label %take
exhausted:
  %helped.more = add i64 %helped, 1
  %others = icmp ult i64 %helped.more, %parts
  br i1 %others, label %range, label %done
done:
  ret void
}}

; What the least chunk that failed has left is what the region leaves.
define internal void @fail(i64 %chunk, i32 %status, ptr %kept) {{
entry:
  %raised = icmp eq i32 %status, 2
  %key = select i1 %raised, i64 -1, i64 %chunk
  %locked = call i32 @mutad_libc_pthread_mutex_lock(ptr @mutex)
  %least = load i64, ptr @failed
  %less = icmp slt i64 %key, %least
  br i1 %less, label %keep, label %done
keep:
  store i32 %status, ptr @status
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 @record, ptr align 8 %kept, i64 {8 * RECORD}, i1 false)
  store atomic i64 %key, ptr @failed release, align 8
  br label %done
done:
  %unlocked = call i32 @mutad_libc_pthread_mutex_unlock(ptr @mutex)
  ret void
}}

define internal ptr @worker(ptr %argument) {{
entry:
  %part = ptrtoint ptr %argument to i64
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %generation, %again ]
  br label %spin
spin:
  %turn = phi i64 [ 0, %idle ], [ %turn.next, %on ]
  %now = load atomic i64, ptr @generation acquire, align 8
  %changed = icmp ne i64 %now, %seen
  %turn.next = add i64 %turn, 1
  %tired = icmp eq i64 %turn.next, {SPIN}
  %stop = or i1 %changed, %tired
  br i1 %stop, label %ask, label %on
on:
  {PAUSE}
  br label %spin
ask:
  %locked = call i32 @mutad_libc_pthread_mutex_lock(ptr @mutex)
  br label %look
look:
  %generation = load atomic i64, ptr @generation monotonic, align 8
  %same = icmp eq i64 %generation, %seen
  br i1 %same, label %wait, label %awake
wait:
  %closing = load i64, ptr @closing
  %ends = icmp ne i64 %closing, 0
  br i1 %ends, label %leave, label %sleep
sleep:
  %slept = call i32 @mutad_libc_pthread_cond_wait(ptr @wake, ptr @mutex)
  br label %look
leave:
  %unlocked.last = call i32 @mutad_libc_pthread_mutex_unlock(ptr @mutex)
  ret ptr null
awake:
  %open = load i64, ptr @open
  %is.open = icmp ne i64 %open, 0
  %parts = load i64, ptr @parts
  %mine = icmp ult i64 %part, %parts
  %join = and i1 %is.open, %mine
  %joins = zext i1 %join to i64
  %joined = atomicrmw add ptr @active, i64 %joins acq_rel
  %unlocked = call i32 @mutad_libc_pthread_mutex_unlock(ptr @mutex)
  br i1 %join, label %work, label %again
work:
  call void @participate(i64 %part, i1 false)
  %relocked = call i32 @mutad_libc_pthread_mutex_lock(ptr @mutex)
  %left = atomicrmw sub ptr @active, i64 1 acq_rel
  %told = call i32 @mutad_libc_pthread_cond_broadcast(ptr @ended)
  %reunlocked = call i32 @mutad_libc_pthread_mutex_unlock(ptr @mutex)
  br label %again
again:
  br label %idle
}}

; As many workers as these participants need; returns how many participants there are then. (Locked.)
define internal i64 @hire(i64 %wanted) {{
entry:
  %all = alloca [16 x i64], align 16
  %old = alloca [16 x i64], align 16
  call void @llvm.memset.p0.i64(ptr align 8 %all, i8 -1, i64 128, i1 false)
  %blocked = call i32 @mutad_libc_pthread_sigmask(i32 2, ptr %all, ptr %old) ; SIG_SETMASK
  br label %look
look:
  %workers = load i64, ptr @workers
  %parts = add i64 %workers, 1
  %enough = icmp uge i64 %parts, %wanted
  br i1 %enough, label %done, label %make
make:
  %thread = getelementptr i64, ptr @threads, i64 %workers
  %argument = inttoptr i64 %parts to ptr
  %refused = call i32 @mutad_libc_pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %made = icmp eq i32 %refused, 0
  br i1 %made, label %count, label %done
count:
  store i64 %parts, ptr @workers
  br label %look
done:
  %restored = call i32 @mutad_libc_pthread_sigmask(i32 2, ptr %old, ptr null)
  %there = call i64 @llvm.umin.i64(i64 %parts, i64 %wanted)
  ret i64 %there
}}

define i32 @mutad_threads_run(ptr %body, ptr %frame, ptr %ctx, i64 %chunks, ptr %record, i64 %bytes) {{
entry:
  %limit = load atomic i64, ptr @limit monotonic, align 8
  %wanted = call i64 @llvm.umin.i64(i64 %limit, i64 %chunks)
  %several = icmp ugt i64 %wanted, 1
  br i1 %several, label %ask, label %serial
ask:
  %asked = cmpxchg ptr @busy, i64 0, i64 1 acq_rel monotonic
  %ours = extractvalue {{ i64, i1 }} %asked, 1
  br i1 %ours, label %begin, label %serial
serial:
  %status.serial = call i32 @alone(ptr %body, ptr %frame, ptr %ctx, i64 %chunks, ptr %record)
  ret i32 %status.serial
begin:
  %locked = call i32 @mutad_libc_pthread_mutex_lock(ptr @mutex)
  %parts = call i64 @hire(i64 %wanted)
  store i64 %parts, ptr @parts
  store i64 %chunks, ptr @chunks
  store ptr %body, ptr @body
  store ptr %frame, ptr @frame
  store ptr %ctx, ptr @context
  store i32 0, ptr @status
  store i64 {2**63 - 1}, ptr @failed
  br label %ranges
ranges:
  %part = phi i64 [ 0, %begin ], [ %part.next, %ranges ]
  %first = call i64 @first(i64 %part)
  %next = getelementptr [8 x i64], ptr @next, i64 %part
  store i64 %first, ptr %next
  %part.next = add i64 %part, 1
  %more = icmp ult i64 %part.next, %parts
  br i1 %more, label %ranges, label %tell
tell:
  store i64 1, ptr @open
  %generation = atomicrmw add ptr @generation, i64 1 release
  %told = call i32 @mutad_libc_pthread_cond_broadcast(ptr @wake)
  %unlocked = call i32 @mutad_libc_pthread_mutex_unlock(ptr @mutex)
  call void @participate(i64 0, i1 true)
  br label %spin
spin:
  %turn = phi i64 [ 0, %tell ], [ %turn.next, %on ]
  %active = load atomic i64, ptr @active acquire, align 8
  %alone = icmp eq i64 %active, 0
  %turn.next = add i64 %turn, 1
  %tired = icmp eq i64 %turn.next, {SPIN}
  %stop = or i1 %alone, %tired
  br i1 %stop, label %close, label %on
on:
  {PAUSE}
  br label %spin
close:
  %relocked = call i32 @mutad_libc_pthread_mutex_lock(ptr @mutex)
  store i64 0, ptr @open
  br label %look
look:
  %left = load atomic i64, ptr @active acquire, align 8
  %over = icmp eq i64 %left, 0
  br i1 %over, label %done, label %wait
wait:
  %waited = call i32 @mutad_libc_pthread_cond_wait(ptr @ended, ptr @mutex)
  br label %look
done:
  %status = load i32, ptr @status
  %reunlocked = call i32 @mutad_libc_pthread_mutex_unlock(ptr @mutex)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %free, label %bad
bad:
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %record, ptr align 8 @record, i64 %bytes, i1 false)
  br label %free
free:
  store atomic i64 0, ptr @busy release, align 8
  ret i32 %status
}}

; The least chunk that has failed: what a worker asks in the course of a later one, which it then leaves.
define i64 @mutad_threads_failed() {{
  %failed = load atomic i64, ptr @failed acquire, align 8
  ret i64 %failed
}}

define void @mutad_threads_limit(i64 %threads) {{
  %most = call i64 @llvm.umin.i64(i64 %threads, i64 {MOST})
  store atomic i64 %most, ptr @limit monotonic, align 8
  ret void
}}

; Before the process ends: the workers have ended. Not where a region is in flight on another thread.
define void @mutad_threads_close() {{
entry:
  %asked = cmpxchg ptr @busy, i64 0, i64 1 acq_rel monotonic
  %ours = extractvalue {{ i64, i1 }} %asked, 1
  br i1 %ours, label %close, label %done
close:
  %locked = call i32 @mutad_libc_pthread_mutex_lock(ptr @mutex)
  store i64 1, ptr @closing
  %told = call i32 @mutad_libc_pthread_cond_broadcast(ptr @wake)
  %unlocked = call i32 @mutad_libc_pthread_mutex_unlock(ptr @mutex)
  %workers = load i64, ptr @workers
  br label %look
look:
  %k = phi i64 [ 0, %close ], [ %k.next, %join ]
  %more = icmp ult i64 %k, %workers
  br i1 %more, label %join, label %done
join:
  %thread.at = getelementptr i64, ptr @threads, i64 %k
  %thread = load i64, ptr %thread.at
  %joined = call i32 @mutad_libc_pthread_join(i64 %thread, ptr null)
  %k.next = add i64 %k, 1
  br label %look
done:
  ret void
}}

; In a child process, which has one thread.
define void @mutad_threads_forget() {{
  store [16 x i64] zeroinitializer, ptr @mutex
  store [16 x i64] zeroinitializer, ptr @wake
  store [16 x i64] zeroinitializer, ptr @ended
  store i64 0, ptr @workers
  store i64 0, ptr @active
  store i64 0, ptr @open
  store i64 0, ptr @closing
  store i64 0, ptr @generation
  store i64 0, ptr @busy
  ret void
}}

declare i32 @mutad_libc_pthread_create(ptr, ptr, ptr, ptr)
declare i32 @mutad_libc_pthread_join(i64, ptr)
declare i32 @mutad_libc_pthread_sigmask(i32, ptr, ptr)
declare i32 @mutad_libc_pthread_mutex_lock(ptr)
declare i32 @mutad_libc_pthread_mutex_unlock(ptr)
declare i32 @mutad_libc_pthread_cond_wait(ptr, ptr)
declare i32 @mutad_libc_pthread_cond_broadcast(ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.x86.sse2.pause()
"""

"""Support functions of kernels that get their memory from two functions of their caller: for sizes that data
decides. LLVM text.

No malloc, no poll, nothing of Python. The context holds on entry zeros, but for `RECURSION_LIMIT` (how many
calls of recursive functions may be nested) and at `ALLOCATOR` the address of three words::

    void *(*allocate)(void *state, size_t bytes);               memory as malloc gives it, or null
    void (*release)(void *state, void *block, size_t bytes);    the bytes that were asked for
    void *state;

They are asked for chunks, as `malloc` is by `support`, whose functions these are otherwise. All of it is
released on every way out but the arrays that are returned: each is one block of as many bytes as it has (of
one, where it has none), which is the caller's to release. Address space for arrays that grow is the
system's (`mmap`) for as long as the call lasts.
"""

from __future__ import annotations

from . import functions, reserved
from .context import POLL, POOL, RESULTS, STACK_END, Functions
from .pool import POOL_SLOTS
from .results import KEEP
from .stack import guess_stack

ALLOCATOR = POLL

_RECORD = reserved.RECORD_BYTES

# What is before a chunk: its size. A result's record: next, block, bytes.
_TAKE = f"""
define internal ptr @mutad_ask(ptr %ctx, i64 %bytes) noinline optnone nounwind {{
  %allocator.at = getelementptr i8, ptr %ctx, i64 {ALLOCATOR}
  %allocator = load ptr, ptr %allocator.at
  %allocate = load ptr, ptr %allocator
  %state.at = getelementptr i8, ptr %allocator, i64 16
  %state = load ptr, ptr %state.at
  %block = call ptr %allocate(ptr %state, i64 %bytes)
  ret ptr %block
}}
define internal void @mutad_hand_back(ptr %ctx, ptr %block, i64 %bytes) noinline optnone nounwind {{
  %allocator.at = getelementptr i8, ptr %ctx, i64 {ALLOCATOR}
  %allocator = load ptr, ptr %allocator.at
  %release.at = getelementptr i8, ptr %allocator, i64 8
  %release = load ptr, ptr %release.at
  %state.at = getelementptr i8, ptr %allocator, i64 16
  %state = load ptr, ptr %state.at
  call void %release(ptr %state, ptr %block, i64 %bytes)
  ret void
}}
define internal ptr @mutad_take(ptr %ctx, i64 %bytes) noinline optnone nounwind {{
  %whole = add i64 %bytes, 64
  %made = call ptr @mutad_ask(ptr %ctx, i64 %whole)
  %exhausted = icmp eq ptr %made, null
  br i1 %exhausted, label %fail, label %good
good:
  store i64 %whole, ptr %made
  %data = getelementptr i8, ptr %made, i64 64
  ret ptr %data
fail:
  ret ptr null
}}
define internal void @mutad_give(ptr %ctx, ptr %data) noinline optnone nounwind {{
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %give
give:
  %block = getelementptr i8, ptr %data, i64 -64
  %whole = load i64, ptr %block
  call void @mutad_hand_back(ptr %ctx, ptr %block, i64 %whole)
  br label %done
done:
  ret void
}}
"""

_ALLOC_RESULT = f"""
define internal noalias ptr @mutad_alloc_result(ptr %ctx, i64 %bytes) noinline optnone nounwind {{
  %record = call ptr @mutad_ask(ptr %ctx, i64 {_RECORD})
  %no.record = icmp eq ptr %record, null
  br i1 %no.record, label %exhausted, label %registered
registered:
  %size = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  %huge = icmp ugt i64 %size, 4611686018427387904
  br i1 %huge, label %give.back, label %ask
ask:
  %block = call ptr @mutad_ask(ptr %ctx, i64 %size)
  %none = icmp eq ptr %block, null
  br i1 %none, label %give.back, label %made
made:
  %list.at = getelementptr i8, ptr %ctx, i64 {RESULTS}
  %list = load ptr, ptr %list.at
  store ptr %list, ptr %record
  %block.at = getelementptr i8, ptr %record, i64 8
  store ptr %block, ptr %block.at
  %size.at = getelementptr i8, ptr %record, i64 16
  store i64 %size, ptr %size.at
  store ptr %record, ptr %list.at
  ret ptr %block
give.back:
  call void @mutad_hand_back(ptr %ctx, ptr %record, i64 {_RECORD})
  br label %exhausted
exhausted:
  ret ptr null
}}
declare i64 @llvm.umax.i64(i64, i64)
{KEEP}"""

_FREE_BLOCK = """%returned = icmp eq ptr %block, null
  br i1 %returned, label %done, label %release
release:
  %size.at = getelementptr i8, ptr %record, i64 16
  %size = load i64, ptr %size.at
  call void @mutad_hand_back(ptr %ctx, ptr %block, i64 %size)"""

FUNCTIONS: Functions = {
    **functions.FUNCTIONS,
    "mutad_alloc_result": (_ALLOC_RESULT, ("mutad_take",)),
    "mutad_drop_result": (
        reserved.drop_result(
            _FREE_BLOCK,
            f"call void @mutad_hand_back(ptr %ctx, ptr %record, i64 {_RECORD})",
        ),
        ("mutad_take",),
    ),
    "mutad_reserve": (
        reserved.reserve(
            RESULTS,
            POOL,
            POOL_SLOTS,
            f"call ptr @mutad_ask(ptr %ctx, i64 {_RECORD})",
            f"call void @mutad_hand_back(ptr %ctx, ptr %made, i64 {_RECORD})",
        ),
        ("mutad_take", "mutad_drop_range"),
    ),
    "mutad_take": (_TAKE, ()),
    "mutad_find_stack": (guess_stack(STACK_END), ()),
}
"""The support functions that such a kernel may use."""

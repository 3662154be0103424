"""Where the native stack of this thread ends, so that deep recursion raises before it does. LLVM text.

The system is asked once for each thread that calls: what it said last is kept in one word (first page,
number of pages), which is right for whoever stands between these pages.
"""

from __future__ import annotations

import sys

MARGIN, UNKNOWN = 1 << 18, 7 << 16
"""Bytes left for what is called at the end of the stack; bytes assumed where the system says nothing."""

_ASK = """
  %self = call i64 @mutad_libc_pthread_self()
  %failed = call i32 @mutad_libc_pthread_getattr_np(i64 %self, ptr %attributes)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %read, label %guess
read:
  %ignored = call i32 @mutad_libc_pthread_attr_getstack(ptr %attributes, ptr %low.at, ptr %size.at)
  %ignored.2 = call i32 @mutad_libc_pthread_attr_destroy(ptr %attributes)
  %low.read = load i64, ptr %low.at
  %size.read = load i64, ptr %size.at
  %page = lshr i64 %low.read, 12
  %pages.read = lshr i64 %size.read, 12
  %pages = call i64 @llvm.umin.i64(i64 %pages.read, i64 268435455)
  %high.bits = shl i64 %page, 28
  %word = or i64 %high.bits, %pages
  store atomic i64 %word, ptr @mutad_stack monotonic, align 8
  br label %found
"""

DECLARATIONS = {
    "mutad_libc_pthread_self": "declare i64 @mutad_libc_pthread_self()",
    "mutad_libc_pthread_getattr_np": "declare i32 @mutad_libc_pthread_getattr_np(i64, ptr)",
    "mutad_libc_pthread_attr_getstack": "declare i32 @mutad_libc_pthread_attr_getstack(ptr, ptr, ptr)",
    "mutad_libc_pthread_attr_destroy": "declare i32 @mutad_libc_pthread_attr_destroy(ptr)",
}


def guess_stack(stack_end: int) -> str:
    """`mutad_find_stack` without a system call: so many bytes from here on are there, less the margin."""
    return f"""
define internal void @mutad_find_stack(ptr %ctx) noinline optnone nounwind {{
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %end = getelementptr i8, ptr %frame, i64 {-(UNKNOWN - UNKNOWN // 4)}
  %end.at = getelementptr i8, ptr %ctx, i64 {stack_end}
  store ptr %end, ptr %end.at
  ret void
}}
declare ptr @llvm.frameaddress.p0(i32)
"""


def find_stack(stack_end: int) -> str:
    """`mutad_find_stack`, which stores the lowest usable address at the offset `stack_end` of the context."""
    knows = sys.platform == "linux"
    low, size = ("%low.read", "%size.read") if knows else ("%low.guess", f"{UNKNOWN}")
    found = f"[ %low, %entry ], [ {low}, %read ], " if knows else "[ %low, %entry ], "
    sizes = f"[ %size, %entry ], [ {size}, %read ], " if knows else "[ %size, %entry ], "
    return f"""
@mutad_stack = internal global i64 0, align 8
define internal void @mutad_find_stack(ptr %ctx) noinline optnone nounwind {{
entry:
  %attributes = alloca [16 x i64], align 16
  %low.at = alloca i64
  %size.at = alloca i64
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %here = ptrtoint ptr %frame to i64
  %known = load atomic i64, ptr @mutad_stack monotonic, align 8
  %known.page = lshr i64 %known, 28
  %low = shl i64 %known.page, 12
  %known.pages = and i64 %known, 268435455
  %size = shl i64 %known.pages, 12
  %above = sub i64 %here, %low
  %inside = icmp ult i64 %above, %size
  br i1 %inside, label %found, label %ask
ask:{_ASK if knows else "  br label %guess"}
guess:
  %low.guess = sub i64 %here, {UNKNOWN}
  br label %found
found:
  %low.found = phi i64 {found}[ %low.guess, %guess ]
  %size.found = phi i64 {sizes}[ {UNKNOWN}, %guess ]
  %quarter = lshr i64 %size.found, 2
  %margin = call i64 @llvm.umin.i64(i64 %quarter, i64 {MARGIN})
  %end = add i64 %low.found, %margin
  %end.at = getelementptr i8, ptr %ctx, i64 {stack_end}
  store i64 %end, ptr %end.at
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)
declare ptr @llvm.frameaddress.p0(i32)
"""

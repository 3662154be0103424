"""Long calls ask now and then whether to go on. LLVM text."""

from __future__ import annotations

import platform

from .context import LAST_POLL, POLL


def _counter() -> tuple[str, int]:
    """LLVM's cycle counter on this machine, and about 20 ms of it."""
    if platform.machine() in ("x86_64", "AMD64"):
        return "llvm.readcyclecounter", 50_000_000
    return "llvm.readsteadycounter", 500_000


_CLOCK, TICKS = _counter()

POLL_TEXT = f"""
define internal i32 @mutad_poll(ptr %ctx) noinline nounwind {{
  %now = call i64 @mutad_clock()
  %last.at = getelementptr i8, ptr %ctx, i64 {LAST_POLL}
  %last = load i64, ptr %last.at
  %since = sub i64 %now, %last
  %due = icmp ugt i64 %since, {TICKS}
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

CLOCK_TEXT = f"""
define internal i64 @mutad_clock() alwaysinline nounwind {{
  %now = call i64 @{_CLOCK}()
  ret i64 %now
}}
declare i64 @{_CLOCK}()
"""

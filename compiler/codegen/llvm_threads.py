"""LLVM in several threads at once: each has modules of its own, with their contexts and target machines.

llvmlite lets one thread at a time into LLVM, by a lock around every function of its library. LLVM itself asks
for less: threads may share no context and no target machine. So the two calls that take the time go without
that lock while `at_once` works. (Options are LLVM's as a whole: they are set before, and reset after.)
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, nullcontext
from typing import Any, ParamSpec, TypeVar

from llvmlite.binding import ffi

Given = TypeVar("Given")
Made = TypeVar("Made")
Asked = ParamSpec("Asked")

LONG_CALLS = ("LLVMPY_RunNewModulePassManager", "LLVMPY_TargetMachineEmitToMemory")


def at_once(work: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
    """What `work` makes of each, in their order: in as many threads as the process has processors.

    It raises what `work` raised of the first that failed, when all threads have ended.
    """
    left = list(enumerate(given))[::-1]
    threads = min(len(left), processors())
    made: dict[int, Made] = {}
    errors: dict[int, BaseException] = {}

    def run() -> None:
        while left and not errors:
            try:
                k, one = left.pop()
            except IndexError:  # another thread took the last
                return
            try:
                made[k] = work(one)
            except BaseException as error:
                errors[k] = error

    if threads < 2:
        return [work(one) for _, one in reversed(left)]
    others = [threading.Thread(target=run, name="mutad-llvm") for _ in range(threads - 1)]
    with without_lock():
        for thread in others:
            thread.start()
        try:
            run()
        finally:
            for thread in others:
                thread.join()
    if errors:
        raise errors[min(errors)]
    return [made[k] for k in sorted(made)]


def processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def without_lock() -> Generator[None]:
    """Meanwhile the long calls wait for no other thread's call."""
    calls: list[Any] = [getattr(ffi.lib, name) for name in LONG_CALLS]
    locks = [call._lock for call in calls]
    for call in calls:
        call._lock = nullcontext()
    try:
        yield
    finally:
        for call, lock in zip(calls, locks, strict=True):
            call._lock = lock


def cache_of_thread(make: Callable[Asked, Made]) -> Callable[Asked, Made]:
    """`functools.cache`, where each thread has what it made itself."""
    own = threading.local()

    @functools.wraps(make)
    def cached(*args: Asked.args, **kwargs: Asked.kwargs) -> Made:
        if not hasattr(own, "make"):
            own.make = functools.cache(make)
        return own.make(*args, **kwargs)

    return cached

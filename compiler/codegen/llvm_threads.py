"""LLVM in several threads at once: each has modules of its own, with their contexts and target machines.

llvmlite lets one thread at a time into LLVM, by a lock around every function of its library. LLVM itself asks
for less: threads may share no context and no target machine. So the two calls that take the time go without
that lock while `at_once` works. (Options are LLVM's as a whole: they are set before, and reset after.)
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Generic, ParamSpec, TypeVar

from llvmlite.binding import ffi

Given = TypeVar("Given")
Made = TypeVar("Made")
Asked = ParamSpec("Asked")

LONG_CALLS = ("LLVMPY_RunNewModulePassManager", "LLVMPY_TargetMachineEmitToMemory")


def at_once(work: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
    """What `work` makes of each, in their order: in as many threads as the process has processors.

    Raises what `work` raised of the first that failed, when all threads have ended.
    """
    left = list(enumerate(given))[::-1]
    count = min(len(left), processors())
    if count < 2:
        return [work(one) for _, one in reversed(left)]
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

    others = [threading.Thread(target=run, name="mutad-llvm") for _ in range(count - 1)]
    with without_lock():
        started = [thread for thread in others if is_started(thread)]
        try:
            run()
        finally:
            join(started)
    if errors:
        raise errors[min(errors)]
    return [made[k] for k in sorted(made)]


def is_started(thread: threading.Thread) -> bool:
    """Start it, if the system has another thread for us: the work is done by those that there are."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def join(threads: Sequence[threading.Thread]) -> None:
    """Wait for all of them; a Ctrl-C that comes meanwhile is raised then.

    LLVM cannot be stopped, and its options must stay as they are until it ends.
    """
    interrupt: KeyboardInterrupt | None = None
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


def processors() -> int:
    """How many the process may run on."""
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


class CacheOfThread(Generic[Asked, Made]):
    """`functools.cache`, where each thread has what it made itself."""

    def __init__(self, make: Callable[Asked, Made]) -> None:
        functools.update_wrapper(self, make)
        self.make, self.own = make, threading.local()

    def __call__(self, *args: Asked.args, **kwargs: Asked.kwargs) -> Made:
        if not hasattr(self.own, "cached"):
            self.cache_clear()
        return self.own.cached(*args, **kwargs)

    def cache_clear(self) -> None:
        """Forget what this thread has made."""
        self.own.cached = functools.cache(self.make)

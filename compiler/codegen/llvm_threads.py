"""LLVM in several threads at once: each has modules of its own, with their contexts and target machines.

llvmlite lets one thread at a time into LLVM, by a lock around every function of its library. LLVM itself asks
for less: threads may share no context and no target machine. So our threads make the calls that take the time
without that lock; other users of llvmlite take it as before. (Options are LLVM's as a whole: what is at work
is waited for before one is set that it reads.)

What stands in the line is done by the threads, and by the caller that waits for it: all that was begun, and
then the second steps, the largest first. A thread ends with the line. Its target machines go to the next one.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

from llvmlite.binding import ffi

Given = TypeVar("Given")
Made = TypeVar("Made")
Left = TypeVar("Left", covariant=True)
Asked = ParamSpec("Asked")

LONG_CALLS = (
    *("LLVMPY_RunNewModulePassManager", "LLVMPY_TargetMachineEmitToMemory"),
    *("LLVMPY_ParseAssembly", "LLVMPY_VerifyModule", "LLVMPY_DisposeModule"),
)
"""(The last three take a millisecond each, at about the same time in all threads. To print a module is none
of them: llvmlite sets the locale of the process and sets it back, which two threads must not do at once.)"""


@dataclass(frozen=True)
class Rest(Generic[Left]):
    """The next step of a task, which any thread may do, when nothing is left to begin."""

    work: Callable[[], Left]
    size: int = 0
    """The larger, the earlier: small ones are left when a thread has no more to do."""


class Task(Generic[Made]):
    """Work for any thread.

    It lets go of the work when that is done, and of an error when that is raised: else modules would be in
    cycles, and Python's collector would end them after their contexts.
    """

    made: Made

    def __init__(self, work: Callable[[], Made | Rest[Made]]) -> None:
        self.work: Callable[[], Made | Rest[Made]] | None = work
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do one step."""
        assert self.work is not None
        try:
            made = self.work()
        except BaseException as error:
            self.error, self.work = error, None
            return
        if isinstance(made, Rest):
            self.work = made.work
            # A Ctrl-C that comes now is not the task's: it stands in the line.
            heapq.heappush(second_steps, (-made.size, next(turns), self))
        else:
            self.made, self.work = made, None

    def result(self) -> Made:
        """What the work makes, or raises, once."""
        if self.work is not None:
            complete()
        if self.work is not None:  # it was taken out of the line
            self.run()
        if self.error is not None:
            error, self.error = self.error, None
            try:
                raise error
            finally:
                del error
        return self.made


line: deque[Task[Any]] = deque()
"""What no thread has begun yet."""
second_steps: list[tuple[int, int, Task[Any]]] = []
"""A heap of what stands behind that: by minus its size, and in turn. (The heap's functions are C, and compare
no more than two numbers: no other thread sees half of what they do.)"""
turns = itertools.count()
others: list[threading.Thread] = []
"""The threads, until they are waited for."""


def begun(work: Callable[[], Made]) -> Task[Made]:
    """Work that a thread does from now on, if the process has another processor; `complete` ends it."""
    task = Task(work)
    line.append(task)
    if processors() > 1:
        start(1)
    return task


def at_once(work: Callable[[Given], Made | Rest[Made]], given: Iterable[Given]) -> list[Made]:
    """What `work` makes of each, in their order: in as many threads as the process has processors.

    Raises what `work` raised of the first that failed, when all threads have ended.
    """
    all_given = list(given)
    failed: list[bool] = []

    def unless_failed(one: Given) -> Made | Rest[Made]:
        if failed:
            raise Dropped
        try:
            return work(one)
        except BaseException:
            failed.append(True)
            raise

    tasks = [Task[Made](functools.partial(unless_failed, one)) for one in all_given]
    line.extend(tasks)
    start(min(len(tasks), processors()) - 1)
    complete()
    failures = (task for task in tasks if not isinstance(task.error, Dropped | None))
    first = next(failures, None)
    if first is not None:
        for task in failures:
            task.error = None
        tasks.clear()
        first.result()
    return [task.result() for task in tasks]


class Dropped(Exception):
    """Work that is not done, for some of the rest has failed."""


def start(count: int) -> None:
    """Have so many threads, if the system has them for us: the work is done by those that there are."""
    others[:] = [thread for thread in others if thread.is_alive()]
    for _ in range(count - len(others)):
        thread = threading.Thread(target=work_of_thread, name="mutad-llvm")
        others.append(thread)  # first: a Ctrl-C leaves none that nobody waits for
        try:
            thread.start()
        except RuntimeError:
            others.remove(thread)
            return


def work_of_thread() -> None:
    try:
        work_off()
    finally:
        for cache in caches:
            cache.leave()


def work_off() -> None:
    """Do what stands in the line, until nothing does."""
    with without_lock(), suppress(IndexError):
        while True:
            following().run()


def following() -> Task[Any]:
    """The next one; IndexError where nothing stands in the line."""
    with suppress(IndexError):
        return line.popleft()
    return heapq.heappop(second_steps)[-1]


def complete() -> None:
    """Help until all that was begun is done.

    LLVM cannot be stopped, and its options must stay as they are until it ends: a Ctrl-C that comes meanwhile
    is raised then.
    """
    try:
        work_off()
    finally:
        wait()


def wait() -> None:
    """Wait for the threads."""
    interrupt: KeyboardInterrupt | None = None
    while others:
        try:
            with suppress(RuntimeError):  # a Ctrl-C came before it was started
                others[-1].join()
            others.pop()
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


@contextmanager
def completed() -> Generator[None]:
    """No thread is at work any more behind this, whatever happens in it."""
    try:
        yield
    finally:
        line.clear()
        second_steps.clear()
        complete()


def processors() -> int:
    """How many the process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Inside(threading.local):
    """How often this thread is in `without_lock`."""

    count = 0


inside = Inside()


class LockOfOthers:
    """Stands on a call in the place of llvmlite's lock: all take that but the threads `inside`."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def __enter__(self) -> None:
        if not inside.count:
            self.lock.__enter__()

    def __exit__(self, *error: object) -> None:
        if not inside.count:
            self.lock.__exit__(*error)


@functools.cache
def let_ours_pass() -> None:
    """Once a process."""
    for name in LONG_CALLS:
        call = getattr(ffi.lib, name)
        call._lock = LockOfOthers(call._lock)


@contextmanager
def without_lock() -> Generator[None]:
    """In here the long calls of this thread wait for no other thread's call."""
    let_ours_pass()
    before = inside.count
    try:
        inside.count = before + 1
        yield
    finally:
        inside.count = before


class CacheOfThread(Generic[Asked, Made]):
    """`functools.cache`, where each thread has what it made itself, and one of ours what another one left."""

    def __init__(self, make: Callable[Asked, Made]) -> None:
        functools.update_wrapper(self, make)
        self.make, self.own = make, threading.local()
        self.left: list[Callable[Asked, Made]] = []
        caches.append(self)

    def __call__(self, *args: Asked.args, **kwargs: Asked.kwargs) -> Made:
        if not hasattr(self.own, "cached"):
            with suppress(IndexError):
                self.own.cached = self.left.pop()
        if not hasattr(self.own, "cached"):
            self.own.cached = functools.cache(self.make)
        return self.own.cached(*args, **kwargs)

    def leave(self) -> None:
        """The thread ends: what it made is for the next one."""
        if hasattr(self.own, "cached"):
            self.left.append(self.own.cached)
            del self.own.cached

    def cache_clear(self) -> None:
        """Forget what this thread has made, and those that ended."""
        self.left.clear()
        self.own.cached = functools.cache(self.make)


caches: list[CacheOfThread[..., Any]] = []

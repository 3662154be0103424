"""Programs that are nested deeper than Python's recursion limit allows: compiled on a stack of their own.

The compiler walks trees recursively, with several frames for each level: an expression of 400 operands,
which CPython runs, is more than the limit of 1,000 frames. Nearly all programs are compiled where the caller
is. One that meets the limit is compiled again, from the start, in a thread whose stack and limit are large.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from .diagnostics import CompileError, line_of_function, place_of

STACK_BYTES = 512 * 2**20
"""Address space; memory only where it is used."""
FRAMES = 100_000

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")

one_at_a_time = threading.Lock()
"""Python's recursion limit and the stack size of new threads are those of the process."""


class Requested(Protocol):
    """What is to be compiled."""

    @property
    def function(self) -> Callable[..., object]: ...


RequestT = TypeVar("RequestT", bound=Requested)


def with_deep_stack(
    work: Callable[Concatenate[RequestT, ParamsT], ResultT],
) -> Callable[Concatenate[RequestT, ParamsT], ResultT]:
    """Do `work` again on a deep stack where it needs one; CompileError where that is not deep enough."""

    @functools.wraps(work)
    def run(request: RequestT, /, *args: ParamsT.args, **kwargs: ParamsT.kwargs) -> ResultT:
        try:
            return work(request, *args, **kwargs)
        except RecursionError:
            pass
        try:
            return on_deep_stack(lambda: work(request, *args, **kwargs))
        except RecursionError as error:
            raise CompileError(
                place_of(error) or line_of_function(request.function),
                "the function, with what it calls, is nested too deeply for the compiler",
                "name parts of its longest expression, and put inner blocks into functions of their own",
            ) from None

    return run


def on_deep_stack(work: Callable[[], ResultT]) -> ResultT:
    """The result of `work`, run in a thread that has room for `FRAMES` frames."""
    results: list[ResultT] = []
    errors: list[BaseException] = []
    context, done = contextvars.copy_context(), threading.Event()

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    with one_at_a_time:
        limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
        sys.setrecursionlimit(max(limit, FRAMES))
        try:
            complete(threading.Thread(target=run, daemon=True), done)
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]


def complete(worker: threading.Thread, done: threading.Event) -> None:
    """Run the thread until it is done; what interrupts the caller meanwhile (Ctrl-C) ends it."""
    try:
        worker.start()
        done.wait()
    except RuntimeError:  # there is no room for the stack
        raise RecursionError from None
    except BaseException as error:
        interruption = ctypes.py_object(type(error))
        while not done.wait(0.1):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(worker.ident or 0), interruption
            )
        raise

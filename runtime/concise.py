"""Errors without our own frames: what a user reads is the line of the call, and the error.

A refusal names the lines of the program; the functions of the compiler that found it say nothing to who wrote
the program. What compiled code raises comes with the lines of the program that raised it.
`MUTAD_FULL_TRACEBACK=1` in the environment shows all.
"""

from __future__ import annotations

import dis
import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from .traceback_entries import COMPILED

P = ParamSpec("P")
R = TypeVar("R")


def concise(method: Callable[P, R]) -> Callable[P, R]:
    """The method, out of which errors about the program come with nothing of what is called below."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            if isinstance(error, OnDevice):
                return cast("R", again(method.__name__, args, kwargs))
            if os.environ.get("MUTAD_FULL_TRACEBACK") == "1":
                raise
            if not is_about_the_program(error) and not is_about_the_call(error):
                error.__traceback__ = below_ours(error.__traceback__)
                raise
            refusal = error.with_traceback(None)
            refusal.__suppress_context__ = True  # what the compiler itself was handling
        raise refusal

    return call


class OnDevice(TypeError):
    """Some argument of a call is an array of a device: it is made anew there, or is none of a device's."""

    def __init__(self) -> None:
        super().__init__("an argument is on a device: pass arrays of the host (x.copy_to_host())")


def again(kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same call, on the device; the first argument is a compiled function, or its dispatcher.

    What shows the variables of frames must not meet ours: arrays of the device that look like NumPy's.
    """
    from .device_calls import call

    function, *values = args
    try:
        return call(getattr(function, "dispatcher", function), kind, values, kwargs)
    except Exception as error:
        failed = without_own_frames(error)
    raise failed


def without_own_frames(error: Exception) -> Exception:
    """The error, with the lines of the program alone."""
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code.co_filename.startswith(OWN):
        at = at.tb_next
    error.__suppress_context__ = True
    return error.with_traceback(at)


OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
CALLS_FOREIGN = f"{__package__}.foreign"
RAISE = dis.opmap["RAISE_VARARGS"]


def is_about_the_call(error: Exception) -> bool:
    """True for an error that we raise about how a function is called: all that is below the call are our
    functions, and the last one has a `raise` there."""
    if type(error) not in (TypeError, ValueError):
        return False
    at = error.__traceback__
    assert at is not None
    while at.tb_frame.f_code.co_filename.startswith(OWN) and at.tb_next is not None:
        at = at.tb_next
    code = at.tb_frame.f_code
    return code.co_filename.startswith(OWN) and code.co_code[at.tb_lasti] == RAISE


def below_ours(traceback: TracebackType | None) -> TracebackType | None:
    """From the first line of compiled code on, or of a foreign function that it called; all where none is."""
    at, before = traceback, ""
    while at is not None:
        name, file = at.tb_frame.f_globals.get("__name__"), at.tb_frame.f_code.co_filename
        if name == COMPILED or (before == CALLS_FOREIGN and not file.startswith(OWN)):
            return at
        at, before = at.tb_next, name
    return traceback


def is_about_the_program(error: Exception) -> bool:
    """True for a `CompileError`, which the runtime does not import."""
    return getattr(error, "names_the_line", False)

"""Errors without our own frames: what a user reads is the line of the call, and the error.

A refusal names the lines of the program; the functions of the compiler that found it say nothing to who wrote
the program. What compiled code raises comes with the lines of the program that raised it.
`MUTAD_FULL_TRACEBACK=1` in the environment shows all.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from .traceback_entries import COMPILED

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


def concise(method: Callable[P, R]) -> Callable[P, R]:
    """The method, out of which errors come with nothing of what is called below, nor of it itself."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            try:
                return method(*args, **kwargs)
            except OnDevice:
                if not is_made_again(method.__name__, args):
                    raise
            return cast("R", again(method.__name__, args, kwargs))
        except Exception as error:
            caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            if not is_own(caller):  # else it does so
                shorten(error)
            raise  # see Note [No entry of ours]

    return call


def with_concise_methods(cls: C) -> C:
    """A class decorator: what users call of it is `concise`, and `dir` lists that alone."""
    type.__setattr__(cast("type", cls), "__dir__", for_users)
    for name, value in list(vars(cls).items()):
        if isinstance(value, FunctionType) and (name in CALLED or not name.startswith("_")):
            setattr(cls, name, concise(value))
    return cls


def for_users(instance: Any) -> list[str]:
    """The names of an object that are for users, with those that every function has."""
    names = object.__dir__(instance)
    return [n for n in names if n in OF_FUNCTIONS or not (n.startswith("_") or n in FOR_US)]


def like_a_function(self: Any) -> list[str]:
    """The names of an object that is there to be called."""
    return [n for n in object.__dir__(self) if n in OF_FUNCTIONS]


OF_FUNCTIONS = {*dir(FunctionType), "__wrapped__", "__func__", "__self__"}
FOR_US = {"dispatcher", "loops", "named", "reduced", "shown"}
"""What one module of the runtime asks another's objects for."""
CALLED = ("__call__", "__getattr__", "__init__")


def shorten(error: Exception) -> None:
    """Leave the entries of the program alone; of an error about it, or about the call, none of ours."""
    if os.environ.get("MUTAD_FULL_TRACEBACK") == "1":
        return
    program = below_ours(error)
    is_ours = is_about_the_program(error) or is_about_the_call(error)
    if is_ours:
        error.__suppress_context__ = True  # what we were handling
    if is_ours or program is not None:
        error.__traceback__ = program


class OnDevice(TypeError):
    """Some argument of a call is an array of a device: it is made anew there, or is none of a device's."""

    def __init__(self) -> None:
        super().__init__("an argument is on a device: pass arrays of the host (x.copy_to_host())")


def is_made_again(kind: str, args: tuple[Any, ...]) -> bool:
    """Whether this is a method of a compiled function, or of its dispatcher."""
    return bool(args) and hasattr(args[0], "dispatcher") and hasattr(type(args[0]), kind)


def again(kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same call, on the device; the first argument is a compiled function, or its dispatcher.

    What shows the variables of frames must not meet ours: arrays of the device that look like NumPy's.
    """
    function, *values = args
    try:
        return function.dispatcher.on_device(kind, values, kwargs)
    except Exception as error:
        error.__traceback__ = without_own_frames(error.__traceback__)
        error.__suppress_context__ = True
        raise


def without_own_frames(at: TracebackType | None) -> TracebackType | None:
    """From the first line that is not ours on."""
    while at is not None and is_own(at.tb_frame):
        at = at.tb_next
    return at


OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
GENERATED = "<mutad: "
"""How the names of files begin in which functions are that this package writes."""
CALL_FOREIGN = {f"{__package__}.{name}" for name in ("foreign", "checked_gradient", "rule_check")}
"""The modules that call functions of the user's in Python."""
ABOUT_CALLS = (AttributeError, OnDevice, OverflowError, RuntimeError, TypeError, ValueError)
RAISE = dis.opmap["RAISE_VARARGS"]
CALL = concise(without_own_frames).__code__


def is_own(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith((OWN, GENERATED))


def is_about_the_call(error: Exception) -> bool:
    """True for an error that we raise about how a function is called: all that is below the call are our
    functions, and the last one has a `raise` there, or has no such parameters."""
    at = error.__traceback__
    asserted = (
        isinstance(error, AssertionError) and error.args
    )  # what we assume comes without words
    if at is None or not (type(error) in ABOUT_CALLS or asserted):
        return False
    while is_own(at.tb_frame) and at.tb_next is not None:
        at = at.tb_next
    code = at.tb_frame.f_code
    return is_own(at.tb_frame) and (code is CALL or code.co_code[at.tb_lasti] == RAISE)


def below_ours(error: Exception) -> TracebackType | None:
    """From the first line of compiled code on, or of a foreign function that it called; None without."""
    at, before = error.__traceback__, ""
    while at is not None:
        name = at.tb_frame.f_globals.get("__name__", "")
        if name == COMPILED or (before in CALL_FOREIGN and not is_own(at.tb_frame)):
            return at
        at, before = at.tb_next, name
    return None


def is_about_the_program(error: Exception) -> bool:
    """True for a `CompileError`, which the runtime does not import."""
    return getattr(error, "names_the_line", False)


# Note [No entry of ours]
# An exception gets an entry for each function that it leaves, before those that it has: where it is raised,
# or comes out of a call. A bare `raise` adds none. So a function that has taken its own entry away, and then
# says `raise`, is not in the traceback that its caller sees.

"""Refusals without the compiler's own frames: what a user reads is the line of the call, and the error.

The error names the lines of the program; the functions of the compiler that found it say nothing to who wrote
the program. `MUTAD_FULL_TRACEBACK=1` in the environment shows them.
"""

from __future__ import annotations

import dis
import functools
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def concise(method: Callable[P, R]) -> Callable[P, R]:
    """The method, out of which errors about the program come with nothing of what is called below."""

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            if os.environ.get("MUTAD_FULL_TRACEBACK") == "1":
                raise
            if not is_about_the_program(error) and not is_about_the_call(error):
                raise
            refusal = error.with_traceback(None)
            refusal.__suppress_context__ = True  # what the compiler itself was handling
        raise refusal

    return call


OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
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


def is_about_the_program(error: Exception) -> bool:
    """True for a `CompileError`, which the runtime does not import."""
    return getattr(error, "names_the_line", False)

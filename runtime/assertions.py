"""What users put into their own tests about memory."""

from __future__ import annotations

from typing import Any

from .differentiable_function import DifferentiableFunction
from .user_tracebacks import concise


@concise
def assert_saved_bytes(
    function: DifferentiableFunction[..., Any],
    *args: Any,
    at_most: int,
    wrt: Any = 0,
    **kwargs: Any,
) -> None:
    """Raise AssertionError if the gradient for these arguments would save more than `at_most` bytes.

    Nothing is run. If the saved bytes are dynamic, that is an error, too. The message is the receipt: what is
    saved at which line, and why.
    """
    plan = function.explain(*args, wrt=wrt, **kwargs)
    saved = plan.saved_bytes
    if saved is None:
        raise AssertionError(
            f"{function.__qualname__}: whether the gradient saves at most {at_most:,} bytes is known only at "
            f"run time: it saves {plan.formula}\n{plan}"
        )
    if saved > at_most:
        raise AssertionError(
            f"{function.__qualname__}: the gradient saves {saved:,} bytes, more than {at_most:,}\n{plan}"
        )

"""What a library exports: functions of a module, each with the arguments that it is compiled for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..frontend.frames import Captured


@dataclass(frozen=True)
class Parameter:
    """One parameter of an exported function."""

    name: str
    key: str
    """The argument key (`compiler.argument_keys`): "f64[?,?]C", "py_float", "py_int", "py_bool", ..."""
    extents: tuple[str | int | None, ...] = ()
    """Of an array, by axis: a name (extents of one name are checked equal), a number (checked), or None."""


@dataclass(frozen=True)
class Export:
    """One C function."""

    symbol: str
    """What C calls it: `loss`, `loss_grad`, `loss_value_and_grad`, `loss_vjp`, `loss_jvp`, `loss_hvp`."""
    function: Callable[..., Any]
    """The plain Python function."""
    parameters: tuple[Parameter, ...]
    mode: str = "primal"
    """One of "primal", "grad", "value_and_grad", "vjp", "jvp" and "hvp"."""
    wrt: tuple[int, ...] = ()
    """The positions of the parameters that the derivative is taken with respect to."""
    captured: Captured | None = None
    """What the function reads from outside, as `pipeline.Request.captured`."""
    inputs: tuple[str, ...] = ()
    """The argument keys of the captured inputs: floats and arrays, whose values `captured.inputs` read."""
    result: str | None = None
    """The promised kind of the primal's result, as an argument key: "f64", "f64[?]C", "(f64,f64)", "None"."""

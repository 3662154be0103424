"""What earlier compilations of a function made and others need again: the IR before the derivative.

A function that is compiled with its gradient is lowered to the same IR several times over: for the check
that there is a gradient, for the primal, the gradient, `vjp`, another `saves`. So the IR that `simplify`
leaves is kept, of the last few compilations, and the next one starts from a copy. One that was only to show
that there is a gradient is kept as it stands, and the gradient goes on with it.

The same IR serves where the function and its arguments' types are the same, what is read from outside agrees
(`Captured.agrees`), and the lowering did not ask whether a derivative would be taken, or would be told the
same. Functions and what they capture are held weakly.
"""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

if TYPE_CHECKING:
    from .compilation import Compilation
    from .frontend.build import Built
    from .frontend.frames import Captured
    from .request import Request

MOST = 8
"""Compilations of each kind that are kept."""


@dataclass(frozen=True, eq=False)
class Origin:
    """What the IR was made of."""

    function: weakref.ref[Any]
    captured: weakref.ref[Captured]
    types: tuple[Any, ...]

    @classmethod
    def of(cls, request: Request) -> Origin | None:
        """None where nothing says when the function reads something else."""
        if request.captured is None:
            return None
        options = request.options
        types = request.arguments, request.overlaps, options.boundscheck, options.stretch
        asked = (*types, options.parallel, bool(options.device))
        return cls(weakref.ref(request.function), weakref.ref(request.captured), asked)

    def serves(self, other: Origin) -> bool:
        function, mine, now = self.function(), self.captured(), other.captured()
        if function is None or mine is None or now is None or function is not other.function():
            return False
        return self.types == other.types and (mine is now or mine.agrees(now))


@dataclass(frozen=True)
class Simplified:
    """The IR that `simplify` left; `gradient`: for a derivative, or not; None where that is all the same."""

    origin: Origin
    gradient: bool | None
    built: Built
    module: ModuleOp


_simplified: deque[Simplified] = deque(maxlen=MOST)
_checked: deque[tuple[Origin, tuple[Any, ...], Compilation]] = deque(maxlen=MOST)


def of_derivative(request: Request) -> tuple[Any, ...]:
    """What the IR after `adjoint` depends on beside its origin: all that the user and the runtime chose."""
    return request.mode, request.wrt, request.options, request.options.longest_tape


def remember(c: Compilation) -> None:
    """Keep what `simplify` left."""
    origin = Origin.of(c.request)
    if origin is None:
        return
    gradient = c.request.mode != "primal" if c.built.depends_on_purpose else None
    module = c.module.clone()
    _simplified.append(Simplified(origin, gradient, replace(c.built, module=module), module))


def recall(request: Request) -> Simplified | None:
    """What `simplify` left of the same."""
    origin = Origin.of(request)
    if origin is None:
        return None
    for one in tuple(_simplified):
        fits = one.gradient is None or one.gradient == (request.mode != "primal")
        if fits and one.origin.serves(origin):
            return one
    return None


def remember_checked(c: Compilation) -> None:
    """Keep a compilation that has come as far as `adjoint`, for the one that will want to go on."""
    origin = Origin.of(c.request)
    if origin is not None:
        _checked.append((origin, of_derivative(c.request), c))
        del c.request  # which holds the function; who goes on has one of its own


def take_checked(request: Request) -> Compilation | None:
    """The compilation that has come as far; no other gets it."""
    origin = Origin.of(request)
    if origin is None:
        return None
    for one in tuple(_checked):
        if one[1] == of_derivative(request) and one[0].serves(origin):
            try:
                _checked.remove(one)
            except ValueError:
                return None  # another thread was first
            return one[2]
    return None

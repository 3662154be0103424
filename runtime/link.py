"""What entries know of this process: the `__self__` of the builtins that calls go through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Link:
    """What an entry knows of this process. The slots' places are part of the entries' code."""

    __slots__ = (
        "batch",
        "code",
        "constants",
        "cotangent",
        "defaults",
        "direction",
        "inputs",
        "keyword",
        "lanes",
        "longer",
        "mode",
        "names",
        "next",
        "owner",
        "positions",
        "proved",
        "record",
        "report",
        "show",
        "tangents",
        "wrappers",
    )

    batch: str
    """What `jvp` and `hvp` call the number of directions, interned, and that number (`lanes`)."""
    code: bytes
    """The addresses that its entry calls (`engine.CODE`)."""
    constants: tuple[Any, ...]
    """MISSING, then holder, name and expected value of each captured constant."""
    cotangent: str
    """What `pullback` calls the cotangent of the result: interned."""
    defaults: tuple[Any, ...]
    """The values of the last parameters, where they are left out."""
    direction: str
    """What `hvp` calls its direction, and `jvp` (below) its tangents, and `wrt`: interned."""
    inputs: tuple[Any, ...]
    """Holder and name of each captured input."""
    keyword: str
    lanes: int
    longer: Callable[..., Any]
    """What takes a gradient call whose tapes would be long."""
    mode: tuple[str, str]
    """What `jacobian` calls its mode, and the one that entries know; interned."""
    names: tuple[str, ...]
    """The names of the parameters in `wrt`, interned."""
    positions: tuple[Any, ...]
    """Of the parameters in `wrt`; MISSING for an input, which has a name only."""
    next: Callable[..., Any]
    owner: Any
    """The compiled function, or None."""
    proved: Any
    """Set where the caller vouches for how the arguments share memory."""
    record: Callable[..., Any] | None
    """What `vjp` is left to."""
    report: Callable[[int, int], BaseException]
    show: Callable[[int, int], None]
    tangents: str
    wrappers: tuple[type, ...]
    """What `pushforward` and `pullback` take: the class of what does not move, that of what does, that of
    numbers whose cotangents are returned."""

    def __reduce__(self) -> tuple[Any, ...]:
        # `f.grad` is a method of a link; it pickles as getattr(f, "grad").
        return _identity, (self.owner,)


def _identity(value: Any) -> Any:
    return value

"""What `MUTAD_LOG=info` tells: what code was compiled or loaded, and why it was not there yet."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dispatch import Era, Key

CALLED = {
    "primal": "",
    "gradient": ".grad",
    "tangent": ".jvp",
    "tangent-alone": ".jvp",
    "product": ".hvp",
    "count": ".explain",
}
"""By mode, which method of a function the code is for, where it is not called like the mode."""


def is_on() -> bool:
    return os.environ.get("MUTAD_LOG") == "info"


def tell(
    name: str, key: Key, names: Sequence[str], why: str, seconds: float, *, loaded: bool
) -> None:
    """Say that code for a key is there."""
    done = "loaded from the disk cache" if loaded else "compiled"
    kinds = ", ".join(f"{n}: {shown(k)}" for n, k in zip(names, key.arguments, strict=True))
    what = f"{name}{CALLED.get(key.mode, f'.{key.mode}')}({kinds})"
    print(f"mutad: {done} in {1e3 * seconds:.0f} ms: {what}; {why}", file=sys.stderr)


@functools.cache
def not_kept(folder: str, why: str) -> None:
    """Say, once, that code is not written to the disk cache."""
    if is_on():
        print(f"mutad: not kept in the disk cache {folder}: {why}", file=sys.stderr)


def why_anew(key: Key, names: Sequence[str], eras: Sequence[Era]) -> str:
    """Why there was no code for this key: what is new, beside the code that is most like it."""
    *before, now = eras
    alike = [k for k in now.table if k.mode == key.mode]
    earlier = [era for era in before if any(k.mode == key.mode for k in era.table)]
    if alike:
        found = min((news(key, other, names) for other in alike), key=len)
    else:
        found = changes(earlier[-1], now) if earlier else ["the first call of its kind"]
    return f"new: {', '.join(found)}"


def news(key: Key, other: Key, names: Sequence[str]) -> list[str]:
    """What is new in a key beside another."""
    found = [
        f"{name}: {shown(now)}, was {shown(was)}"
        for name, now, was in zip(names, key.arguments, other.arguments, strict=True)
        if now != was
    ]
    if key.overlaps != other.overlaps:
        found.append("which arguments share memory")
    if key.wrt != other.wrt:
        found.append(f"wrt: {', '.join(names[p] for p in key.wrt)}")
    if key.lanes != other.lanes:
        found.append(f"{key.lanes} tangents at once")
    if key.guards and not other.guards:
        found.append("the guards of a derivative")
    if key.stretch and not other.stretch:
        found.append("extents, such as 1 or 0, that the code did not expect")
    if key.long and not other.long:
        found.append("tapes that are long")
    return found


def changes(before: Era, now: Era) -> list[str]:
    """What is outside that was another object."""
    was = {p.key: v for p, v in pairs(before)}
    return [f"{p.path} outside" for p, v in pairs(now) if p.key in was and was[p.key] is not v]


def pairs(era: Era) -> Collection[Any]:
    return [*zip(era.captures.constants, era.captures.expected, strict=True)]


def shown(kind: str) -> str:
    return kind.removeprefix("py_")

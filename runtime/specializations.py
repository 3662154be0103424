"""Compiled code, by what it is compiled for, and by what was outside when it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import engine, keys
from .captures import Captures
from .link import Link
from .places import MISSING


@dataclass
class Specialization:
    """The compiled code for one key."""

    library: engine.Library
    metadata: dict[str, Any]
    wrt: tuple[int, ...]
    direct: dict[str, Callable[..., Any]]
    """Kind of call -> callable of all arguments by position."""
    kernels: Any = None
    """Those of a device that its code launches, as long as it is there."""
    links: dict[str, Link] = field(default_factory=dict[str, Link])
    """Kind of call -> the link of its entry in the chain."""
    seeds: list[Any] | None = None
    """The cotangents that the code takes where the gradient of one float is asked for, once that is known."""

    @property
    def results(self) -> dict[str, Any]:
        return self.metadata["results"]

    @property
    def gradient(self) -> dict[str, list[int]]:
        """What the gradient's code takes: parameters with `shadows`, results with `cotangents`."""
        return self.metadata["gradient"]

    @property
    def moving(self) -> list[tuple[str, int]]:
        """Of each tangent that the code takes: "argument" or "shadow", and the parameter it is of."""
        return self.metadata["tangents"]["moving"]

    @property
    def idle(self) -> list[int]:
        """The parameters whose shadows only show how large they are: any other array of this shape does."""
        return self.metadata["tangents"]["idle"]

    @property
    def unread(self) -> list[int]:
        """The parameters of whose own tangents only the extents are read."""
        return self.metadata["tangents"]["unread"]

    @property
    def filled(self) -> list[int]:
        """The parameters the tangents of whose shadows need not be zero before: the code fills them."""
        return self.metadata["tangents"]["filled"]

    @property
    def zeros(self) -> list[int]:
        """The parameters of whose products with the Hessian the code stores nothing: they are zero."""
        return self.metadata["tangents"]["zeros"]

    @property
    def adds(self) -> bool:
        """Whether the gradient's code adds to all shadows, so that it serves `pullback` as well."""
        return not self.gradient["filled"]

    @property
    def shadowed(self) -> list[int]:
        """The parameters with a shadow or a tangent."""
        moving = self.moving if self.metadata.get("tangents") else []
        return [
            *(self.gradient or {"shadows": ()})["shadows"],
            *(position for _, position in moving),
        ]


Asked = tuple[tuple[str, ...], keys.Overlaps, tuple[int, ...], str, int]
"""Arguments, overlaps, `wrt` (empty for the primal), mode: "primal", "gradient", "vjp", ...; how many
tangents go along at once."""


class Key(NamedTuple):
    """What code is compiled for."""

    arguments: tuple[str, ...]
    overlaps: keys.Overlaps
    wrt: tuple[int, ...]
    mode: str
    lanes: int
    guards: bool
    """Whether a derivative keeps its guards."""
    stretch: bool = False
    """Whether nothing is assumed of the arguments' extents."""
    long: bool = False
    """Whether a gradient is for long tapes."""

    @property
    def asked(self) -> Asked:
        return self.arguments, self.overlaps, self.wrt, self.mode, self.lanes


@dataclass
class Era:
    """All that was compiled while the constants from outside were these."""

    captures: Captures
    table: dict[Key, Specialization] = field(default_factory=dict[Key, Specialization])
    links: list[Link] = field(default_factory=list[Link])
    assumed: dict[Key, Sequence[Any]] = field(default_factory=dict[Key, Sequence[Any]])
    """By key, what code would assume that was not made, for no arguments were like that."""
    guarded: set[Asked] = field(default_factory=set[Asked])
    """Derivatives that turned out to need guards."""

    def key_of(self, asked: Asked) -> Key:
        """The key of the code for what is asked. Shadows that add up need guards where fresh ones do."""
        modes = (asked[3], *(("gradient",) if asked[3] == "pullback" else ()))
        alike = ((*asked[:3], mode, asked[4]) for mode in modes)
        return Key(*asked, guards=any(one in self.guarded for one in alike))

    def compiled(self, asked: Asked, values: Sequence[Any]) -> Specialization | None:
        """The code for what is asked, if it is there already."""
        key = self.key_of(asked)
        for one in (key, key._replace(stretch=True)):
            found = self.table.get(one)
            if found is not None and keys.assumptions_hold(found.metadata["assumed"], values):
                return found
        return None

    def renew(self, now: Captures) -> None:
        """Take over constants that are equal, as the objects they are now."""
        self.captures = now
        for link in self.links:
            link.constants = expected_constants(now)


def expected_constants(captured: Captures) -> tuple[Any, ...]:
    triples = zip(captured.constants, captured.expected, strict=True)
    return (MISSING, *(x for p, value in triples for x in (p.holder, p.name, value)))

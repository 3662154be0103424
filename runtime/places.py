"""Where a name outside of a function is looked up: a module's dict, a closure's cell, a class."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

from . import settings, tables


class Missing:
    """What is found at a place where nothing is."""

    def __repr__(self) -> str:
        return "<nothing>"


MISSING = Missing()

LAZY = getattr(types, "LazyImportType", None)
"""What is in the place of a `lazy import` of Python 3.15 until the name is read."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where a name from outside is looked up."""

    holder: Any
    """A module's dict, a closure's cell, or a class."""
    name: str
    path: str
    """As the program writes it: `G`, `settings.G`."""

    def read(self) -> Any:
        """What is there now, or MISSING."""
        holder = self.holder
        if isinstance(holder, dict):
            found: Any = holder.get(self.name, MISSING)  # pyright: ignore[reportUnknownMemberType]
            if type(found) is LAZY:
                found = holder[self.name] = found.resolve()  # as Python does at the first read
            return found  # pyright: ignore[reportUnknownVariableType]
        if isinstance(holder, types.CellType):
            try:
                return holder.cell_contents
            except ValueError:
                return MISSING
        return getattr(holder, self.name, MISSING)

    def write(self, value: Any) -> None:
        """Put another value there."""
        if isinstance(self.holder, dict):
            self.holder[self.name] = value
        elif isinstance(self.holder, types.CellType):
            self.holder.cell_contents = value
        elif isinstance(self.holder, type):
            setattr(self.holder, self.name, value)
        else:
            object.__setattr__(self.holder, self.name, value)  # also of what is frozen

    @property
    def key(self) -> tuple[int, str]:
        """What tells two places apart."""
        if isinstance(self.holder, tables.Contents | tables.Held | tables.Default | settings.Names):
            return self.holder.key, self.name
        return id(self.holder), self.name

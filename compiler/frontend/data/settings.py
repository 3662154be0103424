"""Objects from outside (`mutad.runtime.settings`): their attributes are read where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ..values import Struct, Value

if TYPE_CHECKING:
    from ..context import Context


@dataclass(frozen=True)
class Settings(Struct):
    """An object from outside: read, and not assigned to."""


class Attributes(Sequence[Value]):
    """The attributes of an object, each captured where it is read."""

    def __init__(self, lowering: Context, of: Any, names: tuple[str, ...], path: str) -> None:
        self.lowering, self.of, self.names, self.path = lowering, of, names, path

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self)[index]
        name = self.names[index]
        found = getattr(self.of, name)
        return self.lowering.captured(self.of, name, found, f"{self.path}.{name}")

    def __iter__(self) -> Iterator[Value]:
        return (self[k] for k in range(len(self)))


def is_followed(lowering: Context, value: Any) -> bool:
    """Callers watch the attributes of this object."""
    return lowering.watched is not None and (id(value), "names") in lowering.watched


def settings(lowering: Context, value: Any, path: str) -> Value:
    """The object as a value."""
    watched = lowering.watched or frozenset()
    inputs = lowering.inputs
    places = ((name, (id(value), name)) for name in vars(value))
    names = tuple(name for name, place in places if place in watched or place in inputs)
    items = cast("tuple[Value, ...]", Attributes(lowering, value, names, path))
    lowering.objects.knows(type(value))
    return Settings(items, names, type(value))

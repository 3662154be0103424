"""How the runtime finds classes, enum members and keys again that compiled code speaks of."""

from __future__ import annotations

import enum
import sys
from typing import Any


def key_reference(key: Any) -> Any:
    return key if isinstance(key, str) else ["static", reference(key)]


def reference(known: Any) -> Any:
    """How the runtime finds an object again: by its name, or, where it has none, the object itself."""
    if known is None or (isinstance(known, str | int | float) and not isinstance(known, enum.Enum)):
        return {"value": known}
    cls = known if isinstance(known, type) else type(known)
    found: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not cls:
        return {"object": known}
    named: dict[str, Any] = {"module": cls.__module__, "name": cls.__qualname__}
    return named if cls is known else {**named, "member": known.name}

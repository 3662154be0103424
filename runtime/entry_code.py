"""Entries that many modules share: those of the same calling convention.

The entries of a module depend on how its kernels are called alone: on what the arguments and results
are. So they are compiled once for each such convention, and loaded once: a link tells them which kernel they
call (its slot `code`). They are kept while code that they are the entries of is loaded, the latest ones
longer; and in the disk cache, where an edited function finds them again.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any, Protocol

from . import disk_cache, engine, target


class Compiler(Protocol):
    """What compiles the entries of a convention: object code and metadata."""

    def entries(self, convention: str) -> tuple[bytes, dict[str, Any]]: ...


KEPT = 64
"""How many conventions' entries stay loaded whatever becomes of their kernels."""

Key = tuple[str, Any]

_loaded: weakref.WeakValueDictionary[Key, engine.EntryCode] = weakref.WeakValueDictionary()
_latest: OrderedDict[Key, engine.EntryCode] = OrderedDict()


def entries_of(
    metadata: dict[str, Any], compiler: Compiler, *, cached: bool
) -> engine.EntryCode | None:
    """The entries of a module; None where it has them itself. `cached`: the disk cache may be used."""
    convention: str | None = metadata["convention"]
    if convention is None:
        return None
    with engine.compiling:
        key = convention, target.chosen()
        place = disk_cache.place_of_entries(convention) if cached else None
        found = _loaded.get(key)
        if found is None:
            made = disk_cache.read(place)
            if made is None:
                made = compiler.entries(convention)
                disk_cache.write(place, *made)
            found = engine.load_entries(*made)
        elif not disk_cache.has(place):  # who loads the module from there finds them, too
            disk_cache.write(place, *found.made)
        _loaded[key] = _latest[key] = found
        _latest.move_to_end(key)
        while len(_latest) > KEPT:
            _latest.popitem(last=False)
        return found

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
    """What compiles the entries of a convention at LLVM's level `opt`: object code and metadata."""

    def entries(self, convention: str, opt: int) -> tuple[bytes, dict[str, Any]]: ...


KEPT = 64
"""How many conventions' entries stay loaded whatever becomes of their kernels."""

LOW, HIGH = 1, 3
"""The levels of entries: of functions that are compiled quickly, and of all others."""

Key = tuple[str, int, Any]
"""Convention, level, CPU."""

_loaded: weakref.WeakValueDictionary[Key, engine.EntryCode] = weakref.WeakValueDictionary()
_latest: OrderedDict[Key, engine.EntryCode] = OrderedDict()


def entries_of(
    metadata: dict[str, Any], compiler: Compiler, options: dict[str, Any]
) -> engine.EntryCode | None:
    """The entries of a module that was compiled with these options; None where it has them itself."""
    convention: str | None = metadata["convention"]
    if convention is None:
        return None
    with engine.compiling:
        key = convention, HIGH, target.chosen()
        if options["opt"] <= LOW and key not in _loaded:
            key = convention, LOW, target.chosen()
        place = disk_cache.place_of_entries(*key[:2]) if options["cache"] else None
        found = _loaded.get(key)
        if found is None:
            made = disk_cache.read(place)
            if made is None:
                made = compiler.entries(*key[:2])
                disk_cache.write(place, *made)
            found = engine.load_entries(*made)
        elif not disk_cache.has(place):  # who loads the module from there finds them, too
            disk_cache.write(place, *found.made)
        _loaded[key] = _latest[key] = found
        _latest.move_to_end(key)
        while len(_latest) > KEPT:
            _latest.popitem(last=False)
        return found

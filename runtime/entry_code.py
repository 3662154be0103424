"""Code that many modules share: the entries of a calling convention, and the support functions.

The entries of a module depend on how its kernels are called alone: on what the arguments and results
are. So they are compiled once for each such convention, and loaded once: a link tells them which kernel they
call (its slot `code`). They are kept while code that they are the entries of is loaded, the latest ones
longer; and in the disk cache, where an edited function finds them again.

What kernels and entries call of the process itself, to allocate, to poll, to raise, is compiled once for all
of them, and stays loaded. So are products of matrices, once for each way in which kernels have them computed,
and functions of numbers, with all that they are called in vectors.
"""

from __future__ import annotations

import json
import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from . import disk_cache, engine, target


class Compiler(Protocol):
    """What compiles the entries of a convention, or the support, at LLVM's level `opt`: object code and
    metadata."""

    def entries(self, convention: str, opt: int) -> tuple[bytes, dict[str, Any]]: ...
    def support(self, opt: int) -> tuple[bytes, dict[str, Any]]: ...
    def shared(self, asked: str, opt: int) -> tuple[bytes, dict[str, Any]]: ...


KEPT = 64
"""How many conventions' entries stay loaded whatever becomes of their kernels."""

LOW, HIGH = 1, 3
"""The levels of entries: of functions that are compiled quickly, and of calls that cost more by themselves;
and of all others. The low one takes a fifth of the time, and its entries 10 to 20 ns longer."""
OFTEN = ("primal", "gradient")
"""The modes whose calls may take as little as their entries do."""

Key = tuple[str, int, Any, str]
"""Convention, level, CPU, and the device that the code launches on."""

_loaded: weakref.WeakValueDictionary[Key, engine.EntryCode] = weakref.WeakValueDictionary()
_latest: OrderedDict[Key, engine.EntryCode] = OrderedDict()
_support: dict[Any, engine.EntryCode] = {}
"""By CPU."""
_shared: dict[tuple[str, int, Any], engine.EntryCode] = {}
"""By how they are written, level and CPU."""


def support_of(compiler: Compiler, options: dict[str, Any]) -> engine.EntryCode:
    """The support functions, of the best level: there is one library of them."""
    with engine.compiling:
        place = disk_cache.place_of_support(HIGH) if options["cache"] else None
        cpu = target.chosen()
        found = stored(_support.get(cpu), place, lambda: compiler.support(HIGH))
        _support[cpu] = found
        return found


def shared_of(
    metadata: dict[str, Any], compiler: Compiler, options: dict[str, Any]
) -> list[engine.EntryCode]:
    """The libraries of products, and of functions, that a module calls."""
    found: list[engine.EntryCode] = []
    for asked in metadata["shared"]:
        with engine.compiling:
            opt = options["opt"]
            key = asked, opt, target.chosen()
            place = disk_cache.place_of_shared(asked, opt) if options["cache"] else None
            support = support_of(compiler, options)
            made = partial(compiler.shared, asked, opt)
            _shared[key] = stored(_shared.get(key), place, made, support)
            found.append(_shared[key])
    return found


def entries_of(
    metadata: dict[str, Any], compiler: Compiler, options: dict[str, Any]
) -> engine.EntryCode | None:
    """The entries of a module that was compiled with these options; None where it has them itself."""
    convention: str | None = metadata["convention"]
    if convention is None:
        return None
    with engine.compiling:
        key = key_of(convention, options)
        driver = key[-1]
        place = disk_cache.place_of_entries(*key[:2]) if options["cache"] else None
        support = support_of(compiler, options)
        found = stored(_loaded.get(key), place, lambda: compiler.entries(*key[:2]), support, driver)
        _loaded[key] = _latest[key] = found
        _latest.move_to_end(key)
        while len(_latest) > KEPT:
            _latest.popitem(last=False)
        return found


def key_of(convention: str, options: dict[str, Any]) -> Key:
    """Which entries are those of functions with these options."""
    driver: str = options.get("driver", "")
    key = convention, HIGH, target.chosen(), driver
    seldom = json.loads(convention)["mode"] not in OFTEN
    if (seldom or options["opt"] <= LOW) and key not in _loaded:
        key = convention, LOW, target.chosen(), driver
    return key


def missing(options: dict[str, Any], metadata: dict[str, Any]) -> list[tuple[str, str, int]]:
    """What the process lacks beside a module of this metadata: "entries" or "shared", of what, the level."""
    found: list[tuple[str, str, int]] = []
    convention: str | None = metadata["convention"]
    if convention is not None:
        key = key_of(convention, options)
        if key not in _loaded and lacks(disk_cache.place_of_entries(*key[:2]), options):
            found.append(("entries", *key[:2]))
    for asked in metadata["shared"]:
        opt: int = options["opt"]
        is_loaded = (asked, opt, target.chosen()) in _shared
        if not is_loaded and lacks(disk_cache.place_of_shared(asked, opt), options):
            found.append(("shared", asked, opt))
    return found


def lacks(place: disk_cache.Place, options: dict[str, Any]) -> bool:
    """Whether the disk does not have this either."""
    return not (options["cache"] and disk_cache.has(place))


def stored(
    found: engine.EntryCode | None,
    place: disk_cache.Place,
    compiled: Callable[[], tuple[bytes, dict[str, Any]]],
    support: engine.EntryCode | None = None,
    driver: str = "",
) -> engine.EntryCode:
    """What is loaded already, or from disk, or compiled now; from now on on disk in any case."""
    if found is None:
        made = disk_cache.read(place)
        if made is None:
            made = compiled()
            disk_cache.write(place, *made)
        return engine.load_entries(*made, support, engine.of_device(made[1], driver))
    if not disk_cache.has(place):  # who loads the module from there finds this, too
        disk_cache.write(place, *found.made)
    return found

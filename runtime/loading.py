"""The code for one kind of arguments: from the disk, or compiled; loaded, and linked to this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from . import (
    disk_cache,
    engine,
    entry_code,
    foreign,
    keys,
    log,
    sites,
    target,
    write_back,
)
from .compiler_protocol import Wanted
from .gradients import Active, BatchDuplicated, Const, Duplicated
from .link import Link
from .places import MISSING
from .result_pool import of_host
from .specializations import Era, Key, Specialization, expected_constants
from .user_tracebacks import concise

if TYPE_CHECKING:
    from .dispatch import Dispatcher

KEYWORDS = ("wrt", "direction", "tangents", "batch", "cotangent")
WRT, DIRECTION, TANGENTS, BATCH, COTANGENT = map(sys.intern, KEYWORDS)
MODE = (sys.intern("mode"), sys.intern("forward"))
REVERSE = (MODE[0], sys.intern("reverse"))


def load(d: Dispatcher, key: Key, era: Era, values: Sequence[Any] | None) -> Specialization | None:
    """The code for a key; None where it assumes something that these values do not fulfil."""
    target.require_runnable()
    arguments, overlaps, wrt, mode, lanes, guards, stretch, long = key
    from .fingerprint import place_of  # which loads what only the disk cache needs

    options = {**d.options, "stretch": stretch, "lanes": lanes, "guards": guards}
    shorter = d.add(key._replace(long=False), era, None) if long else None
    before: list[Any] = [] if shorter is None else shorter.metadata["sites"]
    options["long"] = 0 if shorter is None else 1 + len(before)
    place = place_of(d.function, arguments, overlaps, mode, wrt, options)
    started = perf_counter()
    cached = disk_cache.read(place)

    def wanted(assumed: Sequence[Any]) -> bool:
        return values is None or keys.assumptions_hold(assumed, values)

    loaded = cached is not None and bool(cached[0] or not wanted(cached[1]["assumed"]))
    if cached is None or not loaded:
        with d.compiler.watched(d.function.__qualname__):
            cached = compiled_for(d, key, era, options, wanted)
        disk_cache.write(place, *cached)
    if log.is_on() and cached[0]:
        names = (*d.parameters, *era.captures.names)
        why = log.why_anew(key, names, d.eras)
        seconds = perf_counter() - started
        log.tell(d.function.__qualname__, key, names, why, seconds, loaded=loaded)
    object_code, metadata = cached
    if not object_code:
        era.assumed[key] = metadata["assumed"]
        return None
    records = metadata.get("records")
    if records not in d.recipes:
        d.recipes = [*d.recipes, records]
    instead = foreign.addresses(metadata["symbols"], era.captures.expected)
    kernels = None
    if (image := metadata.get("image")) is not None:
        from . import device, drivers

        driver: str = d.options["driver"]
        kernels = drivers.begun[driver].load(image)
        instead = {**instead, **engine.of_device(metadata, driver)}
        instead[device.KERNELS] = kernels.address
    if shorter is not None:
        metadata = {**metadata, "sites": [*before, *metadata["sites"]]}
        assert shorter.library.whole is not None
        instead = {**instead, engine.WHOLE: shorter.library.whole}
    library = engine.load(
        object_code, metadata, d.function.__name__, instead, *shared_code(d, metadata)
    )
    library.shorter = None if shorter is None else shorter.library
    found = Specialization(library, metadata, wrt, {})
    if metadata.get("later") is not None:
        found.direct = Direct(partial(call_later, d, found, key, era))
    connect(d, found, key, era, library, metadata["entries"])
    if kernels is not None:
        found.kernels = kernels
        calling = kernels.driver.calling
        found.direct = {kind: calling(entry) for kind, entry in found.direct.items()}
    return found


class Direct(dict[str, Callable[..., Any]]):
    """The entries of some code, by kind of call; those that wait are there when one is asked for."""

    def __init__(self, later: Callable[[], None]) -> None:
        super().__init__()
        self.later = later

    def __missing__(self, kind: str) -> Callable[..., Any]:
        self.later()
        return dict(self)[kind]


def connect(
    d: Dispatcher,
    found: Specialization,
    key: Key,
    era: Era,
    library: engine.Library,
    kinds: Iterable[str],
) -> None:
    """Make callables of these entries, for callers that have found the code."""
    for kind in kinds:
        following = d.disagree
        if found.metadata["retries"]:
            following = of_host(partial(d.retry, kind, key, era))
        if kind == "pull":
            following = not_taken
        link = link_of(d, found, era, following)
        link.longer = of_host(partial(d.lengthen, kind, key, era))
        link.proved = True
        found.direct[kind] = library.function(kind, link, "")


def call_later(d: Dispatcher, found: Specialization, key: Key, era: Era) -> None:
    """Compile (or load from disk) and install the entries that waited until one is called."""
    with engine.compiling:
        later = found.metadata["later"]
        if not found.direct.keys().isdisjoint(later["entries"]):
            return  # another thread was first
        if key.long:  # its entries go behind those for short tapes
            short = key._replace(long=False)
            call_later(d, era.table[short], short, era)
        entries = entry_code.entries_of(later, d.compiler, d.options)
        assert entries is not None
        library = found.library.beside(entries)
        connect(d, found, key, era, library, later["entries"])
        d.install(found, era, key, library, later["entries"])


def compiled_for(
    d: Dispatcher, key: Key, era: Era, options: dict[str, Any], wanted: Wanted
) -> tuple[bytes, dict[str, Any]]:
    """Compile for a key, after a check that there is a gradient, where that was asked for and is not seen."""
    arguments, overlaps, wrt = key.arguments, key.overlaps, key.wrt
    if d.checks_gradient and not wrt:
        own = arguments[: len(arguments) - len(era.captures.inputs)]
        active = tuple(i for i, a in enumerate(own) if keys.is_active_key(a))
        gradient = ("gradient", arguments, overlaps, active)
        if active and all((k.mode, k.arguments, k.overlaps, k.wrt) != gradient for k in era.table):
            d.compiler.check_differentiable(
                d.function, arguments, overlaps, active, options, era.captures, wanted
            )
    missing = partial(entry_code.missing, options)
    return d.compiler.compile(
        d.function, arguments, overlaps, key.mode, wrt, options, era.captures, wanted, missing
    )


def shared_code(
    d: Dispatcher, metadata: dict[str, Any]
) -> tuple[engine.EntryCode | None, engine.EntryCode, list[engine.EntryCode]]:
    """The entries of a module that has none itself, the support functions, and what else it calls."""
    support = entry_code.support_of(d.compiler, d.options)
    shared = entry_code.shared_of(metadata, d.compiler, d.options)
    return entry_code.entries_of(metadata, d.compiler, d.options), support, shared


def link_of(d: Dispatcher, found: Specialization, era: Era, following: Callable[..., Any]) -> Link:
    """A link for an entry of this specialization."""
    site_list: list[sites.Site] = found.metadata["sites"]

    opaque = [k for k, s in enumerate(site_list) if "call" in s]
    calls = {k: foreign.caller(site_list[k], era.captures.expected) for k in opaque}

    @of_host
    def report(site: int, payload: int) -> BaseException:
        return write_back.made(sites.exception(site_list[site], payload))

    @concise
    @of_host
    def show(site: int, payload: int) -> None:
        if (call := calls.get(site)) is not None:
            call(payload)
        elif "leaves" in site_list[site]:
            write_back.take_over(site_list[site], payload)
        else:
            sites.show(site_list[site], payload)

    names = (*d.parameters, *era.captures.names)
    link = Link()
    link.constants = expected_constants(era.captures)
    link.defaults = d.defaults
    link.inputs = tuple(x for p in era.captures.inputs for x in (p.holder, p.name))
    link.keyword, link.direction, link.tangents, link.batch = WRT, DIRECTION, TANGENTS, BATCH
    link.lanes = found.metadata.get("lanes", 1)
    link.mode = MODE
    link.cotangent = COTANGENT
    link.wrappers = Const, (Duplicated if link.lanes == 1 else BatchDuplicated), Active
    link.names = tuple(names[p] for p in found.wrt)
    link.positions = tuple(p if p < len(d.parameters) else MISSING for p in found.wrt)
    link.next, link.longer, link.record = following, d.disagree, None
    link.owner = d.owner() if d.owner is not None else None
    link.report = report
    link.show = show
    return link


def not_taken(*args: Any) -> Any:
    """What the entry of `back` returns where Python code is to do it."""
    return NotImplemented

"""What a gradient call allocates, and what `vjp` keeps: the same machine code with an allocator that counts.

Nothing is added to the code that users run. The kernel's memory comes from two external symbols; here
they lead to functions that note every block and hand it on to libc. Shadows of arguments are NumPy arrays,
which the caller here makes itself and adds up.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from . import engine, keys, memory, result_pool
from .dispatch import Specialization
from .function import CompiledFunction
from .gradients import with_groups
from .loading import link_of, shared_code
from .tangents import of_number
from .vjp import run_primal

MALLOC, FREE = "mutad_libc_malloc", "mutad_libc_free"


@dataclass
class Meter:
    """An allocator that counts."""

    live: dict[int, int] = field(default_factory=dict[int, int])
    now: int = 0
    peak: int = 0

    def __post_init__(self) -> None:
        libc: Any = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        libc.malloc.argtypes = [ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]

        def malloc(size: int) -> int | None:
            address: int | None = libc.malloc(size)
            if address is not None:
                self.live[address] = size
                self.now += size
                self.peak = max(self.peak, self.now)
            return address

        def free(address: int | None) -> None:
            if address is not None:
                self.now -= self.live.pop(address)
                libc.free(address)

        self._malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(malloc)
        self._free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)
        self._pool = result_pool.new_scratch_pool(1 << 62)

    def empty_pool(self) -> None:
        """Free the blocks that were left for a next call."""
        for slot, block in enumerate(self._pool[: result_pool.SCRATCH_BLOCKS]):
            self._free(block)
            self._pool[slot] = None

    def require_empty(self) -> None:
        """AssertionError where a block was not given back."""
        self.empty_pool()
        if self.live:
            raise AssertionError(f"{len(self.live)} blocks were not given back")

    def symbols(self) -> dict[str, int]:
        """The addresses to link instead of the allocator's own and of the pool of blocks."""
        found = {
            name: self._address(one) for name, one in ((MALLOC, self._malloc), (FREE, self._free))
        }
        return {**found, engine.POOL: ctypes.addressof(self._pool)}

    @staticmethod
    def _address(function: Any) -> int:
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        return address


@dataclass(frozen=True)
class Measured:
    """Bytes of one gradient call."""

    kernel: int
    """The most that the kernel held at one time: tapes, temporaries, shadows of arrays within."""
    shadows: int
    """The shadows of the arguments."""

    @property
    def total(self) -> int:
        return self.kernel + self.shadows


def measure_gradient(
    function: CompiledFunction, *args: Any, wrt: Any = 0, batch: int = 1, **kwargs: Any
) -> Measured:
    """Run a gradient call (of a batch, `pullback`) on copies of the arguments and count what it allocates.

    Blocks are a little larger than what is kept in them: headers, rounding to 64 bytes, and the
    unused rest of the last block of a tape that grows.
    """
    dispatcher = function._dispatcher  # pyright: ignore[reportPrivateUsage]
    values = dispatcher.values_of(*args, **kwargs)
    values = memory.copies(values, keys.overlaps_of(values))
    meter, found = metered(function, values, wrt, "gradient" if batch == 1 else "pullback", batch)
    wanted = found.gradient["shadows"]
    shadows = memory.zero_shadows(values, wanted, keys.overlaps_of(values), batch)
    if found.results.get("type") not in keys.FLOATS:
        raise TypeError("only gradients of functions that return one float are measured")
    try:
        found.direct["pullback"](*values, *(shadows[p] for p in wanted), *bars_of(found, batch))
    finally:
        meter.require_empty()
    return Measured(meter.peak, bytes_of(shadows))


def bars_of(found: Specialization, batch: int) -> list[Any]:
    """The cotangents of one float."""
    ones = np.ones(batch, np.float32 if found.results["type"] == "f32" else np.float64)
    return [1.0 if batch == 1 else ones] * len(found.gradient["cotangents"])


def measure_hvp(
    function: CompiledFunction, *args: Any, wrt: Any = 0, batch: int = 1, **kwargs: Any
) -> Measured:
    """Run a Hessian-vector product on copies of the arguments and count what it allocates: shadows are the
    gradients, the products and the directions."""
    values, meter, found = moving_call(function, args, kwargs, wrt, "hvp", batch)
    overlaps, wanted = keys.overlaps_of(values), found.gradient["shadows"]
    shadows, products = (
        memory.zero_shadows(values, wanted, overlaps, lanes) for lanes in (1, batch)
    )
    directions = memory.zero_shadows(values, {*found.wrt, *wanted}, overlaps, batch)
    moving = [
        (products if of == "shadow" else directions).get(p, of_number(values[p], 1.0, batch))
        for of, p in found.moving
    ]
    bars = [1.0] * len(found.gradient["cotangents"])
    try:
        found.direct["pushforward"](*values, *(shadows[p] for p in wanted), *bars, *moving)
    finally:
        meter.require_empty()
    return Measured(meter.peak, sum(map(bytes_of, (shadows, products, directions))))


def measure_tangent(
    function: CompiledFunction, *args: Any, wrt: Any = 0, batch: int = 1, **kwargs: Any
) -> Measured:
    """The same of a tangent, whose arguments' tangents are the caller's."""
    values, meter, found = moving_call(function, args, kwargs, wrt, "tangent", batch)
    positions = [p for _, p in found.moving]
    dots = memory.zero_shadows(values, positions, keys.overlaps_of(values), batch)
    moving = [dots[p] if p in dots else of_number(values[p], 1.0, batch) for p in positions]
    try:
        found.direct["pushforward"](*values, *moving)
    finally:
        meter.require_empty()
    return Measured(meter.peak, 0)


def moving_call(
    function: CompiledFunction, args: Any, kwargs: Any, wrt: Any, mode: str, lanes: int
) -> tuple[tuple[Any, ...], Meter, Specialization]:
    """Copies of the arguments, an allocator that counts, the code."""
    dispatcher = function._dispatcher  # pyright: ignore[reportPrivateUsage]
    values = dispatcher.values_of(*args, **kwargs)
    values = memory.copies(values, keys.overlaps_of(values))
    return values, *metered(function, values, wrt, mode, lanes)


def bytes_of(shadows: dict[int, Any]) -> int:
    """Each buffer once."""
    buffers = {id(b): b.nbytes for b in (s if s.base is None else s.base for s in shadows.values())}
    return sum(buffers.values())


def measure_vjp(function: CompiledFunction, *args: Any, wrt: Any = 0, **kwargs: Any) -> int:
    """The bytes of the blocks that `vjp` keeps for `back`, while it is not called."""
    dispatcher = function._dispatcher  # pyright: ignore[reportPrivateUsage]
    values = dispatcher.values_of(*args, **kwargs)
    values = memory.copies(values, keys.overlaps_of(values))
    meter, found = metered(function, values, wrt, "vjp")
    try:
        _, handle = run_primal(found, values)
        meter.empty_pool()
        kept = meter.now
        del handle
    finally:
        meter.require_empty()
    return kept


def made_anew(*args: Any) -> Any:
    """In place of the code with guards: what is measured is the code without."""
    return None


def measure_back(
    function: CompiledFunction, *args: Any, wrt: Any = 0, batch: int = 1, **kwargs: Any
) -> Measured:
    """Run `vjp` and one `back` on copies of the arguments, and count what both hold at most."""
    dispatcher = function._dispatcher  # pyright: ignore[reportPrivateUsage]
    values = dispatcher.values_of(*args, **kwargs)
    overlaps = keys.overlaps_of(values)
    values = memory.copies(values, overlaps)
    meter, found = metered(function, values, wrt, "vjp", batch)
    wanted = found.gradient["shadows"]
    shadows = memory.zero_shadows(values, wanted, overlaps, batch)
    try:
        _, handle = run_primal(found, values)
        ordered = (shadows[p] for p in wanted)
        found.direct["back"](handle.address, *ordered, *bars_of(found, batch))
        del handle
    finally:
        meter.require_empty()
    return Measured(meter.peak, bytes_of(shadows))


def metered(
    function: CompiledFunction, values: tuple[Any, ...], wrt: Any, mode: str, lanes: int = 1
) -> tuple[Meter, Specialization]:
    """The code for these arguments, linked against a meter."""
    dispatcher = function._dispatcher  # pyright: ignore[reportPrivateUsage]
    overlaps = keys.overlaps_of(values)
    positions, _ = dispatcher.resolve_wrt(wrt)
    active = with_groups(dispatcher, values, set(positions), overlaps)
    arguments, era = dispatcher.arguments_of(values), dispatcher.era
    meter = Meter()

    def loaded(shorter: Specialization | None) -> Specialization:
        """The code; for long tapes where that for short ones is given."""
        options = {**dispatcher.options, "lanes": lanes, "long": 0}
        if shorter is not None:
            options["long"] = 1 + len(shorter.metadata["sites"])
        object_code, metadata = dispatcher.compiler.compile(
            dispatcher.function, arguments, overlaps, mode, active, options, era.captures
        )
        metadata = {**metadata, **(metadata["later"] or {})}  # shadows are the caller's
        shared = shared_code(dispatcher, metadata)
        instead = meter.symbols()
        if shorter is not None and shorter.library.whole is not None:
            instead[engine.WHOLE] = shorter.library.whole
            metadata = {**metadata, "sites": [*shorter.metadata["sites"], *metadata["sites"]]}
        name = dispatcher.function.__name__
        library = engine.load(object_code, metadata, name, instead, *shared)
        library.shorter = None if shorter is None else shorter.library
        found = Specialization(library, metadata, active, {})
        for kind in metadata["entries"]:
            following = made_anew if metadata["retries"] else dispatcher.disagree
            link = link_of(dispatcher, found, era, following)
            link.longer = partial(lengthened, kind, found)
            link.proved = True
            found.direct[kind] = library.function(kind, link, "")
        return found

    def lengthened(kind: str, shorter: Specialization, *args: Any, **kwargs: Any) -> Any:
        return loaded(shorter).direct[kind](*args, **kwargs)

    return meter, loaded(None)

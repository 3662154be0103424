"""Calls on arrays of a device: the same function, compiled for the device, over the same runtime.

A compiled function that is called on arrays of a device has a *twin*, compiled for the device's kind with the
same options. Its calls see arrays of the device as arrays of NumPy with other addresses (`device_arrays`),
so kinds of arguments, sharing of memory, views and what is compiled for them are those of the host. The
device's stream waits for the streams that the arguments are computed on, and these for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import cuda, device_arrays, keys, memory, result_pool
from .device import Driver
from .device_arrays import DeviceArray, Taken, is_device
from .gradients import Active, BatchDuplicated, Const, Duplicated

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .vjp import Back

CALLS = ("primal", "grad", "value_and_grad", "pullback", "vjp", "jvp", "pushforward")
"""What there is of a function on a device."""


def holds_device_arrays(values: Sequence[Any]) -> bool:
    """Whether some of these values are arrays of a device, or tuples that hold some."""
    return any(
        holds_device_arrays(v) if type(v) is tuple else type(v) not in keys.PLAIN and is_device(v)
        for v in values
    )


@dataclass
class Call:
    """The arrays of one call."""

    driver: Driver
    taken: dict[int, Taken] = field(default_factory=dict[int, Taken])
    """By the identity of the array as compiled code sees it."""
    first: Any = None
    """The first array of a device among the arguments: what is returned is of its library."""
    on_device: list[str] = field(default_factory=list[str])
    on_host: list[str] = field(default_factory=list[str])

    def seen(self, value: Any, name: str) -> Any:
        """An argument as compiled code sees it."""
        kind = type(value)
        if isinstance(value, np.ndarray):
            self.on_host.append(name)
            return value
        if kind is tuple:
            return tuple(self.seen(v, f"{name}[{i}]") for i, v in enumerate(value))
        if kind is dict:
            return {k: self.seen(v, f"{name}[{k!r}]") for k, v in value.items()}
        if kind is Duplicated:
            made = Duplicated(
                self.seen(value.primal, name), self.seen(value.shadow, f"the shadow of {name}")
            )
            self.require_placed(made, name)
            return made
        if kind in (Const, Active):
            return kind(self.seen(value.primal, name))
        if kind is BatchDuplicated:
            raise TypeError(
                f"argument {name!r}: kernels take one derivative at a time: use Duplicated"
            )
        if kind in keys.PLAIN or not is_device(value):
            return value
        self.on_device.append(name)
        found = device_arrays.taken(value, name, self.driver)
        self.taken[id(found.array)] = found
        self.first = value if self.first is None else self.first
        return found.array

    @staticmethod
    def require_placed(given: Duplicated, name: str) -> None:
        """TypeError where the host would have to rearrange a shadow."""
        primal, shadow = given.primal, given.shadow
        if not isinstance(primal, np.ndarray) or not isinstance(shadow, np.ndarray):  # pyright: ignore
            return
        order = memory.order_of(primal)
        compact = shadow.flags.f_contiguous if order == "F" else shadow.flags.c_contiguous
        if not compact and shadow.strides != primal.strides:
            raise TypeError(f"the shadow of {name!r} is not contiguous: pass one that is")

    def require_one_place(self) -> None:
        """TypeError where some arrays are on the device and others are not."""
        if self.on_host:
            raise TypeError(
                f"{listed(self.on_device)} on the device, {listed(self.on_host)} on the host: pass "
                f"mutad.device_array({self.on_host[0]}), or {self.on_device[0]}.copy_to_host()"
            )

    @property
    def streams(self) -> set[int]:
        return {t.stream for t in self.taken.values() if t.stream is not None}

    def begin(self) -> None:
        for stream in self.streams:
            self.driver.wait_for(stream)

    def end(self) -> None:
        """Whoever has the arguments finds them as the call leaves them."""
        for stream in self.streams:
            self.driver.let_wait(stream)
        if any(t.stream is None for t in self.taken.values()):
            self.driver.synchronize()

    def shown(self, value: Any) -> Any:
        """A result as the caller gets it."""
        if type(value) in (tuple, list):
            return type(value)(self.shown(v) for v in value)
        if not isinstance(value, np.ndarray):
            return value
        if (known := self.taken.get(id(value))) is not None:
            return known.own
        return device_arrays.like(self.first, DeviceArray(value, self.driver))


def listed(names: Sequence[str]) -> str:
    shown = " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)
    return f"{shown} {'is' if len(names) == 1 else 'are'}"


def call(dispatcher: Dispatcher, kind: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A call of which some argument is an array of a device."""
    name = dispatcher.function.__qualname__
    if kind not in CALLS:
        raise TypeError(f"{kind} of {name}: on a device there are {', '.join(CALLS[1:])}")
    if kwargs.get("batch") is not None:
        raise TypeError(
            f"{kind} of {name}: kernels take one derivative at a time: leave out batch="
        )
    driver = cuda.driver()
    made = Call(driver)
    named = dict(zip(range(len(args)), dispatcher.parameters, strict=False))
    seen = [made.seen(value, named.get(k, str(k))) for k, value in enumerate(args)]
    others = {k: made.seen(v, k) if k != "wrt" else v for k, v in kwargs.items()}
    refuse_captured(dispatcher)
    made.require_one_place()
    twin = twin_of(dispatcher, driver)
    return run(made, lambda: method(twin, kind)(*seen, **others), name)


def method(twin: Any, kind: str) -> Callable[..., Any]:
    return twin if kind == "primal" else getattr(twin, kind)


def run(made: Call, work: Callable[[], Any], name: str) -> Any:
    """Do what launches, and show what it returns."""
    driver = made.driver
    with driver.lock, driver.current():
        made.begin()
        try:
            with result_pool.placed_by(driver.handler):
                result = work()
        finally:
            made.end()
    from .vjp import Back

    if type(result) is tuple and len(result) == 2 and isinstance(result[1], Back):
        return made.shown(result[0]), DeviceBack(result[1], made, name)
    return made.shown(result)


@dataclass(frozen=True, eq=False)
class DeviceBack:
    """`Back` of a call on a device: it takes cotangents on the device, and returns gradients there."""

    back: Back
    made: Call
    name: str

    def __call__(self, out_bar: Any = None, /, **final: Any) -> Any:
        made = Call(self.made.driver, first=self.made.first)
        self.require_simple(final)
        bar = made.seen(out_bar, "the cotangent")
        made.require_one_place()
        self.require_alike(bar, self.back.results)
        return run(made, lambda: self.back(bar), self.name)

    def require_simple(self, final: dict[str, Any]) -> None:
        if final:
            raise TypeError(
                f"back of {self.name}: cotangents of final values are added on the host: use pullback, whose "
                "shadows hold them"
            )

    def require_alike(self, bar: Any, spec: dict[str, Any]) -> None:
        """TypeError where the host would have to convert, add or make a cotangent."""
        if spec["kind"] == "tuple":
            parts = bar if type(bar) is tuple else [None] * len(spec["items"])
            for part, item in zip(parts, spec["items"], strict=False):
                self.require_alike(part, item)
            return
        if spec["kind"] == "argument" and bar is not None:
            raise TypeError(f"back of {self.name}: it returns an argument: use pullback")
        if spec["kind"] == "array" and spec["dtype"] in keys.FLOATS:
            wanted = np.dtype(keys.NUMPY_SCALARS[spec["dtype"]])
            if not isinstance(bar, np.ndarray) or bar.dtype != wanted:
                raise TypeError(
                    f"back of {self.name}: the cotangent of an array is a {wanted} array of the device"
                )


def refuse_captured(dispatcher: Dispatcher) -> None:
    """TypeError where the function reads arrays of the host from outside."""
    captured = dispatcher.era.captures
    for value, name in zip(captured.values(), captured.names, strict=True):
        if isinstance(value, np.ndarray):
            raise TypeError(
                f"{name} is an array of the host, which {dispatcher.function.__qualname__} reads from "
                "outside: pass it as an argument, on the device"
            )


def twin_of(dispatcher: Dispatcher, driver: Driver) -> Any:
    """The function compiled for the device."""
    from .function import compiled

    found = dispatcher.twins.get(driver.name)
    if found is None:
        options = dispatcher.options
        chosen = {
            **options, "target": cuda.target_of(driver, options["target"]), "driver": driver.name,
            "parallel": False, "memory": None, "spill": "",
        }  # fmt: skip
        found = compiled(
            dispatcher.function, chosen, dispatcher.compiler, dispatcher.checks_gradient
        )
        dispatcher.twins[driver.name] = found
    return found

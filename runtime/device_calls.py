"""Calls on arrays of a device: the same function, compiled for the device, over the same runtime.

A compiled function that is called on arrays of a device has a *twin*, compiled for the device's kind with the
same options. Its calls see arrays of the device as arrays of NumPy with other addresses (`device_arrays`),
so kinds of arguments, sharing of memory, views and what is compiled for them are those of the host. The
device's stream waits for the streams that the arguments are computed on, and these for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import cuda, device_arrays, keys, structures
from .device import Driver
from .device_arrays import DeviceArray, Taken, is_device
from .gradients import Active, BatchDuplicated, Const, Duplicated
from .keys import Array
from .resident import Resident, Stores

if TYPE_CHECKING:
    from .device import Driver
    from .dispatch import Dispatcher


LIBRARIES = {"cupy", "torch", "jax", "numba"}
"""Whose arrays may be a device's: where none of them is imported, and no driver begun, there are none."""


def holds_device_arrays(values: Sequence[Any]) -> bool:
    """Whether some of these values are arrays of a device, or hold some."""
    if cuda.chosen is None and LIBRARIES.isdisjoint(sys.modules):
        return any(type(v) not in keys.PLAIN and is_device(v) for v in values)
    found: list[Any] = []

    def look(value: Any, _: str) -> Any:
        if not isinstance(value, np.ndarray) and is_device(value):
            found.append(value)
        return value

    met: dict[int, Any] = {}
    for value in values:
        through(value, look, met)
    return bool(found)


Change = Callable[[Any, str], Any]
"""What an array, or what is none, becomes, by the name that it has in the program."""


def through(value: Any, change: Change, met: dict[int, Any], name: str = "") -> Any:
    """A value with its arrays changed: tuples are made anew, objects, lists and dicts hold others then.

    `met` has those that were gone through.
    """
    kind = type(value)
    if kind in keys.PLAIN or isinstance(value, np.ndarray) or is_device(value):
        return change(value, name)
    if kind is tuple or hasattr(kind, "_fields"):
        shown = getattr(kind, "_fields", None)
        names = (
            [f"{name}.{f}" for f in shown] if shown else [f"{name}[{i}]" for i in range(len(value))]
        )
        items = [through(v, change, met, n) for v, n in zip(value, names, strict=True)]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return tuple(items) if kind is tuple else kind(*items)
    layout = None if kind in (list, dict) else structures.layout_of(kind)
    if id(value) in met or (kind not in (list, dict) and layout is None):
        return value
    met[id(value)] = value
    fields: list[tuple[Any, str, Any]] = []
    if kind is list:
        fields = [(i, f"{name}[{i}]", v) for i, v in enumerate(value)]
    elif kind is dict:
        fields = [(k, f"{name}[{k!r}]", v) for k, v in value.items()]
    elif layout is not None:
        own = zip(layout.names(value), layout.read(value), strict=True)
        fields = [(n, f"{name}.{n}", v) for n, v in own]
    for key, shown, old in fields:
        new = through(old, change, met, shown)
        if new is not old:
            structures.set_field(value, key, new)
    return value


@dataclass
class Call:
    """The arrays of one call."""

    driver: Driver
    """The device of the first array; before there is one, that in use."""
    taken: dict[int, Taken] = field(default_factory=dict[int, Taken])
    """By the identity of the array as compiled code sees it."""
    first: Any = None
    """The first array of a device among the arguments: what is returned is of its library."""
    on_device: list[str] = field(default_factory=list[str])
    on_host: list[str] = field(default_factory=list[str])
    settled: str = ""
    """What has settled on which device the call is, where no argument has."""
    objects: dict[int, Any] = field(default_factory=dict[int, Any])
    """The arguments' objects, whose arrays are those that compiled code sees, until the call ends."""

    def seen(self, value: Any, name: str) -> Any:
        """An argument as compiled code sees it."""
        kind = type(value)
        if kind is Duplicated:
            return Duplicated(
                self.seen(value.primal, name), self.seen(value.shadow, f"the shadow of {name}")
            )
        if kind in (Const, Active):
            return kind(self.seen(value.primal, name))
        if kind is BatchDuplicated:
            raise TypeError(
                f"argument {name!r}: kernels take one derivative at a time: use Duplicated"
            )
        return through(value, self.leaf, self.objects, name)

    def leaf(self, value: Any, name: str) -> Any:
        """An array of an argument, or what is none, as compiled code sees it."""
        if isinstance(value, Resident):
            return value
        if isinstance(value, np.ndarray):
            self.on_host.append(name)
            return value
        if type(value) in keys.PLAIN:
            return value
        number = device_arrays.number_of(value, name, self.driver)
        if number != self.driver.number:
            if there := listed(self.on_device) if self.on_device else self.settled:
                raise TypeError(
                    f"{there} on device {self.driver.number}, {name} is on device {number}: copy what is "
                    "on one of them to the other"
                )
            self.driver = driver_of(number, name)
        self.on_device.append(name)
        found = device_arrays.taken(value, name, self.driver)
        self.taken[id(found.array)] = found
        self.first = value if self.first is None else self.first
        return found.array

    def require_one_place(self) -> None:
        """TypeError where some arrays are on the device and others are not."""
        if self.on_host and not self.on_device:
            raise TypeError(f"{listed(self.on_host)} on the host: pass mutad.device_array(...)")
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

    def restore(self) -> None:
        """The arguments' objects hold the caller's arrays again, and what the call has bound in them."""
        met: dict[int, Any] = {}
        for value in self.objects.values():
            through(value, self.own, met)

    def shown(self, value: Any) -> Any:
        """A result as the caller gets it; what was put together on the host is copied to the device."""

        def change(leaf: Any, name: str) -> Any:
            is_plain = isinstance(leaf, np.ndarray) and not isinstance(leaf, Resident)
            return self.own(self.driver.upload(leaf) if is_plain else leaf, name)

        return through(value, change, {})

    def own(self, value: Any, _: str) -> Any:
        """An array as the caller has it."""
        if not isinstance(value, Resident):
            return value
        if (known := self.taken.get(id(value))) is not None:
            return known.own
        return device_arrays.like(self.first, DeviceArray(value, self.driver))


INVALID_DEVICE = 101


def driver_of(number: int, name: str) -> Driver:
    """The driver of an array's device; TypeError where there is no such device."""
    try:
        return cuda.driver(number)
    except cuda.CudaError as error:
        if error.code != INVALID_DEVICE:
            raise
        raise TypeError(
            f"{name} says that it is on device {number}: there is no such device"
        ) from None


def listed(names: Sequence[str]) -> str:
    shown = " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)
    return f"{shown} {'is' if len(names) == 1 else 'are'}"


def call(dispatcher: Dispatcher, kind: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A call of which some argument is an array of a device."""
    name = dispatcher.function.__qualname__
    if kwargs.get("batch") is not None:
        raise TypeError(
            f"{kind} of {name}: kernels take one derivative at a time: leave out batch="
        )
    if dispatcher.options["memory"] is not None:
        raise TypeError(
            f"{name}: memory= is for the CPU, and these arrays are on a device: compile it without a budget"
        )
    made = Call(cuda.driver())
    named = dict(zip(range(len(args)), dispatcher.parameters, strict=False))
    try:
        seen = [made.seen(value, named.get(k, str(k))) for k, value in enumerate(args)]
        others = {k: v if k in UNTOUCHED else made.seen(v, k) for k, v in kwargs.items()}
        refuse_captured(dispatcher)
        made.require_one_place()
        twin = twin_of(dispatcher, made.driver)
        result = run(made, lambda: method(twin, kind)(*seen, **others))
        if kind in REPORTS or kwargs.get("sparsity") is not None:
            return result
        if kind == "vjp":
            return made.shown(result[0]), DeviceBack(result[1], made, name)
        return made.shown(result)
    finally:
        made.restore()


UNTOUCHED = ("wrt", "mode", "plan", "sparsity")
"""Keywords that hold no arrays of the program."""
REPORTS = ("explain", "inspect", "_shown", "jacobian_sparsity", "linear_operator")
"""Calls whose results are the host's: texts, patterns, operators on NumPy's vectors."""


def method(twin: Any, kind: str) -> Callable[..., Any]:
    return twin if kind == "primal" else getattr(twin, kind)


def run(made: Call, work: Callable[[], Any]) -> Any:
    """Do what launches."""
    driver = made.driver
    with driver.lock, driver.current():
        made.begin()
        try:
            with driver.placing():
                return work()
        finally:
            made.end()


@dataclass(frozen=True, eq=False)
class DeviceBack:
    """`Back` of a call on a device: it takes cotangents on the device, and returns gradients there."""

    back: Callable[..., Any]
    made: Call
    name: str

    def __call__(self, out_bar: Any = None, /, **final: Any) -> Any:
        made = Call(self.made.driver, first=self.made.first, settled="the arguments are")
        try:
            bar = made.seen(out_bar, "the cotangent")
            bars = {k: made.seen(v, f"the cotangent of {k}") for k, v in final.items()}
            made.require_one_place()
            return made.shown(run(made, lambda: self.back(bar, **bars)))
        finally:
            made.restore()


def refuse_captured(dispatcher: Dispatcher) -> None:
    """TypeError where the function reads arrays from outside."""
    captured, name = dispatcher.era.captures, dispatcher.function.__qualname__
    for place, value in zip(captured.constants, captured.expected, strict=True):
        if type(value) not in keys.PLAIN and is_device(value):
            raise TypeError(
                f"{place.name} is an array of a device, which {name} reads from outside: pass it as an "
                "argument"
            )
    for value, own in zip(captured.values(), captured.names, strict=True):
        if isinstance(value, np.ndarray):
            raise TypeError(
                f"{own} is an array of the host, which {name} reads from outside: pass it as an argument, "
                "on the device"
            )


def assigned(target: Any, source: Any) -> None:
    target[...] = source


def stores_of(of: Dispatcher, options: dict[str, Any]) -> Stores:
    """What stores to arrays of a device, whatever their layout: a compiled function, for kernels keep the
    order of the stream, and leave alone what lies between the elements."""
    dispatcher = of.make(assigned, options, of.compiler, False).dispatcher

    def store(target: Array, source: Any) -> None:
        dispatcher.specialize((target, source)).direct["primal"](target, source)

    return store


def twin_of(dispatcher: Dispatcher, driver: Driver) -> Any:
    """The function compiled for the device."""
    found = dispatcher.twins.get(driver.name)
    if found is None:
        options = dispatcher.options
        chosen = {
            **options, "target": cuda.target_of(driver, options["target"]), "driver": driver.name,
            "parallel": False,
        }  # fmt: skip
        found = dispatcher.make(
            dispatcher.function, chosen, dispatcher.compiler, dispatcher.checks_gradient
        )
        dispatcher.twins[driver.name] = found
        if driver.compiled_stores is None:
            driver.compiled_stores = stores_of(dispatcher, chosen)
    return found

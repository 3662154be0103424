"""Drivers of devices: where their functions are, what was loaded into them, and how compiled code calls them.

A `Driver` is given addresses of the functions of NVIDIA's driver API, or of the emulated one's, and nothing
else here knows which. Compiled host code calls them through a table (`device_text`); Python code, which loads
modules, copies arrays and orders streams, by `Driver.call`.

Arrays of a device look to the runtime like NumPy's, with the device's addresses: kinds, sharing of memory and
views are known from these, and the host touches no element. What a call makes is allocated by a
handler of ours (`Driver.handler`), which NumPy's arrays free their memory with.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import re
import threading
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import device_products, memory, native_code, resident, result_pool
from .cuda_error import CudaError
from .device_text import (
    ALL,
    CONDITIONAL,
    CONTEXT,
    DRIVER,
    ENDED,
    ERROR,
    EVENT,
    GEMMS,
    KERNEL,
    LAUNCHES,
    LEAST,
    NO_MEMORY,
    PLACE,
    REPLAYS,
    SET_CONDITION,
    SETTER,
    STREAM,
    TABLE,
    TEXT,
    UNIT,
    WORDS,
)
from .driver_functions import (
    ERROR_LOG,
    ERROR_LOG_BYTES,
    FUNCTIONS,
    HANDLE,
    LOG,
    LOST,
    MAJOR,
    MEMORY_TYPE,
    MINOR,
    NO_TIMING,
    NON_BLOCKING,
    OF_DEVICE,
    ORDINAL,
    POINTER,
    RELEASE_THRESHOLD,
    STICKY,
)
from .handed_arrays import Handed, is_dense, lie_alike, lowest
from .keys import Array, address_of
from .resident import Resident, Stores

FindProducts = Callable[[], tuple[Mapping[str, int], str]]
"""Where the functions of cuBLAS are, or why there are none."""


def no_library() -> tuple[dict[str, int], str]:
    return {}, "the driver is emulated"


GRAPH_UNIT, GRAPH_LEAST = 32, 4
"""Periods of a loop in one graph, and from how many graphs on a loop is replayed."""


class Driver:
    """A device, through its driver."""

    def __init__(
        self,
        name: str,
        addresses: Mapping[str, int],
        find_products: FindProducts | None = None,
        number: int = 0,
    ) -> None:
        self.name, self.number = name, number
        """What tells it from others: "cuda", "emulated", of further devices "cuda:1"; the driver's number."""
        self.addresses = addresses
        self.find_products = find_products or no_library
        """Where cuBLAS is, or why not."""
        self.products: device_products.Products | None = None
        self.no_products = ""
        """Why products of matrices do not go to cuBLAS, once that is known."""
        self.lock = threading.RLock()
        """Held while compiled code runs: the table says what went wrong, and is shared."""
        self.call: dict[str, Callable[..., int]] = {
            name: ctypes.CFUNCTYPE(ctypes.c_int, *types)(addresses[name])
            for name, types in FUNCTIONS.items()
        }
        self.state = (ctypes.c_int64 * WORDS)()
        self.process = os.getpid()
        self.kernels: dict[int, str] = {}
        """The names of loaded kernels, by the driver's handles."""
        self.kind = resident.kind_of(self)
        """The class of its arrays."""
        self.downloads = 0
        """How often elements were copied to the host."""
        self.compiled_stores: Stores | None = None
        """What stores to arrays of any layout, once something is compiled for the device."""
        self.begin_device()
        self.link()

    # The device.

    def begin_device(self) -> None:
        """Its context, pool and stream; CudaError where that cannot be."""
        self.check("cuInit", 0)
        device = ctypes.c_int()
        self.check("cuDeviceGet", ctypes.addressof(device), self.number)
        self.device = device.value
        self.context = self.made("cuDevicePrimaryCtxRetain", self.device)
        with self.current():
            self.pool, most = self.made("cuDeviceGetDefaultMemPool", self.device), HANDLE(2**64 - 1)
            at = ctypes.addressof(most)
            self.check("cuMemPoolSetAttribute", self.pool, RELEASE_THRESHOLD, at)
            self.stream = self.made("cuStreamCreate", NON_BLOCKING)
            self.event, self.state[EVENT] = (
                self.made("cuEventCreate", NO_TIMING),
                self.made("cuEventCreate", NO_TIMING),
            )
        for place, function in enumerate(DRIVER, TABLE):
            self.state[place] = self.addresses[function]
        self.state[CONTEXT] = self.context
        self.state[STREAM], self.state[UNIT], self.state[LEAST] = (
            self.stream,
            GRAPH_UNIT,
            GRAPH_LEAST,
        )

    def made(self, function: str, *arguments: Any) -> int:
        """What a function makes, whose first argument says where to leave it."""
        found = ctypes.c_void_p()
        self.check(function, ctypes.addressof(found), *arguments)
        return found.value or 0

    def attribute(self, number: int) -> int:
        found = ctypes.c_int()
        self.check("cuDeviceGetAttribute", ctypes.addressof(found), number, self.device)
        return found.value

    @property
    def kind_of_driver(self) -> str:
        """Whose functions it is called by: "cuda", "emulated"."""
        return self.name.partition(":")[0]

    def holder_of(self, address: int) -> int | None:
        """The number of the device whose memory is at an address; None where it is no device's."""
        found: list[int] = []
        with self.current():
            for attribute in (MEMORY_TYPE, ORDINAL):
                value = ctypes.c_int()
                at = ctypes.addressof(value)
                if self.call["cuPointerGetAttribute"](at, attribute, address):
                    return None
                found.append(value.value)
        return found[1] if found[0] == OF_DEVICE else None

    @property
    def capability(self) -> tuple[int, int]:
        """The two numbers of the device's kind."""
        return self.attribute(MAJOR), self.attribute(MINOR)

    def check(self, function: str, *arguments: Any) -> None:
        """Call the driver; CudaError where it refuses."""
        code = self.call[function](*arguments)
        if code:
            raise self.refusal(code, function)

    def refusal(self, code: int, function: str) -> Exception:
        """The exception for an error of the driver: it names the kernel that was launched last."""
        if code == NO_MEMORY:
            return MemoryError(f"the device has no memory left ({function})")
        if function in (*GEMMS, *device_products.FUNCTIONS):
            return CudaError(code, f"{function}: status {code} of cuBLAS")
        text = ctypes.c_char_p()
        unknown = self.call["cuGetErrorName"](code, ctypes.addressof(text)) or text.value is None
        name = "an unknown error" if unknown else (text.value or b"").decode()
        kernel = self.kernels.get(self.state[KERNEL])
        at = (
            ""
            if kernel is None
            else f", kernel {kernel}"
            if function == "cuLaunchKernel"
            else (f"; the last kernel was {kernel}")
        )
        lost = LOST if code in STICKY else ""
        return CudaError(code, f"{function}: {name} ({code}){at}{lost}")

    @contextmanager
    def current(self) -> Generator[None]:
        """The driver's context is the thread's meanwhile. RuntimeError in a process that was forked."""
        if os.getpid() != self.process:
            raise RuntimeError(
                "this process was forked from one that uses a device, and cannot use it: start it "
                "by multiprocessing's 'spawn', or fork before the first call on a device"
            )
        before = self.made("cuCtxGetCurrent")
        if before == self.context:
            yield
            return
        self.check("cuCtxSetCurrent", self.context)
        try:
            yield
        finally:
            self.check("cuCtxSetCurrent", before)

    @contextmanager
    def placing(self) -> Generator[None]:
        """What the runtime makes for results is on the device meanwhile; nobody else calls it."""
        with self.lock, self.current(), result_pool.placed_by(self.handler, self.kind):
            yield

    # What compiled code calls.

    def link(self) -> None:
        """The library of `device_text` for this driver; arrays free their memory with it, so it stays."""
        symbols = {"mutad_device_state": ctypes.addressof(self.state)}
        for name in ("mutad_libc_malloc", "mutad_libc_free"):
            symbols[name] = native_code.libc_address(name)
        self.functions: dict[str, int] = native_code.addresses_in(
            WHOLE_TEXT, symbols, f"mutad.device.{self.name}", EXPORTED
        )
        self.collect: Any = ctypes.CFUNCTYPE(None)(self.functions["mutad_device_collect"])
        self.follow: Any = ctypes.CFUNCTYPE(None, POINTER)(self.functions["mutad_device_follow"])
        """Have memory that goes from now on wait for a stream: without the lock, in any thread."""
        self.handler = result_pool.new_handler(
            f"mutad-{self.name}", *(self.functions[f"mutad_device_{n}"] for n in ALLOCATOR)
        )
        self.nothing = self.empty((1,), np.float64)
        """A zero, for cotangents that are none."""
        self.nothing[...] = 0.0
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        atexit.register(self.end)

    def end(self) -> None:
        """The interpreter ends, or this is a forked process: arrays that go leave the driver alone."""
        self.state[ENDED] = 1

    def forked(self) -> None:
        """Nobody else is in this process, which has no device."""
        self.lock = threading.RLock()
        self.end()

    def release(self) -> None:
        """Give back the memory that the driver keeps for the next arrays; none in a forked process."""
        if os.getpid() == self.process:
            with self.lock, self.current():
                self.check("cuStreamSynchronize", self.stream)
                self.collect()
                self.check("cuMemPoolTrimTo", self.pool, 0)

    def address(self, symbol: str) -> int:
        """Where a symbol of compiled code is."""
        if symbol == "mutad_device_nothing":
            return address_of(self.nothing)
        return id(self.handler) if symbol == "mutad_device_handler" else self.functions[symbol]

    def calling(self, entry: Callable[..., Any]) -> Callable[..., Any]:
        """An entry of compiled code that launches: what goes wrong on the device is an exception."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.lock, self.current():
                handed = Handed(self)
                given = [handed.over(value) for value in args]
                others = {name: handed.over(value) for name, value in kwargs.items()}
                self.state[ERROR] = 0
                try:
                    with result_pool.results_by(self.handler):
                        result = entry(*given, **others)
                except MemoryError:
                    code = self.state[ERROR]
                    if not code:
                        raise
                    raise self.refusal(code, ALL[self.state[PLACE]]) from None
                finally:
                    handed.take_back()
                return handed.shown(result)

        return call

    # Modules.

    def load(self, image: dict[str, Any]) -> Kernels:
        """The kernels of a module."""
        source = image["ptx"] or json.dumps(image)
        if image["products"]:
            self.begin_products()
        if image["conditions"]:
            self.begin_conditions()
        with self.lock, self.current():
            module = self.loaded(ctypes.create_string_buffer(source.encode()))
            return Kernels(self, module, image["kernels"])

    def begin_conditions(self) -> None:
        """Graphs decide how often they repeat from now on, if the driver has such graphs."""
        if self.state[SETTER] or not all(name in self.addresses for name in CONDITIONAL):
            return
        with self.lock, self.current():
            try:
                module = self.loaded(ctypes.create_string_buffer(SET_CONDITION.encode()))
            except CudaError:  # a driver that is too old to have what the kernel calls
                return
            for name in CONDITIONAL:
                self.state[TABLE + ALL.index(name)] = self.addresses[name]
            self.state[SETTER] = self.made("cuModuleGetFunction", module, b"mutad_set_condition")

    def loaded(self, data: Any) -> int:
        """A module; CudaError with what the driver's compiler says of it."""
        said = ctypes.create_string_buffer(LOG)
        asked = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        given = (ctypes.c_void_p * 2)(ctypes.addressof(said), LOG)
        try:
            return self.made("cuModuleLoadDataEx", data, len(asked), asked, given)
        except CudaError as error:
            why = said.value.decode(errors="replace").strip()
            raise CudaError(error.code, f"{error}: {why}" if why else str(error)) from None

    # Products of matrices.

    def begin_products(self) -> None:
        """They go to cuBLAS from now on, if it is there and works."""
        if self.products is not None or self.no_products:
            return
        addresses, self.no_products = self.find_products()
        if not addresses:
            return
        with self.lock, self.current():
            try:
                self.products = device_products.Products(self, addresses)
            except (CudaError, MemoryError) as error:
                self.no_products = str(error)

    def end_products(self) -> None:
        """They are kernels' again, until they begin anew."""
        if self.products is not None:
            with self.lock, self.current():
                self.products.end()
        self.products, self.no_products = None, ""

    # Arrays.

    def empty(self, shape: Sequence[int], dtype: Any, order: Any = "C") -> Resident:
        """A new array of the device."""
        with self.lock, self.current(), result_pool.handled_by(self.handler):
            self.state[ERROR] = 0
            try:
                return np.empty(shape, dtype, order).view(self.kind)
            except MemoryError:
                raise MemoryError(
                    f"the device has no memory for an array of shape {shape}"
                ) from None

    def empty_like(self, array: Array, dtype: Any, order: Any) -> Resident:
        """A new array of the same shape, in this order; "K": as the other lies, without gaps."""
        if order != "K":
            return self.empty(array.shape, dtype, order)
        axes = sorted(range(array.ndim), key=lambda k: -abs(array.strides[k]))
        made = self.empty([array.shape[k] for k in axes], dtype)
        return made.transpose([axes.index(k) for k in range(array.ndim)])

    def uploaded(self, value: Any, dtype: Any) -> Any:
        """What is stored to an array, on the device; a number as it is."""
        given = np.asarray(value, dtype)
        return given[()] if given.ndim == 0 else self.upload(given)

    def stores(self, target: Resident, source: Any) -> None:
        """`target[...] = source`, where that has the elements of an array of the device, or one number."""
        if not isinstance(source, Resident):
            if is_dense(target) and not source.tobytes().strip(b"\0"):
                with self.lock, self.current():
                    low, size = lowest(target), target.nbytes
                    self.check("cuMemsetD8Async", low, 0, size, self.stream)
                return
        elif lie_alike(target, source):
            with self.lock, self.current():
                low, first = lowest(target), lowest(source)
                self.check("cuMemcpyDtoDAsync", low, first, target.nbytes, self.stream)
            return
        assert self.compiled_stores is not None
        self.compiled_stores(target, source)

    def upload(self, array: Array) -> Resident:
        """A copy of an array of the host, in its order."""
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        given = np.asarray(array, order=order)
        made = self.empty(given.shape, given.dtype, order)
        with self.lock, self.current():
            if given.nbytes:
                target, source = address_of(made), address_of(given)
                self.check("cuMemcpyHtoDAsync", target, source, given.nbytes, self.stream)
            self.check("cuStreamSynchronize", self.stream)
        return made

    def download(self, array: Array) -> Array:
        """A copy of an array of the device, for the host."""
        if not array.size:
            return np.empty(array.shape, array.dtype)
        low, high = memory.bounds(memory.placed(array))
        buffer = np.empty(high - low, np.uint8)
        with self.lock, self.current():
            self.check("cuMemcpyDtoHAsync", address_of(buffer), low, high - low, self.stream)
            self.check("cuStreamSynchronize", self.stream)
            self.collect()
        self.downloads += 1
        offset = address_of(array) - low
        seen: Array = np.ndarray(array.shape, array.dtype, buffer, offset, array.strides)
        return seen.copy(order="K")

    # Streams.

    def wait_for(self, stream: int) -> None:
        """What comes waits for what another stream has to do."""
        self.order(stream, self.stream)

    def let_wait(self, stream: int) -> None:
        """Another stream waits for what was launched."""
        self.order(self.stream, stream)

    def order(self, first: int, second: int) -> None:
        if first != second:
            with self.lock, self.current():
                self.check("cuEventRecord", self.event, first)
                self.check("cuStreamWaitEvent", second, self.event, 0)

    def synchronize(self) -> None:
        with self.lock, self.current():
            self.check("cuStreamSynchronize", self.stream)
            self.collect()

    @property
    def launches(self) -> int:
        """Kernels that were launched one by one, or captured."""
        return self.state[LAUNCHES]

    @property
    def replays(self) -> int:
        """Graphs that were launched."""
        return self.state[REPLAYS]


ALLOCATOR = ("malloc", "calloc", "realloc", "free")
WHOLE_TEXT = TEXT + device_products.TEXT
EXPORTED = tuple(re.findall(r"define \w+ @(mutad_device_\w+)", WHOLE_TEXT))


class Kernels:
    """The kernels of a loaded module, which is unloaded with this."""

    def __init__(self, driver: Driver, module: int, names: list[str]) -> None:
        self.driver = driver
        functions = [driver.made("cuModuleGetFunction", module, n.encode()) for n in names]
        driver.kernels.update(zip(functions, names, strict=True))
        self.table = (ctypes.c_void_p * max(len(functions), 1))(*functions)
        weakref.finalize(self, unload, driver, module, functions).atexit = False

    @property
    def address(self) -> int:
        return ctypes.addressof(self.table)


def unload(driver: Driver, module: int, functions: Sequence[int]) -> None:
    if os.getpid() != driver.process:
        return
    for function in functions:
        driver.kernels.pop(function, None)
    with driver.lock, driver.current():
        driver.call["cuStreamSynchronize"](driver.stream)
        driver.call["cuModuleUnload"](module)


KERNELS = "mutad_device_kernels"
"""What compiled code calls the table of its kernels."""

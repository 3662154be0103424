"""A driver without a device: the functions that compiled code calls, over memory of the host.

`EmulatedDriver` has the entry points of NVIDIA's driver API that mutad uses, by the same addresses in the
same table; so everything that leads to a launch runs as it does with a device: modules, packed arguments,
grids, copies, the pool, graphs, errors. Kernels are those of `target="cuda:host"`, compiled for the host,
a function for each, which goes through blocks and threads in an order that no program is written for.

It is stricter than a device. Streams run as late as they may (`emulated_streams`). Contexts, handles,
alignment, extents and what may not be captured are looked at; the errors are those of NVIDIA's driver.
Addresses of its memory are reserved and not accessible, so what the host would read or write there ends the
process; the memory itself lies `shift` bytes further on. New memory is full of NaN, freed memory is found in
arguments of launches. A call can be told to fail (`fail`).
"""

from __future__ import annotations

import ctypes
import json
from base64 import b64decode
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import device, device_text, driver_functions, drivers, engine
from .device import Driver
from .driver_functions import NUMBER, POINTER
from .emulated_conditions import ConditionalGraphs
from .emulated_functions import (
    CAPTURE_UNSUPPORTED,
    ERRORS,
    ILLEGAL_ADDRESS,
    INVALID_CONTEXT,
    INVALID_DEVICE,
    INVALID_PTX,
    INVALID_VALUE,
    MISALIGNED,
    NOT_FOUND,
    NOT_INITIALIZED,
    UNKNOWN,
    Function,
    KeptCode,
    Refused,
)
from .emulated_handles import put
from .emulated_memory import EmulatedMemory, put_bytes
from .emulated_streams import Graph, Stream
from .emulated_table import BEFORE, CAPTURED, CUBLAS, FREE, IN_CONTEXT, MORE, OF_MACHINE_CODE
from .native_code import addresses_in, linked
from .result_pool import handled_by, handler_now


class EmulatedDriver(EmulatedMemory):
    """The emulated driver's state, and its functions, by their names."""

    def __init__(self) -> None:
        super().__init__()
        self.captured: Stream | None = None
        """What is captured of."""
        self.begun = False
        """Whether `cuInit` was called."""
        self.failing: dict[str, tuple[int, int]] = {}
        """Calls that are to fail: after how many, and with what."""
        self.counts: dict[str, int] = {}
        """How often each function was called."""
        self.log: Callable[[str, tuple[Any, ...]], None] | None = None
        """Told of each call."""
        self.watch: Callable[[Function, Sequence[int], int], None] | None = None
        """Told of each launch when all before it has run: the kernel, the words that it is given, how many
        blocks. (Of what is captured: when it is.)"""
        self.handler = handler_now()
        """What the host's arrays have their memory from, while a call's are the device's."""
        self.graphs = ConditionalGraphs(self)
        self.functions: dict[str, Any] = {}
        for name, types in {**driver_functions.FUNCTIONS, **MORE, **CUBLAS}.items():
            self.functions[name] = ctypes.CFUNCTYPE(NUMBER, *types)(self.answering(name))
        self.captured_word = ctypes.c_uint64()
        places = {
            "mutad_given": ctypes.addressof(self.given),
            "mutad_given_count": ctypes.addressof(self.given_count),
            "mutad_context": ctypes.addressof(self.context_word),
            "mutad_captured": ctypes.addressof(self.captured_word),
        }
        symbols = list(OF_MACHINE_CODE.values())
        self.machine_code = addresses_in(FREE, places, "mutad.emulated", symbols)

    @property
    def addresses(self) -> dict[str, int]:
        found = {n: ctypes.cast(f, POINTER).value or 0 for n, f in self.functions.items()}
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # who is told them may call any time
        return found | {name: self.machine_code[s] for name, s in OF_MACHINE_CODE.items()}

    def answering(self, name: str) -> Callable[..., int]:
        """A function as C calls it: it answers with an error's number."""
        method: Callable[..., None] = getattr(self, name, self.nothing)

        def call(*arguments: Any) -> int:
            if not self.begun and name not in BEFORE:
                return NOT_INITIALIZED
            if name in IN_CONTEXT and not self.context_word.value:
                return INVALID_CONTEXT
            if self.captured is not None and name not in CAPTURED:
                return CAPTURE_UNSUPPORTED
            self.take_back()
            self.counts[name] = self.counts.get(name, 0) + 1
            if self.log is not None:
                self.log(name, arguments)
            after, code = self.failing.get(name, (-1, 0))
            if after == 0:
                del self.failing[name]
                return code
            if after > 0:
                self.failing[name] = after - 1, code
            try:
                method(*arguments)
            except Refused as error:
                return error.code
            except BaseException as error:  # which cannot leave through C
                self.unexpected.append(error)
                return UNKNOWN
            return 0

        return call

    def fail(self, function: str, code: int, after: int = 0) -> None:
        """Let the call of a function fail that comes after so many others."""
        self.failing[function] = after, code

    def nothing(self, *arguments: Any) -> None:
        """What has no meaning here."""

    # Device and context.

    def cuInit(self, flags: int) -> None:
        self.begun = True

    def cuDeviceGetCount(self, place: int) -> None:
        ctypes.c_int.from_address(place).value = DEVICES

    def cuDeviceGet(self, place: int, number: int) -> None:
        self.require_device(number)
        ctypes.c_int.from_address(place).value = number

    def cuDeviceGetAttribute(self, place: int, attribute: int, number: int) -> None:
        self.require_device(number)
        if attribute not in ATTRIBUTES:
            raise Refused(INVALID_VALUE)
        ctypes.c_int.from_address(place).value = ATTRIBUTES[attribute]

    def cuDevicePrimaryCtxRetain(self, place: int, number: int) -> None:
        self.require_device(number)
        put(place, 1 + number)

    def cuDeviceGetDefaultMemPool(self, place: int, number: int) -> None:
        self.require_device(number)
        put(place, 1 + number)

    def require_device(self, number: int) -> None:
        if not 0 <= number < DEVICES:
            raise Refused(INVALID_DEVICE)

    def cuMemPoolSetAttribute(self, pool: int, attribute: int, place: int) -> None:
        self.require_pool(pool)

    def cuMemPoolTrimTo(self, pool: int, size: int) -> None:
        self.require_pool(pool)

    def require_pool(self, pool: int) -> None:
        if not 1 <= pool <= DEVICES:
            raise Refused(INVALID_VALUE)

    def cuGetErrorName(self, code: int, place: int) -> None:
        if code not in ERRORS:
            raise Refused(INVALID_VALUE)
        ctypes.c_char_p.from_address(place).value = ERRORS[code]

    # Modules.

    def cuModuleLoadDataEx(self, place: int, data: int, count: int, asked: int, given: int) -> None:
        source, found = ctypes.string_at(data), dict[str, Function]()
        if source.decode() == device_text.SET_CONDITION:
            found = {"mutad_set_condition": self.graphs.setter()}
            self.handle(found, place)
            return
        image = json.loads(source)
        if any(8 * len(kinds) > MOST_PARAMETERS for kinds in image.get("parameters", ())):
            self.say("Formal parameter space overflowed", count, asked, given)
            raise Refused(INVALID_PTX)
        if image["kernels"]:
            symbols = image["symbols"]
            metadata = {"symbols": symbols}
            addresses = engine.addresses_of(metadata, {}, None)
            code = linked(b64decode(image["code"]), addresses, "mutad.emulated", image["kernels"])
            told = image["kernels"], image["parameters"], image["ranks"], image["sizes"]
            for name, kinds, ranks, sizes in zip(*told, strict=True):
                run = ctypes.CFUNCTYPE(None, POINTER, ctypes.c_int64, ctypes.c_int64)(code[name])
                found[name] = Function(name, run, kinds, ranks, sizes, image["ir"])
            found["."] = Function("", KeptCode(code), [])
        self.handle(found, place)

    def say(self, text: str, count: int, asked: int, given: int) -> None:
        """Leave what is wrong with a module where the options say."""
        keys = (NUMBER * count).from_address(asked)
        values = dict(zip(keys, (ctypes.c_uint64 * count).from_address(given), strict=True))
        size = ctypes.c_uint(values[driver_functions.ERROR_LOG_BYTES]).value
        put_bytes(values[driver_functions.ERROR_LOG], text.encode()[: size - 1] + b"\0")

    def cuModuleGetFunction(self, place: int, module: int, name: bytes) -> None:
        functions = self.known(module, dict)
        if name.decode() not in functions:
            raise Refused(NOT_FOUND)
        self.handle(functions[name.decode()], place)

    def cuModuleUnload(self, module: int) -> None:
        functions = self.known(module, dict)
        made = [s for s in self.handles.values() if isinstance(s, Stream)]
        if any(s.steps for s in made if s.device == self.current):
            self.unexpected.append(ValueError("a module goes while kernels wait to run"))
        gone = {id(f) for f in functions.values()}
        self.handles = {k: h for k, h in self.handles.items() if k != module and id(h) not in gone}

    # Launches.

    def cuLaunchKernel(self, kernel: int, *rest: Any) -> None:
        gx, gy, gz, bx, by, bz, shared, stream, parameters, extra = rest
        function: Function = self.known(kernel, Function)
        if not 0 < gx < 1 << 31 or (gy, gz, bx, by, bz, shared) != (1, 1, 256, 1, 1, 0) or extra:
            raise Refused(INVALID_VALUE)
        given = self.copied(function, parameters)

        if self.watch is not None and function.ir:
            self.stream(stream).drain()  # what it is given may have gone when its turn comes
            with handled_by(self.handler):
                self.watch(function, given[1], gx)
        self.stream(stream).do(lambda: function.run(given[0], gx, self.shift))

    def copied(self, function: Function, parameters: int) -> tuple[Any, Any]:
        """The arguments as they are now, as the driver copies them: where each is, and their memory."""
        count = len(function.kinds)
        places = (POINTER * max(count, 1)).from_address(parameters)
        words = (ctypes.c_int64 * max(count, 1))()
        own = (POINTER * max(count, 1))()
        for k, kind in enumerate(function.kinds):
            ctypes.memmove(ctypes.addressof(words) + 8 * k, places[k] or 0, BYTES[kind])
            own[k] = ctypes.addressof(words) + 8 * k
        pointers = [k for k, kind in enumerate(function.kinds) if kind == "ptr"]
        for number, k in enumerate(pointers if function.ranks else []):
            rank, size = function.ranks[number], function.sizes[number]
            # A view of nothing may begin anywhere: it is never read.
            if all(words[k + 1 : k + 1 + rank]):
                self.require_elements(
                    words[k],
                    words[k + 1 : k + 1 + rank],
                    words[k + 1 + rank : k + 1 + 2 * rank],
                    size,
                )
        return own, words

    def require_elements(
        self, start: int, extents: Sequence[int], strides: Sequence[int], size: int
    ) -> None:
        """All elements that a kernel is given are in one block, and aligned."""
        if start % size:
            raise Refused(MISALIGNED)
        reach = [size * (n - 1) * s for n, s in zip(extents, strides, strict=True)]
        low = start + sum(r for r in reach if r < 0)
        high = start + sum(r for r in reach if r > 0) + size
        if self.was_freed(start):
            raise Refused(ILLEGAL_ADDRESS)
        self.host(low, high - low)
        if self.owners.get(self.block_of(start) or 0) != self.current:
            raise Refused(ILLEGAL_ADDRESS)

    # cuBLAS.

    def cublasCreate_v2(self, place: int) -> None:
        self.handle("cublas", place)

    def cublasDestroy_v2(self, handle: int) -> None:
        self.known(handle, str)
        del self.handles[handle]

    def cublasSetStream_v2(self, handle: int, stream: int) -> None:
        self.known(handle, str)
        self.products = self.stream(stream)

    def cublasSetWorkspace_v2(self, handle: int, place: int, size: int) -> None:
        self.host(place, size)

    def cublasDgemm_v2(self, *given: Any) -> None:
        self.multiply(np.dtype("f8"), *given)

    def cublasSgemm_v2(self, *given: Any) -> None:
        self.multiply(np.dtype("f4"), *given)

    def multiply(self, dtype: Any, handle: int, *given: Any) -> None:
        """`c = alpha op(a) op(b) + beta c` of matrices by columns; `c` is not read where beta is 0."""
        turn_a, turn_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = given
        self.known(handle, str)
        shapes = [(k, m) if turn_a else (m, k), (n, k) if turn_b else (k, n), (m, n)]
        x, y, z = (
            self.matrix(dtype, *one) for one in zip((a, b, c), shapes, (lda, ldb, ldc), strict=True)
        )
        x, y = (x.T if turn_a else x), (y.T if turn_b else y)
        real = ctypes.c_double if dtype == np.float64 else ctypes.c_float
        times, plus = (real.from_address(p).value for p in (alpha, beta))

        def step() -> None:
            with handled_by(self.handler):
                found = times * (x @ y)
                z[...] = found + plus * z if plus else found

        self.products.do(step)

    def matrix(self, dtype: Any, place: int, shape: tuple[int, int], leading: int) -> Any:
        rows, columns = shape
        if rows < 1 or columns < 1 or leading < rows:
            raise Refused(7)  # CUBLAS_STATUS_INVALID_VALUE
        size = dtype.itemsize * ((columns - 1) * leading + rows)
        memory = (ctypes.c_char * size).from_address(self.host(place, size))
        strides = (dtype.itemsize, dtype.itemsize * leading)
        return np.ndarray(shape, dtype, memory, 0, strides)

    # Graphs.

    def cuStreamBeginCapture(self, stream: int, mode: int) -> None:
        self.captured = self.stream(stream)
        self.captured.capturing = Graph()
        self.captured_word.value = 1

    def cuStreamEndCapture(self, stream: int, place: int) -> None:
        found = self.stream(stream)
        if found.capturing is None:
            raise Refused(INVALID_VALUE)
        graph, found.capturing, self.captured = found.capturing, None, None
        self.captured_word.value = 0
        known = [handle for handle, thing in self.handles.items() if thing is graph]
        if known:
            put(place, known[0])
        else:
            self.handle(graph, place)

    def cuGraphCreate(self, place: int, flags: int) -> None:
        self.handle(Graph(), place)

    def cuStreamBeginCaptureToGraph(self, stream: int, graph: int, *rest: Any) -> None:
        if any(rest[:3]):
            raise Refused(INVALID_VALUE)
        self.captured = self.stream(stream)
        self.captured.capturing = self.known(graph, Graph)
        self.captured_word.value = 1

    def cuStreamGetCaptureInfo(self, stream: int, *places: int) -> None:
        graph = self.stream(stream).capturing
        if graph is None:
            raise Refused(INVALID_VALUE)
        self.graphs.tell(graph, places)

    def cuGraphConditionalHandleCreate(
        self, place: int, graph: int, context: int, default: int, flags: int
    ) -> None:
        self.graphs.new_handle(self.known(graph, Graph), place, default, flags)

    def cuGraphAddNode(self, place: int, graph: int, *rest: Any) -> None:
        self.graphs.add(self.known(graph, Graph), place, *rest)

    def cuGraphInstantiateWithFlags(self, place: int, graph: int, flags: int) -> None:
        self.handle(list(self.known(graph, Graph).steps), place)

    def cuGraphLaunch(self, run: int, stream: int) -> None:
        for step in self.known(run, list):
            self.stream(stream).do(step)

    def cuGraphExecDestroy(self, run: int) -> None:
        self.known(run, list)
        del self.handles[run]

    def cuGraphDestroy(self, graph: int) -> None:
        owned = self.graphs.within(self.known(graph, Graph))
        self.handles = {k: h for k, h in self.handles.items() if not any(h is g for g in owned)}


ATTRIBUTES = {
    driver_functions.MAJOR: 9, driver_functions.MINOR: 0, driver_functions.POOLS: 1,
    driver_functions.MULTIPROCESSORS: 132, driver_functions.CLOCK: 1_980_000,
}  # fmt: skip
"""Of the emulated device."""
DEVICES = 2
"""That it has; one cannot touch the other's memory."""
MOST_PARAMETERS = 4096
"""Bytes that a kernel may be given: the least of all kinds of devices."""
BYTES = {"ptr": 8, "i64": 8, "double": 8, "float": 4, "i32": 4, "i16": 2, "i8": 1, "i1": 1}
"""Bytes of a parameter, by LLVM's type."""


EMULATION: list[EmulatedDriver] = []
"""The one that there is, once it was asked for: code is linked to it."""


@contextmanager
def emulated(*, cublas: bool = False) -> Generator[EmulatedDriver]:
    """Arrays and calls are an emulated device's meanwhile: its state is what tests look at."""
    from . import cuda

    if "emulated" not in drivers.begun:
        made = EmulatedDriver()
        drivers.begun["emulated"] = Driver("emulated", made.addresses)
        EMULATION.append(made)
    driver = drivers.begun["emulated"]
    before, cuda.chosen = cuda.chosen, driver
    if cublas:
        driver.end_products()
        driver.find_products = lambda: (EMULATION[0].addresses, "")
        driver.begin_products()
    try:
        yield EMULATION[0]
    finally:
        cuda.chosen = before
        if cublas:
            driver.end_products()
            driver.find_products = device.no_library

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
import itertools
import json
import mmap
from base64 import b64decode
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import device, device_products, device_text, engine
from .device import HANDLE, NUMBER, POINTER, SIZE, Driver
from .emulated_conditions import ConditionalGraphs
from .emulated_functions import (
    CAPTURE_UNSUPPORTED,
    ERRORS,
    ILLEGAL_ADDRESS,
    INVALID_CONTEXT,
    INVALID_DEVICE,
    INVALID_HANDLE,
    INVALID_PTX,
    INVALID_VALUE,
    MISALIGNED,
    NOT_FOUND,
    NOT_INITIALIZED,
    OUT_OF_MEMORY,
    UNKNOWN,
    Function,
    KeptCode,
    Refused,
)
from .emulated_streams import Event, Graph, Stream
from .native_code import addresses_in, linked
from .result_pool import handled_by, handler_now

ADDRESSES = 1 << 34
"""Bytes of the emulated device's memory; the host's pages are taken where they are touched."""

FAR = 1 << 44
"""Where they are asked for: machine code and its constants must stay near each other (`reserved.py`)."""

_numbers = itertools.count()
"""Of emulated drivers, each of which has addresses of its own."""

GIVEN = 1 << 16
"""So many blocks may be given back between two other calls."""
FREE = f"""
@mutad_given = external global i64
@mutad_given_count = external global i64
@mutad_context = external global i64
@mutad_captured = external global i64
define i32 @mutad_emulated_free(i64 %block, ptr %stream) {{
  %context = load i64, ptr @mutad_context
  %ours = icmp ne i64 %context, 0
  br i1 %ours, label %here, label %nowhere
here:
  %captured = load i64, ptr @mutad_captured
  %own = icmp ne i64 %captured, 0
  br i1 %own, label %unsupported, label %free
unsupported:
  ret i32 {CAPTURE_UNSUPPORTED}
free:
  %k = atomicrmw add ptr @mutad_given_count, i64 1 acq_rel
  %room = icmp ult i64 %k, {GIVEN}
  br i1 %room, label %note, label %lost
note:
  %at = getelementptr {{ i64, ptr }}, ptr @mutad_given, i64 %k
  %stream.at = getelementptr i8, ptr %at, i64 8
  store i64 %block, ptr %at
  store ptr %stream, ptr %stream.at
  ret i32 0
lost:
  ret i32 {INVALID_VALUE}
nowhere:
  ret i32 {INVALID_CONTEXT}
}}
define i32 @mutad_emulated_get(ptr %place) {{
  %now = load i64, ptr @mutad_context
  store i64 %now, ptr %place
  ret i32 0
}}
define i32 @mutad_emulated_set(i64 %context) {{
  store i64 %context, ptr @mutad_context
  ret i32 0
}}
"""
"""What is called where an array goes: `cuMemFreeAsync`, `cuCtxGetCurrent`, `cuCtxSetCurrent`."""
OF_MACHINE_CODE = {
    "cuMemFreeAsync": "mutad_emulated_free",
    "cuCtxGetCurrent": "mutad_emulated_get",
    "cuCtxSetCurrent": "mutad_emulated_set",
}
GARBAGE = 0xFF
"""What new memory is full of: NaN, as numbers."""

MORE = {
    "cuLaunchKernel": (POINTER, *[ctypes.c_uint] * 7, POINTER, POINTER, POINTER),
    "cuMemAllocAsync": (POINTER, SIZE, POINTER),
    "cuMemsetD16Async": (HANDLE, ctypes.c_uint16, SIZE, POINTER),
    "cuMemsetD32Async": (HANDLE, ctypes.c_uint32, SIZE, POINTER),
    "cuStreamBeginCapture": (POINTER, NUMBER),
    "cuStreamEndCapture": (POINTER, POINTER),
    "cuGraphInstantiateWithFlags": (POINTER, POINTER, ctypes.c_uint64),
    "cuGraphLaunch": (POINTER, POINTER),
    "cuGraphExecDestroy": (POINTER,),
    "cuGraphDestroy": (POINTER,),
    "cuGraphCreate": (POINTER, ctypes.c_uint),
    "cuGraphConditionalHandleCreate": (POINTER, POINTER, POINTER, ctypes.c_uint, ctypes.c_uint),
    "cuGraphAddNode": (POINTER, POINTER, POINTER, POINTER, SIZE, POINTER),
    "cuStreamBeginCaptureToGraph": (POINTER, POINTER, POINTER, POINTER, SIZE, NUMBER),
    "cuStreamGetCaptureInfo": (POINTER,) * 6,
}
"""What compiled code alone calls."""

CUBLAS = {
    **device_products.FUNCTIONS,
    **dict.fromkeys(
        device_text.GEMMS,
        (POINTER, *[NUMBER] * 5, POINTER, HANDLE, NUMBER, HANDLE, NUMBER, POINTER, HANDLE, NUMBER),
    ),
}
"""What there is of cuBLAS."""


class EmulatedDriver:
    """The emulated driver's state, and its functions, by their names."""

    def __init__(self) -> None:
        libc: Any = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = POINTER
        libc.mmap.argtypes = (POINTER, SIZE, NUMBER, NUMBER, NUMBER, ctypes.c_long)
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        far = FAR + 2 * ADDRESSES * next(_numbers)
        self.start: int = libc.mmap(far, ADDRESSES, 0, private, -1, 0)
        readable = mmap.PROT_READ | mmap.PROT_WRITE
        there: int = libc.mmap(far + ADDRESSES, ADDRESSES, readable, private, -1, 0)
        self.shift = there - self.start
        self.next = self.start
        self.blocks: dict[int, int] = {}
        """Bytes of each block that is allocated, by its address."""
        self.owners: dict[int, int] = {}
        """The device that each is on."""
        self.free: dict[int, list[int]] = {}
        """By size, blocks that were given back."""
        self.handles: dict[int, Any] = {}
        self.made = 0x1000
        self.captured: Stream | None = None
        """What is captured of."""
        self.streams = {1: Stream(), 2: Stream()}
        """By their handles; those that there are without being made."""
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
        self.context_word = ctypes.c_uint64()
        self.handler = handler_now()
        """What the host's arrays have their memory from, while a call's are the device's."""
        self.graphs = ConditionalGraphs(self)
        self.unexpected: list[BaseException] = []
        """Errors of the emulation itself."""
        self.functions: dict[str, Any] = {}
        for name, types in {**device.FUNCTIONS, **MORE, **CUBLAS}.items():
            self.functions[name] = ctypes.CFUNCTYPE(NUMBER, *types)(self.answering(name))
        self.given = (ctypes.c_uint64 * (2 * GIVEN))()
        self.captured_word = ctypes.c_uint64()
        self.given_count = ctypes.c_uint64()
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

    # Handles.

    def handle(self, thing: Any, place: int) -> None:
        """Leave a new handle at an address."""
        self.made += 16
        self.handles[self.made] = thing
        put(place, self.made)

    def known(self, handle: int, kind: type[Any]) -> Any:
        found = self.handles.get(handle)
        if not isinstance(found, kind):
            raise Refused(INVALID_HANDLE)
        return found

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

    @property
    def current(self) -> int:
        """The device whose context is current."""
        return self.context_word.value - 1

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

    # Streams and events.

    def cuStreamCreate(self, place: int, flags: int) -> None:
        self.handle(Stream(device=self.current), place)

    def cuEventCreate(self, place: int, flags: int) -> None:
        self.handle(Event(), place)

    def stream(self, handle: int | None) -> Stream:
        """A stream by its handle; 0 means one or another, as the program was compiled."""
        found: Stream = self.streams.get(handle or 0) or self.known(handle or 0, Stream)
        if found.device not in (None, self.current):
            raise Refused(INVALID_HANDLE)
        return found

    def cuEventRecord(self, event: int, stream: int) -> None:
        self.known(event, Event).record(self.stream(stream))

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self.known(event, Event).wait(self.stream(stream))

    def cuStreamSynchronize(self, stream: int) -> None:
        self.stream(stream).drain()

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
        size = ctypes.c_uint(values[device.ERROR_LOG_BYTES]).value
        put_bytes(values[device.ERROR_LOG], text.encode()[: size - 1] + b"\0")

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

    # Memory.

    def cuMemAllocAsync(self, place: int, size: int, stream: int) -> None:
        if not size:
            raise Refused(INVALID_VALUE)
        rounded = (size + 511) // 512 * 512
        own = [b for b in self.free.get(rounded, ()) if self.owners[b] == self.current]
        if own:
            block = own[-1]
            self.free[rounded].remove(block)
        else:
            block, self.next = self.next, self.next + rounded + 512  # what is between is nobody's
            if self.next > self.start + ADDRESSES:
                self.next = block
                raise Refused(OUT_OF_MEMORY)
        self.blocks[block] = rounded
        self.owners[block] = self.current
        self.spoil(block, rounded, self.stream(stream))
        put(place, block)

    def spoil(self, block: int, size: int, stream: Stream) -> None:
        """What is in it is undefined."""
        stream.do(lambda: fill_with(block + self.shift, GARBAGE, size))

    def take_back(self) -> None:
        """Blocks were given back by machine code: an array may go while an exception is on its way."""
        count = self.given_count.value
        for block, stream in zip(
            self.given[: 2 * count : 2], self.given[1 : 2 * count : 2], strict=True
        ):
            if block not in self.blocks:
                self.unexpected.append(ValueError(f"freed twice, or never allocated: {block:#x}"))
                continue
            size = self.blocks.pop(block)
            self.spoil(block, size, self.known(stream, Stream))
            self.free.setdefault(size, []).append(block)
        self.given_count.value -= count

    def host(self, address: int, size: int) -> int:
        """Where memory of the device is, all of which is allocated."""
        at = self.block_of(address)
        if at is None or address + size > at + self.blocks[at]:
            raise Refused(ILLEGAL_ADDRESS)
        return address + self.shift

    def block_of(self, address: int) -> int | None:
        at = max((b for b in self.blocks if b <= address), default=None)
        return at if at is not None and address <= at + self.blocks[at] else None

    def was_freed(self, address: int) -> bool:
        """Whether an address is in a block that was given back. (Views of nothing begin before a block.)"""
        return any(
            block <= address < block + size for size, given in self.free.items() for block in given
        )

    def cuPointerGetAttribute(self, place: int, attribute: int, address: int) -> None:
        block = self.block_of(address)
        if block is None or attribute not in (device.MEMORY_TYPE, device.ORDINAL):
            raise Refused(INVALID_VALUE)
        is_type = attribute == device.MEMORY_TYPE
        found = device.OF_DEVICE if is_type else self.owners[block]
        ctypes.c_int.from_address(place).value = found

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        """Memory of the host that may be paged out is copied before this returns."""
        to, value = self.host(target, size), ctypes.string_at(source, size)
        self.stream(stream).do(lambda: put_bytes(to, value))

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> None:
        start = self.host(source, size)
        self.stream(stream).drain()
        ctypes.memmove(target, start, size)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        to, start = self.host(target, size), self.host(source, size)
        self.stream(stream).do(lambda: put_bytes(to, ctypes.string_at(start, size)))

    def cuMemsetD8Async(self, target: int, value: int, count: int, stream: int) -> None:
        self.fill(target, value.to_bytes(1, "little"), count, stream)

    def cuMemsetD16Async(self, target: int, value: int, count: int, stream: int) -> None:
        self.fill(target, value.to_bytes(2, "little"), count, stream)

    def cuMemsetD32Async(self, target: int, value: int, count: int, stream: int) -> None:
        self.fill(target, value.to_bytes(4, "little"), count, stream)

    def fill(self, target: int, value: bytes, count: int, stream: int) -> None:
        if target % len(value):
            raise Refused(INVALID_VALUE)
        at = self.host(target, len(value) * count)
        self.stream(stream).do(lambda: put_bytes(at, value * count))

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
    device.MAJOR: 9, device.MINOR: 0, device.POOLS: 1,
    device.MULTIPROCESSORS: 132, device.CLOCK: 1_980_000,
}  # fmt: skip
"""Of the emulated device."""
DEVICES = 2
"""That it has; one cannot touch the other's memory."""
MOST_PARAMETERS = 4096
"""Bytes that a kernel may be given: the least of all kinds of devices."""
BEFORE = {"cuInit", "cuGetErrorName", "cuDriverGetVersion"}
"""Functions that may be called before the driver has begun."""
WITHOUT = {
    *BEFORE, "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
    "cuDeviceGetDefaultMemPool", "cuCtxSetCurrent", "cuCtxGetCurrent", "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo", "cuPointerGetAttribute",
}  # fmt: skip
"""Functions that need no context."""
IN_CONTEXT = {*device.FUNCTIONS, *MORE, *CUBLAS} - WITHOUT
CAPTURED = {
    *device_text.GEMMS, "cuLaunchKernel", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async",
    "cuMemcpyDtoDAsync", "cuStreamEndCapture", "cuGetErrorName", "cuStreamGetCaptureInfo",
}  # fmt: skip
"""Functions that may be called while a stream is captured (copies of memory that is paged may not)."""
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
BYTES = {"ptr": 8, "i64": 8, "double": 8, "float": 4, "i32": 4, "i16": 2, "i8": 1, "i1": 1}
"""Bytes of a parameter, by LLVM's type."""


def put(place: int, value: int) -> None:
    ctypes.c_uint64.from_address(place).value = value


def fill_with(place: int, value: int, size: int) -> None:
    ctypes.memset(place, value, size)


def put_bytes(place: int, value: bytes) -> None:
    ctypes.memmove(place, value, len(value))


EMULATION: list[EmulatedDriver] = []
"""The one that there is, once it was asked for: code is linked to it."""


@contextmanager
def emulated(*, cublas: bool = False) -> Generator[EmulatedDriver]:
    """Arrays and calls are an emulated device's meanwhile: its state is what tests look at."""
    from . import cuda

    if "emulated" not in device.drivers:
        made = EmulatedDriver()
        device.drivers["emulated"] = Driver("emulated", made.addresses)
        EMULATION.append(made)
    driver = device.drivers["emulated"]
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

"""Calls libraries that launch kernels through ctypes, with a driver that runs them on the host.

The library is what mutadc writes but for its kernels: these are functions of the host (`libcuda_stub.c`). Its
arrays are copied to the stub's memory and back. A work area is as large as `_worksize` says, and what is
beside it must not change.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

from c_client import BEFORE, C, Client, Failed, described
from c_oracle import CCase

from mutad.aot import Runtime
from mutad.compiler.aot import device_support
from mutad.compiler.aot.device_library import DeviceLibrary, compile_device
from mutad.compiler.aot.exports import Export
from mutad.compiler.aot.linking import shared_library
from mutad.compiler.aot.signature import ArrayParameter, OutParameter, ScalarParameter
from mutad.compiler.codegen.llvm_module import optimize_and_emit
from mutad.compiler.codegen.ptx import kernels_of
from mutad.compiler.kernels.host_kernels import host_text, kinds_of_parameters
from mutad.compiler.request import Options

BYTES = {"ptr": 8, "i64": 8, "double": 8, "float": 4, "i32": 4, "i16": 2, "i8": 1, "i1": 1}
STUB = Path(__file__).with_name("libcuda_stub.c")
STUB_NAME = "libcuda_stub.so.1"
SYSTEM = """#include <stdlib.h>
void *mutad_libc_malloc(size_t bytes) { return malloc(bytes); }
void mutad_libc_free(void *block) { free(block); }
"""
MARGIN = 512
STREAM = 5
"""A stream of the caller's: no library looks at what it is."""


def build_stub(folder: Path, name: str = device_support.DRIVER) -> Path:
    """The driver, as a library of this name."""
    made = folder / name
    given = ["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", f'-DSTUB_NAME="{name}"']
    subprocess.run(["cc", *given, f"-Wl,-soname,{name}", "-o", made, STUB, "-ldl"], check=True)
    return made


@cache
def stub() -> ctypes.CDLL:
    """The driver of this process, by another name than NVIDIA's: other tests are to find none."""
    made = ctypes.CDLL(str(build_stub(Path(mkdtemp()), STUB_NAME)), mode=ctypes.RTLD_GLOBAL)
    made.stub_shift.restype = ctypes.c_int64
    return made


def counter(name: str) -> ctypes.c_long:
    """`live` blocks, `launches`, `graphs`; after how many calls one `fails_at`."""
    return ctypes.c_long.in_dll(stub(), f"stub_{name}")


def build_kernels(library: DeviceLibrary, folder: Path) -> Path:
    """The kernels as functions of the host: what the stub loads as a module."""
    made = kernels_of(library.module)
    table = [
        f"const signed char {k.sym_name.data}_bytes[] = {{"
        f"{''.join(f'{BYTES[kind]}, ' for kind in kinds_of_parameters(k))}0}};"
        for k in made
    ]
    (folder / "table.c").write_text("\n".join([SYSTEM, *table]) + "\n")
    objects: list[Path] = []
    if made:
        objects.append(folder / "kernels.o")
        text = host_text([k.clone() for k in made], Options(opt=1)).module()
        objects[0].write_bytes(optimize_and_emit(text, 1))
    found = folder / f"{library.name}_kernels.so"
    command = ["cc", "-shared", "-fPIC", "-o", found, folder / "table.c", *objects, "-lmvec", "-lm"]
    subprocess.run(command, check=True)
    return found


class OnDevice:
    """An array of the host, and its elements on the stub's device."""

    def __init__(self, array: Any) -> None:
        reach = [s * (n - 1) for s, n in zip(array.strides, array.shape, strict=True)]
        self.low = sum(r for r in reach if r < 0) if array.size else 0
        high = sum(r for r in reach if r > 0) + array.itemsize if array.size else 1
        self.bytes = high - self.low
        self.start = array.ctypes.data + self.low
        self.block = allocated(self.bytes)
        self.words = described(array)
        self.words[0] = self.block - self.low
        if array.size:
            ctypes.memmove(self.block + stub().stub_shift(), self.start, self.bytes)
        self.array = array

    def take_back(self) -> None:
        if self.array.size:
            ctypes.memmove(self.start, self.block + stub().stub_shift(), self.bytes)


def allocated(size: int) -> int:
    place = ctypes.c_uint64()
    assert stub().cuMemAlloc(ctypes.byref(place), ctypes.c_size_t(size)) == 0
    return place.value


def free(block: int) -> None:
    stub().cuMemFree(ctypes.c_uint64(block))


class DeviceClient(Client):
    """A library for a device that is built and loaded, and its kernels."""

    def __init__(self, folder: Path, name: str, *exports: Export, **options: Any) -> None:
        self.exports = exports
        stub()
        chosen = Options(device="sm_90", launched=True, guards=True, **options)
        with patch.object(device_support, "DRIVER", STUB_NAME):
            self.whole = compile_device(name, exports, chosen, Runtime().launching())
            self.whole.images = [str(build_kernels(self.whole, folder)).encode()]
            self.library = self.whole.host
            code = self.library.object_code()
        self.path = folder / f"lib{name}.so"
        self.path.write_bytes(shared_library(name, code, self.library.promised, ("m", "dl")))
        self.loaded = ctypes.CDLL(str(self.path))
        self.functions = {f.symbol: f for f in self.library.functions}
        self.device = (ctypes.c_void_p * self.library.device_words)()
        self.stream = ctypes.c_void_p(STREAM)
        self.checked(self.loaded[f"{name}_open"](ctypes.byref(self.device)))

    def checked(self, status: int) -> None:
        if status:
            raise Failed(status, self.strerror(status))

    def call(
        self,
        symbol: str,
        values: Mapping[str, Any],
        *,
        less: int = 0,
        skip: tuple[str, ...] = (),
        fill: int = 0xA5,
    ) -> dict[str, Any]:
        f, given = self.functions[symbol], [ctypes.byref(self.device), self.stream]
        outs: dict[str, tuple[OutParameter, Any]] = {}
        placed: dict[str, OnDevice] = {}
        live = counter("live").value
        for p in f.parameters:
            match p:
                case ScalarParameter():
                    given.append(C[p.type](values[p.name]))
                case ArrayParameter() if values[p.name] is None:
                    given.append(None)
                case ArrayParameter():
                    placed[p.name] = OnDevice(values[p.name])
                    given.append(ctypes.byref(placed[p.name].words))
                case OutParameter():
                    place = C[p.type]() if p.rank is None else (ctypes.c_int64 * (1 + 2 * p.rank))()
                    outs[p.name] = p, place
                    given.append(None if p.name in skip else ctypes.byref(place))
        area, size = 0, 0
        if f.sized:
            size = max(self.work_size(f, dict(values)) - less, 0)
            area = allocated(size + 2 * MARGIN)
            at = area + stub().stub_shift()
            ctypes.memset(at, BEFORE, size + 2 * MARGIN)
            ctypes.memset(at + MARGIN, fill, size)
            given += [ctypes.c_void_p(area + MARGIN), ctypes.c_int64(size)]
        status = self.loaded[symbol](*given)
        stub().cuStreamSynchronize(self.stream)
        for one in placed.values():
            one.take_back()
        if f.sized:
            beside = bytes([BEFORE]) * MARGIN
            assert ctypes.string_at(at, MARGIN) == beside, "underrun"
            assert ctypes.string_at(at + MARGIN + size, MARGIN) == beside, "overrun"
        arrays = [place for p, place in outs.values() if p.rank is not None and place[0]]
        for place in arrays:
            place[0] += stub().stub_shift()
        found = None if status else self.results(status, outs, skip)
        blocks = [one.block for one in placed.values()] + ([area] if f.sized else [])
        returned = {place[0] - stub().stub_shift() for place in arrays} - {
            one.words[0] for one in placed.values()
        }
        for block in (*blocks, *(() if f.sized or status else returned)):
            free(block)
        assert counter("live").value == live, "memory of the device is not given back"
        self.checked(status)
        assert found is not None
        return found


class DeviceCase(CCase):
    """A function with arguments, as a library of some modes whose arrays are a device's."""

    def built(self, folder: Path, *exports: Export) -> Client:
        return DeviceClient(folder, "m", *exports, opt=self.opt)

    def compiled(self, export: Export) -> None:
        chosen = Options(device="sm_90", launched=True, guards=True, opt=self.opt)
        compile_device("m", [export], chosen, Runtime().launching())

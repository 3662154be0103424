"""What a compiled library is written as: a table, an entry for each word of `--emit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import device_library
from .device_fortran import device_fortran_text
from .device_launchers import launchers_text
from .device_library import DeviceLibrary
from .fortran import fortran_text
from .header import header_text
from .library import Library
from .linking import shared_library, static_library
from .outputs import Output
from .pkg_config import pkg_config_text
from .python_package import package_files
from .wheel import wheel_files


@dataclass(frozen=True)
class Emitter:
    """One way to write a library."""

    file: str
    """The file's name, where none is given: `{}` is the library's."""
    write: Callable[[Library], bytes]
    is_text: bool = False
    """Whether it may go to standard output."""
    is_executable: bool = False


@dataclass(frozen=True)
class FolderEmitter:
    """One way to write a library as several files below a folder, or one of a name that it chooses."""

    write: Callable[[Library, Mapping[str, str]], dict[str, Output]]
    """The files by their paths; it is told the texts of modules of the runtime."""


FOLDERS = {"python": FolderEmitter(package_files), "wheel": FolderEmitter(wheel_files)}
"""More words of `--emit`, which write to a folder; their libraries have entries for Python."""


def shared(library: Library) -> bytes:
    """What `-l` or `dlopen` loads."""
    code = library.object_code()
    return shared_library(library.name, code, library.promised, triple=library.triple)


def static(library: Library) -> bytes:
    return static_library(library.name, library.object_code())


def text_of(write: Callable[[Library], str]) -> Callable[[Library], bytes]:
    return lambda library: write(library).encode()


EMITTERS: dict[str, Emitter] = {
    "shared": Emitter("lib{}.so", shared, is_executable=True),
    "object": Emitter("{}.o", Library.object_code),
    "static": Emitter("lib{}.a", static),
    "llvm": Emitter("{}.ll", text_of(Library.optimized_llvm), is_text=True),
    "asm": Emitter("{}.s", text_of(Library.assembly), is_text=True),
    "mlir": Emitter("{}.mlir", text_of(lambda library: library.mlir), is_text=True),
    "header": Emitter("{}.h", text_of(header_text), is_text=True),
    "fortran": Emitter("{}.f90", text_of(fortran_text), is_text=True),
    "pkg-config": Emitter("{}.pc", text_of(pkg_config_text), is_text=True),
}
"""By the word of `--emit`; the first is the default."""


def of_host(write: Callable[[Library], str]) -> Callable[[DeviceLibrary], bytes]:
    return lambda library: write(library.host).encode()


@dataclass(frozen=True)
class DeviceEmitter:
    """One way to write a library that launches kernels, or the kernels."""

    file: str
    write: Callable[[DeviceLibrary], bytes]
    is_text: bool = False
    is_executable: bool = False


DEVICE_EMITTERS: dict[str, DeviceEmitter] = {
    "shared": DeviceEmitter("lib{}.so", device_library.shared, is_executable=True),
    "object": DeviceEmitter("{}.o", lambda library: library.host.object_code()),
    "static": DeviceEmitter("lib{}.a", lambda library: static(library.host)),
    "llvm": DeviceEmitter("{}.ll", of_host(Library.optimized_llvm), is_text=True),
    "asm": DeviceEmitter("{}.s", of_host(Library.assembly), is_text=True),
    "mlir": DeviceEmitter("{}.mlir", lambda library: library.mlir.encode(), is_text=True),
    "header": DeviceEmitter("{}.h", of_host(header_text), is_text=True),
    "fortran": DeviceEmitter("{}.f90", of_host(device_fortran_text), is_text=True),
    "pkg-config": DeviceEmitter("{}.pc", of_host(pkg_config_text), is_text=True),
    "ptx": DeviceEmitter("{}.ptx", lambda library: library.ptx.encode(), is_text=True),
    "cubin": DeviceEmitter("{}.cubin", lambda library: library.cubin),
}
"""Those of devices, with `--target sm_90`."""

LAUNCHERS = DeviceEmitter("{}.h", lambda library: launchers_text(library).encode(), is_text=True)
"""The header beside a `ptx` or `cubin` file."""

EVERY_KIND = tuple(dict.fromkeys((*EMITTERS, *DEVICE_EMITTERS, *FOLDERS)))
"""What `--emit` knows."""


def kind_of_file(path: str, emitters: Mapping[str, Emitter | DeviceEmitter]) -> str | None:
    """The kind that the end of a file's name tells: `shared` of `libmodel.so`."""
    ends = {one.file.partition("{}")[2]: kind for kind, one in emitters.items()}
    return next((kind for end, kind in ends.items() if path.endswith(end)), None)

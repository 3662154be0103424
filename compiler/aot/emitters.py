"""What a compiled library is written as: a table, an entry for each word of `--emit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .fortran import fortran_text
from .header import header_text
from .library import Library
from .linking import shared_library, static_library
from .pkg_config import pkg_config_text


@dataclass(frozen=True)
class Emitter:
    """One way to write a library."""

    file: str
    """The file's name, where none is given: `{}` is the library's."""
    write: Callable[[Library], bytes]
    is_text: bool = False
    """Whether it may go to standard output."""
    is_executable: bool = False


def shared(library: Library) -> bytes:
    """What `-l` or `dlopen` loads."""
    return shared_library(library.name, library.object_code(), library.promised)


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


def kind_of_file(path: str) -> str | None:
    """The kind that the end of a file's name tells: `shared` of `libmodel.so`."""
    ends = {one.file.partition("{}")[2]: kind for kind, one in EMITTERS.items()}
    return next((kind for end, kind in ends.items() if path.endswith(end)), None)

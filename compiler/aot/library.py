"""Exported functions, compiled to one LLVM module.

Each export goes through the compiler's stages as a call's request does; its kernel has no Python and no
malloc in it (`codegen.kernel_memory`). The modules of all exports are linked into one, in which only the
promised symbols are visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import llvmlite.binding as llvm

from ..codegen.llvm_module import Target, assembly, optimize_and_emit, optimized_ir
from ..compilation import Compilation
from ..diagnostics import CompileError, line_of_function
from ..request import Options
from . import python_entry
from .blas_symbols import renamed
from .c_names import is_the_librarys
from .exports import Export
from .levels import Level, Together
from .package_functions import Face
from .signature import (
    CFunction,
)
from .statuses import Statuses
from .unit import Unit

DEVICE_FUNCTIONS = ("open", "close", "cublas", "allocate", "release")
"""What a library that launches kernels has besides the exports, behind its name."""


@dataclass
class Library:
    """The exports of one library, compiled."""

    name: str
    options: Options
    functions: list[CFunction]
    llvm: str
    """The text of the module before LLVM has optimized it."""
    mlir: str
    """The IR of all kernels after `optimize`."""
    statuses: Statuses
    symbols: dict[str, str]
    """External symbols, and where each comes from: "libm", "libmvec", "blas" or "libc"."""
    faces: list[Face]
    """What a Python package has to know of each function."""
    levels: tuple[Level, ...] = ()
    """The whole again for each of several CPUs, of which one is chosen at load."""
    for_python: bool = False
    """Whether it has the entries that a package calls."""
    device_words: int = 0
    """How many words of the header's struct say what is known of a device, if kernels are launched."""

    @property
    def promised(self) -> list[str]:
        """The symbols that the library has for others."""
        sized = [f for f in self.functions if f.sized]
        own = ("strerror", *(DEVICE_FUNCTIONS if self.launches else ()))
        return sorted(
            [f"{self.name}_{function}" for function in own]
            + [f.symbol for f in self.functions]
            + [f"{f.symbol}_worksize" for f in sized]
        )

    @property
    def launches(self) -> bool:
        """Whether its arrays are a device's."""
        return any(f.memory.launches for f in self.functions)

    @property
    def uses_blas(self) -> bool:
        return "blas" in self.symbols.values()

    @property
    def uses_libmvec(self) -> bool:
        return "libmvec" in self.symbols.values()

    @property
    def triple(self) -> str:
        """LLVM's triple of the machine and system; "" are ours."""
        return self.options.target.triple if self.options.target else ""

    def object_code(self, more: str = "") -> bytes:
        """The object; `more` is LLVM text to be part of it."""
        if self.levels:
            return self.together(more).object_code()
        text = linked([self.llvm, more]) if more else self.llvm
        return optimize_and_emit(text, self.options.opt, self.options.target)

    def optimized_llvm(self) -> str:
        if self.levels:
            return self.together().llvm
        return optimized_ir(self.llvm, self.options.opt, self.options.target)

    def assembly(self) -> str:
        if self.levels:
            return self.together().assembly()
        return assembly(self.llvm, self.options.opt, self.options.target)

    def together(self, more: str = "") -> Together:
        """The code for all levels."""
        chosen = [f.symbol for f in self.functions]
        chosen += [python_entry.entry_name(symbol) for symbol in chosen] if self.for_python else []
        lowest, *others = self.levels
        if more:
            lowest = replace(lowest, llvm=linked([lowest.llvm, more]))
        return Together.of([lowest, *others], chosen, self.options.opt)


def compile_exports(
    name: str,
    exports: Sequence[Export],
    options: Options,
    done: Callable[[Export, Compilation], None] = lambda export, c: None,
    levels: Sequence[Target | None] = (),
    *,
    for_python: bool = False,
) -> Library:
    """The library of this name; CompileError where a function is outside of what C can call.

    `done` is told of each export that is compiled. With `levels`, code is made for these CPUs, too, and the
    best for the CPU at hand is chosen when the library is loaded. A library `for_python` has the entries that
    a package calls (`python_entry`) besides.
    """
    statuses, parts = Statuses(), list[Unit]()
    for export in exports:
        if is_the_librarys(export.symbol, name):
            message = f"{export.symbol!r} is a name that the header of {name} gives to something of its own"
            way_out = "rename the function, or put something before all names: --prefix NAME"
            raise CompileError(line_of_function(export.function), message, way_out)
        own = options_of(export, options)
        parts.append(Unit(export, own, statuses, (own.target, *levels), for_python).compiled())
        done(export, parts[-1].c)
    lowest, *others = (linked([part.texts[k] for part in parts]) for k in range(1 + len(levels)))
    kernels = [kernel for part in parts for kernel in part.kernels]
    symbols = {s: origin for kernel in kernels for s, origin in kernel.symbols.items()}
    whole = linked([lowest, statuses.function(name)])
    targets = cast(Sequence[Target], (options.target, *levels))
    return Library(
        name,
        options,
        [part.function for part in parts],
        whole,
        "// -----\n".join(part.mlir for part in parts),
        statuses,
        dict(sorted(renamed(symbols).items())),
        [part.face() for part in parts],
        tuple(map(Level, targets, [whole, *others])) if levels else (),
        for_python,
    )


def options_of(export: Export, options: Options) -> Options:
    """What is chosen for the library, and for the function."""
    fastmath = options.fastmath or export.options.get("fastmath", False)
    own = {"fastmath": fastmath, "memory": None, "replays": False}
    return replace(options, **{**export.options, **own})


def linked(modules: Sequence[str]) -> str:
    """One module: internal symbols of one name get numbers."""
    context = llvm.create_context()
    first, *others = (llvm.parse_assembly(text, context) for text in modules)
    for other in others:
        first.link_in(other)
    return str(first)

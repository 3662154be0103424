"""What `mutadc --target sm_90` makes: kernels, and a library for C whose functions launch them.

The host's code is a `Library` as for the CPU, but its arrays are a device's. The kernels of all exports are
one module of the device in it: machine code where NVIDIA's assembler is at hand, and PTX, which the driver
compiles when the module is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import llvmlite.binding as llvm
from xdsl.dialects.builtin import ModuleOp

from ..codegen.ptx import kernels_of, ptx_of
from ..compilation import Compilation
from ..diagnostics import CompileError, line_of_function
from ..print_ir import module_text
from ..request import Options
from .c_names import is_the_librarys
from .device_support import support_text
from .device_tools import PTXAS, cubin_of, found
from .device_unit import DeviceUnit
from .device_words import Launching
from .exports import Export
from .library import Library, linked, options_of
from .linking import NoTool, shared_library
from .statuses import Statuses

OWN = "mutad_"
"""What the names of functions and variables begin with that only the library uses."""


@dataclass
class DeviceLibrary:
    """The exports of one library, and their kernels."""

    name: str
    kind: str
    """ "sm_90" and the like."""
    options: Options
    units: Sequence[DeviceUnit]
    statuses: Statuses
    launching: Launching

    @cached_property
    def module(self) -> ModuleOp:
        """The host's code and all kernels, as IR."""
        whole = ModuleOp([])
        for unit in self.units:
            for op in list(unit.whole.ops):
                op.detach()
                whole.body.block.add_op(op)
        return whole

    @property
    def mlir(self) -> str:
        return module_text(self.module)

    @cached_property
    def ptx(self) -> str:
        return ptx_of(self.module, self.kind, fastmath=self.options.fastmath)

    @cached_property
    def cubin(self) -> bytes:
        """Machine code of the device, by NVIDIA's assembler."""
        return cubin_of(self.ptx, self.kind)

    @cached_property
    def images(self) -> list[bytes]:
        """What the driver is given, one after the other until it takes one."""
        if not self.ptx:
            return []
        try:
            found("ptxas", PTXAS)
        except NoTool:
            return [self.ptx.encode()]
        return [self.cubin, self.ptx.encode()]

    @cached_property
    def host(self) -> Library:
        """The functions of C, with the kernels as constants."""
        kernels = [k.sym_name.data for k in kernels_of(self.module)]
        support = support_text(self.name, self.launching, self.images, kernels, self.statuses)
        texts = [unit.texts[0] for unit in self.units]
        whole = hidden(linked([*texts, support, self.statuses.function(self.name)]))
        symbols = {s: o for u in self.units for k in u.kernels for s, o in k.symbols.items()}
        return Library(
            self.name, self.options, [unit.function for unit in self.units], whole, self.mlir,
            self.statuses, symbols, [], device_words=self.launching.kernels + len(kernels),
        )  # fmt: skip


def compile_device(
    name: str,
    exports: Sequence[Export],
    options: Options,
    launching: Launching,
    done: Callable[[Export, Compilation], None] = lambda export, c: None,
) -> DeviceLibrary:
    """The library of this name; CompileError where a function is outside of what C, or a device, can do."""
    statuses, units, first = Statuses(), list[DeviceUnit](), launching.kernels
    for export in exports:
        if is_the_librarys(export.symbol, name, launches=True):
            message = f"{export.symbol!r} is a name that the header of {name} gives to something of its own"
            way_out = "rename the function, or put something before all names: --prefix NAME"
            raise CompileError(line_of_function(export.function), message, way_out)
        own = options_of(export, options)
        units.append(DeviceUnit(export, own, statuses, (None,), first=first))
        units[-1].compiled()
        first += len(units[-1].launched)
        done(export, units[-1].c)
    return DeviceLibrary(name, options.device, options, units, statuses, launching)


def hidden(text: str) -> str:
    """The module, of which others see what the header declares alone."""
    module = llvm.parse_assembly(text, llvm.create_context())
    for one in (*module.functions, *module.global_variables):
        if one.name.startswith(OWN) and not one.is_declaration:
            one.linkage = "internal"
    return str(module)


# What is written.


def shared(library: DeviceLibrary) -> bytes:
    """What `-l` or `dlopen` loads."""
    host = library.host
    return shared_library(host.name, host.object_code(), host.promised, ("m", "dl"))

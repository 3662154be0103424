"""What `mutadc --target sm_90` makes: kernels, and a header with a launcher for each.

A launcher is C99 that calls NVIDIA's driver. It takes arrays as pointers of the device, each with its extents
and its strides, counted in elements, and hands a kernel what `codegen.ptx` declares. What the host does
around launches (loops, scalars, how many blocks) is in `--emit=mlir`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.ir import Attribute

from ...dialects import device
from ..analysis.effects import is_private
from ..codegen.kernel_state import value_type
from ..codegen.llvm_module import optimize_and_emit
from ..codegen.ptx import kernels_of, ptx_of
from ..compilation import Compilation
from ..kernels.figures import KernelFigures, figures_of
from ..pipeline import OUTLINED, own_faults, stages_for
from ..print_ir import module_text
from ..request import Options, Request
from .c_names import KEYWORDS
from .device_tools import cubin_of
from .exports import Export
from .library import options_of
from .linking import shared_library
from .unit import MODES

C_TYPES = {
    "double": "double",
    "float": "float",
    "i1": "bool",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
}


@dataclass(frozen=True)
class DeviceLibrary:
    """The kernels of all exports."""

    name: str
    kind: str
    """ "sm_90" and the like."""
    module: ModuleOp
    fastmath: bool

    @property
    def ptx(self) -> str:
        return ptx_of(self.module, self.kind, fastmath=self.fastmath)

    @property
    def mlir(self) -> str:
        return module_text(self.module)

    @property
    def symbol(self) -> str:
        """What C calls the text of the kernels."""
        return f"{self.name}_ptx"


def compile_kernels(
    name: str,
    exports: Sequence[Export],
    options: Options,
    done: Callable[[Export, Compilation], None] = lambda export, c: None,
) -> DeviceLibrary:
    """The kernels of these exports, each called after the C function that it is of."""
    whole = ModuleOp([])
    for export in exports:
        own = replace(options_of(export, options), device=options.device)
        request = Request(
            export.function,
            (*(p.key for p in export.parameters), *export.inputs),
            mode=MODES[export.mode],
            wrt=export.wrt,
            options=own,
            captured=export.captured,
        )
        c = outlined(request, export.symbol)
        done(export, c)
        for op in list(c.module.ops):
            op.detach()
            whole.body.block.add_op(op)
    return DeviceLibrary(name, options.device, whole, options.fastmath)


def outlined(request: Request, symbol: str) -> Compilation:
    """A compilation that has its kernels, which are called after a symbol."""
    c = Compilation(request)
    with own_faults(request):
        for stage in stages_for(request):
            if stage is OUTLINED:
                for op in c.module.ops:
                    if isinstance(op, func.FuncOp) and not is_private(op):
                        op.properties["sym_name"] = StringAttr(symbol)
            stage.run(c)
            if stage is OUTLINED:
                break
    return c


# What is written.


def shared(library: DeviceLibrary) -> bytes:
    """A library that has the text of the kernels, as a string of C."""
    return shared_library(library.name, object_code(library), [library.symbol], ())


def object_code(library: DeviceLibrary) -> bytes:
    data = library.ptx.encode() + b"\0"
    shown = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
    return optimize_and_emit(f'@{library.symbol} = constant [{len(data)} x i8] c"{shown}"\n', 0)


def cubin(library: DeviceLibrary) -> bytes:
    """Machine code of the device, by NVIDIA's assembler."""
    return cubin_of(library.ptx, library.kind)


def header_text(library: DeviceLibrary) -> str:
    """A launcher for each kernel."""
    guard = f"{library.name.upper()}_H"
    figures = {one.name: one for one in figures_of(library.module)}
    lines = [
        *comment(
            f"{library.name}: kernels for {library.kind}, compiled by mutadc. Needs NVIDIA's driver (cuda.h, "
            "-lcuda).",
            "",
            "A launcher runs one kernel on a stream; with no blocks, nothing happens. Arrays are pointers "
            "into the memory of the device to element (0, ..., 0), extents _n and strides _s, counted in "
            "elements. Load the module once:",
            "",
            f"    CUmodule module; cuModuleLoadData(&module, {library.symbol});",
            "",
            f"where {library.symbol} is what --emit=shared has, or a .ptx or .cubin file that you read. In "
            "which order the host launches them, and with how many blocks, --emit=mlir shows.",
        ),
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <cuda.h>",
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"extern const char {library.symbol}[];",
        "",
    ]
    for kernel in kernels_of(library.module):
        lines += [*launcher(kernel, figures[kernel.sym_name.data]), ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""])


def comment(*paragraphs: str) -> list[str]:
    lines = [one for text in paragraphs for one in (text_lines(text) or [""])]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def text_lines(text: str) -> list[str]:
    return [text] if text.startswith(" ") else wrap(text, 96)


def launcher(kernel: func.FuncOp, told: KernelFigures) -> list[str]:
    """The C function that launches a kernel."""
    name = kernel.sym_name.data
    given = list(parameters(kernel))
    shown = ", ".join(f"{type_} {one}" for type_, one in given)
    handed = ", ".join(f"&{one}" for _, one in given)
    adds = f", {told.atomics} atomic" if told.atomics else ""
    return [
        f"/* line {told.line}; {told.loads + told.stores} bytes a point, at least {told.least}{adds} */",
        f"static inline CUresult {name}_launch(CUmodule module, CUstream stream, unsigned blocks"
        f"{', ' if shown else ''}{shown}) {{",
        "  CUfunction function;",
        f"  void *arguments[] = {{{handed or 'NULL'}}};",
        f'  CUresult status = cuModuleGetFunction(&function, module, "{name}");',
        "  if (status != CUDA_SUCCESS || blocks == 0) return status;",
        f"  return cuLaunchKernel(function, blocks, 1, 1, {device.THREADS}, 1, 1, 0, stream, arguments, "
        "NULL);",
        "}",
    ]


def parameters(kernel: func.FuncOp) -> Iterator[tuple[str, str]]:
    """C's types and names of what a kernel takes, in the order of `codegen.ptx.DeviceWriter.parameters`."""
    taken = {"module", "stream", "blocks", "function", "arguments", "status", *KEYWORDS}
    for number, argument in enumerate(kernel.body.block.args):
        name = re.sub(r"\W", "_", argument.name_hint or "x", flags=re.ASCII)
        name = f"x{name}" if name[:1].isdigit() else name
        own = name if name not in taken else f"{name}_{number}"
        taken.add(own)
        type_: Attribute = argument.type
        if not isinstance(type_, MemRefType):
            yield C_TYPES[value_type(type_)], own
            continue
        yield "CUdeviceptr", own
        for letter in "ns":
            for d in range(type_.get_num_dims()):
                taken.add(f"{own}_{letter}{d}")
                yield "int64_t", f"{own}_{letter}{d}"

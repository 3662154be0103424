"""The header of `--emit=ptx` and `cubin`: a launcher for each kernel.

A launcher is C99 that calls NVIDIA's driver. It takes arrays as pointers of the device, each with its extents
and its strides, counted in elements, and hands a kernel what `codegen.ptx` declares. What the host does
around launches (loops, scalars, how many blocks) is in `--emit=mlir`, and compiled in `--emit=shared`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from ...dialects import device
from ..codegen.kernel_state import value_type
from ..codegen.ptx import kernels_of
from ..kernels.figures import KernelFigures, figures_of
from .c_names import KEYWORDS
from .device_library import DeviceLibrary
from .text_of_c import comment

C_TYPES = {
    "double": "double",
    "float": "float",
    "i1": "bool",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
}


def launchers_text(library: DeviceLibrary) -> str:
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
            "    CUmodule module; cuModuleLoadData(&module, text);",
            "",
            "where text is the .ptx or .cubin file. In which order the host launches them, and with how many "
            "blocks, --emit=mlir shows; --emit=shared is a library that does so.",
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
    ]
    for kernel in kernels_of(library.module):
        lines += [*launcher(kernel, figures[kernel.sym_name.data]), ""]
    return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""])


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

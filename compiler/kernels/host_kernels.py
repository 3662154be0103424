"""Kernels as functions of the host that run a whole launch: what the emulated driver loads as a module.

The blocks of the launch and their threads are loops (`emulate_launches`). A kernel is called as the driver
calls one, with the address of the addresses of its arguments; memory of the emulated device lies elsewhere
than its addresses say, so that the host cannot touch it by mistake, and each pointer is moved there::

    void f_0(void **parameters, int64_t blocks, int64_t shift)
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Block, Region

from ...dialects import device
from ...dialects.within import every_op
from ..codegen.function_to_llvm import CodegenOptions, KernelWriter
from ..codegen.kernel_module import KernelText, module_text
from ..codegen.kernel_state import KernelState, size_of, value_type
from .emulate_launches import emulate, forget_spaces, touch

CONTEXT_BYTES = 288


def host_text(kernels: Sequence[func.FuncOp], options: CodegenOptions) -> KernelText:
    """A module with a function for each kernel, by its name."""
    state: KernelState | None = None
    definitions: list[list[str]] = []
    for kernel in kernels:
        name = kernel.sym_name.data
        writer = KernelWriter(whole_launch(kernel), options, f"run_{name}", state)
        writer.outlines = False
        definitions += [writer.write(), called_by_driver(kernel)]
        state = writer.state
    assert state is not None
    return module_text(state, definitions, ())


def whole_launch(kernel: func.FuncOp) -> func.FuncOp:
    """A function of a kernel's arguments, and the number of blocks, that runs them all."""
    types = [a.type for a in kernel.body.block.args]
    block = Block(arg_types=[*types, IndexType()])
    for old, new in zip(kernel.body.block.args, block.args, strict=False):
        new.name_hint = old.name_hint
    *values, blocks = block.args
    launch = device.LaunchOp(kernel.sym_name.data, blocks, values)
    end = func.ReturnOp()
    block.add_ops([launch, end])
    made = func.FuncOp(kernel.sym_name.data, ([a.type for a in block.args], []), Region(block))
    for op in (launch, end, made):
        op.location = kernel.location
    told = {k: v for k, v in kernel.attributes.items() if k != device.KERNEL}
    made.attributes.update(told)
    module = ModuleOp([made])
    emulate(launch, kernel)
    for op in every_op(made):
        touch(op)
    forget_spaces(made)
    made.detach()
    module.erase()
    return made


def kinds_of_parameters(kernel: func.FuncOp) -> list[str]:
    """LLVM's types of what a kernel is given: of an array pointer, extents and strides."""
    found: list[str] = []
    for argument in kernel.body.block.args:
        if isinstance(argument.type, MemRefType):
            found += ["ptr", *["i64"] * 2 * argument.type.get_num_dims()]
        else:
            found.append(value_type(argument.type))
    return found


def ranks_of_parameters(kernel: func.FuncOp) -> list[int]:
    """How many extents follow each pointer that a kernel is given."""
    types = (a.type for a in kernel.body.block.args)
    return [t.get_num_dims() for t in types if isinstance(t, MemRefType)]


def sizes_of_parameters(kernel: func.FuncOp) -> list[int]:
    """Bytes of an element of each array that a kernel is given."""
    types = (a.type for a in kernel.body.block.args)
    return [size_of(t.element_type) for t in types if isinstance(t, MemRefType)]


def called_by_driver(kernel: func.FuncOp) -> list[str]:
    """The definition of what the driver calls."""
    lines: list[str] = []
    shown: list[str] = []
    for k, type_ in enumerate(kinds_of_parameters(kernel)):
        lines += [
            f"  %at{k} = getelementptr ptr, ptr %parameters, i64 {k}",
            f"  %place{k} = load ptr, ptr %at{k}",
            f"  %given{k} = load {type_}, ptr %place{k}",
        ]
        if type_ == "ptr":
            lines.append(f"  %moved{k} = getelementptr i8, ptr %given{k}, i64 %shift")
        shown.append(f"{type_} %{'moved' if type_ == 'ptr' else 'given'}{k}")
    name = kernel.sym_name.data
    given = ", ".join(["ptr %ctx", *shown, "i64 %blocks", "ptr %ctx"])
    return [
        f"define void @{name}(ptr %parameters, i64 %blocks, i64 %shift) {{",
        f"  %ctx = alloca [{CONTEXT_BYTES} x i8], align 64",
        f"  store [{CONTEXT_BYTES} x i8] zeroinitializer, ptr %ctx",
        *lines,
        f"  %status = call i32 @run_{name}({given})",
        "  ret void",
        "}",
    ]

"""Kernels to NVIDIA's assembler, by LLVM: no device and no CUDA compiler is needed.

Kernel functions are written as the CPU's are (`KernelWriter`), with other words for what a thread is::

    define ptx_kernel void @f_0(i64 %n, ptr addrspace(1) noalias readonly %u, ...) "nvvm.maxntid"="256" {
      %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()

Arithmetic is the host's to the bit: nothing is contracted but what is adjoint, or `fastmath`. Functions of
the C library are not there: LLVM ends the process where it meets one. So all are mapped before to NVIDIA's
libdevice, of which what a module needs is linked in (`slice_of`), and it is looked that none is left.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from glob import glob
from pathlib import Path

import llvmlite.binding as llvm
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import AnyFloat, DenseArrayBase, MemRefType, ModuleOp
from xdsl.ir import Operation

from ...dialects import array, device
from .function_to_llvm import CodegenOptions, KernelWriter
from .kernel_memory import KernelMemory
from .kernel_module import module_text
from .kernel_state import Descriptor, KernelState, memory_type, value_type
from .llvm_module import Host, require_known_llvm

TRIPLE = "nvptx64-nvidia-cuda"

GONE = re.compile(r"llvm\.(exp|log|pow|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh)(10|2|i)?\.")
"""Intrinsics that LLVM has no instructions for there."""

LIBDEVICE = "libdevice.10.bc"


DEVICE = Host("sm", frozenset(), TRIPLE)


@dataclass(frozen=True)
class DeviceOptions:
    """What the code generator reads of the options: the CPU's vector functions are none of a device's."""

    fastmath: bool
    opt: int = 3
    parallel: bool = False
    target: Host = DEVICE
    driver: str = ""


class DeviceWriter(KernelWriter):
    """Writes one kernel."""

    nests_apart = False

    def __init__(
        self, function: func.FuncOp, options: CodegenOptions, beside: KernelState | None
    ) -> None:
        name = function.sym_name.data
        super().__init__(function, options, name, beside, memory=KernelMemory.AREA)
        self.state.memory = KernelMemory.AREA  # nothing is asked of a context, for there is none
        self.outlines = False

    def write(self) -> list[str]:
        parameters = ", ".join(self.parameters())
        self.emit_block(self.function.body.block)
        bound = f'"nvvm.maxntid"="{device.THREADS}"'
        head = f"define ptx_kernel void @{self.name}({parameters}) nounwind {bound} {{"
        return [head, self.text.text(), "}"]

    def parameters(self) -> list[str]:
        """Arrays are pointers into the memory of the device, each with its extents and strides."""
        listed = self.function.attributes[device.READ_ONLY]
        assert isinstance(listed, DenseArrayBase)
        read_only = {int(k) for k in listed.get_values()}
        shown: list[str] = []
        for k, argument in enumerate(self.function.body.block.args):
            hint, type_ = self.text.name(argument.name_hint or f"arg{k}"), argument.type
            if not isinstance(type_, MemRefType):
                shown.append(f"{value_type(type_)} {hint}")
                self.state.scalars[argument] = hint
                continue
            rank = type_.get_num_dims()
            extents = tuple(f"{hint}.n{d}" for d in range(rank))
            strides = tuple(f"{hint}.s{d}" for d in range(rank))
            told = " noalias readonly" if k in read_only else ""
            shown.append(f"ptr addrspace(1){told} {hint}.global")
            shown += [f"i64 {x}" for x in (*extents, *strides)]
            self.text.do(f"{hint} = addrspacecast ptr addrspace(1) {hint}.global to ptr")
            given = None if array.is_contiguous(type_) else strides
            self.state.memrefs[argument] = self.state.descriptor(type_, hint, extents, given)
        return shown

    def write_op(self, op: Operation) -> None:
        match op:
            case device.ThreadOp():
                self.state.scalars[op.result] = self.register("tid")
            case device.BlockOp():
                self.state.scalars[op.result] = self.register("ctaid")
            case device.BarrierOp():
                name = self.state.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", "void", "i32")
                self.text.do(f"call void @{name}(i32 0)")
            case memref.AllocaOp() if device.space_of(op.memref.type) == device.SHARED:
                self.share(op)
            case device.AtomicAddOp():
                self.atomic_add(op)
            case func.ReturnOp():
                self.text.do("ret void")
            case _:
                super().write_op(op)

    def register(self, which: str) -> str:
        name = self.state.intrinsic(f"llvm.nvvm.read.ptx.sreg.{which}.x", "i32", "")
        found = self.text.value(f"call i32 @{name}()")
        return self.text.value(f"zext i32 {found} to i64")

    def atomic_add(self, op: device.AtomicAddOp) -> None:
        """What it was before is not asked: the device's units for this do the work (`red`)."""
        target = self.state.memrefs[op.target]
        address = self.state.address(target, [self.state.scalars[i] for i in op.indices])
        kind = "fadd" if isinstance(op.value.type, AnyFloat) else "add"
        value = f"{value_type(op.value.type)} {self.state.scalars[op.value]}"
        self.text.do(f'atomicrmw {kind} ptr {address}, {value} syncscope("device") monotonic')

    def share(self, op: memref.AllocaOp) -> None:
        """Memory of the block: a variable of the module."""
        type_ = op.memref.type
        assert isinstance(type_, MemRefType)
        (size,) = type_.get_shape()
        name = f"{self.name}_shared_{len(self.state.functions)}"
        whole = f"[{size} x {memory_type(type_.element_type)}]"
        variable = f"@{name} = internal addrspace(3) global {whole} poison, align 16"
        self.state.functions[name] = variable
        slots = self.text.value(f"addrspacecast ptr addrspace(3) @{name} to ptr")
        found = Descriptor(slots, (str(size),), ("1",), type_.element_type)
        self.state.memrefs[op.memref] = found


def kernels_of(module: ModuleOp) -> list[func.FuncOp]:
    return [f for f in module.ops if isinstance(f, func.FuncOp) and device.is_kernel(f)]


def ptx_of(module: ModuleOp, kind: str, *, fastmath: bool = False) -> str:
    """The kernels of a module for a kind of device ("sm_90"); nothing where there are none."""
    text, needed = device_text(module, fastmath=fastmath)
    return assembled(text, needed, kind) if text else ""


def device_text(module: ModuleOp, *, fastmath: bool) -> tuple[str, frozenset[str]]:
    """The kernels as LLVM text, and the functions of libdevice that they call."""
    state: KernelState | None = None
    definitions: list[list[str]] = []
    for kernel in kernels_of(module):
        writer = DeviceWriter(kernel, DeviceOptions(fastmath), state)
        definitions.append(writer.write())
        state = writer.state
    if state is None:
        return "", frozenset()
    made = module_text(state, definitions, ())
    mathematics = {s for s, origin in made.symbols.items() if origin == "libm"}
    names = "|".join(sorted(map(re.escape, mathematics), key=len, reverse=True))
    text = re.sub(rf"@({names})\(", r"@__nv_\1(", made.module()) if names else made.module()
    return text, frozenset(f"__nv_{name}" for name in mathematics)


def assembled(text: str, needed: frozenset[str], kind: str) -> str:
    """LLVM's optimizer, and its assembler for the device."""
    machine = machine_of(kind)
    module = placed(llvm.parse_assembly(text, llvm.create_context()), machine)
    module.verify()
    if needed:
        # Bitcode is read within the context of what it is linked into.
        library = llvm.parse_bitcode(slice_of(needed, kind), module._context)  # pyright: ignore
        module.link_in(placed(library, machine))
    hide(module, needed)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    with llvm.create_pass_builder(machine, tuning) as builder:
        builder.getModulePassManager().run(module, builder)
    missing = [f.name for f in module.functions if f.is_declaration and is_missing(f.name)]
    assert not missing, f"no device has {', '.join(missing)}"
    return machine.emit_assembly(module)


def is_missing(name: str) -> bool:
    """Whether a device has no such function."""
    return not name.startswith("llvm.") or GONE.match(name) is not None


@cache
def machine_of(kind: str) -> llvm.TargetMachine:
    require_known_llvm(tuple(llvm.llvm_version_info))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=kind, opt=3)


def placed(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module, for this machine."""
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return module


def hide(module: llvm.ModuleRef, names: Iterable[str]) -> None:
    """Functions that no other module calls."""
    for name in names:
        module.get_function(name).linkage = "internal"


@cache
def slice_of(names: frozenset[str], kind: str) -> bytes:
    """These functions of libdevice, and what they call: a few kilobytes, read in a millisecond."""
    machine = machine_of(kind)
    library = placed(llvm.parse_bitcode(Path(libdevice()).read_bytes()), machine)
    for function in library.functions:
        if not function.is_declaration and function.name not in names:
            function.linkage = "internal"
    manager = llvm.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    with llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0)) as builder:
        manager.run(library, builder)
    return library.as_bitcode()


def libdevice() -> str:
    """Where NVIDIA's functions are. ImportError where they are not installed."""
    found = next((p for p in places() if os.path.exists(p)), None)
    if found is None:
        raise ImportError(
            f"{LIBDEVICE} is missing, which has sin, exp and the like for devices: pip install "
            "'mutad[cuda]', or set CUDA_HOME to a toolkit of CUDA"
        )
    return found


def places() -> Iterator[str]:
    """In packages, then in a toolkit."""
    for path in sys.path:
        yield from sorted(glob(f"{glob_escaped(path)}/nvidia/**/{LIBDEVICE}", recursive=True))
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            yield f"{os.environ[variable]}/nvvm/libdevice/{LIBDEVICE}"
    yield from sorted(glob(f"/usr/local/cuda*/nvvm/libdevice/{LIBDEVICE}"), reverse=True)


def glob_escaped(path: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", path)

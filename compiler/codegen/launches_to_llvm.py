"""Launches, and what else compiled host code asks of a device, as LLVM text.

::

    device.launch @f_0 blocks(%n) (%x)     store double %x, ptr %given         each argument in a slot
                                           store ptr %given, ptr %places       where each of them is
                                           %k = load ptr, ptr @mutad_device_kernels
                                           call i32 @mutad_device_launch(ptr %k, i64 %n, ptr %places)

An array is given as PTX has it: pointer, extents, strides (`ptx.DeviceWriter.parameters`). Its memory is not
touched here; single elements are fetched and put by the driver. Every call of the driver may fail, and the
kernel then returns as where memory runs out: which error it was the runtime knows.

A loop that only launches, the same in each iteration, is replayed: see `analysis.replays`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad, array, device
from ..analysis.alias import if_blocks
from ..analysis.replays import period_of
from .debug_info import Subject
from .function_to_llvm import CodegenOptions, KernelWriter
from .handles import Record
from .kernel_memory import KernelMemory
from .kernel_state import OUT_OF_MEMORY, Descriptor, KernelState, size_of, value_type
from .memory_to_llvm import bytes_of
from .support.device import AREA_DECLARATIONS, BLOCKS, DECLARATIONS, DEVICE

KERNELS = "mutad_device_kernels"
"""The external table of the module's kernels, as the driver knows them."""

NUMBER = "number"
"""The attribute of a launch: the place of its kernel in the table."""

SCRATCH, RESULT = 0, 1
"""Kinds of blocks: those of an iteration, and those that may be returned."""


def number_kernels(module: ModuleOp) -> list[func.FuncOp]:
    """Take the kernels out of the module; each launch says which of them is its own."""
    kernels = [f for f in module.ops if isinstance(f, func.FuncOp) and device.is_kernel(f)]
    numbers = {kernel.sym_name.data: k for k, kernel in enumerate(kernels)}
    for launch in [op for op in module.walk() if isinstance(op, device.LaunchOp)]:
        launch.attributes[NUMBER] = IntegerAttr(numbers[launch.target], i64)
    for kernel in kernels:
        kernel.detach()
    return kernels


def multiplies(module: ModuleOp) -> bool:
    """Whether there are products that a library may do."""
    return any(device.PRODUCT in op.attributes for op in module.walk())


def repeats(module: ModuleOp) -> bool:
    """Whether there are graphs that decide how often they repeat."""
    return any(isinstance(op, device.WhileStepOp) for op in module.walk())


def is_on_device(type_: Attribute) -> bool:
    """Whether the memory of a memref is the device's."""
    return isinstance(type_, MemRefType) and device.space_of(type_) == device.GLOBAL


def declare(state: KernelState, kind: str) -> None:
    """All that host code may call, of the runtime for this kind of driver."""
    state.support.add(DEVICE)
    in_area = state.memory is KernelMemory.DEVICE_AREA
    for symbol, line in (DECLARATIONS | (AREA_DECLARATIONS if in_area else {})).items():
        state.declare(symbol, line, f"device {kind}")
    state.declare(KERNELS, f"@{KERNELS} = external global ptr", "kernels")


def call(state: KernelState, function: str, *arguments: str) -> str:
    result = (DECLARATIONS | AREA_DECLARATIONS)[function].split()[1]
    return state.text.value(f"call {result} @{function}({', '.join(arguments)})")


def require(state: KernelState, status: str) -> None:
    """Leave where the driver has refused."""
    state.return_when(state.text.value(f"icmp ne i32 {status}, 0"), OUT_OF_MEMORY)


# Launches.


def lower_launch(state: KernelState, op: device.LaunchOp) -> None:
    text, number = state.text, op.attributes[NUMBER]
    assert isinstance(number, IntegerAttr)
    given = [one for value in op.values for one in given_as(state, value)]
    places = text.alloca(f"[{max(len(given), 1)} x ptr]", "parameters")
    for k, (type_, value) in enumerate(given):
        slot = text.alloca(type_, "given")
        text.do(f"store {type_} {value}, ptr {slot}")
        at = text.value(f"getelementptr ptr, ptr {places}, i64 {k}")
        text.do(f"store ptr {slot}, ptr {at}")
    at = text.value(f"getelementptr ptr, ptr @{KERNELS}, i64 {number.value.data}")
    kernel = text.value(f"load ptr, ptr {at}", "kernel")
    blocks = f"i64 {state.scalars[op.blocks]}"
    launched = f"ptr {kernel}", blocks, f"ptr {places}"
    if device.PRODUCT in op.attributes:
        request = f"ptr {request_of(state, op)}"
        require(state, call(state, "mutad_device_product", *launched, request))
    else:
        require(state, call(state, "mutad_device_launch", *launched))


def request_of(state: KernelState, op: device.LaunchOp) -> str:
    """Where the words are that say what is multiplied: `REQUEST` of the runtime's `device_products`."""
    told = op.attributes[device.PRODUCT]
    assert isinstance(told, DenseArrayBase)
    *places, adds = (int(k) for k in told.get_values())
    a, b, c = (state.memrefs[op.values[k]] for k in places)
    words = [str(size_of(c.element)), str(adds), a.extents[0], b.extents[1], a.extents[1]]
    for matrix in (a, b, c):
        words += [state.text.value(f"ptrtoint ptr {matrix.pointer} to i64"), *matrix.strides]
    slot = state.text.alloca(f"[{len(words)} x i64]", "request")
    for k, value in enumerate(words):
        at = state.text.value(f"getelementptr i64, ptr {slot}, i64 {k}")
        state.text.do(f"store i64 {value}, ptr {at}")
    return slot


def given_as(state: KernelState, value: SSAValue) -> list[tuple[str, str]]:
    """What a kernel is given for a value, with types: of an array pointer, extents and strides."""
    if isinstance(value.type, MemRefType):
        first, *numbers = state.memrefs[value].fields
        return [("ptr", first), *(("i64", n) for n in numbers)]
    return [(value_type(value.type), state.scalars[value])]


def lower_is_replayed(state: KernelState, op: device.IsReplayedOp) -> None:
    numbers = f"i64 {state.scalars[op.count]}", f"i64 {op.period.value.data}"
    state.scalars[op.result] = call(state, "mutad_device_is_replayed", *numbers)


def lower_has_conditions(state: KernelState, op: device.HasConditionsOp) -> None:
    state.scalars[op.result] = call(state, "mutad_device_has_conditions")


def lower_while_step(state: KernelState, op: device.WhileStepOp) -> None:
    flag = f"ptr {state.memrefs[op.flag].pointer}"
    require(state, call(state, f"mutad_device_while_{op.step.data}", flag))


# Single elements.


def lower_fetch(state: KernelState, op: device.FetchOp) -> None:
    source = state.memrefs[op.source]
    slot = state.text.alloca("i64", "fetched")
    at = state.address(source, [state.scalars[i] for i in op.indices])
    size = f"i64 {size_of(source.element)}"
    require(state, call(state, "mutad_device_fetch", f"ptr {at}", size, f"ptr {slot}"))
    state.scalars[op.result] = state.load(slot, source.element, "", op.result.name_hint)


def lower_put(state: KernelState, op: device.PutOp) -> None:
    target = state.memrefs[op.target]
    slot = state.text.alloca("i64", "sent")
    state.store(state.scalars[op.value], slot, target.element, "")
    at = state.address(target, [state.scalars[i] for i in op.indices])
    size = f"i64 {size_of(target.element)}"
    require(state, call(state, "mutad_device_put", f"ptr {at}", size, f"ptr {slot}"))


# Memory.


def lower_memory(state: KernelState, op: Operation) -> None:
    """Blocks until the iteration, or the call, ends; segments of tapes; variables that kernels touch."""
    assert isinstance(op, array.AllocOp | memref.AllocaOp | ad.PushOp | ad.PopOp)
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    extents = () if isinstance(op, memref.AllocaOp) else tuple(op.extents)
    shape = [state.scalars[e] for e in extents]
    size = f"i64 {bytes_of(state, type_, shape)}"
    match op:
        case ad.PopOp():
            found = popped(state, op.tape, size)
        case ad.PushOp():
            assert is_of_device(op.tape), "a tape holds what the host computes, too"
            slot = f"ptr {state.scalars[op.tape]}"
            found = call(state, own(state, "push"), "ptr %ctx", slot, size)
        case _:
            kind = f"i64 {RESULT if op in state.escaping else SCRATCH}"
            found = call(state, own(state, "alloc"), "ptr %ctx", size, kind)
    if not isinstance(op, ad.PopOp):
        state.return_when(state.text.value(f"icmp eq ptr {found}, null"), OUT_OF_MEMORY)
    state.memrefs[op.memref] = state.descriptor(type_, found, tuple(shape))


def own(state: KernelState, function: str) -> str:
    """The function of the memory that arrays of the device are in."""
    kind = "area" if state.memory is KernelMemory.DEVICE_AREA else "device"
    return f"mutad_{kind}_{function}"


def reserve_tape(state: KernelState, op: ad.TapeOp) -> None:
    """A tape in an area: all that its segments will take, at once."""
    slot = state.scalars[op.tape]
    size = "0" if op.reserved is None else state.scalars[op.reserved]
    found = call(state, "mutad_area_alloc", "ptr %ctx", f"i64 {size}", f"i64 {RESULT}")
    state.return_when(state.text.value(f"icmp eq ptr {found}, null"), OUT_OF_MEMORY)
    end = state.text.value(f"getelementptr i8, ptr {found}, i64 {size}")
    for offset, field in ((8, found), (16, end)):
        at = state.text.value(f"getelementptr inbounds i8, ptr {slot}, i64 {offset}")
        state.text.do(f"store ptr {field}, ptr {at}, align 8")


def popped(state: KernelState, tape: SSAValue, size: str) -> str:
    """The last segment of a tape."""
    slot = f"ptr {state.scalars[tape]}"
    if state.memory is KernelMemory.DEVICE_AREA:
        return call(state, "mutad_area_pop", "ptr %ctx", slot, size)
    reads = isinstance(tape.owner, ad.ReaderOp)
    function = "mutad_device_read" if reads else "mutad_device_pop"
    return call(state, function, slot)


def is_of_device(tape: SSAValue) -> bool:
    """Whether all segments of a tape are the device's."""
    users = (use.operation for use in tape.uses)
    return all(is_on_device(u.memref.type) for u in users if isinstance(u, ad.PushOp | ad.PopOp))


class LaunchingWriter(KernelWriter):
    """Writes a function of the host, whose arrays are a device's."""

    def __init__(
        self,
        function: func.FuncOp,
        options: CodegenOptions,
        name: str,
        beside: KernelState | None = None,
        record: Record | None = None,
        memory: KernelMemory = KernelMemory.DEVICE,
        subject: Subject | None = None,
    ) -> None:
        super().__init__(function, options, name, beside, record, memory, subject)
        declare(self.state, options.driver)
        self.marks: list[str | None] = []
        """Of each iteration that is being written the blocks that were there when it began."""
        self.periods: dict[array.LoopOp, int | None] = {}

    def write_op(self, op: Operation) -> None:
        lower = LAUNCH_OPS.get(type(op))
        on_device = isinstance(op, OF_EITHER) and is_on_device(op.memref.type)
        if lower is not None:
            lower(self.state, op)
        elif on_device:
            assert not isinstance(op, memref.LoadOp | memref.StoreOp), "this is the device's memory"
            lower_memory(self.state, op)
        else:
            super().write_op(op)
            in_area = self.state.memory is KernelMemory.DEVICE_AREA
            if in_area and isinstance(op, ad.TapeOp) and is_of_device(op.tape):
                reserve_tape(self.state, op)

    # Memory of iterations.

    def mark(self, block: Block) -> str | None:
        at = None
        if self.takes_blocks(block):
            slot = self.state.context_slot(BLOCKS)
            at = self.text.value(f"load ptr, ptr {slot}, align 8", "blocks")
        self.marks.append(at)
        return super().mark(block)

    def release(self, mark: str | None) -> None:
        super().release(mark)
        if (at := self.marks.pop()) is not None:
            self.text.do(f"call void @{own(self.state, 'release')}(ptr %ctx, ptr {at})")

    def takes_blocks(self, block: Block) -> bool:
        """Whether a block takes memory of the device, outside of the loops in it."""
        for op in block.ops:
            if isinstance(op, array.AllocOp | memref.AllocaOp) and is_on_device(op.memref.type):
                return True
            if isinstance(op, scf.IfOp) and any(map(self.takes_blocks, if_blocks(op))):
                return True
        return False

    def hand_over(self, value: SSAValue, memref: Descriptor) -> None:
        if not is_on_device(value.type):
            super().hand_over(value, memref)
            return
        if self.state.memory is not KernelMemory.DEVICE_AREA:
            self.text.do(f"call void @mutad_device_keep(ptr %ctx, ptr {memref.pointer})")

    # Loops that are replayed.

    def iterations(self, op: array.LoopOp, count: str) -> str:
        period = self.periods[op] = period_of(op, self.state.alias)
        if period is None:
            return count
        return call(self.state, "mutad_device_plan", f"i64 {count}", f"i64 {period}")

    def begin_iteration(self, op: array.LoopOp, number: str) -> None:
        if self.periods[op] is not None:
            require(self.state, call(self.state, "mutad_device_iteration", f"i64 {number}"))

    def end_iterations(self, op: array.LoopOp) -> None:
        if self.periods[op] is not None:
            require(self.state, call(self.state, "mutad_device_repeat"))


OF_EITHER = (memref.LoadOp, memref.StoreOp, memref.AllocaOp, array.AllocOp, ad.PushOp, ad.PopOp)
"""Ops on memory that is the host's or the device's."""

LAUNCH_OPS: dict[type[Operation], Callable[[KernelState, Any], None]] = {
    device.LaunchOp: lower_launch,
    device.IsReplayedOp: lower_is_replayed,
    device.HasConditionsOp: lower_has_conditions,
    device.WhileStepOp: lower_while_step,
    device.FetchOp: lower_fetch,
    device.PutOp: lower_put,
}

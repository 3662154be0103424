"""The C entry of a function that launches kernels: as on the CPU, but its arrays are a device's.

define i32 @loss_grad(ptr %device, ptr %stream, ptr %u, ..., ptr %work, i64 %work_bytes) nounwind {
  ... arguments are unpacked and checked
  %refused = call i32 @mutad_library_begin(ptr %device, ptr %stream, ...)   ; the thread's state
  %status = call i32 @loss_grad_kernel(ptr %ctx, ...)                       ; launches
  call void @mutad_library_leave(...)                                       ; before each way out
"""

from __future__ import annotations

from ..codegen.entries.run import CTX_BYTES
from ..codegen.entries.writer import ITEM_SIZE
from ..codegen.kernel_memory import KernelMemory
from ..codegen.support.callbacks import ALLOCATOR
from ..codegen.support.device import AREA_END, BLOCKS
from .c_entry import EntryText
from .device_words import NOTHING
from .signature import CFunction
from .statuses import Statuses

DECLARATIONS = (
    "@mutad_library_allocator = external constant [3 x ptr]",
    "declare i32 @mutad_library_begin(ptr, ptr, ptr, ptr, i64, i64)",
    "declare void @mutad_library_leave(ptr)",
    "declare i32 @mutad_library_refusal(i32)",
    "declare i32 @mutad_library_clear(ptr, ptr, i64, i64)",
)
"""What an entry calls of `device_support`."""


class DeviceEntryText(EntryText):
    """Writes such an entry."""

    NO_MEMORY = "there is no memory"

    def __init__(self, statuses: Statuses, symbol: str, first: int, count: int) -> None:
        super().__init__(statuses, symbol)
        self.kernels = first, count
        """Which words of the device are its kernels."""

    def begin(self) -> None:
        """A zero for what is not given is the device's."""
        self.do("%before = alloca ptr")
        self.do(f"%nothing.at = getelementptr ptr, ptr %device, i64 {NOTHING}")
        self.do("%nothing = load ptr, ptr %nothing.at")

    def fill_context(self, function: CFunction, *, recursive: bool) -> None:
        assert not recursive, "a device runs no recursive functions"
        self.do(f"store [{CTX_BYTES // 8} x i64] zeroinitializer, ptr %ctx")
        self.store("ptr", "@mutad_library_allocator", "%ctx", ALLOCATOR)
        if function.memory is KernelMemory.DEVICE_AREA:
            self.fill_area(function, BLOCKS, AREA_END)
        first, count = self.kernels
        kernels = f"ptr @{self.symbol}_kernels, i64 {first}, i64 {count}"
        given = f"ptr %device, ptr %stream, ptr %before, {kernels}"
        refused = self.value(f"call i32 @mutad_library_begin({given})")
        good, bad = self.fresh("begun"), self.fresh("not.begun")
        self.do(f"br i1 {self.value(f'icmp eq i32 {refused}, 0')}, label %{good}, label %{bad}")
        self.label(bad)
        self.do(f"ret i32 {refused}")
        self.label(good)

    def finish(self) -> None:
        self.do("call void @mutad_library_leave(ptr %before)")

    def exhausted(self, status: int) -> str:
        return self.value(f"call i32 @mutad_library_refusal(i32 {status})")

    def fill_zeros(self, name: str) -> None:
        """As on the CPU, by the driver: at once where the elements lie side by side."""
        a, size = self.arrays[name], ITEM_SIZE[self.arrays[name].key.dtype]
        shape = self.value(f"alloca [{2 * max(a.key.rank, 1)} x i64]")
        for k, number in enumerate((*a.extents, *a.strides)):
            self.store("i64", number, shape, 8 * k)
        told = f"i64 {a.key.rank}, i64 {size}"
        status = self.value(f"call i32 @mutad_library_clear(ptr {a.data}, ptr {shape}, {told})")
        good, bad = self.fresh("cleared"), self.fresh("not.cleared")
        self.do(f"br i1 {self.value(f'icmp eq i32 {status}, 0')}, label %{good}, label %{bad}")
        self.label(bad)
        self.do("br label %exhausted")
        self.label(good)

"""One export of a library that launches kernels: compiled as a call on a device, to an entry that C calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ..argument_keys import ArrayKey, Key
from ..codegen.entries.guard import Leaf
from ..codegen.kernel_memory import KernelMemory
from ..codegen.kernel_module import KernelText
from ..codegen.launches_to_llvm import KERNELS, is_on_device, number_kernels
from ..codegen.module_to_llvm import kernel_text
from ..compilation import last_function
from ..kernels.count_on_device import CountOnDevice
from ..kernels.scalars_on_device import ScalarsOnDevice
from ..pipeline import LAUNCHED, OUTLINED, Stage
from ..sizes.work_size import measure_work
from .c_entry import EntryText
from .device_entry import DECLARATIONS, DeviceEntryText
from .statuses import Statuses
from .unit import Unit

EXTERNAL = f"@{KERNELS} = external global ptr"


@dataclass
class DeviceUnit(Unit):
    """An export whose arrays are a device's."""

    first: int = 0
    """The first of its kernels among the words of a device."""
    whole: ModuleOp = field(default_factory=lambda: ModuleOp([]))
    """The host's code and the kernels."""
    launched: list[str] = field(default_factory=list[str])
    """The kernels' names."""

    @property
    def writer(self) -> Callable[[Statuses, str], EntryText]:
        return partial(DeviceEntryText, first=self.first, count=len(self.launched))

    def run(self, stage: Stage) -> None:
        if stage is OUTLINED:
            last_function(self.c.module).properties["sym_name"] = StringAttr(self.export.symbol)
        if stage is not LAUNCHED:
            super().run(stage)
            return
        self.c.run([ScalarsOnDevice(), CountOnDevice()])
        self.whole = self.c.module.clone()
        self.launched = [k.sym_name.data for k in number_kernels(self.c.module)]

    def baked(self, value: Any, name: str, key: Key) -> tuple[str, Leaf]:
        if isinstance(key, ArrayKey):
            raise self.refuse(
                f"{name}, which the function reads from outside, is an array, and no device has it",
                f"pass {name} as an argument",
            )
        return super().baked(value, name, key)

    def write_kernel(self) -> KernelMemory:
        """The kernel, whose arrays lie in the caller's area of the device if its size is known."""
        function = last_function(self.c.module)
        self.size = measure_work(function, self.c.built.assumed, is_on_device)
        memory = KernelMemory.DEVICE_AREA if self.size.function else KernelMemory.DEVICE_POOL
        self.before += DECLARATIONS
        name = f"{self.export.symbol}_kernel"
        made = kernel_text(self.c.module, self.c.request.options, name, memory)
        self.kernels.append(with_table(made, f"{self.export.symbol}_kernels", len(self.launched)))
        return memory


def with_table(made: KernelText, symbol: str, count: int) -> KernelText:
    """The same with the table of its kernels in words of the thread, which the entry fills in."""
    table = f"@{symbol} = internal thread_local global [{count} x ptr] zeroinitializer"
    declared = tuple(table if line == EXTERNAL else line for line in made.declarations)
    if table not in declared:
        declared = (*declared, table)
    symbols = {s: o for s, o in made.symbols.items() if not o.startswith(("device", "kernels"))}
    text = made.text.replace(f"@{KERNELS},", f"@{symbol},")
    return replace(made, text=text, declarations=declared, symbols=symbols)

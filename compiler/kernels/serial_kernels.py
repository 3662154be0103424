"""A loop over elements whose iterations need each other, as a kernel of one thread.

::

    for i in range(1, n):             thread 0:  for i in range(1, n):
        u[i] += u[i - 1]                             u[i] += u[i - 1]

It is slow: each iteration waits for memory, and the rest of the device has nothing to do. But arrays stay
where they are, and all else of a program runs as it does without such a loop; `explain` says which loops
these are. Elements see the program's order, so their bits are the CPU's.

Of nested loops the outermost one becomes a kernel that a thread can run as a whole: that is one launch. Kept
on the host are loops with something else in them that becomes a kernel, or that allocate. What may raise has
been replaced (`defer_raises`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array, device
from ...dialects.within import every_op
from ..analysis.alias import enclosing_loops
from ..analysis.carried_cells import cell_of, is_outside
from ..analysis.views import is_memref
from ..rules import accesses, is_whole_array
from .kernel import Kernel, Writer, element_of
from .nest_kernels import is_used_elsewhere, may_run

SPACED = (array.AnyView, memref.CastOp, memref.AllocaOp, array.AllocOp)
"""What makes memrefs whose memory space the kernel's writer knows."""


def serial_loops(elements: Iterable[Operation], kernels: Iterable[Operation]) -> list[array.LoopOp]:
    """The loops around `elements` that a thread can run, where none of these is within a kernel."""
    taken = {loop for op in kernels for loop in enclosing_loops(op)}
    fit: dict[array.LoopOp, bool] = {}
    found: dict[array.LoopOp, None] = {}
    for op in elements:
        for loop in enclosing_loops(op):
            if loop not in fit:
                fit[loop] = loop not in taken and all(map(is_of_one_thread, every_op(loop)))
            if fit[loop]:
                found[loop] = None
                break
    return list(found)


def is_of_one_thread(op: Operation) -> bool:
    if is_whole_array(op) or array.RAISES in op.attributes or not may_run(op):
        return False
    if array.is_operation_that_may_raise(op):
        return False
    if isinstance(op, array.LoopOp) and op.carried:
        return False
    return isinstance(op, SPACED) or not any(map(is_memref, op.results))


class SerialKernel:
    """Writes the kernel; the host's code around it goes to `host`."""

    def __init__(
        self,
        kernel: Kernel,
        host: Writer,
        loop: array.LoopOp,
        is_device: Callable[[SSAValue], bool],
        buffer: Callable[[Writer, SSAValue, Attribute], SSAValue],
    ) -> None:
        self.kernel, self.host, self.loop = kernel, host, loop
        self.buffer = buffer
        """Makes memory of the device."""
        self.stored = dict[SSAValue, bool]()
        """The host's variables that the loop uses, and whether it stores to them."""
        for op in every_op(loop):
            for one in accesses(op):
                cell = cell_of(one.memref)
                if cell is not None and is_outside(cell, loop) and not is_device(cell):
                    self.stored[cell] = self.stored.get(cell, False) or one.kind == "write"
        self.left: dict[SSAValue, SSAValue] = {}
        """Memory, outside, in which the loop leaves a variable."""
        self.trips: SSAValue | None = None

    def write(self) -> None:
        kernel, loop = self.kernel, self.loop
        for cell in self.stored:
            own = kernel.cell(element_of(cell))
            own.name_hint = cell.name_hint
            kernel.store(kernel.value(self.host.load(cell)), own)
            kernel.values[cell] = own
        first = arith.CmpiOp(kernel.emit(device.ThreadOp()), kernel.index(0), "eq")
        with kernel.where(kernel.emit(first)):
            kernel.copy(loop)
            for cell, is_stored in self.stored.items():
                if is_stored and is_seen_behind(cell, loop):
                    self.left[cell] = self.leave(kernel.load(kernel.values[cell]))
            if loop.trips.first_use is not None:
                trips = arith.IndexCastOp(kernel.values[loop.trips], i64)
                self.trips = self.leave(kernel.emit(trips))

    def leave(self, value: SSAValue) -> SSAValue:
        """Memory in which the thread puts a number for the host."""
        found = self.buffer(self.host, self.host.index(1), value.type)
        self.kernel.store(value, self.kernel.value(found), [self.kernel.index(0)])
        return found

    def take_over(self) -> None:
        """What variables are on the host after the launch, and how often the loop has run."""
        host = self.host
        for cell, left in self.left.items():
            host.store(host.emit(device.FetchOp(left, [host.index(0)])), cell)
        if self.trips is not None:
            trips = host.emit(device.FetchOp(self.trips, [host.index(0)]))
            self.loop.trips.replace_all_uses_with(host.emit(arith.IndexCastOp(trips, IndexType())))


def is_seen_behind(cell: SSAValue, loop: array.LoopOp) -> bool:
    """Whether what the loop leaves in a variable is read later: behind it, or when it runs again."""
    if is_used_elsewhere(cell, loop):
        return True
    return any(not one.is_ancestor(owner_of(cell)) for one in enclosing_loops(loop))


def owner_of(cell: SSAValue) -> Operation:
    assert isinstance(cell.owner, Operation)
    return cell.owner

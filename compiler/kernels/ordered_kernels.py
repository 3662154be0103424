"""A loop whose iterations meet in elements, as a kernel: each thread does those that touch what it owns.

::

    for i in range(n):                thread t:  for i in range(n):
        u[k[i]] += v[i]                              if k[i] % threads == t:
                                                         u[k[i]] += v[i]

All threads go through all iterations, in order, and so each element sees what the program does to it, in the
program's order. Why no two threads meet: see `updates`. Many iterations are sorted (`sorted_kernels`).
"""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from ...dialects import array, device
from .additions_to_elements import steps_of
from .kernel import Kernel, Writer, element_of
from .updates import Ordered

MOST = 32
"""Blocks: with more, threads would read subscripts for nothing."""

MIX = 8191
"""Owners of several subscripts are found by a prime."""


class OrderedKernel:
    """Writes the kernel; the host's code around it goes to `host`."""

    def __init__(self, kernel: Kernel, host: Writer, told: Ordered) -> None:
        self.kernel, self.host, self.told = kernel, host, told
        self.count = self.blocks()
        first = told.loops[0]
        assert first.count is not None
        self.trips = [host.at_least_zero(first.count)]
        """Of the outermost loop."""

    def blocks(self) -> SSAValue:
        """As many as there may be owners."""
        host, owners = self.host, self.host.index(1)
        for target, axis in self.told.keys.values():
            extent = host.emit(memref.DimOp(target, host.index(axis)))
            owners = host.product(owners, host.at_least_zero(extent))
        parts = host.parts(owners, device.THREADS)
        some = host.emit(arith.MinSIOp(parts, host.index(MOST)))
        return host.emit(arith.MaxSIOp(some, host.index(1)))

    def write(self) -> None:
        kernel, threads = self.kernel, self.kernel.index(device.THREADS)
        all_threads = kernel.product(kernel.value(self.count), threads)
        block, thread = kernel.emit(device.BlockOp()), kernel.emit(device.ThreadOp())
        me = kernel.sum(kernel.product(block, threads), thread)
        for cell, role in self.told.cells.items():
            own = kernel.cell(element_of(cell))
            if role.name != "private":
                kernel.store(kernel.value(self.host.load(cell)), own)
            kernel.values[cell] = own
        self.walk(list(self.told.loops), me, all_threads)

    def walk(self, loops: list[array.LoopOp], me: SSAValue, threads: SSAValue) -> None:
        """All iterations of the outermost of these loops; what is inside, where it is this thread's."""
        kernel, loop = self.kernel, loops[0]
        assert loop.count is not None
        outermost = loop is self.told.loops[0]
        trips = self.trips[0] if outermost else loop.count
        with kernel.loop(kernel.value(trips)) as i:
            kernel.values[loop.induction] = i
            body = list(loop.body.block.ops)[:-1]
            if len(loops) > 1:
                for op in body[: body.index(loops[1])]:
                    kernel.copy(op)
                self.walk(loops[1:], me, threads)
                return
            steps = steps_of(list(self.told.keys), self.told.loops[0])
            for op in body:
                if op in steps:
                    kernel.copy(op)
            owner = kernel.rest(number_of(kernel, self.told), threads)
            with kernel.where(kernel.emit(arith.CmpiOp(owner, me, "eq"))):
                for op in body:
                    if op not in steps:
                        kernel.copy(op)


def number_of(kernel: Kernel, told: Ordered) -> SSAValue:
    """The same for iterations that meet."""
    first, *others = (kernel.value(v) for v in told.keys)
    for one in others:
        first = kernel.sum(kernel.product(first, kernel.index(MIX)), one)
    return first

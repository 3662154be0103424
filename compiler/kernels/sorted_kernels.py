"""A loop whose iterations meet in elements, as kernels: iterations are sorted by what they touch.

`ordered_kernels` has every thread read the subscripts of all iterations. Where there are many, their numbers
are sorted instead, by the owner of what each touches and then by themselves; those of one owner are a run::

    for i in range(n):                places = argsort(k), iterations that meet in their order
        u[k[i]] += v[i]               thread p, where a run begins at p:
                                          for i in places[p:end of the run]: u[k[i]] += v[i]

So each element sees what the program does to it, in the program's order, in n log(n)^2 steps. Runs of
iterations are merged: a thread finds by bisection how many of the other run are before its own.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import device
from .additions_to_elements import steps_of
from .kernel import Kernel, Writer, blocks, element_of, point
from .ordered_kernels import number_of
from .updates import Ordered

FEWEST = 1 << 13
"""Iterations: with fewer, threads have read all subscripts before runs are merged."""

PASSES = 20
"""Each merges twice: enough for 2 ** 40 iterations."""

BISECTIONS = 40


def is_sortable(told: Ordered) -> bool:
    return len(told.loops) == 1


class SortedKernels:
    """Writes the kernels; `launch` makes one of what is written, at a place of the host's code."""

    def __init__(
        self,
        host: Writer,
        told: Ordered,
        trips: SSAValue,
        buffer: Callable[[Writer, SSAValue, Attribute], SSAValue],
        launch: Callable[[Kernel, SSAValue, str | None], object],
    ) -> None:
        self.host, self.told, self.trips, self.launch = host, told, trips, launch
        self.loop = told.loops[0]
        self.owners, self.places, self.other = (buffer(host, trips, i64) for _ in range(3))
        """Of each iteration its owner; the iterations, sorted and while they are merged."""

    def write(self) -> None:
        host = self.host
        count = blocks(host, [self.trips])
        self.name_owners(count)
        with host.loop(host.index(PASSES)) as k:
            width = host.emit(arith.ShLIOp(host.index(1), host.product(k, host.index(2))))
            several = host.less(width, self.trips)
            some = host.emit(arith.SelectOp(several, count, host.index(0)))
            self.merge(self.places, self.other, width, some)
            # This one may find one run, which it copies.
            self.merge(self.other, self.places, host.sum(width, width), some)
        passes = k.owner.parent_op()
        assert passes is not None
        passes.attributes[device.SORT] = UnitAttr()
        self.run(count)

    def name_owners(self, count: SSAValue) -> None:
        """Every iteration's owner, and the iterations as they come."""
        kernel = Kernel(self.loop.location)
        (i,), inside = point(kernel, [kernel.value(self.trips)])
        with kernel.where(inside):
            kernel.values[self.loop.induction] = i
            for op in self.steps():
                kernel.copy(op)
            owner = number_of(kernel, self.told)
            kernel.store(wide(kernel, owner), kernel.value(self.owners), [i])
            kernel.store(wide(kernel, i), kernel.value(self.places), [i])
        self.launch(kernel, count, None)

    def steps(self) -> list[Operation]:
        steps = steps_of(list(self.told.keys), self.loop)
        return [op for op in self.loop.body.block.ops if op in steps]

    def merge(self, source: SSAValue, target: SSAValue, width: SSAValue, count: SSAValue) -> None:
        """Two runs after the other become one: each of their iterations finds its place."""
        kernel = Kernel(self.loop.location)
        total, width = kernel.value(self.trips), kernel.value(width)
        (p,), inside = point(kernel, [total])
        with kernel.where(inside):
            run = kernel.quotient(p, width)
            second = kernel.rest(run, kernel.index(2))
            own = kernel.product(run, width)
            base = kernel.emit(arith.SubiOp(own, kernel.product(second, width)))
            is_second = kernel.emit(arith.CmpiOp(second, kernel.index(1), "eq"))
            after = kernel.sum(base, width)
            first = kernel.emit(arith.SelectOp(is_second, base, after))
            first = kernel.emit(arith.MinSIOp(first, total))
            end = kernel.emit(arith.MinSIOp(kernel.sum(first, width), total))
            mine = kernel.load(kernel.value(source), [p])
            # Of iterations that meet those of the first run stay before those of the second.
            limit = kernel.sum(self.owner_of(kernel, mine), second)
            found = self.bisect(kernel, source, limit, first, end)
            before = kernel.emit(arith.SubiOp(found, first))
            place = kernel.sum(kernel.sum(base, before), kernel.emit(arith.SubiOp(p, own)))
            kernel.store(mine, kernel.value(target), [place])
        self.launch(kernel, count, None)

    def owner_of(self, kernel: Kernel, iteration: SSAValue) -> SSAValue:
        return narrow(kernel, kernel.load(kernel.value(self.owners), [narrow(kernel, iteration)]))

    def bisect(
        self, kernel: Kernel, source: SSAValue, limit: SSAValue, first: SSAValue, end: SSAValue
    ) -> SSAValue:
        """The first place in a run, or its end, where an owner is not less than the limit."""
        low, high = kernel.cell(IndexType()), kernel.cell(IndexType())
        kernel.store(first, low)
        kernel.store(end, high)
        with kernel.loop(kernel.index(BISECTIONS)):
            a, b = kernel.load(low), kernel.load(high)
            with kernel.where(kernel.less(a, b)):
                middle = kernel.quotient(kernel.sum(a, b), kernel.index(2))
                there = kernel.load(kernel.value(source), [middle])
                below = kernel.less(self.owner_of(kernel, there), limit)
                behind = kernel.sum(middle, kernel.index(1))
                kernel.store(kernel.emit(arith.SelectOp(below, behind, a)), low)
                kernel.store(kernel.emit(arith.SelectOp(below, b, middle)), high)
        return kernel.load(low)

    def run(self, count: SSAValue) -> None:
        """The thread of the first place of a run goes through it."""
        kernel = Kernel(self.loop.location)
        total, one = kernel.value(self.trips), kernel.index(1)
        for cell, role in self.told.cells.items():
            own = kernel.cell(element_of(cell))
            if role.name != "private":
                kernel.store(kernel.value(self.host.load(cell)), own)
            kernel.values[cell] = own
        (p,), inside = point(kernel, [total])
        with kernel.where(inside):
            places = kernel.value(self.places)
            owner = self.owner_of(kernel, kernel.load(places, [p]))
            last = kernel.emit(arith.MaxSIOp(kernel.emit(arith.SubiOp(p, one)), kernel.index(0)))
            before = self.owner_of(kernel, kernel.load(places, [last]))
            begins = kernel.emit(
                arith.OrIOp(
                    kernel.emit(arith.CmpiOp(p, kernel.index(0), "eq")),
                    kernel.emit(arith.CmpiOp(before, owner, "ne")),
                )
            )
            with kernel.where(begins):
                end = self.bisect(kernel, self.places, kernel.sum(owner, one), p, total)
                with kernel.loop(kernel.emit(arith.SubiOp(end, p))) as k:
                    i = narrow(kernel, kernel.load(places, [kernel.sum(p, k)]))
                    kernel.values[self.loop.induction] = i
                    for op in list(self.loop.body.block.ops)[:-1]:
                        kernel.copy(op)
        self.launch(kernel, count, device.IN_ORDER)


def wide(writer: Writer, number: SSAValue) -> SSAValue:
    return writer.emit(arith.IndexCastOp(number, i64))


def narrow(writer: Writer, number: SSAValue) -> SSAValue:
    return writer.emit(arith.IndexCastOp(number, IndexType()))

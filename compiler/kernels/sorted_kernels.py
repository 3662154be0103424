"""A loop whose iterations meet in elements, as kernels: iterations are sorted by what they touch.

`ordered_kernels` has every thread read the subscripts of all iterations. Where there are many, their numbers
are sorted instead, by the owner of what each touches and then by themselves; those of one owner are a run::

    for i in range(n):                places = argsort(k), iterations that meet in their order
        u[k[i]] += v[i]               thread p, where a run begins at p:
                                          for i in places[p:end of the run]: u[k[i]] += v[i]

The order is found once where loops around change nothing that it depends on (`invariant_places`): they are
sorted before these.

So each element sees what the program does to it, in the program's order, in n log(n)^2 steps. Runs of
iterations are merged: a thread finds by bisection how many of the other run are before its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array, device
from .additions_to_elements import steps_of
from .invariant_places import is_element, load_if_there, place_of
from .kernel import Kernel, Writer, blocks, element_of, point
from .ordered_kernels import number_of
from .updates import Ordered, Sharing

FEWEST = 1 << 13
"""Iterations: with fewer, threads have read all subscripts before runs are merged."""

PASSES = 20
"""Each merges twice: enough for 2 ** 40 iterations."""

BISECTIONS = 40


def is_sortable(told: Ordered) -> bool:
    return len(told.loops) == 1


def steps_to_owners(told: Ordered) -> list[Operation]:
    """What computes who the owner of an iteration is."""
    (loop,) = told.loops
    steps = steps_of(list(told.keys), loop)
    return [op for op in loop.body.block.ops if op in steps]


def sorted_before(
    loops: Iterable[array.LoopOp], sharing: Sharing
) -> dict[array.LoopOp, array.LoopOp]:
    """Of loops whose iterations may be sorted the one before which they may be."""
    alias, found = sharing.independence.alias, dict[array.LoopOp, array.LoopOp]()
    for loop in loops:
        told = sharing.of(loop)
        if isinstance(told, Ordered) and is_sortable(told):
            found[loop] = place_of(loop, steps_to_owners(told), alias)
    return found


@dataclass(frozen=True)
class Ways:
    """Where the host's code goes, and what makes memory and launches there."""

    outside: Writer
    """Where iterations are sorted."""
    host: Writer
    buffer: Callable[[Writer, SSAValue, Attribute], SSAValue]
    launch: Callable[[Writer, Kernel, SSAValue, str | None], object]


def run_sorted(ways: Ways, told: Ordered, all_in_all: Callable[[], None], *, guarded: bool) -> None:
    """Few iterations all threads go through (`all_in_all`); many are sorted."""
    out, host, count = ways.outside, ways.host, told.loops[0].count
    assert count is not None
    trips = out.at_least_zero(count)
    few = out.less(trips, out.index(FEWEST))
    many = out.emit(arith.XOrIOp(few, out.all([])))
    some = out.emit(arith.SelectOp(many, trips, out.index(0)))
    kernels = SortedKernels(ways, told, some, guarded=guarded)
    with out.where(many):
        kernels.sort()
    with host.where(few):
        all_in_all()
    with host.where(many):
        kernels.run(host)


class SortedKernels:
    """Writes the kernels."""

    def __init__(self, ways: Ways, told: Ordered, trips: SSAValue, *, guarded: bool) -> None:
        """`guarded`: the program may not come to what is read."""
        self.outside, self.launch = ways.outside, ways.launch
        self.told, self.loop, self.trips, self.guarded = told, told.loops[0], trips, guarded
        self.count = blocks(ways.outside, [trips])
        self.owners, self.places, self.other = (
            ways.buffer(ways.outside, trips, i64) for _ in range(3)
        )
        """Of each iteration its owner; the iterations, sorted and while they are merged."""

    def sort(self) -> None:
        host, count = self.outside, self.count
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

    def name_owners(self, count: SSAValue) -> None:
        """Every iteration's owner, and the iterations as they come."""
        kernel = Kernel(self.loop.location)
        (i,), inside = point(kernel, [kernel.value(self.trips)])
        with kernel.where(inside):
            kernel.values[self.loop.induction] = i
            for op in self.steps():
                if self.guarded and is_element(op):
                    at = [kernel.value(i) for i in op.indices]
                    kernel.values[op.res] = load_if_there(kernel, kernel.value(op.memref), at)
                else:
                    kernel.copy(op)
            owner = number_of(kernel, self.told)
            kernel.store(wide(kernel, owner), kernel.value(self.owners), [i])
            kernel.store(wide(kernel, i), kernel.value(self.places), [i])
        self.launch(self.outside, kernel, count, None)

    def steps(self) -> list[Operation]:
        return steps_to_owners(self.told)

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
        self.launch(self.outside, kernel, count, None)

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

    def run(self, host: Writer) -> None:
        """The thread of the first place of a run goes through it."""
        kernel = Kernel(self.loop.location)
        total, one = kernel.value(self.trips), kernel.index(1)
        for cell, role in self.told.cells.items():
            own = kernel.cell(element_of(cell))
            if role.name != "private":
                kernel.store(kernel.value(host.load(cell)), own)
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
        self.launch(host, kernel, self.count, device.IN_ORDER)


def wide(writer: Writer, number: SSAValue) -> SSAValue:
    return writer.emit(arith.IndexCastOp(number, i64))


def narrow(writer: Writer, number: SSAValue) -> SSAValue:
    return writer.emit(arith.IndexCastOp(number, IndexType()))

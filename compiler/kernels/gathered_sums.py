"""What iterations of a loop nest add to elements, gathered: a block for each element, and no atomics.

The adjoint of a nest adds to what its inner loop reads::

    for i in range(n):                  block j:  s = 0
        for j in range(m):                        for i in range(thread, n, threads):
            w[j] += f(i, j)                           s += f(i, j)
                                                  meet in shared memory; thread 0:  w[j] += s

Why it is the same: the additions may come in any order, and nothing else in the nest touches the array
(`Independent.summed`). Each term is computed from what is there before the nest, so it may be computed before
the rest of the nest runs.

Gathered are additions in a loop right inside of the nest's, whose trips are the same for all its outer
iterations, and whose iterations add to elements of their own, wherever the outer one is. Kept for atomics:
terms that depend on what the nest stores before, terms that another inner loop computes (it would run once
for each element), and variables that the inner loop hands on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects import array, device
from ...dialects.within import every_op
from ..analysis.carried_cells import Role, is_outside, roles
from ..analysis.independence import Addition, Independence, Independent
from ..analysis.made_of import all_made_of
from ..analysis.views import strip_views
from ..rules import Access
from .additions_to_elements import additions_to, make_local, place_of_addition, steps_of
from .changes import changed_values, is_variable
from .kernel import Kernel, Writer, element_of
from .reductions import Term, meet

STANDS = ("read", "private", "kept")
"""What an inner loop may do with variables: each iteration finds them as the outer one left them."""


def gatherable(
    loop: array.LoopOp, told: Independent, one: Addition, independence: Independence
) -> array.LoopOp | None:
    """The loop whose iterations own the elements that are added to; None where the sum is not gathered."""
    inner = owner_of(loop, one)
    if inner is None or not is_plain(loop, inner):
        return None
    subscripts = (one.store.memref, *one.store.indices)
    if not all(is_of(v, loop, inner) for v in subscripts):
        return None
    write = Access(one.store, one.store.memref, "write")
    if independence.dependence.may_meet(write, write, inner):
        return None
    kept = Slice(loop, inner, one)
    changed = changed_values(loop, independence.alias)
    loads = [op for op in every_op(loop) if isinstance(op, memref.LoadOp)]
    needed = any(op.res in changed and kept.has(op) and op is not one.load for op in loads)
    return None if needed or kept.has_loops or not kept.stands(told) else inner


def owner_of(loop: array.LoopOp, one: Addition) -> array.LoopOp | None:
    """The loop right inside, in which the addition is, and no other loop around that."""
    above = one.store.parent_op()
    while isinstance(above, scf.IfOp):
        above = above.parent_op()
    return above if isinstance(above, array.LoopOp) and above.parent is loop.body.block else None


def is_plain(loop: array.LoopOp, inner: array.LoopOp) -> bool:
    """Whether the inner loop has the same trips in all outer iterations."""
    if inner.count is None or inner.condition_block is not None or inner.carried:
        return False
    return is_outside(inner.count, loop)


def is_of(value: SSAValue, loop: array.LoopOp, inner: array.LoopOp) -> bool:
    """Whether a value is of the inner iteration and of what is outside, whatever the outer one is."""

    def sources(v: SSAValue) -> Sequence[SSAValue] | None:
        if is_outside(v, loop) or v is inner.induction:
            return ()
        owner = v.owner
        if isinstance(owner, Block) or owner.regions or isinstance(owner, memref.LoadOp):
            return None
        checked = isinstance(owner, array.IndexOp) and owner.unchecked is None
        scalar = owner.name.startswith("arith.") or isinstance(owner, array.IndexOp | array.ViewOp)
        return owner.operands if scalar and not checked else None

    return all_made_of([value], sources)


class Slice:
    """A copy of a nest that computes one sum, and nothing else."""

    def __init__(self, loop: array.LoopOp, inner: array.LoopOp, one: Addition) -> None:
        self.loop = loop.clone()
        self.copies = dict(zip(every_op(loop), every_op(self.loop), strict=True))
        copied = self.copies[inner]
        assert isinstance(copied, array.LoopOp)
        self.inner = copied
        self.store = self.copies[one.store]
        for op in reversed(list(self.behind())):
            Rewriter.erase_op(op)
        for op in every_op(self.loop):
            if isinstance(op, memref.StoreOp) and op is not self.store and not is_variable(op):
                Rewriter.erase_op(op)
        needed = self.needed()
        for op in reversed(every_op(self.loop)):
            if op not in needed and op.parent is not None:
                Rewriter.erase_op(op)

    def behind(self) -> Iterator[Operation]:
        """What comes after the inner loop."""
        op = self.inner.next_op
        while op is not None and op.next_op is not None:
            yield op
            op = op.next_op

    def addition(self) -> Addition:
        found = additions_to(self.loop, [strip_views(self.store.operands[1])])
        (one,) = (x for x in found if x.store is self.store)
        return one

    def has(self, op: Operation) -> bool:
        """Whether the copy of an op is in the slice."""
        return self.loop.is_ancestor(self.copies[op])

    @property
    def has_loops(self) -> bool:
        loops = (op for op in every_op(self.loop) if isinstance(op, array.LoopOp))
        return any(op is not self.loop and op is not self.inner for op in loops)

    def stands(self, told: Independent) -> bool:
        """Whether each point of the two loops can be visited on its own, as far as variables go."""
        cells = roles(self.loop)
        if any(told.cells[c].name not in (*STANDS, "reset") for c in cells if c in told.cells):
            return False
        return all(role.name in STANDS for role in roles(self.inner).values())

    def needed(self) -> set[Operation]:
        """The ops that the sum is computed by, and those around them."""
        found: set[Operation] = set()
        pending: list[Operation] = [self.store, self.inner]
        while pending:
            op = pending.pop()
            if op in found or not self.loop.is_ancestor(op):
                continue
            found.add(op)
            pending += [v.owner for v in op.operands if isinstance(v.owner, Operation)]
            pending += [e for r in op.regions for b in r.blocks if (e := b.last_op) is not None]
            if (above := op.parent_op()) is not None:
                pending.append(above)
            if isinstance(op, memref.LoadOp):
                uses = (use.operation for use in op.memref.uses)
                pending += [x for x in uses if isinstance(x, memref.StoreOp)]
        return found


class GatheredSum:
    """Writes the kernel of one addition, a block for each iteration of its inner loop."""

    def __init__(
        self,
        kernel: Kernel,
        host: Writer,
        told: Independent,
        nest: tuple[array.LoopOp, array.LoopOp],
        one: Addition,
    ) -> None:
        self.kernel, self.host, self.told = kernel, host, told
        loop, inner = nest
        assert loop.count is not None
        assert inner.count is not None
        self.slice = Slice(loop, inner, one)
        self.blocks = host.at_least_zero(inner.count)
        self.trips = host.at_least_zero(loop.count)
        self.begun = {c: host.load(c) for c, role in told.cells.items() if role.name != "private"}
        """What variables are before the nest."""

    def write(self) -> None:
        kernel, one = self.kernel, self.slice.addition()
        target, indices = place_of_addition(one)
        element = element_of(target)
        mine = kernel.cell(element)
        kernel.store(kernel.identity("add", element), mine)
        for cell in self.told.cells:
            kernel.values[cell] = kernel.cell(element_of(cell))
        which = kernel.emit(device.BlockOp())
        first = kernel.emit(device.ThreadOp())
        steps = [
            op
            for op in every_op(self.slice.inner)
            if op in steps_of([target, *indices], self.slice.loop)
        ]
        local = memref.AllocaOp.get(element, shape=[]).memref
        kernel.values[local] = mine
        make_local(one, local)
        threads = kernel.index(device.THREADS)
        left = kernel.emit(arith.SubiOp(kernel.value(self.trips), first))
        trips = kernel.parts(kernel.at_least_zero(left), device.THREADS)
        with kernel.loop(trips) as k:
            self.point(kernel.sum(first, kernel.product(k, threads)), which)

        def keep(value: SSAValue) -> None:
            kernel.values[self.slice.inner.induction] = which
            for op in steps:
                kernel.copy(op)
            into, at = kernel.value(target), [kernel.value(i) for i in indices]
            kernel.store(kernel.combined("add", kernel.load(into, at), value), into, at)

        meet(kernel, [Term("add", kernel.load(mine), keep)])

    def point(self, outer: SSAValue, inner: SSAValue) -> None:
        """The term of one point of the nest, added to what the thread has."""
        kernel = self.kernel
        kernel.values[self.slice.loop.induction] = outer
        kernel.values[self.slice.inner.induction] = inner
        for cell, role in self.told.cells.items():
            if cell in self.begun:
                kernel.store(self.before(cell, role, outer), kernel.values[cell])
        for op in self.slice.loop.body.block.ops:
            if op is not self.slice.inner and not isinstance(op, array.YieldOp):
                kernel.copy(op)
        for op in self.slice.inner.body.block.ops:
            if not isinstance(op, array.YieldOp):
                kernel.copy(op)

    def before(self, cell: SSAValue, role: Role, outer: SSAValue) -> SSAValue:
        """What a variable is when an outer iteration begins."""
        kernel, begun = self.kernel, self.kernel.value(self.begun[cell])
        if role.value is None:
            return begun
        first = kernel.emit(arith.CmpiOp(outer, kernel.index(0), "eq"))
        return kernel.emit(arith.SelectOp(first, begun, kernel.value(role.value)))

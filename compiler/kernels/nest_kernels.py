"""A loop over elements as a kernel: its iterations are independent, and each is a thread.

Loops right inside of it that are independent as well share the index space (`perfect`). What is left inside
runs in one thread, in its order: a recurrence along each row is a thread a row.

Scalar variables of the program that the loop uses are each thread's own. One that is still read behind the
loop has the value of the last iteration (`Role` says what that is).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ad, array, device
from ..analysis.carried_cells import Role, cell_of
from ..analysis.independence import Independent
from ..rules import accesses, is_whole_array
from ..transforms.raise_loops import is_pure
from .kernel import Kernel, Writer, element_of, point
from .updates import Ordered, Sharing

RUNS = (
    memref.LoadOp, memref.StoreOp, memref.AllocaOp, memref.DimOp, memref.CastOp, scf.IfOp, scf.YieldOp,
    array.ViewOp, array.CollapseOp, array.StrideOp, array.OverlapOp, array.LoopOp, array.YieldOp,
    array.ConditionOp, array.IndexOp, array.CastOp, array.FloorDivOp, array.FloorModOp, ad.MulOp, ad.DivOp,
)  # fmt: skip
"""Ops that a thread runs, besides scalar code."""

CHECKS = (array.IndexOp, array.RaiseIfOp, array.CheckedIntOp)
"""What must not fail in a kernel: `inspect_checks` and `defer_raises` have made the others by then."""

SCALARS = ("arith.", "math.", "special.")


def touches_arrays(loop: array.LoopOp) -> bool:
    """Whether the loop itself reads or writes elements of arrays."""
    return any(
        isinstance(op, memref.LoadOp | memref.StoreOp) and cell_of(op.memref) is None
        for op in loop.walk()
    )


def leaves_something(loop: array.LoopOp, told: Independent | Ordered | None) -> bool:
    """Whether the loop stores to arrays, or adds up their elements."""
    stores = [op.memref for op in loop.walk() if isinstance(op, memref.StoreOp)]
    sums = told is not None and any(r.name == "reduction" for r in told.cells.values())
    return any(cell_of(m) is None for m in stores) or (sums and touches_arrays(loop))


def obstacle(
    loop: array.LoopOp,
    told: Independent | Ordered | None,
    sharing: Sharing,
    unless: tuple[type[Operation], ...] = (),
) -> tuple[str, str] | None:
    """Why a loop over elements is no kernel, and what to do about it; None where it is one.

    `unless`: without ops of these kinds.
    """
    inside = [op for op in loop.walk() if not isinstance(op, unless)]
    if any(isinstance(op, ad.PushOp | ad.PopOp) for op in inside):
        return (
            "how many values the gradient saves in an iteration of this loop is known only when it has run",
            "ask for grad, value_and_grad or pullback, without fastmath, of a `for` loop that stores to "
            "other arrays than it reads (o[i] = y, not x[i] = y): there a device counts before; or compile "
            "the function for the CPU",
        )
    if any(not may_run(op) for op in inside):
        return (
            "this loop does more in each iteration than a thread of a device can",
            "take it apart into loops over elements and operations on whole arrays, or compile the function "
            "for the CPU",
        )
    if told is None:
        return (
            "the iterations of this loop need what others have stored, element by element, and it holds "
            "arrays that one thread alone cannot have",
            "write it with whole arrays (slices), let an outer loop go over independent rows, or compile the "
            "function for the CPU",
        )
    if sharing.needs_atomics(loop, told):
        return (
            "several iterations of this loop add to one element, at subscripts that are not the same for all "
            "that they add to: that needs atomic additions, which deterministic=True forbids",
            "add up in each iteration what belongs to one element, compile without deterministic, or for the "
            "CPU",
        )
    if any(array.is_operation_that_may_raise(op) for op in inside):
        return (
            "this loop checks what it has stored, so one thread would have to run it, and it holds arrays "
            "that one thread alone cannot have",
            "check in a loop of its own, write it with whole arrays (slices), or compile the function for "
            "the CPU",
        )
    if any(role.name == "reduction" and role.checked is not None for role in told.cells.values()):
        return (
            "this loop adds up Python integers, which raise where they do not fit",
            "use an array of integers and its sum, or compile the function for the CPU",
        )
    return None


def may_run(op: Operation) -> bool:
    if isinstance(op, array.AllocOp):
        return array.STACK in op.attributes
    return isinstance(op, (*RUNS, *CHECKS)) or op.name.startswith(SCALARS)


def has_effect(loop: array.LoopOp, told: Independent) -> bool:
    """Whether the loop does anything that is seen behind it."""
    if leaves_something(loop, told) or any(r.name == "reset" for r in told.cells.values()):
        return True
    private = (cell for cell, role in told.cells.items() if role.name == "private")
    return any(is_used_elsewhere(cell, loop) for cell in private)


def perfect(loop: array.LoopOp, atomic: set[SSAValue], sharing: Sharing) -> list[array.LoopOp]:
    """The loop, and those right inside of it whose iterations are threads as well.

    `atomic`: the arrays that threads add to atomically.
    """
    loops = [loop]
    while True:
        ops = list(loops[-1].body.block.ops)[:-1]
        inner = [op for op in ops if isinstance(op, array.LoopOp)]
        rest = [op for op in ops if not isinstance(op, array.LoopOp)]
        if len(inner) != 1 or not all(is_pure(op) for op in rest):
            return loops
        one = inner[0]
        if one.count is None or one.trips.first_use is not None or is_inside(one.count, loop):
            return loops
        found = sharing.independence.of(one)
        if obstacle(one, found, sharing) is not None or found is None:
            return loops
        if any_handed_on(found.cells.values()) or not atomic.issuperset(found.summed):
            return loops
        loops.append(one)


def any_handed_on(roles: Iterable[Role]) -> bool:
    return any(role.name not in ("read", "private") for role in roles)


def is_inside(value: SSAValue, loop: array.LoopOp) -> bool:
    owner = value.owner
    if isinstance(owner, Operation):
        return loop.is_ancestor(owner)
    above = owner.parent_op()
    return above is not None and loop.is_ancestor(above)


def whole_arrays_in(loop: array.LoopOp) -> bool:
    return any(is_whole_array(op) for op in loop.walk())


class NestKernel:
    """Writes the kernel of a nest; the host's code around it goes to `host`."""

    def __init__(
        self,
        kernel: Kernel,
        host: Writer,
        loops: list[array.LoopOp],
        told: Independent,
        buffer: Callable[[Writer, SSAValue, Attribute], SSAValue],
    ) -> None:
        self.kernel, self.host, self.loops, self.told = kernel, host, loops, told
        self.buffer = buffer
        """Makes memory of the device."""
        self.counts = [self.count_of(one) for one in loops]
        """The trips of each loop, outside."""
        self.left: dict[SSAValue, SSAValue] = {}
        """Memory, outside, in which the last iteration leaves a variable."""

    def count_of(self, loop: array.LoopOp) -> SSAValue:
        assert loop.count is not None
        return self.host.at_least_zero(loop.count)

    def write(self) -> None:
        kernel = self.kernel
        extents = [kernel.value(n) for n in self.counts]
        for cell, role in self.told.cells.items():
            self.own_cell(cell, role)
        at, inside = point(kernel, extents)
        with kernel.where(inside):
            for loop, i in zip(self.loops, at, strict=True):
                kernel.values[loop.induction] = i
            for cell, role in self.told.cells.items():
                if role.name == "reset":
                    self.begin_reset(cell, role, at)
            for loop in self.loops:
                for op in loop.body.block.ops:
                    if op not in self.loops and not isinstance(op, array.YieldOp):
                        kernel.copy(op)
            self.leave(at, extents)

    def own_cell(self, cell: SSAValue, role: Role) -> None:
        """A thread's own variable, which begins as the program's is."""
        kernel, element = self.kernel, element_of(cell)
        own = kernel.cell(element)
        own.name_hint = cell.name_hint
        if role.kind is not None:
            kernel.store(kernel.identity(role.kind, element), own)
        elif role.name != "private":
            kernel.store(kernel.value(self.host.load(cell)), own)
        kernel.values[cell] = own

    def begin_reset(self, cell: SSAValue, role: Role, at: list[SSAValue]) -> None:
        """All iterations but the first begin with what each of them leaves."""
        kernel, zero = self.kernel, self.kernel.index(0)
        assert role.value is not None
        first = kernel.all([kernel.emit(arith.CmpiOp(i, zero, "eq")) for i in at])
        own = kernel.values[cell]
        begun = arith.SelectOp(first, kernel.load(own), kernel.value(role.value))
        kernel.store(kernel.emit(begun), own)

    def leave(self, at: list[SSAValue], extents: list[SSAValue]) -> None:
        """The last iteration leaves the variables that are read afterwards."""
        kernel = self.kernel
        private = [c for c, role in self.told.cells.items() if role.name == "private"]
        kept = [c for c in private if is_used_elsewhere(c, self.loops[0])]
        if not kept:
            return
        one = kernel.index(1)
        pairs = zip(at, extents, strict=True)
        last = kernel.all(
            [kernel.emit(arith.CmpiOp(kernel.sum(i, one), n, "eq")) for i, n in pairs]
        )
        with kernel.where(last):
            for cell in kept:
                buffer = self.buffer(self.host, self.host.index(1), element_of(cell))
                self.left[cell] = buffer
                value = kernel.load(kernel.values[cell])
                kernel.store(value, kernel.value(buffer), [kernel.index(0)])

    def take_over(self) -> None:
        """What variables are on the host after the launch; those that add up are `reductions`."""
        host = self.host
        resets = [(c, r) for c, r in self.told.cells.items() if r.name == "reset"]
        if not self.left and not resets:
            return
        zero = host.index(0)
        ran = host.all([host.less(zero, n) for n in self.counts])
        with host.where(ran):
            for cell, buffer in self.left.items():
                host.store(host.emit(device.FetchOp(buffer, [zero])), cell)
            for cell, role in resets:
                assert role.value is not None
                host.store(role.value, cell)


def is_used_elsewhere(cell: SSAValue, loop: array.LoopOp) -> bool:
    """Whether a variable is read outside of a loop."""
    return any(
        not loop.is_ancestor(use.operation) and not is_store_to(use.operation, cell)
        for use in cell.uses
    )


def is_store_to(op: Operation, cell: SSAValue) -> bool:
    return isinstance(op, memref.StoreOp) and op.memref is cell


def arrays_of(loop: array.LoopOp) -> list[SSAValue]:
    """The arrays from outside that a loop touches, not its variables."""
    touched = dict.fromkeys(
        a.memref for op in loop.walk() for a in accesses(op) if cell_of(a.memref) is None
    )
    return [m for m in touched if isinstance(m.type, MemRefType)]

"""Let the device compute what a loop makes of its memory, so that the host need not wait for scalars.

`dt = 0.5 / np.abs(u).max()` and `u[0] = u[1]` read what kernels have left. On the host that is a fetch, for
which it waits in each iteration, and no graph can replay such a loop (`analysis.replays`). What is computed
of fetched numbers, and the variables that they are stored to, are the device's instead (`device_numbers`):
kernels of one thread compute them, and kernels that were given such a number load it.

Before::

    func.func @f(%u : memref<?xf64, 1 : i64>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %i to %n do {
        device.launch @f_0 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
        %x = device.fetch %u[%c1] : memref<?xf64, 1 : i64> -> f64
        device.put %x, %u[%c0] : f64, memref<?xf64, 1 : i64>
        array.yield
      }
      func.return
    }
    func.func private @f_0(%u : memref<?xf64, 1 : i64>)
        attributes {kernel, overlaps = [], read_only = array<i64>} {
      func.return
    }

After::

    !all = memref<?xf64, 1 : i64>
    func.func @f(%u : !all, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 1 : index
      %1 = arith.constant 0 : index
      %trips = array.loop %i to %n do {
        device.launch @f_0 blocks(%c1) (%u : !all)
        device.launch @f_1 blocks(%0) (%u : !all)
        array.yield
      }
      func.return
    }
    func.func private @f_0(%u : !all) attributes {kernel, overlaps = [], read_only = array<i64>} {
      func.return
    }
    func.func private @f_1(%u : !all) attributes {kernel, overlaps = [], read_only = array<i64>} {
      %0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c0 = arith.constant 0 : index
      %1 = device.thread
      %2 = arith.cmpi eq, %1, %0 : index
      scf.if %2 {
        %x = memref.load %u[%c1] : !all
        memref.store %x, %u[%c0] : !all
      }
      func.return
    }

The host goes on to fetch what it has to know: numbers that decide what it does (a branch with a launch,
blocks, the trips of an inner loop, an exception, whether the loop ends), and those of which it computes
functions that the device may round otherwise. Variables that have other names stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array, device
from ...dialects.within import every_op
from ..analysis.alias import enclosing_loops
from ..analysis.carried_cells import cell_of, is_outside
from ..analysis.replays import COMPUTED, beside_exceptions
from .device_numbers import DeviceNumbers, is_number, may_be_written
from .kernel import Writer, element_of
from .saved_scalars import arrays_of_host, loops_touching, move


class ScalarsOnDevice(ModulePass):
    """Scalars that loops compute of what kernels leave are computed by kernels."""

    name = "scalars-on-device"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, func.FuncOp) and not device.is_kernel(f)]
        for function in functions:
            drop_dead_views(function)
        found = movable(arrays_of_host(functions))
        results = [r for f in functions for inner in every_op(f) for r in inner.results]
        for root in filter(found.__contains__, results):
            move(root)
        for function in functions:
            for loop in reversed(
                loops_of(function)
            ):  # inner loops first: few fetches are left of them
                if (moving := scalars_of(loop)) is not None:
                    Moving(op, function, loop, moving).write()


def loops_of(function: func.FuncOp) -> list[array.LoopOp]:
    return [op for op in every_op(function) if isinstance(op, array.LoopOp)]


def drop_dead_views(function: func.FuncOp) -> None:
    """What outlining has left of them would be other names of variables."""
    for op in reversed(every_op(function)):
        if isinstance(op, COMPUTED) and all(r.first_use is None for r in op.results):
            Rewriter.erase_op(op)


# What is found.


def movable(groups: list[set[SSAValue]]) -> set[SSAValue]:
    """The host's arrays that are to be the device's, of those that each are in one memory."""
    while True:
        found = holding(groups)
        refused = [
            loop
            for loop in {loop for root in found for loop in loops_touching(root)}
            if scalars_of(loop, found) is None
        ]
        if not refused:
            return found
        groups = [
            group
            for group in groups
            if not any(loop in refused for root in group for loop in loops_touching(root))
        ]


def holding(groups: list[set[SSAValue]]) -> set[SSAValue]:
    """The arrays that loops store to what the device may compute of what they fetch, and of each other."""
    found: set[SSAValue] = set()
    waiting = list(groups)
    while True:
        more = [group for group in waiting if any(is_filled(root, found) for root in group)]
        if not more:
            return found
        waiting = [group for group in waiting if group not in more]
        found.update(*more)


def is_filled(root: SSAValue, found: set[SSAValue]) -> bool:
    stores = [use.operation for use in root.uses if isinstance(use.operation, memref.StoreOp)]
    for loop in loops_touching(root):
        fetched = [op.result for op in fetches_in(loop)]
        if moving_in(loop, fetched, found):
            moving = moving_in(loop, fetched, found, cells_of(loop))
            if any(op.value in moving for op in stores):
                return True
    return False


def scalars_of(loop: array.LoopOp, held: Collection[SSAValue] = ()) -> set[SSAValue] | None:
    """What the device is to compute of a loop; None where the loop stays as it is.

    All variables that the loop stores to, if that may be: the host has nothing to do then, and a graph may
    replay the loop. Otherwise only those that hold what is fetched, but for what the host has to know.
    `held`: arrays of the host that are going to be the device's.
    """
    if not any(isinstance(op, device.LaunchOp) for op in every_op(loop)):
        return None
    fetched = {op.result for op in fetches_in(loop)}
    if not moving_in(loop, fetched, held):
        return None
    everything = moving_in(loop, fetched, held, cells_of(loop))
    if not kept_by(loop, everything, held):
        return everything
    while moving := moving_in(loop, fetched, held):
        known = fetched & behind(loop, kept_by(loop, moving, held), moving)
        if not known:
            return None if kept_by(loop, moving, held) else moving
        fetched -= known
    return None


def fetches_in(loop: array.LoopOp) -> list[device.FetchOp]:
    """Those of the body."""
    inside = [op for op in beside_exceptions(loop) if isinstance(op, device.FetchOp)]
    return [op for op in inside if loop.body.is_ancestor(op)]


def cells_of(loop: array.LoopOp) -> set[SSAValue]:
    """The variables that a loop stores to."""
    stored = {op.memref for op in beside_exceptions(loop) if isinstance(op, memref.StoreOp)}
    return {m for m in stored if cell_of(m) is m}


def moving_in(
    loop: array.LoopOp,
    fetched: Iterable[SSAValue],
    held: Collection[SSAValue] = (),
    cells: Iterable[SSAValue] = (),
) -> set[SSAValue]:
    """What is `fetched` in the loop or in `cells`, computed of that, and the variables that hold it."""
    inside = beside_exceptions(loop)
    touching = [op for op in inside if isinstance(op, memref.LoadOp | memref.StoreOp)]
    moving: set[SSAValue] = {op.memref for op in touching if op.memref in held}
    moving.update(fetched)
    moving.update(cells)
    size = -1
    while len(moving) > size:
        size = len(moving)
        for op in inside:
            if isinstance(op, memref.StoreOp) and op.value in moving:
                moving.add(op.memref)
            elif isinstance(op, scf.IfOp) and is_number(op, moving):
                stored = (o.memref for o in every_op(op) if isinstance(o, memref.StoreOp))
                moving.update(r for o in every_op(op) for r in o.results)
                moving.update(stored)
            elif is_number(op, moving) or not moving.isdisjoint(op.operands):
                moving.update(op.results)
    return moving


def kept_by(
    loop: array.LoopOp, moving: set[SSAValue], held: Collection[SSAValue]
) -> list[Operation]:
    """The ops that are the host's, though they depend on what moves."""
    condition = [] if loop.condition_block is None else list(loop.condition_block.ops)
    found = [op for op in condition if not is_apart(op, moving)]
    return found + [op for op in loop.body.block.ops if not may_be_there(op, moving, held)]


def is_apart(op: Operation, moving: set[SSAValue]) -> bool:
    return all(moving.isdisjoint((*o.operands, *o.results)) for o in every_op(op))


def behind(loop: array.LoopOp, ops: Iterable[Operation], moving: set[SSAValue]) -> set[SSAValue]:
    """What moves that ops use, and what that is computed of."""
    inner = [o for op in ops for o in every_op(op)]
    found = {v for o in inner for v in (*o.operands, *o.results) if v in moving}
    size = -1
    while len(found) > size:
        size = len(found)
        for op in beside_exceptions(loop):
            if isinstance(op, memref.StoreOp) and op.memref in found:
                found.add(op.value)
                found.update(o.cond for o in branches_around(op, loop))
            elif not found.isdisjoint(op.results):
                found.update(v for o in every_op(op) for v in o.operands)
        found &= moving
    return found


def branches_around(op: Operation, loop: array.LoopOp) -> list[scf.IfOp]:
    found: list[scf.IfOp] = []
    above = op.parent_op()
    while above is not None and above is not loop:
        if isinstance(above, scf.IfOp):
            found.append(above)
        above = above.parent_op()
    return found


def may_be_there(op: Operation, moving: set[SSAValue], held: Collection[SSAValue]) -> bool:
    if is_number(op, moving):
        return all(may_be_number(inner, moving, held) for inner in every_op(op))
    if is_apart(op, moving):
        return True  # the host's, as before
    if isinstance(op, memref.AllocaOp):
        return is_variable(op.memref)
    if isinstance(op, device.LaunchOp):
        return op.blocks not in moving and device.PRODUCT not in op.attributes
    return isinstance(op, COMPUTED)


def may_be_number(op: Operation, moving: set[SSAValue], held: Collection[SSAValue]) -> bool:
    if isinstance(op, memref.LoadOp | memref.StoreOp):
        return op.memref in held or is_variable(op.memref)
    if isinstance(op, array.CheckedAddOp | array.CheckedSubOp | array.RaiseIfOp):
        return False
    if isinstance(op, array.IndexOp) and array.is_operation_that_may_raise(op):
        return False
    return may_be_written(op, moving)


def is_variable(variable: SSAValue) -> bool:
    """Whether this is a variable that has no other name."""
    if cell_of(variable) is not variable:
        return False
    return all(isinstance(use.operation, memref.LoadOp | memref.StoreOp) for use in variable.uses)


class Moving:
    """Writes one loop anew."""

    def __init__(
        self, module: ModuleOp, function: func.FuncOp, loop: array.LoopOp, moving: set[SSAValue]
    ) -> None:
        self.module, self.function, self.loop, self.moving = module, function, loop, moving
        allocas = [op for op in every_op(function) if isinstance(op, memref.AllocaOp)]
        self.variables = [op.memref for op in allocas if op.memref in moving]

    def write(self) -> None:
        loop, before = self.loop, self.loop.body.block
        host = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(loop)), loop.location)
        one, zero = host.index(1), host.index(0)
        there = DeviceNumbers(
            self.module, self.function, host, self.moving, one, self.outside(), checked=True
        )
        used: list[SSAValue] = []
        for variable in self.variables:
            slot = there.reserve(variable, element_of(variable))
            if self.is_used_outside(variable):
                used.append(variable)
                host.add(device.PutOp(host.load(variable), slot, [zero]))
        there.reserve_for(before)
        after = Block(arg_types=[a.type for a in before.args])
        for old, new in zip(before.args, after.args, strict=True):
            new.name_hint = old.name_hint
            there.copies[old] = new
        with host.within(after):
            for op in before.ops:
                if isinstance(op, array.YieldOp):
                    there.flush()
                if not isinstance(op, memref.AllocaOp) or op.memref not in self.moving:
                    there.write(op)
        loop.body.detach_block(before)
        loop.body.add_block(after)
        self.fetch_behind(there, used)
        before.erase(safe_erase=False)
        there.settle()

    def fetch_behind(self, there: DeviceNumbers, used: list[SSAValue]) -> None:
        loop = self.loop
        assert loop.next_op is not None
        behind = InsertPoint.before(loop.next_op)
        host = Writer(lambda new: Rewriter.insert_op(new, behind), loop.location)
        for variable in used:
            if any(isinstance(use.operation, memref.LoadOp) for use in variable.uses):
                found = host.emit(device.FetchOp(there.slots[variable], [host.index(0)]))
                host.store(found, variable)

    def outside(self) -> Writer:
        """Writes where memory of one number is allocated once: before all loops."""
        (first, *_) = (*enclosing_loops(self.loop), self.loop)
        return Writer(
            lambda new: Rewriter.insert_op(new, InsertPoint.before(first)), first.location
        )

    def is_used_outside(self, variable: SSAValue) -> bool:
        """Whether what is in a variable comes from before the loop, or is read behind it."""
        if not is_outside(variable, self.loop):
            return False
        uses = [use.operation for use in variable.uses]
        loads = [op for op in uses if isinstance(op, memref.LoadOp)]
        if not all(self.loop.is_ancestor(op) for op in loads):
            return True
        first = next(op for op in self.loop.body.block.ops if touches(op, variable))
        return not isinstance(first, memref.StoreOp)


def touches(op: Operation, variable: SSAValue) -> bool:
    kinds = memref.LoadOp | memref.StoreOp
    return any(isinstance(o, kinds) and variable in o.operands for o in every_op(op))

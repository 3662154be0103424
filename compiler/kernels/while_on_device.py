"""Let the device decide whether a `while` goes on, so that the whole loop is one graph.

A condition that reads what kernels have computed costs the host a wait in each iteration: it fetches a number
and compares. NVIDIA's driver has graphs with a body that runs as long as a number of the device is not 0
(*conditional nodes*, CUDA 12.4). One more kernel computes the condition and leaves it in memory; the runtime
hands it on to the graph. Which of the two ways is gone the runtime says (`device.has_conditions`).

The steps between `begin` and `end` are captured, not run: first what decides on the first iteration, then the
body, and what decides on the next one.

Before::

    func.func @f(%u : memref<?xf64, 1 : i64>, %s : memref<1xf64, 1 : i64>, %x : f64) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %i while {
      ^bb0(%j : index):
        device.launch @f_0 blocks(%c1) (%u, %s : memref<?xf64, 1 : i64>, memref<1xf64, 1 : i64>)
        %y = device.fetch %s[%c0] : memref<1xf64, 1 : i64> -> f64
        %more = arith.cmpf ogt, %y, %x : f64
        array.condition %more
      } do {
        device.launch @f_1 blocks(%c1) (%u : memref<?xf64, 1 : i64>)
        array.yield
      }
      func.return
    }
    func.func private @f_0(%u : memref<?xf64, 1 : i64>, %s : memref<1xf64, 1 : i64>)
        attributes {kernel, overlaps = [], read_only = array<i64>} {
      func.return
    }
    func.func private @f_1(%u : memref<?xf64, 1 : i64>)
        attributes {kernel, overlaps = [], read_only = array<i64>} {
      func.return
    }

After::

    !one = memref<1xf64, 1 : i64>
    !all = memref<?xf64, 1 : i64>
    !flag = memref<1xi64, 1 : i64>
    func.func @f(%u : !all, %s : !one, %x : f64) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %able = device.has_conditions
      scf.if %able {
        %0 = arith.constant 1 : index
        %1 = arith.constant 0 : index
        %flag = array.alloc(%0) : !flag
        device.while_step "begin" %flag : !flag
        device.launch @f_0 blocks(%c1) (%u, %s : !all, !one)
        device.launch @f_2 blocks(%0) (%s, %x, %flag : !one, f64, !flag)
        device.while_step "body" %flag : !flag
        device.launch @f_1 blocks(%c1) (%u : !all)
        device.launch @f_0 blocks(%c1) (%u, %s : !all, !one)
        device.launch @f_2 blocks(%0) (%s, %x, %flag : !one, f64, !flag)
        device.while_step "end" %flag : !flag
      } else {
        %trips = array.loop %i while {
        ^bb0(%j : index):
          device.launch @f_0 blocks(%c1) (%u, %s : !all, !one)
          %y = device.fetch %s[%c0] : !one -> f64
          %more = arith.cmpf ogt, %y, %x : f64
          array.condition %more
        } do {
          device.launch @f_1 blocks(%c1) (%u : !all)
          array.yield
        }
      }
      func.return
    }
    func.func private @f_0(%u : !all, %s : !one)
        attributes {kernel, overlaps = [], read_only = array<i64>} {
      func.return
    }
    func.func private @f_1(%u : !all)
        attributes {kernel, overlaps = [], read_only = array<i64>} {
      func.return
    }
    func.func private @f_2(%s : !one, %x : f64, %flag : !flag)
        attributes {kernel, overlaps = [], read_only = array<i64: 0>} {
      %0 = arith.constant 0 : index
      %c0 = arith.constant 0 : index
      %1 = device.thread
      %2 = arith.cmpi eq, %1, %0 : index
      scf.if %2 {
        %y = memref.load %s[%c0] : !one
        %more = arith.cmpf ogt, %y, %x : f64
        %3 = arith.extui %more : i1 to i64
        memref.store %3, %flag[%0] : !flag
      }
      func.return
    }

Numbers that iterations hand to the next are the device's meanwhile (`device_numbers`): variables, the loop's
counter, what is fetched; afterwards the host fetches those that it needs. Kept are loops with arrays that
take turns, that save, that check something else in each iteration, in which a number decides what is launched
(a branch, blocks, an inner loop), and numbers that the device may round otherwise.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array, device
from ...dialects.within import every_op
from ..analysis.carried_cells import cell_of, is_outside
from ..analysis.replays import COMPUTED, may_be_replayed
from .count_on_device import on_device
from .device_numbers import DeviceNumbers, is_fine, is_number, may_be_written
from .kernel import Writer, element_of

FITS = 1 << 61
"""Variables that begin below count for longer than anyone waits, by `STEP` at most."""
STEP = 1024


class WhileOnDevice(ModulePass):
    """Conditions that read what kernels have computed are computed by a kernel."""

    name = "while-on-device"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        for function in functions:
            if not device.is_kernel(function):
                loops = [one for one in every_op(function) if isinstance(one, array.LoopOp)]
                for loop in loops:
                    moving = moving_in(loop)
                    if is_decided_there(loop, moving):
                        Deciding(op, function, loop, moving).write()


# What is found.


def blocks_of(loop: array.LoopOp) -> list[Block]:
    assert loop.condition_block is not None
    return [loop.condition_block, loop.body.block]


def moving_in(loop: array.LoopOp) -> set[SSAValue]:
    """What differs between iterations: numbers, views by them, and the variables that are stored to."""
    if loop.condition_block is None:
        return set()
    inside = every_op(loop)[1:]
    moving: set[SSAValue] = {loop.induction, *loop.condition_block.args}
    moving.update(op.memref for op in inside if isinstance(op, memref.StoreOp))
    moving.update(op.result for op in inside if isinstance(op, device.FetchOp))
    size = 0
    while len(moving) > size:
        size = len(moving)
        for op in inside:
            if isinstance(op, scf.IfOp) and is_number(op, moving):
                moving.update(r for inner in every_op(op) for r in inner.results)
            elif is_number(op, moving) or not moving.isdisjoint(op.operands):
                moving.update(op.results)
    return moving


def is_decided_there(loop: array.LoopOp, moving: set[SSAValue]) -> bool:
    """Whether what the loop does, and whether it goes on, is the device's alone."""
    if loop.condition_block is None or loop.count is not None or loop.carried:
        return False
    ops = [op for block in blocks_of(loop) for op in block.ops]
    if not all(may_be_there(op, loop, moving) for op in ops):
        return False
    launches = any(
        isinstance(o, device.LaunchOp) for op in loop.body.block.ops for o in every_op(op)
    )
    fetches = any(isinstance(op, device.FetchOp) for op in every_op(loop))
    return launches and fetches


def may_be_there(op: Operation, loop: array.LoopOp, moving: set[SSAValue]) -> bool:
    """Whether an op is captured as it is, or the device's."""
    if isinstance(op, array.ConditionOp | array.YieldOp):
        return True
    if is_number(op, moving):
        return all(may_be_number(inner, loop, moving) for inner in every_op(op))
    if isinstance(op, array.AllocOp):
        return all(is_outside(v, loop) for v in op.operands)
    if raises_late(op, loop):
        return False
    if moving.isdisjoint(op.operands):
        return all(is_still(inner, loop, moving) for inner in every_op(op))
    if isinstance(op, device.LaunchOp):
        return op.blocks not in moving and device.PRODUCT not in op.attributes
    return isinstance(op, COMPUTED)


def is_still(op: Operation, loop: array.LoopOp, moving: set[SSAValue]) -> bool:
    """Whether an op does the same in all iterations."""
    if not moving.isdisjoint(op.operands) or raises_late(op, loop):
        return False
    if isinstance(op, memref.LoadOp):
        return cell_of(op.memref) is op.memref
    return isinstance(op, scf.IfOp | scf.YieldOp) or may_be_replayed(op)


def may_be_number(op: Operation, loop: array.LoopOp, moving: set[SSAValue]) -> bool:
    if isinstance(op, memref.LoadOp | memref.StoreOp):
        return is_variable(op.memref, loop)
    if isinstance(op, array.CheckedAddOp | array.CheckedSubOp):
        return counts(op, loop)
    if raises_late(op, loop) or isinstance(op, array.RaiseIfOp):
        return False
    return may_be_written(op, moving)


def is_variable(variable: SSAValue, loop: array.LoopOp) -> bool:
    """Whether the loop stores to a variable of its own name alone."""
    if cell_of(variable) is not variable or not is_outside(variable, loop):
        return False
    views = [use.operation for use in variable.uses]
    views = [op for op in views if not isinstance(op, memref.LoadOp | memref.StoreOp)]
    return not any(result.first_use is not None for op in views for result in op.results)


def counts(op: array.CheckedAddOp | array.CheckedSubOp, loop: array.LoopOp) -> bool:
    """Whether an op counts in a variable that does nothing else."""
    step = array.constant_value(op.rhs)
    load = op.lhs.owner
    if step is None or abs(step) > STEP or not isinstance(load, memref.LoadOp):
        return False
    uses = [use.operation for use in load.memref.uses if loop.is_ancestor(use.operation)]
    stored = [use.value for use in uses if isinstance(use, memref.StoreOp)]
    return stored == [op.result]


def counted_in(loop: array.LoopOp) -> list[SSAValue]:
    """The variables that count."""
    found: list[SSAValue] = []
    for op in every_op(loop):
        if isinstance(op, array.CheckedAddOp | array.CheckedSubOp):
            load = op.lhs.owner
            if isinstance(load, memref.LoadOp) and counts(op, loop):
                found.append(load.memref)
    return found


def raises_late(op: Operation, loop: array.LoopOp) -> bool:
    """Whether an op may raise for what is computed in the loop."""
    if not array.is_operation_that_may_raise(op) or isinstance(op, array.LoopOp | scf.IfOp):
        return False
    if isinstance(op, array.RaiseIfOp):
        return not is_outside(op.condition, loop)
    return not isinstance(op, array.IndexOp) or not all(is_outside(v, loop) for v in op.operands)


class Deciding:
    """Writes the two versions of one loop."""

    def __init__(
        self, module: ModuleOp, function: func.FuncOp, loop: array.LoopOp, moving: set[SSAValue]
    ) -> None:
        self.module, self.function, self.loop, self.moving = module, function, loop, moving
        inside = [op for op in every_op(loop) if isinstance(op, memref.StoreOp)]
        self.variables = list(dict.fromkeys(op.memref for op in inside))
        self.tells_trips = loop.trips.first_use is not None
        self.counts = any(
            v.first_use is not None for v in (loop.trips, loop.induction, *blocks_of(loop)[0].args)
        )

    def write(self) -> None:
        loop = self.loop
        host = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(loop)), loop.location)
        able = host.emit(device.HasConditionsOp())
        able.name_hint = "able"
        for fine in self.conditions(host):
            able = host.emit(arith.AndIOp(able, fine))
        there, here = Block(), Block()
        with host.within(there):
            host.add(scf.YieldOp(*self.steps(host)))
        with host.within(here):
            host.put(own := loop.clone())
            host.add(scf.YieldOp(*([own.trips] if self.tells_trips else [])))
        types = [IndexType()] if self.tells_trips else []
        choice = scf.IfOp(able, types, Region(there), Region(here))
        host.add(choice)
        for result in choice.results:
            result.name_hint = loop.trips.name_hint
            loop.trips.replace_all_uses_with(result)
        Rewriter.erase_op(loop)
        self.there.settle()

    def conditions(self, host: Writer) -> list[SSAValue]:
        """What holds where nothing raises; the loop as it is does so."""
        found: list[SSAValue] = []
        for op in every_op(self.loop):
            if isinstance(op, array.RaiseIfOp) or (
                isinstance(op, array.IndexOp) and array.is_operation_that_may_raise(op)
            ):
                found.append(is_fine(op, host))
        for variable in dict.fromkeys(counted_in(self.loop)):
            begun, most = host.load(variable), host.index(FITS)
            found += [host.less(begun, most), host.less(host.index(-FITS), begun)]
        return found

    def steps(self, host: Writer) -> list[SSAValue]:
        """The loop that the device ends; how often it has run, if anyone asks."""
        condition, body = blocks_of(self.loop)
        one, zero = host.index(1), host.index(0)
        flag = on_device(host.emit(array.AllocOp([one], i64)))
        flag.name_hint = "flag"
        there = DeviceNumbers(self.module, self.function, host, self.moving, one, host, flag=flag)
        self.there = there
        counters = (*condition.args, self.loop.induction)
        for variable in self.variables:
            slot = there.reserve(variable, element_of(variable))
            if not self.is_first_stored(variable):
                host.add(device.PutOp(host.load(variable), slot, [zero]))
        if self.counts:
            slot = there.reserve(counters[0], IndexType())
            there.slots |= dict.fromkeys(counters, slot)
            host.add(device.PutOp(zero, slot, [zero]))
        for block in (condition, body):
            there.reserve_for(block)
            for op in block.ops:
                if isinstance(op, array.AllocOp):
                    host.put(op.clone(there.copies))
        host.add(device.WhileStepOp("begin", flag))
        self.run(there, condition)
        there.flush()
        host.add(device.WhileStepOp("body", flag))
        self.run(there, body)
        if self.counts:
            there.pending.append(counters[0])
        self.run(there, condition)
        there.flush()
        host.add(device.WhileStepOp("end", flag))
        for variable in self.variables:
            if self.is_read_behind(variable):
                host.store(host.emit(device.FetchOp(there.slots[variable], [zero])), variable)
        if not self.tells_trips:
            return []
        return [host.emit(device.FetchOp(there.slots[counters[0]], [zero]))]

    def run(self, there: DeviceNumbers, block: Block) -> None:
        for op in block.ops:
            if not isinstance(op, array.YieldOp | array.RaiseIfOp | array.AllocOp):
                there.write(op)

    def is_first_stored(self, variable: SSAValue) -> bool:
        """Whether nothing reads what is in a variable before the loop."""
        for block in blocks_of(self.loop):
            for op in block.ops:
                touching = [o for o in every_op(op) if variable in o.operands]
                if touching:
                    stored = isinstance(op, memref.StoreOp)
                    runs = block is blocks_of(self.loop)[0] or not self.is_read_behind(variable)
                    return stored and runs
        return False

    def is_read_behind(self, variable: SSAValue) -> bool:
        return any(
            isinstance(use.operation, memref.LoadOp) and not self.loop.is_ancestor(use.operation)
            for use in variable.uses
        )

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

Kept: loops with a counter, with variables that an iteration hands to the next, with arrays that take turns,
with branches, that save, or that check something else in each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array, device
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import cell_of, is_outside
from ..analysis.effects import mark_overlaps, sharing
from ..analysis.replays import is_scalar, may_be_replayed
from ..rules import accesses
from .count_on_device import on_device
from .kernel import Kernel, Writer, describe, element_of

DECIDING = (
    device.LaunchOp, device.FetchOp, array.AllocOp, array.ViewOp, array.IndexOp, array.RaiseIfOp,
    memref.DimOp,
)  # fmt: skip
"""What a condition consists of, beside numbers and variables of its own."""


class WhileOnDevice(ModulePass):
    """Conditions that read what kernels have computed are computed by a kernel."""

    name = "while-on-device"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        for function in functions:
            if not device.is_kernel(function):
                loops = [one for one in every_op(function) if isinstance(one, array.LoopOp)]
                for loop in [one for one in loops if is_decided_there(one)]:
                    Deciding(op, function, loop).write()


def is_decided_there(loop: array.LoopOp) -> bool:
    """Whether what the loop does, and whether it goes on, is the device's alone."""
    condition = loop.condition_block
    if condition is None or loop.count is not None or loop.carried:
        return False
    if any(v.first_use is not None for v in (loop.trips, loop.induction, *condition.args)):
        return False
    body = [op for op in every_op(loop) if not is_of(op, condition)][1:]
    deciding = [op for op in condition.ops if not isinstance(op, array.ConditionOp)]
    if not all(may_be_replayed(op) and not raises_late(op, loop) for op in body):
        return False
    if not all(may_decide(op, loop) and not raises_late(op, loop) for op in deciding):
        return False
    if not any(isinstance(op, device.LaunchOp) for op in body):
        return False
    return fetches_last(deciding)


def is_of(op: Operation, block: Block) -> bool:
    parent = op.parent
    return parent is block


def raises_late(op: Operation, loop: array.LoopOp) -> bool:
    """Whether an op may raise for what is computed in the loop."""
    if not array.is_operation_that_may_raise(op):
        return False
    if isinstance(op, array.RaiseIfOp):
        return not is_outside(op.condition, loop)
    return not isinstance(op, array.IndexOp) or not all(is_outside(v, loop) for v in op.operands)


def may_decide(op: Operation, loop: array.LoopOp) -> bool:
    if isinstance(op, array.AllocOp):
        return all(is_outside(v, loop) for v in op.operands)
    if isinstance(op, memref.LoadOp | memref.StoreOp):
        return is_own(op.memref, loop)
    return isinstance(op, DECIDING) or is_scalar(op)


def is_own(variable: SSAValue, loop: array.LoopOp) -> bool:
    """Whether the condition alone has to do with a variable, and stores to it first."""
    cell, condition = cell_of(variable), loop.condition_block
    if cell is None or cell is not variable:
        return False
    users = [use.operation for use in cell.uses]
    touching = [op for op in users if isinstance(op, memref.LoadOp | memref.StoreOp)]
    if not all(op.parent is condition for op in touching):
        return False
    views = [op for op in users if op not in touching]
    if any(result.first_use is not None for op in views for result in op.results):
        return False
    assert condition is not None
    first = next(op for op in condition.ops if op in touching)
    return isinstance(first, memref.StoreOp)


def fetches_last(deciding: Sequence[Operation]) -> bool:
    """Whether a number is fetched, and none that a kernel writes again, or is given as a number."""
    sources: set[SSAValue] = set()
    moving: set[SSAValue] = set()
    for op in deciding:
        if isinstance(op, device.FetchOp):
            sources.add(op.source)
            moving.add(op.result)
        elif isinstance(op, memref.StoreOp):
            moving.add(op.memref)
        elif isinstance(op, device.LaunchOp):
            if not (sources | moving).isdisjoint(op.operands):
                return False
        elif not moving.isdisjoint(op.operands):
            if not (is_scalar(op) or isinstance(op, memref.LoadOp)):
                return False
            moving.update(op.results)
    return bool(sources)


def put_unchecked(host: Writer, op: Operation) -> None:
    """Subscripts were looked at before."""
    host.put(op)
    for index in every_op(op):
        if isinstance(index, array.IndexOp):
            index.properties["unchecked"] = UnitAttr()


def is_fine(op: Operation, host: Writer) -> SSAValue:
    """Whether a check does not fail."""
    if isinstance(op, array.RaiseIfOp):
        no = host.emit(arith.ConstantOp(IntegerAttr(0, i1)))
        return host.emit(arith.CmpiOp(op.condition, no, "eq"))
    assert isinstance(op, array.IndexOp)
    least = host.emit(arith.SubiOp(host.index(0), op.extent))
    above = host.emit(arith.CmpiOp(least, op.index, "sle"))
    return host.emit(arith.AndIOp(above, host.less(op.index, op.extent)))


class Deciding:
    """Writes the two versions of one loop."""

    def __init__(self, module: ModuleOp, function: func.FuncOp, loop: array.LoopOp) -> None:
        self.module, self.function, self.loop = module, function, loop
        assert loop.condition_block is not None
        self.condition = loop.condition_block
        self.values: dict[SSAValue, SSAValue] = {}
        """What was allocated before the steps, by what it is in the condition."""
        self.kernel: str | None = None

    def write(self) -> None:
        loop = self.loop
        host = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(loop)), loop.location)
        able = host.emit(device.HasConditionsOp())
        able.name_hint = "able"
        for op in every_op(loop):
            if array.is_operation_that_may_raise(op):  # the loop as it is does so
                able = host.emit(arith.AndIOp(able, is_fine(op, host)))
        there, here = Block(), Block()
        with host.within(there):
            self.steps(host)
            host.add(scf.YieldOp())
        with host.within(here):
            host.put(loop.clone())
            host.add(scf.YieldOp())
        host.add(scf.IfOp(able, [], Region(there), Region(here)))
        Rewriter.erase_op(loop)

    def steps(self, host: Writer) -> None:
        one = host.index(1)
        flag = on_device(host.emit(array.AllocOp([one], i64)))
        flag.name_hint = "flag"
        for op in self.condition.ops:
            if isinstance(op, array.AllocOp):
                host.put(op.clone(self.values))
        host.add(device.WhileStepOp("begin", flag))
        self.decide(host, flag, one)
        host.add(device.WhileStepOp("body", flag))
        mapped = dict(self.values)
        for op in self.loop.body.block.ops:
            if not isinstance(op, array.YieldOp | array.RaiseIfOp):
                put_unchecked(host, op.clone(mapped))
        self.decide(host, flag, one)
        host.add(device.WhileStepOp("end", flag))

    def decide(self, host: Writer, flag: SSAValue, one: SSAValue) -> None:
        """What the condition launches, and the kernel that computes it."""
        mapped = dict(self.values)
        for op in self.condition.ops:
            known = mapped.keys() >= {v for v in op.operands if not self.is_before(v)}
            if known and not isinstance(op, (*OF_KERNEL, array.AllocOp)):
                put_unchecked(host, op.clone(mapped))
        kernel = self.compute(mapped, flag)
        if self.kernel is None:
            count = sum(map(device.is_kernel, self.module.ops))
            made = kernel.finish(f"{self.function.sym_name.data}_{count}")
            host.add(launch := device.LaunchOp(made.sym_name.data, one, kernel.given))
            pairs = list(sharing(launch.values, AliasAnalysis(self.function)))
            mark_overlaps(made, pairs)
            describe(made, pairs)
            self.module.body.block.add_op(made)
            self.kernel = made.sym_name.data
        else:
            host.add(device.LaunchOp(self.kernel, one, kernel.given))

    def is_before(self, value: SSAValue) -> bool:
        return is_outside(value, self.loop)

    def compute(self, mapped: dict[SSAValue, SSAValue], flag: SSAValue) -> Kernel:
        kernel = Kernel(self.loop.location)
        zero = kernel.index(0)
        own = [cell_of(a.memref) for op in self.condition.ops for a in accesses(op)]
        for cell in dict.fromkeys(own):
            if cell is not None and self.is_before(cell):
                kernel.values[cell] = kernel.cell(element_of(cell))
        first = kernel.emit(arith.CmpiOp(kernel.emit(device.ThreadOp()), zero, "eq"))
        with kernel.where(first):
            for op in self.condition.ops:
                if isinstance(op, device.FetchOp):
                    source = kernel.value(mapped.get(op.source, op.source))
                    at = [kernel.value(mapped.get(i, i)) for i in op.indices]
                    kernel.values[op.result] = kernel.load(source, at)
                    kernel.values[op.result].name_hint = op.result.name_hint
                elif isinstance(op, array.ConditionOp):
                    more = kernel.emit(arith.ExtUIOp(kernel.value(op.condition), i64))
                    kernel.store(more, kernel.value(flag), [zero])
                elif isinstance(op, memref.LoadOp | memref.StoreOp) or is_scalar(op):
                    for v in op.operands:
                        if v in mapped and v not in kernel.values:
                            kernel.values[v] = kernel.value(mapped[v])
                    kernel.copy(op)
        return kernel


OF_KERNEL = (
    device.FetchOp, array.ConditionOp, array.RaiseIfOp, memref.LoadOp, memref.StoreOp,
)  # fmt: skip
"""What of a condition the host does not do."""

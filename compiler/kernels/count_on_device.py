"""Let kernels read a loop's counter on the device, so that what each iteration launches is the same.

A reverse sweep reads what iteration k has saved at place k, where the forward sweep has stored it. So the
arguments of launches move, and no graph can be replayed (`analysis.replays`): each iteration costs the host a
launch for each kernel. Here the counter is a number in the device's memory. A kernel that was given a view or
a number that depends on it is given what the view is of, and where the counter is. It reads the counter and
computes the rest itself. One more kernel adds 1 to the counter at the end of an iteration.

Runs right before host code is made. The runtime says whether a loop is long enough to be replayed
(`device.is_replayed`); one that is not keeps its own counter.

Kept are loops whose counter decides anything else: a number of blocks, the trips of an inner loop, an
exception, an element that the host puts, a product that a library may do.

Before::

    !u = memref<?xf64, 1 : i64>
    !row = memref<?xf64, strided<[1]>, 1 : i64>
    func.func @f(%u : memref<?x?xf64, 1 : i64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %k to %n do {
        %row = array.view %u[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, 1 : i64> -> !row
        device.launch @f_0 blocks(%c1) (%row : !row)
        array.yield
      }
      func.return
    }
    func.func private @f_0(%row : !row) attributes {kernel, overlaps = [], read_only = array<i64>} {
      %i = device.thread
      %x = memref.load %row[%i] : !row
      %y = arith.addf %x, %x : f64
      memref.store %y, %row[%i] : !row
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>, 1 : i64>
    !at = memref<1xi64, 1 : i64>
    func.func @f(%u : memref<?x?xf64, 1 : i64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %replayed = device.is_replayed %n period 1
      %trips = scf.if %replayed -> (index) {
        %0 = arith.constant 0 : index
        %1 = arith.constant 1 : index
        %counter = array.alloc(%1) : !at
        %2 = arith.constant 0 : i64
        device.put %2, %counter[%0] : i64, !at
        %trips_1 = array.loop %k to %n do {
          device.launch @f_1 blocks(%c1) (%counter, %u, %m : !at, memref<?x?xf64, 1 : i64>, index)
          device.launch @f_2 blocks(%1) (%counter : !at)
          array.yield
        }
        scf.yield %trips_1 : index
      } else {
        %trips_2 = array.loop %k_1 to %n do {
          %row = array.view %u[%k_1, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, 1 : i64> -> !row
          device.launch @f_0 blocks(%c1) (%row : !row)
          array.yield
        }
        scf.yield %trips_2 : index
      }
      func.return
    }
    func.func private @f_0(%row : !row) attributes {kernel, overlaps = [], read_only = array<i64>} {
      %i = device.thread
      %x = memref.load %row[%i] : !row
      %y = arith.addf %x, %x : f64
      memref.store %y, %row[%i] : !row
      func.return
    }
    func.func private @f_1(%counter : !at, %u : memref<?x?xf64, 1 : i64>, %m : index)
        attributes {kernel, overlaps = [], read_only = array<i64: 0>} {
      %0 = arith.constant 0 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %1 = memref.load %counter[%0] : !at
      %k = arith.index_cast %1 : i64 to index
      %row = array.view %u[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64, 1 : i64> -> !row
      %i = device.thread
      %x = memref.load %row[%i] : !row
      %y = arith.addf %x, %x : f64
      memref.store %y, %row[%i] : !row
      func.return
    }
    func.func private @f_2(%counter : !at) attributes {kernel, overlaps = [], read_only = array<i64>} {
      %0 = arith.constant 0 : index
      %1 = device.thread
      %2 = arith.cmpi eq, %1, %0 : index
      scf.if %2 {
        %3 = memref.load %counter[%0] : !at
        %4 = arith.constant 1 : i64
        %5 = arith.addi %3, %4 : i64
        memref.store %5, %counter[%0] : !at
      }
      func.return
    }
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array, device
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.effects import mark_overlaps, sharing
from ..analysis.replays import (
    COMPUTED,
    beside_exceptions,
    is_scalar,
    needs_counter,
    period_but_counter,
)
from .kernel import Kernel, Writer, describe, essence


class CountOnDevice(ModulePass):
    """Make kernels read the counter of a replayed loop from the device's memory."""

    name = "count-on-device"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        kernels = {f.sym_name.data: f for f in functions if device.is_kernel(f)}
        made: dict[Hashable, func.FuncOp] = {}
        for function in functions:
            if not device.is_kernel(function):
                Counting(op, function, kernels, made).visit(function.body.block)


class Counting:
    """The loops of one function."""

    def __init__(
        self,
        module: ModuleOp,
        function: func.FuncOp,
        kernels: dict[str, func.FuncOp],
        made: dict[Hashable, func.FuncOp],
    ) -> None:
        self.module, self.function = module, function
        self.kernels, self.made = kernels, made
        self.alias = AliasAnalysis(function)

    def visit(self, block: Block) -> None:
        """Outermost loops first: what is in a graph is launched as it was captured."""
        for op in list(block.ops):
            if isinstance(op, array.LoopOp) and self.rewrite(op):
                continue
            for inner in (b for region in op.regions for b in region.blocks):
                self.visit(inner)

    def rewrite(self, loop: array.LoopOp) -> bool:
        """Whether the loop is replayed, now or as it is."""
        period = period_but_counter(loop, self.alias)
        if period is None or not needs_counter(loop):
            return period is not None
        moving = moving_in(loop)
        if moving is None:
            return False
        self.version(loop, period)
        return True

    # The loop in two versions.

    def version(self, loop: array.LoopOp, period: int) -> None:
        assert loop.count is not None
        host = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(loop)), loop.location)
        replayed = host.emit(device.IsReplayedOp(loop.count, period))
        replayed.name_hint = "replayed"
        counted, plain = loop.clone(), loop.clone()
        then, otherwise = Block(), Block()
        with host.within(then):
            zero, one = host.index(0), host.index(1)
            counter = on_device(host.emit(array.AllocOp([one], i64)))
            counter.name_hint = "counter"
            host.add(device.PutOp(number(host, 0), counter, [zero]))
            host.put(counted)
            self.read_counter(counted, counter)
            self.advance(counted, counter, one)
            host.add(scf.YieldOp(*counted.results))
        with host.within(otherwise):
            host.put(plain)
            host.add(scf.YieldOp(*plain.results))
        types = [r.type for r in loop.results]
        choice = scf.IfOp(replayed, types, Region(then), Region(otherwise))
        host.add(choice)
        for old, new in zip(loop.results, choice.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        Rewriter.erase_op(loop)

    def advance(self, loop: array.LoopOp, counter: SSAValue, one: SSAValue) -> None:
        """The last launch of an iteration adds 1 to the counter."""
        end = loop.body.block.last_op
        assert end is not None
        host = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(end)), loop.location)
        kernel = Kernel(loop.location)
        at, zero = kernel.value(counter), kernel.index(0)
        first = kernel.emit(arith.CmpiOp(kernel.emit(device.ThreadOp()), zero, "eq"))
        with kernel.where(first):
            kernel.store(kernel.sum(kernel.load(at, [zero]), number(kernel, 1)), at, [zero])
        host.add(device.LaunchOp(self.finish(kernel), one, kernel.given))

    def read_counter(self, loop: array.LoopOp, counter: SSAValue) -> None:
        """Give kernels the counter in place of what depends on it."""
        moving = moving_in(loop)
        assert moving is not None
        for launch in beside_exceptions(loop):
            if isinstance(launch, device.LaunchOp) and not moving.isdisjoint(launch.values):
                self.relaunch(launch, loop, counter, moving)
        for op in reversed([op for op in every_op(loop) if not moving.isdisjoint(op.results)]):
            if all(result.first_use is None for result in op.results):  # else an exception needs it
                Rewriter.erase_op(op)

    def relaunch(
        self,
        launch: device.LaunchOp,
        loop: array.LoopOp,
        counter: SSAValue,
        moving: set[SSAValue],
    ) -> None:
        kernel, before = Kernel(launch.location), self.kernels[launch.target]
        at = kernel.load(kernel.value(counter), [kernel.index(0)])
        kernel.values[loop.induction] = kernel.emit(arith.IndexCastOp(at, IndexType()))
        kernel.values[loop.induction].name_hint = loop.induction.name_hint
        for op in behind(launch.values, moving):
            kernel.copy(op)
        taken = before.body.block.args
        mapped: dict[SSAValue, SSAValue] = {
            a: kernel.value(v) for a, v in zip(taken, launch.values, strict=True)
        }
        for op in before.body.block.ops:
            if not isinstance(op, func.ReturnOp):
                kernel.put(op.clone(mapped))
        name = self.finish(kernel)
        new = device.LaunchOp(name, launch.blocks, kernel.given)
        new.location = launch.location
        Rewriter.replace_op(launch, new)

    def finish(self, kernel: Kernel) -> str:
        """The kernel's name in the module; kernels that do the same are one."""
        made = kernel.finish(f"{self.function.sym_name.data}_{len(self.kernels) + len(self.made)}")
        pairs = list(sharing(kernel.given, self.alias_now()))
        mark_overlaps(made, pairs)
        describe(made, pairs)
        known = self.made.setdefault(essence(made), made)
        if known is made:
            self.module.body.block.add_op(made)
        return known.sym_name.data

    def alias_now(self) -> AliasAnalysis:
        """The analysis of the function with its new loops."""
        return AliasAnalysis(self.function)


def on_device(memref: SSAValue) -> SSAValue:
    return Rewriter.replace_value_with_new_type(memref, device.in_space(memref.type, device.GLOBAL))


def number(writer: Writer, value: int) -> SSAValue:
    return writer.emit(arith.ConstantOp(IntegerAttr(value, i64)))


def moving_in(loop: array.LoopOp) -> set[SSAValue] | None:
    """What depends on the counter; None where that is more than kernels are given."""
    moving: set[SSAValue] = {loop.induction}
    for op in beside_exceptions(loop):
        if moving.isdisjoint(op.operands):
            continue
        if is_scalar(op) or isinstance(op, COMPUTED):
            moving.update(op.results)
        elif not (isinstance(op, device.LaunchOp) and takes_moving(op, moving)):
            return None
    return moving


def takes_moving(launch: device.LaunchOp, moving: set[SSAValue]) -> bool:
    """Whether a launch may be given what depends on the counter."""
    return launch.blocks not in moving and device.PRODUCT not in launch.attributes


def behind(values: Sequence[SSAValue], moving: set[SSAValue]) -> list[Operation]:
    """The ops that compute what depends on the counter, in order."""
    found: dict[Operation, None] = {}

    def visit(value: SSAValue) -> None:
        owner = value.owner
        if value in moving and isinstance(owner, Operation) and owner not in found:
            for operand in owner.operands:
                visit(operand)
            found[owner] = None

    for value in values:
        visit(value)
    return list(found)

"""Run kernels on the host: what a device does at once, in loops, in an order that nobody writes programs for.

A launch becomes a loop over blocks, backwards, and in it one over threads, shuffled, for each part of the
kernel between barriers; shared memory is a buffer. So the code of kernels is tested where there is no device:
what depends on an order of threads, or leaves out a barrier, computes other numbers than the host's code.

Before::

    func.func @f(%u : memref<?xf64, 1 : i64>, %n : index, %x : f64) {
      device.launch @k blocks(%n) (%x, %u : f64, memref<?xf64, 1 : i64>)
      func.return
    }
    func.func private @k(%y : f64, %a : memref<?xf64, 1 : i64>) attributes {kernel} {
      %t = device.thread
      memref.store %y, %a[%t] : memref<?xf64, 1 : i64>
      func.return
    }

After::

    func.func @f(%u : memref<?xf64>, %n : index, %x : f64) {
      %threads = arith.constant 256 : index
      %0 = array.loop %i to %n do {
        %left = arith.subi %n, %i : index
        %cm1 = arith.constant -1 : index
        %block = arith.addi %left, %cm1 : index
        %1 = array.loop %j to %threads do {
          %factor = arith.constant 167 : index
          %2 = arith.muli %j, %factor : index
          %shift = arith.constant 89 : index
          %3 = arith.addi %2, %shift : index
          %last = arith.constant 255 : index
          %thread = arith.andi %3, %last : index
          memref.store %x, %u[%thread] : memref<?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from ...dialects import array, device
from ...dialects.within import every_op, ops_of_kind
from ..analysis.views import is_memref
from .kernel import Writer

FACTOR, SHIFT = 167, 89
"""What runs as number t is the thread `FACTOR * t + SHIFT`, modulo the threads of a block."""


@dataclass(frozen=True)
class EmulateLaunches(ModulePass):
    """Put loops in the place of launches; then all memory is the host's."""

    name = "emulate-launches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        kernels = {f.sym_name.data: f for f in functions if device.is_kernel(f)}
        for function in functions:
            if not device.is_kernel(function):
                for launch in ops_of_kind(function, device.LaunchOp):
                    emulate(launch, kernels[launch.target])
                for one in every_op(function):
                    touch(one)
                forget_spaces(function)
        for kernel in kernels.values():
            Rewriter.erase_op(kernel)


def emulate(launch: device.LaunchOp, kernel: func.FuncOp) -> None:
    """The blocks of a launch, and their threads, in loops."""
    host = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(launch)), launch.location)
    values: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, launch.values, strict=True))
    for op in kernel.body.block.ops:
        if isinstance(op, memref.AllocaOp) and device.space_of(op.memref.type) == device.SHARED:
            values[op.memref] = host.emit(shared(op, host))
    threads = host.index(device.THREADS)
    with host.loop(launch.blocks) as k:
        left = host.emit(arith.SubiOp(launch.blocks, k))
        block = host.sum(left, host.index(-1))
        done: list[Operation] = []
        for phase in phases(kernel):
            with host.loop(threads) as t:
                turned = host.sum(host.product(t, host.index(FACTOR)), host.index(SHIFT))
                thread = host.emit(arith.AndIOp(turned, host.index(device.THREADS - 1)))
                known = dict(values)
                for op in (*repeated(done, phase), *phase):
                    if isinstance(op, device.ThreadOp):
                        known[op.result] = thread
                    elif isinstance(op, device.BlockOp):
                        known[op.result] = block
                    elif not values.keys() & op.results:
                        host.put(op.clone(known))
            done += phase
    Rewriter.erase_op(launch)


def shared(op: memref.AllocaOp, host: Writer) -> array.AllocOp:
    """A buffer for memory that the threads of a block share."""
    (size,) = op.memref.type.get_shape()
    made = array.AllocOp([host.index(size)], op.memref.type.element_type)
    made.attributes[array.STACK] = UnitAttr()
    return made


def phases(kernel: func.FuncOp) -> list[list[Operation]]:
    """The ops of a kernel between barriers."""
    found: list[list[Operation]] = [[]]
    for op in kernel.body.block.ops:
        if isinstance(op, device.BarrierOp):
            found.append([])
        elif not isinstance(op, func.ReturnOp):
            found[-1].append(op)
    return found


def repeated(done: Sequence[Operation], phase: Sequence[Operation]) -> list[Operation]:
    """What a thread computes anew behind a barrier, of what it has computed before: it is pure."""
    needed = {v for op in phase for inner in op.walk() for v in inner.operands}
    found: list[Operation] = []
    for op in reversed(done):
        if not needed.isdisjoint(op.results) and not isinstance(op, memref.AllocaOp):
            assert op.has_trait(Pure), f"{op.name} goes past a barrier"
            found.append(op)
            needed.update(op.operands)
    return found[::-1]


def touch(op: Operation) -> None:
    """Elements that go between host and device just are where they are; one thread at a time adds to one."""
    if isinstance(op, device.AtomicAddOp):
        here = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(op)), op.location)
        old = here.load(op.target, list(op.indices))
        here.store(here.combined("add", old, op.value), op.target, list(op.indices))
        Rewriter.erase_op(op)
        return
    if isinstance(op, device.FetchOp):
        new: Operation = memref.LoadOp.get(op.source, list(op.indices))
        new.results[0].name_hint = op.result.name_hint
    elif isinstance(op, device.PutOp):
        new = memref.StoreOp.get(op.value, op.target, list(op.indices))
    else:
        return
    new.location = op.location
    Rewriter.replace_op(op, new)


def forget_spaces(function: func.FuncOp) -> None:
    """All memory is the host's."""
    places = list[SSAValue]()
    for op in every_op(function):
        places += op.results
        places += [a for r in op.regions for b in r.blocks for a in b.args]
    for value in places:
        if is_memref(value) and device.space_of(value.type):
            Rewriter.replace_value_with_new_type(value, device.in_space(value.type, 0))
    types = function.function_type
    inputs, outputs = (
        [device.in_space(t, 0) if isinstance(t, MemRefType) else t for t in given.data]
        for given in (types.inputs, types.outputs)
    )
    function.properties["function_type"] = FunctionType.from_lists(inputs, outputs)

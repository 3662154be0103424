"""Run kernels on the host: the threads of a launch become loops, in an order that no program may rely on.

A launch becomes a loop over blocks, backwards, and in it one over threads, shuffled, for each part of the
kernel between barriers; shared memory is a buffer, and so are registers that are used on both sides of a
barrier. A loop that has barriers in it, whose trips are those of all threads, goes around the threads' loops.
So the code of kernels is tested where there is no device: what depends on an order of threads, or leaves out
a barrier, computes other numbers than the host's code.

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
      %0 = array.loop %i to %n do {
        %left = arith.subi %n, %i : index
        %cm1 = arith.constant -1 : index
        %block = arith.addi %left, %cm1 : index
        %threads = arith.constant 256 : index
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
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnitAttr,
    i1,
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from ...dialects import array, device
from ...dialects.within import every_op, ops_of_kind
from ..analysis.views import is_memref, strip_views
from .kernel import Writer

FACTOR, SHIFT = 167, 89
"""What runs as number t is the thread `FACTOR * t + SHIFT`, modulo the threads of a block."""


@dataclass(frozen=True)
class EmulateLaunches(ModulePass):
    """Replace launches by loops on the host; then all memory is the host's."""

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
    body = kernel.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, launch.values, strict=True))
    kept: dict[SSAValue, SSAValue] = {}
    for op in body.ops:
        if is_shared(op):
            values[op.results[0]] = buffer(op, host)
        elif isinstance(op, memref.AllocaOp) and crosses(op.memref):
            kept[op.memref] = buffer(op, host, device.THREADS)
    with host.loop(launch.blocks) as k:
        left = host.emit(arith.SubiOp(launch.blocks, k))
        block = host.sum(left, host.index(-1))
        Threads(host, block, kept).run(body, values, ())
    Rewriter.erase_op(launch)


@dataclass
class Threads:
    """The threads of a block, one after the other from barrier to barrier."""

    host: Writer
    block: SSAValue
    kept: dict[SSAValue, SSAValue]
    """Registers that threads keep past barriers, and where: an element a thread."""

    def run(
        self, body: Block, values: dict[SSAValue, SSAValue], before: Sequence[Operation]
    ) -> None:
        """A block of ops, with what is the same for all threads, and what they have done before."""
        done = list(before)
        for part in parts(body):
            if isinstance(part, array.LoopOp):
                count = self.agreed(part, values, done)
                with self.host.loop(count) as k:
                    self.run(part.body.block, {**values, part.induction: k}, done)
            else:
                self.each(part, values, done)
                done += part

    def agreed(
        self, loop: array.LoopOp, values: dict[SSAValue, SSAValue], done: Sequence[Operation]
    ) -> SSAValue:
        """The trips of a loop with barriers: no thread has others."""
        assert loop.count is not None
        known = dict(values)
        for op in repeated(done, {loop.count}):
            assert not isinstance(op, device.ThreadOp), "threads part at a barrier"
            self.compute(op, known)
        return known.get(loop.count, loop.count)

    def each(
        self,
        phase: Sequence[Operation],
        values: dict[SSAValue, SSAValue],
        done: Sequence[Operation],
    ) -> None:
        """What is between two barriers, thread by thread."""
        host = self.host
        used = {v for op in phase for inner in op.walk() for v in inner.operands}
        with host.loop(host.index(device.THREADS)) as t:
            turned = host.sum(host.product(t, host.index(FACTOR)), host.index(SHIFT))
            thread = host.emit(arith.AndIOp(turned, host.index(device.THREADS - 1)))
            known = dict(values)
            for register in [r for r in self.kept if r in used]:
                view = array.ViewOp(self.kept[register], [thread], [], [], [])
                known[register] = host.emit(view)
            for op in (*repeated(done, used), *phase):
                if isinstance(op, device.ThreadOp):
                    known[op.result] = thread
                else:
                    self.compute(op, known)

    def compute(self, op: Operation, known: dict[SSAValue, SSAValue]) -> None:
        if isinstance(op, device.BlockOp):
            known[op.result] = self.block
        elif not any(r in known or r in self.kept for r in op.results):
            self.host.put(op.clone(known))


def is_shared(op: Operation) -> bool:
    """Whether an op is memory that the threads of a block have in common."""
    return isinstance(op, memref.AllocaOp) and device.space_of(op.memref.type) == device.SHARED


def buffer(op: Operation, host: Writer, count: int | None = None) -> SSAValue:
    """Memory of the host for what a block shares, or for the registers of so many threads."""
    type_ = op.results[0].type
    assert isinstance(type_, MemRefType)
    size = type_.get_shape()[0] if count is None else count
    made = array.AllocOp([host.index(size)], type_.element_type)
    if count is None and size <= device.THREADS:  # a program may have many launches
        made.attributes[array.STACK] = UnitAttr()
    made.memref.name_hint = op.results[0].name_hint
    return host.emit(made)


def parts(body: Block) -> list[list[Operation] | array.LoopOp]:
    """The ops of a kernel between barriers, and the loops that have barriers in them."""
    found: list[list[Operation] | array.LoopOp] = []
    phase: list[Operation] = []
    for op in body.ops:
        loop = isinstance(op, array.LoopOp) and has_barriers(op)
        if loop or isinstance(op, device.BarrierOp):
            found.append(phase)
            phase = []
        if loop:
            assert isinstance(op, array.LoopOp)
            found.append(op)
        elif not isinstance(op, device.BarrierOp | func.ReturnOp | array.YieldOp):
            phase.append(op)
    return [part for part in (*found, phase) if part]


def has_barriers(loop: array.LoopOp) -> bool:
    return any(isinstance(op, device.BarrierOp) for op in loop.walk())


def crosses(register: SSAValue) -> bool:
    """Whether a register is made, or used, on both sides of a barrier."""
    places: set[tuple[Block, int]] = set()
    assert isinstance(register.owner, Operation)
    for op in (register.owner, *(use.operation for use in register.uses)):
        while not (isinstance(above := op.parent_op(), func.FuncOp) or is_split(above)):
            assert above is not None
            op = above
        assert op.parent is not None
        places.add((op.parent, phase_of(op)))
    return len(places) > 1


def is_split(op: Operation | None) -> bool:
    return isinstance(op, array.LoopOp) and has_barriers(op)


def phase_of(op: Operation) -> int:
    """How many barriers, and loops with barriers, come before an op in its block."""
    found = 0
    while (before := op.prev_op) is not None:
        op = before
        found += isinstance(op, device.BarrierOp) or is_split(op)
    return found


def repeated(done: Sequence[Operation], used: set[SSAValue]) -> list[Operation]:
    """What a thread computes anew behind a barrier, of what it has computed before: it is pure.

    A division has no effect where it has had none before, and an array that nobody writes stays as it is.
    """
    needed = set(used)
    found: list[Operation] = []
    for op in reversed(done):
        if not needed.isdisjoint(op.results) and not isinstance(op, memref.AllocaOp):
            again = op.has_trait(Pure) or isinstance(op, arith.DivUIOp | arith.RemUIOp)
            again = again or (isinstance(op, memref.LoadOp) and is_only_read(op))
            assert again, f"{op.name} goes past a barrier"
            found.append(op)
            needed.update(op.operands)
    return found[::-1]


def is_only_read(load: memref.LoadOp) -> bool:
    """Whether the kernel says that nobody writes the array."""
    argument = strip_views(load.memref)
    kernel = argument.owner.parent_op() if isinstance(argument, BlockArgument) else None
    told = None if kernel is None else kernel.attributes.get(device.READ_ONLY)
    if not isinstance(argument, BlockArgument) or not isinstance(told, DenseArrayBase):
        return False
    return argument.index in [int(k) for k in told.get_values()]


def touch(op: Operation) -> None:
    """Elements that go between host and device just are where they are; one thread at a time adds to one."""
    if isinstance(op, device.AtomicAddOp):
        here = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(op)), op.location)
        old = here.load(op.target, list(op.indices))
        here.store(here.combined("add", old, op.value), op.target, list(op.indices))
        Rewriter.erase_op(op)
        return
    if isinstance(op, device.WhileStepOp):  # of graphs that there are none of
        Rewriter.erase_op(op)
        return
    if isinstance(op, device.FetchOp):
        new: Operation = memref.LoadOp.get(op.source, list(op.indices))
        new.results[0].name_hint = op.result.name_hint
    elif isinstance(op, device.PutOp):
        new = memref.StoreOp.get(op.value, op.target, list(op.indices))
    elif isinstance(op, device.IsReplayedOp):  # both answers are right
        new = arith.ConstantOp(IntegerAttr(1, i1))
    elif isinstance(op, device.HasConditionsOp):  # here, too
        new = arith.ConstantOp(IntegerAttr(0, i1))
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

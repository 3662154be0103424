"""Load what all threads of a block read in a loop once for the block, by tiles in shared memory.

In a nest such as forces between all pairs, each thread goes through all `x[j]`, at the same time as the
others of its block. Here each thread loads one element of the next 256 into shared memory; then all of them
go through these. So a block reads an array once, not each of its threads.

Runs behind `block-sums`, by whose means the loop leaves the guard of its threads: a barrier is for all of
them. Kept are loads at subscripts that are a thread's own, of arrays that the kernel writes, and in inner
loops; loops of fewer than 64 trips, whose trips are not the same for all threads, or that leave early.

Why it is the same: the array is only read, and iterations come in order. What is loaded is there: some thread
of the block is in the guard and loads it in each iteration. In a branch perhaps none does (`if j != i`), so
there the subscript is compared with the extent.

Before::

    func.func private @k(%x : memref<?xf64, 1 : i64>, %u : memref<?xf64, 1 : i64>, %n : index, %m : index)
        attributes {kernel, read_only = array<i64: 0>} {
      %i = device.thread
      %inside = arith.cmpi slt, %i, %n : index
      scf.if %inside {
        %trips = array.loop %j to %m do {
          %a = memref.load %x[%j] : memref<?xf64, 1 : i64>
          %b = memref.load %u[%i] : memref<?xf64, 1 : i64>
          %c = arith.addf %a, %b : f64
          memref.store %c, %u[%i] : memref<?xf64, 1 : i64>
          array.yield
        }
      }
      func.return
    }

After::

    func.func private @k(%x: memref<?xf64, 1 : i64>, %u: memref<?xf64, 1 : i64>, %n: index, %m: index)
        attributes {kernel, read_only = array<i64: 0>} {
      %a = memref.alloca() : memref<256xf64, 3 : i64>
      %i = device.thread
      %inside = arith.cmpi slt, %i, %n : index
      scf.if %inside {
      }
      %0 = arith.constant 256 : index
      %1 = device.thread
      %2 = arith.constant 0 : index
      %3 = arith.maxsi %m, %2 : index
      %4 = arith.constant 255 : index
      %5 = arith.addi %3, %4 : index
      %6 = arith.constant 256 : index
      %7 = arith.divui %5, %6 : index
      %8 = array.loop %9 to %7 do {
        %10 = arith.muli %9, %0 : index
        %11 = arith.addi %10, %1 : index
        %12 = arith.cmpi slt, %11, %m : index
        scf.if %12 {
          %13 = memref.load %x[%11] : memref<?xf64, 1 : i64>
          memref.store %13, %a[%1] : memref<256xf64, 3 : i64>
        }
        device.barrier
        %14 = arith.subi %m, %10 : index
        %15 = arith.minsi %14, %0 : index
        scf.if %inside {
          %16 = array.loop %17 to %15 do {
            %j = arith.addi %10, %17 : index
            %a_1 = memref.load %a[%17] : memref<256xf64, 3 : i64>
            %b = memref.load %u[%i] : memref<?xf64, 1 : i64>
            %c = arith.addf %a_1, %b : f64
            memref.store %c, %u[%i] : memref<?xf64, 1 : i64>
            array.yield
          } {tile}
        }
        device.barrier
        array.yield
      }
      scf.if %inside {
      }
      func.return
    }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array, device
from ..analysis.alias import if_blocks
from ..analysis.views import strip_views
from .block_sums import MOST, Opening, before, depth_of, is_guard, is_open, put_first
from .kernel import Writer, element_of, is_in_range

FEWEST = 64
"""Trips that are worth two barriers."""


@dataclass(frozen=True)
class TileLoads(ModulePass):
    """Let the threads of a block share what each of them would load in a loop."""

    name = "tile-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and device.is_kernel(function):
                while (found := next(tiles_in(function), None)) is not None:
                    found.write()


# What is found.


def tiles_in(kernel: func.FuncOp) -> Iterator[Tiling]:
    """The loops of threads that have loads in common."""
    if device.ONE_THREAD in kernel.attributes:
        return
    for guard in kernel.body.block.ops:
        if isinstance(guard, scf.IfOp) and is_guard(guard):
            for loop in guard.true_region.block.ops:
                if isinstance(loop, array.LoopOp) and is_worthwhile(loop) and is_open(loop, [loop]):
                    loads = common_loads(kernel, loop)
                    if 0 < len(loads) <= MOST:
                        yield Tiling(kernel, guard, loop, loads)


def is_worthwhile(loop: array.LoopOp) -> bool:
    trips = None if loop.count is None else array.constant_value(loop.count)
    return trips is None or trips >= FEWEST


def common_loads(kernel: func.FuncOp, loop: array.LoopOp) -> list[memref.LoadOp]:
    """The loads that all threads make at once, of arrays that nobody writes."""
    found: list[memref.LoadOp] = []
    for op in in_iteration(loop.body.block):
        if isinstance(op, memref.LoadOp) and is_read_only(kernel, op.memref):
            of_loop = max((depth_of(i, [loop]) for i in op.indices), default=0)
            if depth_of(op.memref, [loop]) == 0 and of_loop == 1:
                found.append(op)
    return found


def in_iteration(block: Block) -> Iterator[Operation]:
    """The ops of a block and of the branches in it, not of loops."""
    for op in block.ops:
        yield op
        if isinstance(op, scf.IfOp):
            for branch in if_blocks(op):
                yield from in_iteration(branch)


def is_read_only(kernel: func.FuncOp, array_: SSAValue) -> bool:
    told = kernel.attributes[device.READ_ONLY]
    assert isinstance(told, DenseArrayBase)
    arguments = kernel.body.block.args
    return strip_views(array_) in [arguments[int(k)] for k in told.get_values()]


# Writing.


@dataclass
class Tiling:
    """A loop, and its loads that go through shared memory."""

    kernel: func.FuncOp
    guard: scf.IfOp
    loop: array.LoopOp
    loads: list[memref.LoadOp]
    sure: set[memref.LoadOp] = field(default_factory=set[memref.LoadOp])
    """Those that each iteration makes."""

    def write(self) -> None:
        self.sure = {one for one in self.loads if one.parent is self.loop.body.block}
        inner = Opening(self.kernel, self.guard, self.loop).write()
        opened = inner.parent_op()
        assert isinstance(opened, array.LoopOp)
        assert opened.count is not None
        host = before(opened)
        count, size = opened.count, host.index(device.THREADS)
        thread = host.emit(device.ThreadOp())
        body = Block(arg_types=[opened.induction.type])
        with host.within(body):
            begin = host.product(body.args[0], size)
            own = host.sum(begin, thread)
            with host.where(host.less(own, count)):
                tiles = [self.fill(load, opened, own, thread, host) for load in self.loads]
            host.add(device.BarrierOp())
            left = host.emit(arith.SubiOp(count, begin))
            trips = host.emit(arith.MinSIOp(left, size))
            self.visit(inner, opened, begin, trips, tiles, host)
            host.add(device.BarrierOp())
            host.add(array.YieldOp())
        parts = host.parts(host.at_least_zero(count), device.THREADS)
        outer = array.LoopOp(parts, (), body)
        host.add(outer)
        Rewriter.erase_op(opened)

    def fill(
        self,
        load: memref.LoadOp,
        opened: array.LoopOp,
        own: SSAValue,
        thread: SSAValue,
        host: Writer,
    ) -> SSAValue:
        """This thread's element of the tile."""
        tile = shared(self.kernel, load)
        known: dict[SSAValue, SSAValue] = {opened.induction: own}
        source, *at = (computed(v, known, host) for v in (load.memref, *load.indices))
        if load in self.sure:
            host.store(host.load(source, at), tile, [thread])
            return tile
        with host.where(is_in_range(host, source, at)):
            host.store(host.load(source, at), tile, [thread])
        return tile

    def visit(
        self,
        guard: scf.IfOp,
        opened: array.LoopOp,
        begin: SSAValue,
        trips: SSAValue,
        tiles: list[SSAValue],
        host: Writer,
    ) -> None:
        """What the loop does, for the elements of a tile."""
        inside = Block()
        with host.within(inside):
            with host.loop(trips) as k:
                opened.induction.replace_all_uses_with(host.sum(begin, k))
                for op in list(guard.true_region.block.ops):
                    if not isinstance(op, scf.YieldOp):
                        op.detach()
                        host.put(op)
                for load, tile in zip(self.loads, tiles, strict=True):
                    again = memref.LoadOp.get(tile, [k])
                    again.location = load.location
                    again.res.name_hint = load.res.name_hint
                    Rewriter.replace_op(load, again)
            loop = inside.last_op
            assert loop is not None
            loop.attributes[device.TILE] = UnitAttr()
            host.add(scf.YieldOp())
        host.add(scf.IfOp(guard.cond, [], Region(inside)))


def shared(kernel: func.FuncOp, load: memref.LoadOp) -> SSAValue:
    space = IntegerAttr(device.SHARED, i64)
    made = memref.AllocaOp.get(element_of(load.memref), shape=[device.THREADS], memory_space=space)
    made.location = load.location
    made.memref.name_hint = load.res.name_hint
    put_first(kernel, [made])
    return made.memref


def computed(value: SSAValue, known: dict[SSAValue, SSAValue], host: Writer) -> SSAValue:
    """What a value of the loop's is for another number of the iteration."""
    owner = value.owner
    if value in known or isinstance(owner, Block) or isinstance(owner.parent_op(), func.FuncOp):
        return known.get(value, value)
    operands = {v: computed(v, known, host) for v in owner.operands}
    made = owner.clone(operands)
    host.put(made)
    known |= dict(zip(owner.results, made.results, strict=True))
    return known[value]

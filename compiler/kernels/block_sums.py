"""Let the threads of a block add up what they would all add to one element: one atomic addition a block.

A nest's threads go through an inner loop, each in its own row, and add to what the loop is at: the adjoint of
`h = tanh(h * w[t] + x[i])` adds to `w_bar[t]` for all i. All threads of a block are at the same t, so its
additions meet in shared memory (`reductions.meet`) at the end of each iteration. Runs behind
`outline-kernels`, which has chosen atomics for want of a better way.

A barrier is for all threads, and those beyond the last row have none; so the loop leaves the guard::

    if inside { A; for t in range(m) { body; w[t] += x }; B }

    if inside { A }
    for t in range(m) {
      s = 0;  if inside { body; s = x }
      the block's s meet;  its first thread: w[t] += s
    }
    if inside { B }

What is computed in one part and used in another goes by registers; what is pure is computed for all threads.
Kept are additions at subscripts that are a thread's own or are read from memory, loops whose trips are, loops
that leave early or are in a branch, and those that need memory of a thread that is no register.

Why it is the same: only the order of the additions to an element changes, which atomics leave open; who has
nothing to add has -0.0. Where the addition is in a branch, perhaps nobody has, and there is no such element:
the block then looks whether the subscript is in range.

Before::

    func.func private @k(%x : memref<?xf64, 1 : i64>, %w : memref<?xf64, 1 : i64>, %n : index, %m : index)
        attributes {kernel} {
      %i = device.thread
      %inside = arith.cmpi slt, %i, %n : index
      scf.if %inside {
        %y = memref.load %x[%i] : memref<?xf64, 1 : i64>
        %trips = array.loop %t to %m do {
          device.atomic_add %y, %w[%t] : f64, memref<?xf64, 1 : i64>
          array.yield
        }
      }
      func.return
    }

After::

    func.func private @k(%x: memref<?xf64, 1 : i64>, %w: memref<?xf64, 1 : i64>, %n: index, %m: index)
        attributes {kernel} {
      %0 = arith.constant 0 : index
      %1 = memref.alloca() : memref<256xf64, 3 : i64>
      %2 = arith.constant 128 : index
      %3 = arith.constant 64 : index
      %4 = arith.constant 32 : index
      %5 = arith.constant 16 : index
      %6 = arith.constant 8 : index
      %7 = arith.constant 4 : index
      %8 = arith.constant 2 : index
      %9 = arith.constant 1 : index
      %y = memref.alloca() : memref<f64>
      %y_1 = memref.alloca() : memref<f64>
      %i = device.thread
      %inside = arith.cmpi slt, %i, %n : index
      scf.if %inside {
        %y_2 = memref.load %x[%i] : memref<?xf64, 1 : i64>
        memref.store %y_2, %y_1[] : memref<f64>
      }
      %10 = array.loop %t to %m do {
        %11 = arith.constant -0.000000e+00 : f64
        memref.store %11, %y[] : memref<f64>
        scf.if %inside {
          %y_3 = memref.load %y_1[] : memref<f64>
          %12 = memref.load %y[] : memref<f64>
          %13 = arith.addf %12, %y_3 : f64
          memref.store %13, %y[] : memref<f64>
        }
        %14 = memref.load %y[] : memref<f64>
        %15 = device.thread
        memref.store %14, %1[%15] : memref<256xf64, 3 : i64>
        device.barrier
        %16 = arith.cmpi slt, %15, %2 : index
        scf.if %16 {
          %17 = arith.addi %15, %2 : index
          %18 = memref.load %1[%17] : memref<256xf64, 3 : i64>
          %19 = memref.load %1[%15] : memref<256xf64, 3 : i64>
          %20 = arith.addf %19, %18 : f64
          memref.store %20, %1[%15] : memref<256xf64, 3 : i64>
        }
        device.barrier
        %21 = arith.cmpi slt, %15, %3 : index
        scf.if %21 {
          %22 = arith.addi %15, %3 : index
          %23 = memref.load %1[%22] : memref<256xf64, 3 : i64>
          %24 = memref.load %1[%15] : memref<256xf64, 3 : i64>
          %25 = arith.addf %24, %23 : f64
          memref.store %25, %1[%15] : memref<256xf64, 3 : i64>
        }
        device.barrier
        %26 = arith.cmpi slt, %15, %4 : index
        scf.if %26 {
          %27 = arith.addi %15, %4 : index
          %28 = memref.load %1[%27] : memref<256xf64, 3 : i64>
          %29 = memref.load %1[%15] : memref<256xf64, 3 : i64>
          %30 = arith.addf %29, %28 : f64
          memref.store %30, %1[%15] : memref<256xf64, 3 : i64>
        }
        device.barrier
        %31 = arith.cmpi slt, %15, %5 : index
        scf.if %31 {
          %32 = arith.addi %15, %5 : index
          %33 = memref.load %1[%32] : memref<256xf64, 3 : i64>
          %34 = memref.load %1[%15] : memref<256xf64, 3 : i64>
          %35 = arith.addf %34, %33 : f64
          memref.store %35, %1[%15] : memref<256xf64, 3 : i64>
        }
        device.barrier
        %36 = arith.cmpi slt, %15, %6 : index
        scf.if %36 {
          %37 = arith.addi %15, %6 : index
          %38 = memref.load %1[%37] : memref<256xf64, 3 : i64>
          %39 = memref.load %1[%15] : memref<256xf64, 3 : i64>
          %40 = arith.addf %39, %38 : f64
          memref.store %40, %1[%15] : memref<256xf64, 3 : i64>
        }
        device.barrier
        %41 = arith.cmpi slt, %15, %7 : index
        scf.if %41 {
          %42 = arith.addi %15, %7 : index
          %43 = memref.load %1[%42] : memref<256xf64, 3 : i64>
          %44 = memref.load %1[%15] : memref<256xf64, 3 : i64>
          %45 = arith.addf %44, %43 : f64
          memref.store %45, %1[%15] : memref<256xf64, 3 : i64>
        }
        device.barrier
        %46 = arith.cmpi slt, %15, %8 : index
        scf.if %46 {
          %47 = arith.addi %15, %8 : index
          %48 = memref.load %1[%47] : memref<256xf64, 3 : i64>
          %49 = memref.load %1[%15] : memref<256xf64, 3 : i64>
          %50 = arith.addf %49, %48 : f64
          memref.store %50, %1[%15] : memref<256xf64, 3 : i64>
        }
        device.barrier
        %51 = arith.cmpi slt, %15, %9 : index
        scf.if %51 {
          %52 = arith.addi %15, %9 : index
          %53 = memref.load %1[%52] : memref<256xf64, 3 : i64>
          %54 = memref.load %1[%15] : memref<256xf64, 3 : i64>
          %55 = arith.addf %54, %53 : f64
          memref.store %55, %1[%15] : memref<256xf64, 3 : i64>
        }
        %56 = arith.cmpi eq, %15, %0 : index
        scf.if %56 {
          %57 = memref.load %1[%0] : memref<256xf64, 3 : i64>
          device.atomic_add %57, %w[%t] {of_block} : f64, memref<?xf64, 1 : i64>
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

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from ...dialects import array, device
from ...dialects.within import ops_of_kind
from .kernel import Kernel, Writer, is_in_range
from .reductions import Term, meet

MOST = 8
"""Sums of one loop: each takes 2 KiB of the block's shared memory."""


@dataclass(frozen=True)
class BlockSums(ModulePass):
    """Reduce what all threads of a block add to one element to one atomic addition a block."""

    name = "block-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and device.is_kernel(function):
                while (found := next(sums_in(function), None)) is not None:
                    found.write()


@dataclass
class Sum:
    """Additions of one loop, in which all threads of a block are at the same iteration."""

    kernel: func.FuncOp
    guard: scf.IfOp
    loops: list[array.LoopOp]
    """Those in the guard, from its block inwards; without, the guard is in a loop that has left its own."""
    additions: list[device.AtomicAddOp]

    def write(self) -> None:
        guard = self.guard
        for loop in self.loops:
            guard = Opening(self.kernel, guard, loop).write()
        self.meet(guard)

    def meet(self, guard: scf.IfOp) -> None:
        """The terms of an iteration go to registers, and these to the elements, behind the guard."""
        made = Kernel(guard.location)
        body = guard.parent
        assert body is not None
        assert body.last_op is not None
        terms = list[Term]()
        for one in self.additions:
            cell = register(self.kernel, one.value, one)
            begin = before(body.first_op, guard)
            begin.store(begin.identity("add", one.value.type), cell)
            here = before(one)
            here.store(here.combined("add", here.load(cell), one.value), cell)
            target, *at = (copied(v, made) for v in (one.target, *one.indices))

            keep = keeping(made, target, at, sure=one.parent is guard.true_region.block)
            terms.append(Term("add", made.load(cell), keep))
            Rewriter.erase_op(one)
        meet(made, terms)
        made.add(device.BarrierOp())
        put_first(self.kernel, list(made.head.ops))
        for op in list(made.body.ops):
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(body.last_op))


def keeping(
    made: Kernel, target: SSAValue, at: Sequence[SSAValue], *, sure: bool
) -> Callable[[SSAValue], None]:
    """Adds what the block has; if no thread need have come there, where there is an element."""

    def keep(value: SSAValue) -> None:
        addition = device.AtomicAddOp(value, target, at)
        addition.attributes[device.OF_BLOCK] = UnitAttr()
        with nullcontext() if sure else made.where(is_in_range(made, target, at)):
            made.add(addition)

    return keep


@dataclass
class Opening:
    """Takes a loop out of the guard that it is in."""

    kernel: func.FuncOp
    guard: scf.IfOp
    loop: array.LoopOp

    def write(self) -> scf.IfOp:
        """The guard in the loop."""
        guard, loop, block = self.guard, self.loop, self.guard.true_region.block
        for op in speculated(block, loop):
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(guard))
        for op in registers_in(block, loop):
            op.detach()
            put_first(self.kernel, [op])
        here = before(guard)
        assert loop.count is not None
        count = copied(loop.count, here)
        inner, rest = self.guarded(), self.guarded()
        behind = [op for op in after(loop) if not isinstance(op, scf.YieldOp)]
        body = [op for op in loop.body.block.ops if not isinstance(op, array.YieldOp)]
        crossing = [*values_across(block, loop)]
        for ops, into in ((body, inner), (behind, rest)):
            for op in ops:
                op.detach()
            into.true_region.block.add_ops(ops)
            end(into)
        for value in crossing:
            self.by_register(value, (inner, rest))
        opened = Block(arg_types=[loop.induction.type])
        opened.args[0].name_hint = loop.induction.name_hint
        loop.induction.replace_all_uses_with(opened.args[0])
        made = array.LoopOp(count, (), opened)
        made.location = loop.location
        made.attributes.update(loop.attributes)
        last = array.YieldOp()
        last.location = loop.location
        opened.add_ops([inner, last])
        Rewriter.insert_op([made, rest], InsertPoint.after(guard))
        Rewriter.erase_op(loop)
        return inner

    def guarded(self) -> scf.IfOp:
        made = scf.IfOp(self.guard.cond, [], Region(Block()))
        made.location = self.guard.location
        return made

    def by_register(self, value: SSAValue, into: Sequence[scf.IfOp]) -> None:
        """What is computed before the loop is loaded where it is used."""
        owner = value.owner
        assert isinstance(owner, Operation)
        cell = register(self.kernel, value, owner)
        for guard in into:
            uses = [use for use in value.uses if guard.is_ancestor(use.operation)]
            if not uses:
                continue
            again = before(guard.true_region.block.first_op, guard).load(cell)
            again.name_hint = value.name_hint
            for use in uses:
                use.operation.operands[use.index] = again
        store = memref.StoreOp.get(value, cell, [])
        store.location = owner.location
        Rewriter.insert_op(store, InsertPoint.after(owner))


# What is found.


def sums_in(kernel: func.FuncOp) -> Iterator[Sum]:
    """By the loop in which threads meet."""
    found: dict[Block, Sum] = {}
    for one in ops_of_kind(kernel, device.AtomicAddOp):
        sum_ = None if device.OF_BLOCK in one.attributes else sum_of(kernel, one)
        if sum_ is None:
            continue
        place = sum_.loops[-1].body.block if sum_.loops else sum_.guard.parent
        assert place is not None
        known = found.setdefault(place, sum_)
        if known.guard is sum_.guard and len(known.additions) < MOST:
            known.additions.append(one)
    yield from found.values()


def sum_of(kernel: func.FuncOp, one: device.AtomicAddOp) -> Sum | None:
    """The loops that all threads of a block go through alike, to the last one that the element depends on."""
    around = list[Operation]()
    above = one.parent_op()
    while above is not None and not isinstance(above, func.FuncOp):
        around.insert(0, above)
        above = above.parent_op()
    opened = list(takewhile(is_loop, around))
    behind = around[len(opened) :]
    if not behind or not isinstance(guard := behind[0], scf.IfOp) or not is_guard(guard):
        return None
    loops = [
        op for op in (*opened, *takewhile(is_loop, behind[1:])) if isinstance(op, array.LoopOp)
    ]
    last = max((depth_of(v, loops) for v in (one.target, *one.indices)), default=0)
    if last > len(loops) or not all(is_common(loop, loops) for loop in loops[: len(opened)]):
        return None
    wanted = loops[len(opened) : int(last)]
    if not (wanted or opened) or not all(is_open(loop, loops) for loop in wanted):
        return None
    return Sum(kernel, guard, wanted, [])


def is_loop(op: Operation) -> bool:
    return isinstance(op, array.LoopOp)


def is_guard(op: scf.IfOp) -> bool:
    if op.results:
        return False
    return not op.false_region.blocks or len(op.false_region.block.ops) <= 1


NEVER = float("inf")


def depth_of(value: SSAValue, around: Sequence[array.LoopOp]) -> float:
    """In how many of the loops a value is that is the same for all threads of a block; `NEVER`: it is not."""
    owner = value.owner
    if isinstance(owner, Block):
        inductions = [loop.body.block for loop in around]
        return inductions.index(owner) + 1 if owner in inductions else outside(owner)
    if isinstance(owner, device.ThreadOp) or owner.regions or not owner.has_trait(Pure):
        return NEVER
    return max((depth_of(v, around) for v in owner.operands), default=0)


def outside(block: Block) -> float:
    return 0 if isinstance(block.parent_op(), func.FuncOp) else NEVER


def is_common(loop: array.LoopOp, around: Sequence[array.LoopOp]) -> bool:
    """Whether all threads of a block go through a loop equally often."""
    if loop.count is None or loop.condition_block is not None or loop.carried:
        return False
    return depth_of(loop.count, around) != NEVER


def is_open(loop: array.LoopOp, around: Sequence[array.LoopOp]) -> bool:
    """Whether a loop can leave its guard."""
    if loop.trips.first_use is not None or not is_common(loop, around):
        return False
    block = loop.parent
    assert block is not None
    kept = (v for v in values_across(block, loop) if v.owner not in set(speculated(block, loop)))
    return not any(isinstance(v.type, MemRefType) and not is_register(v.owner) for v in kept)


def is_register(op: Operation | Block) -> bool:
    return isinstance(op, memref.AllocaOp) and not op.memref.type.get_shape()


# What goes from one part to another.


def upto(loop: array.LoopOp) -> Iterator[Operation]:
    assert loop.parent is not None
    for op in loop.parent.ops:
        if op is loop:
            return
        yield op


def after(loop: array.LoopOp) -> Iterator[Operation]:
    op = loop.next_op
    while op is not None:
        yield op
        op = op.next_op


def speculated(block: Block, loop: array.LoopOp) -> list[Operation]:
    """The ops before the loop that may be computed without the guard."""
    found: list[Operation] = []
    inside = set(upto(loop))
    for op in upto(loop):
        known = all(v.owner not in inside for v in op.operands)
        if op.has_trait(Pure) and not op.regions and known:
            found.append(op)
            inside.remove(op)
    return found


def registers_in(block: Block, loop: array.LoopOp) -> list[Operation]:
    return [op for op in upto(loop) if is_register(op)]


def values_across(block: Block, loop: array.LoopOp) -> Iterator[SSAValue]:
    """What is computed before the loop, and used in it or behind it."""
    behind = [loop, *after(loop)]
    for op in upto(loop):
        for value in op.results:
            if any(o.is_ancestor(use.operation) for use in value.uses for o in behind):
                yield value


# Writing.


def before(op: Operation | None, otherwise: Operation | None = None) -> Writer:
    """Writes before an op."""
    place = op or otherwise
    assert place is not None
    return Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(place)), place.location)


def register(kernel: func.FuncOp, value: SSAValue, like: Operation) -> SSAValue:
    """A variable of a thread, for a value."""
    made = memref.AllocaOp.get(value.type, shape=[])
    made.location = like.location
    made.memref.name_hint = value.name_hint
    put_first(kernel, [made])
    return made.memref


def put_first(kernel: func.FuncOp, ops: Sequence[Operation]) -> None:
    """At the beginning of the kernel."""
    first = kernel.body.block.first_op
    assert first is not None
    for op in ops:
        if op.parent is not None:
            op.detach()
        Rewriter.insert_op(op, InsertPoint.before(first))


def copied(value: SSAValue, here: Writer) -> SSAValue:
    """A value that all threads have, computed here; what is before the guard is there."""
    owner = value.owner
    if isinstance(owner, Block) or isinstance(owner.parent_op(), func.FuncOp):
        return value
    operands = {v: copied(v, here) for v in owner.operands}
    made = owner.clone(operands)
    here.put(made)
    return made.results[[*map(id, owner.results)].index(id(value))]


def end(guard: scf.IfOp) -> None:
    last = scf.YieldOp()
    last.location = guard.location
    guard.true_region.block.add_op(last)

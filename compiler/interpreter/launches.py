"""Launches of kernels: every thread of every block, in an order drawn by chance.

Threads of a block go from barrier to barrier. Where two of them race (`races`) the program is undefined,
whatever it computed in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import VectorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array, device
from ..kernels.emulate_launches import is_shared, parts
from .frame import Frame
from .memory import Memref, Undefined
from .races import Races, Touch, Watch
from .scalars import SCALARS

SEED = 7


def launch(frame: Frame, op: device.LaunchOp) -> None:
    """Run a kernel; what is wrong in it is undefined."""
    run_kernel(
        frame, frame.machine.function(op.target), frame.all(op.values), int(frame.get(op.blocks))
    )


def run_kernel(frame: Frame, kernel: FuncOp, values: Sequence[Any], blocks: int) -> None:
    """So many blocks of a kernel."""
    order, races = np.random.default_rng(SEED), Races()
    for block in order.permutation(max(blocks, 0)):
        threads = [Frame(frame.machine, frame.depth) for _ in range(device.THREADS)]
        for thread in threads:
            thread.bind(kernel.body.block.args, values)
        share(kernel.body.block.ops, threads)
        run = BlockRun(int(block), threads, order, races)
        run.lanes.update(
            (argument, of_all(value))
            for argument, value in zip(kernel.body.block.args, values, strict=True)
            if isinstance(value, np.generic)
        )
        run.run(kernel.body.block)


@dataclass
class BlockRun:
    """The threads of a block, which go from barrier to barrier.

    What they compute outside of branches and without memory is computed for all of them at once. Then most
    threads of a small launch have nothing to run: no branch is taken in them.
    """

    block: int
    threads: list[Frame]
    order: np.random.Generator
    races: Races
    phase: int = 0
    lanes: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    """Numbers of all threads: an array with one for each."""

    def run(self, body: Block) -> None:
        for part in parts(body):
            if isinstance(part, array.LoopOp):
                for k in range(self.agreed(part)):
                    self.lanes[part.induction] = of_all(np.int64(k))
                    self.run(part.body.block)
            else:
                self.between(part)

    def between(self, ops: Sequence[Operation]) -> None:
        """What is between two barriers."""
        apart = [
            (op, self.who_runs(op)) for op in ops if not is_shared(op) and not self.at_once(op)
        ]
        for number in self.order.permutation(device.THREADS):
            if mine := [op for op, runs in apart if runs[number]]:
                thread = self.threads[number]
                thread.watch = Watch(self.races, Touch(self.block, int(number), self.phase))
                thread.bind(self.lanes, [lanes[number] for lanes in self.lanes.values()])
                for one in mine:
                    thread.execute(one)
        self.phase += 1

    def at_once(self, op: Operation) -> bool:
        """Compute an op for all threads, if it is a number that comes of `lanes` alone."""
        if isinstance(op, device.ThreadOp):
            self.lanes[op.result] = np.arange(device.THREADS)
        elif isinstance(op, device.BlockOp):
            self.lanes[op.result] = of_all(np.int64(self.block))
        elif type(op) in SCALARS and not has_vectors(op) and self.lanes.keys() >= {*op.operands}:
            self.threads[0].machine.step()
            found = SCALARS[type(op)](op, *(self.lanes[v] for v in op.operands))
            self.lanes[op.results[0]] = of_all(found)
        else:
            return False
        return True

    def who_runs(self, op: Operation) -> Any:
        """For each thread, whether the op does anything in it."""
        branch = isinstance(op, scf.IfOp) and not op.results and not op.false_region.blocks
        if isinstance(op, scf.IfOp) and branch and op.cond in self.lanes:
            return self.lanes[op.cond]
        return of_all(np.bool_(True))

    def agreed(self, loop: array.LoopOp) -> int:
        """The trips of a loop with barriers; undefined where threads have others."""
        assert loop.count is not None
        if loop.count in self.lanes:
            counts = {int(n) for n in self.lanes[loop.count]}
        else:
            counts = {int(thread.get(loop.count)) for thread in self.threads}
        if len(counts) > 1:
            raise Undefined("threads of a block come to a barrier differently often")
        return counts.pop()


def of_all(number: Any) -> Any:
    """A number of all threads, for each of them."""
    return np.broadcast_to(number, device.THREADS)


def has_vectors(op: Operation) -> bool:
    return any(isinstance(v.type, VectorType) for v in (*op.operands, *op.results))


def share(ops: Iterable[Operation], threads: list[Frame]) -> None:
    """Memory that the threads of a block have in common."""
    for op in filter(is_shared, ops):
        threads[0].execute(op)
        for thread in threads[1:]:
            thread.values[op.results[0]] = threads[0].get(op.results[0])


def is_replayed(frame: Frame, op: device.IsReplayedOp) -> None:
    """Both answers are right; this one runs what a graph would."""
    frame.values[op.result] = np.bool_(True)


def has_conditions(frame: Frame, op: device.HasConditionsOp) -> None:
    """Both answers are right; this one launches each iteration."""
    frame.values[op.result] = np.bool_(False)


def thread(frame: Frame, op: device.ThreadOp) -> None:
    frame.values[op.result] = np.int64(watch_of(frame).now.thread)


def block(frame: Frame, op: device.BlockOp) -> None:
    frame.values[op.result] = np.int64(watch_of(frame).now.block)


def watch_of(frame: Frame) -> Watch:
    if frame.watch is None:
        raise Undefined("this is no thread of a device")
    return frame.watch


def fetch(frame: Frame, op: device.FetchOp) -> None:
    source: Memref = frame.get(op.source)
    frame.values[op.result] = source.root.cells[source.place(frame.all(op.indices))].copy()


def put(frame: Frame, op: device.PutOp) -> None:
    target: Memref = frame.get(op.target)
    target.root.cells[target.place(frame.all(op.indices))] = frame.get(op.value)


def atomic_add(frame: Frame, op: device.AtomicAddOp) -> None:
    target: Memref = frame.get(op.target)
    place = target.place(frame.all(op.indices))
    watch_of(frame).touched(target, place, write=True, atomic=True)
    target.root.cells[place] += frame.get(op.value)

"""An oracle for memory analyses: run small index programs and record every element they touch.

Interprets the part of the IR that decides which elements are touched (index arithmetic, loops,
branches, views, loads, stores, maps); float values are not computed. Addresses are numbers, so that
arguments may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.parser import Parser

from mutad.dialects import array
from mutad.dialects.array import Array


def parse(text: str) -> func.FuncOp:
    """The one function of a module."""
    context = Context()
    for dialect in (Builtin, Func, Arith, MemRef, Scf, Array):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    (function,) = module.body.block.ops
    assert isinstance(function, func.FuncOp)
    return function


@dataclass(frozen=True)
class Buffer:
    """A memref at run time: the address of element 0, extents, strides."""

    start: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]

    def at(self, indices: Sequence[int]) -> int:
        if not all(0 <= i < n for i, n in zip(indices, self.extents, strict=True)):
            raise OutOfRange
        return self.start + sum(i * s for i, s in zip(indices, self.strides, strict=True))

    def all(self) -> frozenset[int]:
        return frozenset(
            self.start + sum(i * s for i, s in zip(indices, self.strides, strict=True))
            for indices in product(*map(range, self.extents))
        )


class OutOfRange(Exception):
    """The program left an array: it ends here, as IndexError ends it."""


@dataclass(frozen=True)
class Event:
    """Elements of a memref were read, written, or ceased to exist ("release"); or an op began ("op")."""

    op: Operation
    memref: SSAValue | None
    kind: str
    addresses: frozenset[int]
    environment: dict[SSAValue, Any] = field(hash=False, compare=False, default_factory=dict)


class Trace:
    """The events of one run of a function."""

    def __init__(self, function: func.FuncOp, arguments: Sequence[int | Buffer]) -> None:
        self.events: list[Event] = []
        self.values: dict[SSAValue, Any] = {}
        self.next_address = 1_000_000
        block = function.body.block
        self.values.update(zip(block.args, arguments, strict=True))
        try:
            self.block(block)
        except OutOfRange:
            pass

    def block(self, block: Block) -> tuple[Any, ...]:
        """Run a block; the operands of its terminator."""
        for op in block.ops:
            self.events.append(Event(op, None, "op", frozenset(), dict(self.values)))
            self.run(op)
        last = block.last_op
        return () if last is None else tuple(self.values.get(o) for o in last.operands)

    def touch(self, op: Operation, kind: str, memref: SSAValue, addresses: frozenset[int]) -> None:
        self.events.append(Event(op, memref, kind, addresses))

    def run(self, op: Operation) -> None:
        v = self.values
        match op:
            case arith.ConstantOp():
                v[op.result] = array.constant_value(op.result)
            case arith.AddiOp():
                v[op.result] = v[op.lhs] + v[op.rhs]
            case arith.SubiOp():
                v[op.result] = v[op.lhs] - v[op.rhs]
            case arith.MuliOp():
                v[op.result] = v[op.lhs] * v[op.rhs]
            case arith.MaxSIOp():
                v[op.result] = max(v[op.lhs], v[op.rhs])
            case arith.MinSIOp():
                v[op.result] = min(v[op.lhs], v[op.rhs])
            case array.FloorDivOp() | arith.FloorDivSIOp():
                v[op.result] = v[op.lhs] // v[op.rhs]
            case arith.CeilDivSIOp():
                v[op.result] = -(-v[op.lhs] // v[op.rhs])
            case array.FloorModOp():
                v[op.result] = v[op.lhs] % v[op.rhs]
            case array.IndexOp():
                i, n = v[op.index], v[op.extent]
                if not -n <= i < n:
                    raise OutOfRange
                v[op.result] = i + n if i < 0 else i
            case arith.CmpiOp():
                left, right = v[op.lhs], v[op.rhs]
                outcomes = (
                    left == right,
                    left != right,
                    left < right,
                    left <= right,
                    left > right,
                    left >= right,
                )
                v[op.result] = outcomes[op.predicate.value.data]
            case arith.AndIOp():
                v[op.result] = v[op.lhs] and v[op.rhs]
            case arith.OrIOp():
                v[op.result] = v[op.lhs] or v[op.rhs]
            case memref.DimOp():
                v[op.result] = v[op.source].extents[v[op.index]]
            case array.AllocOp() | memref.AllocaOp():
                extents = tuple(max(0, v[e]) for e in op.operands)
                v[op.results[0]] = self.allocate(extents)
            case array.ViewOp():
                v[op.result] = self.view(op)
            case memref.LoadOp():
                where = v[op.memref].at([v[i] for i in op.indices])
                self.touch(op, "read", op.memref, frozenset([where]))
                v[op.res] = where
            case memref.StoreOp():
                where = v[op.memref].at([v[i] for i in op.indices])
                self.touch(op, "write", op.memref, frozenset([where]))
            case array.MapOp():
                combined = [m for m, k in zip(op.outs, op.out_kinds, strict=True) if k != "store"]
                for m in dict.fromkeys([*op.ins, *combined]):
                    self.touch(op, "read", m, v[m].all())
                for m in dict.fromkeys(op.outs):
                    self.touch(op, "write", m, v[m].all())
            case scf.IfOp():
                region = op.true_region if v[op.cond] else op.false_region
                if region.blocks.first is not None:
                    for result, value in zip(
                        op.results, self.block(region.blocks.first), strict=False
                    ):
                        v[result] = value
            case array.LoopOp():
                self.loop(op)
            case _:
                for result in op.results:
                    v[result] = None

    def allocate(self, extents: tuple[int, ...]) -> Buffer:
        strides: list[int] = []
        size = 1
        for extent in reversed(extents):
            strides.append(size)
            size *= extent
        self.next_address += size + 1
        return Buffer(self.next_address - size, extents, tuple(reversed(strides)))

    def view(self, op: array.ViewOp) -> Buffer:
        source, v = self.values[op.source], self.values
        extents = tuple(max(0, v[e]) for e in op.extents)
        offsets, steps = [v[o] for o in op.offsets], [v[s] for s in op.steps]
        start = source.start + sum(o * s for o, s in zip(offsets, source.strides, strict=True))
        if 0 not in extents:
            source.at(offsets)
            last = list(offsets)
            for d, n, step in zip(op.source_dims, extents, steps, strict=True):
                if d >= 0:
                    last[d] += (n - 1) * step
            source.at(last)
        strides = tuple(
            source.strides[d] * s if d >= 0 else 0
            for d, s in zip(op.source_dims, steps, strict=True)
        )
        return Buffer(start, extents, strides)

    def loop(self, op: array.LoopOp) -> None:
        carried = [self.values[c] for c in op.carried]
        trips = 0
        condition = op.condition_block
        while op.count is None or trips < self.values[op.count]:
            if condition is not None:
                self.values.update(zip(condition.args, (trips, *carried), strict=True))
                if not self.block(condition)[0]:
                    break
            self.values.update(zip(op.body.block.args, (trips, *carried), strict=True))
            carried = list(self.block(op.body.block))
            self.release(op.body.block)
            trips += 1
        self.values.update(zip(op.results, (trips, *carried), strict=True))

    def release(self, block: Block) -> None:
        """What the iteration allocated is gone."""
        for op in block.ops:
            if isinstance(op, array.AllocOp):
                assert block.last_op is not None
                self.touch(block.last_op, "release", op.memref, self.values[op.memref].all())

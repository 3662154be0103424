"""What a derivative has to do: its arithmetic, and the bytes that it loads and stores.

The interpreter runs the optimized program of one call, and counts. Arithmetic is that of floats, in
additions: a quotient or a root is 8, an elementary function 16, as `codegen.work_estimate` has it. Bytes are
those of arrays. An element that all points of a map's axis share counts once; scalars, and buffers of a fixed
size, are registers and the first cache.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from mutad.bisect import read_module
from mutad.compiler.codegen.work_estimate import SIMPLE, cost_of
from mutad.compiler.interpreter.execution import OPS, bound
from mutad.compiler.interpreter.frame import Frame, Machine
from mutad.compiler.interpreter.memory import Memref
from mutad.compiler.program_calls import Parameter, call_of, element_of, lanes_of, values_of
from mutad.dialects import array
from mutad.kernels import Interpreted, World

MOVES = (arith.ConstantOp, arith.SelectOp, vector.BroadcastOp, vector.ExtractOp, vector.InsertOp)
"""No arithmetic, whatever their results are."""


@dataclass
class Counts:
    """Of one call."""

    operations: float = 0.0
    traffic: int = 0
    """Bytes that are loaded and stored."""

    def touched(self, memref_: Memref, points: int) -> None:
        if memref_.strides:
            self.traffic += points * memref_.root.cells[:1].nbytes


class CountingMachine(Machine):
    """Runs functions in frames that count."""

    def __init__(self, module: ModuleOp) -> None:
        super().__init__(module, World(), OPS)
        self.counts = Counts()

    def call(self, function: FuncOp, arguments: Sequence[Any], depth: int) -> list[Any]:
        frame = CountingFrame(self, depth)
        frame.bind(function.body.block.args, arguments)
        return frame.run(function.body.block)


class CountingFrame(Frame):
    """An activation that counts what its ops do."""

    def execute(self, op: Operation) -> None:
        super().execute(op)
        counts = cast(CountingMachine, self.machine).counts
        match op:
            case memref.LoadOp() | memref.StoreOp():
                if not fixed(op.memref.owner):
                    counts.touched(self.get(op.memref), 1)
            case vector.LoadOp() | vector.StoreOp():
                if not fixed(op.base.owner):
                    lanes = op.vector if isinstance(op, vector.StoreOp) else op.result
                    counts.touched(self.get(op.base), np.size(self.get(lanes)))
            case array.MapOp():
                self.count_map(op, counts)
            case array.MatmulOp():
                a, b, c = (self.get(m) for m in op.operands[:3])
                for one in (a, b, c):
                    counts.touched(one, prod(one.shape))
                counts.operations += 2 * prod(c.shape) * a.shape[1] * lanes_in(c)
            case _ if len(op.results) == 1 and not isinstance(op, MOVES):
                value: Any = self.values.get(op.results[0])
                if isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f":
                    counts.operations += value.size * cost_of(op) / SIMPLE
            case _:
                pass

    def count_map(self, op: array.MapOp, counts: Counts) -> None:
        extents = [int(self.get(e)) for e in op.extents]
        kinds = ["load"] * len(op.ins) + list(op.out_kinds)
        for operand, kind in zip((*op.ins, *op.outs), kinds, strict=True):
            m: Memref = self.get(operand)
            points = prod(n for n, s in zip(extents, m.strides, strict=True) if s)
            counts.touched(m, points * (1 if kind in ("load", "store") else 2))


def fixed(owner: Any) -> bool:
    """Whether memory is a scalar's, or a buffer on the stack."""
    return isinstance(owner, memref.AllocaOp)


def lanes_in(m: Memref) -> int:
    return prod(m.root.cells.shape[1:])


class Counted(Interpreted):
    """Runs calls, and counts what the last function of each does: of `vjp` the reverse sweep."""

    counts: Counts

    def run(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        machine = CountingMachine(self.module)
        function = machine.functions[name]
        values = bound([a.type for a in function.body.block.args], arguments)
        with np.errstate(all="ignore"):
            found = machine.call(function, values, sys.getrecursionlimit())
        self.counts = machine.counts
        return [value.array() if isinstance(value, Memref) else value for value in found]


def counted(text: str, arguments: Mapping[str, Any]) -> Counts:
    """What a call of the program does; the directions that its parameters want are drawn."""
    module, rng = read_module(text, "counted"), np.random.default_rng(0)
    call = call_of(module)
    given = dict(arguments)
    for parameter in call.parameters:
        if parameter.name not in given and parameter.default is None:
            given[parameter.name] = rng.normal(size=shape_of(parameter, given))
    runs = Counted(module)
    runs(call, values_of(call, given))
    return runs.counts


def shape_of(parameter: Parameter, given: Mapping[str, Any]) -> tuple[int, ...]:
    """Of a direction, or a cotangent: that of its primal, and the lanes."""
    own = np.shape(given[parameter.like]) if parameter.like else ()
    return (*own, *lanes_of(element_of(parameter.type)))

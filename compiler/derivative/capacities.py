"""Estimates for the cut of sizes that are known only at run time.

Every extent and every other unknown number counts as `NOMINAL`, a counter as the middle of its range, also
where the loop's steps are a function. So n costs more than n - 1, and a triangle costs half of a square; a
constant costs what it is. An axis counts as 3 if the program takes its elements 0, 1 and 2 and no slices: its
elements are components (`points[:, 0]`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects import arith, func, memref
from xdsl.ir import Block, Operation, SSAValue, Use

from ...dialects import activation, array
from ..analysis.affine import Affine, Extent, Subscripts, Symbol, Term
from .segments import enclosing_loops

NOMINAL = 1000.0
"""What an extent or a trip count that is only known at run time counts as."""


class Nominal:
    """Numbers of one function, evaluated with these values."""

    def __init__(self, subscripts: Subscripts) -> None:
        self.subscripts = subscripts
        self._trips: dict[array.LoopOp, float] = {}
        self._components: dict[Symbol, float] = {}

    def affine(self, value: Affine) -> float:
        terms = (factor * self._symbol(symbol) for symbol, factor in value.terms.items())
        return sum(terms, float(value.constant))

    def size(self, value: SSAValue) -> float:
        """An extent, at least 1."""
        return max(self.affine(self.subscripts.affine(value)), 1.0)

    def extent(self, memref: SSAValue, axis: int) -> float:
        return max(self.affine(self.subscripts.extent(memref, axis)), 1.0)

    def trips_of(self, loop: array.LoopOp) -> float:
        """The iterations of a loop, at least 1."""
        if loop not in self._trips:
            self._trips[loop] = NOMINAL if loop.count is None else self.size(loop.count)
        return self._trips[loop]

    def trips(self, block: Block) -> float:
        """How often a block runs."""
        return prod(map(self.trips_of, enclosing_loops(block)))

    def _symbol(self, symbol: Symbol) -> float:
        if isinstance(symbol, Term):
            values = list(map(self.affine, symbol.args))
            match symbol.kind:
                case "max":
                    return max(values)
                case "min":
                    return min(values)
                case "floordiv":
                    return values[0] // values[1]
                case _:
                    return prod(values)
        if isinstance(symbol, SSAValue) and isinstance(symbol.owner, Block):
            loop = symbol.owner.parent_op()
            if isinstance(loop, array.LoopOp) and symbol is loop.induction:
                return (self.trips_of(loop) - 1) / 2
            if is_step(loop) and symbol is symbol.owner.args[0]:
                return (NOMINAL - 1) / 2
        if symbol not in self._components:
            self._components[symbol] = components(symbol) or NOMINAL
        return self._components[symbol]


def is_step(op: Operation | None) -> bool:
    """Whether a function is the step of a loop, whose counter is its first argument."""
    return isinstance(op, func.FuncOp) and activation.LIVE in op.attributes


def components(symbol: SSAValue | Extent) -> int | None:
    """How many elements an axis of this extent has, as far as the subscripts 0, 1, ... tell; else None."""
    taken: set[int] = set()
    for use in extents_of(symbol):
        match use.operation:
            case array.IndexOp() as op:
                at = array.constant_value(op.index)
                if at is None or at < 0:
                    return None
                taken.add(at)
            case array.LoopOp() | array.CheckedIntOp():
                return None  # it counts
            case op if op.name.startswith("arith.") and not isinstance(op, arith.CmpiOp):
                return None  # there are slices
            case _:
                pass
    return len(taken) if len(taken) > 1 and taken == set(range(len(taken))) else None


def extents_of(symbol: SSAValue | Extent) -> Iterator[Use]:
    """The uses of an extent in the program."""
    if isinstance(symbol, SSAValue):
        yield from symbol.uses
        return
    for use in symbol.memref.uses:
        op = use.operation
        if isinstance(op, memref.DimOp) and array.constant_value(op.index) == symbol.axis:
            yield from op.result.uses

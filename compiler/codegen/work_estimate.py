"""How long a loop or a map will take, estimated where it begins: is it worth several threads?

In nanoseconds of one thread, as a double that LLVM computes from the trip counts of the moment. It need
not be right: a factor of two only moves the size from which on a second thread helps. It is a function of the
sizes alone, so the chunks that it decides are the same in every run.
"""

from __future__ import annotations

from xdsl.dialects import arith, math, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import ad, array
from ..analysis.alias import if_blocks
from ..rules import is_whole_array, rule_of
from ..rules.math import is_transcendental
from .kernel_state import KernelState, lanes_of
from .llvm_text import integer

OPERAND, SIMPLE, DIVISION, FUNCTION = 0.1, 0.05, 0.4, 0.8
"""Nanoseconds of a point of a map: for each array, for an addition, a quotient, an elementary function.
(Vector code, on arrays in the cache: less than it is elsewhere.)"""

SCALAR_CODE = 2.0
"""How much longer an op takes in a loop that may not be vector code."""

PRODUCT = 0.05
"""Nanoseconds of a multiplication in a matrix product, or of an operation of another op on whole arrays."""

UNKNOWN_TRIPS = 16.0


def cost_of(op: Operation) -> float:
    """Of one scalar op."""
    match op:
        case arith.ConstantOp() | memref.DimOp() | array.YieldOp() | scf.YieldOp():
            return 0.0
        case memref.LoadOp() | memref.StoreOp():
            return OPERAND
        case arith.DivfOp() | ad.DivOp() | math.SqrtOp() | arith.DivSIOp() | arith.RemSIOp():
            return DIVISION
        case array.FloorDivOp() | array.FloorModOp():
            return DIVISION
        case _ if is_transcendental(op):
            return FUNCTION
        case _:
            return SIMPLE


def cost_of_point(op: array.MapOp) -> float:
    """Of one point of a map."""
    lanes = max((lanes_of(v.type) for v in op.yielded), default=1)
    operands = OPERAND * (len(op.ins) + len(op.outs))
    return lanes * (operands + sum(map(cost_of, op.body.block.ops)))


class WorkEstimate:
    """Writes the estimate at the current place; the counters of loops are taken as half of their trips."""

    def __init__(self, state: KernelState) -> None:
        self.state = state
        self.counters: dict[SSAValue, str] = {}

    def of_map(self, op: array.MapOp) -> str:
        return self.times([*map(self.number, op.extents), repr(cost_of_point(op))])

    def of_loop(self, op: array.LoopOp) -> str:
        count = repr(UNKNOWN_TRIPS) if op.count is None else self.number(op.count)
        self.counters[op.induction] = self.times([count, "0.5"])
        return self.times([count, self.of_block(op.body.block)])

    def of_block(self, block: Block) -> str:
        known, terms = 0.0, list[str]()
        for op in block.ops:
            match op:
                case array.MapOp():
                    terms.append(self.of_map(op))
                case array.LoopOp():
                    terms.append(self.of_loop(op))
                case _ if is_whole_array(op):
                    terms.append(self.of_whole_array(op))
                case scf.IfOp():
                    terms += [self.of_block(b) for b in if_blocks(op)]
                case _:
                    known += SCALAR_CODE * cost_of(op)
        return self.plus([*terms, repr(known)])

    def of_whole_array(self, op: Operation) -> str:
        axes = rule_of(type(op)).work(op)
        return self.times([*(self.extent(m, axis) for m, axis in axes), repr(PRODUCT)])

    def extent(self, memref_: SSAValue, axis: int) -> str:
        if memref_ in self.state.memrefs:
            return self.as_double(self.state.memrefs[memref_].extents[axis])
        owner = memref_.owner
        if isinstance(owner, array.ViewOp | array.AllocOp | array.CollapseOp):
            return self.number(owner.extents[axis])
        return repr(UNKNOWN_TRIPS)

    def number(self, value: SSAValue) -> str:
        """An int as it is, or as it may be expected."""
        if value in self.counters:
            return self.counters[value]
        if value in self.state.scalars:
            return self.as_double(self.state.scalars[value])
        known = array.constant_value(value)
        if known is not None:
            return repr(float(known))
        match value.owner:
            case arith.AddiOp() | array.CheckedAddOp() as op:
                return self.plus([self.number(op.operands[0]), self.number(op.operands[1])])
            case arith.SubiOp() | array.CheckedSubOp() as op:
                taken = self.times([self.number(op.operands[1]), "-1.0"])
                return self.plus([self.number(op.operands[0]), taken])
            case arith.MaxSIOp() | arith.MinSIOp() as op:
                terms = [o for o in op.operands if array.constant_value(o) is None]
                return self.number(terms[0]) if terms else repr(UNKNOWN_TRIPS)
            case array.IndexOp() as op:
                return self.number(op.index)
            case memref.DimOp() as op:
                axis = array.constant_value(op.index)
                return self.extent(op.source, axis) if axis is not None else repr(UNKNOWN_TRIPS)
            case _:
                return repr(UNKNOWN_TRIPS)

    # Doubles, folded where both are known.

    def as_double(self, operand: str) -> str:
        known = integer(operand)
        if known is not None:
            return repr(float(known))
        return self.state.text.value(f"sitofp i64 {operand} to double")

    def times(self, factors: list[str]) -> str:
        known, rest = 1.0, list[str]()
        for factor in factors:
            if factor.startswith("%"):
                rest.append(factor)
            else:
                known *= float(factor)
        total = repr(known)
        for factor in rest:
            total = self.state.text.value(f"fmul double {total}, {factor}")
        return total

    def plus(self, terms: list[str]) -> str:
        known, rest = 0.0, list[str]()
        for term in terms:
            if term.startswith("%"):
                rest.append(term)
            else:
                known += float(term)
        if not rest:
            return repr(known)
        total = rest[0]
        for term in rest[1:]:
            total = self.state.text.value(f"fadd double {total}, {term}")
        return total if known == 0.0 else self.state.text.value(f"fadd double {total}, {known!r}")

"""Calls of functions whose adjoint the user wrote: `foreign.call_with_rule`.

The forward sweep has the primal's code in the place of the call, the reverse sweep the adjoint's::

    foreign.call_with_rule @axpy_primal @axpy_adjoint(%a, %x, %y) takes ["cotangent 0", "value 1", "shadow 2"]

    forward   the ops of @axpy_primal on %a, %x, %y
    reverse   %a_bar = memref.alloca() : memref<f64>, zeroed
              the ops of @axpy_adjoint on %a_bar, what %x held, %y_shadow
              the cotangent of %a += %a_bar

    tangent   the ops of @axpy_primal on %a, %x, %y
              the ops of @axpy_tangent on %a_dot, what %x held, %x_dot, %y_dot

The plan sees what the adjoint takes as it sees what any op needs: reloaded where it survives, else saved.
The shadow of an argument that is not active is scratch memory of zeros, and so is a cotangent. Of several
derivatives at once the rule is run for each (`each_lane`).
"""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat, MemRefType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array, foreign
from .access import Contents
from .builders import element_of, extents_of, fill, transfer
from .each_lane import Lane, in_each_lane, zeroed_cell
from .routines import adjoint_of, inlined, primal_of, tangent_of
from .shadows import scratch_shadow
from .sweeps import SHADOW, ReverseSweep, Sweep, TangentSweep
from .table import ADJOINT


class CallAdjoint:
    """The adjoint of one call."""

    def __init__(self, sweep: ReverseSweep, op: foreign.RuleCallOp) -> None:
        self.sweep = sweep
        self.op = op
        self.cells: dict[int, SSAValue] = {}
        self.bars = [
            sweep.take_bar(r) if isinstance(r.type, AnyFloat) else None for r in op.results
        ]

    def emit(self) -> None:
        bars = in_each_lane(self.sweep, self.op, self.emit_lane)
        for number, bar in zip(self.cells, bars, strict=True):
            self.sweep.add_bar(self.op.operands[number], bar)

    def emit_lane(self, lane: Lane) -> list[SSAValue]:
        """The rule, for one cotangent; those of the arguments that are numbers."""
        sweep = self.sweep
        function = adjoint_of(self.op)
        arguments = [
            cast_to(sweep, self.taken(kind, number, lane), parameter.type)
            for (kind, number), parameter in zip(
                self.op.taken, function.body.block.args, strict=True
            )
        ]

        def append(clone: Operation) -> None:
            for one in clone.walk():
                if isinstance(one, arith.AddfOp | arith.MulfOp | arith.SubfOp | arith.DivfOp):
                    one.attributes[ADJOINT] = UnitAttr()
            sweep.insert(clone)

        inlined(function, arguments, append, sweep.entry)
        return [sweep.emit(memref.LoadOp.get(cell, [])) for cell in self.cells.values()]

    def taken(self, kind: str, number: int, lane: Lane) -> SSAValue:
        """One parameter of the adjoint."""
        sweep = self.sweep
        match kind:
            case "result":
                return sweep.primal.get(self.op.results[number])
            case "result_cotangent":
                bar = self.bars[number]
                if bar is not None:
                    return lane.number(bar)
                return sweep.scalars.constant(0.0, self.op.results[number])
            case "value" | "after":
                operand = self.op.operands[number]
                if not isinstance(operand.type, MemRefType):
                    return sweep.primal.get(operand)
                after = kind == "after"
                return sweep.primal.contents(Contents(self.op, number, after), operand)
            case "cotangent":
                return self.cell(number)
            case _:
                assert kind == "shadow", kind
                return self.shadow(self.op.operands[number], lane)

    def shadow(self, operand: SSAValue, lane: Lane) -> SSAValue:
        if self.sweep.activity.active(operand):
            shadow = self.sweep.primal.memref(operand, SHADOW)
            return lane.array(operand, shadow, written=True)
        return scratch_shadow(self.sweep, self.op, operand, element_of(operand))

    def cell(self, number: int) -> SSAValue:
        """A cell for what the rule adds to the cotangent of a float argument."""
        operand = self.op.operands[number]
        self.cells[number] = cell_for(self.sweep, self.op, operand, "bar")
        return self.cells[number]


class CallTangent:
    """One call with its tangent."""

    def __init__(self, sweep: TangentSweep, op: foreign.RuleCallOp) -> None:
        self.sweep = sweep
        self.op = op
        self.cells: dict[int, SSAValue] = {}

    def emit(self) -> None:
        """The primal, then the rule: what it reads of overwritten arrays is copied before."""
        sweep, op = self.sweep, self.op
        written = op.arguments_that("write")
        held = {
            number: self.copy(op.operands[number])
            for kind, number in op.moved
            if kind == "value" and op.operands[number] in written
        }
        results = inlined(primal_of(op), sweep.values(op.operands), sweep.insert, sweep.entry)
        for old, fresh in zip(op.results, results, strict=True):
            sweep.bind(old, fresh)
        dots = in_each_lane(sweep, op, lambda lane: self.emit_lane(lane, held))
        for number, dot in zip(self.cells, dots, strict=True):
            sweep.set_dot(op.results[number], dot)

    def emit_lane(self, lane: Lane, held: dict[int, SSAValue]) -> list[SSAValue]:
        """The rule, for one tangent; those of the results that are numbers."""
        sweep, op = self.sweep, self.op
        function = tangent_of(op)
        arguments = [
            cast_to(sweep, self.taken(kind, number, held, lane), parameter.type)
            for (kind, number), parameter in zip(op.moved, function.body.block.args, strict=True)
        ]
        inlined(function, arguments, sweep.insert, sweep.entry)
        return [sweep.emit(memref.LoadOp.get(cell, [])) for cell in self.cells.values()]

    def taken(self, kind: str, number: int, held: dict[int, SSAValue], lane: Lane) -> SSAValue:
        """One parameter of the rule."""
        sweep, op = self.sweep, self.op
        match kind:
            case "result":
                return sweep.value(op.results[number])
            case "result_tangent":
                self.cells[number] = cell_for(sweep, op, op.results[number], "dot")
                return self.cells[number]
            case "value" if number in held:
                return held[number]
            case "value" | "after":
                return sweep.value(op.operands[number])
            case _:
                assert kind == "tangent", kind
                return self.tangent(op.operands[number], lane)

    def tangent(self, operand: SSAValue, lane: Lane) -> SSAValue:
        dot = self.sweep.dot(operand)
        if dot is None:
            return zeros_for(self.sweep, self.op, operand, operand.type)
        if not isinstance(operand.type, MemRefType):
            return lane.number(dot)
        written = operand in self.op.arguments_that("write")
        return lane.array(operand, dot, written=written)

    def copy(self, operand: SSAValue) -> SSAValue:
        """What an array holds before the call."""
        source = self.sweep.value(operand)
        extents = extents_of(source, self.sweep.emit)
        held = self.sweep.emit(array.AllocOp(extents, operand.type.element_type))  # pyright: ignore
        held.name_hint = f"{operand.name_hint or 'v'}_before"
        self.sweep.append(transfer(source, held, extents))
        return held


def tangent_or_zeros(sweep: TangentSweep, op: Operation, operand: SSAValue) -> SSAValue:
    """The tangent of an argument; zeros where it moves in other calls only."""
    return sweep.dot(operand) or zeros_for(sweep, op, operand, sweep.wide(operand.type))


def zeros_for(sweep: TangentSweep, op: Operation, operand: SSAValue, wanted: Attribute) -> SSAValue:
    """The tangent of what stands still, of this type."""
    if not isinstance(wanted, MemRefType):
        return sweep.scalars.constant(0.0, wanted)
    extents = extents_of(sweep.value(operand), sweep.emit)
    zeros = sweep.emit(array.AllocOp(extents, wanted.element_type))
    sweep.append(fill(zeros, extents, op))
    return cast_to(sweep, zeros, wanted)


def cast_to(sweep: Sweep, value: SSAValue, to: Attribute) -> SSAValue:
    """The value in the type that a function was written for; a copy may be more compact."""
    if value.type == to or not isinstance(to, MemRefType):
        return value
    return sweep.emit(memref.CastOp.get(value, to))


def cell_for(sweep: Sweep, op: Operation, of: SSAValue, suffix: str) -> SSAValue:
    """A cell of 0, for what a rule adds to the cotangent or the tangent of a number."""
    return zeroed_cell(sweep, op, of.type, f"{of.name_hint or 'v'}_{suffix}")

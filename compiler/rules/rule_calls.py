"""Calls of functions whose adjoint the user wrote: `foreign.call_with_rule`.

The forward sweep has the primal's code in the place of the call, the reverse sweep the adjoint's::

    foreign.call_with_rule @axpy_primal @axpy_adjoint(%a, %x, %y) takes ["cotangent 0", "value 1", "shadow 2"]

    forward   the ops of @axpy_primal on %a, %x, %y
    reverse   %a_bar = memref.alloca() : memref<f64>, zeroed
              the ops of @axpy_adjoint on %a_bar, what %x held, %y_shadow
              the cotangent of %a += %a_bar

The plan sees what the adjoint takes as it sees what any op needs: reloaded where it survives, else saved.
The shadow of an argument that is not active is scratch memory of zeros, and so is a cotangent.
"""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat, FloatAttr, MemRefType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import foreign
from .accesses import Contents
from .routines import adjoint_of, inlined
from .shadows import scratch_shadow
from .sweeps import SHADOW, ReverseSweep
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
        sweep = self.sweep
        function = adjoint_of(self.op)
        arguments = [
            self.cast(self.taken(kind, number), parameter.type)
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
        for number, cell in self.cells.items():
            sweep.add_bar(self.op.operands[number], sweep.emit(memref.LoadOp.get(cell, [])))

    def taken(self, kind: str, number: int) -> SSAValue:
        """One parameter of the adjoint."""
        sweep = self.sweep
        match kind:
            case "result":
                return sweep.primal.get(self.op.results[number])
            case "result_cotangent":
                bar = self.bars[number]
                return bar or sweep.scalars.constant(0.0, self.op.results[number])
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
                return self.shadow(self.op.operands[number])

    def shadow(self, operand: SSAValue) -> SSAValue:
        if self.sweep.activity.active(operand):
            return self.sweep.primal.memref(operand, SHADOW)
        return scratch_shadow(self.sweep, self.op, operand)

    def cell(self, number: int) -> SSAValue:
        """A cell for what the rule adds to the cotangent of a float argument."""
        operand = self.op.operands[number]
        alloca = memref.AllocaOp.get(operand.type, shape=[])
        alloca.location = self.op.location
        alloca.memref.name_hint = f"{operand.name_hint or 'v'}_bar"
        first = self.sweep.entry.first_op
        assert first is not None
        self.sweep.entry.insert_op_before(alloca, first)
        zero = arith.ConstantOp(FloatAttr(0.0, operand.type))  # pyright: ignore
        self.sweep.append(zero)
        self.sweep.append(memref.StoreOp.get(zero.result, alloca.memref, []))
        self.cells[number] = alloca.memref
        return alloca.memref

    def cast(self, value: SSAValue, to: Attribute) -> SSAValue:
        """The value in the type that the adjoint was written for; a copy may be more compact."""
        if value.type == to or not isinstance(to, MemRefType):
            return value
        return self.sweep.emit(memref.CastOp.get(value, to))

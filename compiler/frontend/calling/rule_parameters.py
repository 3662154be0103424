"""The parameters of a rule: arguments with their shadows, as objects with attributes.

::

    y.shadow *= a.value * x.value        %y_shadow, %a, %x are arguments of the adjoint from here on
    a.cotangent += s                     load, add, store to the cell %a_bar
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...diagnostics import CompileError
from ...names import legal
from .. import library, scalars
from ..values import Array, Scalar, Value
from .routines import Number, Routine, Slot, has_slots
from .special_calls import Member

if TYPE_CHECKING:
    from .calls import Calls
    from .rule_calls import RuleCall


class Parameter(Member):
    """What a rule's parameter is: an argument with its shadow, or the result."""

    def __init__(
        self, of: RuleCall, routine: Routine, name: str, value: Any, *, result: bool = False
    ) -> None:
        self.of, self.routine, self.name, self.slots, self.result = of, routine, name, value, result

    def read(self, lowering: Calls, attribute: str, node: ast.AST) -> Value:
        """`x.value`, `x.after`, `x.shadow` or `x.cotangent`."""
        self.check(lowering, attribute, node)
        if not has_slots(self.slots) and attribute in ("shadow", "cotangent"):
            raise self.missing(lowering, attribute, node)
        return self.of.within(
            self.slots, self.routine, lambda slot: self.part(lowering, attribute, slot, node)
        )

    def check(self, lowering: Calls, attribute: str, node: ast.AST) -> None:
        """Refuse what is no attribute of a parameter."""
        if attribute not in ("value", "after", "shadow", "cotangent"):
            raise lowering.refusal(
                node,
                f"a rule's parameter has no attribute `{attribute}`",
                "there are .value, .after, .shadow (of arrays) and .cotangent (of numbers)",
            )

    def missing(self, lowering: Calls, attribute: str, node: ast.AST) -> CompileError:
        return lowering.refusal(
            node, f"`{self.name}` has no {attribute}: it is no float and no array of floats"
        )

    def part(self, lowering: Calls, attribute: str, slot: Slot | Number, node: ast.AST) -> Value:
        of, routine = self.of, self.routine
        if isinstance(slot, Number):
            return self.of_number(lowering, attribute, slot.position, node)
        number = slot.number
        operand = of.operands[number]
        kind = operand.dtype if isinstance(operand, Array) else operand.type
        wanted = "shadow" if isinstance(operand, Array) else "cotangent"
        if attribute == "value" and not self.result:
            return routine.argument(("value", number), operand)
        if attribute in ("after", "value") and isinstance(operand, Array):
            return routine.argument(("after", number), operand)
        if attribute == wanted and scalars.is_float(kind):
            if isinstance(operand, Array):
                found = routine.argument(("shadow", number), operand)
                assert isinstance(found, Array)
                found.memref.name_hint = legal(f"{self.name}_shadow")
                of.list_sharing(routine, "shadow")
                return found
            cell = self.cell(number, operand)
            return Scalar(operand.type, routine.emitter.load(cell))
        if attribute in ("shadow", "cotangent") and attribute != wanted and scalars.is_float(kind):
            what = "an array" if isinstance(operand, Array) else "a number"
            raise lowering.refusal(node, f"`{self.name}` is {what}", f"write {self.name}.{wanted}")
        if attribute == "after":
            raise lowering.refusal(
                node,
                f"`{self.name}` is a number: a call does not change it",
                f"write {self.name}.value",
            )
        raise self.missing(lowering, attribute, node)

    def of_number(self, lowering: Calls, attribute: str, number: int, node: ast.AST) -> Value:
        """A number that the function returns."""
        result = self.of.results[number]
        if attribute == "value":
            return self.routine.argument(("result", number), result)
        if attribute == "cotangent" and scalars.is_float(result.type):
            return self.routine.argument(("result_cotangent", number), result)
        if attribute == "shadow":
            raise lowering.refusal(
                node, f"`{self.name}` is a number", f"write {self.name}.cotangent"
            )
        raise self.missing(lowering, attribute, node)

    def cell(self, number: int, operand: Scalar) -> SSAValue:
        type_ = MemRefType(operand.ssa.type, [])
        return self.routine.placed(("cotangent", number), type_, f"{self.name}_bar")

    def assign(
        self, lowering: Calls, attribute: str, op: str | None, value: Value, node: ast.AST
    ) -> None:
        """`x.shadow op= value` in place; `a.cotangent += value`."""
        self.check(lowering, attribute, node)
        if op is None:
            raise lowering.refusal(
                node,
                f"`{self.name}.{attribute}` is assigned to",
                "add to a cotangent: a.cotangent += ...; change a shadow in place: x.shadow[...] = ...",
            )
        if attribute == "shadow":
            target = self.read(lowering, attribute, node)
            if isinstance(target, Array):
                library.augmented(lowering.e, op, target, value)
                return
        elif attribute == "cotangent" and not self.result and op in ("Add", "Sub"):
            if not isinstance(self.slots, Slot):
                if isinstance(self.slots, Scalar) and scalars.is_float(self.slots.type):
                    return  # A constant: nobody asks for its cotangent.
                raise self.missing(lowering, attribute, node)
            before = self.read(lowering, attribute, node)
            operand = self.of.operands[self.slots.number]
            assert isinstance(operand, Scalar)
            total = lowering.settled(lowering.binary_values(op, before, value))
            if not isinstance(total, Scalar):
                raise lowering.refusal(
                    node,
                    f"an array is added to the cotangent of a number, `{self.name}`",
                    "add its sum: (...).sum()",
                )
            same = scalars.convert(lowering.e, total, operand.type)
            lowering.e.store(same.ssa, self.cell(self.slots.number, operand))
            return
        raise lowering.refusal(
            node, f"`{self.name}.{attribute}` is not assigned to in a rule",
            "shadows of arguments are changed in place, to their cotangents something is added",
        )  # fmt: skip

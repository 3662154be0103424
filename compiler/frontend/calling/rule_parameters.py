"""The parameters of a rule: arguments with their shadows, or tangents, as objects with attributes.

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
from .routines import Number, Routine, Slot, has_slots, within
from .special_calls import Member

if TYPE_CHECKING:
    from .calls import Calls
    from .rule_calls import RuleCall


ATTRIBUTES = {"adjoint": ("shadow", "cotangent"), "tangent": ("tangent", "tangent")}
"""What a rule is given beside values: for an array, and for a number."""


class Parameter(Member):
    """What a rule's parameter is: an argument with its shadow or tangent, or the result."""

    def __init__(
        self, of: RuleCall, routine: Routine, name: str, value: Any, *, result: bool
    ) -> None:
        self.of, self.routine, self.name, self.slots, self.result = of, routine, name, value, result
        self.of_arrays, self.of_numbers = ATTRIBUTES[routine.kind]
        self.in_cells: type[Slot | Number] = Slot if routine.kind == "adjoint" else Number
        """The numbers that a rule adds to are in cells: cotangents of arguments, tangents of results."""

    def __repr__(self) -> str:
        return f"the rule's parameter `{self.name}`, which has `.value`"

    def read(self, lowering: Calls, attribute: str, node: ast.AST) -> Value:
        """`x.value`, `x.after`, `x.shadow` or `x.cotangent`; in a tangent `x.tangent`."""
        self.check(lowering, attribute, node)
        if not has_slots(self.slots) and attribute not in ("value", "after"):
            is_float = isinstance(self.slots, Scalar) and scalars.is_float(self.slots.type)
            if attribute == "tangent" and is_float:
                return self.routine.emitter.constant(
                    0.0, self.slots.type
                )  # A constant stands still.
            raise self.missing(lowering, attribute, node)
        return within(
            self.slots,
            self.routine.emitter,
            lambda slot: self.part(lowering, attribute, slot, node),
        )

    def check(self, lowering: Calls, attribute: str, node: ast.AST) -> None:
        """Refuse what is no attribute of a parameter."""
        if attribute not in ("value", "after", self.of_arrays, self.of_numbers):
            own = f".{self.of_arrays} (of arrays) and .{self.of_numbers} (of numbers)"
            raise lowering.refusal(
                node,
                f"a rule's parameter has no attribute `{attribute}`",
                f"there are .value, .after, {own if self.of_arrays != self.of_numbers else 'and .tangent'}",
            )

    def missing(self, lowering: Calls, attribute: str, node: ast.AST) -> CompileError:
        return lowering.refusal(
            node, f"`{self.name}` has no {attribute}: it is neither a float nor an array of floats"
        )

    def part(self, lowering: Calls, attribute: str, slot: Slot | Number, node: ast.AST) -> Value:
        of, routine = self.of, self.routine
        is_number = isinstance(slot, Number)
        operand, number = self.operand_of(slot)
        is_array = isinstance(operand, Array)
        if attribute == "value" and (is_number or not self.result):
            return routine.argument(("result" if is_number else "value", number), operand)
        if attribute in ("after", "value") and is_array:
            return routine.argument(("after", number), operand)
        if attribute == "after" and not is_number:
            raise lowering.refusal(
                node,
                f"`{self.name}` is a number: a call does not change it",
                f"write {self.name}.value",
            )
        wanted = self.of_arrays if is_array else self.of_numbers
        if attribute == "after" or not scalars.is_float(
            operand.dtype if is_array else operand.type
        ):
            raise self.missing(lowering, attribute, node)
        if attribute != wanted:
            what = "an array" if is_array else "a number"
            raise lowering.refusal(node, f"`{self.name}` is {what}", f"write {self.name}.{wanted}")
        if not is_array and isinstance(slot, self.in_cells):
            return Scalar(operand.type, routine.emitter.load(self.cell(number, operand)))
        found = routine.argument((f"result_{wanted}" if is_number else wanted, number), operand)
        if isinstance(found, Array):
            found.memref.name_hint = legal(f"{self.name}_{wanted}")
            of.list_sharing(routine)
        return found

    def operand_of(self, slot: Slot | Number) -> tuple[Scalar | Array, int]:
        if isinstance(slot, Number):
            return self.of.results[slot.position], slot.position
        return self.of.operands[slot.number], slot.number

    def cell(self, number: int, operand: Scalar) -> SSAValue:
        type_ = MemRefType(operand.ssa.type, [])
        key, suffix = ("cotangent", "bar") if self.in_cells is Slot else ("result_tangent", "dot")
        return self.routine.placed((key, number), type_, f"{self.name}_{suffix}")

    def assign(
        self, lowering: Calls, attribute: str, op: str | None, value: Value, node: ast.AST
    ) -> None:
        """`x.shadow op= value` in place; `a.cotangent += value`."""
        self.check(lowering, attribute, node)
        if op is None:
            raise lowering.refusal(
                node,
                f"`{self.name}.{attribute}` is assigned to",
                f"add to a {self.of_numbers}: a.{self.of_numbers} += ...; "
                f"change a {self.of_arrays} in place: x.{self.of_arrays}[...] = ...",
            )
        if attribute == self.of_arrays:
            target = self.read(lowering, attribute, node)
            if isinstance(target, Array):
                library.augmented(lowering.e, op, target, value)
                return
        has_cells = self.result == (self.in_cells is Number)
        if attribute == self.of_numbers and has_cells and op in ("Add", "Sub"):
            if not isinstance(self.slots, self.in_cells):
                if isinstance(self.slots, Scalar) and scalars.is_float(self.slots.type):
                    return  # A constant: nobody asks for its cotangent.
                raise self.missing(lowering, attribute, node)
            before = self.read(lowering, attribute, node)
            operand, number = self.operand_of(self.slots)
            assert isinstance(operand, Scalar)
            total = lowering.binary_values(op, before, value)
            if not isinstance(total, Scalar):
                raise lowering.refusal(
                    node,
                    f"an array is added to the {attribute} of a number, `{self.name}`",
                    "add its sum: (...).sum()",
                )
            same = scalars.convert(lowering.e, total, operand.type)
            lowering.e.store(same.ssa, self.cell(number, operand))
            return
        raise lowering.refusal(
            node, f"`{self.name}.{attribute}` is not assigned to in a rule",
            f"{self.of_arrays}s are changed in place; something is added to cotangents of arguments, and to"
            " tangents of results",
        )  # fmt: skip

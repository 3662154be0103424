"""The operands and results of one derivative that compiled code calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....dialects import ad, array
from ....dialects.ad import Part
from ...diagnostics import CompileError
from ...names import as_hint
from ...rules.builders import transfer
from .. import scalars
from ..calling.routines import Number, Routine, Slot, ssa_of
from ..values import (
    NUMPY_DTYPE,
    Array,
    NoneValue,
    Scalar,
    Tuple,
    Value,
)

if TYPE_CHECKING:
    from .derivatives import Asked, DerivativeCall

Given = tuple[Part, SSAValue, str]
Made = dict[Part, SSAValue]
Answer = Callable[[Made], Value]
"""Makes what the call returns of the op's results."""


class Operands:
    """The operands and results of one op."""

    def __init__(
        self, call: DerivativeCall, operands: list[Any], names: list[str], stored: set[int]
    ) -> None:
        self.call, self.e = call, call.lowering.e
        self.operands, self.names, self.stored = list(operands), names, stored
        self.changed = dict.fromkeys(stored, f"{call.name}() overwrites")
        """The operands that may share memory with no other, each with why."""
        made = range(call.own, len(call.operands))
        self.effects = {
            k: "none" if isinstance(o, Scalar) else "write" if k in made
            else "readwrite" if k in stored else "read"
            for k, o in enumerate(operands)
        }  # fmt: skip
        self.made = {k: operands[k] for k in made}
        """The arrays that the function returns."""
        self.takes: list[Given] = [
            (Part("argument", k), ssa_of(o), self.effects[k]) for k, o in enumerate(operands)
        ]
        self.gives = [(Part("result", k), r.ssa.type) for k, r in enumerate(call.results)]
        self.reverse, self.order = False, 0

    def emitted(self, primal: Routine) -> Made:
        op = ad.DerivativeOp(
            primal.private.sym_name.data, self.order, self.takes, self.gives, reverse=self.reverse
        )
        self.e.insert(op)
        return dict(op.given())

    def value(self, made: Made) -> Value:
        numbers = [made[Part("result", k)] for k in range(len(self.call.results))]
        return self.call.outer_result(self.call.result, numbers)

    # Gradients, and their derivatives in a direction.

    def gradient(self, asked: Asked) -> Answer:
        self.reverse = True
        result = self.call.results[0]
        self.takes.append((Part("cotangent", 0), self.e.constant(1.0, result.type).ssa, "none"))
        numbers = [self.call.given[name].number for name in asked.names]
        for name, k in zip(asked.names, numbers, strict=True):
            self.changed[k] = f"{self.call.name}() is differentiated with respect to"
            if name in asked.directions:
                self.order = 1
                self.direction(k, asked.directions[name], name)
        gradients = [self.gradient_of(k, frozenset()) for k in numbers]
        products = [self.gradient_of(k, frozenset({1})) for k in numbers if self.order]

        def shaped(parts: list[Answer], made: Made) -> Value:
            values = tuple(part(made) for part in parts)
            return values[0] if asked.single else Tuple(values)

        def answer(made: Made) -> Value:
            match asked.what:
                case "grad":
                    return shaped(gradients, made)
                case "hvp":
                    return shaped(products, made)
                case "value_and_grad":
                    return Tuple((self.value(made), shaped(gradients, made)))
                case _:
                    both = shaped(gradients, made), shaped(products, made)
                    return Tuple((self.value(made), *both))

        return answer

    def gradient_of(self, k: int, along: frozenset[int]) -> Callable[[Made], Value]:
        """The gradient in an operand: of an array a new one, of a number a result."""
        operand = self.operands[k]
        if isinstance(operand, Array):
            shadow = self.fresh(operand, f"{self.names[k]}_grad")
            self.takes.append((Part("shadow", k, along), shadow.memref, "write"))
            return lambda _: shadow
        part, type_ = Part("gradient", k, along), operand.type
        self.gives.append((part, operand.ssa.type))
        return lambda made: Scalar(type_, made[part])

    def fresh(self, like: Array, hint: str) -> Array:
        op = array.AllocOp(self.e.extents(like.memref), like.type.element_type)
        self.e.insert(op, as_hint(hint))
        return Array(op.memref, like.dtype)

    # Tangents.

    def jvp(self, asked: Asked) -> Answer:
        self.order = 1
        for name, tangent in asked.directions.items():
            slots = self.call.given[name]
            self.direction(slots.number, tangent, name)
        for k, one in self.made.items():
            if scalars.is_float(one.dtype):
                dot = self.fresh(one, "result_dot")
                self.takes.append((Part("argument", k, frozenset({1})), dot.memref, "write"))
                self.made[k] = dot
        for k, result in enumerate(self.call.results):
            if scalars.is_float(result.type):
                self.gives.append((Part("result", k, frozenset({1})), result.ssa.type))
        return lambda made: Tuple((self.value(made), self.moved(self.call.result, made)))

    def moved(self, result: Any, made: Made) -> Value:
        """The tangent of the result, None for what is no float."""
        match result:
            case Tuple(items):
                return replace(result, items=tuple(self.moved(item, made) for item in items))
            case Slot(k) if scalars.is_float(self.made[k].dtype):
                return self.made[k]
            case Number(k) if (part := Part("result", k, frozenset({1}))) in made:
                return Scalar(self.call.results[k].type, made[part])
            case _:
                return NoneValue()

    def direction(self, k: int, given: Value, name: str) -> None:
        """The tangent of an operand: of `jvp` the program's own array, of `hvp` one that is only read."""
        operand, part = self.operands[k], Part("argument", k, frozenset({1}))
        if isinstance(operand, Scalar):
            if not isinstance(given, Scalar):
                raise self.wrong(name, "a number")
            moving = scalars.convert(self.e, given, operand.type)
            self.takes.append((part, moving.ssa, "none"))
            return
        if not isinstance(given, Array) or given.rank != operand.rank:
            raise self.wrong(name, f"an array of rank {operand.rank}")
        if given.dtype != operand.dtype:
            raise self.wrong(name, f"an array of dtype {NUMPY_DTYPE[operand.dtype]}")
        self.require_shape(operand, given, name)
        given = self.call.compact(given)
        assert isinstance(given, Array)
        if self.reverse and k in self.stored:
            copy = self.fresh(operand, f"{name}_dot")
            self.e.insert(transfer(given.memref, copy.memref, self.e.extents(copy.memref)))
            given = copy
        if not self.reverse:
            self.changed[len(self.operands)] = f"{self.call.name}.jvp() updates the tangent of"
            self.operands.append(given)
            self.names.insert(len(self.operands) - 1, name)
        self.takes.append((part, given.memref, self.effects[k]))

    def wrong(self, name: str, wanted: str) -> CompileError:
        return self.call.refusal(
            f"the direction of `{name}` is not {wanted}, as `{name}` itself is"
        )

    def require_shape(self, operand: Array, given: Array, name: str) -> None:
        """Raise ValueError unless both have one shape."""
        e = self.e
        extents = [*e.extents(given.memref), *e.extents(operand.memref)]
        half = operand.rank
        wrong: SSAValue | None = None
        for one, wanted in zip(extents[:half], extents[half:], strict=True):
            if one is not wanted:
                differs = e.emit(arith.CmpiOp(one, wanted, "ne"))
                wrong = differs if wrong is None else e.emit(arith.OrIOp(wrong, differs))
        if wrong is not None:
            shape = "({},)" if half == 1 else f"({', '.join('{}' for _ in range(half))})"
            text = f"the direction of '{name}' has shape {shape}, not {shape}"
            e.insert(array.RaiseIfOp(wrong, "ValueError", text, extents))

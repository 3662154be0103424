"""Derivatives that the program asks for: `g.grad`, `g.value_and_grad`, `g.jvp`, `g.hvp`, `g.value_grad_hvp`.

The function is lowered for the arguments of the call, as a private function; what is asked of it is an op::

    v, dx = g.value_and_grad(x, k)      %dx = array.alloc(%n) : memref<?xf64>
                                        %v = ad.derivative @g reverse order 0 (%x, %k, %dx, %one) takes [...]

Arguments are changed as the plain call changes them, gradients are new, tangents are updated as what they
are tangents of: as outside of compiled code. What is differentiated or changed shares no memory with another
argument.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from ....dialects import ad, array
from ....dialects.ad import Part
from ...diagnostics import CompileError
from ...names import as_hint
from ...rules.builders import transfer
from .. import scalars
from ..calling.routines import Key, Number, Routine, RoutineCall, Slot, keyword_only, ssa_of
from ..calling.special_calls import MemberMethod, bound
from ..context import Purpose, same_binding
from ..data.fields import is_frozen
from ..data.records import Method
from ..values import (
    NUMPY_DTYPE,
    Array,
    NoneValue,
    Record,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)

if TYPE_CHECKING:
    from ..calling.calls import Calls

Given = tuple[Part, SSAValue, str]
CALLS = ("grad", "value_and_grad", "jvp", "hvp", "value_grad_hvp")
OTHERS = ("vjp", "pullback", "pushforward", "hessian", "jacobian", "linear_operator", "explain")


def attribute(lowering: Calls, function: Any, name: str, node: ast.AST) -> Value | None:
    """`g.grad` of a function or method; None for what has nothing to do with derivatives."""
    if name not in (*CALLS, *OTHERS) or isinstance(function, type):
        return None
    receiver = function.receiver if isinstance(function, Method) else None
    if isinstance(receiver, Record | Struct):
        function = inspect.getattr_static(receiver.cls, function.function.__name__, None)
    if not callable(function):
        return None
    has_gradient = getattr(function, "has_gradient", None)
    given = None
    if isinstance(function, functools.partial):
        given, function = cast("functools.partial[Any]", function), function.func
    called = getattr(function, "__name__", "this")
    if not isinstance(has_gradient, bool):
        if hasattr(function, name):
            return None
        raise lowering.refusal(
            node,
            f"`{called}` has no attribute `{name}`: it is not compiled",
            f"decorate `{called}` with @compile(grad=True)",
        )
    if not has_gradient:
        raise lowering.refusal(
            node,
            f"`{called}` was compiled without gradient",
            f"decorate `{called}` with @compile(grad=True)",
        )
    if name in OTHERS:
        raise lowering.refusal(
            node,
            f"`{called}.{name}` cannot be called from compiled code",
            f"call it outside; compiled code may call {', '.join(f'.{c}' for c in CALLS)}",
        )
    return Static(DerivativeOf(function, name, node, receiver, given))


class DerivativeOf(MemberMethod):
    """`g.grad` and its like, before the call."""

    def __init__(
        self,
        function: Any,
        what: str,
        node: ast.AST,
        receiver: Value | None,
        given: functools.partial[Any] | None,
    ) -> None:
        self.function, self.what, self.node, self.receiver = function, what, node, receiver
        self.given = functools.partial(function) if given is None else given

    def call(self, lowering: Calls, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = {k: kwargs.pop(k) for k in ("wrt", "direction", "tangents") if k in kwargs}
        own = [] if self.receiver is None else [self.receiver]
        own += [lowering.constant(v, "an argument of a partial") for v in self.given.args]
        names = self.given.keywords
        kwargs = {**{k: lowering.constant(v, k) for k, v in names.items()}, **kwargs}
        left = [n for n in self.function.parameters[len(own) :] if n not in names]
        asked = Asked(lowering, self.function.__name__, self.what, given, left)
        plain = lowering.plain(self.function)
        values = bound(lowering, plain, [*own, *args], kwargs, self.node)
        named = asked.bound_to(dict(zip(self.function.parameters, values, strict=True)))
        return DerivativeCall(lowering, self.function, named, self.node).lowered(asked)


class Asked:
    """What a call asks for: derivatives with respect to which parameters, in which direction."""

    def __init__(
        self, lowering: Calls, name: str, what: str, given: dict[str, Value], left: list[str]
    ) -> None:
        self.lowering, self.name, self.what, self.given = lowering, name, what, given
        self.left = left
        """The parameters that callers give: those that positions count."""
        wanted = {
            "jvp": {"tangents"},
            "hvp": {"wrt", "direction"},
            "value_grad_hvp": {"wrt", "direction"},
        }
        allowed = wanted.get(what, {"wrt"})
        for keyword in (*given, *(allowed - {"wrt"})):
            if keyword not in allowed:
                raise self.refusal(f"{name}.{what}() has no argument `{keyword}`")
            if keyword not in given:
                raise self.refusal(f"{name}.{what}() needs an argument `{keyword}`")
        self.single = True
        self.directions: dict[str, Value] = {}
        self.names: tuple[str, ...] = ()

    def refusal(self, message: str, way_out: str | None = None) -> CompileError:
        return self.lowering.refusal(None, message, way_out)

    def bound_to(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Find what is asked among the parameters; their values, none known of what is differentiated."""
        if self.what == "jvp":
            self.directions = self.tangents()
            self.names = tuple(self.directions)
        else:
            wrt = self.given.get("wrt", Static(None))
            several = wrt.items if isinstance(wrt, Tuple) else (wrt,)
            self.single = not isinstance(wrt, Tuple)
            self.names = tuple(self.parameter(one, self.left) for one in several)
        for name in self.names:
            if name not in values:
                raise self.unknown(name, list(values))
        if "direction" in self.given:
            direction = self.given["direction"]
            parts = (
                direction.items
                if isinstance(direction, Tuple) and not self.single
                else (direction,)
            )
            if len(parts) != len(self.names):
                raise self.refusal(
                    f"wrt names {len(self.names)} arguments, and there are {len(parts)} directions"
                )
            self.directions = dict(zip(self.names, parts, strict=True))
        return {k: self.moving(v, k) if k in self.names else v for k, v in values.items()}

    def tangents(self) -> dict[str, Value]:
        found = self.given["tangents"]
        if not isinstance(found, Record | Struct) or found.cls is not dict:
            raise self.refusal("tangents= is no dict", 'write it there: tangents={"u": du}')
        items = self.lowering.items_of(found, self.lowering.frame.source.node)
        return {str(key): value for key, value in items.items()}

    def parameter(self, wrt: Value, names: Sequence[str]) -> str:
        """The parameter that `wrt` names."""
        match wrt:
            case Static(None):
                return names[0] if names else ""
            case Static(str() as name):
                if name not in names and name.isidentifier():
                    raise self.unknown(name, names)
                if name not in names:
                    raise self.refusal(
                        f"wrt={name!r}: compiled code differentiates with respect to whole parameters",
                        "pass what is differentiated as an argument of its own",
                    )
                return name
            case Scalar(constant=int() as k) if -len(names) <= k < len(names):
                return names[k]
            case _:
                raise self.refusal(
                    "`wrt` is no parameter of "
                    f"{self.name}(), by name or position, known when compiling"
                )

    def unknown(self, name: str, names: Sequence[str]) -> CompileError:
        return self.refusal(
            f"{self.name}() has no parameter {name!r}", f"its parameters are {', '.join(names)}"
        )

    def moving(self, value: Value, name: str) -> Value:
        """An argument that is differentiated: floats and arrays of floats, none of them known."""
        match value:
            case Scalar(type_) if scalars.is_float(type_):
                return replace(value, constant=None)
            case Array(_, dtype) if scalars.is_float(dtype):
                return value
            case Scalar(type_) | Array(_, type_):
                what = "an array of dtype" if isinstance(value, Array) else "a number of type"
                raise self.refusal(
                    f"{self.name}.{self.what}() with respect to `{name}`, {what} {type_.removeprefix('py_')}",
                    "only floats and arrays of floats are differentiated: convert it",
                )
            case _:
                raise self.refusal(
                    f"{self.name}.{self.what}() with respect to `{name}`, neither a number nor an array",
                    "pass what is differentiated as an argument of its own",
                )


class DerivativeCall(RoutineCall):
    """One call: its operands, its function."""

    special = "whose derivative is taken here"
    apart = "its derivative is taken for arguments that do not"
    instead = "write a loop, or take the derivative outside of compiled code"

    def __init__(
        self, lowering: Calls, function: Any, values: Mapping[str, Value], node: ast.AST
    ) -> None:
        self.function = function
        super().__init__(lowering, function.__name__, values, node)
        self.operands = [self.compact(operand) for operand in self.operands]
        self.given = dict(zip(values, self.values, strict=True))

    def refusal(self, message: str, way_out: str | None = None) -> CompileError:
        return self.lowering.refusal(None, message, way_out)

    def slotted(self, value: Value, name: str) -> Any:
        """Of an object those of its fields."""
        if not isinstance(value, Record | Struct):
            return super().slotted(value, name)
        fields = {key: self.lowering.field(value, key) for key in self.lowering.keys_of(value)}
        settled = {key: v for key, v in fields.items() if v is not None}
        items = [self.slotted(v, f"{name}.{key}") for key, v in settled.items()]
        return Struct(tuple(items), tuple(settled), value.cls)

    def compact(self, operand: Scalar | Array) -> Scalar | Array:
        """An array of any strides, unless it is contiguous: then its shadow may have any layout."""
        if not isinstance(operand, Array) or array.is_contiguous(operand.type):
            return operand
        shape = operand.type.get_shape()
        type_ = array.strided(operand.type.element_type, shape, [None] * len(shape))
        if type_ == operand.type:
            return operand
        return replace(
            operand, memref=self.lowering.e.emit(memref.CastOp.get(operand.memref, type_))
        )

    def body(self, routine: Routine, values: list[Value]) -> Value:
        inner, code = routine.lowering, self.lowering.plain(self.function).__code__
        inner.purpose = Purpose(derivative=True)
        first = code.co_argcount
        named = dict(zip(keyword_only(code), values[first:], strict=True))
        call = self.lowering.facts.stand_ins.setdefault(
            (id(self.node), "derivative"),
            ast.copy_location(ast.Call(ast.Constant(None), [], []), self.node),
        )
        made: list[tuple[Record, dict[str, Value]]] = []
        given = [self.with_identity(inner, value, made) for value in values[:first]]
        result = inner.call(Static(self.function), given, named, call)
        for record, fields in made:
            self.require_unassigned(inner, record, fields)
        return result

    def with_identity(
        self, inner: Any, value: Value, made: list[tuple[Record, dict[str, Value]]]
    ) -> Value:
        """A value in which the objects of the call are objects of the function again."""
        if isinstance(value, Tuple):
            items = tuple(self.with_identity(inner, item, made) for item in value.items)
            return replace(value, items=items)
        if not isinstance(value, Struct) or is_frozen(value.cls):
            return value
        record = inner.objects.make(value.cls, value.cls.__name__, inner.e.block)
        fields = {
            name: self.with_identity(inner, item, made)
            for name, item in zip(value.names, value.items, strict=True)
        }
        for name, item in fields.items():
            inner.give(record, name, item)
        made.append((record, fields))
        return record if value.cls is dict else inner.made_object(record)

    def require_unassigned(self, inner: Any, record: Record, fields: dict[str, Value]) -> None:
        """The caller would not see what the function assigns to fields."""
        now = {key: inner.field(record, key) for key in inner.keys_of(record)}
        for key in {**fields, **now}:
            if not same_binding(fields.get(key), now.get(key)):
                raise self.refusal(
                    f"{self.name}(), {self.special}, assigns to `{key}` of an object that it is given",
                    "change arrays in place, or return what is new and assign it here",
                )

    def lowered(self, asked: Asked) -> Value:
        primal = self.completed()
        if asked.what != "jvp":
            self.require_float(asked.what)
        outside = [key for key in primal.keys_of if key[0] == "outside"]
        names = [*self.names, *(key[1][1] for key in outside)]
        keys: list[Key] = [*(("value", k) for k in range(len(self.operands))), *outside]
        operands = [self.operand(*key) for key in keys]
        stored = primal.touched("write")
        op = Operands(self, operands, names, {k for k, key in enumerate(keys) if key in stored})
        answer = op.jvp(asked) if asked.what == "jvp" else op.gradient(asked)
        self.check_sharing(op.operands, op.names, op.changed)
        primal.arranged(keys, [ssa_of(o).type for o in operands])
        self.list_sharing(primal)
        return answer(op.emitted(primal))

    def require_float(self, what: str) -> None:
        if isinstance(self.result, Number) and scalars.is_float(self.results[0].type):
            return
        returns: dict[type, str] = {Slot: "an array", Tuple: "a tuple", NoneValue: "None"}
        found = returns.get(type(self.result), "a number that is not a float")  # pyright: ignore
        raise self.refusal(
            f"{what} needs a function that returns one float; {self.name}() returns {found}",
            "return one number: a sum",
        )


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

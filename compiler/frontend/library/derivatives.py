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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import memref

from ....dialects import array
from ...diagnostics import CompileError
from .. import scalars
from ..calling.routines import Key, Number, Routine, RoutineCall, Slot, keyword_only, ssa_of
from ..calling.special_calls import MemberMethod, bound
from ..context import Purpose, same_binding
from ..data.fields import is_frozen
from ..data.records import Method
from ..values import (
    Array,
    NoneValue,
    Record,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)
from .derivative_operands import Operands

if TYPE_CHECKING:
    from ..calling.calls import Calls

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
        if asked.directions and any(isinstance(op, array.StrideOp) for op in primal.private.walk()):
            raise self.refusal(
                f"{self.name}.{asked.what}(): whether {self.name}() reshapes an argument in place depends on "
                "the strides, and its tangent may have others",
                "pass copies of the argument and of its tangent: x.copy()",
            )
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

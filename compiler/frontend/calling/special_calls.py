"""Calls that are more than their code: foreign functions, functions with a rule, `stop_gradient`."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from ...rules.handwritten import effects_of
from .. import exceptions
from ..frames import Scope
from ..values import Static, Tuple, Value
from . import arguments, foreign_calls

if TYPE_CHECKING:
    from .calls import Calls


class Member(ABC):
    """An object of the compiler's own whose attributes the program reads: a rule's parameter."""

    described: ClassVar[str]

    @property
    def type(self) -> type:
        """The class that the program sees."""
        return type(self)

    @abstractmethod
    def read(self, lowering: Calls, attribute: str, node: ast.AST) -> Value:
        """The value of an attribute."""

    def assign(
        self, lowering: Calls, attribute: str, op: str | None, value: Value, node: ast.AST
    ) -> None:
        """`member.attribute op= value`, or an assignment where there is no `op`."""
        raise lowering.refusal(node, f"attributes of {self.described} are not assigned")


class MemberMethod(ABC):
    """A method of a `Member`, before its call."""

    @abstractmethod
    def call(self, lowering: Calls, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Lower the call."""


def attribute(lowering: Any, base: Value, node: ast.Attribute) -> Value | None:
    """An attribute of a `Member`, or of a tuple of them; None where `base` is none."""
    if isinstance(base, Tuple) and base.items and node.attr not in getattr(base.cls, "_fields", ()):
        found = [attribute(lowering, item, node) for item in base.items]
        parts = tuple(part for part in found if part is not None)
        return replace(base, items=parts) if len(parts) == len(found) else None
    if not isinstance(base, Static):
        return None
    if not isinstance(base.object, Member):
        from ..library import derivatives  # which needs all of the lowering

        found = derivatives.attribute(lowering, base.object, node.attr, node)
        return found or exceptions.attribute(lowering, base.object, node)
    return base.object.read(lowering, node.attr, node)


def assigned(lowering: Any, base: Value, target: ast.Attribute, value: Value) -> bool:
    """Assign to an attribute of a `Member`; False where `base` is none."""
    if not isinstance(base, Static) or not isinstance(base.object, Member):
        return False
    base.object.assign(lowering, target.attr, None, value, target)
    return True


def augmented(lowering: Any, target: ast.Attribute, op: str, node: ast.expr) -> bool:
    """`member.attribute op= value`; False where the target is no `Member`'s."""
    root = target.value
    while isinstance(root, ast.Subscript | ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or not has_members(lowering.frame.env.get(root.id)):
        return False
    found = lowering.expression(target.value)
    if not isinstance(found, Static) or not isinstance(found.object, Member):
        return False
    value = lowering.expression(node)
    with lowering.located(target):
        found.object.assign(lowering, target.attr, op, value, target)
    return True


def has_members(value: object) -> bool:
    """True for a `Member`, and for a tuple with some in it."""
    if isinstance(value, Tuple):
        return any(map(has_members, value.items))
    return isinstance(value, Static) and isinstance(value.object, Member)


def call(
    lowering: Calls, callee: Any, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> Value | None:
    """Lower the call, if it is of that kind."""
    if isinstance(callee, MemberMethod):
        return callee.call(lowering, args, kwargs)
    stop = getattr(callee, "__mutad__", None)
    if stop is not None and len(args) == 1 and not kwargs:
        return foreign_calls.stopped(lowering, args[0], node, stop)
    outside = lowering.outside
    if outside is None:
        return None
    rule, found = outside.rule(callee), outside.foreign(callee)
    if isinstance(found, str):
        name = getattr(callee, "__name__", "<function>")
        raise lowering.refusal(node, f"`{name}` cannot be called from compiled code: {found}")
    if found is not None:
        if not lowering.keeps(rule):
            effects = None if rule is None else effects_of(rule, args)
            return foreign_calls.call(lowering, found, args, kwargs, effects, node)
        foreign_calls.refuse_keywords(lowering, found, kwargs, node)
        return with_rule(lowering, rule, found, args, node)
    if not lowering.keeps(rule):
        return None
    return with_rule(lowering, rule, callee, bound(lowering, callee, args, kwargs, node), node)


def own_rule(
    lowering: Calls, function: FunctionType, values: list[Value], node: ast.AST
) -> Value | None:
    """The result of the function that is compiled, by way of its own rule; None where it has none."""
    rule = lowering.outside.rule(function) if lowering.outside else None
    return with_rule(lowering, rule, function, values, node) if lowering.keeps(rule) else None


def with_rule(lowering: Calls, rule: Any, callee: Any, values: list[Value], node: ast.AST) -> Value:
    from .rule_calls import RuleCall  # which builds functions, and so needs all of the lowering

    return RuleCall(lowering, rule, callee, values, node).lowered()


def bound(
    lowering: Calls,
    function: FunctionType,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.AST,
) -> list[Value]:
    """The arguments in the order of the parameters, defaults filled in."""
    own, _, liveness, names = lowering.function_parts(function)
    frame = lowering.new_frame(own, Scope.of(function), names, liveness, node)
    positional, keyword = lowering.defaults_of(function, own, frame)
    a, name = own.node.args, function.__name__
    if a.kwarg is not None:
        raise lowering.refusal(node, f"{name}() takes `**kwargs`", "name the parameters")
    try:
        return list(arguments.bound(a, name, args, kwargs, positional, keyword).values())
    except arguments.Unbindable as error:
        raise lowering.refusal(node, str(error)) from None

"""Exceptions as values: what `raise` is given, and what a handler reads of what it caught.

An exception is made of its class and its arguments. Where its class has an `__init__` of the program's and
a handler may catch it, that is inlined and its fields travel beside the message; what no handler of compiled
code catches is made in Python, by calling the class::

    raise Unstable(k, x[k])         array.raise_if %true, "module:Unstable",
                                        '<mark>{"args": [["n", "py_int"], ["n", "f64"]],
                                                "fields": {"step": ["n", "py_int"]}}' (%k, %v, %k)
    except Unstable as e:
        return e.step               %step = memref.load %shown[]

The texts are recipes of the runtime's `raised_exceptions`.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from types import WrapperDescriptorType
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from . import formatting
from .catching_scopes import Caught, Raise
from .data import classes, records
from .data.fields import fields_in
from .scalars import MARK
from .values import IR_TYPE, NoneValue, Scalar, Static, Tuple, Value

if TYPE_CHECKING:
    from .raising import Raising

OWN_STATE = ("__new__", "__getattribute__", "__getattr__", "__setattr__")
"""What an exception's class may not define."""

ARGS = "args"
Item = list[Any]


@dataclass(frozen=True, eq=False)
class Made:
    """An exception that is not raised yet; `fields` are what an inlined `__init__` assigns."""

    cls: type[BaseException]
    args: tuple[Value, ...] = ()
    kwargs: dict[str, Value] = field(default_factory=dict[str, Value])
    fields: dict[str, Value] | None = None


@dataclass(frozen=True)
class What:
    """What is raised: the name of the class, the message or recipe, what it shows."""

    exception: str
    message: str
    shown: tuple[SSAValue, ...]


# Making.


def sets_arguments(self: Any, *args: Any) -> None:
    """What `BaseException.__init__` does."""
    self.args = args


def initializer(owner: object) -> Any:
    """`__init__` of a builtin exception, as Python that compiled code runs; None for anything else."""
    if isinstance(owner, WrapperDescriptorType) and owner.__name__ == "__init__":
        owner = owner.__objclass__
    is_builtin = isinstance(owner, type) and owner.__module__ == "builtins"
    return sets_arguments if is_builtin and issubclass(cast(Any, owner), BaseException) else None


def own_init(cls: type) -> Any:
    """The `__init__` that a class of the program's has, or inherits from one; None where it is Python's."""
    found = classes.found_in(cls, "__init__")
    return None if found is None else classes.plain_function(found[1])


def made(
    lowering: Raising,
    cls: type[BaseException],
    args: Sequence[Value],
    kwargs: dict[str, Value],
    node: ast.Call,
) -> Value:
    """`cls(...)`, of an exception's class."""
    name_of(lowering, cls, node)
    ready = tuple(args)
    fields = None
    if own_init(cls) is not None and lowering.catching.attempts:
        fields = initialized(lowering, cls, ready, kwargs, node)
    return Static(Made(cls, ready, kwargs, fields))


def initialized(
    lowering: Raising,
    cls: type,
    args: tuple[Value, ...],
    kwargs: dict[str, Value],
    node: ast.Call,
) -> dict[str, Value]:
    """The fields that `__init__` assigns."""
    record = lowering.objects.make(cls, cls.__name__, lowering.e.block)
    lowering.give(record, ARGS, Tuple(args))
    init, found = own_init(cls), classes.found_in(cls, "__init__")
    assert found is not None
    if classes.is_generated_function(init) and dataclasses.is_dataclass(found[0]):
        lowering.initialize(record, found[0], list(args), kwargs, node)
    else:
        lowering.call(Static(init), [record, *args], kwargs, node)
    known = fields_in(lowering.frame.env)
    names = {
        key: lowering.objects.name(record, key) for key in lowering.objects.keys[record.serial]
    }
    return {key: cast(Value, known[n]) for key, n in names.items() if n in known}


def name_of(lowering: Raising, exception: type[BaseException], node: ast.AST) -> str:
    """The name that compiled code has for the class: a builtin's, or its module and its name there."""
    if getattr(builtins, exception.__name__, None) is exception:
        return exception.__name__
    module, name = exception.__module__, exception.__qualname__
    found: object = None
    with suppress(AttributeError, KeyError):
        found = reduce(getattr, name.split("."), cast(object, sys.modules[module]))
    if found is not exception:
        raise lowering.refusal(
            node,
            f"{exception.__name__} is not found in its module by its name",
            "define the class at the top of a module",
        )
    own = [c for c in exception.__mro__ if c.__module__ != "builtins"]
    for name_ in OWN_STATE:
        if any(name_ in vars(c) for c in own):
            raise lowering.refusal(
                node,
                f"{exception.__name__} defines `{name_}`",
                "give the exception its state in `__init__`",
            )
    lowering.catching.classes[f"{module}:{name}"] = exception
    return f"{module}:{name}"


# Recipes.


def what(
    lowering: Raising,
    exception: Made,
    cause: Item | dict[str, Any] | str | None,
    own: Sequence[SSAValue],
    node: ast.AST,
) -> What:
    """What `raise` of an exception raises; `cause` is that of the recipe, `own` what it shows."""
    name = name_of(lowering, exception.cls, node)
    only = exception.args[0] if len(exception.args) == 1 and not exception.kwargs else None
    if cause is None and exception.fields is None:
        if not exception.args and not exception.kwargs:
            return What(name, "", ())
        if only is not None and formatting.is_text(only) and (form := text_of(only))[0]:
            return What(name, form[0], tuple(v.ssa for v in form[1]))
    shown = list[SSAValue]()
    items = [item_of(lowering, v, shown, node) for v in exception.args]
    recipe: dict[str, Any] = {"args": items}
    if exception.kwargs:
        pairs = exception.kwargs.items()
        recipe["kwargs"] = {k: item_of(lowering, v, shown, node) for k, v in pairs}
    if exception.fields is not None:
        pairs = exception.fields.items()
        recipe["fields"] = {k: item_of(lowering, v, shown, None) for k, v in pairs}
    if cause is not None:
        recipe["cause"] = cause
    return What(name, MARK + json.dumps(recipe), (*shown, *own))


def key_error(key: Any) -> tuple[str, str]:
    """KeyError of a key that is known while compiling."""
    known = key if is_literal(key) else None
    if known is None and key is not None:
        return "KeyError", formatting.escaped(repr(key))
    return "KeyError", MARK + json.dumps({"args": [["c", known]]})


def of_number(value: Scalar) -> str:
    """The recipe of an exception whose only argument is a number of the run."""
    return MARK + json.dumps({"args": [["n", value.type]]})


def text_of(value: Value) -> tuple[str, list[Scalar]]:
    """A text as a format and its operands."""
    known: Any = value.object if isinstance(value, Static) else None
    if isinstance(known, str):
        return formatting.escaped(known), []
    return known.form, list(known.operands)


def is_literal(known: object) -> bool:
    return type(known) in (str, int, bool, float)


def item_of(lowering: Raising, value: Value, shown: list[SSAValue], node: ast.AST | None) -> Item:
    """An argument in a recipe. What has no place in one is refused, or is a field that nothing can read."""
    match value:
        case Scalar() if value.constant is not None and is_literal(value.constant):
            if value.type in ("py_bool", "py_int", "py_float") and math.isfinite(value.constant):
                return ["c", value.constant]
            shown.append(value.ssa)
            return ["n", value.type]
        case Scalar(type_, ssa) if type_ in IR_TYPE and type_ != "rng":
            shown.append(ssa)
            return ["n", type_]
        case NoneValue():
            return ["c", None]
        case Tuple(items, None):
            return ["t", [item_of(lowering, v, shown, node) for v in items]]
        case Static() if formatting.is_text(value):
            form, operands = text_of(value)
            if any(hasattr(v.ssa.type, "shape") for v in operands):
                raise lowering.refusal(
                    node,
                    "an array in the message of an exception is not compiled",
                    "show its numbers",
                )
            shown += [v.ssa for v in operands]
            return ["s", form, len(operands)]
        case _ if node is None:
            return ["o"]
        case _:
            raise lowering.refusal(
                node,
                "an argument of this exception is not a number, string, None or tuple of them",
                "give the exception the numbers that it is to carry",
            )


def value_of(lowering: Raising, item: Item, cells: Iterator[Scalar]) -> Value | None:
    """What an item is, of the cells that are left; None for what has no value."""
    match item:
        case ["n", type_]:
            cell = next(cells)
            return Scalar(type_, cell.ssa)
        case ["s", form, count]:
            return formatting.made(form, [next(cells) for _ in range(count)])
        case ["t", items]:
            parts = [value_of(lowering, part, cells) for part in items]
            known = tuple(p for p in parts if p is not None)
            return Tuple(known) if len(known) == len(parts) else None
        case ["c", known]:
            return lowering.constant(known, "an argument")
        case _:
            return None


# What was caught.


def parts_of(lowering: Raising, one: Raise) -> dict[str, Value | None]:
    """The arguments of an exception that was raised, and its fields."""
    from .raising import scalar_type

    cells = iter([Scalar(scalar_type(c), lowering.e.load(c)) for c in one.shown])
    if not one.message.startswith(MARK):
        args = (formatting.made(one.message, list(cells)),) if one.message else ()
        return {ARGS: Tuple(args)}
    recipe = json.loads(one.message[len(MARK) :])
    args = value_of(lowering, ["t", recipe["args"]], cells)
    for item in recipe.get("kwargs", {}).values():
        value_of(lowering, item, cells)
    fields = recipe.get("fields", {})
    return {ARGS: args, **{k: value_of(lowering, item, cells) for k, item in fields.items()}}


def class_of(lowering: Raising, one: Raise) -> type[BaseException]:
    return lowering.catching.class_of(one.exception)


def attribute(lowering: Raising, found: Any, node: ast.Attribute) -> Value | None:
    """`e.args`, `e.value`, what an exception's class has; None where `found` is no exception."""
    if isinstance(found, Made):
        fields = found.fields or {ARGS: Tuple(found.args)}
        return read(lowering, found, found.cls, fields, node)
    if not isinstance(found, Caught):
        return None
    alike = {classes.found_in(class_of(lowering, one), node.attr) for one in found.raises}
    inside = any(has_field(one, node.attr) for one in found.raises) or node.attr == "value"
    if len(alike) == 1 and not inside:
        return read(lowering, found, class_of(lowering, found.raises[0]), None, node)

    def read_one(one: Raise) -> Value:
        kind = class_of(lowering, one)
        return read(lowering, found, kind, parts_of(lowering, one), node)

    return each(lowering, found, read_one)


def has_field(one: Raise, name: str) -> bool:
    if name == ARGS or not one.message.startswith(MARK):
        return name == ARGS
    return name in json.loads(one.message[len(MARK) :]).get("fields", {})


def each(lowering: Raising, caught: Caught, use: Callable[[Raise], Value]) -> Value:
    """`use` of what was raised: a branch for each place that is told apart by what it says."""
    raises = [alike[0] for alike in told_apart(caught)]

    def from_on(k: int) -> Value:
        if k + 1 == len(raises):
            return use(raises[k])
        which = lowering.e.load(caught.attempt.cell)
        test = is_one_of(lowering, caught, which, lambda one: is_alike(one, raises[k]))
        arms = lambda: use(raises[k]), lambda: from_on(k + 1)
        return lowering.chosen(test, arms)

    return from_on(0)


def told_apart(caught: Caught) -> list[tuple[Raise, ...]]:
    """The places that may have raised it, those together that say the same."""
    found = list[tuple[Raise, ...]]()
    for one in caught.raises:
        place = next((k for k, known in enumerate(found) if is_alike(one, known[0])), None)
        if place is None:
            found.append((one,))
        else:
            found[place] += (one,)
    return found


def shown_in(lowering: Raising, s: ast.stmt) -> tuple[str, Caught] | None:
    """A name of an exception, of which the statement shows what it says, where that depends on the place."""
    for node in ast.walk(s):
        shown = list[ast.expr]()
        match node:
            case ast.Call(_, arguments):
                shown = arguments
            case ast.FormattedValue(value):
                shown = [value]
            case _:
                pass
        for part in shown:
            found = lowering.frame.env.get(part.id) if isinstance(part, ast.Name) else None
            caught = found.object if isinstance(found, Static) else None
            if isinstance(part, ast.Name) and isinstance(caught, Caught) and not says_one(caught):
                return part.id, caught
    return None


def says_one(caught: Caught) -> bool:
    first, *others = caught.raises
    return all(is_alike(one, first) or said_alike(one, first) for one in others)


def split(lowering: Raising, s: ast.stmt, name: str, caught: Caught) -> None:
    """The statement, in a branch for each exception that says something else."""
    groups = told_apart(caught)

    def arm(only: Sequence[tuple[Raise, ...]]) -> None:
        left = tuple(one for group in only for one in group)
        lowering.frame.env[name] = Static(dataclasses.replace(caught, only=left))
        if len(only) == 1:
            lowering.statement(s)
        else:
            branch(only)

    def branch(left: Sequence[tuple[Raise, ...]]) -> None:
        which = lowering.e.load(caught.attempt.cell)
        test = is_one_of(lowering, caught, which, lambda one: one in left[0])
        lowering.conditional(test, (lambda: arm(left[:1]), lambda: arm(left[1:])), frozenset())

    branch(groups)
    lowering.frame.env[name] = Static(caught)


def is_alike(a: Raise, b: Raise) -> bool:
    return (a.exception, a.message, a.shown) == (b.exception, b.message, b.shown)


def is_one_of(
    lowering: Raising, caught: Caught, which: SSAValue, wanted: Callable[[Raise], bool]
) -> Scalar:
    """Whether what was raised is one of those that are wanted."""
    e, total = lowering.e, cast(SSAValue | None, None)
    raises = caught.raises
    if all(map(wanted, raises)):
        return e.constant(True, "py_bool")
    for one in filter(wanted, raises):
        same = e.emit(arith.CmpiOp(which, e.index(one.number), "eq"))
        total = same if total is None else e.emit(arith.OrIOp(total, same))
    return e.constant(False, "py_bool") if total is None else Scalar("py_bool", total, None, 0, 1)


def is_instance(lowering: Raising, caught: Caught, classes: tuple[type, ...]) -> Scalar:
    """`isinstance(e, classes)`."""
    which = lowering.e.load(caught.attempt.cell)
    return is_one_of(
        lowering, caught, which, lambda one: issubclass(class_of(lowering, one), classes)
    )


def type_of(lowering: Raising, found: Caught | Made) -> Value:
    """`type(e)`."""
    if isinstance(found, Made):
        return Static(found.cls)
    classes = list(dict.fromkeys(class_of(lowering, one) for one in found.raises))

    def from_on(k: int) -> Value:
        if k + 1 == len(classes):
            return Static(classes[k])
        which = lowering.e.load(found.attempt.cell)
        test = is_one_of(lowering, found, which, lambda one: class_of(lowering, one) is classes[k])
        return lowering.chosen(test, (lambda: Static(classes[k]), lambda: from_on(k + 1)))

    return from_on(0)


def read(
    lowering: Raising,
    found: Caught | Made,
    cls: type[BaseException],
    fields: Mapping[str, Value | None] | None,
    node: ast.Attribute,
) -> Value:
    """An attribute of one exception; without `fields`, one that no instance has."""
    name, inside = node.attr, fields is not None
    fields = fields or {}
    value = fields.get(name)
    if value is not None:
        return value
    if name == "__class__":
        return Static(cls)
    args = fields.get(ARGS)
    if name == "value" and issubclass(cls, StopIteration) and isinstance(args, Tuple):
        return args.items[0] if args.items else NoneValue()
    if name in fields or (inside and own_init(cls) is not None and set(fields) == {ARGS}):
        raise lowering.refusal(
            node,
            f"`.{name}` of this exception is not kept: no number, string, None or tuple of them",
            "give the exception the numbers that are needed",
        )
    inherited = classes.found_in(cls, name)
    if inherited is None:
        lowering.always("AttributeError", f"{cls.__name__!r} object has no attribute {name!r}")
        return NoneValue()
    owner, raw = inherited
    function = classes.plain_function(raw)
    if owner.__module__ != "builtins" and function is not None:
        return Static(records.Method(Static(found), function))
    if owner.__module__ != "builtins" and isinstance(raw, property) and raw.fget is not None:
        return lowering.invoked(raw.fget, [Static(found)], node)
    if owner.__module__ != "builtins" and not hasattr(raw, "__get__"):
        return lowering.captured(owner, name, raw, f"{owner.__name__}.{name}")
    raise lowering.refusal(
        node, f"`.{name}` of an exception is not compiled", "read its arguments: e.args"
    )


def said(lowering: Raising, found: Caught | Made) -> tuple[str, list[Scalar]]:
    """What `str` says of an exception: a format and its operands."""
    if isinstance(found, Made):
        return said_of(lowering, found.cls, found.fields or {ARGS: Tuple(found.args)})
    raises = found.raises
    if not says_one(found):
        raise lowering.refusal(
            None,
            "this may be one of several exceptions, with messages of their own",
            "write an `except` for each, or a `try` for each place that raises",
        )
    return said_of(lowering, class_of(lowering, raises[0]), parts_of(lowering, raises[0]))


def said_alike(a: Raise, b: Raise) -> bool:
    """True where two say the same, whatever their classes."""
    marked = a.message.startswith(MARK) or b.message.startswith(MARK)
    keys = "KeyError" in (a.exception, b.exception)
    return not marked and not keys and (a.message, a.shown) == (b.message, b.shown)


def said_of(
    lowering: Raising, cls: type[BaseException], fields: Mapping[str, Value | None]
) -> tuple[str, list[Scalar]]:
    owner = classes.found_in(cls, "__str__")
    args = fields.get(ARGS)
    if (owner is not None and owner[0].__module__ != "builtins") or not isinstance(args, Tuple):
        raise lowering.refusal(
            None, "the text of this exception is not compiled", "show its arguments: e.args"
        )
    if not args.items:
        return "", []
    if len(args.items) == 1:
        return lowering.shown(args.items[0], quoted=issubclass(cls, KeyError))
    return lowering.shown(args, quoted=True)


# Causes.


def causes(
    lowering: Raising, cause: ast.expr | None
) -> list[tuple[SSAValue | None, dict[str, Any] | str | None, tuple[SSAValue, ...]]]:
    """What stands behind `from`: for each exception that it may be, when it is that one (None: else), its
    recipe, what that shows."""
    if cause is None:
        return [(None, None, ())]
    value = lowering.expression(cause)
    known = value.object if isinstance(value, Static) else None
    if isinstance(value, NoneValue):
        return [(None, "none", ())]
    if isinstance(known, type) and issubclass(known, BaseException):
        known = Made(known)
    if isinstance(known, Made):
        one = what(lowering, dataclasses.replace(known, fields=None), None, (), cause)
        return [(None, cause_of(one.exception, one.message, len(one.shown)), one.shown)]
    if not isinstance(known, Caught):
        raise lowering.refusal(cause, "the cause of this `raise` is no exception")
    found = list[tuple[SSAValue | None, dict[str, Any] | str | None, tuple[SSAValue, ...]]]()
    raises = known.raises
    which = lowering.e.load(known.attempt.cell)
    for k, one in enumerate(raises):
        same = None
        if k + 1 < len(raises):
            same = lowering.e.emit(arith.CmpiOp(which, lowering.e.index(one.number), "eq"))
        cells = tuple(lowering.e.load(c) for c in one.shown)
        found.append((same, cause_of(one.exception, one.message, len(cells)), cells))
    return found


def cause_of(exception: str, message: str, count: int) -> dict[str, Any]:
    return {"class": exception, "message": message, "operands": count}


def only_cause(lowering: Raising, cause: ast.expr) -> tuple[Any, tuple[SSAValue, ...]]:
    """The one thing that stands behind `from` where an exception is raised again, and what it shows."""
    found = causes(lowering, cause)
    if len(found) > 1:
        raise lowering.refusal(
            cause,
            "the cause of this `raise` may be one of several exceptions",
            "write an `except` for each",
        )
    ((_, recipe, own),) = found
    return recipe, own


def caused(one: Raise, cause: Any) -> Raise:
    """What was raised, with a cause."""
    if one.message.startswith(MARK):
        recipe = json.loads(one.message[len(MARK) :])
    else:
        recipe = {"args": [["s", one.message, len(one.shown)]] if one.message else []}
    text = MARK + json.dumps({**recipe, "cause": cause})
    return dataclasses.replace(one, message=text)


def has_attribute(lowering: Raising, found: Caught | Made, name: str) -> Scalar:
    """`hasattr(e, name)`."""
    if isinstance(found, Made):
        known = (
            name in (found.fields or {ARGS: None}) or classes.found_in(found.cls, name) is not None
        )
        return lowering.e.constant(known, "py_bool")

    def has(one: Raise) -> bool:
        kind = class_of(lowering, one)
        return has_field(one, name) or classes.found_in(kind, name) is not None

    return is_one_of(lowering, found, lowering.e.load(found.attempt.cell), has)

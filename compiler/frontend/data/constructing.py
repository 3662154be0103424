"""Calls that make objects, and calls of objects and of what Python gives them.

State(x, t=0.0)                the class's `__init__` inlined; that of a dataclass is written here
replace(s, t=1.0)              `dataclasses.replace`, `copy.copy`, `p._replace(x=1.0)`
{"rate": 0.1}, d.get("rate")   dicts whose keys are constants: their items are fields
layer(x), s.energy()           `__call__`, methods
"""

from __future__ import annotations

import ast
import collections
import copy
import dataclasses
import enum
import inspect
from abc import abstractmethod
from contextlib import suppress
from typing import Any, cast

from ...diagnostics import CompileError
from .. import choices, exceptions, formatting, scalars
from ..frames import Unready
from ..library.set_attributes import like
from ..library.ways_out import of_class
from ..values import (
    Array,
    Choice,
    NoneValue,
    Record,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)
from . import hashed, protocols, run_time_keys
from .classes import (
    class_of_receiver,
    described,
    found_in,
    is_generated_function,
    is_named_tuple,
    method_of,
    plain_function,
    refuse_class,
)
from .fields import is_frozen, is_object
from .object_operators import ObjectOperators
from .records import Method, ObjectMethod, Opaque, Super, initializes_nothing

ARITIES = {"get": (1, 2), "pop": (1, 2), "setdefault": (1, 2), "update": (0, 1)}
"""How many arguments the methods of dicts have that have some."""
STRING_METHODS = frozenset(
    {
        "lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "replace", "title",
        "capitalize", "removeprefix", "removesuffix", "isdigit", "isalpha", "find", "count", "join",
    }
)  # fmt: skip
NAMED = (getattr, setattr, hasattr)
Kwargs = dict[str, Value]


class Constructing(ObjectOperators):
    """Calls of classes and of objects."""

    def object_call(
        self, function: Value, args: list[Value], kwargs: Kwargs, node: ast.Call
    ) -> Value | None:
        """The value of a call of an object, a class or a method; None where it is of another kind."""
        called = method_of(function, "__call__")
        if called is not None:
            return self.call(Static(called), [function, *args], kwargs, node)
        if not isinstance(function, Static):
            return None
        callee = function.object
        match callee:
            case Method(receiver, method):
                return self.call(Static(method), [receiver, *args], kwargs, node)
            case ObjectMethod(receiver, name):
                return self.python_method(receiver, name, args, kwargs, node)
            case type() if callee is super and not args:
                return self.super_object(node)
            case type() if callee is super and len(args) == 2:
                return self.super_of(args, node)
            case type() if callee is type and len(args) == 1 and is_object(args[0]):
                return Static(class_of_receiver(args[0]))
            case type() if callee is dict or callee is collections.OrderedDict:
                return self.dict_call(args, kwargs, node)
            case type() if callee in hashed.CLASSES:
                return hashed.made(self, callee, args, kwargs, node)
            case type() if issubclass(callee, BaseException):
                return exceptions.made(cast(Any, self), callee, args, kwargs, node)
            case type() if self.is_ours(callee):
                return self.construct(callee, args, kwargs, node)
            case _:
                return self.function_on_object(callee, args, kwargs, node)

    def is_ours(self, cls: type) -> bool:
        """True for classes of the program."""
        return not self.fixed(cls) and cls.__module__ not in ("builtins", "numpy")

    def function_on_object(
        self, callee: Any, args: list[Value], kwargs: Kwargs, node: ast.Call
    ) -> Value | None:
        """Functions of the standard library that take objects apart."""
        if callee is initializes_nothing:
            return NoneValue()
        if (init := exceptions.initializer(callee)) is not None and not isinstance(callee, type):
            return self.call(Static(init), args, kwargs, node)
        if callee is dataclasses.replace and args:
            return self.replaced(args[0], kwargs, node)
        if callee is copy.copy and args and isinstance(args[0], Record | Struct | Tuple):
            return self.replaced(args[0], {}, node, anew=False)
        if callee is object.__setattr__ and len(args) == 3:
            return self.set_raw(args, node)
        if any(callee is f for f in NAMED) and len(args) > 1 and is_name(args[1]):
            return self.by_name(callee, args, node)
        if callee is isinstance and len(args) == 2:
            found = enumeration(args[0])
            if isinstance(found, enum.Enum):
                classes = args[1].items if isinstance(args[1], Tuple) else (args[1],)
                known = tuple(c.object for c in classes if isinstance(c, Static))
                return self.e.constant(isinstance(found, known), "py_bool")
        return None

    # Making objects.

    def construct(self, cls: type, args: list[Value], kwargs: Kwargs, node: ast.Call) -> Value:
        """`cls(...)`."""
        if issubclass(cls, enum.Enum):
            return self.enum_by_value(cls, args, node)
        if (reason := refuse_class(cls)) is not None:
            what = f"objects of class {cls.__name__} are not compiled: {reason}"
            raise self.refusal(node, what, of_class(cls))
        if is_named_tuple(cls):
            return self.named_tuple(cls, args, kwargs, node)
        made = self.objects.make(cls, cls.__name__, self.e.block)
        found = found_in(cls, "__init__")
        assert found is not None
        init = plain_function(found[1])
        if init is not None and is_generated_function(init) and dataclasses.is_dataclass(found[0]):
            self.initialize(made, found[0], args, kwargs, node)
        elif init is not None:
            self.call(Static(init), [made, *args], kwargs, node)
        elif found[0] is not object or args or kwargs:
            raise self.refusal(node, f"this call of {cls.__name__} is not compiled")
        return self.made_object(made)

    @abstractmethod
    def made_object(self, made: Record) -> Value:
        """An object, when its `__init__` has returned."""

    def initialize(
        self, made: Record, cls: Any, args: list[Value], kwargs: Kwargs, node: ast.Call
    ) -> None:
        """The `__init__` that `dataclass` writes."""
        try:
            bound = inspect.signature(cls.__init__).bind(made, *args, **kwargs).arguments
        except TypeError as error:
            raise self.refusal(node, f"{cls.__name__}(): {error}") from None
        only_initial = list[Value]()
        for f in cls.__dataclass_fields__.values():
            if f._field_type.name == "_FIELD_CLASSVAR":
                continue
            value = bound.get(f.name) if f.init else None
            if value is None and f.default is not dataclasses.MISSING:
                value = self.constant(f.default, f.name)
            elif value is None and f.default_factory is not dataclasses.MISSING:
                value = self.call(Static(f.default_factory), [], {}, node)
            if f._field_type.name == "_FIELD_INITVAR":
                assert value is not None
                only_initial.append(value)
            elif value is not None:
                self.give(made, f.name, value)
        found = found_in(made.cls, "__post_init__")
        if found is not None:
            self.call(Static(plain_function(found[1])), [made, *only_initial], {}, node)

    def named_tuple(self, cls: Any, args: list[Value], kwargs: Kwargs, node: ast.Call) -> Value:
        try:
            bound = inspect.signature(cls.__new__).bind(cls, *args, **kwargs).arguments
        except TypeError as error:
            raise self.refusal(node, f"{cls.__name__}(): {error}") from None
        defaults = cls._field_defaults
        return Tuple(
            tuple(
                bound[name] if name in bound else self.constant(defaults[name], name)
                for name in cls._fields
            ),
            cls,
        )

    def enum_by_value(self, cls: type[enum.Enum], args: list[Value], node: ast.Call) -> Value:
        wanted = args[0] if args else None
        known = wanted.constant if isinstance(wanted, Scalar) else getattr(wanted, "object", None)
        if known is None:
            raise self.refusal(
                node, f"which {cls.__name__} this is depends on a run-time value", "compare numbers"
            )
        try:
            return self.constant(cls(known), cls.__name__)
        except ValueError as error:
            raise self.refusal(node, str(error)) from None

    def enum_by_name(self, cls: enum.EnumMeta, node: ast.Subscript) -> Value:
        """`Colour["RED"]`."""
        wanted = self.expression(node.slice)
        name = wanted.object if isinstance(wanted, Static) else None
        if not isinstance(name, str) or name not in cls.__members__:
            raise self.refusal(node, f"which member of {cls.__name__} this is, is not known")
        return self.constant(cls.__members__[name], cls.__name__)

    def replaced(
        self, value: Value, changes: Kwargs, node: ast.Call, *, anew: bool = True
    ) -> Value:
        """`dataclasses.replace`: a new object, made by `__init__` (`anew`), or a plain copy."""
        if isinstance(value, Tuple) and not anew:
            return value
        if not isinstance(value, Record | Struct) or (
            anew and not dataclasses.is_dataclass(value.cls)
        ):
            raise self.refusal(node, f"`replace` of {described(value)}", "give it a dataclass")
        if anew:
            fields: dict[str, Any] = value.cls.__dataclass_fields__  # pyright: ignore
            given = dict[str, Value]()
            for name, f in fields.items():
                if f._field_type.name != "_FIELD" or not f.init:
                    if name in changes:
                        raise self.refusal(node, f"field {name!r} is declared with init=False")
                    continue
                now = changes.get(name) or self.field(value, name)
                assert now is not None
                given[name] = now
            unknown = [name for name in changes if name not in fields]
            if unknown:
                raise self.refusal(node, f"{value.cls.__name__} has no field {unknown[0]!r}")
            return self.construct(value.cls, [], given, node)
        if isinstance(value, Struct) and is_frozen(value.cls):
            return dataclasses.replace(value, origin=None)
        made = self.objects.make(value.cls, value.cls.__name__, self.e.block)
        for key in self.keys_of(value):
            item = self.field(value, key)
            assert item is not None
            self.give(made, key, item)
        return made if made.cls is dict else self.made_object(made)

    # Attributes by name.

    def set_raw(self, args: list[Value], node: ast.Call) -> Value:
        """`object.__setattr__(self, "name", value)`, as frozen dataclasses do while they are made."""
        base, name, value = args
        if not isinstance(base, Record) or not isinstance(name, Static):
            raise self.refusal(node, "object.__setattr__ is compiled for objects being made")
        self.give(base, name.object, value)
        return NoneValue()

    def by_name(self, callee: Any, args: list[Value], node: ast.Call) -> Value:
        """`getattr`, `setattr` and `hasattr` with a constant name."""
        base, name = args[0], args[1]
        assert isinstance(name, Static)
        if callee is setattr:
            self.set_member(base, name.object, args[2], node)
            return NoneValue()
        found = base.object if isinstance(base, Static) else None
        if isinstance(found, exceptions.Made | exceptions.Caught):
            there = exceptions.has_attribute(cast(Any, self), found, name.object)
            if callee is hasattr:
                return there
            wanted = ast.copy_location(
                ast.Attribute(ast.Constant(None), name.object, ast.Load()), node
            )
            if len(args) < 3:
                return self.attribute_of(base, wanted)
            return self.chosen(there, (lambda: self.attribute_of(base, wanted), lambda: args[2]))
        has = self.has_member(base, name.object)
        if callee is hasattr:
            return self.e.constant(has, "py_bool")
        if not has and len(args) == 3:
            return args[2]
        wanted = ast.Attribute(ast.Constant(None), name.object, ast.Load())
        return self.attribute_of(base, ast.copy_location(wanted, node))

    @abstractmethod
    def attribute_of(self, value: Value, node: ast.Attribute) -> Value:
        """`value.name`."""

    def has_member(self, base: Value, name: str) -> bool:
        if isinstance(base, Record | Struct):
            return name in self.keys_of(base) or found_in(base.cls, name) is not None
        if isinstance(base, Array | Scalar) or (isinstance(base, Tuple) and base.cls is not None):
            with suppress(ValueError):
                return hasattr(like(base), name)
        if isinstance(base, Static) and not isinstance(base.object, Opaque | Method | Super):
            return hasattr(base.object, name)
        raise self.refusal(None, f"attributes of {described(base)} are looked up by name")

    # Dicts.

    def dict_display(self, node: ast.Dict) -> Value:
        """`{"a": 1, ...}`."""
        place = self.frame.path, id(node)
        if place in self.facts.hashed:
            return hashed.dict_of(self, node)
        items = dict[Any, Value]()
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                items |= self.items_of(self.expression(value), value)
                continue
            asked = self.expression(key)
            if constant_of(asked) is NOTHING and hashed.is_number(asked):
                hashed.learn_at(self, place)
            known = self.constant_key(asked, key)
            items[known] = self.expression(value)
        return self.dict_of(items, place)

    def dict_comprehension(self, node: ast.DictComp) -> Value:
        """`{k: v for ...}` over what is known while compiling."""
        place = self.frame.path, id(node)
        if place in self.facts.hashed:
            return hashed.comprehension(self, node)
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        items = dict[Any, Value]()
        try:
            for found in self.unrolled_items(node, pair):
                assert isinstance(found, Tuple)
                items[self.constant_key(found.items[0], node.key)] = found.items[1]
        except CompileError:  # what it is made of is known at run time
            hashed.learn_at(self, place)
            raise
        return self.dict_of(items, place)

    @abstractmethod
    def unrolled_items(self, node: ast.DictComp, item: ast.expr) -> list[Value]:
        """What `item` is in each round of a comprehension over what is known while compiling."""

    def dict_of(self, items: dict[Any, Value], place: hashed.Place | None = None) -> Record:
        made = self.objects.make(dict, "dict", self.e.block)
        if place is not None:
            self.objects.places[made.serial] = place
        for key, value in items.items():
            self.give(made, key, value)
        return made

    def joined_dicts(self, lhs: Value, rhs: Value) -> Value:
        node = self.frame.source.node
        return self.dict_of({**self.items_of(lhs, node), **self.items_of(rhs, node)})

    def dict_call(self, args: list[Value], kwargs: Kwargs, node: ast.Call) -> Value:
        """`dict(...)` of a dict, or of pairs, and keywords."""
        place, items = (self.frame.path, id(node)), dict[Any, Value]()
        if place in self.facts.hashed:
            return hashed.filled(self, args, kwargs, node)
        if args:
            if not isinstance(args[0], Record | Struct) or args[0].cls is not dict:
                hashed.learn_at(self, place)
            items = self.items_of(args[0], node)
        return self.dict_of({**items, **kwargs}, place)

    def items_of(self, value: Value, node: ast.AST) -> dict[Any, Value]:
        if not isinstance(value, Record | Struct) or value.cls is not dict:
            raise self.refusal(node, f"a dict is made of {described(value)}", "make it of a dict")
        found = {key: self.field(value, key) for key in self.keys_of(value)}
        return {key: item for key, item in found.items() if item is not None}

    def constant_key(self, value: Value, node: ast.AST | None) -> Any:
        """The key of a dict; a refusal where the compiler does not know it."""
        match value:
            case Scalar(constant=known) if known is not None:
                return known
            case Static(str() | enum.Enum() as known):
                return known
            case NoneValue():
                return None
            case Tuple(items):
                return tuple(self.constant_key(item, node) for item in items)
            case _:
                raise self.refusal(
                    node, "a dict's key is known only at run time",
                    "keys are constants, or chosen among some: strings, ints, enum members",
                )  # fmt: skip

    def dict_item(self, value: Record | Struct, key: Value, node: ast.AST) -> Value:
        """`d[key]`."""
        hashed.learn_by_key(self, value, key)
        if run_time_keys.is_open(key):
            one_of = run_time_keys.which(self, key, self.keys_of(value), node)
            return choices.each(self, one_of, lambda one: self.dict_item(value, one, node))
        known = self.constant_key(key, node)
        found = self.field(value, known)
        if found is None:
            is_caught = self.catching.target("KeyError", "") is not None
            self.always(*exceptions.key_error(known))
            if is_caught:
                raise Unready
            raise self.refusal(node, f"the dict has no key {known!r}")
        return found

    def object_item(self, value: Record | Struct, node: ast.Subscript) -> Value:
        """`value[key]`."""
        if value.cls is dict:
            return self.dict_item(value, self.expression(node.slice), node)
        method = method_of(value, "__getitem__")
        if method is None:
            raise self.refusal(node, f"{described(value)} has no items")
        return self.invoked(method, [value, self.subscript_of(node.slice)], node)

    def subscript_of(self, node: ast.expr) -> Value:
        """What stands between the brackets of an object's subscript; slices are values there."""
        match node:
            case ast.Slice():
                return self.index_part(node)
            case ast.Tuple(parts) if any(isinstance(part, ast.Slice) for part in parts):
                return Tuple(tuple(map(self.subscript_of, parts)))
            case _:
                return self.expression(node)

    @abstractmethod
    def index_part(self, node: ast.expr) -> Value:
        """A part of a subscript."""

    def set_object_item(self, base: Record | Struct, target: ast.Subscript, value: Value) -> None:
        """`base[key] = value`."""
        key = self.subscript_of(target.slice)
        if base.cls is dict:
            self.set_dict_item(base, key, value, target)
            return
        method = method_of(base, "__setitem__")
        if method is None:
            raise self.refusal(target, f"{described(base)} has no items")
        self.invoked(method, [base, key, value], target)

    def augmented_item(
        self, base: Record | Struct, target: ast.Subscript, op: str, node: ast.expr
    ) -> None:
        """`d[key] op= value`."""
        if base.cls is not dict:
            protocols.augmented_item(self, base, target, op, node)
            return
        key = self.expression(target.slice)
        if run_time_keys.is_open(key):
            key = run_time_keys.which(self, key, self.keys_of(base), target)
        before = self.dict_item(base, key, target)
        after = self.changed(op, before, self.expression(node), target)
        if after is not None:
            self.set_dict_item(base, key, after, target)

    def length_of(self, value: Record | Struct, node: ast.AST) -> Value:
        """`len(value)`."""
        if value.cls is dict:
            return self.e.constant(len(self.keys_of(value)), "py_int")
        method = method_of(value, "__len__")
        if method is None:
            raise self.refusal(node, f"object of type {value.cls.__name__!r} has no len()")
        return self.invoked(method, [value], node)

    def items_of_iterable(self, value: Record | Struct, node: ast.AST) -> tuple[Value, ...]:
        """What a loop over a dict runs over: its keys."""
        if value.cls is not dict:
            raise self.refusal(node, f"a loop over {described(value)}", "loop over its fields")
        return tuple(self.constant(key, "a key") for key in self.keys_of(value))

    def set_dict_item(self, base: Value, key: Value, value: Value, node: ast.AST) -> None:
        """`d[key] = value`."""
        hashed.learn_by_key(self, base, key, stored=True)
        if isinstance(key, Choice):
            run_time_keys.do(self, key, lambda one: self.set_dict_item(base, one, value, node))
            return
        if isinstance(base, Struct):
            self.refuse_joined(base)
        assert isinstance(base, Record)
        known = self.constant_key(key, node)
        if known not in self.keys_of(base) and self.e.block is not self.objects.homes[base.serial]:
            hashed.learn(self, base)
            raise self.refusal(
                node, f"the key {known!r} is added to a dict in a branch or loop",
                "give the dict all its keys where it is made",
            )  # fmt: skip
        self.give(base, known, value)

    def python_method(
        self, receiver: Value, name: str, args: list[Value], kwargs: Kwargs, node: ast.Call
    ) -> Value:
        """A method of dicts, named tuples or strings."""
        match receiver:
            case Record() | Struct() if receiver.cls is dict:
                return self.dict_method(receiver, name, args, kwargs, node)
            case Tuple(items, type() as cls):
                fields: tuple[str, ...] = cls._fields  # pyright: ignore
                if name == "_replace":
                    given = dict(zip(fields, items, strict=True))
                    return self.named_tuple(cls, [], {**given, **kwargs}, node)
                if name == "_asdict":
                    return self.dict_of(dict(zip(fields, items, strict=True)))
            case Static(str() as text) if name == "format":
                return formatting.braces(cast(Any, self), text, args, kwargs)
            case Static(str() as text) if name in STRING_METHODS:
                known = [constant_of(a) for a in args]
                if all(k is not NOTHING for k in known) and not kwargs:
                    with suppress(TypeError, ValueError):
                        return self.constant(getattr(text, name)(*known), name)
            case _:
                pass
        raise self.refusal(node, f"`.{name}` of {described(receiver)} is not compiled")

    def dict_method(
        self, d: Record | Struct, name: str, args: list[Value], kwargs: Kwargs, node: ast.Call
    ) -> Value:
        items = self.items_of(d, node)
        low, high = ARITIES.get(name, (0, 0))
        if not low <= len(args) <= high or (kwargs and name != "update"):
            raise self.refusal(node, f"the arguments of .{name}")
        if low:
            hashed.learn_by_key(self, d, args[0], stored=name != "get")
        match name:
            case "get":
                other = args[1] if len(args) > 1 else NoneValue()
                if run_time_keys.is_open(args[0]):
                    inside = run_time_keys.contains(self, args[0], items)
                    return self.chosen(
                        inside, (lambda: self.dict_item(d, args[0], node), lambda: other)
                    )
                return items.get(self.constant_key(args[0], node), other)
            case "keys":
                return Tuple(tuple(self.constant(key, "a key") for key in items))
            case "values":
                return Tuple(tuple(items.values()))
            case "items":
                pairs = ((self.constant(k, "a key"), v) for k, v in items.items())
                return Tuple(tuple(Tuple(pair) for pair in pairs))
            case "copy":
                return self.dict_of(items)
            case "pop":
                return self.popped(d, items, args, node)
            case "setdefault":
                known = self.constant_key(args[0], node)
                if known not in items:
                    items[known] = args[1] if len(args) > 1 else NoneValue()
                    self.set_dict_item(d, args[0], items[known], node)
                return items[known]
            case "update":
                given = self.items_of(args[0], node) if args else {}
                for key, value in {**given, **kwargs}.items():
                    self.set_dict_item(d, self.constant(key, "a key"), value, node)
                return NoneValue()
            case _:
                raise self.refusal(node, f"`.{name}` of a dict is not compiled")

    def popped(self, d: Value, items: dict[Any, Value], args: list[Value], node: ast.AST) -> Value:
        """`d.pop(key)`."""
        known = self.constant_key(args[0], node)
        if known not in items:
            if len(args) > 1:
                return args[1]
            self.always(*exceptions.key_error(known))
            raise Unready
        if isinstance(d, Struct):
            self.refuse_joined(d)
        assert isinstance(d, Record)
        if d.origin is not None or self.e.block is not self.objects.homes[d.serial]:
            raise self.refusal(
                node, f"the key {known!r} is removed from a dict of the caller, or in a branch or loop",
                "make a dict without it: {k: v for k, v in d.items() if k != ...}",
            )  # fmt: skip
        self.objects.keys[d.serial].remove(known)
        self.frame.env.pop(self.objects.name(d, known), None)
        return items[known]

    # `in`

    def contains(self, wanted: Value, container: Value) -> Scalar | None:
        """`wanted in container`; None where it is neither tuple, dict nor string."""
        match wanted, container:
            case _, Record() | Struct() if container.cls is dict:
                hashed.learn_by_key(self, container, wanted)
                keys = self.keys_of(container)
                if run_time_keys.is_open(wanted):
                    return run_time_keys.contains(self, wanted, keys)
                return self.e.constant(self.constant_key(wanted, None) in keys, "py_bool")
            case Static(str() as part), Static(str() as text):
                return self.e.constant(part in text, "py_bool")
            case Static(enum.Enum() as member), Static(enum.EnumMeta() as cls):
                return self.e.constant(member in cls, "py_bool")
            case _, Tuple(items):
                found = self.e.constant(False, "py_bool")
                for item in items:
                    same = self.compare_values(ast.Eq(), wanted, item)
                    found = self.conjunction("or", found, scalars.truth(self.e, same))
                return found
            case _:
                return protocols.contains(self, wanted, container)


NOTHING = object()


def is_name(value: Value) -> bool:
    return isinstance(value, Static) and isinstance(value.object, str)


def constant_of(value: Value) -> Any:
    """The Python object that a value is, where it is known."""
    match value:
        case Static(found):
            return found
        case Scalar(constant=known) if known is not None:
            return known
        case Tuple(items):
            found = tuple(constant_of(item) for item in items)
            return NOTHING if any(f is NOTHING for f in found) else found
        case _:
            return NOTHING


def enumeration(value: Value) -> Any:
    return getattr(value, "constant", None) or getattr(value, "object", None)

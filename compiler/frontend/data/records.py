"""Objects with fields: dataclasses, plain classes, named tuples, enum members; see `fields`.

    @dataclass                            s = State(x, 0.0)      s.x$0.0, s.t$1.0 are bound
    class State:                          s.t += dt              s.t$1.0 is bound anew
        x: np.ndarray                     s.x += 1               the array is changed in place
        t: float                          s.energy()             the method is inlined

Instances of frozen dataclasses and named tuples are values: they join where control flow meets, field by
field. Other objects have an identity, which must be the same on every path; where two of them meet,
what is left is a copy of their fields that nothing can be assigned to (`Struct`).
"""

from __future__ import annotations

import ast
import enum
import functools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from types import FunctionType, MemberDescriptorType
from typing import Any

from ...diagnostics import CompileError
from .. import choices, exceptions, scalars
from ..joins import Maybe
from ..library import in_place, ways_out
from ..library.set_attributes import set_attribute, why_unassignable
from ..values import (
    Array,
    Choice,
    Item,
    NoneValue,
    Record,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)
from . import fixed_items
from .classes import (
    class_of_receiver,
    described,
    found_in,
    is_named_tuple,
    may_be_none,
    plain_function,
)
from .fields import is_frozen
from .object_phis import Meeting
from .settings import Settings

MISSING = object()
FROZEN = "dataclasses:FrozenInstanceError"


@dataclass(frozen=True, eq=False)
class Method:
    """A function of a class and the object that it is a method of."""

    receiver: Value
    function: FunctionType


@dataclass(frozen=True, eq=False)
class Super:
    """`super()` in a method."""

    receiver: Value
    after: type


@dataclass(frozen=True)
class Opaque:
    """An object that is handed through, and not looked into."""

    cls: type

    def __repr__(self) -> str:
        return f"an object of class {self.cls.__name__}"


class Records(Meeting):
    """Reads and assigns attributes, makes objects."""

    @abstractmethod
    def compare_values(self, op: ast.cmpop, lhs: Value, rhs: Value) -> Value:
        """The value of a comparison."""

    @abstractmethod
    def binary_values(self, op: str, lhs: Value, rhs: Value) -> Value:
        """The value of a binary operator."""

    @abstractmethod
    def conjunction(self, word: str, a: Scalar, b: Scalar) -> Scalar:
        """`a and b` or `a or b` of two bools."""

    @abstractmethod
    def changed(self, op: str, before: Value, value: Value, node: ast.AST) -> Value | None:
        """What `before op= value` stores; None where it changes `before` in place."""

    # Fields.

    @abstractmethod
    def item_field(self, item: Item, key: Any) -> Value | None:
        """A field of an object in a list."""

    @abstractmethod
    def give_item(self, item: Item, key: Any, value: Value) -> None:
        """Assign to one."""

    def keys_of(self, value: Record | Struct) -> tuple[Any, ...]:
        """The names of the fields that the object has."""
        value = self.item_now(value) if isinstance(value, Record) else value
        if isinstance(value, Item):
            value = self.copy_of_item(value)
        if isinstance(value, Struct):
            return value.names
        env = self.frame.env
        found = list[Any]()
        for key in self.objects.keys[value.serial]:
            binding = env.get(self.objects.name(value, key))
            if isinstance(binding, Maybe):
                raise self.refusal(
                    None,
                    f"whether {described(value)} has `{key}` depends on the path",
                    "assign it on every path",
                )
            if binding is not None:
                found.append(key)
        return tuple(found)

    def field(self, value: Record | Struct, key: Any) -> Value | None:
        """The value of a field; None where the object has none of this name."""
        if isinstance(value, Struct):
            return value.items[value.names.index(key)] if key in value.names else None
        value = self.item_now(value)
        return (
            self.item_field(value, key) if isinstance(value, Item) else self.own_field(value, key)
        )

    def own_field(self, value: Record, key: Any) -> Value | None:
        """A field of an object that has its own."""
        binding = self.frame.env.get(self.objects.name(value, key))
        if isinstance(binding, Maybe):
            unbound = scalars.logical_not(self.e, binding.defined)
            missing = f"{value.cls.__name__!r} object has no attribute {key!r}"
            kind = exceptions.key_error(key) if value.cls is dict else ("AttributeError", missing)
            scalars.raise_if(self.e, unbound, kind)
            self.frame.env[self.objects.name(value, key)] = binding.value
            return binding.value
        if binding is None and key in self.objects.keys[value.serial]:
            raise self.refusal(
                None,
                f"`{key}` of {described(value)} was assigned on a path that ended",
                "make the object, or assign this, before the branch or loop",
            )
        return binding

    def give(self, record: Record, key: Any, value: Value) -> None:
        """Assign to a field."""
        record = self.item_now(record)
        if isinstance(record, Item):
            self.give_item(record, key, value)
            return
        self.own_give(record, key, value)

    def own_give(self, record: Record, key: Any, value: Value) -> None:
        """Assign to a field of an object that has its own."""
        if record.serial in self.objects.snapshots:
            raise self.one_or_another(record)
        if isinstance(value, Static) and isinstance(value.object, Opaque | Method):
            raise self.refusal(None, "only numbers, arrays, strings and objects are assigned here")
        self.share([value])
        self.objects.give(record, key, self.frame.env, value)
        journal = self.objects.journal
        if (
            journal is not None
            and record.origin is not None
            and not journal.note(self.e, (record.origin, key), value)
        ):
            raise self.refusal(None, "too many new attributes are given to arguments")

    # Attributes.

    def member(self, value: Value, name: str, node: ast.AST) -> Value | None:
        """`value.name` of an object; None where value is nothing of ours."""
        match value:
            case Record() | Struct():
                return self.object_member(value, name, node)
            case Tuple(items, type() as cls):
                fields: tuple[str, ...] = cls._fields  # pyright: ignore
                if name in fields:
                    return items[fields.index(name)]
                if name in ("_replace", "_asdict"):
                    return Static(ObjectMethod(value, name))
                return self.class_member(value, cls, name, node)
            case Scalar() if isinstance(value.constant, enum.Enum):  # pyright: ignore
                return self.enum_member(value.constant, name, node)
            case Static(enum.Enum() as member):
                return self.enum_member(member, name, node)
            case Static(str()) if hasattr(str, name):
                return Static(ObjectMethod(value, name))
            case Static(Super() as found):
                return self.inherited(found, name, node)
            case Static(Opaque(cls)):
                raise self.refusal(
                    node,
                    f"objects of class {cls.__name__} are not compiled: `.{name}`",
                    "compute with it outside, or pass the values that are needed",
                )
            case Static(type() as cls) if not self.fixed(cls):
                found = found_in(cls, name)
                if found is not None and isinstance(found[1], classmethod):
                    function = found[1].__func__  # pyright: ignore
                    return Static(Method(value, plain_function(function)))
                return None
            case _:
                return None

    def object_member(self, value: Record | Struct, name: str, node: ast.AST) -> Value:
        cls = value.cls
        if name == "__class__":
            return Static(cls)
        found = found_in(cls, name)
        if found is None or not isinstance(found[1], property | functools.cached_property):
            known = self.field(value, name)
            if known is not None:
                return known
        return self.class_member(value, cls, name, node)

    def class_member(self, value: Value, cls: type, name: str, node: ast.AST) -> Value:
        """What the class of an object has under a name."""
        found = found_in(cls, name)
        if found is None:
            raise self.refusal(node, f"{cls.__name__!r} object has no attribute {name!r}")
        owner, raw = found
        function = plain_function(raw)
        if function is not None:
            return Static(Method(value, function))
        match raw:
            case property(fget=getter) if getter is not None:
                return self.invoked(getter, [value], node)
            case staticmethod():
                return Static(raw.__func__)  # pyright: ignore[reportUnknownMemberType]
            case classmethod():
                return Static(Method(Static(cls), plain_function(raw.__func__)))  # pyright: ignore
            case functools.cached_property(func=getter):
                return self.remembered(value, name, getter, node)
            case MemberDescriptorType():
                raise self.refusal(node, f"{cls.__name__!r} object has no attribute {name!r}")
            case _ if self.fixed(owner) or is_named_tuple(cls):
                return Static(ObjectMethod(value, name))
            case _:
                return self.captured(owner, name, raw, f"{owner.__name__}.{name}")

    def remembered(self, value: Value, name: str, getter: Any, node: ast.AST) -> Value:
        """A `functools.cached_property`: a field, once it has been read."""
        value = self.item_now(value) if isinstance(value, Record) else value
        if not isinstance(value, Record) or isinstance(value, Item):
            raise self.refusal(
                node,
                f"`.{name}`, a functools.cached_property, is read of {described(value)}",
                "use a property, or read it of the object before paths meet",
            )

        def compute() -> Value:
            return self.invoked(getter, [value], node)

        known = self.frame.env.get(self.objects.name(value, name))
        if known is not None and not isinstance(known, Maybe):
            return known
        if known is None:
            made = compute()
        else:
            kept, has = known.value, Scalar("py_bool", known.defined, None, 0, 1)
            made = self.chosen(has, (lambda: kept, compute))
        self.give(value, name, made)
        return made

    def enum_member(self, member: enum.Enum, name: str, node: ast.AST) -> Value:
        if name in ("name", "value", "_name_", "_value_"):
            return self.constant(getattr(member, name), name)
        found = vars(member).get(name, MISSING)
        if found is not MISSING:
            return self.constant(found, name)
        return self.class_member(Static(member), type(member), name, node)

    def inherited(self, of: Super, name: str, node: ast.AST) -> Value:
        """`super().name`."""
        cls = class_of_receiver(of.receiver)
        above = cls.__mro__[cls.__mro__.index(of.after) + 1 :]
        for owner in above:
            if name in vars(owner):
                raw = vars(owner)[name]
                function = plain_function(raw)
                if function is not None:
                    return Static(Method(of.receiver, function))
                if isinstance(raw, property) and raw.fget is not None:
                    return self.invoked(raw.fget, [of.receiver], node)
                if isinstance(raw, staticmethod):
                    return Static(raw.__func__)  # pyright: ignore[reportUnknownMemberType]
                if isinstance(raw, classmethod):
                    return Static(Method(Static(cls), plain_function(raw.__func__)))  # pyright: ignore
                if owner is object and name == "__init__":
                    return Static(Method(of.receiver, initializes_nothing))
                if name == "__init__" and (init := exceptions.initializer(owner)) is not None:
                    return Static(Method(of.receiver, init))
                break
        raise self.refusal(node, f"super().{name} is not compiled")

    def super_object(self, node: ast.AST) -> Value:
        """`super()` without arguments."""
        frame = self.frame
        cell = frame.scope.cells.get("__class__")
        arguments = frame.source.node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        if cell is None or not names or frame.parent is not None:
            raise self.refusal(node, "super() is compiled in methods only")
        return Static(Super(self.read_local(frame, names[0]), cell.cell_contents))

    def super_of(self, args: list[Value], node: ast.AST) -> Value:
        """`super(Class, self)`."""
        after, receiver = args
        if not isinstance(after, Static) or not isinstance(after.object, type):
            raise self.refusal(node, "super of something that is not a class")
        return Static(Super(receiver, after.object))

    def invoked(self, function: Callable[..., Any], args: list[Value], node: ast.AST) -> Value:
        """Call a function for an operation that is not written as a call."""
        place = self.e.span, function
        if place not in self.facts.implied:
            implied = ast.Call(ast.Constant(None), [], [])
            self.facts.implied[place] = ast.fix_missing_locations(ast.copy_location(implied, node))
        return self.call(Static(function), args, {}, self.facts.implied[place])

    # Assignment to attributes.

    def set_member(self, base: Value, name: str, value: Value, node: ast.AST) -> None:
        """`base.name = value`."""
        with self.located(node):
            match base:
                case _ if may_be_none(base):
                    words = why_unassignable(NoneValue(), name) or name
                    there = choices.present(self, base, words, "AttributeError")
                    self.set_member(there, name, value, node)
                case Choice():
                    fixed_items.assign_each(
                        self, base, lambda one: self.set_member(one, name, value, node)
                    )
                case Record() | Struct() if base.cls is not dict:
                    self.set_field(base, name, value, node)
                case Array() | Scalar() | Tuple(_, type()) if words := why_unassignable(base, name):
                    self.always("AttributeError", words)  # programs try it with a series of pandas
                case Array():
                    in_place.become(self, base, set_attribute(self.e, base, name, value))
                case _:
                    what = "assignment to an attribute of something that is no object of a class"
                    raise self.refusal(node, what, ways_out.ASSIGNED)

    def having(self, base: Value, name: str) -> Value:
        """What has an attribute that is read, unless it is None."""
        missing = f"'NoneType' object has no attribute {name!r}"
        return choices.present(self, base, missing, "AttributeError")

    def set_field(self, base: Record | Struct, name: str, value: Value, node: ast.AST) -> None:
        cls = base.cls
        found = found_in(cls, name)
        if is_frozen(cls):
            self.catching.classes[FROZEN] = FrozenInstanceError
            self.always(FROZEN, f"cannot assign to field {name!r}")
        elif found is not None and isinstance(found[1], property):
            if found[1].fset is None:
                text = f"property {name!r} of {cls.__name__!r} object has no setter"
                self.always("AttributeError", text)
            else:
                self.invoked(found[1].fset, [base, value], node)
        elif isinstance(base, Struct):
            self.refuse_joined(base)
        else:
            self.require_place(cls, name, node)
            self.give(base, name, value)

    def refuse_joined(self, value: Struct) -> None:
        if isinstance(value, Settings):
            raise self.refusal(
                None,
                f"this {value.cls.__name__} is from outside, and is assigned to",
                "pass it as an argument, or assign after the call",
            )
        raise self.one_or_another(value)

    def one_or_another(self, value: Struct | Record) -> CompileError:
        """The refusal of a value that stands for an object; the next build may know its place instead."""
        self.use_heap(value.cls)
        return self.refusal(
            None,
            f"this {value.cls.__name__} is one object or another, which depends on the path, and is"
            " assigned to",
            f"make one {value.cls.__name__} before the branch or loop, and assign to its"
            f" {'items' if issubclass(value.cls, dict) else 'fields'}",
        )

    def require_place(self, cls: type, name: str, node: ast.AST) -> None:
        """Refuse a name that instances have no place for."""
        found = found_in(cls, name)
        if cls.__dictoffset__ == 0 and not (found and isinstance(found[1], MemberDescriptorType)):
            raise self.refusal(node, f"{cls.__name__!r} object has no attribute {name!r}")

    def always(self, exception: str, text: str) -> None:
        """Raise, on every path that comes here."""
        scalars.raise_if(self.e, self.e.constant(True, "py_bool").ssa, (exception, text))
        self.dead = True

    def refuse_long_list(self, value: Value, node: ast.AST) -> None:
        """Refuse to look into a list that is handed through."""
        if (
            isinstance(value, Static)
            and isinstance(value.object, Opaque)
            and value.object.cls is list
        ):
            raise self.refusal(
                node,
                "a list of arrays or objects that is an argument has at most 256 items in compiled code",
                "pass one array of them: np.stack(l), or one for each field",
            )

    def augmented_member(self, target: ast.Attribute, op: str, node: ast.expr) -> None:
        """`base.name op= value`."""
        base = self.expression(target.value)
        with self.located(target):
            base = self.having(base, target.attr) if may_be_none(base) else base
            before = (
                fixed_items.attribute(self, base, target.attr)
                if isinstance(base, Choice)
                else self.member(base, target.attr, target)
            )
        if before is None:
            raise self.refusal(
                target, "assignment to an attribute is not compiled", ways_out.ASSIGNED
            )
        after = self.changed(op, before, self.expression(node), target)
        if after is not None:
            self.set_member(base, target.attr, after, target)
        elif is_frozen(base.cls) if isinstance(base, Record) else not isinstance(base, Choice):
            self.set_member(base, target.attr, before, target)


@dataclass(frozen=True, eq=False)
class ObjectMethod:
    """A method that Python itself gives to an object: of dicts, strings, named tuples."""

    receiver: Value
    name: str


def initializes_nothing(self: Any) -> None:
    """What `object.__init__` does."""

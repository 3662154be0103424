"""Objects as arguments: taken apart before a compiled call, put together after it.

Compiled code takes numbers and arrays. Arguments that hold them in objects (dataclasses, plain classes,
named tuples, dicts) are *flattened*: what is compiled is a function of the parts, one for each
*structure*, that is, for each way in which classes, fields, strings, enum members and functions make the
arguments::

    step(State(pos, vel, 0.0), 0.1)       step of (s.pos, s.vel, s.t, dt)

Whatever is known of arguments then holds of fields: which arrays share memory, what the gradient is with
respect to, which shadows there are. A mutable object that is met twice is one object.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FunctionType, MemberDescriptorType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from . import keys
from .captures import is_function
from .library_code import is_versioned
from .list_columns import Form, as_rows, columns, is_frozen, items_of, replace, width

Shape = tuple[Any, ...]
"""("leaf",), ("static", object), ("opaque", class), ("tuple", class or None, shapes),
("object", number, class, field names, shapes), ("again", number), ("numbers", number, form of the
items), ("list", number, shapes)."""

LEAF: Shape = ("leaf",)
LEAVES = keys.PLAIN
"""What an argument key describes: it is handed on as it is."""
SPARE = 8
"""How many attributes may be new: the journal has room for them."""
LONGEST = 256
"""A longer list of anything but numbers is handed through."""


def has_structure(values: tuple[Any, ...]) -> bool:
    """Whether some argument is, or holds, an object."""
    for value in values:
        kind = type(value)
        if kind is tuple:
            if has_structure(value):
                return True
        elif kind not in LEAVES and is_object(value):
            return True
    return False


def is_object(value: Any) -> bool:
    """True for what is taken apart, or is part of the key itself."""
    kind = type(value)
    if kind in (dict, list) or is_static(value):
        return True
    return layout_of(kind) is not None


def is_static(value: Any) -> bool:
    """True for what code is compiled for, each for itself: words, members of enums, functions, classes."""
    return type(value) is str or isinstance(value, enum.Enum | type) or is_function(value)


@dataclass(frozen=True)
class Layout:
    """How instances of a class are taken apart."""

    names: Callable[[Any], tuple[str, ...]]
    read: Callable[[Any], list[Any]]
    is_tuple: bool = False
    is_plain: bool = False
    """All attributes are in `__dict__`."""


_LAYOUTS: WeakKeyDictionary[type, Layout] = WeakKeyDictionary()


def layout_of(kind: type) -> Layout | None:
    """The layout of a class; None where its instances are no plain objects."""
    found = _LAYOUTS.get(kind)
    if found is None:
        found = _layout(kind)
        if found is not None:
            _LAYOUTS[kind] = found
    return found


def _layout(kind: type) -> Layout | None:
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return Layout(_tuple_names, list, True)
    if is_versioned(kind.__module__) or issubclass(kind, _NOT_PLAIN) or keys.array_of_another(kind):
        return None
    slots = tuple(
        name
        for owner in reversed(kind.__mro__)
        for name, value in vars(owner).items()
        if isinstance(value, MemberDescriptorType) and owner is not object
    )
    if not slots and kind.__dictoffset__:
        return Layout(_attribute_names, _attributes, is_plain=True)
    if not slots:
        return None

    def names_of(value: Any) -> tuple[str, ...]:
        own = tuple(n for n in slots if hasattr(value, n))
        others: Any = getattr(value, "__dict__", None)  # by its `__getattr__` anything
        return own + (tuple(others) if isinstance(others, dict) else ())

    return Layout(names_of, lambda v: [getattr(v, n) for n in names_of(v)])


def has_plain_attributes(kind: type) -> bool:
    layout = layout_of(kind)
    return layout is not None and layout.is_plain


def _tuple_names(value: Any) -> tuple[str, ...]:
    return value._fields


def _attribute_names(value: Any) -> tuple[str, ...]:
    return tuple(value.__dict__)


def _attributes(value: Any) -> list[Any]:
    return list(value.__dict__.values())


_NOT_PLAIN = (
    tuple, list, dict, set, frozenset, str, bytes, int, float, complex, type, BaseException, np.ndarray,
    np.generic, FunctionType,
)  # fmt: skip


@dataclass(slots=True)
class Parts:
    """What arguments hold: numbers and arrays, the objects with fields by number, the rest."""

    leaves: tuple[Any, ...]
    objects: list[Any]
    others: list[Any]


@dataclass
class Flattening:
    """The parts of arguments, and their structure."""

    leaves: list[Any] = field(default_factory=list[Any])
    seen: dict[int, int] = field(default_factory=dict[int, int])
    objects: list[Any] = field(default_factory=list[Any])
    """The objects with fields, by number."""
    others: list[Any] = field(default_factory=list[Any])
    """What is handed through."""
    rows: set[int] = field(default_factory=set[int])
    """The lists that are items of lists, which go by them alone."""
    with_rows: bool = True
    kinds: list[type] = field(default_factory=list[type])
    """Of the constants and the keys: members of two enums, `1` and `True`, are equal and not alike."""

    def shape(self, value: Any) -> Shape:
        kind = type(value)
        if kind in LEAVES or keys.is_generator(value):
            self.leaves.append(value)
            return LEAF
        if kind is tuple:
            return ("tuple", None, tuple([self.shape(item) for item in value]))
        if is_static(value):
            self.kinds.append(kind)
            return ("static", value)
        number = self.seen.get(id(value))
        if number is not None:
            return ("again", number)
        if kind is dict:
            return self.dict(value)
        if kind is list:
            return self.list(value)
        layout = layout_of(kind)
        if layout is None and keys.is_generator(value):
            LEAVES.add(kind)  # now that `numpy.random` is imported
            self.leaves.append(value)
            return LEAF
        if layout is None:
            self.others.append(value)
            return ("opaque", kind)
        if layout.is_tuple:
            return ("tuple", kind, tuple([self.shape(item) for item in value]))
        self.seen[id(value)] = number = len(self.objects)
        self.objects.append(value)
        names = layout.names(value)
        return ("object", number, kind, names, tuple([self.shape(v) for v in layout.read(value)]))

    def dict(self, value: dict[Any, Any]) -> Shape:
        if any(type(k) not in (str, int, bool) and not isinstance(k, enum.Enum) for k in value):
            self.others.append(value)
            return ("opaque", dict)
        self.seen[id(value)] = number = len(self.objects)
        self.objects.append(value)
        self.kinds += map(type, value)
        return (
            "object",
            number,
            dict,
            tuple(value),
            tuple([self.shape(v) for v in value.values()]),
        )

    def list(self, value: list[Any]) -> Shape:
        found = columns(value) if value else (None, [])
        if found is not None and as_rows(found[0]) is not None:
            own = set(map(id, value))
            if not self.with_rows or not own.isdisjoint(self.seen) or not own.isdisjoint(self.rows):
                found = None
            else:
                self.rows |= own
        if id(value) in self.rows:
            raise SharedRow
        if found is None and len(value) > LONGEST:
            self.others.append(value)
            return ("opaque", list)
        self.seen[id(value)] = number = len(self.objects)
        self.objects.append(value)
        if found is None:
            return ("list", number, tuple([self.shape(v) for v in value]))
        form, arrays = found
        self.leaves += arrays
        return ("numbers", number, form)


class SharedRow(Exception):
    """A list is an item of a list, and found elsewhere, too."""


def flatten(values: tuple[Any, ...]) -> tuple[tuple[Shape, ...], tuple[type, ...], Parts]:
    """The structure of arguments, the types of what is constant in it, and their parts."""
    made = Flattening()
    try:
        shapes = tuple([made.shape(v) for v in values])
    except SharedRow:
        made = Flattening(with_rows=False)
        shapes = tuple([made.shape(v) for v in values])
    return shapes, tuple(made.kinds), Parts(tuple(made.leaves), made.objects, made.others)


@dataclass(frozen=True, eq=False)
class Node:
    """A part of the arguments: a number or array, or what holds some."""

    kind: str
    name: str
    """`s`, `s.pos`, `s.child.mass`, `d['rate']`, `pair[0]`."""
    index: int = -1
    """Of a leaf among the leaves, of what is opaque among the others, of an object among the objects."""
    cls: Any = None
    keys: tuple[Any, ...] = ()
    items: tuple[Node, ...] = ()
    value: Any = None
    """Of a constant; of a list of numbers the form of its items."""

    def leaves(self) -> Iterator[Node]:
        """The numbers and arrays in it."""
        if self.kind == "leaf":
            yield self
        for item in self.items:
            yield from item.leaves()


@dataclass(eq=False)
class Structure:
    """How the parts make the arguments of a function; what the compiler asks for (`boundary`)."""

    function: FunctionType
    shapes: tuple[Shape, ...]
    parameters: tuple[str, ...]
    nodes: tuple[Node, ...] = field(init=False)
    """One for each parameter."""
    names: tuple[str, ...] = field(init=False)
    """Of the parts, as `wrt` and messages call them; the journal is the last."""
    room: int = field(init=False)
    """How many fields the journal has room for; 0 where nothing can be assigned."""
    by_name: dict[str, Node] = field(default_factory=dict[str, Node])
    objects: dict[int, Node] = field(default_factory=dict[int, Node])
    constants: list[Any] = field(default_factory=list[Any])
    """The classes and constants in it, in order."""

    def __post_init__(self) -> None:
        counters = {"leaf": 0, "opaque": 0}
        pairs = zip(self.parameters, self.shapes, strict=True)
        self.nodes = tuple([self.node(p, shape, counters) for p, shape in pairs])
        leaves = [leaf for node in self.nodes for leaf in node.leaves()]
        self.names = tuple(sys.intern(n) for n in (*(leaf.name for leaf in leaves), JOURNAL))
        mutable = [n for n in self.objects.values() if n.cls is not list and not is_frozen(n.cls)]
        self.room = sum(len(n.keys) for n in mutable) + SPARE if mutable else 0

    def node(self, name: str, shape: Shape, counters: dict[str, int]) -> Node:
        match shape:
            case ("leaf",):
                made = Node("leaf", name, counters["leaf"])
                counters["leaf"] += 1
            case ("opaque", cls):
                made = Node("opaque", name, counters["opaque"], cls)
                counters["opaque"] += 1
                self.constants.append(cls)
            case ("static", value):
                made = Node("static", name, value=value)
                self.constants.append(value)
            case ("tuple", cls, shapes):
                own = tuple(range(len(shapes))) if cls is None else cls._fields
                self.constants.append(cls)
                items = self.items(name, cls, own, shapes, counters)
                made = Node("tuple", name, -1, cls, own, items)
            case ("numbers", number, form):
                made = self.objects[number] = self.numbers(name, number, form, counters)
            case ("list", number, shapes):
                items = self.items(name, list, tuple(range(len(shapes))), shapes, counters)
                own = tuple(range(len(items)))
                made = self.objects[number] = Node("list", name, number, list, own, items)
            case ("object", number, cls, own, shapes):
                self.constants += [cls, own]
                items = self.items(name, cls, own, shapes, counters)
                made = self.objects[number] = Node("object", name, number, cls, own, items)
            case _:
                made = Node("again", name, shape[1])
                self.constants.append(shape[1])
        self.by_name[name] = made
        return made

    def numbers(self, name: str, number: int, form: Form | None, counters: dict[str, int]) -> Node:
        """A list of numbers, and the arrays that it is."""
        first, count = counters["leaf"], width(form)
        counters["leaf"] += count
        names = [name] if isinstance(form, str) else [f"{name}[:][{k}]" for k in range(count)]
        items = tuple([Node("leaf", n, first + k) for k, n in enumerate(names)])
        return Node("numbers", name, number, list, (), items, form)

    def items(self, name: str, cls: Any, own: Any, shapes: Any, counters: Any) -> tuple[Node, ...]:
        pairs = zip(own, shapes, strict=True)
        return tuple([self.node(path_to(name, cls, k), s, counters) for k, s in pairs])

    def original(self, node: Node) -> Node:
        """The object itself, where it is met again."""
        return self.objects[node.index] if node.kind == "again" else node

    def find(self, path: str) -> Node | None:
        """The part that a path names; `d.rate` is `d['rate']`, too."""
        node = self.by_name.get(path)
        if node is not None:
            return self.original(node)
        above, dot, last = path.rpartition(".")
        outer = self.find(above) if dot else None
        if outer is None or last not in outer.keys:
            return None
        return self.original(outer.items[outer.keys.index(last)])


JOURNAL = "<journal>"


def path_to(name: str, cls: Any, key: Any) -> str:
    return f"{name}[{key!r}]" if cls in (dict, list, None) else f"{name}.{key}"


# Putting together.


@dataclass
class Assembly:
    """Makes arguments of parts: the same classes, the same sharing of objects, the same strings."""

    structure: Structure
    leaves: Sequence[Any]
    others: Sequence[Any]
    made: dict[int, Any] = field(default_factory=dict[int, Any])

    def make(self, node: Node) -> Any:
        match node.kind:
            case "leaf":
                return self.leaves[node.index]
            case "opaque":
                return self.others[node.index]
            case "static":
                return node.value
            case "tuple":
                items = [self.make(item) for item in node.items]
                return tuple(items) if node.cls is None else tuple.__new__(node.cls, items)
            case "again" if node.index not in self.made:
                return self.make(self.structure.objects[node.index])
            case "again":
                return self.made[node.index]
            case _ if node.index in self.made:
                return self.made[node.index]
            case "numbers":
                arrays = iter([self.leaves[item.index] for item in node.items])
                made = self.made[node.index] = items_of(node.value, arrays)
                return made
            case "list":
                made = self.made[node.index] = []
                made += [self.make(item) for item in node.items]
                return made
            case _:
                copy = self.made[node.index] = new_object(node.cls)
                for key, item in zip(node.keys, node.items, strict=True):
                    set_field(copy, key, self.make(item))
                return copy


def new_object(cls: Any) -> Any:
    return {} if cls is dict else object.__new__(cls)


ITEMS = "[:]"
"""The key under which all items of a list of numbers are assigned."""


def get_field(of: Any, key: Any) -> Any:
    if type(of) is list:
        return of if key == ITEMS else of[key]  # pyright: ignore
    return of[key] if type(of) is dict else getattr(of, key)  # pyright: ignore


def set_field(of: Any, key: Any, value: Any) -> None:
    """Assign, also to what is frozen."""
    if type(of) is dict:
        of[key] = value
    elif type(of) is list and key == ITEMS:
        replace(of, value)  # pyright: ignore[reportUnknownArgumentType]
    elif type(of) is list:
        of[key] = value
    else:
        object.__setattr__(of, key, value)

"""What a function reads from outside: globals, closure variables, attributes of modules and classes.

CPython reads them at each call, so compiled code must not go stale. A float or an array from outside
is an *input*: an argument that no caller passes, read from its *place* at each call (and a possible
`wrt`, by name). Everything else (ints, tuples, functions, modules) is a *constant* of the
compilation: the entry compares it with the object that is there now, and where another one is, the
function is compiled anew.

Places are found by walking bytecode, not by the compiler, for they must be known before the cached
code is looked up: every global and closure variable that the function reads, and all that the
functions it reads read in turn.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import types
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import class_reads, foreign, keys, pickles, rules, settings, tables, wrappers
from .bound import BoundMethod
from .bytecode_reads import Aliases, reads_of
from .library_code import is_fixed, is_of_library, is_own_fixed, is_standard
from .places import MISSING, Place


def is_input(value: Any) -> bool:
    """Read at each call, as an argument is; other values are constants of the compilation."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype in keys.DTYPES
    return kind in (float, np.float64, np.float32) or keys.is_generator(value)


@dataclass
class Captures:
    """What a function reads from outside, as long as its constants stay what they are."""

    inputs: tuple[Place, ...]
    names: tuple[str, ...]
    """Of the inputs, as `wrt` and messages call them; interned, no two alike."""
    constants: tuple[Place, ...]
    expected: tuple[Any, ...]
    """The constants' values."""
    tables: tables.Tables = field(default_factory=tables.Tables)
    """The lists, dicts and sets among the constants, and the numbers in them."""

    def values(self) -> tuple[Any, ...]:
        """The inputs' values now."""
        return tuple([place.read() for place in self.inputs])

    def hold(self) -> bool:
        """Code that was compiled for these captures is right still."""
        for place, value in zip(self.constants, self.expected, strict=True):
            found = place.read()
            if found is not value and not is_same(found, value):
                return False
        return not self.inputs or all(is_input(place.read()) for place in self.inputs)

    @contextmanager
    def replaced(self, values: Sequence[Any]) -> Generator[None]:
        """Meanwhile the inputs have other values."""
        before = self.values()
        try:
            for place, value in zip(self.inputs, values, strict=True):
                place.write(value)
            yield
        finally:
            for place, value in zip(self.inputs, before, strict=True):
                place.write(value)

    def foreign(self, value: Any) -> foreign.ForeignFunction | str | None:
        """How to call what is not looked into, or why it cannot be called; None for anything else."""
        if not foreign.is_foreign(value):
            return None
        try:
            return foreign.described(value, self.expected)
        except foreign.Unsupported as error:
            return str(error)

    @property
    def most_items(self) -> int:
        """No longer list, dict or set is watched."""
        return tables.MOST_ITEMS

    def is_watched(self, table: Any) -> bool:
        """The code may depend on what a list, dict or set holds: a change is seen."""
        return self.tables.watched.get(id(table)) is table

    def numbers(self, table: Any) -> tuple[tuple[int, str], int, int] | None:
        """In which input the numbers of a table are, from where on, and how many."""
        return self.tables.where(table)

    @staticmethod
    def rule(value: Any) -> rules.Rule | None:
        """The rule of a function, compiled or not."""
        return rules.rule_of(value)

    @staticmethod
    def plain(value: Any) -> Any:
        """The Python function behind a callable that only runs it; anything else as it is."""
        return wrappers.plain(value)

    @staticmethod
    def fixed(owner: types.ModuleType | type | str) -> bool:
        """Whether nobody watches a module, a class, or what a source file defines: a library's own."""
        return is_standard(owner) if isinstance(owner, str) else is_fixed(owner)

    def agrees(self, other: Captures) -> bool:
        """The same code serves both: the same places, constants that are equal if not identical."""
        mine, theirs = (c.inputs + c.constants for c in (self, other))
        return (
            len(self.inputs) == len(other.inputs)
            and [p.key for p in mine] == [p.key for p in theirs]
            and all(map(is_alike, self.expected, other.expected))
        )


def is_same(a: Any, b: Any) -> bool:
    """One object, or one method of one object: a class makes a new one at each reading."""
    return a is b or (isinstance(a, types.MethodType | BoundMethod) and a == b)


def is_alike(a: Any, b: Any) -> bool:
    """One object, or two that no program can tell apart by value."""
    if is_same(a, b):
        return True
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(is_alike, a, b))
    if isinstance(a, tables.State):
        return a.is_alike(b, is_alike)
    alike = type(a) in (int, str, bytes, float) or isinstance(a, np.integer)
    return alike and repr(a) == repr(b)


MOST_FUNCTIONS = 500
"""What more functions than these read is not followed: the nearest to the compiled one come first."""


@dataclass
class Walk:
    """What has been looked at, and what comes next: values whose code reads names from outside."""

    seen: set[int] = field(default_factory=set[int])
    pending: deque[Any] = field(default_factory=deque[Any])
    functions: int = 0
    names: set[str] = field(default_factory=set[str])
    """Of the attributes that the functions may read."""

    def first(self, value: Any) -> bool:
        """Whether this is met for the first time."""
        known = len(self.seen)
        self.seen.add(id(value))
        return len(self.seen) > known

    def reads(self, *values: Any) -> Iterator[tuple[Place, Any]]:
        """The places that these values read, what those hold reads, and so on."""
        self.pending += values
        while self.pending and self.functions < MOST_FUNCTIONS:
            yield from _reads(self.pending.popleft(), self)


def captures_of(function: types.FunctionType) -> Captures:
    """What `function` reads from outside now."""
    found: dict[tuple[int, str], tuple[Place, Any]] = {}
    walk = Walk()
    own, classes = taken_apart(function)
    for place, value in (*_rule_of(own, own.__name__, walk), *walk.reads(*classes, own)):
        found.setdefault(place.key, (place, value))
    _follow_settings(found, walk)
    all_tables = tables.Tables()
    held = (all_tables.add(value, place.path) for place, value in list(found.values()))
    for holder, name, path, value in (*(h for each in held for h in each), *all_tables.arrays()):
        place = Place(holder, name, path)
        found.setdefault(place.key, (place, value))
    inputs = [place for place, value in found.values() if is_input(value)]
    constants = [(place, value) for place, value in found.values() if not is_input(value)]
    return Captures(
        tuple(inputs),
        _names(inputs, function),
        tuple(place for place, _ in constants),
        tuple(value for _, value in constants),
        all_tables,
    )


def _follow_settings(found: dict[tuple[int, str], tuple[Place, Any]], walk: Walk) -> None:
    """The attributes of the objects that are found outside, and what those lead to."""
    seen, names = dict[int, Any](), -1
    while names != (names := len(walk.names) + len(found)):
        objects = [(p, v) for p, v in found.values() if settings.is_settings(v)]
        for place, value in objects[:MOST_OBJECTS]:
            seen[id(value)] = value
            path = place.path
            for holder, name, path_to, item in settings.attributes(value, path, walk.names):
                own = Place(holder, name, path_to)
                found[own.key] = found.get(own.key, (own, item)) if name != "names" else (own, item)
                walk.pending.append(item)
            for other, item in walk.reads(type(value)):
                found.setdefault(other.key, (other, item))


MOST_OBJECTS = 64


def taken_apart(function: types.FunctionType) -> tuple[types.FunctionType, tuple[Any, ...]]:
    """The function itself, where this is the function of the parts of its arguments (`objects`); and the
    classes and functions among those. (Of a class method the class, by the name of its parameter.)"""
    structure: Any = getattr(function, "structure", None)
    if structure is None:
        return function, ()
    known = [c for c in structure.constants if isinstance(c, type) or is_function(c)]
    first = structure.nodes[0].value if structure.nodes else None
    if isinstance(first, type):
        known.insert(0, types.MethodType(structure.function, first))
    return structure.function, tuple(known)


def _class_reads(cls: type, walk: Walk) -> Iterator[tuple[Place, Any]]:
    """What the methods of a class read; they themselves; the constants in it."""
    if not walk.first(cls):
        return
    for owner, name, value in class_reads.constants_of(cls, is_own_fixed):
        yield Place(owner, sys.intern(name), f"{owner.__name__}.{name}"), value
    for owner, name, raw in class_reads.attributes_of(cls, is_own_fixed):
        functions = class_reads.functions_of(raw)
        if functions and isinstance(raw, types.FunctionType | property):
            yield Place(owner, sys.intern(name), f"{owner.__name__}.{name}"), raw
        walk.pending += functions
    walk.pending += class_reads.factories_of(cls)


def _names(places: list[Place], function: types.FunctionType) -> tuple[str, ...]:
    """A name for each input: its path, with a number where that is taken."""
    code = function.__code__
    taken = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    names: list[str] = []
    for place in places:
        name, number = place.path, 1
        while name in taken:
            number += 1
            name = f"{place.path}.{number}"
        taken.add(name)
        names.append(sys.intern(name))
    return tuple(names)


def _reads(value: Any, walk: Walk) -> Iterator[tuple[Place, Any]]:
    """The places that a value's code reads, where it is a function or holds some."""
    if isinstance(value, tuple):
        walk.pending += value
        return
    if tables.is_table(value):
        if len(value) <= tables.MOST_ITEMS and walk.first(value):
            walk.pending += tables.items_of(value)
        return
    if isinstance(value, functools.partial):
        part: functools.partial[Any] = value
        walk.pending += (part.func, *part.args, *part.keywords.values())
        return
    if isinstance(value, type):
        if not is_own_fixed(value) and class_reads.may_have_records(value):
            yield from _class_reads(value, walk)
        return
    if dataclasses.is_dataclass(value) or isinstance(value, enum.Enum):
        walk.pending.append(type(value))
        return
    receiver: Any = None
    if isinstance(value, types.MethodType):
        receiver, value = value.__self__, value.__func__
    function = compiled_along(value)
    if function is None or not walk.first(function):
        return
    walk.functions += 1
    pickles.settle(function)
    walk.names.update(settings.names_in(function.__code__))
    walk.pending += function.__defaults__ or ()
    if not is_of_library(function):
        yield Place(function, "__code__", f"{function.__name__}.__code__"), function.__code__
    yield from _defaults(function)
    aliases: Aliases = {}
    if isinstance(receiver, type):
        aliases[function.__code__.co_varnames[0]] = [(receiver, receiver.__name__)]
    for place, found in reads_of(function.__code__, function, aliases):
        if place.name:
            yield place, found
        yield from _rule_of(found, place.path, walk)
        walk.pending.append(found)


def _defaults(function: types.FunctionType) -> Iterator[tuple[Place, Any]]:
    """The places of a function's defaults, which may be replaced; and of those in them that can change."""
    table = function.__kwdefaults__
    for where in ("__defaults__", "__kwdefaults__"):
        if found := getattr(function, where):
            yield Place(function, where, f"{function.__name__}.{where}"), found
    for name, value in (table or {}).items():
        yield Place(table, sys.intern(name), f"{function.__name__}.{name}"), value
    named = (table or {}).items()
    for name, value in (*enumerate(function.__defaults__ or ()), *named):
        items: Any = value if type(value) is tuple else ()
        if tables.is_table(value) or any(tables.is_table(v) or is_input(v) for v in items):
            holder = tables.Default(value)
            yield Place(holder, "value", f"{function.__name__}.{name}"), value


def _rule_of(value: Any, path: str, walk: Walk) -> Iterator[tuple[Place, Any]]:
    """A function's rule, a constant at its place; and what the rule reads in turn.

    A foreign function has such a place even without a rule: it may be given one later.
    """
    for one in value if isinstance(value, tuple) else (value,):  # pyright: ignore
        found = rules.rule_of(one)
        if found is not None or foreign.is_foreign(one):
            holder, name = rules.home(one)
            place = Place(holder, sys.intern(name), f"{path}.rule")
            yield place, MISSING if found is None else found
        if found is not None:
            walk.pending += [one for one in (found.adjoint, found.tangent) if one is not None]


def is_function(value: Any) -> bool:
    """True for functions that may be arguments: code is compiled for each of them, told apart by identity."""
    return isinstance(value, _FUNCTIONS) or wrappers.wrapped_by(value) is not None


_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    np.ufunc,
    type(np.sum),
    functools.partial,
)


@contextmanager
def _managed() -> Generator[None]:
    yield


MANAGED: types.CodeType = _managed.__code__  # pyright: ignore[reportFunctionMemberAccess]
"""The code of every function that `contextlib.contextmanager` has made."""


def compiled_along(value: Any) -> types.FunctionType | None:
    """The Python function that a call of `value` compiles along; None where it is none, or a library's."""
    value = wrappers.plain(value)
    if isinstance(value, types.FunctionType) and value.__code__ is MANAGED:
        value = value.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
    if isinstance(value, types.FunctionType) and not is_of_library(value):
        return value
    return None

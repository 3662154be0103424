"""What compiled code depends on, as bytes to hash: the function, what it calls, what it captures.

Whatever the compiler could have read (`captures`) is part of the name under which its result is
cached; a changed helper or constant is another name. Inputs are not: code is the same for all their
values. Objects that cannot be followed make the function uncacheable.
"""

from __future__ import annotations

import enum
import inspect
import os
import types
from typing import Any

import numpy as np

from . import class_reads, disk_cache, foreign, rules, tables, wrappers
from .bytecode_reads import reads_of
from .captures import MANAGED, is_input, taken_apart
from .library_code import is_of_library, is_own_fixed, is_versioned
from .places import MISSING

MOST_FUNCTIONS = 300


class Uncacheable(Exception):
    """Something that the code depends on cannot be described by its value."""


def fingerprint(function: types.FunctionType) -> bytes:
    """A description of all that the compiled code depends on; raises Uncacheable.

    No two functions of which the code may differ have one: each part comes with its length, and of an object
    that is met again it says which one it is, `(a, b, a)` is not `(a, b, b)`.
    """
    walk = _Walk()
    own, _ = taken_apart(function)
    if own is not function:
        walk.structure(function.structure)  # pyright: ignore[reportFunctionMemberAccess]
    try:
        walk.function(own, with_defaults=False)
    except RecursionError:
        raise Uncacheable("a table that holds itself") from None
    return b"".join(len(part).to_bytes(8, "little") + part for part in walk.parts)


class _Walk:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.met: dict[int, Any] = {}
        """The objects that are told apart by identity, in order."""
        self.numbers: dict[int, int] = {}
        self.functions = 0

    def first(self, value: Any) -> bool:
        """Say which object it is; whether it is met for the first time."""
        known = len(self.met)
        self.met.setdefault(id(value), value)
        number = self.numbers.setdefault(id(value), known)
        self.add("object", number)
        return number == known

    def function(self, function: types.FunctionType, *, with_defaults: bool = True) -> None:
        if not self.first(function):
            return
        self.functions += 1
        if self.functions > MOST_FUNCTIONS:
            raise Uncacheable("too many functions")
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError) as error:
            raise Uncacheable("no source") from error
        self.add("function", function.__module__, function.__qualname__, source)
        self.code(function.__code__)
        self.rule(function)
        for place, value in reads_of(function.__code__, function):
            self.add("reads", place.path)
            if is_input(value):
                self.add("input")
            else:
                self.value(value)
        if with_defaults:
            self.value(function.__defaults__)
            for name, value in sorted((function.__kwdefaults__ or {}).items()):
                self.add("default", name)
                self.value(value)

    def rule(self, function: Any) -> None:
        """The rule of a function, if it has one."""
        found = rules.rule_of(function)
        if found is not None:
            self.add("rule", found.reads, found.overwrites, found.needs)
            self.function(found.adjoint)
            if found.tangent is not None:
                self.add("tangent")
                self.function(found.tangent)

    def foreign(self, value: Any) -> None:
        """How a function that is not looked into is called, and its rule."""
        if not self.first(value):
            return
        try:
            self.add("foreign", foreign.described(value, (value,)))
        except foreign.Unsupported as error:
            raise Uncacheable(str(error)) from None
        self.rule(value)

    def structure(self, structure: Any) -> None:
        """How the parts of arguments make them (`structures`)."""
        self.add("structure", structure.names, [shape_of(shape) for shape in structure.shapes])
        for constant in structure.constants:
            self.value(constant)

    def own_class(self, cls: type) -> None:
        """A class of the program: its bases, its fields, its functions, its constants."""
        if not self.first(cls):
            return
        bases = [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]
        self.add("class", bases, class_reads.layout_of(cls))
        for name, value in class_reads.defaults_of(cls):
            self.add("field", name)
            self.value(value)
        read = class_reads.attributes_of(cls, is_own_fixed)
        for owner, name, raw in sorted(read, key=lambda one: (cls.__mro__.index(one[0]), one[1])):
            self.add("attribute", owner.__qualname__, name, type(raw).__name__)
            for function in class_reads.functions_of(raw):
                self.function(function)
            if name in class_reads.UNREAD_CONSTANTS:
                continue
            is_table = type(raw) in class_reads.TABLES and not name.startswith("__")
            if isinstance(raw, class_reads.SIMPLE) or is_table:
                self.value(raw)

    def code(self, code: types.CodeType) -> None:
        """The code itself (comments may move it: messages name lines)."""
        self.add(
            "code", code.co_filename, code.co_firstlineno, code.co_flags, code.co_names,
            code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
        )  # fmt: skip
        self.parts += [code.co_code, code.co_linetable, code.co_exceptiontable]
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant)
            else:
                self.value(constant)

    def value(self, value: Any) -> None:
        """Describe a captured value."""
        kind = type(value)
        if value is None or value is Ellipsis or value is MISSING:
            self.add(repr(value))
        elif kind in (bool, int, float, complex, str, bytes):
            self.add(kind.__name__, repr(value))
        elif kind in (tuple, frozenset):
            items = sorted(value, key=repr) if kind is frozenset else value
            self.add(kind.__name__, len(value))
            for item in items:
                self.value(item)
        elif kind in (list, dict, set) and len(value) <= tables.MOST_ITEMS:
            if self.first(value):
                items = tables.items_of(value)
                self.add(kind.__name__, len(value))
                for item in sorted(items, key=repr) if kind is set else items:
                    self.value(item)
        elif kind is np.ndarray and is_input(value):
            self.add("input")
        elif kind is slice:
            self.value((value.start, value.stop, value.step))
        elif foreign.is_foreign(value):
            self.foreign(value)
        elif isinstance(value, types.FunctionType):
            if value.__code__ is MANAGED:
                self.function(value.__wrapped__)  # pyright: ignore[reportFunctionMemberAccess]
            elif not is_of_library(value):
                self.function(value)
            else:
                self.add("library function", value.__module__, value.__qualname__)
        elif (wrapped := wrappers.wrapped_by(value)) is not None:
            self.value(wrapped)
        elif isinstance(value, np.generic):
            self.add("scalar", value.dtype.str, repr(value))
        elif isinstance(value, np.dtype):
            self.add("dtype", repr(value))
        elif isinstance(value, enum.Enum):
            self.value(type(value))
            self.add("member", value.name)
        elif isinstance(value, type) and not is_own_fixed(value):
            self.own_class(value)
        elif isinstance(value, type | types.BuiltinFunctionType | np.ufunc):
            named: Any = value
            says = ("__module__", "__name__", "__qualname__")  # of a ufunc the second alone
            self.add("named", *(getattr(named, name, "") for name in says))
        elif isinstance(value, types.ModuleType):
            self.add("module", value.__name__)
        elif is_versioned(getattr(value, "__module__", None)) and hasattr(value, "__name__"):
            self.add("library object", value.__module__, getattr(value, "__name__", ""))
        else:
            raise Uncacheable(f"captured {kind.__name__}")

    def add(self, *items: Any) -> None:
        self.parts.append(repr(items).encode("utf-8", "surrogateescape"))


def shape_of(shape: Any) -> Any:
    """The shape of an argument without its classes and constants."""
    if isinstance(shape, tuple):
        return tuple(shape_of(part) for part in shape)  # pyright: ignore
    return shape if isinstance(shape, str | int) else None


def place_of(
    function: types.FunctionType,
    arguments: tuple[str, ...],
    overlaps: tuple[tuple[int, int, str], ...],
    mode: str,
    wrt: tuple[int, ...],
    options: dict[str, Any],
) -> disk_cache.Place:
    """Where the code for this function, key and options belongs."""
    if not options["cache"] or os.environ.get("MUTAD_DUMP"):
        return None
    import hashlib

    try:
        digest = hashlib.sha256(fingerprint(function))
    except Uncacheable:
        return None
    request = (arguments, overlaps, mode, wrt, sorted(options.items()), disk_cache.made_by())
    digest.update(repr(request).encode("utf-8", "surrogateescape"))
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in function.__name__)[:40]
    return f"{name}-{digest.hexdigest()}{disk_cache.SUFFIX}"

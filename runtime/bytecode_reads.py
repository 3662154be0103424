"""The places outside of a function that its bytecode reads (`captures` goes on to what these hold)."""

from __future__ import annotations

import dis
import importlib
import types
import weakref
from collections.abc import Iterator
from typing import Any

from . import foreign
from .library_code import is_fixed
from .places import MISSING, Place

Owner = tuple[Any, str]
"""A module or class whose attributes may be read next, and its path."""

Aliases = dict[str, list[Owner]]
"""By local name, the modules and classes that it may be bound to."""


_instructions: weakref.WeakKeyDictionary[types.CodeType, list[tuple[str, Any]]]
_instructions = weakref.WeakKeyDictionary()


def instructions(code: types.CodeType) -> list[tuple[str, Any]]:
    """The operations of the code and their arguments."""
    found = _instructions.get(code)
    if found is None:
        found = [(i.opname, i.argval) for i in dis.get_instructions(code)]
        _instructions[code] = found
    return found


def reads_of(
    code: types.CodeType, function: types.FunctionType, aliases: Aliases | None = None
) -> Iterator[tuple[Place, Any]]:
    """The globals, closure variables, module and class attributes that the code itself reads.

    Code nested in it (lambdas, inner functions) counts, and so do attributes of local names of modules
    and classes (`m = settings`). Values that are not there are MISSING. A foreign function of SciPy comes
    with a place without name: nothing assigns there, but it may be given a rule.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    builtins: dict[str, Any] = function.__builtins__  # pyright: ignore[reportAttributeAccessIssue]
    aliases = {} if aliases is None else aliases
    current: list[Owner] = []
    imported: list[Owner] = []
    level = 0
    for operation, name in instructions(code):
        match operation:
            case "LOAD_CONST" | "LOAD_SMALL_INT":
                level, current = name if type(name) is int else level, []
            case "IMPORT_NAME":
                imported = imported_by(function, name, level)
                current = imported
            case "IMPORT_FROM":
                current = []
                for owner, path in imported:
                    place = Place(vars(owner), name, f"{path}.{name}")
                    current.append((place.read(), place.path))
                    if not is_fixed(owner):
                        yield place, current[-1][0]
            case "LOAD_GLOBAL" | "LOAD_NAME":
                place = Place(function.__globals__, name, name)
                value = place.read()
                yield place, value
                current = [(builtins.get(name) if value is MISSING else value, name)]
            case "LOAD_DEREF" | "LOAD_CLASSDEREF" | "LOAD_FROM_DICT_OR_DEREF" if name in cells:
                place = Place(cells[name], name, name)
                current = [(place.read(), name)]
                yield place, current[0][0]
            case "LOAD_ATTR" | "LOAD_METHOD":
                owners, current = current, []
                for owner, path in owners:
                    if not isinstance(owner, types.ModuleType | type):
                        continue
                    if is_fixed(owner):
                        current.append((getattr(owner, name, None), f"{path}.{name}"))
                        if foreign.is_foreign(current[-1][0]):
                            yield Place(MISSING, "", current[-1][1]), current[-1][0]
                        continue
                    holder = owner if isinstance(owner, type) else owner.__dict__
                    place = Place(holder, name, f"{path}.{name}")
                    current.append((place.read(), place.path))
                    yield place, current[-1][0]
            case "CACHE" | "PRECALL" | "PUSH_NULL" | "EXTENDED_ARG" | "NOP":
                pass
            case _ if "FAST" in operation or "DEREF" in operation:
                current = through_locals(operation, name, current, aliases)
            case _:
                current = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            own = constant.co_varnames[: constant.co_argcount + constant.co_kwonlyargcount]
            inherited = {k: v for k, v in aliases.items() if k not in own}
            yield from reads_of(constant, function, inherited)


def imported_by(function: types.FunctionType, name: str, level: int) -> list[Owner]:
    """The module that an `import` inside a function gives."""
    package = function.__globals__.get("__package__") or ""
    try:
        module = importlib.import_module("." * level + name, package if level else None)
    except ImportError:
        return []
    return [(module, name)]


def through_locals(
    operation: str, argument: Any, current: list[Owner], aliases: Aliases
) -> list[Owner]:
    """What is on top of the stack after a local variable was loaded or stored (or two at once)."""
    names = argument if isinstance(argument, tuple) else (argument,)
    steps = [part for part in operation.split("_") if part in ("LOAD", "STORE")]
    for step, name in zip(steps, names, strict=False):
        if step == "LOAD":
            current = aliases.get(name, [])
        else:
            kept = [o for o in current if isinstance(o[0], types.ModuleType | type)]
            aliases[name] = [*aliases.get(name, []), *kept]
            current = []
    return current

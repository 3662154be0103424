"""Objects at the boundary: arguments come in flat, results go out flat.

A function that is called with objects, or returns some, is compiled as one of their parts. Its
*structure* says how the parts make the arguments; a *recipe*, made here, how to make results of the
numbers and arrays that the kernel returns, and what the caller's objects are to have assigned::

    def step(s, dt):                        step(s.pos, s.vel, s.t, dt, journal)
        s.pos += dt * s.vel                   returns (None, t)
        s.t += dt
                                            recipe: the result is None; s.t is the second

What assignments to the caller's objects came to before an exception is in the journal (`fields`), or handed
over (`write_back`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...diagnostics import CompileError
from ..context import same_binding
from ..joins import Maybe
from ..values import Array, Choice, Record, Row, Static, Struct, Tuple, Value
from . import argument_items
from .argument_lists import ITEMS, argument_list, fixed_or_changing
from .classes import refuse_class
from .fields import Journal, is_frozen, is_plain
from .list_methods import Lists
from .lists import FixedList, ListObject
from .records import Opaque
from .references import key_reference
from .result_recipes import Flattening, Recipe
from .write_back import Leaving

Shape = Any
"""("leaf",), ("static", object), ("opaque", class), ("tuple", class or None, shapes),
("object", number, class, field names, shapes), ("again", number), ("numbers", number, form of the
items), ("list", number, shapes)."""


class Structure(Protocol):
    """How flat arguments make the parameters of a function."""

    @property
    def function(self) -> Any: ...
    @property
    def shapes(self) -> Sequence[Shape]: ...
    @property
    def names(self) -> Sequence[str]:
        """Of the flat arguments; the journal is the last."""
        ...

    @property
    def room(self) -> int:
        """How many fields the journal has room for."""
        ...


class NeedsStructure(CompileError):
    """The function returns objects: it is to be compiled with a structure."""

    needs_structure = True


@dataclass
class Unflattened:
    """Makes the parameters of flat arguments."""

    lowering: Lists
    values: Iterator[Value]

    def parameter(self, name: str, shape: Shape) -> Value:
        match shape:
            case ("leaf",):
                return next(self.values)
            case ("static", known):
                return self.lowering.constant(known, name)
            case ("opaque", cls):
                return Static(Opaque(cls))
            case ("tuple", cls, shapes):
                items = (self.parameter(f"{name}_{k}", s) for k, s in enumerate(shapes))
                if cls is not None:
                    self.lowering.objects.knows(cls)
                return Tuple(tuple(items), cls)
            case ("object", number, cls, names, shapes):
                return self.object(name, number, cls, names, shapes)
            case ("again", number):
                return self.again(number, name)
            case ("numbers", number, form):
                made = argument_list(self.lowering, number, form, self.values)  # pyright: ignore
                self.lowering.objects.arguments[number] = made
                return made
            case ("list", number, shapes):
                items = [self.parameter(f"{name}_{k}", s) for k, s in enumerate(shapes)]
                made = fixed_or_changing(self.lowering, number, name, items)  # pyright: ignore
                self.lowering.objects.arguments[number] = made
                return made
            case _:
                raise AssertionError(shape)

    def again(self, number: int, name: str) -> Value:
        known = self.lowering.objects.arguments.get(number)
        if known is None:
            raise CompileError(
                self.lowering.e.span, f"argument `{name}` is, or holds, a list in itself"
            )
        return known

    def object(self, name: str, number: int, cls: Any, names: Any, shapes: Any) -> Value:
        lowering = self.lowering
        if cls is not dict and (reason := refuse_class(cls)) is not None:
            raise CompileError(
                lowering.e.span,
                f"argument `{name}`: objects of class {cls.__name__} are not compiled: {reason}",
                "pass the values that are needed",
            )
        if is_frozen(cls):
            lowering.objects.knows(cls)
            items = (self.parameter(f"{name}.{n}", s) for n, s in zip(names, shapes, strict=True))
            made = Struct(tuple(items), tuple(names), cls, number)
            lowering.objects.arguments[number] = made
            return made
        record = lowering.objects.make(cls, name, lowering.e.block, number)
        lowering.objects.arguments[number] = record
        env = lowering.frame.env
        for key, shape in zip(names, shapes, strict=True):
            lowering.objects.give(record, key, env, self.parameter(f"{name}.{key}", shape))
        lowering.objects.initial[number] = {
            key: env[lowering.objects.name(record, key)] for key in names
        }
        return record


def parameters(
    lowering: Lists, structure: Structure, names: Sequence[str], values: Sequence[Value]
) -> list[Value]:
    """The parameters of the function, of its flat arguments; the last of those is the journal."""
    journal = values[-1]
    if isinstance(journal, Array):
        lowering.objects.journal = Journal(journal.memref, structure.room)
    lowering.objects.leaving = Leaving(lowering)
    lowering.e.leave = lowering.objects.leaving.lowered
    make = Unflattened(lowering, iter(values))
    made = [make.parameter(n, s) for n, s in zip(names, structure.shapes, strict=True)]
    argument_items.finish(lowering, values)  # pyright: ignore[reportArgumentType]
    return made


def results(
    lowering: Lists, result: Value, has_structure: bool
) -> tuple[Value, dict[str, Any] | None]:
    """What the kernel returns, and the recipes of it; None where it returns the result itself."""
    make = Flattening(lowering)
    if not has_structure:
        if not is_plain(result) and recipe_needed(result):
            raise NeedsStructure(lowering.e.span, "the function returns objects")
        return result, None
    recipe = make.recipe(result)
    changes = [[number, *change] for number, *change in changed(lowering, make)]
    stores = make.finish()
    if lowering.handed_items & lowering.handed_out:
        raise CompileError(
            lowering.e.span,
            "the function returns a list and one of its items, which would be another object",
            "return a copy of the item, or take it from the list: `l[0]`",
        )
    states = [] if lowering.objects.leaving is None else lowering.objects.leaving.states
    if not changes and not states and is_plain(result):
        return result, None
    journal = lowering.objects.journal
    if journal is not None:
        journal.empty(lowering.e)
    slots = [] if journal is None else [[n, key_reference(k)] for n, k in journal.slots]
    calls = bool(lowering.registry.every or lowering.routines)
    records = {
        "result": recipe, "changes": changes, "slots": slots, "states": states, "calls": calls,
        "stores": stores,
    }  # fmt: skip
    return Tuple(tuple(make.flat)), records


def recipe_needed(value: Value) -> bool:
    """True for results that a recipe makes; what it cannot make is refused elsewhere."""
    match value:
        case FixedList():
            return True
        case Tuple(items, cls):
            return cls is not None or any(map(recipe_needed, items))
        case Choice() | Record() | Struct() | Row() | Static(str() | enum.Enum() | ListObject()):
            return True
        case _:
            return False


def changed(lowering: Lists, make: Flattening) -> Iterator[tuple[int, Any, Recipe]]:
    """The fields of the caller's objects that are bound to something else than before; the items of the
    caller's lists that have changed."""
    objects, env = lowering.objects, lowering.frame.env
    for number, seq in sorted(objects.lists.items()):
        if seq.changed:
            yield number, ITEMS, make.items(seq)
    for number, record in objects.assigned_to():
        for key in objects.keys[record.serial]:
            binding = env.get(objects.name(record, key))
            if isinstance(binding, Maybe) or binding is None:
                raise CompileError(
                    lowering.e.span,
                    f"whether `{record.name}` has `{key}` at the end depends on the path",
                    "assign it on every path",
                )
            if not same_binding(binding, objects.initial[number].get(key)):
                yield number, key_reference(key), make.recipe(binding)

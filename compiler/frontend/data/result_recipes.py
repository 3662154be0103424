"""Results, taken apart: a *recipe* of each, and the numbers and arrays that it is made of.

return Fit(a, 0.5), a      ["tuple", None, [["object", 0, Fit, ["slopes", "error"],
                           [["flat"], ["flat"]]], ["flat"]]]      of (a, 0.5, a)
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from ...diagnostics import CompileError
from ..values import (
    Array,
    Choice,
    Item,
    NoneValue,
    Record,
    Row,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)
from . import hashed, returned_lists
from .argument_items import given_of
from .classes import described
from .fields import is_frozen, is_plain
from .list_methods import Lists
from .lists import FixedList, ListKey, ListObject, is_of_numbers
from .placed_results import PlacedResults, is_kept_apart
from .references import reference

Recipe = list[Any]
"""["flat"], ["static", reference], ["choice", recipes]: which, a number says,
["tuple", class reference or None, recipes], ["argument", number],
["object", number, class reference, field names, recipes], ["again", number], ["list", recipes],
["item", number]: a list in an argument; ["placed", form]: a list, ["picked", number]: an item, of stores
(`placed_results`); ["kept", number, recipe]: what may be met again; ["numbers", form]:
a list of anything but numbers, of the arrays that `mutad.runtime.list_columns` says."""


@dataclass
class Flattening:
    """Takes results apart; `flat` are their numbers and arrays."""

    lowering: Lists
    flat: list[Value] = field(default_factory=list[Value])
    made: dict[int, int] = field(default_factory=dict[int, int])
    """The new objects that are there already, by serial number."""
    lists: dict[ListKey, int] = field(default_factory=dict[ListKey, int])
    """The new lists that are there already."""
    count: int = 0
    exact: bool = True
    """Whether what is taken apart says no more than CPython's results do."""
    placed: PlacedResults = field(init=False)

    def __post_init__(self) -> None:
        self.placed = PlacedResults(self.lowering, self.exact)

    def finish(self) -> list[Any]:
        """What the stores are of which recipes have items: their parts follow all others."""
        found = list(self.placed.finish())
        self.flat += [a for _, arrays in found for a in arrays]
        return [store for store, _ in found]

    def recipe(self, value: Value) -> Recipe:
        match value:
            case Row(store, at) if store.origin is not None:
                self.flat.append(Scalar("py_int", at))
                return ["item", store.origin]
            case Row(store) if store.copied is not None:
                return self.item(value)
            case Static(ListObject()) | Row():
                return self.list(value)
            case FixedList(items, origin=origin):
                if origin is not None:
                    return ["argument", origin]
                return ["list", [self.recipe(item) for item in items]]
            case Array() if (known := self.kept_array(value)) is not None:
                return self.item(known)
            case Item() if given_of(self.lowering, value) is not None:
                return self.item(value)
            case Choice(number, options):
                self.flat.append(Scalar("py_int", number))
                return ["choice", [self.option(one) for one in options]]
            case _ if is_plain(value):
                self.flat.append(value)
                return ["flat"]
            case Tuple(items, cls):
                return ["tuple", cls and reference(cls), [self.recipe(item) for item in items]]
            case Static(str() | enum.Enum() | type() as known):
                return ["static", reference(known)]
            case Record() | Struct() if value.origin is not None:
                self.require_itself(value)
                return ["argument", value.origin]
            case Record(serial) if serial in self.made:
                return ["again", self.made[serial]]
            case Record() | Struct() if hashed.is_table(value):
                name = hashed.of_python(value.cls).__name__
                raise CompileError(
                    self.lowering.e.span,
                    f"the function returns a {name} whose contents are dynamic",
                    "return lists: list(d.keys()), list(d.values()), sorted(s), list(q)",
                )
            case Record() | Struct():
                self.require_new(value)
                return self.object(value)
            case _:
                raise CompileError(
                    self.lowering.e.span,
                    f"the function returns {described(value)}",
                    "return numbers, arrays, strings, tuples, dicts or objects with fields",
                )

    def option(self, value: Value) -> Recipe:
        """One of several values: None is told apart from a number."""
        return ["static", {"value": None}] if isinstance(value, NoneValue) else self.recipe(value)

    def list(self, value: Value) -> Recipe:
        """A list: the caller's, or a new one, which is one wherever it is met."""
        seq = self.lowering.list_of(value)
        assert seq is not None
        if seq.origin is not None:
            return ["argument", seq.origin]
        if seq.row is None and seq.key in self.lists:
            return ["again", self.lists[seq.key]]
        number, self.count = self.count, self.count + 1
        if seq.row is None:
            self.lists[seq.key] = number
        else:
            self.note_item(seq.key)
        return ["kept", number, self.items(seq)]

    def items(self, seq: ListObject) -> Recipe:
        """A list with the items of this one."""
        if is_of_numbers(seq):
            self.flat.append(Static(seq))
            return ["flat"]
        return self.columns(seq)

    def columns(self, seq: ListObject, *, copied: bool = True) -> Recipe:
        """The items of a list of anything, as arrays."""
        if is_kept_apart(seq):
            form, arrays = self.placed.items(seq)
            self.flat += arrays
            return ["placed", form]
        if seq.row is None:
            self.lowering.handed_out.add(seq.key)
        form, arrays = returned_lists.columns(self.lowering, seq, copied=copied)
        self.flat += arrays
        return ["numbers", form]

    def item(self, value: Item | Row) -> Recipe:
        """An item of a store that may be the caller's."""
        number, place = self.placed.item(value)
        self.flat.append(place)
        return ["picked", number]

    def kept_array(self, value: Array) -> Row | None:
        """Where an array is that is the caller's or a row: an item of a list that is an argument."""
        for store in self.lowering.lists.values():
            if store.given is not None and store.given.rows and value.memref in store.loaded:
                return None if value.whole else Row(store, store.loaded[value.memref][1])
        return None

    def note_item(self, store: ListKey) -> None:
        """Return a list or object that is an item of a list: as a copy, which must not be observable."""
        if store in self.lowering.handed_items:
            raise CompileError(
                self.lowering.e.span,
                "the function returns two items of one list, which may be the same",
                "return copies, l.copy(), if they may be two lists",
            )
        self.lowering.handed_items.add(store)

    def object(self, value: Record | Struct) -> Recipe:
        number, self.count = self.count, self.count + 1
        if isinstance(value, Record):
            self.made[value.serial] = number
            if isinstance(item := self.lowering.item_now(value), Item):
                self.lowering.handed_items.add(item.store.key)
        names = self.lowering.keys_of(value)
        items = [self.lowering.field(value, name) for name in names]
        shown = [n if isinstance(n, str) else ["static", reference(n)] for n in names]
        recipes = [self.recipe(item) for item in items if item is not None]
        return ["object", number, reference(value.cls), shown, recipes]

    def require_itself(self, value: Record | Struct) -> None:
        """An argument is returned itself: a copy of its fields, which paths joined, will not do."""
        if isinstance(value, Struct) and not is_frozen(value.cls):
            self.refuse_joined(value)

    def require_new(self, value: Record | Struct) -> None:
        snapshots = self.lowering.objects.snapshots
        known = (self.lowering.objects.arguments[n] for n in self.lowering.objects.arguments)
        given = {v.serial for v in known if isinstance(v, Record) and v.cls is value.cls}
        if isinstance(value, Struct) and not is_frozen(value.cls) and given & snapshots:
            self.refuse_joined(value)

    def refuse_joined(self, value: Struct) -> None:
        raise CompileError(
            self.lowering.e.span,
            f"whether the {value.cls.__name__} that is returned is an argument depends on the path",
            "return a new object: copy.copy(s)",
        )

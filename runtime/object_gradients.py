"""`vjp` and `pullback` of functions of objects.

    out, back = f.vjp(s, dt, wrt="s")         g = back(out_bar, s=cotangents of the fields' final values)
    f.pullback(Duplicated(s, ds), Const(dt))   ds: an instance of the same class, its arrays the shadows

A field that the function binds anew has a final value of its own: its cotangent belongs to a result of the
function of the parts. What the function leaves bound has the cotangent of the array, or number, itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import gradients, keys
from .cotangents import ONE, Form
from .cotangents import is_float as is_float_result
from .gradients import Active, Const, Duplicated
from .list_columns import LEAF, items_of, parts_of, replace, types_of, width
from .object_batches import require_no_numbers, require_stackable
from .objects import (
    Flat,
    Records,
    Selection,
    finished,
    flat_names,
    flat_of,
    is_float,
    journaled,
    key_of,
    parts_by,
    selected,
)
from .placed_lists import Bars, Pending
from .structures import ITEMS, Node, Parts, get_field, set_field
from .union_results import nothing_of
from .user_tracebacks import concise, like_a_function

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .vjp import Back


LISTS = ("list", "numbers")


@dataclass
class Cotangents:
    """The cotangents of final values, taken apart."""

    flat: Flat
    records: Records | None
    arrays: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of arrays that are bound where they were, by the names of the parts."""
    numbers: dict[int, Any] = field(default_factory=dict[int, Any])
    """Of numbers that the function leaves as they are, by leaf: they are those of the initial values."""
    changes: dict[int, Any] = field(default_factory=dict[int, Any])
    """Of what is bound anew, by the number of the change."""
    several: Parts | None = None
    """Of several cotangents at once the parts of the arguments: their kinds say what is a number."""
    form: Form = ONE

    def add(self, node: Node, bar: Any, place: tuple[int, Any] | None = None) -> None:
        """The cotangent of a part: an object of the same class for an object."""
        node = self.flat.structure.original(node)
        changed = self.change_at((node.index, ITEMS) if node.kind in LISTS else place)
        if bar is None:
            return
        if changed is not None:
            self.changes[changed] = bar
        elif node.kind == "object":
            for key, item in zip(node.keys, node.items, strict=True):
                self.add(item, get_field(bar, key), (node.index, key))
        elif node.kind == "numbers":
            for item, type_, part in numbers_in(node, bar):
                if type_ in keys.FLOATS:
                    self.arrays[item.name] = part
        elif node.kind in ("tuple", "list"):
            for k, (item, part) in enumerate(zip(node.items, bar, strict=True)):
                self.add(item, part, (node.index, k) if node.kind == "list" else None)
        elif node.kind == "leaf" and self.several is not None:
            leaf = self.several.leaves[node.index]
            if isinstance(leaf, np.ndarray) and is_float(leaf):
                self.arrays[node.name] = bar
            elif is_float(leaf):
                self.numbers[node.index] = self.form.number(bar, "py_float")
        elif node.kind == "leaf" and isinstance(bar, np.ndarray | list):
            self.arrays[node.name] = bar
        elif node.kind == "leaf" and isinstance(bar, float | np.floating):
            self.numbers[node.index] = float(bar)

    def change_at(self, place: tuple[int, Any] | None) -> int | None:
        if self.records is None or place is None:
            return None
        for k, (number, key, _) in enumerate(self.records["changes"]):
            if (number, key_of(key)) == place:
                return k
        return None

    def is_placed(self, change: int) -> bool:
        """Whether what is bound anew are places, which only `vjp` knows."""
        assert self.records is not None
        return self.records["changes"][change][2][0] == "placed"

    def of_results(self, out_bar: Any, spec: dict[str, Any], result: Any = None) -> Any:
        """The cotangent of what the kernel returns, which is `result` if that is known."""
        if self.records is None:
            return out_bar
        stores = [
            Bars(len(given), form, copied is not None)
            for given, form, _, copied in self.records["stores"]
        ]
        for k, part in enumerate(self.parts(out_bar, stores)):
            if isinstance(part, Pending):
                part.hand_out(None if result is None else result[k])
        for store, (given, *_) in zip(stores, self.records["stores"], strict=True):
            for place, bar in store.given.items():
                self.add_given(given[place], bar)
        found = [None if isinstance(p, Pending) else p for p in self.parts(out_bar, stores)]
        for store in stores:
            end = len(found) + width(store.form)
            found += store.parts(None if result is None else result[len(found) : end])
        return without_others(spec, tuple(found))

    def parts(self, out_bar: Any, stores: Sequence[Bars]) -> list[Any]:
        """The cotangents of what the kernel returns but for the items of stores."""
        assert self.records is not None
        found = list(parts_of_bar(self.records["result"], out_bar, stores))
        for k, (_, _, recipe) in enumerate(self.records["changes"]):
            found += parts_of_bar(recipe, self.changes.get(k), stores)
        return found

    def add_given(self, reference: list[Any], bar: Any) -> None:
        """The cotangent of an item of an argument that is still in a list."""
        if reference[0] == LEAF:
            name = self.flat.structure.names[reference[1]]
            self.arrays[name] = self.arrays[name] + bar if name in self.arrays else bar
            return
        node = self.flat.structure.objects[reference[0]]
        for step in reference[1:]:
            node = self.flat.structure.original(node.items[node.keys.index(step)])
        if node.kind == "leaf" and node.name in self.arrays:
            self.arrays[node.name] = self.arrays[node.name] + bar
        else:
            self.add(node, bar)


def numbers_in(node: Node, bar: Any) -> Iterator[tuple[Node, str, Any]]:
    """The arrays of a list of numbers, the types of those, and the cotangents that a list holds for them."""
    return zip(node.items, types_of(node.value), parts_of(node.value, bar), strict=True)


def parts_of_bar(recipe: list[Any], bar: Any, stores: Sequence[Bars] = ()) -> Iterator[Any]:
    """The cotangents of the parts of a result; None stands for none."""
    if bar is not None:
        yield from parts_by(recipe, bar, stores)
        return
    yield from nothing_of(recipe)


@dataclass(frozen=True, eq=False, repr=False)
class ObjectBack:
    """`back` of a function of objects: see `vjp.Back`."""

    back: Back
    flat: Flat
    made: Parts
    selection: Selection
    result: Any
    """What the kernel returned."""

    def __repr__(self) -> str:
        return repr(self.back)

    __dir__ = like_a_function

    @concise
    def __call__(self, out_bar: Any = None, /, **final: Any) -> Any:
        several = None if self.back.form.lanes is None else self.made
        records = self.back.found.metadata["records"]
        cotangents = Cotangents(self.flat, records, several=several, form=self.back.form)
        for name, bar in final.items():
            node = self.flat.structure.find(name)
            if node is None:
                raise TypeError(f"back: {name!r} is no parameter of the function or part of one")
            cotangents.add(node, bar, place_of(self.flat, node))
        out = cotangents.of_results(out_bar, self.back.results, self.result)
        found = self.back(out, **cotangents.arrays)
        by_position = dict(zip(self.selection.positions, found, strict=True))
        for leaf, bar in cotangents.numbers.items():
            if leaf in by_position:
                by_position[leaf] = by_position[leaf] + bar
        return self.selection.gradients(by_position, self.flat, self.made)


def without_others(spec: dict[str, Any], bar: Any) -> Any:
    """The cotangent of a result, None for what has none: cotangents that are objects hold ints as well."""
    if spec["kind"] == "tuple" and isinstance(bar, tuple):
        parts: tuple[Any, ...] = bar
        items = zip(spec["items"], parts, strict=True)
        return tuple(without_others(one, part) for one, part in items)
    if spec["kind"] in ("scalar", "array") and not is_float_result(spec):
        return None
    return None if spec["kind"] == "none" else bar


def place_of(flat: Flat, node: Node) -> tuple[int, Any] | None:
    """The object that a part is a field of, and the field's name."""
    owners = [(n, o) for n, o in flat.structure.objects.items() if o.kind == "object"]
    for number, owner in owners:
        for key, item in zip(owner.keys, owner.items, strict=True):
            if flat.structure.original(item) is node:
                return number, key
    return None


def vjp(
    dispatcher: Dispatcher, bound: tuple[Any, ...], wrt: Any, batch: int | None = None
) -> tuple[Any, ObjectBack]:
    """`f.vjp` with objects; of a `batch` each array and number in cotangents has a first axis more."""
    from .vjp import vjp as run_vjp

    flat, made = flat_of(dispatcher, bound)
    selection = selected(flat, made, wrt)
    values = flat.values_of(made)
    if batch is not None:
        require_no_numbers("vjp with batch=", flat, selection.positions)
        require_stackable("vjp with batch=", flat, values, ("choice",))
    with journaled(flat, values, made):
        names = flat_names(flat, selection)
        result, back = run_vjp(flat.dispatcher, flat.dispatcher.values_of(*values), names, batch)
    value = finished(flat, back.found.metadata["records"], result, made)
    return value, ObjectBack(back, flat, made, selection, result)


# pullback


def pullback(
    dispatcher: Dispatcher, wrapped: tuple[Any, ...], bound: tuple[Any, ...], cotangent: Any
) -> tuple[Any, Any]:
    """`f.pullback` with objects: their shadows are objects of the same classes."""
    flat, made = flat_of(dispatcher, bound)
    shadows = Shadows(flat, made)
    for argument, node in zip(wrapped, flat.structure.nodes, strict=True):
        if not any(argument is default for default in dispatcher.defaults):
            shadows.wrap(argument, node)
    values = flat.values_of(made)
    own = flat.dispatcher
    primals = own.values_of(*values)
    active = gradients.with_groups(own, primals, set(shadows.active), _overlaps(primals))
    records: Records | None = own.specialize(primals, active).metadata["records"]
    cotangents = shadows.final(records)
    arguments = (*shadows.arguments(), Const(values[-1]))
    out = cotangents.of_results(cotangent, own.specialize(primals, active).results)
    with journaled(flat, values, made):
        result, bars = gradients.pullback(own, arguments, out)
    shadows.finish(dict(zip(shadows.numbers(), bars, strict=True)), cotangents)
    return finished(flat, records, result, made), tuple(
        bar for leaf, bar in zip(shadows.numbers(), bars, strict=True) if leaf in shadows.alone
    )


def _overlaps(values: tuple[Any, ...]) -> Any:
    from . import keys

    return keys.overlaps_of(values)


@dataclass
class Shadows:
    """The shadows of the parts, and where they come from."""

    flat: Flat
    made: Parts
    arrays: dict[int, Any] = field(default_factory=dict[int, Any])
    active: dict[int, None] = field(default_factory=dict[int, None])
    alone: set[int] = field(default_factory=set[int])
    """The numbers that are arguments of their own, `Active`."""
    holders: list[tuple[Node, Any]] = field(default_factory=list[tuple[Node, Any]])
    """Objects and the objects that hold their cotangents."""
    lists: list[tuple[Node, Any]] = field(default_factory=list[tuple[Node, Any]])
    """Lists of numbers and the lists that hold their cotangents."""

    def wrap(self, argument: Any, node: Node) -> None:
        match argument:
            case Duplicated(_, shadow):
                self.add(self.flat.structure.original(node), shadow)
            case Active() if node.kind == "leaf":
                self.active[node.index] = None
                self.alone.add(node.index)
            case Const():
                pass
            case _:
                raise TypeError(
                    f"pullback: wrap argument {node.name!r}: Duplicated(array or object, shadow),"
                    " Active(float) or Const(value)"
                )

    def add(self, node: Node, shadow: Any) -> None:
        if node.kind == "leaf":
            if is_float(self.made.leaves[node.index]):
                self.active[node.index] = None
                if isinstance(shadow, np.ndarray):
                    self.arrays[node.index] = shadow
            return
        is_open = node.kind in ("object", "list", "numbers")
        if is_open and type(shadow) is not node.cls:
            raise TypeError(
                f"pullback: the shadow of {node.name!r} is no {node.cls.__name__}, as it is itself"
            )
        if any(node is seen for seen, _ in (*self.holders, *self.lists)):
            return
        if node.kind == "numbers":
            self.lists.append((node, shadow))
            leaves = zip(node.items, types_of(node.value), strict=True)
            self.active.update({leaf.index: None for leaf, type_ in leaves if type_ in keys.FLOATS})
            return
        if len(shadow) != len(node.items) if node.kind == "list" else False:
            raise ValueError(
                f"pullback: the shadow of {node.name!r} has another length than its primal"
            )
        if node.items:
            self.holders.append((node, shadow))
        for key, item in zip(node.keys, node.items, strict=True):
            part = shadow[key] if isinstance(key, int) else get_field(shadow, key)
            self.add(self.flat.structure.original(item), part)

    def final(self, records: Records | None) -> Cotangents:
        """The cotangents of final values: of what is bound anew they are no shadows."""
        found = Cotangents(self.flat, records)
        for node, shadow in self.lists:
            self.add_numbers(node, shadow, found)
        for node, shadow in self.holders:
            for key, item in zip(node.keys, node.items, strict=True):
                changed = (
                    found.change_at((node.index, key)) if node.kind in ("object", "list") else None
                )
                bar = shadow[key] if isinstance(key, int) else get_field(shadow, key)
                if changed is not None and bar is not None:
                    found.changes[changed] = bar.copy() if isinstance(bar, np.ndarray) else bar
                    if item.kind == "leaf" and item.index in self.arrays:
                        self.renew(node, item, key, shadow)
                elif item.kind == "leaf" and isinstance(bar, float | np.floating):
                    found.numbers[item.index] = float(bar)
        return found

    def add_numbers(self, node: Node, shadow: list[Any], found: Cotangents) -> None:
        """The shadows of the arrays that a list is: zeros where the function returns the list anew."""
        changed = found.change_at((node.index, ITEMS))
        if changed is not None and found.is_placed(changed):
            parts = numbers_in(node, shadow)
            if any(type_ in keys.FLOATS and np.any(part) for _, type_, part in parts):
                raise ValueError(
                    f"pullback: the items of {node.name!r} move, and have cotangents: use vjp"
                )
        elif changed is not None:
            found.changes[changed] = list(shadow)
        for leaf, type_, bar in numbers_in(node, shadow):
            primal = self.made.leaves[leaf.index]
            if type_ not in keys.FLOATS:
                continue
            if changed is None and len(bar) != len(primal):
                raise ValueError(
                    f"pullback: the shadow of {node.name!r} has another length than its primal"
                )
            self.arrays[leaf.index] = np.zeros_like(primal) if changed is not None else bar

    def renew(self, node: Node, item: Node, key: Any, shadow: Any) -> None:
        """The shadow of an array that the function replaces: its own, zeros."""
        primal, old = self.made.leaves[item.index], self.arrays[item.index]
        if old.shape == primal.shape:
            old[...] = 0.0
            return
        self.arrays[item.index] = np.zeros_like(primal)
        set_field(shadow, key, self.arrays[item.index])

    def arguments(self) -> Iterator[Any]:
        """The parts, wrapped."""
        for leaf, value in enumerate(self.made.leaves):
            if leaf in self.arrays:
                yield Duplicated(value, self.arrays[leaf])
            else:
                yield Active(value) if leaf in self.active else Const(value)

    def numbers(self) -> list[int]:
        return [leaf for leaf in sorted(self.active) if leaf not in self.arrays]

    def finish(self, bars: dict[int, Any], cotangents: Cotangents) -> None:
        """Leave the cotangents of numbers in the objects that hold them."""
        for node, shadow in self.lists:
            arrays = [self.arrays.get(n.index, self.made.leaves[n.index]) for n in node.items]
            replace(shadow, items_of(node.value, iter(arrays)))
        for node, shadow in self.holders:
            for key, item in zip(node.keys, node.items, strict=True):
                if item.kind != "leaf" or item.index not in bars:
                    continue
                bar = bars[item.index] + cotangents.numbers.get(item.index, 0.0)
                if node.kind == "object":
                    set_field(shadow, key, bar)
                elif node.kind == "list":
                    shadow[key] = bar

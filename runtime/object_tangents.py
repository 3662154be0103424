"""`jvp`, `pushforward` and `hvp` of functions of objects.

    f.jvp(s, dt, tangents={"s": ds})             ds: an instance of the same class, its float fields tangents
    f.pushforward(Duplicated(s, ds), Const(dt))

A tangent has the form of a gradient. The tangents of the parts are those of the function of the parts
(`objects`); what that function returns for the fields of arguments is assigned to the fields of their
tangents, by the recipe by which the primal's are assigned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import hessian_products, keys, tangents
from .gradients import Const, Duplicated
from .list_columns import parts_of, types_of
from .object_batches import refused, require_stackable
from .objects import Flat, finished, flat_names, flat_of, is_float, journaled, part_named, selected
from .structures import Assembly, Node, Parts, get_field
from .union_results import require_float

if TYPE_CHECKING:
    from .dispatch import Dispatcher


@dataclass
class Directions:
    """The tangents of arguments, taken apart."""

    flat: Flat
    made: Parts
    call: str
    changes: bool
    """Whether the call changes the tangents: then they share nothing that the arguments do not share."""
    leaves: dict[int, Any] = field(default_factory=dict[int, Any])
    """By leaf: arrays, and numbers."""
    batch: int | None = None
    """How many tangents there are of each leaf, along its first axis; None for one, without."""
    objects: dict[int, Any] = field(default_factory=dict[int, Any])
    """By the number of an object the object that holds its tangents."""

    def add(self, node: Node, tangent: Any, *, named: bool = False) -> None:
        """The tangent of a part: an object of the same class for an object. `named`: by the caller."""
        node = self.flat.structure.original(node)
        match node.kind:
            case "leaf":
                if named or is_float(self.made.leaves[node.index]):
                    self.add_leaf(node, tangent)
            case "tuple":
                self.check_class(node, tangent, tuple if node.cls is None else node.cls)
                self.check_length(node, tangent)
                for item, part in zip(node.items, tangent, strict=True):
                    self.add(item, part)
            case "object" | "list" | "numbers":
                self.check_class(node, tangent, node.cls)
                if self.is_new(node, tangent):
                    self.add_items(node, tangent)
            case _ if named:
                raise TypeError(f"{self.call}: {node.name!r} holds no floats, so it has no tangent")
            case _:
                pass

    def add_items(self, node: Node, tangent: Any) -> None:
        if node.kind == "numbers" and self.batch is not None:
            raise refused(
                f"{self.call} with batch=",
                f"{node.name!r} is a list of numbers",
                "use an array in its place",
            )
        if node.kind == "numbers":
            for leaf, type_, part in self.numbers_in(node, tangent):
                if type_ in keys.FLOATS:
                    self.add_leaf(leaf, part)
            return
        if node.kind == "list":
            self.check_length(node, tangent)
        for key, item in zip(node.keys, node.items, strict=True):
            try:
                part = get_field(tangent, key)
            except (KeyError, AttributeError):
                raise TypeError(
                    f"{self.call}: the tangent of {node.name!r} has no {key!r}"
                ) from None
            self.add(item, part)

    def add_leaf(self, node: Node, tangent: Any) -> None:
        if node.index in self.leaves:
            raise ValueError(f"{self.call}: {node.name!r} has two tangents")
        primal = self.made.leaves[node.index]
        if self.batch is not None:
            tangent = tangents.stacked_tangents(primal, tangent, node.name, self.batch)
        elif self.changes:
            tangent = tangents.as_tangent(primal, tangent, node.name, self.call)
        self.leaves[node.index] = tangent

    def is_new(self, node: Node, tangent: Any) -> bool:
        """False for an object that was there before; ValueError where tangents are shared in another way."""
        known = self.objects.get(node.index)
        if known is not None and known is tangent:
            return False
        if known is not None or (self.changes and self.is_taken(tangent)):
            raise ValueError(
                f"{self.call}: the tangent of {node.name!r} is not shared as it is itself"
            )
        self.objects[node.index] = tangent
        return True

    def is_taken(self, tangent: Any) -> bool:
        """Whether an object is an argument, or the tangent of another one."""
        return any(tangent is one for one in (*self.objects.values(), *self.made.objects))

    def check_class(self, node: Node, tangent: Any, cls: type) -> None:
        if type(tangent) is not cls:
            raise TypeError(
                f"{self.call}: the tangent of {node.name!r} is {type(tangent).__name__}: use "
                f"{cls.__name__}, as it is itself"
            )

    def check_length(self, node: Node, tangent: Any) -> None:
        if len(tangent) != len(node.items):
            raise ValueError(
                f"{self.call}: the tangent of {node.name!r} has another length than its primal"
            )

    def numbers_in(self, node: Node, tangent: list[Any]) -> Iterator[tuple[Node, str, Any]]:
        """The arrays of a list of numbers, the types of those, and their tangents."""
        if node.value is None:
            self.check_length(node, tangent)
            return
        try:
            parts = [None if p is None else np.asarray(p) for p in parts_of(node.value, tangent)]
        except (TypeError, ValueError, IndexError):
            parts = []
        shapes = [self.made.leaves[item.index].shape for item in node.items]
        if [None if p is None else p.shape for p in parts] != shapes:
            raise ValueError(
                f"{self.call}: the tangent of {node.name!r} does not hold one number for each of its own"
            )
        yield from zip(node.items, types_of(node.value), parts, strict=True)

    def final(self, moved: Mapping[int, Any]) -> tuple[list[Any], list[Any]]:
        """The leaves and the objects of the tangents of all arguments; zeros for those without.

        `moved`: the tangents of arrays, given or not.
        """
        known = {**self.leaves, **moved}
        leaves = [
            known[k] if k in known else zero_of(leaf, self.batch)
            for k, leaf in enumerate(self.made.leaves)
        ]
        assembly = Assembly(self.flat.structure, leaves, self.made.others, dict(self.objects))
        for node in self.flat.structure.nodes:
            assembly.make(node)
        return leaves, [assembly.made.get(k) for k in range(len(self.made.objects))]


def zero_of(leaf: Any, batch: int | None) -> Any:
    """The tangent of what stands still: zeros, and what has none itself."""
    found = tangents.zero_like(leaf)
    if found is not None and batch is not None:
        return np.zeros((batch, *np.shape(found)), np.asarray(found).dtype)
    return leaf if found is None else found


def jvp(
    dispatcher: Dispatcher,
    bound: tuple[Any, ...],
    given: Mapping[str, Any],
    batch: int | None = None,
) -> Any:
    """`f.jvp` with objects; of a `batch` each array and number of theirs has one more axis, the first."""
    flat, made = flat_of(dispatcher, bound)
    directions = Directions(flat, made, "jvp", True, batch=batch)
    inputs: dict[int, Any] = {}
    for name, tangent in tangents.by_name(given):
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"jvp: tangents are named by parameters and parts of them, not by {name!r}"
            )
        item = part_named(flat, name, "tangents")
        if isinstance(item, int):
            value = flat.dispatcher.values_of(*flat.values_of(made))[item]
            several = batch is not None
            inputs[item] = (
                tangents.stacked_tangents(value, tangent, name, batch) if several else tangent
            )
        else:
            directions.add(item, tangent, named=True)
    return push(directions, inputs)


def pushforward(dispatcher: Dispatcher, wrapped: tuple[Any, ...], bound: tuple[Any, ...]) -> Any:
    """`f.pushforward` with objects."""
    flat, made = flat_of(dispatcher, bound)
    directions = Directions(flat, made, "pushforward", True)
    for argument, node in zip(wrapped, flat.structure.nodes, strict=True):
        match argument:
            case Duplicated(_, tangent):
                directions.add(node, tangent, named=True)
            case Const():
                pass
            case _ if any(argument is default for default in dispatcher.defaults):
                pass
            case _:
                raise TypeError(
                    f"pushforward: wrap argument {node.name!r}: Duplicated(value, tangent) or Const(value)"
                )
    return push(directions, {})


def push(directions: Directions, inputs: Mapping[int, Any]) -> tuple[Any, Any]:
    """The result and its tangent; objects and lists that hold tangents are updated as the arguments are."""
    flat, made = directions.flat, directions.made
    own, values = flat.dispatcher, flat.values_of(made)
    given, call, batch = {**directions.leaves, **inputs}, directions.call, directions.batch
    if batch is not None:
        require_stackable(f"{call} with batch=", flat, values)
    with journaled(flat, values, made):
        if batch is None:
            result, dot, moved = tangents.pushed(own, own.values_of(*values), given, call)
        else:
            result, dot, moved = tangents.pushed_stacked(
                own, own.values_of(*values), given, call, batch
            )
    records = flat.records_for(values)
    if records is None:
        return result, dot
    leaves, objects = directions.final(moved)
    parts = with_others(result, dot)
    value = finished(flat, records, result, made)
    return value, with_none(value, flat.finisher(records)(parts, objects, leaves))


def with_others(result: Any, dot: Any) -> Any:
    """The tangent of what the kernel returns, which holds what it returns where that is no float."""
    if isinstance(result, tuple):
        pairs = zip(result, dot, strict=True)  # pyright: ignore[reportUnknownVariableType]
        return tuple(with_others(one, other) for one, other in pairs)
    return result if dot is None else dot


def with_none(value: Any, dot: Any) -> Any:
    """The tangent of a result: None for what is no float, but for what objects and lists hold."""
    if type(value) is tuple:
        pairs = zip(value, dot, strict=True)  # pyright: ignore[reportUnknownVariableType]
        return tuple(with_none(one, other) for one, other in pairs)
    if isinstance(value, np.ndarray | np.generic | int | float | str) or value is None:
        return dot if is_float(value) else None
    return dot


def value_grad_hvp(
    dispatcher: Dispatcher,
    bound: tuple[Any, ...],
    wrt: Any,
    direction: Any,
    mode: str,
    batch: int | None = None,
) -> tuple[Any, Any, Any]:
    """`f.value_grad_hvp` with objects."""
    flat, made = flat_of(dispatcher, bound)
    selection = selected(flat, made, wrt)
    given = (direction,) if selection.single else tuple(direction)
    if len(given) != len(selection.items):
        raise ValueError(
            f"wrt names {len(selection.items)} arguments, and there are {len(given)} directions"
        )
    directions = Directions(flat, made, "hvp", False, batch=batch)
    inputs: dict[int, Any] = {}
    for item, one in zip(selection.items, given, strict=True):
        if isinstance(item, int):
            inputs[item] = one
        else:
            directions.add(item, one, named=True)
    along = {**directions.leaves, **inputs}
    own, values = flat.dispatcher, flat.values_of(made)
    with journaled(flat, values, made):
        result, *found = hessian_products.value_grad_hvp(
            own,
            own.values_of(*values),
            flat_names(flat, selection),
            tuple(along[p] for p in selection.positions),
            batch,
            mode=mode,
        )
    value = finished(flat, flat.records_for(values), result, made)
    require_float(value)
    gradient, product = (
        selection.gradients(dict(zip(selection.positions, one, strict=True)), flat, made)
        for one in found
    )
    return value, gradient, product

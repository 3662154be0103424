"""Items of lists of known length that are assigned, where it is known which.

    for k in range(len(layers)):                layers_0 = layers_0 - rate * g_0      of shape 2 x 3
        layers[k] = layers[k] - rate * g[k]     layers_1 = layers_1 - rate * g_1      of shape 3

A list of arrays or objects that is an argument is then an object whose fields are its items: they are bound
anew as variables are, each with a form of its own; what they are at the end, the caller's list is assigned.
Lists that change otherwise, or at places known at run time, are lists of places (`argument_items`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from ..calling import recursion
from ..values import Record, Scalar, SliceValue, Value
from . import fixed_items
from .lists import ASSIGN_OUT_OF_RANGE, FixedList
from .tables import ItemsOnDemand

if TYPE_CHECKING:
    import ast

    from .list_methods import Lists


class LiveItems(ItemsOnDemand):
    """The items of such a list, as they are where they are asked for."""

    def __init__(self, lowering: Any, record: Record, size: int) -> None:
        self.lowering, self.record, self.size = lowering, record, size

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        if isinstance(index, slice):
            return tuple(self)[index]
        if not -self.size <= index < self.size:
            raise IndexError
        return self.lowering.own_field(self.record, index % self.size)


def live_list(lowering: Lists, number: int, name: str, items: Sequence[Value]) -> FixedList:
    """The list that is argument `number`, and has items assigned."""
    objects, env = lowering.objects, lowering.frame.env
    record = objects.make(list, name, lowering.e.block, number)
    for k, item in enumerate(items):
        objects.give(record, k, env, item)
    objects.assigned[number] = record
    objects.initial[number] = {k: env[objects.name(record, k)] for k in range(len(items))}
    made = LiveItems(lowering, record, len(items))
    return FixedList(cast("tuple[Value, ...]", made), origin=number)


def store(lowering: Any, base: FixedList, target: ast.Subscript, value: Value) -> bool:
    """`l[k] = value` of an argument; False where it is not known which item that is."""
    (part,) = lowering.index(target.slice)[:1] or (None,)
    if base.origin is None or part is None or isinstance(part, SliceValue):
        return False
    index = lowering.list_index_value(part)
    if not isinstance(index.constant, int):
        fixed_items.write_out_loops(lowering, index)
        index = fixed_items.known(lowering.e, index)
    if not isinstance(index, Scalar) or not isinstance(index.constant, int):
        return False
    count = len(base.items)
    if not -count <= index.constant < count:
        lowering.always("IndexError", ASSIGN_OUT_OF_RANGE)
        return True
    items: Sequence[Value] = base.items
    if not isinstance(items, LiveItems):
        lowering.facts.assigned_arguments.add(base.origin)
        raise recursion.Again
    at = int(index.constant) % count
    lowering.objects.give(items.record, at, lowering.frame.env, value)
    return True

"""Constant tables: lists, dicts, sets and tuples that a function finds outside, and their items.

    ROUGH = {"steel": 4.5e-5, "glass": 1e-6}        ROUGH[name]        a constant
    KNOTS = [0.0, 0.3, 0.8, 1.5]                    KNOTS[2]           a constant
                                                    KNOTS[i]           memref.load %numbers[%offset + %i]

Callers watch what they hold (`mutad.runtime.tables`). Nothing is emitted of a table but the items that are
used. A tuple, or a fixed list, that is indexed at run time is an array of its items: the one
that callers pass with the numbers of all tables, else one that is made here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
from xdsl.dialects import memref
from xdsl.ir import SSAValue

from ....dialects import array
from .. import scalars
from ..joins import Mismatch, ScalarT, Template, coerced, ir_types, join, rebuilt, template_of
from ..library.ways_out import not_followed
from ..values import (
    Array,
    Scalar,
    Tuple,
    Value,
)
from .lists import STORED, FixedList, bare, leaves_of, place
from .settings import Settings

if TYPE_CHECKING:
    import ast

    from ..context import Context

UNROLLED = 8
"""A loop over a longer list of numbers runs; over others it is written out."""
MOST_STORED = 256
"""An array that is made of more items than that would cost more than it is worth."""


@dataclass(frozen=True)
class TupleOfConstants(Tuple):
    """A tuple from outside, or a set: `raw`."""

    raw: Any = None


@dataclass(frozen=True)
class ListOfConstants(FixedList):
    """A list from outside: `raw`."""

    raw: Any = None


class ItemsOnDemand(Sequence[Value]):
    """Items that are each made where they are asked for; they are joined as those of tuples are."""

    def __iter__(self) -> Iterator[Value]:
        return (self[k] for k in range(len(self)))

    def __add__(self, other: Sequence[Value]) -> tuple[Value, ...]:
        return (*self, *other)

    def __radd__(self, other: Sequence[Value]) -> tuple[Value, ...]:
        return (*other, *self)

    def __mul__(self, count: int) -> tuple[Value, ...]:
        return tuple(self) * count


class Items(ItemsOnDemand):
    """The items of a table as values."""

    def __init__(self, lowering: Context, raw: Sequence[Any], name: str) -> None:
        self.lowering, self.raw, self.name = lowering, raw, name

    def __len__(self) -> int:
        return len(self.raw)

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        if isinstance(index, slice):
            return Items(self.lowering, self.raw[index], self.name)
        return self.lowering.constant(self.raw[index], self.name)


def constant(lowering: Context, value: Any, name: str) -> Value:
    """A list, dict, set or array that is found outside other than at a place of its own."""
    if isinstance(value, np.ndarray):
        found = lowering.inputs.get((id(value), "array"))
        if found is None:
            raise lowering.refusal(
                None,
                f"`{name}` is an array that the function finds in a tuple or an attribute",
                "pass it as an argument, or bind it to a variable of its own",
            )
        return found
    outside, kind = lowering.outside, type(value).__name__
    if not isinstance(value, frozenset) and outside is not None and not outside.is_watched(value):
        what = not_followed(name, f"{kind} of {len(value)} items", len(value) > outside.most_items)
        raise lowering.refusal(None, *what)
    if isinstance(value, dict):
        found = cast("dict[Any, Any]", value)
        items = Items(lowering, list(found.values()), name)
        return Settings(cast("tuple[Value, ...]", items), tuple(found), dict)
    items = cast("tuple[Value, ...]", Items(lowering, list(value), name))
    if isinstance(value, list):
        return ListOfConstants(items, raw=cast(Any, value))
    return TupleOfConstants(items, raw=value)


def raw_of(value: Value) -> Any:
    return value.raw if isinstance(value, TupleOfConstants | ListOfConstants) else None


def numbers(lowering: Context, value: Value) -> Array | None:
    """The numbers of a table in the memory that callers pass; None where it is none of theirs."""
    raw, outside = raw_of(value), lowering.outside
    found = outside.numbers(raw) if raw is not None and outside is not None else None
    if found is None:
        return None
    key, offset, length = found
    everything = lowering.inputs.get(key)
    if not isinstance(everything, Array):
        return None
    e = lowering.e
    op = array.ViewOp(everything.memref, [e.index(offset)], [0], [e.index(length)], [e.index(1)])
    return Array(e.emit(op, "table"), everything.dtype)


def as_array(lowering: Context, value: Value, *, own: bool) -> Value:
    """A list of numbers as NumPy sees it, with memory of its `own`; anything else as it is."""
    from .. import library

    memory = numbers(lowering, value) if isinstance(value, ListOfConstants) else None
    if memory is None:
        return value
    return library.call(lowering.e, np.copy, [memory], {}) if own else memory


def item_type(value: Tuple) -> str:
    """The Python type of the items of a table of numbers."""
    return "py_float" if any(isinstance(item, float) for item in raw_of(value)) else "py_int"


def loaded(lowering: Context, memory: Array, at: SSAValue, type_: str) -> Scalar:
    element = Scalar(memory.dtype, lowering.e.emit(memref.LoadOp.get(memory.memref, [at]), "item"))
    return scalars.convert(lowering.e, element, type_)


def item_at(lowering: Context, value: Tuple, index: Scalar, node: ast.AST) -> Value:
    """`value[index]` of a tuple or fixed list, by an index known at run time."""
    e = lowering.e
    kind = "list" if isinstance(value, FixedList) else "tuple"
    at = place(e, index, e.index(len(value.items)), f"{kind} index out of range")
    memory = numbers(lowering, value)
    if memory is not None:
        return loaded(lowering, memory, at, item_type(value))
    form, columns = stored(lowering, value, node)
    return row(lowering, form, columns, at)


def row(lowering: Context, form: Template, columns: Sequence[Array], at: SSAValue) -> Value:
    """The item at a place that exists, of those that are `stored`."""
    parts = zip(columns, leaf_types(form), strict=True)
    leaves = [loaded(lowering, column, at, type_).ssa for column, type_ in parts]
    return cast(Value, rebuilt(form, iter(leaves)))


def stored(lowering: Context, value: Tuple, node: ast.AST) -> tuple[Template, list[Array]]:
    """Arrays of the items' numbers, and the form of an item."""
    from .. import library

    e, items = lowering.e, list(value.items)
    try:
        form = bare(reduce(join, [bare(template_of(item)) for item in items]))
    except (Mismatch, TypeError) as error:
        raise lowering.refusal(
            node,
            f"a tuple is indexed by a value known only at run time, and its items are {error}",
            "put the values in an array, or unroll: `for item in the_tuple`",
        ) from None
    types = leaf_types(form)
    if (
        not types
        or len(items) * len(types) > MOST_STORED
        or len(types) < len(ir_types(form))
        or not all(isinstance(item, Scalar | Tuple) for item in items)
    ):
        raise lowering.refusal(
            node,
            "a tuple of arrays, of objects, or of very many items is indexed by a value known only at run"
            " time",
            "put the values in an array, or unroll: `for item in the_tuple`",
        )
    rows = [coerced(e, item, form) for item in items]
    columns = list[Array]()
    for type_, column in zip(types, zip(*rows, strict=True), strict=True):
        dtype = STORED.get(type_, type_)
        whole = library.allocate(e, [e.index(len(items))], dtype)
        for k, leaf in enumerate(column):
            kept = scalars.convert(e, Scalar(type_, leaf), dtype).ssa
            e.insert(memref.StoreOp.get(kept, whole.memref, [e.index(k)]))
        columns.append(whole)
    return form, columns


def leaf_types(form: Template) -> list[str]:
    """The types of the numbers of an item."""
    return [leaf.type for leaf in leaves_of(form) if isinstance(leaf, ScalarT)]


def is_long(value: Value) -> bool:
    """A list of numbers over which a loop is not written out."""
    return isinstance(value, ListOfConstants) and len(value.items) > UNROLLED

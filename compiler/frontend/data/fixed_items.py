"""Items of tuples and lists of known length, by an index known at run time.

    ws = [a, b]                 %at = array.index %k of %c2, "list index out of range"
    ws[k][0] = 1.0              %second = arith.cmpi sge, %at, %c1
                                %w = scf.if %second { yield %b } else { yield %a }
                                memref.store %one, %w[%c0]

Nothing is copied: the item is chosen among the arrays that there are, by branches that halve them, which
every analysis sees through. A field of an object is chosen in the same way; assigning to one assigns to each
object the new value, or what was there.

Where the index is computed from the counter of a loop of few rounds, the next build writes the loop out
instead (`Facts.unrolled`)::

    for i in range(len(layers)):        x = np.tanh(w_0 @ x)
        x = np.tanh(layers[i] @ x)      x = np.tanh(w_1 @ x)        of another shape, perhaps
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...analysis.affine import affine
from ..bindings.descriptors import either
from ..emitter import Emitter
from ..frames import Unready
from ..joins import Mismatch, coerced, join, rebuilt, template_of
from ..values import Array, Choice, Item, Record, Scalar, Struct, Tuple, Value
from . import lists
from .lists import FixedList

if TYPE_CHECKING:
    from ..iterables import Iterable
    from .records import Records

MOST_ITEMS = 256
"""Among more items none is chosen."""
MOST_ROUNDS = 64
"""A loop is written out for the sake of an index only where all rounds come to no more than that."""


def item_at(lowering: Records, value: Tuple, index: Scalar, node: ast.AST) -> Value | None:
    """`value[index]`; None where the items are no arrays, or are better put in a list that grows."""
    if len(value.items) > MOST_ITEMS:
        return None
    items, fixed = tuple(value.items), isinstance(value, FixedList)
    own = isinstance(value, FixedList) and value.made is not None
    if not all(map(holds_memory, items)) or (own and any(isinstance(i, Record) for i in items)):
        return None
    write_out_loops(lowering, index)
    message = f"{'list' if fixed else 'tuple'} index out of range"
    if not items:
        lowering.always("IndexError", message)
        raise Unready
    at = lists.place(lowering.e, index, lowering.e.index(len(items)), message)
    try:
        return among(lowering, items, at)
    except Mismatch as mismatch:
        if own:
            return None
        raise lowering.refusal(
            node,
            f"the index of this item is dynamic, and the items are {mismatch}",
            "loop over the items: `for item in items`, or index them by the counter of a loop over"
            " `range(len(items))`",
        ) from None


def holds_memory(value: Value) -> bool:
    """True for an array, an object, and for a tuple or frozen object with such in it."""
    if isinstance(value, Tuple | Struct):
        return any(map(holds_memory, value.items))
    return isinstance(value, Array) or (isinstance(value, Record) and not isinstance(value, Item))


def among(lowering: Records, items: Sequence[Value], at: SSAValue) -> Value:
    """The item at a place that exists; Mismatch where no form covers all."""
    if all(item is items[0] for item in items):
        return items[0]
    records = tuple(item for item in items if isinstance(item, Record))
    if records:
        if len(records) < len(items) or any(r.cls is not records[0].cls for r in records):
            raise Mismatch("objects of several classes")
        return Choice(at, records)
    form = reduce(join, map(template_of, items))
    leaves = chosen(lowering.e, at, [coerced(lowering.e, item, form) for item in items])
    return as_whole(cast(Value, rebuilt(form, iter(leaves))), items)


def as_whole(value: Value, items: Sequence[Value]) -> Value:
    """The item, told apart from the arrays themselves where one of them is a view of all of an array."""
    if isinstance(value, Array):
        return replace(value, whole=any(isinstance(i, Array) and i.whole for i in items))
    if isinstance(value, Tuple | Struct):
        columns = zip(*(cast(Tuple, item).items for item in items), strict=True)
        parts = zip(value.items, columns, strict=True)
        return replace(value, items=tuple(as_whole(part, column) for part, column in parts))
    return value


def chosen(e: Emitter, at: SSAValue, rows: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    """The row at a place: arrays by branches, numbers by selections.

    The conditions are made before the branches: the reverse sweep chooses again, and must find them.
    """
    conditions = [e.emit(arith.CmpiOp(at, e.index(k), "sge")) for k in range(1, len(rows))]
    columns = list(zip(*rows, strict=True))
    arrays = [k for k, column in enumerate(columns) if isinstance(column[0].type, MemRefType)]
    varying = [k for k in arrays if any(v is not columns[k][0] for v in columns[k])]

    def halved(first: int, end: int) -> list[SSAValue]:
        if end - first == 1:
            return [columns[k][first] for k in varying]
        middle = (first + end) // 2
        upper, lower = lambda: halved(middle, end), lambda: halved(first, middle)
        return either(e, conditions[middle - 1], upper, lower)

    found = dict(zip(varying, halved(0, len(rows)) if varying else [], strict=True))
    for k, column in enumerate(columns):
        if k not in found:
            found[k] = column[0] if k in arrays else selected(e, conditions, column)
    return [found[k] for k in range(len(columns))]


def selected(e: Emitter, conditions: Sequence[SSAValue], column: Sequence[SSAValue]) -> SSAValue:
    result = column[0]
    for condition, value in zip(conditions, column[1:], strict=True):
        if value is not result:
            result = e.emit(arith.SelectOp(condition, value, result))
    return result


# Objects.


def attribute(lowering: Records, choice: Choice, name: str) -> Value | None:
    """A field of one of several objects; None where it is a field of not all, or has several forms."""
    records = [option for option in choice.options if isinstance(option, Record)]
    if len(records) < len(choice.options):
        return None
    found = [lowering.field(record, name) for record in records]
    values = tuple(value for value in found if value is not None)
    try:
        return None if len(values) < len(found) else among(lowering, values, choice.number)
    except Mismatch:
        return None


def assign_each(lowering: Records, choice: Choice, assign: Callable[[Value], None]) -> None:
    """Assign to the object that it is: for each of them, a branch that does so or nothing."""
    e = lowering.e
    for k, option in enumerate(choice.options):
        here = e.emit(arith.CmpiOp(choice.number, e.index(k), "eq"))
        test = Scalar("py_bool", here, None, 0, 1)

        def arm(option: Value = option) -> None:
            assign(option)

        lowering.conditional(test, (arm, lambda: None), frozenset())


# Loops that are written out.


def write_out_loops(lowering: Records, index: Scalar) -> None:
    """Let the next build write out the loops of whose counters an index is computed."""
    from ..calling.recursion import Again

    symbols = affine(index.ssa).terms
    places = {place for counter, place in lowering.counters.items() if counter in symbols}
    if places - lowering.facts.unrolled:
        lowering.facts.unrolled |= places
        raise Again


def rounds_of(lowering: Records, s: ast.For, over: Iterable) -> Sequence[Value] | None:
    """What the target of a loop is in each round, where it is to be written out."""
    place = lowering.frame.path, id(s)
    count = over.count.constant
    if place not in lowering.facts.unrolled or over.lists or not may_write_out(lowering, count):
        return None
    return [known(lowering.e, over.item(lowering.e.index(k))) for k in range(int(count or 0))]


def may_write_out(lowering: Records, count: Any) -> bool:
    return count is not None and 0 < count * lowering.rounds <= MOST_ROUNDS


def note(lowering: Records, s: ast.For, counter: SSAValue, over: Iterable) -> None:
    """A loop that may be written out begins."""
    place = lowering.frame.path, id(s)
    if not over.lists and may_write_out(lowering, over.count.constant):
        lowering.counters[counter] = place


@contextmanager
def written_out(lowering: Records, count: int) -> Generator[None]:
    """Meanwhile one round of `count` is written."""
    outer, lowering.rounds = lowering.rounds, lowering.rounds * max(count, 1)
    try:
        yield
    finally:
        lowering.rounds = outer


def known(e: Emitter, value: Value) -> Value:
    """The value, the ints in it that do not depend on the run as constants."""
    if isinstance(value, Tuple):
        return replace(value, items=tuple(known(e, item) for item in value.items))
    if isinstance(value, Scalar) and value.type == "py_int" and value.constant is None:
        found = affine(value.ssa)
        return e.constant(found.constant, "py_int") if found.is_constant else value
    return value

"""Dicts, sets and deques whose contents are known at run time only: objects of `standard_tables`' classes.

d = {}; d[i] = v           d = Dict(); d[i] = v        where a key is no constant, or comes in a loop
{i * i for i in r}         Set(i * i for i in r)
deque(maxlen=3)            Deque(maxlen=3)

A dict display is a record of fields first (`constructing`). What it cannot be, the build learns at the place
that asks for it, and makes a table of it the next time (`Facts.hashed`).
"""

from __future__ import annotations

import ast
import collections
from typing import TYPE_CHECKING, Any

from ..calling import standard_tables
from ..calling.standard_deques import Deque
from ..calling.standard_tables import Counter, DefaultDict, Dict, Set, Table
from ..choices import MOST_OPTIONS
from ..values import Record, Scalar, Static, Struct, Tuple, Value
from .classes import method_of
from .list_access import Asked
from .lists import FixedList, ListObject

if TYPE_CHECKING:
    from .constructing import Constructing

Place = tuple[tuple[int, ...], int]
"""Where a dict is made: a path of calls, and a node."""
CLASSES: dict[Any, type] = {
    set: Set,
    frozenset: Set,
    collections.deque: Deque,
    collections.defaultdict: DefaultDict,
    collections.Counter: Counter,
}
"""The classes of Python, and ours in their place."""

UNORDERED = (sorted, min, max, any, all)
"""What shows nothing of the order of a set that it is given."""


def of_python(cls: Any) -> Any:
    """The class that the program sees."""
    for python, ours in CLASSES.items():
        if cls is ours:
            return python
    return dict if cls is Dict else cls


def is_table(value: object) -> bool:
    return isinstance(value, Record | Struct) and issubclass(value.cls, Table | Deque)


def made(
    lowering: Constructing, cls: type, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> Value:
    """`deque(...)`, `set(...)` and the like."""
    return lowering.construct(CLASSES[cls], args, kwargs, node)


def filled(
    lowering: Constructing, args: list[Value], kwargs: dict[str, Value], node: ast.AST
) -> Value:
    """`dict(pairs, name=value)`, with run-time pairs."""
    table = lowering.construct(Dict, args, {}, as_call(lowering, node))
    for name, value in kwargs.items():
        store(lowering, table, lowering.constant(name, "a key"), value, node)
    return table


def as_call(lowering: Any, node: ast.AST) -> ast.Call:
    """A call that stands where the node does, the same in each build."""
    if isinstance(node, ast.Call):
        return node
    made = ast.copy_location(ast.Call(ast.Constant(None), [], []), node)
    return lowering.facts.stand_ins.setdefault((id(node), "call"), made)


def stand_in(lowering: Any, node: ast.AST, made: ast.expr) -> ast.expr:
    """What is lowered in a node's place, the same in each build."""
    made = ast.fix_missing_locations(ast.copy_location(made, node))
    return lowering.facts.stand_ins.setdefault((id(node), "items"), made)


def set_of(lowering: Any, node: ast.Set | ast.SetComp) -> Value:
    """`{a, b}`, `{f(v) for v in x}`."""
    items: ast.expr
    if isinstance(node, ast.Set):
        items = ast.Tuple(node.elts, ast.Load())
    else:
        items = ast.GeneratorExp(node.elt, node.generators)
    given = lowering.expression(stand_in(lowering, node, items))
    return lowering.construct(Set, [given], {}, as_call(lowering, node))


def dict_of(lowering: Any, node: ast.Dict) -> Value:
    """A display with run-time keys, or of a dict that gets such keys."""
    table = lowering.construct(Dict, [], {}, as_call(lowering, node))
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise lowering.refusal(node, "`**` in a dict with run-time keys", "use d.update(...)")
        asked = lowering.expression(key)
        store(lowering, table, asked, lowering.expression(value), node)
    return table


def store(lowering: Any, table: Value, key: Value, value: Value, node: ast.AST) -> None:
    method = standard_tables.Dict.__setitem__
    lowering.inline(method, [table, key, value], {}, as_call(lowering, node))


def comprehension(lowering: Any, node: ast.DictComp) -> Value:
    """`{k: v for ...}` over run-time values."""
    pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
    pairs = stand_in(lowering, node, ast.GeneratorExp(pair, node.generators))
    return filled(lowering, [lowering.expression(pairs)], {}, node)


def learn(lowering: Any, value: Value) -> None:
    """The next build makes a table of the dict, where this function made it; else nothing is learnt."""
    place = lowering.objects.places.get(value.serial) if isinstance(value, Record) else None
    if place is not None:
        learn_at(lowering, place)


def learn_at(lowering: Any, place: Place) -> None:
    from ..calling.recursion import Again

    if place not in lowering.facts.hashed:
        lowering.facts.hashed.add(place)
        raise Again


def learn_by_key(lowering: Any, value: Value, key: Value, *, stored: bool = False) -> None:
    """A dict is asked for a key known at run time: one of few numbers that it has is a choice."""
    if isinstance(value, Record) and is_number(key):
        numbers = [k for k in lowering.keys_of(value) if isinstance(k, int | float)]
        few = isinstance(key, Scalar) and 0 < len(numbers) <= MOST_OPTIONS
        few = few and not any(is_list(lowering.field(value, k)) for k in numbers)
        if stored or not few:
            learn(lowering, value)


def is_list(value: Value | None) -> bool:
    return isinstance(value, FixedList) or (
        isinstance(value, Static) and isinstance(value.object, ListObject)
    )


def is_number(key: Value) -> bool:
    """True for a number known at run time, and for a tuple with one."""
    if isinstance(key, Tuple):
        return any(map(is_number, key.items))
    return isinstance(key, Scalar) and key.constant is None


def delete_item(lowering: Any, target: ast.Subscript) -> bool:
    """`del d[k]`; False where it is no dict."""
    base = lowering.expression(target.value)
    if isinstance(base, Record) and base.cls is dict:
        key = lowering.expression(target.slice)
        learn_by_key(lowering, base, key, stored=True)
        lowering.dict_method(base, "pop", [key], {}, target)
        return True
    method = method_of(base, "__delitem__") if isinstance(base, Record | Struct) else None
    if method is not None:
        lowering.invoked(method, [base, lowering.expression(target.slice)], target)
    return method is not None


def of_unordered(lowering: Any, function: Any, node: ast.Call) -> ast.Call:
    """The call with a set's items in the set's place, where what is called shows nothing of their order."""
    match node.args[0] if node.args else None:
        case (
            ast.Name()
            | ast.Attribute()
            | ast.BinOp()
            | ast.Set()
            | ast.SetComp()
            | ast.Call(ast.Name("set" | "frozenset"))
        ) as first if function in UNORDERED:
            pass
        case _:
            return node
    value = lowering.expression(first)
    if not isinstance(value, Record | Struct):
        return node
    by_key = value.cls is dict and function in (min, max) and len(node.keywords) > 0
    if value.cls is not Set and not by_key:
        return node
    call = ast.Call(node.func, [ast.copy_location(Asked(), first), *node.args[1:]], node.keywords)
    made = stand_in(lowering, node, call)
    assert isinstance(made, ast.Call)
    items = made.args[0]
    assert isinstance(items, Asked)
    if by_key:
        items.answer = lambda: Tuple(lowering.items_of_iterable(value, node))
    else:
        items.answer = lambda: lowering.inline(Set.in_any_order, [value], {}, node)
    return made

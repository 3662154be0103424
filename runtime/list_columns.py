"""Lists of numbers as arrays, and back.

Compiled code gets a list of numbers as one array, a list of tuples of numbers as one for each number of a
tuple, whatever the length::

    [1.0, 2.0, 3.0]         "py_float"             array([1., 2., 3.])
    [(1, 0.5), (2, 0.25)]   ("py_int", "py_float") array([1, 2]), array([0.5, 0.25])

The *form* says what one item is. Items of two types have that which a variable would have where paths
meet: an int among floats is a float.

Lists that are returned hold more, each part again as one array whatever the length::

    [u, v]                  {"array": "f64"}                            array([u, v])
    [u, v[1:]]              {"arrays": "f64", "rank": 1}                array([2, 1]), array([*u, *v[1:]])
    [[1.0], [2.0, 3.0]]     {"rows": "py_float", "even": False}         array([1, 2]), array([1., 2., 3.])
    [[1.0], [2.0]]          {"rows": "py_float", "even": True}          array([[1.], [2.]])
    [P(1.0), P(2.0)]        {"object": P, "names": ["x"], "items": ["py_float"]}      array([1., 2.])
    [Pair(1, 2.0)]          {"tuple": Pair, "items": ["py_int", "py_float"]}          array([1]), array([2.])
    [v, u]                  {"placed": 0}                               array([1, 0]), in a store of u and v
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Any, cast

import numpy as np

from .keys import NUMPY_SCALARS, SCALARS


@dataclass(frozen=True)
class Rows:
    """The form of lists whose items are of a form, None while there are none; `even`: all of one length."""

    form: Form | None
    even: bool


Form = str | tuple["Form", ...] | Rows | dict[str, Any]
LEAF = "leaf"
"""What a store was given that is an array among the numbers and arrays which arguments hold."""
Stores = Sequence[Sequence[Any]]
"""What lists have items of by their places: the caller's items, then new ones."""

_NAMES: dict[type, str] = {kind: name for name, kind in SCALARS.items()}
_FORMS: dict[frozenset[type], str] = {
    **{frozenset((kind,)): name for kind, name in _NAMES.items()},
    frozenset((int, float)): "py_float",
    frozenset((float, np.float64)): "f64",
}
"""By the types among the items."""
_DTYPES = {"py_float": np.float64, "py_int": np.int64, "py_bool": np.bool_, **NUMPY_SCALARS}


def columns(items: Sequence[Any]) -> tuple[Form, list[Any]] | None:
    """The form of the items, and the arrays; None where they are no numbers or tuples of numbers."""
    kinds = frozenset(map(type, items))
    form = _FORMS.get(kinds)
    if form is not None:
        try:
            return form, [np.array(items, _DTYPES[form])]
        except OverflowError:
            raise OverflowError(
                "an item of a list is a Python int too large for 64 bits, which compiled code computes with"
            ) from None
    if kinds == frozenset((list,)):
        return rows(items)
    if kinds != frozenset((tuple,)) or len(set(map(len, items))) != 1 or not items[0]:
        return None
    parts = [columns(column) for column in zip(*items, strict=True)]
    if any(part is None for part in parts):
        return None
    found = [part for part in parts if part is not None]
    return tuple(form for form, _ in found), [array for _, arrays in found for array in arrays]


def rows(items: Sequence[list[Any]]) -> tuple[Form, list[Any]] | None:
    """The same of lists; None where one of them is there twice, or holds anything else than numbers."""
    if len(set(map(id, items))) < len(items):
        return None
    flat = [item for row in items for item in row]
    if flat and type(flat[0]) is list:
        return None
    found = columns(flat) if flat else (None, [])
    if found is None:
        return None
    (form, arrays), lengths = found, [*map(len, items)]
    if flat and len(set(lengths)) == 1:
        tables = [a.reshape(len(items), lengths[0]) for a in arrays]
        return Rows(form, True), tables
    return Rows(form, False), [np.array(lengths, np.int64), *arrays]


def as_rows(form: Form | None) -> Rows | None:
    """The form of items that are lists; None for others."""
    if isinstance(form, dict) and "rows" in form:
        return Rows(form["rows"], form["even"])
    return form if isinstance(form, Rows) else None


def inner(form: Form | None) -> Sequence[Form]:
    """The forms of the parts of an item."""
    if isinstance(form, dict):
        return form.get("items", ())
    return form if isinstance(form, tuple | list) else ()


def width(form: Form | None) -> int:
    """How many arrays there are for a list of this form; None is that of no items."""
    if isinstance(form, str):
        return 1
    if (of_rows := as_rows(form)) is not None:
        return width(of_rows.form) + (not of_rows.even)
    if isinstance(form, dict) and "arrays" in form:
        return form["rank"] + 1
    is_one = isinstance(form, dict) and ("array" in form or "placed" in form)
    return 1 if is_one else sum(map(width, inner(form)))


def types_of(form: Form | None) -> Iterator[str]:
    """What the numbers in the arrays are."""
    if isinstance(form, str):
        yield form
    if (of_rows := as_rows(form)) is not None:
        yield from () if of_rows.even else ("i64",)
        yield from types_of(of_rows.form)
    for one in inner(form):
        yield from types_of(one)


def resolved(form: Form | None, found: Callable[[Any], Any]) -> Form | None:
    """The form with the classes and objects that its references are of."""
    if isinstance(form, str | Rows) or form is None:
        return form
    if (of_rows := as_rows(form)) is not None:
        return Rows(resolved(of_rows.form, found), of_rows.even)
    if not isinstance(form, dict):
        return tuple([cast(Form, resolved(one, found)) for one in form])
    made = dict(form)
    for key in made.keys() & {"object", "tuple", "static"}:
        made[key] = found(made[key])
    if "items" in made:
        made["items"] = [resolved(one, found) for one in made["items"]]
    return made


def items_of(form: Form | None, arrays: Iterator[Any], stores: Stores = ()) -> list[Any]:
    """The items of a list again; `stores` are those of which it has places."""
    if form is None:
        return []
    if isinstance(form, dict) and "placed" in form:
        store = stores[form["placed"]]
        return [store[place] for place in next(arrays).tolist()]
    if isinstance(form, str):
        array = next(arrays)
        return array.tolist() if form.startswith("py_") else list(array)
    if isinstance(form, dict) and "array" in form:
        return [row.copy() for row in next(arrays)]
    if isinstance(form, dict) and "arrays" in form:
        return arrays_of(form["rank"], arrays)
    if (of_rows := as_rows(form)) is not None:
        return rows_of(of_rows, arrays)
    columns = zip(*[column_of(one, arrays, stores) for one in inner(form)], strict=False)
    if not isinstance(form, dict):
        return list(columns)
    if "tuple" in form:
        return [tuple.__new__(form["tuple"], parts) for parts in columns]
    made: list[Any] = []
    for parts in columns:
        one = object.__new__(form["object"])
        for name, part in zip(form["names"], parts, strict=True):
            object.__setattr__(one, name, part)
        made.append(one)
    return made


def arrays_of(rank: int, arrays: Iterator[Any]) -> list[Any]:
    """Arrays of several shapes, whose elements are one behind the other."""
    shapes = list(zip(*[next(arrays).tolist() for _ in range(rank)], strict=True))
    flat = next(arrays)
    ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
    spans = zip(shapes, pairwise([0, *ends]), strict=True)
    return [flat[a:b].reshape(shape).copy() for shape, (a, b) in spans]


def column_of(form: Form, arrays: Iterator[Any], stores: Stores = ()) -> Iterable[Any]:
    """One part of all items."""
    if isinstance(form, dict) and "static" in form:
        return repeat(form["static"])
    return items_of(form, arrays, stores)


def rows_of(form: Rows, arrays: Iterator[Any]) -> list[list[Any]]:
    """Lists that are the items of a list."""
    one = form.form
    if form.even:
        tables = [next(arrays) for _ in range(width(one))]
        return [items_of(one, iter([t[k] for t in tables])) for k in range(len(tables[0]))]
    ends = np.cumsum(next(arrays)).tolist()
    if one is None:
        return [[] for _ in ends]
    items = items_of(one, arrays)
    return [items[a:b] for a, b in pairwise([0, *ends])]


def parts_of(form: Form | None, items: Sequence[Any], stores: Sequence[Any] = ()) -> Iterator[Any]:
    """The arrays of a list of this form, which may be a list of cotangents; None for arrays of no extents.
    `stores` say what the places of items are (`placed_lists`)."""
    if isinstance(form, dict) and "placed" in form:
        yield stores[form["placed"]].numbers(items)
    elif isinstance(form, str):
        yield np.array(items, _DTYPES[form])
    elif isinstance(form, dict) and "array" in form:
        yield np.stack(items) if len(items) else None
    elif isinstance(form, dict) and "arrays" in form:
        for axis in range(form["rank"]):
            yield np.array([np.shape(item)[axis] for item in items], np.int64)
        flat = [np.ravel(item) for item in items]
        yield np.concatenate(flat) if flat else np.zeros(0)
    elif (of_rows := as_rows(form)) is not None:
        yield from parts_of_rows(of_rows, items)
    elif isinstance(form, dict) and "object" in form:
        for name, one in zip(form["names"], form["items"], strict=True):
            yield from parts_of(one, [getattr(item, name) for item in items], stores)
    elif form is not None and not (isinstance(form, dict) and "static" in form):
        forms = inner(form)
        parts: Any = zip(*items, strict=True) if items else [()] * len(forms)
        for one, part in zip(forms, parts, strict=True):
            yield from parts_of(one, part, stores)


def parts_of_rows(form: Rows, items: Sequence[Any]) -> Iterator[Any]:
    if not form.even:
        yield np.array([len(row) for row in items], np.int64)
        yield from parts_of(form.form, [item for row in items for item in row])
    elif not len(items):
        yield from [None] * width(form)
    else:
        parts = [list(parts_of(form.form, row)) for row in items]
        yield from [np.stack(column) for column in zip(*parts, strict=True)]


def replace(target: list[Any], items: list[Any]) -> None:
    """Give a list these items; what is there already and equal stays, an int among floats, too, and the lists
    in it get theirs."""
    kinds = set(map(type, items))
    if list in kinds:
        for old, new in zip(target, items, strict=False):
            replace(old, new)
        target[:] = [*target[: len(items)], *items[len(target) :]]
        return
    if len(kinds) == 1 and set(map(type, target)) <= kinds:
        target[:] = items
        return
    kept = [old if is_equal(old, new) else new for old, new in zip(target, items, strict=False)]
    target[:] = kept + items[len(kept) :]


def stores_of(form: Form | None) -> Iterator[int]:
    """The stores of which a list of this form has items."""
    if isinstance(form, dict) and "placed" in form:
        yield form["placed"]
    for one in inner(form):
        yield from stores_of(one)


def kept_rows(target: list[Any], items: list[Any]) -> list[Any]:
    """The lists in a list, which get the items of the first of `items`, and the others of these."""
    for old, new in zip(target, items, strict=False):
        replace(old, new)
    return [*target, *items[len(target) :]]


def refill(target: list[Any], items: list[Any]) -> None:
    """Give a list these items; a tuple, or frozen object, of what one of its items is of is that item."""
    old = {known: one for one in target if (known := parts_known(one)) is not None}
    if old:
        items = [old.get(parts_known(one), one) for one in items]
    target[:] = items


def parts_known(item: Any) -> Any:
    """By what a tuple or frozen object is told from others: by the very arrays and objects in it."""
    if not isinstance(item, tuple) and not is_frozen(type(item)):
        return None
    parts: Any = item if isinstance(item, tuple) else vars(item).values()
    return type(item), *[
        (type(p), p) if isinstance(p, float | int | str | np.generic) else parts_known(p) or id(p)
        for p in parts
    ]


def is_frozen(cls: Any) -> bool:
    return dataclasses.is_dataclass(cls) and bool(cls.__dataclass_params__.frozen)  # pyright: ignore


def is_equal(old: Any, new: Any) -> bool:
    """True for numbers that are the same but perhaps for their types, and for tuples of such."""
    if isinstance(old, tuple) or isinstance(new, tuple):
        return type(old) is type(new) and all(map(is_equal, old, new))
    return repr(old) == repr(new) if type(old) is type(new) else old == new

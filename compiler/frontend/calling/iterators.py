"""Calls of `itertools`, `filter`, `next` and `iter`: which generator of our own runs (`standard_iterators`).

chain(a, b)            a generator
count(1)               beside what has an end (`zip(count(1), x)`): items at places; alone: a generator
next(g, default)       the first item of a generator, which is left then
"""

from __future__ import annotations

import ast
import itertools
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ..values import INT64_MAX, Array, Scalar, Static, Tuple, Value
from . import coroutines, standard_iterators
from .generator_values import pending, pending_of

if TYPE_CHECKING:
    from .calls import Calls

GENERATORS: dict[object, FunctionType] = {
    filter: standard_iterators.filtered,
    itertools.chain: standard_iterators.chain,
    itertools.product: standard_iterators.product,
    itertools.accumulate: standard_iterators.accumulate,
    itertools.zip_longest: standard_iterators.zip_longest,
    itertools.cycle: standard_iterators.cycle,
    itertools.combinations: standard_iterators.combinations,
    itertools.combinations_with_replacement: standard_iterators.combinations_with_replacement,
    itertools.permutations: standard_iterators.permutations,
    itertools.pairwise: standard_iterators.pairwise,
    itertools.takewhile: standard_iterators.takewhile,
    itertools.dropwhile: standard_iterators.dropwhile,
    itertools.starmap: standard_iterators.starmap,
    itertools.compress: standard_iterators.compress,
    itertools.filterfalse: standard_iterators.filterfalse,
}
"""What is called, and what runs."""


def call(
    lowering: Calls, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> Value | None:
    """Lower the call of such a function; None for any other."""
    callee = function.object if isinstance(function, Static) else None
    if callee is None or not callable(callee) or getattr(callee, "__hash__", None) is None:
        return None
    if is_chain_of(callee):
        return pending(lowering, standard_iterators.chain_of, args, kwargs)
    if callee is itertools.islice and not kwargs and 2 <= len(args) <= 4:
        few = standard_iterators.first_items if len(args) == 2 else standard_iterators.islice
        return pending(lowering, few, args, kwargs)
    if callee is itertools.repeat and args:
        return repeated(lowering, args[0], args[1] if len(args) > 1 else kwargs.get("times"))
    if callee is itertools.count:
        return counted(lowering, args, kwargs)
    if isinstance(callee, type | FunctionType) and (made := found(callee)) is not None:
        return pending(lowering, made, args, kwargs)
    asked = ASKED.get(callee) if isinstance(callee, FunctionType) else None
    return None if asked is None else asked(lowering, args, node)


def found(callee: type | FunctionType) -> FunctionType | None:
    """The generator function that runs for a class of `itertools`."""
    return GENERATORS.get(callee)


def is_chain_of(callee: Any) -> bool:
    """True for `itertools.chain.from_iterable`, which is another object each time."""
    return (
        getattr(callee, "__self__", None) is itertools.chain
        and getattr(callee, "__name__", "") == "from_iterable"
    )


def repeated(lowering: Calls, item: Value, times: Value | None) -> Value:
    """`repeat(item)`, `repeat(item, times)`."""
    from ..iterables import Iterable

    if times is None:
        count = lowering.e.constant(INT64_MAX, "py_int")
        alone = pending_of(pending(lowering, standard_iterators.repeat, [item], {}))
        return Static(Iterable(count, lambda i: item, endless=alone))
    count = lowering.scalar(times, "the number of repetitions")
    zero = lowering.e.constant(0, "py_int")
    return Static(Iterable(lowering.better("Gt", zero, count), lambda i: item))


def counted(lowering: Calls, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`count(start, step)`: of ints, places; of floats each is the sum of those before."""
    from ..iterables import Iterable

    e = lowering.e
    names = ("start", "step")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    both = [given.get(n, e.constant(k, "py_int")) for k, n in enumerate(names)]
    alone = pending(lowering, standard_iterators.count, both, {})
    if not all(isinstance(v, Scalar) and v.type in ("py_int", "py_bool") for v in both):
        return alone
    start, step = both

    def item(i: Any) -> Value:
        number = Scalar("py_int", i, None, 0)
        return lowering.binary_values("Add", start, lowering.binary_values("Mult", step, number))

    end = e.constant(INT64_MAX, "py_int")
    return Static(Iterable(end, item, endless=pending_of(alone)))


# What the generators ask while they are compiled


def has_places(lowering: Any, args: list[Value], node: ast.Call) -> Value:
    from ..iterables import Iterable

    (items,) = args
    place = items.object if isinstance(items, Static) else None
    endless = isinstance(place, Iterable) and place.endless is not None
    return lowering.e.constant(not is_generator(items) and not endless, "py_bool")


def is_generator(value: Value) -> bool:
    return pending_of(value) is not None or coroutines.suspended_of(value) is not None


def may_change(lowering: Any, args: list[Value], node: ast.Call) -> Value:
    """Rows of arrays, and what tuples hold, are the same things later."""
    (items,) = args
    of_range = isinstance(items, Static) and getattr(items.object, "bounds", None) is not None
    of_rows = isinstance(items, Array) and items.rank > 1
    return lowering.e.constant(not (of_range or of_rows or isinstance(items, Tuple)), "py_bool")


def over(lowering: Any, items: Value, node: ast.Call) -> Any:
    """What has places, as something to run over that is asked more than once."""
    from ..iterables import Iterable

    if isinstance(items, Static) and isinstance(items.object, Iterable):
        return items.object
    return lowering.iterable_value(items, node, alone=False)


def count_of(lowering: Any, args: list[Value], node: ast.Call) -> Value:
    found = over(lowering, args[0], node)
    return found.count if found.now is None else found.now()


def item_of(lowering: Any, args: list[Value], node: ast.Call) -> Value:
    found, at = over(lowering, args[0], node), args[1]
    assert isinstance(at, Scalar)
    if found.items is not None and isinstance(at.constant, int):
        return found.items[at.constant]
    return lowering.indexed(found, node).item(at.ssa)


ASKED: dict[FunctionType, Any] = {
    standard_iterators.has_places: has_places,
    standard_iterators.may_change: may_change,
    standard_iterators.count_of: count_of,
    standard_iterators.item_of: item_of,
}

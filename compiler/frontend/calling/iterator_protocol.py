"""The iterators that split generators consume: the protocol, and `iter`, `zip` and the like.

over$ = places(items)          an array, a list, a tuple, a range as its numbers; or a generator
more(over$, at$)               at$ < its length; or the generator goes on
item(over$, at$)               the item at the place; or what it has given
"""

from __future__ import annotations

import ast
from typing import Any

from xdsl.dialects import arith

from .. import choices, scalars
from ..syntax import stepping
from ..syntax.comprehensions import Intrinsic
from ..syntax.generator_loops import place_of
from ..values import Array, NoneValue, Record, Row, Scalar, Static, Struct, Tuple, Value
from . import generator_values, recursion, standard_iterators
from .coroutines import Place, Suspended, advance, again, start, state_of, suspended_of


class RangeParts:
    """The class of tuples that a range is kept as: its first int, its step, how many there are."""


ASKED = tuple(Intrinsic)[tuple(Intrinsic).index(Intrinsic.PARTNER) :]


def asked(lowering: Any, which: Intrinsic, args: list[Value], node: ast.Call) -> Value:
    """A step of a loop that is split: over what has places, or over a generator."""
    if which is Intrinsic.PARTNER:
        return partner(lowering, args[0], node)
    if which is Intrinsic.PLACES:
        return places(lowering, args[0], node)
    if which is Intrinsic.BEHIND:
        (at,) = args
        assert isinstance(at, Scalar)
        return Scalar("py_int", lowering.e.emit(arith.AddiOp(at.ssa, lowering.e.index(1))), None, 0)
    value, at = args[0], args[1] if len(args) > 1 else None
    if isinstance(value, Record | Struct):  # whose `__iter__` is called once
        outer, _ = lowering.resuming[-1]
        lowering.facts.indirect.add(outer.place)
        lowering.facts.forgotten.append(lowering.facts.stepping.pop(outer.place, None))
        lowering.facts.changed = True
        raise recursion.Again
    value = places(lowering, value, node)
    generator = suspended_of(value)
    match which:
        case Intrinsic.MORE if generator is not None:
            sent = args[2] if len(args) > 2 else NoneValue()
            return advance(lowering, generator, sent, node)
        case Intrinsic.MORE:
            assert isinstance(at, Scalar)
            if len(args) > 2 and not isinstance(args[2], NoneValue):
                raise lowering.refusal(node, "a value is sent to what is no generator")
            count = of_range(value)[2] if is_range(value) else count_of(lowering, value, node)
            return scalars.compare(lowering.e, "Lt", at, count)
        case Intrinsic.GIVEN:
            given = None if generator is None else generator.given
            return NoneValue() if given is None else given
        case Intrinsic.ITEM if generator is not None:
            return args[2]
        case Intrinsic.ITEM:
            assert isinstance(at, Scalar)
            if is_range(value):
                first, step, _ = of_range(value)
                far = scalars.integer(lowering.e, "Mult", at, step)
                return scalars.integer(lowering.e, "Add", first, far)
            from . import iterators

            return iterators.item_of(lowering, [value, at], node)
        case _:
            if generator is None:
                return NoneValue()
            return state_of(lowering, generator, stepping.RETURNED)


def partner(lowering: Any, value: Value, node: ast.Call) -> Value:
    """What stands beside a generator in `zip`: subscripted, or the next build takes turns."""
    place = place_of(node.args[0], lowering.frame.source.file)
    is_generator = generator_values.pending_of(value) is not None or suspended_of(value) is not None
    if is_generator and lowering.facts.learn_generator(place):
        raise recursion.Again
    return lowering.partner([value])


def count_of(lowering: Any, value: Value, node: ast.Call) -> Scalar:
    from . import iterators

    found = iterators.count_of(lowering, [value], node)
    assert isinstance(found, Scalar)
    return found


def is_range(value: Value) -> bool:
    return isinstance(value, Tuple) and value.cls is RangeParts


def of_range(value: Any) -> list[Any]:
    return list(value.items)


def places(lowering: Any, value: Value, node: ast.AST) -> Value:
    """What is asked for its items one by one: something with places, or a generator."""
    from ..data import protocols
    from ..iterables import Iterable

    value = choices.present(lowering, value, "'NoneType' object is not iterable")
    if isinstance(value, Record | Struct) and value.cls is not dict:
        return places(lowering, protocols.iterated(lowering, value, node), node)
    if isinstance(value, Record | Struct):
        return Tuple(tuple(lowering.items_of_iterable(value, node)))
    refusal = lowering.refusal(
        node, "this is not something a generator can run over", "use an array, a list or a range"
    )
    found = value.object if isinstance(value, Static) else None
    if isinstance(found, generator_values.Pending):
        again(lowering, found.place, refusal)
    if isinstance(found, Iterable):
        if found.bounds is None:
            again(lowering, found.place, refusal)
        bounds = list(found.bounds.values())
        return Tuple((bounds[0], bounds[2], found.count), RangeParts)
    is_known = isinstance(value, Array | Tuple | Row) or isinstance(found, Suspended | str)
    if not is_known and lowering.list_of(value) is None:
        raise refusal
    return value


def iterator_of(lowering: Any, value: Value, node: ast.AST, place: Place) -> Value:
    """`iter(value)`, to be asked item by item."""
    value = places(lowering, value, node)
    if suspended_of(value) is not None:
        return value
    return start(lowering, standard_iterators.items_of, [value], {}, place)


def iterator(lowering: Any, kind: Any, node: ast.Call, place: Place) -> Value:
    """`zip`, `enumerate`, `map` and `reversed`, to be asked item by item."""
    strict = [k for k in node.keywords if k.arg == "strict" and kind is zip]
    start_at = [k.value for k in node.keywords if k.arg == "start" and kind is enumerate]
    if len(strict) + len(start_at) < len(node.keywords) or any(
        not is_false(k.value) for k in strict
    ):
        raise lowering.refusal(
            node, f"`{kind.__name__}(..., strict=True)` of generators is not compiled",
            "make lists, compare their lengths, and leave out `strict`",
        )  # fmt: skip
    values = [lowering.expression(a) for a in (*node.args, *start_at)]
    taken = values[1:] if kind is map else values[:1] if kind is enumerate else values

    def own(k: int) -> Place:
        return (*place, k)

    if kind is reversed:
        found = places(lowering, values[0], node)
        if suspended_of(found) is not None:
            raise lowering.refusal(node, "'generator' object is not reversible", "make a list")
        return start(lowering, standard_iterators.backwards, [found], {}, place)
    parts = [iterator_of(lowering, v, node, own(k)) for k, v in enumerate(taken)]
    if kind is enumerate:
        number = values[1] if len(values) > 1 else lowering.e.constant(0, "py_int")
        return start(lowering, standard_iterators.numbered, [parts[0], number], {}, place)
    if kind is map and len(parts) == 1:
        return start(lowering, standard_iterators.mapped, [values[0], parts[0]], {}, place)
    if not parts:
        return start(lowering, standard_iterators.items_of, [Tuple(())], {}, place)
    rows = start(lowering, standard_iterators.rows_of, [parts[-1]], {}, own(-1))
    for k, part in enumerate(parts[-2::-1], 2):
        rows = start(lowering, standard_iterators.side_by_side, [part, rows], {}, own(-k))
    if kind is zip:
        return rows
    return start(lowering, standard_iterators.starmap, [values[0], rows], {}, place)


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False

"""What users hand to `jvp`, `hvp` and `value_grad_hvp`, and what the last two return.

A direction is taken as it is where the kernel could have made it itself: an array of the argument's dtype and
extents, contiguous in its order, or a float. Everything else (lists, other dtypes, views, tangents that share
memory) goes to Python code, which copies it or says what is wrong with it. A product starts from arrays of
its own: of zeros, or of anything where the kernel fills them. Several directions are stacked (`stacked`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...argument_keys import ArrayKey, Key, ScalarKey
from .guard import ArrayValue, check_sharing, require_type, unpack_array
from .plan import EntryPlan, leaf_positions
from .result import Boxes, slot_count
from .shadows import fresh_like
from .stacked import stack_of, turned
from .wrapped import WRAPPED
from .writer import ARRAY_EXTENTS, Writer

Directions = dict[int, tuple[str, ArrayValue | None]]
"""By parameter the object that is its direction, and how it lies in memory if it is an array."""


def direction_objects(
    w: Writer, plan: EntryPlan, form: str, given: str, primals: Sequence[str]
) -> Directions:
    """The direction of each parameter in `wrt`, of one or of a tuple of them."""
    if len(plan.wrt) > 1:
        items = items_of(w, given, len(plan.wrt))
    else:
        items = [one_of(w, form, given)]
    pairs = zip(plan.wrt, items, strict=True)
    return {p: checked(w, plan, p, obj, primals[p], written=False) for p, obj in pairs}


def one_of(w: Writer, form: str, given: str) -> str:
    """The only direction: itself, or in a tuple where `wrt` was one."""
    one, several, taken, ready = (w.fresh(hint) for hint in ("one", "several", "taken", "ready"))
    w.do(f"br i1 {w.value(f'icmp eq i32 {form}, 1')}, label %{one}, label %{several}")
    w.label(several)
    (item,) = items_of(w, given, 1)
    w.do(f"br label %{taken}")
    w.label(taken)
    w.do(f"br label %{ready}")
    w.label(one)
    w.do(f"br label %{ready}")
    w.label(ready)
    return w.value(f"phi ptr [ {given}, %{one} ], [ {item}, %{taken} ]", "direction")


def items_of(w: Writer, obj: str, count: int) -> list[str]:
    """The items of a tuple of so many."""
    require_type(w, obj, "PyTuple_Type")
    w.require(w.value(f"icmp eq i64 {w.call('PyTuple_Size', obj)}, {count}"))
    return [w.call("PyTuple_GetItem", obj, str(i)) for i in range(count)]


def tangent_objects(
    w: Writer,
    plan: EntryPlan,
    given: Sequence[str],
    primals: Sequence[str],
    arrays: Sequence[tuple[int, ArrayValue]],
) -> Directions:
    """The tangents that were `handed_in`, one for each parameter in `wrt`.

    They share memory with nothing: with none of the arguments' `arrays`, and not with each other.
    """
    found = Directions()
    for p, obj in zip(plan.wrt, given, strict=True):
        found[p] = checked(w, plan, p, obj, primals[p], written=True)
    count = len(plan.keys)
    own = [
        (count + p, array)
        for p, (_, array) in found.items()
        if array is not None and isinstance(plan.keys[p], ArrayKey)
    ]
    check_sharing(w, [*own, *arrays], {}, {p for p, _ in own})
    return found


def checked(
    w: Writer, plan: EntryPlan, position: int, obj: str, primal: str, *, written: bool
) -> tuple[str, ArrayValue | None]:
    """A float, or an array of the primal's dtype and extents that is laid out as kernels expect; or a stack
    of them."""
    key, lanes = plan.keys[position], plan.directions
    assert isinstance(key, ArrayKey | ScalarKey)
    extents: list[str] = []
    if isinstance(key, ArrayKey) and key.rank:
        at = w.field(primal, ARRAY_EXTENTS)
        extents = [w.field(at, 8 * d, "i64") for d in range(key.rank)]
    if lanes > 1:
        beside = WRAPPED if plan.mode == "tangent" else ""
        return obj, stack_of(w, key, obj, extents, lanes, beside, written=written)
    if isinstance(key, ScalarKey):
        require_type(w, obj, "PyFloat_Type")
        return obj, None
    layout = "F" if key.layout == "F" else "C"
    found = unpack_array(w, replace(key, layout=layout, read_only=False), obj, written=written)
    for wanted, extent in zip(extents, found.extents, strict=True):
        w.require(w.value(f"icmp eq i64 {wanted}, {extent}"))
    return obj, found


def moving_objects(
    w: Writer,
    plan: EntryPlan,
    boxes: Boxes,
    directions: Directions,
    seconds: Mapping[int, str],
    primals: Sequence[str],
) -> list[str]:
    """The tangents that the kernel takes: directions, products to be, zeros for what has no direction.

    Directions are held: while the kernel runs others may change the dict that they come from.
    """
    result: list[str] = []
    lanes = plan.directions
    for (of, position), key in zip(plan.tangents.moving, plan.tangents.keys, strict=True):
        if of == "shadow":
            result.append(seconds[position])
        elif lanes > 1 and position in plan.tangents.unread and position in seconds:
            result.append(seconds[position])  # an array of this shape
        elif position in directions:
            obj, stack = directions[position]
            w.call("Py_IncRef", obj)
            boxes.keep(obj)
            if lanes > 1 and isinstance(key, ArrayKey):
                assert stack is not None
                obj = turned(w, boxes, stack, WRAPPED if plan.mode == "tangent" else "")
            result.append(obj)
        elif isinstance(key, ArrayKey):
            result.append(fresh_like(w, plan, boxes, primals[position], position, False, lanes))
        else:
            assert lanes == 1
            result.append(boxes.keep(w.call("PyFloat_FromDouble", "0.0")))
    return result


def fresh_seconds(
    w: Writer, plan: EntryPlan, boxes: Boxes, primals: Sequence[str]
) -> dict[int, str]:
    """An array for the product of each argument that has a shadow."""
    filled, lanes = plan.tangents.filled, plan.directions
    return {
        p: fresh_like(w, plan, boxes, primals[p], p, p in filled, lanes)
        for p in plan.gradient.shadows
    }


def stored_directions(
    plan: EntryPlan, directions: Directions, moving: Sequence[str]
) -> list[tuple[ArrayValue, str]]:
    """The stacks of tangents of what the function stores to, with the arrays that the kernel is given."""
    pairs = zip(plan.tangents.moving, moving, strict=True)
    beside = {p: obj for (of, p), obj in pairs if of == "argument"}
    return [
        (stack, beside[p])
        for p, (_, stack) in directions.items()
        if stack is not None and p in plan.written and p in beside and plan.directions > 1
    ]


def stacks_of(plan: EntryPlan, directions: Directions) -> dict[int, str]:
    """The stacks of the caller, each by the place of its array among all arrays."""
    base = len(leaf_positions(plan.keys)) + len(plan.gradient.shadows)
    return {
        base + k: directions[p][0]
        for k, (of, p) in enumerate(plan.tangents.moving)
        if of == "argument" and p in directions
    }


def return_products(
    w: Writer,
    plan: EntryPlan,
    boxes: Boxes,
    form: str,
    value: str,
    shadows: Mapping[int, str],
    seconds: Mapping[int, str],
) -> None:
    """Return the product, behind the value and the gradient if there is one: each one, or a tuple of them."""
    bars, dots = numbers(w, plan, boxes)
    gradients = [{**shadows, **bars}[p] for p in plan.wrt] if value else []
    if plan.directions > 1:
        seconds = {p: seen_first(plan.keys[p], boxes, obj) for p, obj in seconds.items()}
    products = [{**seconds, **dots}[p] for p in plan.wrt]

    def finish(shape: Callable[[list[str]], str]) -> None:
        parts = [shape(gradients), shape(products)] if value else [shape(products)]
        boxes.finish(boxes.tuple([value, *parts]) if value else parts[0])

    if len(plan.wrt) == 1:
        held = list(boxes.made)
        one, many = w.fresh("one"), w.fresh("many")
        w.do(f"br i1 {w.value(f'icmp eq i32 {form}, 1')}, label %{one}, label %{many}")
        w.label(one)
        finish(lambda items: items[0])
        boxes.made = held
        w.label(many)
    finish(boxes.tuple)


def seen_first(key: Key, boxes: Boxes, beside: str) -> str:
    """The products of an array along a first axis."""
    assert isinstance(key, ArrayKey)
    return boxes.lanes_first(key.dtype, key.rank, beside)


def numbers(w: Writer, plan: EntryPlan, boxes: Boxes) -> tuple[dict[int, str], dict[int, str]]:
    """The gradients and products of scalars in `wrt`: zeros where the kernel computes none."""
    bars: dict[int, str] = {}
    dots: dict[int, str] = {}
    first, result, second = plan.tangents.more
    at = slot_count(plan.results)
    for found, spec in ((bars, first), (dots, second)):
        for position, item in zip(plan.gradient.scalars, spec["items"], strict=True):
            if item["kind"] != "none":
                address = w.value(f"getelementptr i64, ptr %results, i64 {at}")
                several = item["kind"] == "tuple"
                found[position] = (
                    boxes.numbers(item["items"], address)
                    if several
                    else boxes.scalar(item["type"], address)
                )
                at += slot_count(item)
        at += slot_count(result) if found is bars else 0
        for position in plan.wrt_scalars():
            if position not in found and found is dots and plan.directions > 1:
                found[position] = boxes.numbers(
                    [{"kind": "scalar", "type": plan.scalar_type(position)}] * plan.directions, ""
                )
            elif position not in found:
                found[position] = boxes.zero(plan.scalar_type(position))
    return bars, dots

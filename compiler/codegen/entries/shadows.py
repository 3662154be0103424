"""Shadows and cotangents on their way from Python objects to a kernel's operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....dialects.ad import AS_MANY_AS_IT_TAKES
from ...argument_keys import ArrayKey, ScalarKey
from ..kernel_state import ITEM_BYTES
from .guard import ArrayValue, load_array
from .plan import EntryPlan, leaf_positions, with_lanes
from .result import Boxes, leaves_of
from .writer import ARRAY_DATA, ARRAY_DTYPE, ARRAY_EXTENTS, LLVM_TYPE, Writer

HANDED = ("pullback", "pushforward", "back")
"""The kinds to which shadows and cotangents are handed in."""


def shadow_objects(
    w: Writer,
    plan: EntryPlan,
    kind: str,
    boxes: Boxes,
    objects: list[str],
    instead: Mapping[int, str],
) -> dict[int, str]:
    """The shadow objects of the active arrays: new ones, zeros where the kernel does not fill them, or
    what was handed in. Idle ones may be any array of their shape: those that are there `instead`."""
    result: dict[int, str] = {}
    for i, position in enumerate(plan.gradient.shadows):
        if kind in HANDED:
            result[position] = w.field("%args", 8 * (len(plan.keys) + i), hint="shadow")
        elif position in instead and position in plan.tangents.idle:
            result[position] = instead[position]
        else:
            filled = position in plan.gradient.filled
            result[position] = fresh_like(w, plan, boxes, objects[position], position, filled)
    return result


def fresh_like(
    w: Writer,
    plan: EntryPlan,
    boxes: Boxes,
    primal: str,
    position: int,
    filled: bool,
    lanes: int = 1,
) -> str:
    """A new array like an argument, or several beside each other: zeros, or anything where the kernel fills
    it."""
    key = plan.keys[position]
    assert isinstance(key, ArrayKey)
    dtype = w.field(primal, ARRAY_DTYPE)
    extents = w.field(primal, ARRAY_EXTENTS)
    w.call("Py_IncRef", dtype)
    fortran = "1" if key.layout == "F" else "0"
    function = "PyArray_Empty" if filled else "PyArray_Zeros"
    if lanes == 1:
        return boxes.keep(new_array(w, function, key.rank, extents, dtype, fortran))
    extents = boxes.with_last(extents, key.rank, str(lanes))
    return boxes.keep(new_array(w, function, key.rank + 1, extents, dtype, "0"))


LARGE = 1 << 15
"""Arrays of so many elements have memory that may have been another array's."""


def new_array(w: Writer, function: str, rank: int, extents: str, dtype: str, fortran: str) -> str:
    """What a function of NumPy makes, in memory of `runtime/result_pool.py` where that is large."""
    elements = "1"
    for d in range(rank):
        elements = w.value(f"mul i64 {elements}, {w.field(extents, 8 * d, 'i64')}")
    small, large, load, known, made = (
        w.fresh(hint) for hint in ("small", "large", "load", "known", "made")
    )
    w.do(f"br i1 {w.value(f'icmp ult i64 {elements}, {LARGE}')}, label %{small}, label %{large}")
    w.label(small)
    usual = w.call(function, str(rank), extents, dtype, fortran, hint="shadow")
    w.do(f"br label %{made}")
    w.label(large)
    there = w.field(w.large_arrays(), 0)
    missing = w.value(f"icmp eq ptr {there}, null")
    w.do(f"br i1 {missing}, label %{load}, label %{known}")
    w.label(load)
    loaded = w.value(f"call ptr {w.field(w.large_arrays(), 8)}()")
    failed = w.value(f"icmp eq ptr {loaded}, null")
    w.do(f"br i1 {failed}, label %{small}, label %{known}")
    w.label(known)
    pool = w.value(f"phi ptr [ {there}, %{large} ], [ {loaded}, %{load} ]")
    operands = f"i32 {rank}, ptr {extents}, ptr {dtype}, i32 {fortran}, ptr @{function}"
    pooled = w.value(f"call ptr {pool}({operands})", "shadow")
    w.do(f"br label %{made}")
    w.label(made)
    return w.value(f"phi ptr [ {usual}, %{small} ], [ {pooled}, %{known} ]", "shadow")


def shadow_operands(w: Writer, plan: EntryPlan, position: int, shadow: str) -> list[str]:
    """The shadow of an array, or as many of them as there are lanes."""
    key = with_lanes(plan.keys[position], plan.lanes)
    assert isinstance(key, ArrayKey)
    return ArrayValue(key, shadow, *load_array(w, key, shadow)).operands()


def cotangent_operands(w: Writer, plan: EntryPlan, kind: str, first: int) -> list[str]:
    """One for each float result: the arguments from `first` on (`pullback`, `back`), or 1.0 for the first
    result and zeros for the others. Of several lanes each is one array: a number's of all lanes."""
    operands: list[str] = []
    active = [
        (k, leaf) for k, leaf in enumerate(leaves_of(plan.results)) if k in plan.gradient.cotangents
    ]
    given = kind in HANDED
    for i, (k, leaf) in enumerate(active):
        if leaf["kind"] == "scalar" and plan.lanes > 1:
            key = ScalarKey(leaf["type"], plan.lanes)
            operands.append(tangents_of_number(w, key, w.field("%args", 8 * (first + i))))
        elif leaf["kind"] == "scalar":
            type_ = LLVM_TYPE[leaf["type"]]
            value = "1.0" if k == 0 else "0.0"
            if given:
                value = float_value(w, type_, w.field("%args", 8 * (first + i)))
            operands.append(f"{type_} {value}")
        elif not given:
            operands += nothing(zero_of(w, plan), leaf["rank"])
        else:
            key = ArrayKey(leaf["dtype"], ("?",) * leaf["rank"], "S", lanes=plan.lanes)
            given_bar = w.field("%args", 8 * (first + i), hint="cotangent")
            operands += array_or_zero(w, key, given_bar, zero_of(w, plan))
    return operands


def float_value(w: Writer, type_: str, obj: str) -> str:
    """The number that a Python object is, in a float type."""
    value = w.call("PyFloat_AsDouble", obj)
    return w.value(f"fptrunc double {value} to float") if type_ == "float" else value


def tangent_operands(
    w: Writer, plan: EntryPlan, objects: Sequence[str]
) -> tuple[list[str], dict[int, ArrayValue]]:
    """The tangents of what moves, given as objects: numbers, arrays laid out as their primals.

    Besides the arrays, each by its place among all arrays that results may be views of.
    """
    operands: list[str] = []
    arrays: dict[int, ArrayValue] = {}
    base = len(leaf_positions(plan.keys)) + len(plan.gradient.shadows)
    for i, (key, obj) in enumerate(zip(plan.tangents.keys, objects, strict=True)):
        if isinstance(key, ArrayKey):
            arrays[base + i] = ArrayValue(key, obj, *load_array(w, key, obj))
            operands += arrays[base + i].operands()
        else:
            assert isinstance(key, ScalarKey)
            operands.append(tangents_of_number(w, key, obj))
    return operands, arrays


def tangents_of_number(w: Writer, key: ScalarKey, obj: str) -> str:
    """The tangent, or cotangent, that a Python number is, or those that lie in an array."""
    type_ = LLVM_TYPE[key.type]
    if key.lanes == 1:
        return f"{type_} {float_value(w, type_, obj)}"
    data, vector = w.field(obj, ARRAY_DATA), f"<{key.lanes} x {type_}>"
    return f"{vector} {w.value(f'load {vector}, ptr {data}, align {ITEM_BYTES[type_]}')}"


def zero_of(w: Writer, plan: EntryPlan) -> str:
    """Where one zero lies: on the stack, or on the device whose kernels read it."""
    return w.device("mutad_device_nothing", plan.driver) if plan.driver else "%nothing"


def nothing(zero: str, rank: int) -> list[str]:
    """Zeros of any shape: the one zero at every place."""
    return [f"ptr {zero}", *[f"i64 {AS_MANY_AS_IT_TAKES}"] * rank, *["i64 0"] * rank]


def array_or_zero(w: Writer, key: ArrayKey, obj: str, zero: str) -> list[str]:
    """An array; for None, the one zero at every place."""
    is_none = w.value(f"icmp eq ptr {obj}, {w.object('_Py_NoneStruct')}")
    given, absent, ready = w.fresh("given"), w.fresh("absent"), w.fresh("ready")
    w.do(f"br i1 {is_none}, label %{absent}, label %{given}")
    w.label(given)
    data, extents, strides = load_array(w, key, obj)
    w.do(f"br label %{ready}")
    w.label(absent)
    w.do(f"br label %{ready}")
    w.label(ready)

    def either(type_: str, one: str, other: str) -> str:
        return w.value(f"phi {type_} [ {one}, %{given} ], [ {other}, %{absent} ]")

    pointer = either("ptr", data, zero)
    numbers = [
        *(either("i64", n, str(AS_MANY_AS_IT_TAKES)) for n in extents),
        *(either("i64", s, "0") for s in strides),
    ]
    return [f"ptr {pointer}", *(f"i64 {n}" for n in numbers)]

"""Whole matrices from kernels that carry several tangents: `hessian`, and `jacobian` by columns.

::

    H = f.hessian(x)            along = 0;  H = empty
                                for first in 0, 8, ...:
                                    along[first + k, k] = 1      for each of these lanes
                                    the kernel                   seconds[i, k], side by side
                                    H[i, first + k] = seconds[i, k]
                                    along[first + k, k] = 0

    J = f.jacobian(x)           along[i, 0] = 1 for all i;  J = 0                where J is diagonal
                                the kernel                   dots[i, k], side by side
                                J[i, i] = dots[i, 0]

They exist where nothing is stored to, for an array of `wrt` alone: then the kernel may run on the arguments
themselves, as often as there are blocks of columns. Large arrays are for Python code
(`runtime/jacobians.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...argument_keys import ArrayKey, ScalarKey
from .cold import COLD
from .directions import fresh_seconds
from .plan import EntryPlan
from .result import Boxes, ResultSpec, is_fresh, slot_count
from .run import endings, run_kernel
from .several import new
from .shadows import (
    cotangent_operands,
    fresh_like,
    new_array,
    shadow_objects,
    shadow_operands,
    tangent_operands,
)
from .stacked import FEW, product
from .writer import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_EXTENTS,
    ITEM_SIZE,
    LLVM_TYPE,
    Writer,
    undo_function,
)

MATRICES = ("hessian", "jacobian")
"""The kinds of entries."""


def has_matrix(plan: EntryPlan) -> bool:
    """Whether there is such an entry, of what has fast ones: see above."""
    if plan.directions == 1 or plan.written or plan.driver or len(plan.wrt) != 1:
        return False
    draws = any(isinstance(key, ScalarKey) and key.type == "rng" for key in plan.keys)
    (position,) = plan.wrt
    key = plan.keys[position]
    if draws or not isinstance(key, ArrayKey) or key.rank == 0 or key.layout == "F":
        return False
    if {p for _, p in plan.tangents.moving} - {*plan.wrt}:
        return False
    return plan.mode == "product" or (plan.mode == "tangent" and is_new_array(plan.results))


def is_new_array(spec: ResultSpec) -> bool:
    return is_fresh(spec) and not {"among", "list", "owners", "read_only"} & spec.keys()


def match(w: Writer, plan: EntryPlan, kind: str) -> None:
    """Go on where the keywords are `wrt=`, with one value that is ours, `mode="forward"`, or left out.

    In `%forward` whether columns are wanted; elsewhere they are computed where they are no more than rows.
    """
    forward, named, ready = (w.fresh(name) for name in ("forward.at", "named", "matched"))
    w.do(f"%{forward} = alloca i1")
    w.do(f"store i1 false, ptr %{forward}")
    w.do("%ours.at = alloca i1")
    w.do(f"store i1 {str(plan.wrt == (0,)).lower()}, ptr %ours.at")
    w.do(f"br i1 {w.value('icmp eq ptr %kwnames, null')}, label %{ready}, label %{named}")
    w.label(named)
    size = w.call("PyTuple_Size", "%kwnames")
    values = w.value("getelementptr ptr, ptr %args, i64 %nargs")
    for i in range(1 if kind == "hessian" else 2):
        match_one(
            w, w.call("PyTuple_GetItem", "%kwnames", str(i)), w.field(values, 8 * i), kind, forward
        )
        w.do(f"br i1 {w.value(f'icmp eq i64 {size}, {i + 1}')}, label %{ready}, label %more.{i}")
        w.label(f"more.{i}")
    w.do("br label %mismatch")
    w.label(ready)
    w.require(w.value("load i1, ptr %ours.at"))
    w.do(f"%forward = load i1, ptr %{forward}")


def match_one(w: Writer, keyword: str, value: str, kind: str, forward: str) -> None:
    """One keyword and its value."""
    wrt, mode, done = w.fresh("wrt"), w.fresh("mode"), w.fresh("keyword")
    is_wrt = w.value(f"icmp eq ptr {keyword}, {w.slot('keyword')}")
    w.do(f"br i1 {is_wrt}, label %{wrt}, label %{mode if kind == 'jacobian' else 'mismatch'}")
    w.label(wrt)
    names, places = w.slot("names"), w.slot("positions")
    by_name = w.value(f"icmp eq ptr {value}, {w.call('PyTuple_GetItem', names, '0')}")
    by_place = w.value(f"icmp eq ptr {value}, {w.call('PyTuple_GetItem', places, '0')}")
    w.require(w.value(f"or i1 {by_name}, {by_place}"))
    w.do("store i1 true, ptr %ours.at")
    w.do(f"br label %{done}")
    if kind == "jacobian":
        w.label(mode)
        named = w.slot("mode")
        w.require(w.value(f"icmp eq ptr {keyword}, {w.call('PyTuple_GetItem', named, '0')}"))
        w.require(w.value(f"icmp eq ptr {value}, {w.call('PyTuple_GetItem', named, '1')}"))
        w.do(f"store i1 true, ptr %{forward}")
        w.do(f"br label %{done}")
    w.label(done)


def matrix(
    w: Writer, plan: EntryPlan, kind: str, boxes: Boxes, primals: Sequence[str], given: list[str]
) -> None:
    """The rest of an entry: `given` are the kernel's operands for the arguments."""
    (position,), lanes = plan.wrt, plan.directions
    primal = primals[position]
    key = plan.keys[position]
    assert isinstance(key, ArrayKey)
    at = w.field(primal, ARRAY_EXTENTS)
    extents = [w.field(at, 8 * d, "i64") for d in range(key.rank)]
    n = product(w, extents)
    w.require(w.value(f"icmp sgt i64 {n}, 0"))
    w.require(w.value(f"icmp ult i64 {n}, {FEW // lanes}"))
    along = fresh_like(w, plan, boxes, primal, position, False, lanes)
    operands, cleared = list(given), list[tuple[str, int]]()
    seconds: dict[int, str] = {}
    if kind == "hessian":
        seconds = fresh_seconds(w, plan, boxes, primals)
        shadows = shadow_objects(w, plan, "hvp", boxes, list(primals), seconds)
        for p, shadow in shadows.items():
            operands += shadow_operands(w, plan, p, shadow)
        operands += cotangent_operands(w, plan, "hvp", 0)
        cleared += [(seconds[p], lanes) for p in seconds if p not in plan.tangents.filled]
        cleared += [
            (shadow, 1)
            for p, shadow in shadows.items()
            if p not in plan.gradient.filled and shadow is not seconds[p]
        ]
    moving = [seconds[p] if of == "shadow" else along for of, p in plan.tangents.moving]
    operands += tangent_operands(w, plan, moving)[0]
    place = len(boxes.made)
    boxes.put("null", place)
    boxes.made.append("")
    if kind == "hessian":
        whole = w.value(f"alloca [{2 * key.rank} x i64]")
        for d, extent in enumerate((*extents, *extents)):
            w.store("i64", extent, whole, 8 * d)
        boxes.put(like(w, primal, whole, 2 * key.rank, is_diagonal(plan, kind)), place)
        w.require(w.value(f"icmp ne ptr {w.field('%made', 8 * place)}, null"), "failed")
    size = ITEM_SIZE[key.dtype]

    w.do("%first.at = alloca i64")
    w.do("store i64 0, ptr %first.at")
    w.do("br label %columns")
    w.label("columns")
    first = w.value("load i64, ptr %first.at", "first")
    w.do(f"br i1 {w.value(f'icmp slt i64 {first}, {n}')}, label %some, label %all")
    w.label("some")
    rest = w.value(f"sub i64 {n}, {first}")
    fewer = w.value(f"icmp slt i64 {rest}, {lanes}")
    count = w.value(f"select i1 {fewer}, i64 {rest}, i64 {lanes}", "count")
    data = w.field(along, ARRAY_DATA)
    type_ = LLVM_TYPE[key.dtype]
    units = f"ptr {data}, i64 {first}, i64 {count}, i64 {lanes}"
    at_once = is_diagonal(plan, kind)
    if at_once:
        steps = f"ptr {data}, i64 {n}, i64 {lanes}"
        w.do(f"call void @mutad_set_{size}({steps}, ptr {one_at(w, type_)}, i64 0)")
    else:
        w.do(f"call void @mutad_units_{size}({units}, {type_} 1.0)")
    for obj, many in cleared:
        bytes_ = w.value(f"mul i64 {n}, {size * many}")
        w.do(
            f"call void @llvm.memset.p0.i64(ptr {w.field(obj, ARRAY_DATA)}, i8 0, i64 {bytes_}, i1 false)"
        )
    run_kernel(w, operands, recursive=plan.recursive, retries=True)
    if kind == "hessian":
        source, rows, item = w.field(seconds[position], ARRAY_DATA), n, size
    else:
        source, rows, item = tangents_of_result(w, plan, boxes, place, primal, extents, n)
    target = w.field(w.field("%made", 8 * place), ARRAY_DATA)
    if at_once:
        step = w.value(f"add i64 {n}, 1")
        to = f"ptr {target}, i64 {n}, i64 {step}"
        w.do(f"call void @mutad_set_{size}({to}, ptr {source}, i64 {lanes})")
    else:
        w.do(
            f"call void @mutad_columns_{item}(ptr {target}, ptr {source}, i64 {rows}, i64 {n}, "
            f"i64 {first}, i64 {count}, i64 {lanes})"
        )
    if boxes.pending:
        forget(w, boxes)
    if not at_once:
        w.do(f"call void @mutad_units_{size}({units}, {type_} 0.0)")
    done = n if at_once else w.value(f"add i64 {first}, {lanes}")
    w.do(f"store i64 {done}, ptr %first.at")
    w.do("br label %columns")
    w.label("all")
    boxes.made[place] = w.field("%made", 8 * place, hint="matrix")
    boxes.finish(boxes.made[place])
    endings(w, boxes, plan.inputs, retries=True)


def is_diagonal(plan: EntryPlan, kind: str) -> bool:
    """Whether a matrix has nothing but its diagonal, a Jacobian if it is as high as it is wide."""
    (position,), dot = plan.wrt, plan.tangents.more[0]
    key = plan.keys[position]
    assert isinstance(key, ArrayKey)
    alike = kind == "hessian" or (dot["dtype"], dot["rank"]) == (key.dtype, key.rank)
    return plan.tangents.diagonal and alike


def one_at(w: Writer, type_: str) -> str:
    """Where a 1.0 is."""
    at = w.value(f"alloca {type_}")
    w.do(f"store {type_} 1.0, ptr {at}")
    return at


def like(w: Writer, primal: str, shape: str, rank: int, zero: bool = False) -> str:
    """A new array of this shape, with an argument's type of elements: anything, or zeros."""
    dtype = w.field(primal, ARRAY_DTYPE)
    w.call("Py_IncRef", dtype)
    return new_array(w, "PyArray_Zeros" if zero else "PyArray_Empty", rank, shape, dtype, "0")


def tangents_of_result(
    w: Writer,
    plan: EntryPlan,
    boxes: Boxes,
    place: int,
    primal: str,
    extents: Sequence[str],
    n: str,
) -> tuple[str, str, int]:
    """Where the tangents of the result lie, how many there are of each, and how large each is.

    The first run says how large the matrix is. Where columns are more than rows, rows are better.
    """
    value, dot, key = plan.results, plan.tangents.more[0], plan.keys[plan.wrt[0]]
    assert isinstance(key, ArrayKey)
    boxes.claim((value, dot), {})
    slot, rank = slot_count(value), dot["rank"]
    shape = [w.field("%results", 8 * (slot + 1 + d), "i64") for d in range(rank)]
    steps = [w.field("%results", 8 * (slot + 1 + rank + d), "i64") for d in range(rank)]
    rows = "1"
    for extent, step in zip(reversed(shape), reversed(steps), strict=True):
        w.require(w.value(f"icmp eq i64 {step}, {rows}"), "retry")
        rows = w.value(f"mul i64 {rows}, {extent}")
    if is_diagonal(plan, "jacobian"):
        for extent, own in zip(shape, extents, strict=True):
            w.require(w.value(f"icmp eq i64 {extent}, {own}"), "retry")
    enough = w.value(f"icmp sge i64 {rows}, {n}")
    w.require(w.value(f"or i1 {enough}, %forward"), "retry")
    make, made = w.fresh("make"), w.fresh("made")
    missing = w.value(f"icmp eq ptr {w.field('%made', 8 * place)}, null")
    w.do(f"br i1 {missing}, label %{make}, label %{made}")
    w.label(make)
    whole = w.value(f"alloca [{rank + len(extents)} x i64]")
    for d, extent in enumerate((*shape, *extents)):
        w.store("i64", extent, whole, 8 * d)
    if dot["dtype"] == key.dtype:
        fresh = like(w, primal, whole, rank + len(extents), is_diagonal(plan, "jacobian"))
    else:
        fresh = new(w, dot["dtype"], rank + len(extents), whole, "null", "null", "0")
    boxes.put(fresh, place)
    w.require(w.value(f"icmp ne ptr {fresh}, null"), "failed")
    w.do(f"br label %{made}")
    w.label(made)
    return w.field("%results", 8 * slot), rows, ITEM_SIZE[dot["dtype"]]


def forget(w: Writer, boxes: Boxes) -> None:
    """Give back the arrays of one run."""
    count = len(boxes.pending)
    w.do(f"call void @{undo_function(boxes.driver)}(ptr %pending, i64 {count}, ptr null, i64 0)")
    w.do(f"store [{count} x i64] zeroinitializer, ptr %pending")


def filling(plan: EntryPlan) -> list[str]:
    """The functions that entries of matrices call."""
    key = plan.keys[plan.wrt[0]]
    assert isinstance(key, ArrayKey)
    size, type_ = ITEM_SIZE[key.dtype], LLVM_TYPE[key.dtype]
    item = ITEM_SIZE[plan.results["dtype"]] if plan.mode == "tangent" else size
    memset = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
    return [memset, units(size, type_), columns(item), set_function(size)]


def set_function(size: int) -> str:
    """`target[i * step] = source[i * other]` for so many numbers."""
    return f"""define internal void @mutad_set_{size}(
    ptr %target, i64 %numbers, i64 %step, ptr %source, i64 %other) {COLD}{{
entry:
  br label %number
number:
  %i = phi i64 [ 0, %entry ], [ %i.next, %number ]
  %from = mul i64 %i, %other
  %to = mul i64 %i, %step
  %from.at = getelementptr i{8 * size}, ptr %source, i64 %from
  %to.at = getelementptr i{8 * size}, ptr %target, i64 %to
  %value = load i{8 * size}, ptr %from.at, align {size}
  store i{8 * size} %value, ptr %to.at, align {size}
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %numbers
  br i1 %more, label %number, label %done
done:
  ret void
}}"""


def units(size: int, type_: str) -> str:
    """`along[first + k, k] = number`, for so many lanes."""
    return f"""define internal void @mutad_units_{size}(
    ptr %along, i64 %first, i64 %count, i64 %lanes, {type_} %number) {COLD}{{
entry:
  br label %lane
lane:
  %k = phi i64 [ 0, %entry ], [ %k.next, %lane ]
  %row = add i64 %first, %k
  %start = mul i64 %row, %lanes
  %at = add i64 %start, %k
  %place = getelementptr {type_}, ptr %along, i64 %at
  store {type_} %number, ptr %place
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %count
  br i1 %more, label %lane, label %done
done:
  ret void
}}"""


def columns(size: int) -> str:
    """`matrix[i, first + k] = beside[i, k]`, for all rows and so many lanes."""
    return f"""define internal void @mutad_columns_{size}(
    ptr noalias %matrix, ptr noalias %beside, i64 %rows, i64 %width, i64 %first, i64 %count, i64 %lanes)
    {COLD}{{
entry:
  %any = icmp sgt i64 %rows, 0
  br i1 %any, label %row, label %done
row:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row.end ]
  %start = mul i64 %i, %width
  %column = add i64 %start, %first
  %from.row = mul i64 %i, %lanes
  %full = icmp eq i64 %count, 8
  %from = getelementptr i{8 * size}, ptr %beside, i64 %from.row
  %to = getelementptr i{8 * size}, ptr %matrix, i64 %column
  br i1 %full, label %whole, label %lane
whole:
  %eight = load <8 x i{8 * size}>, ptr %from, align {size}
  store <8 x i{8 * size}> %eight, ptr %to, align {size}
  br label %row.end
lane:
  %k = phi i64 [ 0, %row ], [ %k.next, %lane ]
  %from.at = getelementptr i{8 * size}, ptr %from, i64 %k
  %to.at = getelementptr i{8 * size}, ptr %to, i64 %k
  %number = load i{8 * size}, ptr %from.at, align {size}
  store i{8 * size} %number, ptr %to.at, align {size}
  %k.next = add i64 %k, 1
  %k.more = icmp slt i64 %k.next, %count
  br i1 %k.more, label %lane, label %row.end
row.end:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %rows
  br i1 %i.more, label %row, label %done
done:
  ret void
}}"""

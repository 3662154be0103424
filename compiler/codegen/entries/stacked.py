"""Several directions of one call: users stack them along a first axis, kernels take them side by side.

::

    tangents={"u": u_dots}, batch=8          u_dots[k, i]  ->  beside[i, k], a vector for each i
    ...                                      the kernel
    the tangents of a result                 beside[i, k], seen as [k, i]
    u_dots, where the function stores to u   beside[i, k]  ->  u_dots[k, i]

Those of a `BatchDuplicated` lie side by side already: nothing is turned where a flag says so (`beside`). An
entry turns stacks of few numbers, without gaps; Python code does all others (`runtime/lane_copies.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...argument_keys import ArrayKey, ScalarKey
from .guard import ArrayValue, unpack_array
from .result import Boxes
from .shadows import new_array
from .writer import ARRAY_DATA, ARRAY_DTYPE, ARRAY_EXTENTS, ITEM_SIZE, Writer

FEW = 1 << 14
"""More numbers are for Python code: it turns blocks of eight times eight in registers, takes large directions
in turn, and has memory for products that are zero."""


def stack_of(
    w: Writer,
    key: ArrayKey | ScalarKey,
    obj: str,
    extents: Sequence[str],
    lanes: int,
    beside: str,
    *,
    written: bool,
) -> ArrayValue:
    """Check an array of as many directions as there are lanes, of what has these extents; of few numbers.

    `beside` says whether they are along the last axis, not the first: the flag, or "" where they never are.
    """
    own = ArrayKey("f64", (), "C") if isinstance(key, ScalarKey) else key
    first = (str(lanes), *extents)
    anything = ("",) * len(first)
    stacked = replace(own, extents=anything, layout="C", read_only=False, lanes=1)
    found = unpack_array(w, stacked, obj, written=written)
    last = (*extents, str(lanes))
    for extent, one, other in zip(found.extents, first, last, strict=True):
        wanted = w.value(f"select i1 {beside}, i64 {other}, i64 {one}") if beside else one
        w.require(w.value(f"icmp eq i64 {extent}, {wanted}"))
    w.require(w.value(f"icmp ult i64 {product(w, found.extents)}, {FEW}"))
    return replace(found, extents=first)


def turned(w: Writer, boxes: Boxes, stack: ArrayValue, beside: str) -> str:
    """The directions of an array side by side: in a new one, or as they are where the flag says so."""
    if not beside:
        return boxes.keep(turned_anew(w, boxes, stack))
    given, turn_, ready, end = (w.fresh(name) for name in ("given", "turn", "ready", "end"))
    w.do(f"br i1 {beside}, label %{given}, label %{turn_}")
    w.label(given)
    w.call("Py_IncRef", stack.object)
    w.do(f"br label %{ready}")
    w.label(turn_)
    made = turned_anew(w, boxes, stack)
    w.do(f"br label %{end}")
    w.label(end)
    w.do(f"br label %{ready}")
    w.label(ready)
    return boxes.keep(
        w.value(f"phi ptr [ {stack.object}, %{given} ], [ {made}, %{end} ]", "beside")
    )


def turned_anew(w: Writer, boxes: Boxes, stack: ArrayValue) -> str:
    """A new array of them, without other references."""
    lanes, *extents = stack.extents
    count, rank = product(w, extents), len(extents)
    dtype, given = (w.field(stack.object, at) for at in (ARRAY_DTYPE, ARRAY_EXTENTS))
    own = w.value(f"getelementptr i8, ptr {given}, i64 8")
    w.call("Py_IncRef", dtype)
    shape = boxes.with_last(own, rank, lanes)
    beside = new_array(w, "PyArray_Empty", rank + 1, shape, dtype, "0")
    w.require(w.value(f"icmp ne ptr {beside}, null"), "failed")
    turn(w, stack, w.field(beside, ARRAY_DATA), stack.data, count, lanes)
    return beside


def turned_back(w: Writer, stored: Sequence[tuple[ArrayValue, str]], beside: str) -> None:
    """Put directions that lie side by side back into their stacks, unless the flag says that these do."""
    if not stored:
        return
    back, done = w.fresh("back"), w.fresh("back.again")
    w.do(f"br i1 {beside}, label %{done}, label %{back}")
    w.label(back)
    for stack, moved in stored:
        lanes, *extents = stack.extents
        count = product(w, extents)
        turn(w, stack, stack.data, w.field(moved, ARRAY_DATA), lanes, count)
    w.do(f"br label %{done}")
    w.label(done)


def turn(w: Writer, like: ArrayValue, target: str, source: str, rows: str, columns: str) -> None:
    """`target[i, j] = source[j, i]`, of so many rows and columns of the target."""
    size = ITEM_SIZE[like.key.dtype]
    operands = f"ptr {target}, ptr {source}, i64 {rows}, i64 {columns}"
    w.do(f"call void @mutad_turned_{size}({operands})")


def product(w: Writer, extents: Sequence[str]) -> str:
    count = "1"
    for extent in extents:
        count = w.value(f"mul i64 {count}, {extent}")
    return count


def turning(_symbols: dict[str, str]) -> str:
    """The functions that `turn` calls, for each size of numbers: of the library (`support`)."""
    parameters = "ptr noalias %to, ptr noalias %from, i64 %rows, i64 %columns"
    return "\n".join(
        f"""define internal void @mutad_turned_{size}({parameters}) noinline nounwind optsize {{
entry:
  %some = icmp sgt i64 %rows, 0
  %more = icmp sgt i64 %columns, 0
  %any = and i1 %some, %more
  br i1 %any, label %row, label %done
row:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row.end ]
  %start = mul i64 %i, %columns
  br label %column
column:
  %j = phi i64 [ 0, %row ], [ %j.next, %column ]
  %from.row = mul i64 %j, %rows
  %from.i = add i64 %from.row, %i
  %from.at = getelementptr i{8 * size}, ptr %from, i64 %from.i
  %to.i = add i64 %start, %j
  %to.at = getelementptr i{8 * size}, ptr %to, i64 %to.i
  %number = load i{8 * size}, ptr %from.at, align {size}
  store i{8 * size} %number, ptr %to.at, align {size}
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %columns
  br i1 %j.more, label %column, label %row.end
row.end:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %rows
  br i1 %i.more, label %row, label %done
done:
  ret void
}}"""
        for size in (4, 8)
    )

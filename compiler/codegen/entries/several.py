"""The arrays of several tangents that an entry returns: of numbers, and of arrays along a first axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .writer import (
    ALIGNED,
    ARRAY_DATA,
    ARRAY_EXTENTS,
    ARRAY_FLAGS,
    ARRAY_STRIDES,
    ITEM_SIZE,
    LLVM_TYPE,
    TYPE_NUMBERS,
    WRITEABLE,
    Writer,
)

if TYPE_CHECKING:
    from .result import Boxes


def as_the_flag_says(boxes: Boxes, dtype: str, rank: int, beside: str) -> str:
    """The array itself where the flag of `boxes` says that lanes stay side by side, else a view of it."""
    w, index = boxes.w, len(boxes.made)
    given, turn, end, ready = (w.fresh(name) for name in ("given", "turn", "end", "ready"))
    w.do(f"br i1 {boxes.beside}, label %{given}, label %{turn}")
    w.label(given)
    w.call("Py_IncRef", beside)
    boxes.put(beside, index)
    w.do(f"br label %{ready}")
    w.label(turn)
    seen = boxes.keep(seen_lanes_first(w, dtype, rank, beside))
    boxes.view(seen, beside)
    w.do(f"br label %{end}")
    w.label(end)
    w.do(f"br label %{ready}")
    w.label(ready)
    boxes.made[index] = w.value(f"phi ptr [ {beside}, %{given} ], [ {seen}, %{end} ]", "dot")
    return boxes.made[index]


def seen_lanes_first(w: Writer, dtype: str, rank: int, beside: str) -> str:
    """A new array object on the memory of one whose last axis is its first: null where there is no memory."""
    shown: list[str] = []
    for at in (ARRAY_EXTENTS, ARRAY_STRIDES):
        numbers, moved = w.field(beside, at), w.value(f"alloca [{rank + 1} x i64]")
        for k in range(rank + 1):
            old = rank if k == 0 else k - 1
            w.store("i64", w.field(numbers, 8 * old, "i64"), moved, 8 * k)
        shown.append(moved)
    flags = w.value(f"and i32 {w.field(beside, ARRAY_FLAGS, 'i32')}, {ALIGNED | WRITEABLE}")
    return new(w, dtype, rank + 1, shown[0], shown[1], w.field(beside, ARRAY_DATA), flags)


def new_numbers(w: Writer, dtype: str, count: int) -> str:
    """A new array object of so many numbers, with memory of its own."""
    shape = w.value("alloca i64")
    w.do(f"store i64 {count}, ptr {shape}")
    return new(w, dtype, 1, shape, "null", "null", "0")


def fill_numbers(w: Writer, dtype: str, count: int, obj: str, address: str) -> None:
    """Fill it with what is stored at `address`, in words of eight bytes; with zeros where there is none."""
    data, type_ = w.field(obj, ARRAY_DATA), LLVM_TYPE[dtype]
    for k in range(count):
        number = w.field(address, 8 * k, type_) if address else "0.0"
        w.store(type_, number, data, ITEM_SIZE[dtype] * k)


def new(w: Writer, dtype: str, rank: int, extents: str, strides: str, data: str, flags: str) -> str:
    number = str(TYPE_NUMBERS[dtype][0])
    kind = w.object("mutad_numpy_ndarray")
    operands = kind, str(rank), extents, number, strides, data, "0", flags, "null"
    return w.call("PyArray_New", *operands)

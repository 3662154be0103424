"""What changes how many items a list has, and where they are: append, insert, pop, delete, reverse."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....dialects import array
from .. import scalars
from ..emitter import Emitter
from ..joins import ArrayT, ChoiceT, Maybe, Template, TupleT, rebuilt
from ..values import Array, Scalar, Value
from .lists import (
    ASSIGN_OUT_OF_RANGE,
    POP_FROM_EMPTY,
    POP_OUT_OF_RANGE,
    Growth,
    ListObject,
    as_numbers,
    buffers_of,
    copy,
    counted,
    extents_of,
    leaves_of,
    length,
    load_item,
    load_number,
    place,
    ready,
    set_length,
    store_item,
    views,
)


def grow(e: Emitter, seq: ListObject, n: SSAValue, amount: SSAValue) -> None:
    """The length becomes `n + amount`, after the items are there; MemoryError where there is no room."""
    more = e.emit(arith.AddiOp(n, amount), "length")
    if seq.memory is not None:
        seq.memory.reserve(e, more)
        set_length(e, seq, more)
        return
    ready(e, seq)
    full: SSAValue | None = None
    for limit in dict.fromkeys(extents_of(e, b)[0] for b in seq.buffers):
        test = e.emit(arith.CmpiOp(more, limit, "ugt"))
        full = test if full is None else e.emit(arith.OrIOp(full, test))
    if full is None:
        set_length(e, seq, more)
        return
    check = e.put(array.RaiseIfOp(full, "MemoryError", ""))
    store = set_length(e, seq, more)
    seq.growths.append(Growth(store, amount, check))


def append(e: Emitter, seq: ListObject, value: Value) -> None:
    n = length(e, seq).ssa
    grow(e, seq, n, e.index(1))
    store_item(e, seq, n, value, last=True)


def are_alike(a: Template, b: Template) -> bool:
    """True where the numbers of items of one form are those of the other, but for their types."""
    match a, b:
        case TupleT(xs), TupleT(ys):
            return len(xs) == len(ys) and all(map(are_alike, xs, ys))
        case ChoiceT(), ChoiceT():
            return a == b
        case _:
            return type(a) is type(b)


def append_columns(
    e: Emitter, seq: ListObject, form: Template, sources: Sequence[Array], count: SSAValue
) -> None:
    """Append `count` items of a form, the numbers of which are in arrays."""
    assert seq.item is not None
    if are_alike(seq.item, form):
        extend(e, seq, sources, count)
        return
    with counted(e, count) as i:
        pairs = zip(leaves_of(form), sources, strict=True)
        numbers = [
            load_number(e, leaf, source.memref, i)
            for leaf, source in pairs
            if not isinstance(leaf, ArrayT)
        ]
        item = rebuilt(form, iter(numbers))
        assert not isinstance(item, Maybe)
        append(e, seq, item)


def extend(e: Emitter, seq: ListObject, sources: Sequence[Array], count: SSAValue) -> None:
    """Append `count` items, the numbers of which are in arrays: one map for each."""
    n = length(e, seq).ssa
    grow(e, seq, n, count)
    one = e.index(1)
    for buffer, source in zip(buffers_of(e, seq), sources, strict=True):
        target = e.emit(array.ViewOp(buffer, [n], [0], [count], [one]))
        copy(e, source, target)


def shift(e: Emitter, seq: ListObject, first: SSAValue, last: SSAValue, *, up: bool) -> None:
    """Move the items from `first` to `last - 1` by one place, towards the end where `up`."""
    one = e.index(1)
    count = e.emit(arith.SubiOp(last, first))
    seq = as_numbers(seq)
    with counted(e, count) as i:
        if up:
            source = e.emit(arith.SubiOp(e.emit(arith.SubiOp(last, one)), i))
            target = e.emit(arith.AddiOp(source, one))
        else:
            source = e.emit(arith.AddiOp(first, i))
            target = e.emit(arith.SubiOp(source, one))
        store_item(e, seq, target, load_item(e, seq, source))


def pop(e: Emitter, seq: ListObject, index: Scalar | None) -> Value:
    n = length(e, seq)
    seq.shrinks = True
    scalars.raise_where(e, n, "Eq", 0, ("IndexError", POP_FROM_EMPTY))
    last = e.emit(arith.SubiOp(n.ssa, e.index(1)), "length")
    if index is None or index.constant == -1:
        value = load_item(e, seq, last)
    else:
        at = place(e, index, n.ssa, POP_OUT_OF_RANGE)
        value = load_item(e, seq, at)
        shift(e, seq, e.emit(arith.AddiOp(at, e.index(1))), n.ssa, up=False)
    set_length(e, seq, last)
    return value


def delete(e: Emitter, seq: ListObject, index: Scalar) -> None:
    n = length(e, seq)
    seq.shrinks = True
    at = place(e, index, n.ssa, ASSIGN_OUT_OF_RANGE)
    shift(e, seq, e.emit(arith.AddiOp(at, e.index(1))), n.ssa, up=False)
    set_length(e, seq, e.emit(arith.SubiOp(n.ssa, e.index(1)), "length"))


def insert(e: Emitter, seq: ListObject, index: Scalar, value: Value) -> None:
    """`l.insert(index, value)`: an index out of range means the nearest end."""
    n = length(e, seq).ssa
    zero = e.index(0)
    at = index.ssa
    if index.low < 0:
        wrapped = e.emit(arith.MaxSIOp(e.emit(arith.AddiOp(at, n)), zero))
        negative = e.emit(arith.CmpiOp(at, zero, "slt"))
        at = e.emit(arith.SelectOp(negative, wrapped, at))
    at = e.emit(arith.MinSIOp(at, n))
    grow(e, seq, n, e.index(1))
    shift(e, seq, at, n, up=True)
    store_item(e, seq, at, value)


def repeat(
    e: Emitter, seq: ListObject, source: ListObject, times: Scalar, display: Sequence[Value] | None
) -> None:
    """Append the items of another list, which are those of a `display`, `times` times over."""
    n = length(e, source).ssa
    count = times.ssa if times.low >= 0 else e.emit(arith.MaxSIOp(times.ssa, e.index(0)))
    with counted(e, count):
        if display is None and source.item is not None:
            append_columns(e, seq, source.item, views(e, source, n), n)
        for item in display or ():
            append(e, seq, item)


def clear(e: Emitter, seq: ListObject) -> None:
    seq.shrinks = True
    set_length(e, seq, e.index(0))


def reverse(e: Emitter, seq: ListObject) -> None:
    """Swap the items at equal distances from the ends."""
    n = length(e, seq).ssa
    half = e.emit(arith.FloorDivSIOp(n, e.index(2)))
    seq = as_numbers(seq)
    with counted(e, half) as here:
        last = e.emit(arith.SubiOp(n, e.index(1)))
        there = e.emit(arith.SubiOp(last, here))
        a, b = load_item(e, seq, here), load_item(e, seq, there)
        store_item(e, seq, here, b)
        store_item(e, seq, there, a)

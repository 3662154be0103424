"""Lists that the caller gets: their items as a few arrays, from which the runtime makes them again.

    [(0.5, u), (1.5, v)]        ["py_float", {"array": "f64"}]      array([0.5, 1.5]), array([u, v])
    [[1.0], [2.0, 3.0]]         {"rows": "py_float", ...}           array([1, 2]), array([1.0, 2.0, 3.0])
    [P(0.5), P(1.5)]            {"object": P, "names": ["x"], ...}  array([0.5, 1.5])

The *form* says what one item is; there is one array for each number or array of an item, with an axis more,
whatever the length (`mutad.runtime.columns` reads it). Each array in the list is one of its own then. Whether
it is that in Python, too, `refuse_shared_rows` asks: an array that the caller has already, or finds in the
result twice, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ....dialects import array
from ...diagnostics import CompileError, Span
from .. import library
from ..bindings.roots import roots, writes
from ..emitter import Emitter
from ..joins import ArrayT, FixedT, ListT, ScalarT, Template, TupleT
from ..values import Array, NoneValue, Static
from . import lists
from .list_methods import Lists
from .list_rows import Copies
from .lists import ListObject, RowCopy
from .nested_lists import LENGTHS, OFFSETS, load_number, part, pools_of
from .references import reference

if TYPE_CHECKING:
    from ..context import Rebinding

Form = Any


def columns(
    lowering: Lists, seq: ListObject, *, copied: bool = True
) -> tuple[Form | None, list[Array]]:
    """The form of the items, and their arrays: copies, or the list's own memory."""
    if seq.item is None:
        seq.read_untyped = True
        return None, []
    form = form_of(lowering, seq, seq.item)
    if isinstance(seq.item, ListT):
        return form, rows(lowering, seq, seq.item, copied=copied)
    views = lists.views(lowering.e, seq)
    if not views:
        raise lowering.refusal(
            None, "a list whose items hold no numbers is returned", "return their number"
        )
    return form, own(lowering, views) if copied else views


def own(lowering: Lists, views: list[Array]) -> list[Array]:
    copies = [library.call(lowering.e, np.copy, [view], {}) for view in views]
    return [c for c in copies if isinstance(c, Array)]


def form_of(lowering: Lists, seq: ListObject, t: Template) -> Form:
    match t:
        case ScalarT(type_):
            return type_
        case ArrayT(_, dtype):
            return {"array": dtype}
        case ListT(None):
            return {"rows": None, "even": False}
        case ListT(item) if item is not None:
            return {"rows": form_of(lowering, seq, item), "even": not seq.ragged}
        case TupleT(items, cls, names):
            inner = [form_of(lowering, seq, item) for item in items]
            if names is not None:
                return {"object": reference(cls), "names": list(names), "items": inner}
            return inner if cls is None else {"tuple": reference(cls), "items": inner}
        case FixedT(NoneValue()):
            return {"static": reference(None)}
        case FixedT(Static(str() as text)):
            return {"static": reference(text)}
        case _:
            raise lowering.refusal(
                None,
                "a list of such items is returned",
                "return lists of numbers, arrays, lists, tuples and objects of them",
            )


# Lists of lists.


def rows(lowering: Lists, seq: ListObject, item: ListT, *, copied: bool) -> list[Array]:
    """Of lists of one length the tables of their numbers; else their lengths, and the numbers of all of them,
    one list behind the other."""
    e = lowering.e
    if item.item is not None and not seq.ragged:
        views = lists.views(e, seq)
        return own(lowering, views) if copied else views
    count = lists.length(e, seq).ssa
    lengths = library.allocate(e, [count], "i64")
    if item.item is None and not seq.ragged:
        return [filled(e, lengths)]
    kept = lists.buffers_of(e, seq)[LENGTHS]
    lists.copy(e, Array(part(e, kept, e.index(0), count), "i64"), lengths.memref)
    if item.item is None:
        return [lengths]
    total, end = e.cell(IndexType(), "total"), e.cell(IndexType(), "end")
    for cell in (total, end):
        e.store(e.index(0), cell)
    for_each(e, count, lambda k: advance(e, total, load_number(e, seq, LENGTHS, k)))
    pools, size = pools_of(e, seq), e.load(total)
    flat = [
        library.allocate(e, [size], lists.dtype_of_leaf(leaf))
        for leaf in lists.leaves_of(item.item)
    ]

    def move(k: SSAValue) -> None:
        n, offset = load_number(e, seq, LENGTHS, k), load_number(e, seq, OFFSETS, k)
        at = e.load(end)
        for pool, target in zip(pools, flat, strict=True):
            lists.copy(e, Array(part(e, pool, offset, n), ""), part(e, target.memref, at, n))
        advance(e, end, n)

    for_each(e, count, move)
    return [lengths, *flat]


def filled(e: Emitter, lengths: Array) -> Array:
    """Zeros: the lengths of lists that are all empty."""
    zeros = library.call(e, np.zeros_like, [lengths], {})
    assert isinstance(zeros, Array)
    return zeros


def for_each(e: Emitter, count: SSAValue, do: Callable[[SSAValue], None]) -> None:
    loop, body = lists.counted(count)
    with e.at(body):
        do(body.args[0])
        e.insert(array.YieldOp())
    e.insert(loop)


def advance(e: Emitter, cell: SSAValue, by: SSAValue) -> None:
    e.store(e.emit(arith.AddiOp(e.load(cell), by)), cell)


# What else is that array.


def refuse_shared_rows(
    e: Emitter,
    handed_out: Collection[ListObject],
    returned: Collection[Array],
    rebindings: Collection[Rebinding],
    order: dict[Operation, int],
    outermost: Callable[[Operation, frozenset[SSAValue]], Operation],
) -> None:
    """Refuse the arrays in lists that the caller gets which are, in Python, arrays that it has besides."""
    others = {r for a in returned for r in roots(e, a.memref)}
    own = [op for r in rebindings for op in r.copies]
    copies = Copies(e, [one for seq in handed_out for one in seq.copies], own)
    found = list[tuple[frozenset[SSAValue], frozenset[SSAValue]]]()
    for one in (one for one in copies.rows if one.at in order):
        arrays = copies.of_row[one]
        start = outermost(one.at, arrays)
        if start is not one.at:
            earlier = before_rebinding(e, one, start, arrays, rebindings, order)
            if earlier is None:
                refuse(one.span, "each iteration puts the same array in a list that is returned")
            arrays |= earlier
        if any(isinstance(r, BlockArgument) for r in arrays):
            refuse(one.span, "an array of the caller is put in a list that is returned")
        anywhere = arrays | copies.elsewhere(one)
        if anywhere & others or any(arrays & b or a & anywhere for a, b in found):
            refuse(
                one.span, "this array is put in a list that is returned, and is in the result twice"
            )
        found.append((arrays, anywhere))


def before_rebinding(
    e: Emitter,
    one: RowCopy,
    loop: Operation,
    arrays: frozenset[SSAValue],
    rebindings: Collection[Rebinding],
    order: dict[Operation, int],
) -> frozenset[SSAValue] | None:
    """The arrays besides new ones that a variable is where each iteration puts it in a list: none after it
    has been bound anew, else what it is before the loop. None where an iteration may not bind it anew."""
    for r in rebindings:
        mine = roots(e, r.buffer)
        if r.trips is None or r.trips.owner is not loop or mine != arrays:
            continue
        inside = [op for op in order if is_directly_in(op, loop) and op is not one.at]
        bound = (op for op in inside if any(mine & roots(e, w) for w in writes(op)))
        if any(order[op] < order[one.at] for op in bound):
            return frozenset()
        return roots(e, r.initial)
    return None


def is_directly_in(op: Operation, loop: Operation) -> bool:
    return op.parent is not None and op.parent.parent_op() is loop


def refuse(span: Span | None, what: str) -> NoReturn:
    raise CompileError(span, what, "append a copy: .append(x.copy())")

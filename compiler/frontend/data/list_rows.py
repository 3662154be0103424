"""Arrays as items of lists: rows of one buffer that has an axis more.

    states = [u.copy()]             %states = array.alloc(%limit, %n) {growable}
                                    %row = array.view %states[%len, 0] ...         filled with u
    states.append(np.sin(u))        the next row, which the sine is computed into

An array that was made in this block and has no name becomes the row itself; nothing is copied, and whoever
changes it changes the item. Any other is copied into the row (one with a name is mostly a loop's variable,
which a row could not be). Its other names then hold other memory, which nobody can tell as long as neither of
the two is written afterwards, or nobody looks at the array again: that is checked when the function has been
built (`refuse_visible_copies`). Where it fails, the next build makes the array a row in spite of its name.

All arrays of a list have one shape, which the first to be appended tells. Its numbers are computed where the
list's memory is made. Arrays that may have other shapes are not rows, but lie one behind the other (`pools`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ....dialects import array
from ... import rules
from ...analysis.affine import equal_numbers
from ...diagnostics import CompileError
from ..bindings.deferred_allocs import Before, Unshaped, replace_number
from ..bindings.roots import accesses, is_placeholder, roots, writes
from ..emitter import Emitter
from ..joins import ArrayT, cast
from ..library import overlap, shapes
from ..values import Array, Value
from . import list_changes, lists, pools
from .lists import Kind, ListKey, ListObject, RowCopy

OTHER_SHAPE = "mutad: the arrays of a list have different shapes"


def append(
    e: Emitter,
    seq: ListObject,
    value: Value,
    named: Collection[SSAValue],
    sharing: Collection[tuple[ListKey, int]],
    outgrown: Callable[[], NoReturn],
) -> None:
    """`l.append(value)` of a list with arrays in its items; `named` are those that have a name.

    In the appends that are `sharing`, names do not matter. An array that may have another shape than those
    before has `outgrown` the list.
    """
    lists.ready(e, seq)
    seq.appends += 1
    number = seq.key, seq.appends
    assert seq.item is not None
    parts = lists.parts_of(e, value, seq.item)
    in_place = set[SSAValue]()
    for leaf, part, buffer in zip(lists.leaves_of(seq.item), parts, seq.buffers, strict=True):
        if isinstance(leaf, ArrayT) and isinstance(part, Array):
            if not seq.uneven and not has_shape(e, seq, buffer, part.memref):
                outgrown()
            free = not seq.popped and (part.memref not in named or number in sharing)
            if free and becomes_row(e, seq, buffer, part.memref):
                in_place.add(buffer)
                note_fresh(e, seq, part.memref, named)
            elif seq.uneven:
                place_in_pool(e, seq, buffer, e.extents(part.memref))
    n = lists.length(e, seq).ssa
    list_changes.grow(e, seq, n, e.index(1))
    for buffer, op in lists.store_item(e, seq, n, value, in_place, last=True):
        copied = note_copy(e, seq, buffer, op, number, seq.kind if seq.popped else None)
        if seq.popped:
            seq.replaced.append(copied)


def place_in_pool(
    e: Emitter, seq: ListObject, buffer: SSAValue, extents: Sequence[SSAValue]
) -> SSAValue:
    """Where the next array goes, in a list of arrays of several shapes."""
    at, pool = lists.length(e, seq).ssa, seq.own_shapes[buffer]
    made, stores = pools.place(e, pool, buffer, at, extents)
    for op in stores:
        lists.appended(seq, op)
    return made


def note_fresh(e: Emitter, seq: ListObject, value: SSAValue, named: Collection[SSAValue]) -> None:
    """Note that one store makes all of an array that has become a row, where that is so."""
    made = e.became[value]
    stores = [op for op, found in seq.first_stores.items() if found is value]
    if value not in named and len(stores) == 1 and isinstance(made.owner, Operation):
        lists.appended(seq, made.owner)


def note_copy(
    e: Emitter,
    seq: ListObject,
    buffer: SSAValue,
    op: array.MapOp,
    number: tuple[ListKey, int] | None = None,
    moves: Kind | None = None,
) -> RowCopy:
    """Note that an op copies an array into a row: nobody must be able to tell (`refuse_visible_copies`)."""
    seq.first_stores[op] = None
    arrays = roots(e, op.ins[0])
    before = frozenset(w for r in arrays for w in stores_since(e, r, arrays))
    copied = RowCopy(op.ins[0], buffer, op, e.span, number, arrays, before, moves)
    seq.copies.append(copied)
    return copied


def stores_since(e: Emitter, made: SSAValue, arrays: frozenset[SSAValue]) -> Iterator[Operation]:
    """What has been stored so far to some arrays, of this round of the loops around, since one was made."""
    alloc, blocks = made.owner, {e.block, *e.around}
    if not isinstance(alloc, array.AllocOp):
        return
    op: Operation | None = alloc
    while op is not None and not isinstance(op, array.LoopOp):
        for inner in (inner for after in ops_after(op) for inner in after.walk()):
            written = writes(inner)
            if written and all(roots(e, w) <= arrays for w in written):
                yield inner
        op = None if op.parent in blocks else op.parent_op()


def ops_after(op: Operation) -> Iterator[Operation]:
    following = op.next_op
    while following is not None:
        yield following
        following = following.next_op


# Shapes.


class ShapeUnknown(CompileError):
    """A list of arrays of a shape that is not known yet where the list begins."""


class AtStart(Before):
    """Computes numbers where the memory of a list is made, in the middle of a block."""

    def is_known(self, value: SSAValue) -> bool:
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        mine = self.op.parent
        if block is mine and isinstance(value.owner, Operation):
            return value.owner.is_before_in_block(self.op)
        return block is not None and (block is mine or self.is_around(block))


def tell_shape(e: Emitter, seq: ListObject, buffer: SSAValue, like: SSAValue) -> None:
    """The rows of a buffer have the extents of `like`, the first array to be one."""
    try:
        tell_extents(e, seq, buffer, e.extents(like))
    except Unshaped:
        raise ShapeUnknown(
            e.span,
            "the shape of this array is not known where the list's memory is made",
            "make the list where the extents are known, or append slices of an array that is",
        ) from None


def has_shape(e: Emitter, seq: ListObject, buffer: SSAValue, value: SSAValue) -> bool:
    """True for an array that has the shape of the rows, certainly or where the function assumes it of its
    arguments; the first tells that shape."""
    try:
        tell_extents(e, seq, buffer, e.extents(value))
    except Unshaped:
        return False
    assert isinstance(buffer.owner, array.AllocOp)
    pairs = zip(e.extents(value), buffer.owner.extents[1:], strict=True)
    return all(equal_numbers(a, b) or shapes.agree(e, a, b) for a, b in pairs)


def tell_extents(e: Emitter, seq: ListObject, buffer: SSAValue, found: Sequence[SSAValue]) -> None:
    """The rows of a buffer have these extents, if no others are known; Unshaped where that fails."""
    unknown = seq.unknown.get(buffer)
    if unknown is None:
        return
    first = unknown[0].owner
    assert isinstance(first, Operation)
    assert first.parent is not None
    start, scratch = AtStart(e, first), Block()
    with e.at(scratch):
        extents = [start.value(n) for n in found]
        numbers = [room(e, extents), *extents]
    del seq.unknown[buffer]
    for op in list(scratch.ops):
        op.detach()
        first.parent.insert_op_before(op, first)
    for old, new in zip(unknown, numbers, strict=True):
        replace_number(e, old, new)


def room(e: Emitter, extents: Iterable[SSAValue]) -> SSAValue:
    """How many rows of these extents there are addresses for; one more is reserved."""
    size = e.index(1)
    for n in extents:
        size = e.emit(arith.MuliOp(size, n))
    at_least_one = e.emit(arith.MaxSIOp(size, e.index(1)))
    rows = e.emit(arith.FloorDivSIOp(e.index(array.UNBOUNDED), at_least_one))
    return e.emit(arith.SubiOp(rows, e.index(1)), "room")


def refuse_other_shape(e: Emitter, found: SSAValue, buffer: SSAValue) -> None:
    """NotImplementedError where an array has not the shape of the rows."""
    assert isinstance(buffer.owner, array.AllocOp)
    wrong: SSAValue | None = None
    for new, old in zip(e.extents(found), buffer.owner.extents[1:], strict=True):
        if not equal_numbers(new, old):
            differs = e.emit(arith.CmpiOp(new, old, "ne"))
            wrong = differs if wrong is None else e.emit(arith.OrIOp(wrong, differs))
    if wrong is not None:
        e.insert(array.RaiseIfOp(wrong, "NotImplementedError", OTHER_SHAPE))


# Arrays that become rows.


def becomes_row(e: Emitter, seq: ListObject, buffer: SSAValue, value: SSAValue) -> bool:
    """Let a fresh array of this block be the next row; False where it has to be copied."""
    alloc = value.owner
    if not isinstance(alloc, array.AllocOp) or not is_behind(e, alloc, buffer):
        return False
    if array.GROWABLE in alloc.attributes or is_placeholder(value) or e.catch is not None:
        return False
    since = list(ops_after(alloc))
    if any(touches(op, seq.length) for op in since) or not any(
        stores_all(op, value) for op in since
    ):
        return False
    seq.first_stores |= dict.fromkeys(stores_since(e, value, frozenset({value})), value)
    put_row(e, seq, buffer, alloc, check=True)
    return True


def is_behind(e: Emitter, alloc: array.AllocOp, buffer: SSAValue) -> bool:
    """True for memory that this block makes, where that of the list is there."""
    if alloc.parent is not e.block or not isinstance(buffer.owner, Operation):
        return False
    return buffer.owner.parent is not e.block or buffer.owner.is_before_in_block(alloc)


def becomes_row_of(e: Emitter, seq: ListObject, buffer: SSAValue, value: SSAValue) -> bool:
    """Let the memory of a list that this block has made and filled be the next row."""
    alloc = value.owner
    if not isinstance(alloc, array.AllocOp) or not is_behind(e, alloc, buffer):
        return False
    if e.catch is not None:
        return False
    if any(touches(op, seq.length) for op in ops_after(alloc)):
        return False
    put_row(e, seq, buffer, alloc, check=False)
    return True


def put_row(
    e: Emitter, seq: ListObject, buffer: SSAValue, alloc: array.AllocOp, *, check: bool
) -> None:
    """The next row in the place of fresh memory, whose shape is checked or known to be right."""
    scratch, value = Block(), alloc.memref
    assert isinstance(value.type, MemRefType)
    with e.at(scratch):
        at = lists.length(e, seq).ssa
        if seq.uneven:
            own = place_in_pool(e, seq, buffer, alloc.extents)
        else:
            own = lists.row(e, buffer, at)
        made = cast(e, own, value.type)
        seq.loaded[made] = seq.buffers.index(buffer), at
        extents = alloc.extents if check else buffer.owner.extents[1:]  # pyright: ignore
        e.dims |= {(made, d): n for d, n in enumerate(extents)}
    for op in list(scratch.ops):
        op.detach()
        e.block.insert_op_before(op, alloc)
    made.name_hint = value.name_hint or made.name_hint
    value.replace_all_uses_with(made)
    e.became[value] = made
    alloc.detach()
    alloc.erase()
    seq.became[value] = made, e.span


def touches(op: Operation, cell: SSAValue) -> bool:
    """True where the op, or one inside it, stores to a cell."""
    return any(cell in inner.operands and not inner.results for inner in op.walk())


def stores_all(op: Operation, value: SSAValue) -> bool:
    """True for an op that gives every element of an array a value, and reads none."""
    found = [a for a in rules.accesses(op) if a.memref is value]
    return (
        rules.is_whole_array(op)
        and bool(found)
        and all(a.kind == "write" and a.must for a in found)
    )


# Arrays that were copied.


def refuse_visible_copies(
    e: Emitter,
    every: Iterable[ListObject],
    order: dict[Operation, int],
    rebinding: Collection[Operation],
    outermost: Callable[[Operation, frozenset[SSAValue]], Operation],
    sharing: set[tuple[ListKey, int]],
    placed: set[Kind],
) -> bool:
    """Refuse the copies into lists that the program could tell from the arrays themselves.

    True where the next build may do without them: then they are `sharing`, or their lists `placed`.

    `order` numbers the ops of the function, of which `rebinding` are no changes of an array, and `outermost`
    finds the loop that runs again while some arrays live.
    """
    found, again = list(every), False
    copies = Copies(e, [one for seq in found for one in seq.copies], rebinding)
    first = {op: value for seq in found for op, value in seq.first_stores.items()}
    first |= dict.fromkeys(rebinding)
    for one in copies.rows:
        if one.at not in order or not is_visible(e, one, order, first, outermost, copies):
            continue
        if one.moves is not None:
            placed.add(one.moves)
            again = True
            continue
        if one.number is None or one.number in sharing or copies.is_kept(one):
            raise CompileError(
                one.span,
                "this array is put in a list, and one of the two is changed afterwards: the other would"
                " have to change with it",
                "keep bounds or an index in the list, and slice the array where they are used",
            )
        sharing.add(one.number)
        again = True
    return again


class Copies:
    """The copies that stand for arrays themselves: in rows of lists, in buffers of loops' variables."""

    def __init__(
        self, e: Emitter, rows: Sequence[RowCopy], rebinding: Collection[Operation]
    ) -> None:
        self.e, self.rows = e, rows
        self.of_row: dict[RowCopy, frozenset[SSAValue]] = {
            one: roots(e, one.source) for one in rows
        }
        self.of_name = [
            (roots(e, op.ins[0]), roots(e, op.outs[0]))
            for op in rebinding
            if isinstance(op, array.MapOp)
        ]

    def is_kept(self, one: RowCopy) -> bool:
        """True where the array lives on in a loop's variable: then it cannot become a row."""
        moved = any(array in self.e.became for array in one.arrays)
        return moved or any(source & self.of_row[one] for source, _ in self.of_name)

    def elsewhere(self, one: RowCopy) -> frozenset[SSAValue]:
        """The memory that stands for the array which `one` copies, but for that row."""
        found = self.of_row[one]
        pairs = [*self.of_name]
        for other in self.rows:
            if other is not one:
                pairs.append((self.of_row[other], roots(self.e, other.buffer)))
        while more := [t for s, t in pairs if s & found and not t <= found]:
            found = found.union(*more)
        return found


def is_visible(
    e: Emitter,
    one: RowCopy,
    order: dict[Operation, int],
    first: Mapping[Operation, SSAValue | None],
    outermost: Callable[[Operation, frozenset[SSAValue]], Operation],
    copies: Copies,
) -> bool:
    """True where somebody may see that an item is a copy.

    Stores that make a row are none to an item; but to the array that became the row, which may have been
    copied before.
    """
    elsewhere = copies.elsewhere(one)
    start = outermost(one.at, elsewhere)
    begins = order[start]

    def is_store(op: Operation) -> bool:
        if op in one.before:
            return False
        made = first.get(op)
        return op not in first or (made in one.arrays and order[op] > order[one.at])

    later = [op for op, k in order.items() if k >= begins]
    written = [w for op in later if is_store(op) for w in writes(op)]
    if any(meet(e, elsewhere, roots(e, w)) for w in written):
        return True
    row = roots(e, one.buffer)
    changes = [op for op in later if is_store(op) and any(row & roots(e, w) for w in writes(op))]
    if not changes:
        return False
    if outermost(one.at, copies.of_row[one]) is not one.at:  # several rows are one array
        return True
    since = min(order[outermost(op, elsewhere)] for op in changes)
    seen = (m for op in later if op not in first and order[op] >= since for m in accesses(op))
    return any(isinstance(r, BlockArgument) for r in elsewhere) or any(
        elsewhere & roots(e, m) for m in seen
    )


def meet(e: Emitter, a: frozenset[SSAValue], b: frozenset[SSAValue]) -> bool:
    """True when one of `a` may share memory with one of `b`."""
    return any(not overlap.distinct_roots(e, x, y) for x in a for y in b)

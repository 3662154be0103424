"""Lists whose items are lists.

    grid = [[0.0] * n for _ in range(m)]        one buffer of m rows of n numbers
    near = [[] for _ in range(m)]               a pool of numbers, in which row i has `length[i]` of them from
    near[i].append(j)                           `offset[i]` on, and room for `room[i]`; a row that is full and
                                                not the last moves to the end of the pool, with twice the room

The rows have one length as long as the program makes them of one length, known where the memory is made, and
changes none; else the next build gives each its own (`Facts.ragged`).

A list that is appended moves into the outer one, and its names with it: after `rows.append(row)`, `row` is a
name of the item. What an item is, is the outer list and the place in it (`Row`): a number, so names of rows
join at branches and loops. Rows stay where they are: nothing is inserted before them or taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import array
from ...analysis.affine import affine, equal_numbers
from ..bindings.deferred_allocs import Unshaped
from ..calling import recursion
from ..emitter import Emitter
from ..joins import ListT, Template
from ..values import Array, Item, Row, Scalar, Static, Tuple, Value
from . import list_changes, list_rows, lists
from .list_methods import Lists
from .lists import ListObject

LENGTHS, OFFSETS, ROOMS = range(3)


def load_number(e: Emitter, seq: ListObject, column: int, at: SSAValue) -> SSAValue:
    """A number that a ragged list keeps of a row."""
    loaded = e.emit(memref.LoadOp.get(lists.buffers_of(e, seq)[column], [at]))
    return e.emit(arith.IndexCastOp(loaded, IndexType()))


def store_number(e: Emitter, seq: ListObject, column: int, at: SSAValue, n: SSAValue) -> Operation:
    kept = e.emit(arith.IndexCastOp(n, i64))
    return e.insert(memref.StoreOp.get(kept, lists.buffers_of(e, seq)[column], [at]))


class EvenRow:
    """A row of a list whose rows have one length."""

    def __init__(self, outer: ListObject, at: SSAValue, outgrown: Callable[[], NoReturn]) -> None:
        self.outer, self.at, self.outgrown = outer, at, outgrown

    def length(self, e: Emitter) -> SSAValue:
        buffers = lists.buffers_of(e, self.outer)
        return e.extents(buffers[0])[1] if buffers else e.index(0)

    def set_length(self, e: Emitter, n: SSAValue) -> Operation:
        self.outgrown()

    def buffers(self, e: Emitter) -> list[SSAValue]:
        return [lists.row(e, b, self.at) for b in lists.buffers_of(e, self.outer)]

    def reserve(self, e: Emitter, n: SSAValue) -> None:
        self.outgrown()


class RaggedRow:
    """A row with a length of its own."""

    def __init__(self, outer: ListObject, at: SSAValue) -> None:
        self.outer, self.at = outer, at

    def length(self, e: Emitter) -> SSAValue:
        return load_number(e, self.outer, LENGTHS, self.at)

    def set_length(self, e: Emitter, n: SSAValue) -> Operation:
        return store_number(e, self.outer, LENGTHS, self.at, n)

    def buffers(self, e: Emitter) -> list[SSAValue]:
        offset = load_number(e, self.outer, OFFSETS, self.at)
        extent = load_number(e, self.outer, ROOMS, self.at)
        return [part(e, pool, offset, extent) for pool in pools_of(e, self.outer)]

    def reserve(self, e: Emitter, n: SSAValue) -> None:
        """Room for n items: more of it at the end of the pool, where the row moves if it is not the last."""
        outer, at = self.outer, self.at
        pools = pools_of(e, outer)
        has = load_number(e, outer, ROOMS, at)
        full = e.emit(arith.CmpiOp(n, has, "sgt"))
        block = Block()
        with e.at(block):
            end, offset = e.load(end_of(e, outer)), load_number(e, outer, OFFSETS, at)
            behind = e.emit(arith.AddiOp(offset, has))
            last = e.emit(arith.CmpiOp(behind, end, "eq"))
            twice = e.emit(arith.MaxSIOp(n, e.emit(arith.AddiOp(has, has))))
            room = e.emit(arith.SelectOp(last, n, twice))
            start = e.emit(arith.SelectOp(last, offset, end))
            moved = e.emit(arith.SelectOp(last, e.index(0), self.length(e)))
            new_end = e.emit(arith.AddiOp(start, room))
            check_room(e, new_end)
            for pool in pools:
                source = Array(part(e, pool, offset, moved), "")
                lists.copy(e, source, part(e, pool, start, moved))
            store_number(e, outer, OFFSETS, at, start)
            store_number(e, outer, ROOMS, at, room)
            e.store(new_end, end_of(e, outer))
            e.insert(scf.YieldOp())
        e.insert(scf.IfOp(full, [], Region(block), Region()))


def part(e: Emitter, pool: SSAValue, offset: SSAValue, extent: SSAValue) -> SSAValue:
    return e.emit(array.ViewOp(pool, [offset], [0], [extent], [e.index(1)]), pool.name_hint)


def check_room(e: Emitter, end: SSAValue) -> None:
    full = e.emit(arith.CmpiOp(end, e.index(array.UNBOUNDED), "ugt"))
    e.put(array.RaiseIfOp(full, "MemoryError", ""))


def end_of(e: Emitter, outer: ListObject) -> SSAValue:
    """The cell that says where the pool of a ragged list ends."""
    lists.ready(e, outer)
    if outer.pool_end is None:
        outer.pool_end = e.cell(IndexType(), "pool_end")
        put_at_start(outer, memref.StoreOp.get(e.index(0), outer.pool_end, []))
    return outer.pool_end


def pools_of(e: Emitter, outer: ListObject) -> list[SSAValue]:
    """The pools of a ragged list, one for each number of an item of its rows."""
    lists.ready(e, outer)
    assert isinstance(outer.item, ListT)
    if not outer.pools and outer.item.item is not None:
        for leaf in lists.leaves_of(outer.item.item):
            alloc = lists.growable(e, lists.dtype_of_leaf(leaf), [e.index(array.UNBOUNDED)])
            put_at_start(outer, alloc)
            outer.pools.append(alloc.memref)
    return outer.pools


def put_at_start(outer: ListObject, op: Operation) -> None:
    assert outer.start.parent is not None
    op.location = outer.start.location
    outer.start.parent.insert_op_after(op, outer.start)


class NestedLists(Lists):
    """Lowers what concerns lists in lists."""

    def row_list(self, value: Row) -> ListObject:
        """The list that is an item of another, to work with at this place of the code."""
        outer = self.list_here(value.store.key)
        assert isinstance(outer.item, ListT)

        def outgrown() -> NoReturn:
            self.facts.ragged.add(outer.key)
            raise recursion.Again

        memory = RaggedRow(outer, value.at) if outer.ragged else EvenRow(outer, value.at, outgrown)
        marker = lists.buffers_of(self.e, outer)[0] if outer.ragged else outer.length
        made = ListObject(outer.key, outer.home, self.e.block, outer.start, marker)
        made.item, made.memory, made.row = outer.item.item, memory, Row(outer, value.at)
        return made

    def moved_list(self, one: ListObject) -> ListObject:
        """The item that a list has become."""
        assert one.moved is not None
        block = one.moved.at.owner
        block = block if isinstance(block, Block) else block.parent
        if block not in self.catching.blocks():
            raise self.refusal(
                None,
                "this list has been put in another one on a path that may not have run",
                "append a copy, l.copy(), if it may be another list",
            )
        return self.row_list(one.moved)

    def learn(self, target: ListObject, template: Template) -> None:
        if target.row is None:
            super().learn(target, template)
            return
        outer = target.row.store
        super().learn(outer, ListT(lists.bare(template)))
        target.item = outer.item.item

    def without_rows(self, result: Value) -> Value:
        """What the function returns, each list that is an item of another as a list of its own.

        Nobody sees the outer list any more, so only that two of them may be the same list could be told.
        """
        found = rows_in(result)
        for k, row in enumerate(found):
            for other in found[:k]:
                apart = affine(row.at) - affine(other.at)
                if row.store == other.store and not (apart.is_constant and apart.constant):
                    raise self.refusal(
                        None,
                        "the function returns two items of one list, which may be the same",
                        "return copies, l.copy(), if they may be two lists",
                    )
        return self.with_copies(result)

    def with_copies(self, value: Value) -> Value:
        if isinstance(value, Tuple):
            return replace(value, items=tuple(map(self.with_copies, value.items)))
        if is_of_caller(value):
            return value
        if isinstance(value, Item | Row):
            self.handed_items.add(value.store.key)
        if isinstance(value, Item):
            return self.copy_of_item(value)
        seq = self.list_of(value) if isinstance(value, Row) else None
        if seq is None:
            return value
        made = self.make_list(self.frame.source.node)
        self.extend_by(made, seq)
        return Static(made)

    def same_row(self, lhs: Value, rhs: Value) -> Scalar | None:
        """`is` of lists one of which is an item of another; None for anything else."""
        a, b = self.list_of(lhs), self.list_of(rhs)
        if (a is None or a.row is None) and (b is None or b.row is None):
            return None
        if a is None or b is None or a.row is None or b.row is None or a.key != b.key:
            return self.e.constant(False, "py_bool")
        ssa = self.e.emit(arith.CmpiOp(a.row.at, b.row.at, "eq"))
        return Scalar("py_bool", ssa, None, 0, 1)

    def append_list(self, target: ListObject, value: Value) -> None:
        """`l.append(m)`: m becomes an item."""
        inner = self.list_of(value)
        if inner is None or inner.row is not None:
            self.refuse_sharing("a list that is an item already is put in a list")
        if inner.origin is not None or target.row is not None or inner.iterated:
            self.refuse_sharing("this list cannot move into another one")
        if inner.home is not self.homes[-1]:
            self.refuse_sharing("each iteration puts the same list in a list")
        self.learn(target, ListT(inner.item))
        known = target.item.item if isinstance(target.item, ListT) else None
        if known and inner.item and not list_changes.are_alike(known, inner.item):
            self.learn(inner, known)
        lists.ready(self.e, target)
        at = lists.length(self.e, target).ssa
        if target.ragged:
            self.append_ragged(target, inner, at)
        else:
            self.append_even(target, inner, at)
        inner.moved = Row(target, at)
        if not target.ragged:  # else they are still to be told their length
            inner.buffers = []

    def refuse_sharing(self, what: str) -> NoReturn:
        raise self.refusal(None, what, "append a copy, l.copy(), if it may be another list")

    def append_ragged(self, target: ListObject, inner: ListObject, at: SSAValue) -> None:
        e = self.e
        n = lists.length(e, inner).ssa
        start = e.load(end_of(e, target))
        end = e.emit(arith.AddiOp(start, n))
        check_room(e, end)
        list_changes.grow(e, target, at, e.index(1))
        for column, number in ((LENGTHS, n), (OFFSETS, start), (ROOMS, n)):
            store_number(e, target, column, at, number)
        e.store(end, end_of(e, target))
        if inner.item is not None and lists.width(inner) == len(pools_of(e, target)):
            for pool, source in zip(pools_of(e, target), lists.views(e, inner, n), strict=True):
                lists.copy(e, source, part(e, pool, start, n))

    def append_even(self, target: ListObject, inner: ListObject, at: SSAValue) -> None:
        e = self.e
        n = self.known_length(inner)
        if n is None:
            self.make_ragged(target)
        for buffer in target.buffers:
            try:
                list_rows.tell_extents(e, target, buffer, [n])
            except Unshaped:
                self.make_ragged(target)
            if not equal_numbers(n, e.extents(buffer)[1]):
                self.make_ragged(target)
        for buffer, own in zip(target.buffers, inner.buffers, strict=False):
            if not list_rows.becomes_row_of(e, target, buffer, own):
                source = Array(part(e, own, e.index(0), n), "")
                goal = lists.row(e, buffer, at)
                if isinstance(goal.owner, Operation):
                    lists.appended(target, goal.owner)
                lists.copy(e, source, goal)
        list_changes.grow(e, target, at, e.index(1))

    def make_ragged(self, target: ListObject) -> NoReturn:
        self.facts.ragged.add(target.key)
        raise recursion.Again

    def known_length(self, inner: ListObject) -> SSAValue | None:
        """How long a list has become, where every path makes it so long."""
        e = self.e
        total: SSAValue | None = None
        if inner.shrinks or lists.length_stores(inner) != 1 + len(inner.growths):
            return None
        for growth in inner.growths:
            amount, block = growth.amount, growth.at.parent
            while block is not None and block is not inner.born:
                loop = block.parent_op()
                if not isinstance(loop, array.LoopOp) or loop.count is None:
                    return None
                if loop.condition_block is not None:
                    return None
                amount = loop.count if is_one(amount) else e.emit(arith.MuliOp(amount, loop.count))
                block = loop.parent
            if block is None:
                return None
            total = amount if total is None else e.emit(arith.AddiOp(total, amount))
        return e.index(0) if total is None else total


def rows_in(value: Value) -> list[Row | Item]:
    if isinstance(value, Tuple):
        return [row for item in value.items for row in rows_in(item)]
    return [value] if isinstance(value, Row | Item) and not is_of_caller(value) else []


def is_of_caller(value: Value) -> bool:
    """True for an item that is, or may be, the caller's: it is returned itself."""
    if isinstance(value, Row) and value.store.origin is not None:
        return True
    if not isinstance(value, Row | Item):
        return False
    return value.store.given is not None or value.store.copied is not None


def is_one(n: SSAValue) -> bool:
    return array.constant_value(n) == 1

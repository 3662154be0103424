"""Objects as items of lists: a buffer for each number or array of their fields.

    particles = []                              one buffer for x, one for v
    particles.append(Particle(x0, v0))          the fields are stored behind those of the others
    for p in particles:
        p.x += dt * p.v                         a load and a store at p's place

An object that is appended moves into the list, and its names with it. What the item is, is the list and the
place in it (`Item`): a number, so names of items join at branches and loops. Items stay where they are.

A field that is an array is a row. Assigning another array to it overwrites the row: who still holds
the old array would see that, so `refuse_stale_rows` looks for views that are used after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import array
from ...analysis.alias import enclosing_loops
from ...diagnostics import CompileError
from ..joins import ObjectT, TupleT, template_of
from ..values import Array, Item, Record, Struct, Value
from . import list_rows, lists
from .argument_items import field_of, give_field, given_of, require_places
from .lists import Kind, ListObject
from .nested_lists import NestedLists


class ObjectLists(NestedLists):
    """Lowers what concerns objects in lists."""

    def append_object(self, target: ListObject, value: Record) -> None:
        """`l.append(p)`: the object becomes an item."""
        if isinstance(value, Item):
            what = "an object that is an item of a list already is put in a list"
            self.refuse_object(what, value.cls)
        self.require_own(value)
        held = self.snapshot(value, self.frame.env, mark=False)
        for name, item in zip(held.names, held.items, strict=True):
            if isinstance(item, Record | Struct) or not lists.is_item(item):
                self.use_heap(value.cls)
                raise self.refusal(
                    None,
                    f"the field `{name}` of an object in a list that grows is not a number, array or tuple",
                    "keep numbers, arrays, and tuples of them in the fields",
                )
            if lists.holds_list(item):
                self.use_heap(value.cls)
                raise self.refusal(
                    None, f"the field `{name}` of an object in a list that grows is a list",
                    "keep the lists in a list beside it",
                )  # fmt: skip
        form = template_of(held)
        assert isinstance(form, TupleT)
        self.learn(target, ObjectT(form.items, form.cls, form.names))
        at = lists.length(self.e, target).ssa
        self.append_row(target, held)
        item = Item(-1, value.cls, value.name, None, target, at)
        self.objects.moved[value.serial] = item

    def require_own(self, value: Record) -> None:
        """The object is made by this iteration, and nobody has copied its fields."""
        around = self.catching.blocks()
        home = self.objects.homes[value.serial]
        if value.origin is not None:
            require_places(self, value)  # pyright: ignore[reportArgumentType]
            self.refuse_object("an object of the caller is put in a list that grows", value.cls)
        if value.cls is dict or value.serial in self.objects.snapshots:
            self.refuse_object("this object cannot move into a list", value.cls)
        if home not in around or around.index(home) < around.index(self.homes[-1]):
            self.refuse_object("each iteration puts the same object in a list", value.cls)

    def refuse_object(self, what: str, *classes: type) -> None:
        self.use_heap(*classes)
        raise self.refusal(None, what, "append a copy, copy.copy(p), if it may be another object")

    def item_now(self, value: Record) -> Record:
        """The item of a list that an object has become, or the object."""
        item = self.objects.moved.get(value.serial)
        if item is None or isinstance(value, Item):
            return value
        block = item.at.owner
        block = block if isinstance(block, Block) else block.parent
        if block not in self.catching.blocks():
            self.use_heap(value.cls)
            raise self.refusal(
                None,
                "this object has been put in a list on a path that may not have run",
                "append a copy, copy.copy(p), if it may be another object",
            )
        return item

    # Fields.

    def column(self, item: Item, key: Any) -> tuple[ListObject, int] | None:
        """The list of one field of all items, and which field it is; None for no field."""
        seq = self.list_here(item.store.key)
        form = seq.item
        assert isinstance(form, ObjectT)
        assert form.names is not None
        if key not in form.names:
            return None
        k = form.names.index(key)
        first = sum(len(lists.leaves_of(t)) for t in form.items[:k])
        count = len(lists.leaves_of(form.items[k]))
        buffers = lists.buffers_of(self.e, seq)[first : first + count]
        return replace(seq, item=form.items[k], buffers=buffers, column=True, given=None), k

    def item_field(self, item: Item, key: Any) -> Value | None:
        if (given := given_of(self, item)) is not None:
            return field_of(self, given, item, key, lambda: self.row_field(item, key))
        return self.row_field(item, key)

    def row_field(self, item: Item, key: Any) -> Value | None:
        found = self.column(item, key)
        return None if found is None else lists.load_item(self.e, found[0], item.at)

    def give_item(self, item: Item, key: Any, value: Value) -> None:
        """`p.key = value`."""
        if (given := given_of(self, item)) is not None:
            give_field(self, given, item, key, value, lambda: self.give_row(item, key, value))
            return
        self.give_row(item, key, value)

    def give_row(self, item: Item, key: Any, value: Value) -> None:
        found = self.column(item, key)
        if found is None:
            raise self.refusal(
                None,
                f"`{key}` is a new attribute of an object in a list",
                "assign it before the object is put in the list",
            )
        column, k = found
        seq = self.lists[item.store.key]
        assert isinstance(seq.item, ObjectT)
        if not lists.is_item(value) or isinstance(value, Record | Struct):
            self.refuse_object("this is assigned to a field of an object in a list", item.cls)
        new = lists.bare(template_of(value))
        items = (*seq.item.items[:k], new, *seq.item.items[k + 1 :])
        self.learn(seq, replace(seq.item, items=items))
        if self.facts.changed:
            return
        for buffer, part in zip(
            column.buffers, lists.parts_of(self.e, value, seq.item.items[k]), strict=True
        ):
            if isinstance(part, Array):
                self.require_shape(column, item.at, part, buffer)
        for buffer, op in lists.store_item(self.e, column, item.at, value):
            seq.replaced.append(list_rows.note_copy(self.e, seq, buffer, op))

    def require_shape(
        self, column: ListObject, at: SSAValue, value: Array, buffer: SSAValue
    ) -> None:
        """NotImplementedError where an array that takes the place of another has another shape."""
        if not column.uneven:
            list_rows.refuse_other_shape(self.e, value.memref, buffer)
            return
        old = lists.row_of(self.e, column, buffer, at)
        for have, want in zip(self.e.extents(value.memref), self.e.extents(old), strict=True):
            other = self.e.emit(arith.CmpiOp(have, want, "ne"))
            self.e.insert(array.RaiseIfOp(other, "NotImplementedError", list_rows.OTHER_SHAPE))

    def copy_of_item(self, item: Item) -> Struct:
        """The fields of an item as a value."""
        form = self.lists[item.store.key].item
        assert isinstance(form, ObjectT)
        names = form.names or ()
        values = [self.item_field(item, name) for name in names]
        return Struct(tuple(v for v in values if v is not None), names, item.cls)


def refuse_stale_rows(seq: ListObject, order: dict[Operation, int], placed: set[Kind]) -> bool:
    """Refuse a field's array that is replaced while the old one is still in use.

    True where that is an item of a list instead: then the list is `placed` in the next build.
    """
    again = False
    for one in seq.replaced:
        if one.at not in order:
            continue
        loops = enclosing_loops(one.at)
        for view in (use.operation for use in one.buffer.uses):
            if isinstance(view, array.ViewOp) and any(
                sees(order, view, use, one.at, loops) for use in users_of(view.results[0])
            ):
                if one.moves is not None:
                    placed.add(one.moves)
                    again = True
                    break
                raise CompileError(
                    one.span,
                    "an array takes the place of one that is still in use: of the field, or popped",
                    "keep a copy of the old one, or change the array in place: p.x[...] = ...",
                )
    return again


def sees(
    order: dict[Operation, int],
    view: Operation,
    use: Operation,
    at: Operation,
    loops: Collection[array.LoopOp],
) -> bool:
    """True where a view that was made before `at` may be used after it."""
    if view not in order or use not in order or order[view] > order[at]:
        return False
    if isinstance(use, array.LoopOp | array.YieldOp | scf.YieldOp):
        return True
    mine = set(enclosing_loops(view))
    again = any(loop in set(enclosing_loops(use)) for loop in loops if loop not in mine)
    return again or order[use] > order[at]


def users_of(view: SSAValue) -> Iterator[Operation]:
    """What uses a view, a view of it, or what a branch chooses of it and others."""
    for use in view.uses:
        branch = use.operation.parent_op()
        if isinstance(use.operation, array.AnyView | memref.CastOp):
            yield from users_of(use.operation.results[0])
        elif isinstance(use.operation, scf.YieldOp) and isinstance(branch, scf.IfOp):
            yield from users_of(branch.results[use.index])
        else:
            yield use.operation

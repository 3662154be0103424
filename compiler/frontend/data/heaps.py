"""Objects behind references: which object a name or a field is, is known at run time only.

    head = None                              %head = -1
    for x in xs:
        n = Node(x)                          the fields go behind those of the other nodes
        n.next = head                        memref.store %head, %Node_next[%n]
        head = n                             %head = %n
    while head is not None:                  arith.cmpi sge, %head, 0
        s += head.x                          memref.load %Node_x[%head]
        head = head.next

An object is otherwise an identity that is known while compiling, and its fields are names (`fields`). Where
two objects of a class meet and something is assigned to them, where an object and None meet, where objects
refer to others of their class as deep as the run wants, the next build keeps all objects of that class in one
store (`Facts.heaps`): a list of objects as in `object_lists`, that only grows. An object is its place there;
what refers to an object is a place, too, -1 for None (`Reference`). So whatever joins joins integers, and
nothing below the frontend learnt anything.

What the fields hold follows from all that is assigned to them: one build teaches the next, as for the items
of lists. Arrays and lists in fields are known by their places in stores of their own (`places`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation

from ..calling import recursion
from ..frames import Unready
from ..joins import (
    ObjectT,
    RowT,
    Template,
    TupleT,
    coerced,
    depths,
    place_in_store,
    rebuilt,
    template_of,
)
from ..values import (
    Array,
    Choice,
    Item,
    NoneValue,
    Record,
    Reference,
    Row,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)
from . import lists
from .fields import is_frozen
from .lists import FixedList, ListObject, StoreKey
from .object_operators import compares_fields
from .places import PlacedLists, name_of
from .settings import Settings

OBJECTS = -1
"""Of the stores that belong to a heap, the heap itself; the others keep arrays and lists of its fields."""


class Heaps(PlacedLists):
    """Lowers what concerns objects that are known by their places."""

    # Which classes.

    def use_heap(self, *classes: type) -> None:
        """The next build keeps the objects of these classes in stores, where that is possible."""
        found = [cls for cls in classes if self.may_use_heap(cls)]
        if found:
            for cls in found:
                self.facts.heaps[cls] = (), id(cls), 0
            self.facts.forget(lambda t: not depths(t).keys().isdisjoint(found))
            raise recursion.Again

    def may_use_heap(self, cls: type) -> bool:
        known = cls in self.facts.heaps or cls is dict or issubclass(cls, tuple)
        given = (v for v in self.objects.arguments.values() if isinstance(v, Record | Struct))
        return not known and all(v.cls is not cls for v in given)

    def is_on_heap(self, cls: type) -> bool:
        return cls in self.facts.heaps

    def make_heaps(self) -> None:
        """The stores of this build."""
        for cls, key in self.facts.heaps.items():
            length = self.e.cell(IndexType(), f"{cls.__name__}s")
            start = self.e.constant(0, "py_float").ssa.owner
            assert isinstance(start, Operation)
            block = self.e.block
            made = ListObject(key, block, block, start, length, cls=cls, is_heap=True)
            made.keeps = (key, False), OBJECTS
            self.lists[key] = made
            lists.set_length(self.e, made, self.e.index(0))
        for key in self.facts.heaps.values():
            self.introduce(self.lists[key])
        for key in self.facts.heap_stores:
            self.store(key)

    def in_stores(self, seq: ListObject, form: Template) -> Template | None:
        return self.of_this_build(form) if seq.is_heap else super().in_stores(seq, form)

    def of_this_build(self, form: Template) -> Template:
        """The form of an object with the stores of this build."""
        match form:
            case RowT(store):
                return replace(form, store=self.store(store.keeps or (store.kind, 0)))
            case TupleT(items):
                return replace(form, items=tuple(map(self.of_this_build, items)))
            case _:
                return form

    def store(self, key: StoreKey) -> ListObject:
        kind, number = key = self.representative(key)
        if number == OBJECTS:
            return self.lists[kind[0]]
        is_elsewhere = self.place is not None and kind[0] in self.facts.heaps.values()
        if is_elsewhere and self.lists.get(name_of(key)) is None:
            self.facts.heap_stores[key] = None
            raise recursion.Again
        return super().store(key)

    # Making objects.

    def made_object(self, made: Record) -> Value:
        """An object, when its `__init__` has returned."""
        if not self.is_on_heap(made.cls):
            return self.snapshot(made, self.frame.env, mark=False) if is_frozen(made.cls) else made
        item = self.on_heap(made)
        form = self.facts.lists[item.store.key]
        names = form.names or () if isinstance(form, ObjectT) else ()
        given = self.given.get(made.serial, set[Any]()) | set(self.objects.keys[made.serial])
        late = [name for name in names if name not in given]
        if late and item.store.item is not None:
            raise self.refusal(
                None,
                f"`{late[0]}` is assigned to objects of class {made.cls.__name__} that are made"
                " without it, and known at run time only",
                f"give every {made.cls.__name__} a `{late[0]}` where it is made",
            )
        return item

    @property
    def given(self) -> dict[int, set[Any]]:
        """The fields that objects were given since they are known by their places, by serial number."""
        return self.objects.given

    def give(self, record: Record, key: Any, value: Value) -> None:
        if record.serial in self.given:
            self.given[record.serial].add(key)
        super().give(record, key, value)

    def on_heap(self, made: Record) -> Item:
        """The place of an object, where it is put with the fields that it has so far."""
        now = self.item_now(made)
        if isinstance(now, Item):
            return now
        heap = self.lists[self.facts.heaps[made.cls]]
        at = lists.length(self.e, heap).ssa
        item = Item(-1, made.cls, made.name, None, heap, at)
        held = self.snapshot(made, self.frame.env, mark=False)
        self.objects.moved[made.serial] = item
        self.given[made.serial] = set[Any]()
        for key in held.names:  # nobody reads them any more
            del self.frame.env[self.objects.name(made, key)]
        pairs = zip(held.names, held.items, strict=True)
        values = {name: self.as_field(heap, name, value) for name, value in pairs}
        if self.learn_fields_of(heap, {n: template_of(v) for n, v in values.items()}):
            assert isinstance(heap.item, ObjectT)
            names = heap.item.names or ()
            forms = dict(zip(names, heap.item.items, strict=True))
            items = tuple(
                values.get(n) or cast(Value, rebuilt(t, iter(coerced(self.e, None, t))))
                for n, t in forms.items()
            )
            at = lists.length(self.e, heap).ssa
            self.append_row(heap, Struct(items, names, made.cls))
            item = self.objects.moved[made.serial] = replace(item, at=at)
        return item

    def learn_fields_of(self, heap: ListObject, forms: Mapping[Any, Template]) -> bool:
        """The objects have fields of these forms; False where only the next build knows."""
        known = self.facts.lists.get(heap.key)
        if known is None:
            form = ObjectT(tuple(map(lists.bare, forms.values())), heap.cls, tuple(forms))
            heap.item = self.facts.lists[heap.key] = form
            lists.ready(self.e, heap)
            self.facts.changed |= heap.read_untyped
            return True
        assert isinstance(known, ObjectT)
        fields = dict(zip(known.names or (), known.items, strict=True))
        for name, form in forms.items():
            new, way_out = lists.bare(form), "give the field the same type in all objects"
            what = f"`{name}` of objects of class {heap.cls.__name__} is"
            fields[name] = self.widened(fields.get(name, new), new, what, way_out)
        form = replace(known, items=tuple(fields.values()), names=tuple(fields))
        self.facts.lists[heap.key] = form
        same = form == heap.item
        self.facts.changed |= not same
        return same

    # Values in fields.

    def as_field(self, heap: ListObject, name: Any, value: Value) -> Value:
        """What a field keeps: places for what has an identity."""
        number = 0

        def visit(part: Value) -> Value:
            nonlocal number
            match part:
                case Record():
                    return self.as_item_of_heap(part)
                case Settings():
                    raise self.refusal(
                        None,
                        f"a {part.cls.__name__} from outside is put in a {heap.cls.__name__}",
                        "pass it as an argument, or make a new one",
                    )
                case Struct() if not is_frozen(part.cls) or self.is_on_heap(part.cls):
                    raise self.one_or_another(part)
                case Reference():
                    pass
                case Choice(_, options):
                    self.use_heap(*(o.cls for o in options if isinstance(o, Record | Struct)))
                case FixedList():
                    self.growing(part)
                case Array() | Row() | Static(ListObject()):
                    number += 1
                    key = self.facts.number_of((heap.key, name, number))
                    return self.kept(self.store((heap.kind, key)), part)
                case Tuple(items) | Struct(items):
                    return replace(part, items=tuple(map(visit, items)))
                case _:
                    pass
            return part

        found = visit(value)
        if not lists.is_item(found):
            raise self.refusal(
                None,
                f"`{name}` of a {heap.cls.__name__} chosen at run time is not a number, array,"
                " string, list or object",
                f"make the {heap.cls.__name__} before the branch or loop, or keep such values elsewhere",
            )
        return found

    def as_item_of_heap(self, value: Record) -> Item:
        now = self.item_now(value)
        if isinstance(now, Item) and now.store.is_heap:
            return now
        self.use_heap(value.cls)
        if not self.is_on_heap(value.cls) or isinstance(now, Item):
            raise self.refusal(
                None,
                f"an object of class {value.cls.__name__} is chosen at run time: one that the"
                " function makes, or an argument",
                "copy the argument's fields into a new object",
            )
        return self.on_heap(now)

    def append_object(self, target: ListObject, value: Record) -> None:
        if isinstance(self.item_now(value), Item) or not self.is_on_heap(value.cls):
            super().append_object(target, value)
        else:
            self.append_value(target, self.on_heap(value))

    # Fields.

    def item_field(self, item: Item, key: Any) -> Value | None:
        if not item.store.is_heap:
            return super().item_field(item, key)
        known, learnt = self.lists[item.store.key].item, self.facts.lists.get(item.store.key)
        late = isinstance(learnt, ObjectT) and learnt != known and key in (learnt.names or ())
        if known is None or (
            late and isinstance(known, ObjectT) and key not in (known.names or ())
        ):
            unknown = f"nothing is known yet of the fields of {item.cls.__name__}"
            self.facts.unready.append(self.refusal(None, unknown))
            raise Unready
        return super().item_field(item, key)

    def give_item(self, item: Item, key: Any, value: Value) -> None:
        if not item.store.is_heap:
            super().give_item(item, key, value)
            return
        heap = self.lists[item.store.key]
        value = self.as_field(heap, key, value)
        if self.learn_fields_of(heap, {key: template_of(value)}):
            found = self.column(item, key)
            assert found is not None
            lists.store_item(self.e, found[0], item.at, value)

    # Results.

    def without_rows(self, result: Value) -> Value:
        self.require_returnable(result)
        return super().without_rows(result)

    def require_returnable(self, result: Value) -> None:
        """Refuse objects that refer to others, and what may be one or None."""
        store = store_of(result)
        if store is not None and store.is_heap:
            form = self.lists[store.key].item
            parts = [] if form is None else lists.leaves_of(form)
            refers = any(isinstance(t, RowT) and t.store.is_heap for t in parts)
            if refers or isinstance(result, Reference):
                what = "or None" if isinstance(result, Reference) else "which refers to others"
                raise self.refusal(
                    self.frame.source.node,
                    f"the function returns a {store.cls.__name__} chosen at run time, {what}",
                    "return its numbers and arrays, or a tuple or a list of them",
                )
        if isinstance(result, Tuple | Struct):
            for item in result.items:
                self.require_returnable(item)

    # Comparisons.

    def references_compared(self, op: str, lhs: Value, rhs: Value) -> Scalar | None:
        """`is` and `==` of what may be None and objects; None where that is something else."""
        stores = [found for found in map(store_of, (lhs, rhs)) if found is not None]
        others = [v for v in (lhs, rhs) if store_of(v) is None]
        if not stores or not all(isinstance(v, NoneValue) for v in others):
            return None
        plain = not compares_fields(stores[0].cls) and "__eq__" not in vars(stores[0].cls)
        if op not in ("Is", "IsNot") and not (plain and op in ("Eq", "NotEq")):
            return None
        same = op in ("Is", "Eq")
        if len(stores) == 2 and stores[0] != stores[1]:
            return self.e.constant(not same, "py_bool")
        a, b = (place_in_store(self.e, v) for v in (lhs, rhs))
        return Scalar(
            "py_bool", self.e.emit(arith.CmpiOp(a, b, "eq" if same else "ne")), None, 0, 1
        )

    def equal_objects(self, equal: bool, lhs: Record | Struct, rhs: Record | Struct) -> Value:
        for value in (lhs, rhs):
            now = self.item_now(value) if isinstance(value, Record) else value
            if isinstance(now, Item) and now.store.is_heap and compares_fields(now.cls):
                form = self.lists[now.store.key].item
                if form is not None and any(isinstance(t, RowT) for t in lists.leaves_of(form)):
                    raise self.refusal(
                        None, f"`==` of objects of class {now.cls.__name__}, which refer to others",
                        "compare with `is`, or compare their numbers",
                    )  # fmt: skip
        return super().equal_objects(equal, lhs, rhs)


def store_of(value: Value) -> ListObject | None:
    """The store of the objects that a value may be."""
    match value:
        case Reference(_, (_, Item(store=store))) | Item(store=store):
            return store
        case _:
            return None

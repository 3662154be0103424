"""What programs do with lists: displays, methods, operators, subscripts, assignment.

A list is a `Static` value around its `ListObject`: which list a name is, is known while compiling. A name
that is one list on one path and another on another has no such form, with one exception. A name whose list
has no other name may be given a fresh list anywhere, which is then moved into it::

    batch = []
    for v in x:
        batch.append(v)
        if len(batch) == 4:
            total += max(batch)
            batch = []              batch.clear()
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import array
from ...diagnostics import CompileError
from .. import library, scalars
from ..bindings.roots import roots
from ..calling import recursion
from ..calling.calls import Calls
from ..frames import RESULT, Unready
from ..joins import (
    ArrayT,
    ChoiceT,
    FixedT,
    ListT,
    Maybe,
    MaybeT,
    Mismatch,
    ObjectT,
    RowT,
    ScalarT,
    Template,
    TupleT,
    depths,
    template_of,
)
from ..library.in_place import with_arrays
from ..values import (
    EXTENT_MAX,
    Array,
    NoneValue,
    Record,
    Row,
    Scalar,
    SliceValue,
    Static,
    Struct,
    Tuple,
    Value,
)
from . import list_changes, list_rows, lists, tables
from .fields import shown as as_shown
from .lists import FixedList, ListKey, ListMethod, ListObject


class Lists(Calls):
    """Lowers what programs do with lists."""

    @abstractmethod
    def append_all(self, target: ListObject, value: Value, node: ast.AST) -> None:
        """Append the items of anything that a loop can run over."""

    @abstractmethod
    def part(self, seq: ListObject, index: SliceValue) -> tuple[Scalar, Scalar, Scalar]:
        """Where a slice begins, how many items it has, and its step."""

    @abstractmethod
    def sort(self, seq: ListObject, key: Value, reverse: Value, node: ast.Call) -> None:
        """Sort a list in place."""

    @abstractmethod
    def sort_arguments(self, kwargs: dict[str, Value], node: ast.AST) -> tuple[Value, Value]:
        """`key` and `reverse`."""

    @abstractmethod
    def store_list_slice(
        self, seq: ListObject, index: SliceValue, value: Value, node: ast.Subscript
    ) -> None:
        """`l[a:b] = value`."""

    @abstractmethod
    def delete_list_slice(self, seq: ListObject, index: SliceValue, node: ast.Subscript) -> None:
        """`del l[a:b]`."""

    # Which list.

    def make_list(self, node: ast.AST) -> ListObject:
        """A new empty list, made by `node`."""
        place = self.frame.path, id(node)
        number = self.list_numbers[place] = self.list_numbers.get(place, -1) + 1
        return self.list_called((*place, number))

    def argument_object(self, number: int) -> ListObject:
        """The list that is an argument of this number: its key is its own, whatever other lists become."""
        return self.list_called((self.frame.path, id(self.frame.source.node), -1 - number), number)

    def list_called(self, key: ListKey, origin: int | None = None) -> ListObject:
        """A new empty list, found again by this key."""
        home = self.homes[-1]
        with self.e.at(home):
            start = self.e.constant(0, "py_float").ssa.owner
        assert isinstance(start, Operation)
        length = self.e.cell(IndexType(), "length")
        made = ListObject(key, home, self.e.block, start, length, origin=origin)
        lists.set_length(self.e, made, self.e.index(0))
        self.introduce(made)
        if not lists.holds_arrays(made):
            lists.ready(self.e, made)
        return made

    def introduce(self, made: ListObject) -> None:
        """What earlier builds have found out about a list."""
        self.lists[made.key] = made
        made.item = self.facts.lists.get(made.key)
        made.ragged = made.key in self.facts.ragged
        made.uneven = made.key in self.facts.uneven
        made.popped = made.key in self.facts.popped

    def list_of(self, value: Value) -> ListObject | None:
        """The list that a value is; None for anything else."""
        if isinstance(value, Row):
            return self.row_list(value)
        if not isinstance(value, Static):
            return None
        if (sliced := getattr(value.object, "slice_of", None)) is not None:
            self.use_places(sliced)
        if not isinstance(value.object, ListObject):
            return None
        if value.object.row is not None:
            return value.object
        found = self.list_here(value.object.key)
        return found if found.moved is None else self.moved_list(found)

    def is_gone(self, one: ListObject, homes: Sequence[Block]) -> bool:
        """True for a list that ended with an iteration, or that none around has made."""
        found = self.lists.get(one.key)
        return found is None or found.home not in homes

    def list_here(self, key: ListKey) -> ListObject:
        """The list of this key, refused where the iteration that made it is over."""
        found = self.lists.get(key)
        if found is None or self.is_gone(found, self.homes):
            raise self.gone()
        return found

    def gone(self, name: str = "") -> CompileError:
        of = f" (as, or in, `{as_shown(name)}`)" if name else ""
        return self.refusal(
            None,
            f"a list that was made in an iteration of a loop is used after the iteration{of}",
            "make the list before the loop, and empty it with .clear()",
        )

    @abstractmethod
    def row_list(self, value: Row) -> ListObject:
        """A list that is an item of another."""

    @abstractmethod
    def moved_list(self, one: ListObject) -> ListObject:
        """The item that a list has become."""

    @abstractmethod
    def append_list(self, target: ListObject, value: Value) -> None:
        """Append a list to a list."""

    def learn(self, target: ListObject, template: Template) -> None:
        """The list has items of this form. A wider one makes other memory, in this build and the next."""
        new = lists.bare(template)
        if target.item is None:
            target.item = self.facts.lists[target.key] = new
            lists.ready(self.e, target)
            self.facts.changed |= target.read_untyped
            return
        what, way_out = "the items of this list are", "keep items of one type in a list"
        both = self.widened(target.item, new, what, way_out)
        if both != target.item:
            target.item = self.facts.lists[target.key] = both
            self.facts.changed = True
            target.buffers, target.pools = [], []
            lists.ready(self.e, target)

    def widened(self, a: Template, b: Template, what: str, way_out: str) -> Template:
        """The form that covers both, refused where none does."""
        try:
            return lists.joined(a, b)
        except Mismatch as mismatch:
            self.use_heap(*mismatch.objects)
            raise self.refusal(None, f"{what} {mismatch}", way_out) from None

    def item_form(self, value: Value) -> Template:
        if not lists.is_item(value):
            raise self.refusal(
                None,
                "a list of such items that grows is not compiled",
                "keep numbers, arrays, or tuples of them in lists that grow",
            )
        inner = None if isinstance(value, Row) else self.list_of(value)
        return template_of(value) if inner is None else ListT(inner.item)

    # Displays.

    def list_display(self, node: ast.List) -> Value:
        return self.list_of_values(self.values_of(node.elts), node)

    def list_of_values(self, items: Sequence[Value], node: ast.AST) -> Value:
        """A list of these items. One of arrays, lists or functions is fixed."""
        place = self.frame.path, id(node)
        grown = place in self.facts.grown and all(map(lists.is_item, items))
        known = any(isinstance(i, Static) for i in items)
        if not grown and (known or not all(map(lists.is_storable, items))):
            self.share(items)
            return FixedList(tuple(items), made=place)
        made = self.make_list(node)
        for item in items:
            self.append_value(made, item)
        made.changed = False
        if made.key not in self.facts.changed_displays and all(map(lists.is_storable, items)):
            made.display = tuple(items)
        return Static(made)

    def written_items(self, seq: ListObject) -> tuple[Value, ...] | None:
        """The items of a list display that is never changed; the next build knows if it is."""
        if seq.changed:
            return None
        seq.relied_on = True
        return seq.display if type(self.lists) is dict or not seq.names else None

    def settle_displays(self) -> None:
        """Tell the next build which lists do not stay what their displays made."""
        found = {one.key for one in self.lists.values() if one.relied_on and one.changed}
        self.facts.changed |= not found <= self.facts.changed_displays
        self.facts.changed_displays |= found

    def append_value(self, target: ListObject, value: Value) -> None:
        if isinstance(value, Array) and value.rank == 0:
            value = library.subscript(self.e, value, ())
        if isinstance(value, Record):
            self.append_object(target, value)
            return
        form = self.item_form(value)
        if isinstance(form, ListT):
            self.append_list(target, value)
            return
        self.learn(target, form)
        if lists.holds_arrays(target):
            self.append_row(target, value)
        else:
            list_changes.append(self.e, target, value)

    def append_row(self, target: ListObject, value: Value) -> None:
        """Append an item that holds arrays; those that become rows are these for their names, too."""
        known = set(target.became)

        def outgrown() -> NoReturn:
            self.facts.uneven.add(target.key)
            raise recursion.Again

        list_rows.append(self.e, target, value, self.named_arrays(), self.facts.sharing, outgrown)
        made = {old: new for old, (new, _) in target.became.items() if old not in known}

        def now(one: Array) -> Array:
            return replace(one, memref=made.get(one.memref, one.memref))

        frame = self.frame if made else None
        while frame is not None:
            frame.env = {name: with_arrays(b, now) for name, b in frame.env.items()}
            frame = frame.parent

    def require_known(self) -> None:
        """Refuse the arrays that have become rows and have a name that was not found."""
        for seq in self.lists.values():
            for old, (_, span) in seq.became.items():
                if old.uses:
                    raise CompileError(
                        span,
                        "this array is put in a list by a function that it is passed to, and used afterwards",
                        "append a copy, .append(x.copy()), if the other may stay as it is",
                    )

    def named_arrays(self) -> set[SSAValue]:
        """The arrays that have a name, in this frame or in those around it."""
        found, pending, frame = set[SSAValue](), list[object](), self.frame
        while frame is not None:
            pending += frame.env.values()
            frame = frame.parent
        while pending:
            match pending.pop():
                case Maybe(value):
                    pending.append(value)
                case Array(memref):
                    found.add(memref)
                case Tuple(items) | Struct(items):
                    pending += items
                case _:
                    pass
        return found

    def has_name(self, value: Array) -> bool:
        """Whether some array that has a name may share the memory of this one."""
        mine = roots(self.e, value.memref)
        return any(mine & roots(self.e, memref) for memref in self.named_arrays())

    @abstractmethod
    def append_object(self, target: ListObject, value: Record) -> None:
        """Append an object to a list."""

    @abstractmethod
    def use_places(self, seq: ListObject) -> NoReturn:
        """The next build knows the items of this list by their places (`places`)."""
        raise NotImplementedError

    @abstractmethod
    def movable(self, seq: ListObject, value: Value) -> Value:
        """A value as an item of a list in which items move, and which knows its form now."""

    @abstractmethod
    def store_array(self, seq: ListObject, at: SSAValue, value: Value) -> bool:
        """Overwrite an item that holds arrays; False where the list has none."""

    @abstractmethod
    def copy_rows(self, target: ListObject, fresh: ListObject) -> bool:
        """Overwrite all items, which are arrays, by those of a list without a name; False for other lists."""

    @abstractmethod
    def find(self, seq: ListObject, wanted: Value, node: ast.AST) -> tuple[Scalar, Scalar]:
        """`search` for what is no number."""

    @abstractmethod
    def comparison_node(self, name: str) -> ast.AST:
        """A node for the comparison at this place."""

    @abstractmethod
    def concatenated(self, seq: ListObject, axis: int) -> Array | None:
        """Arrays of several shapes one behind the other; None where all have one."""

    @abstractmethod
    def gathered(self, seq: ListObject) -> list[Array]:
        """The items of a list, which may know them by their places, as arrays."""

    def growing(self, value: FixedList) -> NoReturn:
        """The next build makes a list that can grow where this one was made."""
        if value.origin is not None:
            self.facts.changed_arguments.add(value.origin)
            raise recursion.Again
        if isinstance(value, tables.ListOfConstants):
            what = "this list is from outside, and is changed"
            raise self.refusal(None, what, "pass it as an argument, or change it after the call")
        if value.made is None or not all(map(lists.is_item, value.items)):
            raise self.refusal(
                None,
                "a list of such items that changes is not compiled",
                "keep numbers, arrays, or tuples of them in lists that change",
            )
        self.facts.grown.add(value.made)
        raise recursion.Again

    def let_move(self, seq: ListObject) -> None:
        """The items of a list are moved from place to place, or into another list."""
        if lists.holds_arrays(seq):
            self.use_places(seq)

    def extend_by(self, target: ListObject, source: ListObject) -> None:
        """Append the items of a list, which may be the same."""
        if (form := lists.form_read(source)) is None:
            return
        self.let_move(source)
        self.learn(target, form)
        count = lists.length(self.e, source).ssa
        views = lists.views(self.e, source, count)
        list_changes.append_columns(self.e, target, form, views, count)

    # Names.

    def named_list(self, name: str, value: Value) -> Value:
        """The value that a name is bound to: a fresh list moves into the one that the name has.

        It does where the name's list was made outside of the branch or loop of this assignment.
        """
        fresh = None if isinstance(value, Row) else self.list_of(value)
        if fresh is None:
            self.share([value])
            return value
        moved = self.into_one_list(name, value)
        if moved is value:
            if self.other_names(fresh, name):
                self.mark_shared(fresh)
            fresh.names.add((self.frame.serial, name))
        return moved

    def into_one_list(self, name: str, value: Value) -> Value:
        """The one list that a name is on all paths, with the items of a list that nothing else is."""
        fresh = self.list_of(value)
        if fresh is None or fresh.iterated or fresh.key in self.facts.shared_lists:
            return value
        one, me = self.list_of_name(name), (self.frame.serial, name)
        if one is None or one.key == fresh.key or one.names != {me} or one.iterated:
            return value
        if self.other_names(fresh, name):
            return value
        self.moved_lists.add(one.key)
        if one.key in self.facts.shared_lists:
            return value
        self.take_over(one, fresh)
        return Static(one)

    def other_names(self, one: ListObject, name: str) -> set[tuple[int, str]]:
        """Under which names a list may still be read when it is bound to this one."""
        after = frozenset() if name == RESULT else self.frame.after
        mine = self.frame.serial
        return {
            (serial, other)
            for serial, other in one.names - {(mine, name)}
            if serial != mine or after is None or other in after
        }

    def list_of_name(self, name: str) -> ListObject | None:
        """The list that a name is already, which may be given other items here."""
        if (self.frame.path, name) in self.facts.merged_lists:
            return self.one_list(name)
        match self.frame.env.get(name):
            case Static(ListObject() as old) if not self.is_gone(old, self.homes):
                one = self.lists[old.key]
                can_move = not lists.holds_arrays(one) or isinstance(one.item, ArrayT)
                return one if can_move and one.born is not self.e.block else None
            case _:
                return None

    def one_list(self, name: str) -> ListObject:
        """The list that a name is on all paths, made here where there is none yet."""
        one = self.merged_lists.get((self.frame.path, name))
        if one is None or one.home not in self.homes:
            one = self.make_list(self.facts.merged_lists[self.frame.path, name])
            self.merged_lists[self.frame.path, name] = one
            one.names.add((self.frame.serial, name))
        return one

    def begun_outside(self, name: str, learnt: Template) -> Template:
        """What a variable of a loop is as the loop begins: lists that end with the iterations that bind it to
        them are all moved into one, which is there before the loop."""
        match learnt:
            case MaybeT(inner):
                return MaybeT(self.begun_outside(name, inner))
            case FixedT(Static(ListObject() as one)) if (
                self.is_gone(one, self.homes) and name in self.frame.locals
            ):
                self.facts.merge_lists(self.frame.path, name)
                return FixedT(Static(self.one_list(name)))
            case _ if any(self.is_gone(one, self.homes) for one in lists.lists_in(learnt)):
                self.use_heap(*depths(learnt))
                raise self.gone(name)
            case _:
                return learnt

    def outgrow(self, learnt: Template) -> None:
        """A loop's variable was a list of known length: no more, if that grows, or if lists in it end with an
        iteration."""
        inner = learnt.inner if isinstance(learnt, MaybeT) else learnt
        if not isinstance(inner, TupleT) or inner.made is None:
            return
        made = set(lists.displays_in(inner))
        if any(self.is_gone(one, self.homes) for one in lists.lists_in(inner)):
            self.facts.let_grow(made)
        if inner.made in self.facts.grown:
            if inner.made in self.facts.outgrown:  # and made with a known length again
                raise self.gone()
            self.facts.outgrown |= made
            self.facts.forget(
                lambda t: any(lists.lists_in(t)) or not made.isdisjoint(lists.displays_in(t))
            )
            raise recursion.Again

    def take_over(self, target: ListObject, fresh: ListObject) -> None:
        """Let a list that has a name have the items of one that has none."""
        is_empty = lists.holds_arrays(fresh) and not fresh.memories  # the first array makes it
        if is_empty or not self.copy_rows(target, fresh):
            self.let_move(target)
            list_changes.clear(self.e, target)
            if not is_empty:
                self.extend_by(target, fresh)

    def name_argument(self, serial: int, name: str, value: Value) -> None:
        """A parameter names a list while its function runs."""
        if isinstance(value, Static) and isinstance(value.object, ListObject):
            value.object.names.add((serial, name))

    def forget_names(self, serial: int) -> None:
        """The names of a frame end with it."""
        for one in self.lists.values():
            one.names = {n for n in one.names if n[0] != serial}

    # Methods.

    def list_attribute(self, receiver: ListObject, name: str) -> Value:
        if name not in lists.METHODS:
            raise self.refusal(
                None,
                f"the method .{name} of lists is not compiled",
                "np.array(l) has the methods of arrays" if is_of_arrays(name) else None,
            )
        return Static(ListMethod(receiver, name))

    def call_list_method(
        self, method: ListMethod, args: list[Value], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        low, high = {"append": (1, 1), "pop": (0, 1), "insert": (2, 2), "extend": (1, 1)}.get(
            method.name, (1, 1) if method.name in ("count", "index", "remove") else (0, 0)
        )
        target = self.list_of(Static(method.receiver))
        assert target is not None
        if method.name == "sort" and not args:
            self.let_move(target)
            self.sort(target, *self.sort_arguments(kwargs, node), node)
            return NoneValue()
        if kwargs or not low <= len(args) <= high:
            raise self.refusal(node, f"the arguments of .{method.name}")
        if method.name in ("clear", "copy", "remove", "reverse"):
            self.let_move(target)
        return getattr(self, f"list_{method.name}")(target, args, node)

    def list_append(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        self.append_value(seq, args[0])
        return NoneValue()

    def list_extend(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        self.append_all(seq, args[0], node)
        return NoneValue()

    def list_pop(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        index = self.list_index_value(args[0]) if args else None
        self.require_form(seq, lists.POP_FROM_EMPTY)
        if lists.holds_arrays(seq):
            self.pop_row(seq, index)
        return list_changes.pop(self.e, seq, index)

    def pop_row(self, seq: ListObject, index: Scalar | None) -> None:
        """Let the last array leave a list. Who has it must be done with it when the next one comes."""
        if isinstance(seq.item, ListT | ObjectT) or not (index is None or index.constant == -1):
            self.use_places(seq)
        if seq.key not in self.facts.popped:
            self.facts.popped.add(seq.key)
            raise recursion.Again

    def list_insert(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        index, value = self.list_index_value(args[0]), self.movable(seq, args[1])
        list_changes.insert(self.e, seq, index, value)
        return NoneValue()

    def list_clear(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        list_changes.clear(self.e, seq)
        return NoneValue()

    def list_reverse(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        if lists.form_read(seq) is not None:
            list_changes.reverse(self.e, seq)
        return NoneValue()

    def list_copy(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        return self.list_slice(seq, SliceValue(None, None, None), node)

    def list_count(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        number, _ = self.search(seq, args[0], node)
        return number

    def list_index(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        return self.first_equal(seq, args[0], "is not in list", node)

    def list_remove(self, seq: ListObject, args: list[Value], node: ast.Call) -> Value:
        at = self.first_equal(seq, args[0], None, node)
        if seq.item is not None:
            list_changes.delete(self.e, seq, at)
        return NoneValue()

    def search(self, seq: ListObject, wanted: Value, node: ast.AST) -> tuple[Scalar, Scalar]:
        """How many items are equal to `wanted`, and where the first is (or the length)."""
        if lists.form_read(seq) is None:
            zero = self.e.constant(0, "py_int")
            return zero, zero
        if not isinstance(wanted, Scalar) or not isinstance(seq.item, ScalarT):
            return self.find(seq, wanted, node)
        equal = lists.Equality(self.e, wanted)
        number, at = lists.count_equal(self.e, seq, equal, first_only=True)
        return tuple(Scalar("py_int", v, None, 0, EXTENT_MAX) for v in (number, at))  # pyright: ignore

    def first_equal(
        self, seq: ListObject, wanted: Value, text: str | None, node: ast.AST
    ) -> Scalar:
        """The place of the first item that is equal to `wanted`; ValueError where there is none."""
        number, at = self.search(seq, wanted, node)
        none = scalars.compare(self.e, "Eq", number, self.e.constant(0, "py_int"))
        message = "list.remove(x): x not in list"
        shown = list[Scalar]()
        if text is not None and isinstance(wanted, Record):
            message = "mutad: an object is not in list"
        elif text is not None:
            form, shown = self.shown(wanted, quoted=True)
            message = f"{form} {text}"
        operands = [v.ssa for v in shown]
        self.e.insert(array.RaiseIfOp(none.ssa, "ValueError", message, operands))
        return at

    @abstractmethod
    def shown(self, value: Value, *, quoted: bool) -> tuple[str, list[Scalar]]:
        """How `str` (or `repr`, when quoted) shows a value: a format and its operands."""

    def require_form(self, seq: ListObject, message: str) -> None:
        """IndexError for an item of a list to which nothing is appended anywhere."""
        if lists.form_read(seq) is None:
            self.always("IndexError", message)
            raise Unready

    # Subscripts.

    def item_index(self, node: ast.Subscript) -> Scalar | SliceValue:
        (index,) = self.index(node.slice)[:1] or (NoneValue(),)
        return index if isinstance(index, SliceValue) else self.list_index_value(index)

    def list_index_value(self, value: Value) -> Scalar:
        if isinstance(value, Scalar) and not scalars.is_float(value.type):
            return scalars.convert(self.e, value, "py_int")
        raise self.refusal(None, "list indices must be integers or slices", "convert with int(...)")

    def list_slice(self, seq: ListObject, index: SliceValue, node: ast.expr) -> Value:
        """A new list of the items in a slice."""
        self.let_move(seq)
        made = self.make_list(node)
        if (form := lists.form_read(seq)) is not None:
            self.learn(made, form)
            parts = lists.sliced(self.e, seq, index)
            count = self.e.extents(parts[0].memref)[0] if parts else self.part(seq, index)[1].ssa
            list_changes.append_columns(self.e, made, form, parts, count)
        return Static(made)

    def list_subscript(self, seq: ListObject, node: ast.Subscript) -> Value:
        index = self.item_index(node)
        if isinstance(index, SliceValue):
            return self.list_slice(seq, index, node)
        self.require_form(seq, lists.OUT_OF_RANGE)
        return lists.item_at(self.e, seq, index)

    def store_list_item(self, seq: ListObject, node: ast.Subscript, value: Value) -> None:
        index = self.item_index(node)
        if isinstance(index, SliceValue):
            self.store_list_slice(seq, index, value, node)
            return
        at = self.list_place(seq, index, lists.ASSIGN_OUT_OF_RANGE)
        if self.store_array(seq, at, value):
            return
        value = self.movable(seq, value)
        lists.store_item(self.e, seq, at, value)

    def list_place(self, seq: ListObject, index: Scalar, message: str) -> SSAValue:
        """Where in the buffers an item is; IndexError where it is nowhere."""
        self.require_form(seq, message)
        return lists.place(self.e, index, lists.length(self.e, seq).ssa, message)

    def augment_list_item(
        self, seq: ListObject, target: ast.Subscript, combine: Callable[[Value], Value]
    ) -> None:
        """`l[i] += v`: the item is found anew where it is stored, for `v` may have changed the list."""
        index = self.item_index(target)
        if isinstance(index, SliceValue):
            way_out = "assign the slice: l[a:b] = l[a:b] + m"
            raise self.refusal(target, "an operator with a slice of a list", way_out)
        before = lists.load_item(self.e, seq, self.list_place(seq, index, lists.OUT_OF_RANGE))
        if isinstance(before, Array | Row):
            combine(before)
            return
        value = self.movable(seq, combine(before))
        at = self.list_place(seq, index, lists.ASSIGN_OUT_OF_RANGE)
        lists.store_item(self.e, seq, at, value)

    def delete_list_item(self, seq: ListObject, target: ast.Subscript) -> None:
        index = self.item_index(target)
        if isinstance(index, SliceValue):
            self.delete_list_slice(seq, index, target)
            return
        self.let_move(seq)
        self.require_form(seq, lists.ASSIGN_OUT_OF_RANGE)
        list_changes.delete(self.e, seq, index)

    # Operators.

    def list_operator(self, op: str, lhs: Value, rhs: Value, node: ast.AST) -> Value | None:
        """`a + b` and `a * n` of lists; None where no list is concerned."""
        a, b = self.list_of(lhs), self.list_of(rhs)
        if a is None and b is None:
            return None
        if op == "Add" and all(isinstance(v, FixedList) or self.list_of(v) for v in (lhs, rhs)):
            made = self.make_list(node)
            self.append_all(made, lhs, node)
            self.append_all(made, rhs, node)
            return Static(made)
        times = rhs if a is not None else lhs
        one = a if a is not None else b
        if op == "Mult" and one and isinstance(times, Scalar) and not scalars.is_float(times.type):
            return self.repeated(one, self.list_index_value(times), node)
        if isinstance(lhs, Array) or isinstance(rhs, Array):
            both = [self.as_array(v, keep=False) for v in (lhs, rhs)]
            return self.binary_values(op, *both)
        raise self.refusal(
            None, f"`{scalars.SYMBOL[op]}` of a list", "make an array of it: np.array(l)"
        )

    def repeated(self, one: ListObject, times: Scalar, node: ast.AST) -> Value:
        """`l * n`: the items n times over."""
        self.let_move(one)
        made = self.make_list(node)
        if (form := lists.form_read(one)) is not None:
            self.learn(made, form)
            list_changes.repeat(self.e, made, one, times, self.written_items(one))
        return Static(made)

    def repeat_in_place(self, seq: ListObject, times: Value, node: ast.AST) -> None:
        """`l *= n`, in place: other references see it."""
        made = self.list_of(self.repeated(seq, self.list_index_value(times), node))
        assert made is not None
        list_changes.clear(self.e, seq)
        self.extend_by(seq, made)

    def in_list(self, seq: ListObject, item: Value) -> Scalar:
        """`item in l`."""
        number, _ = self.search(seq, item, self.comparison_node("In"))
        return scalars.compare(self.e, "Gt", number, self.e.constant(0, "py_int"))

    # Lists as arrays.

    def as_array(self, value: Value, *, keep: bool) -> Value:
        """A list as NumPy sees it: an array of its numbers, or of rows of them; anything else as it is.

        Where NumPy may `keep` it, the array has memory of its own, or that of a list without a name.
        """
        if isinstance(value, Tuple) and self.has_list(value):
            return Tuple(tuple(self.as_array(item, keep=keep) for item in value.items))
        seq = self.list_of(value)
        if seq is None:
            return value
        if lists.form_read(seq) is None:
            return library.call(self.e, np.zeros, [self.e.constant(0, "py_int")], {})
        parts = self.gathered(seq)
        if not parts or isinstance(seq.item, ChoiceT | ObjectT):
            raise self.refusal(None, "an array of items that hold no number", "use a list")
        if isinstance(seq.item, ArrayT | ListT | RowT):
            self.raise_when_empty(seq, "NotImplementedError", "mutad: an array of an empty list")
        if not isinstance(seq.item, TupleT):
            if isinstance(seq.item, RowT):
                return parts[0]
            if keep and not seq.names and seq.key not in self.facts.unbounded_lists:
                seq.lent = True
                return parts[0]
            return library.call(self.e, np.copy, [parts[0]], {}) if keep else parts[0]
        if not all(isinstance(t, ScalarT | ArrayT) for t in seq.item.items):
            raise self.refusal(None, "an array of such tuples", "make arrays of their items")
        return library.call(
            self.e, np.stack, [Tuple(tuple(parts)), self.e.constant(1, "py_int")], {}
        )

    def joined_rows(
        self, callee: object, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        """`np.concatenate` of a list of arrays of several shapes; None for any other call."""
        seq = self.list_of(args[0]) if args else None
        form = None if seq is None else lists.form_of_items(seq)
        if seq is None or not isinstance(form, ArrayT) or callee not in (np.stack, np.concatenate):
            return None
        text = f"need at least one array to {'stack' if callee is np.stack else 'concatenate'}"
        self.raise_when_empty(seq, "ValueError", text)
        if callee is np.concatenate:
            axis = library.joining.axis_of(self.e, args, kwargs, form.type.get_num_dims())
            if (whole := self.concatenated(seq, axis)) is not None:
                return whole
        rows = self.as_array(args[0], keep=False)
        return library.call(self.e, callee, [rows, *args[1:]], kwargs)

    def raise_when_empty(self, seq: ListObject, kind: str, text: str) -> None:
        scalars.raise_where(self.e, lists.length(self.e, seq), "Eq", 0, (kind, text))

    def returned_list(self, seq: ListObject) -> Value:
        """A list of numbers that the compiled function returns: its items, from which the entry makes it."""
        if lists.form_read(seq) is None:
            empty = library.call(self.e, np.zeros, [self.e.constant(0, "py_int")], {})
            assert isinstance(empty, Array)
            return lists.ReturnedList(empty.memref, empty.dtype, item="py_float")
        assert isinstance(seq.item, ScalarT)
        made = library.call(self.e, np.copy, [lists.views(self.e, seq)[0]], {})
        assert isinstance(made, Array)
        return lists.ReturnedList(made.memref, made.dtype, item=seq.item.type)


def is_of_arrays(name: str) -> bool:
    """True for an attribute that arrays have."""
    return name in library.METHODS or name in library.ATTRIBUTES


def holds_list(t: Template) -> bool:
    """True for the form of a name that is a list."""
    match t:
        case FixedT(Static(ListObject())):
            return True
        case MaybeT(inner):
            return holds_list(inner)
        case _:
            return False

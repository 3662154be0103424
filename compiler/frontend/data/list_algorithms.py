"""Sorting and comparing lists, storing to slices of them, `min` and `max` by a key.

l.sort()                 the places of the items in order, a list of ints; then the items one by one
l[a:b] = m               the items from b on set aside, and put behind those of m
l == m                   a loop that ends at the first difference
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....dialects import array
from .. import scalars
from ..frames import LocalFunction
from ..joins import ArrayT, ListT, ObjectT, Template
from ..library import indexing
from ..syntax import list_algorithms as algorithms
from ..syntax.comprehensions import EMPTY
from ..values import EXTENT_MAX, Item, NoneValue, Scalar, SliceValue, Static, Tuple, Value
from . import list_changes, lists
from .classes import method_of
from .heaps import Heaps
from .lists import FixedList, ListObject
from .object_operators import COMPARISON_METHODS as METHODS
from .places import parts_with_identity

ORDER_SIGNS = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
OTHER_SIZE = "attempt to assign sequence of size {} to extended slice of size {}"


class ListAlgorithms(Heaps):
    """Lowers what is written as Python for lists."""

    def algorithm(self, text: str, args: Sequence[Value], node: ast.AST) -> Value:
        """Run a function of `list_algorithms`."""
        key = node, text
        if key not in self.facts.algorithms:
            self.facts.algorithms[key] = algorithms.written(text, node)
        definition = self.facts.algorithms[key]
        given = [*args, *map(Static, algorithms.builtins_of(definition))]
        function = LocalFunction(definition, self.frame, (), ())
        return self.inline_local(function, given, {}, definition)

    # Sorting.

    def sort(self, seq: ListObject, key: Value, reverse: Value, node: ast.Call) -> None:
        """`l.sort(key=key, reverse=reverse)`."""
        keys: Value = Static(seq)
        if not isinstance(key, NoneValue):
            keys = self.algorithm(algorithms.KEYS, [keys, key], node)
        places = self.algorithm(algorithms.ORDER, [keys, reverse], node)
        self.algorithm(algorithms.PERMUTE, [Static(seq), places], node)

    def sort_arguments(self, kwargs: dict[str, Value], node: ast.AST) -> tuple[Value, Value]:
        """`key` and `reverse`."""
        if kwargs.keys() - {"key", "reverse"}:
            raise self.refusal(node, "sorting takes `key` and `reverse`")
        reverse = kwargs.get("reverse", self.e.constant(False, "py_bool"))
        return kwargs.get("key", NoneValue()), self.truth(reverse)

    def sorted_items(self, items: Value, kwargs: dict[str, Value], node: ast.Call) -> Value:
        """`sorted(...)`, of a list of its own."""
        seq = self.list_of(items)
        if seq is None:
            raise self.refusal(node, "only numbers, and tuples of them, are sorted")
        self.sort(seq, *self.sort_arguments(kwargs, node), node)
        return items

    def extreme_by(
        self, name: str, items: Value, key: Value, default: Value | None, node: ast.expr
    ) -> Value:
        """`min(items, key=..., default=...)`."""
        itself = isinstance(key, NoneValue)
        if itself:
            key = Static(algorithms.itself)
        sign = "<" if name == "min" else ">"
        if default is None:
            seq = self.list_of(items)
            parts = [] if seq is None else lists.parts_of_form(seq)
            if itself and self.is_of_objects(items):
                text = algorithms.LEAST
            else:
                text = algorithms.BEST if any(map(is_array, parts)) else algorithms.EXTREME
            text = text.format(name=name, sign=sign, message=EMPTY.format(name))
            return self.algorithm(text, [items, key], node)
        text = algorithms.EXTREME_OR.format(name=name, sign=sign)
        return self.algorithm(text, [items, key, default], node)

    def is_of_objects(self, items: Value) -> bool:
        """True for a list of what is ordered by a method of its class, or item by item."""
        seq = self.list_of(items)
        parts = [] if seq is None else lists.parts_of_form(seq)
        return any(isinstance(p, ObjectT | ListT) for p in parts)

    def find(self, seq: ListObject, wanted: Value, node: ast.AST) -> tuple[Scalar, Scalar]:
        """How many items are `wanted` or equal to it, and where the first is (or the length)."""
        if any(map(is_array, lists.parts_of_form(seq))):
            raise self.refusal(None, "an item is looked for in a list of arrays", "write the loop")
        has_identity = any(True for _ in parts_with_identity(wanted))
        test = algorithms.IS_OR_EQUAL if has_identity else algorithms.IS_EQUAL
        text = algorithms.FIND.format(test=test)
        found = self.algorithm(text, [Static(seq), wanted], node)
        assert isinstance(found, Tuple)
        number, at = found.items
        assert isinstance(number, Scalar)
        assert isinstance(at, Scalar)
        return number, at

    # Comparison.

    def compare_lists(self, name: str, lhs: Value, rhs: Value) -> Value:
        """Comparison of two lists, item by item."""
        lhs, rhs = (self.list_compared(v, name) for v in (lhs, rhs))
        a, b = self.list_of(lhs), self.list_of(rhs)
        if a is None or b is None:
            if name in ("Eq", "NotEq") and isinstance(lhs, Tuple | Static | NoneValue | Scalar):
                other = rhs if a is not None else lhs
                if isinstance(other, Tuple | NoneValue | Scalar):
                    return self.e.constant(name == "NotEq", "py_bool")
            raise self.refusal(
                None, "a list is compared with something else", "compare arrays: np.array(l)"
            )
        if any(is_array(t) for seq in (a, b) for t in lists.parts_of_form(seq)):
            raise self.refusal(
                None, "lists of arrays are compared", "compare arrays of them: np.stack(l)"
            )
        if None in list(map(lists.form_read, (a, b))):
            return scalars.compare(self.e, name, *(lists.length(self.e, s) for s in (a, b)))
        node = self.comparison_node(name)
        if name in ("Eq", "NotEq"):
            same = self.truth(self.algorithm(algorithms.EQUAL, [lhs, rhs], node))
            return same if name == "Eq" else scalars.unary(self.e, "Not", same)
        text = algorithms.LESS.format(sign=ORDER_SIGNS[name])
        return self.algorithm(text, [lhs, rhs], node)

    def list_compared(self, value: Value, name: str) -> Value:
        """A list of known items as one that is compared with any other."""
        if not isinstance(value, FixedList):
            return value
        if not all(map(lists.is_storable, value.items)):
            self.growing(value)
        return self.list_of_values(list(value.items), self.comparison_node(name))

    def comparison_node(self, name: str) -> ast.AST:
        """A node for the comparison at this place, the same one in each build."""
        place = self.e.span, name
        if place not in self.facts.implied:
            call = ast.Call(ast.Constant(None), [], [])
            self.facts.implied[place] = ast.copy_location(call, self.frame.source.node)
        return self.facts.implied[place]

    def order_tuples(self, name: str, lhs: Tuple, rhs: Tuple) -> Value:
        """`a < b` of tuples: the first items that differ decide, or the lengths."""
        counts = [self.e.constant(len(v.items), "py_int") for v in (lhs, rhs)]
        result = scalars.compare(self.e, name, *counts)
        both = list(zip(lhs.items, rhs.items, strict=False))
        alike = [self.truth(self.compare_values(ast.Eq(), a, b)) for a, b in both]
        for k, (a, b) in reversed(list(enumerate(both))):
            same = alike[k]
            if isinstance(a, Item) and isinstance(b, Item) and method_of(a, METHODS[name]) is None:
                self.require_decided(name, (a, b), alike[: k + 1])
                continue
            here = self.truth(self.compare_values(getattr(ast, name)(), a, b))
            ssa = self.e.emit(arith.SelectOp(same.ssa, result.ssa, here.ssa))
            result = Scalar("py_bool", ssa, None, 0, 1)
        return result

    def require_decided(self, name: str, pair: tuple[Item, Item], alike: list[Scalar]) -> None:
        """TypeError where objects without an order would decide: all before them are alike."""
        *before, same = alike
        asked = scalars.logical_not(self.e, same.ssa)
        for one in before:
            asked = self.e.emit(arith.AndIOp(one.ssa, asked))
        classes = " and ".join(f"{item.cls.__name__!r}" for item in pair)
        text = f"'{ORDER_SIGNS[name]}' not supported between instances of {classes}"
        scalars.raise_if(self.e, asked, ("TypeError", text))

    # Slices that are assigned or deleted.

    def part(self, seq: ListObject, index: SliceValue) -> tuple[Scalar, Scalar, Scalar]:
        """Where a slice begins, how many items it has, its step."""
        n = lists.length(self.e, seq).ssa
        found = indexing.slice_bounds(self.e, index, n)
        offset = self.e.emit(arith.MinSIOp(found[0], n))
        step = array.constant_value(found[2])
        return (
            Scalar("py_int", offset, None, 0, EXTENT_MAX),
            Scalar("py_int", found[1], None, 0, EXTENT_MAX),
            Scalar("py_int", found[2]) if step is None else self.e.constant(step, "py_int"),
        )

    def store_list_slice(
        self, seq: ListObject, index: SliceValue, value: Value, node: ast.Subscript
    ) -> None:
        """`l[a:b] = value`, `l[a:b:c] = value`."""
        self.let_move(seq)
        new = self.list_of(value)
        if new is None or new == seq:
            new = self.make_list(node)
            self.append_all(new, value, node)
        if new.item is not None:
            self.let_move(new)
            self.learn(seq, new.item)
        if seq.item is None:
            return
        if index.step is not None and index.step.constant != 1:
            self.store_extended(seq, index, new, node)
            return
        start, count, _ = self.part(seq, index)
        end = self.e.emit(arith.AddiOp(start.ssa, count.ssa))
        rest = self.items_from(seq, end, node)
        self.cut(seq, start.ssa)
        self.extend_by(seq, new)
        self.extend_by(seq, rest)

    def store_extended(
        self, seq: ListObject, index: SliceValue, new: ListObject, node: ast.AST
    ) -> None:
        """Store to items with a step between them, as many as there are."""
        _, count, _ = self.part(seq, index)
        given = lists.length(self.e, new)
        differs = scalars.compare(self.e, "NotEq", given, count)
        shown = [given.ssa, count.ssa]
        self.e.insert(array.RaiseIfOp(differs.ssa, "ValueError", OTHER_SIZE, shown))
        if new.item is None or seq.item is None:
            return
        if not list_changes.are_alike(new.item, seq.item):
            same = self.make_list(node)
            self.learn(same, seq.item)
            self.extend_by(same, new)
            new = same
        seq.changed = True
        targets = lists.sliced(self.e, seq, index)
        for target, source in zip(targets, lists.views(self.e, new), strict=True):
            lists.copy(self.e, source, target.memref)

    def items_from(self, seq: ListObject, start: SSAValue, node: ast.AST) -> ListObject:
        """A list of the items from a place on."""
        rest = self.make_list(node)
        assert seq.item is not None
        self.learn(rest, seq.item)
        index = SliceValue(Scalar("py_int", start, None, 0, EXTENT_MAX), None, None)
        parts = lists.sliced(self.e, seq, index)
        count = self.e.emit(arith.SubiOp(lists.length(self.e, seq).ssa, start))
        list_changes.append_columns(self.e, rest, seq.item, parts, count)
        return rest

    def cut(self, seq: ListObject, n: SSAValue) -> None:
        """Keep the first n items."""
        seq.shrinks = True
        lists.set_length(self.e, seq, n)

    def delete_list_slice(self, seq: ListObject, index: SliceValue, node: ast.Subscript) -> None:
        """`del l[a:b]`, `del l[a:b:c]`."""
        self.let_move(seq)
        if lists.form_read(seq) is None:
            return
        start, count, step = self.part(seq, index)
        if step.constant == 1:
            end = self.e.emit(arith.AddiOp(start.ssa, count.ssa))
            rest = self.items_from(seq, end, node)
            self.cut(seq, start.ssa)
            self.extend_by(seq, rest)
            return
        if step.low <= 0:
            start, step = self.upwards(start, count, step)
        kept = self.algorithm(algorithms.DELETE, [Static(seq), start, count, step], node)
        assert isinstance(kept, Scalar)
        self.cut(seq, kept.ssa)

    def upwards(self, start: Scalar, count: Scalar, step: Scalar) -> tuple[Scalar, Scalar]:
        """The first place and the step of the same places in ascending order."""
        e = self.e
        one, zero = e.index(1), e.index(0)
        last = e.emit(arith.MuliOp(e.emit(arith.SubiOp(count.ssa, one)), step.ssa))
        down = e.emit(arith.CmpiOp(step.ssa, zero, "slt"))
        lowest = e.emit(arith.AddiOp(start.ssa, e.emit(arith.SelectOp(down, last, zero))))
        size = e.emit(arith.SelectOp(down, e.emit(arith.SubiOp(zero, step.ssa)), step.ssa))
        return (
            Scalar("py_int", lowest, None, 0, EXTENT_MAX),
            Scalar("py_int", size, None, 1, EXTENT_MAX),
        )


def is_array(t: Template) -> bool:
    return isinstance(t, ArrayT)

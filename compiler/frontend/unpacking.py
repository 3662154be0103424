"""Unpacking: `a, b = value`, `first, *rest = value`, of tuples, arrays and lists."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith

from ...dialects import array
from . import library, scalars
from .calling import stepped
from .calling.generating import pending_of
from .data import list_changes, lists
from .data.list_algorithms import ListAlgorithms
from .joins import ScalarT
from .syntax import comprehensions
from .values import Array, Record, Scalar, SliceValue, Static, Struct, Tuple, Value


class Unpacking(ListAlgorithms):
    """Binds targets to the items of a value."""

    @abstractmethod
    def bind(self, target: ast.expr, value: Value) -> None:
        """Bind one target."""

    @abstractmethod
    def consume_value(
        self, function: Any, value: Value, start: Sequence[Value], node: ast.expr
    ) -> Value:
        """What a builtin makes of a value that it consumes."""

    def unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        is_ours = isinstance(value, Record | Struct) and value.cls is not dict
        if is_ours or pending_of(value) is not None or stepped.suspended_of(value) is not None:
            if any(isinstance(item, ast.Starred) for item in target.elts):
                value = self.consume_value(list, value, [], target)
            else:
                most = self.e.constant(len(target.elts), "py_int")
                value = self.consume_value(comprehensions.unpacked, value, [most], target)
        for k, item in enumerate(target.elts):
            if isinstance(item, ast.Starred):
                self.unpack_starred(target, item, k, value)
                return
        count = len(target.elts)
        if isinstance(value, Array) and value.rank:
            items = self.rows(value, count)
        elif isinstance(value, Tuple):
            items = list(value.items)
            if len(items) != count:
                raise self.refusal(target, f"{len(items)} values are unpacked into {count} names")
        elif (seq := self.list_of(value)) is not None:
            items = self.unpacked_list(seq, count)
        elif isinstance(value, Static) and hasattr(value.object, "item"):
            items = self.items_run_over(value.object, count, target)
        else:
            raise self.refusal(target, "this value cannot be unpacked")
        for item, part in zip(target.elts, items, strict=True):
            self.bind(item, part)

    def items_run_over(self, found: Any, count: int, target: ast.expr) -> list[Value]:
        """The `count` items of what a loop could run over (`iterables.Iterable`): of `map`, `zip`."""
        if found.items is not None:
            if len(found.items) != count:
                text = f"{len(found.items)} values are unpacked into {count} names"
                raise self.refusal(target, text)
            return [found.items[k] for k in range(count)]
        items, count_ssa = list[Value](), found.count.ssa
        for k in range(count):
            ends = scalars.compare(self.e, "LtE", found.count, self.e.constant(k, "py_int"))
            text = f"not enough values to unpack (expected {count}, got {k})"
            self.e.insert(array.RaiseIfOp(ends.ssa, "ValueError", text))
            items.append(found.item(self.e.index(k)))
        more = scalars.compare(self.e, "Gt", found.count, self.e.constant(count, "py_int"))

        def ask_for_more() -> None:
            found.item(self.e.index(count))
            text = f"too many values to unpack (expected {count})"
            beyond = self.e.emit(arith.CmpiOp(count_ssa, self.e.index(count), "sgt"))
            self.e.insert(array.RaiseIfOp(beyond, "ValueError", text))

        self.conditional(more, (ask_for_more, lambda: None), frozenset())
        return items

    def unpack_starred(
        self, target: ast.Tuple | ast.List, star: ast.Starred, first: int, value: Value
    ) -> None:
        """`a, *rest, z = value`: the items between the named ones become a list."""
        last = len(target.elts) - first - 1
        seq = self.list_of(value)
        if isinstance(value, Tuple):
            items = list(value.items)
            if len(items) < first + last:
                text = f"{len(items)} values are unpacked into {first + last} names and a list"
                raise self.refusal(target, text)
            ends = [*items[:first], *items[len(items) - last :]]
            rest = self.list_of_values(items[first : len(items) - last], star)
        elif seq is not None:
            self.require_items(lists.length(self.e, seq), first + last)
            at = [*range(first), *range(-last, 0)]
            ends = [lists.item_at(self.e, seq, self.e.constant(k, "py_int")) for k in at]
            rest = self.list_slice(seq, self.between(first, last), star)
        elif isinstance(value, Array) and value.rank == 1:
            extent = self.e.extents(value.memref)[0]
            self.require_items(Scalar("py_int", extent, None, 0), first + last)
            at = [*range(first), *range(-last, 0)]
            ends = [self.item_of_array(value, k) for k in at]
            rest = self.list_of_elements(value, self.between(first, last), star)
        else:
            raise self.refusal(
                star, "a list of arrays of a length that only the run knows", "use a slice: a[1:]"
            )
        for item, part in zip([e for e in target.elts if e is not star], ends, strict=True):
            self.bind(item, part)
        self.bind(star.value, rest)

    def list_of_elements(self, value: Array, which: SliceValue, node: ast.expr) -> Value:
        """A new list of the elements of a vector in a slice."""
        middle = library.subscript(self.e, value, (which,))
        assert isinstance(middle, Array)
        made = self.make_list(node)
        self.learn(made, ScalarT(middle.dtype))
        if made.buffers:
            list_changes.extend(self.e, made, [middle], self.e.extents(middle.memref)[0])
        return Static(made)

    def between(self, first: int, last: int) -> SliceValue:
        """`[first:-last]`."""
        stop = self.e.constant(-last, "py_int") if last else None
        return SliceValue(self.e.constant(first, "py_int"), stop, None)

    def require_items(self, n: Scalar, count: int) -> None:
        fewer = scalars.compare(self.e, "Lt", n, self.e.constant(count, "py_int"))
        text = f"not enough values to unpack (expected at least {count}, got {{}})"
        self.e.insert(array.RaiseIfOp(fewer.ssa, "ValueError", text, [n.ssa]))

    def item_of_array(self, value: Array, k: int) -> Value:
        return self.settled(library.subscript(self.e, value, (self.e.constant(k, "py_int"),)))

    def rows(self, value: Array, count: int) -> list[Value]:
        """The `count` rows of an array; ValueError where it has more or fewer."""
        extent = self.e.extents(value.memref)[0]
        wanted = self.e.index(count)
        fewer = self.e.emit(arith.CmpiOp(extent, wanted, "slt"))
        more = self.e.emit(arith.CmpiOp(extent, wanted, "sgt"))
        text = f"not enough values to unpack (expected {count}, got {{}})"
        self.e.insert(array.RaiseIfOp(fewer, "ValueError", text, [extent]))
        self.e.insert(
            array.RaiseIfOp(more, "ValueError", f"too many values to unpack (expected {count})")
        )
        return [self.item_of_array(value, k) for k in range(count)]

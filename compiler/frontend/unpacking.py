"""Unpacking: `a, b = value`, `first, *rest = value`, of tuples, arrays and lists."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...dialects import array
from . import library, scalars
from .calling import coroutines
from .calling.generator_values import pending_of
from .data import list_changes, lists
from .data.list_algorithms import ListAlgorithms
from .frames import Unready
from .joins import ScalarT
from .syntax import comprehensions
from .values import Array, Record, Scalar, SliceValue, Static, Struct, Tuple, Value


def unpacking_words() -> str:
    """What this CPython says after the number when a list has too many values to unpack."""
    try:
        _a, _b = [1, 2, 3]
    except ValueError as error:
        return ", got {}" if "got 3" in str(error) else ""
    return ""


MORE = unpacking_words()


class Unpacking(ListAlgorithms):
    """Binds targets to the items of a value."""

    @abstractmethod
    def consume_value(
        self, function: Any, value: Value, start: Sequence[Value], node: ast.expr
    ) -> Value:
        """What a builtin makes of a value that it consumes."""

    def unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        is_ours = isinstance(value, Record | Struct) and value.cls is not dict
        if is_ours or pending_of(value) is not None or coroutines.suspended_of(value) is not None:
            if any(isinstance(item, ast.Starred) for item in target.elts):
                value = self.consume_value(list, value, [], target)
            else:
                most = self.e.constant(len(target.elts), "py_int")
                value = self.consume_value(comprehensions.unpacked, value, [most], target)
        for k, item in enumerate(target.elts):
            if isinstance(item, ast.Starred):
                self.unpack_starred(target, item, k, value)
                return
        count, over = len(target.elts), value.object if isinstance(value, Static) else None
        known = getattr(value if isinstance(value, Tuple) else over, "items", None)
        if known is not None:
            items = list(known)
            if len(items) != count:
                raise self.refusal(target, f"{len(items)} values are unpacked into {count} names")
        elif (found := self.exactly(count, value)) is not None:
            items = found
        elif isinstance(value, Static) and hasattr(over, "item"):
            items = self.items_run_over(over, count)
        else:
            raise self.refusal(target, "this value cannot be unpacked")
        for item, part in zip(target.elts, items, strict=True):
            self.bind(item, part)

    def items_run_over(self, over: Any, count: int) -> list[Value]:
        """The `count` items of what a loop could run over (`iterables.Iterable`): of `map`, `zip`."""
        items = list[Value]()
        for k in range(count):
            short = f"not enough values to unpack (expected {count}, got {k})"
            scalars.raise_where(self.e, over.count, "LtE", k, ("ValueError", short))
            items.append(over.item(self.e.index(k)))
        long = f"too many values to unpack (expected {count})"

        def ask_for_more() -> None:
            over.item(self.e.index(count))
            scalars.raise_where(self.e, over.count, "Gt", count, ("ValueError", long))

        more = scalars.compare(self.e, "Gt", over.count, self.e.constant(count, "py_int"))
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
        elif seq is not None or (isinstance(value, Array) and value.rank == 1):
            found = self.sequence(value)
            assert found is not None
            text = f"not enough values to unpack (expected at least {first + last}, got {{}})"
            fewer, (length, item) = ("ValueError", text), found
            scalars.raise_where(self.e, length, "Lt", first + last, fewer, length.ssa)
            ends = [item(k) for k in (*range(first), *range(-last, 0))]
            middle = self.between(first, last)
            if isinstance(value, Array):
                rest = self.list_of_elements(value, middle, star)
            else:
                assert seq is not None
                rest = self.list_slice(seq, middle, star)
        else:
            raise self.refusal(star, "a list of arrays of run-time length", "use a slice: a[1:]")
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

    def sequence(self, value: Value) -> tuple[Scalar, Callable[[int], Value]] | None:
        """The length of an array or a list, and its items by their numbers; None for anything else."""
        if isinstance(value, Array) and value.rank:
            extent = self.e.extents(value.memref)[0]
            length = Scalar("py_int", extent, array.constant_value(extent), 0)
            return length, partial(self.nth_item, value)
        seq = self.list_of(value)
        return None if seq is None else (lists.length(self.e, seq), partial(self.nth_item, seq))

    def nth_item(self, value: Array | lists.ListObject, k: int) -> Value:
        at = self.e.constant(k, "py_int")
        if isinstance(value, Array):
            return library.subscript(self.e, value, (at,))
        if lists.form_read(value) is None:
            raise Unready
        if k < 0:
            return lists.item_at(self.e, value, at)
        return lists.load_item(self.e, value, at.ssa)

    def exactly(self, count: int, value: Value) -> list[Value] | None:
        """The `count` items of an array or a list; ValueError where it has more or fewer."""
        if (found := self.sequence(value)) is None:
            return None
        length, item = found
        fewer = "ValueError", f"not enough values to unpack (expected {count}, got {{}})"
        scalars.raise_where(self.e, length, "Lt", count, fewer, length.ssa)
        said, shown = ("", []) if isinstance(value, Array) or not MORE else (MORE, [length.ssa])
        more = "ValueError", f"too many values to unpack (expected {count}{said})"
        scalars.raise_where(self.e, length, "Gt", count, more, *shown)
        return [item(k) for k in range(count)]

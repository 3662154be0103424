"""What a `for` loop runs over: how many items there are, and which is the k-th.

    range(a, b, s)     max(0, ceil((b - a) / s)) items       a + k * s
    an array           its first extent                      element k, or the view of row k
    enumerate(it)      as many as it                         (start + k, item k)
    zip(p, q)          the fewer                             (item k of p, item k of q)
    reversed(it)       as many as it                         item n - 1 - k
    a tuple            unrolled

The ints of a range have its bounds: that proves subscripts and arithmetic with them.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import FunctionType
from typing import Any, NoReturn, cast

from xdsl.dialects import arith, memref
from xdsl.ir import Block, SSAValue

from ...dialects import array
from . import choices, scalars
from .calling import coroutines, generator_values, iterator_protocol, standard_iterators
from .calling.coroutines import Suspended
from .calling.generator_values import Pending, pending_of
from .calling.recursion import Again
from .data import lists, protocols, tables
from .data.assigned_items import LiveItems
from .data.lists import ListObject
from .emitter import Emitter
from .library import ranges
from .statements import Statements
from .syntax import comprehensions
from .syntax.generator_loops import place_of
from .values import (
    EXTENT_MAX,
    INT64_MAX,
    Array,
    NoneValue,
    Record,
    Scalar,
    SliceValue,
    Static,
    Struct,
    Tuple,
    Value,
)


@dataclass(eq=False)
class Iterable:
    """What a `for` runs over: how many items, and the item of each count.

    Of `lists` that it runs over it is asked `now` how many there are. An iterator that Python would
    exhaust is consumed once, in the block where it was made.
    """

    described = "a range or an iterator"
    count: Scalar
    item: Callable[[SSAValue], Value]
    items: tuple[Value, ...] | None = None
    lists: tuple[ListObject, ...] = field(default=())
    now: Callable[[], Scalar] | None = None
    made: Block | None = None
    bounds: dict[str, Scalar] | None = None
    """Of a range: what its attributes are."""
    slice_of: ListObject | None = None
    """The list behind a slice that is only iterated over."""
    endless: Pending | None = None
    """It has no end: the generator that it is where nothing beside it has one."""
    place: Any = None
    """Where in the program it was made: for the next build."""
    resumed: Suspended | None = None
    """The generator that is asked for the items one by one."""
    claimed: bool = False
    """The program says that what is done for one item is independent of the others."""

    def sliced(self, e: Emitter, s: SliceValue) -> Iterable:
        """Of a range: a part of it."""
        assert self.bounds is not None
        start, stop, step = self.bounds.values()
        return range_of(e, ranges.part(e, (start, stop, step), self.count, s))


def range_of(e: Emitter, bounds: ranges.Bounds) -> Iterable:
    start, stop, step = bounds
    if step.low <= 0 <= step.high:
        zero = "ValueError", "range() arg 3 must not be zero"
        scalars.raise_where(e, step, "Eq", 0, zero)
    if step.constant == 0:
        return Iterable(step, lambda i: start, ())
    found = {"start": start, "stop": stop, "step": step}
    return Iterable(ranges.count(e, bounds), ranges.item_of(e, bounds), bounds=found)


class LazyItems(Sequence[Value]):
    """The items of something of known length, each computed where it is asked for."""

    def __init__(self, places: range, item: Callable[[int], Value]) -> None:
        self.places, self.item = places, item

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return LazyItems(self.places[index], self.item)
        return self.item(self.places[index])


class Iterables(Statements):
    """Lowers what stands behind `in`."""

    def iterable(self, node: ast.expr) -> Iterable:
        with self.located(node):
            value = self.expression(node)
            over = value.object if isinstance(value, Static) else None
            if isinstance(over, Iterable) and over.endless is None and self.is_made_here(node):
                return over
            return self.iterable_value(value, node)

    def is_made_here(self, node: ast.expr) -> bool:
        """True where what is run over has no name: nothing else can consume it."""
        if isinstance(node, ast.Call):
            called = self.expression(node.func)
            return isinstance(called, Static) and called.object in comprehensions.ITERATORS
        return isinstance(node, ast.GeneratorExp)

    def iterator(self, kind: object, node: ast.Call) -> Value:
        """What `range`, `enumerate`, `zip`, `reversed` or `map` makes: of a generator, a generator."""
        place = coroutines.place_here(self, kind)
        if kind is not range and coroutines.is_stepped(self, place):
            return iterator_protocol.iterator(self, kind, node, place)
        made = self.iterator_at_once(kind, node)
        if kind is not range and isinstance(made, Static) and isinstance(made.object, Iterable):
            return Static(replace(made.object, place=place))
        return made

    def iterator_at_once(self, kind: object, node: ast.Call) -> Value:
        if any(isinstance(a, ast.Starred) for a in node.args):
            raise self.refusal(node, "`*` in a call is not compiled", "write the arguments out")
        if kind in ranges.RANGES:
            if node.keywords or not 1 <= len(node.args) <= 3:
                raise self.refusal(node, "range takes 1 to 3 positional arguments")
            return Static(replace(self.range(node), claimed=kind is ranges.Independent))
        if kind is zip:
            parts = [self.run_over(a) for a in node.args]
            if (row := self.zipped_with(kind, parts, node)) is not None:
                return row
            plain = cast("list[Iterable]", parts)
            if all(map(is_plain_strict, node.keywords)):
                return Static(self.zipped(plain, node))
            return Static(self.zipped_strictly(plain, node))
        if kind is map:
            return self.mapped(node)
        if not node.args:
            raise self.refusal(node, "an iterator of nothing")
        inner = self.run_over(node.args[0])
        if kind is reversed:
            if not isinstance(inner, Iterable):
                raise self.refusal(node, "'generator' object is not reversible", "make a list")
            return Static(self.reversed(inner))
        starts = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "start")]
        if len(starts) > 1 or len(starts) < len(node.args) - 1 + len(node.keywords):
            raise self.refusal(node, "enumerate takes an iterable and `start`")
        start = self.int_value(starts[0]) if starts else self.e.constant(0, "py_int")
        if not isinstance(inner, Iterable):
            return self.generator(standard_iterators.numbered, Static(inner), start)
        return Static(self.enumerated(inner, start))

    def enumerated(self, inner: Iterable, start: Scalar) -> Iterable:
        if inner.items is not None:
            own = inner.items

            def numbered(k: int) -> Value:
                number = scalars.integer(self.e, "Add", start, self.e.constant(k, "py_int"))
                return Tuple((number, own[k]))

            return Iterable(inner.count, lambda i: NoneValue(), lazily(len(own), numbered, own))
        high = max(inner.count.high - 1, 0)

        def item(i: SSAValue) -> Value:
            number = scalars.integer(self.e, "Add", start, Scalar("py_int", i, None, 0, high))
            return Tuple((number, inner.item(i)))

        return Iterable(inner.count, item, None, inner.lists, inner.now, self.homes[-1])

    # Generators.

    def run_over(self, node: ast.expr) -> Iterable | Pending | Suspended:
        """What stands in `zip` and the like. A loop over a generator alone there is written out, and the
        generator asked for its items one by one is another generator."""
        value = self.iterated(self.expression(node), node)
        if (suspended := coroutines.suspended_of(value)) is not None:
            return suspended
        found = pending_of(value)
        if found is None:
            return self.iterable_value(value, node, alone=False)
        if self.facts.learn_generator(place_of(node, self.frame.source.file)):
            raise Again
        return found

    def iterated(self, value: Value, node: ast.AST) -> Value:
        """What is run over: of an object, what its `__iter__` makes."""
        if isinstance(value, Record | Struct) and value.cls is not dict:
            return protocols.iterated(self, value, node)
        return value

    def generator(self, function: FunctionType, *args: Value) -> Value:
        """A generator of the standard library."""
        return generator_values.pending(cast(Any, self), function, list(args), {})

    def zipped_with(
        self, kind: Any, parts: Sequence[Iterable | Pending | Suspended], node: ast.Call
    ) -> Value | None:
        """`zip` of a generator and what has its items at places; None where there is no generator."""
        at = [k for k, p in enumerate(parts) if not isinstance(p, Iterable)]
        if not at:
            return None
        if len(at) > 1 or node.keywords:
            refusal = self.refusal(
                node, "a generator in `zip(..., strict=True)` is not compiled",
                "make lists, compare their lengths, and leave out `strict`",
            )  # fmt: skip
            coroutines.again(self, coroutines.place_here(self, kind), refusal)
        (k,) = at
        whole = [self.indexed(p, node) if isinstance(p, Iterable) else p for p in parts]
        sides = (Tuple(tuple(map(Static, side))) for side in (whole[:k], whole[k + 1 :]))
        return self.generator(standard_iterators.zipped, Static(whole[k]), *sides)

    def over_generator(self, node: ast.expr) -> NoReturn:
        """A loop over a generator: the next build makes a function of its body."""
        if self.facts.learn_generator(place_of(node, self.frame.source.file)):
            raise Again
        raise self.refusal(
            node,
            "a generator is consumed in a way that is not compiled",
            "loop over it with `for`, alone or in `enumerate` or `zip` with arrays and lists",
        )

    def over_list(self, seq: ListObject) -> Iterable:
        if lists.form_read(seq) is None:
            return Iterable(self.e.constant(0, "py_int"), lambda i: NoneValue(), ())

        def now() -> Scalar:
            return lists.length(self.e, seq)

        return Iterable(now(), lambda i: lists.load_item(self.e, seq, i), None, (seq,), now)

    def over_iterator(self, found: Iterable, node: ast.expr) -> Iterable:
        """What a name or an argument has been made to run over."""
        if found.made is not None and found.made is not self.homes[-1]:
            refusal = self.refusal(
                node,
                "an iterator is consumed in another place than it was made, or twice",
                "make a list of it, or make it anew",
            )
            coroutines.again(self, found.place, refusal)
        if found.made is not None:
            found.made = Block()
        return replace(found, count=found.now()) if found.lists and found.now else found

    def iterable_value(self, value: Value, node: ast.expr, *, alone: bool = True) -> Iterable:
        """What a value makes a loop run over. `alone`: nothing else says when to stop."""
        value = choices.present(self, value, "'NoneType' object is not iterable")
        if pending_of(value) is not None:
            self.over_generator(node)
        if (suspended := coroutines.suspended_of(value)) is not None:
            endless = self.e.constant(INT64_MAX, "py_int")
            return Iterable(endless, lambda i: NoneValue(), resumed=suspended)
        if isinstance(value, Static) and isinstance(value.object, Iterable):
            if alone and value.object.endless is not None:
                self.over_generator(node)
            return self.over_iterator(value.object, node)
        if (seq := self.list_of(value)) is not None:
            return self.over_list(seq)
        if isinstance(value, Record | Struct):
            if value.cls is not dict:
                return self.iterable_value(protocols.iterated(self, value, node), node)
            value = Tuple(self.items_of_iterable(value, node))
        if isinstance(value, Static) and isinstance(value.object, str):
            value = Tuple(tuple(map(Static, value.object)))
        if isinstance(value, Static) and isinstance(value.object, enum.EnumMeta):
            value = Tuple(tuple(self.constant(member, "a member") for member in value.object))
        if isinstance(value, Tuple):
            count = self.e.constant(len(value.items), "py_int")
            memory = tables.numbers(self, value) if tables.is_long(value) else None
            if memory is None:
                items: Sequence[Value] = value.items
                own = lazily(len(items), lambda k: items[k], items)
                return Iterable(count, lambda i: NoneValue(), own)
            type_ = tables.item_type(value)
            return Iterable(count, lambda i: tables.loaded(self, memory, i, type_))
        self.refuse_long_list(value, node)
        if not isinstance(value, Array):
            raise self.refusal(
                node, "this is not something a loop can run over", "use range, an array or a tuple"
            )
        if value.rank == 0:
            raise self.refusal(node, "iteration over a 0-d array")
        extents = self.e.extents(value.memref)
        known = array.constant_value(extents[0])
        count = (
            Scalar("py_int", extents[0], None, 0, EXTENT_MAX)
            if known is None
            else Scalar("py_int", extents[0], known, known, known)
        )
        return Iterable(count, lambda i: self.row(value, extents, i))

    def row(self, value: Array, extents: Sequence[SSAValue], i: SSAValue) -> Value:
        """Item `i` of an array: an element, or a view of one rank less. `i` is in range."""
        if value.rank == 1:
            return Scalar(value.dtype, self.e.emit(memref.LoadOp.get(value.memref, [i])))
        zero, one = self.e.index(0), self.e.index(1)
        rest = range(1, value.rank)
        op = array.ViewOp(
            value.memref, [i, *(zero for _ in rest)], list(rest), extents[1:], [one] * len(rest)
        )
        return Array(self.e.emit(op), value.dtype)

    def int_value(self, node: ast.expr) -> Scalar:
        return self.integer(self.expression(node), node)

    def range(self, node: ast.Call) -> Iterable:
        parts = [self.int_value(a) for a in node.args]
        zero, one = self.e.constant(0, "py_int"), self.e.constant(1, "py_int")
        start, stop, step = (zero, *parts, one) if len(parts) == 1 else (*parts, one)[:3]
        return range_of(self.e, (start, stop, step))

    def builtin_iter(self, args: list[Value], node: ast.Call) -> Value:
        """`iter(v)`: what a loop runs over once."""
        if len(args) != 1:
            raise self.refusal(node, "iter is compiled with one argument")
        value = self.iterated(args[0], node)
        found = value.object if isinstance(value, Static) else None
        is_iterator = isinstance(found, Iterable) and found.made is not None
        if pending_of(value) is not None or isinstance(found, Suspended) or is_iterator:
            return value
        place = coroutines.place_here(self, iter)
        if coroutines.is_stepped(self, place):
            return iterator_protocol.iterator_of(self, value, node, place)
        over = self.iterable_value(value, node)
        return Static(replace(over, made=self.homes[-1], bounds=None, place=place))

    def zipped(self, parts: list[Iterable], node: ast.Call) -> Iterable:
        """Items side by side, as many as the shortest has."""
        if not parts:
            return Iterable(self.e.constant(0, "py_int"), lambda i: NoneValue(), ())
        if all(p.items is not None for p in parts):
            columns = [p.items or () for p in parts]
            fewest = min(map(len, columns))
            rows = lazily(fewest, lambda k: Tuple(tuple(c[k] for c in columns)), *columns)
            return Iterable(self.e.constant(len(rows), "py_int"), lambda i: NoneValue(), rows)
        parts = [p if p.items is None else self.indexed(p, node) for p in parts]
        count = parts[0].count
        for part in parts[1:]:
            if part.count.ssa is not count.ssa:
                ssa = self.e.emit(arith.MinSIOp(count.ssa, part.count.ssa), "count")
                count = Scalar(
                    "py_int",
                    ssa,
                    None,
                    min(count.low, part.count.low),
                    min(count.high, part.count.high),
                )
        of_lists = tuple(seq for p in parts for seq in p.lists)

        def now() -> Scalar:
            counts = [p.count if p.now is None else p.now() for p in parts]
            least = counts[0].ssa
            for other in counts[1:]:
                least = self.e.emit(arith.MinSIOp(least, other.ssa))
            return Scalar("py_int", least, None, 0, max(c.high for c in counts))

        return Iterable(
            count,
            lambda i: Tuple(tuple(p.item(i) for p in parts)),
            None,
            of_lists,
            now if all(p.now is not None or not p.lists for p in parts) else None,
            self.homes[-1],
        )

    def mapped(self, node: ast.Call) -> Value:
        """`map(f, a, ...)`: f is called where an item is asked for."""
        if len(node.args) < 2 or node.keywords:
            raise self.refusal(node, "map takes a function and something to run over")
        function = self.expression(node.args[0])
        parts = [self.run_over(a) for a in node.args[1:]]
        if len(parts) == 1 and not isinstance(parts[0], Iterable):
            return self.generator(standard_iterators.mapped, function, Static(parts[0]))
        if (row := self.zipped_with(map, parts, node)) is not None:
            return self.generator(standard_iterators.starmap, function, row)
        rows = self.zipped(cast("list[Iterable]", parts), node)

        def called(row: Value) -> Value:
            assert isinstance(row, Tuple)
            return self.call(function, list(row.items), {}, node)

        if rows.items is not None:
            items, rounds = rows.items, range(len(rows.items))
            lazy = LazyItems(rounds, lambda k: called(items[k]))
            known = cast("tuple[Value, ...]", lazy)
            return Static(Iterable(rows.count, lambda i: NoneValue(), known))

        def item(i: SSAValue) -> Value:
            return called(rows.item(i))

        return Static(replace(rows, item=item))

    def zipped_strictly(self, parts: list[Iterable], node: ast.Call) -> Iterable:
        """`zip(..., strict=True)`: where the counts differ there is one more round, which raises."""
        rows = self.zipped(parts, node)
        if rows.lists:
            raise self.refusal(
                node, "`zip` of lists is compiled without `strict=True`",
                "compare the lengths before, and leave it out",
            )  # fmt: skip
        if rows.items is not None:
            if any(len(p.items or ()) != len(rows.items) for p in parts):
                raise self.refusal(node, "zip() with strict=True of items of different number")
            return rows
        e, least = self.e, rows.count
        others = [scalars.compare(e, "NotEq", p.count, least).ssa for p in parts]
        more = reduce(lambda a, b: e.emit(arith.OrIOp(a, b)), others)
        extra = scalars.convert(e, Scalar("py_bool", more, None, 0, 1), "py_int")
        true = e.constant(True, "py_bool").ssa

        def item(i: SSAValue) -> Value:
            over = e.emit(arith.CmpiOp(i, least.ssa, "eq"))
            for word in ("shorter", "longer"):
                for k, other in enumerate(others[1:], 1):
                    before = "argument 1" if k == 1 else f"arguments 1-{k}"
                    wrong = other
                    if word == "shorter":
                        wrong = e.emit(arith.AndIOp(others[0], e.emit(arith.XOrIOp(other, true))))
                    text = f"zip() argument {k + 1} is {word} than {before}"
                    scalars.raise_if(e, e.emit(arith.AndIOp(over, wrong)), ("ValueError", text))
            return rows.item(i)

        return replace(rows, count=scalars.integer(e, "Add", least, extra), item=item)

    def indexed(self, part: Iterable, node: ast.AST) -> Iterable:
        """A tuple beside what a loop runs over: its items are put into arrays."""
        if not part.items:
            return part
        form, columns = tables.stored(self, Tuple(part.items), node)
        return Iterable(part.count, lambda i: tables.row(self, form, columns, i))

    def reversed(self, inner: Iterable) -> Iterable:
        if inner.items is not None:
            return Iterable(inner.count, inner.item, inner.items[::-1])
        last = scalars.integer(self.e, "Sub", inner.count, self.e.constant(1, "py_int"))
        return Iterable(
            inner.count,
            lambda i: inner.item(self.e.emit(arith.SubiOp(last.ssa, i))),
            None,
            inner.lists,
            None,
            self.homes[-1],
        )


def lazily(
    count: int, item: Callable[[int], Value], *sources: Sequence[Value]
) -> tuple[Value, ...]:
    """The items made of those of `sources`: where one of them is lazy, where they are asked for."""
    if any(isinstance(s, LazyItems | LiveItems) for s in sources):
        return cast("tuple[Value, ...]", LazyItems(range(count), item))
    return tuple(item(k) for k in range(count))


def is_plain_strict(keyword: ast.keyword) -> bool:
    """True for `strict=False`."""
    return (
        keyword.arg == "strict"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is False
    )

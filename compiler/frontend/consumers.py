"""Lowers comprehensions, generator expressions, and the builtins that consume what can be run over."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType
from typing import Any, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from ...dialects import array
from . import scalars
from .calling import coroutines, generator_values, iterator_protocol
from .calling.coroutines import Suspended
from .calling.generator_values import Pending, pending_of
from .calling.recursion import Again
from .data import hashed, list_changes, lists, protocols
from .data.fields import fields_in
from .data.list_access import Asked
from .data.list_rows import ShapeUnknown
from .data.lists import FixedList, ListObject
from .frames import Frame, LocalFunction, Scope
from .iterables import Iterable, Iterables
from .joins import ArrayT
from .syntax import comprehensions, list_algorithms, nodes, normalize
from .syntax.comprehensions import Comprehension
from .syntax.generator_loops import place_of
from .syntax.liveness import Liveness, bound_by
from .syntax.scopes import parameters
from .values import Array, NoneValue, Record, Row, Scalar, SliceValue, Static, Struct, Tuple, Value

MOST_ROUNDS = 64
"""A comprehension that is written out has no more."""


class Consumers(Iterables):
    """Lowers what makes and consumes items one by one."""

    # Comprehensions.

    def comprehension(self, node: ast.expr) -> Value:
        assert isinstance(node, Comprehension)
        self.check_comprehension(node)
        if isinstance(node, ast.GeneratorExp):
            return self.generator_expression(node)
        if self.has_generator(node.generators[0].iter):
            return self.consume(list, [NoneValue()], node, node)
        outer = self.iterable(node.generators[0].iter)
        if outer.items is not None and comprehensions.is_plain(node):
            return self.list_of_values(self.each(node, outer), node)
        if id(node) in self.facts.written_out:
            frame = self.frame_of_comprehension(node)
            rounds = range(int(outer.count.constant or 0))
            items = [self.item_of(node, frame, self.numbered(outer, k)) for k in rounds]
            return self.list_of_values(items, node)
        try:
            return self.consume(list, [self.handed_on(outer)], node, node)
        except ShapeUnknown:
            count = outer.count.constant
            if count is None or count > MOST_ROUNDS or outer.lists:
                raise
            if not comprehensions.is_plain(node):
                raise
            self.facts.written_out.add(id(node))
            raise Again from None

    def check_comprehension(self, node: Comprehension) -> None:
        if nodes.binds(node):
            raise self.refusal(node, "`:=` in a comprehension is not compiled", "write the loop")
        if any(g.is_async for g in node.generators):
            raise self.refusal(node, "coroutines are not compiled")

    def each(self, node: Comprehension, outer: Iterable) -> list[Value]:
        """The items of a comprehension over a tuple."""
        frame = self.frame_of_comprehension(node)
        return [self.item_of(node, frame, item) for item in outer.items or ()]

    def unrolled_items(self, node: ast.DictComp, item: ast.expr) -> list[Value]:
        frame, found = self.frame_of_comprehension(node), list[Value]()

        def rounds(k: int) -> None:
            if k == len(node.generators):
                found.append(self.expression(item))
                return
            generator = node.generators[k]
            known = self.iterable(generator.iter)
            for value in self.known_items(known, generator.iter):
                self.bind(generator.target, value)
                tests = [self.test(test) for test in generator.ifs]
                if any(t.constant is None for t in tests):
                    raise self.refusal(
                        generator.ifs[0], "the keys of this dict are dynamic",
                        "keys are constants: strings, ints, enum members",
                    )  # fmt: skip
                if all(t.constant for t in tests):
                    rounds(k + 1)

        with self.inside(frame):
            rounds(0)
        return found

    def known_items(self, over: Iterable, node: ast.expr) -> Sequence[Value]:
        """The items of something whose length is known."""
        if over.items is not None:
            return over.items
        count = over.count.constant
        if over.lists or count is None or count > MOST_ROUNDS:
            raise self.refusal(
                node, "the number of keys of this dict is dynamic",
                "loop over a tuple or a range of constants",
            )  # fmt: skip
        return [self.numbered(over, k) for k in range(int(count))]

    def numbered(self, over: Iterable, k: int) -> Value:
        """Item k, an int of a range as the constant that it is."""
        item = over.item(self.e.index(k))
        known = array.constant_value(item.ssa) if isinstance(item, Scalar) else None
        return item if known is None else self.e.constant(known, "py_int")

    @contextmanager
    def inside(self, frame: Frame) -> Generator[None]:
        """Meanwhile the names are those of a comprehension."""
        outer, self.frame = self.frame, frame
        frame.env.update(fields_in(outer.env))
        try:
            yield
        finally:
            outer.env.update(fields_in(frame.env))
            self.frame = outer

    def frame_of_comprehension(self, node: Comprehension | ast.DictComp) -> Frame:
        names = comprehensions.own_names(node.generators)
        frame = self.new_frame(self.frame.source, self.frame.scope, names, Liveness(), node)
        frame.parent = self.frame
        return frame

    def item_of(self, node: Comprehension, frame: Frame, item: Value) -> Value:
        with self.inside(frame):
            self.bind(node.generators[0].target, item)
            return self.expression(node.elt)

    def handed_on(self, over: Iterable | Pending | Suspended) -> Static:
        """What is run over, for the lines that will: what it was made from counts as consumed."""
        if isinstance(over, Iterable) and over.made is not None:
            over = replace(over, made=self.homes[-1])
        return Static(over)

    def generator_expression(self, node: ast.GeneratorExp) -> Value:
        """A generator expression. Where each item of an array or list makes one, they have places."""
        first = node.generators[0].iter
        place = coroutines.place_here(self, node)
        if coroutines.is_stepped(self, place):
            over = iterator_protocol.places(self, self.expression(first), node)
            return coroutines.start(self, self.written_generator(node), [over], {}, place)
        inner = self.run_over(first)
        if (
            not isinstance(inner, Iterable)
            or inner.items is not None
            or not comprehensions.is_plain(node)
        ):
            made = generator_values.pending(
                self, self.written_generator(node), [self.handed_on(inner)], {}
            )
            if (found := pending_of(made)) is not None:
                found.place = place
            return made
        frame = self.frame_of_comprehension(node)
        return Static(
            Iterable(
                inner.count,
                lambda i: self.item_of(node, frame, inner.item(i)),
                None,
                inner.lists,
                inner.now,
                self.homes[-1],
                place=place,
            )
        )

    def written_generator(self, node: ast.GeneratorExp) -> LocalFunction:
        """The generator function that a generator expression is."""
        key = node, node
        if key not in self.facts.consumers:
            self.facts.consumers[key] = generator_values.written(node)
        return LocalFunction(self.facts.consumers[key], self.frame, (), ())

    # What consumes items.

    def consumes(self, function: object, node: ast.Call) -> bool:
        """True for a call that `consumed` lowers: of a builtin that takes all items of its argument."""
        if any(isinstance(a, ast.Starred) for a in node.args):
            return False
        if function in comprehensions.ITERATORS:
            return True
        if node.keywords or function is sorted:
            return self.takes_keywords(function, node)
        if not any(function is f for f in comprehensions.TEMPLATES) and function is not tuple:
            return False
        two = function in (sum, next, comprehensions.managed, *comprehensions.VISITING)
        return len(node.args) == 1 or (two and len(node.args) == 2)

    def consumed(self, function: Any, node: ast.Call) -> Value:
        node = hashed.of_unordered(self, function, node)
        if function in comprehensions.ITERATORS:
            return self.iterator(function, node)
        if node.keywords or function is sorted:
            return self.consumed_with_keywords(function, node)
        first, *rest = node.args
        if function is next and (found := self.asked_for_next(node)) is not None:
            return found
        start = [self.expression(a) for a in rest]
        if function is sum and not start:
            start = [self.e.constant(0, "py_int")]
        if function is tuple:
            return self.tuple_of(self.evaluated(first), node)
        function = comprehensions.first_or if function is next and start else function
        fused = ast.GeneratorExp
        if function in comprehensions.FUSED_WITH_LISTS:
            fused = Comprehension
        if self.is_beside_generator(first):
            first = comprehensions.items_of(first)
        if isinstance(first, fused) and self.has_generator(first.generators[0].iter):
            self.check_comprehension(first)
            return self.consume(function, [NoneValue(), *start], node, first)
        if isinstance(first, fused):
            self.check_comprehension(first)
            outer = self.iterable(first.generators[0].iter)
            at_once = function in comprehensions.FUSED_WITH_LISTS and comprehensions.is_plain(first)
            if outer.items is None or not at_once:
                return self.consume(function, [self.handed_on(outer), *start], node, first)
            value: Value = Tuple(tuple(self.each(first, outer)))
        else:
            value = self.expression(nodes.as_tuple(first, ast.List))
        return self.consume_value(function, value, start, node)

    def asked_for_next(self, node: ast.Call) -> Value | None:
        """`next(v)` of an object with `__next__`; None of a generator, of which the first item is taken."""
        if isinstance(node.args[0], ast.GeneratorExp):
            return None
        value = self.expression(node.args[0])
        if (suspended := coroutines.suspended_of(value)) is not None:
            if len(node.args) == 1:
                return coroutines.next_item(self, suspended, NoneValue(), node)
            return coroutines.next_or(self, suspended, self.expression(node.args[1]), node)
        if len(node.args) == 1 and (found := protocols.by_method(self, value, "__next__", node)):
            return found
        if pending_of(value) is None:
            refusal = self.refusal(
                node, "`next` of this is not compiled",
                "give it a generator, or an object with `__next__`; index what has items: x[k]",
            )  # fmt: skip
            made = value.object if isinstance(value, Static) else None
            coroutines.again(self, getattr(made, "place", None), refusal)
        default = [self.expression(a) for a in node.args[1:]]
        function = comprehensions.first_or if default else next
        return self.consume_value(function, value, default, node)

    def takes_keywords(self, function: object, node: ast.Call) -> bool:
        """True for `sorted(...)`, and for `min` and `max` with a key or a default."""
        if len(node.args) != 1 or any(k.arg is None for k in node.keywords):
            return False
        known = {"key", "default"} if function in (min, max) else set[str]()
        return function is sorted or {k.arg for k in node.keywords} <= known

    def consumed_with_keywords(self, function: Any, node: ast.Call) -> Value:
        """`sorted(items, key=..., reverse=...)`, `min(items, key=..., default=...)`."""
        place = self.e.span, (function, id(node))
        if place not in self.facts.implied:
            listed = ast.Call(node.func, node.args, [])
            self.facts.implied[place] = ast.copy_location(listed, node)
        items = self.list_itself(function, node.args[0])
        if function is sorted and not node.keywords and (known := self.known_order(node)):
            return known
        if items is None:
            items = self.consumed(list, self.facts.implied[place])
        kwargs = {str(k.arg): self.expression(k.value) for k in node.keywords}
        if function is sorted:
            return self.sorted_items(items, kwargs, node)
        key = kwargs.get("key", NoneValue())
        return self.extreme_by(function.__name__, items, key, kwargs.get("default"), node)

    def known_order(self, node: ast.Call) -> Value | None:
        """`sorted(...)` of strings, of the keys of a dict or of its items: in order while compiling."""
        first = node.args[0]
        method = (
            first.func.attr
            if isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute)
            else ""
        )
        if method not in ("keys", "items") and not isinstance(first, ast.Name):
            return None
        value = self.expression(first)
        items = tuple(value.items) if isinstance(value, Tuple) else ()
        keys = [item.items[0] if isinstance(item, Tuple) and item.items else item for item in items]
        names = [k.object if isinstance(k, Static) else None for k in keys]
        if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
            return None
        order = sorted(range(len(items)), key=lambda k: str(names[k]))
        return FixedList(tuple(items[k] for k in order))

    def builtin_list(self, args: list[Value], node: ast.Call) -> Value:
        """`list` as a function: `list()`, what a field is made by."""
        if not args:
            return Static(self.make_list(node))
        return self.consume_value(list, args[0], [], node)

    def list_itself(self, function: Any, node: ast.expr) -> Value | None:
        """The list that a name is, where its items need not be put into another list."""
        if function is sorted or not isinstance(node, ast.Name | ast.Attribute):
            return None
        value = self.expression(node)
        return value if isinstance(value, Row) or is_list(value) else None

    def has_generator(self, node: ast.expr) -> bool:
        """True for what is known to be a generator, and for `enumerate` and `zip` with one in it."""
        if place_of(node, self.frame.source.file) in self.facts.generators:
            return True
        if not isinstance(node, ast.Call):
            return False
        called = self.expression(node.func)
        found = called.object if isinstance(called, Static) else None
        return generator_values.is_generator(found) or self.is_beside_generator(node)

    def is_beside_generator(self, node: ast.expr) -> bool:
        """True for `enumerate` and `zip` with a generator in it."""
        if not isinstance(node, ast.Call):
            return False
        called = self.expression(node.func)
        if not isinstance(called, Static) or called.object not in (enumerate, zip):
            return False
        return any(map(self.has_generator, node.args))

    def consume_generator(
        self, function: Any, found: Pending, start: Sequence[Value], node: ast.AST
    ) -> Value:
        """The body of the generator function, in which each `yield` consumes its item."""
        generator_values.consume(self, found, node)
        generator = found.function
        if isinstance(generator, LocalFunction):
            own, scope, source = generator.node, generator.frame.scope, generator.frame.source
            parent = generator.frame
            defaults, keyword = generator.defaults, generator.keyword_defaults
        else:
            plain = cast(FunctionType, generator)
            source, scope, parent = self.function_parts(plain)[0], Scope.of(plain), None
            own = source.node
            defaults, keyword = (), ()
        assert isinstance(own, ast.FunctionDef)
        self.check_generator(function, own, node, found)
        key = generator_values.consumer_key(function, own, source.file, node)
        if key not in self.facts.consumers:
            made = comprehensions.generator_consumer(function, node, own)
            self.facts.consumers[key] = made
        definition = self.facts.consumers[key]
        extra = definition.args.kwonlyargs[len(own.args.kwonlyargs) :]
        more = self.beside_items(function, start)
        named = {**found.kwargs, **dict(zip([a.arg for a in extra], more, strict=True))}
        self.enter(definition, own.name, node)
        if definition not in self.facts.nested:
            body = normalize.function_body(
                definition, source, self.facts.generators, self.facts.managers
            )
            bound = parameters(definition.args) | bound_by(body)
            self.facts.nested[definition] = body, Liveness.of(body), bound
        body, liveness, bound = self.facts.nested[definition]
        frame = self.new_frame(source, scope, bound, liveness, node)
        frame.parent = parent
        if not isinstance(generator, LocalFunction):
            defaults, keyword = self.defaults_of(cast(FunctionType, generator), source, frame)
        keyword = (*keyword, *(None for _ in extra))
        self.bind_arguments(
            frame, definition.args, own.name, found.args, named, defaults, keyword, node
        )
        return self.run_call(frame, body, definition, node)

    def check_generator(
        self, function: Any, own: ast.FunctionDef, call: ast.AST, found: Pending
    ) -> None:
        """Refuse a generator that would notice whose code stands for its `yield`."""
        early = (comprehensions.first_or, comprehensions.unpacked, next, any, all)
        leaves = function in (*comprehensions.VISITING, *early)
        if leaves and (noticed := comprehensions.swallows(own)) is not None:
            yielding, words = noticed
            line = getattr(yielding, "lineno", own.lineno)
            refusal = self.refusal(
                call, f"this generator {words} (line {line})",
                "loop over list(...), or yield outside of the `try`",
            )  # fmt: skip
            coroutines.again(self, found.place, refusal)
        may_stop = leaves and function is not comprehensions.every
        if may_stop and comprehensions.finishes(own) and coroutines.has_name(self, found):
            refusal = self.refusal(call, "a generator with a `finally` is left, and kept")
            coroutines.again(self, found.place, refusal)
        if comprehensions.sends(own):
            refusal = self.refusal(call, "this generator receives values by `send`")
            coroutines.again(self, found.place, refusal)
        if comprehensions.stops(own):
            refusal = self.refusal(
                call, "this generator raises StopIteration, which would be a RuntimeError", "return"
            )
            coroutines.again(self, found.place, refusal)

    def beside_items(self, function: Any, start: Sequence[Value]) -> list[Value]:
        """What the lines that consume items take besides these."""
        if function is sum and comprehensions.COMPENSATED:
            both = comprehensions.Intrinsic.ADD, comprehensions.Intrinsic.RECOVERED
            return [*start, *map(Static, both)]
        errors = {min: ValueError, max: ValueError, next: StopIteration}
        return [*start, Static(errors[function])] if function in errors else list(start)

    def evaluated(self, node: ast.expr) -> Value:
        if isinstance(node, ast.GeneratorExp):
            self.check_comprehension(node)
            if comprehensions.is_plain(node):
                outer = self.iterable(node.generators[0].iter)
                if outer.items is not None:
                    return Tuple(tuple(self.each(node, outer)))
        return self.expression(node)

    def consume_value(
        self, function: Any, value: Value, start: Sequence[Value], node: ast.expr
    ) -> Value:
        """A builtin that consumes a value which is there."""
        if isinstance(value, Record | Struct) and value.cls is not dict:
            value = protocols.iterated(self, value, node)
        found = pending_of(value)
        if isinstance(value, Static) and isinstance(value.object, Iterable):
            found = value.object.endless
        if found is not None:
            return self.consume_generator(function, found, start, node)
        if function is list:
            return self.as_list(value, node)
        if isinstance(value, Array) and function in (min, max):
            name = function.__name__
            raise self.refusal(node, f"`{name}` of an array", f"use x.{name}() or np.{name}(x)")
        if isinstance(value, Tuple) and function in (min, max):
            return self.extreme_of(function, value, node)
        if function in (min, max) and self.is_of_objects(value):
            return self.extreme_by(function.__name__, value, NoneValue(), None, node)
        if function is sum and self.is_of_arrays(value):
            return self.algorithm(list_algorithms.SUM, [value, *start], node)
        return self.consume(function, [value, *start], node, None)

    def is_of_arrays(self, value: Value) -> bool:
        """True for a list of arrays."""
        seq = self.list_of(value) if isinstance(value, Static) else None
        return seq is not None and isinstance(lists.form_of_items(seq), ArrayT)

    def extreme_of(self, function: Any, value: Tuple, node: Any) -> Value:
        items = list(value.items)
        if not items:
            raise self.refusal(node, comprehensions.EMPTY.format(function.__name__))
        if len(items) == 1:
            return self.scalar(items[0], f"an argument of {function.__name__}")
        return self.builtin(function, items, {}, node)

    def consume(
        self,
        function: Any,
        args: list[Value],
        node: ast.expr,
        inner: Comprehension | None,
    ) -> Value:
        """Run the few lines of Python that consume the items."""
        key = node, inner
        if key not in self.facts.consumers:
            outer = not isinstance(args[0], NoneValue)
            made = comprehensions.consumer(function, node, inner, outer=outer)
            self.facts.consumers[key] = made
        definition = self.facts.consumers[key]
        args = [args[0], *self.beside_items(function, args[1:])]
        return self.inline_local(LocalFunction(definition, self.frame, (), ()), args, {}, node)

    def intrinsic(self, which: comprehensions.Intrinsic, args: Sequence[Value]) -> Value:
        return getattr(self, which.value)(args)

    def partner(self, args: Sequence[Value]) -> Value:
        """What stands beside a generator in `zip`: it is subscripted, so its items are not used up."""
        value = args[0]
        of_range = isinstance(value, Static) and isinstance(value.object, Iterable)
        is_sequence = isinstance(value, Tuple) or (isinstance(value, Array) and value.rank > 0)
        if not of_range and not is_sequence and self.list_of(value) is None:
            raise self.refusal(
                None, "a generator beside this in `zip` is not compiled",
                "zip it with arrays, lists, tuples and ranges",
            )  # fmt: skip
        return value

    # Loops over lists.

    def list_slice(self, seq: ListObject, index: SliceValue, node: ast.expr) -> Value:
        """A slice of a list. That of one whose items stay at their places is something to run over."""
        if not lists.holds_arrays(seq) or seq.row is not None:
            return super().list_slice(seq, index, node)
        start, count, step = self.part(seq, index)

        def item(i: SSAValue) -> Value:
            at = i if step.constant == 1 else self.e.emit(arith.MuliOp(i, step.ssa))
            return lists.load_item(self.e, seq, self.e.emit(arith.AddiOp(start.ssa, at)))

        return Static(Iterable(count, item, slice_of=seq))

    def list_loop(
        self,
        s: ast.For,
        iterable: Iterable,
        condition: ast.expr | None,
        body: Callable[[SSAValue], None],
    ) -> None:
        """A loop over lists. Where the body changes their lengths, each iteration asks for them."""
        key = self.frame.place, id(s)
        before = [lists.length_stores(seq) for seq in iterable.lists]
        for seq in iterable.lists:
            seq.iterated += 1
        if key in self.facts.growing:
            self.growing_loop(s, iterable, condition, body)
        else:
            self.loop(s, iterable.count, condition, body)
        for seq in iterable.lists:
            seq.iterated -= 1
        after = [lists.length_stores(seq) for seq in iterable.lists]
        if before != after and key not in self.facts.growing:
            self.facts.growing.add(key)
            self.facts.changed = True

    def growing_loop(
        self,
        s: ast.For,
        iterable: Iterable,
        condition: ast.expr | None,
        body: Callable[[SSAValue], None],
    ) -> None:
        now = iterable.now
        if now is None:
            raise self.refusal(
                s.iter, "a list changes its length while `reversed` runs over it", "copy the list"
            )
        number = self.e.cell(IndexType(), "number")
        self.e.store(self.e.index(0), number)

        def is_there() -> Value:
            at = Scalar("py_int", self.e.load(number), None, 0)
            return scalars.compare(self.e, "Lt", at, now())

        test: ast.expr = ast.copy_location(Asked(), s.iter)
        assert isinstance(test, Asked)
        test.answer = is_there
        if condition is not None:
            test = ast.copy_location(ast.BoolOp(ast.And(), [test, condition]), s.iter)

        def numbered(_: SSAValue) -> None:
            i = self.e.load(number)
            self.e.store(self.e.emit(arith.AddiOp(i, self.e.index(1))), number)
            body(i)

        self.loop(s, None, test, numbered)

    @abstractmethod
    def loop(
        self,
        s: ast.For | ast.While,
        count: Scalar | None,
        condition: ast.expr | None,
        body: Callable[[SSAValue], None],
    ) -> None:
        """Lower a loop."""

    # Lists and tuples of what can be run over.

    def as_list(self, value: Value, node: ast.expr) -> Value:
        """`list(value)`."""
        if isinstance(value, Tuple):
            return self.list_of_values(value.items, node)
        if isinstance(value, Static) and isinstance(value.object, Iterable):
            return self.consume(list, [value], node, None)
        made = self.make_list(node)
        self.append_all(made, value, node)
        return Static(made)

    def append_all(self, target: ListObject, value: Value, node: ast.AST) -> None:
        """Append the items of anything that a loop can run over."""
        source = self.list_of(value)
        if source is not None:
            self.extend_by(target, source)
        elif (found := pending_of(value)) is not None:
            self.consume_generator(list.extend, found, [Static(target)], node)
        elif isinstance(value, Static) and isinstance(value.object, Iterable | Suspended):
            assert isinstance(node, ast.expr)
            self.consume(list.extend, [value, Static(target)], node, None)
        elif isinstance(value, Tuple):
            for item in value.items:
                self.append_value(target, item)
        elif isinstance(value, Array) and value.rank == 1:
            self.learn(target, lists.ScalarT(value.dtype))
            list_changes.extend(self.e, target, [value], self.e.extents(value.memref)[0])
        else:
            raise self.refusal(node, "this is not something a list can take items from")

    def tuple_of(self, value: Value, node: ast.Call) -> Value:
        """`tuple(value)`, of known length."""
        if isinstance(value, Tuple):
            return Tuple(value.items)
        raise self.refusal(
            node,
            "a tuple of run-time length is not compiled",
            "use a list, or an array: np.array(...)",
        )

    # The compensated sum of CPython 3.12 and later.

    def add_compensated(self, args: Sequence[Value]) -> Value:
        """`total, lost, item` to the next `total, lost`: Neumaier's step for floats."""
        total, lost, item = args
        plain = self.binary_values("Add", total, item)
        both = (total, item)
        if not all(isinstance(v, Scalar) and v.type == "py_float" for v in both):
            return Tuple((plain, lost))
        assert isinstance(total, Scalar)
        assert isinstance(item, Scalar)
        assert isinstance(lost, Scalar)
        assert isinstance(plain, Scalar)
        e = self.e
        sizes = [e.emit(math.AbsFOp(v.ssa)) for v in (total, item)]
        larger = e.emit(arith.CmpfOp(sizes[0], sizes[1], "oge"))
        first = e.emit(arith.AddfOp(e.emit(arith.SubfOp(total.ssa, plain.ssa)), item.ssa))
        second = e.emit(arith.AddfOp(e.emit(arith.SubfOp(item.ssa, plain.ssa)), total.ssa))
        rest = e.emit(arith.SelectOp(larger, first, second))
        return Tuple((plain, Scalar("py_float", e.emit(arith.AddfOp(lost.ssa, rest)))))

    def recover(self, args: Sequence[Value]) -> Value:
        """The sum with what was lost, where that is a number."""
        total, lost = args
        if not isinstance(total, Scalar) or total.type != "py_float":
            return total
        assert isinstance(lost, Scalar)
        finite = scalars.compare_ssa(
            self.e,
            "Eq",
            self.e.emit(arith.SubfOp(lost.ssa, lost.ssa)),
            self.e.constant(0.0, "py_float").ssa,
            "py_float",
        )
        with_lost = self.e.emit(arith.AddfOp(total.ssa, lost.ssa))
        return Scalar("py_float", self.e.emit(arith.SelectOp(finite, with_lost, total.ssa)))


def is_list(value: Value) -> bool:
    return isinstance(value, Static) and isinstance(value.object, ListObject)

"""Expressions: one method for each kind of node, evaluated left to right as CPython does."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Protocol

import numpy as np
from xdsl.ir import SSAValue

from . import choices, formatting, library, scalars
from .calling import coroutines, special_calls, star_arguments
from .data import fixed_items, hashed, lists, tables
from .data.list_access import Asked
from .data.lists import FixedList, sequence_like
from .emitter import Emitter
from .frames import LocalFunction
from .library import grids
from .operators import Operators
from .scalars import is_python
from .syntax.language import why_refused
from .syntax.liveness import assigned
from .syntax.stepping import Given
from .values import (
    Array,
    Choice,
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


class Expressions(Operators):
    """Lowers `ast.expr` nodes to values."""

    def expression(self, node: ast.expr) -> Value:
        with self.located(node):
            match node:
                case ast.Constant():
                    return self.literal(node)
                case ast.Name("__debug__"):
                    return self.e.constant(__debug__, "py_bool")
                case ast.Name():
                    return self.read(node.id)
                case ast.BinOp() | ast.UnaryOp() if (n := scalars.small_number(node)) is not None:
                    return self.constant(n, "this")
                case ast.BinOp():
                    return self.binary(node)
                case ast.UnaryOp():
                    return self.unary(node)
                case ast.BoolOp():
                    return self.bool_op(node.op, node.values, self.expression)
                case ast.Compare():
                    return self.compare(node)
                case ast.IfExp():
                    return self.chosen(
                        self.test(node.test),
                        (
                            lambda: self.refined(
                                node.test, True, lambda: self.expression(node.body)
                            ),
                            lambda: self.refined(
                                node.test, False, lambda: self.expression(node.orelse)
                            ),
                        ),
                        assigned(node.body, node.orelse),
                    )
                case ast.Call():
                    return self.call_node(node)
                case ast.Attribute():
                    return self.attribute(node)
                case ast.Subscript():
                    return self.subscript(node)
                case ast.Tuple():
                    return Tuple(tuple(self.values_of(node.elts)))
                case ast.Dict():
                    return self.dict_display(node)
                case ast.DictComp():
                    return self.dict_comprehension(node)
                case ast.Set() | ast.SetComp():
                    return hashed.set_of(self, node)
                case ast.Lambda():
                    return self.local_function(node)
                case ast.List():
                    return self.list_display(node)
                case ast.ListComp() | ast.GeneratorExp():
                    return self.comprehension(node)
                case Asked():
                    return node.answer()
                case Given():
                    return coroutines.given_item(self, node.item)
                case ast.JoinedStr():
                    return formatting.made(*self.text(node))
                case ast.Yield() | ast.YieldFrom():
                    raise self.refusal(
                        node,
                        "a generator is compiled where it is consumed:"
                        " in `for`, sum, min, max, any, all, list",
                        "consume it there, or append to a list that is passed or returned",
                    )
                case ast.NamedExpr():
                    value = self.expression(node.value)
                    self.bind(node.target, value)
                    return value
                case _:
                    raise self.refusal(node, *why_refused(type(node)))

    # Literals

    def literal(self, node: ast.Constant) -> Value:
        if node.value is Ellipsis:
            return Static(Ellipsis)
        if isinstance(node.value, bytes):
            raise self.refusal(node, "bytes are not compiled")
        return self.constant(node.value, "this")

    # Attributes and subscripts

    def attribute(self, node: ast.Attribute) -> Value:
        return self.attribute_of(self.expression(node.value), node)

    def attribute_of(self, value: Value, node: ast.Attribute) -> Value:
        if isinstance(value, NoneValue) or (isinstance(value, Choice) and choices.has_none(value)):
            missing = f"'NoneType' object has no attribute '{node.attr}'"
            value = choices.present(self, value, missing, "AttributeError")
        if isinstance(value, Choice):
            if (found := fixed_items.attribute(self, value, node.attr)) is not None:
                return found
            return choices.each(self, value, lambda option: self.attribute_of(option, node))
        found = special_calls.attribute(self, value, node) or self.member(value, node.attr, node)
        if found is not None:
            return found
        if isinstance(value, Row) and (seq := self.list_of(value)) is not None:
            return self.list_attribute(seq, node.attr)
        if not isinstance(value, Static):
            if isinstance(value, FixedList) and node.attr in lists.METHODS:
                self.growing(value)
            return library.attribute(self.e, value, node.attr)
        if (seq := self.list_of(value)) is not None:
            return self.list_attribute(seq, node.attr)
        owner = value.object
        if (bounds := getattr(owner, "bounds", None)) is not None and node.attr in bounds:
            return bounds[node.attr]
        if isinstance(owner, np.ufunc) and callable(getattr(owner, node.attr, None)):
            return Static(getattr(owner, node.attr))
        if isinstance(owner, library.facts.CONSTANT_OBJECTS) and hasattr(owner, node.attr):
            return self.constant(getattr(owner, node.attr), node.attr)
        if not isinstance(owner, ModuleType | type):
            raise self.refusal(node, *library.ways_out.of_member(owner, node.attr))
        if not hasattr(owner, node.attr):
            raise self.refusal(node, *library.ways_out.missing(owner, node.attr))
        found = getattr(owner, node.attr)
        root = owner.__name__.partition(".")[0]
        known = isinstance(owner, ModuleType) and root in ("math", "numpy", "scipy")
        if known or self.fixed(owner):
            return self.constant(found, node.attr)
        holder = owner if isinstance(owner, type) else vars(owner)
        return self.captured(holder, node.attr, found, ast.unparse(node))

    def subscript(self, node: ast.Subscript) -> Value:
        value = self.expression(node.value)
        value = choices.present(self, value, "'NoneType' object is not subscriptable")
        if isinstance(value, Record | Struct):
            return self.object_item(value, node)
        if isinstance(value, Tuple):
            return self.tuple_item(value, node.slice)
        if (seq := self.list_of(value)) is not None:
            return self.list_subscript(seq, node)
        if isinstance(value, Static) and getattr(value.object, "bounds", None) is not None:
            return self.range_item(value.object, node)
        if isinstance(value, Static) and isinstance(value.object, str):
            letters = Tuple(tuple(map(Static, value.object)))
            found = self.tuple_item(letters, node.slice)
            return Static("".join(self.letters(found))) if isinstance(found, Tuple) else found
        if isinstance(value, Static) and isinstance(value.object, enum.EnumMeta):
            return self.enum_by_name(value.object, node)
        if isinstance(value, Scalar) and not is_python(value):
            value = library.call(self.e, np.asarray, [value], {})
        if isinstance(value, Static) and grids.is_maker(value.object):
            take = self.grid_part if grids.takes_numbers(value.object) else self.index_part
            return grids.made(self.e, value.object, self.index(node.slice, take))
        self.refuse_long_list(value, node)
        if not isinstance(value, Array):
            what = "only arrays and tuples have subscripts here"
            raise self.refusal(node, what, library.instead_of(value))
        return marked(library.subscript(self.e, value, self.index(node.slice)), value)

    def letters(self, value: Tuple) -> list[str]:
        return [item.object for item in value.items if isinstance(item, Static)]

    def tuple_item(self, value: Tuple, node: ast.expr) -> Value:
        with self.located(node):
            (index,) = self.index(node)[:1] or (None,)
            if isinstance(index, Scalar) and isinstance(index.constant, int):
                if not -len(value.items) <= index.constant < len(value.items):
                    raise self.refusal(node, "tuple index out of range")
                return value.items[int(index.constant)]
            if isinstance(index, SliceValue):
                bounds = [
                    None if s is None else s.constant for s in (index.start, index.stop, index.step)
                ]
                given = (index.start, index.stop, index.step)
                if all((s is None) == (b is None) for s, b in zip(given, bounds, strict=True)):
                    part = slice(*(None if b is None else int(b) for b in bounds))
                    return sequence_like(value, tuple(value.items)[part])
            at = None
            if isinstance(index, Scalar) and not scalars.is_float(index.type):
                at = scalars.convert(self.e, index, "py_int")
            known = all(isinstance(item, Static) for item in value.items)
            if at is not None and known and (found := self.chosen_item(value, at)) is not None:
                return found
            if at is not None and (found := fixed_items.item_at(self, value, at, node)) is not None:
                return found
            if isinstance(value, FixedList) and not isinstance(value, tables.ListOfConstants):
                self.growing(value)
            if at is not None:
                return tables.item_at(self, value, at, node)
            raise self.refusal(
                node,
                "a slice of a tuple whose bounds are known only at run time",
                "put the values in an array",
            )

    def chosen_item(self, value: Tuple, index: Scalar) -> Value | None:
        """An item of a tuple or list of functions, by an index known at run time."""
        items = tuple(value.items)
        if choices.item_of(self, items, index.ssa) is None:
            return None
        kind = "list" if isinstance(value, FixedList) else "tuple"
        n = self.e.index(len(items))
        at = lists.place(self.e, index, n, f"{kind} index out of range")
        return choices.item_of(self, items, at)

    def range_item(self, over: RangeLike, node: ast.Subscript) -> Value:
        """`range(...)[k]`, and a slice."""
        at, *others = self.index(node.slice)
        if isinstance(at, SliceValue) and not others:
            return Static(over.sliced(self.e, at))
        if others or not isinstance(at, Scalar) or scalars.is_float(at.type):
            raise self.refusal(node, "a range is indexed by ints in compiled code")
        at = scalars.convert(self.e, at, "py_int")
        message = "range object index out of range"
        return over.item(lists.place(self.e, at, over.count.ssa, message))

    def index(
        self, node: ast.expr, take: Callable[[ast.expr], Value] | None = None
    ) -> tuple[Value, ...]:
        """The parts of a subscript: ints, slices, None, Ellipsis, arrays."""
        take = take or self.index_part
        if isinstance(node, ast.Tuple):
            return tuple(take(part) for part in node.elts)
        part = take(node)
        if isinstance(part, Tuple) and not isinstance(node, ast.List):
            return part.items
        return (part,)

    def index_part(self, node: ast.expr) -> Value:
        with self.located(node):
            if not isinstance(node, ast.Slice):
                found = self.expression(tuple_for_list(node))
                if isinstance(found, SliceValue):
                    return found
                return self.as_array(found, keep=False)
            bounds = [
                None if b is None else self.slice_bound(b)
                for b in (node.lower, node.upper, node.step)
            ]
            return SliceValue(*bounds)

    def grid_part(self, node: ast.expr) -> Value:
        """A slice of `np.mgrid`, whose bounds are any numbers."""
        if not isinstance(node, ast.Slice):
            return self.index_part(node)
        count = grids.count_of(node.step)
        nodes = (node.lower, node.upper, count or node.step)
        values = [None if n is None else self.expression(n) for n in nodes]
        return grids.part(self.e, values, of_points=count is not None)

    def slice_bound(self, node: ast.expr) -> Scalar | None:
        value = self.expression(node)
        with self.located(node):
            if isinstance(value, NoneValue):
                return None
            if isinstance(value, Scalar) and not scalars.is_float(value.type):
                return scalars.convert(self.e, value, "py_int")
            raise self.refusal(node, "slice indices must be integers or None")

    # Functions

    def local_function(self, node: ast.FunctionDef | ast.Lambda) -> Value:
        a = node.args
        defaults = tuple(self.values_of(a.defaults))
        keyword = tuple(None if d is None else self.expression(d) for d in a.kw_defaults)
        self.share((*defaults, *keyword))
        return Static(LocalFunction(node, self.frame, defaults, keyword))

    def call_node(self, node: ast.Call) -> Value:
        function = self.expression(node.func)
        if isinstance(function, Static) and self.consumes(function.object, node):
            return self.consumed(function.object, node)
        if (found := star_arguments.whole(self, function, node)) is not None:
            return found
        keywords = node.keywords
        if isinstance(function, Static) and function.object is print:
            return self.print_call(node)
        nodes = [*node.args, *(k.value for k in keywords)]
        if isinstance(function, Static) and library.written.is_written(function.object):
            nodes = [tuple_for_list(n) for n in nodes]
        elif node.args and isinstance(function, Static) and is_library_function(function.object):
            nodes[0] = tuple_for_list(nodes[0])
        method = self.plain(function.object) if isinstance(function, Static) else None
        plain = [n.value if isinstance(n, ast.Starred) else n for n in nodes]
        values = [self.expression(argument) for argument in plain]
        args = list[Value]()
        for argument, value in zip(node.args, values, strict=False):
            if isinstance(argument, ast.Starred):
                others = (*args, *node.args[len(args) + 1 :], *keywords)
                to = star_arguments.parameters(self, method, len(args), others)
                args += star_arguments.items(self, argument, value, to)
            else:
                args.append(value)
        named = zip(keywords, values[len(node.args) :], strict=True)
        return self.call(function, args, star_arguments.keywords(self, named), node)


class RangeLike(Protocol):
    """A `range` as a value."""

    @property
    def count(self) -> Scalar: ...
    def item(self, i: SSAValue, /) -> Value: ...
    def sliced(self, e: Emitter, s: SliceValue) -> object: ...


def is_library_function(called: object) -> bool:
    return any(called is function for function in library.FUNCTIONS)


def tuple_for_list(node: ast.expr) -> ast.expr:
    """A list display as a tuple: what NumPy makes an array of, or takes for a shape, may be either."""
    if not isinstance(node, ast.List):
        return node
    items = [tuple_for_list(item) for item in node.elts]
    return ast.copy_location(ast.Tuple(items, ast.Load()), node)


def marked(view: Value, of: Value) -> Value:
    """`view`, told apart from the array itself where it is a view of all of it."""
    if isinstance(view, Array) and isinstance(of, Array) and view.memref is of.memref:
        return replace(view, whole=True)
    return view

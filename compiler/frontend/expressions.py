"""Expressions: one method for each kind of node, evaluated left to right as CPython does."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, Protocol, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from . import choices, formatting, library, scalars, weak
from .calling import special_calls, spreading
from .context import VALUE, LocalFunction, Unready, same_binding
from .data import lists, protocols, tables
from .data.constructing import Constructing
from .data.fields import fields_in, is_object
from .data.list_access import Asked, ListAccess
from .data.lists import FixedList, sequence_like
from .data.records import UNARY_METHODS, described, method_of
from .joins import Maybe
from .scalars import is_python
from .syntax.language import why_refused
from .syntax.liveness import Names, assigned
from .values import (
    Array,
    BoundMethod,
    Choice,
    Expression,
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

ORDERS = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}
WRITERS = frozenset({"copyto", "fill_diagonal", "place", "put", "putmask"})
READING_BUILTINS: tuple[object, ...] = (abs, len, min, max, float, int, bool, round)
READING_METHODS = frozenset(
    {"copy", "sum", "mean", "min", "max", "prod", "astype", "dot", "reshape"}
)


class Expressions(Constructing, ListAccess):
    """Lowers `ast.expr` nodes to values."""

    def expression(self, node: ast.expr) -> Value:
        with self.located(node):
            match node:
                case ast.Constant():
                    return self.literal(node)
                case ast.Name():
                    return self.read(node.id)
                case ast.BinOp():
                    return self.binary(node)
                case ast.UnaryOp():
                    return self.unary(node)
                case ast.BoolOp():
                    return self.bool_op(node.op, node.values)
                case ast.Compare():
                    return self.compare(node)
                case ast.IfExp():
                    return self.chosen(
                        self.test(node.test),
                        (
                            lambda: self.refined(node.test, True, lambda: self.value(node.body)),
                            lambda: self.refined(node.test, False, lambda: self.value(node.orelse)),
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
                case ast.Lambda():
                    return self.local_function(node)
                case ast.List():
                    return self.list_display(node)
                case ast.ListComp() | ast.GeneratorExp():
                    return self.comprehension(node)
                case Asked():
                    return node.answer()
                case ast.JoinedStr():
                    return formatting.made(*self.text(node))
                case ast.Yield() | ast.YieldFrom():
                    raise self.refusal(
                        node,
                        "a generator is compiled where it is consumed:"
                        " in `for`, sum, min, max, any, all, list",
                        "call it there; where a generator calls itself, append to a list that is passed",
                    )
                case ast.NamedExpr():
                    value = self.value(node.value)
                    self.bind(node.target, value)
                    return value
                case _:
                    raise self.refusal(node, *why_refused(type(node)))

    # Values that outlive their expression

    def value(self, node: ast.expr) -> Value:
        """The value of `node`, arrays in memory."""
        return self.settled(self.expression(node))

    def settled(self, value: Value) -> Value:
        """A lazy elementwise expression computed; anything else as it is."""
        if isinstance(value, Expression):
            return library.materialize(self.e, value)
        return value

    def values_of(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Several values that outlive the expression."""
        values = list[Value]()
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += spreading.items(self, node, self.value(node.value))
            else:
                values.append(self.value(node))
        return values

    def operands(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Several operands; lazy ones are computed before a later one that could write memory."""
        result = list[Value]()
        for k, node in enumerate(nodes):
            value = self.expression(node)
            if isinstance(value, Expression) and any(
                self.may_write(later) for later in nodes[k + 1 :]
            ):
                value = self.settled(value)
            result.append(value)
        return result

    def may_write(self, node: ast.expr) -> bool:
        """True unless evaluating `node` certainly writes no array."""
        return any(
            not self.only_reads(n) if isinstance(n, ast.Call) else self.objects.runs_code(n)
            for n in ast.walk(node)
        )

    def only_reads(self, node: ast.Call) -> bool:
        """True for calls of NumPy, `math` and builtins that are given nothing to write to."""
        if any(k.arg in ("out", None) for k in node.keywords):
            return False
        match node.func:
            case ast.Attribute(ast.Name(name), attribute) if module := self.module(name):
                function = getattr(module, attribute, None)
                if isinstance(function, np.ufunc):
                    return len(node.args) <= function.nin
                root = module.__name__.partition(".")[0]
                return root in ("math", "numpy") and attribute not in WRITERS
            case ast.Attribute(_, attribute):
                known = attribute in READING_METHODS and attribute not in self.objects.code
                return known and len(node.args) <= 1
            case ast.Name(name):
                return any(self.known_global(name) is function for function in READING_BUILTINS)
            case _:
                return False

    def module(self, name: str) -> ModuleType | None:
        """The module that a global name is bound to."""
        found = self.known_global(name)
        return found if isinstance(found, ModuleType) else None

    def known_global(self, name: str) -> object:
        """What a name means that no function around binds; None where one does."""
        frame = self.frame
        while frame is not None:
            if name in frame.locals:
                return None
            frame = frame.parent
        return self.read_global(name)[1]

    # Literals, operators

    def literal(self, node: ast.Constant) -> Value:
        if node.value is Ellipsis:
            return Static(Ellipsis)
        if isinstance(node.value, bytes):
            raise self.refusal(node, "bytes are not compiled")
        return self.constant(node.value, "this")

    def binary(self, node: ast.BinOp) -> Value:
        lhs, rhs = self.operands([node.left, node.right])
        op = type(node.op).__name__
        of_lists = self.list_operator(op, lhs, rhs, node)
        return self.binary_values(op, lhs, rhs) if of_lists is None else of_lists

    def binary_values(self, op: str, lhs: Value, rhs: Value) -> Value:
        if formatting.is_text(lhs):
            return self.text_operator(op, lhs, rhs)
        if (
            isinstance(lhs, Scalar)
            and isinstance(rhs, Scalar)
            and is_python(lhs)
            and is_python(rhs)
        ):
            return scalars.binary(self.e, op, lhs, rhs)
        if is_object(lhs) or is_object(rhs):
            found = self.object_operator(op, lhs, rhs)
            if found is not None:
                return found
        if isinstance(lhs, Tuple) or isinstance(rhs, Tuple):
            return self.tuple_operator(op, lhs, rhs)
        for side in (lhs, rhs):
            self.numeric(side, f"an operand of `{scalars.SYMBOL[op]}`")
        both = weak.operands(lhs, rhs)
        if both is None:
            return library.binary(self.e, op, lhs, rhs)
        weak.check_division(self.e, op, *both)
        return weak.result(self.e, op, *both, library.binary(self.e, op, lhs, rhs))

    def text_operator(self, op: str, lhs: Value, rhs: Value) -> Value:
        """`"..." % values`, `"a" + "b"`."""
        known = lhs.object if isinstance(lhs, Static) else None
        if op == "Mod" and isinstance(known, str):
            return formatting.percent(cast(Any, self), known, self.settled(rhs))
        if op == "Add" and formatting.is_text(rhs):
            return formatting.added(lhs, rhs)
        raise self.refusal(
            None, f"an operand of `{scalars.SYMBOL[op]}` is {known!r}, not a number or an array"
        )

    def numeric(self, value: Value, what: str) -> None:
        if isinstance(value, Choice):
            raise self.refusal(None, *choices.unknown(value))
        if isinstance(value, NoneValue):
            raise self.refusal(None, f"{what} is None", "test `is None` first")
        if isinstance(value, Record | Struct):
            raise self.refusal(None, f"{what} is {described(value)}", "compute with its fields")
        if isinstance(value, Static | SliceValue):
            shown = value.object if isinstance(value, Static) else "a slice"
            raise self.refusal(None, f"{what} is {shown!r}, not a number or an array")

    def tuple_operator(self, op: str, lhs: Value, rhs: Value) -> Value:
        if op == "Add" and isinstance(lhs, Tuple) and isinstance(rhs, Tuple):
            if isinstance(lhs, FixedList) != isinstance(rhs, FixedList):
                raise self.refusal(None, "`+` of a list and a tuple", "make a tuple of the list")
            return sequence_like(lhs, lhs.items + rhs.items)
        for items, count in ((lhs, rhs), (rhs, lhs)):
            known = count.constant if isinstance(count, Scalar) else None
            if op == "Mult" and isinstance(items, Tuple) and isinstance(known, int):
                return sequence_like(items, items.items * known)
        raise self.refusal(
            None, f"`{scalars.SYMBOL[op]}` of a tuple", "make an array, or compute item by item"
        )

    def unary(self, node: ast.UnaryOp) -> Value:
        op = type(node.op).__name__
        if op == "Not":
            return scalars.unary(self.e, op, self.test(node.operand))
        x = self.expression(node.operand)
        if isinstance(x, Scalar) and is_python(x):
            return scalars.unary(self.e, op, x)
        method = method_of(x, UNARY_METHODS[op])
        if method is not None:
            return self.invoked(method, [x], node)
        self.numeric(x, "the operand")
        if isinstance(x, Tuple):
            raise self.refusal(None, "bad operand type for a unary operator: a tuple")
        return library.unary(self.e, op, x)

    # Comparison and truth

    def compare(self, node: ast.Compare) -> Value:
        """`a < b < c` evaluates b once, and c only where a < b."""
        left = self.expression(node.left)
        if self.may_write(node.comparators[0]):
            left = self.settled(left)
        self.observed[node.left] = left
        return self.compare_from(node, left, 0)

    def compare_from(self, node: ast.Compare, left: Value, k: int) -> Value:
        right = self.expression(set_as_tuple(node.ops[k], node.comparators[k]))
        self.observed[node.comparators[k]] = right
        last = k + 1 == len(node.ops)
        if not last:
            right = self.settled(right)
        here = self.compare_values(node.ops[k], left, right)
        if last:
            return here
        if not isinstance(here, Scalar):
            scalars.truth(self.e, here)
        return self.both(
            "and",
            here,
            lambda: self.compare_from(node, right, k + 1),
            assigned(*node.comparators[k + 1 :]),
            node.comparators[k + 1],
        )

    def compare_values(self, op: ast.cmpop, lhs: Value, rhs: Value) -> Value:
        name = type(op).__name__
        if isinstance(lhs, Choice) or isinstance(rhs, Choice):
            return choices.compared(self, name, lhs, rhs)
        if is_object(lhs) or is_object(rhs):
            found = self.object_comparison(op, lhs, rhs)
            if found is not None:
                return found
        if name in ("Is", "IsNot"):
            return self.identity(name == "Is", lhs, rhs)
        if name in ("In", "NotIn"):
            seq = self.list_of(rhs)
            shown = None if seq is None else seq.display
            if shown is not None:
                rhs, seq = Tuple(shown), None
            inside = self.contains(lhs, rhs) if seq is None else self.in_list(seq, lhs)
            if inside is None:
                raise self.refusal(
                    None, "`in` is compiled for tuples, dicts and strings", "compare with `==`"
                )
            return inside if name == "In" else scalars.unary(self.e, "Not", inside)
        if (
            isinstance(lhs, Scalar)
            and isinstance(rhs, Scalar)
            and is_python(lhs)
            and is_python(rhs)
        ):
            return scalars.compare(self.e, name, lhs, rhs)
        if isinstance(lhs, Static | NoneValue | Row) or isinstance(rhs, Static | NoneValue | Row):
            return self.compare_objects(name, lhs, rhs)
        if isinstance(lhs, Tuple) and isinstance(rhs, Tuple) and name in ("Eq", "NotEq"):
            return self.compare_tuples(name == "Eq", lhs, rhs)
        if isinstance(lhs, Tuple) and isinstance(rhs, Tuple) and name in MIRRORED:
            return self.order_tuples(name, lhs, rhs)
        for side, other in ((lhs, rhs), (rhs, lhs)):
            if isinstance(side, Tuple):
                if name in ("Eq", "NotEq") and isinstance(other, Scalar) and is_python(other):
                    return self.e.constant(name == "NotEq", "py_bool")
                raise self.refusal(
                    None, "a tuple is compared with something else", "compare its items"
                )
        return library.compare(self.e, name, lhs, rhs)

    def identity(self, same: bool, lhs: Value, rhs: Value) -> Value:
        if isinstance(lhs, NoneValue) or isinstance(rhs, NoneValue):
            both = isinstance(lhs, NoneValue) and isinstance(rhs, NoneValue)
            return self.e.constant(both is same, "py_bool")
        if (rows := self.same_row(lhs, rhs)) is not None:
            return rows if same else scalars.unary(self.e, "Not", rows)
        if isinstance(lhs, Static) and isinstance(rhs, Static):
            lists_ = self.list_of(lhs), self.list_of(rhs)
            if None not in lists_:
                return self.e.constant((lists_[0] is lists_[1]) is same, "py_bool")
            return self.e.constant((lhs.object is rhs.object) is same, "py_bool")
        raise self.refusal(
            None,
            "`is` compares objects, which compiled numbers and arrays are not",
            "use `==`, or `is None`",
        )

    def compare_objects(self, name: str, lhs: Value, rhs: Value) -> Value:
        if self.list_of(lhs) is not None or self.list_of(rhs) is not None:
            return self.compare_lists(name, lhs, rhs)
        texts = [
            v.object for v in (lhs, rhs) if isinstance(v, Static) and isinstance(v.object, str)
        ]
        if len(texts) == 2 and name in ORDERS:
            return self.e.constant(ORDERS[name](*texts), "py_bool")
        if name in ("Eq", "NotEq"):
            if isinstance(lhs, Static) and isinstance(rhs, Static):
                return self.e.constant((lhs.object == rhs.object) is (name == "Eq"), "py_bool")
            if isinstance(lhs, NoneValue) and isinstance(rhs, NoneValue):
                return self.e.constant(name == "Eq", "py_bool")
            if isinstance(lhs, NoneValue | Static | Scalar) and isinstance(
                rhs, NoneValue | Static | Scalar
            ):
                objects = [v for v in (lhs, rhs) if isinstance(v, Static)]
                if all(isinstance(v.object, str) for v in objects):
                    return self.e.constant(name != "Eq", "py_bool")
        raise self.refusal(
            None, "these two cannot be compared in compiled code", "test for None with `is None`"
        )

    def compare_tuples(self, equal: bool, lhs: Tuple, rhs: Tuple) -> Value:
        """Equality of tuples of scalars."""
        if len(lhs.items) != len(rhs.items):
            return self.e.constant(not equal, "py_bool")
        total = self.e.constant(True, "py_bool")
        for a, b in zip(lhs.items, rhs.items, strict=True):
            if not isinstance(a, Scalar) or not isinstance(b, Scalar):
                raise self.refusal(
                    None, "tuples of arrays are compared", "compare the arrays' elements"
                )
            same = self.compare_values(ast.Eq(), a, b)
            assert isinstance(same, Scalar)
            total = self.conjunction("and", total, scalars.truth(self.e, same))
        return total if equal else scalars.unary(self.e, "Not", total)

    def test(self, node: ast.expr) -> Scalar:
        """The truth of an expression, as `if` and `while` ask it."""
        if isinstance(node, ast.BoolOp):
            with self.located(node):
                return self.test_all(node.op, node.values)
        value = self.expression(node)
        with self.located(node):
            return self.truth(self.settled(value))

    def truth(self, value: Value) -> Scalar:
        """`bool(value)`: of a list, whether it has items."""
        if isinstance(value, Choice):
            found = choices.each(self, value, lambda option: self.truth(self.settled(option)))
            assert isinstance(found, Scalar)
            return found
        if isinstance(value, Record | Struct):
            return protocols.truth(self, value)
        seq = self.list_of(value)
        return scalars.truth(self.e, value if seq is None else lists.length(self.e, seq))

    def test_all(self, op: ast.boolop, nodes: Sequence[ast.expr]) -> Scalar:
        first = self.test(nodes[0])
        if len(nodes) == 1:
            return first
        word = "and" if isinstance(op, ast.And) else "or"
        result = self.both(
            word,
            first,
            lambda: self.refined(nodes[0], word == "and", lambda: self.test_all(op, nodes[1:])),
            assigned(*nodes[1:]),
            nodes[1],
            as_test=True,
        )
        assert isinstance(result, Scalar)
        return result

    def bool_op(self, op: ast.boolop, nodes: Sequence[ast.expr]) -> Value:
        """`a and b`: the value of the operand that decides."""
        first = self.value(nodes[0])
        if len(nodes) == 1:
            return first
        word = "and" if isinstance(op, ast.And) else "or"
        return self.both(
            word,
            first,
            lambda: self.refined(nodes[0], word == "and", lambda: self.bool_op(op, nodes[1:])),
            assigned(*nodes[1:]),
            nodes[1],
        )

    def both(
        self,
        word: str,
        first: Value,
        second: Callable[[], Value],
        names: Names,
        place: ast.AST,
        *,
        as_test: bool = False,
    ) -> Value:
        """`first and second()` or `first or second()`; the second is evaluated only where it decides.

        `names` are those that the second, which begins at `place`, may bind.

        Where both are bools and the second is cheap code that cannot raise, both are evaluated. A test
        whose second part is known to fail (an `or`: to hold) is known, too.
        """
        test = self.truth(first)
        if test.constant is not None:
            return self.settled(second()) if test.constant == (word == "and") else first
        keep: Callable[[], Value] = lambda: first  # noqa: E731
        key = self.frame.path, id(place)
        if names or key in self.facts.asking:
            return self.chosen(test, (second, keep) if word == "and" else (keep, second), names)
        block, before = Block(), dict(self.frame.env)
        frame, depth = self.frame, len(self.calls)
        try:
            with self.e.at(block), self.catching.scope(frozenset({VALUE})) as scope:
                self.frame.env[VALUE] = self.settled(second())
        except Unready:
            self.frame, self.frame.env = frame, before
            del self.calls[depth:]
            return self.chosen(test, (second, keep) if word == "and" else (keep, second))
        value = self.frame.env.pop(VALUE)
        assert not isinstance(value, Maybe)
        if any(not same_binding(b, before.get(n)) for n, b in fields_in(self.frame.env).items()):
            self.facts.asking.add(key)
            self.facts.changed = True
        self.frame.env = before
        ops = list(block.ops)

        def spliced() -> Value:
            for op in ops:
                op.detach()
                self.e.block.add_op(op)
            self.catching.announce(scope.pending)
            return value

        match first, value:
            case Scalar("py_bool" | "b1" as kind), Scalar(other) if kind == other:
                if all(map(is_speculatable, ops)):
                    spliced()
                    return self.conjunction(word, first, value)
            case _:
                pass
        chosen = self.chosen(test, (spliced, keep) if word == "and" else (keep, spliced))
        known = value.constant if as_test and isinstance(value, Scalar) else None
        if known is not None and bool(known) == (word == "or"):
            return self.e.constant(word == "or", "py_bool")
        return chosen

    def conjunction(self, word: str, a: Scalar, b: Scalar) -> Scalar:
        for known, other in ((a, b), (b, a)):
            if known.constant is not None:
                return other if bool(known.constant) == (word == "and") else known
        op = arith.AndIOp if word == "and" else arith.OrIOp
        return Scalar(a.type, self.e.emit(op(a.ssa, b.ssa)), None, 0, 1)

    # What a test tells of the names in it

    def refined(self, test: ast.expr, outcome: bool, run: Callable[[], Value]) -> Value:
        """`run()` where `test` came out as `outcome`."""
        before = dict(self.frame.env)
        self.refine(test, outcome)
        value = run()
        for name, binding in before.items():
            now = self.frame.env.get(name)
            same = (
                isinstance(now, Scalar) and isinstance(binding, Scalar) and now.ssa is binding.ssa
            )
            narrowed = isinstance(binding, Choice) and any(now is o for o in binding.options)
            if same or narrowed:
                self.frame.env[name] = binding
        return value

    def refine(self, test: ast.expr, outcome: bool) -> None:
        """Narrow the ranges of the ints that `test` compared."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                self.refine(operand, not outcome)
            case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as op], [ast.Constant(None)]):
                self.narrow_none(name, isinstance(op, ast.Is) is outcome)
            case ast.Name(name) if outcome:
                self.narrow_none(name, False)
            case ast.BoolOp(op, values) if isinstance(op, ast.And) == outcome:
                for value in values:
                    self.refine(value, outcome)
            case ast.Compare(left, ops, comparators) if outcome or len(ops) == 1:
                for lhs, op, rhs in zip([left, *comparators], ops, comparators, strict=False):
                    name = type(op).__name__ if outcome else OPPOSITE.get(type(op).__name__)
                    if name in MIRRORED:
                        self.narrow(lhs, name, self.observed.get(rhs))
                        self.narrow(rhs, MIRRORED[name], self.observed.get(lhs))
            case _:
                pass

    def narrow_none(self, name: str, is_none: bool) -> None:
        value = self.frame.env.get(name)
        if isinstance(value, Choice):
            self.frame.env[name] = choices.narrowed(value, is_none)

    def narrow(self, node: ast.expr, op: str, bound: Value | None) -> None:
        if not isinstance(node, ast.Name) or node.id not in self.frame.locals:
            return
        value = self.frame.env.get(node.id)
        if not isinstance(value, Scalar) or value.type != "py_int" or value.constant is not None:
            return
        if not isinstance(bound, Scalar) or bound.type != "py_int":
            return
        low, high = value.low, value.high
        if op in ("Lt", "LtE", "Eq"):
            high = min(high, bound.high - (op == "Lt"))
        if op in ("Gt", "GtE", "Eq"):
            low = max(low, bound.low + (op == "Gt"))
        if low <= high:
            self.frame.env[node.id] = replace(value, low=low, high=high)

    # Attributes and subscripts

    def attribute(self, node: ast.Attribute) -> Value:
        return self.attribute_of(self.expression(node.value), node)

    def attribute_of(self, value: Value, node: ast.Attribute) -> Value:
        if isinstance(value, Choice):
            return choices.each(self, value, lambda option: self.attribute_of(option, node))
        found = special_calls.attribute(self, value, node) or self.member(value, node.attr, node)
        if found is not None:
            return found
        if isinstance(value, Row) and (seq := self.list_of(value)) is not None:
            return self.list_attribute(seq, node.attr)
        if not isinstance(value, Static):
            if isinstance(value, FixedList) and node.attr in lists.METHODS:
                self.growing(value)
            if isinstance(value, Tuple | NoneValue | SliceValue):
                raise self.refusal(node, f"attribute `.{node.attr}` is not compiled here")
            return marked(library.attribute(self.e, value, node.attr), value)
        if (seq := self.list_of(value)) is not None:
            return self.list_attribute(seq, node.attr)
        owner = value.object
        if (bounds := getattr(owner, "bounds", None)) is not None and node.attr in bounds:
            return bounds[node.attr]
        if isinstance(owner, np.ufunc) and node.attr == "at":
            return Static(owner.at)
        if isinstance(owner, library.facts.CONSTANT_OBJECTS) and hasattr(owner, node.attr):
            return self.constant(getattr(owner, node.attr), node.attr)
        if not isinstance(owner, ModuleType | type):
            way_out = (
                "take the gradient outside of compiled code, or write it as a function of its own"
                if node.attr in ("grad", "value_and_grad", "vjp", "pullback")
                else "call it outside compiled code"
                if hasattr(owner, "__wrapped__")
                else "pass its values as arguments"
            )
            raise self.refusal(
                node,
                f"attribute `.{node.attr}` of {type(owner).__name__} objects is not compiled",
                way_out,
            )
        if not hasattr(owner, node.attr):
            raise self.refusal(node, f"{owner.__name__!r} has no attribute {node.attr!r}")
        found = getattr(owner, node.attr)
        root = owner.__name__.partition(".")[0]
        known = isinstance(owner, ModuleType) and root in ("math", "numpy", "scipy")
        if known or self.fixed(owner):
            return self.constant(found, node.attr)
        holder = owner if isinstance(owner, type) else vars(owner)
        return self.captured(holder, node.attr, found, ast.unparse(node))

    def subscript(self, node: ast.Subscript) -> Value:
        value = self.value(node.value)
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
        if isinstance(value, Scalar) and not is_python(value):
            value = library.call(self.e, np.asarray, [value], {})
        if not isinstance(value, Array):
            raise self.refusal(node, "only arrays and tuples have subscripts in compiled code")
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
        """An item of a tuple or list of functions, where only the run knows which."""
        items = tuple(value.items)
        if choices.item_of(self, items, index.ssa) is None:
            return None
        kind = "list" if isinstance(value, FixedList) else "tuple"
        n = self.e.index(len(items))
        at = lists.place(self.e, index, n, f"{kind} index out of range")
        return choices.item_of(self, items, at)

    def range_item(self, over: RangeLike, node: ast.Subscript) -> Value:
        """`range(...)[k]`."""
        at = self.value(node.slice)
        if not isinstance(at, Scalar) or scalars.is_float(at.type):
            raise self.refusal(node, "a range is indexed by ints in compiled code")
        at = scalars.convert(self.e, at, "py_int")
        message = "range object index out of range"
        return over.item(lists.place(self.e, at, over.count.ssa, message))

    def index(self, node: ast.expr) -> tuple[Value, ...]:
        """The parts of a subscript: ints, slices, None, Ellipsis, arrays."""
        if isinstance(node, ast.Tuple):
            return tuple(self.index_part(part) for part in node.elts)
        part = self.index_part(node)
        if isinstance(part, Tuple) and not isinstance(node, ast.List):
            return part.items
        return (part,)

    def index_part(self, node: ast.expr) -> Value:
        with self.located(node):
            if not isinstance(node, ast.Slice):
                found = self.value(tuple_for_list(node))
                if isinstance(found, SliceValue):
                    return found
                return self.as_array(found, keep=False)
            bounds = [
                None if b is None else self.slice_bound(b)
                for b in (node.lower, node.upper, node.step)
            ]
            return SliceValue(*bounds)

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
        keyword = tuple(None if d is None else self.value(d) for d in a.kw_defaults)
        return Static(LocalFunction(node, self.frame, defaults, keyword))

    def call_node(self, node: ast.Call) -> Value:
        function = self.expression(node.func)
        if isinstance(function, Static) and self.consumes(function.object, node):
            return self.consumed(function.object, node)
        keywords = spreading.written_out(node)
        if isinstance(function, Static) and function.object is print:
            return self.print_call(node)
        nodes = [*node.args, *(k.value for k in keywords)]
        if node.args and isinstance(function, Static) and is_library_function(function.object):
            nodes[0] = tuple_for_list(nodes[0])
        method = function.object if isinstance(function, Static) else None
        if isinstance(method, BoundMethod) and any(map(self.may_write, nodes)):
            function = Static(replace(method, receiver=self.settled(method.receiver)))
        plain = [n.value if isinstance(n, ast.Starred) else n for n in nodes]
        values = self.operands(plain)
        args = list[Value]()
        for argument, value in zip(node.args, values, strict=False):
            is_starred = isinstance(argument, ast.Starred)
            own = (*args, *node.args[len(args) + 1 :], *keywords)
            count = spreading.needed(function, own) if is_starred else None
            args += spreading.items(self, argument, value, count) if is_starred else (value,)
        named = zip(keywords, values[len(node.args) :], strict=True)
        return self.call(function, args, spreading.keywords(self, named), node)


OPPOSITE = {"Lt": "GtE", "LtE": "Gt", "Gt": "LtE", "GtE": "Lt", "NotEq": "Eq", "Eq": "NotEq"}
MIRRORED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE", "Eq": "Eq"}


class RangeLike(Protocol):
    """A `range` as a value."""

    @property
    def count(self) -> Scalar: ...
    def item(self, i: SSAValue, /) -> Value: ...


def is_library_function(called: object) -> bool:
    return any(called is function for function in library.FUNCTIONS)


def tuple_for_list(node: ast.expr) -> ast.expr:
    """A list display as a tuple: what NumPy makes an array of, or takes for a shape, may be either."""
    if not isinstance(node, ast.List):
        return node
    items = [tuple_for_list(item) for item in node.elts]
    return ast.copy_location(ast.Tuple(items, ast.Load()), node)


def set_as_tuple(op: ast.cmpop, node: ast.expr) -> ast.expr:
    """`v in {a, b}` asks the same as `v in (a, b)`."""
    if not isinstance(op, ast.In | ast.NotIn) or not isinstance(node, ast.Set):
        return node
    return ast.copy_location(ast.Tuple(node.elts, ast.Load()), node)


def marked(view: Value, of: Value) -> Value:
    """`view`, told apart from the array itself where it is a view of all of it."""
    if isinstance(view, Array) and isinstance(of, Array) and view.memref is of.memref:
        return replace(view, whole=True)
    return view


def is_speculatable(op: Operation) -> bool:
    """Cheap and pure: may run where Python would not have evaluated it."""
    return op.has_trait(Pure) and not op.regions and op.name.startswith(("arith.", "array.cast"))

"""Operators and comparisons, and in which order their operands are computed."""

from __future__ import annotations

import ast
import builtins
import operator
from abc import abstractmethod
from types import ModuleType, UnionType
from typing import Any, cast

import numpy as np

from . import choices, formatting, library, scalars, weak
from .conditions import MIRRORED, Conditions
from .data.classes import described, method_of
from .data.fields import is_object
from .data.lists import FixedList, sequence_like
from .data.object_operators import UNARY_METHODS
from .scalars import is_python
from .syntax import nodes
from .syntax.liveness import assigned
from .values import (
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

SYMBOLS = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
ORDERS = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}
WRITERS = frozenset({"copyto", "fill_diagonal", "place", "put", "putmask"})
READING_BUILTINS: tuple[object, ...] = (abs, len, min, max, float, int, bool, round)
READING_METHODS = frozenset(
    {"copy", "sum", "mean", "min", "max", "prod", "astype", "dot", "reshape"}
)


class Operators(Conditions):
    """Lowers operators on values of every kind."""

    @abstractmethod
    def references_compared(self, op: str, lhs: Value, rhs: Value) -> Scalar | None:
        """`is` and `==` of what may be None and objects; None where that is something else."""

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

    def binary(self, node: ast.BinOp) -> Value:
        lhs, rhs = self.expression(node.left), self.expression(node.right)
        op = type(node.op).__name__
        of_lists = self.list_operator(op, lhs, rhs, node)
        return self.binary_values(op, lhs, rhs) if of_lists is None else of_lists

    def binary_values(self, op: str, lhs: Value, rhs: Value) -> Value:
        lhs, rhs = choices.operands(self, scalars.SYMBOL[op], lhs, rhs)
        if formatting.is_text(lhs):
            return self.text_operator(op, lhs, rhs)
        if op == "BitOr" and (union := union_of(lhs, rhs)) is not None:
            return union
        if is_python(lhs) and is_python(rhs):
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
            return formatting.percent(cast(Any, self), known, rhs)
        if op == "Add" and formatting.is_text(rhs):
            return formatting.added(lhs, rhs)
        raise self.refusal(
            None, f"an operand of `{scalars.SYMBOL[op]}` is {known!r}, not a number or an array"
        )

    def numeric(self, value: Value, what: str) -> None:
        if isinstance(value, Record | Struct):
            raise self.refusal(None, f"{what} is {described(value)}", "compute with its fields")
        if isinstance(value, Static | SliceValue):
            shown, way_out = library.ways_out.of_operand(getattr(value, "object", slice(None)))
            raise self.refusal(None, f"{what} is {shown}, not a number or an array", way_out)

    def tuple_operator(self, op: str, lhs: Value, rhs: Value) -> Value:
        if op == "Add" and isinstance(lhs, Tuple) and isinstance(rhs, Tuple):
            if isinstance(lhs, FixedList) != isinstance(rhs, FixedList):
                raise self.refusal(None, "`+` of a list and a tuple", "make a tuple of the list")
            return sequence_like(lhs, lhs.items + rhs.items)
        for items, count in ((lhs, rhs), (rhs, lhs)):
            known = count.constant if isinstance(count, Scalar) else None
            if op == "Mult" and isinstance(items, Tuple) and isinstance(known, int):
                return sequence_like(items, items.items * known)
        what = f"`{scalars.SYMBOL[op]}` of a {'list' if isinstance(lhs, FixedList) else 'tuple'}"
        raise self.refusal(None, what, "make an array, or compute item by item")

    def unary(self, node: ast.UnaryOp) -> Value:
        op = type(node.op).__name__
        if op == "Not":
            return scalars.unary(self.e, op, self.test(node.operand))
        sign = {"USub": "-", "UAdd": "+"}.get(op, "~")
        x = self.expression(node.operand)
        x = choices.present(self, x, f"bad operand type for unary {sign}: 'NoneType'")
        if is_python(x):
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
        self.observed[node.left] = left
        return self.compare_from(node, left, 0)

    def compare_from(self, node: ast.Compare, left: Value, k: int) -> Value:
        kinds = (ast.List, ast.Set) if isinstance(node.ops[k], ast.In | ast.NotIn) else ()
        right = self.expression(nodes.as_tuple(node.comparators[k], *kinds))
        self.observed[node.comparators[k]] = right
        last = k + 1 == len(node.ops)
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
        if name in ORDERS:
            lhs, rhs = choices.operands(self, SYMBOLS[name], lhs, rhs, order=True)
        if name not in ("In", "NotIn") and (isinstance(lhs, Choice) or isinstance(rhs, Choice)):
            return choices.compared(self, op, lhs, rhs)
        if is_object(lhs) or is_object(rhs):
            found = self.object_comparison(op, lhs, rhs)
            if found is not None:
                return found
        if name in ("Is", "IsNot"):
            return self.identity(name == "Is", lhs, rhs)
        if name in ("In", "NotIn"):
            seq = self.list_of(rhs)
            shown = None if seq is None else self.written_items(seq)
            if shown is not None:
                rhs, seq = Tuple(shown), None
            inside = self.contains(lhs, rhs) if seq is None else self.in_list(seq, lhs)
            if inside is None:
                raise self.refusal(
                    None, "`in` is compiled for tuples, dicts and strings", "`(x == v).any()`"
                )
            return inside if name == "In" else scalars.unary(self.e, "Not", inside)
        if is_python(lhs) and is_python(rhs):
            return scalars.compare(self.e, name, lhs, rhs)
        if isinstance(lhs, Static | NoneValue | Row) or isinstance(rhs, Static | NoneValue | Row):
            return self.compare_objects(name, lhs, rhs)
        if isinstance(lhs, Tuple) and isinstance(rhs, Tuple) and name in ("Eq", "NotEq"):
            return self.compare_tuples(name == "Eq", lhs, rhs)
        if isinstance(lhs, Tuple) and isinstance(rhs, Tuple) and name in MIRRORED:
            return self.order_tuples(name, lhs, rhs)
        for side, other in ((lhs, rhs), (rhs, lhs)):
            if isinstance(side, Tuple):
                if name in ("Eq", "NotEq") and is_python(other):
                    return self.e.constant(name == "NotEq", "py_bool")
                raise self.refusal(
                    None, "a tuple is compared with something else", "compare its items"
                )
        return library.compare(self.e, name, lhs, rhs)

    def identity(self, same: bool, lhs: Value, rhs: Value) -> Value:
        if (rows := self.same_row(lhs, rhs)) is not None:
            return rows if same else scalars.unary(self.e, "Not", rows)
        if isinstance(lhs, Static) and isinstance(rhs, Static):
            a, b = self.list_of(lhs) or lhs.object, self.list_of(rhs) or rhs.object
            return self.e.constant((a is b) is same, "py_bool")
        kinds = singleton_kind(lhs), singleton_kind(rhs)
        if kinds[0] == kinds[1] and kinds[0] in ("py_bool", "b1"):
            return self.compare_values(ast.Eq() if same else ast.NotEq(), lhs, rhs)
        if any(kinds) and not ("either" in kinds and {*kinds} <= {"py_bool", "b1", "either"}):
            return self.e.constant((kinds[0] == kinds[1]) is same, "py_bool")
        raise self.refusal(
            None,
            "`is` compares objects, which compiled numbers and arrays are not",
            "use `==` for numbers; for arrays, pass a bool that says it",
        )

    def compare_objects(self, name: str, lhs: Value, rhs: Value) -> Value:
        if self.list_of(lhs) is not None or self.list_of(rhs) is not None:
            return self.compare_lists(name, lhs, rhs)
        texts = [
            v.object for v in (lhs, rhs) if isinstance(v, Static) and isinstance(v.object, str)
        ]
        if len(texts) == 2 and name in ORDERS:
            return self.e.constant(ORDERS[name](*texts), "py_bool")
        objects = [v.object for v in (lhs, rhs) if isinstance(v, Static)]
        if any(isinstance(one, formatting.Formatted) for one in objects):
            raise self.refusal(None, "a text made at run time is compared", "compare its numbers")
        if name in ("Eq", "NotEq"):
            if len(objects) == 2:
                return self.e.constant((objects[0] == objects[1]) is (name == "Eq"), "py_bool")
            if isinstance(lhs, NoneValue) and isinstance(rhs, NoneValue):
                return self.e.constant(name == "Eq", "py_bool")
            plain = NoneValue | Static | Scalar
            if isinstance(lhs, plain) and isinstance(rhs, plain) and len(texts) == len(objects):
                return self.e.constant(name != "Eq", "py_bool")
        raise self.refusal(
            None, "these two cannot be compared in compiled code", library.ways_out.COMPARED
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


def singleton_kind(value: Value) -> str | None:
    """Which objects a value is one of, of those that exist once; None of any other value."""
    match value:
        case NoneValue() | Static(builtins.Ellipsis | builtins.NotImplemented):
            return repr(getattr(value, "object", None))
        case Scalar("py_bool" | "b1" as kind):
            return kind if value.python is None else "either"
        case _:
            return None


def union_of(lhs: Value, rhs: Value) -> Value | None:
    """`A | B` of two classes, or of a union and a class."""
    parts = [v.object if isinstance(v, Static) else None for v in (lhs, rhs)]
    if not all(isinstance(part, type | UnionType) for part in parts):
        return None
    return Static(operator.or_(*parts))

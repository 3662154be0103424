"""Python's builtin functions of values that a program has: len, abs, min, int, round, isinstance, ..."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from types import UnionType
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, math

from ...scalar_types import Mismatch, join_types
from .. import choices, exceptions, library, scalars
from .. import python_math as math_functions
from ..catching_scopes import Caught
from ..data import hashed, protocols, tables
from ..data.lists import FixedList, ListObject
from ..expressions import Expressions
from ..formatting import Formatted
from ..scalars import is_python
from ..syntax.comprehensions import ITERATORS
from ..values import (
    NUMPY_DTYPE,
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
from . import (
    special_calls,
    written,
)


class Builtins(Expressions):
    """Lowers calls of builtin functions, arguments already evaluated."""

    def builtin(
        self, callee: Any, args: list[Value], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        name: str = callee.__name__
        method = getattr(self, f"builtin_{name}", None)
        if method is None or getattr(builtins, name, None) is not callee:
            if callee in ITERATORS:
                raise self.refusal(node, f"`{name}` is compiled only as what a `for` runs over")
            way_out = library.ways_out.of_function(callee)
            raise self.refusal(node, f"the builtin `{name}` is not compiled", way_out)
        if kwargs:
            raise self.refusal(node, f"`{name}` is compiled without keyword arguments")
        return method(args, node)

    def one(self, args: Sequence[Value], node: ast.Call) -> Value:
        if len(args) != 1:
            raise self.refusal(node, f"{len(args)} arguments where one is compiled")
        return args[0]

    def scalar(self, value: Value, what: str) -> Scalar:
        """A scalar; an array of one element and rank 0 counts as one."""
        if isinstance(value, Array) and value.rank == 0:
            value = library.subscript(self.e, value, ())
        if not isinstance(value, Scalar):
            way_out = "use the function of NumPy" if isinstance(value, Array) else None
            if isinstance(value, Static) and isinstance(value.object, Formatted):
                way_out = "texts are only printed or raised: use the number, or round(x, 3)"
            raise self.refusal(None, f"{what} must be a scalar here", way_out)
        return value

    def builtin_len(self, args: list[Value], node: ast.Call) -> Value:
        value = self.one(args, node)
        value = choices.present(self, value, "object of type 'NoneType' has no len()")
        if isinstance(value, Record | Struct):
            return self.length_of(value, node)
        if (count := self.count_of(value)) is not None:
            return count
        if isinstance(value, Array) and value.rank:
            shape = library.attribute(self.e, value, "shape")
            assert isinstance(shape, Tuple)
            return shape.items[0]
        self.refuse_long_list(value, node)
        raise self.refusal(node, "`len` of something without a length")

    def by_protocol(self, value: Value, method: str, name: str, node: ast.Call) -> Value:
        found = protocols.by_method(self, value, method, node)
        if found is None:
            raise self.refusal(node, f"`{name}` of an object without `{method}`")
        return found

    def builtin_type(self, args: list[Value], node: ast.Call) -> Value:
        value = self.one(args, node)
        if isinstance(value, Static) and isinstance(value.object, Caught | exceptions.Made):
            return exceptions.type_of(cast(Any, self), value.object)
        try:
            return Static(class_of(value))
        except choices.Undecided:
            raise self.refusal(
                node, "the type of this value is dynamic", "test for None with `is None`"
            ) from None

    def builtin_issubclass(self, args: list[Value], node: ast.Call) -> Value:
        """Decided while compiling."""
        cls, *others = args
        if isinstance(cls, Choice):
            answers = [self.builtin_issubclass([one, *others], node) for one in cls.options]
            truths = [isinstance(a, Scalar) and bool(a.constant) for a in answers]
            return choices.is_any_of(self.e, cls, truths)
        classes = others[0].items if others and isinstance(others[0], Tuple) else others
        known = [c.object for c in (cls, *classes) if isinstance(c, Static)]
        if len(known) < 1 + len(classes) or not all(isinstance(c, type) for c in known):
            raise self.refusal(node, "the classes of issubclass must be known while compiling")
        return self.e.constant(issubclass(known[0], tuple(known[1:])), "py_bool")

    def builtin_callable(self, args: list[Value], node: ast.Call) -> Value:
        """Decided while compiling."""
        return self.e.constant(written.is_callable(self.one(args, node)), "py_bool")

    def builtin_str(self, args: list[Value], node: ast.Call) -> Value:
        """Of a class, a dtype or a string."""
        value = self.one(args, node)
        if not isinstance(value, Static) or not isinstance(value.object, str | type | np.dtype):
            raise self.refusal(node, "`str` of this is not compiled", "write it in an f-string")
        return Static(str(value.object))

    def builtin_slice(self, args: list[Value], node: ast.Call) -> Value:
        if not 1 <= len(args) <= 3:
            raise self.refusal(node, "slice takes 1 to 3 arguments")
        parts = [None if isinstance(a, NoneValue) else self.scalar(a, "a bound") for a in args]
        if any(p is not None and scalars.is_float(p.type) for p in parts):
            raise self.refusal(node, "slice indices must be integers or None")
        ints = [None if p is None else scalars.convert(self.e, p, "py_int") for p in parts]
        bounds = [None, *ints, None] if len(ints) == 1 else [*ints, None]
        return SliceValue(*bounds[:3])

    def builtin_abs(self, args: list[Value], node: ast.Call) -> Value:
        x = self.one(args, node)
        if isinstance(x, Record | Struct):
            return self.by_protocol(x, "__abs__", "abs", node)
        if not isinstance(x, Scalar) or not is_python(x):
            return library.call(self.e, np.absolute, [x], {})
        if x.constant is not None:
            value = abs(x.constant)
            return self.e.constant(value, "py_float" if isinstance(value, float) else "py_int")
        if scalars.is_float(x.type):
            return Scalar("py_float", self.e.emit(math.AbsFOp(x.ssa)))
        x = scalars.convert(self.e, x, "py_int")
        if x.low >= 0:
            return x
        minus = scalars.unary(self.e, "USub", x)
        larger = self.e.emit(arith.MaxSIOp(x.ssa, minus.ssa))
        return Scalar(
            "py_int", larger, None, 0, max(abs(x.low), abs(x.high)) if x.low > -(2**63) else x.high
        )

    def builtin_float(self, args: list[Value], node: ast.Call) -> Value:
        if not args:
            return self.e.constant(0.0, "py_float")
        value = self.one(args, node)
        if isinstance(value, Record | Struct):
            value = self.by_protocol(value, "__float__", "float", node)
        if isinstance(value, Static) and isinstance(value.object, str):
            try:
                return self.e.constant(float(value.object), "py_float")
            except ValueError as error:
                raise self.refusal(node, str(error)) from None
        return scalars.convert(self.e, self.scalar(value, "the argument of float"), "py_float")

    def builtin_int(self, args: list[Value], node: ast.Call) -> Value:
        if not args:
            return self.e.constant(0, "py_int")
        value = self.one(args, node)
        if isinstance(value, Static) and isinstance(value.object, str):
            try:
                return self.e.constant(int(value.object), "py_int")
            except ValueError as error:
                raise self.refusal(node, str(error)) from None
        return self.rounded(value, math.TruncOp, "int")

    def integer(self, value: Value, node: ast.expr) -> Scalar:
        if isinstance(value, Scalar) and not scalars.is_float(value.type):
            return scalars.convert(self.e, value, "py_int")
        raise self.refusal(node, "an integer is needed here", "convert with int(...)")

    def builtin_round(self, args: list[Value], node: ast.Call) -> Value:
        if len(args) == 2 and not isinstance(args[1], NoneValue):
            x = self.scalar(args[0], "the argument of round")
            if not is_python(x):
                if not written.is_float_like(x):
                    raise self.refusal(node, "`round` of ints to digits", "use integer division")
                return written.round_decimals(cast(Any, self), x, args[1], node)
            x = scalars.convert(self.e, x, "py_float")
            return written.round_to_digits(cast(Any, self), x, args[1], node)
        return self.rounded(args[0], math.RoundEvenOp, "round")

    def rounded(self, value: Value, op: Any, name: str) -> Scalar:
        x = self.scalar(value, f"the argument of {name}")
        if isinstance(x.constant, float) and abs(x.constant) < 2.0**62:
            whole = int(x.constant) if name == "int" else round(x.constant)
            return self.e.constant(whole, "py_int")
        return math_functions.rounded(self.e, op, x)

    def builtin_isinstance(self, args: list[Value], node: ast.Call) -> Value:
        """Decided while compiling: types are known."""
        if len(args) != 2:
            raise self.refusal(node, "isinstance takes two arguments")
        value, classes = args
        named = classes.items if isinstance(classes, Tuple) else (classes,)
        known = [part for c in named for part in united(c)]
        if not all(isinstance(part, type) for part in known):
            raise self.refusal(node, "the classes of isinstance must be known while compiling")
        if isinstance(value, Static) and isinstance(value.object, Caught):
            return exceptions.is_instance(cast(Any, self), value.object, tuple(known))
        options = value.options if isinstance(value, Choice) else (value,)
        classes_of = [(found := class_of(v), hashed.of_python(found)) for v in options]
        answers = [any(issubclass(c, tuple(known)) for c in both) for both in classes_of]
        if isinstance(value, Choice):
            return choices.is_any_of(self.e, value, answers)
        return self.e.constant(answers[0], "py_bool")

    def builtin_bool(self, args: list[Value], node: ast.Call) -> Value:
        if not args:
            return self.e.constant(False, "py_bool")
        return self.truth(self.one(args, node))

    def builtin_min(self, args: list[Value], node: ast.Call) -> Value:
        return self.extreme("Lt", "min", args, node)

    def builtin_max(self, args: list[Value], node: ast.Call) -> Value:
        return self.extreme("Gt", "max", args, node)

    def extreme(self, op: str, name: str, args: list[Value], node: ast.Call) -> Value:
        """min and max: the first of the extreme items, as CPython's comparisons find it."""
        if len(args) == 1:
            only = args[0]
            if not isinstance(only, Tuple):
                raise self.refusal(node, f"`{name}` of an array", f"use x.{name}() or np.{name}(x)")
            args = list(only.items)
        if not args:
            raise self.refusal(node, f"{name}() of nothing")
        first = args[0]
        for k, argument in enumerate(args[1:], 1):
            sides = choices.operands(self, ">" if op == "Gt" else "<", argument, first, order=True)
            args[k], first = sides
        best = self.scalar(first, f"an argument of {name}")
        for argument in args[1:]:
            best = self.better(op, best, self.scalar(argument, f"an argument of {name}"))
        return best

    def better(self, op: str, best: Scalar, item: Scalar) -> Scalar:
        if best.constant is not None and item.constant is not None:
            return item if scalars.COMPARISONS[op](item.constant, best.constant) else best
        try:
            type_ = join_types(best, item)
        except Mismatch as mismatch:
            self.e.fail(str(mismatch), "convert one of them")
        a, b = scalars.convert(self.e, best, type_), scalars.convert(self.e, item, type_)
        takes = scalars.compare_ssa(self.e, op, b.ssa, a.ssa, type_)
        ssa = self.e.emit(arith.SelectOp(takes, b.ssa, a.ssa))
        if type_ != "py_int":
            return Scalar(type_, ssa)
        pick = min if op == "Lt" else max
        return Scalar(type_, ssa, None, pick(a.low, b.low), pick(a.high, b.high))

    def builtin_sum(self, args: list[Value], node: ast.Call) -> Value:
        """sum of a tuple."""
        items = args[0] if args else None
        if not isinstance(items, Tuple) or len(args) > 2:
            raise self.refusal(
                node,
                "the builtin `sum` is compiled for tuples",
                "use x.sum() or np.sum(x), or a loop",
            )
        total: Value = args[1] if len(args) == 2 else self.e.constant(0, "py_int")
        for item in items.items:
            total = self.binary_values("Add", total, item)
        return total

    def builtin_divmod(self, args: list[Value], node: ast.Call) -> Value:
        if len(args) != 2:
            raise self.refusal(node, "divmod takes two arguments")
        lhs, rhs = args
        return Tuple(tuple(self.binary_values(op, lhs, rhs) for op in ("FloorDiv", "Mod")))

    def builtin_pow(self, args: list[Value], node: ast.Call) -> Value:
        if len(args) != 2:
            raise self.refusal(node, "pow is compiled for two arguments")
        return self.binary_values("Pow", args[0], args[1])


def class_of(value: Value) -> type:
    """The class that the value has in CPython."""
    match value:
        case Scalar(type_):
            python = {"py_bool": bool, "py_int": int, "py_float": float}
            return python.get(type_) or NUMPY_DTYPE[type_].type
        case Array():
            return np.ndarray
        case FixedList() | Static(ListObject()) | Row():
            return list
        case Tuple(_, cls):
            return cls or type(tables.raw_of(value) or ())
        case Struct() | Record():
            return value.cls
        case NoneValue():
            return type(None)
        case Static(special_calls.Member() as member):
            return member.type
        case Static(found):
            return type(found)
        case Choice(_, options):
            classes = {class_of(option) for option in options}
            if len(classes) > 1:
                raise choices.Undecided
            return classes.pop()
        case _:
            raise AssertionError("a value that is not settled")


def united(value: Value) -> tuple[Any, ...]:
    """The classes that `A | B` is, or the class."""
    found = value.object if isinstance(value, Static) else None
    return found.__args__ if isinstance(found, UnionType) else (found,)

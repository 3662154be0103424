"""Calls: builtins, `math`, the library, and Python functions compiled along, inlined."""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import warnings
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, UnionType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects import arith, math

from ...diagnostics import OWN, CompileError, is_library
from ...scalar_types import Mismatch, join_types
from .. import choices, exceptions, library, scalars
from .. import python_math as math_functions
from ..bindings import nonlocals
from ..catching_scopes import Caught
from ..context import hint
from ..data import hashed, protocols, tables
from ..data.fields import fields_in
from ..data.lists import FixedList, ListMethod, ListObject
from ..emitter import Emitter
from ..expressions import Expressions
from ..facts import Facts
from ..formatting import Formatted
from ..frames import RESULT, Frame, LocalFunction, Scope, Unready
from ..joins import Maybe
from ..library.ways_out import unknown_argument
from ..scalars import is_python
from ..syntax import matching, normalize, source
from ..syntax.comprehensions import ITERATORS, Intrinsic
from ..syntax.liveness import Liveness, Names, bound_by
from ..syntax.scopes import parameters
from ..values import (
    NUMPY_DTYPE,
    Array,
    BoundMethod,
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
    arguments,
    context_managers,
    generator_values,
    iterator_protocol,
    iterators,
    library_code,
    recursion,
    special_calls,
    written,
)
from .return_buffers import Buffers

if TYPE_CHECKING:
    from .activations import Activation

MAX_DEPTH = 64


class Calls(Expressions):
    """Lowers calls, arguments already evaluated."""

    def __init__(self, emitter: Emitter, facts: Facts) -> None:
        super().__init__(emitter, facts)
        self.registry = recursion.Registry(Buffers(emitter))
        self.place: Activation | None = None
        """The private function that is being lowered."""

    def call(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        if isinstance(function, Static) and function.object is functools.partial and args:
            return Static(arguments.Partial(args[0], tuple(args[1:]), kwargs))
        if isinstance(function, Choice):
            return choices.each(self, function, lambda f: self.call(f, args, kwargs, node))
        if isinstance(function, NoneValue):
            choices.raise_always(self, "'NoneType' object is not callable")
        made = iterators.call(self, function, args, kwargs, node)
        if made is None:
            made = context_managers.call(self, function, args, kwargs, node)
        if made is None:
            made = self.object_call(function, args, kwargs, node)
        if made is not None:
            return made
        if not isinstance(function, Static):
            raise self.refusal(node, f"{library.ways_out.kind_of(function)} object is not callable")
        callee = self.plain(library_code.as_numpy(function.object))
        special = library_code.planned(self, callee, args, kwargs, node)
        if special is None:
            special = special_calls.call(self, callee, args, kwargs, node)
        if special is None:
            special = written.call(self, callee, args, kwargs, node)
        if special is not None:
            return special
        if isinstance(callee, LocalFunction):
            return self.inline_local(callee, args, kwargs, node)
        if isinstance(callee, ListMethod):
            return self.call_list_method(callee, args, kwargs, node)
        if isinstance(callee, Intrinsic) and callee in iterator_protocol.ASKED:
            return iterator_protocol.asked(self, callee, args, node)
        if isinstance(callee, Intrinsic):
            return self.intrinsic(callee, args)
        if isinstance(callee, functools.partial | arguments.Partial | MethodType):
            return self.call_bound(callee, args, kwargs, node)
        if callee is matching.is_sequence or callee is matching.is_mapping:
            flag = matching.SEQUENCE if callee is matching.is_sequence else matching.MAPPING
            known = class_of(args[0]).__flags__
            return self.e.constant(bool(known & flag), "py_bool")
        if callee is matching.positional_attribute:
            return self.positional_attribute(args, node)
        if callee is warnings.warn:
            return NoneValue()
        if library_code.is_namespace(callee):
            return Static(np)
        if callee is operator.index:
            return self.integer(self.one(args, node), node)
        if callee is library_code.refuse:
            raise library_code.refused(self, args, node)
        own_code = library_code.code_of(callee, args, kwargs)
        if own_code is not None:
            receiver = [callee.receiver] if isinstance(callee, BoundMethod) else []
            args = [*receiver, *args]
            library.read_only.before_call(self.e, callee, args)
            return self.inline(own_code, args, kwargs, node)
        if isinstance(callee, FunctionType) and not of_library(callee):
            return self.inline(callee, args, kwargs, node)
        if math_functions.knows(callee) and getattr(callee, "__module__", "") == "math":
            if kwargs:
                raise self.refusal(node, "math functions take no keyword arguments")
            args = choices.arguments_of(self, callee, args)
            return math_functions.call(
                self.e, callee, [self.scalar(a, "an argument") for a in args]
            )
        if getattr(callee, "__module__", "") == "builtins" and isinstance(
            callee, BuiltinFunctionType | type
        ):
            return self.builtin(callee, args, kwargs, node)
        if getattr(callee, "__module__", "") == "math":
            raise self.refusal(
                node,
                f"math.{callee.__name__} is not compiled",
                "see the list of math functions in the docs",
            )
        sign = arguments.operator_of(callee)
        if sign is not None and len(args) == 2 and not kwargs:
            return self.binary_values(sign, args[0], args[1])
        return self.call_library(callee, args, kwargs)

    def positional_attribute(self, args: list[Value], node: ast.Call) -> Value:
        """What a class pattern matches at a place: `__match_args__` says which attribute that is."""
        base, cls, at = args
        assert isinstance(cls, Static)
        assert isinstance(at, Scalar)
        names, k = getattr(cls.object, "__match_args__", ()), int(at.constant or 0)
        if k >= len(names):
            name = cls.object.__name__
            raise self.refusal(
                node, f"{name}() accepts {len(names)} positional sub-patterns ({k + 1} given)"
            )
        found = self.member(base, names[k], node)
        if found is None:
            raise self.refusal(node, f"`{names[k]}` is no attribute of what is matched here")
        return found

    def call_library(self, callee: object, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A function of NumPy, or a method of an array: lists are arrays to it."""
        if isinstance(kwargs.get("device"), NoneValue):
            del kwargs["device"]
        args = choices.arguments_of(self, callee, args)
        for value in kwargs.values():
            if isinstance(value, Choice):
                raise self.refusal(None, *choices.unknown(value))
        own = not isinstance(callee, np.ufunc)
        args = [tables.as_array(self, a, own=own) for a in args]
        kwargs = {k: tables.as_array(self, v, own=own) for k, v in kwargs.items()}
        if any(self.has_list(v) for v in (*args, *kwargs.values())):
            alone = len(args) == 1 and not kwargs and not isinstance(args[0], Tuple)
            if callee in (np.array, np.asarray) and alone:
                return self.as_array(args[0], keep=True)
            joined = self.joined_rows(callee, args, kwargs)
            if joined is not None:
                return joined
            keep = not isinstance(callee, np.ufunc | BoundMethod)
            args = [self.as_array(a, keep=keep) for a in args]
            kwargs = {k: self.as_array(v, keep=keep) for k, v in kwargs.items()}
        return library.call(self.e, callee, args, kwargs)

    def has_list(self, value: Value) -> bool:
        """True for a list, and for a list or tuple that holds one."""
        if isinstance(value, Tuple):
            return any(map(self.has_list, value.items))
        return self.list_of(value) is not None

    def call_bound(
        self,
        callee: functools.partial[Any] | arguments.Partial | MethodType,
        args: list[Value],
        kwargs: dict[str, Value],
        node: ast.Call,
    ) -> Value:
        """A function with some of its arguments: `functools.partial`, a method of a class."""
        if isinstance(callee, arguments.Partial):
            kwargs = {**callee.kwargs, **kwargs}
            return self.call(callee.function, [*callee.args, *args], kwargs, node)
        if isinstance(callee, MethodType):
            receiver = self.constant(callee.__self__, "the receiver of a method")
            return self.call(Static(callee.__func__), [receiver, *args], kwargs, node)
        first = [self.constant(v, "an argument of a partial") for v in callee.args]
        named = {k: self.constant(v, k) for k, v in callee.keywords.items()}
        return self.call(Static(callee.func), [*first, *args], {**named, **kwargs}, node)

    # Builtins

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
                return written.round_decimals(self, x, args[1], node)
            x = scalars.convert(self.e, x, "py_float")
            return written.round_to_digits(self, x, args[1], node)
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

    # Python functions

    def inline_local(
        self, callee: LocalFunction, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if generator_values.is_generator(callee):
            return generator_values.pending(self, callee, args, kwargs)
        definition, parent = callee.node, callee.frame
        self.enter(definition, getattr(definition, "name", "<lambda>"), node)
        if definition not in self.facts.nested:
            body = normalize.function_body(
                definition, parent.source, self.facts.generators, self.facts.managers
            )
            names = parameters(definition.args) | bound_by(body)
            self.facts.nested[definition] = body, Liveness.of(body), names
        body, liveness, names = self.facts.nested[definition]
        frame = self.new_frame(parent.source, parent.scope, names, liveness, node)
        frame.parent = parent
        name = getattr(definition, "name", "<lambda>")
        self.bind_arguments(
            frame,
            definition.args,
            name,
            args,
            kwargs,
            callee.defaults,
            callee.keyword_defaults,
            node,
        )
        return self.run_call(frame, body, definition, node)

    def inline(
        self, function: FunctionType, args: list[Value], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        if generator_values.is_generator(function):
            return generator_values.pending(self, function, args, kwargs)
        code = recursion.definition_of(function)
        self.enter(code, function.__name__, node)
        own_source, body, liveness, names = self.function_parts(function)
        frame = self.new_frame(own_source, Scope.of(function), names, liveness, node)
        defaults, keyword = self.defaults_of(function, own_source, frame)
        self.bind_arguments(
            frame, own_source.node.args, function.__name__, args, kwargs, defaults, keyword, node
        )
        return self.run_call(frame, body, code, node)

    def defaults_of(
        self, function: FunctionType, own: source.Source, frame: Frame
    ) -> tuple[tuple[Value, ...], tuple[Value | None, ...]]:
        """A function's defaults: of parameters that may be positional, and of all others."""
        outer, self.frame = self.frame, frame
        try:
            table = function.__kwdefaults__ or {}
            names = [a.arg for a in own.node.args.kwonlyargs]
            return (
                tuple(self.default_value(d) for d in function.__defaults__ or ()),
                tuple(self.keyword_default(table, k) if k in table else None for k in names),
            )
        finally:
            self.frame = outer

    def keyword_default(self, table: dict[str, Any], name: str) -> Value:
        """The default of a keyword: an input where callers read it at each call."""
        found = self.inputs.get((id(table), name))
        return self.default_value(table[name]) if found is None else found

    def default_value(self, value: Any) -> Value:
        return self.constant(value, f"default {value!r}")

    def function_parts(
        self, function: FunctionType
    ) -> tuple[source.Source, Sequence[ast.stmt], Liveness, Names]:
        """A function's source, its body made ready, its liveness, its local names."""
        code = function.__code__
        if code not in self.facts.trees:
            own = source.read(function)
            body = normalize.function_body(
                own.node, own, self.facts.generators, self.facts.managers
            )
            names = parameters(own.node.args) | bound_by(body)
            self.facts.trees[code] = own, body, Liveness.of(body), names
        return self.facts.trees[code]

    def enter(self, code: recursion.Definition, name: str, node: ast.AST) -> None:
        if recursion.is_recursive(self, code):
            self.calls.append(code)
            return
        if code in self.calls:
            raise recursion.found(self, code)
        if len(self.calls) > MAX_DEPTH:
            raise self.refusal(
                node,
                f"calls are nested more than {MAX_DEPTH} deep",
                "write a recursive generator as a function that appends to a list",
            )
        self.calls.append(code)

    def new_frame(
        self,
        own: source.Source,
        scope: Scope,
        names: Names,
        liveness: Liveness,
        node: ast.AST | None,
    ) -> Frame:
        self.serial += 1
        path = () if node is None else (*self.frame.place, id(node))
        made = self.frames[path] = Frame(own, scope, names, liveness, path, self.serial)
        if node is not None and is_library(own.file):
            made.caller, made.within = self.frame.span(node), self.frame.within or own.qualname
        return made

    def run_call(
        self,
        frame: Frame,
        body: Sequence[ast.stmt],
        definition: recursion.Definition,
        node: ast.AST,
    ) -> Value:
        """Lower a call whose arguments are bound: in place, or as a call of a function of the module."""
        is_hidden = frame.path == () or "$" in getattr(definition, "name", "")
        call = None if is_hidden else self.frame.span(node)
        try:
            if not recursion.is_recursive(self, definition):
                return self.run_frame(frame, body)
            self.calls.pop()
            return recursion.call(self, frame, body, definition, node)
        except CompileError as error:
            error.leaves(frame.source.file, frame.source.qualname, call)
            raise

    def catches(self) -> bool:
        """True where an exception raised here is handled in the function."""
        return self.e.catch is not None

    def run_frame(self, frame: Frame, body: Sequence[ast.stmt]) -> Value:
        """Lower a call's body; its result."""
        outer, span = self.frame, self.e.span
        self.frame = frame
        frame.env.update(fields_in(outer.env))
        nonlocals.share(self, frame)
        self.block(body)
        outer.env.update(fields_in(frame.env))
        result = frame.env.get(RESULT, NoneValue())
        self.forget_names(frame.serial)
        frame.done = True
        self.frame, self.e.span = outer, span
        self.calls.pop()
        if self.dead and self.e.block in (self.statement_block, self.arm_block):
            raise Unready  # the call never returns: nothing of the statement follows
        assert not isinstance(result, Maybe)
        return result

    def bind_arguments(
        self,
        frame: Frame,
        a: ast.arguments,
        name: str,
        args: list[Value],
        kwargs: dict[str, Value],
        defaults: tuple[Value, ...],
        keyword_defaults: tuple[Value | None, ...],
        node: ast.AST,
    ) -> None:
        """Match arguments with parameters, as CPython does."""
        try:
            values = arguments.bound(a, name, args, kwargs, defaults, keyword_defaults)
        except arguments.Unbindable as error:
            if error.unknown is not None and frame.source.file.startswith(
                OWN
            ):  # NumPy's may have it
                raise self.refusal(node, *unknown_argument(name, error.unknown)) from None
            raise self.refusal(node, str(error)) from None
        if a.kwarg is not None:
            values[a.kwarg.arg] = self.dict_of(arguments.left_over(a, kwargs))
        for parameter, value in values.items():
            hint(value, frame.named(parameter), self.named)
            frame.env[parameter] = value
            self.name_argument(frame.serial, parameter, value)


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


def of_library(function: object) -> bool:
    """True for functions that the library knows by identity, though Python's own code could be read."""
    root = str(getattr(function, "__module__", "")).partition(".")[0]
    return root in ("numpy", "scipy", "math") or library.is_known(function)

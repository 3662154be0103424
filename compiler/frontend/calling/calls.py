"""Calls: `math`, the library, and Python functions compiled along, inlined."""

from __future__ import annotations

import ast
import functools
import operator
import warnings
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...diagnostics import OWN, CompileError, is_library
from .. import choices, library
from .. import python_math as math_functions
from ..bindings import nonlocals
from ..context import hint
from ..data import tables
from ..data.fields import fields_in
from ..data.lists import ListMethod
from ..emitter import Emitter
from ..facts import Facts
from ..frames import RESULT, Frame, LocalFunction, Scope, Unready
from ..joins import Maybe
from ..library.ways_out import unknown_argument
from ..syntax import matching, normalize, source
from ..syntax.comprehensions import Intrinsic
from ..syntax.liveness import Liveness, Names, bound_by
from ..syntax.scopes import parameters
from ..values import (
    BoundMethod,
    Choice,
    NoneValue,
    Scalar,
    Static,
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
from .builtin_functions import Builtins, class_of
from .return_buffers import Buffers

if TYPE_CHECKING:
    from .activations import Activation

MAX_DEPTH = 64


class Calls(Builtins):
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


def of_library(function: object) -> bool:
    """True for functions that the library knows by identity, though Python's own code could be read."""
    root = str(getattr(function, "__module__", "")).partition(".")[0]
    return root in ("numpy", "scipy", "math") or library.is_known(function)

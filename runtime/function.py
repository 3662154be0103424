"""Compiled functions: what `@compile` makes of a Python function.

Calls must be fast, so the objects are unusual in two ways. Each has a class of its own, whose
`__call__` is the builtin at the head of the chain of entries (`dispatch`): a builtin has no
`__get__`, so Python calls it without making a bound method. And `grad` and `value_and_grad` become
instance attributes, the builtins themselves, once something is compiled.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Self, overload

from . import (
    annotations,
    gradients,
    keys,
    memory,
    native_code,
    objects,
    pickles,
    rules,
    wrappers,
)
from .bound import BoundMethod
from .compiler_protocol import Compiler, Make
from .derivative_functions import derivative_of, derived
from .dispatch import METHODS, Dispatcher
from .foreign_idioms import ATTRIBUTES, no_function
from .inspection import FRAME, PAGE, Inspection
from .signatures import require_plain
from .user_tracebacks import concise, with_concise_methods
from .variadic import LOOKS, CompiledWrapper

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    Q = ParamSpec("Q")
    R = TypeVar("R", default=Any)
    S = TypeVar("S")
    T = TypeVar("T")
else:  # without defaults, which the language has from 3.13 on
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R")

MODES = {"joint": "gradient", "split": "vjp"}
"""What is compiled for each plan of what to save."""
COUNTED = {"joint": "count", "split": "count-split"}
"""What is compiled to count what each plan saves."""
DERIVATIVES = (
    *("grad", "value_and_grad", "vjp", "pullback", "jvp", "pushforward", "hvp", "value_grad_hvp"),
    *("hessian", "jacobian", "jacobian_sparsity", "linear_operator", "explain"),
)
"""What a `DifferentiableFunction` has besides."""
THERE_IS = {
    False: """Compiled by mutad. `inspect` shows each stage of the compiler, `__wrapped__` is the Python
function; `compile(grad=True)` adds derivatives. More: help(mutad.CompiledFunction).""",
    True: """Compiled by mutad, with derivatives: `grad`, `value_and_grad`, `vjp`, `pullback`; `jvp`,
`pushforward`; `hvp`, `value_grad_hvp`, `hessian`; `jacobian`, `jacobian_sparsity`, `linear_operator`.
`explain` says what a gradient saves, `inspect` shows each stage of the compiler, `__wrapped__` is the
Python function. More: help(mutad.DifferentiableFunction).""",
}
"""What `help` of a compiled function shows below its docstring."""


@with_concise_methods
class CompiledFunction(Generic[P, R]):
    """A Python function, compiled for the arguments it is called with.

    `f(...)` runs the primal; `f.inspect(stage)` shows the compiled code. `f.__wrapped__` is the Python
    function. With `grad=True` it is a `DifferentiableFunction`.
    """

    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str
    has_gradient = False
    """Whether it was compiled with its gradient."""

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        compiler: Compiler,
        make: Make,
    ) -> None:
        if (taken := derivative_of(function)) is not None:
            raise TypeError(derived(*taken, "call it as it is, it is compiled"))
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"compile() takes a Python function, not {no_function(function)}")
        require_plain(function)
        for attribute in LOOKS:
            setattr(self, attribute, getattr(function, attribute))
        there_is = THERE_IS[self.has_gradient]
        self.__doc__ = f"{inspect.getdoc(function) or ''}\n\n{there_is}".lstrip()
        self.__dict__.update(function.__dict__)
        self.__wrapped__ = function
        dispatcher = Dispatcher(function, options, compiler, make, self.has_gradient)
        dispatcher.owner = weakref.ref(self)
        dispatcher.installed = functools.partial(_install, weakref.ref(self))
        self._dispatcher = dispatcher
        rules.compiled.add(self)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return self._dispatcher.parameters

    @property
    def options(self) -> dict[str, Any]:
        """The options it was compiled with."""
        return dict(self._dispatcher.options)

    @property
    def dispatcher(self) -> Dispatcher:
        """What finds or makes the code for a call: for other modules of the runtime."""
        return self._dispatcher

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._dispatcher.heads["primal"](*args, **kwargs)

    if not TYPE_CHECKING:  # for which there are no such attributes

        def __getattr__(self, name):
            if name in DERIVATIVES:
                raise AttributeError(
                    f"{self.__qualname__} was compiled without gradient: decorate it with @compile(grad=True)"
                )
            instead = f": use {ATTRIBUTES[name]}" if name in ATTRIBUTES else ""
            raise AttributeError(
                f"{self.__qualname__}: a compiled function has no attribute {name!r}{instead}",
                name=name,
                obj=self,
            )

    def rule(self, adjoint: Callable[..., Any] | None = None, /, **declared: Any) -> Any:
        """`mutad.rule` of this function: a decorator, with or without declarations."""
        return rules.rule(self, adjoint, **declared)

    def tangent_rule(self, tangent: Callable[..., Any] | None = None, /) -> Any:
        """`mutad.tangent_rule` of this function: a decorator."""
        return rules.tangent_rule(self, tangent)

    def forget(self) -> None:
        """Compile anew at the next call."""
        self._dispatcher.forget()

    @property
    def inspect(self) -> Inspection:
        """The program after each stage of the compiler: `f.inspect("adjoint", *args, wrt="u")`.

        `f.inspect.html(path, ...)` writes a page of all stages: see `Inspection`.
        """
        return Inspection(self.__qualname__, self._shown)

    @concise
    def _shown(
        self, stage: str, *args: Any, wrt: Any = None, plan: str = "joint", **kwargs: Any
    ) -> str:
        """The program after a stage, or a page of all."""
        return self._looking(lambda: self._inspect(stage, args, kwargs, wrt, plan))

    def _inspect(self, stage: str, args: Any, kwargs: Any, wrt: Any, plan: str) -> str:
        d = self._dispatcher
        if (taken := self._taken_apart(args, kwargs, wrt)) is not None:
            flat, parts, names = taken
            return flat.compiled.inspect.shown(stage, *parts, wrt=names, plan=plan)
        latest = not args and not kwargs and bool(d.parameters)
        arguments, overlaps, positions, mode = self._key(args, kwargs, wrt, plan, latest=latest)
        options = {**d.options, "long": int(latest and wrt is None and self._latest_is_long())}
        asked = d.function, arguments, overlaps, mode, positions, options, d.era.captures
        values = None if latest else d.values_of(*args, **kwargs)
        with native_code.compiling:
            if stage in (PAGE, FRAME):
                return d.compiler.page(*asked, values, stage == FRAME)
            return d.compiler.stage(stage, *asked, values)

    def _looking(self, look: Callable[[], Any]) -> Any:
        """`look()`, once more where the function turns out to return objects: then it is one of parts."""
        try:
            return look()
        except Exception as error:
            if not getattr(error, "needs_structure", False) or self._dispatcher.returns_objects:
                raise
            self._dispatcher.returns_objects = True
            return look()

    def _taken_apart(self, args: Any, kwargs: Any, wrt: Any) -> Any:
        """Of arguments that hold objects: the function of their parts, the parts, `wrt` as their names."""
        d = self._dispatcher
        if not args and not kwargs and d.latest_has_code:
            return d.latest, (), None if wrt is None else objects.float_names(d.latest, wrt)
        if not args and not kwargs and len(d.defaults) < len(d.parameters):
            return None
        bound = d.bind(*args, **kwargs)
        if not d.has_objects(bound):
            return None
        flat, made = objects.flat_of(d, bound)
        if wrt is None:
            return flat, flat.values_of(made), None
        selection = objects.selected(flat, made, wrt)
        return flat, flat.values_of(made), objects.flat_names(flat, selection)

    def _key(self, args: Any, kwargs: Any, wrt: Any, plan: str, *, latest: bool) -> Any:
        """Kinds of arguments, overlaps, `wrt`, mode: of these arguments, or of the `latest` compilation."""
        d = self._dispatcher
        if plan not in MODES:
            raise ValueError(f"plan={plan!r}: use 'joint' (grad, pullback) or 'split' (vjp)")
        values = None
        if latest:
            arguments, overlaps, compiled_for, latest_mode = self._latest()
            if wrt is None:
                return arguments, overlaps, compiled_for, latest_mode
        else:
            values = d.values_of(*args, **kwargs)
            arguments, overlaps = d.arguments_of(values), keys.overlaps_of(values)
            if wrt is None:
                return arguments, overlaps, (), "primal"
        positions, _ = d.resolve_wrt(wrt)
        for position in positions:
            keys.require_active(arguments[position], d.names[position])
        shared = [set(g) for g in memory.groups_of(overlaps) if set(g) & set(positions)]
        if shared and values is not None:
            positions = gradients.with_groups(d, values, set(positions), overlaps)
        elif shared:
            positions = tuple(sorted(set(positions).union(*shared)))
        return arguments, overlaps, positions, MODES[plan]

    def _latest(self) -> tuple[tuple[str, ...], keys.Overlaps, tuple[int, ...], str]:
        """The kinds of arguments of the latest call; before any, what annotations and defaults tell."""
        d = self._dispatcher
        for made in reversed(d.table):
            if made[3] not in COUNTED.values():  # which no call asked for
                return made[:4]
        try:
            own = annotations.annotated_keys(d.function, d.parameters, d.defaults)
        except ValueError as error:
            raise ValueError(
                f"{self.__qualname__} was never called, so the kinds of its arguments are not known "
                f"({error}): call it once, or pass arguments ({', '.join(d.parameters)})"
            ) from None
        inputs = d.era.captures.values()
        names = d.era.captures.names
        captured = [keys.argument_key(v, n) for v, n in zip(inputs, names, strict=True)]
        return (*own, *captured), (), (), "primal"

    def _latest_is_long(self) -> bool:
        """Whether the latest code that was compiled is for long tapes."""
        called = (k for k in reversed(self._dispatcher.table) if k.mode not in COUNTED.values())
        return any(k.long for k in islice(called, 1))

    # To type checkers, which see neither `classmethod` nor `staticmethod`: the first parameter tells.
    @overload
    def __get__(
        self: Callable[Concatenate[type[T], Q], S], instance: T | None, owner: type[T]
    ) -> BoundMethod[Q, S]: ...
    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Callable[Concatenate[T, Q], S], instance: T, owner: type | None = None
    ) -> BoundMethod[Q, S]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Self: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundMethod(self, instance)

    def __repr__(self) -> str:
        return f"<compiled function {self.__qualname__}>"

    def __reduce__(self) -> Any:
        return self.reduced(self)

    def reduced(self, function: CompiledFunction | CompiledWrapper) -> Any:
        """How a function with these options is pickled: by name, `compile(f)` by that of f; or by value."""
        d = self._dispatcher
        given = d.options, d.compiler, self.has_gradient
        found: Any = sys.modules.get(function.__module__)
        for part in function.__qualname__.split("."):
            found = getattr(found, part, None)
        if pickles.is_sent_by_value(function, found):
            sent = pickles.sent_with(function)
            return unpickled, (d.make, sent, function.__wrapped__, *given)
        if wrappers.plain(found) is function.__wrapped__ and found is not function:
            return d.make, (found, *given)
        return function.__qualname__


def unpickled(make: Make, sent: pickles.Sent, *given: Any) -> Any:
    """A compiled function that was sent by value."""
    pickles.receive(sent)
    return make(*given)


def _install(owner: weakref.ref[CompiledFunction], kind: str, head: Callable[..., Any]) -> None:
    function = owner()
    if function is not None:
        if kind == "primal":
            is_plain = isinstance(head, types.FunctionType)  # which would bind, as builtins do not
            type(function).__call__ = staticmethod(head) if is_plain else head  # pyright: ignore
        elif function.has_gradient:
            function.__dict__[METHODS.get(kind, kind)] = head

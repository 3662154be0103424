"""Compiled functions some of whose arguments are given: partials, and methods of an object or a class."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, cast

from .foreign_idioms import needs_direction, needs_tangents
from .inspection import Inspection
from .user_tracebacks import with_concise_methods

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from .differentiable_function import DifferentiableFunction
    from .variadic import CompiledWrapper

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
    T = TypeVar("T")
else:
    from typing import ParamSpec, TypeVar

    P, R, T = ParamSpec("P"), TypeVar("R"), TypeVar("T")


def named(wrt: Any, names: tuple[str, ...]) -> Any:
    """What `wrt` names, positions as these names."""
    if isinstance(wrt, tuple | list):
        return tuple([named(one, names) for one in wrt])  # pyright: ignore[reportUnknownVariableType]
    if type(wrt) is not int:
        return wrt
    if not -len(names) <= wrt < len(names):
        raise TypeError(f"wrt: there is no parameter {wrt}; there are {len(names)}")
    return names[wrt]


class _Doc:
    """The docstring of a class, and of its instances that of the function which each one calls."""

    def __init__(self, own: str | None) -> None:
        self.own = own

    def __get__(self, instance: Any, owner: type | None = None) -> str | None:
        return self.own if instance is None else instance.func.__doc__


def with_doc_of_function(cls: type[T]) -> type[T]:
    """Instances have the docstring of the function: `help(k.m)` shows it, as that of Python's methods."""
    type.__setattr__(cls, "__doc__", _Doc(cls.__doc__))
    return cls


@with_doc_of_function
@with_concise_methods
class Partial(functools.partial[R], Generic[P, R]):
    """A compiled function with arguments given as `functools.partial` has them, in every mode.

    `wrt` counts the parameters that are left to callers: `compile(partial(f, 2.0)).grad(x)` is the gradient
    with respect to `x`. By name each is there. (A partial itself, for that is called without a line of
    Python.)
    """

    __slots__ = ()
    func: DifferentiableFunction | CompiledWrapper  # pyright: ignore[reportIncompatibleMethodOverride]
    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The same as Python runs it."""
        return functools.partial(self.func.__wrapped__, *self.args, **self.keywords)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of those that callers give."""
        left = self.func.parameters[len(self.args) :]
        return tuple(name for name in left if name not in self.keywords)

    def named(self, wrt: Any) -> Any:
        """What `wrt` names, positions as the names of parameters."""
        return named(wrt, self.parameters)

    def _run(self, kind: str, args: Any, kwargs: dict[str, Any], **chosen: Any) -> Any:
        """A method of the function, with the arguments that are given."""
        return getattr(self.func, kind)(*self.args, *args, **chosen, **{**self.keywords, **kwargs})

    def _run_wrapped(self, kind: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """The same of a method that takes wrapped arguments: what is given is constant."""
        from .gradients import Const

        given = {name: Const(value) for name, value in self.keywords.items()}
        method = getattr(self.func, kind)
        return method(*map(Const, self.args), *args, **{**given, **kwargs})

    def grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.grad`."""
        return self._run("grad", args, kwargs, wrt=self.named(wrt))

    def value_and_grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.value_and_grad`."""
        return self._run("value_and_grad", args, kwargs, wrt=self.named(wrt))

    def vjp(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.vjp`."""
        return self._run("vjp", args, kwargs, wrt=self.named(wrt))

    def pullback(self, *args: Any, **kwargs: Any) -> Any:
        """`DifferentiableFunction.pullback`; what is given is `Const`."""
        return self._run_wrapped("pullback", args, kwargs)

    @needs_tangents
    def jvp(self, *args: Any, tangents: Mapping[str, Any], **kwargs: Any) -> Any:
        """`DifferentiableFunction.jvp`."""
        return self._run("jvp", args, kwargs, tangents=tangents)

    def pushforward(self, *args: Any, **kwargs: Any) -> Any:
        """`DifferentiableFunction.pushforward`; what is given is `Const`."""
        return self._run_wrapped("pushforward", args, kwargs)

    @needs_direction
    def hvp(self, *args: Any, direction: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.hvp`."""
        return self._run("hvp", args, kwargs, direction=direction, wrt=self.named(wrt))

    @needs_direction
    def value_grad_hvp(self, *args: Any, direction: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.value_grad_hvp`."""
        chosen = self.named(wrt)
        return self._run("value_grad_hvp", args, kwargs, direction=direction, wrt=chosen)

    def hessian(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.hessian`."""
        return self._run("hessian", args, kwargs, wrt=self.named(wrt))

    def jacobian(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.jacobian`."""
        return self._run("jacobian", args, kwargs, wrt=self.named(wrt))

    def jacobian_sparsity(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.jacobian_sparsity`."""
        return self._run("jacobian_sparsity", args, kwargs, wrt=self.named(wrt))

    def linear_operator(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.linear_operator`."""
        return self._run("linear_operator", args, kwargs, wrt=self.named(wrt))

    def explain(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.explain`."""
        given, named = self._given(args, kwargs, {"plan", "mode", "batch", "run"})
        return self.func.explain(*given, *args, wrt=self.named(wrt), **{**named, **kwargs})

    @property
    def inspect(self) -> Inspection:
        """`DifferentiableFunction.inspect`."""
        return Inspection(self.func.__qualname__, self._shown)

    def _shown(self, stage: str, *args: Any, wrt: Any = None, **kwargs: Any) -> str:
        given, named = self._given(args, kwargs, {"plan"})
        wrt = self.named(wrt)
        return self.func.inspect.shown(stage, *given, *args, wrt=wrt, **{**named, **kwargs})

    def _given(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], options: set[str]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What is given, of a call that has arguments; without any, the latest call is asked for."""
        if args or {*kwargs} - options or not self.parameters:
            return self.args, self.keywords
        return (), {}

    def __get__(self, instance: Any, owner: type | None = None) -> Self:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.func, name)


@with_doc_of_function
class BoundMethod(Partial[P, R]):
    """What `k.m` is where a class has a compiled `m`: `self` is given.

    `k.m.grad(x)` is the gradient with respect to `x`. By name `self` is there: `wrt="self"`,
    `wrt="self.mass"`.
    """

    __slots__ = ()

    @property
    def __func__(self) -> DifferentiableFunction | CompiledWrapper:
        return cast("DifferentiableFunction | CompiledWrapper", self.func)

    @property
    def __self__(self) -> Any:
        return self.args[0]

    @property
    def __wrapped__(self) -> types.MethodType:
        """The method as Python runs it."""
        return types.MethodType(self.func.__wrapped__, self.args[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundMethod):
            return NotImplemented
        return self.func is other.func and self.args[0] is other.args[0]

    def __hash__(self) -> int:
        return hash((id(self.func), id(self.args[0])))

    def __repr__(self) -> str:
        return f"<bound compiled method {self.func.__qualname__} of {self.args[0]!r}>"

    def __reduce__(self) -> Any:
        # By name, as Python's methods, where that leads here: the function of a class method has no other.
        if getattr(self.args[0], self.func.__name__, None) == self:
            return getattr, (self.args[0], self.func.__name__)
        return type(self), (self.func, *self.args)


def partial_of(of: functools.partial[Any], function: Any) -> Partial:
    """`function` with the arguments that a partial gives; TypeError where they are not all known."""
    if any(type(one).__name__ == "_PlaceholderType" for one in of.args):
        raise TypeError(
            "a partial with functools.Placeholder cannot be compiled: give these arguments by name"
        )
    return Partial(function, *of.args, **of.keywords)

"""Compiled functions whose own parameters are `*args` or `**kwargs`: what decorators make of functions.

`functools.wraps` gives them the signature of the function that they call. There is code for each way of
calling: for `f(2.0, k=3.0)` that of ::

    def f(x, k): return __wrapped__(x, k=k)

so the decorator's code gets what it gets in CPython, and the defaults are those of the calls that it makes.
"""

from __future__ import annotations

import inspect
import linecache
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import rules
from .bound import BoundMethod, named
from .hessian_products import FORWARD_OVER_REVERSE
from .inspection import Inspection
from .user_tracebacks import with_concise_methods

if TYPE_CHECKING:
    from .differentiable_function import DifferentiableFunction

VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
LOOKS = ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__")


def is_variadic(function: Any) -> bool:
    """Whether a function has the parameters of another in place of its own `*args` and `**kwargs`."""
    if type(function) is not types.FunctionType or not function.__code__.co_flags & VARIADIC:
        return False
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(p.kind not in variable for p in inspect.signature(function).parameters.values())


@with_concise_methods
class CompiledWrapper:
    """A compiled function for each way of calling one."""

    __wrapped__: types.FunctionType
    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: types.FunctionType,
        compiled: Callable[[types.FunctionType], DifferentiableFunction],
    ) -> None:
        for attribute in LOOKS:
            setattr(self, attribute, getattr(function, attribute))
        self.__dict__.update(function.__dict__)
        self.__wrapped__ = function
        self.parameters = tuple(inspect.signature(function).parameters)
        self._compiled = compiled
        self._by_call: dict[tuple[Any, ...], DifferentiableFunction] = {}
        self._latest = self.called_with(len(self.parameters), ())

    def called_with(self, count: int, keywords: tuple[str, ...]) -> DifferentiableFunction:
        """The function for calls with so many arguments by position, and these by keyword."""
        names = [n for n in self.parameters if n not in keywords][:count]
        names += [f"argument_{k}" for k in range(len(names), count)]
        given = ", ".join([*names, *(f"{k}={k}" for k in keywords)])
        name = "called" if self.__name__ == "<lambda>" else self.__name__
        header = ", ".join([*names, *keywords])
        source = f"def {name}({header}): return __wrapped__({given})\n"
        file = f"<mutad: call of {self.__module__}.{self.__qualname__}: {given}>"
        linecache.cache[file] = (len(source), None, [source], file)
        namespace: dict[str, Any] = {"__wrapped__": self.__wrapped__}
        exec(compile(source, file, "exec"), namespace)
        made = namespace[name]
        made.__module__, made.__doc__ = self.__module__, self.__doc__
        made.__qualname__ = self.__qualname__
        return self._compiled(made)

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DifferentiableFunction:
        """The function for this call."""
        key = len(args), *kwargs
        found = self._by_call.get(key)
        if found is None:
            found = self._by_call[key] = self.called_with(len(args), tuple(kwargs))
        self._latest = found
        return found

    def named(self, wrt: Any, function: DifferentiableFunction) -> Any:
        """What `wrt` names, as names; TypeError where the call leaves it to its default."""
        names = named(wrt, self.parameters)
        for name in names if isinstance(names, tuple) else (names,):
            if name in self.parameters and name not in function.parameters:
                raise TypeError(f"wrt names {name!r}, which this call leaves out: pass it")
        return names

    @property
    def has_gradient(self) -> bool:
        """Whether it was compiled with its gradient."""
        return self._latest.has_gradient

    @property
    def options(self) -> dict[str, Any]:
        """The options it was compiled with."""
        return self._latest.options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.of(args, kwargs)(*args, **kwargs)

    def grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.grad`."""
        f = self.of(args, kwargs)
        return f.grad(*args, wrt=self.named(wrt, f), **kwargs)

    def value_and_grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.value_and_grad`."""
        f = self.of(args, kwargs)
        return f.value_and_grad(*args, wrt=self.named(wrt, f), **kwargs)

    def vjp(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.vjp`."""
        f = self.of(args, kwargs)
        return f.vjp(*args, wrt=self.named(wrt, f), **kwargs)

    def pullback(self, *args: Any, cotangent: Any = None, **kwargs: Any) -> Any:
        """`DifferentiableFunction.pullback`."""
        return self.of(args, kwargs).pullback(*args, cotangent=cotangent, **kwargs)

    def jvp(self, *args: Any, tangents: Mapping[str, Any], **kwargs: Any) -> Any:
        """`DifferentiableFunction.jvp`."""
        f = self.of(args, kwargs)
        self.named(tuple(tangents), f)
        return f.jvp(*args, tangents=tangents, **kwargs)

    def pushforward(self, *args: Any, **kwargs: Any) -> Any:
        """`DifferentiableFunction.pushforward`."""
        return self.of(args, kwargs).pushforward(*args, **kwargs)

    def hvp(self, *args: Any, direction: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.hvp`."""
        return self.value_grad_hvp(*args, direction=direction, wrt=wrt, **kwargs)[2]

    def value_grad_hvp(self, *args: Any, direction: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.value_grad_hvp`."""
        mode = kwargs.pop("mode", FORWARD_OVER_REVERSE)
        f = self.of(args, kwargs)
        chosen = self.named(wrt, f)
        return f.value_grad_hvp(*args, direction=direction, wrt=chosen, mode=mode, **kwargs)

    def hessian(self, *args: Any, wrt: Any = 0, sparsity: Any = None, **kwargs: Any) -> Any:
        """`DifferentiableFunction.hessian`."""
        f = self.of(args, kwargs)
        return f.hessian(*args, wrt=self.named(wrt, f), sparsity=sparsity, **kwargs)

    def jacobian(
        self, *args: Any, wrt: Any = 0, mode: str = "auto", sparsity: Any = None, **kwargs: Any
    ) -> Any:
        """`DifferentiableFunction.jacobian`."""
        f = self.of(args, kwargs)
        return f.jacobian(*args, wrt=self.named(wrt, f), mode=mode, sparsity=sparsity, **kwargs)

    def jacobian_sparsity(self, *args: Any, wrt: Any = 0, mode: str = "auto", **kwargs: Any) -> Any:
        """`DifferentiableFunction.jacobian_sparsity`."""
        f = self.of(args, kwargs)
        return f.jacobian_sparsity(*args, wrt=self.named(wrt, f), mode=mode, **kwargs)

    def linear_operator(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.linear_operator`."""
        f = self.of(args, kwargs)
        return f.linear_operator(*args, wrt=self.named(wrt, f), **kwargs)

    def explain(
        self,
        *args: Any,
        wrt: Any = 0,
        plan: str = "joint",
        mode: str = "gradient",
        batch: int | None = None,
        run: bool = False,
        **kwargs: Any,
    ) -> Any:
        """`DifferentiableFunction.explain`; without arguments of the latest way of calling."""
        f = self.of(args, kwargs) if args or kwargs else self._latest
        options = {"plan": plan, "mode": mode, "batch": batch, "run": run}
        return f.explain(*args, wrt=self.named(wrt, f), **options, **kwargs)

    @property
    def inspect(self) -> Inspection:
        """`DifferentiableFunction.inspect`; without arguments of the latest way of calling."""
        return Inspection(self.__qualname__, self._shown)

    def _shown(
        self, stage: str, *args: Any, wrt: Any = None, plan: str = "joint", **kwargs: Any
    ) -> str:
        f = self.of(args, kwargs) if args or kwargs else self._latest
        chosen = None if wrt is None else self.named(wrt, f)
        return f.inspect.shown(stage, *args, wrt=chosen, plan=plan, **kwargs)

    def rule(self, adjoint: Callable[..., Any] | None = None, /, **declared: Any) -> Any:
        """`mutad.rule` of the decorated function."""
        return rules.rule(self, adjoint, **declared)

    def tangent_rule(self, tangent: Callable[..., Any] | None = None, /) -> Any:
        """`mutad.tangent_rule` of this function: a decorator."""
        return rules.tangent_rule(self, tangent)

    def forget(self) -> None:
        """Compile anew at the next call."""
        for one in self._by_call.values():
            one.forget()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundMethod(self, instance)

    def __repr__(self) -> str:
        return f"<compiled function {self.__qualname__}>"

    def __reduce__(self) -> Any:
        return self._latest.reduced(self)

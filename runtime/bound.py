"""A compiled function as a method of an object, or of a class."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, cast

from .inspection import Inspection

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from .function import DifferentiableFunction
    from .variadic import CompiledWrapper

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R")


def named(wrt: Any, names: tuple[str, ...]) -> Any:
    """What `wrt` names, positions as these names."""
    if isinstance(wrt, tuple | list):
        return tuple([named(one, names) for one in wrt])  # pyright: ignore[reportUnknownVariableType]
    if type(wrt) is not int:
        return wrt
    if not -len(names) <= wrt < len(names):
        raise TypeError(f"wrt: there is no parameter {wrt}; there are {len(names)}")
    return names[wrt]


class BoundMethod(functools.partial[R], Generic[P, R]):
    """What `k.m` is where a class has a compiled `m`: `self` is given, in every mode.

    `wrt` counts positions without it: `k.m.grad(x)` is the gradient with respect to `x`. By name it is
    there: `wrt="self"`, `wrt="self.mass"`. (A partial, for that is called without a line of Python.)
    """

    __slots__ = ()
    func: DifferentiableFunction | CompiledWrapper  # pyright: ignore[reportIncompatibleMethodOverride]
    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

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

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of those that callers give."""
        return self.func.parameters[1:]

    def named(self, wrt: Any) -> Any:
        """What `wrt` names, positions as the names of parameters."""
        return named(wrt, self.parameters)

    def grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.grad`."""
        return self.func.grad(*self.args, *args, wrt=self.named(wrt), **kwargs)

    def value_and_grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.value_and_grad`."""
        return self.func.value_and_grad(*self.args, *args, wrt=self.named(wrt), **kwargs)

    def vjp(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.vjp`."""
        return self.func.vjp(*self.args, *args, wrt=self.named(wrt), **kwargs)

    def pullback(self, *args: Any, **kwargs: Any) -> Any:
        """`DifferentiableFunction.pullback`; `self` is `Const`."""
        from .gradients import Const

        return self.func.pullback(Const(self.args[0]), *args, **kwargs)

    def jvp(self, *args: Any, tangents: Mapping[str, Any], **kwargs: Any) -> Any:
        """`DifferentiableFunction.jvp`."""
        return self.func.jvp(*self.args, *args, tangents=tangents, **kwargs)

    def pushforward(self, *args: Any, **kwargs: Any) -> Any:
        """`DifferentiableFunction.pushforward`; `self` is `Const`."""
        from .gradients import Const

        return self.func.pushforward(Const(self.args[0]), *args, **kwargs)

    def hvp(self, *args: Any, direction: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.hvp`."""
        chosen = self.named(wrt)
        return self.func.hvp(*self.args, *args, direction=direction, wrt=chosen, **kwargs)

    def value_grad_hvp(self, *args: Any, direction: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.value_grad_hvp`."""
        chosen = self.named(wrt)
        return self.func.value_grad_hvp(
            *self.args, *args, direction=direction, wrt=chosen, **kwargs
        )

    def hessian(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.hessian`."""
        return self.func.hessian(*self.args, *args, wrt=self.named(wrt), **kwargs)

    def jacobian(self, *args: Any, wrt: Any = 0, mode: str = "auto", **kwargs: Any) -> Any:
        """`DifferentiableFunction.jacobian`."""
        return self.func.jacobian(*self.args, *args, wrt=self.named(wrt), mode=mode, **kwargs)

    def jacobian_sparsity(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.jacobian_sparsity`."""
        return self.func.jacobian_sparsity(*self.args, *args, wrt=self.named(wrt), **kwargs)

    def linear_operator(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.linear_operator`."""
        return self.func.linear_operator(*self.args, *args, wrt=self.named(wrt), **kwargs)

    def explain(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """`DifferentiableFunction.explain`."""
        given = (
            self.args if args or {*kwargs} - {"plan", "mode", "run"} or not self.parameters else ()
        )
        return self.func.explain(*given, *args, wrt=self.named(wrt), **kwargs)

    @property
    def inspect(self) -> Inspection:
        """`DifferentiableFunction.inspect`."""
        return Inspection(self.func.__qualname__, self._shown)

    def _shown(self, stage: str, *args: Any, wrt: Any = None, **kwargs: Any) -> str:
        given = self.args if args or {*kwargs} - {"plan"} or not self.parameters else ()
        return self.func.inspect.shown(stage, *given, *args, wrt=self.named(wrt), **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> BoundMethod:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.func, name)

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

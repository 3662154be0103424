"""Compiled functions: what `@compile` makes of a Python function.

Calls must be fast, so the objects are unusual in two ways. Each has a class of its own, whose
`__call__` is the builtin at the head of the chain of entries (`dispatch`): a builtin has no
`__get__`, so Python calls it without making a bound method. And `grad` and `value_and_grad` become
instance attributes, the builtins themselves, once something is compiled.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, Self, TypedDict, overload

from . import (
    annotations,
    budgets,
    gradients,
    keys,
    memory,
    object_gradients,
    object_jacobians,
    object_tangents,
    objects,
    pickles,
    rules,
    wrappers,
)
from .bound import BoundMethod, partial_of
from .compiler_protocol import Compiler
from .dispatch import METHODS, Dispatcher
from .foreign_idioms import (
    ATTRIBUTES,
    OPTIONS,
    needs_direction,
    needs_tangents,
    no_function,
)
from .hessian_products import FORWARD_OVER_REVERSE
from .hessian_products import value_grad_hvp as run_hvp
from .inspection import FRAME, PAGE, Inspection
from .jacobians import hessian as run_hessian
from .jacobians import jacobian as run_jacobian
from .linear_operators import linear_operator as run_linear_operator
from .link import Link
from .signatures import require_plain
from .sparse_jacobians import jacobian_sparsity as find_sparsity
from .sparse_jacobians import sparse_hessian, sparse_jacobian
from .sparsity import Sparsity
from .tangents import jvp as run_jvp
from .tangents import pushforward as run_pushforward
from .user_tracebacks import concise, with_concise_methods
from .variadic import LOOKS, CompiledWrapper, is_variadic
from .vjp import Back
from .vjp import vjp as run_vjp

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from .object_gradients import ObjectBack

    P = ParamSpec("P", default=...)
    Q = ParamSpec("Q")
    R = TypeVar("R", default=Any)
    S = TypeVar("S")
    T = TypeVar("T")
else:  # without defaults, which the language has from 3.13 on
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R")


class Options(TypedDict, total=False):
    """The options of `mutad.compile` besides `grad`: see there."""

    saves: Literal["minimal", "fewest", "all", "forbid"]
    memory: int | str | tuple[int | str, str] | None
    fastmath: bool
    boundscheck: bool
    cache: bool
    opt: Literal[0, 1, 2, 3]
    sanitize: Literal["", "grad"]
    parallel: bool
    debug: bool
    deterministic: bool
    target: str | None


DEFAULTS: dict[str, Any] = {
    "saves": "minimal",
    "fastmath": False,
    "boundscheck": True,
    "opt": 3,
    "cache": True,
    "debug": False,
    "parallel": False,
    "sanitize": "",
    "memory": None,
    "deterministic": False,
    "target": "cpu",
}
MODES = {"joint": "gradient", "split": "vjp"}
"""What is compiled for each plan of what to save."""
COUNTED = {"joint": "count", "split": "count-split"}
"""What is compiled to count what each plan saves."""


def checked_target(target: Any) -> str:
    """What code is made for: the CPU, kernels that it runs as a device would, or a kind of device."""
    if target is None:
        return "cpu"
    if target in ("cpu", "cuda:host", *(f"cuda:{kind}" for kind in DEVICES)):
        return target
    shown = ", ".join(f"'cuda:{kind}'" for kind in DEVICES)
    raise ValueError(f"target={target!r}: use 'cpu', 'cuda:host', {shown}")


THERE_IS = {
    False: """Compiled by mutad. `inspect` shows each stage of the compiler, `__wrapped__` is the Python
function; `compile(grad=True)` adds derivatives. More: help(mutad.CompiledFunction).""",
    True: """Compiled by mutad, with derivatives: `grad`, `value_and_grad`, `vjp`, `pullback`; `jvp`,
`pushforward`; `hvp`, `value_grad_hvp`, `hessian`; `jacobian`, `jacobian_sparsity`, `linear_operator`.
`explain` says what a gradient saves, `inspect` shows each stage of the compiler, `__wrapped__` is the
Python function. More: help(mutad.DifferentiableFunction).""",
}
"""What `help` of a compiled function shows below its docstring."""
DEVICES = (
    *("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"),
    *("sm_100", "sm_103", "sm_120"),
)
"""Kinds of NVIDIA's devices, as its assembler names them."""


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """All options, with their defaults; TypeError or ValueError for what is not supported."""
    asked = {
        "debug": os.environ.get("MUTAD_DEBUG") == "1",
        "sanitize": os.environ.get("MUTAD_SANITIZE", ""),
    }
    result, spill = {**DEFAULTS, **asked, **options}, ""
    if result["sanitize"] not in ("", "grad"):
        raise ValueError(f"sanitize={result['sanitize']!r}: use '' or 'grad' (MUTAD_SANITIZE=grad)")
    for name, value in options.items():
        if name == "target":
            result["target"] = checked_target(value)
        elif name not in DEFAULTS:
            known = ", ".join([*DEFAULTS, "grad"])
            advice = f" ({OPTIONS[name]})" if name in OPTIONS else ""
            raise TypeError(f"compile() has no option {name!r}{advice}; there are {known}")
        elif name == "saves":
            if value not in ("minimal", "fewest", "all", "forbid"):
                raise ValueError(f"saves={value!r}: use 'minimal', 'fewest', 'all' or 'forbid'")
        elif name == "opt":
            if isinstance(value, bool) or value not in (0, 1, 2, 3):
                raise ValueError(f"opt={value!r}: use 0, 1, 2 or 3")
        elif name == "memory":
            result["memory"], spill = budgets.budget_of(value)
        elif name != "sanitize" and not isinstance(value, bool):
            raise TypeError(f"{name}={value!r}: use True or False")
    if result["sanitize"]:
        result["fastmath"] = False  # which assumes that all is finite
    for name in ("memory", "parallel"):
        if result[name] and result["target"] != "cpu":
            raise ValueError(
                f"{name}= is of the CPU: target={result['target']!r} has no such choice"
            )
    return {**{name: result[name] for name in DEFAULTS}, "spill": spill}


@with_concise_methods
class CompiledFunction(Generic[P, R]):
    """A Python function, compiled for the arguments it is called with.

    `f(...)` runs the primal; `f.inspect(stage)` shows the compiled code. `f.__wrapped__` is the Python
    function. With `grad=True` it is a `DifferentiableFunction`.
    """

    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        compiler: Compiler,
        *,
        with_gradient: bool,
    ) -> None:
        if (taken := derivative_of(function)) is not None:
            raise TypeError(derived(*taken, "call it as it is, it is compiled"))
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"compile() takes a Python function, not {no_function(function)}")
        require_plain(function)
        for attribute in LOOKS:
            setattr(self, attribute, getattr(function, attribute))
        self.__doc__ = f"{inspect.getdoc(function) or ''}\n\n{THERE_IS[with_gradient]}".lstrip()
        self.__dict__.update(function.__dict__)
        self.__wrapped__ = function
        dispatcher = Dispatcher(function, options, compiler, with_gradient)
        dispatcher.owner = weakref.ref(self)
        dispatcher.installed = functools.partial(_install, weakref.ref(self), with_gradient)
        self._dispatcher = dispatcher
        rules.compiled.add(self)

    @property
    def has_gradient(self) -> bool:
        """Whether it was compiled with its gradient."""
        return isinstance(self, DifferentiableFunction)

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
            if name in DifferentiableFunction.__dict__:
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
        asked = d.function, arguments, overlaps, mode, positions, d.options, d.era.captures
        if stage in (PAGE, FRAME):
            values = None if latest else d.values_of(*args, **kwargs)
            return d.compiler.page(*asked, values, stage == FRAME)
        return d.compiler.stage(stage, *asked)

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
        found: Any = sys.modules.get(function.__module__)
        for part in function.__qualname__.split("."):
            found = getattr(found, part, None)
        if pickles.is_sent_by_value(function, found):
            d, sent = self._dispatcher, pickles.sent_with(function)
            given = d.options, d.compiler, self.has_gradient
            return unpickled, (sent, function.__wrapped__, *given)
        if wrappers.plain(found) is function.__wrapped__ and found is not function:
            d = self._dispatcher
            return compiled, (found, d.options, d.compiler, self.has_gradient)
        return function.__qualname__


@with_concise_methods
class DifferentiableFunction(CompiledFunction[P, R]):
    """A compiled function with its derivatives: what `compile(grad=True)` makes.

    The gradient of its result: `f.grad`, `f.value_and_grad`, `f.vjp` and `f.pullback`; tangents: `f.jvp` and
    `f.pushforward`; second derivatives: `f.hvp`, `f.value_grad_hvp` and `f.hessian`; matrices: `f.jacobian`,
    `f.jacobian_sparsity` and `f.linear_operator`. `f.explain` says what a gradient saves, and why.
    """

    def grad(self, *args: Any, **kwargs: Any) -> Any:
        """The gradient: `f.grad(*args, wrt=0)`.

        `wrt` is the name or position of a parameter, or a tuple of them, which gives a tuple of gradients.
        The gradient of an array has its shape and dtype, that of a number its type, that of an object is an
        object of its class. TypeError if the result is not a float scalar, or `wrt` names an int or a bool.
        """
        return self._dispatcher.heads["grad"](*args, **kwargs)

    def value_and_grad(self, *args: Any, **kwargs: Any) -> tuple[R, Any]:
        """The result and the gradient: `value, gradient = f.value_and_grad(*args, wrt=0)`."""
        return self._dispatcher.heads["value_and_grad"](*args, **kwargs)

    def vjp(
        self, *args: Any, wrt: Any = 0, batch: int | None = None, **kwargs: Any
    ) -> tuple[R, Back | ObjectBack]:
        """Run the primal and return `(result, back)`: `out, back = f.vjp(*args, wrt=0)`.

        `back(out_bar, u=...)` returns the gradient with respect to `wrt` (`out_bar @ J`; J is the Jacobian),
        for the cotangent `out_bar` of the result and cotangents of array arguments' final values, by name. It
        may be called any number of times, whatever happened to the
        arguments: `vjp` saves what the adjoint reads of them, and `back` does not run the primal again,
        unless that is more than `memory=` allows.

        With `batch=k` each cotangent and each gradient has a first axis of k; one reverse sweep computes them
        all.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: run_vjp(d, (*bound, *d.era.captures.values()), wrt, batch),
            lambda: object_gradients.vjp(d, bound, wrt, batch),
        )

    def pullback(self, *args: Any, cotangent: Any = None, **kwargs: Any) -> tuple[R, Any]:
        """Run the primal and its adjoint, in place: `f.pullback(Duplicated(u, du), Const(k), cotangent=1.0)`.

        On entry each shadow holds the cotangent of its array's final value, on exit that of its
        initial value. Returns the result and a tuple of the cotangents of the `Active` scalars.
        The cotangent of an array has the array's shape; ValueError otherwise: before the primal runs where
        the shape follows from the arguments, else after it, with the shadows as they were.

        `BatchDuplicated(u, du)` has k shadows side by side: `du` is of shape `(*u.shape, k)`, and so are the
        cotangents of results, and those that are returned.
        """
        d = self._dispatcher
        wrapped = d.bind(*args, **kwargs)
        bound = tuple(map(gradients.primal_of, wrapped))
        return d.either(
            bound,
            lambda: gradients.pullback(d, wrapped, cotangent),
            lambda: object_gradients.pullback(d, wrapped, bound, cotangent),
        )

    @needs_tangents
    def jvp(
        self, *args: Any, tangents: Mapping[str, Any], batch: int | None = None, **kwargs: Any
    ) -> tuple[R, Any]:
        """The result and its tangent: `value, value_dot = f.jvp(*args, tangents={"u": du, "k": 1.0})`.

        `tangents` has an entry for each parameter that varies: an array of the argument's shape and dtype,
        which is updated as the argument is (afterwards it is the tangent of the argument's final value), or a
        number. The tangent of the result (`J @ v`: J is the Jacobian) has its form, with None for parts that
        are not floats.

        With `batch=k` there are k tangents of each, along a first axis: of an array of shape `(k, *u.shape)`,
        of a number `(k,)`. The primal runs once.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: run_jvp(d, (*bound, *d.era.captures.values()), tangents, batch),
            lambda: object_tangents.jvp(d, bound, tangents, batch),
        )

    def pushforward(self, *args: Any, **kwargs: Any) -> tuple[R, Any]:
        """Run the primal with its tangents, in place: `f.pushforward(Duplicated(u, du), Const(k))`.

        On entry `du` is the tangent of the initial value of `u`, on exit that of its final value. Numbers
        have tangents, too: `Duplicated(k, 1.0)`. Returns the result and its tangent, as `jvp` does.

        `BatchDuplicated(u, du)` has k tangents side by side: `du` is of shape `(*u.shape, k)`, and so are the
        tangents of results.
        """
        d = self._dispatcher
        wrapped = d.bind(*args, **kwargs)
        bound = tuple(map(gradients.primal_of, wrapped))
        if any(type(a) is gradients.BatchDuplicated for a in wrapped):
            return d.plainly("BatchDuplicated", bound, lambda _: run_pushforward(d, wrapped))
        return d.either(
            bound,
            lambda: run_pushforward(d, wrapped),
            lambda: object_tangents.pushforward(d, wrapped, bound),
        )

    @needs_direction
    def hvp(
        self,
        *args: Any,
        direction: Any,
        wrt: Any = 0,
        batch: int | None = None,
        mode: str = FORWARD_OVER_REVERSE,
        **kwargs: Any,
    ) -> Any:
        """The Hessian times a direction: `f.hvp(*args, wrt=0, direction=v)`, shaped as the argument.

        If `wrt` is a tuple, so are `direction` and the product. TypeError if the result is not a float
        scalar. With `batch=k` there are k directions along a first axis, and as many products, from one run
        of primal and adjoint. `mode="reverse-over-reverse"` runs the adjoint of the gradient instead of its
        tangent: slower, as an independent check.
        """
        return self._products(args, kwargs, wrt, direction, batch, mode, alone=True)[2]

    @needs_direction
    def value_grad_hvp(
        self,
        *args: Any,
        direction: Any,
        wrt: Any = 0,
        batch: int | None = None,
        mode: str = FORWARD_OVER_REVERSE,
        **kwargs: Any,
    ) -> tuple[R, Any, Any]:
        """The result, the gradient and the Hessian times a direction, in one call: see `hvp`."""
        return self._products(args, kwargs, wrt, direction, batch, mode)

    def _products(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        wrt: Any,
        direction: Any,
        batch: int | None,
        mode: str,
        *,
        alone: bool = False,
    ) -> tuple[Any, Any, Any]:
        """Result, gradient and product; where the product is wanted `alone`, the first two mean nothing."""
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: run_hvp(
                d, (*bound, *d.era.captures.values()), wrt, direction, batch, mode, alone
            ),
            lambda: object_tangents.value_grad_hvp(d, bound, wrt, direction, mode, batch),
        )

    def hessian(self, *args: Any, wrt: Any = 0, sparsity: Any = None, **kwargs: Any) -> Any:
        """The Hessian, dense: `f.hessian(*args, wrt=0)`, of shape `u.shape + u.shape`; of a number, a number.

        For a tuple of arguments, it is a tuple of tuples of blocks: `H[i][j]` is the derivative of the
        gradient in argument i with respect to argument j. One `hvp` computes eight columns, on copies: the
        arguments are left as by one plain call. Both halves are computed. `sparsity` is that of `jacobian`.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        if sparsity is None:
            return d.either(
                bound,
                lambda: run_hessian(d, (*bound, *d.era.captures.values()), wrt),
                lambda: object_jacobians.hessian(d, bound, wrt),
            )
        return d.either(
            bound,
            lambda: sparse_hessian(d, (*bound, *d.era.captures.values()), wrt, sparsity),
            lambda: object_jacobians.sparse_hessian(d, bound, wrt, sparsity),
        )

    def jacobian(
        self, *args: Any, wrt: Any = 0, mode: str = "auto", sparsity: Any = None, **kwargs: Any
    ) -> Any:
        """The Jacobian, dense: `f.jacobian(*args, wrt=0)`, of shape `result.shape + u.shape`.

        For a tuple of results it is a tuple, with None for parts that are not floats; for a tuple of
        arguments, each item is a tuple. `mode="forward"` runs the tangents of eight elements of the arguments
        at a time, on copies; "reverse" the primal once and one cotangent for each element of the results;
        "auto" chooses the cheaper one. The arguments are left as by one plain call.

        With `sparsity="auto"` a `scipy.sparse.csc_array` of shape (size of the result, size of the argument):
        the pattern is found at these arguments, and one tangent runs for each of its colours (or one
        cotangent). A given pattern (from `jacobian_sparsity`, an array or a sparse matrix) is only checked:
        ValueError if an entry is missing.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        if sparsity is None:
            return d.either(
                bound,
                lambda: run_jacobian(d, (*bound, *d.era.captures.values()), wrt, mode),
                lambda: object_jacobians.jacobian(d, bound, wrt, mode),
            )
        return d.either(
            bound,
            lambda: sparse_jacobian(d, (*bound, *d.era.captures.values()), wrt, mode, sparsity),
            lambda: object_jacobians.sparse_jacobian(d, bound, wrt, mode, sparsity),
        )

    def jacobian_sparsity(
        self, *args: Any, wrt: Any = 0, mode: str = "auto", **kwargs: Any
    ) -> Sparsity:
        """Which elements of the result depend on which of the arguments: `f.jacobian_sparsity(*args, wrt=0)`.

        `.pattern` is a `scipy.sparse.csc_array` of bools, `.colours` the number of tangents or cotangents
        that the Jacobian takes with it. It has every entry that is not zero at these arguments, and holds at
        others as long as branches and subscripts are the same. The arguments are left as by one plain call.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: find_sparsity(d, (*bound, *d.era.captures.values()), wrt, mode),
            lambda: object_jacobians.jacobian_sparsity(d, bound, wrt, mode),
        )

    def linear_operator(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """The Jacobian as a `scipy.sparse.linalg.LinearOperator`, of float64, without its elements.

        Its shape is (size of the result, size of the argument), 1 for a number; several results or arguments
        come one after another. It is made by one plain call, which has its effects, and keeps copies of the
        arguments as they were before: later products run on copies of these, and neither read nor change your
        arrays. `A @ v` runs the tangent; `A.T @ w` the adjoint, after one run of the primal.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: run_linear_operator(d, (*bound, *d.era.captures.values()), wrt),
            lambda: object_jacobians.linear_operator(d, bound, wrt),
        )

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
        """What the gradient would save, why, and how many bytes; runs nothing.

        `plan="split"` describes `vjp`, which also saves what the caller could change before `back` is called.
        `mode="hvp"` describes `value_grad_hvp`, which also saves tangents of the gradient's saves; `hvp`
        saves no more. `mode="tangent"` describes `jvp`, which saves nothing, but allocates arrays. `batch=k`
        describes these calls, and `vjp`, with k tangents or cotangents; `mode="gradient"` is then `pullback`.

        Without arguments it gives only the formulas, for the argument types of the latest call: byte counts
        are None unless they are 0. Before any call, the types come from annotations, `u: "f64[:, :]"` for an
        array, and from defaults; ValueError if they are missing.

        With `run=True` the primal runs once, on copies of the arguments, and counts the bytes of each save:
        it takes the time and the memory of a gradient's forward sweep, and another compilation. The function
        prints.
        """
        if mode not in ("gradient", "tangent", "hvp"):
            raise ValueError(f"mode={mode!r}: use 'gradient', 'tangent' or 'hvp'")
        if mode != "gradient" and plan != "joint":
            raise ValueError(f"mode={mode!r} has one plan: leave out plan={plan!r}")
        if run and mode == "tangent":
            raise ValueError(
                "mode='tangent' saves nothing that a run could count: leave out run=True"
            )
        if batch is not None:
            gradients.require_lanes(batch)
        return self._looking(lambda: self._explain(args, kwargs, wrt, plan, mode, batch, run))

    def _explain(
        self, args: Any, kwargs: Any, wrt: Any, plan: str, of: str, batch: int | None, run: bool
    ) -> Any:
        d = self._dispatcher
        if (taken := self._taken_apart(args, kwargs, wrt)) is not None:
            flat, parts, names = taken
            options = {"plan": plan, "mode": of, "batch": batch, "run": run}
            return flat.compiled.explain(*parts, wrt=names, **options)
        symbolic = not args and not kwargs and len(d.defaults) < len(d.parameters)
        values = None if symbolic else d.values_of(*args, **kwargs)
        arguments, overlaps, positions, mode = self._key(args, kwargs, wrt, plan, latest=symbolic)
        mode = mode if of == "gradient" else of
        if mode == "gradient" and batch is not None:
            mode = "pullback"
        options = {**d.options, "lanes": batch or 1}
        request = d.function, arguments, overlaps, mode, positions, options, d.era.captures
        if not run:
            return d.compiler.explain(*request, values)
        if values is None:
            raise ValueError("run=True counts what a call saves: pass the arguments of one")
        counts = self._counted(values, overlaps, positions, COUNTED[plan])
        return d.compiler.explain(*request, values, counts)

    def _counted(
        self, values: tuple[Any, ...], overlaps: keys.Overlaps, active: tuple[int, ...], mode: str
    ) -> tuple[int, ...]:
        """The bytes of each save: the primal runs on copies of the arguments and counts."""
        copied = memory.copies(values, overlaps)
        return self._dispatcher.specialize(copied, active, mode).direct["primal"](*copied)


def unpickled(sent: pickles.Sent, function: Any, *given: Any) -> Any:
    """A compiled function that was sent by value."""
    pickles.receive(sent)
    return compiled(function, *given)


def compiled(
    function: Any, options: dict[str, Any], compiler: Compiler, with_gradient: bool
) -> Any:
    """A compiled function with a class of its own: of the function that a callable only runs.

    Of a method, one that is bound to the same object; of a partial, one with the same arguments; of what
    `staticmethod` and `classmethod` make, the same of the compiled function.
    """
    match function:
        case types.MethodType() | BoundMethod():
            inner = compiled(function.__func__, options, compiler, with_gradient)
            return BoundMethod(inner, function.__self__)
        case functools.partial():
            inner = compiled(function.func, options, compiler, with_gradient)
            return partial_of(function, inner)
        case staticmethod():
            return staticmethod(compiled(function.__func__, options, compiler, with_gradient))
        case classmethod():
            return ClassMethod(compiled(function.__func__, options, compiler, with_gradient))
        case _ if is_variadic(wrappers.plain(function)):
            return CompiledWrapper(
                wrappers.plain(function), lambda f: compiled(f, options, compiler, with_gradient)
            )
        case _:
            base = DifferentiableFunction if with_gradient else CompiledFunction
            own = type(base.__name__, (base,), {"__module__": __name__, "__doc__": None})
            return own(wrappers.plain(function), options, compiler, with_gradient=with_gradient)


class ClassMethod(classmethod):  # pyright: ignore[reportMissingTypeArgument]
    """Binds a compiled function to classes: since Python 3.13 `classmethod` itself asks nobody how."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return BoundMethod(self.__func__, type(instance) if owner is None else owner)


def _install(
    owner: weakref.ref[CompiledFunction], with_gradient: bool, kind: str, head: Callable[..., Any]
) -> None:
    function = owner()
    if function is not None:
        if kind == "primal":
            is_plain = isinstance(head, types.FunctionType)  # which would bind, as builtins do not
            type(function).__call__ = staticmethod(head) if is_plain else head  # pyright: ignore
        elif with_gradient:
            function.__dict__[METHODS.get(kind, kind)] = head


@with_concise_methods
class Derivative:
    """What `grad(f, wrt)` and its like return; of `jvp(f)`, where tangents have names, `wrt` is None."""

    __slots__ = ("_wrt", "function", "kind")

    def __init__(self, kind: str, function: CompiledFunction, wrt: Any) -> None:
        self.kind, self.function, self._wrt = kind, function, wrt

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        chosen = {} if self._wrt is None else {"wrt": self._wrt}
        return getattr(self.function, self.kind)(*args, **chosen, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        chosen = "" if self._wrt is None else f" with respect to {self._wrt!r}"
        return f"<{self.kind} of {self.function.__qualname__}{chosen}>"

    def __reduce__(self) -> Any:
        return Derivative, (self.kind, self.function, self._wrt)


def derivative_of(function: Any) -> tuple[str, str] | None:
    """Kind and function of a derivative: of `grad(f)`, and of `f.grad`; None of anything else."""
    if isinstance(function, Derivative):
        return function.kind, function.function.__qualname__
    owner = getattr(function, "__self__", None)
    owner = owner.owner if isinstance(owner, Link) else owner
    name = getattr(function, "__name__", None)
    if isinstance(owner, CompiledFunction | Dispatcher) and isinstance(name, str):
        named = owner.function if isinstance(owner, Dispatcher) else owner
        return name, named.__qualname__
    return None


CALLED_INSIDE = ("grad", "value_and_grad", "jvp", "hvp")
"""The derivatives that compiled code may ask for."""


def derived(kind: str, name: str, instead: str = "") -> str:
    """Why a derivative is not compiled, mapped or differentiated, and what to do."""
    second = "the second derivatives of f are mutad.hvp(f) and mutad.hessian(f)"
    inside = f"; a function that calls f.{kind} has derivatives of every order"
    instead = f"{instead}; " if instead else ""
    inside = inside if kind in CALLED_INSIDE else ""
    return f"{kind} of {name} is a derivative: {instead}{second}{inside}"

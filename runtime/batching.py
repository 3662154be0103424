"""`mutad.batch`: a compiled function over leading axes of its arguments.

A batch is a function of its own, a loop over the items that calls the function on a slice of each mapped
argument. It is written as source and compiled as any function is::

    mutad.batch(f, in_axes={"u": 0})          def f(u, k):
                                                  _results = np.empty(u.shape[0], np.float64)
                                                  for _i in range(u.shape[0]):
                                                      _results[_i] = _function(u[_i], k)
                                                  return _results

So items are mutated in place, exceptions are the loop's, and every derivative is there, with the plan of one
function: shared arguments' shadows add up. `grad` and its like are those of the sum of the items' results,
which a second function returns. What the source is depends on what the function returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import keys
from .batch_loops import Axes, Loops
from .foreign_idioms import needs_direction, needs_tangents
from .gradients import Const, primal_of
from .hessian_products import FORWARD_OVER_REVERSE
from .inspection import Inspection
from .objects import flat_of
from .user_tracebacks import concise, with_concise_methods

if TYPE_CHECKING:
    from .differentiable_function import DifferentiableFunction
    from .dispatch import Dispatcher
    from .sparsity import Sparsity


@with_concise_methods
class Batched:
    """What `mutad.batch` returns: called as the function is, mapped arguments with one axis more.

    Results are stacked: numbers to an array of shape `(n,)`, arrays to one of `(n, *shape)`, tuples item by
    item. `grad`, `value_and_grad`, `hvp` and `hessian` are those of the sum of the results, so the gradient
    of a mapped argument has each item's, and that of a shared one their sum; `value_and_grad` returns all
    results.
    """

    def __init__(self, function: DifferentiableFunction | Batched, in_axes: Any = 0) -> None:
        self.function, self.in_axes = function, in_axes
        self.axes = axes_of(function.parameters, in_axes)
        self.__name__, self.__qualname__ = function.__name__, f"batch of {function.__qualname__}"
        self._loops: dict[Any, Loops] = {}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters: the function's."""
        return self.function.parameters

    @property
    def has_gradient(self) -> bool:
        return self.function.has_gradient

    @property
    def _base(self) -> DifferentiableFunction:
        return self.function._base if isinstance(self.function, Batched) else self.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        loops, bound = self._loops_for(args, kwargs)
        return loops.stacking(*bound)

    def vjp(self, *args: Any, wrt: Any = 0, batch: int | None = None, **kwargs: Any) -> Any:
        """The stacked results, and `back`, which takes their cotangents: as of any compiled function."""
        loops, bound = self._loops_for(args, kwargs)
        return loops.stacking.vjp(*bound, wrt=wrt, batch=batch)

    def pullback(self, *args: Any, cotangent: Any = None, **kwargs: Any) -> Any:
        """`pullback` of the stacked results, on your shadows."""
        loops, bound = self._loops_for(args, kwargs)
        return loops.stacking.pullback(*self._wrapped(bound), cotangent=cotangent)

    @needs_tangents
    def jvp(
        self, *args: Any, tangents: Mapping[str, Any], batch: int | None = None, **kwargs: Any
    ) -> Any:
        """The stacked results and their tangents."""
        loops, bound = self._loops_for(args, kwargs)
        return loops.stacking.jvp(*bound, tangents=tangents, batch=batch)

    def pushforward(self, *args: Any, **kwargs: Any) -> Any:
        """The stacked results and their tangents, in place."""
        loops, bound = self._loops_for(args, kwargs)
        return loops.stacking.pushforward(*self._wrapped(bound))

    def _wrapped(self, bound: Sequence[Any]) -> Iterator[Any]:
        """The arguments of `pullback`, `pushforward`: the function's defaults come without wrapper."""
        defaults = self._base.dispatcher.defaults
        for argument in bound:
            is_default = any(argument is default for default in defaults)
            yield Const(argument) if is_default else argument

    def jacobian(
        self, *args: Any, wrt: Any = 0, mode: str = "auto", sparsity: Any = None, **kwargs: Any
    ) -> Any:
        """The Jacobian of the stacked results."""
        loops, bound = self._loops_for(args, kwargs)
        return loops.stacking.jacobian(*bound, wrt=wrt, mode=mode, sparsity=sparsity)

    def jacobian_sparsity(
        self, *args: Any, wrt: Any = 0, mode: str = "auto", **kwargs: Any
    ) -> Sparsity:
        """Which elements of the stacked results depend on which of the arguments."""
        loops, bound = self._loops_for(args, kwargs)
        return loops.stacking.jacobian_sparsity(*bound, wrt=wrt, mode=mode)

    def linear_operator(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """The Jacobian of the stacked results as an operator."""
        loops, bound = self._loops_for(args, kwargs)
        return loops.stacking.linear_operator(*bound, wrt=wrt)

    def grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """The gradients of all items; of shared arguments their sum."""
        return self.value_and_grad(*args, wrt=wrt, **kwargs)[1]

    def value_and_grad(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> tuple[Any, Any]:
        """The results of all items, and their gradients; of shared arguments the sum."""
        summing, bound, values = self._summing_for(args, kwargs)
        return values, summing.grad(*bound, values, wrt=wrt)

    @needs_direction
    def hvp(self, *args: Any, direction: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """The derivative of the gradients in a direction."""
        return self.value_grad_hvp(*args, direction=direction, wrt=wrt, **kwargs)[2]

    @needs_direction
    def value_grad_hvp(
        self,
        *args: Any,
        direction: Any,
        wrt: Any = 0,
        batch: int | None = None,
        mode: str = FORWARD_OVER_REVERSE,
        **kwargs: Any,
    ) -> tuple[Any, Any, Any]:
        """The results of all items, their gradients, and the derivative of these in a direction."""
        summing, bound, values = self._summing_for(args, kwargs)
        _, gradient, product = summing.value_grad_hvp(
            *bound, values, wrt=wrt, direction=direction, batch=batch, mode=mode
        )
        return values, gradient, product

    def hessian(self, *args: Any, wrt: Any = 0, sparsity: Any = None, **kwargs: Any) -> Any:
        """The Hessian of the sum of the results: of mapped arguments 0 between two items.

        With `sparsity="auto"` it is sparse, and one item's directions go along with those of all others.
        """
        summing, bound, values = self._summing_for(args, kwargs)
        return summing.hessian(*bound, values, wrt=wrt, sparsity=sparsity)

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
        """What the gradient of all items saves, why, and how many bytes."""
        summing, bound, values = self._summing_for(args, kwargs)
        options: dict[str, Any] = {"plan": plan, "mode": mode, "batch": batch, "run": run}
        return summing.explain(*bound, values, wrt=wrt, **options)

    @property
    def inspect(self) -> Inspection:
        """The program after a stage of the compiler; with `wrt` that of the gradient."""
        return Inspection(self._base.__qualname__, self._shown)

    @concise
    def _shown(
        self, stage: str, *args: Any, wrt: Any = None, plan: str = "joint", **kwargs: Any
    ) -> str:
        if wrt is None:
            loops, bound = self._loops_for(args, kwargs)
            return loops.stacking.inspect.shown(stage, *bound)
        summing, bound, values = self._summing_for(args, kwargs)
        return summing.inspect.shown(stage, *bound, values, wrt=wrt, plan=plan)

    def _loops_for(self, args: Any, kwargs: Any) -> tuple[Loops, tuple[Any, ...]]:
        """The functions for such arguments, and these by position."""
        bound = self._base.dispatcher.bind(*args, **kwargs)
        return self.loops(tuple(map(primal_of, bound))), bound

    def _summing_for(
        self, args: Any, kwargs: Any
    ) -> tuple[DifferentiableFunction, tuple[Any, ...], keys.Array]:
        """The function that returns the sum of the results, the arguments, and room for the results."""
        bound = self._base.dispatcher.bind(*args, **kwargs)
        loops = self.loops(bound)
        values = np.empty(length_of(self, bound), keys.SCALARS[loops.float_type])
        return loops.summing, bound, beside(values, bound)

    def loops(self, values: tuple[Any, ...]) -> Loops:
        """The functions for arguments like these."""
        base = self._base
        item, era = tuple(items(self, tuple(map(stand_in, values)))), base.dispatcher.era
        kinds = (id(era), *kinds_of(base.dispatcher, item))
        found = self._loops.get(kinds)
        if found is None:
            function = called(self.function, item)
            found = self._loops[kinds] = Loops(self.axes, function, base, era, item)
        if length_of(self, values) == 0:
            found.require_shapes()
        return found

    def __repr__(self) -> str:
        return f"<batch of {self.function!r} over axes {self.in_axes!r}>"

    def __reduce__(self) -> Any:
        return Batched, (self.function, self.in_axes)


def kinds_of(dispatcher: Dispatcher, item: tuple[Any, ...]) -> Iterator[Any]:
    """What one item's results depend on: the kinds of its arguments, and of objects their structure."""
    names: Sequence[str] = dispatcher.parameters
    if dispatcher.has_objects(item):
        flat, made = flat_of(dispatcher, item)
        yield flat
        names, item = flat.structure.names[: len(made.leaves)], made.leaves
    yield from (keys.argument_key(value, name) for value, name in zip(item, names, strict=True))


def stand_in(value: Any) -> Any:
    """An argument; of an array of a device one of the host that is as large, and never read."""
    if type(value) in keys.PLAIN:
        return value
    from .device_arrays import dtype_of, is_device

    return np.empty(value.shape, dtype_of(value)) if is_device(value) else value


def beside(made: keys.Array, values: Sequence[Any]) -> Any:
    """An array that goes along with the arguments, on the device where they are."""
    if all(type(value) in keys.PLAIN for value in values):
        return made
    from .device_arrays import device_array, is_device

    return device_array(made) if any(map(is_device, values)) else made


def called(
    function: DifferentiableFunction | Batched, item: tuple[Any, ...]
) -> DifferentiableFunction:
    """What the loop calls: the function, or where that is a batch itself its loop."""
    return function.loops(item).stacking if isinstance(function, Batched) else function


def axes_of(names: tuple[str, ...], in_axes: Any) -> Axes:
    """The axis of each parameter, None for what all items share; TypeError or ValueError for others."""
    match in_axes:
        case dict():
            given: dict[Any, Any] = in_axes
            unknown = [n for n in given if n not in names]
            if unknown:
                raise TypeError(
                    f"in_axes: no parameter is called {unknown[0]!r}: there are {', '.join(names)}"
                )
            axes = [given.get(n) for n in names]
        case tuple() | list():
            axes = list(in_axes)  # pyright: ignore[reportUnknownArgumentType]
            if len(axes) != len(names):
                raise ValueError(
                    f"in_axes has {len(axes)} entries, and there are {len(names)} parameters: "
                    f"{', '.join(names)}"
                )
        case _:
            axes = [in_axes] * len(names)
    for axis in axes:
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
            raise TypeError(f"in_axes holds {axis!r}: use an int, or None for what items share")
    if all(axis is None for axis in axes):
        raise ValueError("in_axes: no argument is mapped: one axis at least is an int")
    return tuple(axes)


def length_of(batch: Batched, values: Sequence[Any]) -> int:
    """How many items there are; TypeError or ValueError for what cannot be mapped."""
    found: dict[str, int] = {}
    for value, axis, name in zip(values, batch.axes, batch.parameters, strict=True):
        if axis is None:
            continue
        if not isinstance(stand_in(value), np.ndarray):
            raise TypeError(
                f"batch: argument {name!r} is {type(value).__name__}, and is mapped over axis {axis}: "
                "pass an array, or share it by in_axes=None for it"
            )
        if not -value.ndim <= axis < value.ndim:
            raise ValueError(
                f"batch: argument {name!r} has {value.ndim} dimensions, and no axis {axis}"
            )
        found[name] = value.shape[axis]
    if len(set(found.values())) > 1:
        shown = ", ".join(f"{n} of {name!r}" for name, n in found.items())
        raise ValueError(f"batch: the mapped axes differ in length: {shown}")
    return next(iter(found.values()))


def items(batch: Batched, values: Sequence[Any]) -> Iterator[Any]:
    """The arguments of the first item; of no items, ones like that."""
    count = length_of(batch, values)
    for value, axis in zip(values, batch.axes, strict=True):
        if axis is None:
            yield value
        elif count:
            yield value[at_axis(value.ndim, axis, 0)]
        else:
            shape = np.delete(value.shape, axis)
            yield np.zeros(shape, value.dtype)[() if len(shape) == 0 else ...]


def at_axis(rank: int, axis: int, index: Any) -> tuple[Any, ...]:
    """The subscript of one item."""
    return (*[slice(None)] * (axis % rank), index)

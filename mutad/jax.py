"""Compiled functions as functions of JAX arrays, differentiable by `jax.grad`, under `jit` and `vmap`.

::

    import mutad.jax

    @mutad.jax.wrap
    @mutad.compile(grad=True)
    def energy(u, k, steps): ...

    slope = jax.jit(jax.grad(energy), static_argnums=2)(u, 0.1, 50)

Called with arrays that JAX does not trace, the function reads them where they lie; under `grad`, `jit` and
`vmap` JAX calls back into Python, on the CPU, and hands over copies. What the function stores to is copied:
JAX's arrays never change.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from . import _with_gradient  # pyright: ignore[reportPrivateUsage]
from .runtime.bridge_calls import Bridged, Call, outputs_of, results_of
from .runtime.keys import SCALARS
from .runtime.user_tracebacks import concise, with_concise_methods

jax: Any = import_module("jax")
Shapes = Any
"""What `jax.ShapeDtypeStruct` makes, one or a tuple."""


def wrap(
    function: Callable[..., Any], *, result: Any = None, finals: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """The function, of JAX arrays: it is called in the same way, and takes part in JAX's transformations.

    function: compiled, or a Python function, which then is.
    result: shape and dtype of the result, which JAX wants to know before the call: `jax.ShapeDtypeStruct`,
        a tuple of them, or a function of the arguments that returns these. It may be left out where the
        result is a number, None, or one of the arguments.
    finals: arrays among the arguments whose final values are returned, behind the result: what a function
        stores to an array cannot be seen in JAX's.

    Arrays without dimensions are numbers to the function; ints, texts and objects that JAX does not trace are
    constants. Derivatives are with respect to all floats. The backward pass runs the primal again.
    """
    bridged = Bridged(_with_gradient(function), _with_gradient)
    names = (finals,) if isinstance(finals, str) else tuple(finals)

    @concise
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        one = bridged.call(args, kwargs)
        kinds = (jax.Array, np.ndarray, np.floating, float)
        places = [k for k, a in enumerate(one.arguments) if isinstance(a, kinds)]
        operands = [jax.numpy.asarray(one.arguments[k]) for k in places]
        shapes = result(*one.arguments) if callable(result) else result
        bridge = Bridge(one, tuple(places), names, shapes, [(o.shape, o.dtype) for o in operands])
        if any(isinstance(o, jax.core.Tracer) for o in operands):
            return bridge.returned(bridge.traced(operands))
        return bridge.returned(list(map(jax.numpy.asarray, bridge.run(*operands))))

    return call


@with_concise_methods
@dataclass
class Bridge:
    """One call, as JAX traces it: `places` are the positions of what JAX knows."""

    call: Call
    places: tuple[int, ...]
    finals: tuple[str, ...]
    shapes: Shapes
    """Of the result, as the user says."""
    operands: Sequence[tuple[tuple[int, ...], Any]]
    """Shape and dtype of each operand."""
    raised: Exception | None = None
    """What the function raised last."""

    def __post_init__(self) -> None:
        zeros = [np.zeros(shape, dtype) for shape, dtype in self.operands]
        at = self.filled(zeros)
        self.written = [k for k, p in enumerate(self.places) if at.names[p] in at.written()]
        """Of the operands, those that the function stores to."""
        for name in self.finals:
            if name not in [at.names[self.places[k]] for k in self.written]:
                raise TypeError(f"finals: the function stores to no array {name!r}")
        self.results = self.result_shapes(at)
        self.moving = [k for k, (_, dtype) in enumerate(self.operands) if dtype.kind == "f"]

    def filled(self, values: Sequence[Any]) -> Call:
        """The call with these operands: an array without dimensions is a number."""
        function: Any = self.call.function
        made = Call(self.call.of, function, [*self.call.arguments])
        for place, value in zip(self.places, values, strict=True):
            made.arguments[place] = value if np.ndim(value) else number_of(value)
        return made

    def result_shapes(self, at: Call) -> list[Any]:
        """Shape and dtype of each output: the items of the result, then the final values."""
        if self.shapes is None:
            found = [self.known(spec, at) for spec in results_of(at)]
        else:
            found = [*(self.shapes if isinstance(self.shapes, tuple) else (self.shapes,))]
        names = [at.names[p] for p in self.places]
        return [*found, *(struct(*self.operands[names.index(n)]) for n in self.finals)]

    def known(self, spec: dict[str, Any], at: Call) -> Any:
        """Shape and dtype of an item of the result, as the compiler knows them."""
        if spec["kind"] == "scalar":
            return struct((), np.dtype(SCALARS[spec["type"]]))
        if spec["kind"] == "argument" and spec["leaf"] in self.places:
            return struct(*self.operands[self.places.index(spec["leaf"])])
        raise TypeError(
            f"{at.function.__qualname__} returns an array, whose shape JAX has to know: pass"
            " result=jax.ShapeDtypeStruct(shape, dtype), or a function of the arguments that returns it"
        )

    # What runs in callbacks.

    def arrays(self, operands: Sequence[Any]) -> Call:
        """The call with arrays over JAX's memory, copied where the function stores to them."""
        values = [np.asarray(o) for o in operands]
        for k in self.written:
            if values[k].ndim:
                values[k] = values[k].copy()
        return self.filled(values)

    def run(self, *operands: Any) -> tuple[Any, ...]:
        """The outputs."""
        call = self.arrays(operands)
        try:
            result = call.function(*call.arguments)
        except Exception as error:
            self.raised = error
            raise
        found = [value for _, value in outputs_of(result) if value is not None]
        found += [call.arguments[call.names.index(name)] for name in self.finals]
        return cast_to(self.results, found)

    def expressions(self) -> list[str]:
        """For each output, what it is in the contracted function."""
        own = self.results[: len(self.results) - len(self.finals)]
        several = self.shapes is not None and isinstance(self.shapes, tuple)
        several |= self.shapes is None and len(own) > 1
        found = [
            f"result[{k}]{dots(one)}" if several else f"result{dots(one)}"
            for k, one in enumerate(own)
        ]
        return [*found, *(f"{name}[...]" for name in self.finals)]

    def floats(self) -> list[int]:
        """The outputs that have cotangents."""
        return [n for n, one in enumerate(self.results) if one.dtype.kind == "f"]

    def pull(self, *given: Any) -> tuple[Any, ...]:
        """The gradients in the operands that move, of operands and cotangents."""
        call = self.arrays(given[: len(self.places)])
        bars = [number_or_array(b) for b in given[len(self.places) :]]
        outputs = [self.expressions()[n] for n in self.floats()]
        names = [call.names[self.places[k]] for k in self.moving]
        return cast_to(self.moving_shapes(), call.first(outputs, bars, names))

    def second(self, *given: Any) -> tuple[Any, ...]:
        """What cotangents of these are pulled back to, of operands and of cotangents."""
        n, m = len(self.places), len(self.floats())
        call = self.arrays(given[:n])
        bars = [number_or_array(b) for b in given[n : n + m]]
        directions = [number_or_array(d) for d in given[n + m :]]
        outputs = [self.expressions()[n] for n in self.floats()]
        names = [call.names[self.places[k]] for k in self.moving]
        of_cotangents, of_inputs = call.second(outputs, bars, names, directions)
        shapes = [*self.moving_shapes(), *(self.results[n] for n in self.floats())]
        return cast_to(shapes, [*of_inputs, *of_cotangents])

    def moving_shapes(self) -> list[Any]:
        return [struct(*self.operands[k]) for k in self.moving]

    # What JAX sees.

    def traced(self, operands: Sequence[Any]) -> Any:
        """The outputs; what the function raises while JAX traces is raised as it is, without JAX's words."""
        try:
            return self.differentiable()(*operands)
        except Exception:
            if self.raised is None:
                raise
            error, self.raised = self.raised, None
        raise error

    def called_back(self, function: Callable[..., Any], shapes: Sequence[Any], given: Any) -> Any:
        return jax.pure_callback(function, tuple(shapes), *given, vmap_method="sequential")

    def differentiable(self) -> Callable[..., Any]:
        """The function of the operands, with its adjoint, and the adjoint's."""
        floats = [self.results[k] for k in self.floats()]

        @jax.custom_vjp
        def pulled(*given: Any) -> Any:
            return self.called_back(self.pull, self.moving_shapes(), given)

        def pulled_back(given: Any, directions: Any) -> Any:
            shapes = [*self.moving_shapes(), *floats]
            found = self.called_back(self.second, shapes, (*given, *directions))
            return (*self.spread(found[: len(self.moving)]), *found[len(self.moving) :])

        def pulled_forward(*given: Any) -> Any:
            return pulled(*given), given

        pulled.defvjp(pulled_forward, pulled_back)

        @jax.custom_vjp
        def function(*operands: Any) -> Any:
            return self.called_back(self.run, self.results, operands)

        def back(operands: Any, cotangents: Any) -> Any:
            bars = [cotangents[k] for k in self.floats()]
            return self.spread(pulled(*operands, *bars))

        def forward(*operands: Any) -> Any:
            return function(*operands), operands

        function.defvjp(forward, back)
        return function

    def spread(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """One cotangent for each operand: zeros of no dtype for those that are no floats."""
        found = dict(zip(self.moving, gradients, strict=True))
        zero = jax.dtypes.float0
        return tuple(
            found[k] if k in found else np.zeros(shape, zero)
            for k, (shape, _) in enumerate(self.operands)
        )

    def returned(self, outputs: Sequence[Any]) -> Any:
        """The outputs as the function returns them: one alone, none as None."""
        if not outputs:
            return None
        is_tuple = isinstance(self.shapes, tuple) or len(outputs) > 1
        return tuple(outputs) if is_tuple else outputs[0]


def struct(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype))


def dots(one: Any) -> str:
    return "[...]" if one.shape else ""


def number_of(value: Any) -> Any:
    """A number as the compiled function takes it: float64 and ints as Python's."""
    array = np.asarray(value)
    return array[()] if array.dtype == np.float32 else array.item()


def number_or_array(value: Any) -> Any:
    array = np.asarray(value)
    return array if array.ndim else number_of(array)


def cast_to(shapes: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs as arrays of the dtypes that JAX was told."""
    if len(shapes) != len(values):
        raise TypeError(f"the function returns {len(values)} items, and result= says {len(shapes)}")
    return tuple(np.asarray(v, s.dtype) for v, s in zip(values, shapes, strict=True))

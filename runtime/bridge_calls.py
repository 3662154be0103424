"""What bridges to other array systems have in common: a call of a compiled function, and its derivatives.

A bridge differentiates with respect to some arguments, the *moving* ones, of which the outputs are functions:
the floats in the result, and the final values of the arguments that the function overwrites. Second
derivatives are those of one number, the outputs *contracted* with their cotangents::

    def contracted(u, k, c0, c1):
        result = f(u, k)
        return (result * c0).sum() + (u * c1).sum()

The gradient of that in `u` is what a bridge's backward pass computes, the gradient in `c0` the result. So its
Hessian times a direction in `u` is, of these two, the derivative of either.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import objects
from .bound import Partial
from .differentiable_function import DifferentiableFunction
from .dispatch import Dispatcher
from .variadic import CompiledWrapper

Compile = Callable[[Any], Any]
"""Of a Python function, or of one that has no gradient, the compiled function that has one."""


@dataclass
class Bridged:
    """A compiled function, and the functions of its contracted outputs."""

    given: Any
    compile: Compile
    contractions: dict[Any, Any] = field(default_factory=dict[Any, Any])

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call, with all arguments by position."""
        function: Any = self.given
        given = args
        if isinstance(function, Partial):
            given, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        if isinstance(function, CompiledWrapper):
            function = function.of(given, kwargs)
        if not isinstance(function, DifferentiableFunction):
            raise TypeError(f"wrap() takes a function of @compile(grad=True), not {function!r}")
        return Call(self, function, list(function.dispatcher.bind(*given, **kwargs)))

    def contracted(
        self, function: DifferentiableFunction, outputs: Sequence[str], extra: int
    ) -> Any:
        """The function of these outputs, expressions, contracted with `extra` more arguments."""
        key = function, tuple(outputs)
        if key not in self.contractions:
            self.contractions[key] = self.compile(contraction(function, outputs, extra))
        return self.contractions[key]


@dataclass
class Call:
    """One call of a bridged function."""

    of: Bridged
    function: DifferentiableFunction[..., Any]
    arguments: list[Any]

    @property
    def names(self) -> tuple[str, ...]:
        return self.function.parameters

    def written(self) -> tuple[str, ...]:
        """The arrays among the arguments that the function stores to."""
        d, values = self.function.dispatcher, tuple(self.arguments)

        def of_parts() -> list[str]:
            flat, made = objects.flat_of(d, values)
            return written(flat.compiled.dispatcher, tuple(flat.values_of(made)))

        stored = d.either(values, lambda: written(d, values), of_parts)
        return tuple(name for name in self.names if name in stored)

    def first(
        self, outputs: Sequence[str], cotangents: Sequence[Any], moving: Sequence[str]
    ) -> Sequence[Any]:
        """The gradients of `cotangents @ outputs` in `moving`."""
        function: Any = self.function
        made = self.of.contracted(function, outputs, len(cotangents))
        return made.grad(*self.arguments, *cotangents, wrt=tuple(moving))

    def second(
        self,
        outputs: Sequence[str],
        cotangents: Sequence[Any],
        moving: Sequence[str],
        directions: Sequence[Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """The derivatives of `cotangents @ outputs`' gradient, times a direction, in cotangents and `moving`.

        It runs on the arguments as they are: copies, where the function stores to them.
        """
        function: Any = self.function
        made = self.of.contracted(function, outputs, len(cotangents))
        extra = [f"c{k}_" for k in range(len(cotangents))]
        still = [zero_like(c) for c in cotangents]
        found = made.hvp(
            *self.arguments,
            *cotangents,
            wrt=(*moving, *extra),
            direction=(*directions, *still),
        )
        return found[len(moving) :], found[: len(moving)]


def results_of(call: Call) -> list[dict[str, Any]]:
    """What the compiler knows of the items of the result; what is None is left out."""
    d = call.function.dispatcher
    found = d.specialize((*call.arguments, *d.era.captures.values())).results
    items = found["items"] if found["kind"] == "tuple" else [found]
    return [item for item in items if item["kind"] != "none"]


def written(d: Dispatcher, values: tuple[Any, ...]) -> list[str]:
    """The parameters that the code for these arguments stores to."""
    found = d.specialize((*values, *d.era.captures.values()))
    return [d.parameters[p] for p in found.metadata["written"] if p < len(d.parameters)]


def zero_like(value: Any) -> Any:
    return np.zeros_like(value) if isinstance(value, np.ndarray) else type(value)(0)


def outputs_of(result: Any) -> list[tuple[str, Any]]:
    """The items of a result, and the expression for each; TypeError for what a bridge does not hand on."""
    items = result if type(result) is tuple else (result,)
    found = [("result" if items is not result else f"result[{k}]", v) for k, v in enumerate(items)]
    for _, value in found:
        if value is not None and not isinstance(value, np.ndarray | np.generic | float | int):
            raise TypeError(
                f"a bridged function returns arrays, numbers, None, or a tuple of them, not"
                f" {type(value).__name__}: return its fields"
            )
    return found


def is_float(value: Any) -> bool:
    return (
        value.dtype.kind == "f"
        if isinstance(value, np.ndarray | np.generic)
        else isinstance(value, float)
    )


def contraction(function: DifferentiableFunction, outputs: Sequence[str], extra: int) -> Any:
    """The Python function of contracted outputs; an output is an array where it says so: `u[...]`."""
    parameters = function.parameters
    more = [f"c{k}_" for k in range(extra)]
    terms = " + ".join(
        f"({out.removesuffix('[...]')} * {c}).sum()" if out.endswith("[...]") else f"{out} * {c}"
        for out, c in zip(outputs, more, strict=True)
    )
    source = (
        f"def contracted({', '.join([*parameters, *more])}):\n"
        f"    result = function_({', '.join(parameters)})\n"
        f"    return {terms}\n"
    )
    file = f"<mutad: bridge of {function.__module__}.{function.__qualname__}: {terms}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"function_": function}
    exec(compile(source, file, "exec"), namespace)
    made = namespace["contracted"]
    made.__module__ = function.__module__
    made.__qualname__ = f"{function.__qualname__}.contracted"
    return made

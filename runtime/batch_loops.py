"""The loops over items that a batch is: what their source is, by what the function returns (`batching`)."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import keys
from .cotangents import describe
from .objects import flat_of

if TYPE_CHECKING:
    from .differentiable_function import DifferentiableFunction
    from .dispatch import Dispatcher

Spec = dict[str, Any]
Axes = tuple[int | None, ...]

DTYPE = {"py_float": "np.float64", "py_int": "np.int64", "py_bool": "np.bool_"} | {
    name: f"np.{kind.__name__.rstrip('_')}" for name, kind in keys.NUMPY_SCALARS.items()
}
DTYPE["b1"] = "np.bool_"
"""How the dtype of an array of results is written."""


class Loops:
    """The loops over items of one kind: one that stacks their results, one that adds them up."""

    def __init__(
        self,
        axes: Axes,
        function: DifferentiableFunction,
        base: DifferentiableFunction,
        era: Any,
        item: tuple[Any, ...],
    ) -> None:
        self.axes, self.function, self.base = axes, function, base
        self.era = era
        """What the function read from outside, kept as it is what it returns that depends on it."""
        self.ranks = [0 if a is None else np.ndim(v) + 1 for v, a in zip(item, axes, strict=True)]
        found = results_of(function.dispatcher, item)
        if found is None or any("list" in one for one in leaves_of(found)):
            raise TypeError(
                f"batch of {base.__qualname__}: it returns objects or lists: "
                "return the arrays and numbers in them"
            )
        self.results = found

    def require_shapes(self) -> None:
        """ValueError where there are no items: the shapes of results are unknown."""
        if any(one["kind"] == "array" for one in leaves_of(self.results)):
            raise ValueError(
                f"batch of {self.base.__qualname__}: there are no items, and it returns arrays "
                "whose shapes depend on the items"
            )

    @property
    def float_type(self) -> str:
        """The type of the result, which is one float; TypeError otherwise."""
        type_ = self.results.get("type")
        if type_ not in keys.FLOATS:
            raise TypeError(
                f"grad needs a function that returns one float; {self.base.__qualname__} returns "
                f"{describe(self.results)}: use vjp or pullback"
            )
        return type_

    @cached_property
    def stacking(self) -> DifferentiableFunction:
        """The function that returns the results of all items."""
        return self.compiled(stacking_lines(self.call, self.results, self.count), ())

    @cached_property
    def summing(self) -> DifferentiableFunction:
        """The function that stores the results to one more argument, and returns their sum."""
        lines = [
            "_total = 0.0",
            f"for _i in range({self.count}):",
            f"    _result = {self.call('_i')}",
            "    _values[_i] = _result",
            "    _total += _result",
            "return _total",
        ]
        return self.compiled(lines, ("_values",))

    @property
    def count(self) -> str:
        """How many items there are, in the source."""
        mapped = next(k for k, axis in enumerate(self.axes) if axis is not None)
        return f"{self.function.parameters[mapped]}.shape[{self.axes[mapped]}]"

    def call(self, index: str) -> str:
        """The call of the function for one item, in the source."""
        names = self.function.parameters
        arguments = [
            name if axis is None else f"{name}[{', '.join([*[':'] * (axis % rank), index])}]"
            for name, axis, rank in zip(names, self.axes, self.ranks, strict=True)
        ]
        positional = self.function.__wrapped__.__code__.co_argcount
        named = [f"{n}={a}" for n, a in zip(names, arguments, strict=True)][positional:]
        return f"_function({', '.join((*arguments[:positional], *named))})"

    def compiled(self, lines: Iterable[str], more: Sequence[str]) -> DifferentiableFunction:
        """The compiled function of this body, with more parameters behind the function's."""
        name = self.function.__name__ if self.function.__name__.isidentifier() else "function"
        head = f"def {name}({', '.join((*self.function.parameters, *more))}):"
        made = written("\n".join([head, *(f"    {line}" for line in lines)]) + "\n", name)
        made.__globals__.update(np=np, _function=self.function)
        made.__qualname__ = f"batch of {self.base.__qualname__}"
        base, own = self.base, self.base.dispatcher
        return own.make(made, base.options, own.compiler, base.has_gradient)


def results_of(dispatcher: Dispatcher, item: tuple[Any, ...]) -> Spec | None:
    """What one item's results are; None where they hold objects or lists."""
    if dispatcher.has_objects(item):
        flat, made = flat_of(dispatcher, item)
        dispatcher, item = flat.dispatcher, flat.values_of(made)
    values = (*item, *dispatcher.era.captures.values())
    try:
        found = dispatcher.specialize(values)
    except Exception as error:
        if getattr(error, "needs_structure", False):
            return None
        raise
    results, records = with_kinds(found.results, values), found.metadata.get("records")
    return results if records is None else made_of(records["result"], iter(results["items"]))


def made_of(recipe: list[Any], parts: Iterator[Spec]) -> Spec | None:
    """A result that is put together of these parts."""
    match recipe:
        case ["flat"]:
            return next(parts)
        case ["tuple", None, items]:
            made = [made_of(one, parts) for one in items]
            return None if None in made else {"kind": "tuple", "items": made}
        case ["static", {"value": None}]:
            return {"kind": "none"}
        case _:
            return None


def stacking_lines(call: Callable[[str], str], results: Spec, count: str) -> Iterator[str]:
    """The body of a loop that stacks results: what each is stored to is made for the first item's.

    That is peeled off where results are arrays, whose shapes only it tells.
    """
    every = list(leaves_of(results))
    kept = [k for k, one in enumerate(every) if one["kind"] != "none"]
    arrays = [k for k in kept if every[k]["kind"] == "array"]
    first = "1" if arrays else "0"
    for _ in arrays[:1]:
        yield f"{shown(results, '_result')} = {call('0')}"
    for k in kept:
        rank, dtype = every[k].get("rank", 0), str(every[k].get("dtype", every[k].get("type")))
        extents = ", ".join([count, *(f"_result{k}.shape[{d}]" for d in range(rank))])
        yield f"_results{k} = np.empty(({extents},), {DTYPE[dtype]})"
        if arrays:
            yield f"_results{k}[0] = _result{k}"
    yield f"for _i in range({first}, {count}):"
    yield f"    {shown(results, '_result')} = {call('_i')}"
    for k in arrays:
        for d in range(every[k]["rank"]):
            yield f"    if _result{k}.shape[{d}] != _results{k}.shape[{d + 1}]:"
            yield "        raise ValueError('batch: the results of two items differ in shape')"
    for k in kept:
        yield f"    _results{k}[_i] = _result{k}"
    yield f"return {shown(results, '_results', none='None')}"


def leaves_of(spec: Spec) -> Iterator[Spec]:
    """All parts of a result, None and arguments included."""
    if spec["kind"] == "tuple":
        for item in spec["items"]:
            yield from leaves_of(item)
    else:
        yield spec


def with_kinds(spec: Spec, values: Sequence[Any]) -> Spec:
    """The description of a result with arguments that are returned themselves described as arrays."""
    match spec["kind"]:
        case "tuple":
            return {**spec, "items": [with_kinds(item, values) for item in spec["items"]]}
        case "argument" if spec["position"] is not None:
            array = values[spec["position"]]
            return {"kind": "array", "rank": array.ndim, "dtype": keys.DTYPES[array.dtype]}
        case "argument":
            raise TypeError("batch: an array of a tuple that is passed is returned: return a copy")
        case _:
            return spec


def shown(spec: Spec, name: str, none: str = "_nothing") -> str:
    """A result as it is written in the source: tuples around numbered names."""
    numbers = iter(range(len(list(leaves_of(spec)))))

    def text(one: Spec) -> str:
        if one["kind"] == "tuple":
            return f"({''.join(f'{text(item)}, ' for item in one['items'])})"
        number = next(numbers)
        return none if one["kind"] == "none" else f"{name}{number}"

    return text(spec)


def written(source: str, name: str) -> FunctionType:
    """The function that a source defines, which tracebacks and the compiler can read."""
    file = f"<mutad: batch {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, file, "exec"), namespace)
    made: FunctionType = namespace[name]
    return made

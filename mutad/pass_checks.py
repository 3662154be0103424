"""Whether a pass keeps what a program means: it is run before and after, on the same inputs.

A pass that takes a derivative is held against differences of what it was given; all others leave what the
program returns, leaves of its arrays and raises, up to rounding. `PassCheck` says what is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mutad.compiler.derivative.hessian_products import KeepProduct
from mutad.compiler.derivative.keep_tangents import KeepTangents
from mutad.compiler.derivative.passes import Forward, Reverse
from mutad.compiler.interpreter.memory import dtype_of, is_poison, lanes_of
from mutad.compiler.program_calls import (
    Call,
    call_of,
    element_of,
    public_functions,
    values_of,
)
from mutad.compiler.request import Options
from mutad.compiler.rules.calls import SIGNATURE, listed
from mutad.running import Outcome, run_call

STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Of differences: the one that agrees best counts."""

Run = Callable[[ModuleOp, Call, list[Any]], Outcome]


def interpreted(steps: int | None = None) -> Run:
    """Runs in the interpreter, at most so many steps."""
    return lambda module, call, values: run_call(module, call, values, steps=steps)


def compiled(options: Options) -> Run:
    """Runs as machine code."""
    return lambda module, call, values: run_call(module, call, values, options)


@dataclass
class PassCheck:
    """Checks steps from one module to the next."""

    inputs: Mapping[str, Any]
    head: Mapping[str, Any] | None = None
    run: Run = field(default_factory=interpreted)
    seed: int = 0
    name: str = ""
    """The function that is run, where there are several."""
    sharing: tuple[tuple[str, str], ...] = ()
    """The names of arguments that are the same array."""
    slopes: float = 1e-5
    """How far a derivative may be from differences, relative to the larger of them and 1."""
    rounding: float = 1e-9

    def of(self, one: ModulePass | None, before: ModuleOp, after: ModuleOp) -> str | None:
        """What a pass got wrong; `one` is None for what a stage does outside of passes."""
        match one:
            case Reverse() if not is_gradient(before):
                return self.reverse(before, after, one.active)
            case Reverse():
                return self.again(before).of(one, *as_programs(before, after))
            case Forward():
                return self.forward(before, after, one.active)
            case KeepTangents():
                return self.same(before, after, tangents=True)
            case _:
                return self.same(before, after, products=isinstance(one, KeepProduct))

    def call(self, module: ModuleOp, like: str = "") -> Call:
        """The call of a module: of the function that is named, or of what became of it."""
        return call_of(module, self.head, like or self.name, self.sharing)

    def values(self, call: Call) -> list[Any]:
        """The values of a call; those that were not given are random numbers."""
        rng, known = np.random.default_rng(self.seed), dict[str, Any](self.inputs)
        zeros = shadows_of_zeros(call)
        for parameter in call.parameters:
            is_shadow = parameter.name.endswith("_shadow")
            if parameter.name in known or (parameter.default is not None and not is_shadow):
                continue
            if is_shadow or parameter.name.endswith(("_bar", "_dot")):
                shape = np.shape(known[parameter.like]) if parameter.like in known else ()
                made = rng.standard_normal((*shape, *lanes_shape(parameter.type)))
                known[parameter.name] = made.astype(dtype_of(element_of(parameter.type)))
        for name in {call.parameters[place].name for place in zeros} & known.keys():
            known[name] = np.zeros_like(known[name])
        names = {p.name for p in call.parameters} - {call.parameters[j].name for _, j in call.same}
        return values_of(call, {name: known[name] for name in known if name in names})

    def outcome(self, module: ModuleOp, call: Call, values: Sequence[Any] | None = None) -> Outcome:
        given = self.values(call) if values is None else copies(values)
        return self.run(module, call, given)

    def again(self, gradient: ModuleOp) -> PassCheck:
        """The check of the gradient of a gradient function: of a program whose arguments have other names."""
        call = self.call(gradient)
        inputs = dict(zip(plain_names(len(call.parameters)), self.values(call), strict=True))
        names = list(inputs)
        sharing = tuple((names[i], names[j]) for i, j in call.same)
        return replace(self, inputs=inputs, head=None, sharing=sharing)

    def same(
        self, before: ModuleOp, after: ModuleOp, *, products: bool = False, tangents: bool = False
    ) -> str | None:
        first, second = self.call(before), self.call(after)
        given = [self.values(first), self.values(second)]
        if products:  # of shadows that are 0 at first
            shadows = [k for k, p in enumerate(first.parameters) if p.name.endswith("_shadow")]
            given = [with_zeros(vs, [vs[k] for k in shadows]) for vs in given]
        one = self.outcome(before, first, given[0])
        other = self.outcome(after, second, given[1])
        names = list(one.values)
        if products:  # the value, its tangent and the gradient are left out
            names = [n for n in names if n.endswith(("_shadow_dot", "_bar_dot"))]
        if tangents:  # the primal's results are left out, but those that are no floats
            own = {n for n in first.results if not n.endswith("_dot")}
            names = [n for n in names if n not in own or not is_float(one.values[n])]
        return differing(one, other, names, self.rounding)

    def reverse(
        self, before: ModuleOp, after: ModuleOp, wrt: Sequence[int] | None = None
    ) -> str | None:
        """<bars, what moves> is <gradient, direction>, lane by lane; `wrt` are what moves, by default all."""
        first, second = self.call(before), self.call(after)
        values = self.values(second)
        plain = values[: len(first.parameters)]
        primal = self.outcome(before, first, plain)
        found = self.outcome(after, second, values)
        names = list(primal.values)
        if (wrong := differing(primal, found, names, self.rounding)) or primal.raised:
            return wrong
        bars = {p.name: v for p, v in zip(second.parameters, values, strict=True)}
        twice = {second.parameters[j].name for _, j in second.same}
        fresh = "filled" in second.functions[-1].attributes
        bars = {n: v * (not (fresh and n.endswith("_shadow"))) for n, v in bars.items()}
        bars = {n: v for n, v in bars.items() if n not in twice}
        active = [n for n in bars if f"{n}_shadow" in bars or f"{n}_bar" in found.values]
        if wrt is not None:
            asked = {first.parameters[k].name for k in wrt}
            active = [n for n in active if n in asked]
        lanes = [s for p in second.parameters if (s := lanes_shape(p.type))]
        for lane in range(lanes[0][0] if lanes else 1):
            own, left = ((in_lane(vs, lane) if lanes else vs) for vs in (bars, found.values))
            if wrong := self.along(before, first, plain, own, active, Outcome(left)):
                return wrong
        return None

    def along(
        self,
        module: ModuleOp,
        call: Call,
        values: list[Any],
        bars: Mapping[str, Any],
        active: Sequence[str],
        found: Outcome,
    ) -> str | None:
        """Differences of a functional of what a call leaves, against a gradient."""
        direction = self.direction(call, values, active)
        slope = 0.0
        for name in active:
            bar = found.values.get(f"{name}_bar", found.values.get(f"{name}_shadow"))
            slope += dot(bar, direction[name])

        def functional(step: float) -> float:
            left = self.outcome(module, call, moved(call, values, direction, step)).values
            pairs = [(bars.get(f"{n}_bar", bars.get(f"{n}_shadow")), v) for n, v in left.items()]
            return sum(dot(bar, value) for bar, value in pairs if bar is not None)

        best = closest(functional, slope)
        if not abs(best - slope) <= self.tolerance(call) * max(1.0, abs(slope), abs(best)):
            return f"the gradient's slope is {slope:.10g}, that of differences {best:.10g}"
        return None

    def forward(
        self, before: ModuleOp, after: ModuleOp, wrt: Sequence[int] | None = None
    ) -> str | None:
        """Tangents are differences in their direction, lane by lane; what is not in `wrt` stands still."""
        first, second = self.call(before), self.call(after)
        values = self.values(second)
        if wrt is not None:
            asked = {f"{first.parameters[k].name}_dot" for k in wrt}
            values = standing_still(second, values, asked)
        plain = values[: len(first.parameters)]
        primal, found = self.outcome(before, first, plain), self.outcome(after, second, values)
        names = list(primal.values)
        if (wrong := differing(primal, found, names, self.rounding)) or primal.raised:
            return wrong
        dots = {p.name: v for p, v in zip(second.parameters, values, strict=True)}
        lanes = [s for p in second.parameters if (s := lanes_shape(p.type))]
        for lane in range(lanes[0][0] if lanes else 1):
            own = {
                p.name: dots[f"{p.name}_dot"] if not lanes else dots[f"{p.name}_dot"][..., lane]
                for p in first.parameters
                if f"{p.name}_dot" in dots
            }
            for name in [n for n in names if f"{n}_dot" in found.values]:
                dot_ = found.values[f"{name}_dot"]
                wrong = self.tangent(
                    before, first, plain, own, name, dot_ if not lanes else dot_[..., lane]
                )
                if wrong:
                    return wrong
        return None

    def tangent(
        self,
        module: ModuleOp,
        call: Call,
        values: list[Any],
        direction: Mapping[str, Any],
        name: str,
        tangent: Any,
    ) -> str | None:
        """Differences of one result or array, weighted at random."""
        weights = np.random.default_rng(self.seed + 1).standard_normal(np.shape(tangent))
        slope = dot(weights, tangent)

        def functional(step: float) -> float:
            left = self.outcome(module, call, moved(call, values, direction, step)).values
            return dot(weights, left[name])

        best = closest(functional, slope)
        if not abs(best - slope) <= self.tolerance(call) * max(1.0, abs(slope), abs(best)):
            return f"the slope of {name}_dot is {slope:.10g}, that of differences {best:.10g}"
        return None

    def direction(self, call: Call, values: list[Any], names: Sequence[str]) -> dict[str, Any]:
        rng = np.random.default_rng(self.seed + 2)
        known = {p.name: v for p, v in zip(call.parameters, values, strict=True)}
        return {name: rng.standard_normal(np.shape(known[name])) for name in names}

    def tolerance(self, call: Call) -> float:
        single = any("f32" in str(p.type) for p in call.parameters)
        return 2e-2 if single else self.slopes


def plain_names(count: int) -> list[str]:
    return [f"given{k}" for k in range(count)]


def as_programs(gradient: ModuleOp, after: ModuleOp) -> tuple[ModuleOp, ModuleOp]:
    """A gradient function as any other function, and its own gradient: `u_shadow` is an argument of both."""
    made = gradient.clone(), after.clone()
    (first,), (second,) = map(public_functions, made)
    count = len(first.body.block.args)
    for function, dropped in ((first, (*SIGNATURE, "filled")), (second, ("filled",))):
        names = plain_names(count)
        for argument, name in zip(function.body.block.args, names, strict=False):
            argument.name_hint = name
        for key in dropped:
            function.attributes.pop(key, None)
    return made


def shadows_of_zeros(call: Call) -> set[int]:
    """The places of shadows and their tangents that come as zeros, where a function fills the others."""
    function = call.functions[-1]
    if "filled" not in function.attributes:
        return set()
    ends = ("_shadow", "_shadow_dot")
    shadows = {k for k, p in enumerate(call.parameters) if p.name.endswith(ends)}
    return shadows - {*listed(function, "filled")}


def standing_still(call: Call, values: Sequence[Any], asked: set[str]) -> list[Any]:
    """The values, with zeros for tangents that were not asked for, by this or another of their names."""
    pairs = list(zip(call.parameters, values, strict=True))
    moving = {id(v) for p, v in pairs if p.name in asked}
    dots = [v for p, v in pairs if p.name.endswith("_dot")]
    return with_zeros(values, [v for v in dots if id(v) not in moving])


def with_zeros(values: Sequence[Any], those: Sequence[Any]) -> list[Any]:
    """The values, with zeros for some; what is one array with another, stays so."""
    zeros = {id(v): v * 0 for v in those}
    return [zeros.get(id(v), v) for v in values]


def is_gradient(module: ModuleOp) -> bool:
    return any("shadows" in f.attributes for f in public_functions(module))


def lanes_shape(type_: Any) -> tuple[int, ...]:
    return lanes_of(element_of(type_))


def copies(values: Sequence[Any]) -> list[Any]:
    """Copies of the arrays; what is there twice, still is."""
    made: dict[int, Any] = {}
    for value in values:
        if id(value) not in made:
            made[id(value)] = value.copy(order="K") if isinstance(value, np.ndarray) else value
    return [made[id(value)] for value in values]


def in_lane(values: Mapping[str, Any], lane: int) -> dict[str, Any]:
    """Of cotangents those in one lane; what else there is has no lanes."""
    return {
        name: v[..., lane] if name.endswith(("_bar", "_shadow")) else v
        for name, v in values.items()
    }


def is_float(value: Any) -> bool:
    return np.asarray(value).dtype.kind == "f"


def dot(weights: Any, value: Any) -> float:
    if not is_float(value):
        return 0.0
    return float(np.sum(np.asarray(weights, np.float64) * np.asarray(value, np.float64)))


def moved(
    call: Call, values: Sequence[Any], direction: Mapping[str, Any], step: float
) -> list[Any]:
    """The values, so far along a direction."""
    found: dict[int, Any] = {}
    for parameter, value in zip(call.parameters, values, strict=True):
        along = direction.get(parameter.name)
        if id(value) not in found:
            found[id(value)] = value if along is None else shifted(value, step * along)
    return [found[id(value)] for value in values]


def shifted(value: Any, by: Any) -> Any:
    """A number or an array, so far away, in its type."""
    found = np.asarray(value + by, value.dtype)
    return found if isinstance(value, np.ndarray) else found[()]


def closest(functional: Callable[[float], float], slope: float) -> float:
    """The central difference that agrees best."""
    found = [(functional(h) - functional(-h)) / (2 * h) for h in STEPS]
    return min(found, key=lambda d: abs(d - slope) if np.isfinite(d) else np.inf)


def differing(one: Outcome, other: Outcome, names: Sequence[str], rounding: float) -> str | None:
    """What differs between two outcomes, of what is named; what is poison in the first may be anything."""
    if (one.raised is None) != (other.raised is None):
        return f"{raised_text(one)} before, {raised_text(other)} after"
    if one.raised is not None and repr(one.raised) != repr(other.raised):
        return f"{raised_text(one)} before, {raised_text(other)} after"
    for name in names:
        if name not in other.values:
            return f"{name} is gone"
        a, b = np.asarray(one.values[name]), np.asarray(other.values[name])
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{name}: {a.dtype}{list(a.shape)} before, {b.dtype}{list(b.shape)} after"
        if not close(a, b, rounding):
            from mutad.running import number_text

            return f"{name}: {number_text(a[()])} before, {number_text(b[()])} after"
    return None


def raised_text(outcome: Outcome) -> str:
    error = outcome.raised
    return "no exception" if error is None else f"{type(error).__name__}: {error}"


def close(a: Any, b: Any, rounding: float) -> bool:
    known = ~is_poison(np.atleast_1d(a)).reshape(a.shape).astype(bool)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a[known], b[known]))
    scale = np.max(np.abs(a[known & np.isfinite(a)]), initial=0.0)
    loose = rounding if a.dtype == np.float64 else max(rounding, 1e-4)
    return bool(np.allclose(a[known], b[known], rtol=loose, atol=loose * scale, equal_nan=True))

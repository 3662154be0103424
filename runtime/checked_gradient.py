"""What `check_gradient` checks: one function at one point, by its numbers and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import failing_pass, keys, memory, native_code
from .agreement import EXACT, Floats, GradientError, same
from .central_differences import LONG_STEPS, STEPS, GradientReport, Slope
from .cotangents import cotangents_of
from .functionals import dot, has_floats, random_like
from .gradients import run, with_groups
from .second_check import check_second
from .tangents import push
from .vjp import vjp

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .function import CompiledFunction

Array = keys.Array
Generator = np.random.Generator
FLOATS: dict[str, Floats] = {"f32": np.float32, "f64": np.float64}
TOLERANCES: dict[Floats, float] = {np.float32: 2e-2, np.float64: 1e-5}
"""How closely gradients and differences agree, by the narrowest floats on the way."""
ROUNDED_AWAY = 1e-12
"""And absolutely, relative to the size of the function's values: terms of a zero need not be zeros."""


def check_arguments(
    function: CompiledFunction,
    bound: tuple[Any, ...],
    wrt: Any,
    tolerance: float | None = None,
    seed: int = 0,
    second: bool = True,
) -> GradientReport:
    """`check_gradient` of numbers and arrays."""
    dispatcher = function._dispatcher  # pyright: ignore[reportPrivateUsage]
    values = (*bound, *dispatcher.era.captures.values())
    check = GradientCheck(function, values, keys.overlaps_of(values), seed)
    arguments = dispatcher.arguments_of(values)
    if wrt is None:
        own = arguments[: len(dispatcher.parameters)]
        positions = tuple(i for i, a in enumerate(own) if keys.is_active_key(a))
        if not positions:
            raise TypeError("no argument is a float or an array of floats: there is no gradient")
    else:
        positions, _ = dispatcher.resolve_wrt(wrt)
    active = with_groups(dispatcher, values, set(positions), check.overlaps)
    check.rounding, moved = check.precision(active)
    tolerance = tolerance or TOLERANCES[moved]
    try:
        result = check.primal()
        alone = check.value_and_grad(active)
        report = check.differences(active, result, tolerance)
        check.against_pullback(active, alone)
        if second and not check.has_budget:
            check.mode = "hvp"
            check_second(check, active, tolerance)
    except GradientError as error:
        error.args = (f"{error}\n  {failing_pass.pointer(check, arguments, active)}",)
        raise
    return report


@dataclass
class GradientCheck:
    """One function at one point."""

    function: CompiledFunction
    values: tuple[Any, ...]
    overlaps: keys.Overlaps
    seed: int
    rounding: Floats = np.float64
    """The narrowest floats that results are made of."""
    mode: str = "primal"
    """What is being compared, as the compiler calls it."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.function._dispatcher.names  # pyright: ignore[reportPrivateUsage]

    def python(self, *values: Any) -> Any:
        """Call the undecorated function; what it reads from outside is replaced by the last values."""
        dispatcher = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        code: Any = self.function.__wrapped__.__code__  # pyright: ignore[reportFunctionMemberAccess]
        first, count = code.co_argcount, len(dispatcher.parameters)
        by_keyword = dict(zip(self.names[first:count], values[first:count], strict=True))
        with dispatcher.era.captures.replaced(values[count:]):
            return self.function.__wrapped__(*values[:first], **by_keyword)

    def same(self, expected: Any, actual: Any, what: str, *, types: bool = False) -> None:
        """GradientError where two values differ by more than rounding, to the floats they were made of."""
        same(expected, actual, what, types=types, precision=self.rounding)

    def precision(self, active: tuple[int, ...]) -> tuple[Floats, Floats]:
        """The narrowest floats that results are made of, and those of them that the active values move."""
        d = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        asked = d.arguments_of(self.values), self.overlaps, "vjp", active, d.options, d.era.captures
        with native_code.compiling:
            made, moved = d.compiler.precision(d.function, *asked)
        return FLOATS[made], FLOATS[moved]

    def wrt(self, active: Sequence[int]) -> tuple[str, ...]:
        """The active values by name: inputs from outside have no position."""
        return tuple(self.names[p] for p in active)

    def explained(self, active: Sequence[int]) -> Any:
        own = self.fresh()[: len(self.function._dispatcher.parameters)]  # pyright: ignore[reportPrivateUsage]
        return self.function.explain(*own, wrt=self.wrt(active))

    def fresh(self) -> tuple[Any, ...]:
        """Copies of the arguments."""
        return memory.copies(self.values, self.overlaps)

    def primal(self) -> Any:
        """The compiled primal is what CPython computes; its result."""
        self.mode = "primal"
        expected_args, actual_args = self.fresh(), self.fresh()
        expected = self.python(*expected_args)
        dispatcher = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        actual = dispatcher.specialize(actual_args).direct["primal"](*actual_args)
        self.same(expected, actual, "the result", types=True)
        for name, theirs, ours in zip(self.names, expected_args, actual_args, strict=True):
            self.same(theirs, ours, f"argument {name!r} after the call", types=True)
        return actual

    @property
    def has_budget(self) -> bool:
        """Whether steps may be run again, and budgets be too small."""
        return self.function.options["memory"] is not None

    def vjp(
        self, active: Sequence[int], gradients: Any, weights: Any, final: dict[str, Any]
    ) -> None:
        """`vjp` has the primal's value and effects, and gives these gradients whatever happens meanwhile."""
        self.mode = "vjp"
        dispatcher = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        expected_args, actual_args = self.fresh(), self.fresh()
        expected = self.python(*expected_args)
        actual, back = vjp(dispatcher, actual_args, self.wrt(active))
        self.same(expected, actual, "the result of vjp", types=True)
        for name, theirs, ours in zip(self.names, expected_args, actual_args, strict=True):
            self.same(theirs, ours, f"argument {name!r} after vjp", types=True)
        for array in (leaf for value in (*actual_args, actual) for leaf in keys.leaves(value)):
            if array.flags.writeable:
                array.fill(0)
        for which in ("the gradient from vjp", "the gradient from vjp, computed a second time"):
            self.same(gradients, back(weights, **final), which)

    def joint(
        self, dispatcher: Dispatcher, active: tuple[int, ...], weights: Any, final: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The gradient from the function in one piece, which `grad` and `pullback` call."""
        values = self.fresh()
        found = dispatcher.specialize(values, active, "pullback")
        shadows = memory.zero_shadows(values, active, self.overlaps)
        cotangents, of_arguments = cotangents_of(found.results, weights, None)
        of_arguments += [(self.names.index(name), bar) for name, bar in final.items()]
        for position, bar in of_arguments:
            if position in shadows:
                shadows[position] += bar
        _, bars = run(dispatcher, values, active, shadows, cotangents)
        return tuple(shadows[p] if p in shadows else bars[p] for p in active)

    def value_and_grad(self, active: Sequence[int]) -> tuple[Any, ...] | None:
        """`value_and_grad` too, and its gradients share memory as the arguments do; these."""
        self.mode = "gradient"
        dispatcher = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        expected_args, actual_args = self.fresh(), self.fresh()
        expected = self.python(*expected_args)
        if not isinstance(expected, float | np.floating):
            return None
        value, gradients = dispatcher.gradient("value_and_grad", self.wrt(active), actual_args)
        self.same(expected, value, "the value of value_and_grad", types=True)
        for name, theirs, ours in zip(self.names, expected_args, actual_args, strict=True):
            self.same(theirs, ours, f"argument {name!r} after value_and_grad", types=True)
        shared = {(i, j) for i, j, _ in self.overlaps}
        for a, i in enumerate(active):
            for b, j in enumerate(active[:a]):
                pair: tuple[Any, Any] = gradients[a], gradients[b]
                if all(isinstance(g, np.ndarray) for g in pair):
                    together = bool(np.shares_memory(*pair))
                    if together != ((j, i) in shared):
                        raise GradientError(
                            f"the gradients of {self.names[j]!r} and {self.names[i]!r} "
                            f"{'share' if together else 'do not share'} memory, unlike the arguments"
                        )
        return gradients

    def against_pullback(self, active: tuple[int, ...], alone: tuple[Any, ...] | None) -> None:
        """The gradients of `value_and_grad` are what `pullback` adds to zeros."""
        if alone is None:
            return
        own = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        for position, theirs, ours in zip(
            active, self.joint(own, active, 1.0, {}), alone, strict=True
        ):
            self.same(theirs, ours, f"the gradient of value_and_grad for {self.names[position]!r}")

    def differences(self, active: tuple[int, ...], result: Any, tolerance: float) -> GradientReport:
        """The gradient of a random functional agrees with differences in a random direction."""
        self.mode = "gradient"
        rng = np.random.default_rng(self.seed)
        out_bar = random_like(result, rng)
        final: dict[str, Any] = {
            self.names[p]: random_like(self.values[p], rng) for p in self.changed(active)
        }
        direction = self.direction(active, rng)
        weights = out_bar if has_floats(out_bar) else None
        own = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        gradients = self.joint(own, active, weights, final)
        self.against_all(active, gradients, weights, final)
        slope = self.along(active, gradients, direction)

        def functional(step: float) -> float:
            moved = self.moved(active, direction, step)
            value = self.python(*moved)
            total = dot(out_bar, value)
            return total + sum(dot(w, moved[self.names.index(n)]) for n, w in final.items())

        size = float(np.linalg.norm(self.products(active, gradients, direction)))
        values = self.sizes_of(result, out_bar, final)
        eps = float(np.finfo(self.rounding).eps)
        steps = LONG_STEPS if tolerance > 1e-3 else STEPS
        best = Slope(slope, size, values, eps).compared(functional, steps, tolerance)
        if not best.error <= tolerance:
            raise GradientError(f"{self.function.__qualname__}: {best}")
        with (
            suppress(MemoryError) if self.has_budget else nullcontext()
        ):  # more shadows, more saves
            self.vjp(active, gradients, weights, final)
        terms = (slope, size, ROUNDED_AWAY * max(1.0, values))
        self.tangents(active, direction, (out_bar, final), terms, tolerance)
        return best

    def changed(self, active: Sequence[int]) -> list[int]:
        """The arrays that the function stores to, or that share memory with one.

        Final values of others are initial ones: beside their cotangents that of a small result is lost.
        """
        values = self.fresh()
        found = self.function._dispatcher.specialize(values)  # pyright: ignore[reportPrivateUsage]
        stored = {*found.metadata["written"]}
        for group in memory.groups_of(self.overlaps):
            stored |= {*group} if stored & {*group} else set()
        return [p for p in active if p in stored and isinstance(self.values[p], np.ndarray)]

    def sizes_of(self, result: Any, out_bar: Any, final: dict[str, Any]) -> float:
        """The sum of the absolute terms of the functional: of results, and of final values."""
        args = self.fresh()
        self.python(*args)
        pairs = [(out_bar, result), *((w, args[self.names.index(n)]) for n, w in final.items())]
        return sum(dot(w, v, absolute=True) for w, v in pairs)

    def tangents(
        self,
        active: Sequence[int],
        direction: tuple[Any, ...],
        bars: tuple[Any, dict[str, Any]],
        expected_terms: tuple[float, float, float],
        tolerance: float,
    ) -> None:
        """Tangents and cotangents are two sides of one product: <bars, dots> is the slope, up to rounding.

        `expected_terms`: the slope, the size of its terms, and what rounding may have made of a zero.
        """
        self.mode = "tangent"
        dispatcher = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        expected_args, values = self.fresh(), self.fresh()
        expected = self.python(*expected_args)
        dots: dict[int, Any] = {**memory.zero_shadows(values, active, self.overlaps)}
        for position, move in zip(active, direction, strict=True):
            if position in dots:
                dots[position][...] = move
            else:
                dots[position] = float(move)
        try:
            value, value_dot = push(dispatcher, values, dots)
        except Exception as error:
            if getattr(error, "without_tangent", False):
                return
            raise
        self.same(expected, value, "the result of jvp", types=True)
        for name, theirs, ours in zip(self.names, expected_args, values, strict=True):
            self.same(theirs, ours, f"argument {name!r} after jvp", types=True)
        out_bar, final = bars
        pairs = [(out_bar, value_dot), *((w, dots[self.names.index(n)]) for n, w in final.items())]
        terms = [dot(w, d) for w, d in pairs]
        slope, size, rounded = expected_terms
        exact = min(tolerance, EXACT if tolerance < 1e-3 else tolerance)
        error, size = abs(sum(terms) - slope), max(size, abs(slope), *map(abs, terms))
        if not error <= exact * max(size, min(1.0, rounded / EXACT)):
            raise GradientError(
                f"{self.function.__qualname__}: tangents give {sum(terms):.15g} in a direction in which the "
                f"gradient gives {slope:.15g}"
            )

    def against_all(
        self, active: tuple[int, ...], gradients: Any, weights: Any, final: dict[str, Any]
    ) -> None:
        """Saving everything gives the same gradient."""
        own = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        if own.options["saves"] == "all":
            return
        expected = self.planned("all", active, weights, final)
        for position, theirs, ours in zip(active, expected, gradients, strict=True):
            try:
                self.same(theirs, ours, f"the gradient for {self.names[position]!r}")
            except GradientError as error:
                culprit = self.first_mistake(active, expected, weights, final)
                raise GradientError(
                    f'{error}: saves="all" gives another gradient, so the plan of what to save is '
                    f'wrong{culprit}. Use saves="all", and report this.'
                ) from None

    def planned(self, saves: str, active: tuple[int, ...], weights: Any, final: Any) -> Any:
        """The gradients under another plan."""
        own = self.function._dispatcher  # pyright: ignore[reportPrivateUsage]
        other = own.apart(saves=saves, memory=None)
        return self.joint(other, active, weights, final)

    def first_mistake(
        self, active: tuple[int, ...], expected: Any, weights: Any, final: dict[str, Any]
    ) -> str:
        """In words, the first needed value on which the plan decides wrongly; found by bisection.

        The plan that decides on none of the needed values is right, that which decides on all is not.
        """
        needs = self.explained(active).needs
        right, wrong = 0, len(needs)
        while wrong - right > 1:
            middle = (right + wrong) // 2
            gradients = self.planned(f"minimal:{middle}", active, weights, final)
            try:
                for theirs, ours in zip(expected, gradients, strict=True):
                    self.same(theirs, ours, "the gradient")
                right = middle
            except GradientError:
                wrong = middle
        need = needs[wrong - 1]
        line, operation = need.needed_by
        return (
            f": the adjoint of `{operation}` in line {line} does not get back {need.name} "
            f"of line {need.line}"
        )

    def direction(self, active: Sequence[int], rng: Generator) -> tuple[Any, ...]:
        """A random direction for the active arguments; the same memory moves the same way."""
        moves = memory.zero_shadows(self.values, active, self.overlaps)
        for move in moves.values():
            move[...] = rng.standard_normal(move.shape)
        return tuple(moves.get(p, float(rng.standard_normal())) for p in active)

    def moved(
        self, active: Sequence[int], direction: Sequence[Any], step: float
    ) -> tuple[Any, ...]:
        """The arguments, a step along the direction."""
        result = list(self.fresh())
        for position, move in zip(active, direction, strict=True):
            original = self.values[position]
            if isinstance(original, np.ndarray):
                result[position][...] = original + (step * move).astype(original.dtype)
            else:
                result[position] = type(original)(original + step * move)
        return tuple(result)

    def along(
        self, active: Sequence[int], gradients: Sequence[Any], direction: Sequence[Any]
    ) -> float:
        """The inner product of gradient and direction over memory: shared elements count once."""
        return float(np.sum(self.products(active, gradients, direction)))

    def products(
        self, active: Sequence[int], gradients: Sequence[Any], direction: Sequence[Any]
    ) -> Array:
        """Its terms."""
        found: list[Any] = []
        counted: set[int] = set()
        for group in memory.groups_of(self.overlaps):
            places: dict[int, float] = {}
            for gradient, move, position in zip(gradients, direction, active, strict=True):
                if position in group:
                    counted.add(position)
                    products = (np.asarray(gradient, np.float64) * move).ravel()
                    addresses = memory.addresses(self.values[position])
                    places.update(zip(addresses.tolist(), products.tolist(), strict=True))
            found.append(list(places.values()))
        for gradient, move, position in zip(gradients, direction, active, strict=True):
            if position not in counted:
                found.append(np.ravel(np.asarray(move, np.float64) * gradient))
        return np.concatenate([np.asarray(one, np.float64) for one in found])

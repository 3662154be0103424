"""One program at one size: contestants are compared, then timed."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import mutad
from mutad.runtime.measure import measure_gradient

from .. import by_hand, in_enzyme
from ..timing import Call, console, interleaved, peer
from .program import Program

OURS, NUMPY, NUMBA, BY_HAND = "ours", "NumPy", "Numba", "by hand"
JAX, EXPERT, ENZYME = "JAX", "expert", "Enzyme"
PATIENCE = 3.0
"""Seconds that the rounds of one contestant may take."""
STEP = 2e-4
"""Of differences."""
CLOSE = 1e-8
"""How far results may be apart, over the largest element."""


@dataclass(eq=False)
class Row:
    """What was found out about one program at one size."""

    program: Program
    size: int
    primal: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds of one call, by contestant."""
    gradient: dict[str, float] = field(default_factory=dict[str, float])
    peak: dict[str, int] = field(default_factory=dict[str, int])
    """The most bytes that a gradient call holds, its results included."""
    compiling: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds from the Python function to the first gradient (of Numba: to the first value)."""
    saved: int | None = None
    other_algorithm: bool = False
    """The expert's form is not this program's algorithm."""

    def says(self, note: str) -> None:
        console.print(f"[yellow]{self.program.name}: {note}")

    def primal_over(self, name: str) -> float | None:
        """Another's time over ours."""
        return self.primal[name] / self.primal[OURS] if name in self.primal else None

    def gradient_over(self, name: str) -> float | None:
        return self.gradient[name] / self.gradient[OURS] if name in self.gradient else None

    def over_hand(self) -> float | None:
        """Our gradient over that by hand."""
        over = self.gradient_over(BY_HAND)
        return None if over is None else 1.0 / over

    def jax_over_hand(self) -> float | None:
        """What JAX as written leaves to the best adjoint that is known."""
        if JAX not in self.gradient or BY_HAND not in self.gradient:
            return None
        return self.gradient[JAX] / self.gradient[BY_HAND]

    def jax_over_primal(self) -> float | None:
        """What it leaves to a gradient that takes one primal of ours."""
        return self.gradient[JAX] / self.primal[OURS] if JAX in self.gradient else None

    def best_primal(self) -> float | None:
        """The best peer's, code by hand aside."""
        names = [NUMPY, NUMBA, JAX, *([] if self.other_algorithm else [EXPERT])]
        return min((r for name in names if (r := self.primal_over(name)) is not None), default=None)

    def better_jax(self, same: bool = False) -> float | None:
        """The better of JAX's two forms; of the same algorithm only where that is asked."""
        names = [JAX] if same and self.other_algorithm else [JAX, EXPERT]
        return min(
            (r for name in names if (r := self.gradient_over(name)) is not None), default=None
        )


def peers(quick: bool) -> dict[str, Any]:
    """The peers that are there; a line about each that is not."""
    if (numba := peer("numba")) is not None:
        warnings.simplefilter("ignore", numba.core.errors.NumbaPerformanceWarning)
    if quick:
        return {"numba": numba, "jax": None, "enzyme": None}
    if (jax := peer("jax")) is not None:
        jax.config.update("jax_enable_x64", True)
    enzyme = None if in_enzyme.tools() is None else in_enzyme.gradient
    return {"numba": numba, "jax": jax, "enzyme": enzyme}


def measured(
    program: Program, size: int, libraries: dict[str, Any], rounds: int, seconds: float
) -> Row:
    row = Row(program, size)
    arguments = program.make(size)
    try:
        ours = compiled(row, arguments)
        check_tiny(program)
        value, gradients = ours.value_and_grad(*arguments, wrt=program.wrt)
    except (mutad.CompileError, AssertionError) as error:
        row.says(f"ours is wrong or refused: {str(error).strip()[:300]}")
        return row
    of_value, of_gradient = contestants(row, ours, arguments, libraries)
    agreeing(row, of_value, lambda found: difference(found, value))
    agreeing(row, of_gradient, lambda found: gradient_difference(found, value, gradients))
    memory(row, ours, arguments, gradients)
    together = {
        **{("value", name): call for name, call in of_value.items()},
        **{("gradient", name): call for name, call in of_gradient.items()},
    }
    times = timed(together, rounds, seconds)
    row.primal = {name: t for (what, name), t in times.items() if what == "value"}
    row.gradient = {name: t for (what, name), t in times.items() if what == "gradient"}
    return row


def contestants(
    row: Row, ours: mutad.CompiledFunction, arguments: tuple[Any, ...], libraries: dict[str, Any]
) -> tuple[dict[str, Call], dict[str, Call]]:
    """Calls on these arguments: of the values, of the gradients with their values."""
    program, name = row.program, row.program.by_hand
    function, wrt = program.function, program.wrt
    of_value: dict[str, Call | None] = {OURS: lambda: ours(*arguments)}
    of_gradient: dict[str, Call | None] = {OURS: lambda: ours.value_and_grad(*arguments, wrt=wrt)}
    if not program.loops:
        of_value[NUMPY] = lambda: function(*arguments)
    if libraries["numba"] is not None:
        of_value[NUMBA] = in_numba(row, libraries["numba"], arguments)
    if name:
        of_value[BY_HAND] = by_hand.primal(name, arguments)
        of_gradient[BY_HAND] = by_hand.gradient(name, function, arguments, wrt)
    for kind, form in in_jax(row, libraries["jax"], arguments).items():
        of_value[kind], of_gradient[kind] = form.value, form.gradient
    if libraries["enzyme"] is not None:
        of_gradient[ENZYME] = libraries["enzyme"](program.name, function, arguments, wrt)
    return present(of_value), present(of_gradient)


def present(calls: dict[str, Call | None]) -> dict[str, Call]:
    return {name: call for name, call in calls.items() if call is not None}


def timed(
    contestants: dict[tuple[str, str], Call], rounds: int, seconds: float
) -> dict[tuple[str, str], float]:
    """Medians by processor time."""
    named = {f"{what} {name}": call for (what, name), call in contestants.items()}
    found = interleaved(
        named, rounds=rounds, seconds=seconds, clock=time.process_time, patience=PATIENCE
    )
    return {(what, name): found[f"{what} {name}"] for what, name in contestants}


# Contestants


def compiled(row: Row, arguments: tuple[Any, ...]) -> mutad.CompiledFunction:
    """Ours, with the time of its first gradient; the compiler itself is loaded before."""
    warm()
    ours = mutad.compile(row.program.function, grad=True, cache=False)
    start = time.process_time()
    ours.grad(*row.program.make(row.program.tiny), wrt=row.program.wrt)
    row.compiling[OURS] = time.process_time() - start
    row.saved = ours.explain(*arguments, wrt=row.program.wrt).saved_bytes
    return ours


@cache
def warm() -> None:
    """Load the compiler, once."""
    mutad.compile(lambda x: x * x, grad=True, cache=False).grad(2.0)


def in_numba(row: Row, numba: Any, arguments: tuple[Any, ...]) -> Callable[[], Any] | None:
    """`numba.njit` of the same source, and of the functions of the file that it calls."""
    made = jitted(numba, row.program.function)
    start = time.process_time()
    try:
        made(*row.program.make(row.program.tiny))
    except numba.core.errors.NumbaError as error:
        row.says(f"Numba refuses it: {refusal(error)}")
        return None
    row.compiling[NUMBA] = time.process_time() - start
    return lambda: made(*arguments)


def in_jax(row: Row, jax: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The forms in JAX, compiled."""
    if jax is None:
        return {}
    from .. import jax_forms

    row.other_algorithm = row.program.name in jax_forms.OTHER_ALGORITHMS
    made: dict[str, Any] = {}
    for name, form in jax_forms.forms(row.program.name).items():
        made[name] = jax_forms.Form(jax, form, arguments, row.program.wrt)
        row.compiling[name], row.peak[name] = made[name].seconds, made[name].peak()
    return made


def refusal(error: Exception) -> str:
    """The line of Numba's message that tells most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = ("No implementation", "got an unexpected", "Use of unsupported", "Unknown", "Invalid")
    return next((line for line in lines if line.startswith(telling)), lines[0])[:90]


def jitted(numba: Any, function: Any) -> Any:
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        inner = scope.get(name)
        if isinstance(inner, type(jitted)) and inner.__module__ == function.__module__:
            scope[name] = jitted(numba, inner)
    return numba.njit(type(function)(function.__code__, scope, function.__name__))


# Agreement


def check_tiny(program: Program, opt: int = 3) -> None:
    """At a tiny size: values are Python's, and the gradient's slope in a direction that of differences."""
    arguments = program.make(program.tiny)
    expected = program.function(*arguments)
    ours = mutad.compile(program.function, grad=True, opt=opt)
    np.testing.assert_allclose(ours(*arguments), expected, rtol=1e-10)
    value, gradients = ours.value_and_grad(*arguments, wrt=program.wrt)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    parameters = list(inspect.signature(program.function).parameters)
    rng = np.random.default_rng(1)
    moves = {
        parameters.index(name): rng.normal(size=np.shape(g))
        for name, g in zip(program.wrt, gradients, strict=True)
    }
    slope = sum(float(np.vdot(g, m)) for g, m in zip(gradients, moves.values(), strict=True))

    def central(step: float) -> float:
        ahead, behind = (
            program.function(
                *(a + h * moves[k] if k in moves else a for k, a in enumerate(arguments))
            )
            for h in (step, -step)
        )
        return (ahead - behind) / (2.0 * step)

    fourth_order = (4.0 * central(STEP / 2) - central(STEP)) / 3.0
    np.testing.assert_allclose(slope, fourth_order, rtol=1e-6)


def difference(found: Any, expected: Any) -> float:
    """The largest difference over the largest element."""
    scale = float(np.abs(expected).max()) or 1.0
    return float(np.abs(np.asarray(found) - expected).max()) / scale


def difference_of_all(found: tuple[Any, ...], expected: tuple[Any, ...]) -> float:
    return max(difference(a, b) for a, b in zip(found, expected, strict=True))


def gradient_difference(found: Any, value: Any, gradients: tuple[Any, ...]) -> float:
    return difference_of_all((found[0], *found[1]), (value, *gradients))


def agreeing(
    row: Row, contestants: dict[str, Callable[[], Any]], apart: Callable[[Any], float]
) -> None:
    """Leave out who does not compute what we do, and say so."""
    for name, call in list(contestants.items()):
        if not (how_far := apart(call())) <= CLOSE:
            row.says(f"{name} and ours differ by {how_far:.1e}")
            del contestants[name]


def memory(
    row: Row, ours: mutad.CompiledFunction, arguments: tuple[Any, ...], gradients: tuple[Any, ...]
) -> None:
    row.peak[OURS] = measure_gradient(ours, *arguments, wrt=row.program.wrt).total
    name = row.program.by_hand
    call = (
        by_hand.gradient(name, row.program.function, arguments, row.program.wrt) if name else None
    )
    if call is not None:
        by_hand.peak(name)
        call()
        row.peak[BY_HAND] = by_hand.peak(name) + sum(np.asarray(g).nbytes for g in gradients)

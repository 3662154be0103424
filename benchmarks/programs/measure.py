"""One program at one size: contestants are compared, then timed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import mutad
from mutad.runtime.measure import measure_gradient

from .. import by_hand
from ..timing import Call, console, interleaved, peer
from .program import Program

OURS, NUMPY, NUMBA, BY_HAND = "ours", "NumPy", "Numba", "by hand"
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
    notes: list[str] = field(default_factory=list[str])

    def says(self, note: str) -> None:
        self.notes.append(note)
        console.print(f"[yellow]{self.program.name}: {note}")


def peers() -> dict[str, Any]:
    """The libraries that are there; a line about each that is not."""
    if (numba := peer("numba")) is not None:
        warnings.simplefilter("ignore", numba.core.errors.NumbaPerformanceWarning)
    return {"numba": numba}


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
    of_value: dict[str, Callable[[], Any]] = {OURS: lambda: ours(*arguments)}
    of_gradient: dict[str, Callable[[], Any]] = {
        OURS: lambda: ours.value_and_grad(*arguments, wrt=program.wrt)
    }
    if not program.loops:
        of_value[NUMPY] = lambda: program.function(*arguments)
    if libraries["numba"] is not None and (made := in_numba(row, libraries["numba"], arguments)):
        of_value[NUMBA] = made
    if program.by_hand:
        value_by_hand = by_hand.primal(program.by_hand, arguments)
        gradient_by_hand = by_hand.gradient(
            program.by_hand, program.function, arguments, program.wrt
        )
        if value_by_hand is not None and gradient_by_hand is not None:
            of_value[BY_HAND], of_gradient[BY_HAND] = value_by_hand, gradient_by_hand
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


def timed(
    contestants: dict[tuple[str, str], Call], rounds: int, seconds: float
) -> dict[tuple[str, str], float]:
    """Medians by processor time."""
    named = {f"{what} {name}": call for (what, name), call in contestants.items()}
    found = interleaved(named, rounds=rounds, seconds=seconds, clock=time.process_time)
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
    """At a tiny size: the value is Python's, and the gradient that of differences."""
    arguments = program.make(program.tiny)
    ours = mutad.compile(program.function, grad=True, opt=opt)
    np.testing.assert_allclose(ours(*arguments), program.function(*arguments), rtol=1e-10)
    mutad.check_gradient(ours, *arguments, wrt=program.wrt)


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

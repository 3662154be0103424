"""Gradients held against central differences of the undecorated function, taken with respect to memory.

For random cotangents of the result and of every argument's final contents, let
phi(memory) = <result_bar, result> + <final_bar, final contents>. A pullback must return the derivative
of phi, and that is measured without any of the compiler: the function runs under CPython on memory moved
along random directions, in float64, and Richardson's extrapolation over a grid of steps gives
ten digits. An element that two arguments share is moved once, so sharing is part of what is checked.

What this cannot see: the convention at a kink (those tests give closed forms), and how much was saved.
"""

from __future__ import annotations

import inspect
import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from argument_rows import Row, expanded, make_arguments, memory_of
from python_oracle import Function, Outcome, Tolerance, arrays_in, assert_same, compiled, level, run

from mutad import Active, Const, Duplicated

DIRECTIONS = 2
STEPS = tuple(2.0**-k for k in range(5, 15))


def is_differentiable(value: Any) -> bool:
    """True for float arrays and float scalars, Python's and NumPy's."""
    return isinstance(value, float) or (
        isinstance(value, np.ndarray | np.generic) and np.issubdtype(value.dtype, np.floating)
    )


def differentiable_positions(arguments: Sequence[Any]) -> tuple[int, ...]:
    return tuple(k for k, a in enumerate(arguments) if is_differentiable(a))


def at_the_same_place(array: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """The view of `memory` that lies in it as `array` lies in the memory that owns it."""
    owner = memory_of(array)
    start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    scale = memory.itemsize / array.itemsize
    return np.ndarray(
        array.shape,
        memory.dtype,
        memory,
        int(start * scale),
        tuple(int(s * scale) for s in array.strides),
    )


def flat(owner: np.ndarray) -> np.ndarray:
    """The memory of an array that owns it, in the order of addresses."""
    elements = owner.ravel(order="K")
    assert elements.size == 0 or np.shares_memory(elements, owner)
    return elements


@dataclass
class Memory:
    """The active arguments of one call: the arrays that own their memory, each once, and the scalars."""

    arguments: tuple[Any, ...]
    active: tuple[int, ...]
    owners: list[np.ndarray] = field(default_factory=list[np.ndarray])

    def __post_init__(self) -> None:
        for k in self.active:
            owner = (
                memory_of(self.arguments[k]) if isinstance(self.arguments[k], np.ndarray) else None
            )
            if owner is not None and not any(owner is o for o in self.owners):
                self.owners.append(owner)

    def like(self, dtype: Any = None) -> list[np.ndarray]:
        """Zeros in the shape of every owner."""
        return [np.zeros(o.size, dtype or o.dtype) for o in self.owners]

    def view(self, position: int, buffers: list[np.ndarray]) -> np.ndarray:
        """What the argument at `position` sees of `buffers`."""
        argument = self.arguments[position]
        owner = next(k for k, o in enumerate(self.owners) if o is memory_of(argument))
        return at_the_same_place(argument, buffers[owner])


def differentiated(function: Function, direction: Direction) -> float:
    """d phi / d step along `direction`, from CPython runs in float64."""

    def phi(step: float) -> float:
        outcome = run(function, lambda: direction.moved(step))
        if outcome.exception is not None:
            raise NotSmoothHereError("it raises close by") from outcome.exception
        return direction.paired(outcome.result, outcome.arguments)

    def central(step: float) -> float:
        return (phi(step) - phi(-step)) / (2 * step)

    coarse = [central(h) for h in STEPS]
    return best_agreeing([(4 * b - a) / 3 for a, b in itertools.pairwise(coarse)])


class NotSmoothHereError(Exception):
    """Central differences do not converge: the point lies at a kink, or the program is chaotic."""


def best_agreeing(estimates: list[float]) -> float:
    """The estimate that its neighbour confirms best: chosen without knowing the answer sought."""
    gaps = [abs(a - b) for a, b in itertools.pairwise(estimates)]
    best = int(np.argmin(gaps))
    if not gaps[best] <= 1e-8 * max(1.0, abs(estimates[best])):
        raise NotSmoothHereError(f"estimates {estimates}")
    return estimates[best + 1]


@dataclass
class Direction:
    """A random move of the active memory and scalars, with the cotangents that phi pairs results with."""

    row: Row
    active: tuple[int, ...]
    moves: list[np.ndarray]
    scalar_moves: dict[int, float]
    result_bar: Any
    final_bars: list[np.ndarray]

    def moved(self, step: float) -> tuple[Any, ...]:
        """The arguments, in float64, with the active memory moved."""
        arguments = make_arguments(in_float64(self.row))
        memory = Memory(arguments, self.active)
        for owner, move in zip(memory.owners, self.moves, strict=True):
            owned = flat(owner)
            owned += step * move
        return tuple(
            type(a)(a + step * self.scalar_moves[k]) if k in self.scalar_moves else a
            for k, a in enumerate(arguments)
        )

    def paired(self, result: Any, final: tuple[Any, ...]) -> float:
        """<result_bar, result> + <final_bar, final contents>."""
        memory = Memory(final, self.active)
        total = paired_result(self.result_bar, result)
        for bar, owner in zip(self.final_bars, memory.owners, strict=True):
            total += float(np.dot(bar, flat(owner)))
        return total

    def predicted(
        self, memory_bars: list[np.ndarray], scalar_bars: dict[int, float]
    ) -> tuple[float, float]:
        """The derivative that a gradient claims, and the size of the terms that make it."""
        terms = [m * b.astype(float) for m, b in zip(self.moves, memory_bars, strict=True)]
        terms += [np.array([move * float(scalar_bars[k])]) for k, move in self.scalar_moves.items()]
        return sum(float(t.sum()) for t in terms), sum(float(np.abs(t).sum()) for t in terms)


def paired_result(bar: Any, result: Any) -> float:
    if isinstance(result, tuple):
        return sum(paired_result(b, r) for b, r in zip(bar, result, strict=True))
    return 0.0 if bar is None else float(np.sum(np.asarray(bar, float) * np.asarray(result, float)))


def in_float64(row: Row) -> Row:
    return row.replace("f32", "f64") if isinstance(row, str) else row


def random_cotangent(rng: np.random.Generator, result: Any, without: Sequence[Any] = ()) -> Any:
    """A cotangent for a result, in its type; None for what has no derivative, and for objects in `without`.

    (`pullback` takes the cotangent of an argument that is returned in that argument's shadow.)
    """
    if isinstance(result, tuple):
        return tuple(random_cotangent(rng, r, without) for r in result)
    if not is_differentiable(result):
        return None
    if isinstance(result, np.ndarray) and any(result is w for w in without):
        return None
    if isinstance(result, np.ndarray):
        return rng.uniform(0.5, 1.5, result.shape).astype(result.dtype)
    return type(result)(rng.uniform(0.5, 1.5))


def random_direction(
    row: Row, active: tuple[int, ...], result_bar: Any, final_bars: list[np.ndarray], seed: int
) -> Direction:
    """A move of every element that an active argument sees."""
    rng = np.random.default_rng(seed)
    arguments = make_arguments(row)
    memory = Memory(arguments, active)
    seen = memory.like(bool)
    for k in active:
        if isinstance(arguments[k], np.ndarray):
            memory.view(k, seen)[...] = True
    moves = [
        np.where(s, rng.choice([-1.0, 1.0], s.size) * rng.uniform(0.5, 1.0, s.size), 0.0)
        for s in seen
    ]
    scalars = {
        k: float(rng.uniform(0.5, 1.0)) for k in active if not isinstance(arguments[k], np.ndarray)
    }
    return Direction(row, active, moves, scalars, result_bar, final_bars)


@dataclass(frozen=True)
class GradientCase:
    """One gradient of one program at one point."""

    function: Function
    row: Row
    exact: Callable[..., Any] | None = None
    numeric: bool = True
    relative: float = 1e-7
    saved: Callable[..., int] | int | None = None
    """The bytes that the gradient saves, or a function of the arguments that says so."""
    options: tuple[tuple[str, Any], ...] = ()
    first: bool = False
    """Whether it is the first row of its program."""

    def __str__(self) -> str:
        row = self.row if isinstance(self.row, str) else getattr(self.row, "__name__", "made")
        return f"{self.function.__name__}: {row}"

    @property
    def tolerance(self) -> float:
        return 3e-4 if isinstance(self.row, str) and "f32" in self.row else self.relative

    @property
    def level(self) -> dict[str, int]:
        """LLVM's level for `pullback`."""
        return level(self.function, str(self), first=self.first)

    @property
    def level_of_calls(self) -> dict[str, int]:
        """LLVM's level for `grad` and `value_and_grad`: users' for one row in three, first or not (of these
        too a part each day), since what LLVM is given is nearly that of `pullback`."""
        return level(self.function, str(self), first=False)

    def compiled(self, **options: Any) -> Any:
        return compiled(self.function, **{"grad": True, **options, **dict(self.options)})

    def arguments(self) -> tuple[Any, ...]:
        return make_arguments(self.row)

    def active(self) -> tuple[int, ...]:
        return differentiable_positions(self.arguments())

    # The checks, one claim each.

    def check_pullback(self, saves: str = "minimal") -> None:
        """`pullback` from random cotangents of the result and of all final contents."""
        function = self.compiled(saves=saves, **self.level)
        active = self.active()
        plain = run(self.function, self.row)
        if plain.exception is not None:
            raise plain.exception
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        result_bar = random_cotangent(rng, plain.result, plain.arguments)
        memory = Memory(self.arguments(), active)
        finals = [rng.uniform(0.5, 1.5, s.size).astype(s.dtype) for s in memory.like()]
        shadows = [f.copy() for f in finals]
        result, scalar_bars = self.pull_back(function, memory, shadows, result_bar)
        self.assert_effects(plain, result, memory.arguments)
        seen = memory.like(bool)
        for k in active:
            if isinstance(memory.arguments[k], np.ndarray):
                memory.view(k, seen)[...] = True
        for s, shadow, final in zip(seen, shadows, finals, strict=True):
            assert np.array_equal(shadow[~s], final[~s]), "a shadow was written outside of its view"
        if self.numeric:
            within = [np.where(s, f, 0).astype(float) for s, f in zip(seen, finals, strict=True)]
            inside = [np.where(s, b, 0) for s, b in zip(seen, shadows, strict=True)]
            self.assert_derivative(result_bar, within, inside, scalar_bars)

    def pull_back(
        self, function: Any, memory: Memory, shadows: list[np.ndarray], result_bar: Any
    ) -> tuple[Any, dict[int, Any]]:
        """Call `pullback` with every differentiable argument active, in the caller's `shadows`."""
        wrapped: list[Any] = []
        for k, a in enumerate(memory.arguments):
            if k not in memory.active:
                wrapped.append(Const(a))
            elif isinstance(a, np.ndarray):
                wrapped.append(Duplicated(a, memory.view(k, shadows)))
            else:
                wrapped.append(Active(a))
        has_cotangent = contains_cotangent(result_bar)
        keywords = {"cotangent": result_bar} if has_cotangent else {}
        result, bars = function.pullback(*wrapped, **keywords)
        scalars = [k for k in memory.active if not isinstance(memory.arguments[k], np.ndarray)]
        return result, dict(zip(scalars, bars, strict=True))

    def assert_derivative(
        self,
        result_bar: Any,
        final_bars: list[np.ndarray],
        memory_bars: list[np.ndarray],
        scalar_bars: dict[int, Any],
    ) -> None:
        """The cotangents agree with central differences along random directions."""
        for seed in range(DIRECTIONS):
            direction = random_direction(self.row, self.active(), result_bar, final_bars, seed)
            claimed, size = direction.predicted(memory_bars, scalar_bars)
            measured = differentiated(self.function, direction)
            error, allowed = (
                abs(claimed - measured),
                self.tolerance * max(size, abs(measured), 1e-4),
            )
            assert error <= allowed, (
                f"claims {claimed!r}, measured {measured!r} (terms add up to {size!r})"
            )

    def plain(self) -> Outcome:
        """The plain call, compiled: by the function whose products are checked, which needs it as well."""
        return run(self.compiled(opt=1), self.row)

    def assert_effects(self, plain: Outcome, result: Any, arguments: tuple[Any, ...]) -> None:
        """Result and final contents are those of the plain call: CPython's, or the compiled one.

        Where a loop may make NumPy's float of Python's (docs/contract.md), the compiled call says which.
        """
        if isinstance(result, float) and type(result) is not type(plain.result):
            plain = self.plain()
        if plain.exception is not None:
            raise plain.exception
        assert_close(result, plain.result, "result")
        for k, (got, want) in enumerate(zip(arguments, plain.arguments, strict=True)):
            assert_close(got, want, f"argument {k}")
            if isinstance(want, np.ndarray):
                assert_close(memory_of(got), memory_of(want), f"memory of argument {k}")

    def check_gradient(self, saves: str = "minimal") -> None:
        """`value_and_grad` and `grad`: type, effects, closed form, central differences, second use."""
        function = self.compiled(saves=saves, **self.level_of_calls)
        active = self.active()
        arguments = self.arguments()
        value, gradients = function.value_and_grad(*arguments, wrt=active)
        self.assert_effects(run(self.function, self.row), value, arguments)
        initial = self.arguments()
        assert isinstance(gradients, tuple)
        assert len(gradients) == len(active)
        for k, gradient in zip(active, gradients, strict=True):
            assert_same_kind(gradient, initial[k])
        self.assert_aliases(gradients, initial, active)
        if self.exact is not None:
            want = self.exact(*initial)
            self.assert_exact(gradients, want if isinstance(want, tuple) else (want,))
        again = function.grad(*self.arguments(), wrt=active)
        for first, second in zip(gradients, again, strict=True):
            assert_same(second, first, Tolerance(), initial, "gradient of the second call")
        if self.numeric:
            memory = Memory(initial, active)
            bars = memory.like(float)
            for k, g in zip(active, gradients, strict=True):
                if isinstance(g, np.ndarray):
                    memory.view(k, bars)[...] = g
            scalars = {
                k: g
                for k, g in zip(active, gradients, strict=True)
                if not isinstance(g, np.ndarray)
            }
            self.assert_derivative(1.0, [np.zeros(o.size) for o in memory.owners], bars, scalars)

    def assert_exact(self, gradients: tuple[Any, ...], want: tuple[Any, ...]) -> None:
        for k, (g, w) in enumerate(zip(gradients, want, strict=True)):
            tolerance = 1e-5 if isinstance(self.row, str) and "f32" in self.row else 1e-13
            w = np.broadcast_to(np.asarray(w, float), np.shape(g))
            assert np.allclose(g, w, rtol=tolerance, atol=tolerance), (
                f"gradient {k} is {g!r}, exactly {w!r}"
            )

    def assert_aliases(
        self, gradients: tuple[Any, ...], arguments: tuple[Any, ...], active: tuple[int, ...]
    ) -> None:
        """Two gradients share memory if and only if their arguments do."""
        for a, ga in zip(active, gradients, strict=True):
            for b, gb in zip(active, gradients, strict=True):
                if (
                    isinstance(ga, np.ndarray)
                    and isinstance(gb, np.ndarray)
                    and ga.size
                    and gb.size
                ):
                    together = np.shares_memory(arguments[a], arguments[b])
                    assert np.shares_memory(ga, gb) == together, f"gradients {a} and {b}"

    def check_saves_all(self) -> None:
        """Saving every value gives the same cotangents as the plan, up to rounding."""
        rng = np.random.default_rng(1)
        plain = run(self.function, self.row)
        result_bar = random_cotangent(rng, plain.result, plain.arguments)
        pulled: list[Any] = []
        for function in (self.compiled(**self.level), self.compiled(saves="all", opt=1)):
            memory = Memory(self.arguments(), self.active())
            shadows = [np.linspace(0.5, 1.5, s.size).astype(s.dtype) for s in memory.like()]
            _, bars = self.pull_back(function, memory, shadows, result_bar)
            pulled.append((*shadows, *bars.values()))
        assert_close(pulled[1], pulled[0], "saves='all'", single=self.is_single)

    def check_saved(self) -> None:
        """`explain` says that as much is saved as the program makes necessary."""
        assert self.saved is not None
        arguments = self.arguments()
        receipt = self.compiled().explain(*arguments, wrt=self.active())
        saved = self.saved(*arguments) if callable(self.saved) else self.saved
        assert receipt.saved_bytes == saved, str(receipt)

    def check_vjp(self) -> None:
        """`vjp` is the derivative too; `back` runs twice, whatever the caller stores meanwhile."""
        active = self.active()
        arguments = self.arguments()
        names = list(inspect.signature(self.function).parameters)
        result, back = self.compiled(opt=1).vjp(*arguments, wrt=active)
        self.assert_effects(self.plain(), result, arguments)
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        result_bar = random_cotangent(rng, result)
        initial = self.arguments()
        memory = Memory(initial, active)
        alone = [
            k
            for k in active
            if isinstance(initial[k], np.ndarray)
            and not any(np.shares_memory(initial[k], initial[j]) for j in active if j != k)
        ]
        finals = memory.like(float)
        final_bars: dict[str, np.ndarray] = {}
        for k in alone:
            bar = rng.uniform(0.5, 1.5, initial[k].shape).astype(initial[k].dtype)
            final_bars[names[k]] = bar
            memory.view(k, finals)[...] = bar
        first = self.call_back(back, result_bar, final_bars)
        for a in arrays_in(arguments):
            a.fill(0)
        second = self.call_back(back, result_bar, final_bars)
        assert isinstance(first, tuple)
        for f, s in zip(first, second, strict=True):
            assert_same(s, f, Tolerance(), initial, "second use of back")
        if self.numeric:
            bars = memory.like(float)
            for k, g in zip(active, first, strict=True):
                if isinstance(g, np.ndarray):
                    memory.view(k, bars)[...] = g
            scalars = {
                k: g for k, g in zip(active, first, strict=True) if not isinstance(g, np.ndarray)
            }
            self.assert_derivative(result_bar, finals, bars, scalars)

    def call_back(self, back: Any, result_bar: Any, final_bars: dict[str, np.ndarray]) -> Any:
        return (
            back(result_bar, **final_bars) if contains_cotangent(result_bar) else back(**final_bars)
        )

    @cached_property
    def is_single(self) -> bool:
        """Whether an array is of floats32: then sums of it are, whatever type holds them at last."""
        arrays = (v for v in self.arguments() if isinstance(v, np.ndarray))
        return any(v.dtype == np.float32 for v in arrays)

    @cached_property
    def is_scalar_valued(self) -> bool:
        result = run(self.function, self.row).result
        return is_differentiable(result) and not isinstance(result, np.ndarray)


def contains_cotangent(bar: Any) -> bool:
    return any(contains_cotangent(b) for b in bar) if isinstance(bar, tuple) else bar is not None


def assert_same_kind(gradient: Any, argument: Any) -> None:
    """A gradient has its argument's type: an array its shape and dtype, a scalar its type."""
    assert type(gradient) is type(argument), (
        f"{type(gradient).__name__} for {type(argument).__name__}"
    )
    if isinstance(argument, np.ndarray):
        assert gradient.shape == argument.shape
        assert gradient.dtype == argument.dtype


def assert_close(got: Any, want: Any, where: str, *, single: bool = False) -> None:
    """Equal in type and up to the rounding of another order of the same operations; `single`: of floats32."""
    assert type(got) is type(want), where
    if isinstance(want, tuple):
        assert len(got) == len(want), where
        for k, (g, w) in enumerate(zip(got, want, strict=True)):
            assert_close(g, w, f"{where}[{k}]", single=single)
    elif isinstance(want, np.ndarray | np.generic | float | int):
        g, w = np.asarray(got), np.asarray(want)
        assert g.shape == w.shape, where
        assert g.dtype == w.dtype, where
        rounding = 2e-5 if single or w.dtype == np.float32 else 1e-12
        finite = np.abs(np.where(np.isfinite(w), w, 0)) if w.size else np.zeros(1)
        assert np.allclose(g, w, rtol=rounding, atol=rounding * finite.max(), equal_nan=True), (
            f"{where}: {got!r} is not {want!r}"
        )
    else:
        assert got is want, where


@dataclass
class GradientPrograms:
    """A table of gradient cases, filled by the decorator `on`; `first` has one row of each program."""

    cases: list[GradientCase] = field(default_factory=list[GradientCase])

    @property
    def called(self) -> list[GradientCase]:
        """One row of each scalar-valued program, and every row whose gradient is known exactly.

        (The other rows go through `pullback`, which runs the same reverse sweep.)
        """
        wanted = (c for c in self.cases if c.first or c.exact is not None)
        return [c for c in wanted if c.is_scalar_valued]

    @property
    def accounted(self) -> list[GradientCase]:
        return [c for c in self.cases if c.saved is not None]

    @property
    def first(self) -> list[GradientCase]:
        return [c for c in self.cases if c.first]

    @property
    def twice(self) -> list[GradientCase]:
        """One row of each scalar-valued program that can be differentiated numerically."""
        return [c for c in self.first if c.numeric and c.is_scalar_valued]

    def on(
        self,
        *rows: Row,
        exact: Callable[..., Any] | None = None,
        numeric: bool = True,
        relative: float = 1e-7,
        saved: Callable[..., int] | int | None = None,
        options: Any = (),
        **letters: str,
    ) -> Callable[[Function], Function]:
        def record(function: Function) -> Function:
            chosen = tuple(dict(options).items())
            known = any(c.function is function for c in self.cases)
            texts = [
                r for row in rows for r in ([row] if callable(row) else expanded(row, letters))
            ]
            self.cases += [
                GradientCase(
                    function, r, exact, numeric, relative, saved, chosen, first=k == 0 and not known
                )
                for k, r in enumerate(texts)
            ]
            return function

        return record

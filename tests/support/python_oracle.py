"""CPython with NumPy is the specification: run a function both ways and compare all a caller can see."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from argument_rows import Row, expanded, make_arguments, memory_of
from turns import has_turn

import mutad
from mutad.runtime.target import VARIABLE

Function = Callable[..., Any]


def compiled(function: Function, **options: Any) -> Any:
    """The one compiled form of `function` under these options: specializations are shared by all tests."""
    if options.get("saves") == "minimal":  # as without it
        del options["saves"]
    return compiled_for(os.environ.get(VARIABLE, ""), function, **options)


@cache
def compiled_for(cpu: str, function: Function, **options: Any) -> Any:
    """One for each CPU that the environment names."""
    return mutad.compile(function, **options)


def level(function: Function, row: str, *, first: bool) -> dict[str, int]:
    """LLVM's level for one row of a program: users' for the first row and for every third of the others, of
    these for a part each day (`turns`).

    Rows of one program differ in what the frontend, the analyses and the derivative see. What LLVM does with
    dtypes and layouts at its highest level is seen on the rows that chance picks, always the same ones; on
    all rows, every day, where a CPU is named.
    """
    file = function.__code__.co_filename if hasattr(function, "__code__") else function.__module__
    name = f"{Path(file).name}: {row}"
    chosen = (first or zlib.crc32(name.encode()) % 3 == 0) and has_turn(name)
    is_users = chosen or os.environ.get(VARIABLE)
    return {"opt": 3 if is_users else 1}


@dataclass
class Outcome:
    """What a caller can see of one call."""

    arguments: tuple[Any, ...]
    result: Any = None
    exception: BaseException | None = None
    printed: str = ""


def run(function: Function, row: Row, **keywords: Any) -> Outcome:
    """Call `function` on fresh arguments; NumPy's warnings are not part of the outcome."""
    outcome = Outcome(make_arguments(row))
    printed = io.StringIO()
    with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(printed):
        warnings.simplefilter("ignore")
        try:
            outcome.result = function(*outcome.arguments, **keywords)
        except Exception as e:
            outcome.exception = e
    outcome.printed = printed.getvalue()
    return outcome


@dataclass(frozen=True)
class Tolerance:
    """How far floating-point numbers may be apart: bitwise but for libm (ulp) and reductions.

    `terms` gives, from the initial arguments, the numbers that are summed: the bound is
    n * eps * sum(abs(terms)).
    """

    ulp: int = 0
    terms: Callable[..., Any] | None = None

    def bound(self, want: np.ndarray, arguments: tuple[Any, ...]) -> Any:
        finite = np.where(np.isfinite(want), want, 0)
        allowed = self.ulp * np.spacing(np.abs(finite))
        if self.terms is not None:
            terms = np.asarray(self.terms(*arguments))
            eps = np.finfo(want.dtype).eps
            allowed = allowed + max(terms.size, 1) * eps * np.abs(terms[np.isfinite(terms)]).sum()
        return allowed


def assert_same(
    got: Any, want: Any, tolerance: Tolerance, arguments: tuple[Any, ...], where: str
) -> None:
    """Same type, dtype, shape and elements, through tuples."""
    assert type(got) is type(want), (
        f"{where}: {type(got).__name__}, Python gives {type(want).__name__}"
    )
    if isinstance(want, tuple):
        assert len(got) == len(want), where
        for k, (g, w) in enumerate(zip(got, want, strict=True)):
            assert_same(g, w, tolerance, arguments, f"{where}[{k}]")
        return
    if want is None:
        return
    if isinstance(want, np.ndarray):
        assert got.dtype == want.dtype, f"{where}: dtype {got.dtype}, Python gives {want.dtype}"
        assert got.shape == want.shape, f"{where}: shape {got.shape}, Python gives {want.shape}"
    g, w = np.asarray(got), np.asarray(want)
    if np.issubdtype(w.dtype, np.floating):
        same = ((g == w) & (np.signbit(g) == np.signbit(w))) | (np.isnan(g) & np.isnan(w))
        if tolerance != Tolerance():
            with np.errstate(invalid="ignore"):
                same |= np.abs(g - w) <= tolerance.bound(w, arguments)
    else:
        same = np.asarray(g == w)
    assert same.all(), f"{where}: {got!r}, Python gives {want!r}"


def arrays_in(value: Any) -> list[np.ndarray]:
    """The arrays in a result, in order."""
    if isinstance(value, tuple):
        return [a for item in value for a in arrays_in(item)]
    return [value] if isinstance(value, np.ndarray) else []


def assert_same_outcome(got: Outcome, want: Outcome, row: Row, tolerance: Tolerance) -> None:
    """Result or exception, printed text, final arguments, and which memory is shared with which."""
    initial = make_arguments(row)
    if want.exception is not None:
        assert got.exception is not None, (
            f"returned {got.result!r}, Python raises {want.exception!r}"
        )
    if got.exception is not None:
        if want.exception is None:
            raise got.exception
        assert type(got.exception) is type(want.exception), (
            f"{got.exception!r} is not {want.exception!r}"
        )
        assert str(got.exception) == str(want.exception)
        assert state_of(got.exception) == state_of(want.exception)
    assert_same(got.result, want.result, tolerance, initial, "result")
    assert got.printed == want.printed
    for k, (g, w) in enumerate(zip(got.arguments, want.arguments, strict=True)):
        assert_same(g, w, tolerance, initial, f"argument {k}")
        if isinstance(w, np.ndarray):
            assert_same(memory_of(g), memory_of(w), tolerance, initial, f"memory of argument {k}")
    assert sharing(got) == sharing(want), "results share other memory than Python's"


def state_of(exception: BaseException) -> tuple[Any, ...]:
    """All else that a handler can tell: arguments, attributes, the cause."""
    own = {k: repr(v) for k, v in vars(exception).items() if k != "__notes__"}
    cause = exception.__cause__
    caused = None if cause is None else (type(cause), state_of(cause))
    return repr(exception.args), own, caused, exception.__suppress_context__


def sharing(outcome: Outcome) -> list[tuple[bool, bool]]:
    """For each array in the result and each argument: is it that object, does it share its memory."""
    return [
        (result is argument, np.shares_memory(result, argument))
        for result in arrays_in(outcome.result)
        for argument in outcome.arguments
        if isinstance(argument, np.ndarray)
    ]


@dataclass(frozen=True)
class Case:
    """One call of one program, to be compared with Python's."""

    function: Function
    row: Row
    tolerance: Tolerance = Tolerance()
    options: tuple[tuple[str, Any], ...] = ()
    first: bool = False
    """Whether it is the first row of its program."""

    def __str__(self) -> str:
        row = self.row if isinstance(self.row, str) else getattr(self.row, "__name__", "made")
        return f"{self.function.__name__}: {row}"

    def check(self) -> None:
        want = run(self.function, self.row)
        options = {**level(self.function, str(self), first=self.first), **dict(self.options)}
        got = run(compiled(self.function, **options), self.row)
        assert_same_outcome(got, want, self.row, self.tolerance)


@dataclass
class Programs:
    """A table of cases, filled by the decorator `on` as a file's programs are defined."""

    cases: list[Case] = field(default_factory=list[Case])

    def on(
        self,
        *rows: Row,
        ulp: int = 0,
        terms: Callable[..., Any] | None = None,
        options: Any = (),
        **letters: str,
    ) -> Callable[[Function], Function]:
        """Run the program on these rows. Keyword letters are replaced by each of their values in turn::

        @on("D[n] D[n]", D="f64 f32", n="7 0")
        """

        def record(function: Function) -> Function:
            chosen, tolerance = tuple(dict(options).items()), Tolerance(ulp, terms)
            known = any(c.function is function for c in self.cases)
            texts = [
                r for row in rows for r in ([row] if callable(row) else expanded(row, letters))
            ]
            self.cases += [
                Case(function, r, tolerance, chosen, first=k == 0 and not known)
                for k, r in enumerate(texts)
            ]
            return function

        return record

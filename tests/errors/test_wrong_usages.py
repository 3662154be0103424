"""What new users write: each refusal has its place, its reason, and a way out that is one."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wrong_usages
from wrong_usages import CALLS, MAKE, PROGRAMS, Call, Program

import mutad


def test_there_are_many() -> None:
    assert len(PROGRAMS) + len(CALLS) >= 310


def arguments(function: Callable[..., Any]) -> list[Any]:
    return [MAKE[name]() for name in inspect.signature(function).parameters]


def place(function: Callable[..., Any], at: str) -> tuple[int, int]:
    """Line and column, both from 1, of a text in a function's source: of what is after a bar in it."""
    source = inspect.getsource(function)
    found = source.index(at.replace("|", ""), source.index(f"\ndef {function.__name__}("))
    found += max(at.find("|"), 0)
    line = function.__code__.co_firstlineno + source.count("\n", 0, found)
    return line, found - source.rfind("\n", 0, found)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("case", PROGRAMS, ids=lambda c: c.function.__name__)
def test_a_program_is_refused(case: Program) -> None:
    with pytest.raises(mutad.CompileError) as caught:
        mutad.compile(case.function, cache=False).inspect("frontend", *arguments(case.function))
    error = caught.value
    assert error.span is not None
    assert error.span.file == wrong_usages.__file__
    assert (error.span.line, error.span.column + 1) == place(case.function, case.at)
    assert case.why
    assert case.why in error.reason
    assert case.way_out in (error.way_out or "")
    assert bool(case.way_out) == bool(error.way_out)


@pytest.mark.filterwarnings("ignore:.where. used without .out.")
@pytest.mark.parametrize(
    "case", [c for c in PROGRAMS if c.instead], ids=lambda c: c.function.__name__
)
def test_its_way_out_is_one(case: Program, capsys: pytest.CaptureFixture[str]) -> None:
    assert case.instead is not None
    given, expected = arguments(case.instead), arguments(case.instead)
    want = case.instead(*expected), capsys.readouterr().out
    got = mutad.compile(case.instead, cache=False, opt=0)(*given), capsys.readouterr().out
    np.testing.assert_equal(got, want)
    np.testing.assert_equal(list(map(held, given)), list(map(held, expected)))


def held(value: Any) -> Any:
    """What an argument holds."""
    if isinstance(value, np.random.Generator):
        return str(value.bit_generator.state)
    return vars(value) if isinstance(value, wrong_usages.Grid) else value


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("case", CALLS, ids=lambda c: c.name)
def test_a_call_is_refused(case: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUTAD_FULL_TRACEBACK", raising=False)
    with pytest.raises(case.exception) as caught:
        case.call()
    assert re.search(case.why, str(caught.value))
    entries = traceback.extract_tb(caught.value.__traceback__)
    own = [k for k, e in enumerate(entries) if e.filename == wrong_usages.__file__]
    assert entries[own[-1]].lineno == case.call.__code__.co_firstlineno
    assert len(entries) - 1 - own[-1] <= 2  # nothing of how we found it


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("case", [c for c in CALLS if c.instead], ids=lambda c: c.name)
def test_the_call_to_make_instead_is_one(case: Call) -> None:
    assert case.instead is not None
    np.testing.assert_equal(*case.instead())

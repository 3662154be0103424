"""Prints, after the generated programs, which constructs of the language they were made of.

`make generated` prints beside it which lines of the frontend they reached. Lines are followed while the
frontend meets a program for the first time: else that would take as long as the tests themselves.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest
from generated import USED

from mutad.compiler.frontend import build
from mutad.compiler.frontend.syntax.language import COMPILED

OF_WORKERS: Counter[str] = Counter()
MET = set[CodeType]()
"""The programs that the frontend has met in this process."""


@pytest.fixture(autouse=True)
def lines_of_the_frontend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever traces the tests traces the frontend."""
    tracer, build_function = sys.gettrace(), build.build_function

    def traced(function: Any, *arguments: Any, **options: Any) -> Any:
        sys.settrace(None if function.__code__ in MET else tracer)
        MET.add(function.__code__)
        try:
            return build_function(function, *arguments, **options)
        finally:
            sys.settrace(None)

    if tracer is None:
        yield
        return
    monkeypatch.setattr(build, "build_function", traced)
    sys.settrace(None)
    yield
    sys.settrace(tracer)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its counts to the process that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["constructs"] = dict(USED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    OF_WORKERS.update(getattr(node, "workeroutput", {}).get("constructs", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    used = OF_WORKERS + USED
    if not used:
        return
    names = sorted({node.__name__ for row in COMPILED for node in row.nodes})
    found = [n for n in names if used[n]]
    terminalreporter.section("generated programs")
    terminalreporter.line(
        f"{used['programs']} programs; {len(found)} of the {len(names)} constructs of the language:"
    )
    ordered = sorted(found, key=lambda n: -used[n])
    terminalreporter.line(", ".join(f"{n} {used[n]}" for n in ordered))
    if missing := [n for n in names if not used[n]]:
        terminalreporter.line(f"in none: {', '.join(missing)}")

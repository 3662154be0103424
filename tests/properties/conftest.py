"""Prints, after the generated programs, which constructs of the language they were made of.

`make generated` prints beside it which lines of the frontend they reached.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from generated import USED

from mutad.compiler.frontend.syntax.language import COMPILED

OF_WORKERS: Counter[str] = Counter()


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

"""Fair timing: every contestant runs once a round, rounds are interleaved, the median counts."""

from __future__ import annotations

import gc
import importlib
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from rich.console import Console
from rich.table import Table

console = Console()
console.width = max(console.width, 110)  # wide enough for every table, where there is no terminal

Call = Callable[[], object]

REST = 0.01
"""Seconds between measurements."""


def interleaved(
    contestants: Mapping[str, Call],
    *,
    rounds: int = 11,
    seconds: float = 0.01,
    pick: Callable[[list[float]], float] = statistics.median,
    clock: Callable[[], float] = time.perf_counter,
    patience: float = math.inf,
) -> dict[str, float]:
    """The median seconds of one call of each contestant, or what else is picked of all rounds.

    A measurement repeats a call until it lasts about `seconds`. Each is called twice before, so that
    nothing compiles while the clock runs. Before each measurement the contestant is called once, and all
    rest: threads of the one before may go on after its call, and processor time is that of the process. A
    contestant that used up its patience (in seconds) sits out the rounds that are left.
    """
    repeats = {name: _repeats(call, seconds, clock) for name, call in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in contestants.items():
                if sum(times[name]) * repeats[name] < patience:
                    call()
                    time.sleep(REST)
                    times[name].append(_measure(call, repeats[name], clock))
    finally:
        if collecting:
            gc.enable()
    return {name: pick(t) for name, t in times.items()}


def _repeats(call: Call, seconds: float, clock: Callable[[], float]) -> int:
    call()
    once = _measure(call, 1, clock)
    return max(1, round(seconds / max(once, 1e-8)))


def _measure(call: Call, repeat: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeat):
        call()
    return (clock() - start) / repeat


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan


def peer(module: str) -> ModuleType | None:
    """A library to compare with, or None (and a line that says so) where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        console.print(f"[yellow]{module} is not installed: left out (pip install -e .[bench])")
        return None


def seconds(t: float | None) -> str:
    """A duration with a unit that suits it."""
    if t is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if t >= scale:
            return f"{t / scale:.3g} {unit}"
    return f"{t / 1e-9:.3g} ns"


def ratio(r: float | None) -> str:
    return "-" if r is None else f"{r:.2f}x"


def table(title: str, *columns: str) -> Table:
    """A table whose first column is a name and whose others are figures."""
    made = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        made.add_column(column, justify="right" if i else "left")
    return made

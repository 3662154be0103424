"""Python functions from generated source, and a count of the constructs that the source has used."""

from __future__ import annotations

import ast
import builtins
import hashlib
import linecache
import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from turns import Turns

USED: Counter[str] = Counter()
"""How many generated programs of this process had each construct of Python's grammar."""


def function_of(source: str, name: str, names: dict[str, Any] | None = None) -> Callable[..., Any]:
    """The function `name` that `source` defines, over `names`; its source can be found."""
    file = f"<generated {hashlib.sha1(source.encode()).hexdigest()[:16]}>"
    if file not in linecache.cache:
        USED.update({type(node).__name__ for node in ast.walk(ast.parse(source))} | {"programs"})
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    found: dict[str, Any] = {"__name__": "generated", **(names or {})}
    exec(builtins.compile(source, file, "exec"), found)
    return found[name]


def seeds_of(variable: str, in_ci: str) -> range:
    """The seeds that a variable of the environment asks for: `2000` programs, or those from `5000:6000`.

    Else as many as are `in_ci`, with `--seeds` other ones each day. A test's name has its seed.
    """
    asked = os.environ.get(variable)
    first, last = (int(n or 0) for n in (asked or in_ci).rpartition(":")[::2])
    moved = 0 if asked else Turns.seeds * (last - first)
    return range(first + moved, last + moved)


class Drawn:
    """Draws from strategies with a seed: no search, no shrinking."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, strategy: Any) -> Any:
        strategy = getattr(strategy, "wrapped_strategy", strategy)
        if hasattr(strategy, "definition"):
            return strategy.definition(self, *strategy.args, **strategy.kwargs)
        if type(strategy).__name__ == "BooleansStrategy":
            return self.random.random() < 0.5
        if hasattr(strategy, "elements"):
            return self.random.choice(list(strategy.elements))
        return self.random.randint(strategy.start, strategy.end)

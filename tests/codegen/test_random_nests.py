"""Random loop nests over arrays that may overlap do, and raise, what CPython does and raises.

They exercise what code generation decides about a nest: checks proved on entry (or not), registers
for what stays in place, iterations that do not meet.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mutad import compile


def subscript(rng: random.Random, counters: list[str]) -> str:
    terms = [f"{c} * {v}" for v in counters if (c := rng.choice([0, 0, 1, 1, 1, -1, 2]))]
    return " + ".join([*terms, str(rng.choice([-2, -1, 0, 0, 1, 1, 2, 3]))])


def element(rng: random.Random, counters: list[str]) -> str:
    if rng.random() < 0.5:
        return f"x[{subscript(rng, counters)}]"
    return f"{rng.choice('ab')}[{subscript(rng, counters)}, {subscript(rng, counters)}]"


def range_of(rng: random.Random, counters: list[str]) -> str:
    n = rng.choice(["n", "m", "n - 1", str(rng.randint(3, 9))])
    return rng.choice(
        [
            f"range({n})",
            f"range({subscript(rng, counters[-1:])}, {n})",
            f"range({n} - 1, {rng.choice(['-1', '0', subscript(rng, counters[-1:])])}, -1)",
            f"range({rng.randint(0, 2)}, {n}, {rng.choice([2, 3])})",
        ]
    )


def program(rng: random.Random) -> str:
    lines, counters = ["def f(a, b, x, n, m):", "    s = 0.0"], list[str]()
    for v in "ijk"[: rng.choice([1, 2, 2, 3])]:
        lines.append(f"{'    ' * (len(counters) + 1)}for {v} in {range_of(rng, counters)}:")
        counters.append(v)
    for _ in range(rng.randint(1, 3)):
        pad = "    " * (len(counters) + 1)
        if rng.random() < 0.3:
            test = f"{subscript(rng, counters)} {rng.choice(['<', '>', '<=', '=='])} {rng.choice('nm')}"
            lines.append(f"{pad}if {test}:")
            pad += "    "
        a, b, c = (element(rng, counters) for _ in range(3))
        lines.append(pad + rng.choice([f"{a} = {b} * 0.5 + {c}", f"{a} += {b}", f"s += {a} * {b}"]))
    return "\n".join([*lines, "    return s", ""])


def outcome(f: Any, memory: np.ndarray, views: Any, n: int, m: int) -> tuple[Any, np.ndarray]:
    memory = memory.copy()
    try:
        return f(*views(memory), n, m), memory
    except IndexError as error:
        return str(error), memory


@pytest.mark.parametrize("seed", range(12))
def test_like_python(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    file = tmp_path / "nest.py"
    file.write_text(program(rng))
    spec = importlib.util.spec_from_file_location("nest", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    compiled = compile(module.f, cache=False)
    for large in (False, True):
        low, size = rng.randint(0, 2), rng.randint(20, 30) if large else rng.randint(1, 9)
        shared = rng.random() < 0.5

        def views(memory: np.ndarray) -> tuple[np.ndarray, ...]:
            a = memory[0, low : low + size, :size]
            b = memory[0, :size, low : low + size] if shared else memory[1, :size, :size]
            return a, b, memory[0, :size, 1] if shared else memory[2].reshape(-1)[: 2 * size]

        memory = np.random.default_rng(seed).normal(size=(3, 34, 34))
        n, m = rng.randint(0, 8), rng.randint(0, 8)
        got = outcome(compiled, memory, views, n, m)
        want = outcome(module.f, memory, views, n, m)
        assert got[0] == want[0], file.read_text()
        np.testing.assert_array_equal(got[1], want[1])

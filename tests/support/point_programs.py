"""Random programs whose outer loop goes over points, with short inner loops: what `vectorize-outer` takes.

Each is `program(x, w, m, out, n, k)`. A point computes terms in inner loops of `k` and `d` steps, also
triangular, with scratch arrays and slices; adds them up, takes the largest, or branches; at times stores what
it has found, or hands on what the points before it have left. Some raise: by a logarithm of what data decide,
by a subscript, by a statement. Without those all functions are smooth but for maxima, which data rarely meet.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generated import function_of

FORMS = (
    "{a} + 0.5 * {b}",
    "{a} - {b}",
    "{a} * {b}",
    "np.sin({a}) + 0.1 * {b}",
    "np.exp(-{a} * {a})",
    "{a} / (2.0 + {b} * {b})",
    "np.sqrt({a} * {a} + 0.3)",
    "math.tanh({a})",
    "max({a}, {b})",
)
LOOPS = ("for i in range(n):",) * 3 + ("for i in range(1, n):", "for i in range(n - 1, -1, -1):")


@dataclass(frozen=True)
class PointProgram:
    """The source of one program, and what it is called with."""

    source: str
    n: int
    k: int
    d: int
    layout: str
    raises: bool

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np, "math": math})

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(self.n + 10 * self.k + 100 * self.d)
        rows = max(self.n, 1) - (self.layout == "short")
        x = rng.uniform(0.2, 1.2, (max(rows, 1), self.d))
        x = {"columns": np.asfortranarray(x), "reversed": x[::-1]}.get(self.layout, x)
        w = rng.uniform(0.2, 1.2, self.k + 1)
        m = rng.uniform(0.2, 1.2, (self.k + 1, max(self.d, self.k)))
        out = x[:, 0] if self.layout == "shared" else rng.uniform(0.2, 1.2, max(self.n, 1))
        return x, w, m, out, self.n, self.k


@dataclass
class Writer:
    """Writes one program."""

    rng: random.Random
    raises: bool
    lines: list[str] = field(default_factory=list[str])

    def one(self, *options: str) -> str:
        return self.rng.choice(options)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def put(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def value(self, *operands: str) -> str:
        form = self.rng.choice(FORMS)
        inner = f"({self.rng.choice(FORMS).format(a=self.one(*operands), b=self.one(*operands))})"
        return form.format(a=self.one(*operands, inner), b=self.one(*operands, inner))

    def program(self) -> str:
        self.put(0, "def program(x, w, m, out, n, k):")
        self.put(1, "d = x.shape[1]", "t = np.zeros(k)", "q = np.zeros((k, d))")
        self.put(1, "total = 0.0", "last = 0.0")
        stacks = self.chance(0.4)
        if stacks:
            self.put(1, "found = np.zeros(n)")
        self.put(1, self.one(*LOOPS))
        self.put(2, self.one("s = 0.0", "s = 0.3 * x[i, 0]", "s = -2.0", "s = w[0]"))
        self.put(2, self.one("for c in range(k):", "for c in range(k):", "for c in range(1, k):"))
        self.term()
        self.put(3, f"t[c] = {self.value('z', 'w[c]', 'x[i, 0]')}")
        self.combine()
        if self.chance(0.5) and "for c in range(k):" in "".join(self.lines):
            self.put(2, "for c in range(k):", f"    s += {self.value('t[c]', 'w[c]')}")
        self.extreme()
        if stacks:
            self.stack()
        self.end()
        value = f"np.float64(total + last{self.one('', '', '', ' + s')})"
        self.put(1, f"return {value}, found" if stacks else f"return {value}")
        return "\n".join(self.lines) + "\n"

    def term(self) -> None:
        """What a point computes for `c`, in `z`."""
        kind = self.rng.random()
        if kind < 0.25:
            self.put(3, "a = x[i] - m[c, :d]", f"z = ({self.value('a', 'w[c]', 'm[c, :d]')}).sum()")
            self.lines[-1] = self.lines[-1].replace("max(", "np.maximum(").replace("math.", "np.")
            return
        self.put(3, f"z = {self.value('x[i, 0]', 'w[c]', '0.3')}")
        if kind < 0.5:
            self.put(3, "for e in range(d):", f"    q[c, e] = {self.value('x[i, e]', 'm[c, e]')}")
            self.put(3, "for e in range(d):", "    for f in range(e):")
            self.put(5, "z += 0.3 * q[c, f] * m[c, e]")
        elif kind < 0.8:
            self.put(
                3, "for e in range(d):", f"    z += {self.value('x[i, e]', 'm[c, e]', 'w[c]')}"
            )
            if self.chance(0.3):
                self.put(4, "if z > 2.0:", "    z = 0.5 * z + 1.0")
        else:
            self.put(3, "for e in range(c):", f"    z += {self.value('w[e]', 'x[i, 0]', 'z')}")

    def combine(self) -> None:
        kind = self.rng.random()
        if kind < 0.3:
            self.put(3, f"s += {self.value('z', 'w[c]')}")
        elif kind < 0.5:
            self.put(3, "if z > s:", "    s = z")
            if self.chance(0.5):
                self.put(3, "else:", "    s = 0.9 * s")
        elif kind < 0.7:
            self.put(3, "if z > s:", "    s = np.exp(np.minimum(s - z, 0.0)) + z")
            self.put(3, "else:", "    s = s + np.exp(np.minimum(z - s, 0.0))")
        else:
            self.put(3, f"s = 0.5 * s + {self.value('z', 'w[c]')}")
        if self.raises and self.chance(0.5):
            self.put(3, f"s += math.log(z + {self.one('0.0', '-0.5', '1.0')})")

    def extreme(self) -> None:
        """The largest, or least, of what a point has as a whole: equal ones share its derivative."""
        if self.chance(0.6):
            return
        how, into = self.one("max", "min"), self.one("s += 0.3 *", "s = s -")
        taken = self.one("t", "x[i]", "t[1:]", "w", "(x[i] * m[0, :d])", "(t * w[:k])", "m")
        if taken == "m":
            self.put(
                2, f"s += (np.exp(0.3 * m[:, :d] * x[i]).{how}(axis={self.one('0', '1')})).sum()"
            )
        else:
            self.put(2, f"{into} {taken}.{how}()")
        if self.chance(0.4):
            self.put(2, "s += np.exp(t - t.max()).sum()")

    def stack(self) -> None:
        """What points store to an array that the program returns; some look at others' there."""
        if self.chance(0.3):
            self.put(2, self.one("s += found[i]", "s += 0.5 * found[i - 1]", "s += found.sum()"))
        self.put(2, self.one("found[i] = s", "found[i] = s", "found[i] += s", "found[i - 1] += s"))
        if self.chance(0.3):
            self.put(2, self.one("s += found[i] * found[i]", "s -= 0.3 * found[0]"))

    def end(self) -> None:
        """What a point leaves."""
        if self.raises:
            self.put(2, self.one("s += math.log(s)", "if s > 1.5: raise ValueError", "s += w[i]"))
        if self.chance(0.4):
            self.put(2, self.one("out[i] = s", "out[i] += s", "out[i - 1] = s", "t[0] = s"))
        self.put(
            2, self.one("total += s", "total += s", "total -= s * s", "total = 0.9 * total + s")
        )
        if self.chance(0.2):
            self.put(2, "last = s")


def point_program(seed: int) -> PointProgram:
    rng = random.Random(seed)
    raises = rng.random() < 0.25
    source = Writer(rng, raises).program()
    n, k, d = (
        rng.choice((0, 1, 3, 7, 8, 9, 13, 19)),
        rng.choice((0, 1, 2, 3, 4)),
        rng.choice((1, 2, 3)),
    )
    layout = rng.choice(("rows", "rows", "rows", "columns", "reversed", "shared", "short"))
    return PointProgram(source, n, k, d, layout, raises)

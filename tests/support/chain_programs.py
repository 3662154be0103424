"""Programs of one innermost loop with chains in it: sums, recurrences, cells that hand a value on.

Beside them is what does not wait for the chain, and stores that earlier or later iterations read. All of it
is arithmetic and roots, which round as CPython's do, so that values are compared to the bit.
"""

from __future__ import annotations

import random

HEAD = "import math\n\n\ndef program(x, u, w, p, n):"
BOUNDED = "s + t + 0.5 * old + (u * u).sum() + (w * w).sum() + (p * p).sum()"
RANGES = ("2, n - 2",) * 4 + ("n - 3, 1, -1", "2, n - 2, 2", "2, n", "0, n")
EDGES = (
    "(0.0 if i == 0 else x[i - 1])",
    "(w[i + 1] if i + 1 < n else x[0])",
    "x[max(i - 1, 0)]",
    "x[min(i + 1, n - 1)]",
)


class ChainWriter:
    """Writes one program by chance; `raising`: a root of a number that may be negative."""

    def __init__(self, rng: random.Random, *, raising: bool) -> None:
        self.rng = rng
        self.raising = raising
        self.values: list[str] = []

    def program(self) -> str:
        lines = [self.statement() for _ in range(self.rng.randint(2, 6))]
        if self.often(0.6):
            lines.append(f"s += {self.number(2)}")
        deep = self.often(0.25)
        head = ["for q in range(2):"] if deep else []
        inner = [f"for i in range({self.rng.choice(RANGES)}):", *(f"    {x}" for x in lines)]
        body = [*head, *(f"    {x}" if deep else x for x in inner)]
        start = ["s = 0.0", "t = 0.3", "old = 0.0"]
        return "\n".join(
            [HEAD, *(f"    {x}" for x in (*start, *body)), f"    return {BOUNDED}", ""]
        )

    def often(self, share: float) -> bool:
        return self.rng.random() < share

    def element(self, arrays: str) -> str:
        apart = self.rng.choice(("", "", "", " + 1", " - 1", " + 2", " - 2"))
        if self.often(0.15):
            return f"p[i, {self.rng.randrange(3)}]"
        return f"{self.rng.choice(arrays)}[i{apart}]"

    def number(self, depth: int) -> str:
        if not depth or self.often(0.2):
            return self.leaf()
        a, b = self.number(depth - 1), self.number(depth - 1)
        forms = [
            f"math.sqrt(abs({a}) + 0.5)",
            f"{a} / (1.0 + {b} * {b})",
            f"min({a}, {b})",
            f"({a} if {b} > 0.1 else {self.leaf()})",
            f"0.5 * ({a} + {b})",
            f"({a} - {b})",
            f"0.5 * {a} * ({b})",
        ]
        if self.raising:
            forms.append(f"math.sqrt({a} + 3.0)")
        return self.rng.choice(forms)

    def leaf(self) -> str:
        kind = self.rng.random()
        if self.values and kind < 0.35:
            return self.rng.choice(self.values)
        if kind < 0.7:
            return self.element("xuw")
        if kind < 0.77:
            return self.rng.choice(EDGES)
        return self.rng.choice(("s", "t", "old", "0.5", "1.25"))

    def statement(self) -> str:
        kind = self.rng.random()
        if kind < 0.3:
            value = f"v{len(self.values)} = {self.number(2)}"
            self.values.append(value.partition(" ")[0])
            return value
        if kind < 0.4:
            return f"s += {self.number(1)}"
        if kind < 0.5:
            return f"t = 0.5 * t + {self.number(1)}"
        if kind < 0.6:
            return f"old = {self.number(1)}"
        target = self.element("uw")
        return f"{target} {'=' if kind < 0.8 else '+='} 0.25 * {self.number(2)}"


def chain_program(rng: random.Random) -> str:
    """The source of `program(x, u, w, p, n)`: vectors of n, a matrix of n rows of at least three."""
    return ChainWriter(rng, raising=rng.random() < 0.4).program()

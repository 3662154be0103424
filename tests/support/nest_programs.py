"""Programs with nests of two or three loops as linear algebra has them: triangular, up and down, imperfect.

What they read and write is what decides whether their loops may be interchanged or turned around: the same
arrays at subscripts of other counters, statements beside the inner loop, ends that are out of range halfway.
"""

from __future__ import annotations

import random

HEAD = "def program(a, b, c, v, n, m):"
BOUNDED = "(a * a).sum() + (b * c).sum() + (v * v).sum()"
OUTER = ("n", "m", "1, n", "n - 1", "n - 1, -1, -1", "0, n, 2")
INNER = ("{x}", "{x} + 1", "{x} + 1, n", "{x}, n", "{x} - 1, -1, -1", "n - 1, {x}, -1", "n - {x}")
TARGETS = ("a[{i}, j]", "b[{i}, j]", "v[j]", "c[j, 0]")
FACTORS = ("a[{i}, k]", "c[0, k]", "v[k]", "b[{i}, k]", "c[k, 0]", "a[k, k]")
COLUMNS = ("a[k, j]", "b[k, j]", "c[k, j]")


class NestWriter:
    """Writes one program by chance."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.counters: list[str] = []

    def program(self) -> str:
        lines = [HEAD]
        for counter in ("i", "j") if self.often(0.8) else ("j",):
            if counter == "j" and self.often(0.2):
                lines.append(self.indented(self.statement()))
            lines.append(self.indented(f"for {counter} in range({self.bounds()}):"))
            self.counters.append(counter)
        if self.often(0.4):
            lines.append(self.indented(self.statement()))
        factor = ""
        if self.often(0.2):
            factor = " * x"
            lines.append(self.indented(f"x = {self.element()}"))
        lines.append(self.indented(f"for k in range({self.bounds()}):"))
        update = self.update()
        self.counters.append("k")
        for _ in range(self.rng.choice((1, 1, 2))):
            text = update if self.often(0.6) else self.statement()
            lines.append(self.indented(text + factor))
        self.counters.pop()
        if self.often(0.4):
            target = update.partition("= ")[0][:-2]
            after = f"{target} /= 2.0 + a[j, j]"
            if factor and self.often(
                0.6
            ):  # what was loaded ahead of the inner loop is used behind it
                after = f"{self.element()} -= 0.5 * x"
            lines.append(self.indented(after if self.often(0.7) else self.statement()))
        return "\n".join([*lines, f"    return {BOUNDED}", ""])

    def often(self, share: float) -> bool:
        return self.rng.random() < share

    def indented(self, line: str) -> str:
        return "    " * (len(self.counters) + 1) + line

    def bounds(self) -> str:
        if self.counters and self.often(0.6):
            return self.rng.choice(INNER).format(x=self.rng.choice(self.counters[-2:]))
        return self.rng.choice(OUTER)

    def subscript(self) -> str:
        x = self.rng.choice(self.counters or ["0"])
        return self.rng.choice((x,) * 8 + (f"{x} + 1", f"{x} - 1", f"n - 1 - {x}", "1"))

    def element(self) -> str:
        if self.often(0.12):
            return f"v[{self.subscript()}]"
        return f"{self.rng.choice('aabc')}[{self.subscript()}, {self.subscript()}]"

    def update(self) -> str:
        """What the inner loop of an elimination does."""
        outer = self.counters[0] if len(self.counters) > 1 else "0"
        target, factor, column = map(self.rng.choice, (TARGETS, FACTORS, COLUMNS))
        sign = self.rng.choice("+-")
        return f"{target} {sign}= 0.1 * {factor} * {column}".format(i=outer)

    def statement(self) -> str:
        p, q, r = (self.element() for _ in range(3))
        return self.rng.choice(
            (
                f"{p} += 0.1 * {q} * {r}",
                f"{p} -= 0.1 * {q} * {r}",
                f"{p} = {p} - {q} * 0.3",
                f"{p} *= 0.9",
                f"{p} = 0.5 * {q}",
                f"{p} /= 1.5 + {q} * {q}",
            )
        )


def nest_program(rng: random.Random) -> str:
    """The source of `program(a, b, c, v, n, m)`, over three matrices and a vector of at least n."""
    return NestWriter(rng).program()

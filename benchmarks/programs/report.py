"""Tables of what was measured."""

from __future__ import annotations

from collections.abc import Callable

from ..timing import console, geometric_mean, ratio, seconds, table
from .measure import BY_HAND, NUMBA, NUMPY, OURS, Row


def show(rows: list[Row]) -> None:
    rows = [row for row in rows if row.primal.get(OURS) and row.gradient.get(OURS)]
    primal = table(
        "primal", "program", "size", "ours", *(f"{n} / ours" for n in (NUMPY, NUMBA, BY_HAND))
    )
    gradient = table("gradient", "program", "ours", "ours / primal", f"ours / {BY_HAND}")
    other = table(
        "one gradient call: memory, and compiling it",
        *("program", "saved", "peak", f"peak {BY_HAND}", "compiled in", f"{NUMBA}, primal"),
    )
    for row in rows:
        p, g, name = row.primal, row.gradient, row.program.name
        over = [ratio(p[n] / p[OURS]) if n in p else "-" for n in (NUMPY, NUMBA, BY_HAND)]
        primal.add_row(name, f"{row.size}", seconds(p[OURS]), *over)
        hand = g[OURS] / g[BY_HAND] if BY_HAND in g else None
        gradient.add_row(name, seconds(g[OURS]), ratio(g[OURS] / p[OURS]), ratio(hand))
        other.add_row(
            name,
            "by trips" if row.saved is None else size(row.saved),
            *(size(row.peak.get(n)) for n in (OURS, BY_HAND)),
            *(seconds(row.compiling.get(n)) for n in (OURS, NUMBA)),
        )
    for one in (primal, gradient, other):
        console.print(one)
    means(rows)


def size(count: int | None) -> str:
    """Bytes with a unit that suits them."""
    if count is None:
        return "-"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def means(rows: list[Row]) -> None:
    """Geometric means, each with its extreme and the program where that is."""
    for n in (NUMPY, NUMBA, BY_HAND):
        line(
            f"primal: {n} / ours",
            {r: r.primal[n] / r.primal[OURS] for r in rows if n in r.primal},
            min,
        )
    line("gradient: ours / primal", {r: r.gradient[OURS] / r.primal[OURS] for r in rows}, max)
    hand = {r: r.gradient[OURS] / r.gradient[BY_HAND] for r in rows if BY_HAND in r.gradient}
    line(f"gradient: ours / {BY_HAND}", hand, max)


def line(title: str, ratios: dict[Row, float], worst: Callable[..., Row]) -> None:
    if ratios:
        row = worst(ratios, key=ratios.__getitem__)
        mean = geometric_mean(list(ratios.values()))
        most = f"worst {ratios[row]:.2f}x ({row.program.name}), of {len(ratios)}"
        console.print(f"{title}: geometric mean {mean:.2f}x, {most}")

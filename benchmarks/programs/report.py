"""Tables of what was measured, and the means that goals are set for."""

from __future__ import annotations

from collections.abc import Callable

from ..timing import console, geometric_mean, ratio, seconds, table
from .measure import BY_HAND, ENZYME, EXPERT, JAX, NUMBA, NUMPY, OURS, Row

PEERS = (NUMPY, NUMBA, JAX, EXPERT)
"""Those that a primal is held against; code by hand is shown beside them."""


def show(rows: list[Row]) -> None:
    rows = [row for row in rows if row.primal.get(OURS) and row.gradient.get(OURS)]
    for one in (primals(rows), gradients(rows), costs(rows)):
        console.print(one)
    console.print(f"{EXPERT}*: another algorithm, blocked, by LAPACK\n")
    means(rows)


def primals(rows: list[Row]) -> object:
    names = (*PEERS, BY_HAND)
    made = table("primal: ours, and others' time over ours", "program", "size", OURS, *names)
    for row in rows:
        over = [figure(row.primal_over(name), row, name) for name in names]
        made.add_row(row.program.name, f"{row.size}", seconds(row.primal[OURS]), *over)
    return made


def gradients(rows: list[Row]) -> object:
    names = (JAX, EXPERT, ENZYME)
    made = table(
        "gradient: ours, ours over our primal, others' time over ours",
        *("program", "size", OURS, "/ primal", *names, f"{OURS} / {BY_HAND}"),
    )
    for row in rows:
        mine = row.gradient[OURS]
        made.add_row(
            row.program.name,
            f"{row.size}",
            seconds(mine),
            ratio(mine / row.primal[OURS]),
            *(figure(row.gradient_over(name), row, name) for name in names),
            ratio(row.over_hand()),
        )
    return made


def costs(rows: list[Row]) -> object:
    held, compiled = (OURS, JAX, EXPERT, BY_HAND), (OURS, NUMBA, JAX)
    made = table(
        "a gradient call: bytes saved, bytes at the peak; seconds to compile it (Numba: its primal)",
        *("program", "saved", *held, *(f"({name})" for name in compiled)),
    )
    for row in rows:
        made.add_row(
            row.program.name,
            "by trips" if row.saved is None else size(row.saved),
            *(size(row.peak.get(name)) for name in held),
            *(seconds(row.compiling.get(name)) for name in compiled),
        )
    return made


def figure(over: float | None, row: Row, name: str) -> str:
    return ratio(over) + ("*" if over and name == EXPERT and row.other_algorithm else "")


def size(count: int | None) -> str:
    """Bytes with a unit that suits them."""
    if count is None:
        return "-"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def means(rows: list[Row]) -> None:
    """Geometric means, each with its worst program."""
    for name in (*PEERS, BY_HAND):
        line(f"primal: {name} / {OURS}", rows, lambda row, n=name: row.primal_over(n), min)
    line(f"primal: best of {', '.join(PEERS)} / {OURS}", rows, Row.best_primal, min)
    line(f"gradient / primal: {OURS}", rows, lambda row: row.gradient[OURS] / row.primal[OURS], max)
    line(f"gradient: {OURS} / {BY_HAND}", rows, Row.over_hand, max)
    for name in (JAX, EXPERT, ENZYME):
        line(f"gradient: {name} / {OURS}", rows, lambda row, n=name: row.gradient_over(n), min)
    line(f"gradient: better of {JAX}'s two / {OURS}", rows, Row.better_jax, min)
    line("  of the same algorithm", rows, lambda row: row.better_jax(same=True), min)
    line(f"the most that can be had: gradient of {JAX} / {BY_HAND}", rows, Row.jax_over_hand, min)
    line(f"  / {OURS}, if it took one primal", rows, Row.jax_over_primal, min)


def line(
    title: str,
    rows: list[Row],
    of: Callable[[Row], float | None],
    worst: Callable[..., Row],
) -> None:
    ratios = {row: r for row in rows if (r := of(row)) is not None}
    if ratios:
        row = worst(ratios, key=ratios.__getitem__)
        mean = geometric_mean(list(ratios.values()))
        most = f"worst {ratios[row]:.2f}x ({row.program.name}), of {len(ratios)}"
        console.print(f"{title}: geometric mean {mean:.2f}x, {most}")

"""A receipt as one HTML page: the source listed, what each line costs, and the edges drawn.

An edge in red leads from the store that kills a value to the line that read it, one in blue from there to
the operation that needs it in reverse. No scripts, no network.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from typing import Protocol

from .saved_value import SavedValue
from .source_words import function_lines

LINE, GUTTER, TOP = 20, 150, 8
"""Pixels: height of a line, width of the edges' gutter, space above the first line."""

STYLE = f"""
body {{ font: 15px system-ui, sans-serif; margin: 2em; color: #1b1b1f; background: #fff }}
h1 {{ font-size: 1.3em }} h2 {{ font-size: 1em; font-weight: 600; margin: 1.5em 0 .3em }}
.listing {{ display: flex; font: 13px/{LINE}px ui-monospace, monospace }}
.listing pre {{ margin: 0; padding: {TOP}px 0; line-height: {LINE}px; font: inherit }}
.row {{ display: block; white-space: pre; height: {LINE}px; padding-right: 1em }}
.number {{ color: #8a8a94; display: inline-block; width: 4em; text-align: right; margin-right: 1em }}
.saved {{ background: #fff3d6 }} .cost {{ color: #9a5b00; margin-left: 2em }}
table {{ border-collapse: collapse; margin-top: 1em }}
td, th {{ text-align: left; padding: .2em 1em .2em 0; vertical-align: top }}
td.n {{ text-align: right; font-variant-numeric: tabular-nums }}
.kill {{ stroke: #c2362b; color: #c2362b }} .need {{ stroke: #2a62c4; color: #2a62c4 }}
path {{ fill: none; stroke-width: 1.6 }}
@media (prefers-color-scheme: dark) {{ body {{ background: #17171b; color: #e4e4ea }}
  .saved {{ background: #3a2f14 }} .cost {{ color: #e0a94a }} }}
"""


class Receipt(Protocol):
    """What a page shows."""

    @property
    def function(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def saves(self) -> tuple[SavedValue, ...]: ...


def page(receipt: Receipt, totals: str, escape: Callable[[str], str]) -> str:
    """The whole page."""
    title = f"{receipt.function}: what its gradient saves"
    body = "".join(listings(receipt, escape))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n<p>{escape(totals)}</p>\n"
        '<p><span class="kill">red</span>: from the store that overwrites a value to where it was '
        'read; <span class="need">blue</span>: from there to the operation that needs it in '
        f"reverse.</p>\n{body}{table(receipt, escape)}</body></html>\n"
    )


def listings(receipt: Receipt, escape: Callable[[str], str]) -> Iterator[str]:
    """Each function that a save, a kill or a need is in; the differentiated one first."""
    files = dict.fromkeys([receipt.file, *(s.file for s in receipt.saves)])
    for file in files:
        lines = [receipt.line] if file == receipt.file else []
        for save in receipt.saves:
            if save.file == file:
                lines += [save.line, save.needed_by[0], save.killed_by or save.line]
        shown: list[range] = []
        for line in lines:
            if line and not any(line in r for r in shown):
                shown.append(function_lines(file, line))
        if shown:
            yield f"<h2>{escape(file)}</h2>\n{listing(receipt, file, shown, escape)}"


def listing(receipt: Receipt, file: str, shown: list[range], escape: Callable[[str], str]) -> str:
    rows: list[str] = []
    place: dict[int, float] = {}
    saves = [s for s in receipt.saves if s.file == file]
    for r in shown:
        for line in r:
            place[line] = TOP + LINE * (len(rows) + 0.5)
            text = escape(linecache.getline(file, line).rstrip("\n"))
            here = [s for s in saves if s.line == line]
            cost = "; ".join(
                f"{s.name}: {s.formula_shown}"
                + ("" if s.bytes is None else f" = {s.bytes_shown} bytes")
                for s in here
            )
            note = f'<span class="cost">{escape(cost)}</span>' if here else ""
            kind = "row saved" if here else "row"
            rows.append(
                f'<span class="{kind}"><span class="number">{line}</span>{text}{note}</span>'
            )
        rows.append('<span class="row"></span>')
    edges = "".join(
        edge
        for number, save in enumerate(saves)
        for edge in edges_of(save, place, 12.0 * (number % 6), escape)
    )
    height = 2 * TOP + LINE * len(rows)
    return (
        f'<div class="listing"><svg width="{GUTTER}" height="{height}">{ARROWS}{edges}</svg>'
        f"<pre>{''.join(rows)}</pre></div>\n"
    )


ARROWS = "".join(
    f'<defs><marker id="{kind}" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    f'<path d="M1,1 L7,4 L1,7" class="{kind}"/></marker></defs>'
    for kind in ("kill", "need")
)


def edges_of(
    save: SavedValue, place: dict[int, float], shift: float, escape: Callable[[str], str]
) -> Iterator[str]:
    """From the kill to the read, and from the read to the need."""
    pairs = (
        ("kill", save.killed_by, save.line, f"line {save.killed_by} overwrites {save.name}"),
        ("need", save.line, save.needed_by[0], f"`{save.needed_by[1]}` needs {save.name}"),
    )
    for kind, start, end, title in pairs:
        if start not in place or end not in place:
            continue
        a, b = place[start], place[end]
        # Kills leave above the middle of a line, needs below, so that loops within a line are two.
        a, b = (a - 3, b - 3) if kind == "kill" else (a + 3, b + 3)
        if start == end:
            a, b = a - 4, b + 4
        depth = min(GUTTER - 20.0, 40 + shift + 0.25 * abs(b - a))
        right = GUTTER - 4
        yield (
            f'<path class="{kind}" marker-end="url(#{kind})" d="M{right},{a:.0f} '
            f"C{right - depth:.0f},{a:.0f} {right - depth:.0f},{b:.0f} {right},{b:.0f}"
            f'"><title>{escape(title)}</title></path>'
        )


def table(receipt: Receipt, escape: Callable[[str], str]) -> str:
    """One row for each save."""
    if not receipt.saves:
        return "<p>Nothing is saved.</p>\n"
    rows = "".join(
        f'<tr><td class="n">{s.line}</td><td>{escape(s.name)}</td>'
        f'<td class="n">{s.bytes_shown}</td>'
        f"<td>{escape(s.formula_shown)}</td><td>{escape(s.why)}</td><td>{escape(s.way_out or '')}</td></tr>\n"
        for s in receipt.saves
    )
    heads = "".join(
        f"<th>{h}</th>" for h in ("line", "saved", "bytes", "formula", "why", "way out")
    )
    return f"<table><tr>{heads}</tr>\n{rows}</table>\n"

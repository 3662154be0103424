"""A receipt as a page: the source listed, what each line costs, and the edges drawn.

An edge in red leads from the store that kills a value to the line that read it, one in blue from there to
the operation that needs it in reverse.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from ..derivative.source_words import function_lines
from .listing import Column, Cost, Edge, Place, Places, Row, column_html, row_id
from .page import page

if TYPE_CHECKING:
    from ..derivative.saved_value import SavedValue


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
    def totals(self) -> str: ...


COLOURS = {
    "kill": ("red", "from the store that overwrites a value to where it was read"),
    "need": ("blue", "from there to the operation that needs it in reverse"),
    "reload": ("green", "from the line that saves a value to where the adjoint reads it"),
}


def legend(kinds: Iterable[str]) -> str:
    """What the colours of these kinds of edges say; nothing where there are none."""
    there = set(kinds)
    said = [
        f'<span class="{kind}">{colour}</span>: {text}'
        for kind, (colour, text) in COLOURS.items()
        if kind in there
    ]
    return f'<p class="legend">{"; ".join(said)}.</p>\n' if said else ""


def receipt_page(receipt: Receipt) -> str:
    """The whole page."""
    title = f"{receipt.function}: what its gradient saves"
    start = [(receipt.file, receipt.line)]
    source = source_column((*start, *lines_of(receipt.saves)), receipt.saves)
    edges = list(source_edges(source, receipt.saves))
    body = (
        f"<header><h1>{escape(title)}</h1>\n<p>{escape(receipt.totals())}</p>\n"
        f"{legend(edge.kind for edge in edges)}</header>\n"
        f'<main class="columns">{column_html(source, Places())}</main>\n{table(receipt.saves, receipt.file)}'
    )
    return page("receipt", title, body, edges)


def lines_of(saves: Iterable[SavedValue]) -> Iterator[Place]:
    """The lines that the saves speak of."""
    for save in saves:
        for file, line in (
            (save.file, save.line),
            (save.needed_in, save.needed_by[0]),
            (save.killed_in, save.killed_by),
        ):
            if line:
                yield file, line


def source_column(places: Iterable[Place], saves: Iterable[SavedValue]) -> Column:
    """Each function that one of the places is in, in the order of the places."""
    shown: dict[str, list[range]] = {}
    for file, line in places:
        listed = shown.setdefault(file, [])
        if not any(line in r for r in listed):
            listed.append(function_lines(file, line))
    by_line: dict[Place, list[Cost]] = {}
    for save in saves:
        by_line.setdefault((save.file, save.line), []).append(cost_of(save))
    rows: list[Row] = []
    for file, ranges in shown.items():
        if len(shown) > 1:
            rows.append(Row(file, kind="heading"))
        for r in sorted(ranges, key=lambda r: r.start):
            rows += [source_row(file, line, by_line.get((file, line), ())) for line in r]
            rows.append(Row(""))
    name = ", ".join(PurePath(file).name for file in shown)
    return Column("source", "source", name, tuple(rows[:-1]))


def source_row(file: str, line: int, costs: Iterable[Cost]) -> Row:
    text, costs = linecache.getline(file, line).rstrip("\n"), tuple(costs)
    return Row(text, (file, line), line, "saves" if costs else "", costs)


def cost_of(save: SavedValue) -> Cost:
    known = "" if save.bytes is None else f" = {save.bytes_shown} bytes"
    return Cost(f"{save.name}: {save.formula_shown}{known}", save.bytes)


def source_edges(source: Column, saves: Iterable[SavedValue]) -> Iterator[Edge]:
    """From each kill to the read, and from the read to the need."""
    row = {r.place: row_id(source.key, k) for k, r in enumerate(source.rows)}
    for save in saves:
        here, (line, expression) = (save.file, save.line), save.needed_by
        kill, need = (save.killed_in, save.killed_by or 0), (save.needed_in, line)
        edges = (
            ("kill", kill, here, f"line {save.killed_by} overwrites {save.name}"),
            ("need", here, need, f"{expression} on line {line} needs {save.name}"),
        )
        for kind, start, end, title in edges:
            first, last = row.get(start), row.get(end)
            if first is not None and last is not None:
                yield Edge(kind, first, last, title)


def table(saves: Iterable[SavedValue], file: str) -> str:
    """One row for each save of a function in this file."""
    rows = "".join(
        f'<tr><td class="n">{escape(s.line_shown(file))}</td><td>{escape(s.name)}</td>'
        f'<td class="n">{s.bytes_shown}</td><td>{escape(s.formula_shown)}</td>'
        f"<td>{escape(s.why)}</td><td>{escape(s.way_out or '')}</td></tr>\n"
        for s in saves
    )
    if not rows:
        return "<p>Nothing is saved.</p>\n"
    heads = "".join(
        f'<th scope="col">{h}</th>' for h in ("line", "saved", "bytes", "formula", "why", "way out")
    )
    return f'<div class="table"><table><tr>{heads}</tr>\n{rows}</table></div>\n'

"""Listings: columns of rows, each with the place in the source that it comes from, and edges between rows.

Rows of one place are lit together by `page.js`; edges are drawn there, between rows that it measures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape

Place = tuple[str, int]
"""A file and a line of it."""


@dataclass(frozen=True)
class Cost:
    """What one save of a row costs: words for it, and its bytes where they are known."""

    text: str
    bytes: int | None


@dataclass(frozen=True)
class Row:
    """One line of a listing."""

    text: str
    place: Place | None = None
    number: int | None = None
    """The line number to show."""
    kind: str = ""
    """What it is marked as: "saves", "reads", "heading", "gap"; None of them: ""."""
    costs: tuple[Cost, ...] = ()

    @property
    def bytes(self) -> int | None:
        sizes = [c.bytes for c in self.costs if c.bytes is not None]
        return sum(sizes) if len(sizes) == len(self.costs) and sizes else None


@dataclass(frozen=True)
class Column:
    """One listing: `key` is its name among columns, `why` says what it shows."""

    key: str
    title: str
    why: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Edge:
    """An arrow between two rows: "kill", "need" or "reload", and what it says."""

    kind: str
    start: str
    end: str
    title: str


@dataclass
class Places:
    """A number for each file, so that the places in a page are short."""

    files: dict[str, int] = field(default_factory=dict[str, int])

    def key(self, place: Place) -> str:
        return f"{self.files.setdefault(place[0], len(self.files))}:{place[1]}"


def row_id(column: str, index: int) -> str:
    return f"{column}-{index}"


def column_html(column: Column, places: Places) -> str:
    """A column: its name, room for arrows, its rows."""
    total = sum(row.bytes or 0 for row in column.rows)
    rows = "".join(
        row_html(row, row_id(column.key, k), places, total) for k, row in enumerate(column.rows)
    )
    name = escape(column.title)
    return (
        f'<section class="column" id="{column.key}" data-name="{name}">\n'
        f"<h2>{name} <small>{escape(column.why)}</small></h2>\n"
        f'<div class="scroll"><div class="listing"><svg class="gutter" aria-hidden="true"></svg>'
        f'<ol role="listbox" aria-multiselectable="true" aria-label="{name}">{rows}</ol></div></div>'
        '<div class="ticks" aria-hidden="true"></div></section>\n'
    )


def row_html(row: Row, name: str, places: Places, total: int) -> str:
    place = ' role="presentation"'
    if row.place is not None:
        at, colour = places.key(row.place), hue(row.place[1])
        place = f' role="option" aria-selected="false" data-at="{at}" style="--hue:{colour}"'
    kind = " ".join(filter(None, ("row", row.kind)))
    number = "" if row.number is None else row.number
    note = "; ".join(c.text for c in row.costs)
    cost = f'<span class="note">{escape(note)}</span>' if note else ""
    return (
        f'<li class="{kind}" id="{name}"{place}>'
        f'<span class="margin">{bar(row, total)}<span class="n">{number}</span></span>'
        f"<code>{escape(row.text)}</code>{cost}</li>\n"
    )


def bar(row: Row, total: int) -> str:
    """How much of all bytes a row saves, as a bar."""
    size = row.bytes
    if size is None:
        return '<span class="bar"></span>'
    share = 100 * size / total if total else 0
    return (
        f'<span class="bar" title="{size:,} of {total:,} bytes"><i style="width:{share:.0f}%"></i>'
        f"<b>{short(size)}</b></span>"
    )


def short(size: int) -> str:
    """A number of bytes in three digits."""
    number, units = float(size), iter(("B", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while number >= 999.5 and unit != "TB":
        number, unit = number / 1000, next(units)
    return f"{number:.3g} {unit}"


def hue(line: int) -> int:
    """A colour for a line: neighbours differ most."""
    return round(line * 137.508) % 360


def folded(rows: Sequence[Row], longest: int = 16, kept: int = 3) -> Iterator[Row]:
    """The rows, without the middle of long stretches that come from no line of the source."""
    run: list[Row] = []
    for row in (*rows, None):
        if row is not None and row.place is None and row.kind == "":
            run.append(row)
            continue
        if len(run) > longest:
            left_out = f"({len(run) - 2 * kept:,} lines that come from no line of the source)"
            run = [*run[:kept], Row(left_out, kind="gap"), *run[-kept:]]
        yield from run
        run = []
        if row is not None:
            yield row


def marked(rows: Iterable[Row], kinds: dict[int, str]) -> tuple[Row, ...]:
    """The rows, with these of them marked."""
    return tuple(replace(row, kind=kinds[k]) if k in kinds else row for k, row in enumerate(rows))


def edges_json(edges: Iterable[Edge]) -> str:
    """Edges for the script, as text that may stand in a page; equal ones are one, with all that they say."""
    titles: dict[tuple[str, str, str], list[str]] = {}
    for edge in edges:
        titles.setdefault((edge.kind, edge.start, edge.end), []).append(edge.title)
    listed = [
        {"kind": kind, "start": start, "end": end, "title": "; ".join(dict.fromkeys(said))}
        for (kind, start, end), said in titles.items()
    ]
    return json.dumps(listed).replace("<", "\\u003c")

"""Pages of HTML, read: their tags, their columns of rows, their edges."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "input", "link", "br"}


class Tags(HTMLParser):
    """All the tags and attributes of a page; complains where they are not balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags_of(text: str) -> list[tuple[str, dict[str, str | None]]]:
    """The tags of a page, which are balanced."""
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    return tags.seen


def loads_nothing(text: str) -> bool:
    """Whether a page names nothing outside of itself."""
    named = {"src", "href", "data", "poster", "action"}
    loaded = any(named & attributes.keys() for _, attributes in tags_of(text))
    inside = text.replace("http://www.w3.org/2000/svg", "")  # the name of SVG, which nobody fetches
    return not loaded and re.search(r"https?://|url\(|@import|fetch\(", inside) is None


def edges_of(text: str) -> list[dict[str, str]]:
    found = re.search(r'<script type="application/json" id="edges">(.*?)</script>', text)
    assert found is not None
    return json.loads(found[1])


@dataclass
class Row:
    attributes: dict[str, str | None]
    text: str = ""
    note: str = ""
    number: str = ""

    @property
    def line(self) -> int | None:
        at = self.attributes.get("data-at")
        return None if at is None else int(at.partition(":")[2])


class Columns(HTMLParser):
    """The rows of each column."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: dict[str, list[Row]] = {}
        self._rows: list[Row] = []
        self._into = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "section":
            self._rows = self.columns.setdefault(given["data-name"] or "", [])
        elif tag == "li":
            self._rows.append(Row(given))
        else:
            kinds = {"note": "note", "n": "number"}
            self._into = "text" if tag == "code" else kinds.get(given.get("class") or "", "")

    def handle_endtag(self, tag: str) -> None:
        self._into = ""

    def handle_data(self, data: str) -> None:
        if self._into:
            row = self._rows[-1]
            setattr(row, self._into, getattr(row, self._into) + data)


def columns_of(text: str) -> dict[str, list[Row]]:
    """By name, the rows of each column of a page."""
    reader = Columns()
    reader.feed(text)
    return reader.columns


@dataclass
class Palette:
    """The colours of a style, by name."""

    colours: dict[str, str] = field(default_factory=dict)

    def contrast(self, one: str, other: str) -> float:
        """The ratio of their luminances, as WCAG has it."""
        low, high = sorted((self.luminance(one), self.luminance(other)))
        return (high + 0.05) / (low + 0.05)

    def luminance(self, name: str) -> float:
        parts = [int(self.colours[name][k : k + 2], 16) / 255 for k in (1, 3, 5)]
        red, green, blue = (
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def palettes_of(style: str) -> tuple[Palette, Palette]:
    """The light and the dark one."""
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root \{([^}]*)\}", style)
    )
    return Palette(light), Palette({**light, **dark})

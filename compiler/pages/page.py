"""One self-contained page: the template with its style, its script and what is to be shown."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from .listing import Edge, edges_json


@cache
def asset(name: str) -> str:
    return (files(__package__ or "") / name).read_text(encoding="utf-8")


def page(kind: str, title: str, body: str, edges: Iterable[Edge]) -> str:
    """The page; `kind` is the class of its body, which the style asks for."""
    return Template(asset("page.html")).substitute(
        kind=kind,
        title=escape(title),
        style=asset("page.css"),
        script=asset("page.js"),
        body=body,
        edges=edges_json(edges),
    )


def frame(text: str, title: str, height: int) -> str:
    """A page inside another, as notebooks show it: neither sees the other's style or script."""
    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts" srcdoc="{escape(text)}" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8884; border-radius: 6px">'
        "</iframe>"
    )

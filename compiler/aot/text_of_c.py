"""Pieces of C: comments, and heads of functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap


def comment(*paragraphs: str) -> list[str]:
    """A block comment, its lines at most 100 columns long; what is indented goes on indented further."""
    lines: list[str] = []
    for paragraph in paragraphs:
        indent = " " * (len(paragraph) - len(paragraph.lstrip()))
        lines += wrap(paragraph, 96, break_on_hyphens=False, subsequent_indent=2 * indent) or [""]
    if len(lines) == 1:
        return [f"/* {lines[0]} */"]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def prototype(head: str, parameters: Iterable[str], end: str) -> Iterator[str]:
    """A function's head, its parameters on lines of at most 100 columns."""
    line = head
    further = " " * (len(head) - len(head.lstrip()) + 4)
    first = True
    for parameter in parameters:
        piece = parameter if first else f", {parameter}"
        if len(line) + len(piece) > 98 and not first:
            yield f"{line},"
            line, piece = further, parameter
        line += piece
        first = False
    yield line + end

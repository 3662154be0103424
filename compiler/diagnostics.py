"""Source spans and compile errors: file, line, column, the source text, a caret, a way out."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Attribute, Operation

_locations: WeakValueDictionary[tuple[str, int, int], FileLineColLoc] = WeakValueDictionary()


def location_at(file: str, line: int, column: int) -> FileLineColLoc:
    """The attribute for a place, made once as long as there are ops of it: every op has one."""
    found = _locations.get((file, line, column))
    if found is None:
        found = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
        _locations[file, line, column] = found
    return found


@dataclass(frozen=True)
class Span:
    """A stretch of Python source. Lines count from 1, columns from 0 (as in `ast`)."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def location(self) -> FileLineColLoc:
        """The span's start as an MLIR location."""
        return location_at(self.file, self.line, self.column)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"

    def source(self) -> str:
        """The first source line of the span, without its line end; "" where it is not readable."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def caret(self) -> str:
        """The source line with carets below the span, indented for an error message."""
        text = self.source()
        if not text:
            return ""
        end = self.end_column if self.end_line == self.line else len(text)
        # Columns of `ast` count UTF-8 bytes; carets count characters.
        raw = text.encode()
        start_char = len(raw[: self.column].decode(errors="replace"))
        end_char = len(raw[:end].decode(errors="replace"))
        pad = "".join(c if c == "\t" else " " for c in text[:start_char])
        return f"        {text}\n        {pad}{'^' * max(1, end_char - start_char)}"


class CompileError(Exception):
    """The program is outside what mutad compiles; the message names the line and a way out.

    `notes` are other places that matter, each shown with its source line and carets.
    """

    def __init__(
        self,
        span: Span | None,
        message: str,
        way_out: str | None = None,
        notes: Sequence[tuple[Span, str]] = (),
    ) -> None:
        self.span = span
        self.reason = message
        self.way_out = way_out
        lines = [f"{span}: error: {message}" if span else f"error: {message}"]
        if span and (shown := span.caret()):
            lines.append(shown)
        for place, note in notes:
            lines.append(f"{place}: {note}")
            lines += [text] if (text := place.caret()) else []
        if way_out:
            lines.append(f"  way out: {way_out}")
        super().__init__("\n".join(lines))


class UndefinedName(CompileError, NameError):
    """A name that the function reads from outside, and that is not there: CPython's NameError."""


def line_of(op: Operation) -> tuple[str, int, int] | None:
    """File, line and column (from 1) that `op` came from, or None."""
    return _file_line_column(op.location)


def _file_line_column(location: Attribute) -> tuple[str, int, int] | None:
    if isinstance(location, FileLineColLoc):
        return location.filename.data, location.line.data, location.column.data + 1
    return None

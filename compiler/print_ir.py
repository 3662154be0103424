"""A module as text that parses back, with the places in the source that its operations come from.

A location stands behind its op under a name that says where: `loc(#model_12_5)` is line 12, column 5, of
`model.py`. The names are defined above the module, one line each, as the parser wants them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import PurePath
from typing import IO, Any

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, UnknownLoc
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.printer import Printer


class LocationPrinter(Printer):
    """Prints the alias of its location behind an op, where it has one.

    What the base class prints with `print_debuginfo` is the whole path on each line, and `loc(unknown)` where
    there is none, block arguments included.
    """

    def __init__(
        self, stream: IO[str], aliases: Mapping[Attribute, str] | None = None, **printing: Any
    ) -> None:
        super().__init__(stream, **printing)
        self.aliases = aliases or {}

    def print_op(self, op: Operation) -> None:
        super().print_op(op)
        if (alias := self.aliases.get(op.location)) is not None:
            self.print_string(f" loc({alias})")

    def print_string_literal(self, string: str) -> None:
        """Characters beyond ASCII as they are: escaped, the parser takes them for bytes, not for a text."""
        if string.isprintable() and not set('"\\') & set(string):
            self.print_string(f'"{string}"')
        else:
            super().print_string_literal(string)


class LinePrinter(LocationPrinter):
    """Remembers on which line each op begins."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self.begins: dict[int, Operation] = {}

    def print_op(self, op: Operation) -> None:
        self.begins[self._current_line] = op
        super().print_op(op)


def module_lines(module: ModuleOp) -> list[tuple[str, Operation | None]]:
    """Each line of the module's text, and the op that begins on it."""
    text = StringIO()
    printer = LinePrinter(text)
    printer.print_op(module)
    return [(line, printer.begins.get(k)) for k, line in enumerate(text.getvalue().splitlines())]


def module_text(
    module: ModuleOp, locations: bool = True, dialects: Iterable[Dialect] = (), **printing: Any
) -> str:
    """The module as text, and the resources of the dialects; `printing` are options of xDSL's `Printer`."""
    aliases = location_aliases(module) if locations else {}
    text = StringIO()
    printer = LocationPrinter(text, aliases=aliases, **printing)
    for location, alias in aliases.items():
        printer.print_string(f"{alias} = ")
        printer.print_attribute(location)
        printer.print_string("\n")
    printer.print_op(module)
    printer.print_metadata(dialects)
    return text.getvalue()


def location_aliases(module: ModuleOp) -> dict[Attribute, str]:
    """A name for each location of the module's ops, in the order in which they occur."""
    places = (op.location for op in module.walk())
    known = dict.fromkeys(place for place in places if not isinstance(place, UnknownLoc))
    names = dict[str, Attribute]()
    for location in known:
        names[next(name for name in possible_names(location) if name not in names)] = location
    return {location: name for name, location in names.items()}


def possible_names(location: Attribute) -> Iterator[str]:
    """Names for a location: files of one stem may have the same line."""
    name = "#loc"
    if isinstance(location, FileLineColLoc):
        stem = re.sub(r"\W", "_", PurePath(location.filename.data).stem, flags=re.ASCII)
        name = f"#_{stem}" if not stem or stem[0].isdigit() else f"#{stem}"
        name = f"{name}_{location.line.data}_{location.column.data}"
    yield name
    number = 0
    while True:
        number += 1
        yield f"{name}_{number}"

"""Declared assembly formats are read when an op is first printed or parsed, not when its class is made.

xDSL reads the format of each op as it is declared: a fifth of the time that importing its dialects takes, and
a compilation neither prints nor parses. A format that is wrong is found later; `tests/test_lazy_formats.py`
reads all of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from xdsl.irdl import OpDef
from xdsl.irdl.declarative_assembly_format import FormatProgram

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


@dataclass
class LazyFormat:
    """In the place of a format that was read."""

    text: str
    definition: OpDef

    @cached_property
    def read(self) -> FormatProgram:
        from xdsl.irdl.declarative_assembly_format_parser import FormatParser

        return FormatParser(self.text, self.definition).parse_format()

    def parse(self, parser: Parser, kind: Any) -> Any:
        return self.read.parse(parser, kind)

    def print(self, printer: Printer, op: Any) -> None:
        self.read.print(printer, op)


FormatProgram.from_str = staticmethod(LazyFormat)  # pyright: ignore[reportAttributeAccessIssue]

"""Debug metadata: which line of Python an instruction comes from, and what a function is called there.

LLVM turns it into DWARF beside the code, which stays the same to the byte. Every instruction that an op is
written as has the op's line::

    %x = load double, ptr %p.3, !dbg !14       !14 = !DILocation(line: 7, scope: !9)
                                               !9 = distinct !DISubprogram(name: "heat.grad", line: 4, ...)

The IR does not know which call a line was inlined from. So what is compiled along has lines of its own file
(`!DILexicalBlockFile`) within the function that it was inlined into. Columns are left out: debuggers show
lines, and a place for each column makes the tables three times as long.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Attribute

from .llvm_text import Metadata

DWARF = 4
"""What every debugger reads."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that is one argument of the kernel: a number or an array of this type."""

    name: str
    type: str


@dataclass(frozen=True)
class Subject:
    """The Python function that a module is made of, and what its kernel is called: `heat.grad`."""

    name: str
    file: str
    line: int
    backward: str = ""
    """What the second kernel of a split gradient is called."""
    parameters: tuple[Parameter | None, ...] = ()
    """What debuggers may show of the kernel's first arguments."""


@dataclass(frozen=True)
class DebugInfo:
    """The debug metadata of one module; as the lines of one function if it has a `scope`."""

    metadata: Metadata
    subject: Subject
    unit: str
    name: str = ""
    scope: str = ""
    attachment: str = ""
    """What stands in the function's head."""
    scopes: dict[str, str] = field(default_factory=dict[str, str])
    """By file, the scope of its lines."""

    @classmethod
    def of(cls, metadata: Metadata, subject: Subject) -> DebugInfo:
        """A module's, before its first function."""
        unit = metadata.unique(
            f"!DICompileUnit(language: DW_LANG_Python, file: {file_node(metadata, subject.file)}, "
            'producer: "mutad", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)'
        )
        metadata.flags += [
            metadata.node(f'i32 7, !"Dwarf Version", i32 {DWARF}'),
            metadata.node('i32 2, !"Debug Info Version", i32 3'),
        ]
        metadata.named += [f"!llvm.dbg.cu = !{{{unit}}}"]
        return cls(metadata, subject, unit)

    def function(self, name: str) -> DebugInfo:
        """The lines of another function of the module."""
        file, types = file_node(self.metadata, self.subject.file), self.metadata.node("")
        scope = self.metadata.unique(
            f'!DISubprogram(name: "{quoted(name)}", '
            f"scope: {file}, file: {file}, line: {self.subject.line}, "
            f"type: {self.metadata.shared(f'!DISubroutineType(types: {types})')}, "
            f"scopeLine: {self.subject.line}, unit: {self.unit}, "
            "spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )
        return replace(
            self,
            name=name,
            scope=scope,
            attachment=f"!dbg {scope} ",
            scopes={self.subject.file: scope},
        )

    def retain(self, variables: Sequence[str]) -> None:
        """Debuggers list these variables of the function also where the code no longer has them."""
        nodes, number = self.metadata.nodes, int(self.scope.removeprefix("!"))
        kept = self.metadata.node(", ".join(variables))
        nodes[number] = f"{nodes[number].removesuffix(')')}, retainedNodes: {kept})"

    @property
    def start(self) -> str:
        """The tag of instructions that come from no op: the line at which the function begins."""
        return self.tag(self.subject.file, self.subject.line)

    def at(self, location: Attribute) -> str | None:
        """The tag of an op's instructions; None where its place is unknown."""
        if not isinstance(location, FileLineColLoc):
            return None
        return self.tag(location.filename.data, location.line.data)

    def tag(self, file: str, line: int) -> str:
        scope = self.scopes.get(file)
        if scope is None:
            node = file_node(self.metadata, file)
            block = f"!DILexicalBlockFile(scope: {self.scope}, file: {node}, discriminator: 0)"
            scope = self.scopes[file] = self.metadata.shared(block)
        return f", !dbg {self.metadata.shared(f'!DILocation(line: {line}, scope: {scope})')}"


def around(inner: DebugInfo | None) -> tuple[str, str]:
    """Head and tag of a function that does nothing for users but call this one, which may be inlined."""
    if inner is None:
        return "", ""
    outer = inner.function(f"{inner.name}.__call__")
    return outer.attachment, outer.start


def file_node(metadata: Metadata, file: str) -> str:
    folder, name = os.path.split(file)
    return metadata.shared(f'!DIFile(filename: "{quoted(name)}", directory: "{quoted(folder)}")')


def quoted(text: str) -> str:
    """The text as a string of LLVM's, without the quotes."""
    raw = text.encode("utf-8", "surrogateescape")
    return re.sub(rb"[^ !#-\[\]-~]", lambda found: b"\\%02X" % found[0][0], raw).decode("ascii")


def unquoted(text: str) -> str:
    """What a string of LLVM's says."""
    raw = re.sub(rb"\\([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), text[1:-1].encode())
    return raw.decode("utf-8", "surrogateescape")


ATTACHED = re.compile(r",? !dbg !\d+|^ *#dbg_\w+\(.*\)\n?", re.MULTILINE)


def without_lines(text: str) -> str:
    """LLVM text without what says where it comes from."""
    return ATTACHED.sub("", text)

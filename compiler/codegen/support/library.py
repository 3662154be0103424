"""Functions that a process has once: a library of its own, against which kernels and entries are linked.

What kernels and entries call seldom is the same in every module, and translating it took as long as a small
kernel. So it is compiled once for all of them, and kept in the disk cache; a module declares what it calls::

    define internal ptr @mutad_grow(ptr %ctx, i64 %size) noinline optnone nounwind {    ; in `support`
    define ptr @mutad_grow(ptr %ctx, i64 %size) noinline optnone nounwind {             ; in the library
    declare ptr @mutad_grow(ptr, i64) nounwind                                          ; beside a kernel

What is inlined is defined where it is called, and so is what a module exports. Libraries ahead of time have
functions of their own (`kernel_memory`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from ..entries.captures import constants_hold, read_place
from ..entries.cold import completed, poll, print_, raise_, undo
from ..entries.keywords import match_keywords
from ..entries.stacked import turning
from ..entries.writer import declarations
from .functions import DECLARATIONS, FUNCTIONS

ORIGIN = "support"
"""The kind of these symbols in a module's metadata."""
EXPORTED = ("mutad_drop",)
"""What a kernel's module exports is in it."""
IN_ENTRIES = (
    completed,
    constants_hold,
    match_keywords,
    poll,
    print_,
    raise_,
    read_place,
    turning,
    undo,
)

_HEAD = re.compile(
    r"define internal (?P<returned>.*)@(?P<name>\w+)\((?P<parameters>.*)\) (?P<attributes>.*){"
)
_NAMES = re.compile(r"@([\w.]+)")


@dataclass(frozen=True)
class Function:
    """One of the functions; `lines` of its text, from the head to the brace."""

    name: str
    lines: tuple[str, ...]
    beside: tuple[str, ...]
    """Declarations and globals that came with it."""

    @property
    def shared(self) -> bool:
        """Whether it is in the library: LLVM would not inline it anyway."""
        return "noinline" in self.lines[0] and self.name not in EXPORTED

    @property
    def called(self) -> set[str]:
        """The symbols that it names."""
        return set(_NAMES.findall("\n".join(self.lines[1:])))

    def external(self) -> list[str]:
        """Its definition in the library."""
        return [self.lines[0].replace("define internal ", "define ", 1), *self.lines[1:]]

    def declaration(self) -> str:
        head = _HEAD.fullmatch(self.lines[0])
        assert head is not None, self.lines[0]
        parameters = re.sub(r" %[\w.]+", "", head["parameters"])
        attributes = re.sub(r"noinline |optnone ", "", head["attributes"])
        return f"declare {head['returned']}@{head['name']}({parameters}) {attributes}".rstrip()


@dataclass(frozen=True)
class Linked:
    """What a module takes of the functions that its text names."""

    definitions: tuple[str, ...]
    """Lines: of what it has itself."""
    declarations: dict[str, str]
    """External symbol -> the line for it."""
    symbols: dict[str, str]
    """External symbol -> its kind: the library's, and libc's."""


@dataclass(frozen=True)
class Library:
    """The module of all shared functions."""

    text: str
    symbols: dict[str, str]
    """External symbol -> kind."""
    exports: tuple[str, ...]


def functions_in(text: str) -> list[Function]:
    """The functions that a text defines."""
    found: list[list[str]] = []
    beside: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("define "):
            found.append([])
            inside = True
        if inside:
            found[-1].append(line)
        elif line:
            beside.append(line)
        inside = inside and line != "}"
    names = ((_NAMES.search(lines[0]), lines) for lines in found)
    return [Function(n[1], tuple(lines), tuple(beside)) for n, lines in names if n is not None]


@cache
def _known() -> tuple[dict[str, Function], dict[str, str]]:
    """All functions by name, and what those of entries call of Python's."""
    symbols: dict[str, str] = {}
    texts = [*(text for text, _ in FUNCTIONS.values()), *(write(symbols) for write in IN_ENTRIES)]
    return {one.name: one for text in texts for one in functions_in(text)}, symbols


def linked(text: str, used: Iterable[str] = ()) -> Linked:
    """What a module of this text declares, and what it defines itself; `used` beside what the text names."""
    known, _ = _known()
    return _closure({*used, *_NAMES.findall(text)} & known.keys(), whole=False)


def _closure(roots: set[str], *, whole: bool) -> Linked:
    """The functions that are reached from these; the shared ones defined or declared."""
    known, _ = _known()
    pending, reached = sorted(roots), set[str]()
    definitions: list[str] = []
    named: dict[str, str] = {}
    symbols: dict[str, str] = {}
    while pending:
        name = pending.pop()
        if name in reached:
            continue
        reached.add(name)
        one = known[name]
        if one.shared and not whole:
            named[name], symbols[name] = one.declaration(), ORIGIN
            continue
        definitions += one.external() if one.shared else one.lines
        called = one.called
        pending += sorted(called & known.keys())
        for line in one.beside:
            if (symbol := _NAMES.findall(line)[0]) in called:
                named[symbol] = line
        for symbol in sorted(called & DECLARATIONS.keys()):
            named[symbol], symbols[symbol] = DECLARATIONS[symbol], "libc"
    return Linked(tuple(definitions), dict(sorted(named.items())), symbols)


def library() -> Library:
    """The module that is compiled once."""
    known, python = _known()
    exports = sorted(name for name, one in known.items() if one.shared)
    made = _closure(set(exports), whole=True)
    text = "\n".join([*made.declarations.values(), *declarations(python), *made.definitions, ""])
    return Library(text, {**made.symbols, **python}, tuple(exports))

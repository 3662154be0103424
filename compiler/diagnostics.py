"""Source spans and compile errors: file, line, column, the source text, a caret, a way out."""

from __future__ import annotations

import linecache
import os
import platform
import re
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc
from xdsl.ir import Attribute, Operation

_locations: WeakValueDictionary[tuple[str, int, int], FileLineColLoc] = WeakValueDictionary()
OWN = os.path.dirname(os.path.dirname(__file__))
PACKAGES = os.path.dirname(os.path.dirname(np.__file__))
LIBRARIES = tuple(
    path + os.sep for path in (OWN, *(os.path.join(PACKAGES, name) for name in ("numpy", "scipy")))
)
GENERATED = "<mutad: "
"""How the names of files begin that the runtime writes functions in: around those of the user's."""
STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
INSTALLED = os.sep + "site-packages" + os.sep


@lru_cache(maxsize=1_000)
def is_library(file: str) -> bool:
    """True for a source file of Python, NumPy, SciPy, or of ours: no line of it is the user's."""
    if file.startswith((STANDARD_LIBRARY, "<frozen ")) and INSTALLED not in file:
        return True
    return file.startswith(LIBRARIES)


def location_at(file: str, line: int, column: int) -> FileLineColLoc:
    """The attribute for a place, made once as long as there are ops of it: every op has one.

    As in MLIR, lines and columns count from 1.
    """
    found = _locations.get((file, line, column))
    if found is None:
        found = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
        _locations[file, line, column] = found
    return found


def locate(op: Operation, location: LocationAttr) -> None:
    """Put `op` at a place, with what its regions hold that has none: a body is made before its op."""
    op.location = location
    if op.regions:
        for inner in op.walk():
            if isinstance(inner.location, UnknownLoc):
                inner.location = location


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
        return location_at(self.file, self.line, self.column + 1)

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


ELSEWHERE = (
    "write it with operations that are compiled, or let Python run it: in a function with @mutad.opaque"
    " (and @mutad.rule, if a derivative goes through it), or outside compiled code"
)
"""The way out where there is no better one."""


PARTS = (
    (
        os.path.join("scipy", "optimize"),
        "call it outside, with compiled functions: jac=f.grad; or in a function with @mutad.opaque (and"
        " @mutad.rule, if a derivative goes through it): see the page `Solvers inside a model`",
    ),
    (
        os.path.join("numpy", "linalg"),
        "let Python run it: in a function with @mutad.opaque (and @mutad.rule, if a derivative goes through"
        " it): the page `Solvers inside a model` has eigh and its rule",
    ),
    (
        os.path.join("scipy", "integrate"),
        "write the steps as a loop, or the integral as a sum over nodes and weights, which are made outside",
    ),
)
"""Parts of libraries that are not compiled along, and how to do without them in compiled code."""


def is_limit(message: str) -> bool:
    """Whether it is mutad that cannot do this, rather than Python or NumPy."""
    return re.search(r"\b(is|are) not (compiled|supported)\b", message) is not None


LONGEST_CHAIN = 8
"""So many of the calls that lead to an error are shown, the innermost."""


def told(
    span: Span | None,
    message: str,
    way_out: str | None,
    notes: Sequence[tuple[Span, str]],
    calls: Sequence[Span] = (),
) -> str:
    """An error as users read it: where, what, the other places that matter, the calls, the way out."""
    lines = [f"{span}: error: {message}" if span else f"error: {message}"]
    if span and (shown := span.caret()):
        lines.append(shown)
    for place, note in [*notes, *((call, "called here") for call in calls[:LONGEST_CHAIN])]:
        lines.append(f"{place}: {note}")
        lines += [text] if (text := place.caret()) else []
    if len(calls) > LONGEST_CHAIN:
        lines.append(f"  and {len(calls) - LONGEST_CHAIN} more calls around")
    if way_out:
        lines.append(f"  way out: {way_out}")
    return "\n".join(lines)


class CompileError(Exception):
    """mutad does not compile this program; the message names the line and a way out.

    `notes` are other places that matter, each shown with its source line and carets; `calls` the calls
    in the program that lead to the line, from the inside out.
    """

    __module__ = "mutad"  # whose name for it is the one that users know
    names_the_line = True
    """What the runtime knows the class by, which it does not import."""
    kinds: ClassVar[dict[str, type[CompileError]]] = {}
    """The classes below, by the names that they have here; to users they are this one, or Python's own."""

    def __init_subclass__(cls, shown: tuple[str, str] = ("mutad", "CompileError")) -> None:
        cls.kind = cls.__name__
        cls.kinds[cls.kind] = cls
        cls.__module__, cls.__name__, cls.__qualname__ = *shown, shown[1]

    def __reduce__(self) -> Any:
        return restored, (getattr(self, "kind", ""), self.args, self.__dict__)

    def __init__(
        self,
        span: Span | None,
        message: str,
        way_out: str | None = None,
        notes: Sequence[tuple[Span, str]] = (),
    ) -> None:
        super().__init__(span, message, way_out, notes)
        self.span = span
        self.message = self.reason = message
        self.way_out = ELSEWHERE if way_out is None and is_limit(message) else way_out
        self.notes = tuple(notes)
        self.calls: list[Span] = []
        self.own = True
        """No line of the user's was passed on the way here."""

    def __str__(self) -> str:
        return told(self.span, self.reason, self.way_out, self.notes, self.calls)

    def leaves(self, file: str, name: str, call: Span | None) -> None:
        """The error is of a function that is called there; what a library's own code is refused for is no
        word about the user's."""
        if not is_library(file):
            self.own = False
        elif self.own and not file.startswith(OWN + os.sep):
            self.reason = (
                f"this call of {name} is not compiled"  # its own code is no news to the user
            )
            self.way_out = next((way for part, way in PARTS if part in file), ELSEWHERE)
        if call is None or call.file.startswith(GENERATED):
            return
        shown = [(one.file, one.line) for one in (self.span, *self.calls) if one is not None]
        if (call.file, call.line) not in shown:
            self.calls.append(call)


def restored(kind: str, args: tuple[Any, ...], state: dict[str, Any]) -> CompileError:
    """An error that was pickled: its class is not found by the name that it shows."""
    error = CompileError.kinds.get(kind, CompileError)(*args)
    error.__dict__.update(state)
    return error


class CompilerFault(SystemError):
    """The compiler failed, at a line of the user's: no `CompileError`, which is about the program.

    What it failed with is its cause. `within` is the pass or stage that failed, `command` what runs it alone.
    """

    def __init__(
        self,
        span: Span | None,
        error: BaseException,
        within: str | None = None,
        command: str | None = None,
    ) -> None:
        super().__init__(span, error, within, command)
        self.span = span
        self.error = error
        self.within = within
        self.command = command

    def __str__(self) -> str:
        message = f"this is mutad's own fault, not the program's: {type(self.error).__name__}: {self.error}"
        lines = [told(self.span, message, None, ())]
        lines += [f"  in {self.within}"] if self.within else []
        lines += [f"  with {versions()}"]
        lines += [f"  again, alone: {self.command}"] if self.command else []
        file = " and that file" if self.command else ""
        lines += [
            f"  way out: report it with the lines above{file}; meanwhile write this line otherwise"
        ]
        return "\n".join(lines)


def versions() -> str:
    """What a report of a fault should say."""
    from importlib import metadata  # 10 ms, for faults only

    names = ("mutad", "xdsl", "llvmlite", "numpy")
    ours = [f"{name} {metadata.version(name)}" for name in names]
    return ", ".join([*ours, f"Python {platform.python_version()}", platform.machine()])


def note_place(error: Exception, span: Span | None) -> None:
    """Remember where the compiler was when it failed: the innermost place that is noted."""
    if isinstance(error, CompileError):
        error.span = error.span or span
    elif span is not None:
        error.__dict__.setdefault("place", span)


def place_of(error: Exception) -> Span | None:
    """Where the compiler was when it failed: as noted, or the place of the op that it worked on."""
    noted = error.__dict__.get("place")
    traceback, found = error.__traceback__, None
    while traceback is not None:
        for value in traceback.tb_frame.f_locals.values():
            at = line_of(value) if isinstance(value, Operation) else None
            if at is not None:
                found = Span(at[0], at[1], at[2] - 1, at[1], at[2])
        traceback = traceback.tb_next
    return noted or found


class UndefinedName(CompileError, NameError, shown=("builtins", "NameError")):
    """A name that the function reads from outside, and that is not there: CPython's NameError."""


def line_of(op: Operation) -> tuple[str, int, int] | None:
    """File, line and column (from 1) that `op` came from, or None."""
    return _file_line_column(op.location)


class WithoutTangent(CompileError):
    """The program has no tangent, or no second derivative, that is known; it may have a gradient."""

    without_tangent = True


class WithoutLanes(CompileError):
    """The program has tangents, one at a time."""

    without_lanes = True


def refusal(
    op: Operation, message: str, way_out: str, kind: type[CompileError] = CompileError
) -> CompileError:
    """A compile error at the source of `op`."""
    at = line_of(op)
    span = None if at is None else Span(at[0], at[1], at[2] - 1, at[1], at[2])
    return kind(span, message, way_out)


def _file_line_column(location: Attribute) -> tuple[str, int, int] | None:
    if isinstance(location, FileLineColLoc):
        return location.filename.data, location.line.data, location.column.data
    return None


def line_of_function(function: Callable[..., Any]) -> Span | None:
    """The line at which a function begins."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    first = code.co_firstlineno
    return Span(code.co_filename, first, 0, first + 1, 0)

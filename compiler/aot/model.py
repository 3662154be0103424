"""The module that is compiled: imported as Python would, but what fails is told at its line.

Its own folder comes first on `sys.path`, as if it were run. What it prints goes to standard error, for an
output of ours may go to standard output.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection, Generator
from pathlib import Path
from types import ModuleType

from ..diagnostics import INSTALLED, CompileError, Span, is_library
from .option_values import WrongUsage

STDIN = "-"


@contextlib.contextmanager
def imported(path: str) -> Generator[tuple[ModuleType, Callable[[], list[str]]]]:
    """The module in a file, or on standard input, as long as it is compiled; CompileError where it raises.

    With it what tells which files of its folder were imported, its own among them.
    """
    if path == STDIN:
        text, file, folder = sys.stdin.buffer.read(), "<stdin>", os.getcwd()
        lines = text.decode(errors="replace").splitlines(keepends=True)
        linecache.cache[file] = (len(text), None, lines, file)
    else:
        text, file, folder = contents(path), path, str(Path(path).resolve().parent)
    name = name_of(path)
    module = ModuleType(name if name not in sys.modules else f"_{name}_")
    module.__file__ = file
    before = set(sys.modules)
    sys.modules[module.__name__] = module
    sys.path.insert(0, folder)
    try:
        execute(text, module, file)
        yield module, lambda: sorted(own_modules(folder, before).values())
    finally:
        sys.path.remove(folder)
        for new in own_modules(folder, before):
            del sys.modules[new]


def execute(text: bytes, module: ModuleType, file: str) -> None:
    """Run the module's text."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, too: a module that ends Python has no functions
        raise failed(error, file) from error


def own_modules(folder: str, before: Collection[str]) -> dict[str, str]:
    """The modules that the model has imported from its own folder, itself included, and their files."""
    found: dict[str, str] = {}
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        below = os.path.realpath(file).startswith(folder + os.sep)
        if file == "<stdin>" or (below and not is_library(file) and INSTALLED not in file):
            found[name] = file
    return found


def contents(path: str) -> bytes:
    """What is in the file; WrongUsage where it is not there to be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongUsage(f"{path}: {error.strerror}") from None


def name_of(path: str) -> str:
    """What the module in this file is called, and the library: a name in C."""
    name = re.sub(r"\W", "_", Path(path).stem, flags=re.ASCII) if path != STDIN else "stdin"
    return f"_{name}" if name[:1].isdigit() else name


def failed(error: BaseException, file: str) -> CompileError:
    """What an import raised, at the innermost line that is no library's, with the lines that led there."""
    kind, message = type(error).__name__, str(error)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return CompileError(span_of_syntax(error), f"{kind}: {error.msg}")
    frames = [span_of_frame(one) for one in traceback.extract_tb(error.__traceback__)]
    shown = [s for s in frames if not is_library(s.file) and INSTALLED not in s.file]
    told = f"importing the module raises {kind}" + (f": {message}" if message else "")
    *outer, at = shown or [Span(file, 1, 0, 1, 0)]
    return CompileError(at, told, None, [(one, "called here") for one in reversed(outer)])


def span_of_frame(frame: traceback.FrameSummary) -> Span:
    line, column = frame.lineno or 1, frame.colno or 0
    return Span(frame.filename, line, column, frame.end_lineno or line, frame.end_colno or column)


def span_of_syntax(error: SyntaxError) -> Span:
    """Where a syntax error is: Python counts its columns in characters, from 1; 0 is unknown."""
    file, line = error.filename or "", error.lineno or 1
    text = linecache.getline(file, line)

    def column(offset: int | None) -> int:
        return len(text[: max(0, (offset or 1) - 1)].encode())

    end_line = error.end_lineno or line
    return Span(file, line, column(error.offset), end_line, column(error.end_offset))

"""A format of lit whose cases run in children of a process that has imported the tools: each case is spared
their start, a second.

A RUN line is a pipe of `mutad-opt`, `mutadc` and `filecheck`. Each runs in a child of its own that was
forked: it has standard streams and an exit status as a process has, and leaves nothing behind. A case with
any other command goes to lit's own shell.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import lit.formats
import lit.Test
from filecheck.main import main as filecheck

from mutad.aot import main as aot_main
from mutad.opt import main as mutad_opt


def mutadc() -> None:
    sys.exit(aot_main())


TOOLS: dict[str, Callable[[], object]] = {
    "mutad-opt": mutad_opt,
    "mutadc": mutadc,
    "filecheck": filecheck,
}
SCRIPT = re.compile(r"\bRUN:(.*)")
OTHER_WORDS = re.compile(r"\b(REQUIRES|UNSUPPORTED|XFAIL|DEFINE|REDEFINE|ALLOW_RETRIES):")
"""What lit, not its shell, would make something of."""

Pipe = list[list[str]]


class Forked(lit.formats.ShTest):
    """One file is one test, as in `ShTest`."""

    def execute(self, test: Any, litConfig: Any) -> Any:
        path = test.getSourcePath()
        script = script_of(path)
        if script is None:
            return super().execute(test, litConfig)
        for pipe in script:
            failure = failure_of(pipe)
            if failure is not None:
                shown = " | ".join(map(shlex.join, pipe))
                return lit.Test.Result(lit.Test.FAIL, f"{shown}\n{failure}\n")
        return lit.Test.Result(lit.Test.PASS, "")


def script_of(path: str) -> list[Pipe] | None:
    """The pipe of each RUN line; None where something is not for us."""
    text = Path(path).read_text()
    lines = SCRIPT.findall(text)
    pipes = [pipe_of(line, path) for line in lines]
    if not pipes or None in pipes or OTHER_WORDS.search(text):
        return None
    return [pipe for pipe in pipes if pipe is not None]


def pipe_of(line: str, path: str) -> Pipe | None:
    """The commands of a line; None where it has more than pipes of tools, and `%s` for the file."""
    words = shlex.shlex(line, posix=True, punctuation_chars=";&<>()|")
    words.whitespace_split, words.commenters = True, ""
    pipe: Pipe = [[]]
    for word in words:
        if word == "|":
            pipe.append([])
        elif not set(word) - set(";&<>()|\\") or "%" in word.removeprefix("%s"):
            return None
        else:
            pipe[-1].append(path if word == "%s" else word)
    return pipe if all(command and command[0] in TOOLS for command in pipe) else None


def failure_of(pipe: Pipe) -> str | None:
    """What went wrong in the first command that fails; None if all went well."""
    with ExitStack() as files:
        given, *others = (files.enter_context(TemporaryFile()) for _ in range(2 * len(pipe) + 1))
        for command, made, told in zip(pipe, others[::2], others[1::2], strict=True):
            if status := forked(command, given, made, told):
                return f"{command[0]} ends with {status}\n{read(made)}{read(told)}"
            made.seek(0)
            given = made
    return None


def read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def forked(command: list[str], *streams: IO[bytes]) -> int:
    """Run a tool in a child with these standard streams: its exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # threads of BLAS, which do nothing then
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, range(3), "rww")
        warnings.simplefilter("error")
        sys.argv = command
        status = status_of(TOOLS[command[0]])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def status_of(tool: Callable[[], object]) -> int:
    """What the process would exit with."""
    try:
        tool()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

"""Scripts that complete the command's options in a shell, written from its parser.

eval "$(mutadc --completion bash)"
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Completed:
    """An option: its spellings, what it means, the words that may follow it."""

    names: tuple[str, ...]
    help: str
    words: tuple[str, ...]
    """Empty where any text may follow, or nothing."""
    takes: str
    """"none", "word", "file" or "text"."""


def script(shell: str, parser: argparse.ArgumentParser, files: Sequence[str]) -> str:
    """The script for a shell; what the options named in `files` take is the name of a file."""
    options = [*completed(parser, files)]
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](parser.prog, options)


def completed(parser: argparse.ArgumentParser, files: Sequence[str]) -> Iterator[Completed]:
    for one in parser._actions:  # pyright: ignore[reportPrivateUsage]
        if not one.option_strings:
            continue
        words = tuple(str(word) for word in one.choices or ())
        is_file = not {*one.option_strings}.isdisjoint(files)
        takes = "none" if one.nargs == 0 else "word" if words else "file" if is_file else "text"
        yield Completed(tuple(one.option_strings), (one.help or "") % vars(one), words, takes)


def bash(prog: str, options: Sequence[Completed]) -> str:
    """A function that `complete` calls: after an option its words or files, else options and files."""
    cases = list[str]()
    for one in options:
        made = {"word": f'-W "{" ".join(one.words)}"', "file": "-f", "text": ""}.get(one.takes)
        if made is not None:
            reply = f'COMPREPLY=($(compgen {made} -- "$word"))' if made else "COMPREPLY=()"
            cases.append(f"        {'|'.join(one.names)}) {reply}; return ;;")
    every = " ".join(name for one in options for name in one.names)
    return "\n".join(
        [
            f"_{prog}() {{",
            '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
            '    case "$before" in',
            *cases,
            "    esac",
            '    case "$word" in',
            f'        -*) COMPREPLY=($(compgen -W "{every}" -- "$word")) ;;',
            '        *) COMPREPLY=($(compgen -f -X "!*.py" -- "$word") $(compgen -d -- "$word")) ;;',
            "    esac",
            "}",
            f"complete -o filenames -F _{prog} {prog}",
            "",
        ]
    )


def zsh(prog: str, options: Sequence[Completed]) -> str:
    """Specifications for `_arguments`."""
    lines = list[str]()
    for one in options:
        told = one.help.replace("\\", "\\\\").replace("'", "'\\''")
        for mark in "[]:":
            told = told.replace(mark, f"\\{mark}")
        after = {"none": "", "word": f":value:({' '.join(one.words)})", "file": ":file:_files"}
        for name in one.names:
            lines.append(f"    '*{name}[{told}]{after.get(one.takes, ':text: ')}' \\")
    return "\n".join(
        [f"#compdef {prog}", "_arguments -s \\", *lines, "    '*:module:_files -g \"*.py\"'", ""]
    )


def fish(prog: str, options: Sequence[Completed]) -> str:
    """One `complete` for each option."""
    lines = [f"complete -c {prog} -k -x -a '(__fish_complete_suffix .py)'"]
    for one in options:
        told = one.help.replace("\\", "\\\\").replace("'", "\\'")
        names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in one.names)
        words = f"-x -a '{' '.join(one.words)}'" if one.words else ""
        takes = {"none": "", "word": words, "file": "-r -F", "text": "-x"}[one.takes]
        lines.append(" ".join(filter(None, (f"complete -c {prog}", names, takes, f"-d '{told}'"))))
    return "\n".join([*lines, ""])

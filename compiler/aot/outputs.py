"""Files that are all written, or none: each to a temporary beside its place, then renamed.

What is no regular file (`/dev/null`, a pipe) is written as it is, and `-` is standard output.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

STDOUT = "-"


@dataclass(frozen=True)
class Output:
    """What is written at one place."""

    data: bytes
    executable: bool = False


def write_all(outputs: Mapping[str, Output]) -> None:
    """Write every file, or, where one cannot be (OSError), leave all as they were."""
    files = {path: one for path, one in outputs.items() if is_file(path)}
    staged: dict[str, str] = {}
    made = folders_for(files)
    try:
        for path, one in files.items():
            staged[path] = beside(path, one)
        for path, one in outputs.items():
            if path not in files:
                write_through(path, one)
        replace_all(staged)
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):
                shutil.rmtree(folder)
        raise
    finally:
        for temporary in staged.values():
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def folders_for(paths: Iterable[str]) -> list[Path]:
    """Make the folders that are not there yet; those that were made, outer ones first."""
    made: list[Path] = []
    for path in paths:
        folder = Path(path).parent
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir()
            made.append(one)
    return made


def write_through(path: str, output: Output) -> None:
    """Write to what is no regular file."""
    if path == STDOUT:
        if (raw := getattr(sys.stdout, "buffer", None)) is not None:
            raw.write(output.data)
        else:  # it is redirected within Python
            sys.stdout.write(output.data.decode())
        sys.stdout.flush()
    else:
        Path(path).write_bytes(output.data)


def is_file(path: str) -> bool:
    """Whether a file is made there, or replaced."""
    if path == STDOUT:
        return False
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return True
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return stat.S_ISREG(mode)


def beside(path: str, output: Output) -> str:
    """A temporary file with these contents in the folder of `path`, which is followed where it is a link."""
    target = Path(os.path.realpath(path))
    number, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(output.data)
            os.fchmod(file.fileno(), (0o777 if output.executable else 0o666) & ~umask())
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def replace_all(staged: Mapping[str, str]) -> None:
    """Rename each temporary to its place; where one fails, those before it are as they were."""
    kept: dict[str, str | None] = {}
    try:
        for path, temporary in staged.items():
            target = os.path.realpath(path)
            kept[target] = kept_beside(target)
            os.replace(temporary, target)
    except BaseException:
        for target, old in reversed(kept.items()):
            with suppress(FileNotFoundError):
                os.unlink(target) if old is None else os.replace(old, target)
        raise
    finally:
        for old in filter(None, kept.values()):
            with suppress(FileNotFoundError):
                os.unlink(old)


def kept_beside(target: str) -> str | None:
    """A second name of the file that is there, until all are replaced; None where there is none."""
    name = f"{target}.{os.getpid()}.old"
    try:
        os.link(target, name)
    except FileNotFoundError:
        return None
    except OSError:  # a file system without hard links
        shutil.copy2(target, name)
    return name


def umask() -> int:
    """The process's mask, which can be read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""The files of a library for a C compiler: what `mutadc` writes, of exports that a test has."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from mutad.compiler.aot.emitters import EMITTERS
from mutad.compiler.aot.exports import Export
from mutad.compiler.aot.library import Library, compile_exports
from mutad.compiler.request import Options

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def write_files(
    folder: Path, name: str, exports: Sequence[Export], kinds: Sequence[str], opt: int = 1
) -> Library:
    """Compile once, and write each kind under its name."""
    library = compile_exports(name, exports, Options(opt=opt))
    for kind in kinds:
        one = EMITTERS[kind]
        (folder / one.file.format(name)).write_bytes(one.write(library))
    return library


def run(folder: Path, *command: str) -> str:
    """What a command prints; the test fails with all that it says where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def sanitizers(folder: Path, compiler: str) -> tuple[str, ...]:
    """The flags for sanitizers, where the compiler has their libraries, and programs with them run.

    (Where the system moves maps by more than 28 bits, compilers before gcc 13 make programs that end now and
    then before they begin.)
    """
    with suppress(OSError, ValueError):
        if int(Path("/proc/sys/vm/mmap_rnd_bits").read_text()) > 28:
            return ()
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    for command in ([compiler, *SANITIZED, "empty.c", "-o", "empty"], ["./empty"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        if done.returncode != 0:
            return ()
    return SANITIZED


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"builds with {program}")

"""Objects and libraries: files that the C compiler and `ar` make of object code.

`$CC` names the compiler and `$AR` the archiver; otherwise they are `cc` (for another machine or system than
ours, what its triple names: `aarch64-linux-gnu-gcc`) and `ar`, which archives code for any machine. What is
made is the same for the same input: no dates, no build identifiers, no paths.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from llvmlite.binding import get_default_triple

from .symbol_versions import ask_for_first_versions


class NoTool(Exception):
    """There is no C compiler or archiver, or it failed."""


def tool(variable: str, default: str) -> list[str]:
    """The command that an environment variable names; NoTool where it is not there."""
    command = shlex.split(os.environ.get(variable, "")) or [default]
    if shutil.which(command[0]) is None:
        raise NoTool(
            f"{command[0]}: not found; install a C compiler with binutils, or name one: {variable}=..."
        )
    return command


def compiler_for(triple: str) -> str:
    """What the C compiler for a machine and system is called, where packages have it."""
    arch, _, system = triple.partition("-unknown-")
    own = get_default_triple().split("-")
    if not triple or (own[0] == arch and triple.endswith("-".join(own[-2:]))):
        return "cc"
    return f"{arch}-{system}-gcc"


def ran(command: Sequence[str], folder: Path) -> str:
    """What a tool prints; NoTool with what it said where it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise NoTool(f"{command[0]} failed with status {done.returncode}: {said}")
    return done.stdout


def static_library(name: str, object_code: bytes) -> bytes:
    """The bytes of `lib<name>.a`."""
    archiver = tool("AR", "ar")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / f"{name}.o").write_bytes(object_code)
        ran([*archiver, "rcsD", f"lib{name}.a", f"{name}.o"], folder)
        return (folder / f"lib{name}.a").read_bytes()


def shared_library(
    name: str,
    object_code: bytes,
    promised: Sequence[str],
    libraries: Sequence[str] = ("m",),
    triple: str = "",
) -> bytes:
    """The bytes of `lib<name>.so`, which has the `promised` symbols for others and no more.

    `triple` is that of the object's machine and system; "" are ours.
    """
    compiler = tool("CC", compiler_for(triple))
    shown = "".join(f"    {symbol};\n" for symbol in promised)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / f"{name}.o").write_bytes(object_code)
        (folder / "symbols").write_text(f"{{\n  global:\n{shown}  local: *;\n}};\n")
        ask_for_first_versions(compiler, folder / f"{name}.o")
        ran(
            [
                *compiler, "-shared", "-o", f"lib{name}.so", f"{name}.o", f"-Wl,-soname,lib{name}.so",
                "-Wl,--version-script=symbols", "-Wl,--build-id=none", "-Wl,-z,noexecstack",
                "-Wl,--as-needed", *(f"-l{library}" for library in libraries),
            ],
            folder,
        )  # fmt: skip
        return (folder / f"lib{name}.so").read_bytes()

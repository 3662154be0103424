"""Versions of libm's symbols that old systems have, too.

A linker takes the newest version of a symbol that the machine at hand has, and the library then loads on no
system that is older: `exp@GLIBC_2.29`. glibc keeps `exp@GLIBC_2.2.5`, the same function, which sets `errno`
in another way. So the object asks for that one, by name.

Left as they are: `lgamma`, whose old version stores to a global variable, `memcpy`, whose old version is
slower, and what is no older (libmvec).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

NEWER = {
    "exp": "2.29", "exp2": "2.29", "log": "2.29", "log2": "2.29", "pow": "2.29",
    "expf": "2.27", "exp2f": "2.27", "logf": "2.27", "log2f": "2.27", "powf": "2.27",
    "hypot": "2.35", "hypotf": "2.35", "fmod": "2.38", "fmodf": "2.38", "exp10": "2.39", "exp10f": "2.39",
}  # fmt: skip
"""Functions, and since which glibc they have another version than the first."""
FIRST = {62: "GLIBC_2.2.5", 183: "GLIBC_2.17"}
"""glibc's first version, by the machine in an ELF file: x86-64, aarch64."""


def ask_for_first_versions(compiler: Sequence[str], file: Path) -> None:
    """Rename what an object calls of `NEWER`; nothing where libm is not glibc's, or binutils are missing."""
    code = file.read_bytes()
    version = FIRST.get(int.from_bytes(code[18:20], "little"))
    names = [name for name in NEWER if name.encode() + b"\0" in code]
    if version is None or not names or not Path(asked(compiler, "file", "libm.so.6")).is_absolute():
        return
    renames = [f"--redefine-sym={name}={name}@{version}" for name in names]
    try:
        command = [asked(compiler, "prog", "objcopy"), *renames, str(file)]
        subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return


def asked(compiler: Sequence[str], kind: str, name: str) -> str:
    """Where the compiler finds a library's "file" or a "prog"; the bare name where it does not know."""
    command = [*compiler, f"-print-{kind}-name={name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or name

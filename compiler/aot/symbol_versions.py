"""Versions of libm's symbols that old systems have, too.

A linker takes the newest version of a symbol that the machine at hand has, and the library then loads on no
system that is older: `exp@GLIBC_2.29`. glibc keeps `exp@GLIBC_2.2.5`, the same function, which sets `errno`
in another way. So the linker is shown a libm first that has these alone::

    GLIBC_2.2.5 { global: exp; log; pow; local: *; };

Left as they are: `lgamma`, whose old version stores to a global variable, and what is no older (libmvec).
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


def first_versions(compiler: Sequence[str], object_code: bytes, folder: Path) -> list[str]:
    """What is linked before libm; nothing where that is not glibc's, or the object calls none of `NEWER`."""
    version = FIRST.get(int.from_bytes(object_code[18:20], "little"))
    names = [name for name in NEWER if name.encode() + b"\0" in object_code]
    if version is None or not names or not has_glibc(compiler):
        return []
    (folder / "first").mkdir()
    (folder / "first" / "libm.s").write_text(
        "".join(f".globl {name}\n.type {name}, %function\n{name}:\n" for name in names)
        + '.section .note.GNU-stack, "", %progbits\n'
    )
    (folder / "first" / "versions").write_text(
        f"{version} {{ global: {'; '.join(names)}; local: *; }};\n"
    )
    command = [
        *compiler, "-shared", "-nostdlib", "-o", "first/libm.so", "first/libm.s", "-Wl,-soname,libm.so.6",
        "-Wl,--version-script=first/versions",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return ["first/libm.so"] if done.returncode == 0 else []


def has_glibc(compiler: Sequence[str]) -> bool:
    """Whether the compiler links glibc, whose libm has this name."""
    command = [*compiler, "-print-file-name=libm.so.6"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()).is_absolute()

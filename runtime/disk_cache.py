"""Compiled code on disk, so that the next process starts without compiling.

An entry's name is the hash of everything its contents depend on: the function and all that its code
reads (`fingerprint`), the argument keys, the options, the versions of mutad's own sources, Python,
NumPy and llvmlite, and the CPU that the code is for. So an entry never goes stale; it is only no longer
asked for.

The directory is `MUTAD_CACHE_DIR`, else the platform's cache directory. What another user could
have written is never loaded: directory and file must belong to us and be writable by us alone.
Writers replace files atomically, and a checksum finds the torn ones. No failure of the disk ever
breaks a call: then nothing is cached.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import types
from collections.abc import Generator
from pathlib import Path
from typing import Any

from . import target

# hashlib, json and the fingerprint are imported where they are used: `import mutad` is to be quick.

MAGIC = b"mutad cache 1\n"
SUFFIX = ".mutad"

Place = str | None
"""The file name of an entry; None where nothing may be cached."""


def place_of(
    function: types.FunctionType,
    arguments: tuple[str, ...],
    overlaps: tuple[tuple[int, int, str], ...],
    mode: str,
    wrt: tuple[int, ...],
    options: dict[str, Any],
) -> Place:
    """Where the code for this function, key and options belongs."""
    if not options["cache"] or os.environ.get("MUTAD_DUMP"):
        return None
    import hashlib

    from .fingerprint import Uncacheable, fingerprint

    try:
        digest = hashlib.sha256(fingerprint(function))
    except Uncacheable:
        return None
    cpu = target.chosen() or target.host()
    request = (arguments, overlaps, mode, wrt, sorted(options.items()), machine(cpu), sources())
    digest.update(repr(request).encode("utf-8", "surrogateescape"))
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in function.__name__)[:40]
    return f"{name}-{digest.hexdigest()}{SUFFIX}"


@functools.cache
def machine(cpu: target.Target) -> tuple[Any, ...]:
    """What machine code depends on beyond its source."""
    import llvmlite
    import numpy as np
    from llvmlite import binding

    return (
        sys.implementation.cache_tag, getattr(sys, "abiflags", ""), sys.platform, np.__version__,
        llvmlite.__version__, binding.llvm_version_info, cpu.cpu, sorted(cpu.features),
    )  # fmt: skip


@functools.cache
def sources() -> tuple[Any, ...]:
    """mutad's own source files, as far as they decide what code is made: path, size, time."""
    package = Path(__file__).resolve().parent.parent
    rooms = [package / "compiler", package / "dialects", package / "runtime"]
    found: list[tuple[str, int, int]] = []
    for room in rooms:
        for file in sorted(room.rglob("*.py")):
            status = file.stat()
            found.append((str(file.relative_to(package)), status.st_size, status.st_mtime_ns))
    return tuple(found)


def directory() -> Path | None:
    """The cache directory; None where there is no home."""
    if chosen := os.environ.get("MUTAD_CACHE_DIR"):
        return Path(chosen)
    try:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(base) / "mutad"
    except RuntimeError:
        return None


@contextlib.contextmanager
def opened(*, create: bool) -> Generator[int]:
    """A descriptor of the cache directory; OSError where it is not there or not ours alone."""
    path = directory()
    if path is None:
        raise FileNotFoundError("no cache directory")
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    descriptor = os.open(os.path.realpath(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _require_ours(os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def _require_ours(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("another user could have written this")


def read(place: Place) -> tuple[bytes, dict[str, Any]] | None:
    """Object code and metadata of an entry; None where there is none to trust."""
    if place is None:
        return None
    try:
        with opened(create=False) as at:
            descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=at)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                _require_ours(status)
                if not stat.S_ISREG(status.st_mode):
                    return None
                return unpack(file.read())
    except (OSError, ValueError, KeyError):
        return None


def write(place: Place, object_code: bytes, metadata: dict[str, Any]) -> None:
    """Store an entry, all of it or nothing."""
    if place is None:
        return
    with contextlib.suppress(OSError, ValueError, TypeError), opened(create=True) as at:
        temporary = f".{os.getpid()}-{os.urandom(8).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600, dir_fd=at)
        try:
            with open(descriptor, "wb") as file:
                file.write(pack(object_code, metadata))
            os.replace(temporary, place, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            os.unlink(temporary, dir_fd=at)
            raise


def pack(object_code: bytes, metadata: dict[str, Any]) -> bytes:
    import hashlib
    import json

    head = json.dumps(metadata).encode()
    body = len(head).to_bytes(8, "little") + head + object_code
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> tuple[bytes, dict[str, Any]] | None:
    """What `pack` packed; None where the data is torn."""
    import hashlib
    import json

    start = len(MAGIC) + 32
    body = data[start:]
    if not data.startswith(MAGIC) or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        return None
    length = int.from_bytes(body[:8], "little")
    return body[8 + length :], json.loads(body[8 : 8 + length])


def clear_cache() -> None:
    """Remove what mutad has cached on disk. Functions compiled in this process stay compiled."""
    with contextlib.suppress(OSError), opened(create=False) as at:
        for name in os.listdir(at):
            if name.endswith((SUFFIX, ".tmp")):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=at)

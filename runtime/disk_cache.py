"""Compiled code on disk, so that the next process starts without compiling.

An entry's name is the hash of everything its contents depend on: the function and all that its code
reads (`fingerprint`), the argument keys, the options, mutad's own sources, the versions of Python, libc and
the packages that make the code or are compiled along, and the CPU that the code is for. So an entry never
goes stale; it is only no longer asked for. The name is part of what the checksum is of: a file that was
renamed is none.

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
from collections.abc import Generator
from pathlib import Path
from typing import Any

from . import log, target

# hashlib, json and the fingerprint are imported where they are used: `import mutad` is to be quick.

MAGIC = b"mutad cache 2\n"
SUFFIX = ".mutad"

Place = str | None
"""The file name of an entry; None where nothing may be cached."""


def place_of_entries(convention: str, opt: int) -> Place:
    """Where the entries of all kernels that are called like this belong, compiled at a level."""
    return _shared_place("entries", convention, opt)


def place_of_shared(asked: str, opt: int) -> Place:
    """Where a library belongs that kernels ask for, compiled at a level."""
    return _shared_place("shared", asked, opt)


def place_of_support(opt: int) -> Place:
    """Where the functions belong that all code shares, compiled at a level."""
    return _shared_place("support", opt)


def _shared_place(what: str, *depends_on: object) -> Place:
    if os.environ.get("MUTAD_DUMP"):
        return None
    import hashlib

    request = (what, *depends_on, made_by())
    digest = hashlib.sha256(repr(request).encode("utf-8", "surrogateescape"))
    return f"{what}-{digest.hexdigest()}{SUFFIX}"


def place_of_imports(what: str = "imports", *depends_on: str) -> Place:
    """Where code belongs that the interpreter alone makes (`import_cache`, `module_cache`)."""
    if os.environ.get("MUTAD_DUMP"):
        return None
    import hashlib

    made_by = sys.version, sys.implementation.cache_tag, sys.flags.optimize, *depends_on
    return f"{what}-{hashlib.sha256(repr(made_by).encode()).hexdigest()}{SUFFIX}"


def made_by() -> tuple[Any, ...]:
    """What all machine code depends on beside what it is of."""
    return machine(target.chosen() or target.host()), sources()


@functools.cache
def machine(cpu: target.Target) -> tuple[Any, ...]:
    """What machine code depends on beyond its source."""
    import llvmlite
    import numpy as np
    from llvmlite import binding

    libc = os.confstr("CS_GNU_LIBC_VERSION") if hasattr(os, "confstr") else None
    return (
        sys.version, sys.implementation.cache_tag, getattr(sys, "abiflags", ""), sys.platform, libc,
        np.__version__, version_of("scipy"), version_of("xdsl"), llvmlite.__version__,
        binding.llvm_version_info, cpu.cpu, sorted(cpu.features),
    )  # fmt: skip


def version_of(package: str) -> str | None:
    """None where it came without metadata.

    What an installer has called its folder, which takes a tenth of the time to import what reads metadata.
    """
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.startswith(f"{package}-") and name.endswith(".dist-info"):
                    return name.removeprefix(f"{package}-").removesuffix(".dist-info")
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def sources() -> str:
    """mutad's own source files, as far as they decide what code is made: the hash of what is in them.

    Of what, not of when: packages are also installed with times that are all the same.
    """
    import hashlib

    package, digest = Path(__file__).resolve().parent.parent, hashlib.sha256()
    for room in ("compiler", "dialects", "runtime"):
        for folder, inner, names in os.walk(package / room):
            inner.sort()
            within = os.path.relpath(folder, package)
            for name in sorted(n for n in names if n.endswith(".py")):
                with open(os.path.join(folder, name), "rb", buffering=0) as file:
                    text = file.readall()
                digest.update(repr((os.path.join(within, name), len(text))).encode() + text)
    return digest.hexdigest()


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
    found = view(place)
    return None if found is None else (bytes(found[0]), found[1])


def view(place: Place) -> tuple[memoryview, dict[str, Any]] | None:
    """The same without a copy of the code."""
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
                return unpack(place, file.read())
    except (OSError, ValueError, KeyError):
        return None


def has(place: Place) -> bool:
    """Whether there is a file for this entry, or need not be one; `read` says whether it is good."""
    path = directory()
    return place is None or path is None or (path / place).exists()


def write(place: Place, object_code: bytes, metadata: dict[str, Any]) -> None:
    """Store an entry, all of it or nothing."""
    if place is None:
        return
    try:
        _write(place, object_code, metadata)
    except (OSError, ValueError, TypeError) as error:
        log.not_kept(str(directory()), str(error))


def _write(place: str, object_code: bytes, metadata: dict[str, Any]) -> None:
    with opened(create=True) as at:
        temporary = f".{os.getpid()}-{os.urandom(8).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600, dir_fd=at)
        try:
            with open(descriptor, "wb") as file:
                file.write(pack(place, object_code, metadata))
            os.replace(temporary, place, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            os.unlink(temporary, dir_fd=at)
            raise


def pack(place: str, object_code: bytes, metadata: dict[str, Any]) -> bytes:
    import hashlib
    import json

    head = json.dumps([place, metadata]).encode()
    body = len(head).to_bytes(8, "little") + head + object_code
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(place: str, data: bytes) -> tuple[memoryview, dict[str, Any]] | None:
    """What `pack` packed for this place; None where the data is torn, or of another one."""
    import hashlib
    import json

    start = len(MAGIC) + 32
    body = memoryview(data)[start:]
    if not data.startswith(MAGIC) or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        return None
    length = int.from_bytes(body[:8], "little")
    written_for, metadata = json.loads(bytes(body[8 : 8 + length]))
    return (body[8 + length :], metadata) if written_for == place else None


def clear_cache() -> None:
    """Remove what mutad has cached on disk. Functions compiled in this process stay compiled."""
    with contextlib.suppress(OSError), opened(create=False) as at:
        for name in os.listdir(at):
            if name.endswith((SUFFIX, ".tmp")):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=at)

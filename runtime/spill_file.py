"""Files for the restart states that memory has no room for: `memory=("1GiB", "disk:folder")`.

Each call of a gradient that keeps to a budget opens a file of its own, which has no name: nobody else sees
it, and it is gone when the call ends, however that ends. Files are known by the context of the call. A
process that is forked meanwhile has none of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from typing import Protocol

FIRST = 4096
"""Where contents begin: no place is 0."""


class Spill(Protocol):
    """Where restart states go: each a number of bytes at an address, to and from a place."""

    def close(self) -> None: ...
    def reserve(self, end: int) -> None: ...
    def write(self, address: int, count: int, place: int) -> None: ...
    def read(self, address: int, count: int, place: int) -> None: ...
    def soon(self, count: int, place: int) -> None: ...


files: dict[int, Spill] = {}
"""The open files, by the addresses of the calls' contexts."""


class SpillFile:
    """A file without a name in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            self.descriptor = unnamed(folder)
        except OSError as error:
            raise self.told(error, "a file") from None

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        os.close(descriptor)

    def reserve(self, end: int) -> None:
        """OSError where there is no room for so many bytes, before anything is run."""
        try:
            os.posix_fallocate(self.descriptor, 0, end)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise self.told(error, f"a file of {end:,} bytes") from None

    def write(self, address: int, count: int, place: int) -> None:
        """Write the bytes at an address."""
        done = 0
        while done < count:
            part = (ctypes.c_char * (count - done)).from_address(address + done)
            try:
                done += os.pwrite(self.descriptor, part, place + done)
            except OSError as error:
                raise self.told(error, f"a file of {place + count:,} bytes") from None

    def read(self, address: int, count: int, place: int) -> None:
        """Read bytes to an address."""
        done = 0
        while done < count:
            part = (ctypes.c_char * (count - done)).from_address(address + done)
            got = os.preadv(self.descriptor, [part], place + done)
            if not got:
                raise OSError(errno.EIO, f"a file in {self.folder} ends before its contents")
            done += got

    def soon(self, count: int, place: int) -> None:
        """What will be read next may come in the background."""
        with contextlib.suppress(OSError):
            os.posix_fadvise(self.descriptor, place, count, os.POSIX_FADV_WILLNEED)

    def told(self, error: OSError, what: str) -> OSError:
        """The error, with what was wanted."""
        text = f"{error.strerror}: {what} for the states that `memory=` leaves no room for"
        return OSError(error.errno, text, self.folder)


def unnamed(folder: str) -> int:
    """A descriptor of a file that no folder lists. OSError where there can be none."""
    flags = os.O_RDWR | os.O_CLOEXEC
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(folder, flags | os.O_TMPFILE, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix="mutad-", dir=folder)
    os.unlink(name)
    return descriptor


def opened(context: int, folder: str) -> None:
    """Open the file of a call."""
    files[context] = SpillFile(folder)


def closed(context: int) -> None:
    """Close it, if there is one."""
    found = files.pop(context, None)
    if found is not None:
        found.close()


def of(context: int) -> Spill:
    """The file of a call. RuntimeError in a process that was forked within it."""
    found = files.get(context)
    if found is None:
        raise RuntimeError("the process was forked within a gradient that keeps states in a file")
    return found


def forget() -> None:
    """In a child process: the parent writes to these files."""
    while files:
        _, one = files.popitem()
        one.close()


os.register_at_fork(after_in_child=forget)

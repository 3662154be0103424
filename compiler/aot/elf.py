"""What a shared library needs of others: read from its dynamic section, as the loader does."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

MACHINES = {62: "x86_64", 183: "aarch64"}
DYNAMIC, STRINGS, NEEDED, VERSIONS, COUNT = 2, 5, 1, 0x6FFFFFFE, 0x6FFFFFFF
LOAD = 1


@dataclass(frozen=True)
class Needs:
    """The machine, the libraries, and the versions of symbols that a library needs."""

    machine: str
    libraries: frozenset[str]
    glibc: tuple[int, int]
    """The newest version of glibc's symbols; (0, 0) where there is none."""
    others: frozenset[str]
    """Versions of symbols that are not glibc's."""


def needs_of(data: bytes) -> Needs:
    """Read the bytes of a 64-bit, little-endian shared library."""
    assert data[:6] == b"\x7fELF\x02\x01"
    (machine,) = struct.unpack_from("<H", data, 18)
    segments = list(segments_of(data))
    entries: list[tuple[int, int]] = []
    for kind, offset, _, size in segments:
        if kind == DYNAMIC:
            entries += struct.iter_unpack("<qQ", data[offset : offset + size])
    tags = dict(entries)

    def at(address: int) -> int:
        """Where in the file an address lies."""
        return next(
            address - start + offset
            for kind, offset, start, size in segments
            if kind == LOAD and start <= address < start + size
        )

    def text(offset: int) -> str:
        start = at(tags[STRINGS]) + offset
        return data[start : data.index(b"\0", start)].decode()

    libraries = frozenset(text(value) for tag, value in entries if tag == NEEDED)
    names: list[str] = []
    if VERSIONS in tags:
        names = [text(name) for name in versions(data, at(tags[VERSIONS]), tags[COUNT])]
    found = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", name) for name in names]
    glibc = [(int(m[1]), int(m[2])) for m in found if m is not None]
    others = frozenset(n for n, m in zip(names, found, strict=True) if m is None)
    return Needs(MACHINES.get(machine, str(machine)), libraries, max(glibc, default=(0, 0)), others)


def segments_of(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Kind, place in the file, address and size of each segment."""
    (first,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for k in range(count):
        kind, _, offset, address, _, filled = struct.unpack_from("<IIQQQQ", data, first + k * size)
        yield kind, offset, address, filled


def versions(data: bytes, place: int, count: int) -> Iterator[int]:
    """The names, as places among the strings, of all versions that are needed of other libraries."""
    for _ in range(count):
        _, names, _, first, following = struct.unpack_from("<HHIII", data, place)
        at = place + first
        for _ in range(names):
            _, _, _, name, step = struct.unpack_from("<IHHII", data, at)
            yield name
            at += step
        place += following

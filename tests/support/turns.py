"""Whose turn it is today for what takes long, above all users' level of LLVM: `--modes=K/N`."""

from __future__ import annotations

import zlib
from collections.abc import Sequence


class Turns:
    """The part of this run: the K-th of N. Without `--modes` it is everybody's turn."""

    part: tuple[int, int] = (0, 1)
    seeds: int = 0
    """Which of the runs of generated programs this is: each has seeds of its own (`--seeds`)."""


def has_turn(name: str) -> bool:
    """Whether a test or a row of this name is in the part. (Others choose by the last bits of the sum.)"""
    k, n = Turns.part
    return (zlib.crc32(name.encode()) >> 8) % n == k


def in_turn(names: Sequence[str]) -> list[str]:
    """Of some names one, in another run the next."""
    k, n = Turns.part
    return list(names) if n == 1 else [*names[k % max(1, len(names)) :][:1]]

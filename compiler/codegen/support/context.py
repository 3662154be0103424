"""The context that entries hand to kernels: 288 bytes, of which these are places."""

from __future__ import annotations

from collections.abc import Mapping

CURSOR, END, CHUNKS, TAPE_CHUNKS, IN_USE, PEAK, RESULTS, POLL = range(0, 64, 8)
LAST_POLL, SPARE, POOL, EMPTIED = 224, 240, 248, 256
RECURSION_LIMIT, STACK_END, ARENA = 264, 272, 280
"""Byte offsets in the context. `IN_USE` and `PEAK` count the bytes that tapes hold."""

TAPE_WORDS = 4
"""A tape is `{chunk, cursor, end, spare}`."""

Functions = Mapping[str, tuple[str, tuple[str, ...]]]
"""Each support function (with its companions), and what it calls."""

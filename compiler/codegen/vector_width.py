"""How wide the vectors of loops are, on CPUs with AVX-512.

LLVM makes vectors of 256 bits on Intel's CPUs: the first ones with AVX-512 lowered their clock for more.
Since Ice Lake (which is told by AVX512_VBMI2) they do not, and most loops gain: stencils in the first-level
cache take 0.6x to 0.8x of the time, functions and blocks of points 0.7x to 0.9x. Two kinds of loops do not:

- One that waits for divisions or roots, with little else to do: these take twice as long on twice as many
  numbers, and what comes behind them waits longer. Its vectors stay at 256 bits.
- A sum: it is as long as four vectors of 256 bits side by side, or two of 512, so that as little is left
  at its end, and it has as many partial sums.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

WIDE = "-prefer-256-bit"
"""The feature of a target machine by which LLVM makes vectors as wide as the registers."""
QUICK = re.compile(r" = f(?:add|sub|mul)\b|@llvm\.fma|@llvm\.fmuladd")
"""Sums and products, which take half as long in wide vectors."""
AMONG = 10
"""So many of them take as long as a division."""


def is_wide(features: frozenset[str]) -> bool:
    """Whether vectors of 512 bits pay on a CPU with these features, by LLVM's names."""
    return {"avx512vl", "avx512vbmi2"} <= features


def narrow_lanes(body: Sequence[str]) -> int | None:
    """The lanes that a loop should have less than LLVM would give it, by the lines of its only block."""
    slow = [line for line in body if " = fdiv " in line or "@llvm.sqrt." in line]
    if not slow or any("call " in line and "@llvm." not in line for line in body):
        return None  # a function has a version for eight numbers, which takes less for each
    if sum(bool(QUICK.search(line)) for line in body) > AMONG * len(slow):
        return None
    return 8 if any(" float " in line for line in slow) else 4

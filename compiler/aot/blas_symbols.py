"""BLAS by its standard symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence


def renamed(symbols: dict[str, str]) -> dict[str, str]:
    """External symbols as linkers know them."""
    return {blas_symbol(s) if origin == "blas" else s: origin for s, origin in symbols.items()}


def blas_symbol(symbol: str) -> str:
    """Fortran's name of a routine: `dgemm_` of `mutad_dgemm`."""
    return f"{symbol.removeprefix('mutad_')}_"


LETTERS = {"gemm": 2, "gemv": 1, "ger": 0, "trsm": 4, "syrk": 2}
"""How many of a routine's arguments are letters, each a string of one."""


def with_blas(declarations: Sequence[str], symbols: dict[str, str]) -> Iterator[str]:
    """Calls of BLAS by the standard symbols, with the lengths of strings behind, as Fortran has them."""
    for line in declarations:
        found = re.match(r"declare void @(mutad_[sd](\w+))\((.*)\)", line)
        if found is None or symbols.get(found[1]) != "blas":
            yield line
            continue
        count, lengths = len(found[3].split(", ")), LETTERS[found[2]]
        given = ", ".join(f"ptr %{k}" for k in range(count))
        more, ones = ", i64" * lengths, ", i64 1" * lengths
        yield f"declare void @{blas_symbol(found[1])}({found[3]}{more})"
        yield f"define internal void @{found[1]}({given}) alwaysinline nounwind {{"
        yield f"  call void @{blas_symbol(found[1])}({given}{ones})\n  ret void\n}}"

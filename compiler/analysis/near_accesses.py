"""Accesses that may touch the memory of another one, found by roots: most pairs of arrays share none."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ..rules import Access
from .alias import AliasAnalysis
from .views import strip_views


class NearAccesses:
    """Some accesses of one function, array by array."""

    def __init__(self, alias: AliasAnalysis, found: Sequence[Access]) -> None:
        self._alias = alias
        self._of_base: dict[SSAValue, list[tuple[int, Access]]] = {}
        self._bases: dict[SSAValue, list[SSAValue]] = {}
        """By root the memrefs that may denote it."""
        for k, access in enumerate(found):
            base = strip_views(access.memref)
            if base not in self._of_base:
                self._of_base[base] = []
                for root in alias.roots(base):
                    self._bases.setdefault(root, []).append(base)
            self._of_base[base].append((k, access))

    def to(self, memref: SSAValue) -> list[Access]:
        """Those that may touch the memory of `memref`, in their order."""
        bases = self._bases_near(memref)
        if len(bases) == 1:
            return [access for _, access in self._of_base[bases[0]]]
        return [a for _, a in sorted((one for b in bases for one in self._of_base[b]), key=place)]

    def pairs(self) -> int:
        """How many pairs there are of a write and an access near it."""
        return sum(
            sum(access.kind == "write" for _, access in of_base)
            * sum(len(self._of_base[b]) for b in self._bases_near(base))
            for base, of_base in self._of_base.items()
        )

    def _bases_near(self, memref: SSAValue) -> list[SSAValue]:
        near = (n for root in self._alias.roots(memref) for n in self._alias.interfering(root))
        return list(dict.fromkeys(base for root in near for base in self._bases.get(root, ())))


def place(one: tuple[int, Access]) -> int:
    return one[0]

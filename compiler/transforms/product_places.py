"""Where a loop may have its product: before all iterations, or after them. Part of `collect_products`.

What moves past another access of the loop must not meet it, in the same iteration or in those between
(`analysis/dependence`), but where both add to one element in any order (`analysis/additions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.additions import additions_in
from ..analysis.dependence import Dependence
from ..rules import Access, accesses


@dataclass(frozen=True)
class Place:
    """Before the loop or after it; `kept`: the operands whose vectors the loop writes down, or looks up."""

    before: bool
    kept: tuple[str, ...] = ()


class Places:
    """The question for one product of a loop.

    `in_array`: the operands of which those of all iterations are matrices as they lie.
    """

    def __init__(
        self,
        loop: array.LoopOp,
        op: array.MatmulOp,
        dependence: Dependence,
        in_array: Sequence[str] = ("a", "b", "c"),
    ) -> None:
        self.loop = loop
        self.op = op
        self.dependence = dependence
        self.in_array = in_array
        self.free = additions_in(loop, dependence.alias.may_alias, False)
        self.others = list(self._others())
        factors = [a for a in accesses(op) if a.memref is not op.c]
        self.reads = {n: [a for a in factors if a.memref is getattr(op, n)] for n in "ab"}
        self.result = [a for a in accesses(op) if a.memref is op.c]

    def place(self, *, packable: Sequence[str], buffered: bool, late: bool) -> Place | None:
        """Where, if anywhere. Factors named in `packable` may be kept, with `buffered` the result."""
        early = all(self._as_it_was(n, later=False) for n in "ab")
        if early and self._result_moves(later=False):
            return Place(True)
        if late and self._result_moves(later=True):
            kept = tuple(n for n in "ab" if not self._as_it_was(n, later=True))
            if set(kept) <= set(packable) and not self._feeds_itself():
                return Place(False, kept)
        return Place(True, ("c",)) if early and buffered else None

    def _as_it_was(self, name: str, *, later: bool) -> bool:
        """True when all iterations can read the factor at once."""
        reads = self.reads[name]
        if name not in self.in_array or self._crosses(reads, later=later):
            return False
        return not any(
            self._meet(a, b, self.loop)
            for read in reads
            for result in self.result
            for a, b in ((read, result), (result, read))
        )

    def _result_moves(self, *, later: bool) -> bool:
        return "c" in self.in_array and not self._crosses(self.result, later=later)

    def _feeds_itself(self) -> bool:
        """True when an iteration may read what an earlier one has added."""
        reads = [a for found in self.reads.values() for a in found]
        return any(self._meet(result, read, self.loop) for result in self.result for read in reads)

    def _crosses(self, mine: Sequence[Access], *, later: bool) -> bool:
        for other, behind in self.others:
            for access in mine:
                if later:
                    if behind and self._meet(access, other, None):
                        return True
                    if self._meet(access, other, self.loop):
                        return True
                else:
                    if not behind and self._meet(other, access, None):
                        return True
                    if self._meet(other, access, self.loop):
                        return True
        return False

    def _meet(self, a: Access, b: Access, level: array.LoopOp | None) -> bool:
        if a.kind == b.kind == "read" or (self._is_free(a) and self._is_free(b)):
            return False
        alias = self.dependence.alias
        return alias.may_alias(a.memref, b.memref) and self.dependence.may_meet(a, b, level)

    def _is_free(self, access: Access) -> bool:
        op = access.op
        if isinstance(op, array.MatmulOp):
            return op.accumulate is not None and access.memref is op.c
        return op in self.free

    def _others(self) -> Iterator[tuple[Access, bool]]:
        """What else the loop touches, and whether that comes after the product in an iteration."""
        behind = False
        for top in self.loop.body.block.ops:
            if top is self.op:
                behind = True
                continue
            for op in every_op(top):
                for access in accesses(op):
                    yield access, behind

"""Which memory an op reads and writes: what the rewrites ask before they move or drop anything.

Memory is named by its *roots* (see analysis/alias): allocations, cells, function arguments. Arguments
that may overlap count as one root here, and so do all segments of a tape. An op with regions has the effects
of all it contains; what an op does itself, its rule says. Raising an exception is no memory effect: ask
`is_operation_that_may_raise`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array
from ..analysis.alias import AliasAnalysis
from ..analysis.views import is_memref
from ..rules import accesses, rule_of, touches_nothing

Roots = frozenset[SSAValue]
NOTHING: Roots = frozenset()


@dataclass(frozen=True)
class Effects:
    """Roots that are read, roots that are written; `opaque` when it may be any root at all."""

    reads: Roots = NOTHING
    writes: Roots = NOTHING
    opaque: bool = False

    def writes_any(self, roots: Roots) -> bool:
        return self.opaque or not self.writes.isdisjoint(roots)

    def reads_any(self, roots: Roots) -> bool:
        return self.opaque or not self.reads.isdisjoint(roots)


NO_EFFECTS = Effects()


class MemoryEffects:
    """The effects of every op of one function; each is computed once."""

    def __init__(self, function: func.FuncOp) -> None:
        self._alias = AliasAnalysis(function)
        self._argument_root = overlap_groups(function)
        self._roots: dict[SSAValue, Roots] = {}
        self._effects: dict[Operation, Effects] = {}

    def roots(self, value: SSAValue) -> Roots:
        """Where the memory that `value` addresses may have come from."""
        known = self._roots.get(value)
        if known is None:
            found = frozenset(self._representative(r) for r in self._alias.roots(value))
            known = self._roots[value] = found
        return known

    def _representative(self, root: SSAValue) -> SSAValue:
        """The one root that stands for all that may share its memory."""
        owner = root.owner
        if isinstance(owner, ad.PushOp | ad.PopOp):
            return owner.tape
        return self._argument_root.get(root, root)

    def of(self, op: Operation) -> Effects:
        """The effects of `op` and of everything inside."""
        known = self._effects.get(op)
        if known is None:
            silent = not op.regions and is_silent(type(op))
            known = self._effects[op] = NO_EFFECTS if silent else self._compute(op)
        return known

    def _compute(self, op: Operation) -> Effects:
        if rule_of(type(op)).opaque:
            return Effects(opaque=True)
        reads, writes = set[SSAValue](), set[SSAValue]()
        for access in accesses(op):
            (reads if access.kind == "read" else writes).update(self.roots(access.memref))
        if isinstance(op, ad.SegmentOp):  # the order of pushes and pops is the tape's contents
            reads.add(op.tape)
            writes.add(op.tape)
        elif isinstance(op, func.ReturnOp):  # the caller reads what it gets
            reads |= {root for v in op.arguments if is_memref(v) for root in self.roots(v)}
        opaque = False
        for inner in (self.of(o) for region in op.regions for b in region.blocks for o in b.ops):
            if inner is not NO_EFFECTS:
                reads |= inner.reads
                writes |= inner.writes
                opaque |= inner.opaque
        if array.RAISES in op.attributes:  # nothing runs after it
            return Effects(frozenset(reads))
        return Effects(frozenset(reads), frozenset(writes), opaque)


@cache
def is_silent(kind: type[Operation]) -> bool:
    """Whether ops of a class have no effects but those of what is in them: most are scalar arithmetic."""
    return touches_nothing(kind) and not issubclass(kind, ad.SegmentOp | func.ReturnOp)


def functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """The functions of the module that have a body."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.body.blocks:
            yield op


def overlap_groups(function: func.FuncOp) -> dict[SSAValue, SSAValue]:
    """For each argument that may overlap another, the one argument that stands for them all."""
    arguments = function.body.block.args
    group: dict[SSAValue, SSAValue] = {}
    pairs = function.attributes.get("overlaps")
    if not isinstance(pairs, ArrayAttr):
        return group
    for pair in pairs:
        assert isinstance(pair, ArrayAttr)
        first, second = (arguments[p.value.data] for p in pair if isinstance(p, IntegerAttr))
        keep, drop = group.get(first, first), group.get(second, second)
        group[first] = group[second] = keep
        for member, representative in group.items():
            if representative is drop:
                group[member] = keep
    return group

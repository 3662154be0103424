"""Which memory an op reads and writes: what the rewrites ask before they move or drop anything.

Memory is named by its *roots* (see analysis/alias): allocations, cells, function arguments. Arguments
that may overlap count as one root here, and so do all segments of a tape. An op with regions has the effects
of all it contains. Raising an exception is no memory effect: ask `is_operation_that_may_raise`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator, NoMemoryEffect

from ...dialects import activation, ad, array
from ..analysis.alias import AliasAnalysis

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
            known = self._effects[op] = self._compute(op)
        return known

    def _compute(self, op: Operation) -> Effects:
        accessed = accesses(op)
        if accessed is None:
            return Effects(opaque=True)
        reads, writes = ({r for m in group for r in self.roots(m)} for group in accessed)
        opaque = False
        for inner in (self.of(o) for region in op.regions for b in region.blocks for o in b.ops):
            reads |= inner.reads
            writes |= inner.writes
            opaque |= inner.opaque
        if array.RAISES in op.attributes:  # nobody goes on after it
            return Effects(frozenset(reads))
        return Effects(frozenset(reads), frozenset(writes), opaque)


def functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """The functions of the module that have a body."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.body.blocks:
            yield op


def accesses(op: Operation) -> tuple[Iterable[SSAValue], Iterable[SSAValue]] | None:
    """The memrefs that the op itself reads, and writes; None when nothing is known of it."""
    match op:
        case memref.LoadOp():
            return (op.memref,), ()
        case memref.StoreOp():
            return (), (op.memref,)
        case array.MapOp():
            combined = [o for o, kind in zip(op.outs, op.out_kinds, strict=True) if kind != "store"]
            return (*op.ins, *combined), op.outs
        case array.MatmulOp():
            return (op.a, op.b, *((op.c,) if op.accumulate else ())), (op.c,)
        case array.PrintOp():
            return [v for v in op.values if isinstance(v.type, MemRefType)], ()
        case activation.CallOp():
            return op.read(), op.written()
        case func.ReturnOp():
            return [v for v in op.arguments if isinstance(v.type, MemRefType)], ()
        case ad.PushOp() | ad.PopOp():
            return (op.tape,), (op.tape,)
        case _ if op.regions or is_without_own_effect(op):
            return (), ()
        case _:
            return None


def is_without_own_effect(op: Operation) -> bool:
    """True when the op itself touches no memory (it may raise, allocate, or end a block)."""
    return (
        isinstance(op, array.AllocOp | array.IndexOp | memref.AllocaOp | ad.TapeOp)
        or array.is_operation_that_may_raise(op)
        or op.has_trait(NoMemoryEffect)
        or op.has_trait(IsTerminator)
    )


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

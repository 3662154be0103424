"""Which memory is the device's: arguments, results, what kernels touch, and what may be any of these.

The rest stays with the host. Of its variables those are the device's that the maps of a loop add to, and that
nothing else in the loop touches: the host would fetch such a sum, and wait for it, in each iteration.

A tape is all in one memory, and the halves of a gradient agree on those that the first hands to the second:
where a kernel of one of them touches a segment, the other half's are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from xdsl.dialects import func, memref
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.carried_cells import cell_of, is_outside
from ..analysis.views import is_memref
from ..rules import accesses
from . import nest_kernels


class Placement:
    """The roots of one function whose memory is the device's."""

    def __init__(
        self, function: func.FuncOp, alias: AliasAnalysis, kernels: Sequence[Operation]
    ) -> None:
        self.function, self.alias = function, alias
        self.tapes = segments_of(function, alias)
        self.groups = [set(alias.roots(v)) for v in names_in(function)]
        """Roots that are in one memory."""
        self.groups += self.tapes.values()
        self.roots: set[SSAValue] = {a for a in function.body.block.args if is_memref(a)}
        for result in filter(is_memref, returned(function)):
            self.roots |= alias.roots(result)
        for m in (m for op in kernels for m in touched_by(op)):
            self.roots |= {r for r in alias.roots(m) if cell_of(r) is None}
        self.roots |= sums_of_loops(function, [k for k in kernels if isinstance(k, array.LoopOp)])
        self.spread()

    def has(self, memref: SSAValue) -> bool:
        return not self.alias.roots(memref).isdisjoint(self.roots)

    def spread(self) -> None:
        """What may be one is in one memory."""
        roots = self.roots
        while more := [g for g in self.groups if not g.isdisjoint(roots) and not g <= roots]:
            roots.update(*more)

    def has_tape(self, tape: SSAValue) -> bool:
        return not self.tapes[tape].isdisjoint(self.roots)

    def take_tape(self, tape: SSAValue) -> None:
        self.roots |= self.tapes[tape]
        self.spread()


def agree(placements: Sequence[Placement]) -> None:
    """Functions that hand tapes on, and those that take them, have them in the same memory."""
    pairs = [
        ((one, given), (other, taken))
        for one, other in pairwise(placements)
        for given, taken in handed_on(one.function, other.function)
        if given in one.tapes and taken in other.tapes
    ]
    while apart := [p for p in pairs if len({half.has_tape(tape) for half, tape in p}) > 1]:
        for half, tape in (side for pair in apart for side in pair):
            half.take_tape(tape)


def handed_on(first: func.FuncOp, second: func.FuncOp) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The tapes that the first half of a gradient returns, and what the second calls them."""
    given = [v for v in returned(first) if isinstance(v.type, ad.TapeType)]
    taken = [a for a in second.body.block.args if isinstance(a.type, ad.TapeType)]
    yield from zip(given, taken, strict=True)


def sums_of_loops(function: func.FuncOp, nests: Sequence[Operation]) -> set[SSAValue]:
    """The variables that maps in a loop combine terms with, and that no other op touches there.

    The threads of `nests` have variables of their own, or are given numbers of the host's.
    """
    touching: dict[SSAValue, list[Operation]] = {}
    for op in every_op(function):
        cells = {cell for one in accesses(op) if (cell := cell_of(one.memref)) is not None}
        for cell in cells:
            touching.setdefault(cell, []).append(op)
    others = {op for nest in nests for op in nest.walk()}
    return {c for c, ops in touching.items() if others.isdisjoint(ops) and is_sum_of_loop(c, ops)}


def is_sum_of_loop(cell: SSAValue, touching: Sequence[Operation]) -> bool:
    """Whether a loop that the variable is there before leaves it to maps."""
    owner = cell.owner
    assert isinstance(owner, Operation)
    around = set(enclosing_loops(owner))
    for op in touching:
        loop = next(reversed(enclosing_loops(op)), None)
        if loop is None or loop in around or not combines(op, cell):
            continue
        if is_left_to_maps([one for one in touching if loop.is_ancestor(one)], loop):
            return True
    return False


def is_left_to_maps(touching: Sequence[Operation], loop: array.LoopOp) -> bool:
    """Whether the host only stores to a variable in a loop, and numbers that it had before."""
    return all(
        isinstance(op, array.MapOp)
        or (isinstance(op, memref.StoreOp) and is_outside(op.value, loop))
        for op in touching
    )


def combines(op: Operation, cell: SSAValue) -> bool:
    """Whether a map leaves one number of all its points in a variable."""
    if not isinstance(op, array.MapOp):
        return False
    outs = zip(op.outs, op.out_kinds, strict=True)
    return any((kind != "store" or not op.extents) and cell_of(m) is cell for m, kind in outs)


def segments_of(function: func.FuncOp, alias: AliasAnalysis) -> dict[SSAValue, set[SSAValue]]:
    """The roots of what is pushed to each tape, and popped from it."""
    found: dict[SSAValue, set[SSAValue]] = {}
    for op in every_op(function):
        if isinstance(op, ad.PushOp | ad.PopOp):
            found.setdefault(tape_of(op), set()).update(alias.roots(op.memref))
    return found


def tape_of(op: ad.PushOp | ad.PopOp) -> SSAValue:
    """The tape of a segment; of one that is read, the one that was handed on."""
    owner = op.tape.owner
    return owner.source if isinstance(owner, ad.ReaderOp) else op.tape


def returned(function: func.FuncOp) -> Sequence[SSAValue]:
    last = function.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    return last.arguments


def names_in(function: func.FuncOp) -> Iterator[SSAValue]:
    """All memrefs of a function."""
    for op in every_op(function):
        found = (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args))
        yield from filter(is_memref, found)


def touched_by(op: Operation) -> Sequence[SSAValue]:
    """The memrefs that what becomes a kernel has from outside."""
    if isinstance(op, array.LoopOp):
        return list(nest_kernels.arrays_of(op))
    return list(filter(is_memref, op.operands))

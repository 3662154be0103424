"""Nests of counted loops around scalar code: what may be moved in them, and what they touch.

Part of `reorder_loops` and `unroll_and_jam`. An exception must find memory as Python leaves it: where checks
of subscripts are all that may raise, and can be decided before the nest, it is there in two versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.additions import additions_in
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.dependence import Dependence
from ..analysis.loop_order import LoopOrder, Parts
from ..analysis.nest_proofs import Condition, NestProofs, all_of
from ..analysis.views import is_memref, strip_views
from ..rules import Access, accesses, evaluates_body, is_whole_array
from .entry_checks import decided_before
from .hoist_checks import is_counted
from .interchange import LoopPair, pair_of

PAIRS = 400
"""Nests in which more pairs of accesses to one array would have to be compared are kept."""
LOOKED_AT = 10 * PAIRS
"""The same for pairs of any arrays: of most pairs of two arrays it is known that they do not meet."""


def are_many(found: Sequence[Access]) -> bool:
    """Whether too many pairs would have to be compared: those of which one is a write."""
    of_array: dict[SSAValue, list[Access]] = {}
    for access in found:
        of_array.setdefault(strip_views(access.memref), []).append(access)
    return pairs(found) > LOOKED_AT or sum(map(pairs, of_array.values())) > PAIRS


def pairs(found: Sequence[Access]) -> int:
    return len(found) * sum(access.kind != "read" for access in found)


def scalar_nests(block: Block) -> Iterator[array.LoopOp]:
    """The outermost counted loops with nothing but scalar code and such loops in them."""
    for op in block.ops:
        if array.RAISES in op.attributes or evaluates_body(op):
            continue
        if isinstance(op, array.LoopOp) and is_plain_nest(op):
            yield op
            continue
        for region in op.regions:
            for inner in region.blocks:
                yield from scalar_nests(inner)


def is_plain_nest(loop: array.LoopOp) -> bool:
    return not any(
        isinstance(o, array.AllocOp)
        or is_whole_array(o)
        or (isinstance(o, array.LoopOp) and not (is_counted(o) and not o.carried))
        for o in every_op(loop)
    )


class ScalarNest:
    """One outermost nest, and what is known of it.

    Scalar nests may share an `alias` analysis: no change to one of them changes what memory names denote.
    """

    def __init__(
        self,
        function: func.FuncOp,
        loop: array.LoopOp,
        fastmath: bool,
        alias: AliasAnalysis | None = None,
    ) -> None:
        self.loop = loop
        self.fastmath = fastmath
        self.alias = alias or AliasAnalysis(function)
        self.function = function
        self.dependence = Dependence(function, self.alias)
        subscripts = self.dependence.footprints.subscripts
        proofs = NestProofs(loop, subscripts, self.alias)
        self.open: dict[Operation, Condition] = proofs.provable(set())
        """The checks that are decided on entry."""

    def pair(self, outer: array.LoopOp) -> LoopPair | None:
        """The two loops, where all that is in them may be moved."""
        if not has_one_loop(outer):
            return None
        ops = [op for op in every_op(outer)[1:] if not isinstance(op, array.YieldOp)]
        plain = is_counted(outer) and not {array.CLAIMED, array.EXCLUSIVE} & outer.attributes.keys()
        if not plain or not all(isinstance(op, array.LoopOp) or self.movable(op) for op in ops):
            return None
        return pair_of(outer, self.dependence.footprints.subscripts)

    # What may be moved.

    def movable(self, op: Operation) -> bool:
        """Loads, stores and scalar code that certainly does not raise in the nest."""
        if op.regions or any(map(is_memref, op.results)):
            return False
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            return True
        if array.is_operation_that_may_raise(op):
            return op in self.open
        if isinstance(op, array.IndexOp | array.CheckedIntOp):
            return True
        known = op.has_trait(Pure) or isinstance(op, memref.DimOp)
        return known or op.name.startswith(("arith.", "math."))

    def additions(self, loop: array.LoopOp) -> set[Operation]:
        return additions_in(loop, self.alias.may_alias, self.fastmath)

    # Before the first change.

    def committed(self) -> bool:
        """Take the checks out of the nest, with the nest as it was beside it; False where that cannot be."""
        if not self.open:
            return True
        slow = self.beside(all_of(list(self.open.values())))
        if slow is None:
            return False
        slow.attributes[array.SMALL] = UnitAttr()
        for op in self.open:
            without_check(op)
        self.open = {}
        return True

    def beside(self, condition: Condition) -> array.LoopOp | None:
        """Put a copy beside the nest, for where a condition does not hold; None where that cannot be."""
        check = decided_before(self.loop, condition)
        if check is None:
            return None
        loop, block = self.loop, self.loop.parent
        assert block is not None
        assert loop.count is not None
        copy = loop.clone()
        if loop.trips.first_use is not None:
            zero = check.constant(0)
            ran = check.emit(arith.MaxSIOp(loop.count, zero))
            loop.trips.replace_all_uses_with(ran)
        following = loop.next_op
        loop.detach()
        branch = scf.IfOp(check.holds, [], [loop, scf.YieldOp()], [copy, scf.YieldOp()])
        branch.location = loop.location
        assert following is not None
        block.insert_op_before(branch, following)
        return copy

    def look_again(self) -> None:
        """Forget what was known of values that have changed."""
        self.dependence = Dependence(self.function, self.alias)


def parts_of(
    pair: LoopPair, inside: Sequence[Access], order: LoopOrder, *, again: bool = False
) -> Parts | None:
    """What the pair touches; None where what it loads before the inner loop changes in it.

    `again`: what it loads there, and uses behind the inner loop, may be loaded there again.
    """
    if not again and any(isinstance(op, memref.LoadOp) for op in pair.again):
        return None
    before, after = accesses_of(pair.before), accesses_of(pair.after)
    if order.any_changed(accesses_of(pair.again), [*before, *inside]):
        return None  # What was loaded before the inner loop would be loaded after it.
    if order.any_meet(accesses_of(pair.sunk), [*before, *inside], None):
        return None  # What was loaded once would be another value later.
    return Parts(pair.outer, pair.inner, pair.trips, before, inside, after)


def accesses_of(ops: Sequence[Operation]) -> list[Access]:
    """What they touch, with what is in them."""
    return [a for op in ops for inner in every_op(op) for a in accesses(inner)]


def shared_by_threads(access: Access, nest: array.LoopOp, dependence: Dependence) -> bool:
    """Whether iterations of a loop around the nest, which threads may run, add to what the access is to.

    Each thread then has memory of its own for it, as long as it can be seen that they add.
    """
    claimed = {array.CLAIMED, array.EXCLUSIVE}
    around = [loop for loop in enclosing_loops(nest) if claimed & loop.attributes.keys()]
    return any(dependence.may_meet(access, access, loop) for loop in around)


def inner_loops(loop: array.LoopOp) -> list[array.LoopOp]:
    """The loops directly in a loop."""
    return [op for op in loop.body.block.ops if isinstance(op, array.LoopOp)]


def has_one_loop(loop: array.LoopOp) -> bool:
    """Whether there is one loop directly in it: each of many asks, so two are enough to know."""
    found = (op for op in loop.body.block.ops if isinstance(op, array.LoopOp))
    return next(found, None) is not None and next(found, None) is None


def leaves_in(loop: array.LoopOp) -> list[array.LoopOp]:
    """The loops, this one or in it, that have nothing but code without regions in them."""
    return [
        op
        for op in ops_of_kind(loop, array.LoopOp)
        if not any(o.regions for o in op.body.block.ops)
    ]


def without_check(op: Operation) -> None:
    """The op where it is known not to raise."""
    made: Operation
    match op:
        case array.CheckedAddOp():
            made = arith.AddiOp(op.lhs, op.rhs)
        case array.CheckedSubOp():
            made = arith.SubiOp(op.lhs, op.rhs)
        case array.CheckedMulOp():
            made = arith.MuliOp(op.lhs, op.rhs)
        case _:
            op.properties["unchecked"] = UnitAttr()
            return
    made.location = op.location
    Rewriter.replace_op(op, made)

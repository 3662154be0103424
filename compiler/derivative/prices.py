"""What a save costs, and what it costs to fill an array once more: bytes, at nominal sizes.

A save costs the bytes of its segment, as often as it is pushed. Scalar code costs nothing, except functions
of elements whose adjoint reads the result alone (`exp`, `tanh`), if the results stay in the cache. Such a
function costs a little more than its result on a tape, so one save is cheaper and two are not
(`FUNCTION_OF_ELEMENTS`). To fill an array again costs a part of a byte for each element and op, and more for
a function. So a temporary of a few functions is filled again, and a sum of many elements is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..analysis.independence import Independence
from ..analysis.kills import Kills
from ..rules import RULES, Contents, ScalarRule
from ..rules.builders import element_of
from ..rules.math import is_transcendental
from .capacities import Nominal
from .invariance import Invariance
from .overwritten import Overwritten
from .refills import Refill
from .segments import (
    ArrayExtent,
    Margins,
    Segment,
    bytes_of,
    extents_of_base,
    extents_of_part,
    is_recomputable,
    lies_by_columns,
    rectangular,
    value_block,
)
from .versions import Version, is_growable

VERSION_PREMIUM = 1.0
"""Bytes: a copy of a whole array is a sweep of its own, so a value of the same size is preferred."""

PART_PREMIUM = 2.0
"""Bytes: what an op reads of an array is copied where that is less than the array, and than old contents."""

OLD_CONTENTS_PREMIUM = 0.5
"""Bytes: the old contents of a store are saved where they are fewer than the values that they serve."""

ACCESS, ARITHMETIC, DIVISION, FUNCTION = 1 / 16, 1 / 32, 1 / 8, 1 / 2
"""Bytes: what an element costs that is read or written, or computed, once more."""

FUNCTION_OF_ELEMENTS = 1.25
"""Saves of a result: what a function of elements takes that is computed once more, in vectors.

Measured with AVX-512, nanoseconds an element: `exp` takes 0.6, `tanh` 1.2 to 2.4; eight bytes that are
written to a tape and read again take 0.2 where it stays in the cache. Where it does not they take 0.4 to 0.6:
not worth the memory.
"""

TAPE_IN_CACHE = 8 * 2**20
"""Bytes, nominally: a tape over two unknown extents stays in the cache, one over three does not."""

DIVIDING = (arith.DivfOp, math.SqrtOp)


def memory_of(
    node: SSAValue | Contents | Version | Overwritten, at: Operation
) -> Sequence[SSAValue]:
    """The memory whose contents are saved, or what a map reads that computes what is saved."""
    match node:
        case Version():
            return [node.base]
        case Overwritten():
            return [node.target]
        case Contents():
            return [node.memref]
        case _:
            return at.ins if isinstance(at, array.MapOp) else []


class Prices:
    """Of one function; where memory is what is scarce, `bytes_alone` count."""

    def __init__(self, kills: Kills, *, bytes_alone: bool = False) -> None:
        self.bytes_alone = bytes_alone
        self.spares = False
        """Whether a function had a price."""
        self._independence = Independence(kills.function, kills.dependence, fastmath=True)
        self._alike: dict[Operation | None, bool] = {}
        self.nominal = Nominal(kills.dependence.footprints.subscripts)
        self.invariance = Invariance(kills)

    # Segments.

    def segment(
        self,
        node: SSAValue | Contents | Version | Overwritten,
        at: Operation,
        margins: Margins | None = None,
        *,
        trusting: bool = True,
    ) -> Segment:
        """Where a value lies that is saved at an op."""
        if isinstance(node, Version):
            own, element = extents_of_base(node.base), element_of(node.base)
        elif isinstance(node, Overwritten):
            own, element = tuple(node.extents), node.element
        elif isinstance(node, Contents):
            own, element = extents_of_part(node.memref), element_of(node.memref)
        else:
            own = tuple(at.extents) if isinstance(at, array.MapOp) else ()
            element = node.type
        of_map = isinstance(node, SSAValue) and isinstance(at, array.MapOp)
        is_scalar = isinstance(node, SSAValue) and not of_map
        unchanging = ()
        if isinstance(node, SSAValue) and trusting:
            unchanging = self.invariance.loops(node)
        loops, push_before = rectangular(at, own, unchanging)
        unsaved = ((0, 0),) * len(loops) if margins is None else margins
        turned = len(own) == 2 and element != i1 and any(map(lies_by_columns, memory_of(node, at)))
        return Segment(element, loops, push_before, unsaved, own, is_scalar, of_map, turned=turned)

    def of_segment(self, segment: Segment) -> float:
        """Its bytes, each time that it is pushed."""
        size = float(bytes_of(segment.element))
        size *= self.nominal.trips(cast(Block, segment.push_before.parent))
        for dimension in segment.dimensions:
            of = dimension.number
            if isinstance(of, ArrayExtent):
                size *= self.nominal.extent(of.base, of.axis)
            else:
                size *= max(self.nominal.size(of) - dimension.less, 1.0) / dimension.per
        return size

    def of_version(self, version: Version, reader: Operation) -> float:
        size = self.of_segment(self.segment(version, reader))
        if is_growable(version.base):
            size *= array.UNBOUNDED  # addresses, not memory
        return size + VERSION_PREMIUM

    def of_contents(self, read: Contents) -> float:
        return self.of_segment(self.segment(read, read.op)) + PART_PREMIUM

    def to_put_together(self, version: Version, reader: Operation) -> float:
        """What it takes to copy an array from its memory, and from old contents over that."""
        segment = self.segment(version, reader)
        return 4 * ACCESS * self.of_segment(segment) / bytes_of(segment.element)

    # Computing once more.

    def of_function(self, value: SSAValue) -> float:
        """What a value costs that a map, or a loop like one, computes once more by a function; else nothing.

        Nothing where the adjoint computes a function of the same operand itself (`sin` needs `cos`), and
        where the results would not stay in the cache. Other loops are left out: where an iteration waits for
        the one before, the forward sweep waits for its functions one by one, and the reverse sweep, which
        knows all their operands, does not.
        """
        op, around = value.owner, value_block(value).parent_op()
        if self.bytes_alone or isinstance(op, Block):
            return 0.0
        if not is_derived_of_its_result(op) or not self._is_of_elements(around):
            return 0.0
        at = around if isinstance(around, array.MapOp) else op
        results = self.of_segment(self.segment(value, at))
        if results > TAPE_IN_CACHE:
            return 0.0
        self.spares = True
        return FUNCTION_OF_ELEMENTS * results

    def _is_of_elements(self, around: Operation | None) -> bool:
        """The points of a map, or iterations that share nothing but sums."""
        if isinstance(around, array.LoopOp) and around not in self._alike:
            self._alike[around] = self._independence.of(around) is not None
        return isinstance(around, array.MapOp) or self._alike.get(around, False)

    def work(self, refill: Refill) -> float:
        """What the steps of a refill do, as often as they run."""
        return sum(
            self._work(op, refill) * self.nominal.trips(cast(Block, op.parent))
            for step in refill.steps
            for op in refill.clones(step)
        )

    def _work(self, op: Operation, refill: Refill) -> float:
        """What one op of a refill does when it runs, without those within."""
        match op:
            case array.MapOp():
                points = prod(map(self.nominal.size, op.extents))
                return points * (ACCESS + effort(op.yielded[refill.output(op)], op.body.block))
            case memref.StoreOp():
                return ACCESS + effort(op.value, value_block(op.value))
            case _:
                return 0.0


def effort(value: SSAValue, block: Block) -> float:
    """What it takes to compute a value once more, as far as that is in a block."""
    total, pending, seen = 0.0, [value], set[SSAValue]()
    while pending:
        v = pending.pop()
        if v in seen or value_block(v) is not block:
            continue
        seen.add(v)
        op = v.owner
        if isinstance(op, Block | memref.LoadOp):
            total += ACCESS
        elif is_recomputable(op):
            total += effort_of(op)
            pending.extend(op.operands)
    return total


def takes_long(op: Operation) -> bool:
    """Whether reading a result costs less than computing it once more."""
    return is_recomputable(op) and effort_of(op) >= DIVISION


def is_derived_of_its_result(op: Operation) -> bool:
    """True of a function whose adjoint reads its result alone."""
    if effort_of(op) < FUNCTION or not is_recomputable(op):
        return False
    rule = RULES[type(op)]
    return isinstance(rule, ScalarRule) and all(
        term is not None and term.needs == ("result",) for term in rule.terms
    )


def effort_of(op: Operation) -> float:
    if isinstance(op, DIVIDING):
        return DIVISION
    if is_transcendental(op):
        return FUNCTION
    return 0.0 if isinstance(op, arith.ConstantOp) else ARITHMETIC

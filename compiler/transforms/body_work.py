"""What the body of a map costs, with vectors for its points: an access to an array is the unit."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import ad, array
from ..rules.math import is_transcendental
from .body_slices import slice_of

GUARDED, PLAIN, DIVISION, FUNCTION = 1.5, 0.5, 16.0, 40.0
"""What an op costs a vector: with a strong zero, arithmetic, a division or a root, a transcendental."""


def work(ops: Sequence[Operation]) -> float:
    return sum(map(work_of, ops))


def swept(values: Sequence[SSAValue], body: Block) -> float:
    """What it costs a map to compute some of its outputs. Numbers beside vectors of tangents have a loop of
    their own, over several points at once; where a map gathers they have not."""
    steps = slice_of(values, body)
    wide = [s for s in steps if any(isinstance(r.type, VectorType) for r in s.results)]
    numbers = work(steps) - work(wide)
    return work(wide) + (numbers / TOGETHER if wide else numbers)


TOGETHER = 8
"""Numbers in a vector."""


def work_of(op: Operation) -> float:
    if isinstance(op, arith.DivfOp | ad.DivOp | math.SqrtOp):
        return DIVISION
    if isinstance(op, ad.MulOp):
        return GUARDED
    if is_transcendental(op):
        return FUNCTION
    return 0.0 if isinstance(op, arith.ConstantOp | array.YieldOp) else PLAIN

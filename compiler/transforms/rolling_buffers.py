"""Temporaries of which a loop over rows needs a few rows at a time.

`fuse-rows` gives each a buffer in its place; its docstring says why that is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..rules.table import constant_float
from .row_runs import Analyses, Run, Use, reach_of, uses_of


def is_temporary(op: Operation | Block) -> bool:
    """True for an array that maps of its own block may hand on: nothing is promised of what it holds."""
    return isinstance(op, array.AllocOp) and bool(op.extents) and not op.attributes


LINE = 8
"""Where rows are elements, those of a step begin at a multiple of this: copies are fast from line to line."""


@dataclass
class Rolled:
    """A temporary of which a buffer holds some rows.

    At each step it holds those from `back` rows before the first of the step on, `more` rows more than the
    step has.
    """

    alloc: array.AllocOp
    back: int
    more: int
    starts: dict[SSAValue, int]
    """By operand of a map the row of the array that is its first."""


def rolled(run: Run, analyses: Analyses) -> Iterator[Rolled]:
    """The temporaries that only the maps of the run use, row by row."""
    behind = dict(zip(run.maps, run.shifts, strict=True))
    seen = dict.fromkeys(
        root.owner for m in run.maps for o in uses_of(m) for root in analyses.alias.roots(o.operand)
    )
    block = run.maps[0].parent if run.maps else None
    for owner in seen:
        if (
            not isinstance(owner, array.AllocOp)
            or not is_temporary(owner)
            or owner.parent is not block
        ):
            continue
        starts: dict[SSAValue, int] = {}
        ages = list(ages_of(owner.memref, owner, behind, starts, analyses))
        if len(ages) > 1 and None not in ages:
            known = [a for a in ages if a is not None]
            back = max(known)
            if len(owner.extents) == 1:
                back += -back % LINE
            yield Rolled(owner, back, back - min(known), starts)


def ages_of(
    value: SSAValue,
    alloc: array.AllocOp,
    behind: dict[array.MapOp, int],
    starts: dict[SSAValue, int],
    analyses: Analyses,
) -> Iterator[int | None]:
    """For each use by a map how long after its time a row is touched, first and last; None for any other use.

    Views of views are followed where rows are the first axis of each.
    """
    for use in value.uses:
        op = use.operation
        if isinstance(op, array.ViewOp) and use.index == 0 and op.source_dims[:1] == (0,):
            yield from ages_of(op.result, alloc, behind, starts, analyses)
            continue
        walk = analyses.walk(value)
        if (
            not isinstance(op, array.MapOp)
            or op not in behind
            or walk is None
            or (walk.base, walk.axis, walk.step) != (alloc.memref, 0, 1)
            or not walk.start.is_constant
        ):
            yield None
            return
        starts[value] = walk.start.constant
        age = behind[op] - walk.start.constant
        yield age
        if use.index < len(op.extents) + len(op.ins):
            yield age + reach_of(op, Use(value, False))


def worthwhile(run: Run, analyses: Analyses) -> tuple[Run, list[Rolled]] | None:
    """The part of the run between the first and the last map that touch temporaries as large as what
    maps go over, where there are any that shrink; with all that shrink in it.

    The maps before and behind come along while they touch the same arrays, which are in the cache then.
    """
    rank = max((len(m.extents) for m in run.maps), default=0)
    large = [one for one in rolled(run, analyses) if len(one.alloc.extents) == rank]
    operands = {operand for one in large for operand in one.starts}
    users = [
        k for k, m in enumerate(run.maps) if any(use.operand in operands for use in uses_of(m))
    ]
    if not users:
        return None
    first, last = min(users), max(users)
    inside = run.maps[first : last + 1]
    while first > 0 and goes_with(run.maps[first - 1], inside, rank, analyses):
        first -= 1
        inside.append(run.maps[first])
    while last + 1 < len(run.maps) and goes_with(run.maps[last + 1], inside, rank, analyses):
        last += 1
        inside.append(run.maps[last])
    part = run.part(first, last)
    return part, list(rolled(part, analyses))


def goes_with(
    op: array.MapOp, inside: Sequence[array.MapOp], rank: int, analyses: Analyses
) -> bool:
    """Whether a map reads what these have in the cache, and no sum of the program changes its order."""
    return (
        len(op.extents) == rank > 1
        and all(is_free(op, k, analyses) for k in range(len(op.outs)))
        and any(
            analyses.walks_alike(a.operand, b.operand)
            for a in uses_of(op)
            for m in inside
            if len(m.extents) == rank
            for b in uses_of(m)
        )
    )


def is_free(op: array.MapOp, k: int, analyses: Analyses) -> bool:
    """Whether an output may be added up in another order: it is one element a row, or no sum that somebody
    wrote."""
    value = op.yielded[k].owner
    if op.out_kinds[k] == "store" or analyses.walk(op.outs[k]) is not None:
        return True
    if not isinstance(op.yielded[k].type, AnyFloat) or isinstance(value, Block):
        return not isinstance(op.yielded[k].type, AnyFloat)
    counts = isinstance(value, arith.SelectOp) and all(
        constant_float(v) in (0.0, 1.0) for v in (value.lhs, value.rhs)
    )
    return counts or "ad.adjoint" in value.attributes

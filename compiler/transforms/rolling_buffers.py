"""Temporaries of which a loop over rows needs a few rows at a time.

`fuse-rows` gives each a buffer in its place; its docstring says why that is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from .row_runs import Analyses, Run, operands_of


def is_temporary(op: Operation | Block) -> bool:
    """True for an array that maps of its own block may hand on: nothing is promised of what it holds."""
    return isinstance(op, array.AllocOp) and bool(op.extents) and not op.attributes


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
        root.owner for m in run.maps for o, _ in operands_of(m) for root in analyses.alias.roots(o)
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
            yield Rolled(owner, max(known), max(known) - min(known), starts)


def ages_of(
    value: SSAValue,
    alloc: array.AllocOp,
    behind: dict[array.MapOp, int],
    starts: dict[SSAValue, int],
    analyses: Analyses,
) -> Iterator[int | None]:
    """For each use by a map how long after its time a row is touched; None for any other use.

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
        yield behind[op] - walk.start.constant


def worthwhile(run: Run, analyses: Analyses) -> tuple[Run, list[Rolled]] | None:
    """The part of the run between the first and the last map that touch temporaries as large as what
    maps go over, where there are any that shrink; with all that shrink in it."""
    rank = max((len(m.extents) for m in run.maps), default=0)
    large = [one for one in rolled(run, analyses) if len(one.alloc.extents) == rank]
    operands = {operand for one in large for operand in one.starts}
    users = [
        k
        for k, m in enumerate(run.maps)
        if any(operand in operands for operand, _ in operands_of(m))
    ]
    if not users:
        return None
    part = run.part(min(users), max(users))
    return part, list(rolled(part, analyses))

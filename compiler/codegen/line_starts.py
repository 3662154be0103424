"""How many bytes behind a line of the cache an array begins, so that most vectors of its rows begin at lines.

A vector of 64 bytes that begins elsewhere is in two lines: a store takes two, and so does a load. Steps of a
stencil go over the inner points of a grid, `c[1:-1, 1:-1]`; where a row has whole lines, and the grid begins
at one, none of these vectors does. So arrays of our own, and tapes, begin where most of what runs along their
rows begins at a line::

    %c = array.alloc(%n, %m)                  %p = memory of 56 bytes more, from a line on
    %v = array.view %c[1, 1] ...       ->     %c = getelementptr i8, ptr %p, i64 56
    array.map(...) outs(%v)                   7 elements, then the first line: that of c[0, 1]

A map counts once for what it loads from a row and twice for what it stores to one, and more the more loops
are around it. Rows that begin anywhere, since they do not have whole lines, lose nothing by that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array
from .kernel_state import size_of
from .whole_lines import LINE

OUTER = 4
"""How often a loop is taken to run, where what is in it is weighed against what is outside."""
DEEPEST = 4
FEW = 8
"""Rows of fewer elements have no vectors of a whole line, and fewer rows than two no weight."""


def lead_of_tape(tape: ad.TapeOp) -> int:
    """The bytes between a line and a tape's first segment."""
    users = (use.operation for use in tape.tape.uses)
    segments = [op.memref for op in users if isinstance(op, ad.PushOp | ad.PopOp)]
    lead = lead_of(*segments)
    return 0 if any(lead % size_of(s.type.element_type) for s in segments) else lead


def lead_of(*arrays: SSAValue) -> int:
    """The bytes between a line and the first element of arrays: less than a line's."""
    votes = Votes()
    for a in arrays:
        if is_grid(a):
            votes.count(a, 0)
    lead, weight = max(votes.weights.items(), key=lead_last, default=(0, 0))
    return lead if weight > votes.weights[0] else 0


def is_grid(memref: SSAValue) -> bool:
    """Whether an array has rows; steps along a single one go from line to line (`skew-vectors`)."""
    assert isinstance(memref.type, MemRefType)
    return memref.type.get_num_dims() > 1


def lead_last(vote: tuple[int, int]) -> tuple[int, int]:
    """By weight, then by lead."""
    return vote[1], vote[0]


@dataclass
class Votes:
    """What runs along the rows of arrays, by the lead that suits it."""

    weights: Counter[int] = field(default_factory=Counter[int])
    seen: set[SSAValue] = field(default_factory=set[SSAValue])

    def count(self, memref: SSAValue, column: int) -> None:
        """Add what is done with an array, or with its view from this column on."""
        assert isinstance(memref.type, MemRefType)
        if not memref.type.get_num_dims() or memref in self.seen:
            return
        self.seen.add(memref)
        for use in memref.uses:
            op = use.operation
            match op:
                case array.MapOp() if has_rows(op):
                    size = size_of(memref.type.element_type)
                    for at, weight in columns_of(op, use.index):
                        self.weights[-(column + at) * size % LINE] += weight * times(op)
                case array.ViewOp():
                    further = column_of(op)
                    if further is not None:
                        self.count(op.result, column + further)
                case array.LoopOp() | array.YieldOp():
                    for carried in carried_on(op, memref):
                        self.count(carried, column)
                case _:
                    pass


def carried_on(op: array.LoopOp | array.YieldOp, memref: SSAValue) -> Iterator[SSAValue]:
    """What an array is in a loop that carries it, in its next iteration, and behind it."""
    loop = op if isinstance(op, array.LoopOp) else op.parent_op()
    if not isinstance(loop, array.LoopOp):
        return
    given = op.carried if isinstance(op, array.LoopOp) else op.operands
    for k, value in enumerate(given):
        if value is memref:
            yield loop.body.block.args[1 + k]
            yield loop.results_carried[k]


def columns_of(op: array.MapOp, operand: int) -> list[tuple[int, int]]:
    """The columns in which the first point of a row is, in an operand of a map; with their weights."""
    at = operand - len(op.extents)
    if at >= len(op.ins):
        return [(0, 2)] if at < len(op.ins) + len(op.outs) else []
    gathers = op.gathers
    return [(0 if gathers is None else -gathers.shifts[at][-1], 1)]


def column_of(op: array.ViewOp) -> int | None:
    """The column of its source in which a view begins, where it goes along the rows."""
    last = len(op.offsets) - 1
    if op.source_dims[-1:] != (last,) or array.constant_value(op.steps[-1]) != 1:
        return None
    return array.constant_value(op.offsets[last])


def has_rows(op: array.MapOp) -> bool:
    """Whether a map may go along several rows, or along one that is all there is."""
    *outer, inner = map(most, op.extents)
    return (inner is None or inner >= FEW) and not (outer and all(n == 1 for n in outer))


def most(extent: SSAValue) -> int | None:
    """The largest that an extent can be, where constants bound it."""
    known = array.constant_value(extent)
    if known is not None or not isinstance(extent.owner, Operation):
        return known
    bounds = [most(o) for o in extent.owner.operands] if extent.owner.name in BOUNDS else [None]
    certain = [n for n in bounds if n is not None]
    if extent.owner.name == "arith.minsi":
        return min(certain, default=None)
    return max(certain) if len(certain) == len(bounds) else None


BOUNDS = ("arith.minsi", "arith.maxsi")


def times(op: Operation) -> int:
    """How often an op is taken to run."""
    loops, at = 0, op.parent_op()
    while at is not None:
        loops += isinstance(at, array.LoopOp)
        at = at.parent_op()
    return OUTER ** min(loops, DEEPEST)

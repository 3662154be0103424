"""Do all that is done to a row, or to a column, before anything is done to the next.

    for k in range(n):                            for j in range(n):
        q[k] = a[k] / norm(a[k])                      for k in range(j):
        for j in range(k + 1, n):                         r[k, j] = np.dot(q[k], a[j])
            r[k, j] = np.dot(q[k], a[j])                  a[j] -= q[k] * r[k, j]
            a[j] -= q[k] * r[k, j]                    q[j] = a[j] / norm(a[j])

A step that updates all later rows sends each of them through the caches once a step. And the reverse sweep
needs what a row was before each of its updates: of all rows, n * n / 2 of them. With the loops interchanged
one row's are enough, if they are made again (`derivative.replays`).

`jam-maps` interchanges such loops for the caches, `analysis/loop_order` says when that may be: each element
sees the same operations in the same order. Runs on what a plan is made of, before the plan. Kept: what
`jam-maps` keeps, and nests that go row by row as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.affine import Affine, Subscripts
from .interchange import LoopPair
from .jam_maps import MapNest, is_of_maps
from .memory_effects import functions
from .tile_registers import is_plain


@dataclass(frozen=True)
class FinishRows(ModulePass):
    """Interchange loops whose steps update all later rows, so that each row is finished before the next."""

    name = "finish-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for inner in [one for one in ops_of_kind(function, array.LoopOp) if is_of_maps(one)]:
                outer = inner.parent_op()
                if isinstance(outer, array.LoopOp) and is_plain(outer):
                    made = MapNest(function, outer, fastmath=False).interchanged()
                    if made is not None:
                        name_counters(made)


def name_counters(pair: LoopPair) -> None:
    """Put a counter in the place of numbers that are equal to it."""
    forms = Subscripts()
    for op in every_op(pair.outer)[1:]:
        if not isinstance(op, arith.AddiOp | arith.SubiOp) or op.result.type != IndexType():
            continue
        form = forms.affine(op.result)
        for counter in (pair.outer.induction, pair.inner.induction):
            if form == Affine.of(counter):
                Rewriter.replace_op(op, [], [counter])
                break

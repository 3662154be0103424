"""Transcendentals that both sweeps compute, where something is compared that is made of them.

A vector version of `sin` has other last bits than the scalar one, and LLVM may take it in the loop of one
sweep and not in that of the other. Where the reverse sweep asks which entry is the maximum that was saved, no
entry made again would equal it. Such ops are marked in both sweeps, and one version of the
function serves them all (`codegen.one_version`)::

    %y = math.sin %x : f64                      %y = math.sin %x {ad.again} : f64
    memref.store %y, %t[%i]                     memref.store %y, %t[%i]
    ...                                         ...
    %y_1 = math.sin %x_saved : f64              %y_1 = math.sin %x_saved {ad.again} : f64
    memref.store %y_1, %t_again[%i]             memref.store %y_1, %t_again[%i]
    array.map ins(%t_again, %maximum) {oeq}     array.map ins(%t_again, %maximum) {oeq}

The others of the reverse sweep, its own and those that it computes again, have one version as well, for the
reverse sweep of a step within a budget is another loop than that without::

    %y_2 = math.cos %x_saved {ad.adjoint}       %y_2 = math.cos %x_saved {ad.adjoint, ad.backward}
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from ...dialects.within import every_op
from ..analysis.activity import Activity
from ..analysis.alias import AliasAnalysis
from ..rules.math import AGAIN, BACKWARD, is_transcendental
from ..rules.table import ADJOINT

Pair = tuple[Operation, Operation]
"""An op of the forward sweep, and the same in the reverse sweep."""


def keep_same_bits(gradient: func.FuncOp, pairs: Sequence[Pair]) -> None:
    """Mark those of the pairs whose second op something is compared by, and all of the reverse sweep."""
    own = (op for op in every_op(gradient) if ADJOINT in op.attributes and is_transcendental(op))
    for op in (*own, *(again for _, again in pairs)):
        op.attributes[BACKWARD] = UnitAttr()
    if not pairs:
        return
    flow = Activity(gradient, AliasAnalysis(gradient), ())
    for first, again in pairs:
        if flow.decides(again.results[0]):
            first.attributes[AGAIN] = again.attributes[AGAIN] = UnitAttr()

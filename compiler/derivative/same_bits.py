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
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from ..analysis.activity import Activity
from ..analysis.alias import AliasAnalysis
from ..rules.math import AGAIN

Pair = tuple[Operation, Operation]
"""An op of the forward sweep, and the same in the reverse sweep."""


def keep_same_bits(gradient: func.FuncOp, pairs: Sequence[Pair]) -> None:
    """Mark those of the pairs whose second op something is compared by."""
    if not pairs:
        return
    flow = Activity(gradient, AliasAnalysis(gradient), ())
    for first, again in pairs:
        if flow.decides(again.results[0]):
            first.attributes[AGAIN] = again.attributes[AGAIN] = UnitAttr()

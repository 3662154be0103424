"""Elements that several maps read from one array, with no store in between: one node of the graph.

If the rows of a state are its components, each map reads some of the rows::

    array.map(%m) ins(%s_0, %s_1) outs(%d_0) {...}
    array.map(%m) ins(%s_0, %s_2) outs(%d_1) {...}

Both maps read the same `%s_0`. Where the first map saves it, the second reads it from the same segment. So
three rows are saved, not one row for each map.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import BlockArgument

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.memory_ssa import MemorySSA


def twins(function: func.FuncOp, ssa: MemorySSA) -> dict[BlockArgument, BlockArgument]:
    """The elements that an earlier map of the same block has read, over the same points, each with that."""
    first: dict[object, BlockArgument] = {}
    found: dict[BlockArgument, BlockArgument] = {}
    for op in ops_of_kind(function, array.MapOp):
        for element, source in zip(op.body.block.args, op.ins, strict=True):
            version = ssa.version(ssa.alias.base(source), op)
            key = op.parent, source, version, tuple(op.extents)
            if (twin := first.setdefault(key, element)) is not element:
                found[element] = twin
    return found

"""What several ops read of one array, with no store in between: one node of the graph.

If the rows of a state are its components, each map reads some of the rows::

    array.map(%m) ins(%s_0, %s_1) outs(%d_0) {...}
    array.map(%m) ins(%s_0, %s_2) outs(%d_1) {...}

Both maps read the same `%s_0`. Where the first map saves it, the second reads it from the same segment. So
three rows are saved, not one row for each map. It is the same where a matrix product reads `%s_0` as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.memory_ssa import MemorySSA
from ..rules import Contents, Need
from .segments import ArrayExtent, extents_of_part

Read = tuple[Need, SSAValue, Operation, tuple[SSAValue | ArrayExtent, ...]]
"""What is read, of which memory, the first op that may change it, and over which points."""


def twins(function: func.FuncOp, ssa: MemorySSA, needs: Iterable[Need]) -> dict[Need, Need]:
    """What an earlier op of the same block has read, over the same points, each with that."""
    contents: dict[Operation, list[Contents]] = {}
    for need in needs:
        if isinstance(need, Contents):
            contents.setdefault(need.op, []).append(need)
    first: dict[object, Need] = {}
    found: dict[Need, Need] = {}
    for op in every_op(function):
        for node, source, before, points in reads_of(op, contents.get(op, ())):
            version = ssa.version(ssa.alias.base(source), before)
            twin = first.setdefault((op.parent, source, version, points), node)
            if twin is not node and twin != node:
                found[node] = twin
    return found


def reads_of(op: Operation, contents: Iterable[Contents]) -> Iterator[Read]:
    """The elements that a map reads, and what else is read or left as a whole."""
    if isinstance(op, array.MapOp):
        for element, source in zip(op.body.block.args, op.ins, strict=True):
            yield element, source, op, tuple(op.extents)
    for read in sorted(contents, key=lambda c: c.after):
        before = op.next_op if read.after else op
        assert before is not None
        yield read, read.memref, before, extents_of_part(read.memref)

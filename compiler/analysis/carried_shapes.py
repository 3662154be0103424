"""The arrays that change places in a loop: which take turns, and the extents that all of them have."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from ...dialects import array
from .views import strip_casts


def rounds(loop: array.LoopOp) -> Iterator[frozenset[int]]:
    """The slots of a loop that hand their arrays to each other, and take none from elsewhere."""
    places: dict[SSAValue, int] = {v: k for k, v in enumerate(loop.body.block.args[1:])}
    gives = [places.get(strip_casts(value)) for value in loop.yielded]
    left = set(range(len(gives)))
    while left:
        found, pending = set[int](), {left.pop()}
        while pending:
            k = pending.pop()
            found.add(k)
            given = gives[k]
            near = {j for j, other in enumerate(gives) if other == k}
            pending |= (near if given is None else near | {given}) - found
        left -= found
        if all(gives[k] is not None for k in found):
            yield frozenset(found)


def arrays_before(value: SSAValue) -> list[SSAValue]:
    """The arrays one of which is meant, as they were before the loop that hands them on; else nothing."""
    owner = value.owner
    if isinstance(value, BlockArgument) and isinstance(owner, Block):
        loop = owner.parent_op()
        inside = isinstance(loop, array.LoopOp) and owner is loop.body.block
    else:
        loop, inside = owner, isinstance(value, OpResult)
    if not isinstance(loop, array.LoopOp) or not inside:
        return []
    assert isinstance(value, BlockArgument | OpResult)
    slot = value.index - 1
    return [loop.carried[k] for found in rounds(loop) if slot in found for k in sorted(found)]

"""Ops in order, in the place of xDSL's own walks (`quick_xdsl.install`).

As with these, what comes next is read before an op is handed out: it may be erased, or moved, then.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.ir import (
    Block,
    BlockOps,
    Operation,
    Region,
    RegionBlocks,
)


def ops_from(op: Any) -> Iterator[Operation]:
    """An op and those after it."""
    while op is not None:
        following = op._next_op
        yield op
        op = following


def ops_of(ops: BlockOps) -> Iterator[Operation]:
    return ops_from(ops.block.first_op)


def count_of(ops: BlockOps) -> int:
    """How many; `list(block.ops)` asks, too."""
    found, op = 0, ops.block._first_op
    while op is not None:
        found += 1
        op = op._next_op
    return found


def ops_within(regions: Sequence[Region]) -> Iterator[Operation]:
    """The ops of all blocks of these regions, without what is in them."""
    for region in regions:
        block = region.first_block
        while block is not None:
            following = block.next_block
            yield from ops_from(block.first_op)
            block = following


def each_with_its_own(ops: Iterator[Operation]) -> Iterator[Operation]:
    """Ops, each followed by all that is in it."""
    entered = [ops]
    while entered:
        for op in entered[-1]:
            yield op
            if op.regions:
                entered.append(ops_within(op.regions))
                break
        else:
            entered.pop()


walks = Operation.walk, Region.walk, Block.walk
"""xDSL's own, for the orders that are rare."""


def each_after_its_own(ops: Iterator[Operation]) -> Iterator[Operation]:
    """Ops, each behind all that is in it."""
    entered: list[tuple[Operation | None, Iterator[Operation]]] = [(None, ops)]
    while entered:
        around, inner = entered[-1]
        for op in inner:
            if op.regions:
                entered.append((op, ops_within(op.regions)))
                break
            yield op
        else:
            entered.pop()
            if around is not None:
                yield around


def walk(
    self: Operation, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse:
        return walks[0](self, reverse=reverse, region_first=region_first)
    return (each_after_its_own if region_first else each_with_its_own)(iter((self,)))


def walk_region(
    self: Region, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse:
        return walks[1](self, reverse=reverse, region_first=region_first)
    return (each_after_its_own if region_first else each_with_its_own)(ops_within((self,)))


def walk_block(
    self: Block, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse:
        return iter(walks[2](self, reverse=reverse, region_first=region_first))
    return (each_after_its_own if region_first else each_with_its_own)(ops_from(self.first_op))


def blocks_of(blocks: RegionBlocks) -> Iterator[Block]:
    block = blocks._region._first_block
    while block is not None:
        following = block._next_block
        yield block
        block = following

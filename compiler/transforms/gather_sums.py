"""Give each sum of a nest of loops a nest of its own, in which its elements stay in registers.

TODO
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ...dialects import array
from ..rules import evaluates_body
from .maps_as_loops import as_loop, is_adjoint, may_be_loop
from .memory_effects import functions
from .register_tiles import BYTES
from .sum_nests import Sum, SumNest
from .sum_tiles import write_sums
from .tile_registers import chain_around, is_plain

HEIGHTS = 3, 1
"""As many rows share what they read; the rest goes in tiles of fewer."""


@dataclass(frozen=True)
class GatherSums(ModulePass):
    """Add up what a nest adds to an element in one go."""

    name = "gather-sums"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""
    threads: bool = False
    """Elements are for threads."""
    heights: tuple[int, ...] = HEIGHTS
    """Of tiles, in rows: the highest first."""
    widths: tuple[int, ...] = BYTES[:1]
    """Of tiles, in bytes: the widest first."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for leaf in list(innermost(function.body.block, self.fastmath)):
                gather(function, leaf, self)


Leaf = array.LoopOp | array.MapOp


def innermost(block: Block, fastmath: bool) -> Iterator[Leaf]:
    """The loops and maps in two loops or more that add to elements, in any order."""
    for op in block.ops:
        if array.RAISES in op.attributes:
            continue
        if isinstance(op, array.MapOp):
            if may_be_loop(op) and adds(op, fastmath) and len(chain_around(op)) > 1:
                yield op
            continue
        if evaluates_body(op) or array.SMALL in op.attributes:
            continue
        if isinstance(op, array.LoopOp) and not any(o.regions for o in op.body.block.ops):
            if is_plain(op) and adds(op, fastmath) and len(chain_around(op)) > 1:
                yield op
            continue
        for region in op.regions:
            for inner in region.blocks:
                yield from innermost(inner, fastmath)


def adds(leaf: Leaf, fastmath: bool) -> bool:
    if isinstance(leaf, array.MapOp):
        found = zip(leaf.yielded, leaf.out_kinds, strict=True)
        return any(kind == "add" and (fastmath or is_adjoint(value)) for value, kind in found)
    totals = [o.value.owner for o in leaf.body.block.ops if isinstance(o, memref.StoreOp)]
    return any(
        isinstance(t, arith.AddfOp) and (fastmath or "ad.adjoint" in t.attributes) for t in totals
    )


def gather(function: func.FuncOp, leaf: Leaf, how: GatherSums) -> bool:
    """Take the sums out of the nest around a loop, or a map; whether there were any."""
    if isinstance(leaf, array.LoopOp):
        return gather_loop(function, leaf, how)
    loop = as_loop(leaf, how.fastmath)
    leaf.detach()
    if gather_loop(function, loop, how):
        leaf.erase()
        return True
    block = loop.parent
    assert block is not None
    block.insert_op_before(leaf, loop)
    loop.detach()
    loop.erase(safe_erase=False)
    return False


def gather_loop(function: func.FuncOp, leaf: array.LoopOp, how: GatherSums) -> bool:
    """The same for a loop, with as many of the loops around it as can be."""
    loops = [leaf, *chain_around(leaf)][::-1]
    while len(loops) > 2:
        found = SumNest(function, loops, how.fastmath).sums()
        if found and all(map(fits, found)) and any(map(pays, found)):
            write_sums(found, how)
            return True
        loops = loops[1:]
    return False


def fits(one: Sum) -> bool:
    """Whether the innermost loop goes along rows, in vectors, of all that is touched."""
    nest = one.nest
    if any(nest.leaf in (p.loop, p.other) for p in one.places if p.other is not None):
        return False
    sign = nest.signs(one).get(nest.leaf.induction, 1)
    elements = [one.target, *one.factors.values()]
    return all(nest.way(e, sign) != "far" for e in elements)


def pays(one: Sum) -> bool:
    """Whether elements leave registers between two of their terms as it is."""
    if not one.summed or one.summed == [one.nest.leaf]:
        return False
    last = one.nest.loops[-1 - len(one.summed) : -1]
    return one.is_dot or one.rows is None or one.summed != list(last)

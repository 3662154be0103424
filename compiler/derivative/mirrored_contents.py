"""Contents that other memory still holds, because they were stored there as well.

A state that is recorded equals its record; at the start of an iteration it equals the record of the iteration
before::

    array.loop %t to %n do {
      ...                                             // reads %u: what the iteration before left
      array.map(...) ins(%u) outs(%u) {...}
      array.map(...) ins(%u) outs(%row) {...}         // history[t] = u
      ...                                             // reads %u: row t
    }

At the start of iteration t it is row t - 1; in the first iteration it is what the array held on entry. The
same holds for a variable whose next value is also stored to an element of an array.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import cast

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from ..analysis.kills import Kills
from ..analysis.made_of import all_made_of
from ..analysis.views import strip_views
from ..rules import Access
from ..rules.descriptors import descriptor_values
from .segments import is_inside, is_recomputable
from .versions import Version


@dataclass(frozen=True)
class Mirror:
    """Memory that holds what an array held: as `store` left both, or at the start of the next iteration.

    The store is a map that writes all of `target`, or a `memref.store` of one element of it.
    """

    store: memref.StoreOp | array.MapOp
    target: SSAValue
    loop: array.LoopOp | None = None
    """The loop at the start of whose iterations the contents are asked for."""
    entry: Version | None = None
    """What the array held before the loop."""

    @property
    def block(self) -> Block:
        """Where the contents are asked for."""
        block = self.store.parent if self.loop is None else self.loop.body.block
        assert block is not None
        return block

    @property
    def takes(self) -> Iterator[SSAValue | Version]:
        """What finding it takes, beside numbers that follow from counters."""
        if self.entry is not None:
            yield self.entry
        else:
            yield from (*self.indices, *descriptor_values(self.target))

    @property
    def indices(self) -> tuple[SSAValue, ...]:
        return tuple(self.store.indices) if isinstance(self.store, memref.StoreOp) else ()


class Mirrors:
    """Finds them, for one function."""

    def __init__(self, kills: Kills) -> None:
        self.kills = kills
        self.ssa = kills.ssa
        self.subscripts = kills.dependence.footprints.subscripts
        self._maps_of: dict[SSAValue, dict[Block | None, list[tuple[int, int, array.MapOp]]]] = {}
        """The maps that read an array, block by block in their order, each with its rank among the uses."""

    def of(self, version: Version) -> Mirror | None:
        """What mirrors these contents; None where nothing does that survives."""
        if len(version.token.roots) != 1:
            return None
        ((root, state),) = version.token.roots
        if root is not version.base or state.op is None:
            return None
        if state.place == "after":
            return next((Mirror(*pair) for pair in self._found(state.op, root, None)), None)
        if state.place != "phi" or not isinstance(state.op, array.LoopOp):
            return None
        loop = state.op
        changes = self.ssa.changes(root, loop.body.block)
        found = next(self._found(changes[-1], root, loop), None) if changes else None
        return found and Mirror(*found, loop, Version(root, self.ssa.version(root, loop)))

    def _found(
        self, last: Operation, root: SSAValue, loop: array.LoopOp | None
    ) -> Iterator[tuple[memref.StoreOp | array.MapOp, SSAValue]]:
        for store, target in self._equal(last, root):
            if self._is_found_again(store, target, loop):
                yield store, target

    def _equal(
        self, last: Operation, root: SSAValue
    ) -> Iterator[tuple[memref.StoreOp | array.MapOp, SSAValue]]:
        """Stores to other memory, in the same block, of all that `last` leaves in the array."""
        block = last.parent
        following = self._until_the_next(last, root)
        if isinstance(last, memref.StoreOp) and last.memref is root and not last.indices:
            for use in last.value.uses:
                op = use.operation
                if isinstance(op, memref.StoreOp) and op.value is last.value and op.parent is block:
                    yield from [] if op is last else [(op, op.memref)]
        if isinstance(last, array.MapOp):
            for out, kind, value in zip(last.outs, last.out_kinds, last.yielded, strict=True):
                if out is root and kind == "store" and self._goes_through_all(last, root):
                    yield from (pair for pair in self._written(last, value) if pair[1] is not root)
        for op in self._readers(root, last, following):
            if self._goes_through_all(op, root):
                yield from self._written(op, op.body.block.args[list(op.ins).index(root)])

    def _readers(self, root: SSAValue, last: Operation, following: int) -> list[array.MapOp]:
        """The maps of the block of `last` that read the array itself, behind it and not behind `following`.

        In the order of the array's uses.
        """
        found = self._maps_of.get(root)
        if found is None:
            found = self._maps_of[root] = {}
            for rank, use in enumerate(root.uses):
                op = use.operation
                if isinstance(op, array.MapOp) and root in op.ins:
                    found.setdefault(op.parent, []).append((self.ssa.order[op], rank, op))
            for maps in found.values():
                maps.sort(key=itemgetter(0))
        maps = found.get(last.parent, [])
        first = bisect_right(maps, self.ssa.order[last], key=itemgetter(0))
        end = bisect_right(maps, following, key=itemgetter(0))
        return [op for *_, op in sorted(maps[first:end], key=itemgetter(1))]

    def _until_the_next(self, last: Operation, root: SSAValue) -> int:
        """The number of the next op of the block that changes the array: it reads the same contents still."""
        block = last.parent
        assert block is not None
        places = self.ssa.places(root, block)
        at = bisect_right(places, self.ssa.order[last])
        return places[at] if at < len(places) else len(self.ssa.order)

    def _written(self, op: array.MapOp, value: SSAValue) -> Iterator[tuple[array.MapOp, SSAValue]]:
        """Where a map stores a value of its body."""
        for out, kind, one in zip(op.outs, op.out_kinds, op.yielded, strict=True):
            if kind == "store" and one is value:
                yield op, out

    def _goes_through_all(self, op: array.MapOp, root: SSAValue) -> bool:
        """Whether the points of a map are the elements of an array."""
        return all(
            self.subscripts.affine(extent) == self.subscripts.extent(root, axis)
            for axis, extent in enumerate(op.extents)
        )

    def _is_found_again(
        self, store: memref.StoreOp | array.MapOp, target: SSAValue, loop: array.LoopOp | None
    ) -> bool:
        numbers = [*descriptor_values(target)]
        numbers += store.indices if isinstance(store, memref.StoreOp) else ()
        return (
            all(follows(n, loop) for n in numbers)
            and 0 not in array.strides_of(cast(MemRefType[Attribute], target.type))
            and not (loop is not None and is_inside(strip_views(target), loop))
            and self.kills.killer(Access(store, target, "write", True)) is None
        )


def follows(number: SSAValue, loop: array.LoopOp | None) -> bool:
    """Whether a number is pure code on counters; in `loop`, on its own and what is outside."""

    def sources(value: SSAValue) -> Sequence[SSAValue] | None:
        if loop is not None and not is_inside(value, loop):
            return ()
        op = value.owner
        if isinstance(op, Block):
            counted = op.parent_op()
            is_loop = isinstance(counted, array.LoopOp)
            return () if (value is counted.induction if is_loop else loop is None) else None
        if loop is None and isinstance(op.parent_op(), func.FuncOp):
            return ()
        return op.operands if is_recomputable(op) else None

    return all_made_of([number], sources)

"""A nest of loops that adds to rows of an array: what of it is a vector, and what differs from row to row.

Part of `tile_registers`, which keeps tiles of the rows in registers (`register_tiles` writes them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..analysis.loop_order import LoopOrder
from ..analysis.strides import stride
from ..rules import Access, accesses
from .scalar_nests import ScalarNest, accesses_of, are_many

ELEMENTWISE = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp)
"""What is computed in vectors."""


class Tiled:
    """A nest: the loop over rows, the loops in it that add, and the one along a row."""

    def __init__(
        self,
        nest: ScalarNest,
        leaf: array.LoopOp,
        adding: tuple[array.LoopOp, ...],
        store: memref.StoreOp,
    ) -> None:
        self.nest = nest
        self.rows = nest.loop
        self.adding = adding
        self.leaf = leaf
        self.store = store

    @property
    def levels(self) -> tuple[array.LoopOp, ...]:
        """All loops, the outermost first."""
        return (self.rows, *self.adding, self.leaf)

    def ops(self) -> list[Operation]:
        """What is in them beside loops, in order."""
        return [op for loop in self.levels for op in self.beside(loop)]

    def beside(self, loop: array.LoopOp) -> list[Operation]:
        return [o for o in loop.body.block.ops if not isinstance(o, array.LoopOp | array.YieldOp)]

    def is_own(self, op: Operation) -> bool:
        """Whether an op loads, or stores, the element that the leaf adds to."""
        if op is self.store:
            return True
        if not isinstance(op, memref.LoadOp) or op.memref is not self.store.memref:
            return False
        if op.parent is not self.leaf.body.block:
            return False
        forms = self.nest.dependence.footprints.subscripts
        return [forms.affine(i) for i in op.indices] == [
            forms.affine(i) for i in self.store.indices
        ]

    # Whether.

    def pays(self) -> bool:
        """Whether all goes along a row in vectors, which are the same for all rows."""
        inner = self.levels[1:]
        if any(loop.count is None or not is_outside(loop.count, self.rows) for loop in inner):
            return False
        if any(loop.trips.first_use is not None for loop in inner):
            return False
        ops = self.ops()
        if not all(isinstance(op, array.ViewOp) or self.nest.movable(op) for op in ops):
            return False
        kinds = self.kinds()
        if kinds is None or self.store.value not in kinds.wide:
            return False
        adding = dependents(ops, [loop.induction for loop in self.adding])
        if adding & {self.store.memref, *self.store.indices}:
            return False
        rows = self.among_rows()
        alongside = [
            op
            for op in self.beside(self.leaf)
            if isinstance(op, memref.LoadOp) and op.res in kinds.wide and not self.is_own(op)
        ]
        return bool(alongside) and not any(op.res in rows for op in alongside)

    def among_rows(self) -> set[SSAValue]:
        """What differs from row to row."""
        own = [r for op in self.beside(self.leaf) if self.is_own(op) for r in op.results]
        return dependents(self.ops(), [self.rows.induction, *own])

    def kinds(self) -> Kinds | None:
        """Which values of the leaf's body are vectors; None where some can be neither vector nor number."""
        found = Kinds({self.leaf.induction})
        for op in self.beside(self.leaf):
            placed = [o for o in op.operands if o in found.places]
            wide = [o for o in op.operands if o in found.wide]
            match op:
                case memref.LoadOp() if placed and self.stands_still(op):
                    pass
                case memref.LoadOp() if placed:
                    if wide or not self.is_row(op, op.memref, placed):
                        return None
                    found.wide.add(op.res)
                case memref.StoreOp():
                    if not self.is_row(op, op.memref, placed):
                        return None
                case _ if placed:
                    if wide or not all(is_place(r) for r in op.results):
                        return None
                    found.places.update(op.results)
                case _ if wide:
                    if not isinstance(op, ELEMENTWISE):
                        return None
                    found.wide.update(op.results)
                case _:
                    pass
        return found

    def stands_still(self, op: memref.LoadOp) -> bool:
        """Whether all elements of a row read one."""
        (access,) = accesses(op)
        return stride(self.nest.dependence, access, self.leaf) == "still"

    def is_row(
        self, op: memref.LoadOp | memref.StoreOp, source: SSAValue, placed: Sequence[SSAValue]
    ) -> bool:
        """Whether elements of the tile's type lie side by side."""
        (access,) = accesses(op)
        type_ = source.type
        assert isinstance(type_, MemRefType)
        alongside = list(op.indices)[-1:] == list(placed)
        same = type_.element_type == self.store.value.type and array.strides_of(type_)[-1] == 1
        return alongside and same and stride(self.nest.dependence, access, self.leaf) == "unit"

    def is_exact(self) -> bool:
        """Whether rows, and elements of a row, are independent, and nothing else reads them."""
        found = accesses_of(self.ops())
        if are_many(found):
            return False
        order = LoopOrder(self.nest.dependence, set())
        if not order.independent(found, self.rows):
            return False
        (mine,) = accesses(self.store)
        others = [a for a in found if not self.is_own(a.op)]
        own: list[Access] = [a for a in found if self.is_own(a.op)]
        if not order.independent(own, self.leaf):
            return False
        return not any(
            order.any_meet([mine], others, level) or order.any_meet(others, [mine], level)
            for level in (None, *self.levels)
        )


@dataclass
class Kinds:
    """What values of a leaf's body are, beside numbers that are the same along a row."""

    places: set[SSAValue]
    """Subscripts made of its counter."""
    wide: set[SSAValue] = field(default_factory=set[SSAValue])
    """Vectors."""


def is_place(value: SSAValue) -> bool:
    return isinstance(value.type, IndexType | IntegerType)


def is_outside(value: SSAValue, loop: array.LoopOp) -> bool:
    """Whether a value is there before the loop."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None:
        parent = block.parent_op()
        if parent is loop:
            return False
        block = None if parent is None else parent.parent
    return True


def dependents(ops: Sequence[Operation], seeds: Sequence[SSAValue]) -> set[SSAValue]:
    """The values that are computed from some of the seeds, and these."""
    found = set(seeds)
    for op in ops:
        if any(o in found for o in op.operands):
            found.update(op.results)
    return found

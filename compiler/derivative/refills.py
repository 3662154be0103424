"""Contents of private arrays that the reverse sweep makes again, by the ops that filled them.

What a function computes into an array of its own (a temporary, a scratch array, a helper's result) is a value
like any other: it can be recomputed if all that it is made of is available. The reverse sweep clones the
stores, into an array of its own::

    %t = array.alloc(%n)                            %t_again = array.alloc(%n)
    array.map(%m) ins(%u) outs(%t_inner) {...}      array.map(%m) ins(%u_saved) outs(%t_again_inner) {...}
    memref.store %x, %t[%c0]                        memref.store %x, %t_again[%c0]

A `Refill` lists the ops of one block that change the array, up to the wanted contents: maps, stores, and
branches and counted loops of these. It goes back to the allocation, or to the op from which on the whole
array is overwritten; or it starts from earlier contents, which are recovered first.

Often each iteration of a loop fills the same part of the array, and none stores to the rest: the edges of a
scratch array, say, that is made before a loop over time. The rest is then as it was before the loop. The
reverse sweep makes its array there, once, and each iteration fills its part::

    %t = array.alloc(%n)                            %t_again = array.alloc(%n)
    array.map(%n) outs(%t) {zero}                   array.map(%n) outs(%t_again) {zero}
    array.loop {                                    array.loop {
      array.map(%m) ins(%u) outs(%t_inner)            array.map(%m) ins(%u_saved) outs(%t_again_inner)

Not handled: products, calls and what carries arrays around a loop; loops that may leave early.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Subscripts, Symbol
from ..analysis.alias import AliasAnalysis, if_blocks
from ..analysis.footprint import Dimension, Footprints, Point, never_negative
from ..analysis.memory_ssa import MemorySSA
from ..analysis.views import is_collapsed, strip_views
from ..rules import Access, writes
from ..rules.descriptors import descriptor_values
from .versions import Version, is_growable

MOST_BOXES = 64
"""Of a part of an array that comes apart into more boxes than this nothing is said."""

MOST_STEPS = 32
"""Contents that more ops than this fill are not made again."""


FILLED = {array.ZERO, array.CLEARED}
"""Attributes of allocations whose elements are 0 at first; others hold nothing that a program may read."""


@dataclass(frozen=True, eq=False)
class Refill:
    """The ops that fill an array, in order, upon the contents `start`, or upon nothing."""

    base: SSAValue
    steps: tuple[Operation, ...]
    start: Version | None
    inside: Mapping[Block, Sequence[Operation]]
    """Of branches and loops among the steps: the ops of each block within that change the array."""
    around: array.LoopOp | None = None
    """The outermost loop whose iterations all fill the same part, and store to nothing else: the array is
    made before it. None: it is made where it is filled."""

    @property
    def block(self) -> Block:
        """The block of the steps."""
        return cast(Block, self.steps[0].parent)

    @property
    def home(self) -> Block:
        """The block in which the array is made."""
        return self.block if self.around is None else cast(Block, self.around.parent)

    @property
    def reader(self) -> Operation:
        """What reads the earlier contents."""
        return self.around or self.steps[0]

    def output(self, op: array.MapOp) -> int:
        """Which output of a map is (a part of) the array."""
        return output_to(self.base, op)

    def clones(self, op: Operation) -> Iterator[Operation]:
        """A step and the ops within that change the array."""
        yield op
        for block in blocks_of(op):
            for inner in self.inside[block]:
                yield from self.clones(inner)

    def takes(self) -> Iterator[SSAValue]:
        """The numbers that the clones compute with."""
        yield from descriptor_values(self.base)
        for step in self.steps:
            for op in self.clones(step):
                yield from self._taken_by(op)

    def _taken_by(self, op: Operation) -> Iterator[SSAValue]:
        match op:
            case array.MapOp():
                position = self.output(op)
                yield from (*op.extents, op.yielded[position])
                yield from descriptor_values(op.outs[position])
            case memref.StoreOp():
                yield from (op.value, *op.indices, *descriptor_values(op.memref))
            case scf.IfOp():
                yield op.cond
            case array.LoopOp():
                yield op.trips
            case _:
                raise AssertionError(f"{op.name} is not cloned")


class Refills:
    """Finds them, for one function."""

    def __init__(self, ssa: MemorySSA) -> None:
        self.ssa = ssa
        self.alias: AliasAnalysis = ssa.alias
        self.footprints: Footprints = ssa.dependence.footprints

    def of(self, version: Version) -> Refill | None:
        """The ops that make these contents; None where they cannot be cloned."""
        root = version.base
        if len(version.token.roots) != 1 or not is_apart(root) or is_growable(root):
            return None
        ((of, state),) = version.token.roots
        last = state.op
        if of is not root or last is None or state.place == "phi":
            return None
        return self._up_to(root, last)

    def _up_to(self, root: SSAValue, last: Operation) -> Refill | None:
        steps: list[Operation] = []
        boxes: list[Box] = []
        left: Boxes | None = not_empty([self._whole(root)])
        start: Version | None = None
        around: array.LoopOp | None = None
        for op in self.ssa.changes_back(root, last):
            if op is root.owner:
                break
            if not self._can_be_cloned(op, root) or len(steps) == MOST_STEPS:
                start = self._before(steps[0], root) if steps else None
                break
            steps.insert(0, op)
            for box in self._covered(op, root):
                boxes.append(box)
                left = None if left is None else without(left, box)
            if left == []:
                break
        else:
            around = self._loop_around(steps[0], root, boxes)
            start = self._before(around or steps[0], root)
        inside = {b: c for step in steps for b, c in self._inside(step, root)}
        return Refill(root, tuple(steps), start, inside, around) if steps else None

    def _loop_around(
        self, step: Operation, root: SSAValue, boxes: Sequence[Box]
    ) -> array.LoopOp | None:
        """The outermost loop around a step in which nothing is stored to the array outside of `boxes`."""
        found: array.LoopOp | None = None
        loop = step.parent_op()
        while isinstance(loop, array.LoopOp) and self._fills_only(loop, root, boxes, found):
            found, loop = loop, loop.parent_op()
        return found

    def _fills_only(
        self,
        loop: array.LoopOp,
        root: SSAValue,
        boxes: Sequence[Box],
        inner: array.LoopOp | None,
    ) -> bool:
        """Whether what a loop stores to the array is in `boxes`, which are the same in all iterations.

        `inner` is a loop in it of which that is known.
        """
        if loop.condition_block is not None and self.ssa.changes(root, loop.condition_block):
            return False
        if any(
            self.ssa.dependence.varies(symbol, loop) for box in boxes for symbol in symbols(box)
        ):
            return False
        changes = self.ssa.changes(root, loop.body.block)
        return all(op is inner or self._stays_within(op, root, boxes) for op in changes)

    def _stays_within(self, op: Operation, root: SSAValue, boxes: Sequence[Box]) -> bool:
        if op is root.owner or not self._can_be_cloned(op, root):
            return False
        stored = [self._box(store, loops) for store, loops in self._stores(op, root)]
        return all(box is not None and is_within(box, boxes) for box in stored)

    def _stores(
        self, op: Operation, root: SSAValue, loops: tuple[array.LoopOp, ...] = ()
    ) -> Iterator[tuple[Access, tuple[array.LoopOp, ...]]]:
        """All stores to the array in an op that can be cloned, each with the loops of `op` around it."""
        match op:
            case array.MapOp():
                yield Access(op, op.outs[output_to(root, op)], "write"), loops
            case memref.StoreOp():
                yield Access(op, op.memref, "write"), loops
            case _:
                around = (*loops, op) if isinstance(op, array.LoopOp) else loops
                for block in blocks_of(op):
                    for inner in self.ssa.changes(root, block):
                        yield from self._stores(inner, root, around)

    def _inside(self, op: Operation, root: SSAValue) -> Iterator[tuple[Block, Sequence[Operation]]]:
        for block in blocks_of(op):
            changes = self.ssa.changes(root, block)
            yield block, changes
            for inner in changes:
                yield from self._inside(inner, root)

    def _before(self, op: Operation, root: SSAValue) -> Version | None:
        """What the array held before an op; None where nothing has been stored since it was allocated."""
        version = Version(root, self.ssa.version(root, op))
        ((_, state),) = version.token.roots
        made = state.op
        is_new = made is not None and made is root.owner and not made.attributes.keys() & FILLED
        return None if is_new else version

    def _can_be_cloned(self, op: Operation, root: SSAValue) -> bool:
        """Whether what `op` does to the array can be done once more, for that array alone."""
        match op:
            case array.MapOp() | memref.StoreOp():
                targets = [w.memref for w in writes(op) if root in self.alias.roots(w.memref)]
                if len(targets) != 1 or self.alias.base(targets[0]) is not root:
                    return False
                type_ = cast(MemRefType[Attribute], root.type)
                return array.is_contiguous(type_) or not is_collapsed(targets[0])
            case scf.IfOp():
                return self._inner_can_be_cloned(op, root)
            case array.LoopOp():
                counted = op.condition_block is None and op.count is not None
                return counted and not op.carried and self._inner_can_be_cloned(op, root)
            case _:
                return False

    def _inner_can_be_cloned(self, op: Operation, root: SSAValue) -> bool:
        return all(
            inner is not root.owner and self._can_be_cloned(inner, root)
            for block in blocks_of(op)
            for inner in self.ssa.changes(root, block)
        )

    # What is covered.

    def _whole(self, root: SSAValue) -> Box:
        rank = cast(MemRefType[Attribute], root.type).get_num_dims()
        subscripts = self.footprints.subscripts
        return tuple(((Affine(),), (subscripts.extent(root, axis),)) for axis in range(rank))

    def _covered(
        self, op: Operation, root: SSAValue, loops: tuple[array.LoopOp, ...] = ()
    ) -> Iterator[Box]:
        """Boxes that `op`, in all iterations of `loops`, certainly stores to."""
        match op:
            case array.MapOp() if op.out_kinds[output_to(root, op)] != "store":
                pass
            case array.MapOp() | memref.StoreOp():
                ((access, _),) = self._stores(op, root)
                if (box := self._box(access, loops)) is not None:
                    yield box
            case array.LoopOp():
                for inner in self.ssa.changes(root, op.body.block):
                    yield from self._covered(inner, root, (*loops, op))
            case scf.IfOp():
                sides = [
                    [box for inner in changes for box in self._covered(inner, root, loops)]
                    for changes in (self.ssa.changes(root, block) for block in if_blocks(op))
                ]
                if len(sides) == 2:
                    yield from (box for box in sides[0] if is_within(box, sides[1]))
                    yield from (box for box in sides[1] if is_within(box, sides[0]))
            case _:
                pass

    def _box(self, access: Access, loops: Sequence[array.LoopOp]) -> Box | None:
        """What is written in all iterations of `loops`, each of which counts one axis at most."""
        region = self.footprints.of(access)
        if not region.exact:
            return None
        counted: set[SSAValue] = set()
        box: list[Interval] = []
        for dimension in region.dimensions:
            interval = interval_of(dimension, loops, self.footprints.subscripts, counted)
            if interval is None:
                return None
            box.append(interval)
        return tuple(box) if len(counted) == len(loops) else None


Interval = tuple[tuple[Affine, ...], tuple[Affine, ...]]
"""From the largest of these numbers to the smallest of those, which is not in it."""

Box = tuple[Interval, ...]
Boxes = list[Box]


def interval_of(
    dimension: Dimension,
    loops: Sequence[array.LoopOp],
    subscripts: Subscripts,
    counted: set[SSAValue],
) -> Interval | None:
    """The subscripts of one axis; adds to `counted` the counter that it goes through."""
    inductions = {loop.induction for loop in loops}
    if not isinstance(dimension, Point):
        if dimension.step != 1 or dimension.count is None:
            return None
        first, count = dimension.start, dimension.count
    else:
        first, count = dimension.at, Affine(constant=1)
        moving = [loop for loop in loops if loop.induction in first.terms]
        if moving:
            loop = moving[0]
            if loop.induction in counted or loop.count is None:
                return None
            counted.add(loop.induction)
            first, count = first - Affine.of(loop.induction), subscripts.affine(loop.count)
    if any(i in number.terms for i in inductions for number in (first, count)):
        return None
    return (first,), (first + count,)


def without(boxes: Boxes, covered: Box) -> Boxes | None:
    """What is left of `boxes`, none of which is certainly empty; None where that is too many."""
    left: Boxes = []
    for box in boxes:
        for axis, (first, end) in enumerate(covered):
            lower, upper = box[axis]
            below, behind = (lower, first), (end, upper)
            # The other bounds were compared when the box was made.
            if not is_empty(below):
                left.append((*box[:axis], (lower, united(upper, first)), *box[axis + 1 :]))
            if not is_empty(behind):
                left.append((*box[:axis], (united(lower, end), upper), *box[axis + 1 :]))
    return left if len(left) <= MOST_BOXES else None


def united(numbers: tuple[Affine, ...], others: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """Each number once: equal slices bring the same ones."""
    return (*numbers, *(n for n in others if n not in numbers))


def symbols(box: Box) -> Iterator[Symbol]:
    for lower, upper in box:
        for number in (*lower, *upper):
            yield from number.terms


def is_within(box: Box, boxes: Iterable[Box]) -> bool:
    """True where `boxes` certainly cover one."""
    left: Boxes | None = not_empty([box])
    for covered in boxes:
        left = None if left is None else without(left, covered)
    return left == []


def not_empty(boxes: Boxes) -> Boxes:
    return [box for box in boxes if not any(map(is_empty, box))]


def is_empty(interval: Interval) -> bool:
    """True where it certainly has no subscript."""
    lower, upper = interval
    return any(never_negative(low - high) for low in lower for high in upper)


def output_to(root: SSAValue, op: array.MapOp) -> int:
    """Which output of a map is (a part of) an array."""
    return next(k for k, o in enumerate(op.outs) if strip_views(o) is root)


def is_apart(root: SSAValue) -> bool:
    """True for memory that the function itself has allocated, and for that of its arguments."""
    owner = root.owner
    is_argument = isinstance(owner, Block) and isinstance(owner.parent_op(), func.FuncOp)
    return is_argument or isinstance(owner, array.AllocOp | memref.AllocaOp)


def blocks_of(op: Operation) -> Iterator[Block]:
    match op:
        case scf.IfOp():
            yield from if_blocks(op)
        case array.LoopOp():
            yield op.body.block
        case _:
            pass

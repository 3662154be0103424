"""Maxima and minima within a point, as maps that `vectorize_outer` runs for all points of a block.

Equal extremes share their derivative evenly, which the rule of a map knows and steps do not: there the first
of three equal ones would have a quarter. So such a map stays one, with one axis more, for the points::

    array.map(%k) ins(%t) outs(%most) kinds ["max"] { x }

    array.map(%k, %points) ins(%t_1) outs(%most_1) kinds ["max"] { x }

It is loops only while `PointLoop` decides, which reads loads and stores. What it takes the extreme of is
stored to scratch memory before, by a map of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import AnyFloat, MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ..analysis.point_loops import PointLoop
from ..diagnostics import locate


@dataclass(frozen=True)
class Place:
    """Memory as a map sees it: the numbers of its view, if it is one."""

    memory: SSAValue
    view: array.ViewOp | None
    offsets: Sequence[SSAValue] = ()
    steps: Sequence[SSAValue] = ()
    dims: Sequence[int] = ()

    @staticmethod
    def of(operand: SSAValue) -> Place | None:
        """None: more than one view of an array of its own."""
        view = operand.owner
        if not isinstance(view, array.ViewOp):
            place = Place(operand, None)
        else:
            place = Place(view.source, view, view.offsets, view.steps, view.source_dims)
        owns = isinstance(place.memory.owner, array.AllocOp | memref.AllocaOp)
        return place if owns else None

    def over(
        self,
        memory: SSAValue,
        extents: Sequence[SSAValue],
        of: Callable[[SSAValue], SSAValue],
        numbers: tuple[SSAValue, SSAValue],
        own: bool | None,
    ) -> array.ViewOp:
        """It, over the axes of a map; the last one is the points', unless `own` is None.

        Each has its `own` then, along the last axis of `memory`, or all have the same. `numbers`: 0 and 1.
        """
        zero, one = numbers
        rank = cast(MemRefType[Attribute], self.memory.type).get_num_dims()
        if self.view is None:
            offsets, dims, steps = [zero] * rank, list(range(rank)), [one] * rank
        else:
            offsets, steps = [of(o) for o in self.offsets], [of(s) for s in self.steps]
            dims = list(self.dims)
        if own is not None:
            dims, steps = [*dims, rank if own else -1], [*steps, one]
        return array.ViewOp(memory, [*offsets, zero] if own else offsets, dims, extents, steps)


@dataclass(frozen=True)
class Extreme:
    """One such map."""

    extents: Sequence[SSAValue]
    kind: array.MapKind
    taken: Place
    left: Place
    """Where the extremes go."""

    def memory(self) -> list[SSAValue]:
        return list(dict.fromkeys((self.taken.memory, self.left.memory)))

    def fits(self, points: PointLoop) -> bool:
        """What differs from point to point belongs to each of them."""
        return all(m in points.private for m in self.memory() if m in points.varying)

    def for_points(
        self,
        of: Callable[[SSAValue], SSAValue],
        lanes: dict[SSAValue, SSAValue],
        numbers: tuple[SSAValue, SSAValue],
        points: SSAValue,
    ) -> list[Operation]:
        """The map for as many points. In `lanes` is the memory that points have for themselves."""
        extents, along = [of(e) for e in self.extents], self.left.memory in lanes
        axes = [*extents, points] if along else extents

        def viewed(place: Place) -> array.ViewOp:
            mine = lanes.get(place.memory)
            memory = of(place.memory) if mine is None else mine
            return place.over(memory, axes, of, numbers, mine is not None if along else None)

        views = [viewed(self.taken), viewed(self.left)]
        body = Block(arg_types=[cast(MemRefType[Attribute], self.taken.memory.type).element_type])
        body.add_op(array.YieldOp([body.args[0]]))
        taken, left = (v.result for v in views)
        return [*views, array.MapOp(axes, [taken], [left], [self.kind], body)]


def takes_extreme(one: array.MapOp) -> bool:
    """It takes the largest of floats, or the least."""
    return any(
        kind in ("min", "max") and isinstance(value.type, AnyFloat)
        for value, kind in zip(one.yielded, one.out_kinds, strict=True)
    )


def isolated(one: array.MapOp) -> tuple[array.MapOp, Extreme] | None:
    """The map that only takes the extreme, of what lies in scratch memory; None where it does more."""
    if len(one.outs) != 1 or not one.extents or one.window:
        return None
    left = Place.of(one.outs[0])
    if left is None:
        return None
    (value,) = one.yielded
    taken = None
    if isinstance(value, BlockArgument) and value.owner is one.body.block:
        taken = Place.of(one.ins[value.index])
    if taken is None or taken.view is not None:
        one = stored_first(one, value)
        taken = Place(one.ins[0], None)
    return one, Extreme(tuple(one.extents), one.out_kinds[0], taken, left)


def stored_first(one: array.MapOp, value: SSAValue) -> array.MapOp:
    """Let a map of its own store the values of which the extreme is taken; the map that reads them."""
    made = array.AllocOp(list(one.extents), value.type)
    made.memref.name_hint = value.name_hint
    extents = list(one.extents)
    storing = array.MapOp(extents, list(one.ins), [made.memref], ["store"], one.body.clone())
    body = Block(arg_types=[value.type])
    body.add_op(array.YieldOp([body.args[0]]))
    taking = array.MapOp(extents, [made.memref], list(one.outs), list(one.out_kinds), body)
    for op in (made, storing, taking):
        locate(op, one.location)
        Rewriter.insert_op(op, InsertPoint.before(one))
    Rewriter.erase_op(one)
    return taking

"""Writes the nest in which the elements of one sum are in registers. Part of `gather_sums`.

Where the innermost loop moves from element to element, a tile is some rows of a vector's width::

    for s in blocks of additions:                             # what is read for them stays in the cache
        for a in ...:                                         # what else the elements move with
            for f in range(0, l - 7, 8):
                for c in range(0, n - 2, 3):                  # then a row that is left over
                    t = [0] * 3
                    for i in s, j in ...:
                        t = [t[d] + x[i, j, c + d] * y[i, j, f : f + 8] for d in range(3)]
                    k[a, c : c + 3, f : f + 8] += t

A tile of few rows has several sums for each, which take turns. Where the innermost loop adds to one element,
too, the lanes of the tile's vectors are sums of their own, added up at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import UnitAttr, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, extreme
from .hoist_checks import Before
from .interchange import Writer, body_like, loop_of
from .register_tiles import Strip, as_written, leave, strips_of
from .sum_nests import Place, Sum
from .sum_terms import Terms, Tile, Where, added, lanes_of, load_of

SUMS = 6
"""As many sums of one tile go side by side: more would wait for none, fewer for each other."""

ADDITIONS = 128
"""What so many additions read stays in the cache for all elements."""


@dataclass(frozen=True)
class Tiling:
    """What tiles look like: options of `gather_sums`."""

    heights: tuple[int, ...]
    widths: tuple[int, ...]
    turns: int
    threads: bool


def write_sums(found: Sequence[Sum], how: Tiling) -> None:
    """Put a nest for each sum before the nest that has them, which is left with the last columns."""
    writers = [SumWriter(one, how) for one in found]
    for writer in writers:
        writer.write()
    nest, before, last = found[0].nest, writers[0].before, writers[0].strips[-1]
    count = nest.outermost.count
    assert count is not None
    number = before.emit(arith.MaxSIOp(count, before.constant(0)))
    leave(nest.outermost, nest.leaf, before, number, last.end(before))
    nest.outermost.attributes[array.SMALL] = UnitAttr()


class SumWriter:
    """Writes the nest of one sum."""

    def __init__(self, one: Sum, how: Tiling) -> None:
        self.sum = one
        self.nest = one.nest
        self.how = how
        self.before = Before(self.nest.outermost)
        self.zero = self.before.constant(0)
        self.counts = self._counts()
        self.where = Where(one, self.before, self.nest.signs(one))
        self.at = self.where.at
        self.first: dict[array.LoopOp, tuple[SSAValue, SSAValue]] = {}
        """Where the loops that are summed begin, and how far they go, where that differs."""
        self.like = one.target.base.name_hint
        self.strips = self._strips()

    def _counts(self) -> dict[array.LoopOp, SSAValue]:
        """How far each loop goes: nowhere where any of them does not run at all."""
        before, counts = self.before, self.nest.counts
        natural = {
            loop: before.number(extreme("max", counts[loop.induction], Affine()))
            for loop in self.nest.loops
        }
        holds = [before.compare("sgt", n, self.zero) for n in natural.values()]
        some = holds[0]
        for condition in holds[1:]:
            some = before.emit(arith.AndIOp(some, condition))
        return {
            loop: before.emit(arith.SelectOp(some, n, self.zero)) for loop, n in natural.items()
        }

    # The loops.

    def write(self) -> None:
        """A nest for each strip of columns: each is one that has few numbers to keep."""
        for k, strip in enumerate(self.strips):
            self.strip = strip
            self.heights = self.how.heights[-1:] if k else self.how.heights
            made = Block()
            self._blocks(Writer(made, self.nest.outermost))
            for op in list(made.ops):
                op.detach()
                self.before.insert(op)
                if isinstance(op, array.LoopOp):
                    as_written(op, self.how.threads)

    def _blocks(self, writer: Writer) -> None:
        """Blocks of additions, where there are many."""
        one = self.sum
        first = one.summed[0] if one.summed else None
        if first is None or one.is_dot or self.how.threads or first in self._paired():
            self._elements(writer)
            return
        inner = self.before.constant(1)
        for loop in one.summed[1:]:
            if loop not in self._paired():
                inner = self.before.emit(arith.MuliOp(inner, self.counts[loop]))
        unit = self.before.constant(1)
        few = self.before.emit(arith.MaxSIOp(inner, unit))
        size = self.before.emit(arith.DivSIOp(self.before.constant(ADDITIONS), few))
        size = self.before.emit(arith.MaxSIOp(size, unit))
        count = self._where(self.counts[first])
        more = self.before.plus(count, self.before.minus_one(size))
        blocks = self.before.emit(arith.FloorDivSIOp(more, size))

        def block(counter: SSAValue, at: Writer) -> None:
            start = at.emit(arith.MuliOp(counter, size))
            left = at.emit(arith.SubiOp(count, start))
            self.first[first] = start, at.emit(arith.MinSIOp(left, size))
            self._elements(at)

        looped(blocks, first, writer, block)
        del self.first[first]

    def _where(self, count: SSAValue) -> SSAValue:
        """So many, where the strip has columns."""
        some = self.before.compare("sgt", self.strip.count, self.zero)
        return self.before.emit(arith.SelectOp(some, count, self.zero))

    def _paired(self) -> set[array.LoopOp]:
        return {place.other for place in self.sum.places if place.other is not None}

    def _elements(self, writer: Writer) -> None:
        """The loops over what the elements move with, but for rows and columns."""
        one = self.sum
        places = [p for p in one.places if p.loop not in (one.rows, self.nest.leaf)]
        self._outer(places, writer)

    def _outer(self, places: Sequence[Place], writer: Writer) -> None:
        if not places:
            self._tiles(writer)
            return
        place, *inner = places

        def body(counter: SSAValue, at: Writer) -> None:
            self._enter(place, counter, at)
            self._outer(inner, at)

        looped(self._reach(place), place.loop, writer, body)

    def _reach(self, place: Place) -> SSAValue:
        """How many elements there are along an axis."""
        count = self._where(self.counts[place.loop])
        if place.other is None:
            return count
        both = self.before.plus(count, self.counts[place.other])
        less = self.before.minus_one(both)
        return self._where(self.before.emit(arith.MaxSIOp(less, self.zero)))

    def _enter(self, place: Place, counter: SSAValue, at: Writer) -> None:
        self.at[place.loop.induction] = counter
        if place.other is None:
            return
        count, other = self.counts[place.loop], self.counts[place.other]
        beyond = at.emit(arith.SubiOp(counter, self.before.minus_one(count)))
        start = at.emit(arith.MaxSIOp(beyond, self.zero))
        until = at.emit(arith.MinSIOp(at.sum(counter, 1), other))
        self.first[place.other] = start, at.emit(arith.SubiOp(until, start))

    def _tiles(self, writer: Writer) -> None:
        if self.sum.is_dot:
            self._rows(writer, self._dot)
            return
        leaf, strip = self.nest.leaf, self.strip

        def body(counter: SSAValue, at: Writer) -> None:
            self.at[leaf.induction] = at.sum(strip.start, at.times(counter, strip.lanes))
            self._rows(at, self._tile)

        looped(strip.count, leaf, writer, body)

    def _strips(self) -> list[Strip]:
        element = self.sum.store.value.type
        return strips_of(self.how.widths, self.counts[self.nest.leaf], element, self.before)

    def _rows(self, writer: Writer, tile: Callable[[int, Writer], None]) -> None:
        """The tiles of each height, the highest first."""
        rows = self.sum.rows
        if rows is None:
            tile(1, writer)
            return
        left, start = self._where(self.counts[rows]), self.zero
        for height in self.heights:
            count = self.before.emit(arith.FloorDivSIOp(left, self.before.constant(height)))

            def body(
                counter: SSAValue, at: Writer, height: int = height, start: SSAValue = start
            ) -> None:
                self.at[rows.induction] = at.sum(start, at.times(counter, height))
                tile(height, at)

            looped(count, rows, writer, body)
            done = self.before.times(count, height)
            start = self.before.plus(start, done)
            left = self.before.emit(arith.SubiOp(left, done))

    # A tile.

    def _tile(self, height: int, writer: Writer) -> None:
        type_ = self.strip.vector
        alone = not self.sum.summed or self.sum.summed[-1] in self._paired()
        turns = 1 if alone else max(1, min(self.how.turns, SUMS // height))
        tile = Tile(type_, height, turns).made(self.like, writer)
        self._sums(self.sum.summed, tile, writer)
        for row in range(height):
            self._add(tile.total(row, writer), type_, row, writer)

    def _dot(self, height: int, writer: Writer) -> None:
        leaf, strip = self.nest.leaf, self.strip
        outer = [loop for loop in self.sum.summed if loop is not leaf]
        tile = Tile(strip.vector, height, 1).made(self.like, writer)

        def body(counter: SSAValue, at: Writer) -> None:
            self.at[leaf.induction] = at.sum(strip.start, at.times(counter, strip.lanes))
            self._sums(outer, tile, at)

        looped(strip.count, leaf, writer, body)
        for row in range(height):
            found = lanes_of(tile.total(row, writer), writer)
            self._add(added(found, writer), self.sum.store.value.type, row, writer)

    def _sums(self, loops: Sequence[array.LoopOp], tile: Tile, writer: Writer) -> None:
        """The loops that add, and in them what is added."""
        if not loops:
            Terms(self.where, tile, None).write(writer)
            return
        loop, *inner = loops
        start, count = self.first.get(loop, (self.zero, self.counts[loop]))
        if inner or tile.turns == 1:
            self._sum(loop, start, count, inner, tile, writer)
            return
        turns = self.before.constant(tile.turns)
        full = writer.emit(arith.FloorDivSIOp(count, turns))

        def body(counter: SSAValue, at: Writer) -> None:
            self.at[loop.induction] = at.sum(start, at.times(counter, tile.turns))
            Terms(self.where, tile, loop.induction).write(at)

        looped(full, loop, writer, body)
        done = writer.times(full, tile.turns)
        rest = writer.emit(arith.SubiOp(count, done))
        short = Tile(tile.type_, tile.height, 1, tile.cells)
        self._sum(loop, writer.sum(start, done), rest, (), short, writer)

    def _sum(
        self,
        loop: array.LoopOp,
        start: SSAValue,
        count: SSAValue,
        inner: Sequence[array.LoopOp],
        tile: Tile,
        writer: Writer,
    ) -> None:
        pair = next((p for p in self.sum.places if p.other is loop), None)

        def body(counter: SSAValue, at: Writer) -> None:
            place = counter if start is self.zero else at.sum(start, counter)
            self.at[loop.induction] = place
            if pair is None:
                self._sums(inner, tile, at)
                return
            whole = self.at[pair.loop.induction]
            self.at[pair.loop.induction] = at.emit(arith.SubiOp(whole, place))
            self._sums(inner, tile, at)
            self.at[pair.loop.induction] = whole

        looped(count, loop, writer, body)

    def _add(self, total: SSAValue, type_: Attribute, row: int, writer: Writer) -> None:
        """Add what a row got to where it is."""
        target = Terms(self.where, None, None).target(row, writer)
        old = writer.emit(load_of(type_, self.sum.target.base, target))
        made = added([old, total], writer)
        if isinstance(type_, VectorType):
            op: Operation = vector.StoreOp(made, self.sum.target.base, target)
        else:
            op = memref.StoreOp.get(made, self.sum.target.base, target)
        op.location = writer.like.location
        writer.block.add_op(op)


def looped(
    count: SSAValue, like: array.LoopOp, writer: Writer, fill: Callable[[SSAValue, Writer], None]
) -> array.LoopOp:
    """A loop, its body filled."""
    body, at = body_like(like)
    fill(body.args[0], at)
    made = loop_of(count, body, like)
    writer.block.add_op(made)
    return made

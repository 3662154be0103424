"""Writes the tiles of a nest that adds to rows. Part of `tile_registers`.

::

    for r in blocks of 96 rows:                               # of these what is read stays in the cache
        for s in blocks of 64 additions, or so:
            for j in range(0, l - 7, 8):                      # then one strip of four columns, where there is
                for i in range(r, r + 91, 6): the tile of rows i to i + 5 and columns j to j + 7
                for i in ...: the tile of a row that is left over
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import AnyFloat, UnitAttr, VectorType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from .counters import count_from
from .hoist_checks import Before
from .interchange import Writer, body_like, loop_of
from .scalar_nests import inner_loops
from .tiled_nests import Tiled

ROWS = 6
"""So many rows share a vector: with it their sums fit in sixteen registers, of 256 bits, too."""

BYTES = 64, 32
"""The widths of tiles."""

LEAST = 4
"""With fewer additions to an element, known at run time, the nest runs as it was."""

BLOCK = 16
"""The rows of so many tiles go through all columns together."""

ADDITIONS = 64
"""An element has so many, or what an iteration of the outermost loop makes, before the next one's turn: what
a strip of columns reads for them, each from a page of its own, is at hand for the next rows."""


def write_tiles(nest: Tiled, height: int, widths: Sequence[int], *, threads: bool) -> None:
    """Put tiles before the nest, which is left with the columns that they do not cover.

    A tile has so many rows, and is so many bytes wide. Blocks of rows are independent, and say so where
    threads may run them.
    """
    before, rows, leaf = Before(nest.rows), nest.rows, nest.leaf
    first = nest.adding[0]
    assert rows.count is not None
    assert leaf.count is not None
    assert first.count is not None
    zero = before.constant(0)
    number = before.emit(arith.MaxSIOp(rows.count, zero))
    strips = strips_of(widths, leaf.count, nest.store.value.type, before)
    long, additions = worth(nest, strips[-1].lanes, before)
    tiled = before.emit(arith.SelectOp(long, number, zero))

    blocks = Blocks(tiled, before.constant(BLOCK * height), before)
    outer, writer = body_like(rows)
    of_rows = blocks.part(outer.args[0], writer)
    steps = Blocks(first.count, additions, before)
    inner, inside = body_like(first)
    of_sums = steps.part(inner.args[0], inside)
    full = inside.emit(arith.DivUIOp(of_rows.count, inside.constant(height)))
    done = inside.times(full, height)
    left = inside.emit(arith.SubiOp(of_rows.count, done))
    rest = inside.emit(arith.AddiOp(of_rows.start, done))
    for strip in strips:
        body, at = body_like(leaf)
        column = at.sum(strip.start, at.times(body.args[0], strip.lanes))
        for tall, count, start in ((height, full, of_rows.start), (1, left, rest)):
            block, here = body_like(rows)
            row = here.emit(arith.AddiOp(start, here.times(block.args[0], tall)))
            Tile(nest, strip.vector, tall, of_sums).write(row, column, here)
            at.block.add_op(loop_of(count, block, rows))
        inside.block.add_op(loop_of(strip.count, body, leaf))
    writer.block.add_op(loop_of(steps.number, inner, first))
    made = loop_of(blocks.number, outer, rows)
    as_written(made, threads)
    before.insert(made)
    covered = before.emit(arith.SelectOp(long, strips[-1].end(before), zero))
    leave(rows, leaf, before, number, covered)


def as_written(loop: array.LoopOp, threads: bool) -> None:
    """Let a nest of tiles be: nothing in it gains from being unrolled. Its blocks are for threads."""
    if not threads:
        loop.attributes[array.SMALL] = UnitAttr()
        return
    loop.attributes[array.CLAIMED] = UnitAttr()
    for inner in inner_loops(loop):
        inner.attributes[array.SMALL] = UnitAttr()


def worth(nest: Tiled, lanes: int, before: Before) -> tuple[SSAValue, SSAValue]:
    """Whether the nest is to be tiled, and how many iterations of the outer loop that adds go together."""
    leaf, first = nest.leaf, nest.adding[0]
    assert leaf.count is not None
    assert first.count is not None
    long = before.compare("sge", leaf.count, before.constant(lanes))
    each: SSAValue = before.constant(1)
    for loop in nest.adding:
        assert loop.count is not None
        some = before.compare("sgt", loop.count, before.constant(0))
        long = before.emit(arith.AndIOp(long, some))
        if loop is not first:
            each = before.emit(arith.MuliOp(each, loop.count))
    additions = before.emit(arith.MuliOp(each, first.count))
    enough = before.compare("sge", additions, before.constant(LEAST))
    one = before.constant(1)
    few = before.emit(arith.MaxSIOp(each, one))
    together = before.emit(arith.DivSIOp(before.constant(ADDITIONS), few))
    return before.emit(arith.AndIOp(long, enough)), before.emit(arith.MaxSIOp(together, one))


def leave(
    rows: array.LoopOp, leaf: array.LoopOp, before: Before, number: SSAValue, columns: SSAValue
) -> None:
    """Let the nest go on from a column; `number`: the trips of its outermost loop, over rows."""
    assert leaf.count is not None
    if rows.trips.first_use is not None:
        rows.trips.replace_all_uses_with(number)
    rest = before.emit(arith.SubiOp(leaf.count, columns))
    zero = before.constant(0)
    some = before.compare("sgt", rest, zero)
    rows.operands[0] = before.emit(arith.SelectOp(some, number, zero))
    leaf.operands[0] = rest
    count_from(columns, leaf)


@dataclass(frozen=True)
class Part:
    """Some iterations of a loop."""

    start: SSAValue
    count: SSAValue


class Blocks:
    """The iterations of a loop, so many at a time."""

    def __init__(self, count: SSAValue, size: SSAValue, before: Before) -> None:
        self.count = count
        self.size = size
        more = before.emit(arith.AddiOp(count, before.minus_one(size)))
        self.number = before.emit(arith.FloorDivSIOp(more, size))

    def part(self, block: SSAValue, writer: Writer) -> Part:
        start = writer.emit(arith.MuliOp(block, self.size))
        left = writer.emit(arith.SubiOp(self.count, start))
        return Part(start, writer.emit(arith.MinSIOp(left, self.size)))


@dataclass(frozen=True)
class Strip:
    """Columns side by side, in tiles of one width."""

    start: SSAValue
    count: SSAValue
    vector: VectorType[AnyFloat]

    @property
    def lanes(self) -> int:
        return self.vector.get_shape()[0]

    def end(self, before: Before) -> SSAValue:
        return before.plus(self.start, before.times(self.count, self.lanes))


def strips_of(
    widths: Sequence[int], columns: SSAValue, element: object, before: Before
) -> list[Strip]:
    """As many as there are of the widest tiles, then of the next ones."""
    assert isinstance(element, AnyFloat)
    strips: list[Strip] = []
    start: SSAValue = before.constant(0)
    for width in widths:
        type_ = VectorType(element, [8 * width // element.bitwidth])
        left = before.emit(arith.SubiOp(columns, start))
        count = before.emit(arith.FloorDivSIOp(left, before.constant(type_.get_shape()[0])))
        strips.append(Strip(start, count, type_))
        start = strips[-1].end(before)
    return strips


class Tile:
    """Writes one tile."""

    def __init__(
        self, nest: Tiled, type_: VectorType[AnyFloat], height: int, additions: Part
    ) -> None:
        self.nest = nest
        self.vector = type_
        self.additions = additions
        """The iterations of the outermost loop that adds."""
        self.cells: list[SSAValue] = []
        """Where the rows are from the first addition to the last one."""
        kinds = nest.kinds()
        assert kinds is not None
        self.wide = kinds.wide
        self.per_row = nest.among_rows()
        self.values = [dict[SSAValue, SSAValue]() for _ in range(height)]
        """Of each row, what stands for the values of the nest."""
        self.own = {op for op in nest.beside(nest.leaf) if nest.is_own(op)}

    def write(self, row: SSAValue, column: SSAValue, writer: Writer) -> None:
        nest = self.nest
        for d, values in enumerate(self.values):
            values[nest.rows.induction] = writer.sum(row, d)
            values[nest.leaf.induction] = column
        self.copy(nest.beside(nest.rows), writer)
        places = self.places(writer)
        for target, indices in places:
            cell = writer.emit(memref.AllocaOp.get(self.vector, shape=[]))
            self.store(writer.emit(vector.LoadOp(target, indices, self.vector)), cell, writer)
            self.cells.append(cell)
        self.loops(nest.adding, writer)
        for (target, indices), cell in zip(places, self.cells, strict=True):
            tile = writer.emit(memref.LoadOp.get(cell, []))
            made = vector.StoreOp(tile, target, indices)
            made.location = writer.like.location
            writer.block.add_op(made)

    def places(self, writer: Writer) -> list[tuple[SSAValue, list[SSAValue]]]:
        """Where the rows of the tile lie."""
        nest = self.nest
        wanted = {nest.store.memref, *nest.store.indices}
        chosen: list[Operation] = []
        for op in reversed([o for o in nest.ops() if o.parent is not nest.rows.body.block]):
            if wanted & set(op.results):
                wanted.update(op.operands)
                chosen.append(op)
        known = [dict(values) for values in self.values]
        self.copy(chosen[::-1], writer)
        found = [
            (v.get(m := nest.store.memref, m), [v.get(i, i) for i in nest.store.indices])
            for v in self.values
        ]
        self.values = known
        return found

    def loops(self, adding: Sequence[array.LoopOp], writer: Writer) -> None:
        """The loops that add, and in the innermost what is along a row."""
        if not adding:
            self.points(writer)
            return
        loop, *inner = adding
        body, inside = body_like(loop)
        count, place = loop.count, body.args[0]
        assert count is not None
        if loop is self.nest.adding[0]:
            count, place = self.additions.count, inside.sum(self.additions.start, place)
        for values in self.values:
            values[loop.induction] = place
        self.copy(self.nest.beside(loop), inside)
        self.loops(inner, inside)
        writer.block.add_op(loop_of(count, body, loop))

    def points(self, writer: Writer) -> None:
        for op in self.nest.beside(self.nest.leaf):
            if op in self.own:
                for values, cell in zip(self.values, self.cells, strict=True):
                    if op is self.nest.store:
                        self.store(values[self.nest.store.value], cell, writer)
                    else:
                        values[op.results[0]] = writer.emit(memref.LoadOp.get(cell, []))
            elif self.wide & set(op.results):
                self.each(op, writer, self.widened)
            else:
                self.copy([op], writer)

    def store(self, value: SSAValue, cell: SSAValue, writer: Writer) -> None:
        made = memref.StoreOp.get(value, cell, [])
        made.location = writer.like.location
        writer.block.add_op(made)

    def copy(self, ops: Sequence[Operation], writer: Writer) -> None:
        for op in ops:
            self.each(op, writer, lambda op, values, _: op.clone(values))

    def each(self, op: Operation, writer: Writer, made: Make) -> None:
        """An op for each row, or once for all."""
        rows = self.values if self.per_row & set(op.results) else self.values[:1]
        for values in rows:
            one = made(op, values, writer)
            writer.block.add_op(one)
            alike = self.values if len(rows) == 1 else [values]
            for known in alike:
                known.update(zip(op.results, one.results, strict=True))

    def widened(self, op: Operation, values: dict[SSAValue, SSAValue], writer: Writer) -> Operation:
        """An op for a vector's width of a row."""
        if isinstance(op, memref.LoadOp):
            source, indices = (
                values.get(op.memref, op.memref),
                [values.get(i, i) for i in op.indices],
            )
            one: Operation = vector.LoadOp(source, indices, self.vector)
        else:
            operands = [
                number if o in self.wide else writer.emit(vector.BroadcastOp(number, self.vector))
                for o in op.operands
                for number in (values.get(o, o),)
            ]
            one = type(op).create(
                operands=operands,
                result_types=[self.vector],
                properties=op.properties,
                attributes=op.attributes,
            )
        one.location = op.location
        for old, new in zip(op.results, one.results, strict=True):
            new.name_hint = old.name_hint
        return one


Make = Callable[[Operation, dict[SSAValue, SSAValue], Writer], Operation]

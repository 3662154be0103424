"""The terms of a tile of sums, and the cells in which they are added up. Part of `gather_sums`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import AnyFloat, FloatAttr, UnitAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from ..analysis.affine import Affine
from .hoist_checks import Before
from .interchange import Writer, is_outside
from .raise_products import Element
from .sum_nests import Sum


@dataclass(frozen=True)
class Tile:
    """Where the terms of some rows are added up."""

    type_: VectorType[AnyFloat]
    height: int
    turns: int
    cells: list[list[SSAValue]] = field(default_factory=list[list[SSAValue]])
    """Of each row."""

    def made(self, like: str | None, writer: Writer) -> Tile:
        """The same with cells, which are 0."""
        nothing = zero(self.type_, writer)
        for _ in range(self.height):
            row = [
                writer.emit(memref.AllocaOp.get(self.type_, shape=[])) for _ in range(self.turns)
            ]
            for cell in row:
                cell.name_hint = like
                writer.block.add_op(stored(nothing, cell, writer))
            self.cells.append(row)
        return self

    def total(self, row: int, writer: Writer) -> SSAValue:
        """The sum of a row, still as wide as the tile."""
        return added([writer.emit(memref.LoadOp.get(c, [])) for c in self.cells[row]], writer)


@dataclass(frozen=True)
class Where:
    """Where the nest of a sum is that is being written."""

    sum: Sum
    before: Before
    """Writes before the nest."""
    signs: dict[SSAValue, int]
    at: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Where each counter is, counted in the direction in which its loop runs: its sign."""


class Terms:
    """Writes the terms of a tile, each number once."""

    def __init__(self, where: Where, tile: Tile | None, turned: SSAValue | None) -> None:
        self.where = where
        self.sum = where.sum
        self.tile = tile
        self.turned = turned
        """The counter that takes turns."""
        self.known: dict[object, SSAValue] = {}
        rows = self.sum.rows
        self.row = None if rows is None else rows.induction
        self.leaf = self.sum.nest.leaf.induction

    def write(self, writer: Writer) -> None:
        tile = self.tile
        assert tile is not None
        for turn in range(tile.turns):
            for row in range(tile.height):
                term = self.value(self.sum.term, row, turn, writer)
                cell = tile.cells[row][turn]
                total = writer.emit(memref.LoadOp.get(cell, []))
                made = added([total, self.widened(term, tile.type_, writer)], writer)
                writer.block.add_op(stored(made, cell, writer))

    def value(self, value: SSAValue, row: int, turn: int, writer: Writer) -> SSAValue:
        """A number of the term; a vector where it differs along a row."""
        if is_outside(value, self.sum.nest.outermost):
            return value
        counters = self.sum.counters_of(value)
        key = (
            value,
            row if self.row in counters else 0,
            turn if self.turned in counters else 0,
        )
        if key not in self.known:
            self.known[key] = self._written(value, row, turn, self.leaf in counters, writer)
        return self.known[key]

    def _written(
        self, value: SSAValue, row: int, turn: int, wide: bool, writer: Writer
    ) -> SSAValue:
        assert self.tile is not None
        type_ = self.tile.type_ if wide else value.type
        if value in self.sum.factors:
            element = self.sum.factors[value]
            made = load_of(type_, element.base, self.indices(element, row, turn, writer))
        else:
            op = value.owner
            assert isinstance(op, Operation)
            operands = [self.value(o, row, turn, writer) for o in op.operands]
            if wide:
                operands = [self.widened(o, self.tile.type_, writer) for o in operands]
            made = type(op).create(
                operands=operands,
                result_types=[type_],
                properties=op.properties,
                attributes=op.attributes,
            )
        result = writer.emit(made)
        made.location = (
            value.owner.location if isinstance(value.owner, Operation) else made.location
        )
        result.name_hint = value.name_hint
        return result

    def widened(self, value: SSAValue, type_: VectorType[AnyFloat], writer: Writer) -> SSAValue:
        if isinstance(value.type, VectorType):
            return value
        key = "wide", value
        if key not in self.known:
            self.known[key] = writer.emit(vector.BroadcastOp(value, type_))
        return self.known[key]

    # Subscripts.

    def target(self, row: int, writer: Writer) -> list[SSAValue]:
        return self.indices(self.sum.target, row, 0, writer, gathered=True)

    def indices(
        self, element: Element, row: int, turn: int, writer: Writer, *, gathered: bool = False
    ) -> list[SSAValue]:
        return [self.index(f, row, turn, writer, gathered) for f in element.subscripts]

    def index(self, form: Affine, row: int, turn: int, writer: Writer, gathered: bool) -> SSAValue:
        """A subscript; `gathered`: of an element, whose summed counters stand at their beginning."""
        offset, at, signs = 0, self.where.at, self.where.signs
        rest, moving = self.sum.nest.rest(form), list[tuple[SSAValue, int]]()
        summed = {loop.induction for loop in self.sum.summed} if gathered else set()
        for counter, sign in signs.items():
            factor = form.terms.get(counter, 0)
            if not factor:
                continue
            if sign < 0:
                rest = rest + (self.sum.nest.counts[counter] - 1) * factor
            if counter in summed:
                continue
            offset += (
                factor * sign * (row * (counter is self.row) + turn * (counter is self.turned))
            )
            moving.append((at[counter], factor * sign))
        key = ("index", rest, tuple(moving))
        if key not in self.known:
            self.known[key] = self._combined(rest, moving, writer)
        place = self.known[key]
        if offset:
            key = ("index", rest, tuple(moving), offset)
            if key not in self.known:
                self.known[key] = writer.sum(place, offset)
            place = self.known[key]
        return place

    def _combined(
        self, rest: Affine, moving: Sequence[tuple[SSAValue, int]], writer: Writer
    ) -> SSAValue:
        total = None if rest == Affine() and moving else self.where.before.number(rest)
        for value, factor in moving:
            term = value if factor == 1 else writer.times(value, factor)
            total = term if total is None else writer.emit(arith.AddiOp(total, term))
        assert total is not None
        return total


def zero(type_: VectorType[AnyFloat], writer: Writer) -> SSAValue:
    nothing = writer.emit(arith.ConstantOp(FloatAttr(0.0, type_.element_type)))
    return writer.emit(vector.BroadcastOp(nothing, type_))


def load_of(type_: Attribute, base: SSAValue, indices: Sequence[SSAValue]) -> Operation:
    if isinstance(type_, VectorType):
        return vector.LoadOp(base, indices, type_)
    return memref.LoadOp.get(base, indices)


def stored(value: SSAValue, cell: SSAValue, writer: Writer) -> Operation:
    made = memref.StoreOp.get(value, cell, [])
    made.location = writer.like.location
    return made


def added(terms: Sequence[SSAValue], writer: Writer) -> SSAValue:
    """The sum of the terms, in a tree."""
    while len(terms) > 1:
        half = (len(terms) + 1) // 2
        terms = [
            *(plus(a, b, writer) for a, b in zip(terms, terms[half:], strict=False)),
            *terms[len(terms) - half : half],
        ]
    return terms[0]


def plus(a: SSAValue, b: SSAValue, writer: Writer) -> SSAValue:
    made = arith.AddfOp(a, b)
    made.attributes["ad.adjoint"] = UnitAttr()
    return writer.emit(made)


def lanes_of(value: SSAValue, writer: Writer) -> list[SSAValue]:
    """The numbers of a vector."""
    type_ = value.type
    assert isinstance(type_, VectorType)
    (lanes,) = type_.get_shape()
    return [
        writer.emit(vector.ExtractOp(value, [writer.constant(k)], type_.element_type))
        for k in range(lanes)
    ]

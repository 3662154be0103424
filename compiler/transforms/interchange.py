"""Two nested loops with the inner one outside. Part of `reorder_loops`; `analysis/loop_order` says when.

What stands before the inner loop, or after it, gets a loop of its own, or goes where its iteration ends::

    for j in range(i):                        for k in range(i):
        for k in range(j):                        a[i, k] /= a[k, k]
            a[i, j] -= a[i, k] * a[k, j]          for j in range(k + 1, i):
        a[i, j] /= a[j, j]                            a[i, j] -= a[i, k] * a[k, j]

Values that are computed before the inner loop are computed where they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.affine import Affine, Extent, Subscripts, Symbol, Term
from ..analysis.loop_order import Interchange, Trips
from ..analysis.nest_proofs import at_least_one
from ..diagnostics import locate
from .hoist_checks import Before


@dataclass(frozen=True)
class LoopPair:
    """A loop, the innermost loop in it, and what else is in it, by where it goes."""

    outer: array.LoopOp
    inner: array.LoopOp
    trips: Trips
    sunk: Sequence[Operation]
    """Loads and scalar code from before the inner loop that it reads."""
    before: Sequence[Operation]
    """Stores, and maps, from before the inner loop, with what they store."""
    again: Sequence[Operation]
    """Loads and scalar code from before the inner loop that what comes after it reads, and does again."""
    after: Sequence[Operation]

    @property
    def inside(self) -> list[Operation]:
        return [*self.sunk, *list(self.inner.body.block.ops)[:-1]]

    def exact(self, forms: Subscripts) -> bool:
        """True when each count from 0 up to the outer count, which it is not, is that of one j."""
        assert self.outer.count is not None
        last = forms.affine(self.outer.count) - 1
        first = {1: Affine(), -1: last}.get(self.trips.slope)
        return first is not None and self.trips.rest == first


def pair_of(outer: array.LoopOp, forms: Subscripts) -> LoopPair | None:
    """The pair, where the outer loop has one loop in it and the rest can be told apart."""
    ops = list(outer.body.block.ops)[:-1]
    loops = [op for op in ops if isinstance(op, array.LoopOp)]
    if len(loops) != 1 or loops[0].trips.first_use is not None:
        return None
    (inner,) = loops
    trips = trips_of(outer, inner, forms)
    if trips is None:
        return None
    at = ops.index(inner)
    first, after = ops[:at], ops[at + 1 :]
    sunk = slice_of(first, inner.body.block.ops)
    before = slice_of(first, [], stores=True)
    again = slice_of(first, after)
    return LoopPair(outer, inner, trips, sunk, before, again, [*again, *after] if after else [])


def trips_of(outer: array.LoopOp, inner: array.LoopOp, forms: Subscripts) -> Trips | None:
    """The inner count by the outer counter, where that is 0 or 1 times it and what is known before."""
    assert inner.count is not None
    form = forms.affine(inner.count)
    if not known_before(form, outer):
        form = at_least_one(form)
    slope = form.terms.get(outer.induction, 0)
    rest = form - Affine({outer.induction: slope})
    if slope not in (-1, 0, 1) or not known_before(rest, outer):
        return None
    return Trips(forms.affine(inner.count), slope, rest)


def known_before(form: Affine, loop: array.LoopOp) -> bool:
    """True when the number can be computed before the loop."""
    return all(symbol_is_known(s, loop) for s in form.terms)


def symbol_is_known(symbol: Symbol, loop: array.LoopOp) -> bool:
    if isinstance(symbol, Term):
        return symbol.kind in ("max", "min") and all(known_before(a, loop) for a in symbol.args)
    value = symbol.memref if isinstance(symbol, Extent) else symbol
    is_index = isinstance(symbol, Extent) or isinstance(value.type, IndexType)
    return is_index and is_outside(value, loop)


def is_outside(value: SSAValue, loop: array.LoopOp) -> bool:
    inside = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    return inside is None or not loop.is_ancestor(inside)


def slice_of(
    ops: Sequence[Operation], readers: Iterable[Operation], *, stores: bool = False
) -> list[Operation]:
    """The ops of the sequence on which the readers depend, or the stores among them do."""
    wanted = {o for r in readers for inner in every_op(r) for o in inner.operands}
    found: list[Operation] = []
    for op in reversed(ops):
        writes = isinstance(op, memref.StoreOp | array.MapOp)
        mine = stores if writes else any(r in wanted for r in op.results)
        if mine:
            found.append(op)
            wanted.update(o for inner in every_op(op) for o in inner.operands)
    return found[::-1]


def interchange(pair: LoopPair, way: Interchange) -> None:
    """Put the interchanged nest in the place of the pair."""
    Interchanged(pair, way).build()


class Interchanged:
    """Writes the nest with the inner loop outside."""

    def __init__(self, pair: LoopPair, way: Interchange) -> None:
        assert pair.outer.count is not None
        self.pair = pair
        self.way = way
        self.before = Before(pair.outer)
        self.count: SSAValue = pair.outer.count

    def build(self) -> None:
        pair, way, outer = self.pair, self.way, self.pair.outer
        aligned_before = way.aligned and way.down
        aligned_after = way.aligned and not way.down
        if pair.before and not aligned_before:
            self.before.insert(self.row(pair.before))
        self.before.insert(
            self.nest(
                pair.after if aligned_after else (),
                pair.before if aligned_before else (),
            )
        )
        if pair.after and not aligned_after:
            self.before.insert(self.row(pair.after))
        if outer.trips.first_use is not None:
            ran = self.before.emit(arith.MaxSIOp(self.count, self.before.constant(0)))
            outer.trips.replace_all_uses_with(ran)
        outer.detach()
        outer.erase()

    def row(self, ops: Sequence[Operation]) -> array.LoopOp:
        """A loop over j of its own."""
        body, writer = body_like(self.pair.outer)
        writer.copy(ops, {self.pair.outer.induction: body.args[0]})
        return loop_of(self.count, body, self.pair.outer)

    def nest(self, first: Sequence[Operation], last: Sequence[Operation]) -> array.LoopOp:
        """The loop over k, in it what is aligned, and the loop over j."""
        pair, way = self.pair, self.way
        steps = self.steps()
        last_step = self.before.minus_one(steps) if way.down else None
        body, writer = body_like(pair.inner)
        k = body.args[0]
        if last_step is not None:
            k = writer.emit(arith.SubiOp(last_step, k))
        if first:
            writer.copy(first, {pair.outer.induction: self.aligned(k, writer)})
        body.add_op(self.inside(k, writer))
        if last:
            writer.copy(last, {pair.outer.induction: self.aligned(k, writer)})
        return loop_of(steps, body, pair.inner)

    def inside(self, k: SSAValue, writer: Writer) -> array.LoopOp:
        """The loop over the j that take part in step k."""
        pair, trips = self.pair, self.pair.trips
        count, first = self.count, None
        match trips.slope:
            case 1:  # k < j + rest
                first = writer.plus(k, -trips.rest + 1, self.before)
                known = trips.rest.is_constant and trips.rest.constant <= 1
                if not known:
                    first = writer.emit(arith.MaxSIOp(first, writer.constant(0)))
                count = writer.emit(arith.SubiOp(self.count, first))
            case -1:  # k < rest - j
                left = writer.emit(arith.SubiOp(self.before.number(trips.rest), k))
                count = left if self.way.aligned else writer.emit(arith.MinSIOp(count, left))
            case _:
                pass
        body, inner = body_like(pair.outer)
        j = body.args[0]
        if first is not None:
            j = inner.emit(arith.AddiOp(first, j))
        inner.copy(pair.inside, {pair.outer.induction: j, pair.inner.induction: k})
        return loop_of(count, body, pair.outer)

    def steps(self) -> SSAValue:
        """How many k there are: for the j of most trips; as many as j where some code is aligned."""
        trips = self.pair.trips
        if self.way.aligned:
            return self.count
        if trips.slope > 0:
            rest = self.before.number(trips.rest - 1)
            return self.before.plus(rest, self.count)
        count = self.pair.inner.count
        assert count is not None
        return count if is_outside(count, self.pair.outer) else self.before.number(trips.rest)

    def aligned(self, k: SSAValue, writer: Writer) -> SSAValue:
        """The j whose count is k."""
        if self.pair.trips.slope > 0:
            return k
        return writer.emit(arith.SubiOp(self.before.minus_one(self.count), k))


def body_like(like: Operation) -> tuple[Block, Writer]:
    """An empty body, its counter named as that of a loop."""
    block = Block(arg_types=[IndexType()])
    if isinstance(like, array.LoopOp):
        block.args[0].name_hint = like.induction.name_hint
    return block, Writer(block, like)


def loop_of(count: SSAValue, body: Block, like: Operation) -> array.LoopOp:
    body.add_op(array.YieldOp())
    made = array.LoopOp(count, (), body)
    locate(made, like.location)
    return made


@dataclass
class Writer:
    """Appends ops to a block."""

    block: Block
    like: Operation

    def emit(self, op: Operation) -> SSAValue:
        op.location = self.like.location
        self.block.add_op(op)
        return op.results[0]

    def constant(self, value: int) -> SSAValue:
        return self.emit(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def times(self, value: SSAValue, factor: int) -> SSAValue:
        return self.emit(arith.MuliOp(value, self.constant(factor)))

    def sum(self, value: SSAValue, other: SSAValue | int) -> SSAValue:
        if other == 0:
            return value
        more = self.constant(other) if isinstance(other, int) else other
        return self.emit(arith.AddiOp(value, more))

    def plus(self, value: SSAValue, form: Affine, before: Before) -> SSAValue:
        """The value plus a number that is known before the nest."""
        if form == Affine():
            return value
        return self.emit(arith.AddiOp(value, before.number(form)))

    def copy(self, ops: Sequence[Operation], values: dict[SSAValue, SSAValue]) -> None:
        for op in ops:
            self.block.add_op(op.clone(values))

"""Derivatives of maps that take a product, a minimum or a maximum.

Both sweeps look at all entries first. Of a product: how many factors are 0, their sum, and the product of the
others, so that each factor's partial is had where factors are 0, too. That sum is 0, and its derivatives are
those of the one factor that is 0: through it partials have derivatives. Of a minimum or maximum: how many
entries equal the result; they share its derivative evenly, as JAX has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from .access import Contents
from .builders import element_of, fill, index
from .sweeps import SHADOW, ReverseSweep, Sweep, TangentSweep
from .table import Scalars
from .tangent_maps import Write, emit_map, primal_writes

Read: TypeAlias = "Callable[[SSAValue], SSAValue]"
Combine: TypeAlias = "Callable[..., SSAValue]"
"""Of the elements of several arrays one, through the `Scalars` that it is given first."""


class Totals:
    """Arrays of the shape of a reduction's result, which maps over its points add to."""

    def __init__(self, sweep: Sweep, op: array.MapOp, extents: Sequence[SSAValue]) -> None:
        self.sweep, self.op, self.extents = sweep, op, extents
        self.type = cast(MemRefType[Attribute], op.outs[0].type)
        self.still = [s == 0 for s in array.strides_of(self.type)]
        one = index(1, sweep.emit)
        self.own = [one if fixed else e for fixed, e in zip(self.still, extents, strict=True)]

    def filled(self, initial: float, element: Attribute | None = None) -> SSAValue:
        """A fresh array that holds `initial`, seen over the points of the map."""
        sweep = self.sweep
        made = sweep.emit(array.AllocOp(self.own, element or self.type.element_type))
        sweep.append(fill(made, self.own, self.op, initial))
        return self._view(made, self.extents)

    def once(self, result: SSAValue) -> SSAValue:
        """The reduction's output, or one of `filled`, each element once."""
        return self._view(result, self.own)

    def _view(self, source: SSAValue, extents: Sequence[SSAValue]) -> SSAValue:
        zero, one = index(0, self.sweep.emit), index(1, self.sweep.emit)
        dims = [-1 if fixed else d for d, fixed in enumerate(self.still)]
        rank = len(dims)
        view = array.ViewOp(source, [zero] * rank, dims, list(extents), [one] * rank)
        return self.sweep.emit(view)

    def rewrite(self, sources: Sequence[SSAValue], rule: Combine) -> None:
        """`sources[0]`, and what `rule` makes of the elements of all sources in its place."""
        once = [self.once(m) for m in sources]
        body = Block(arg_types=[element_of(m) for m in once])

        def append(inner: Operation) -> None:
            inner.location = self.op.location
            body.add_op(inner)

        append(array.YieldOp([rule(Scalars(append), *body.args)]))
        self.sweep.append(array.MapOp(self.own, once, [once[0]], ["store"], body))


# Minimum and maximum.


def share(s: Scalars, equal: SSAValue, derivative: SSAValue, count: SSAValue) -> SSAValue:
    """What one entry has of a derivative that `count` of them share."""
    part = s.div(derivative, count)
    return s.select(equal, part, s.constant(0.0, part))


def one_where(s: Scalars, condition: SSAValue, like: SSAValue) -> SSAValue:
    return s.select(condition, s.constant(1.0, like), s.constant(0.0, like))


def reverse_extreme(sweep: ReverseSweep, op: array.MapOp) -> None:
    """The entries equal to the result share its cotangent evenly."""
    totals = Totals(sweep, op, [sweep.primal.get(e) for e in op.extents])
    position = len(op.extents) + len(op.ins)
    result = sweep.primal.contents(Contents(op, position, after=True), op.outs[0])
    shadow = sweep.primal.memref(op.outs[0], SHADOW)
    counts, value = totals.filled(0.0), op.yielded[0]

    counting = sweep.map_adjoint(op)
    s = counting.scalars
    equal = s.compare("oeq", counting.get(value), counting.read(result))
    counting.write(counts, "add", one_where(s, equal, value))
    counting.finish()

    sharing = sweep.map_adjoint(op)
    s = sharing.scalars
    equal = s.compare("oeq", sharing.get(value), sharing.read(result))
    sharing.add(value, share(s, equal, sharing.read(shadow), sharing.read(counts)))
    sharing.propagate()
    sharing.finish()
    sweep.append(fill(totals.once(shadow), totals.own, op))


def extreme_tangent(sweep: TangentSweep, op: array.MapOp) -> None:
    """The mean of the tangents of the entries equal to the result."""
    emit_map(sweep, op, lambda _: [*primal_writes(sweep, op)])
    totals = Totals(sweep, op, sweep.values(op.extents))
    result, tangent = sweep.value(op.outs[0]), sweep.dot(op.outs[0], zero=True)
    counts, value = totals.filled(0.0), op.yielded[0]

    def equal(read: Read) -> SSAValue:
        return sweep.scalars.compare("oeq", sweep.value(value), read(result))

    def count(read: Read) -> list[Write]:
        return [(counts, "add", one_where(sweep.scalars, equal(read), value))]

    def mean(read: Read) -> list[Write]:
        dot = sweep.dot(value, zero=True)
        return [(tangent, "add", share(sweep.scalars, equal(read), dot, read(counts)))]

    emit_map(sweep, op, count)
    sweep.append(fill(totals.once(tangent), totals.own, op))
    emit_map(sweep, op, mean)


# Products.


class Factors:
    """What partials of a product are made of: arrays that maps over all factors add to."""

    def __init__(self, totals: Totals) -> None:
        start = (0.0, 0.0, 0.0, 1.0)
        self.count, self.sum, self.squares, self.product = (totals.filled(v) for v in start)
        """How many factors are 0, the sum of these and of their squares, and the product of the others.

        Sums of zeros are there for their derivatives (Newton's identities).
        """

    @property
    def arrays(self) -> list[SSAValue]:
        return [self.product, self.count, self.sum, self.squares]

    def counted(self, s: Scalars, factor: SSAValue) -> list[Write]:
        is_zero = s.is_zero(factor)
        zero = s.select(is_zero, factor, s.constant(0.0, factor))
        return [
            (self.count, "add", one_where(s, is_zero, factor)),
            (self.sum, "add", zero),
            (self.squares, "add", s.times(zero, zero)),
        ]

    def multiplied(self, s: Scalars, factor: SSAValue) -> list[Write]:
        """In a map of its own, which has derivatives."""
        one = s.constant(1.0, factor)
        return [(self.product, "mul", s.select(s.is_zero(factor), one, factor))]


def product_of_others(
    s: Scalars, factor: SSAValue, product: SSAValue, *zeros: SSAValue
) -> SSAValue:
    """The product of all factors but one."""
    count, sum_, squares = zeros
    left = (
        s.sub(count, s.constant(1.0, factor)),
        s.sub(sum_, factor),
        s.sub(squares, s.times(factor, factor)),
    )
    if_zero = product_of_all(s, product, *left)
    if_nonzero = product_of_all(s, s.div(product, factor), *zeros)
    return s.select(s.is_zero(factor), if_zero, if_nonzero)


def product_of_all(
    s: Scalars, product: SSAValue, count: SSAValue, sum_: SSAValue, squares: SSAValue
) -> SSAValue:
    """The product of the others, times that of the zeros: right up to its third derivatives."""
    one = s.compare("oeq", count, s.constant(1.0, product))
    two = s.compare("oeq", count, s.constant(2.0, product))
    half = s.constant(0.5, product)
    pair = s.times(s.times(half, s.sub(s.times(sum_, sum_), squares)), product)
    if_two = s.select(two, pair, s.constant(0.0, product))
    if_zero = s.select(one, s.times(sum_, product), if_two)
    return s.select(s.is_zero(count), product, if_zero)


def reverse_product(sweep: ReverseSweep, op: array.MapOp) -> None:
    """Each factor gets the product of the others, what was there before that of all factors."""
    totals = Totals(sweep, op, [sweep.primal.get(e) for e in op.extents])
    shadow = sweep.primal.memref(op.outs[0], SHADOW)
    factors = Factors(totals)

    for writes in (factors.counted, factors.multiplied):
        looking = sweep.map_adjoint(op)
        for target, kind, value in writes(looking.scalars, looking.get(op.yielded[0])):
            looking.write(target, kind, value)
        looking.finish()

    sharing = sweep.map_adjoint(op)
    s, factor = sharing.scalars, sharing.get(op.yielded[0])
    others = product_of_others(s, factor, *map(sharing.read, factors.arrays))
    sharing.add(op.yielded[0], s.times(sharing.read(shadow), others))
    sharing.propagate()
    sharing.finish()

    def before(s: Scalars, bar: SSAValue, *all_: SSAValue) -> SSAValue:
        return s.times(bar, product_of_all(s, *all_))

    totals.rewrite([shadow, *factors.arrays], before)


def product_tangent(sweep: TangentSweep, op: array.MapOp) -> None:
    """`y0 * x1 * x2 ...`: each factor's tangent times the others, and that of what was there before."""
    totals = Totals(sweep, op, sweep.values(op.extents))
    out, tangent = sweep.value(op.outs[0]), sweep.dot(op.outs[0], zero=True)
    factors, sums = Factors(totals), totals.filled(0.0, element_of(tangent))
    value = op.yielded[0]

    def add(read: Read) -> list[Write]:
        s, dot = sweep.scalars, sweep.dot(value, zero=True)
        others = product_of_others(s, sweep.value(value), *map(read, factors.arrays))
        return [(sums, "add", s.times(dot, others))]

    def total(s: Scalars, dot: SSAValue, *rest: SSAValue) -> SSAValue:
        before, sum_, *all_ = rest
        return s.add(s.times(dot, product_of_all(s, *all_)), s.times(sum_, before))

    for writes in (factors.counted, factors.multiplied):
        emit_map(sweep, op, lambda _, w=writes: w(sweep.scalars, sweep.value(value)))
    emit_map(sweep, op, add)
    totals.rewrite([tangent, out, sums, *factors.arrays], total)
    emit_map(sweep, op, lambda _: [*primal_writes(sweep, op)])

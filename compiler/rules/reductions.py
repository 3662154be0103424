"""Derivatives of maps that take a product, a minimum or a maximum.

Both sweeps look at all entries first. Of a product: how many factors are 0, and the product of the others,
so that each factor's partial is had where factors are 0, too. Of a minimum or maximum: how many entries
equal the result; they share its derivative evenly, as JAX has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from .accesses import Contents
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


def one_for_zero(s: Scalars, factor: SSAValue) -> SSAValue:
    """What a factor multiplies the product of those that are not 0 by."""
    return s.select(s.is_zero(factor), s.constant(1.0, factor), factor)


def product_of_others(s: Scalars, factor: SSAValue, product: SSAValue, zeros: SSAValue) -> SSAValue:
    """The product of all factors but one: of all that are not 0, where that one is the only one that is."""
    zero, one = s.constant(0.0, factor), s.constant(1.0, factor)
    if_nonzero = s.select(s.is_zero(zeros), s.div(product, factor), zero)
    if_zero = s.select(s.compare("oeq", zeros, one), product, zero)
    return s.select(s.is_zero(factor), if_zero, if_nonzero)


def product_of_all(s: Scalars, product: SSAValue, zeros: SSAValue) -> SSAValue:
    return s.select(s.is_zero(zeros), product, s.constant(0.0, product))


def reverse_product(sweep: ReverseSweep, op: array.MapOp) -> None:
    """Each factor gets the product of the others, what was there before that of all factors."""
    totals = Totals(sweep, op, [sweep.primal.get(e) for e in op.extents])
    shadow = sweep.primal.memref(op.outs[0], SHADOW)
    zeros, products = totals.filled(0.0), totals.filled(1.0)

    counting = sweep.map_adjoint(op)
    s, factor = counting.scalars, counting.get(op.yielded[0])
    counting.write(zeros, "add", one_where(s, s.is_zero(factor), factor))
    counting.finish()
    multiplying = sweep.map_adjoint(op)  # a map of its own, which has derivatives
    factor = multiplying.get(op.yielded[0])
    multiplying.write(products, "mul", one_for_zero(multiplying.scalars, factor))
    multiplying.finish()

    sharing = sweep.map_adjoint(op)
    s, factor = sharing.scalars, sharing.get(op.yielded[0])
    others = product_of_others(s, factor, sharing.read(products), sharing.read(zeros))
    sharing.add(op.yielded[0], s.times(sharing.read(shadow), others))
    sharing.propagate()
    sharing.finish()

    def before(s: Scalars, bar: SSAValue, product: SSAValue, count: SSAValue) -> SSAValue:
        return s.times(bar, product_of_all(s, product, count))

    totals.rewrite([shadow, products, zeros], before)


def product_tangent(sweep: TangentSweep, op: array.MapOp) -> None:
    """`y0 * x1 * x2 ...`: each factor's tangent times the others, and that of what was there before."""
    totals = Totals(sweep, op, sweep.values(op.extents))
    out, tangent = sweep.value(op.outs[0]), sweep.dot(op.outs[0], zero=True)
    zeros, products = totals.filled(0.0), totals.filled(1.0)
    sums = totals.filled(0.0, element_of(tangent))
    value = op.yielded[0]

    def count(_: Read) -> list[Write]:
        s, factor = sweep.scalars, sweep.value(value)
        return [(zeros, "add", one_where(s, s.is_zero(factor), factor))]

    def multiply(_: Read) -> list[Write]:
        return [(products, "mul", one_for_zero(sweep.scalars, sweep.value(value)))]

    def add(read: Read) -> list[Write]:
        s, dot = sweep.scalars, sweep.dot(value, zero=True)
        others = product_of_others(s, sweep.value(value), read(products), read(zeros))
        return [(sums, "add", s.times(dot, others))]

    def total(s: Scalars, dot: SSAValue, *rest: SSAValue) -> SSAValue:
        before, product, count, sum_ = rest
        return s.add(s.times(dot, product_of_all(s, product, count)), s.times(sum_, before))

    emit_map(sweep, op, count)
    emit_map(sweep, op, multiply)
    emit_map(sweep, op, add)
    totals.rewrite([tangent, out, products, zeros, sums], total)
    emit_map(sweep, op, lambda _: [*primal_writes(sweep, op)])

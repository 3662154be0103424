"""The adjoints of whole-array ops: `array.map` and `array.matmul`.

The adjoint of a map is a map over the same points::

    array.map(%n) ins(%x) outs(%y) kinds ["store"] { y = f(x) }

    array.map(%n) ins(%x, %y_shadow) outs(%y_shadow, %x_shadow) kinds ["store", "add"] {
      0, y_bar * f'(x)
    }

A stencil reads one array through several shifted views; its adjoint has one "add" for each. Outer
scalars that the body uses have their cotangents added up in cells. A reduction is a map whose
output stands still (stride 0), so its adjoint broadcasts by itself; products, minima and maxima
also look at the finished result, and share the cotangent between equal entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from ..analysis.needed import Contents
from .cotangents import extents_of
from .map_values import MapValues
from .primal_values import SHADOW, refusal, zero_fill
from .rules import SCALAR_RULES
from .rules.table import Scalars

if TYPE_CHECKING:
    from .reverse import ReverseSweep


def reverse_map(sweep: ReverseSweep, op: array.MapOp) -> None:
    """Emit the adjoint of a map at the sweep's current place."""
    kinds = {
        k for o, k in zip(op.outs, op.out_kinds, strict=True) if sweep.activity.active_memref(o)
    }
    if kinds <= {"store", "add"}:
        MapAdjoint(sweep, op).emit()
        return
    if len(op.outs) != 1:
        raise refusal(
            op,
            "a map with several outputs cannot take a product, minimum or maximum in its gradient",
            "compute them in separate statements",
        )
    if kinds == {"mul"}:
        reverse_product(sweep, op)
    else:
        reverse_extreme(sweep, op)


class MapAdjoint:
    """One adjoint map under construction: its inputs and outputs grow as its body asks for them."""

    def __init__(self, sweep: ReverseSweep, op: array.MapOp) -> None:
        self.sweep = sweep
        self.op = op
        self.values = MapValues(sweep.primal, op)
        self.get, self.read = self.values.get, self.values.read
        self.extents = self.values.extents
        self.scalars = Scalars(self.values.append)
        self.outs: list[SSAValue] = []
        self.kinds: list[str] = []
        self.yields: list[SSAValue] = []
        self.bars: dict[SSAValue, SSAValue] = {}
        self.cleared: set[SSAValue] = set()
        """Shadows that are outputs, each of their elements at one point."""

    def write(self, out: SSAValue, kind: str, value: SSAValue) -> None:
        if kind == "add" and out in self.cleared:
            # The view that was stored to is the one that was read: what is added is what is stored.
            position = max(k for k, o in enumerate(self.outs) if o is out)
            old = self.yields[position]
            first = isinstance(old.owner, arith.ConstantOp)
            self.yields[position] = value if first else self.scalars.add(old, value)
            return
        self.outs.append(out)
        self.kinds.append(kind)
        self.yields.append(value)

    def emit(self) -> None:
        """The whole adjoint of a map that stores or adds."""
        sweep = self.sweep
        for out, kind, value in zip(self.op.outs, self.op.out_kinds, self.op.yielded, strict=True):
            if not sweep.activity.active_memref(out):
                continue
            shadow = sweep.primal.memref(out, SHADOW)
            if sweep.activity.active(value):
                self.add(value, self.read(shadow))
            if kind == "store":
                self.write(shadow, "store", self.scalars.constant(0.0, value))
                if 0 not in array.strides_of(cast(MemRefType[Attribute], shadow.type)):
                    self.cleared.add(shadow)
        self.propagate()
        self.finish()

    def propagate(self) -> None:
        """Reverse the body, then hand the cotangents of what came from outside on."""
        for inner in reversed(list(self.op.body.block.ops)):
            if type(inner) in SCALAR_RULES and inner.results[0] in self.bars:
                bar = self.bars.pop(inner.results[0])
                outer, self.sweep.scalars = self.sweep.scalars, self.scalars
                self.sweep.apply_rule(inner, bar, self.get, self.add)
                self.sweep.scalars = outer
        for value, bar in self.bars.items():
            if isinstance(value, BlockArgument) and value.owner is self.op.body.block:
                shadow = self.sweep.primal.memref(self.op.ins[value.index], SHADOW)
                self.write(shadow, "add", bar)
            else:
                self.write(self.broadcast(self.sweep.bar_cell(value)), "add", bar)

    def broadcast(self, cell: SSAValue) -> SSAValue:
        """A cell seen at every point: rank of the map, all strides 0."""
        one = self.sweep.emit(arith.ConstantOp(IntegerAttr(1, IndexType())))
        dims = [-1] * len(self.extents)
        view = array.ViewOp(cell, [], dims, self.extents, [one] * len(dims))
        return self.sweep.emit(view)

    def add(self, value: SSAValue, contribution: SSAValue) -> None:
        if not self.sweep.activity.active(value):
            return
        contribution = self.scalars.cast(contribution, value.type)
        old = self.bars.get(value)
        self.bars[value] = contribution if old is None else self.scalars.add(old, contribution)

    def finish(self) -> None:
        if not self.outs:
            return
        values = self.values
        values.append(array.YieldOp(self.yields))
        self.sweep.append(array.MapOp(self.extents, values.ins, self.outs, self.kinds, values.body))


def accumulate(sweep: ReverseSweep, shadow: SSAValue, bar: SSAValue) -> None:
    """`shadow += bar`, element by element."""
    body = Block(arg_types=[cast(MemRefType[Attribute], bar.type).element_type])
    body.add_op(array.YieldOp([body.args[0]]))
    extents = extents_of(shadow, sweep.emit)
    sweep.append(array.MapOp(extents, [bar], [shadow], ["add"], body))


# Products, minima, maxima.


def reduced_like(
    sweep: ReverseSweep, op: array.MapOp, extents: Sequence[SSAValue], initial: float
) -> tuple[SSAValue, SSAValue, list[SSAValue]]:
    """A fresh filled array of the shape of the result: itself, broadcast over the map, its extents."""
    out = cast(MemRefType[Attribute], op.outs[0].type)
    still = [s == 0 for s in array.strides_of(out)]
    one = sweep.emit(arith.ConstantOp(IntegerAttr(1, IndexType())))
    own = [one if fixed else e for fixed, e in zip(still, extents, strict=True)]
    alloc = array.AllocOp(own, out.element_type)
    sweep.append(alloc)
    body = Block()
    value = arith.ConstantOp(FloatAttr(initial, out.element_type))  # pyright: ignore
    body.add_op(value)
    body.add_op(array.YieldOp([value.result]))
    sweep.append(array.MapOp(own, [], [alloc.memref], ["store"], body))
    zero = sweep.emit(arith.ConstantOp(IntegerAttr(0, IndexType())))
    dims = [-1 if fixed else d for d, fixed in enumerate(still)]
    view = array.ViewOp(alloc.memref, [zero] * len(own), dims, extents, [one] * len(own))
    return alloc.memref, sweep.emit(view), own


def result_once(sweep: ReverseSweep, result: SSAValue, extents: Sequence[SSAValue]) -> SSAValue:
    """A reduction's output with extent 1 where it stands still: each element once."""
    type_ = cast(MemRefType[Attribute], result.type)
    zero = sweep.emit(arith.ConstantOp(IntegerAttr(0, IndexType())))
    one = sweep.emit(arith.ConstantOp(IntegerAttr(1, IndexType())))
    rank = len(extents)
    dims = [-1 if s == 0 else d for d, s in enumerate(array.strides_of(type_))]
    view = array.ViewOp(result, [zero] * rank, dims, list(extents), [one] * rank)
    return sweep.emit(view)


def reverse_extreme(sweep: ReverseSweep, op: array.MapOp) -> None:
    """Minimum or maximum: the entries equal to the result share its cotangent evenly."""
    extents = [sweep.primal.get(e) for e in op.extents]
    position = len(op.extents) + len(op.ins)
    result = sweep.primal.contents(Contents(op, position, after=True), op.outs[0])
    shadow = sweep.primal.memref(op.outs[0], SHADOW)
    _, counts, own = reduced_like(sweep, op, extents, 0.0)

    counting = MapAdjoint(sweep, op)
    s = counting.scalars
    equal = s.compare("oeq", counting.get(op.yielded[0]), counting.read(result))
    one, zero = s.constant(1.0, op.yielded[0]), s.constant(0.0, op.yielded[0])
    counting.write(counts, "add", s.select(equal, one, zero))
    counting.finish()

    sharing = MapAdjoint(sweep, op)
    s = sharing.scalars
    equal = s.compare("oeq", sharing.get(op.yielded[0]), sharing.read(result))
    share = s.div(sharing.read(shadow), sharing.read(counts))
    sharing.add(op.yielded[0], s.select(equal, share, s.constant(0.0, share)))
    sharing.propagate()
    sharing.finish()
    sweep.append(zero_fill(result_once(sweep, shadow, own), own, op))


def reverse_product(sweep: ReverseSweep, op: array.MapOp) -> None:
    """A product: each factor gets the product of the others, also where factors are 0."""
    extents = [sweep.primal.get(e) for e in op.extents]
    shadow = sweep.primal.memref(op.outs[0], SHADOW)
    _, zeros, own = reduced_like(sweep, op, extents, 0.0)
    _, products, _ = reduced_like(sweep, op, extents, 1.0)

    counting = MapAdjoint(sweep, op)
    s = counting.scalars
    factor = counting.get(op.yielded[0])
    one, zero = s.constant(1.0, factor), s.constant(0.0, factor)
    counting.write(zeros, "add", s.select(s.is_zero(factor), one, zero))
    counting.write(products, "mul", s.select(s.is_zero(factor), one, factor))
    counting.finish()

    sharing = MapAdjoint(sweep, op)
    s = sharing.scalars
    factor = sharing.get(op.yielded[0])
    nonzero_product, count = sharing.read(products), sharing.read(zeros)
    zero = s.constant(0.0, factor)
    one = s.constant(1.0, factor)
    if_nonzero = s.select(s.is_zero(count), s.div(nonzero_product, factor), zero)
    if_zero = s.select(s.compare("oeq", count, one), nonzero_product, zero)
    others = s.select(s.is_zero(factor), if_zero, if_nonzero)
    sharing.add(op.yielded[0], s.times(sharing.read(shadow), others))
    sharing.propagate()
    sharing.finish()
    scale_by(sweep, op, shadow, products, zeros, own)


def scale_by(
    sweep: ReverseSweep,
    op: array.MapOp,
    shadow: SSAValue,
    products: SSAValue,
    zeros: SSAValue,
    own: Sequence[SSAValue],
) -> None:
    """What was there before the product was taken gets the product of all factors."""
    once = [result_once(sweep, m, own) for m in (shadow, products, zeros)]
    element = cast(MemRefType[Attribute], shadow.type).element_type
    body = Block(arg_types=[element] * 3)

    def append(inner: Operation) -> None:
        inner.location = op.location
        body.add_op(inner)

    s = Scalars(append)
    bar, product, count = body.args
    scaled = s.times(bar, s.select(s.is_zero(count), product, s.constant(0.0, bar)))
    append(array.YieldOp([scaled]))
    sweep.append(array.MapOp(list(own), once, [once[0]], ["store"], body))


# Matrix products.


def reverse_matmul(sweep: ReverseSweep, op: array.MatmulOp) -> None:
    """`c = a @ b`: a_bar += c_bar b^T, b_bar += a^T c_bar (and c_bar = 0 unless c accumulates)."""
    active = sweep.activity.active_memref
    c_bar = sweep.primal.memref(op.c, SHADOW)
    if active(op.a):
        b = sweep.primal.contents(Contents(op, 1), op.b)
        a_bar = sweep.primal.memref(op.a, SHADOW)
        sweep.append(array.MatmulOp(c_bar, transpose(sweep, b), a_bar, accumulate=True))
    if active(op.b):
        a = sweep.primal.contents(Contents(op, 0), op.a)
        b_bar = sweep.primal.memref(op.b, SHADOW)
        sweep.append(array.MatmulOp(transpose(sweep, a), c_bar, b_bar, accumulate=True))
    if op.accumulate is None:
        extents = extents_of(c_bar, sweep.emit)
        sweep.append(zero_fill(c_bar, extents, op))


def transpose(sweep: ReverseSweep, matrix: SSAValue) -> SSAValue:
    rows, columns = extents_of(matrix, sweep.emit)
    zero = sweep.emit(arith.ConstantOp(IntegerAttr(0, IndexType())))
    one = sweep.emit(arith.ConstantOp(IntegerAttr(1, IndexType())))
    return sweep.emit(array.ViewOp(matrix, [zero, zero], [1, 0], [columns, rows], [one, one]))

"""The rule of `array.map`: elementwise expressions, copies, fills, sums.

The adjoint of a map is a map over the same points, and so is a map with its tangent::

    array.map(%n) ins(%x) outs(%y) kinds ["store"] { y = f(x) }

    array.map(%n) ins(%x, %y_shadow) outs(%y_shadow, %x_shadow) kinds ["store", "add"] {
      0, y_bar * f'(x)
    }
    array.map(%n) ins(%x, %x_dot) outs(%y, %y_dot) kinds ["store", "store"] { f(x), f'(x) * x_dot }

A stencil reads one array through several shifted views; its adjoint has one "add" for each. Outer
scalars that the body uses have their cotangents added up in cells. A sum is a map whose output stands
still (stride 0), so its adjoint broadcasts by itself. Products, minima and maxima: `reductions`.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from ...dialects import array
from ..diagnostics import refusal
from . import reductions
from .access import Access, Activity, Contents, Flow, Need
from .builders import fill
from .descriptors import descriptor_values
from .rule import Rule, Rules, touching
from .sweeps import ReverseSweep, TangentSweep
from .table import constant_float
from .tangent_maps import emit_map, primal_writes, tangent_writes


class Map(Rule[array.MapOp]):
    """`array.map`."""

    evaluates_body = True
    whole_array = True

    def effects(self, op: array.MapOp) -> list[Access]:
        combined = [m for m, kind in zip(op.outs, op.out_kinds, strict=True) if kind != "store"]
        return touching(op, [*op.ins, *combined], op.outs)

    def flows(self, op: array.MapOp) -> Iterator[Flow]:
        yield from zip(op.ins, op.body.block.args, strict=True)
        yield from zip(op.yielded, op.outs, strict=True)

    def compared(self, op: array.MapOp) -> Iterator[SSAValue]:
        for value, kind in zip(op.yielded, op.out_kinds, strict=True):
            if kind in ("min", "max"):
                yield value

    def nan_flows(self, op: array.MapOp) -> Iterator[tuple[SSAValue, SSAValue | None]]:
        yield from zip(op.ins, op.body.block.args, strict=True)
        for out, kind in zip(op.outs, op.out_kinds, strict=True):
            if kind not in ("store", "add"):
                yield out, None

    def needs(self, op: array.MapOp, activity: Activity) -> Iterator[Need]:
        yield from op.extents
        for operand in (*op.ins, *op.outs):
            if activity.active(operand):
                yield from descriptor_values(operand)
        outs_start = len(op.extents) + len(op.ins)
        for position, (out, kind) in enumerate(zip(op.outs, op.out_kinds, strict=True)):
            if kind not in ("store", "add") and activity.active(out):
                yield op.yielded[position]
                if kind != "mul":
                    yield Contents(op, outs_start + position, after=True)

    def adjoint(self, op: array.MapOp, sweep: ReverseSweep) -> None:
        match combined(op, sweep.activity):
            case "":
                sweep.map_adjoint(op).emit()
            case "mul":
                reductions.reverse_product(sweep, op)
            case _:
                reductions.reverse_extreme(sweep, op)

    def fill_tangents(self, op: array.MapOp, sweep: TangentSweep) -> None:
        """Maps of their own, which passes that look for fills know."""
        places = [(sweep.value(o), number_of(v)) for o, v in zip(op.outs, op.yielded, strict=True)]
        places += [
            (sweep.dot(out, zero=True), 0.0) for out in op.outs if sweep.activity.active(out)
        ]
        for place, number in places:
            made = fill(place, sweep.values(op.extents), op, number)
            made.attributes.update(op.attributes)
            sweep.append(made)

    def tangent(self, op: array.MapOp, sweep: TangentSweep) -> None:
        match combined(op, sweep.activity):
            case "" if is_fill(op):
                self.fill_tangents(op, sweep)
            case "":
                emit_map(
                    sweep, op, lambda _: [*primal_writes(sweep, op), *tangent_writes(sweep, op)]
                )
            case "mul":
                reductions.product_tangent(sweep, op)
            case _:
                reductions.extreme_tangent(sweep, op)


def number_of(constant: SSAValue) -> float:
    number = constant_float(constant)
    assert number is not None
    return number


def is_fill(op: array.MapOp) -> bool:
    """Whether a map stores the same constants at all points."""
    constants = all(constant_float(v) is not None for v in op.yielded)
    return not op.ins and constants and {*op.out_kinds} == {"store"}


def combined(op: array.MapOp, activity: Activity) -> str:
    """How the active output is combined with what is there: "mul", "min" or "max"; "" for stores and sums."""
    kinds = {k for o, k in zip(op.outs, op.out_kinds, strict=True) if activity.active(o)}
    if kinds <= {"store", "add"}:
        return ""
    if len(op.outs) != 1:
        raise refusal(
            op,
            "a map with several outputs cannot take a product, minimum or maximum in its gradient",
            "compute them in separate statements",
        )
    return kinds.pop()


RULES: Rules = {array.MapOp: Map()}

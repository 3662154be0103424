"""The rule of `array.matmul`: `c = a @ b`.

::

    a_bar += c_bar b^T,  b_bar += a^T c_bar  (and c_bar = 0 unless c accumulates)
    c_dot = a_dot b + a b_dot                (added to c_dot where c accumulates)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import SSAValue

from ...dialects import array
from .access import Access, Activity, Contents, Need
from .builders import extents_of, fill, transpose
from .descriptors import descriptor_values
from .rule import Rule, Rules, touching
from .sweeps import SHADOW, ReverseSweep, TangentSweep


class Matmul(Rule[array.MatmulOp]):
    """`array.matmul`."""

    whole_array = True
    smooth = True
    keeps_nan = (0, 1, 2)

    def effects(self, op: array.MatmulOp) -> list[Access]:
        return touching(op, [op.a, op.b] if op.accumulate is None else [op.a, op.b, op.c], [op.c])

    def added(self, op: array.MatmulOp) -> Sequence[SSAValue]:
        return () if op.accumulate is None else (op.c,)

    def store_instead(self, op: array.MatmulOp) -> bool:
        op.properties.pop("accumulate", None)
        return True

    def work(self, op: array.MatmulOp) -> Sequence[tuple[SSAValue, int]]:
        return (op.a, 0), (op.a, 1), (op.b, 1)

    def needs(self, op: array.MatmulOp, activity: Activity) -> Iterator[Need]:
        for operand in (op.a, op.b, op.c):
            yield from descriptor_values(operand)
        if activity.active(op.a):
            yield Contents(op, 1)
        if activity.active(op.b):
            yield Contents(op, 0)

    def adjoint(self, op: array.MatmulOp, sweep: ReverseSweep) -> None:
        active, primal = sweep.activity.active, sweep.primal
        c_bar = primal.memref(op.c, SHADOW)
        if active(op.a):
            b = transpose(primal.contents(Contents(op, 1), op.b), sweep.emit)
            a_bar = primal.memref(op.a, SHADOW)
            sweep.append(array.MatmulOp(c_bar, b, a_bar, accumulate=True))
        if active(op.b):
            a = transpose(primal.contents(Contents(op, 0), op.a), sweep.emit)
            b_bar = primal.memref(op.b, SHADOW)
            sweep.append(array.MatmulOp(a, c_bar, b_bar, accumulate=True))
        if op.accumulate is None:
            sweep.append(fill(c_bar, extents_of(c_bar, sweep.emit), op))

    def tangent(self, op: array.MatmulOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        active, (a, b) = sweep.activity.active, sweep.values((op.a, op.b))
        if not active(op.c):
            return
        c_dot = sweep.dot(op.c, zero=True)
        factors = [(sweep.dot(op.a, zero=True), b)] if active(op.a) else []
        factors += [(a, sweep.dot(op.b, zero=True))] if active(op.b) else []
        if not factors and op.accumulate is None:
            sweep.append(fill(c_dot, extents_of(c_dot, sweep.emit), op))
        for k, (left, right) in enumerate(factors):
            accumulate = k > 0 or op.accumulate is not None
            sweep.append(array.MatmulOp(left, right, c_dot, accumulate=accumulate))


RULES: Rules = {array.MatmulOp: Matmul()}

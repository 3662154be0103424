"""Rules of the `dense` dialect: factors, and what is solved with them.

Factors of elimination stand for their matrix, whose cotangent their shadow holds (`dense.factor`). With
bars for cotangents, dots for tangents, x in place of b::

    A x = b        b_bar = A^-T x_bar,  A_bar -= b_bar x^T       x_dot = A^-1 (b_dot - A_dot x)
    T x = b        the same, of T_bar the triangle               the same, with the triangle of T_dot
    log |det A|    A_bar += y_bar A^-T                           y_dot = sum(A^-T * A_dot)
    L L^T = A      S = L^-T h(L^T L_bar) L^-1, A_bar = S + S^T   L_dot = L h(L^-1 A_dot L^-T)

where h keeps what is below the diagonal and half of the diagonal (`dense.lower`), and `A_bar` is that of the
lower triangle of A, which is all that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, memref
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array, dense
from .access import Access, Activity, Contents, Flow, Need
from .builders import element_of, extents_of, fill, index, transfer, transpose
from .descriptors import descriptor_values
from .rule import Op, Rule, Rules, touching
from .sweeps import SHADOW, ReverseSweep, Sweep, TangentSweep
from .table import Scalars

# What is emitted.


def negated(sweep: Sweep, x: SSAValue) -> SSAValue:
    """A fresh matrix with the opposite elements."""
    extents = extents_of(x, sweep.emit)
    made = sweep.emit(array.AllocOp(extents, element_of(x)))
    body = Block(arg_types=[element_of(x)])
    opposite = Scalars(body.add_op).neg(body.args[0])
    body.add_op(array.YieldOp([opposite]))
    sweep.append(array.MapOp(extents, [x], [made], ["store"], body))
    return made


def copied(sweep: Sweep, x: SSAValue) -> SSAValue:
    """A fresh matrix with the same elements, in C order."""
    extents = extents_of(x, sweep.emit)
    made = sweep.emit(array.AllocOp(extents, element_of(x)))
    sweep.append(transfer(x, made, extents))
    return made


def zeros(sweep: Sweep, op: Operation, extents: Sequence[SSAValue], like: SSAValue) -> SSAValue:
    made = sweep.emit(array.AllocOp(extents, element_of(like)))
    sweep.append(fill(made, extents, op))
    return made


def add(sweep: Sweep, x: SSAValue, target: SSAValue) -> None:
    sweep.append(transfer(x, target, extents_of(x, sweep.emit), "add"))


def in_triangle(sweep: Sweep, x: SSAValue, *, upper: bool, unit: bool) -> None:
    """`x` keeps what `dense.solve_triangle` reads."""
    seen = transpose(x, sweep.emit) if upper else x
    sweep.append(dense.LowerOp(seen, 0.0 if unit else 1.0))


def inverse_transposed(
    sweep: Sweep, op: Operation, factors: SSAValue, pivots: SSAValue
) -> SSAValue:
    """The transposed inverse of a matrix: the derivatives of its determinant's logarithm."""
    emit = sweep.emit
    extents = extents_of(factors, emit)
    made = zeros(sweep, op, extents, factors)
    zero, one = index(0, emit), index(1, emit)
    row = emit(arith.AddiOp(extents[0], one))
    every = emit(arith.MuliOp(extents[0], extents[0]))
    flat = emit(array.CollapseOp(made, 0, 2, [every]))
    diagonal = emit(array.ViewOp(flat, [zero], [0], [extents[0]], [row]))
    sweep.append(fill(diagonal, [extents[0]], op, 1.0))
    sweep.append(dense.SolveOp(factors, pivots, made, transposed=True))
    return made


# The rules.


class Dense(Rule[Op]):
    """What they have in common."""

    whole_array = True
    smooth = True

    def work(self, op: Op) -> Sequence[tuple[SSAValue, int]]:
        written = [a.memref for a in self.effects(op) if a.kind == "write"]
        return [(written[0], axis) for axis in (0, 0, 1)] if written else super().work(op)


class Factor(Dense[dense.FactorOp]):
    """`dense.factor`: nothing is left to do."""

    def effects(self, op: dense.FactorOp) -> list[Access]:
        return touching(op, [op.a], [op.a, op.pivots])

    def flows(self, op: dense.FactorOp) -> Iterator[Flow]:
        yield op.a, op.a

    def has_derivative(self, op: dense.FactorOp, activity: Activity) -> bool:
        return False


class Solve(Dense[dense.SolveOp]):
    """`dense.solve`."""

    keeps_nan = (0, 2)

    def effects(self, op: dense.SolveOp) -> list[Access]:
        return touching(op, op.operands, [op.x])

    def flows(self, op: dense.SolveOp) -> Iterator[Flow]:
        yield op.factors, op.x
        yield op.x, op.x

    def needs(self, op: dense.SolveOp, activity: Activity) -> Iterator[Need]:
        for operand in op.operands:
            yield from descriptor_values(operand)
        yield Contents(op, 0)
        yield Contents(op, 1)
        if activity.active(op.factors):
            yield Contents(op, 2, after=True)

    def adjoint(self, op: dense.SolveOp, sweep: ReverseSweep) -> None:
        primal, emit, back = sweep.primal, sweep.emit, op.transposed is None
        factors = primal.contents(Contents(op, 0), op.factors)
        pivots = primal.contents(Contents(op, 1), op.pivots)
        x_bar = primal.memref(op.x, SHADOW)
        sweep.append(dense.SolveOp(factors, pivots, x_bar, transposed=back))
        if not sweep.activity.active(op.factors):
            return
        x = primal.contents(Contents(op, 2, after=True), op.x)
        left, right = negated(sweep, x_bar), x
        if not back:
            left, right = right, left
        a_bar = primal.memref(op.factors, SHADOW)
        sweep.append(array.MatmulOp(left, transpose(right, emit), a_bar, accumulate=True))

    def tangent(self, op: dense.SolveOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if not self.has_derivative(op, sweep.activity):
            return
        factors, pivots, x = sweep.values(op.operands)
        x_dot = sweep.dot(op.x, zero=True)
        if sweep.activity.active(op.factors):
            a_dot = sweep.dot(op.factors, zero=True)
            a_dot = a_dot if op.transposed is None else transpose(a_dot, sweep.emit)
            sweep.append(array.MatmulOp(a_dot, negated(sweep, x), x_dot, accumulate=True))
        sweep.append(dense.SolveOp(factors, pivots, x_dot, transposed=op.transposed is not None))


class LogDeterminant(Dense[dense.LogDeterminantOp]):
    """`dense.log_determinant`."""

    def effects(self, op: dense.LogDeterminantOp) -> list[Access]:
        return touching(op, op.operands, [])

    def flows(self, op: dense.LogDeterminantOp) -> Iterator[Flow]:
        yield op.factors, op.result

    def needs(self, op: dense.LogDeterminantOp, activity: Activity) -> Iterator[Need]:
        for operand in op.operands:
            yield from descriptor_values(operand)
        yield Contents(op, 0)
        yield Contents(op, 1)

    def adjoint(self, op: dense.LogDeterminantOp, sweep: ReverseSweep) -> None:
        bar = sweep.take_bar(op.result)
        if bar is None:
            return
        factors = sweep.primal.contents(Contents(op, 0), op.factors)
        pivots = sweep.primal.contents(Contents(op, 1), op.pivots)
        partials = inverse_transposed(sweep, op, factors, pivots)
        a_bar = sweep.primal.memref(op.factors, SHADOW)
        body = Block(arg_types=[element_of(partials)])
        body.add_op(array.YieldOp([Scalars(body.add_op).times(bar, body.args[0])]))
        extents = extents_of(partials, sweep.emit)
        sweep.append(array.MapOp(extents, [partials], [a_bar], ["add"], body))

    def tangent(self, op: dense.LogDeterminantOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if not sweep.activity.active(op.factors):
            return
        emit, (factors, pivots) = sweep.emit, sweep.values(op.operands)
        partials = inverse_transposed(sweep, op, factors, pivots)
        a_dot = sweep.dot(op.factors, zero=True)
        zero, one, extents = index(0, emit), index(1, emit), extents_of(partials, emit)
        total = zeros(sweep, op, [one, one], a_dot)
        still = array.ViewOp(total, [zero, zero], [-1, -1], extents, [one, one])
        body = Block(arg_types=[element_of(a_dot), element_of(partials)])
        body.add_op(array.YieldOp([Scalars(body.add_op).times(*body.args)]))
        ins = [a_dot, partials]
        sweep.append(array.MapOp(extents, ins, [emit(still)], ["add"], body))
        sweep.set_dot(op.result, emit(memref.LoadOp.get(total, [zero, zero])))


class Cholesky(Dense[dense.CholeskyOp]):
    """`dense.cholesky`."""

    def effects(self, op: dense.CholeskyOp) -> list[Access]:
        return touching(op, [op.a], [op.a])

    def flows(self, op: dense.CholeskyOp) -> Iterator[Flow]:
        yield op.a, op.a

    def needs(self, op: dense.CholeskyOp, activity: Activity) -> Iterator[Need]:
        yield from descriptor_values(op.a)
        yield Contents(op, 0, after=True)

    def adjoint(self, op: dense.CholeskyOp, sweep: ReverseSweep) -> None:
        emit = sweep.emit
        low = sweep.primal.contents(Contents(op, 0, after=True), op.a)
        bar, up = sweep.primal.memref(op.a, SHADOW), transpose(low, emit)
        extents = extents_of(bar, emit)
        sweep.append(dense.LowerOp(bar, 1.0))
        inner = emit(array.AllocOp(extents, element_of(bar)))
        sweep.append(array.MatmulOp(up, bar, inner))
        sweep.append(dense.LowerOp(inner, 0.5))
        sweep.append(dense.SolveTriangleOp(up, inner, upper=True))
        outer = copied(sweep, transpose(inner, emit))
        sweep.append(dense.SolveTriangleOp(up, outer, upper=True))
        sweep.append(transfer(outer, bar, extents))
        add(sweep, transpose(outer, emit), bar)
        sweep.append(dense.LowerOp(bar, 0.5))

    def tangent(self, op: dense.CholeskyOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if not self.has_derivative(op, sweep.activity):
            return
        emit, low, dot = sweep.emit, sweep.value(op.a), sweep.dot(op.a, zero=True)
        sweep.append(dense.LowerOp(dot, 0.5))
        whole = copied(sweep, dot)
        add(sweep, transpose(dot, emit), whole)
        sweep.append(dense.SolveTriangleOp(low, whole))
        inner = copied(sweep, transpose(whole, emit))
        sweep.append(dense.SolveTriangleOp(low, inner))
        sweep.append(dense.LowerOp(inner, 0.5))
        sweep.append(array.MatmulOp(low, inner, dot))


class SolveTriangle(Dense[dense.SolveTriangleOp]):
    """`dense.solve_triangle`."""

    keeps_nan = (0, 1)

    def effects(self, op: dense.SolveTriangleOp) -> list[Access]:
        return touching(op, [op.t, op.x], [op.x])

    def flows(self, op: dense.SolveTriangleOp) -> Iterator[Flow]:
        yield op.t, op.x
        yield op.x, op.x

    def needs(self, op: dense.SolveTriangleOp, activity: Activity) -> Iterator[Need]:
        for operand in op.operands:
            yield from descriptor_values(operand)
        yield Contents(op, 0)
        if activity.active(op.t):
            yield Contents(op, 1, after=True)

    def adjoint(self, op: dense.SolveTriangleOp, sweep: ReverseSweep) -> None:
        primal, emit = sweep.primal, sweep.emit
        upper, unit = op.upper is not None, op.unit is not None
        t = primal.contents(Contents(op, 0), op.t)
        x_bar = primal.memref(op.x, SHADOW)
        back = dense.SolveTriangleOp(transpose(t, emit), x_bar, upper=not upper, unit=unit)
        sweep.append(back)
        if not sweep.activity.active(op.t):
            return
        x = primal.contents(Contents(op, 1, after=True), op.x)
        outer = emit(array.AllocOp(extents_of(t, emit), element_of(x_bar)))
        sweep.append(array.MatmulOp(negated(sweep, x_bar), transpose(x, emit), outer))
        in_triangle(sweep, outer, upper=upper, unit=unit)
        add(sweep, outer, primal.memref(op.t, SHADOW))

    def tangent(self, op: dense.SolveTriangleOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if not self.has_derivative(op, sweep.activity):
            return
        t, x = sweep.values(op.operands)
        upper, unit = op.upper is not None, op.unit is not None
        x_dot = sweep.dot(op.x, zero=True)
        if sweep.activity.active(op.t):
            t_dot = copied(sweep, sweep.dot(op.t, zero=True))
            in_triangle(sweep, t_dot, upper=upper, unit=unit)
            sweep.append(array.MatmulOp(t_dot, negated(sweep, x), x_dot, accumulate=True))
        sweep.append(dense.SolveTriangleOp(t, x_dot, upper=upper, unit=unit))


class Lower(Dense[dense.LowerOp]):
    """`dense.lower`, which is linear and its own transpose."""

    keeps_nan = (0,)

    def effects(self, op: dense.LowerOp) -> list[Access]:
        return touching(op, [op.x], [op.x])

    def flows(self, op: dense.LowerOp) -> Iterator[Flow]:
        yield op.x, op.x

    def needs(self, op: dense.LowerOp, activity: Activity) -> Iterator[Need]:
        yield from descriptor_values(op.x)

    def adjoint(self, op: dense.LowerOp, sweep: ReverseSweep) -> None:
        sweep.append(dense.LowerOp(sweep.primal.memref(op.x, SHADOW), op.multiple))

    def tangent(self, op: dense.LowerOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if self.has_derivative(op, sweep.activity):
            sweep.append(dense.LowerOp(sweep.dot(op.x, zero=True), op.multiple))


RULES: Rules = {
    dense.FactorOp: Factor(),
    dense.SolveOp: Solve(),
    dense.LogDeterminantOp: LogDeterminant(),
    dense.CholeskyOp: Cholesky(),
    dense.SolveTriangleOp: SolveTriangle(),
    dense.LowerOp: Lower(),
}

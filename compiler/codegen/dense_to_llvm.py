"""Ops of the `dense` dialect as calls of routines of numbers (`dense_factors`, `dense_triangles`).

Where elements are vectors, several derivatives of each, right-hand sides are as many times more columns;
where these do not lie together, each column of vectors is solved for by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from ...dialects import dense
from .dense_factors import CHOLESKY, FACTOR, LOG_DETERMINANT, LOWER, SOLVE
from .dense_routine import Written
from .dense_triangles import SOLVE_TRIANGLE
from .kernel_state import Descriptor, KernelState, lanes_of
from .scalars_to_llvm import float_text


def call(state: KernelState, routine: Written, *arguments: str) -> str:
    types = (p.split()[0] for p in routine.head.split(", "))
    shown = ", ".join(f"{type_} {a}" for type_, a in zip(types, arguments, strict=True))
    text = f"call {routine.result} @{routine.name_in(state)}({shown})"
    if routine.result != "void":
        return state.text.value(text)
    state.text.do(text)
    return ""


def fields(x: Descriptor) -> tuple[str, ...]:
    """Address and strides."""
    return (x.pointer, *x.strides)


def lower_factor(state: KernelState, op: dense.FactorOp) -> None:
    a, pivots = state.memrefs[op.a], state.memrefs[op.pivots]
    state.scalars[op.info] = call(state, FACTOR, a.extents[0], *fields(a), *fields(pivots))


def lower_cholesky(state: KernelState, op: dense.CholeskyOp) -> None:
    a = state.memrefs[op.a]
    state.scalars[op.info] = call(state, CHOLESKY, a.extents[0], *fields(a))
    lower(state, a, 1.0)


def lower_log_determinant(state: KernelState, op: dense.LogDeterminantOp) -> None:
    a = state.memrefs[op.factors]
    state.scalars[op.result] = call(state, LOG_DETERMINANT, a.extents[0], *fields(a))


def lower_lower(state: KernelState, op: dense.LowerOp) -> None:
    lower(state, state.memrefs[op.x], op.multiple)


def lower(state: KernelState, x: Descriptor, times: float) -> None:
    lanes = lanes_of(x.element)
    strides = (state.text.mul(s, str(lanes)) for s in x.strides)
    number = float_text(times, "double")
    call(state, LOWER, x.extents[0], str(lanes), x.pointer, *strides, number)


def lower_solve(state: KernelState, op: dense.SolveOp) -> None:
    a, pivots, x = (state.memrefs[v] for v in op.operands)
    transposed = "true" if op.transposed is not None else "false"
    for_right_hand_sides(
        state,
        x,
        lambda m, of: call(
            state, SOLVE, x.extents[0], m, *fields(a), *fields(pivots), *of, transposed
        ),
    )


def lower_solve_triangle(state: KernelState, op: dense.SolveTriangleOp) -> None:
    t, x = state.memrefs[op.t], state.memrefs[op.x]
    flags = ["true" if held is not None else "false" for held in (op.upper, op.unit)]
    for_right_hand_sides(
        state,
        x,
        lambda m, of: call(state, SOLVE_TRIANGLE, x.extents[0], m, *fields(t), *of, *flags),
    )


def for_right_hand_sides(
    state: KernelState, x: Descriptor, run: Callable[[str, tuple[str, ...]], object]
) -> None:
    """`run` with how many columns of numbers there are, and where: once, or for each column of vectors."""
    t, lanes = state.text, str(lanes_of(x.element))
    columns, (s0, s1) = x.extents[1], x.strides
    if lanes == "1":
        run(columns, (x.pointer, s0, s1))
        return
    row = t.mul(s0, lanes)
    together, apart, done = t.label("together"), t.label("apart"), t.label("done")
    alone = t.value(f"icmp eq i64 {columns}, 1")
    beside = t.value(f"icmp eq i64 {s1}, 1")
    t.branch_if(t.value(f"or i1 {alone}, {beside}"), together, apart)
    t.start(together)
    run(t.mul(columns, lanes), (x.pointer, row, "1"))
    t.branch(done)
    t.start(apart)
    loop = t.begin_loop(columns)
    step = t.mul(t.mul(loop.counter, s1), lanes)
    column = t.value(f"getelementptr inbounds double, ptr {x.pointer}, i64 {step}")
    run(lanes, (column, row, "1"))
    t.end_loop(loop)
    t.branch(done)
    t.start(done)


DENSE_OPS: dict[type[Operation], Callable[[KernelState, Any], None]] = {
    dense.FactorOp: lower_factor,
    dense.SolveOp: lower_solve,
    dense.LogDeterminantOp: lower_log_determinant,
    dense.CholeskyOp: lower_cholesky,
    dense.SolveTriangleOp: lower_solve_triangle,
    dense.LowerOp: lower_lower,
}
"""How each is written."""

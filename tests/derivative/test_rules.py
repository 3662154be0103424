"""Every row of the table of scalar rules: against central differences, and by value at kinks.

One function has one op for each case; each operand is an element of `x` of its own, each result an
element of `y`. A single pullback therefore gives every partial apart from the others, and moving `x`
gives their central differences. What this cannot see: rules within maps, where the same code is emitted
by another way (`tests/gradients` has those).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, func, math, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    f32,
    f64,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from mutad.compiler.derivative.forward import tangent_functions
from mutad.compiler.derivative.reverse import gradient_of
from mutad.compiler.rules import RULES, ScalarRule
from mutad.dialects import ad, array, special


@dataclass(frozen=True)
class Case:
    """An op at a point; the partials expected there, or None for those that central differences tell."""

    kind: type[Operation]
    point: tuple[float, ...]
    partials: tuple[float, ...] | None = None
    seed: float = 1.0
    """The cotangent of the result."""

    def __repr__(self) -> str:
        seeded = "" if self.seed == 1.0 else f" seeded {self.seed}"
        return f"{self.kind.name}{self.point}{seeded}"


REGULAR: dict[type[Operation], Sequence[tuple[float, ...]]] = {
    arith.AddfOp: [(1.5, -2.0)],
    arith.SubfOp: [(1.5, -2.0)],
    arith.NegfOp: [(1.5,)],
    arith.MulfOp: [(1.5, -2.0), (0.0, 3.0)],
    arith.DivfOp: [(1.5, -2.0), (0.0, 3.0)],
    ad.MulOp: [(1.5, -2.0), (0.0, 3.0)],
    ad.DivOp: [(1.5, -2.0), (0.0, 3.0)],
    arith.MaximumfOp: [(1.5, -2.0), (-2.0, 1.5)],
    arith.MaxnumfOp: [(1.5, -2.0), (-2.0, 1.5)],
    arith.MinimumfOp: [(1.5, -2.0), (-2.0, 1.5)],
    arith.MinnumfOp: [(1.5, -2.0), (-2.0, 1.5)],
    arith.SelectOp: [(1.0, 1.5, -2.0), (-1.0, 1.5, -2.0)],
    arith.ExtFOp: [(1.5,)],
    arith.TruncFOp: [(1.5,)],
    array.CastOp: [(1.5,)],
    array.FloorModOp: [(5.3, 2.1), (-5.3, 2.1), (5.3, -2.1)],
    array.FloorDivOp: [(5.3, 2.1)],
    math.AbsFOp: [(1.5,), (-1.5,)],
    math.ExpOp: [(0.7,), (-3.0,)],
    math.Exp2Op: [(0.7,), (-3.0,)],
    math.ExpM1Op: [(0.7,), (1e-3,)],
    math.LogOp: [(0.7,), (30.0,)],
    math.Log2Op: [(0.7,)],
    math.Log10Op: [(0.7,)],
    math.Log1pOp: [(0.7,), (-0.4,)],
    math.SqrtOp: [(0.7,), (30.0,)],
    math.RsqrtOp: [(0.7,)],
    math.CbrtOp: [(0.7,), (-0.7,)],
    math.SinOp: [(0.7,)],
    math.CosOp: [(0.7,)],
    math.TanOp: [(0.7,)],
    math.AsinOp: [(0.7,), (-0.3,)],
    math.AcosOp: [(0.7,), (-0.3,)],
    math.AtanOp: [(0.7,)],
    math.Atan2Op: [(0.7, 1.2), (-0.7, -1.2), (0.7, 0.0), (0.0, 1.2)],
    math.SinhOp: [(0.7,)],
    math.CoshOp: [(0.7,)],
    math.TanhOp: [(0.7,)],
    math.AsinhOp: [(0.7,), (-0.7,)],
    math.AcoshOp: [(1.7,)],
    math.AtanhOp: [(0.7,)],
    math.PowFOp: [(1.7, 2.3), (0.3, -1.2), (1.7, 0.0), (0.5, 1.0)],
    math.FPowIOp: [(1.7, 3.0), (-1.7, 3.0), (-1.7, -2.0), (0.5, 0.0)],
    math.CopySignOp: [(1.5, -2.0), (-1.5, -2.0), (-1.5, 2.0)],
    math.ErfOp: [(0.7,), (-1.1,)],
    special.ErfcOp: [(0.7,), (-1.1,)],
    special.GammaOp: [(0.7,), (-1.45,), (5.5,)],
    special.LogGammaOp: [(0.7,), (-1.45,), (35.5,)],
    special.DigammaOp: [(0.7,), (-1.45,), (35.5,)],
    special.TrigammaOp: [(0.7,), (-1.45,), (35.5,)],
    math.FmaOp: [(1.5, -2.0, 0.4)],
    math.FloorOp: [(1.4,)],
    math.CeilOp: [(1.4,)],
    math.TruncOp: [(1.4,)],
    math.RoundOp: [(1.4,)],
    math.RoundEvenOp: [(1.4,)],
}

KINKS = [
    Case(math.AbsFOp, (0.0,), (1.0,)),
    *(Case(k, (2.0, 2.0), (0.5, 0.5)) for k in (arith.MaximumfOp, arith.MaxnumfOp)),
    *(Case(k, (2.0, 2.0), (0.5, 0.5)) for k in (arith.MinimumfOp, arith.MinnumfOp)),
    # A partial that is infinite at the edge of the domain counts as 0.
    Case(math.SqrtOp, (0.0,), (0.0,)),
    Case(math.CbrtOp, (0.0,), (0.0,)),
    Case(math.AsinOp, (1.0,), (0.0,)),
    Case(math.AsinOp, (-1.0,), (0.0,)),
    Case(math.AcosOp, (1.0,), (0.0,)),
    Case(math.AcoshOp, (1.0,), (0.0,)),
    Case(math.Atan2Op, (0.0, 0.0), (0.0, 0.0)),
    Case(math.Atan2Op, (0.0, -1.0), (-1.0, 0.0)),
    Case(math.PowFOp, (0.0, 0.0), (0.0, 0.0)),
    Case(math.PowFOp, (0.0, 1.0), (1.0, 0.0)),
    Case(math.PowFOp, (0.0, 0.5), (0.0, 0.0)),
    Case(math.PowFOp, (0.0, 2.0), (0.0, 0.0)),
    Case(math.PowFOp, (-2.0, 3.0), (12.0, 0.0)),
    Case(math.PowFOp, (-2.0, 0.0), (0.0, 0.0)),
    Case(math.FPowIOp, (0.0, 0.0), (0.0, 0.0)),
    Case(math.FPowIOp, (0.0, 1.0), (1.0, 0.0)),
    Case(math.FPowIOp, (0.0, 2.0), (0.0, 0.0)),
    # A strong zero has the derivative of a product, and is one of the other factor's, too.
    Case(ad.MulOp, (0.0, inf), (inf, 0.0)),
    Case(ad.DivOp, (0.0, 0.0), (inf, 0.0)),
    # A pole stays one.
    Case(math.LogOp, (0.0,), (inf,)),
    Case(arith.DivfOp, (1.0, 0.0), (inf, -inf)),
]

STRONG_ZEROS = [
    Case(kind, point, (0.0,) * len(point), seed=0.0)
    for kind, point in (
        (arith.MulfOp, (inf, nan)),
        (ad.MulOp, (inf, nan)),
        (ad.DivOp, (1.0, 0.0)),
        (arith.DivfOp, (1.0, 0.0)),
        (arith.DivfOp, (0.0, 0.0)),
        (math.LogOp, (0.0,)),
        (math.LogOp, (-1.0,)),
        (math.Log2Op, (0.0,)),
        (math.Log10Op, (0.0,)),
        (math.Log1pOp, (-1.0,)),
        (math.SqrtOp, (0.0,)),
        (math.SqrtOp, (-1.0,)),
        (math.RsqrtOp, (0.0,)),
        (math.CbrtOp, (0.0,)),
        (math.ExpOp, (1000.0,)),
        (math.Exp2Op, (10000.0,)),
        (math.ExpM1Op, (1000.0,)),
        (math.SinOp, (inf,)),
        (math.CosOp, (inf,)),
        (math.TanOp, (inf,)),
        (math.AsinOp, (2.0,)),
        (math.AcosOp, (2.0,)),
        (math.AcoshOp, (0.5,)),
        (math.AtanhOp, (1.0,)),
        (math.SinhOp, (1000.0,)),
        (math.CoshOp, (1000.0,)),
        (math.TanhOp, (nan,)),
        (math.AsinhOp, (nan,)),
        (math.AtanOp, (nan,)),
        (math.ErfOp, (nan,)),
        (math.Atan2Op, (nan, inf)),
        (math.PowFOp, (0.0, -1.0)),
        (math.PowFOp, (1000.0, 1000.0)),
        (math.FPowIOp, (0.0, -1.0)),
        (math.FmaOp, (inf, nan, 1.0)),
        (array.FloorModOp, (1.0, 0.0)),
    )
]

CASES = [
    *(Case(kind, p) for kind, points in REGULAR.items() for p in points),
    *KINKS,
    *STRONG_ZEROS,
]


class Program:
    """`y[k] = op_k(x[...])` for every case."""

    def __init__(self) -> None:
        array_type = MemRefType(f64, [DYNAMIC_INDEX])
        self.block = Block(arg_types=[array_type, array_type])
        self.x, self.y = self.block.args
        self.x.name_hint, self.y.name_hint = "x", "y"
        self.positions: list[list[int]] = []
        self.size = 0
        for case in CASES:
            self._case(case)
        self.emit(func.ReturnOp())
        types = [a.type for a in self.block.args]
        self.function = func.FuncOp("rules", (types, []), Region(self.block))

    def emit(self, op: Operation) -> Operation:
        self.block.add_op(op)
        return op

    def index(self, value: int) -> SSAValue:
        return self.emit(arith.ConstantOp(IntegerAttr(value, IndexType()))).results[0]

    def _case(self, case: Case) -> None:
        operands: list[SSAValue] = []
        self.positions.append(list(range(self.size, self.size + len(case.point))))
        for number, _ in enumerate(case.point):
            element = self.emit(memref.LoadOp.get(self.x, [self.index(self.size)])).results[0]
            operands.append(self._converted(case.kind, number, element))
            self.size += 1
        result = self.emit(self._op(case.kind, operands)).results[0]
        if result.type != f64:
            result = self.emit(array.CastOp(result, f64)).results[0]
        self.emit(memref.StoreOp.get(result, self.y, [self.index(len(self.positions) - 1)]))

    def _converted(self, kind: type[Operation], number: int, element: SSAValue) -> SSAValue:
        """An element as the operand that the op wants: a condition, an integer, an f32."""
        if kind is arith.SelectOp and number == 0:
            zero = self.emit(array.CastOp(self.index(0), f64)).results[0]
            return self.emit(arith.CmpfOp(element, zero, "ogt")).results[0]
        if kind is math.FPowIOp and number == 1:
            nearest = self.emit(math.RoundEvenOp(element)).results[0]
            return self.emit(array.CastOp(nearest, i64)).results[0]
        if kind is arith.ExtFOp:
            return self.emit(array.CastOp(element, f32)).results[0]
        return element

    @staticmethod
    def _op(kind: type[Operation], operands: Sequence[SSAValue]) -> Operation:
        if kind in (arith.TruncFOp, array.CastOp):
            return kind(operands[0], f32)  # pyright: ignore
        if kind is arith.ExtFOp:
            return arith.ExtFOp(operands[0], f64)
        return kind(*operands)  # pyright: ignore


@dataclass
class Measured:
    """All partials of all cases, and their central differences."""

    kernel: Any
    program: Program

    def run(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The results at `x`, and the shadow of `x` after the pullback."""
        y, x_shadow = np.zeros(len(CASES)), np.zeros_like(x)
        y_shadow = np.array([c.seed for c in CASES])
        assert self.kernel(x.copy(), y, x_shadow, y_shadow).status == 0
        assert not y_shadow.any(), "a store zeroes the shadow of what it overwrites"
        return y, x_shadow

    @property
    def point(self) -> np.ndarray:
        return np.array([value for case in CASES for value in case.point])

    @cached_property
    def partials(self) -> np.ndarray:
        return self.run(self.point)[1]

    @cached_property
    def differences(self) -> np.ndarray:
        """One operand of every case is moved at a time."""
        found = np.zeros(self.program.size)
        for number in range(3):
            moved = [p[number] for p in self.program.positions if number < len(p)]
            cases = [k for k, p in enumerate(self.program.positions) if number < len(p)]
            estimates: list[np.ndarray] = []
            # Steps are powers of 2 that an f32 holds exactly as well.
            for step in (2.0**-9, 2.0**-10):
                ends: list[np.ndarray] = []
                for sign in (1, -1):
                    x = self.point
                    x[moved] += sign * step
                    ends.append(self.run(x)[0][cases])
                with np.errstate(invalid="ignore"):
                    estimates.append((ends[0] - ends[1]) / (2 * step))
            with np.errstate(invalid="ignore"):
                found[moved] = (4 * estimates[1] - estimates[0]) / 3
        return found


@pytest.fixture(scope="module")
def measured(kernel: Any) -> Measured:
    program = Program()
    gradient = ModuleOp([gradient_of(program.function, [0, 1], "minimal")])
    return Measured(kernel(str(gradient)), program)


def test_every_rule_has_a_case() -> None:
    scalar = {kind: rule.terms for kind, rule in RULES.items() if isinstance(rule, ScalarRule)}
    in_plans_alone = {
        ad.MinimumOp,
        ad.MaximumOp,
    }  # they stand for those of `arith`, which have cases
    assert set(REGULAR) == set(scalar) - in_plans_alone
    assert all(len(c.point) == len(scalar[c.kind]) for c in CASES)


@pytest.fixture(scope="module")
def tangents(kernel: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The tangents of all results, for those of `x`."""
    program = Program()
    (tangent,) = tangent_functions(program.function, [0, 1])
    run = kernel(str(ModuleOp([tangent])))
    point = np.array([value for case in CASES for value in case.point])

    def of(x_dot: np.ndarray) -> np.ndarray:
        y, y_dot = np.zeros(len(CASES)), np.full(len(CASES), nan)
        assert run(point.copy(), y, x_dot, y_dot).status == 0
        return y_dot

    return of


@pytest.mark.parametrize("operand", range(3))
def test_tangents_are_the_partials(measured: Measured, tangents: Any, operand: int) -> None:
    """One operand of every case moves: seeded cases have their cotangent in its place."""
    x_dot, partials = np.zeros(measured.program.size), measured.partials
    here = [(k, p[operand]) for k, p in enumerate(measured.program.positions) if operand < len(p)]
    for k, at in here:
        x_dot[at] = CASES[k].seed
    y_dot = tangents(x_dot)
    for k, at in here:
        np.testing.assert_allclose(y_dot[k], partials[at], rtol=1e-14, err_msg=repr(CASES[k]))


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda k: repr(CASES[k]))
def test_rule(measured: Measured, number: int) -> None:
    case, at = CASES[number], measured.program.positions[number]
    if case.partials is not None:
        assert measured.partials[at].tolist() == list(case.partials)
        return
    np.testing.assert_allclose(
        measured.partials[at], measured.differences[at], rtol=1e-8, atol=1e-8
    )

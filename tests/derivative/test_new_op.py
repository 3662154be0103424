"""A new op is one class and one rule: here a whole-array op that the compiler has never seen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def
from xdsl.parser import Parser

from mutad.compiler.derivative.passes import Forward, Reverse
from mutad.compiler.derivative.sanitizer_marks import is_whole
from mutad.compiler.diagnostics import CompileError
from mutad.compiler.rules import RULES, Access, Contents, Need, Rule, register, rule_of
from mutad.compiler.rules.accesses import Activity
from mutad.compiler.rules.rule import touching
from mutad.compiler.rules.sweeps import SHADOW, ReverseSweep, TangentSweep


@irdl_op_definition
class SquareOp(IRDLOperation):
    """`b[i] = a[i] ** 2`."""

    name = "mine.square"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    assembly_format = "$a `into` $b attr-dict `:` type($a) `,` type($b)"


@irdl_op_definition
class ScaleOp(IRDLOperation):
    """`c[i] += 2 * a[i] * b[i]`."""

    name = "mine.scale"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)
    assembly_format = "$a `by` $b `into` $c attr-dict `:` type($a) `,` type($b) `,` type($c)"


class Square(Rule[SquareOp]):
    whole_array = True

    def effects(self, op: SquareOp) -> list[Access]:
        return touching(op, [op.a], [op.b])

    def needs(self, op: SquareOp, activity: Activity) -> Iterator[Need]:
        yield Contents(op, 0)

    def adjoint(self, op: SquareOp, sweep: ReverseSweep) -> None:
        a = sweep.primal.contents(Contents(op, 0), op.a)
        bars = [sweep.primal.memref(m, SHADOW) for m in (op.b, op.a)]
        sweep.append(ScaleOp.create(operands=[a, *bars]))

    def tangent(self, op: SquareOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        dots = [sweep.dot(m, zero=True) for m in (op.a, op.b)]
        sweep.append(ScaleOp.create(operands=[sweep.value(op.a), *dots]))


PROGRAM = """
func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %i : index) {
  mine.square %x into %y : memref<?xf64>, memref<?xf64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %x[%i] : memref<?xf64>
  func.return
}
"""


@pytest.fixture
def parsed(context: Context) -> Iterator[tuple[Context, str]]:
    dialect = Dialect("mine", [SquareOp, ScaleOp], [])
    context.load_registered_dialect("func")
    context.load_dialect(dialect)
    yield context, PROGRAM
    RULES.pop(SquareOp, None)
    rule_of.cache_clear()


def test_without_a_rule_it_is_refused(parsed: tuple[Context, str]) -> None:
    context, program = parsed
    module = Parser(context, program).parse_module()
    with pytest.raises(CompileError, match=r"the derivative of `mine\.square` is not known"):
        Reverse().apply(context, module)


def test_with_a_rule_both_modes_know_it(parsed: tuple[Context, str], run_filecheck: object) -> None:
    context, program = parsed
    register(SquareOp, Square())
    gradient = Parser(context, program).parse_module()
    Reverse().apply(context, gradient)
    # Of what it needs of x the store kills one element: saved before it, and put back into a copy.
    checks = """
    CHECK: mine.square %x into %y
    CHECK: %x_saved = ad.push %{{\\d+}}() : memref<f64>
    CHECK: array.map(%{{\\d+}}) ins(%x : memref<?xf64>) outs([[copy:%\\d+]] : memref<?xf64>)
    CHECK: ins({{%\\d+}} : memref<?xf64, strided<[0]>>) outs({{%\\d+}} : memref<?xf64, strided<[1]>>)
    CHECK: mine.scale [[copy]] by %y_shadow into %x_shadow
    """
    assert callable(run_filecheck)
    run_filecheck(str(gradient), checks)
    tangent = Parser(context, program).parse_module()
    Forward().apply(context, tangent)
    checks = """
    CHECK: mine.square %x into %y
    CHECK-NEXT: mine.scale %x by %x_dot into %y_dot
    """
    run_filecheck(str(tangent), checks)


def test_its_derivatives_are_looked_at_for_nan(parsed: tuple[Context, str]) -> None:
    context, program = parsed
    register(SquareOp, Square())
    module = Parser(context, program).parse_module()
    square = next(op for op in module.walk() if isinstance(op, SquareOp))
    assert is_whole(square)

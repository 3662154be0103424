"""A new op is one class and one rule (`squares`): whole-array ops that the compiler has never seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import squares
from squares import OURS, Square, SquareOp
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.parser import Parser

from mutad.compiler.analysis.activity import Activity
from mutad.compiler.analysis.additions import additions_in
from mutad.compiler.analysis.alias import AliasAnalysis
from mutad.compiler.derivative.drop_guards import DropGuards
from mutad.compiler.derivative.passes import Forward, Reverse
from mutad.compiler.derivative.sanitizer_marks import is_whole
from mutad.compiler.diagnostics import CompileError
from mutad.compiler.rules import register
from mutad.compiler.transforms.drop_overwritten import DropOverwritten
from mutad.compiler.transforms.remove_dead import RemoveDead
from mutad.dialects import array

PROGRAM = """
func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %i : index) {
  mine.square %x into %y : memref<?xf64>, memref<?xf64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %x[%i] : memref<?xf64>
  func.return
}
"""

UNREAD = """
func.func @f(%x : memref<?xf64>, %n : index) {
  %y = array.alloc(%n) : memref<?xf64>
  mine.square %x into %y : memref<?xf64>, memref<?xf64>
  func.return
}
"""

GUARDED = """
func.func @f(%x : memref<?xf64>, %x_shadow : memref<?xf64>, %n : index, %m : index) attributes {shadows = array<i64: 0>, cotangents = array<i64>, scalars = array<i64>} {
  %y = array.alloc(%n) : memref<?xf64>
  %trips = array.loop %j to %m do {
    array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%e : f64):
      %g = ad.mul %e, %e {ad.adjoint} : f64
      array.yield %g : f64
    }
    mine.square %y into %x_shadow : memref<?xf64>, memref<?xf64>
    array.yield
  }
  func.return
}
"""

FILLED = """
func.func @f(%x : memref<?xf64>, %z : memref<?xf64>, %n : index) {
  %y = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins( : ) outs(%y : memref<?xf64>) kinds ["store"] {
    %zero = arith.constant 0.0 : f64
    array.yield %zero : f64
  }
  mine.square %x into %y : memref<?xf64>, memref<?xf64>
  mine.square %y into %z : memref<?xf64>, memref<?xf64>
  func.return
}
"""

BETWEEN = """
func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %n : index, %t : f64) {
  %zero = arith.constant 0 : index
  %trips = array.loop %j to %n do {
    %a = memref.load %y[%zero] : memref<?xf64>
    mine.square %x into OTHER : memref<?xf64>, memref<?xf64>
    %b = arith.addf %a, %t : f64
    memref.store %b, %y[%zero] : memref<?xf64>
    array.yield
  }
  func.return
}
"""

Parse = Callable[[str], ModuleOp]


@pytest.fixture
def parse(context: Context) -> Iterator[Callable[[str], ModuleOp]]:
    context.load_registered_dialect("func")
    context.load_dialect(Dialect("mine", [*OURS], []))
    with squares.known([]):
        yield lambda text: Parser(context, text).parse_module()
    squares.forget(OURS)


@pytest.fixture
def known(parse: Parse) -> Parse:
    for kind, rule in OURS.items():
        register(kind, rule)
    return parse


def test_without_a_rule_it_is_refused(context: Context, parse: Parse) -> None:
    with pytest.raises(CompileError, match=r"the derivative of `mine\.square` is not known"):
        Reverse().apply(context, parse(PROGRAM))


def test_with_a_rule_both_modes_know_it(
    context: Context, known: Parse, run_filecheck: Callable[[str, str], None]
) -> None:
    Reverse().apply(context, gradient := known(PROGRAM))
    # Of what it needs of x the store kills one element: saved before it, and put back into a copy.
    checks = """
    CHECK: mine.square %x into %y
    CHECK: %x_saved = ad.push %{{\\d+}}() : memref<f64>
    CHECK: array.map(%{{\\d+}}) ins(%x : memref<?xf64>) outs([[copy:%\\d+]] : memref<?xf64>)
    CHECK: ins({{%\\d+}} : memref<?xf64, strided<[0]>>) outs({{%\\d+}} : memref<?xf64, strided<[1]>>)
    CHECK: mine.scale [[copy]] by %{{\\d+}} into %x_shadow
    """
    run_filecheck(str(gradient), checks)
    Forward().apply(context, tangent := known(PROGRAM))
    checks = """
    CHECK: mine.square %x into %y
    CHECK: mine.scale %x by %x_dot into %y_dot
    """
    run_filecheck(str(tangent), checks)


def first_op(module: ModuleOp) -> SquareOp:
    return next(op for op in module.walk() if isinstance(op, SquareOp))


def test_its_derivatives_are_looked_at_for_nan(known: Parse) -> None:
    assert is_whole(first_op(known(PROGRAM)))


def test_it_may_compare_unless_its_rule_says_that_it_is_smooth(known: Parse) -> None:
    module = known(PROGRAM)
    op, function = first_op(module), module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    assert not Activity(function, AliasAnalysis(function), ()).decides(op.a)
    register(SquareOp, Jumping())
    assert Activity(function, AliasAnalysis(function), ()).decides(op.a)


class Jumping(Square):
    smooth = False
    keeps_nan = ()


def test_what_nobody_reads_is_removed(context: Context, known: Parse) -> None:
    RemoveDead().apply(context, module := known(UNREAD))
    assert "mine" not in str(module)


def test_nobody_knows_what_an_op_without_a_rule_does(context: Context, parse: Parse) -> None:
    RemoveDead().apply(context, module := parse(UNREAD))
    assert "mine" in str(module)


def test_what_it_overwrites_is_not_filled_before(context: Context, known: Parse) -> None:
    DropOverwritten().apply(context, module := known(FILLED))
    assert "array.map" not in str(module)


@pytest.mark.parametrize(("other", "found"), [("%x", 2), ("%y", 0)])
def test_an_addition_is_none_where_it_writes_between(known: Parse, other: str, found: int) -> None:
    module = known(BETWEEN.replace("OTHER", other))
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    (loop,) = (op for op in module.walk() if isinstance(op, array.LoopOp))
    alias = AliasAnalysis(function)
    assert len(additions_in(loop, alias.may_alias, True)) == found


@pytest.mark.parametrize(("rule", "guards"), [(Square(), 0), (Jumping(), 1)])
def test_guards_before_it_go_where_it_keeps_nan(
    context: Context, known: Parse, rule: Square, guards: int
) -> None:
    register(SquareOp, rule)
    DropGuards().apply(context, module := known(GUARDED))
    assert str(module).count("ad.mul") == guards

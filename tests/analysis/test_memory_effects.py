"""What rewrites ask of memory, where the op touches it without naming its contents."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Operation
from xdsl.parser import Parser

from mutad.compiler.transforms.memory_effects import MemoryEffects
from mutad.dialects import ad, array

FUNCTION = """
func.func @f(%n : index) -> memref<?xf64> {
  %t = ad.tape
  %made = array.alloc(%n) : memref<?xf64>
  %pushed = ad.push %t(%n) : memref<?xf64>
  %popped = ad.pop %t(%n) : memref<?xf64>
  func.return %made : memref<?xf64>
}
"""


def parsed() -> func.FuncOp:
    context = Context()
    for dialect in (Builtin, func.Func, array.Array, ad.Ad):
        context.load_dialect(dialect)
    (function,) = Parser(context, FUNCTION).parse_module().ops
    assert isinstance(function, func.FuncOp)
    return function


def one(function: func.FuncOp, kind: type[Operation]) -> Operation:
    (op,) = [op for op in function.walk() if isinstance(op, kind)]
    return op


def test_pushes_and_pops_of_one_tape_keep_their_order() -> None:
    """What is popped is readable until the next push: the tape is read and written by both."""
    function = parsed()
    effects = MemoryEffects(function)
    push, pop = one(function, ad.PushOp), one(function, ad.PopOp)
    assert isinstance(pop, ad.PopOp)
    touched = effects.roots(pop.memref)
    for op in (push, pop):
        assert effects.of(op).reads_any(touched)
        assert effects.of(op).writes_any(touched)


def test_the_caller_reads_what_is_returned() -> None:
    function = parsed()
    effects = MemoryEffects(function)
    made = one(function, array.AllocOp)
    returned = effects.of(one(function, func.ReturnOp))
    assert returned.reads_any(effects.roots(made.results[0]))
    assert not returned.opaque

"""Marks of what derivatives make, for `MUTAD_SANITIZE=grad`: they become checks (`sanitize_derivatives`).

In a function that is watched, each op that makes a cotangent or a tangent says of what, and by which
expression of the program::

    %x_bar = ad.div %y_bar, %x {ad.adjoint, ad.made = ["cotangent", "x", "np.log(x)"]} : f64
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array, foreign
from ..rules import evaluates_body, is_whole_array, rule_of
from ..rules.table import ADJOINT, float_constant
from .saved_value import name_of_value
from .source_words import expression_of

WATCHED = "ad.watched"
"""The attribute of functions whose derivatives are marked."""
MADE = "ad.made"
"""The attribute of an op: what it makes, of what, and by which expression."""
WHOLE = "whole"
"""Behind these: an array was made so, and this op only looks at it."""
SUMS = "ad.sums"
"""The attribute of a map: what is added to its outputs of these numbers, behind the word for what that is."""
ITERATION = "ad.iteration"
"""The attribute of the op that computes which iteration of the primal's loop an adjoint loop is at."""


def watch(functions: Iterable[Operation]) -> None:
    """Let the derivatives of functions be marked."""
    for function in functions:
        if isinstance(function, func.FuncOp):
            function.attributes[WATCHED] = UnitAttr()


def is_watched(function: func.FuncOp) -> bool:
    return WATCHED in function.attributes


def mark(made: SSAValue, kind: str, of: SSAValue, by: Operation | None, *more: str) -> None:
    """Say of the op that makes a derivative what it is of; without `by` it is the sum of such."""
    op = made.owner
    if not isinstance(op, Operation) or ADJOINT not in op.attributes or MADE in op.attributes:
        return
    primal = of.owner if isinstance(of.owner, Operation) else None
    if primal is not None and MADE in primal.attributes:
        inner, name, expression, *_ = words_of(primal)
        words = [f"{kind} of the {inner}", name, expression]
    else:
        words = [kind, name_of_value(of), "" if by is None else expression_of(by)]
    op.attributes[MADE] = ArrayAttr([StringAttr(w) for w in (*words, *more)])


def words_of(op: Operation) -> list[str]:
    """What a mark says: kind, name, expression."""
    listed = cast("ArrayAttr[StringAttr]", op.attributes[MADE])
    return [word.data for word in listed]


def mark_sums(op: array.MapOp, kind: str, outs: Collection[SSAValue]) -> None:
    """Say of a map that what it adds to these of its outputs are derivatives."""
    pairs = enumerate(zip(op.outs, op.out_kinds, strict=True))
    added = [k for k, (out, how) in pairs if how == "add" and out in outs]
    op.attributes[SUMS] = ArrayAttr([StringAttr(kind), *(IntegerAttr(k, i64) for k in added)])


def sums_of(op: array.MapOp) -> tuple[str, list[int]]:
    """What kind of derivatives a map adds up, and in which of its outputs."""
    if SUMS not in op.attributes:
        return "", []
    kind, *numbers = cast("ArrayAttr[Any]", op.attributes[SUMS])
    return kind.data, [number.value.data for number in numbers]


def mark_sum(made: SSAValue, kind: str, name: str) -> None:
    """Say of an op that it adds to a derivative of what is called so."""
    if isinstance(op := made.owner, Operation) and MADE not in op.attributes:
        op.attributes[MADE] = ArrayAttr([StringAttr(w) for w in (kind, name, "")])


def is_whole(op: Operation) -> bool:
    """True for ops that make derivatives of whole arrays, without a map."""
    if isinstance(op, foreign.RuleCallOp):
        return True
    return is_whole_array(op) and not evaluates_body(op)


def touched(op: Operation, kind: str) -> list[SSAValue]:
    """The arrays that an op reads, or writes."""
    return [a.memref for a in rule_of(type(op)).effects(op) if a.kind == kind]


def looking(
    memory: SSAValue, extents: Sequence[SSAValue], kind: str, of: SSAValue, by: Operation
) -> array.MapOp:
    """A map that leaves an array of derivatives as it is, and is marked."""
    element = cast("MemRefType[Attribute]", memory.type).element_type
    body = Block(arg_types=[element])
    nothing = float_constant(-0.0, element)
    same = arith.AddfOp(body.args[0], nothing.result)
    same.attributes[ADJOINT] = UnitAttr()
    mark(same.result, kind, of, by, WHOLE)
    body.add_ops([nothing, same, array.YieldOp([same.result])])
    for inner in body.ops:
        inner.location = by.location
    return array.MapOp(extents, [memory], [memory], ["store"], body)

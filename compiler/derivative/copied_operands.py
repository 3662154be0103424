"""Give products copies of the items of lists that would otherwise have to be kept whole.

The adjoint of a product reads the contents of its factors. What is killed of a factor is kept as a version of
the array that it is a view of; but a growable array is mostly addresses, and nobody copies those. So a
factor that is an item of such a list, and killed, is copied first: the version of the copy is one item.

Before::

    %v = array.view %items[%at, %c0] dims [1] extents(%n) steps(%c1) : ...
    array.matmul %A, %v into %w

After::

    %copied = array.alloc(%n) : memref<?xf64>
    array.map(%n) ins(%v) outs(%copied) kinds ["store"] { ... }
    array.matmul %A, %copied into %w

Refused where nothing overwrites the item: it is read again where it lies. In recursive functions something
may: the caller.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array, dense
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.kills import Kills
from ..rules import Access
from ..rules.builders import extents_of
from ..rules.calls import private_functions
from ..rules.routines import is_routine
from .forward_sweep import copy_into, emitter
from .versions import GROWABLE_ARGUMENTS, is_growable, mark_growable

FACTORS = (0, 1)


def copy_operands(function: func.FuncOp, alias: AliasAnalysis) -> bool:
    """Copy the factors of products that are killed items of growable arrays; whether there were any."""
    factors = [
        (op, number)
        for op in every_op(function)
        if isinstance(op, array.MatmulOp | dense.SolveTriangleOp)
        for number in FACTORS
        if is_growable(alias.base(op.operands[number]))
    ]
    if not factors:
        return False
    kills = Kills(function, alias)
    private = is_routine(function)
    killed = [
        (op, number)
        for op, number in factors
        if private or kills.killer(Access(op, op.operands[number], "read", True)) is not None
    ]
    for op, number in killed:
        op.operands[number] = copied(op.operands[number], op)
    return bool(killed)


def copy_operands_of_private(main: func.FuncOp) -> None:
    """The same in the functions that `main` calls."""
    mark_growable(main)
    for function in private_functions(main.parent_op()).values():
        if GROWABLE_ARGUMENTS in function.attributes:
            copy_operands(function, AliasAnalysis(function))


def copied(source: SSAValue, reader: Operation) -> SSAValue:
    """A copy of an array, made before its reader."""
    before = Block()
    extents = extents_of(source, emitter(before, reader))
    made = array.AllocOp(extents, cast(MemRefType[Attribute], source.type).element_type)
    made.memref.name_hint = "copied"
    before.add_op(made)
    copy_into(source, made.memref, extents, before, reader)
    block = reader.parent_block()
    assert block is not None
    for op in list(before.ops):
        op.location = reader.location
        op.detach()
        block.insert_op_before(op, reader)
    return made.memref

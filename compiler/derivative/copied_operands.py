"""Give ops copies of the items of lists that would otherwise have to be kept whole.

The adjoint of a whole-array op, or of a call with a rule, reads the contents of operands. What is killed of
them is kept as a version of the array that they are views of; but a growable array is mostly addresses, and
nobody copies those. So an operand that is an item of such a list, and killed, is copied first: the version
of the copy is one item. What the op writes goes back into the item.

Before::

    %v = array.view %items[%at, %c0] dims [1] extents(%n) steps(%c1) : ...
    array.matmul %A, %v into %w

After::

    %copied = array.alloc(%n) : memref<?xf64>
    array.map(%n) ins(%v) outs(%copied) kinds ["store"] { ... }
    array.matmul %A, %copied into %w

Refused where nothing overwrites the item: it is read again where it lies. Where the op writes one of two
operands that may share memory: a copy shares none.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.activity import Activity
from ..analysis.kills import Kills
from ..analysis.needed import Needed
from ..analysis.views import is_memref
from ..rules import Access, Contents, evaluates_body, is_whole_array, writes
from ..rules.builders import extents_of
from .forward_sweep import copy_into, emitter
from .versions import is_growable


def copy_operands(function: func.FuncOp, activity: Activity) -> bool:
    """Copy the operands that are killed items of growable arrays; whether there were any."""
    alias = activity.alias
    bases = {
        root
        for op in every_op(function)
        for v in op.operands
        if is_memref(v)
        for root in alias.roots(v)
    }
    if not any(map(is_growable, bases)):
        return False
    kills = Kills(function, alias)
    needed = (need for need in Needed(function, activity).by if isinstance(need, Contents))
    killed = {
        (need.op, need.memref): None
        for need in needed
        if is_growable(alias.base(need.memref)) and is_copied(need, kills)
    }
    for op, operand in killed:
        copy_operand(op, operand)
    return bool(killed)


def is_copied(need: Contents, kills: Kills) -> bool:
    """Whether contents are killed, and those of a copy are the same."""
    op, operand = need.op, need.memref
    own = Access(op, operand, "read")
    others = [Access(op, v, "read") for v in op.operands if is_memref(v) and v is not operand]
    written = {write.memref for write in writes(op)}
    stands = 0 in array.strides_of(cast(MemRefType[Attribute], operand.type))
    if evaluates_body(op) or (stands and operand in written):
        return False
    beside = (other for other in others if {operand, other.memref} & written)
    if any(kills.dependence.may_meet(own, other, None) for other in beside):
        return False
    killer = kills.killer_of(operand, op) if need.after else kills.killer(own)
    return killer is not None


def copy_operand(op: Operation, operand: SSAValue) -> None:
    """Let an op work on a copy of an operand, and copy back what it writes."""
    before, after = Block(), Block()
    extents = extents_of(operand, emitter(before, op))
    type_ = cast(MemRefType[Attribute], operand.type)
    copy = emitter(before, op)(array.AllocOp(extents, type_.element_type))
    copy.name_hint = "copied"
    copy_into(operand, copy, extents, before, op)
    if not is_whole_array(op) and copy.type != type_:  # what is called was written for this layout
        copy = emitter(before, op)(memref.CastOp.get(copy, type_))
    if any(write.memref is operand for write in writes(op)):
        copy_into(copy, operand, extents, after, op)
    for k, v in enumerate(op.operands):
        if v is operand:
            op.operands[k] = copy
    block = cast(Block, op.parent_block())
    for made, insert in ((before, block.insert_op_before), (after, block.insert_op_after)):
        for one in list(made.ops):
            one.detach()
            insert(one, op)

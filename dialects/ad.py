"""The `ad` dialect: what the derivative adds to the program.

Saved values live on *tapes*. A tape is a stack of segments; a segment is an ordinary contiguous
memref. A save whose enclosing loops all have trip counts known on entry pushes one segment before
the outermost of them and is then an array indexed by the induction variables; otherwise each entry
of the innermost such nest pushes one, and the reverse sweep pops them in the opposite order.

Where the reverse sweep is a function of its own (`vjp`), tapes outlive the call that wrote them: they
are detached with their *arena*, and read as often as wanted.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IndexType,
    MemRefType,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from .array import BinaryScalarOp, constant_value


def wide(type_: Attribute, lanes: int) -> Attribute:
    """The type of so many tangents at once, side by side: a vector; for memory one at each element."""
    if lanes == 1:
        return type_
    if isinstance(type_, MemRefType):
        return MemRefType(
            wide(type_.element_type, lanes), type_.shape, type_.layout, type_.memory_space
        )
    return VectorType(cast(AnyFloat, type_), [lanes])


@irdl_attr_definition
class TapeType(ParametrizedAttribute, TypeAttribute):
    """A stack of segments, empty when made."""

    name = "ad.tape"


@irdl_attr_definition
class ArenaType(ParametrizedAttribute, TypeAttribute):
    """The memory of all tapes of a call, apart from the call."""

    name = "ad.arena"


@irdl_op_definition
class TapeOp(IRDLOperation):
    """An empty tape: `%t = ad.tape`. Stands at the top level of the function."""

    name = "ad.tape"
    tape = result_def(TapeType())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[TapeType()])


class SegmentOp(IRDLOperation):
    tape = operand_def(TapeType())
    extents = var_operand_def(IndexType)
    memref = result_def(MemRefType)
    assembly_format = "$tape `(` $extents `)` attr-dict `:` type($memref)"

    def __init__(self, tape: SSAValue, extents: Sequence[SSAValue], element: Attribute) -> None:
        shape = [DYNAMIC_INDEX if (c := constant_value(e)) is None else c for e in extents]
        super().__init__(operands=[tape, extents], result_types=[MemRefType(element, shape)])


@irdl_op_definition
class PushOp(SegmentOp):
    """A new segment on top of the tape, contents undefined: `%s = ad.push %t(%n) : memref<?xf64>`."""

    name = "ad.push"


@irdl_op_definition
class PopOp(SegmentOp):
    """Take the top segment off the tape; it stays readable until the next push. Extents as pushed."""

    name = "ad.pop"


@irdl_op_definition
class HandoverOp(IRDLOperation):
    """The end of the primal: from here on the memory belongs to the caller, who may store to it.

    `ad.handover %u, %result : memref<?xf64>, memref<?xf64>`

    It writes all of its operands, for all that anybody knows. Stands before the reverse sweep, where the
    gradient is to be split (`derivative.split`), and is gone afterwards.
    """

    name = "ad.handover"
    memrefs = var_operand_def(MemRefType)
    assembly_format = "($memrefs^ `:` type($memrefs))? attr-dict"

    def __init__(self, memrefs: Sequence[SSAValue]) -> None:
        super().__init__(operands=[memrefs])


@irdl_op_definition
class DetachOp(IRDLOperation):
    """Take the segments of all tapes from the call: `%arena = ad.detach`. Nothing is pushed after it."""

    name = "ad.detach"
    arena = result_def(ArenaType())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[ArenaType()])


@irdl_op_definition
class ReaderOp(IRDLOperation):
    """A tape of another call, to be read: `%t = ad.reader %detached`. What pops of it leave is as it was."""

    name = "ad.reader"
    source = operand_def(TapeType())
    tape = result_def(TapeType())
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict"

    def __init__(self, source: SSAValue) -> None:
        super().__init__(operands=[source], result_types=[TapeType()])


@irdl_op_definition
class MulOp(BinaryScalarOp):
    """A product with a strong zero: `%x_bar = ad.mul %y_bar, %partial : f64`.

    `%y_bar * %partial`, and 0 where `%y_bar` is 0, whatever the partial is: infinite, not a number. With
    `both` also 0 where `%partial` is 0. It is an op, no selection, because its derivative is a product's:
    a selection on `%y_bar` would have the derivative 0 where `%y_bar` is 0, as at the exact fit of a model.
    """

    name = "ad.mul"
    both = opt_prop_def(UnitAttr)
    assembly_format = "$lhs `,` $rhs (`both` $both^)? attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, *, both: bool = False) -> None:
        super().__init__(lhs, rhs)
        if both:
            self.properties["both"] = UnitAttr()


@irdl_op_definition
class DivOp(BinaryScalarOp):
    """A quotient with a strong zero: `%x_bar = ad.div %y_bar, %divisor : f64`.

    `%y_bar / %divisor`, and 0 where `%y_bar` is 0, whatever the divisor is. See `ad.mul`.
    """

    name = "ad.div"


Ad = Dialect(
    "ad",
    [TapeOp, PushOp, PopOp, HandoverOp, DetachOp, ReaderOp, MulOp, DivOp],
    [TapeType, ArenaType],
)

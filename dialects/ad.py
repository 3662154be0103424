"""The `ad` dialect: what the derivative adds to the program.

Saved values live on *tapes*. A tape is a stack of segments; a segment is an ordinary contiguous
memref. A save whose enclosing loops all have trip counts known on entry pushes one segment before
the outermost of them and is then an array indexed by the induction variables; otherwise each entry
of the innermost such nest pushes one, and the reverse sweep pops them in the opposite order.

Where the reverse sweep is a function of its own (`vjp`), tapes outlive the call that wrote them: they
are detached with their *arena*, and read as often as wanted.

A derivative that the program itself asks for (`g.grad(x)`) is one op until the derivative of the whole has
been taken: `ad.derivative`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure

from .array import BinaryScalarOp, LoopOp, constant_value
from .foreign import EffectsOp, strings

AS_MANY_AS_IT_TAKES = 2**63 - 1
"""The extents of a cotangent that is 0 whatever its shape; no array has so many elements."""

VERSIONS = "versions"
"""The attribute of a segment whose last row is an array, and whose other rows are what it was."""

ROWS = "ad.rows"
"""The attribute of an array to whose rows a loop saves, one in each iteration. Nothing reads the last row,
and of others no more than was saved last."""

TAPES = "ad.tapes"
"""The attribute of an array of tapes, one for each of some iterations that are replayed side by side. An
iteration saves from the first row of its tape on, and nothing reads more. What it updates, none of the others
touches, nor those that have these tapes before or after."""

REFILLED = "refilled"
"""The attribute of a segment that a loop fills again and again, each time from its first row on, and of which
only rows are read that were filled the last time."""

UNSEEN = "ad.unseen"
"""The attribute of the map that sets to zero all of an argument which shares memory with no other, and of
which nothing sees what it held: the function's `filled` lists these arguments. Who lets code rely on the
zeros takes it off."""


def wide(type_: Attribute, lanes: int) -> Attribute:
    """The type of so many tangents at once, side by side: a vector; for memory one at each element.

    A tape stays one tape: its segments hold the vectors.
    """
    if lanes == 1 or isinstance(type_, TapeType):
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
    """An empty tape: `%t = ad.tape`. Stands at the top level of the function.

    `%t = ad.tape reserves %bytes`: it never holds more bytes, so it may have them at once, each segment
    rounded up to 8.
    """

    name = "ad.tape"
    reserved = opt_operand_def(IndexType)
    tape = result_def(TapeType())
    assembly_format = "(`reserves` $reserved^)? attr-dict"

    def __init__(self, reserved: SSAValue | None = None) -> None:
        super().__init__(operands=[reserved], result_types=[TapeType()])

    @property
    def grows(self) -> bool:
        """Whether it may hold several segments: one op pushes within a loop, or several do."""
        pushes = [op for use in self.tape.uses if isinstance(op := use.operation, PushOp)]
        return len(pushes) > 1 or any(map(is_in_loop, pushes))


def is_in_loop(op: Operation) -> bool:
    """Whether a loop encloses the op."""
    at = op.parent_op()
    while at is not None and not isinstance(at, LoopOp):
        at = at.parent_op()
    return at is not None


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
    """A new segment on top of the tape, contents undefined: `%s = ad.push %t(%n) : memref<?xf64>`.

    Of one with `versions` the last row is not saved: it is the array that the others are versions of.
    """

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


class ExtremeOp(IRDLOperation):
    """A minimum or maximum whose sides are known: `%m = ad.minimum %a, %b, %below, %above : f64`.

    `%below` is `%a <= %b`, and `%above` is `%a >= %b`. The adjoint reads these two alone, so a plan may save
    two truths where it would save numbers. One `of_numbers` ignores NaN. Only plans see these ops: the ops of
    `arith` that they stand for are what is written (`derivative/extremum_sides`).
    """

    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    below = operand_def(i1)
    above = operand_def(i1)
    of_numbers = opt_prop_def(UnitAttr)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs `,` $below `,` $above (`of_numbers` $of_numbers^)?"
        " attr-dict `:` type($result)"
    )

    def __init__(
        self, lhs: SSAValue, rhs: SSAValue, below: SSAValue, above: SSAValue, *, of_numbers: bool
    ) -> None:
        super().__init__(
            operands=[lhs, rhs, below, above],
            properties={"of_numbers": UnitAttr()} if of_numbers else {},
            result_types=[lhs.type],
        )


@irdl_op_definition
class MinimumOp(ExtremeOp):
    """See `ExtremeOp`."""

    name = "ad.minimum"


@irdl_op_definition
class MaximumOp(ExtremeOp):
    """See `ExtremeOp`."""

    name = "ad.maximum"


@irdl_op_definition
class RetryIfOp(IRDLOperation):
    """End the call where the condition holds; the caller makes it anew, with code that has guards.

    `ad.retry_if %wrong`

    Stands at the end of a gradient without guards (`derivative.drop_guards`).
    """

    name = "ad.retry_if"
    condition = operand_def(i1)
    assembly_format = "$condition attr-dict"

    def __init__(self, condition: SSAValue) -> None:
        super().__init__(operands=[condition])


@dataclass(frozen=True)
class Part:
    """What an operand or a result of `ad.derivative` is.

    `kind`: an "argument" of the function, the "shadow" of an array among them, the "gradient" of a number
    among them, a "result" of the function, or the "cotangent" of one; `number`: which. `along`: in which of
    the op's directions it is a derivative, none for the thing itself.
    """

    kind: str
    number: int
    along: frozenset[int] = frozenset()

    def __str__(self) -> str:
        return " ".join([self.kind, *map(str, (self.number, *sorted(self.along)))])

    @classmethod
    def parse(cls, text: str) -> Part:
        kind, number, *along = text.split()
        return cls(kind, int(number), frozenset(map(int, along)))

    def moving(self, direction: int) -> Part:
        """Its tangent in one more direction."""
        return Part(self.kind, self.number, self.along | {direction})


@irdl_op_definition
class DerivativeOp(EffectsOp):
    """A derivative of a private function, which the program asks for: `g.grad(x)`, `g.jvp(x, ...)`.

    `%y, %k_bar = ad.derivative @g reverse order 0 (%x, %k, %x_bar, %one : memref<?xf64>, f64,
    memref<?xf64>, f64) takes ["argument 0", "argument 1", "shadow 0", "cotangent 0"]
    effects ["read", "none", "write", "none"] gives ["result 0", "gradient 1"] -> f64, f64`

    What is called is @g, or with `reverse` its gradient function, and of that the tangent function, `order`
    times, each in a direction of its own. Whatever `takes` leaves out is 0. Memory is changed in place, as
    by these functions; but what memory that is only written holds before is unknown (of a shadow: taken
    for 0). Operands share no memory, but for those that nothing changes. Its derivatives are such ops, too;
    `silent` are those that run the function once more, which prints nothing then. In the last direction there
    are `lanes` tangents at once, as vectors.
    The pass `expand-derivatives` puts the code in its place, after the derivative of the whole.
    """

    name = "ad.derivative"
    callee = prop_def(SymbolRefAttr)
    reverse = opt_prop_def(UnitAttr)
    silent = opt_prop_def(UnitAttr)
    order = prop_def(IntegerAttr)
    lanes = opt_prop_def(IntegerAttr)
    takes = prop_def(ArrayAttr[StringAttr])
    gives = prop_def(ArrayAttr[StringAttr])
    called = var_result_def()
    assembly_format = (
        "$callee (`silent` $silent^)? (`reverse` $reverse^)? `order` $order (`lanes` $lanes^)?"
        " (`(` $arguments^ `:` type($arguments) `)`)? `takes` $takes `effects` $effects"
        " `gives` $gives (`->` type($called)^)? attr-dict"
    )

    def __init__(
        self,
        callee: str,
        order: int,
        takes: Iterable[tuple[Part, SSAValue, str]],
        gives: Iterable[tuple[Part, Attribute]],
        *,
        reverse: bool,
        silent: bool = False,
        lanes: int = 1,
    ) -> None:
        """`takes`: each operand with what it is and with its effect; `gives`: each result with its type."""
        operands, results = list(takes), list(gives)
        super().__init__(
            operands=[[value for _, value, _ in operands]],
            properties={
                "callee": SymbolRefAttr(callee),
                "order": IntegerAttr(order, i64),
                "takes": strings([str(part) for part, *_ in operands]),
                "effects": strings([effect for *_, effect in operands]),
                "gives": strings([str(part) for part, _ in results]),
            },
            result_types=[[type_ for _, type_ in results]],
        )
        for name, holds in (("reverse", reverse), ("silent", silent)):
            if holds:
                self.properties[name] = UnitAttr()
        if lanes > 1:
            self.properties["lanes"] = IntegerAttr(lanes, i64)

    @property
    def target(self) -> str:
        """The name of the function."""
        return self.callee.string_value()

    @property
    def directions(self) -> int:
        return self.order.value.data

    def taken(self) -> list[tuple[Part, SSAValue, str]]:
        """Each operand with what it is, and with its effect."""
        parts = (Part.parse(text.data) for text in self.takes)
        effects = (effect.data for effect in self.effects)
        return list(zip(parts, self.operands, effects, strict=True))

    def given(self) -> list[tuple[Part, SSAValue]]:
        """Each result with what it is."""
        parts = (Part.parse(text.data) for text in self.gives)
        return list(zip(parts, self.results, strict=True))


Ad = Dialect(
    "ad",
    [
        TapeOp,
        PushOp,
        PopOp,
        HandoverOp,
        DetachOp,
        ReaderOp,
        MulOp,
        DivOp,
        MinimumOp,
        MaximumOp,
        RetryIfOp,
        DerivativeOp,
    ],
    [TapeType, ArenaType],
)

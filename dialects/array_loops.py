"""Loops, and indices that are checked: ops of `array`."""

from collections.abc import Iterable, Sequence

from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a map's body (the elements to write) or a loop's body (the carried memrefs)."""

    name = "array.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Iterable[SSAValue] = ()) -> None:
        super().__init__(operands=[list(values)])


@irdl_op_definition
class ConditionOp(IRDLOperation):
    """Ends a loop's condition region: another iteration runs when the operand is true."""

    name = "array.condition"
    condition = operand_def(i1)
    traits = traits_def(IsTerminator())
    assembly_format = "$condition attr-dict"

    def __init__(self, condition: SSAValue) -> None:
        super().__init__(operands=[condition])


@irdl_op_definition
class LoopOp(IRDLOperation):
    """The one loop: `for` (a count), `while` (a condition), or both.

    ::

        %trips, %u2 = array.loop %i to %count carry(%u = %u0 : memref<?xf64>) while {
          ...
          array.condition %c
        } do {
          ...
          array.yield %v : memref<?xf64>
        }

    `%i` counts 0, 1, 2, ...; the loop ends when it reaches `%count` (if there is one) or when the
    condition region (if there is one), evaluated before each iteration, says false. `%trips` is the
    number of iterations that ran. Only memrefs are carried; scalars live in cells. Both regions take
    (%i, carried...). Everything else they use from outside by dominance.
    """

    name = "array.loop"
    count = opt_operand_def(IndexType)
    carried = var_operand_def(MemRefType)
    trips = result_def(IndexType)
    results_carried = var_result_def(MemRefType)
    condition = region_def()
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        count: SSAValue | None,
        carried: Sequence[SSAValue],
        body: Block,
        condition: Block | None = None,
    ) -> None:
        super().__init__(
            operands=[[] if count is None else [count], list(carried)],
            result_types=[IndexType(), [c.type for c in carried]],
            regions=[Region() if condition is None else Region(condition), Region(body)],
        )

    @property
    def induction(self) -> SSAValue:
        return self.body.block.args[0]

    @property
    def body_carried(self) -> tuple[SSAValue, ...]:
        """The carried memrefs as the body sees them."""
        return tuple(self.body.block.args[1:])

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The carried memrefs at the end of an iteration."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return tuple(last.values)

    @property
    def condition_block(self) -> Block | None:
        return self.condition.blocks.first

    def verify_(self) -> None:
        types = (IndexType(), *(c.type for c in self.carried))
        blocks = [b for b in (self.condition_block, self.body.block) if b is not None]
        if any(tuple(a.type for a in b.args) != types for b in blocks):
            raise VerifyException("array.loop regions take (index, carried...)")
        if not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException("array.loop's body ends in array.yield")
        if tuple(v.type for v in self.yielded) != types[1:]:
            raise VerifyException("array.loop yields its carried memrefs")
        if self.condition_block is None and self.count is None:
            raise VerifyException("array.loop needs a count or a condition")

    def print(self, printer: Printer) -> None:
        body = self.body.block
        printer.print_string(" ")
        printer.print_ssa_value(body.args[0])
        if self.count is not None:
            printer.print_string(" to ")
            printer.print_ssa_value(self.count)
        if self.carried:
            printer.print_string(" carry(")

            def print_carried(pair: tuple[SSAValue, SSAValue]) -> None:
                printer.print_ssa_value(pair[0])
                printer.print_string(" = ")
                printer.print_ssa_value(pair[1])
                printer.print_string(" : ")
                printer.print_attribute(pair[1].type)

            printer.print_list(list(zip(body.args[1:], self.carried, strict=True)), print_carried)
            printer.print_string(")")
        if self.condition_block is not None:
            printer.print_string(" while ")
            printer.print_region(self.condition)
        printer.print_string(" do ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> "LoopOp":
        induction = parser.parse_argument(expect_type=False).resolve(IndexType())
        count = None
        if parser.parse_optional_keyword("to"):
            count = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        args, carried = [induction], []
        if parser.parse_optional_keyword("carry"):

            def parse_carried() -> None:
                arg = parser.parse_argument(expect_type=False)
                parser.parse_punctuation("=")
                operand = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                type_ = parser.parse_type()
                args.append(arg.resolve(type_))
                carried.append(parser.resolve_operand(operand, type_))

            parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_carried)
        condition = parser.parse_region() if parser.parse_optional_keyword("while") else Region()
        parser.parse_keyword("do")
        body = parser.parse_region(args)
        attributes = parser.parse_optional_attr_dict()
        return cls.create(
            operands=[*([] if count is None else [count]), *carried],
            result_types=[IndexType(), *(c.type for c in carried)],
            regions=[condition, body],
            attributes=attributes,
            properties={
                "operandSegmentSizes": DenseArrayBase.from_list(
                    builtin.i32, [0 if count is None else 1, len(carried)]
                )
            },
        )


@irdl_op_definition
class IndexOp(IRDLOperation):
    """A subscript made ready for memory: negative ones wrapped, out of range raises IndexError.

    `%j = array.index %i, %n axis 0 sign "nonneg"`

    `sign` says what is known of `%i`: "nonneg" (`%j` is `%i`), "negative" (`%j` is `%i + %n`) or
    "any". With `unchecked` the range is known, or the user took the risk. `message` is what the
    IndexError says where it is not NumPy's words.
    """

    name = "array.index"
    index = operand_def(IndexType)
    extent = operand_def(IndexType)
    axis = prop_def(IntegerAttr)
    sign = prop_def(StringAttr)
    unchecked = opt_prop_def(UnitAttr)
    message = opt_prop_def(StringAttr)
    result = result_def(IndexType)
    assembly_format = (
        "$index `,` $extent `axis` $axis `sign` $sign (`unchecked` $unchecked^)?"
        " (`message` $message^)? attr-dict"
    )

    def __init__(
        self,
        index: SSAValue,
        extent: SSAValue,
        axis: int,
        sign: str,
        *,
        unchecked: bool = False,
        message: str | None = None,
    ) -> None:
        super().__init__(
            operands=[index, extent],
            properties={
                "axis": IntegerAttr(axis, i64),
                "sign": StringAttr(sign),
                **({"unchecked": UnitAttr()} if unchecked else {}),
                **({} if message is None else {"message": StringAttr(message)}),
            },
            result_types=[IndexType()],
        )

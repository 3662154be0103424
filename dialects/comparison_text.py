"""Comparisons as text with their attributes, as MLIR has them; xDSL drops them.

::

    %is_low = arith.cmpf olt, %x, %low {ad.adjoint, ad.edge} : f64

What a pass marks is lost otherwise where `mutad-opt` hands the text on to the next one. All other ops that
are marked have an attribute dictionary.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith
from xdsl.parser import Parser
from xdsl.printer import Printer


def print_comparison(op: arith.CmpfOp | arith.CmpiOp, printer: Printer) -> None:
    is_float = isinstance(op, arith.CmpfOp)
    names = arith.CMPF_COMPARISON_OPERATIONS if is_float else arith.CMPI_COMPARISON_OPERATIONS
    printer.print_string(f" {names[op.predicate.value.data]}, ")
    printer.print_operand(op.lhs)
    printer.print_string(", ")
    printer.print_operand(op.rhs)
    if is_float and op.fastmath != arith.FastMathFlagsAttr("none"):
        printer.print_string(" fastmath")
        op.fastmath.print_parameter(printer)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.lhs.type)


def parse_comparison(cls: Any, parser: Parser) -> Any:
    predicate = parser.parse_identifier()
    parser.parse_punctuation(",")
    first = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    second = parser.parse_unresolved_operand()
    flags: list[arith.FastMathFlagsAttr] = []
    if cls.name == arith.CmpfOp.name and parser.parse_optional_keyword("fastmath"):
        flags = [arith.FastMathFlagsAttr(arith.FastMathFlagsAttr.parse_parameter(parser))]
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    operands = parser.resolve_operands([first, second], [type_, type_], parser.pos)
    op = cls(*operands, predicate, *flags)
    op.attributes.update(attributes)
    return op


def install() -> None:
    """In the place of xDSL's own, for both comparisons."""
    for kind in (arith.CmpfOp, arith.CmpiOp):
        kind.print = print_comparison  # pyright: ignore[reportAttributeAccessIssue]
        kind.parse = classmethod(parse_comparison)  # pyright: ignore[reportAttributeAccessIssue]


install()

"""The `special` dialect: functions of one float that are neither arithmetic nor in `math`.

The derivative of each is in the dialect or in `math`; that of `special.tetragamma` would be the first to
be missing.
"""

from typing import ClassVar

from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure


class UnaryOp(IRDLOperation):
    """A float to one of its type."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    operand = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($result)"

    def __init__(self, operand: SSAValue) -> None:
        super().__init__(operands=[operand], result_types=[operand.type])


@irdl_op_definition
class ErfcOp(UnaryOp):
    """1 - erf(x), exact where erf is near 1: `%y = special.erfc %x : f64`."""

    name = "special.erfc"


@irdl_op_definition
class GammaOp(UnaryOp):
    """The gamma function: infinite at 0, NaN at negative integers."""

    name = "special.gamma"


@irdl_op_definition
class LogGammaOp(UnaryOp):
    """The logarithm of the gamma function's size: infinite at 0 and at negative integers."""

    name = "special.log_gamma"


class PolygammaOp(UnaryOp):
    """The derivative of a certain order of digamma; NaN at negative integers."""

    ORDER: ClassVar[int]


@irdl_op_definition
class DigammaOp(PolygammaOp):
    """The derivative of `special.log_gamma`: `%y = special.digamma %x : f64`."""

    name = "special.digamma"
    ORDER: ClassVar[int] = 0


@irdl_op_definition
class TrigammaOp(PolygammaOp):
    """The derivative of `special.digamma`."""

    name = "special.trigamma"
    ORDER: ClassVar[int] = 1


@irdl_op_definition
class TetragammaOp(PolygammaOp):
    """The derivative of `special.trigamma`."""

    name = "special.tetragamma"
    ORDER: ClassVar[int] = 2


Special = Dialect("special", [ErfcOp, GammaOp, LogGammaOp, DigammaOp, TrigammaOp, TetragammaOp])

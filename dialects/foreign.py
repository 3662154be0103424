"""The `foreign` dialect: calls of what the compiler cannot see into, and of functions with a rule.

Both say for each argument what they do to its memory: "none" (a number), "read", "write" or "readwrite".
"""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, SymbolRefAttr, i64
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

EFFECTS = ("none", "read", "write", "readwrite")


def strings(values: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(v) for v in values])


class EffectsOp(IRDLOperation):
    """What both calls share: arguments with effects, results that are numbers."""

    arguments = var_operand_def()
    effects = prop_def(ArrayAttr[StringAttr])

    def arguments_that(self, effect: str) -> list[SSAValue]:
        """The arguments whose memory is read ("read") or written ("write")."""
        return [a for a, e in zip(self.operands, self.effects, strict=True) if effect in e.data]

    def verify_(self) -> None:
        if len(self.effects) != len(self.operands):
            raise VerifyException(f"{self.name} needs one effect for each argument")
        if any(e.data not in EFFECTS for e in self.effects):
            raise VerifyException(f"{self.name}: effects are {EFFECTS}")


@irdl_op_definition
class CallOp(EffectsOp):
    """A call of a C function, or of a Python function that CPython runs.

    `%r = foreign.call "c" "mutad_special_j0" of "cython_special:j0"(%x : f64) types ["f64"] effects ["none"]
    -> f64`

    `types` are C types ("c") or our names of Python's types ("python"). It may do anything beside
    what its effects say, and raise (Python): it is never moved, dropped or repeated.
    """

    name = "foreign.call"
    convention = prop_def(StringAttr)
    callee = prop_def(StringAttr)
    origin = prop_def(StringAttr)
    types = prop_def(ArrayAttr[StringAttr])
    outcome = prop_def(StringAttr)
    """The type of what is returned, as `types` has them; "" for nothing."""
    trailing = prop_def(IntegerAttr)
    called = var_result_def()
    assembly_format = (
        "$convention $callee `of` $origin (`(` $arguments^ `:` type($arguments) `)`)? `types` $types"
        " `effects` $effects `returns` $outcome `trailing` $trailing (`->` type($called)^)? attr-dict"
    )

    def __init__(
        self,
        convention: str,
        callee: str,
        origin: str,
        arguments: Sequence[SSAValue],
        types: Sequence[str],
        effects: Sequence[str],
        outcome: str,
        results: Sequence[Attribute],
        trailing: int = 0,
    ) -> None:
        super().__init__(
            operands=[arguments],
            properties={
                "convention": StringAttr(convention),
                "callee": StringAttr(callee),
                "origin": StringAttr(origin),
                "types": strings(types),
                "effects": strings(effects),
                "outcome": StringAttr(outcome),
                "trailing": IntegerAttr(trailing, i64),
            },
            result_types=[results],
        )


@irdl_op_definition
class RuleCallOp(EffectsOp):
    """A call whose adjoint is written by hand: `primal` and `adjoint` are private functions of the module.

    So is `tangent`, where the user wrote one.

    `%r = foreign.call_with_rule @axpy_primal @axpy_adjoint(%a, %x, %y : f64, memref<?xf64>,
    memref<?xf64>) takes ["cotangent 0", "value 1", "shadow 2"] effects ["none", "read", "readwrite"]
    outside 3 names ["a", "x", "y"]`

    `takes` are the adjoint's parameters: "value 1" (argument 1 before the call), "after 2" (what argument 2's
    memory holds after it), "shadow 2", "cotangent 0" (a cell to add to, of a float argument), "result 0",
    "result_cotangent 0". `moves` are the tangent's: "tangent 0", "result_tangent 0" (a cell to add to) in
    the place of shadows and cotangents. Arguments from `outside` on are not the function's own: it reads them
    from outside, and the rule says nothing of their cotangents. Gone after the derivative: all is inlined.
    """

    name = "foreign.call_with_rule"
    primal = prop_def(SymbolRefAttr)
    adjoint = prop_def(SymbolRefAttr)
    takes = prop_def(ArrayAttr[StringAttr])
    names = prop_def(ArrayAttr[StringAttr])
    outside = prop_def(IntegerAttr)
    tangent = opt_prop_def(SymbolRefAttr)
    moves = opt_prop_def(ArrayAttr[StringAttr])
    called = var_result_def()
    assembly_format = (
        "$primal $adjoint (`(` $arguments^ `:` type($arguments) `)`)? `takes` $takes `effects` $effects"
        " `outside` $outside `names` $names (`tangent` $tangent^ `moves` $moves)?"
        " (`->` type($called)^)? attr-dict"
    )

    def __init__(
        self,
        primal: str,
        adjoint: str,
        arguments: Sequence[SSAValue],
        takes: Sequence[str],
        effects: Sequence[str],
        names: Sequence[str],
        outside: int,
        results: Sequence[Attribute],
        tangent: tuple[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(
            operands=[arguments],
            properties={
                "tangent": None if tangent is None else SymbolRefAttr(tangent[0]),
                "moves": None if tangent is None else strings(tangent[1]),
                "primal": SymbolRefAttr(primal),
                "adjoint": SymbolRefAttr(adjoint),
                "takes": strings(takes),
                "effects": strings(effects),
                "names": strings(names),
                "outside": IntegerAttr(outside, i64),
            },
            result_types=[results],
        )

    @property
    def taken(self) -> list[tuple[str, int]]:
        """The adjoint's parameters: what of which argument or result."""
        return parameters(self.takes)

    @property
    def moved(self) -> list[tuple[str, int]]:
        """The tangent's parameters."""
        return [] if self.moves is None else parameters(self.moves)


def parameters(listed: ArrayAttr[StringAttr]) -> list[tuple[str, int]]:
    parts = (t.data.split() for t in listed)
    return [(kind, int(number)) for kind, number in parts]


@irdl_op_definition
class StopGradientOp(IRDLOperation):
    """The same number, through which no derivative flows: `%y = foreign.stop_gradient %x : f64`."""

    name = "foreign.stop_gradient"
    T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($result)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value], result_types=[value.type])


@irdl_op_definition
class NoDerivativeOp(IRDLOperation):
    """The same number, of which no derivative is known: `%y = foreign.no_derivative %x "these" : f64`."""

    name = "foreign.no_derivative"
    T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(T)
    result = result_def(T)
    what = prop_def(StringAttr)
    traits = traits_def(Pure())
    assembly_format = "$value $what attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, what: str) -> None:
        super().__init__(
            operands=[value], result_types=[value.type], properties={"what": StringAttr(what)}
        )


Foreign = Dialect("foreign", [CallOp, RuleCallOp, StopGradientOp, NoDerivativeOp])

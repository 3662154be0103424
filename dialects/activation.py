"""The `activation` dialect: calls of recursive functions, which cannot be inlined.

Each such function is a private function of the module. In a gradient it becomes two: one that runs and
keeps what its adjoint needs in a *record*, and one that is given the record and runs backwards::

    %r, %y = activation.call @tree(%a, %i : memref<?xf64>, index) -> f64            the primal
    %r, %y = activation.call @tree_forward(%a, %i : memref<?xf64>, index) -> f64    %r is the record
    %b, %i_bar = activation.call @tree_backward(%r, %a_shadow, %y_bar : ...) -> ()
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    SymbolRefAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from .within import ops_of_kind

FORWARD, BACKWARD = "_forward", "_backward"
"""How the names of the two functions end."""


@irdl_op_definition
class CallOp(IRDLOperation):
    """A call of a private function: `%record, %y = activation.call @f(%a, %x : memref<?xf64>, f64) -> f64`.

    The callee may read the arrays among the arguments that `reads` lists, and write those that `writes`
    lists (all, where nothing is listed); it may raise what any code may, and RecursionError. `frames` is
    how many calls of the Python program it stands for. `record` names what the activation has kept for its
    adjoint; where there is no gradient it is 0. The backward function is given the record in place of what
    it was kept from.
    """

    name = "activation.call"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    frames = prop_def(IntegerAttr)
    reads = opt_prop_def(ArrayAttr[IntegerAttr])
    writes = opt_prop_def(ArrayAttr[IntegerAttr])
    record = result_def(IndexType())
    called = var_result_def()
    assembly_format = (
        "$callee (`(` $arguments^ `:` type($arguments) `)`)? `frames` $frames"
        " (`reads` $reads^)? (`writes` $writes^)? (`->` type($called)^)? attr-dict"
    )

    def __init__(
        self,
        callee: str,
        arguments: Sequence[SSAValue],
        results: Sequence[Attribute],
        frames: int = 1,
    ) -> None:
        super().__init__(
            operands=[list(arguments)],
            properties={"callee": SymbolRefAttr(callee), "frames": IntegerAttr(frames, i64)},
            result_types=[IndexType(), list(results)],
        )
        self.record.name_hint = "record"

    @property
    def target(self) -> str:
        """The name of the function."""
        return self.callee.string_value()

    @property
    def keeps_record(self) -> bool:
        """Whether it is the forward function that is called, which keeps a record."""
        return self.target.endswith(FORWARD)

    @property
    def takes_record(self) -> bool:
        """Whether it is the backward function that is called, whose first argument is a record."""
        return self.target.endswith(BACKWARD)

    def keep_record(self) -> None:
        """Call the forward function instead."""
        self.properties["callee"] = SymbolRefAttr(f"{self.target}{FORWARD}")

    def read(self) -> list[SSAValue]:
        """The arrays that the callee may read."""
        return self._listed(self.reads)

    def written(self) -> list[SSAValue]:
        """The arrays that the callee may write."""
        return self._listed(self.writes)

    def _listed(self, listed: ArrayAttr[IntegerAttr] | None) -> list[SSAValue]:
        if listed is None:
            return [a for a in self.arguments if isinstance(a.type, MemRefType)]
        return [self.arguments[i.value.data] for i in listed]

    def touch(self, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Say which arguments the callee reads and writes."""
        self.properties["reads"] = ArrayAttr([IntegerAttr(i, i64) for i in reads])
        self.properties["writes"] = ArrayAttr([IntegerAttr(i, i64) for i in writes])


@irdl_op_definition
class TooDeepOp(IRDLOperation):
    """Whether a call now would raise RecursionError: `%deep = activation.too_deep frames 1`.

    It says nothing of any other place or time, so nobody computes it again.
    """

    name = "activation.too_deep"
    frames = prop_def(IntegerAttr)
    deep = result_def(i1)
    assembly_format = "`frames` $frames attr-dict"

    def __init__(self, frames: int) -> None:
        super().__init__(properties={"frames": IntegerAttr(frames, i64)}, result_types=[i1])
        self.deep.name_hint = "deep"


def calls(function: Operation) -> list[CallOp]:
    """The calls in a function."""
    return ops_of_kind(function, CallOp)


Activation = Dialect("activation", [CallOp, TooDeepOp], [])

"""Shadows that nobody hands in: C has those of what the gradient is with respect to, and they begin as zeros.

A gradient function adds to the shadows that it is given. In C the caller's arrays are overwritten, so each
begins as zeros; shadows (and tangents) of other arrays that values flow through are memory of the function::

    func.func @f(%u, %v, %u_shadow, %v_shadow)      with respect to u

becomes ::

    array.map outs(%u_shadow) kinds ["store"] { 0.0 }
    %v_shadow1 = array.alloc(...)                   // zeros

Here, before `optimize`, which fills once what is filled twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, MemRefType, NoneAttr
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects import array
from ..derivative.function_attributes import inherit_locations
from ..derivative.hessian_products import replace, zeros_like
from ..diagnostics import refusal


class OwnShadows:
    """Makes shadows and tangents of one function what its C entry hands in."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        first = function.body.block.first_op
        assert first is not None
        self.builder = Builder(InsertPoint.before(first))

    def apply(self, zeroed: Sequence[int], inner: Sequence[int], copied: Sequence[int]) -> None:
        """Arguments that begin as zeros, that are memory of the function, and that keep their contents."""
        args = self.function.body.block.args
        for k in zeroed:
            self.fill(args[k])
        for k in inner:
            argument = self.compact(args[k])
            if argument is not None:
                replace(argument, zeros_like(argument, self.builder))
        for k in copied:
            self.copy(args[k])
        inherit_locations(self.function)

    def compact(self, argument: BlockArgument) -> BlockArgument | None:
        """The argument, if it is used: only compact arrays are memory of the function."""
        uses = [u for u in argument.uses if not isinstance(u.operation, memref.DimOp)]
        if not isinstance(argument.type, MemRefType) or not uses:
            return None
        if not isinstance(argument.type.layout, NoneAttr):
            name = (argument.name_hint or "array").partition("_shadow")[0].partition("_dot")[0]
            raise refusal(
                self.function,
                f"the derivative needs memory for {name}, whose layout is not that of C",
                f"declare {name} as C-contiguous, or name it in what the derivative is taken of",
            )
        return argument

    def extents(self, argument: SSAValue) -> list[SSAValue]:
        assert isinstance(argument.type, MemRefType)
        found: list[SSAValue] = []
        for axis in range(argument.type.get_num_dims()):
            number = self.builder.insert(arith.ConstantOp(IntegerAttr(axis, IndexType()))).result
            found.append(self.builder.insert(memref.DimOp(argument, number)).result)
        return found

    def fill(self, argument: BlockArgument) -> None:
        """Zeros, first of all."""
        if not isinstance(argument.type, MemRefType):
            return
        element = argument.type.element_type
        assert isinstance(element, AnyFloat)
        zero = arith.ConstantOp(FloatAttr(0.0, element))
        body = Block([zero, array.YieldOp([zero.result])])
        extents = self.extents(argument)
        self.builder.insert(array.MapOp(extents, [], [argument], ["store"], body))

    def copy(self, argument: BlockArgument) -> None:
        """A copy in the place of an argument that the function overwrites, and its caller does not expect."""
        if not isinstance(argument.type, MemRefType) or self.compact(argument) is None:
            return
        element, extents = argument.type.element_type, self.extents(argument)
        made = self.builder.insert(array.AllocOp(extents, element)).memref
        replace(argument, made)
        body = Block(arg_types=[element])
        body.add_op(array.YieldOp([body.args[0]]))
        self.builder.insert(array.MapOp(extents, [argument], [made], ["store"], body))

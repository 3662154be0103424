"""Shadows that the function owns: C has those of what the gradient is with respect to. They begin as zeros.

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
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, MemRefType
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects import array
from ..derivative.function_attributes import inherit_locations
from ..derivative.hessian_products import replace


class OwnShadows:
    """Makes shadows and tangents of one function what its C entry hands in."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        first = function.body.block.first_op
        assert first is not None
        self.builder = Builder(InsertPoint.before(first))

    def apply(
        self,
        zeroed: Sequence[int],
        inner: Sequence[int],
        copied: Sequence[int],
        filled: Sequence[int] = (),
    ) -> None:
        """Arguments that begin as zeros, that are memory of the function, and that keep their contents.

        Those that are `filled` the function sets to zero itself.
        """
        args = self.function.body.block.args
        for k in zeroed:
            if k not in filled:
                self.fill(args[k])
        for k in inner:
            self.inner(args[k], copied=False, filled=k in filled)
        for k in copied:
            self.inner(args[k], copied=True)
        inherit_locations(self.function)

    def inner(self, argument: BlockArgument, *, copied: bool, filled: bool = False) -> None:
        """Memory of the function for the argument, if it is used: zeros, or a copy of what it holds."""
        uses = [u for u in argument.uses if not isinstance(u.operation, memref.DimOp)]
        if not isinstance(argument.type, MemRefType) or not uses:
            return
        own = self.memory_like(argument)
        replace(argument, own)
        if copied:
            self.copy(argument, own)
        elif not filled:
            self.fill(own)

    def memory_like(self, argument: BlockArgument) -> SSAValue:
        """Memory of the argument's shape, in its order: in that of C where any strides will do."""
        assert isinstance(argument.type, MemRefType)
        rank, strides = argument.type.get_num_dims(), array.strides_of(argument.type)
        axes = [*range(rank)]
        if rank > 1 and strides[0] == 1 and not array.is_contiguous(argument.type):
            axes.reverse()
        extents, insert = self.extents(argument), self.builder.insert
        element = argument.type.element_type
        made = insert(array.AllocOp([extents[d] for d in axes], element)).memref
        if axes != sorted(axes):
            zero, one = (
                insert(arith.ConstantOp(IntegerAttr(n, IndexType()))).result for n in (0, 1)
            )
            made = insert(array.ViewOp(made, [zero] * rank, axes, extents, [one] * rank)).result
        if made.type != argument.type:
            made = insert(memref.CastOp.get(made, argument.type)).results[0]
        return made

    def extents(self, argument: SSAValue) -> list[SSAValue]:
        assert isinstance(argument.type, MemRefType)
        found: list[SSAValue] = []
        for axis in range(argument.type.get_num_dims()):
            number = self.builder.insert(arith.ConstantOp(IntegerAttr(axis, IndexType()))).result
            found.append(self.builder.insert(memref.DimOp(argument, number)).result)
        return found

    def fill(self, argument: SSAValue) -> None:
        """Zeros, first of all."""
        if not isinstance(argument.type, MemRefType):
            return
        element = argument.type.element_type
        assert isinstance(element, AnyFloat)
        zero = arith.ConstantOp(FloatAttr(0.0, element))
        body = Block([zero, array.YieldOp([zero.result])])
        extents = self.extents(argument)
        self.builder.insert(array.MapOp(extents, [], [argument], ["store"], body))

    def copy(self, source: SSAValue, target: SSAValue) -> None:
        """What the one holds in the other: the function overwrites that, which its caller does not see."""
        assert isinstance(source.type, MemRefType)
        body = Block(arg_types=[source.type.element_type])
        body.add_op(array.YieldOp([body.args[0]]))
        self.builder.insert(array.MapOp(self.extents(source), [source], [target], ["store"], body))

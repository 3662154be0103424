"""The adjoint of a gradient function as its tangent function: Hessians are symmetric.

The cotangents of the gradient that go in are a direction, and the cotangents of the arguments that come out
are the Hessian times it. So the gradient of a gradient function ::

    @f_gradient_gradient(%x, %x_shadow, %y_bar, %a, %b, %c)       // %a of %x, %b of %x_shadow, %c of %y

takes the place of the tangent function when its arguments change places::

    @f_gradient_tangent(%x, %x_shadow, %y_bar, %x_dot, %x_shadow_dot)    // %b is %x_dot, %a %x_shadow_dot

The result's cotangent is 0. Cotangents of memory that is not a shadow are scratch, 0 at first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad, array
from ..rules.builders import Emit, extents_of, fill
from ..rules.calls import SIGNATURE, listed
from .function_attributes import mirror_overlaps


class Symmetric:
    """Turns the gradient of a gradient function into its tangent function, in place."""

    def __init__(self, first: func.FuncOp) -> None:
        """`first` is the gradient function, before its gradient is taken."""
        self.arguments = len(first.body.block.args)
        last = first.body.block.last_op
        assert isinstance(last, func.ReturnOp)
        self.results = len(last.arguments)
        self.signature = {name: first.attributes[name] for name in SIGNATURE}
        self.scalars = listed(first, "scalars")
        shadowed, bars = listed(first, "shadows"), listed(first, "cotangents")
        start = self.arguments - len(bars) - len(shadowed)
        shadows = range(start, start + len(shadowed))
        self.other = {
            **dict(zip(shadowed, shadows, strict=True)),
            **dict(zip(shadows, shadowed, strict=True)),
        }
        """Of each argument with a shadow the place of that, and the other way round."""

    @property
    def differentiated(self) -> tuple[int, ...]:
        """The arguments of the gradient function with respect to which its gradient is taken."""
        return tuple(sorted({*self.other, *self.scalars}))

    def turn(self, second: func.FuncOp) -> None:
        """`second` is the gradient of the gradient function."""
        block = second.body.block
        memory, bars = listed(second, "shadows"), listed(second, "cotangents")
        numbers = listed(second, "scalars")
        given = list(block.args[self.arguments :])
        prologue: list[Operation] = []

        def emit(op: Operation) -> SSAValue:
            op.location = second.location
            prologue.append(op)
            return op.results[0] if op.results else op.operands[0]

        moving = sorted(self.other)
        types = [block.args[j].type for j in (*moving, *self.scalars)]
        dots = [block.insert_arg(t, len(block.args)) for t in types]
        of_memory = dict(zip(moving, dots, strict=False))
        of_number = dict(zip(self.scalars, dots[len(moving) :], strict=True))
        for j, dot in (*of_memory.items(), *of_number.items()):
            dot.name_hint = f"{block.args[j].name_hint}_dot"
        for j, old in zip(memory, given, strict=False):
            if j in self.other:
                found = in_type(of_memory[self.other[j]], old.type, emit)
            else:
                found = self.scratch(block.args[j], old.type, second, emit)
            old.replace_all_uses_with(found)
        first_scalar = self.results - len(self.scalars)
        for k, old in zip(bars, given[len(memory) :], strict=True):
            if k >= first_scalar:
                found = of_number[self.scalars[k - first_scalar]]
            else:
                found = left_out(old.type, emit)
            old.replace_all_uses_with(found)
        for old in given:
            block.erase_arg(old)
        first = block.first_op
        assert first is not None
        for op in prologue:
            block.insert_op_before(op, first)
        moved = [k for k, j in enumerate(self.scalars) if j in numbers]
        self.return_dots(block, [numbers.index(self.scalars[k]) for k in moved])
        self.describe(second, [*moving, *self.scalars], [first_scalar + k for k in moved])

    def scratch(
        self, primal: SSAValue, type_: Attribute, second: func.FuncOp, emit: Emit
    ) -> SSAValue:
        """Zeros as large as an argument."""
        extents = extents_of(primal, emit)
        made = emit(array.AllocOp(extents, cast(MemRefType[Attribute], type_).element_type))
        emit(fill(made, extents, second))
        return in_type(made, type_, emit)

    def return_dots(self, block: Block, numbers: Sequence[int]) -> None:
        """The gradient function's results, then the cotangents of the scalars that it differentiates."""
        last = block.last_op
        assert isinstance(last, func.ReturnOp)
        results = last.arguments[: self.results]
        bars = last.arguments[self.results :]
        end = func.ReturnOp(*results, *(bars[k] for k in numbers))
        end.location = last.location
        last.detach()
        last.erase()
        block.add_op(end)

    def describe(self, made: func.FuncOp, moving: Sequence[int], moved: Sequence[int]) -> None:
        """Say what the function takes and returns, as `forward` does of tangent functions."""
        block = made.body.block
        last = cast(Operation, block.last_op)
        made.properties["function_type"] = FunctionType.from_lists(
            [a.type for a in block.args], [r.type for r in last.operands]
        )
        made.attributes |= self.signature
        for name, indices in (("moving", moving), ("moved", moved)):
            made.attributes[name] = DenseArrayBase.from_list(i64, list(indices))
        pairs = made.attributes.get("overlaps")
        if isinstance(pairs, ArrayAttr):
            own = [p for p in pairs.data if all(n < self.arguments for n in numbers_in(p))]
            made.attributes["overlaps"] = ArrayAttr(own)
        mirror_overlaps(made, {j: self.arguments + k for k, j in enumerate(sorted(self.other))})


def numbers_in(pair: Attribute) -> list[int]:
    assert isinstance(pair, ArrayAttr)
    return [n.value.data for n in pair if isinstance(n, IntegerAttr)]


def left_out(type_: Attribute, emit: Emit) -> SSAValue:
    """A cotangent that is 0: of a new array it has as many elements as it takes, all one number."""
    if not isinstance(type_, MemRefType):
        return emit(arith.ConstantOp(FloatAttr(0.0, type_)))  # pyright: ignore
    rank, element = type_.get_num_dims(), type_.element_type
    zero = emit(arith.ConstantOp(FloatAttr(0.0, element)))  # pyright: ignore
    cell = emit(memref.AllocaOp.get(element, shape=[]))
    emit(memref.StoreOp.get(zero, cell, []))
    still, many = (
        emit(arith.ConstantOp(IntegerAttr(n, IndexType()))) for n in (0, ad.AS_MANY_AS_IT_TAKES)
    )
    return in_type(
        emit(array.ViewOp(cell, [], [-1] * rank, [many] * rank, [still] * rank)), type_, emit
    )


def in_type(value: SSAValue, type_: Attribute, emit: Emit) -> SSAValue:
    if value.type == type_:
        return value
    return emit(memref.CastOp.get(value, cast(MemRefType[Attribute], type_)))

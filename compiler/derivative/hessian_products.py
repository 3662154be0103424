"""`keep-product`: of the tangent of a gradient function keep the Hessian-vector product alone.

Who asks for the product wants neither the value nor the gradient. So shadows become memory of the function,
and the other results become zeros. What only they needed is dead then: for a quadratic function that is all
but the product. The product's memory holds nothing before. It is filled here, unless the gradient fills it
(`ad.unseen`); mostly the first sum is then stored instead::

    func.func @f(%x, %x_shadow, %x_dot, %x_shadow_dot) -> (f64) {
      ... add to %x_shadow ... add to %x_shadow_dot ...
      return %value

becomes ::

    func.func @f(%x, %x_shadow, %x_dot, %x_shadow_dot) -> (f64) {
      %x_shadow1 = array.alloc(...)  // zeros
      ... fill %x_shadow_dot with 0
      ... add to %x_shadow1 ... add to %x_shadow_dot ...
      return %zero

Shadows that share memory, or are not compact, remain the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    UnitAttr,
    VectorType,
    i64,
)
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...dialects import ad, array
from ..analysis.alias import overlapping_arguments
from ..rules.calls import listed
from ..rules.table import float_constant
from .function_attributes import inherit_locations


@dataclass(frozen=True)
class KeepProduct(ModulePass):
    """Drop value and gradient from the tangents of gradient functions."""

    name = "keep-product"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and "moved" in function.attributes:
                keep_product(function)


def keep_product(function: func.FuncOp) -> None:
    block = function.body.block
    first = block.first_op
    assert first is not None
    builder = Builder(InsertPoint.before(first))
    shared = overlapping_arguments(function)
    primals = listed(function, "shadows")
    filled = listed(function, "filled") if "filled" in function.attributes else []
    products = dict(zip(listed(function, "moving"), moving_arguments(function), strict=True))
    for k, primal in zip(shadow_arguments(function), primals, strict=True):
        shadow = block.args[k]
        assert isinstance(shadow.type, MemRefType)
        if shadow not in shared and isinstance(shadow.type.layout, NoneAttr):
            extents = extents_of(block.args[primal], builder)
            own = builder.insert(array.AllocOp(extents, shadow.type.element_type)).memref
            replace(shadow, own)
            if k not in filled:
                fill(own, extents, builder)
            if products.get(k, 0) not in (0, *filled):
                product = fill(block.args[products[k]], extents, builder)
                product.attributes[ad.UNSEEN] = UnitAttr()
                filled.append(products[k])
    function.attributes["filled"] = DenseArrayBase.from_list(i64, filled)
    drop_results(function, builder)
    inherit_locations(function)


def shadow_arguments(function: func.FuncOp) -> range:
    """The places of the shadows: behind the primal's arguments, before the cotangents and the tangents."""
    count = {name: len(listed(function, name)) for name in ("shadows", "cotangents")}
    moving = listed(function, "moving") if "moving" in function.attributes else ()
    end = len(function.body.block.args) - len(moving) - count["cotangents"]
    return range(end - count["shadows"], end)


def replace(old: SSAValue, made: SSAValue) -> None:
    """`made` for `old`, but in what computes its extents."""
    old.replace_uses_with_if(made, lambda use: not isinstance(use.operation, memref.DimOp))
    made.name_hint = old.name_hint


def moving_arguments(function: func.FuncOp) -> range:
    """The places of the tangents, which come last."""
    count, moving = len(function.body.block.args), len(listed(function, "moving"))
    return range(count - moving, count)


def extents_of(array_: SSAValue, builder: Builder) -> list[SSAValue]:
    assert isinstance(array_.type, MemRefType)
    axes = [
        builder.insert(arith.ConstantOp(IntegerAttr(axis, IndexType()))).result
        for axis in range(array_.type.get_num_dims())
    ]
    return [builder.insert(memref.DimOp(array_, a)).result for a in axes]


def fill(array_: SSAValue, extents: list[SSAValue], builder: Builder) -> array.MapOp:
    """Zeros everywhere."""
    assert isinstance(array_.type, MemRefType)
    zero = float_constant(0.0, array_.type.element_type)
    body = Block([zero, array.YieldOp([zero.result])])
    return builder.insert(array.MapOp(extents, [], [array_], ["store"], body))


def drop_results(function: func.FuncOp, builder: Builder) -> None:
    """Zeros for the value, its tangent and the gradients of scalars."""
    last = function.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    moved = listed(function, "moved")
    own = len(last.arguments) - len(moved)
    values = own - len(listed(function, "scalars"))
    kept = {own + k for k, result in enumerate(moved) if result >= values}
    for k, result in enumerate(last.arguments):
        if k not in kept and isinstance(result.type, AnyFloat | VectorType):
            last.operands[k] = builder.insert(float_constant(0.0, result.type)).result

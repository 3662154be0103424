"""Evaluate integer arithmetic, comparisons and branches whose outcome is known.

Shapes, slices and subscripts come out of the frontend as arithmetic for the general case
(`max(min(n - 1, n), 0)`); what remains after this pass is what analyses and codegen must reason about.

Before::

    func.func @f(%a : memref<?x4xf64>, %x : f64, %y : f64) -> (f64, index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %a, %c1 : memref<?x4xf64>
      %m = arith.addi %n, %c0 : index
      %is = arith.cmpi slt, %m, %c0 : index
      %r = scf.if %is -> (f64) {
        scf.yield %x : f64
      } else {
        scf.yield %y : f64
      }
      func.return %r, %m : f64, index
    }

After::

    func.func @f(%a : memref<?x4xf64>, %x : f64, %y : f64) -> (f64, index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 4 : index
      %is = arith.constant false
      func.return %y, %n : f64, index
    }

Also: extents of views and fresh arrays, views of all of an array, `(x + 1) - 1`, subscripts of known sign,
checks that never fail. Floating-point arithmetic is left to LLVM, which knows its rules. What is no longer
used is left to remove_dead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i1,
)
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.array import constant_value
from ..rules.calls import listed
from .memory_effects import functions

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
LONGEST = 2**50
"""More than any extent of an argument."""


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Replace an op by the constant or the operand that it certainly yields."""

    name = "fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            fold_in(function.body.block)


def fold_in(block: Block) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        if isinstance(op, scf.IfOp) and (taken := constant_value(op.cond)) is not None:
            following = inline_branch(op, op.true_region if taken else op.false_region)
        elif isinstance(op, scf.IfOp):
            settle_condition(op)
        elif isinstance(op, array.RaiseIfOp) and constant_value(op.condition) == 0:
            Rewriter.erase_op(op)
        elif isinstance(op, array.IndexOp):
            fold_index(op)
        elif op.results:
            replace_by(op, outcome(op))
        if op.parent is not None:
            for region in op.regions:
                for inner in region.blocks:
                    fold_in(inner)
        op = following


def inline_branch(op: scf.IfOp, region: Region) -> Operation | None:
    """Put the ops of the taken branch in place of the `scf.if`; returns the op to go on with."""
    block, following = op.parent, op.next_op
    assert block is not None
    first: Operation | None = None
    results: tuple[SSAValue, ...] = ()
    branch = region.blocks.first
    for inner in tuple(branch.ops) if branch is not None else ():
        if isinstance(inner, scf.YieldOp):
            results = tuple(inner.operands)
            break
        inner.detach()
        block.insert_op_before(inner, op)
        first = first or inner
    Rewriter.replace_op(op, [], results)
    return first or following


def settle_condition(branch: scf.IfOp) -> None:
    """Within a branch its condition is known."""
    if branch.cond.has_one_use():
        return
    for region, value in ((branch.true_region, 1), (branch.false_region, 0)):
        inside = [use for use in branch.cond.uses if region.is_ancestor(use.operation)]
        if inside:
            known = arith.ConstantOp(IntegerAttr(value, i1))
            known.location = branch.location
            region.block.insert_op_before(known, region.block.first_op)  # pyright: ignore
            for use in inside:
                use.operation.operands[use.index] = known.result


def replace_by(op: Operation, result: SSAValue | int | float | Operation | None) -> None:
    """Put `result` (a value, a number, or a cheaper op) in the place of `op`."""
    if result is None:
        return
    if isinstance(result, SSAValue):
        Rewriter.replace_op(op, [], [result])
        return
    if isinstance(result, int | float):
        result = constant(result, op)
    result.location = op.location
    Rewriter.replace_op(op, result)


def constant(value: int | float, like: Operation) -> arith.ConstantOp:
    """A constant of the type of `like`'s result."""
    type_ = like.results[0].type
    if isinstance(value, float):
        assert isinstance(type_, Float64Type)
        return arith.ConstantOp(FloatAttr(value, type_))
    assert isinstance(type_, IndexType | IntegerType)
    return arith.ConstantOp(IntegerAttr(value, type_))


def outcome(op: Operation) -> SSAValue | int | float | Operation | None:
    """What the op's only result certainly is, if that is known."""
    match op:
        case memref.DimOp():
            return extent(op)
        case arith.CmpiOp():
            return comparison(op)
        case array.ViewOp():
            return op.source if is_all_of_it(op) else None
        case arith.SelectOp():
            cond = constant_value(op.cond)
            if op.lhs is op.rhs:
                return op.lhs
            return None if cond is None else op.lhs if cond else op.rhs
        case array.CastOp():
            value = constant_value(op.value)
            exact = value is not None and abs(value) <= 2**53
            is_int_to_float = isinstance(op.value.type, IndexType) and isinstance(
                op.result.type, Float64Type
            )
            return float(value) if exact and is_int_to_float and value is not None else None
        case _ if type(op) in BINARY and op.results[0].type in (IndexType(), i1):
            return BINARY[type(op)](op.operands[0], op.operands[1])
        case _:
            return None


def add(x: SSAValue, y: SSAValue) -> SSAValue | int | Operation | None:
    a, b = constant_value(x), constant_value(y)
    if a == 0:
        return y
    if b == 0:
        return x
    if a is not None and b is not None:
        return wrapped(a + b)
    return sum_with_offset(x, b) or sum_with_offset(y, a)


def subtract(x: SSAValue, y: SSAValue) -> SSAValue | int | Operation | None:
    a, b = constant_value(x), constant_value(y)
    if x is y:
        return 0
    if b == 0:
        return x
    if a is not None and b is not None:
        return wrapped(a - b)
    (base_x, by_x), (base_y, by_y) = offset_form(x), offset_form(y)
    if base_x is base_y:
        return wrapped(by_x - by_y)
    return None if b is None else sum_with_offset(x, -b)


def sum_with_offset(x: SSAValue, offset: int | None) -> SSAValue | Operation | None:
    """`x + offset` where `x` is itself a sum with a constant: one addition instead of two."""
    base, by = offset_form(x)
    if offset is None or base is x:
        return None
    total = wrapped(by + offset)
    if total == 0:
        return base
    block, after = x.owner.parent, x.owner
    assert isinstance(block, Block)
    assert isinstance(after, Operation)
    number = arith.ConstantOp(IntegerAttr(total, IndexType()))
    number.location = after.location
    block.insert_op_after(number, after)
    return arith.AddiOp(base, number.result)


def offset_form(x: SSAValue) -> tuple[SSAValue, int]:
    """`x` as base + constant, over one addition or subtraction of a constant."""
    op = x.owner
    if isinstance(op, arith.AddiOp) and isinstance(x.type, IndexType):
        if (b := constant_value(op.rhs)) is not None:
            return op.lhs, b
        if (a := constant_value(op.lhs)) is not None:
            return op.rhs, a
    if (
        isinstance(op, arith.SubiOp)
        and isinstance(x.type, IndexType)
        and (b := constant_value(op.rhs)) is not None
    ):
        return op.lhs, -b
    return x, 0


def multiply(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    a, b = constant_value(x), constant_value(y)
    if a is not None and b is not None:
        return wrapped(a * b)
    if a == 0 or b == 0:
        return 0
    return y if a == 1 else x if b == 1 else None


def larger(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    a, b = constant_value(x), constant_value(y)
    if a is not None and b is not None:
        return max(a, b)
    if x is y or (b is not None and b <= 0 and is_nonnegative(x)):
        return x
    return y if a is not None and a <= 0 and is_nonnegative(y) else None


def smaller(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    a, b = constant_value(x), constant_value(y)
    if a is not None and b is not None:
        return min(a, b)
    (base_x, by_x), (base_y, by_y) = offset_form(x), offset_form(y)
    if x is y or (base_x is base_y and by_x <= by_y <= 0 and is_nonnegative(base_x)):
        return x
    return y if base_x is base_y and by_y <= by_x <= 0 and is_nonnegative(base_y) else None


def checked(exact: Callable[[int, int], int]) -> Callable[[SSAValue, SSAValue], int | None]:
    """The exact result where both operands are known and 64 bits hold it."""

    def evaluate(x: SSAValue, y: SSAValue) -> int | None:
        a, b = constant_value(x), constant_value(y)
        if a is None or b is None:
            return None
        result = exact(a, b)
        return result if INT64_MIN <= result <= INT64_MAX else None

    return evaluate


def checked_add(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    if constant_value(y) == 0:
        return x
    return y if constant_value(x) == 0 else checked(lambda a, b: a + b)(x, y)


def checked_sub(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    return x if constant_value(y) == 0 else checked(lambda a, b: a - b)(x, y)


def checked_mul(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    if constant_value(y) == 1:
        return x
    return y if constant_value(x) == 1 else checked(lambda a, b: a * b)(x, y)


def floor_divide(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    if constant_value(y) == 1:
        return x
    return checked(lambda a, b: a // b if b else 0)(x, y)


def floor_modulo(x: SSAValue, y: SSAValue) -> int | None:
    return 0 if constant_value(y) == 1 else checked(lambda a, b: a % b if b else 0)(x, y)


def conjunction(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    """`x & y` of two bools."""
    if x.type != i1:
        return None
    a, b = constant_value(x), constant_value(y)
    if a == 0 or b == 0 or are_opposite(x.owner, y.owner):
        return 0
    return y if a is not None or x is y else x if b is not None else None


def are_opposite(x: Operation | Block, y: Operation | Block) -> bool:
    """One asks whether two numbers are equal, the other whether they are not."""
    if not isinstance(x, arith.CmpiOp) or not isinstance(y, arith.CmpiOp):
        return False
    asked = {x.predicate.value.data, y.predicate.value.data}
    return asked == {0, 1} and x.lhs is y.lhs and x.rhs is y.rhs


def disjunction(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    """`x | y` of two bools."""
    if x.type != i1:
        return None
    a, b = constant_value(x), constant_value(y)
    if a or b:
        return 1
    return y if a is not None or x is y else x if b is not None else None


def exclusion(x: SSAValue, y: SSAValue) -> SSAValue | int | None:
    """`x ^ y` of two bools."""
    if x.type != i1:
        return None
    a, b = constant_value(x), constant_value(y)
    if a is not None and b is not None:
        return int(bool(a) != bool(b))
    return y if a == 0 else x if b == 0 else None


BINARY: dict[type[Operation], Callable[[SSAValue, SSAValue], SSAValue | int | Operation | None]] = {
    arith.AddiOp: add,
    arith.SubiOp: subtract,
    arith.MuliOp: multiply,
    arith.MaxSIOp: larger,
    arith.MinSIOp: smaller,
    arith.AndIOp: conjunction,
    arith.OrIOp: disjunction,
    arith.XOrIOp: exclusion,
    array.CheckedAddOp: checked_add,
    array.CheckedSubOp: checked_sub,
    array.CheckedMulOp: checked_mul,
    array.FloorDivOp: floor_divide,
    array.FloorModOp: floor_modulo,
}

COMPARISONS: dict[int, Callable[[int, int], bool]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
}
"""The signed predicates of arith.cmpi by their number."""


def comparison(op: arith.CmpiOp) -> SSAValue | int | None:
    holds = COMPARISONS.get(op.predicate.value.data)
    if holds is None or not isinstance(op.lhs.type, IndexType):
        return None
    a, b = constant_value(op.lhs), constant_value(op.rhs)
    if a is not None and b is not None:
        return int(holds(a, b))
    if b is not None and (sides := constants_of_sides(op.lhs)) is not None:
        cond, *values = sides
        taken, otherwise = (holds(value, b) for value in values)
        return int(taken) if taken == otherwise else cond if taken else None
    if op.lhs is op.rhs:
        return int(holds(0, 0))
    (x, by_x), (y, by_y) = offset_form(op.lhs), offset_form(op.rhs)
    if x is y and max(abs(by_x), abs(by_y)) < LONGEST and is_extent(x):
        return int(holds(by_x, by_y))  # nothing wraps
    if b is not None and abs(b) >= LONGEST and is_extent(op.lhs):
        return int(holds(0, b))
    # For x >= 0 > b the order is known; for b = 0 it is for < and >= alone.
    if (
        b is not None
        and is_nonnegative(op.lhs)
        and (b < 0 or (b == 0 and op.predicate.value.data in (2, 5)))
    ):
        return int(holds(0, b))
    return None


def is_extent(x: SSAValue) -> bool:
    """Whether it is an extent of an argument of the primal, far from where integers end.

    Cotangents that are left out have extents of their own (`derivative.cotangents`).
    """
    source = x.owner.source if isinstance(x.owner, memref.DimOp) else None
    function = source.owner.parent_op() if isinstance(source, BlockArgument) else None
    if not isinstance(function, func.FuncOp) or not isinstance(source, BlockArgument):
        return False
    behind = ("shadows", "cotangents", "moving")
    others = sum(len(listed(function, name)) for name in behind if name in function.attributes)
    return source.index < len(function.body.block.args) - others


def constants_of_sides(x: SSAValue) -> tuple[SSAValue, int, int] | None:
    """A condition, and the two constants of which it chooses the value."""
    op = x.owner
    if isinstance(op, arith.SelectOp):
        cond, a, b = op.cond, op.lhs, op.rhs
    elif isinstance(op, scf.IfOp):
        ends = (region.block.last_op for region in (op.true_region, op.false_region))
        a, b = (end.operands[op.results.index(x)] for end in ends if end is not None)  # pyright: ignore
        cond = op.cond
    else:
        return None
    taken, otherwise = constant_value(a), constant_value(b)
    return None if taken is None or otherwise is None else (cond, taken, otherwise)


def is_all_of_it(view: array.ViewOp) -> bool:
    """The view shows all of an array, or view, as it lies; maps do not mind another type of it."""
    whole = view.source.owner
    return (
        isinstance(whole, array.ViewOp | array.AllocOp)
        and (
            view.result.type == view.source.type
            or all(isinstance(use.operation, array.MapOp) for use in view.result.uses)
        )
        and view.source_dims == tuple(range(len(whole.extents)))
        and tuple(view.extents) == tuple(whole.extents)
        and all(constant_value(v) == 0 for v in view.offsets)
        and all(constant_value(v) == 1 for v in view.steps)
    )


def extent(op: memref.DimOp) -> SSAValue | int | None:
    """The extent that the array was made with."""
    dim, source = constant_value(op.index), op.source
    assert isinstance(source.type, MemRefType)
    if dim is None:
        return None
    static = source.type.get_shape()[dim]
    if static != DYNAMIC_INDEX:
        return static
    owner = source.owner
    return owner.extents[dim] if isinstance(owner, array.AnyView | array.AllocOp) else None


def fold_index(op: array.IndexOp) -> None:
    """Settle the sign of a known subscript; drop the op where it changes and checks nothing."""
    at, n = constant_value(op.index), constant_value(op.extent)
    wraps = isinstance(op.index.owner, array.FloorModOp) and op.index.owner.rhs is op.extent
    positive = wraps or is_nonnegative(op.index)
    if op.sign.data == "any" and (positive or (at is not None and at < 0)):
        op.properties["sign"] = StringAttr("nonneg" if at is None or at >= 0 else "negative")
    if at is not None and n is not None and -n <= at < n:
        op.properties["unchecked"] = UnitAttr()
    if op.unchecked is not None and op.sign.data == "nonneg":
        replace_by(op, op.index)


def is_nonnegative(x: SSAValue) -> bool:
    """True when the integer is certainly not below 0."""
    owner = x.owner
    if isinstance(x, BlockArgument):
        return is_handed_extent(x) or (
            isinstance(x.owner.parent_op(), array.LoopOp) and x.index == 0
        )
    if isinstance(owner, memref.DimOp) or (isinstance(owner, array.LoopOp) and x is owner.trips):
        return True
    if isinstance(owner, arith.MaxSIOp):
        return any((c := constant_value(v)) is not None and c >= 0 for v in owner.operands)
    number = constant_value(x)
    return number is not None and number >= 0


def is_handed_extent(x: BlockArgument) -> bool:
    """Whether the first half of a split gradient knew that it is not below 0, and handed it to the second."""
    function = x.owner.parent_op()
    known = function.attributes.get("nonnegative") if isinstance(function, func.FuncOp) else None
    return isinstance(known, DenseArrayBase) and x.index in known.get_values()


def wrapped(value: int) -> int:
    """The 64-bit integer that two's complement arithmetic leaves."""
    return (value - INT64_MIN) % 2**64 + INT64_MIN

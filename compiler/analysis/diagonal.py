"""Whether each element of a function's results moves with one element of its argument: at the same place.

Asked of a tangent function with several tangents at once: what is a vector, and memory of vectors, is what
moves. Its Jacobian is diagonal if memory of vectors is only mapped, point by point, from whole arrays to
whole arrays, and what is loaded of an element is stored to elements of the same subscripts alone::

    array.map(%n) ins(%x, %x_dot) outs(%y, %y_dot) kinds ["store", "store"] { ... }         is
    array.map(%n) ins(%x_dot) outs(%sum_dot) kinds ["add"] { ... }      with steps 0        is not
    %t = memref.load %x_dot[%i] ... memref.store %s, %y_dot[%i]         in a loop           is
    %t = memref.load %x_dot[%i] ... memref.store %s, %sum_dot[]         in a loop           is not

Loops around such maps, and branches, are no matter: each iteration goes from points to the same points. What
numbers of the primal decide is the same for all directions. Subscripts are compared as linear combinations of
values.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array
from .affine import Affine, affine

Points = dict[SSAValue, tuple[Affine, ...]]
"""The subscripts of the element that a value outside of maps moves with."""

COMPUTING = ("arith", "math", "ad", "vector")
"""The dialects whose ops compute numbers of numbers, where no memory is among them."""

DIAGONAL = "diagonal"
"""The attribute of tangent functions of which that is known."""


def is_diagonal(function: func.FuncOp) -> bool:
    """Whether the tangents of the results are those of the argument, each times a number."""
    several, points = any(in_memory(a.type) for a in function.body.block.args), Points()
    return several and all(goes_by_points(op, points) for op in function.body.walk() if moves(op))


def moves(op: Operation) -> bool:
    """Whether an op has tangents among its operands or results."""
    return any(is_tangent(v.type) for v in (*op.operands, *op.results))


def is_tangent(type_: Attribute) -> bool:
    return isinstance(type_, VectorType) or in_memory(type_)


def in_memory(type_: Attribute) -> bool:
    return isinstance(type_, MemRefType) and isinstance(type_.element_type, VectorType)


def goes_by_points(op: Operation, points: Points) -> bool:
    match op:
        case array.AllocOp() | memref.DimOp() | arith.ConstantOp():
            return True
        case array.ViewOp():
            return is_whole(op)
        case array.MapOp():
            return op.gathers is None and all(
                rank_of(v) == len(op.extents) for v in (*op.ins, *op.outs) if in_memory(v.type)
            )
        case memref.LoadOp():
            points[op.res] = tuple(map(affine, op.indices))
            return not is_in_map(op)
        case memref.StoreOp():
            constant = isinstance(op.value.owner, arith.ConstantOp)
            same = points.get(op.value) == tuple(map(affine, op.indices))
            return (constant or same) and not is_in_map(op)
        case func.ReturnOp():
            numbers = (v for v in op.operands if isinstance(v.type, VectorType))
            return all(isinstance(v.owner, arith.ConstantOp) for v in numbers)
        case scf.IfOp():
            return True  # its yields say what of
        case scf.YieldOp() if isinstance(op.parent_op(), scf.IfOp) and not is_in_map(op):
            return leaves_branch(op, points)
        case array.YieldOp() | scf.YieldOp():
            return is_in_map(op) and points.keys().isdisjoint(op.operands)
        case _:
            return computes(op) and stays_at_point(op, points)


def leaves_branch(op: scf.YieldOp, points: Points) -> bool:
    """Whether what both branches yield is of one element."""
    branch = op.parent_op()
    assert branch is not None
    for value, result in zip(op.operands, branch.results, strict=True):
        if value in points and points.setdefault(result, points[value]) != points[value]:
            return False
    return True


def computes(op: Operation) -> bool:
    """Whether an op makes tangents of numbers and tangents."""
    values = (*op.operands, *op.results)
    numbers = not any(isinstance(v.type, MemRefType) for v in values)
    known = is_in_map(op) or (op.name.partition(".")[0] in COMPUTING and not op.regions)
    return known and numbers and all(is_tangent(v.type) for v in op.results)


def stays_at_point(op: Operation, points: Points) -> bool:
    """Whether the tangents that an op computes with are of one element: in a map, of the map's own."""
    found = {points[v] for v in op.operands if v in points}
    if is_in_map(op) or len(found) > 1:
        return not found
    points.update((result, point) for result in op.results for point in found)
    return True


def is_whole(view: array.ViewOp) -> bool:
    """Whether each element is at the place that it has in what is viewed."""
    rank = rank_of(view.source)
    return (
        tuple(view.source_dims) == tuple(range(rank))
        and all(array.constant_value(o) == 0 for o in view.offsets)
        and all(array.constant_value(s) == 1 for s in view.steps)
    )


def rank_of(value: SSAValue) -> int:
    assert isinstance(value.type, MemRefType)
    return value.type.get_num_dims()


def is_in_map(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, array.MapOp):
        parent = parent.parent_op()
    return parent is not None

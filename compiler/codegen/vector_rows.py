"""Rows with sums, written as vectors: those of maps whose bodies are arithmetic on elements side by side.

LLVM would make the same vectors, but for the ends of rows (`lane_sums`). The body is written for two vectors
in a loop, then for one, then for half a vector, a quarter, ... A value that stands still is in all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import Float32Type, Float64Type, VectorType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad, array
from . import batched_calls, vector_math
from .floats_to_llvm import factors_of
from .kernel_state import KernelState, lanes_of, value_type
from .lane_sums import LaneSums, lane_parts, sums_of
from .map_nest import Nest, Operand, combine, registers, step_rows

SMALL = 48
"""Bodies of more operations are not written several times."""
ARITHMETIC = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, arith.ConstantOp),
    *(arith.CmpfOp, arith.SelectOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp),
    *(ad.MulOp, ad.DivOp, math.FmaOp, math.AbsFOp, math.SqrtOp),
)
PRODUCTS = (arith.MulfOp, arith.DivfOp, ad.MulOp)
"""What a sum may be contracted with."""
FUNCTIONS = {**batched_calls.FUNCTIONS, math.Log1pOp: "log1p"}

KINDS = ("store", "add", "mul")
"""What vectors of numbers are written by."""


def is_row_of_vectors(nest: Nest) -> bool:
    """Whether a row can be written as vectors: all that it computes are numbers of one size, side by side."""
    if len(nest.stages) > 1 or any(o.buffered or o.in_order for o in nest.outputs):
        return False
    if len(sums_of(nest)) < len(registers(nest)):
        return False
    elements = {o.element for o in nest.operands}
    if len(elements) > 1 or not all(isinstance(e, Float64Type | Float32Type) for e in elements):
        return False
    stored = [o for o in nest.outputs if not o.still]
    if any(o.strides[-1] not in ("1", "-1") or o.kind not in KINDS for o in stored):
        return False
    if any(o.strides[-1] not in ("0", "1", "-1") for o in nest.inputs):
        return False
    ops = [*nest.op.body.block.ops][:-1]
    values = [v for op in ops for v in (*op.operands, *op.results)]
    return (
        len(ops) <= SMALL
        and all(isinstance(op, ARITHMETIC) or has_versions(nest, op) for op in ops)
        and {v.type for v in values} <= {*elements, i1}
        and {v.type for v in nest.op.yielded} <= elements
    )


def has_versions(nest: Nest, op: Operation) -> bool:
    """Whether it is a function that can be called for any part of a row."""
    function = FUNCTIONS.get(type(op))
    if function is None or not isinstance(op.results[0].type, Float64Type):
        return False
    return len(vector_math.variants(function, nest.state.features)) == 3


def write_row(nest: Nest, sums: LaneSums, pointers: list[str], count: str) -> None:
    """The innermost loop."""
    state, last = nest.state, len(nest.extents) - 1
    group = f", !llvm.access.group {nest.group}"
    varies = write_invariants(nest, pointers)
    bodies: dict[int, Body] = {}
    rows: list[str] = []
    for first, width, side in lane_parts(state, count, sums.lanes):
        if width not in bodies:
            bodies[width] = Body.of(nest, width, varies)
        if side and width == sums.lanes:  # the second vector lies behind the first
            rows = step_rows(nest, rows, last, str(width))
        else:
            rows = step_rows(nest, pointers, last, first)
        write_part(nest, bodies[width], sums, rows, group, side)


def write_invariants(nest: Nest, pointers: list[str]) -> set[SSAValue]:
    """Load and compute what is the same for all points, once; what differs from point to point."""
    state, body = nest.state, nest.op.body.block
    varies: set[SSAValue] = set()
    for argument, o, pointer in zip(body.args, nest.inputs, pointers, strict=False):
        if o.strides[-1] == "0":
            state.scalars[argument] = state.load(pointer, o.element, o.tags, argument.name_hint)
        else:
            varies.add(argument)
    for op in body.ops:
        if not op.results or isinstance(op, PRODUCTS) or not varies.isdisjoint(op.operands):
            varies.update(op.results)
        else:
            state.emit(op)
    return varies


@dataclass
class Body:
    """The body of a map for several points."""

    block: Block
    inputs: Sequence[SSAValue]
    """The elements that are loaded, which are the first arguments of the block."""
    outer: Sequence[SSAValue]
    """The values that are the same for all points, which are the others."""
    yielded: Sequence[SSAValue]

    width: int

    @staticmethod
    def of(nest: Nest, width: int, varies: set[SSAValue]) -> Body:
        body = nest.op.body.block
        inputs = [a for a in body.args if a in varies]
        ops = [op for op in body.ops if not op.results or op.results[0] in varies]
        used = dict.fromkeys(v for op in ops for v in op.operands)
        # Constants stay such: a quotient by one is a product.
        numbers = [v for v in used if isinstance(v.owner, arith.ConstantOp)]
        outer = [v for v in used if v not in varies and v not in numbers]
        types = [*(wide(a.type, width) for a in inputs), *(v.type for v in outer)]
        block = Block(arg_types=types)
        known: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=False))
        for value, argument in zip(outer, block.args[len(inputs) :], strict=True):
            known[value] = in_all_lanes(block, argument, width)
        for value in numbers:
            known[value] = in_all_lanes(block, value, width)
        for op in ops[:-1]:
            made = type(op).create(
                operands=[known[v] for v in op.operands],
                result_types=[wide(r.type, width) for r in op.results],
                properties={**op.properties},
                attributes={**op.attributes},
            )
            made.location = op.location
            block.add_op(made)
            known[op.results[0]] = made.results[0]
        for old, new in known.items():
            new.name_hint = old.name_hint
        yielded = [known[v] for v in nest.op.yielded]
        block.add_op(array.YieldOp(yielded))
        return Body(block, inputs, outer, yielded, width)


def in_all_lanes(block: Block, value: SSAValue, width: int) -> SSAValue:
    made = vector.BroadcastOp.create(operands=[value], result_types=[wide(value.type, width)])
    block.add_op(made)
    return made.results[0]


@cache  # xDSL takes as long to make a type as to write a line
def wide(type_: Attribute, width: int) -> VectorType:
    return VectorType(type_, [width])


def write_part(
    nest: Nest, body: Body, sums: LaneSums, rows: list[str], group: str, side: int
) -> None:
    """So many points: load, compute, write, add to the sums."""
    state, end = nest.state, body.block.last_op
    assert end is not None
    own = nest.op.body.block.args
    places: dict[SSAValue, tuple[Operand, str]] = {
        value: (o, row) for value, o, row in zip(own, nest.inputs, rows, strict=False)
    }
    for value, argument in zip(body.inputs, body.block.args, strict=False):
        state.scalars[argument] = load(state, *places[value], body.width, group)
    for value, argument in zip(body.outer, body.block.args[len(body.inputs) :], strict=True):
        state.scalars[argument] = state.scalar(value)
    for op in body.block.ops:
        if op is not end:
            state.emit(op)
    position = 0
    for o, value, pointer in zip(nest.outputs, body.yielded, rows[len(own) :], strict=True):
        new = state.scalar(value)
        factors = factors_of(state, value, new, end)
        if o.still:
            sums.add(position, side, body.width, new, factors)
            position += 1
        else:
            if o.kind != "store":
                old = load(state, o, pointer, body.width, group)
                new = combine(state, o.kind, value.type, old, new, free=False, factors=factors)
            store(state, o, pointer, new, body.width, group)


def load(state: KernelState, o: Operand, row: str, width: int, group: str) -> str:
    """So many elements of a row."""
    type_ = wide(o.element, width)
    if o.strides[-1] == "1":
        return state.load(row, type_, o.tags + group)
    first = state.offset(row, o.element, str(1 - width))
    return backwards(state, state.load(first, type_, o.tags + group), type_)


def store(state: KernelState, o: Operand, row: str, new: str, width: int, group: str) -> None:
    type_ = wide(o.element, width)
    if o.strides[-1] == "-1":
        row, new = state.offset(row, o.element, str(1 - width)), backwards(state, new, type_)
    state.store(new, row, type_, o.tags + group)


def backwards(state: KernelState, value: str, type_: VectorType) -> str:
    lanes = lanes_of(type_)
    shown, mask = value_type(type_), ", ".join(f"i32 {k}" for k in reversed(range(lanes)))
    return state.text.value(
        f"shufflevector {shown} {value}, {shown} poison, <{lanes} x i32> <{mask}>"
    )

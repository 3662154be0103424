"""Cotangents of records: how the adjoint of a backward function hands them to that of its forward function.

A forward function keeps what its backward function reads. When both are reversed once more, cotangents of
what is kept go the other way, in memory that the record holds as well::

    %r, %y = @f_forward(%x)             %r, %y = @f_forward_forward(%x)       keeps zeros for cotangents, too
    %x_bar = @f_backward(%r, %y_bar)    %s, %x_bar = @f_backward_forward(%r, %y_bar)
                                        ... = @f_backward_backward(%s, %r, ..)     adds to them
                                        ... = @f_forward_backward(%r, ..)          begins with them

The record of @f_forward_forward has three parts: what @f_forward keeps; memory for the cotangents of what is
active in that (a cell for a number, an array as large for an array, an empty tape for a tape); and what
@f_forward_backward needs besides. Who takes the record takes all of it as arguments. What is kept is only
read, so its cotangents need not share memory where it does: @f_forward_backward adds them up first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import activation, ad
from ..analysis.activity import Activity
from ..rules.builders import extents_of, fill, memory_in_order
from ..rules.calls import count_in_record, listed
from ..rules.table import float_constant
from .function_attributes import move_overlaps
from .reverse import is_memory


@dataclass(frozen=True)
class TwiceReversed:
    """The record of a forward function that is reversed itself."""

    kept: list[Attribute]
    """The types of what the function kept before."""
    moving: list[int]
    """Which of that has a cotangent."""
    cotangents: list[Attribute]
    """The types of the memory for these."""
    own: list[Attribute]
    """The types of what the function's own adjoint needs."""

    @property
    def types(self) -> list[Attribute]:
        return [*self.kept, *self.cotangents, *self.own]


class Inserted:
    """Ops that are put before another one."""

    def __init__(self, before: Operation) -> None:
        self.before = before

    def __call__(self, op: Operation) -> SSAValue:
        op.location = self.before.location
        block = self.before.parent
        assert block is not None
        block.insert_op_before(op, self.before)
        return op.results[0] if op.results else op.operands[0]


def keep_cotangents(
    function: func.FuncOp, forward: func.FuncOp, backward: func.FuncOp, lanes: int
) -> TwiceReversed:
    """Let the pair of a forward function have memory for the cotangents of what that keeps."""
    last = returned(forward)
    keeps = count_in_record(function, "keeps")
    first = len(returned(function).arguments) - keeps
    kept = list(last.arguments[first : first + keeps])
    moving = [k - first for k in listed(function, "cotangents") if k >= first]
    emit = Inserted(last)
    made = [zeros_for(kept[k], lanes, emit) for k in moving]
    values = [*last.arguments[: first + keeps], *made, *last.arguments[first + keeps :]]
    replace_return(forward, values)
    layout = TwiceReversed(
        [v.type for v in kept],
        moving,
        [v.type for v in made],
        [v.type for v in last.arguments[first + keeps :]],
    )
    forward.attributes["keeps"] = IntegerAttr(len(layout.types), i64)
    block = backward.body.block
    start = block.first_op
    assert start is not None
    given = list(block.args[len(block.args) - len(moving) :])
    before = insert_arguments(backward, 0, [*layout.kept, *layout.cotangents])[len(layout.kept) :]
    for old, memory in zip(given, before, strict=True):
        old.replace_all_uses_with(as_cotangent(memory, old.type, Inserted(start)))
        memory.name_hint = old.name_hint
        block.erase_arg(old)
    backward.attributes["kept"] = IntegerAttr(len(layout.types), i64)
    finish(forward, backward)
    return layout


def add_to_cotangents(
    function: func.FuncOp,
    activity: Activity,
    forward: func.FuncOp,
    backward: func.FuncOp,
    layout: TwiceReversed,
) -> None:
    """Let the pair of a backward function add to the cotangents of what is in the record that it is given."""
    count = count_in_record(function, "kept")
    assert count == len(layout.kept)
    insert_arguments(forward, count, [*layout.cotangents, *layout.own])
    forward.attributes["kept"] = IntegerAttr(len(layout.types), i64)
    own = count_in_record(backward, "kept")
    block = backward.body.block
    active = [k for k in range(count) if activity.active(function.body.block.args[k])]
    in_memory = [k for k in active if is_memory(function.body.block.args[k])]
    given = list(block.args[own : own + len(in_memory)])
    made = insert_arguments(backward, own, layout.types)
    cotangents = dict(zip(layout.moving, made[count : count + len(layout.moving)], strict=True))
    start = block.first_op
    assert start is not None
    for k, old in zip(in_memory, given, strict=True):
        old.replace_all_uses_with(as_cotangent(cotangents[k], old.type, Inserted(start)))
        block.erase_arg(old)
    move_overlaps(backward, own + len(layout.types), -len(given))
    last = returned(backward)
    numbers = [k for k in active if k not in in_memory]
    emit = Inserted(last)
    for k, bar in zip(numbers, last.arguments, strict=False):
        old = emit(memref.LoadOp.get(cotangents[k], []))
        total = emit(arith.AddfOp(old, bar))
        emit(memref.StoreOp.get(total, cotangents[k], []))
    replace_return(backward, last.arguments[len(numbers) :])
    backward.attributes["kept"] = IntegerAttr(own + len(layout.types), i64)
    counts = DenseArrayBase.from_list(i64, [own, len(layout.types)])
    backward.attributes[activation.RECORDS] = counts
    finish(forward, backward)


def zeros_for(value: SSAValue, lanes: int, emit: Inserted) -> SSAValue:
    """Memory for the cotangent of what is kept, which lives as long as the record."""
    tape = emit(ad.TapeOp())
    tape.name_hint = f"{value.name_hint or 'kept'}_shadow"
    if isinstance(value.type, ad.TapeType):
        return tape

    def memory(extents: Sequence[SSAValue], element: Attribute) -> Operation:
        return ad.PushOp(tape, extents, element)

    if isinstance(value.type, MemRefType):
        element = ad.wide(value.type.element_type, lanes)
        extents = extents_of(value, emit)
        made = memory_in_order(value.type, extents, element, emit, memory)
        emit(fill(made, extents, emit.before))
    else:
        made = emit(memory([], ad.wide(value.type, lanes)))
        zero = emit(float_constant(0.0, ad.wide(value.type, lanes)))
        emit(memref.StoreOp.get(zero, made, []))
    made.name_hint = f"{value.name_hint or 'kept'}_bar"
    return made


def as_cotangent(found: SSAValue, type_: Attribute, emit: Inserted) -> SSAValue:
    """A cotangent as a function has it that is given it otherwise: a number, or memory of this type."""
    if found.type == type_:
        return found
    if isinstance(type_, MemRefType):
        return emit(memref.CastOp.get(found, type_))
    return emit(memref.LoadOp.get(found, []))


def returned(function: func.FuncOp) -> func.ReturnOp:
    last = function.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    return last


def replace_return(function: func.FuncOp, values: Sequence[SSAValue]) -> None:
    old = returned(function)
    made = func.ReturnOp(*values)
    made.location = old.location
    function.body.block.insert_op_before(made, old)
    old.detach()
    old.erase()


def insert_arguments(function: func.FuncOp, at: int, types: Sequence[Attribute]) -> list[SSAValue]:
    """New arguments, where those from `at` on move back."""
    block = function.body.block
    made: list[SSAValue] = [block.insert_arg(t, at + k) for k, t in enumerate(types)]
    for argument in made:
        argument.name_hint = "kept"
    move_overlaps(function, at, len(types))
    return made


def finish(*functions: func.FuncOp) -> None:
    """Say what the functions take and return now, and that there is no third derivative by this way."""
    for function in functions:
        types = [a.type for a in function.body.block.args]
        results = [r.type for r in cast(Operation, function.body.block.last_op).operands]
        function.properties["function_type"] = FunctionType.from_lists(types, results)
        function.attributes[activation.REVERSED_TWICE] = UnitAttr()

"""Run the directions of a batched sweep one after another, for code that is written for one direction.

Such code is the rules of users. It is handed memory of its own with one lane of each array, and what it
leaves is put back::

    array.loop %lane to 8 do {
      array.map(%n) ins(%x_shadow) outs(%x_lane) kinds ["store"] { vector.extract %x_bar[%lane] }
      ... the rule, which adds to %x_lane
      array.map(%n) ins(%x_lane, %x_shadow) outs(%x_shadow) kinds ["store"] { vector.insert ... [%lane] }
    }

Arrays that may share memory are refused where one is written: each would have a copy of what they share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Protocol, cast

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import IndexType, MemRefType, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from ..diagnostics import WithoutLanes, refusal
from .builders import element_of, extents_of, index, memory_in_order
from .sweeps import Sweep
from .table import float_constant


class Lane(Protocol):
    """What code that is written for one derivative is handed."""

    def array(self, operand: SSAValue, derivatives: SSAValue, /, *, written: bool) -> SSAValue:
        """The derivative of the contents of an operand, in memory."""
        ...

    def number(self, derivatives: SSAValue, /) -> SSAValue: ...


class Alone:
    """There is one lane."""

    def array(self, operand: SSAValue, derivatives: SSAValue, *, written: bool) -> SSAValue:
        return derivatives

    def number(self, derivatives: SSAValue) -> SSAValue:
        return derivatives


def in_each_lane(
    sweep: Sweep, op: Operation, emit: Callable[[Lane], Sequence[SSAValue]]
) -> list[SSAValue]:
    """The numbers that `emit` makes of one lane, of all lanes: vectors where there are several."""
    if sweep.lanes == 1:
        return list(emit(Alone()))
    body, work = Block(arg_types=[IndexType()]), Block()
    lane = InLoop(sweep, op, body.args[0])
    with sweep.at(work):
        numbers = emit(lane)
    with sweep.at(body):
        lane.take()
        for inner in list(work.ops):
            inner.detach()
            sweep.insert(inner)
        cells = [lane.put_number(number) for number in numbers]
        lane.put()
        sweep.append(array.YieldOp([]))
    sweep.append(array.LoopOp(index(sweep.lanes, sweep.emit), [], body))
    return [sweep.emit(memref.LoadOp.get(cell, [])) for cell in cells]


class InLoop:
    """One of several lanes, in the loop over them at the sweep's place."""

    def __init__(self, sweep: Sweep, op: Operation, lane: SSAValue) -> None:
        self.sweep, self.op, self.lane, self.outside = sweep, op, lane, sweep.block
        self.arrays: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
        """Of each array's derivatives the operand, and the memory for one lane."""
        self.written: set[SSAValue] = set()

    def array(self, operand: SSAValue, derivatives: SSAValue, *, written: bool) -> SSAValue:
        if written:
            self.written.add(derivatives)
        if derivatives not in self.arrays:
            with self.sweep.at(self.outside):
                narrow = self._memory_like(derivatives)
            narrow.name_hint = f"{operand.name_hint or 'array'}_lane"
            self.arrays[derivatives] = operand, narrow
        return self.arrays[derivatives][1]

    def _memory_like(self, derivatives: SSAValue) -> SSAValue:
        """Memory for one lane of an array, in the array's order."""
        emit, type_ = self.sweep.emit, cast(MemRefType[Attribute], derivatives.type)
        element = cast("VectorType[Attribute]", type_.element_type).element_type
        return memory_in_order(type_, extents_of(derivatives, emit), element, emit)

    def number(self, derivatives: SSAValue) -> SSAValue:
        return self.sweep.emit(self._extracted(derivatives))

    def _extracted(self, derivatives: SSAValue) -> Operation:
        type_ = cast("VectorType[Attribute]", derivatives.type)
        return vector.ExtractOp(derivatives, [self.lane], type_.element_type)

    def put_number(self, number: SSAValue) -> SSAValue:
        """Put a number where this lane of it is; the cell of all lanes."""
        with self.sweep.at(self.outside):
            cell = zeroed_cell(self.sweep, self.op, self.sweep.wide(number.type), number.name_hint)
        before = self.sweep.emit(memref.LoadOp.get(cell, []))
        after = self.sweep.emit(vector.InsertOp(number, before, [self.lane]))
        self.sweep.append(memref.StoreOp.get(after, cell, []))
        return cell

    def take(self) -> None:
        """Fill the memory for one lane."""
        for derivatives, (_, narrow) in self.arrays.items():
            body = Block(arg_types=[element_of(derivatives)])
            body.add_op(made := self._extracted(body.args[0]))
            self._map(body, made, [derivatives], narrow)

    def put(self) -> None:
        """Put that back."""
        for (one, (a, _)), (other, (b, _)) in combinations(self.arrays.items(), 2):
            if self.written & {one, other} and self.sweep.activity.may_alias(a, b):
                raise sharing(self.op)
        for derivatives, (_, narrow) in self.arrays.items():
            if derivatives not in self.written:
                continue
            body = Block(arg_types=[element_of(narrow), element_of(derivatives)])
            number, vectors = body.args
            body.add_op(made := vector.InsertOp(number, vectors, [self.lane]))
            self._map(body, made, [narrow, derivatives], derivatives)

    def _map(self, body: Block, made: Operation, ins: Sequence[SSAValue], out: SSAValue) -> None:
        made.location = self.op.location
        body.add_op(array.YieldOp([made.results[0]]))
        extents = extents_of(out, self.sweep.emit)
        self.sweep.append(array.MapOp(extents, ins, [out], ["store"], body))


def zeroed_cell(sweep: Sweep, op: Operation, type_: Attribute, name: str | None) -> SSAValue:
    """A cell of 0."""
    alloca = memref.AllocaOp.get(type_, shape=[])
    alloca.location = op.location
    alloca.memref.name_hint = name
    if sweep.entry.first_op is None:
        sweep.entry.add_op(alloca)
    else:
        sweep.entry.insert_op_before(alloca, sweep.entry.first_op)
    zero = float_constant(0.0, type_)
    sweep.append(zero)
    sweep.append(memref.StoreOp.get(zero.result, alloca.memref, []))
    return alloca.memref


def sharing(op: Operation) -> Exception:
    return refusal(
        op,
        "several derivatives at once go through this call, which is handed arrays that may share memory",
        "take them one at a time, or pass a copy of one of the arrays",
        WithoutLanes,
    )

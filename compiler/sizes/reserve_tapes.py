"""Let a tape that many segments go to have memory for all of them at once.

Why here: after everything else, for what tapes hold is read off the finished code. A tape that grows takes
memory a quarter at a time, so a fifth of it may be unused at the end. Where extents, loop counts and
branches are known before the first segment, so is what the tape will hold.

::

    %t = ad.tape                          %bytes = ...                     the sum over the iterations
    %trips = array.loop %i to %n do {     %t = ad.tape reserves %bytes     what raises earlier has raised
      %s = ad.push %t(%i) ...             %trips = array.loop %i to %n do {
                                            %s = ad.push %t(%i) ...

Left alone: tapes of one segment outside of loops, which have just its memory anyway; tapes whose size is
known at run time only, or of which a branch that data decides, or an early end, leaves a bound. Of loops in
which something may raise, some millions of iterations are added up: a tape of more grows from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ...dialects import ad, array
from ..analysis.alias import AliasAnalysis
from ..analysis.effects import is_private
from ..codegen.entries.guard import Form
from ..derivative.segments import enclosing_loops
from ..rules import is_opaque
from .entry_numbers import Number
from .product_copies import LINE
from .reserved_tapes import reserve
from .work_size import Measure

SOME = 1 << 24
"""So many iterations of a nest that may raise are added up."""


@dataclass(frozen=True)
class ReserveTapes(ModulePass):
    """Say at tapes that grow how much they will hold, where that is known."""

    name = "reserve-tapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        reserve_tapes(op, ())


def reserve_tapes(module: ModuleOp, assumed: Sequence[Form]) -> None:
    """The tapes of all kernels. `assumed`: forms that are 0 (`Built.assumed`)."""
    for kernel in [f for f in module.ops if isinstance(f, func.FuncOp) and not is_private(f)]:
        reserve_growing(kernel, assumed)


def reserve_growing(kernel: func.FuncOp, assumed: Sequence[Form]) -> None:
    """The tapes of one kernel."""
    growing = [op for op in kernel.body.block.ops if isinstance(op, ad.TapeOp) and op.grows]
    if not growing:
        return
    alias = AliasAnalysis(kernel)
    for tape in growing:
        measure = MeasureSome(kernel, assumed, checked=False, alias=alias)
        size = measure.held_by(tape, outliving=True)
        if size.unknown is not None or size.loose is not None or size.is_zero:
            continue
        a = measure.a
        first = first_use(tape, kernel.body.block)
        reserved = reserve(tape, a.value(a.rounded_up(size.number, LINE)))
        for one in (*a.block.ops, reserved):
            one.detach()
            kernel.body.block.insert_op_before(one, first)


class MeasureSome(Measure):
    """Adds up so few iterations that it takes no time where one of the first raises; others in full."""

    def _written_trips(self, op: array.LoopOp, trips: Number) -> Number:
        if not any(isinstance(one, array.RaiseIfOp) or is_opaque(one) for one in op.walk()):
            return trips
        most = int(SOME ** (1.0 / depth_of_nest(op)))
        return self.a.binary(arith.MinSIOp, trips, most)


def depth_of_nest(op: array.LoopOp) -> int:
    """How many loops there are at most within each other, around the loop and inside of it."""
    return max(len(list(enclosing_loops(cast("Block", one.parent)))) for one in loops_of(op)) + 1


def loops_of(op: array.LoopOp) -> list[array.LoopOp]:
    return [one for one in op.walk() if isinstance(one, array.LoopOp)]


def first_use(tape: ad.TapeOp, top: Block) -> Operation:
    """The first op of the function, at its top level, that uses the tape or within which it is used."""
    users = {cast("Operation", top.find_ancestor_op_in_block(u.operation)) for u in tape.tape.uses}
    return next(op for op in top.ops if op in users)

"""Functions of several numbers of an iteration as one call, in loops that stay scalar.

Where each iteration waits for the one before, LLVM computes no two at once. But the numbers that an iteration
has functions of may be lanes of one register, if none waits for the result of another::

    %a = math.exp %x
    %y = arith.subf %least, %v              %y = arith.subf %least, %v
    %b = math.exp %y                        %z = arith.subf %least, %w
    %z = arith.subf %least, %w              %a, %b, %c = exp of <%x, %y, %z>
    %c = math.exp %z

What the later numbers are made of is computed first, if it is quick: no result is to wait for a quotient, or
for memory. Functions of our own alone have bodies for so many lanes, with the bits that they have for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Operation, SSAValue

from . import own_math, vector_math
from .kernel_state import KernelState
from .unguarded_runs import Run

FUNCTIONS: dict[type[Operation], str] = {
    math.ExpOp: "exp",
    math.ExpM1Op: "expm1",
    math.TanhOp: "tanh",
    math.LogOp: "log",
    math.SinOp: "sin",
    math.CosOp: "cos",
}
QUICK = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp)
FEW = 4
"""A call waits for so many ops that it did not wait for before."""
MOST = 4
"""Numbers of a call: registers of 512 bits lower the clock (`vector_width`)."""


@dataclass(frozen=True)
class Batch:
    """Ops of one kind, none of which needs another."""

    ops: Sequence[Operation]


def batches_of(
    state: KernelState, items: Iterable[Run | Operation]
) -> Iterator[Run | Operation | Batch]:
    """The ops of a loop's body, those in no run with calls side by side, in an order that is as good."""
    if not state.optimized or state.side_by_side is not False or "avx512vl" not in state.features:
        yield from items
        return
    pending: list[Operation] = []
    for item in items:
        if isinstance(item, Run):
            yield from arranged(state, pending)
            pending = []
            yield item
        else:
            pending.append(item)
    yield from arranged(state, pending)


def arranged(state: KernelState, ops: list[Operation]) -> Iterator[Operation | Batch]:
    """The ops in order, but for later calls that need not wait: they, and what they need, come sooner."""
    waiting = dict.fromkeys(ops)
    for k, op in enumerate(ops):
        if op not in waiting:
            continue
        del waiting[op]
        if not pays(state, op):
            yield op
            continue
        found = [op]
        for other in ops[k + 1 :]:
            if type(other) is not type(op) or other not in waiting or len(found) == MOST:
                continue
            before = quick_slice(other.operands[0], waiting, set(found))
            if before is None or not pays(state, other):
                continue
            yield from before
            for moved in (*before, other):
                del waiting[moved]
            found.append(other)
        yield Batch(found) if len(found) > 1 else op


def pays(state: KernelState, op: Operation) -> bool:
    """Whether it is one of our functions, and may have other last bits than libm's."""
    function = FUNCTIONS.get(type(op))
    if function is None or not isinstance(op.results[0].type, Float64Type):
        return False
    if not (state.in_vectors or function in own_math.FASTER_TOGETHER):
        return False
    found = vector_math.variants(function, state.features)
    return bool(found) and own_math.is_own(found[-1][0])


def quick_slice(
    value: SSAValue, waiting: dict[Operation, None], batch: set[Operation]
) -> list[Operation] | None:
    """What is still to be computed for a value, in order; None where that is much, or needs the batch."""
    found: dict[Operation, None] = {}

    def is_quick(value: SSAValue) -> bool:
        op = value.owner
        if not isinstance(op, Operation) or op in found:
            return True
        if op not in waiting:
            return op not in batch
        if not isinstance(op, QUICK) or not all(map(is_quick, op.operands)):
            return False
        found[op] = None
        return len(found) <= FEW

    return list(found) if is_quick(value) else None


def write_batch(state: KernelState, batch: Batch) -> None:
    """The call, and what it finds."""
    function, text = FUNCTIONS[type(batch.ops[0])], state.text
    lanes = 2 if len(batch.ops) == 2 else MOST
    name = f"mutad_{function}_of_{lanes}"
    if name not in state.functions:
        own_math.define_narrow(state, name, lanes, own_math.PREFIX + function)
    vector = own_math.vector_of(lanes)
    numbers = own_math.all_of(0.5)
    for k, op in enumerate(batch.ops):
        number = state.scalars[op.operands[0]]
        numbers = text.value(f"insertelement {vector} {numbers}, double {number}, i64 {k}")
    group = state.attribute_group("alwaysinline nounwind willreturn memory(none)")
    found = text.value(f"call {vector} @{name}({vector} {numbers}) {group}")
    for k, op in enumerate(batch.ops):
        state.scalars[op.results[0]] = text.value(f"extractelement {vector} {found}, i64 {k}")

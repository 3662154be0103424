"""The two sweeps over a checkpointed loop: its steps as one op each.

The loop's body is a call of a private function (`checkpoint_loops`)::

    %trips = array.loop %i to %n do {                forward  %kept = activation.steps @f_step %n ... (%u)
      %r = activation.call @f_step(%i, %u) frames 0
    } {checkpointed = 1000 : i64}                    reverse  activation.reverse_steps @f_step %kept ... (%u)
                                                                shadows (%u_shadow) of [0] ...

Arrays that the loop permutes are arguments as they enter it, and `moves` says how they turn. What a restart
state and the values of a step take is measured last (`aot.step_sizes`); until then it is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import activation, array
from ..analysis.alias import permutation_order
from ..analysis.views import strip_casts
from ..rules.builders import extents_of, transfer
from ..rules.calls import listed, private_functions, shadow_of
from ..rules.sweeps import ReverseSweep
from ..rules.table import index_constant


def call_of(loop: array.LoopOp) -> activation.CallOp:
    """The body of a checkpointed loop."""
    found = loop.body.block.first_op
    assert isinstance(found, activation.CallOp)
    return found


def initial(loop: array.LoopOp, value: SSAValue) -> SSAValue:
    """What a value of the body is in the first iteration."""
    carried = list(loop.body_carried)
    return loop.carried[carried.index(value)] if value in carried else value


def moves_of(loop: array.LoopOp) -> list[int]:
    """For each argument of the step the one whose array it is in the next iteration."""
    arguments = list(call_of(loop).arguments[1:])
    carried = list(loop.body_carried)
    turned = dict(zip(carried, map(strip_casts, loop.yielded), strict=True))
    return [
        arguments.index(turned.get(a, a)) if a in turned else k for k, a in enumerate(arguments)
    ]


def run_steps(
    loop: array.LoopOp, values: dict[SSAValue, SSAValue], target: Block, step: func.FuncOp
) -> activation.StepsOp:
    """Run the steps at the end of `target`; notes what the loop's results are there."""
    call = call_of(loop)
    budget = cast("IntegerAttr[Any]", loop.attributes[activation.CHECKPOINTED]).value.data

    def add(op: Operation) -> SSAValue:
        op.location = loop.location
        target.add_op(op)
        return op.results[0] if op.results else op.operands[0]

    assert loop.count is not None
    nothing = add(index_constant(0))
    count = add(arith.MaxSIOp(values[loop.count], nothing))
    numbers = [count, add(index_constant(budget)), *[nothing] * 4]
    arguments = [values[initial(loop, a)] for a in call.arguments[1:]]
    reads, writes = ([k.value.data - 1 for k in of or ()] for of in (call.reads, call.writes))
    changing = activation.in_turns(writes, moves_of(loop))
    for k in listed_on(loop, activation.OVERWRITTEN):
        if k not in changing:
            arguments[k] = copied(arguments[k], add)
    live = [k - 1 for k in listed_on(step, activation.LIVE)]
    steps = activation.StepsOp(call.target, numbers, arguments, moves_of(loop), reads, writes, live)
    add(steps)
    values[loop.trips] = count
    results = [values[c] for c in loop.carried]
    turn = [list(loop.body_carried).index(strip_casts(y)) for y in loop.yielded]
    if (order := permutation_order(turn)) > 1:
        rest = add(arith.RemSIOp(count, add(index_constant(order))))
        body = Block(arg_types=[IndexType(), *(r.type for r in results)])
        body.add_op(array.YieldOp([body.args[1 + k] for k in turn]))
        replay = array.LoopOp(rest, results, body)
        add(replay)
        results = list(replay.results_carried)
    for old, now in zip(loop.results_carried, results, strict=True):
        now.name_hint = now.name_hint or old.name_hint
        values[old] = now
    return steps


def listed_on(op: Operation, name: str) -> list[int]:
    """What an attribute of the loop, or of its step, lists."""
    found = op.attributes[name]
    assert isinstance(found, DenseArrayBase)
    return [int(k) for k in found.get_values()]


def copied(source: SSAValue, add: Callable[[Operation], SSAValue]) -> SSAValue:
    """A copy of an array, or of a cell."""
    element = cast("MemRefType[Attribute]", source.type).element_type
    if not cast("MemRefType[Attribute]", source.type).get_num_dims():
        cell = add(memref.AllocaOp.get(element, shape=[]))
        for op in (load := memref.LoadOp.get(source, []), memref.StoreOp.get(load.res, cell, [])):
            add(op)
        return cell
    extents = extents_of(source, add)
    made = add(array.AllocOp(extents, element))
    made.name_hint = f"{source.name_hint or 'array'}_copy"
    add(transfer(source, made, extents))
    return made


def reverse_steps(
    sweep: ReverseSweep, loop: array.LoopOp, forward: activation.StepsOp
) -> activation.ReverseStepsOp:
    """The same steps backwards, at the sweep's current place."""
    call = call_of(loop)
    callee = private_functions(sweep.function.parent_op())[call.target]
    types: list[Attribute] = [a.type for a in callee.body.block.args]
    of = listed(callee, "shadows")
    shadows = [shadow_of(sweep, call, initial(loop, call.arguments[k]), types[k]) for k in of]
    assert not listed(callee, "scalars")
    assert all(isinstance(s.type, MemRefType) for s in shadows)
    return activation.ReverseStepsOp(forward, forward.kept, shadows, [k - 1 for k in of])

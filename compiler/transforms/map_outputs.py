"""A map with some of its outputs: what other passes leave of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator, NoMemoryEffect

from ...dialects import array


def is_pure(op: Operation) -> bool:
    return (
        op.has_trait(NoMemoryEffect)
        and not op.has_trait(IsTerminator)
        and not array.is_operation_that_may_raise(op)
    )


def puts_back(op: array.MapOp, k: int) -> bool:
    """Whether an output stores what the map reads there: the adjoint of an update, `u += f(v)`, say.

    It changes nothing, unless an output before it has written there.
    """
    value = op.yielded[k]
    if op.out_kinds[k] != "store" or op.gathers is not None or value.owner is not op.body.block:
        return False
    return op.ins[op.body.block.args.index(value)] is op.outs[k]


def with_outputs(
    op: array.MapOp, keep: Sequence[int], kinds: Sequence[array.MapKind] | None = None
) -> array.MapOp | None:
    """Put in the place of `op` a map with the outputs `keep` only, which it returns; none if nothing is kept.

    `kinds` are those of all outputs, where they change. What is unused in the body goes,
    and so do inputs.
    """
    kinds = op.out_kinds if kinds is None else kinds
    block = op.body.block
    if not keep:
        Rewriter.erase_op(op)
        return None
    if len(keep) < len(op.outs):
        last = block.last_op
        assert last is not None
        end = array.YieldOp([op.yielded[k] for k in keep])
        end.location = last.location
        Rewriter.replace_op(last, end)
    for inner in reversed(list(block.ops)):
        if is_pure(inner) and all(r.first_use is None for r in inner.results):
            Rewriter.erase_op(inner)
    used = [k for k, argument in enumerate(block.args) if argument.first_use is not None]
    if len(keep) == len(op.outs) and len(used) == len(op.ins) and tuple(kinds) == op.out_kinds:
        return op
    for argument in reversed(block.args):
        if argument.first_use is None:
            block.erase_arg(argument)
    ins, outs = [op.ins[k] for k in used], [op.outs[k] for k in keep]
    extents, region, gathers = tuple(op.extents), op.detach_region(op.body), op.gathers
    gathers = None if gathers is None else gathers.of(used)
    fresh = array.MapOp(extents, ins, outs, [kinds[k] for k in keep], region, gathers)
    fresh.location = op.location
    fresh.attributes.update(op.attributes)
    Rewriter.replace_op(op, fresh)
    return fresh

"""Maps that evaluate the body of a primal map together with its tangents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from .builders import element_of
from .sweeps import TangentSweep, bind_with_tangents

Write: TypeAlias = tuple[SSAValue, str, SSAValue]
"""An output of a map, how it is written, and the element."""


def emit_map(
    sweep: TangentSweep,
    op: array.MapOp,
    write: Callable[[Callable[[SSAValue], SSAValue]], list[Write]],
) -> None:
    """A map over the points of `op` that evaluates its body with tangents.

    `write(read)` says what it writes, where the body has been evaluated; `read` gives it one element of
    another array at the current point.
    """
    moving = [k for k, m in enumerate(op.ins) if sweep.activity.active(m)]
    ins = sweep.values(op.ins) + [sweep.dot(op.ins[k], zero=True) for k in moving]
    args, body = op.body.block.args, Block(arg_types=[element_of(m) for m in ins])
    bind_with_tangents(sweep, args, body.args, [args[k] for k in moving])
    writes: list[Write] = []

    def read(source: SSAValue) -> SSAValue:
        ins.append(source)
        return body.insert_arg(element_of(source), len(body.args))

    def end(_: Operation) -> None:
        writes.extend(write(read))
        sweep.append(array.YieldOp([value for _, _, value in writes]))

    sweep.run(op.body.block, body, end)
    outs, kinds = [out for out, _, _ in writes], [kind for _, kind, _ in writes]
    sweep.append(array.MapOp(sweep.values(op.extents), ins, outs, kinds, body))


def primal_writes(sweep: TangentSweep, op: array.MapOp) -> Iterator[Write]:
    for out, kind, value in zip(op.outs, op.out_kinds, op.yielded, strict=True):
        yield sweep.value(out), kind, sweep.value(value)


def tangent_writes(sweep: TangentSweep, op: array.MapOp) -> Iterator[Write]:
    """The tangents of what is stored or added; a sum with what has none stays as it is."""
    for out, kind, value in zip(op.outs, op.out_kinds, op.yielded, strict=True):
        if sweep.activity.active(out) and (kind == "store" or sweep.dot(value) is not None):
            yield sweep.dot(out, zero=True), kind, sweep.dot(value, zero=True)

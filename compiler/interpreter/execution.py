"""Runs functions of a module.

`OPS` has a function for each class of op that is no pure scalar code. It takes the frame of the activation,
which knows the values so far, and the op.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    MemRefType,
    ModuleOp,
)
from xdsl.ir import Attribute, Operation

from ...dialects import activation, ad, array, device, foreign
from ..deep_stack import on_deep_stack
from . import calls, checks, control, launches, matrices, memory_ops, tapes
from .frame import Frame, Host, Machine, Ops, number
from .maps import run_map
from .memory import Array, Memref, has_layout, over


def interpret(
    module: ModuleOp, name: str, arguments: Sequence[Any], host: Host, steps: int | None = None
) -> list[Any]:
    """What a function returns, for numbers and NumPy arrays, which it changes.

    Arrays that share memory are seen to. Memory that is returned comes as an array, tapes and arenas as they
    are. Raises what the program raises; `Undefined` where it has no meaning, or takes more than `steps`.
    """
    machine = Machine(module, host, OPS, steps)
    function = machine.functions[name]
    parameters = [a.type for a in function.body.block.args]
    if len(parameters) != len(arguments):
        raise TypeError(f"@{name} takes {len(parameters)} arguments, not {len(arguments)}")
    values = bound(parameters, arguments)
    for k, (value, type_) in enumerate(zip(values, parameters, strict=True)):
        if isinstance(type_, MemRefType) and not has_layout(value, type_):
            raise TypeError(f"argument {k} of @{name} is not laid out as a {type_}")
    limit = sys.getrecursionlimit()

    def run() -> list[Any]:
        with np.errstate(all="ignore"):
            return machine.call(function, values, limit)

    recursive = any(map(activation.calls, machine.functions.values()))
    found = on_deep_stack(run) if recursive else run()
    return [value.array() if isinstance(value, Memref) else value for value in found]


def interpret_launch(
    module: ModuleOp, name: str, arguments: Sequence[Any], blocks: int, host: Host
) -> int:
    """Run so many blocks of a kernel on NumPy arrays, which it changes; `Undefined` where threads race.

    Returns how many steps that took.
    """
    most = 1 << 60
    machine = Machine(module, host, OPS, most)
    kernel = machine.functions[name]
    values = bound([a.type for a in kernel.body.block.args], arguments)
    with np.errstate(all="ignore"):
        launches.run_kernel(Frame(machine, 0), kernel, values, blocks)
    assert machine.left is not None
    return most - machine.left


def bound(types: Sequence[Attribute], arguments: Sequence[Any]) -> list[Any]:
    """The arguments as values of the interpreter."""
    arrays = [
        a if isinstance(t, MemRefType) else None for a, t in zip(arguments, types, strict=True)
    ]
    memrefs = over(cast("list[Array | None]", arrays), types)
    return [
        m if m is not None else number(a, t)
        for a, m, t in zip(arguments, memrefs, types, strict=True)
    ]


def nothing(_frame: Frame, _op: Operation) -> None:
    """What marks a place in the program and does nothing."""


OPS: Ops = {
    scf.IfOp: control.branch,
    array.LoopOp: control.loop,
    array.MapOp: run_map,
    **memory_ops.OPS,
    **matrices.OPS,
    array.IndexOp: checks.index,
    array.RaiseIfOp: checks.raise_if,
    array.CheckedAddOp: checks.checked,
    array.CheckedSubOp: checks.checked,
    array.CheckedMulOp: checks.checked,
    array.PrintOp: checks.print_values,
    foreign.CallOp: calls.foreign_call,
    foreign.RuleCallOp: calls.rule_call,
    activation.CallOp: calls.activate,
    activation.TooDeepOp: calls.too_deep,
    activation.StackOp: calls.stack,
    activation.StepsOp: calls.steps,
    activation.ReverseStepsOp: calls.reverse_steps,
    ad.TapeOp: tapes.tape,
    ad.PushOp: tapes.push,
    ad.PopOp: tapes.pop,
    ad.ReaderOp: tapes.reader,
    ad.HandoverOp: nothing,
    ad.DetachOp: lambda frame, op: frame.bind(op.results, [None]),
    ad.DerivativeOp: tapes.derivative,
    ad.RetryIfOp: checks.retry_if,
    device.LaunchOp: launches.launch,
    device.IsReplayedOp: launches.is_replayed,
    device.HasConditionsOp: launches.has_conditions,
    device.ThreadOp: launches.thread,
    device.BlockOp: launches.block,
    device.FetchOp: launches.fetch,
    device.PutOp: launches.put,
    device.AtomicAddOp: launches.atomic_add,
}
"""What each op does."""

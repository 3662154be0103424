"""What calls mean: of functions outside of the IR, of recursive functions, of checkpointed steps."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from ...dialects import activation, foreign
from ..rules.calls import count_in_record, records_of
from .checks import raise_at
from .frame import Frame, number
from .memory import Tape


def foreign_call(frame: Frame, op: foreign.CallOp) -> None:
    found = frame.machine.host.call(op, frame.all(op.operands))
    for result in op.called:
        frame.values[result] = number(found, result.type)


def rule_call(frame: Frame, op: foreign.RuleCallOp) -> None:
    """A function with a rule is what its primal is."""
    primal = frame.machine.function(op.primal.string_value())
    frame.bind(op.results, frame.machine.call(primal, frame.all(op.operands), frame.depth))


def activate(frame: Frame, op: activation.CallOp) -> None:
    """Call a recursive function. What a forward function keeps is a record, which its adjoint begins with."""
    machine = frame.machine
    function, arguments = machine.function(op.target), frame.all(op.arguments)
    depth = frame.depth - op.frames.value.data
    if depth <= 0:
        message = "maximum recursion depth exceeded"
        raise_at(frame, function, "RecursionError", message, [])
    counts = records_of(function)
    held = (
        machine.records[int(n) - 1][:count] for n, count in zip(arguments, counts, strict=False)
    )
    arguments = [*chain.from_iterable(held), *arguments[len(counts) :]]
    results = machine.call(function, arguments, depth)
    record = 0
    if op.keeps_record:
        count = len(results) - count_in_record(function, "keeps")
        machine.records.append([kept(value) for value in results[count:]])
        results, record = results[:count], len(machine.records)
    frame.bind(op.results, [np.int64(record), *results])


def kept(value: Any) -> Any:
    """A value as a record keeps it: a tape as it is now."""
    return Tape(list(value.segments)) if isinstance(value, Tape) else value


def steps(frame: Frame, op: activation.StepsOp) -> None:
    """Run a checkpointed loop. All its records are kept: a budget is compiled code's."""
    forward = frame.machine.function(f"{op.target}{activation.FORWARD}")
    arguments, records = frame.all(op.arguments), list[list[Any]]()
    keeps = count_in_record(forward, "keeps")
    while frame.get(op.goes_on).read() if op.goes_on else len(records) < int(frame.get(op.count)):
        number = np.int64(len(records))
        results = frame.machine.call(forward, [number, *arguments], frame.depth)
        records.append([kept(value) for value in results[len(results) - keeps :]])
        arguments = [arguments[k] for k in op.permutation]
    frame.machine.records.append(records)
    frame.values[op.kept] = np.int64(len(frame.machine.records))
    frame.values[op.trips] = np.int64(len(records))


def stack(frame: Frame, op: activation.StackOp) -> None:
    """Memory is compiled code's."""


def reverse_steps(frame: Frame, op: activation.ReverseStepsOp) -> None:
    """Its steps, the last first, or upwards: then no array takes turns."""
    backward = frame.machine.function(f"{op.target}{activation.BACKWARD}")
    moves = [op.of.index(op.permutation[k]) for k in op.of]
    shadows = frame.all(op.shadows)
    records = frame.machine.records[int(frame.get(op.kept)) - 1]
    shared = frame.all(op.shared)
    if shared:
        shared[0].array()[...] = len(records)
    if op.upwards is not None:
        for record in records:
            frame.machine.call(backward, [*record, *shadows, *shared], frame.depth)
        return
    for _ in records:
        shadows = [shadows[k] for k in moves]
    for record in reversed(records):
        shadows = [shadows[moves.index(k)] for k in range(len(moves))]
        frame.machine.call(backward, [*record, *shadows, *shared], frame.depth)


def too_deep(frame: Frame, op: activation.TooDeepOp) -> None:
    frame.values[op.deep] = np.bool_(frame.depth <= op.frames.value.data)

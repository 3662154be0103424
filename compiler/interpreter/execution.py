"""Runs functions of a module: control flow, memory, checks, calls.

`OPS` has a function for each class of op that is no pure scalar code. It takes the frame of the activation,
which knows the values so far, and the op. What a program asks of the world around it (exceptions, `print`,
functions in C) the `Host` does.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, cast

import numpy as np
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects import activation, ad, array, device, foreign
from ..deep_stack import on_deep_stack
from ..diagnostics import line_of
from ..rules.calls import count_in_record, records_of
from . import launches, matrices, memory_ops
from .maps import run_map
from .memory import Array, Memref, Tape, Undefined, dtype_of, fresh, has_layout, lanes_of, over
from .scalars import SCALARS


class Unknown(Exception):
    """What the program asks for is nowhere in the IR: a Python function, an op of another dialect."""


class Host(Protocol):
    """The world around a program."""

    def exception(self, name: str, message: str, shown: list[Any]) -> BaseException:
        """The exception of this class, its message filled."""
        ...

    def show(self, form: str, shown: list[Any]) -> None:
        """`print`."""
        ...

    def call(self, op: foreign.CallOp, values: list[Any]) -> Any:
        """Call a function that is not in the IR; its result, if it has one."""
        ...


def interpret(
    module: ModuleOp, name: str, arguments: Sequence[Any], host: Host, steps: int | None = None
) -> list[Any]:
    """What a function returns, for numbers and NumPy arrays, which it changes.

    Arrays that share memory are seen to. Memory that is returned comes as an array, tapes and arenas as they
    are. Raises what the program raises; `Undefined` where it has no meaning, or takes more than `steps`.
    """
    machine = Machine(module, host, steps)
    function = machine.functions[name]
    parameters = [a.type for a in function.body.block.args]
    if len(parameters) != len(arguments):
        raise TypeError(f"@{name} takes {len(parameters)} arguments, not {len(arguments)}")
    values = bound(parameters, arguments)
    for number, (value, type_) in enumerate(zip(values, parameters, strict=True)):
        if isinstance(type_, MemRefType) and not has_layout(value, type_):
            raise TypeError(f"argument {number} of @{name} is not laid out as a {type_}")
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
    machine = Machine(module, host, most)
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


def number(value: Any, type_: Attribute) -> Any:
    """A number, or several, in the type that the IR has."""
    if isinstance(value, Tape | Memref) or value is None:
        return value
    if isinstance(type_, MemRefType):
        return value
    if not isinstance(type_, IndexType | IntegerType | VectorType) and not hasattr(
        type_, "bitwidth"
    ):
        return value
    return np.asarray(value).astype(dtype_of(type_))[()]


class Machine:
    """Runs functions of one module."""

    def __init__(self, module: ModuleOp, host: Host, steps: int | None = None) -> None:
        self.module = module
        self.host = host
        self.left = steps
        self.functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
        self.records: list[list[Any]] = []
        """What activations have kept for their adjoints; a record is a number from 1 on."""
        self.derived: dict[ad.DerivativeOp, Any] = {}

    def call(self, function: func.FuncOp, arguments: Sequence[Any], depth: int) -> list[Any]:
        """What a function returns."""
        frame = Frame(self, depth)
        block = function.body.block
        frame.bind(block.args, arguments)
        return frame.run(block)

    def function(self, name: str) -> func.FuncOp:
        if name not in self.functions:
            raise Unknown(f"there is no function @{name}")
        return self.functions[name]

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Undefined("it takes too many steps")


@dataclass
class Frame:
    """One activation of a function: the values that its ops have made."""

    machine: Machine
    depth: int
    """How many calls may still be nested."""
    values: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    watch: launches.Watch | None = None
    """Looks at what a thread of a device touches, where this is one."""

    def get(self, value: SSAValue) -> Any:
        return self.values[value]

    def all(self, values: Sequence[SSAValue]) -> list[Any]:
        return [self.values[v] for v in values]

    def bind(self, names: Sequence[SSAValue], values: Sequence[Any]) -> None:
        self.values.update(zip(names, values, strict=True))

    def run(self, block: Block) -> list[Any]:
        """Run a block; the operands of its terminator."""
        last = block.last_op
        for op in block.ops:
            if op is last and op.has_trait(IsTerminator):
                return self.all(op.operands)
            self.execute(op)
        return []

    def execute(self, op: Operation) -> None:
        """Run one op; what goes wrong in it is said of it."""
        self.machine.step()
        rule = SCALARS.get(type(op))
        try:
            if rule is not None:
                self.values[op.results[0]] = rule(op, *self.all(op.operands))
            elif type(op) in OPS:
                OPS[type(op)](self, op)
            else:
                raise Unknown("no op that the interpreter knows")
        except (Undefined, Unknown) as error:
            if not hasattr(error, "op"):
                error.op = op  # pyright: ignore[reportAttributeAccessIssue]
                error.args = (f"{said(op)}: {error}",)
            raise


def said(op: Operation) -> str:
    """An op, with its line where it has one."""
    place = line_of(op)
    results = ", ".join(f"%{r.name_hint or '?'}" for r in op.results)
    shown = f"{results} = {op.name}" if results else op.name
    return shown if place is None else f"{place[0]}:{place[1]}: {shown}"


# Control flow.


def branch(frame: Frame, op: scf.IfOp) -> None:
    region = op.true_region if frame.get(op.cond) else op.false_region
    values = frame.run(region.block) if region.blocks else []
    frame.bind(op.results, values)


def loop(frame: Frame, op: array.LoopOp) -> None:
    count = None if op.count is None else int(frame.get(op.count))
    carried, trips = frame.all(op.carried), 0
    body, condition = op.body.block, op.condition_block
    while count is None or trips < count:
        now = [np.int64(trips), *carried]
        if condition is not None:
            frame.bind(condition.args, now)
            if not frame.run(condition)[0]:
                break
        frame.machine.step()
        frame.bind(body.args, now)
        carried = frame.run(body)
        trips += 1
    frame.bind(op.results, [np.int64(trips), *carried])


# Checks.


def python_value(value: Any, type_: Attribute) -> Any:
    """A value as an exception's message or a `print` shows it."""
    if isinstance(value, Memref):
        return value.read()
    if isinstance(type_, IndexType):
        return int(value)
    if value.dtype.kind == "b":
        return bool(value)
    return float(value) if value.dtype == np.float64 else value


def shown(frame: Frame, values: Sequence[SSAValue]) -> list[Any]:
    return [python_value(frame.get(v), v.type) for v in values]


def raise_at(frame: Frame, op: Operation, kind: str, message: str, values: list[Any]) -> None:
    raised = frame.machine.host.exception(kind, message, values)
    if (place := line_of(op)) is not None:
        file, line, column = place
        text = linecache.getline(file, line).strip()
        raised.add_note(f"{file}:{line}:{column}: {text}")
    raise raised


def index(frame: Frame, op: array.IndexOp) -> None:
    given, extent = int(frame.get(op.index)), int(frame.get(op.extent))
    sign = op.sign.data
    found = given + extent if sign == "negative" or (sign == "any" and given < 0) else given
    if not 0 <= found < extent and op.unchecked is None:
        if op.message is not None:
            raise_at(frame, op, "IndexError", op.message.data, [])
        axis = op.axis.value.data
        message = f"index {{}} is out of bounds for axis {axis} with size {{}}"
        raise_at(frame, op, "IndexError", message, [given, extent])
    frame.values[op.result] = np.int64(found)


def raise_if(frame: Frame, op: array.RaiseIfOp) -> None:
    if frame.get(op.condition):
        values = shown(frame, op.operands_shown)
        raise_at(frame, op, op.exception.data, op.message.data, values)


class Retry(Exception):
    """A gradient without guards is not exact: the caller is to run that with guards."""


def retry_if(frame: Frame, op: ad.RetryIfOp) -> None:
    if frame.get(op.condition):
        raise Retry("0 times a value that is not finite: compile with guards=True")


EXACT: dict[type[Operation], tuple[str, Callable[[int, int], int]]] = {
    array.CheckedAddOp: ("+", lambda a, b: a + b),
    array.CheckedSubOp: ("-", lambda a, b: a - b),
    array.CheckedMulOp: ("*", lambda a, b: a * b),
}


def checked(frame: Frame, op: array.CheckedIntOp) -> None:
    sign, compute = EXACT[type(op)]
    a, b = int(frame.get(op.lhs)), int(frame.get(op.rhs))
    found = compute(a, b)
    if not -(2**63) <= found < 2**63:
        message = f"{{}} {sign} {{}} does not fit in 64 bits"
        raise_at(frame, op, "OverflowError", message, [a, b])
    frame.values[op.result] = np.int64(found)


def print_values(frame: Frame, op: array.PrintOp) -> None:
    if op.leaves is None:
        frame.machine.host.show(op.format.data, shown(frame, op.values))


# Calls.


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
    """Its steps, the last first."""
    backward = frame.machine.function(f"{op.target}{activation.BACKWARD}")
    moves = [op.of.index(op.permutation[k]) for k in op.of]
    shadows = frame.all(op.shadows)
    records = frame.machine.records[int(frame.get(op.kept)) - 1]
    for _ in records:
        shadows = [shadows[k] for k in moves]
    for record in reversed(records):
        shadows = [shadows[moves.index(k)] for k in range(len(moves))]
        frame.machine.call(backward, [*record, *shadows], frame.depth)


def too_deep(frame: Frame, op: activation.TooDeepOp) -> None:
    frame.values[op.deep] = np.bool_(frame.depth <= op.frames.value.data)


# Derivatives.


def tape(frame: Frame, op: ad.TapeOp) -> None:
    reserved = None if op.reserved is None else int(frame.get(op.reserved))
    frame.values[op.tape] = Tape(reserved=reserved)


def push(frame: Frame, op: ad.PushOp) -> None:
    made = fresh(op.memref.type, memory_ops.shape_of(frame, op.extents))
    frame.get(op.tape).push(made)
    frame.values[op.memref] = made


def pop(frame: Frame, op: ad.PopOp) -> None:
    segments = frame.get(op.tape).segments
    if not segments:
        raise Undefined("the tape is empty")
    found: Memref = segments.pop()
    shape = memory_ops.shape_of(frame, op.extents)
    lanes = lanes_of(op.memref.type.element_type)
    if found.shape != shape or found.root.cells.shape[1:] != lanes:
        raise Undefined(f"the segment was pushed with the shape {found.shape}, not {shape}")
    frame.values[op.memref] = found


def reader(frame: Frame, op: ad.ReaderOp) -> None:
    frame.values[op.tape] = kept(frame.get(op.source))


def derivative(frame: Frame, op: ad.DerivativeOp) -> None:
    """What the pass that expands derivatives puts in its place."""
    from .derivatives import run_derivative

    run_derivative(frame, op)


def nothing(_frame: Frame, _op: Operation) -> None:
    """What marks a place in the program and does nothing."""


OPS: Mapping[type[Operation], Callable[[Frame, Any], None]] = {
    scf.IfOp: branch,
    array.LoopOp: loop,
    array.MapOp: run_map,
    **memory_ops.OPS,
    **matrices.OPS,
    array.IndexOp: index,
    array.RaiseIfOp: raise_if,
    array.CheckedAddOp: checked,
    array.CheckedSubOp: checked,
    array.CheckedMulOp: checked,
    array.PrintOp: print_values,
    foreign.CallOp: foreign_call,
    foreign.RuleCallOp: rule_call,
    activation.CallOp: activate,
    activation.TooDeepOp: too_deep,
    activation.StackOp: stack,
    activation.StepsOp: steps,
    activation.ReverseStepsOp: reverse_steps,
    ad.TapeOp: tape,
    ad.PushOp: push,
    ad.PopOp: pop,
    ad.ReaderOp: reader,
    ad.HandoverOp: nothing,
    ad.DetachOp: lambda frame, op: frame.bind(op.results, [None]),
    ad.DerivativeOp: derivative,
    ad.RetryIfOp: retry_if,
    device.LaunchOp: launches.launch,
    device.IsReplayedOp: launches.is_replayed,
    device.ThreadOp: launches.thread,
    device.BlockOp: launches.block,
    device.FetchOp: launches.fetch,
    device.PutOp: launches.put,
    device.AtomicAddOp: launches.atomic_add,
}
"""What each op does."""

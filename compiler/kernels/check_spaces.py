"""Check that every memref is in one memory, and that each access uses it as in that memory.

`outline-kernels` decides of each root whether it is the host's or the device's, and types say so from there
on. Code that took the one for the other would read wrong numbers. So this looks at what was decided, by rules
of its own:

- arguments and results are the device's, and so is all that a launch hands over, as its kernel takes it;
- the host loads and stores elements of its own memory, and fetches and puts those of the device;
- views, what a loop carries and what branches yield stay in one memory;
- what is pushed to a tape and what is popped from it is in one memory, also where one half of a gradient
  pushes and the other one pops: the n-th tape that the first returns is the n-th that the second takes.

It changes nothing. What it finds is a fault of the compiler, never of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ...dialects import ad, array, device
from ...dialects.within import every_op
from ..analysis.alias import if_blocks
from ..analysis.views import is_memref
from .placement import handed_on, tape_of

HOST = 0
OWNERS = {HOST: "the host", device.GLOBAL: "the device", device.SHARED: "a block"}


class CheckSpaces(ModulePass):
    """Check that no memref is used as one in another memory."""

    name = "check-spaces"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        kernels = {f.sym_name.data: f for f in functions if device.is_kernel(f)}
        for function in functions:
            is_on_device(function, function.body.block.args)
            for one in every_op(function):
                check_flow(one)
                if not device.is_kernel(function):
                    check_on_host(one, kernels)
        check_tapes([f for f in functions if not device.is_kernel(f)])


def check_flow(op: Operation) -> None:
    """Names of the same memory."""
    match op:
        case array.ViewOp() | array.CollapseOp() | memref.CastOp():
            are_one(op, [op.operands[0], op.results[0]])
        case array.LoopOp():
            blocks = [b for b in (op.condition_block, op.body.block) if b is not None]
            for slot, ways in enumerate(
                zip(op.carried, op.yielded, op.results_carried, strict=True)
            ):
                are_one(op, [*ways, *(b.args[1 + slot] for b in blocks)])
        case scf.IfOp():
            ends = [b.last_op for b in if_blocks(op)]
            for k, result in enumerate(op.results):
                are_one(op, [result, *(e.operands[k] for e in ends if isinstance(e, scf.YieldOp))])
        case _:
            pass


def check_on_host(op: Operation, kernels: dict[str, func.FuncOp]) -> None:
    """Who touches memory, or gives it away."""
    match op:
        case memref.LoadOp() | memref.StoreOp():
            require(op, op.memref, HOST)
        case device.FetchOp() | device.PutOp() | func.ReturnOp():
            is_on_device(op, op.operands)
        case device.LaunchOp():
            is_on_device(op, op.values)
            taken = [a.type for a in kernels[op.target].body.block.args]
            if [v.type for v in op.values] != taken:
                raise VerifyException(f"{op.name} gives @{op.target} other types than it takes")
        case _:
            pass


def check_tapes(functions: Sequence[func.FuncOp]) -> None:
    """Segments of one tape, also where one function hands it to another."""
    users: dict[SSAValue, list[SSAValue]] = {}
    for op in (op for f in functions for op in every_op(f)):
        if isinstance(op, ad.PushOp | ad.PopOp):
            users.setdefault(tape_of(op), []).append(op.memref)
    for first, second in pairwise(functions):
        for given, taken in handed_on(first, second):
            users[taken] = [*users.pop(given, ()), *users.get(taken, ())]
    for segments in users.values():
        for one in segments[-1:]:
            are_one(one.owner, segments)


def is_on_device(op: Operation, values: Iterable[SSAValue]) -> None:
    for value in values:
        if is_memref(value):
            require(op, value, device.GLOBAL)


def require(op: Operation, value: SSAValue, space: int) -> None:
    if (found := device.space_of(value.type)) != space:
        raise VerifyException(
            f"{op.name} takes memory of {OWNERS[found]} for memory of {OWNERS[space]}"
        )


def are_one(op: object, values: Sequence[SSAValue]) -> None:
    """Memrefs that are one, or may be, are in one memory. (`op` is where it is reported.)"""
    spaces = sorted({device.space_of(v.type) for v in values if is_memref(v)})
    if len(spaces) > 1:
        assert isinstance(op, Operation)
        owners = " and ".join(OWNERS[s] for s in spaces)
        raise VerifyException(f"{op.name} takes memory of {owners} for one")

"""Which primal values the adjoint reads.

An op *has an adjoint* when a cotangent can flow through it: active arithmetic, reads and writes of
active memory, and the control flow around them. For each such op this analysis lists what its
adjoint reads of the primal:

- active arithmetic: what the rule of each active operand names (a product: the other factor; a
  quotient or a root: its result);
- memory access: the subscripts, and the numbers in the views between the access and its root;
- control: trip counts and conditions;
- `array.matmul`, products, minima and maxima of whole arrays: the contents of memory.

Nothing is said here about how a value is had again: see `derivative/plan.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects import activation, array, foreign
from ..derivative.rules import SCALAR_RULES
from ..diagnostics import CompileError, Span, line_of
from .activity import Activity

RAISES = array.RAISES
"""Marks a branch that never ends normally: no gradient passes through it."""


@dataclass(frozen=True)
class Contents:
    """What the memref operand `index` of `op` holds just before `op` (or just after it)."""

    op: Operation
    index: int
    after: bool = False

    @property
    def memref(self) -> SSAValue:
        return self.op.operands[self.index]


Need = SSAValue | Contents


class Needed:
    """For each op with an adjoint, the primal values and contents that its adjoint reads."""

    def __init__(self, function: func.FuncOp, activity: Activity) -> None:
        self.function = function
        self.activity = activity
        self._with_adjoint: set[Operation] = set()
        self.by: dict[Need, Operation] = {}
        """Each needed value with the first op that needs it."""
        self._collect(function.body.block)

    def has_adjoint(self, op: Operation) -> bool:
        """True when a cotangent may flow through `op`, or through what it contains."""
        return op in self._with_adjoint

    def _collect(self, block: Block) -> bool:
        """Visit the ops of a block; true when any has an adjoint."""
        found = False
        for op in block.ops:
            if RAISES in op.attributes:
                continue
            inner = False
            if not isinstance(op, array.MapOp):
                for region in op.regions:
                    for nested in region.blocks:
                        inner = self._collect(nested) or inner
            if inner or self._active(op):
                self._with_adjoint.add(op)
                found = True
                for needing in (op, *self._active_in_map(op)):
                    for need in self._needs(needing):
                        self.by.setdefault(need, needing)
        return found

    def _active(self, op: Operation) -> bool:
        match op:
            case memref.LoadOp():
                return self.activity.active(op.res)
            case memref.StoreOp():
                return self.activity.active_memref(op.memref)
            case array.MapOp():
                return any(self.activity.active_memref(o) for o in op.outs)
            case array.MatmulOp():
                return self.activity.active_memref(op.c)
            case foreign.CallOp() | foreign.RuleCallOp():
                written = op.arguments_that("write")
                return any(map(self.activity.active, (*written, *op.results)))
            case activation.CallOp():
                return any(map(self.activity.active, (*op.written(), *op.called)))
            case array.AllocOp() | memref.AllocaOp():
                return self.activity.active_memref(op.results[0])
            case scf.IfOp():
                numbers = (r for r in op.results if not isinstance(r.type, MemRefType))
                return any(map(self.activity.active, numbers))  # arrays are chosen at their uses
            case _:
                return type(op) in SCALAR_RULES and self.activity.active(op.results[0])

    def _needs(self, op: Operation) -> Iterator[Need]:
        match op:
            case memref.LoadOp() | memref.StoreOp():
                yield from op.indices
                yield from descriptor_values(op.memref)
            case array.MapOp():
                yield from self._map_needs(op)
            case array.MatmulOp():
                yield from self._matmul_needs(op)
            case foreign.CallOp():
                raise without_rule(op)
            case foreign.RuleCallOp():
                yield from self._call_needs(op)
            case activation.CallOp():
                yield op.record
                for argument in op.arguments:
                    if isinstance(argument.type, MemRefType):
                        yield from descriptor_values(argument)
            case array.AllocOp():
                yield from op.extents
            case array.LoopOp():
                yield trips_source(op)
                for carried in op.carried:
                    yield from descriptor_values(carried)
            case scf.IfOp():
                yield op.cond
            case _:
                yield from self.rule_needs(op)

    def rule_needs(self, op: Operation) -> Iterator[SSAValue]:
        """What the scalar rule of `op` reads, given which operands are active."""
        for term, operand in zip(SCALAR_RULES.get(type(op), ()), op.operands, strict=False):
            if term is not None and self.activity.active(operand):
                for name in term.needs:
                    yield getattr(op, name)

    def _active_in_map(self, op: Operation) -> Iterator[Operation]:
        """The ops of a map's body that have a rule to apply."""
        if isinstance(op, array.MapOp):
            for inner in op.body.block.ops:
                if type(inner) in SCALAR_RULES and self.activity.active(inner.results[0]):
                    yield inner

    def _map_needs(self, op: array.MapOp) -> Iterator[Need]:
        yield from op.extents
        for operand in (*op.ins, *op.outs):
            if self.activity.active_memref(operand):
                yield from descriptor_values(operand)
        outs_start = len(op.extents) + len(op.ins)
        for position, (out, kind) in enumerate(zip(op.outs, op.out_kinds, strict=True)):
            if kind not in ("store", "add") and self.activity.active_memref(out):
                yield op.yielded[position]
                if kind != "mul":
                    yield Contents(op, outs_start + position, after=True)

    def _matmul_needs(self, op: array.MatmulOp) -> Iterator[Need]:
        for operand in (op.a, op.b, op.c):
            yield from descriptor_values(operand)
        if self.activity.active_memref(op.a):
            yield Contents(op, 1)
        if self.activity.active_memref(op.b):
            yield Contents(op, 0)

    def _call_needs(self, op: foreign.RuleCallOp) -> Iterator[Need]:
        for argument, name in list(zip(op.operands, op.names, strict=True))[
            op.outside.value.data :
        ]:
            if self.activity.active(argument):
                raise refusal(
                    op,
                    f"the gradient needs the derivative with respect to `{name.data}`, which the function "
                    "reads from outside, and of which its rule says nothing",
                    f"make `{name.data}` a parameter of the function",
                )
        for kind, number in op.taken:
            if kind == "result":
                yield op.results[number]
            elif kind in ("value", "after"):
                operand = op.operands[number]
                yield (
                    Contents(op, number, after=kind == "after")
                    if isinstance(operand.type, MemRefType)
                    else operand
                )
        for operand in op.operands:
            if isinstance(operand.type, MemRefType):
                yield from descriptor_values(operand)


def refusal(op: Operation, message: str, way_out: str) -> CompileError:
    """A compile error at the source of `op`."""
    at = line_of(op)
    span = None if at is None else Span(at[0], at[1], at[2] - 1, at[1], at[2])
    return CompileError(span, message, way_out)


def without_rule(op: foreign.CallOp) -> CompileError:
    """What a foreign function computes has no derivative that anybody knows."""
    name = op.callee.data.removeprefix("mutad_special_")
    if op.convention.data == "c" and name.startswith("mutad_foreign_"):
        name = name.split("_", 3)[3]
    name = name.removeprefix("__pyx_fuse_1")
    return refusal(
        op,
        f"the gradient needs the derivative of `{name}`, into which the compiler cannot see",
        f"write its rule (`@mutad.rule({name}, ...)`), or call it on `mutad.stop_gradient(x)`",
    )


def trips_source(loop: array.LoopOp) -> SSAValue:
    """The number of trips; of a counted loop its count, which the segments of its tapes have for extent."""
    counted = loop.condition_block is None and loop.count is not None
    return cast(SSAValue, loop.count) if counted else loop.trips


def descriptor_values(memref_value: SSAValue) -> Iterator[SSAValue]:
    """The numbers that say where and how large a memref is: what rebuilding the view takes."""
    pending = [memref_value]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        match owner:
            case array.ViewOp():
                yield from (*owner.offsets, *owner.extents, *owner.steps)
                pending.append(owner.source)
            case array.CollapseOp():
                yield from owner.extents
                pending.append(owner.source)
            case memref.CastOp():
                pending.append(owner.source)
            case array.AllocOp():
                yield from owner.extents
            case scf.IfOp() if isinstance(value, OpResult):
                yield owner.cond
                for region in owner.regions:
                    terminator = region.block.last_op
                    assert isinstance(terminator, scf.YieldOp)
                    pending.append(terminator.operands[value.index])
            case array.LoopOp():
                yield trips_source(owner)
                pending.extend(owner.carried)
            case Block() if isinstance(value, BlockArgument):
                loop = owner.parent_op()
                if isinstance(loop, array.LoopOp):
                    pending.extend(loop.carried)
            case _:
                pass


def is_float(type_: Attribute) -> bool:
    from xdsl.dialects.builtin import Float32Type, Float64Type

    return isinstance(type_, Float32Type | Float64Type)

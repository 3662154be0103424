"""Loop nests that are functions of their own.

LLVM's time for a function grows faster than the function. Two kinds of nests are taken out of it:

- Copies that seldom run. A nest whose checks are hoisted stands there twice: as it was written, for the
  arguments with which it raises, and without its checks. What surely raises is not optimized at all::

    br i1 %bad, label %raising, label %merge      define internal i32 @nest_0(ptr %ctx, ptr %x, i64 %n)
    raising:                                          cold noinline optnone { ... }
      %status = call i32 @nest_0(...)

- Nests in a loop that is huge (`is_in_huge_loop`), say forty loops over a grid in a loop over time.

Variables stay registers, on both sides of the call: the function gets the address of a copy of each, which
it reads at its begin and writes at its end, and the kernel reads it back. (LLVM has a variable in a register
only if no function knows where it is; a loop that adds to one in memory under a condition is no vector code.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.carried_cells import cell_of, is_cell
from .checks_to_llvm import CHECK_OPS
from .kernel_state import Descriptor, KernelState, memory_type, value_type
from .llvm_text import ALIGNED, SLOT, FunctionText
from .outlined import Outlined
from .parallel_regions import OnDemand
from .polls import fuel
from .scalars_to_llvm import SCALAR_OPS

RAISING = "cold noinline optnone nounwind"
"""What surely raises: compiled op by op."""
CHECKED = "noinline optsize nounwind"
"""What may raise: compiled to be small."""
SMALL = "noinline nounwind"
"""What runs where arrays are small."""
FAST = f"noinline nounwind {ALIGNED}"
"""What is part of a huge loop."""
HUGE = 600
"""Ops of a loop above which the nests in it are functions: about 3000 lines."""
LEAST = 12
"""Ops of such a nest: fewer take LLVM less than a call of them."""

ALLOWED = (
    *(array.LoopOp, array.YieldOp, array.ConditionOp, array.ViewOp, array.CollapseOp),
    *(array.StrideOp, array.OverlapOp, scf.IfOp, scf.YieldOp, vector.LoadOp, vector.StoreOp),
    *(memref.LoadOp, memref.StoreOp, memref.AllocaOp, memref.DimOp, memref.CastOp, array.AllocOp),
)
"""Beside scalar ops and checks, what may stand in a function of its own."""


class CopyWriter(Protocol):
    """Who writes the kernel."""

    state: KernelState
    nests_apart: bool

    def within(self, state: KernelState, write: Callable[[], None]) -> None:
        """Write into another state."""


def write_apart(
    writer: CopyWriter, op: Operation, attributes: str, write: Callable[[], None]
) -> None:
    """What `write` writes of `op` as a function and its call; in place where that cannot be."""
    if not writer.nests_apart or not may_stand_apart(writer.state, op):
        write()
        return
    made = NestApart(writer.state, op)
    writer.within(made.inside, write)
    made.call(attributes)


class OpCounts(dict[Operation, int]):
    """How many ops are in an op, itself included."""

    def __missing__(self, op: Operation) -> int:
        self[op] = len(every_op(op))
        return self[op]


def is_in_huge_loop(op: array.LoopOp, counts: OpCounts) -> bool:
    """Whether the loop around a nest is so large that LLVM is to see the nest alone."""
    around = op.parent_op()
    while around is not None and not isinstance(around, array.LoopOp):
        around = around.parent_op()
    return around is not None and counts[around] > HUGE and counts[op] >= LEAST


def may_stand_apart(state: KernelState, op: Operation) -> bool:
    """Whether all that `op` does can be done by a function that returns nothing but a status."""
    if state.registers or any(result.first_use for result in op.results):
        return False
    ops = every_op(op)
    if not any(isinstance(one, array.LoopOp) for one in ops) or not all(map(is_allowed, ops)):
        return False
    return all(may_be_handed_in(state, value) for value in memory_from_outside(ops))


def is_allowed(op: Operation) -> bool:
    return isinstance(op, ALLOWED) or type(op) in SCALAR_OPS or type(op) in CHECK_OPS


def memory_from_outside(ops: list[Operation]) -> Iterator[SSAValue]:
    own: set[SSAValue] = {result for op in ops for result in op.results}
    own.update(a for op in ops for region in op.regions for b in region.blocks for a in b.args)
    used = dict.fromkeys(operand for op in ops for operand in op.operands)
    return (v for v in used if v not in own and isinstance(v.type, MemRefType))


def may_be_handed_in(state: KernelState, value: SSAValue) -> bool:
    """Not what may be one of several variables."""
    return cell_of(value) is not None or not any(map(is_cell, state.alias.roots(value)))


class NestApart(Outlined):
    """The function of a nest."""

    def __init__(self, outer: KernelState, op: Operation) -> None:
        super().__init__(outer, f"nest_{len(outer.functions)}")
        outer.functions[self.name] = ""  # the name is taken
        self.inside.scalars = OnDemand(outer.scalars, self.scalar)
        self.inside.memrefs = OnDemand(outer.memrefs, self.memref)
        self.inside.group = ""
        self.copies: dict[str, tuple[str, str]] = {}
        """By the address of a variable, that of its copy, and the type."""
        self.variables: dict[str, tuple[str, str]] = {}
        """By the parameter that is the address of a copy: the function's own variable, and the type."""
        if outer.memory.polls:
            self.inside.text.fuel = self.parameter("ptr", self.copy(fuel(outer), "i64"))
        if self.inside.debug is not None:
            self.inside.text.tag = self.inside.debug.at(op.location) or self.inside.debug.start

    def scalar(self, value: SSAValue) -> str:
        return self.parameter(value_type(value.type), self.outer.scalars[value])

    def memref(self, value: SSAValue) -> Descriptor:
        given = self.outer.memrefs[value]
        if cell_of(value) is None:
            return self.descriptor(given)
        type_ = memory_type(given.element)
        copy = self.copy(given.pointer, type_)
        return replace(
            self.descriptor(replace(given, pointer=copy)), pointer=self.variable(copy, type_)
        )

    def variable(self, copy: str, type_: str) -> str:
        """The address of the function's own variable, which begins as the copy."""
        text, given = self.inside.text, self.parameter("ptr", copy)
        if given not in self.variables:
            own, value = text.alloca(type_, "own"), text.name()
            text.entry.append(f"  {value} = load {type_}, ptr {given}, align {SLOT}")
            text.entry.append(f"  store {type_} {value}, ptr {own}, align {SLOT}")
            self.variables[given] = own, type_
        return self.variables[given][0]

    def copy(self, variable: str, type_: str) -> str:
        """The address of a variable's copy."""
        if variable not in self.copies:
            self.copies[variable] = self.outer.text.alloca(type_, "copy"), type_
        return self.copies[variable][0]

    def call(self, attributes: str) -> None:
        """Add the function to the module, and call it here."""
        self.outer.reserved = self.inside.reserved  # what grows there has its own address space
        for given, (own, type_) in self.variables.items():
            move(self.inside.text, type_, own, given)
        definition, call = self.definition(attributes, "ptr captures(none)")
        self.outer.functions[self.name] = definition
        given = call.replace(")", ",")
        used = {v: c for v, c in self.copies.items() if f"ptr {c[0]}," in given}
        for variable, (copy, type_) in used.items():
            move(self.outer.text, type_, variable, copy)
        self.write_call(call)
        for variable, (copy, type_) in used.items():
            move(self.outer.text, type_, copy, variable)


def move(text: FunctionText, type_: str, source: str, target: str) -> None:
    """Store what is at one address at another one."""
    value = text.value(f"load {type_}, ptr {source}, align {SLOT}")
    text.do(f"store {type_} {value}, ptr {target}, align {SLOT}")

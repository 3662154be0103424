"""What a gradient saves, for people: how much, where, because of which store, and for what.

`explain` evaluates the plan's symbolic sizes for given arguments; it runs nothing of the program.
A printed explanation::

    stencil.py:14: 8 * (u.shape[0] - 2) * steps = 798,400 bytes
            u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
        saved: u, killed by line 14, needed by `arith.mulf` of line 14
    798,400 bytes in all
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects import array
from ..diagnostics import line_of
from .forward_sweep import hint_of
from .plan import Save, Version, base_extents, bytes_of, enclosing_loops
from .reverse import only_function, plan_gradient

MOST_ITERATIONS = 100_000
"""Sums over the iterations of a loop whose sizes vary stop here."""


@dataclass(frozen=True)
class SavedValue:
    """One thing that the gradient saves."""

    name: str
    file: str
    line: int
    formula: str
    bytes: int | None
    """None where only a run can tell (the trips of a `while`)."""
    killed_by: int | None
    """The line of the store that destroys it; None where it was never in memory."""
    needed_by: str

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        total = "unknown until it runs" if self.bytes is None else f"{self.bytes:,} bytes"
        killer = "" if self.killed_by is None else f", killed by line {self.killed_by}"
        return (
            f"{self.file}:{self.line}: {self.formula} = {total}\n        {source}\n"
            f"    saved: {self.name}{killer}, needed by {self.needed_by}"
        )


@dataclass(frozen=True)
class Explanation:
    """The plan of a gradient, in bytes."""

    saves: tuple[SavedValue, ...]

    @property
    def saved_bytes(self) -> int | None:
        """The bytes that the gradient saves; None where only a run can tell."""
        known = [s.bytes for s in self.saves if s.bytes is not None]
        return sum(known) if len(known) == len(self.saves) else None

    def __str__(self) -> str:
        total = self.saved_bytes
        end = "unknown until it runs" if total is None else f"{total:,} bytes in all"
        return "\n".join([*map(str, self.saves), end if self.saves else "nothing is saved"])


def explain(module: ModuleOp, active: Sequence[int], saves: str, arguments: Sequence[Any]) -> Explanation:
    """The plan for `module`'s function, sized for the values of its IR arguments."""
    function = only_function(module)
    plan = plan_gradient(function, active, saves)
    values: dict[SSAValue, Any] = dict(zip(function.body.block.args, arguments, strict=True))
    return Explanation(tuple(saved_value(s, values) for s in plan.saves))


def saved_value(save: Save, arguments: dict[SSAValue, Any]) -> SavedValue:
    file, line, _ = line_of(save.at) or ("?", 0, 0)
    killer = line_of(save.killer) if save.killer is not None else None
    needed = line_of(save.needed_by)
    where = "" if needed is None else f" of line {needed[1]}"
    return SavedValue(
        hint_of(save),
        file,
        line,
        formula_of(save),
        Sizes(arguments).bytes_of(save),
        None if killer is None else killer[1],
        f"`{save.needed_by.name}`{where}",
    )


def numbers_of(save: Save) -> list[SSAValue]:
    """The extents of one segment of the save, as far as the program computes them."""
    counts = [loop.count for loop in save.loops if loop.count is not None]
    if isinstance(save.node, Version):
        return [*counts, *(base_extents(save.node.base) or ())]
    return [*counts, *(save.at.extents if isinstance(save.at, array.MapOp) else ())]


def loops_around(save: Save) -> list[array.LoopOp]:
    """The loops that push one segment in each iteration, outermost first."""
    block = save.push_before.parent_block()
    return [] if block is None else list(enclosing_loops(block))[::-1]


def asked_for(save: Save) -> SSAValue | None:
    """The array whose own shape the segment takes, where no op of the program states it."""
    node = save.node
    return node.base if isinstance(node, Version) and not base_extents(node.base) else None


class Sizes:
    """Evaluates index arithmetic for given arguments."""

    def __init__(self, arguments: dict[SSAValue, Any]) -> None:
        self.arguments = arguments
        self.inductions: dict[SSAValue, int] = {}
        self.used: set[SSAValue] = set()
        self.left = MOST_ITERATIONS

    def bytes_of(self, save: Save) -> int | None:
        shape = self.shape(base) if (base := asked_for(save)) is not None else ()
        numbers = numbers_of(save)

        def segment() -> int | None:
            extents = [self.value(n) for n in numbers]
            known = [max(n, 0) for n in extents if n is not None]
            if shape is None or len(known) < len(extents):
                return None
            return prod(known) * prod(shape) * bytes_of(save.element)

        return self.over(loops_around(save), segment)

    def over(self, loops: Sequence[array.LoopOp], one: Callable[[], int | None]) -> int | None:
        """The sum of `one` over all iterations of the nest."""
        if not loops:
            return one()
        loop, inner = loops[0], loops[1:]
        trips = self.value(loop.results[0])
        if trips is None or trips <= 0:
            return None if trips is None else 0
        self.used.discard(loop.induction)
        total = 0
        for i in range(trips):
            self.left -= 1
            self.inductions[loop.induction] = i
            part = self.over(inner, one)
            if part is None or self.left < 0:
                return None
            if i == 0 and loop.induction not in self.used:
                return part * trips
            total += part
        return total

    def shape(self, base: SSAValue) -> tuple[int, ...] | None:
        argument = self.arguments.get(base)
        return None if argument is None else tuple(argument.shape)

    def value(self, number: SSAValue) -> int | None:
        """An integer of the program, or None where only a run can tell."""
        if number in self.inductions:
            self.used.add(number)
            return self.inductions[number]
        if number in self.arguments:
            return int(self.arguments[number])
        op = number.owner
        if not isinstance(op, Operation):
            return None
        match op:
            case arith.ConstantOp():
                return array.constant_value(number)
            case array.LoopOp() if number is op.trips and op.condition_block is None:
                count = None if op.count is None else self.value(op.count)
                return None if count is None else max(count, 0)
            case memref.DimOp():
                return self.extent(op)
            case array.IndexOp():
                return self.value(op.index)
            case _ if type(op) in ARITHMETIC:
                a, b = (self.value(v) for v in op.operands)
                return None if a is None or b is None else ARITHMETIC[type(op)][1](a, b)
            case _:
                return None

    def extent(self, op: memref.DimOp) -> int | None:
        axis, source = array.constant_value(op.index), op.source
        if axis is None:
            return None
        owner = source.owner
        if isinstance(owner, array.ViewOp | array.AllocOp):
            return self.value(owner.extents[axis])
        if isinstance(source, BlockArgument) and isinstance(loop := source.owner.parent_op(), array.LoopOp):
            assert isinstance(source.type, MemRefType)
            carried = loop.carried[source.index - 1]
            shape = self.shape(carried)
        else:
            shape = self.shape(source)
        return None if shape is None else shape[axis]


ARITHMETIC: dict[type[Operation], tuple[str, Callable[[int, int], int]]] = {
    arith.AddiOp: ("+", lambda a, b: a + b),
    arith.SubiOp: ("-", lambda a, b: a - b),
    arith.MuliOp: ("*", lambda a, b: a * b),
    arith.MaxSIOp: ("max", max),
    arith.MinSIOp: ("min", min),
    array.CheckedAddOp: ("+", lambda a, b: a + b),
    array.CheckedSubOp: ("-", lambda a, b: a - b),
    array.CheckedMulOp: ("*", lambda a, b: a * b),
    array.FloorDivOp: ("//", lambda a, b: a // b if b else 0),
    array.FloorModOp: ("%", lambda a, b: a % b if b else 0),
}
"""How an op is written, and what it computes."""


def formula_of(save: Save) -> str:
    """The bytes of a save as a product of what the program calls its sizes."""
    factors = [str(bytes_of(save.element))]
    factors += [written(loop.results[0]) for loop in loops_around(save)]
    factors += [written(n) for n in numbers_of(save)]
    if (base := asked_for(save)) is not None:
        factors.append(f"{base.name_hint or 'array'}.size")
    return " * ".join(factors)


def written(number: SSAValue) -> str:
    """An integer of the program as Python would write it."""
    op = number.owner
    if not isinstance(op, Operation):
        return number.name_hint or "?"
    match op:
        case arith.ConstantOp():
            return str(array.constant_value(number))
        case array.LoopOp():
            if op.count is not None and op.condition_block is None:
                return written(op.count)
            line = line_of(op)
            return "trips" if line is None else f"(trips of line {line[1]})"
        case memref.DimOp():
            axis = array.constant_value(op.index)
            return f"{op.source.name_hint or 'array'}.shape[{axis}]"
        case array.IndexOp():
            return written(op.index)
        case _ if type(op) in ARITHMETIC:
            sign, a, b = ARITHMETIC[type(op)][0], written(op.operands[0]), written(op.operands[1])
            return f"{sign}({a}, {b})" if sign.isalpha() else f"({a} {sign} {b})"
        case _:
            return number.name_hint or "?"

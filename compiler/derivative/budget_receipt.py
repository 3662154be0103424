"""What a receipt says of a budget: whether it holds all that is saved, else how often steps are run again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from ...dialects import activation, array
from ..diagnostics import line_of
from .segments import ArrayExtent, bytes_of
from .sizes import LONGEST_SUM, Sizes

Outcome = tuple[int | None, int]
"""How many steps are run in all, None where the bytes are too few, and the least number that would do."""

Schedule = Callable[[int, int, int, int, int], Outcome]
"""Of so many steps, the bytes of a restart state, of what a step saves, of the copies, and of the budget."""


@dataclass(frozen=True)
class Budget:
    """The budget of a gradient."""

    bytes: int
    line: int | None
    """Where the loop begins whose steps may be run again; None where there is none."""
    steps: int | None = None
    """How many steps the loop has; None where the arguments do not tell."""
    executed: int | None = None
    """How many are run in all, to have the values of each; None where nobody knows, or it is too small."""
    least: int | None = None
    """The least budget that would do."""

    @property
    def is_met(self) -> bool | None:
        """Whether the gradient can be computed; None where the arguments do not tell."""
        return None if self.least is None else self.least <= self.bytes

    def __str__(self) -> str:
        begin = f"budget: {self.bytes:,} bytes"
        if self.is_met is False:
            return f"{begin}, too few: at least {self.least:,} are needed"
        if self.line is None:
            return f"{begin}: no loop can be checkpointed"
        if self.steps is None or self.executed is None:
            return f"{begin}: the loop on line {self.line} is checkpointed where they hold less than all"
        ratio = self.executed / max(self.steps, 1)
        return (
            f"{begin}: the loop on line {self.line} runs {self.executed:,} steps for its {self.steps:,}, "
            f"{ratio:.2f} for each"
        )


def budget_of(
    function: func.FuncOp,
    arguments: Sequence[Any] | None,
    saved: int | None,
    memory: int,
    schedule: Schedule | None,
) -> Budget:
    """The budget of a gradient function in steps, or of one that has no such loop and has `saved` so much."""
    found = [op for op in function.walk() if isinstance(op, activation.StepsOp)]
    if not found:
        return Budget(memory, None, least=saved)
    steps = found[0]
    place = line_of(steps)
    line = 0 if place is None else place[1]
    sizes = Sizes(function, arguments)
    numbers = steps.count, steps.others, steps.state, steps.whole
    count, others, state, whole = map(sizes.evaluate, numbers)
    values = most_saved(steps, sizes, count)
    copies = copied(steps, sizes)
    if schedule is None or count is None or state is None or values is None or copies is None:
        return Budget(memory, line, count)
    if others is None or whole is None:
        return Budget(memory, line, count)
    executed, least = schedule(count, state, values, copies, memory - others)
    if whole <= memory:
        executed = count
    return Budget(memory, line, count, executed, min(least + others, whole))


def most_saved(steps: activation.StepsOp, sizes: Sizes, count: int | None) -> int | None:
    """What the step saves that saves most: where steps differ, a loop over all has found it."""
    load = steps.saved.owner
    if not isinstance(load, memref.LoadOp):
        return sizes.evaluate(steps.saved)
    stores = [u.operation for u in load.memref.uses if isinstance(u.operation, memref.StoreOp)]
    inside = next(s for s in stores if isinstance(s.parent_op(), array.LoopOp))
    loop, reached = inside.parent_op(), inside.value.owner
    assert isinstance(loop, array.LoopOp)
    assert isinstance(reached, arith.MaxSIOp)
    most = 0
    for number in range(min(count or 0, LONGEST_SUM)):
        sizes.intervals.set_induction(loop.induction, number)
        one = sizes.evaluate(reached.rhs)
        if one is None:
            break
        most = max(most, one)
    else:
        sizes.intervals.forget_inductions()
        return None if count is None or count > LONGEST_SUM else most
    sizes.intervals.forget_inductions()
    return None


def copied(steps: activation.StepsOp, sizes: Sizes) -> int | None:
    """The bytes of the copies on which steps are run again."""
    total = 0
    for k in steps.changing:
        of = steps.arguments[k]
        size: int | None = bytes_of(cast("MemRefType[Attribute]", of.type).element_type)
        for axis in range(cast("MemRefType[Attribute]", of.type).get_num_dims()):
            extent = sizes.evaluate(ArrayExtent(of, axis))
            size = None if extent is None or size is None else size * extent
        if size is None:
            return None
        total += -(-size // 8) * 8
    return total

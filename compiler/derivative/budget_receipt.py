"""What a receipt says of a budget: whether it holds all that is saved, else how often steps are run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import activation, array
from ..diagnostics import line_of
from ..rules.calls import private_functions
from .intervals import Taken
from .segments import ArrayExtent, bytes_of
from .sizes import LONGEST_SUM, Sizes

Loop = tuple[int, int, int, int, int, int, int, int, Any]
"""The count, the bytes of a state, of what a step keeps at least and at most, and of the copies, whether
others follow, whether it is reversed upwards, what loops within the step need, and the largest of these, if
there is one."""

Outcome = tuple[list[tuple[int, int]] | None, int | None, int | None]
"""How often steps of each loop, and of the one within, are run, None where the bytes are too few; the least
number that would do, and the bytes of the file."""


class Schedule(Protocol):
    """Of loops, the first first, in so many bytes, with a file for more or without."""

    def __call__(self, loops: Sequence[Loop], bytes_: int, /, *, spills: bool) -> Outcome: ...


ALIGNED = 8


@dataclass(frozen=True)
class CheckpointedLoop:
    """A loop whose steps may be run again."""

    line: int
    steps: int | None = None
    """How many steps it has; None where the arguments do not tell."""
    executed: int | None = None
    """How many are run in all, for the values of each; None where that is unknown, or nothing would do."""
    inner_steps: int | None = None
    inner_executed: int | None = None
    """The same of the loop within its step."""

    def __str__(self) -> str:
        if self.steps is None or self.executed is None:
            return f"the loop on line {self.line} is checkpointed where they hold less than all"
        text = f"the loop on line {self.line} runs {shown(self.executed, self.steps)}"
        if self.inner_executed and self.inner_steps:
            text += f"; that within it {shown(self.inner_executed, self.inner_steps)}"
        return text


def shown(executed: int, steps: int) -> str:
    return f"{executed:,} steps for its {steps:,}, {executed / max(steps, 1):.2f} for each"


@dataclass(frozen=True)
class Budget:
    """The budget of a gradient."""

    bytes: int
    loops: tuple[CheckpointedLoop, ...] = ()
    """Those whose steps may be run again."""
    least: int | None = None
    """The least budget that would do."""
    folder: str = ""
    """Where the file is for which memory has no room; "" where there is none."""
    disk_bytes: int | None = 0
    """How large that becomes; None where that is unknown."""
    copied_bytes: int = 0
    """Of the copies of the arguments from which `back` of `vjp` runs all again, where it does."""

    @property
    def line(self) -> int | None:
        """Where the first of the loops begins; None where there is none."""
        return self.loops[0].line if self.loops else None

    @property
    def steps(self) -> int | None:
        """How many steps the loops have; None where the arguments do not tell."""
        return total([one.steps for one in self.loops])

    @property
    def executed(self) -> int | None:
        """How many are run in all; None where that is unknown, or the budget is too small."""
        return total([one.executed for one in self.loops])

    @property
    def is_met(self) -> bool | None:
        """Whether the gradient can be computed; None where the arguments do not tell."""
        return None if self.least is None else self.least <= self.bytes

    def to_dict(self) -> dict[str, Any]:
        """The fields, and what they come to."""
        summed = ("line", "steps", "executed", "is_met")
        return {**asdict(self), **{name: getattr(self, name) for name in summed}}

    def __str__(self) -> str:
        begin = f"budget: {self.bytes:,} bytes"
        if self.copied_bytes:
            begin += f", beside {self.copied_bytes:,} bytes of arguments from which `back` runs all again"
        if self.disk_bytes:
            begin += f", and {self.disk_bytes:,} bytes in a file in {self.folder}"
        elif self.disk_bytes is None:
            begin += f", and as many as it takes in a file in {self.folder}"
        if self.is_met is False:
            return f"{begin}, too few: at least {self.least:,} are needed"
        if not self.loops:
            return f"{begin}: no loop can be checkpointed"
        return f"{begin}: {'; '.join(map(str, self.loops))}"


def total(numbers: Sequence[int | None]) -> int | None:
    known = [n for n in numbers if n is not None]
    return sum(known) if numbers and len(known) == len(numbers) else None


def budget_of(
    function: func.FuncOp,
    arguments: Sequence[Any] | None,
    saved: int | None,
    memory: int,
    schedule: Schedule | None,
    folder: str = "",
) -> Budget:
    """The budget of a gradient function in steps, or of one that has no such loop and has `saved` so much."""
    every = [op for op in function.walk() if isinstance(op, activation.StepsOp)]
    if not every:
        return Budget(memory, least=saved)
    sizes = Sizes(function, arguments)
    found = [op for op in every if may_run(op, sizes)]
    lines = [0 if (place := line_of(op)) is None else place[1] for op in found]
    counts = [None if op.goes_on else sizes.evaluate(op.count) for op in found]
    unknown = tuple(map(CheckpointedLoop, lines, counts))
    untold = Budget(memory, unknown, None, folder, None if folder else 0)
    stack = next(op for op in function.walk() if isinstance(op, activation.StackOp))
    others, whole = sizes.evaluate(stack.others), sizes.evaluate(stack.whole)
    loops = [
        loop
        for op, count in zip(found, counts, strict=True)
        if count is not None and (loop := numbers_of(op, sizes, count)) is not None
    ]
    if schedule is None or others is None or whole is None or len(loops) < len(found):
        return untold
    executed, least, filed = schedule(loops, memory - others, spills=bool(folder))
    if whole <= memory:
        filed = 0
        executed = [(loop[0], loop[0] * inner_count(loop)) for loop in loops]
    least = None if least is None else min(least + others, whole)
    if executed is None:
        return replace(untold, least=least)
    told = [
        CheckpointedLoop(line, loop[0], ran, loop[0] * inner_count(loop) or None, within or None)
        for line, loop, (ran, within) in zip(lines, loops, executed, strict=True)
    ]
    return Budget(memory, tuple(told), least, folder, filed)


def may_run(steps: activation.StepsOp, sizes: Sizes) -> bool:
    """Whether the arguments let a loop run that stands in branches."""
    op: Operation = steps
    while (above := op.parent_op()) is not None:
        if isinstance(above, scf.IfOp) and isinstance(test := above.cond.owner, arith.CmpiOp):
            taken = Taken(test, op.parent_region() is above.true_region)
            if sizes.evaluate(taken) == 0:
                return False
        op = above
    return True


def inner_count(loop: Loop) -> int:
    return 0 if loop[-1] is None else loop[-1][0]


def numbers_of(steps: activation.StepsOp, sizes: Sizes, count: int) -> Loop | None:
    """What the arguments say of a loop, if they say it all."""
    state, copies = sizes.evaluate(steps.state), copied(steps, sizes)
    found = [most(operand, sizes, count) for operand in steps.operands[2:8]]
    if state is None or copies is None or None in found:
        return None
    low, full, least, inner, inner_state, inner_saved = (n or 0 for n in found)
    if inner < 0 or has_deeper_loops(steps):
        return None
    upwards = int(all(one.upwards is not None for one in loops_within(steps)))
    kept = inner_saved, inner_saved, 0, 0, upwards, 0
    within = (inner, inner_state, *kept, None) if least else None
    ways = int(steps.followed is not None), int(steps.upwards is not None)
    return (count, state, low, full, copies, *ways, least, within)


def has_deeper_loops(steps: activation.StepsOp) -> bool:
    """Whether loops within the step have such loops themselves, of which nothing is said here."""
    return any(loops_within(inner) for inner in loops_within(steps))


def loops_within(steps: activation.StepsOp) -> list[activation.StepsOp]:
    module: Operation = steps
    while (above := module.parent_op()) is not None:
        module = above
    forward = private_functions(module)[f"{steps.target}{activation.FORWARD}"]
    return [op for op in forward.walk() if isinstance(op, activation.StepsOp)]


def most(number: SSAValue, sizes: Sizes, count: int) -> int | None:
    """A number of the step that saves most: where steps differ, a loop over all has found it.

    Or the sum of two: what a step keeps itself, and what its loops keep.
    """
    load = number.owner
    if isinstance(load, arith.AddiOp):
        terms = [most(operand, sizes, count) for operand in load.operands]
        known = [term for term in terms if term is not None]
        return sum(known) if len(known) == len(terms) else None
    if not isinstance(load, memref.LoadOp):
        return sizes.evaluate(number)
    stores = [u.operation for u in load.memref.uses if isinstance(u.operation, memref.StoreOp)]
    inside = next(s for s in stores if isinstance(s.parent_op(), array.LoopOp))
    loop, reached = inside.parent_op(), inside.value.owner
    assert isinstance(loop, array.LoopOp)
    assert isinstance(reached, arith.MaxSIOp)
    if count > LONGEST_SUM:
        return None
    largest = 0
    try:
        for step in range(count):
            sizes.intervals.set_induction(loop.induction, step)
            one = sizes.evaluate(reached.rhs)
            if one is None:
                return None
            largest = max(largest, one)
    finally:
        sizes.intervals.forget_inductions()
    return largest


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
        total += -(-size // ALIGNED) * ALIGNED
    return total

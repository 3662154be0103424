"""Make the bodies of loops whose gradient saves much private functions, so that their steps can be run again.

Why here: before the derivative, which writes a forward and a backward function of each (`activation_pairs`).
The reverse sweep then runs steps again from restart states where a budget does not hold the saved values of
all (`activation.steps`).

Before::

    func.func @f(%u : memref<?xf64>, %k : f64, %n : index) {
      %trips = array.loop %i to %n do {
        array.map(...) ins(%u) outs(%u) ...
        array.yield
      }
      func.return
    }

After::

    func.func @f(%u : memref<?xf64>, %k : f64, %n : index) {
      %k_cell = memref.alloca() : memref<f64>
      memref.store %k, %k_cell[] : memref<f64>
      %trips = array.loop %i to %n do {
        %r = activation.call @f_step(%i, %u, %k_cell : index, memref<?xf64>, memref<f64>) frames 0
          reads [1, 2] writes [1]
        array.yield
      } {checkpointed = 1000000 : i64, overwritten = array<i64>}
      func.return
    }
    func.func private @f_step(%i : index, %u : memref<?xf64>, %k_cell : memref<f64>) { ... }

`outline_steps` writes the functions. The pass takes the loops of the top level, also those in branches, whose
iterations save arrays: their tapes have more axes than a restart state. If there are none, it takes the loop
that saves most; where it is one of numbers, its steps are blocks of iterations (`loop_blocks`). It then looks
into the steps of these loops in the same way; the steps of inner loops are functions beside those of outer
ones. There it also takes each `while` that saves anything, because what a step keeps must have a bound.

Three kinds of loops are refused: those with an op that runs once (`rules.runs_once`: calls of functions in C
and of recursive ones, `print`), those that change growable arrays or arrays that may overlap, and those in
branches that use arrays which the branch makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from ..rules import runs_once, writes
from ..rules.routines import is_routine
from ..transforms.distribute_loops import BLOCK
from .activations import activity_of
from .loop_blocks import in_blocks, is_loop_of_numbers
from .outline_steps import Outline, arrays_of, decide_in_body, outlives_branches, rank_of
from .passes import chosen, functions
from .plan import Save
from .reverse import plan_gradient
from .segments import enclosing_loops
from .versions import is_growable


@dataclass(frozen=True)
class CheckpointLoops(ModulePass):
    """Make functions of the bodies of the loops that save most, and mark them with the budget in bytes.

    `active` are argument indices, by default all floats.
    """

    name = "checkpoint-loops"
    memory: int
    active: tuple[int, ...] | None = None
    saves: str = "minimal"
    block: int = BLOCK
    """Iterations of a step, in loops of numbers."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(f, func.FuncOp) and is_routine(f) for f in op.ops):
            return
        for function in functions(op):
            active = chosen(function, self.active)
            activity = activity_of(function, active, None)  # of loops, which say more than calls do
            for loop, followed in Candidates(function, active, self.saves).loops():
                go = decide_in_body(loop)
                if self.block > 1 and is_loop_of_numbers(loop):
                    loop = in_blocks(loop, self.block)
                Outline(function, loop, activity).run(self.memory, go, followed=followed)


class Candidates:
    """The loops of a function that are to be checkpointed."""

    def __init__(self, function: func.FuncOp, active: Sequence[int], saves: str) -> None:
        self.function, self.alias = function, AliasAnalysis(function)
        planned = function.clone()
        ModuleOp([planned])
        found = plan_gradient(planned, active, "minimal" if saves == "forbid" else saves).saves
        copies = [op for op in planned.walk() if isinstance(op, array.LoopOp)]
        own = [op for op in function.walk() if isinstance(op, array.LoopOp)]
        self.weights = {
            loop: [weight(s) for s in found if s.push_before is copy or copy.is_ancestor(s.at)]
            for loop, copy in zip(own, copies, strict=True)
        }

    def loops(self) -> list[tuple[array.LoopOp, bool]]:
        """Those within the steps of others first; each with whether other ones follow it there."""
        block = self.function.body.block
        top = [loop for loop in loops_in(block) if self.weights[loop] and self.can_be(loop)]
        found = [loop for loop in top if self.has_axes_to_lose(loop)]
        if top and not found:
            found = [max(top, key=lambda loop: max(self.weights[loop]))]
        return self.with_inner(found)

    def with_inner(self, found: list[array.LoopOp]) -> list[tuple[array.LoopOp, bool]]:
        every: list[tuple[array.LoopOp, bool]] = []
        for loop in found:
            inner = [
                one
                for one in loops_in(loop.body.block)
                if self.weights[one]
                and (one.count is None or self.has_axes_to_lose(one))
                and self.can_be(one)
            ]
            every += self.with_inner(inner)
            every.append((loop, loop is not found[-1]))
        return every

    def has_axes_to_lose(self, loop: array.LoopOp) -> bool:
        """Whether the tape of the loop has more axes than what its steps change: a step saves arrays."""
        around = len(list(enclosing_loops(cast(Block, loop.parent))))
        changed = changed_by(loop, self.alias)
        ranks = [
            rank_of(a)
            for a in arrays_of(loop, self.alias)
            if not self.alias.roots(a).isdisjoint(changed)
        ]
        return max(self.weights[loop]) - around > max([1, *ranks])

    def can_be(self, loop: array.LoopOp) -> bool:
        """Whether the loop can be checkpointed at all."""
        alias = self.alias
        if None in alias.permutation(loop):
            return False
        if any(runs_once(op) or is_growing(op) for op in loop.walk()):
            return False
        arrays = arrays_of(loop, alias)
        if any(map(is_growable, arrays)):
            return False
        if not all(map(outlives_branches, (*arrays, *loop.carried))):
            return False
        changed = changed_by(loop, alias)
        return not any(
            alias.may_alias(a, b)
            and not alias.apart_in_turn(a, b)
            and any(
                alias.interferes(x, y) for x in alias.roots(a) | alias.roots(b) for y in changed
            )
            for a, b in combinations(arrays, 2)
        )


def loops_in(block: Block) -> Iterator[array.LoopOp]:
    """The loops of a block, and of its branches."""
    for op in block.ops:
        if isinstance(op, array.LoopOp):
            yield op
        elif isinstance(op, scf.IfOp) and array.RAISES not in op.attributes:
            for region in op.regions:
                for inner in region.blocks:
                    yield from loops_in(inner)


def weight(save: Save) -> int:
    """How many numbers the size of a save is the product of."""
    pushed = list(enclosing_loops(cast(Block, save.push_before.parent)))
    return len(pushed) + len(save.segment.dimensions)


def changed_by(loop: array.LoopOp, alias: AliasAnalysis) -> set[SSAValue]:
    return {root for op in loop.walk() for w in writes(op) for root in alias.roots(w.memref)}


def is_growing(op: Operation) -> bool:
    return isinstance(op, array.AllocOp) and array.GROWABLE in op.attributes

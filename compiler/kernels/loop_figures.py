"""What can be said of the host's loops without a device: whether graphs replay them, for what they wait.

A loop is told once, with all that is in it: the line of its `for`, how many numbers the host fetches in an
iteration, and where it is no graph why, with the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from ...dialects import ad, array, device
from ...dialects.within import ops_of_kind
from ..analysis.alias import AliasAnalysis
from ..analysis.replays import (
    beside_exceptions,
    cycle,
    may_be_replayed,
    needs_counter,
    only_raises,
)
from ..diagnostics import line_of
from .count_on_device import moving_in

REASONS: dict[type[Operation], str] = {
    device.FetchOp: "the host fetches a number there",
    array.LoopOp: "a `while` there ends when the host says so",
    ad.PushOp: "what is saved there has no fixed place",
    ad.PopOp: "what is saved there has no fixed place",
    array.AllocOp: "memory is allocated there",
    memref.LoadOp: "a variable is the host's there",
    memref.StoreOp: "a variable is the host's there",
    memref.AllocaOp: "a variable is the host's there",
}


@dataclass(frozen=True)
class LoopFigures:
    """A loop of the host that launches kernels."""

    line: int
    fetches: int
    """How many numbers the host waits for in an iteration; an inner loop is taken once."""
    graph: bool
    """Whether it is replayed, if it is long enough."""
    reason: str
    """Why it is not."""
    reason_line: int

    def __str__(self) -> str:
        fetched = f"{self.fetches} fetch{'es' * (self.fetches != 1)} an iteration"
        if self.graph:
            return f"line {self.line}: {fetched}, a graph"
        return f"line {self.line}: {fetched}, no graph: {self.reason} (line {self.reason_line})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def loops_of(module: ModuleOp) -> tuple[LoopFigures, ...]:
    """The outermost loops that launch, of a module whose scalars are where they will be."""
    found: list[LoopFigures] = []
    for function in module.ops:
        if isinstance(function, func.FuncOp) and not device.is_kernel(function):
            found += loops_in(function.body.block, AliasAnalysis(function))
    return tuple(found)


def loops_in(block: Block, alias: AliasAnalysis) -> Iterator[LoopFigures]:
    for op in block.ops:
        if isinstance(op, array.LoopOp):
            if ops_of_kind(op, device.LaunchOp):
                yield figures(op, alias)
        elif isinstance(op, scf.IfOp) and ops_of_kind(op, device.WhileStepOp):
            (loop,) = ops_of_kind(op, array.LoopOp)[:1]
            yield LoopFigures(line(loop), 0, graph=True, reason="", reason_line=0)
        elif not (isinstance(op, scf.IfOp) and only_raises(op)):
            for inner in (b for region in op.regions for b in region.blocks):
                yield from loops_in(inner, alias)


def figures(loop: array.LoopOp, alias: AliasAnalysis) -> LoopFigures:
    inside = beside_exceptions(loop)
    fetches = sum(isinstance(op, device.FetchOp) for op in inside)
    reason, at = obstacle(loop, inside, alias) or ("", None)
    return LoopFigures(line(loop), fetches, not reason, reason, line(at) if at else 0)


def obstacle(
    loop: array.LoopOp, inside: Sequence[Operation], alias: AliasAnalysis
) -> tuple[str, Operation] | None:
    """Why a loop is not replayed, and the op."""
    kept = [op for op in inside if not may_be_replayed(op)]
    for kind in (*REASONS, Operation):  # the worst first
        if found := next((op for op in kept if isinstance(op, kind)), None):
            return REASONS.get(type(found), f"`{found.name}` is the host's"), found
    if loop.condition_block is not None or loop.count is None:
        return "the host says when it ends", loop
    if cycle(loop, alias) is None:
        return "its arrays do not come back to their places", loop
    if needs_counter(loop) and moving_in(loop) is None:
        return "what is launched depends on the iteration", loop
    return None


def line(op: Operation) -> int:
    at = line_of(op)
    return at[1] if at is not None else 0


def table(loops: Sequence[LoopFigures]) -> list[str]:
    return ["loops that launch (a graph from 128 iterations on)", *map(str, loops)] if loops else []

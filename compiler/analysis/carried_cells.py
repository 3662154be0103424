"""What one iteration of a loop hands to the next in each of its scalar variables.

Iterations are independent but for these cells, if each of them is

- *read* only, or *private*: stored before it is read in every iteration;
- *reset*: the last thing that every iteration does to it is to store a value from outside the loop;
- *kept*: every iteration ends by storing what it began with (what the adjoint of a sum does);
- a *reduction*: all that is done is `s = s + x`, and the like, and nothing else reads it.

::

    array.loop %i to %n do {
      memref.store %zero, %t[]            // private
      %1 = memref.load %s[]
      %2 = arith.addf %1, %x              // s is a sum
      memref.store %2, %s[]
    }

Anything else is *carried*: an iteration computes with what another one has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import FloatAttr, i1
from xdsl.ir import Block, Operation, SSAValue, Use

from ...dialects import array
from ..rules import accesses, is_whole_array, writes
from .alias import if_blocks
from .views import strip_views

COMBINING: dict[type[Operation], array.MapKind] = {
    arith.AddfOp: "add",
    arith.AddiOp: "add",
    array.CheckedAddOp: "add",
    arith.MulfOp: "mul",
    arith.MuliOp: "mul",
    arith.MinimumfOp: "min",
    arith.MaximumfOp: "max",
    arith.MinSIOp: "min",
    arith.MaxSIOp: "max",
}
"""Ops that add one more term to what a reduction has so far."""

OF_TRUTHS: dict[type[Operation], array.MapKind] = {arith.OrIOp: "max", arith.AndIOp: "min"}
"""And those that do where the terms are truths."""


@dataclass(frozen=True)
class Role:
    """What a cell is to the iterations of a loop."""

    name: Literal["read", "private", "reset", "kept", "reduction", "carried"]
    value: SSAValue | None = None
    """reset: what each iteration leaves."""
    kind: array.MapKind | None = None
    """reduction: how terms are combined."""
    ordered: bool = False
    """reduction: the order of the terms is the program's (floating point, in primal code)."""
    last: Operation | None = None
    """The op that shows it: a store of the cell."""
    checked: Operation | None = None
    """reduction: the addition that raises where the sum does not fit."""


def is_cell(value: SSAValue) -> bool:
    """A scalar variable."""
    return isinstance(value.owner, memref.AllocaOp)


def cell_of(value: SSAValue) -> SSAValue | None:
    """The scalar variable that the memref is (a view of)."""
    base = strip_views(value)
    return base if is_cell(base) else None


def roles(loop: array.LoopOp, *, across: bool = False) -> dict[SSAValue, Role]:
    """The role of each cell from outside the loop that it uses, in the order of first use.

    `across`: what a reduction has so far may go from block to block before it is stored.
    """
    found: dict[SSAValue, list[Operation]] = {}
    own = {op.memref for op in loop.walk() if isinstance(op, memref.AllocaOp)}
    for op in loop.walk():
        cells = dict.fromkeys(cell_of(a.memref) for a in accesses(op))
        for cell in cells:
            if cell is not None and cell not in own:
                found.setdefault(cell, []).append(op)
    return {cell: role_of(loop, cell, uses, across=across) for cell, uses in found.items()}


def touches(op: Operation, cell: SSAValue) -> tuple[bool, bool]:
    """Whether the op itself reads the cell, and whether it writes to it."""
    kinds = {a.kind for a in accesses(op) if cell_of(a.memref) is cell}
    return "read" in kinds, "write" in kinds


def role_of(loop: array.LoopOp, cell: SSAValue, uses: Sequence[Operation], *, across: bool) -> Role:
    last = next((op for op in reversed(uses) if touches(op, cell)[1]), None)
    if last is None:
        return Role("read")
    reads_first, stored = entered(loop.body.block, cell)
    if loop.condition_block is not None:
        return Role("carried", last=last)
    if stored and not reads_first:
        return Role("private", last=last)
    if isinstance(last, memref.StoreOp) and last.parent is loop.body.block and uses[-1] is last:
        if is_outside(last.value, loop):
            return Role("reset", value=last.value, last=last)
        if keeps(uses, last):
            return Role("kept", last=last)
    return reduction(cell, uses, last, across=across) or Role("carried", last=last)


def entered(block: Block, cell: SSAValue) -> tuple[bool, bool]:
    """Whether a run of the block may read what the cell holds before, and whether it surely stores to it."""
    reads_first = stored = False
    for op in block.ops:
        reads, _ = touches(op, cell)
        reads_first |= reads and not stored
        if isinstance(op, memref.StoreOp) and op.memref is cell:
            stored = True
        elif not stored and (condition := condition_of(op)) is not None:
            reads, stored = entered(condition, cell)
            after = [entered(b, cell)[0] for b in blocks_of(op) if b is not condition]
            reads_first |= reads or (not stored and any(after))
        elif op.regions and not is_whole_array(op) and not stored:
            ways = [entered(b, cell) for b in blocks_of(op)]
            reads_first |= any(reads for reads, _ in ways)
            complete = isinstance(op, scf.IfOp) and len(ways) == 2
            stored = complete and all(stores for _, stores in ways)
    return reads_first, stored


def condition_of(op: Operation) -> Block | None:
    """The condition of a `while`, which is evaluated once at least, and before all else."""
    return op.condition_block if isinstance(op, array.LoopOp) and op.count is None else None


def changed_by(block: Block, held: Mapping[SSAValue, SSAValue]) -> set[SSAValue]:
    """The cells that may hold something else where a run of the block ends, if they hold this before."""
    changed: set[SSAValue] = set()
    for op in block.ops if held else ():
        if isinstance(op, memref.StoreOp) and op.memref in held:
            if op.value is held[op.memref]:
                changed.discard(op.memref)
            else:
                changed.add(op.memref)
            continue
        cells = (cell_of(a.memref) for a in writes(op))
        changed |= {cell for cell in cells if cell is not None and cell in held}
        if op.regions and not is_whole_array(op):
            for inner in blocks_of(op):
                changed |= changed_by(inner, held)
    return changed


def blocks_of(op: Operation) -> Iterator[Block]:
    if isinstance(op, scf.IfOp):
        yield from if_blocks(op)
    else:
        yield from (b for r in op.regions for b in r.blocks)


def keeps(uses: Sequence[Operation], last: memref.StoreOp) -> bool:
    """The only load, which all stores follow, is what is stored at the end; but for a zero that is added."""
    loads = [op for op in uses if isinstance(op, memref.LoadOp)]
    if not all(isinstance(op, memref.LoadOp | memref.StoreOp) for op in uses):
        return False
    if len(loads) != 1 or uses[0] is not loads[0] or loads[0].parent is not last.parent:
        return False
    value = last.value
    if isinstance(value.owner, arith.AddfOp) and "ad.adjoint" in value.owner.attributes:
        terms = [t for t in value.owner.operands if not is_zero(t)]
        value = terms[0] if len(terms) == 1 else value
    return value is loads[0].res


def is_zero(value: SSAValue) -> bool:
    owner = value.owner
    return (
        isinstance(owner, arith.ConstantOp)
        and isinstance(owner.value, FloatAttr)
        and owner.value.value.data == 0.0
    )


def reduction(
    cell: SSAValue, uses: Sequence[Operation], last: Operation, *, across: bool
) -> Role | None:
    """The role of a cell which maps combine with terms, or loads and stores do: in pairs, if not `across`."""
    maps = [op for op in uses if isinstance(op, array.MapOp)]
    if any(cell_of(m) is cell for op in maps for m in op.ins):
        return None
    chain = (steps_across if across else steps_of_pairs)(uses)
    if chain is None:
        return None
    outs = [pair for op in maps for pair in zip(op.outs, op.out_kinds, strict=True)]
    kinds: set[str] = {kind for m, kind in outs if cell_of(m) is cell}
    kinds |= {combining(step) or "add" for step in chain}
    kind = kinds.pop() if len(kinds) == 1 else "store"
    if kind == "store":
        return None
    floats = [op for op in chain if isinstance(op, arith.AddfOp | arith.SubfOp | arith.MulfOp)]
    ordered = any("ad.adjoint" not in op.attributes for op in floats)
    checked = next((op for op in reversed(chain) if isinstance(op, array.CheckedAddOp)), None)
    return Role("reduction", kind=kind, ordered=ordered, last=last, checked=checked)


def steps_of_pairs(uses: Sequence[Operation]) -> list[Operation] | None:
    """The ops that add terms between each load of a cell and the store that follows; None for other uses."""
    found: list[Operation] = []
    pending = list(uses)
    while pending:
        load = pending.pop(0)
        if isinstance(load, array.MapOp):
            continue
        store = pending.pop(0) if pending else None
        if not isinstance(load, memref.LoadOp) or not isinstance(store, memref.StoreOp):
            return None
        chain = combined([load], [store]) if load.parent is store.parent else []
        if not chain:
            return None
        found += chain
    return found


def steps_across(uses: Sequence[Operation]) -> list[Operation] | None:
    """The ops that add terms between loads and stores of a cell, in whatever blocks; None for other uses.

    All that is ever stored is what was there before the iteration, with terms that do not depend on it.
    """
    loads = [op for op in uses if isinstance(op, memref.LoadOp)]
    stores = [op for op in uses if isinstance(op, memref.StoreOp)]
    if not loads and not stores:
        return [] if all(isinstance(op, array.MapOp) for op in uses) else None
    if not all(isinstance(op, array.MapOp | memref.LoadOp | memref.StoreOp) for op in uses):
        return None
    return combined(loads, stores) or None


def combining(op: Operation) -> array.MapKind | None:
    """How the op adds a term; None where it does not, and of a difference."""
    if type(op) in OF_TRUTHS and op.results[0].type == i1:
        return OF_TRUTHS[type(op)]
    return COMBINING.get(type(op))


def combined(loads: Sequence[memref.LoadOp], stores: Sequence[memref.StoreOp]) -> list[Operation]:
    """The ops that add terms on the way from what is loaded to what is stored; empty where something else is.

    All that reads a value on the way is on the way, so no term depends on what is there already. Conditions
    may choose between what is there with and without a term.
    """
    totals: dict[SSAValue, None] = dict.fromkeys(load.res for load in loads)
    passed: list[Operation] = []
    pending: list[SSAValue] = list(totals)
    while pending:
        for use in pending.pop().uses:
            result = passed_on(use)
            if result is None and use.operation not in stores:
                return []
            if result is not None and result not in totals:
                totals[result] = None
                pending.append(result)
                passed.append(use.operation)
    adding = [op for op in passed if not isinstance(op, arith.SelectOp | scf.YieldOp)]
    alternatives = [o for op in passed for o in alternatives_of(op, totals)]
    if not all(o in totals for o in [*alternatives, *(store.value for store in stores)]):
        return []
    if any(sum(o in totals for o in op.operands) != 1 for op in adding):
        return []
    return adding


def passed_on(use: Use) -> SSAValue | None:
    """What has the value in it, with a term or by choice."""
    op = use.operation
    if combining(op) or (isinstance(op, arith.SubfOp | arith.SubiOp) and use.index == 0):
        return op.results[0]
    if isinstance(op, arith.SelectOp) and use.index > 0:
        return op.result
    parent = op.parent_op()
    if isinstance(op, scf.YieldOp) and isinstance(parent, scf.IfOp):
        return parent.results[use.index]
    return None


def alternatives_of(op: Operation, totals: dict[SSAValue, None]) -> list[SSAValue]:
    """What may be chosen instead of the operand that is on the way."""
    if isinstance(op, arith.SelectOp):
        return [op.lhs, op.rhs]
    parent = op.parent_op()
    if isinstance(op, scf.YieldOp) and isinstance(parent, scf.IfOp):
        ends = [block.last_op for block in if_blocks(parent)]
        chosen = [k for k, result in enumerate(parent.results) if result in totals]
        return [end.operands[k] for end in ends if end is not None for k in chosen]
    return []


def is_outside(value: SSAValue, loop: array.LoopOp) -> bool:
    """The value is computed before the loop."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None and (parent := block.parent_op()) is not None:
        if parent is loop:
            return False
        block = parent.parent
    return True

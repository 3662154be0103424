"""Forward stored and loaded values to the loads that read the same element again.

A load that certainly reads what an earlier store wrote, or what an earlier load read, yields that
value. Runs before the analyses: a value that does not go through memory is a value that no store
kills, so that the adjoint need not save it.

Before::

    func.func @f(%x : f64, %a : memref<?xf64>, %b : memref<?xf64>, %i : index, %c : i1) -> f64 {
      memref.store %x, %a[%i] : memref<?xf64>
      scf.if %c {
        %y = memref.load %a[%i] : memref<?xf64>
        memref.store %y, %b[%i] : memref<?xf64>
      }
      %z = memref.load %a[%i] : memref<?xf64>
      func.return %z : f64
    }

After::

    func.func @f(%x : f64, %a : memref<?xf64>, %b : memref<?xf64>, %i : index, %c : i1) -> f64 {
      memref.store %x, %a[%i] : memref<?xf64>
      scf.if %c {
        memref.store %x, %b[%i] : memref<?xf64>
      }
      func.return %x : f64
    }

Values flow into regions that do not write their memory, and past them; never out of them (for
cells, promote_scalars does that). Elements written by whole-array ops are not forwarded. They flow into loops
that leave a variable as they found it: what takes the cotangents of a sum is zero again after each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.carried_cells import changed_by, is_cell
from ..rules import evaluates_body
from .memory_effects import Effects, MemoryEffects, Roots, functions

Element = tuple[SSAValue, tuple[SSAValue, ...]]
"""A memref and the indices into it."""

Held = tuple[Element, Roots, SSAValue]
"""What an element holds."""

Before = SSAValue | dict[Element, SSAValue] | None


@dataclass(frozen=True)
class ForwardStores(ModulePass):
    """Replace a load by the value that its element is known to hold."""

    name = "forward-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            forward_in(function.body.block, Known(), MemoryEffects(function))


class Known:
    """What elements hold at one point of the program, grouped by the memory that they are in."""

    def __init__(self) -> None:
        self.by_roots: dict[Roots, dict[Element, SSAValue]] = {}
        self.with_root: dict[SSAValue, set[Roots]] = {}
        """By root the keys of `by_roots`, some of them former ones, that it is in."""
        self.changes: list[tuple[Roots, Element | None, Before]] = []
        """What one element held before a change, or (None) all of a group."""

    def get(self, element: Element, roots: Roots) -> SSAValue | None:
        return self.by_roots.get(roots, {}).get(element)

    def put(self, element: Element, roots: Roots, value: SSAValue) -> None:
        held = self.by_roots.get(roots)
        if held is None:
            held = self.by_roots[roots] = {}
            self.changes.append((roots, None, None))
            for root in roots:
                self.with_root.setdefault(root, set()).add(roots)
        self.changes.append((roots, element, held.get(element)))
        held[element] = value

    def put_all(self, held: Iterable[Held]) -> None:
        for element, roots, value in held:
            self.put(element, roots, value)

    def sharing(self, roots: Roots) -> set[Roots]:
        """The groups that share a root with these."""
        found = {group for root in roots for group in self.with_root.get(root, ())}
        return found & self.by_roots.keys()

    def overwritten(self, effects: Effects) -> set[Roots]:
        """The groups in which these effects may overwrite something."""
        return {*self.by_roots} if effects.opaque else self.sharing(effects.writes)

    def forget(self, effects: Effects) -> None:
        """Drop what these effects may overwrite."""
        for roots in self.overwritten(effects):
            self.changes.append((roots, None, self.by_roots.pop(roots)))

    def forget_element(self, element: Element, roots: Roots) -> None:
        """Drop what a store to this element may overwrite."""
        for others in self.sharing(roots):
            held = self.by_roots[others]
            self.changes.append((others, None, held))
            self.by_roots[others] = {e: v for e, v in held.items() if are_apart(e, element)}

    def undo(self, first: int) -> None:
        """Know what was known before the change `first`."""
        while len(self.changes) > first:
            roots, element, before = self.changes.pop()
            if isinstance(before, dict):
                self.by_roots[roots] = before
            elif element is None:
                del self.by_roots[roots]
            elif before is None:
                del self.by_roots[roots][element]
            else:
                self.by_roots[roots][element] = before

    def left_by(self, loop: array.LoopOp, effects: Effects) -> list[Held]:
        """The variables that a loop may write, but in which each iteration leaves what they held before."""
        if loop.condition_block is not None:
            return []
        cells = [
            (element, roots, value)
            for roots in self.overwritten(effects)
            for element, value in self.by_roots[roots].items()
            if is_cell(element[0]) and not element[1]
        ]
        changed = changed_by(loop.body.block, {cell: value for (cell, _), _, value in cells})
        return [one for one in cells if one[0][0] not in changed]


def forward_in(block: Block, known: Known, effects: MemoryEffects) -> None:
    """Forward within `block`; `known` holds on entry and is brought up to its end."""
    for op in tuple(block.ops):
        match op:
            case memref.StoreOp():
                element, roots = (op.memref, tuple(op.indices)), effects.roots(op.memref)
                known.forget_element(element, roots)
                known.put(element, roots, op.value)
            case memref.LoadOp():
                element, roots = (op.memref, tuple(op.indices)), effects.roots(op.memref)
                held = known.get(element, roots)
                if held is None:
                    known.put(element, roots, op.res)
                else:
                    Rewriter.replace_op(op, [], [held])
            case _:
                forward_around(op, known, effects)


def forward_around(op: Operation, known: Known, effects: MemoryEffects) -> None:
    """Any other op: what it writes is forgotten, inside a loop already on entry."""
    of_op = effects.of(op)
    kept = known.left_by(op, of_op) if isinstance(op, array.LoopOp) else []
    if isinstance(op, array.LoopOp):
        known.forget(of_op)
        known.put_all(kept)
    if op.regions and not evaluates_body(op):
        for block in (b for region in op.regions for b in region.blocks):
            before = len(known.changes)
            forward_in(block, known, effects)
            known.undo(before)
    known.forget(of_op)
    known.put_all(kept)


def are_apart(a: Element, b: Element) -> bool:
    """True when two elements are certainly different memory: same array, constant indices differ."""
    if a[0] is not b[0]:
        return False
    return any(
        i is not j
        and (m := array.constant_value(i)) is not None
        and (n := array.constant_value(j)) is not None
        and m != n
        for i, j in zip(a[1], b[1], strict=True)
    )

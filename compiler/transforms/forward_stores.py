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

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.carried_cells import is_cell, leaves
from ..rules import evaluates_body
from .memory_effects import Effects, MemoryEffects, Roots, functions

Element = tuple[SSAValue, tuple[SSAValue, ...]]
"""A memref and the indices into it."""


@dataclass(frozen=True)
class ForwardStores(ModulePass):
    """Replace a load by the value that its element is known to hold."""

    name = "forward-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            forward_in(function.body.block, Known(), MemoryEffects(function))


@dataclass
class Known:
    """What elements hold at one point of the program, grouped by the memory that they are in."""

    by_roots: dict[Roots, dict[Element, SSAValue]] = field(
        default_factory=dict[Roots, dict[Element, SSAValue]]
    )

    def get(self, element: Element, roots: Roots) -> SSAValue | None:
        return self.by_roots.get(roots, {}).get(element)

    def put(self, element: Element, roots: Roots, value: SSAValue) -> None:
        self.by_roots.setdefault(roots, {})[element] = value

    def forget(self, effects: Effects) -> None:
        """Drop what these effects may overwrite."""
        for roots in [r for r in self.by_roots if effects.writes_any(r)]:
            del self.by_roots[roots]

    def forget_element(self, element: Element, roots: Roots) -> None:
        """Drop what a store to this element may overwrite."""
        for others in [r for r in self.by_roots if not r.isdisjoint(roots)]:
            held = self.by_roots[others]
            self.by_roots[others] = {e: v for e, v in held.items() if are_apart(e, element)}

    def left_by(self, loop: array.LoopOp) -> Known:
        """The variables in which each iteration of a loop leaves what they held before."""
        found = Known()
        if loop.condition_block is not None:
            return found
        for roots, held in self.by_roots.items():
            for element, value in held.items():
                if is_cell(element[0]) and leaves(loop.body.block, element[0], value):
                    found.put(element, roots, value)
        return found

    def copy(self) -> Known:
        return Known({roots: dict(held) for roots, held in self.by_roots.items()})


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
    kept = Known()
    if isinstance(op, array.LoopOp):
        kept = known.left_by(op)
        known.forget(of_op)
        known.by_roots |= kept.by_roots
    if op.regions and not evaluates_body(op):
        for region in op.regions:
            for block in region.blocks:
                forward_in(block, known.copy(), effects)
    known.forget(of_op)
    known.by_roots |= kept.by_roots


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

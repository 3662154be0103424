"""Drop stores to an element that a later store overwrites unread, or that put back what is there.

The adjoint of `a[i, j] -= x` takes the cotangent from the shadow, stores zero, and adds it again. With
the detour gone the shadow is only read, so that dependence analysis sees a loop whose iterations are
independent. Runs after forward-stores, which made of what is read back a value.

Before::

    func.func @f(%a : memref<?xf64>, %i : index) -> f64 {
      %zero = arith.constant 0.0 : f64
      %x = memref.load %a[%i] : memref<?xf64>
      memref.store %zero, %a[%i] : memref<?xf64>
      %y = arith.addf %zero, %x {ad.adjoint} : f64
      memref.store %y, %a[%i] : memref<?xf64>
      func.return %x : f64
    }

After::

    func.func @f(%a : memref<?xf64>, %i : index) -> f64 {
      %zero = arith.constant 0.0 : f64
      %x = memref.load %a[%i] : memref<?xf64>
      func.return %x : f64
    }

The store in between is dropped where nothing has looked at it since: neither a load of what may be the
element, nor an op that is more than a load, a store or scalar code (it may read, raise, or leave). Adding
zero may lose the sign of a zero, which adjoint code may, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..rules import ScalarRule, evaluates_body, rule_of
from ..rules.table import ADJOINT, constant_float
from .forward_stores import Element, are_apart
from .map_outputs import is_pure
from .memory_effects import MemoryEffects, Roots, functions


@dataclass(frozen=True)
class EliminateDeadStores(ModulePass):
    """Remove scalar stores that change nothing, or that nothing reads."""

    name = "eliminate-dead-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            effects = MemoryEffects(function)
            for block in list(function.body.block.walk_blocks()):
                if not evaluates_body_of(block):
                    Elements(effects).drop_in(block)


def evaluates_body_of(block: Block) -> bool:
    parent = block.parent_op()
    return parent is not None and evaluates_body(parent)


@dataclass
class Held:
    """What an element holds, and the store that nothing has read yet."""

    roots: Roots
    value: SSAValue
    store: memref.StoreOp | None = None
    before: SSAValue | None = None
    """What it held before that store, where known."""


@dataclass
class Elements:
    """The elements of which something is known at one point of a block."""

    effects: MemoryEffects
    held: dict[Element, Held] = field(default_factory=dict[Element, Held])

    def drop_in(self, block: Block) -> None:
        for op in tuple(block.ops):
            match op:
                case memref.LoadOp():
                    self._load(op)
                case memref.StoreOp():
                    self._store(op)
                case arith.AddfOp() if ADJOINT in op.attributes:
                    if (other := plus_zero(op)) is not None:
                        Rewriter.replace_op(op, [], [other])
                case _ if not (isinstance(rule_of(type(op)), ScalarRule) or is_pure(op)):
                    self._anything(op)
                case _:
                    pass

    def _load(self, op: memref.LoadOp) -> None:
        element, roots = (op.memref, tuple(op.indices)), self.effects.roots(op.memref)
        for other in self.held.values():
            if not other.roots.isdisjoint(roots):
                other.store = None
        self.held.setdefault(element, Held(roots, op.res))

    def _store(self, op: memref.StoreOp) -> None:
        element, roots = (op.memref, tuple(op.indices)), self.effects.roots(op.memref)
        last = self.held.get(element)
        before = None if last is None else last.value
        if last is not None and last.store is not None:
            before = last.before
            Rewriter.erase_op(last.store)
        for other in list(self.held):
            meets = not self.held[other].roots.isdisjoint(roots)
            if meets and other != element and not are_apart(other, element):
                del self.held[other]
        if before is op.value:
            self.held[element] = Held(roots, op.value)
            Rewriter.erase_op(op)
        else:
            self.held[element] = Held(roots, op.value, op, before)

    def _anything(self, op: Operation) -> None:
        effects = self.effects.of(op)
        for element in list(self.held):
            held = self.held[element]
            held.store = None
            if effects.writes_any(held.roots):
                del self.held[element]


def plus_zero(op: arith.AddfOp) -> SSAValue | None:
    """The other operand where one is zero."""
    for zero, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if constant_float(zero) == 0.0:
            return other
    return None

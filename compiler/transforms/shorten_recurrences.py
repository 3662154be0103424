"""Let a linear recurrence of the adjoint take one product and one sum for each iteration.

The cotangent of a variable that iterations hand on comes back as `s * p * q * x + s * a * c + ...`: products
that wait for each other, and for those of the iteration before. What the variable is multiplied by does not
wait, so it is computed beside the chain, which is then `s * A + B`. `distribute-loops`, which runs after
this, makes vectors of A and B.

Before::

    func.func @f(%n : index, %x : memref<?xf64>, %s : f64, %a : f64) -> f64 {
      %cell = memref.alloca() : memref<f64>
      memref.store %s, %cell[] : memref<f64>
      %trips = array.loop %i to %n do {
        %p = memref.load %x[%i] : memref<?xf64>
        %bar = memref.load %cell[] : memref<f64>
        %sum = arith.addf %bar, %p {ad.adjoint} : f64
        %once = arith.mulf %sum, %a {ad.adjoint} : f64
        %twice = arith.mulf %once, %p {ad.adjoint} : f64
        memref.store %twice, %cell[] : memref<f64>
        array.yield
      }
      %r = memref.load %cell[] : memref<f64>
      func.return %r : f64
    }

After, with `fastmath=true`::

    func.func @f(%n : index, %x : memref<?xf64>, %s : f64, %a : f64) -> f64 {
      %cell = memref.alloca() : memref<f64>
      memref.store %s, %cell[] : memref<f64>
      %trips = array.loop %i to %n do {
        %p = memref.load %x[%i] : memref<?xf64>
        %bar = memref.load %cell[] : memref<f64>
        %added = arith.mulf %p, %a {ad.adjoint} : f64
        %factor = arith.mulf %a, %p {ad.adjoint} : f64
        %added_1 = arith.mulf %added, %p {ad.adjoint} : f64
        %product = arith.mulf %bar, %factor {ad.adjoint} : f64
        %next = arith.addf %product, %added_1 {ad.adjoint} : f64
        memref.store %next, %cell[] : memref<f64>
        array.yield
      }
      %r = memref.load %cell[] : memref<f64>
      func.return %r : f64
    }

What else reads values of the chain reads them still: the next iteration does not wait for them any more. With
`fastmath` only: a product of partials overflows, or underflows, where the cotangent times one after the other
is a number, and a gradient without `fastmath` has the bits of one within a budget, whose steps may be single
iterations. Only ops of the adjoint are taken; a guarded product (`ad.mul`) is none.

Kept: chains of up to two ops, but for signs; chains that also wait for another one, or for what the loop
stores; cells that a branch touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import is_cell, is_outside
from ..diagnostics import locate
from ..rules.table import ADJOINT
from .distribute_loops import leaves
from .memory_effects import functions
from .stage_plan import scalar_ops

SHORT = 2
"""Chains of so many ops are as short as they get."""

MOST = 40
"""Chains of more ops would take too many more beside them."""


@dataclass(frozen=True)
class ShortenRecurrences(ModulePass):
    """Compute the factors of linear recurrences of the adjoint beside them."""

    name = "shorten-recurrences"
    fastmath: bool = False
    """Products may be made in any order; else the pass does nothing."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op) if self.fastmath else ():
            alias: AliasAnalysis | None = None
            for loop in list(leaves(function.body.block)):
                if handed_on(loop):
                    alias = alias or AliasAnalysis(function)
                    for chain in chains_of(loop, alias):
                        chain.shorten()


def handed_on(loop: array.LoopOp) -> dict[SSAValue, memref.StoreOp]:
    """The cells of the loop that are loaded, then stored to once, each by an op of the adjoint."""
    found: dict[SSAValue, memref.StoreOp] = {}
    ops = scalar_ops(loop)
    stores = [op for op in ops if isinstance(op, memref.StoreOp)]
    cells = [op.memref for op in stores if is_cell(op.memref) and is_outside(op.memref, loop)]
    for store in stores:
        cell = store.memref
        if cells.count(cell) != 1 or not is_of_adjoint(store.value.owner):
            continue
        users = (use.operation for use in cell.uses)
        uses = [op for op in users if op is not store and loop.is_ancestor(op)]
        plain = all(isinstance(op, memref.LoadOp) and op.parent is store.parent for op in uses)
        if len(uses) == 1 and plain and uses[0].is_before_in_block(store):
            found[cell] = store
    return found


def is_of_adjoint(op: object) -> bool:
    return isinstance(op, Operation) and ADJOINT in op.attributes


def chains_of(loop: array.LoopOp, alias: AliasAnalysis) -> list[Chain]:
    """The chains that are worth it, in the order of the program."""
    found: list[Chain] = []
    ops = scalar_ops(loop)
    stored = [op.memref for op in ops if isinstance(op, memref.StoreOp)]
    loads = [op for op in ops if isinstance(op, memref.LoadOp)]
    changing = [op for op in loads if any(alias.may_alias(op.memref, m) for m in stored)]
    for cell, store in handed_on(loop).items():
        (load,) = (op for op in changing if op.memref is cell)
        on = followers([load], ops)
        late = followers([op for op in changing if op is not load], ops)
        length = longest(store.value, on)
        if isinstance(load.res.type, AnyFloat) and length > SHORT and len(on) <= MOST:
            chain = Chain(load, store, on, late)
            if chain.is_linear(store.value):
                found.append(chain)
    return found


def followers(
    loads: Sequence[memref.LoadOp], ops: Sequence[Operation]
) -> dict[SSAValue, Operation]:
    """The values that wait for what is loaded, in order."""
    found: dict[SSAValue, Operation] = {load.res: load for load in loads}
    for op in ops:
        inner = (o for one in op.walk() for o in one.operands)
        if not isinstance(op, memref.StoreOp) and any(o in found for o in inner):
            found |= dict.fromkeys(op.results, op)
    return found


def longest(value: SSAValue, on: dict[SSAValue, Operation]) -> int:
    """The ops that the value waits for, one after the other; signs cost nothing."""
    depth: dict[SSAValue, int] = {}
    for each, op in on.items():
        before = max((depth[o] for o in op.operands if o in depth), default=-1)
        depth[each] = before + (not isinstance(op, arith.NegfOp))
    return depth.get(value, 0)


@dataclass(frozen=True)
class Linear:
    """`factor` times the cell, plus `added`; None of a factor: 1, of what is added: nothing."""

    factor: SSAValue | None = None
    added: SSAValue | None = None


@dataclass
class Chain:
    """What a cell goes through in an iteration."""

    load: memref.LoadOp
    store: memref.StoreOp
    on: dict[SSAValue, Operation]
    """The values that wait for the cell."""
    late: dict[SSAValue, Operation]
    """The values that wait for something else that iterations hand on."""
    known: dict[SSAValue, Linear] = field(default_factory=dict[SSAValue, Linear])

    def is_linear(self, value: SSAValue) -> bool:
        """The value is the cell's, times what waits for nothing, plus such."""
        if value is self.load.res:
            return True
        if value not in self.on:
            return value not in self.late
        op = self.on[value]
        if not is_of_adjoint(op) or value in self.late:
            return False
        match op:
            case arith.MulfOp():
                alone = (op.lhs in self.on) != (op.rhs in self.on)
            case math.FmaOp():
                alone = (op.a in self.on) != (op.b in self.on)
            case arith.DivfOp():
                alone = op.rhs not in self.on
            case _:
                alone = isinstance(op, arith.AddfOp | arith.NegfOp)
        return alone and all(map(self.is_linear, op.operands))

    def shorten(self) -> None:
        """Let the cell be multiplied once and added to once."""
        made = self.of(self.store.value)
        if made.factor is None:
            return  # a sum: LLVM has many at a time
        value = self.put(arith.MulfOp(self.load.res, made.factor), "product")
        if made.added is not None:
            value = self.put(arith.AddfOp(value, made.added), "next")
        self.store.operands[0] = value
        for op in reversed(list(dict.fromkeys(self.on.values()))):
            if op is not self.load and all(r.first_use is None for r in op.results):
                Rewriter.erase_op(op)

    def of(self, value: SSAValue) -> Linear:
        """A value of the chain, as one of the cell."""
        if value is self.load.res:
            return Linear()
        if value not in self.known:
            self.known[value] = self._of(self.on[value])
        return self.known[value]

    def _of(self, op: Operation) -> Linear:
        match op:
            case arith.MulfOp():
                return self._product(op.lhs, op.rhs)
            case arith.DivfOp():
                made = self.of(op.lhs)
                factor = self.put(arith.DivfOp(self.number(made), op.rhs), "factor")
                if made.added is None:
                    return Linear(factor)
                return Linear(factor, self.put(arith.DivfOp(made.added, op.rhs), "added"))
            case math.FmaOp():
                return self._fma(op)
            case arith.NegfOp():
                made = self.of(op.operand)
                return Linear(self.minus(self.number(made)), self.minus(made.added))
            case arith.AddfOp():
                return self._sum(op, op.lhs, op.rhs)
            case _:
                raise AssertionError(op.name)

    def _product(self, lhs: SSAValue, rhs: SSAValue) -> Linear:
        first = lhs in self.on
        made, by = self.of(lhs if first else rhs), rhs if first else lhs
        factor = by if made.factor is None else self.times(made.factor, by, "factor")
        return Linear(factor, None if made.added is None else self.times(made.added, by, "added"))

    def _fma(self, op: math.FmaOp) -> Linear:
        """As it is, in the factor and in what is added: the last steps of a division are exact by it."""
        first = op.a in self.on
        made, by = self.of(op.a if first else op.b), op.b if first else op.a
        chained = op.c in self.on
        other = self.of(op.c) if chained else Linear(added=op.c)
        if chained:
            fused = math.FmaOp(self.number(made), by, self.number(other))
            factor = self.put(fused, "factor")
        else:
            factor = by if made.factor is None else self.times(made.factor, by, "factor")
        if made.added is None or other.added is None:
            added = other.added if made.added is None else self.times(made.added, by, "added")
        else:
            added = self.put(math.FmaOp(made.added, by, other.added), "added")
        return Linear(factor, added)

    def _sum(self, op: arith.AddfOp, lhs: SSAValue, rhs: SSAValue) -> Linear:
        if lhs in self.on and rhs in self.on:
            a, b = self.of(lhs), self.of(rhs)
            factor = self.put(arith.AddfOp(self.number(a), self.number(b)), "factor")
            return Linear(factor, self.plus(a.added, b.added))
        if lhs in self.on:
            made = self.of(lhs)
            return Linear(made.factor, self.plus(made.added, rhs))
        made = self.of(rhs)
        return Linear(made.factor, self.plus(lhs, made.added))

    def number(self, made: Linear) -> SSAValue:
        """The factor; of the cell itself 1."""
        if made.factor is not None:
            return made.factor
        one = arith.ConstantOp(FloatAttr(1.0, self.load.res.type))  # pyright: ignore
        return self.put(one, "one")

    def times(self, value: SSAValue, by: SSAValue, name: str) -> SSAValue:
        return self.put(arith.MulfOp(value, by), name)

    def plus(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        return (
            (b if a is None else a)
            if a is None or b is None
            else self.put(arith.AddfOp(a, b), "added")
        )

    def minus(self, value: SSAValue | None) -> SSAValue | None:
        return None if value is None else self.put(arith.NegfOp(value), "minus")

    def put(self, op: Operation, name: str) -> SSAValue:
        if not isinstance(op, arith.ConstantOp):
            op.attributes[ADJOINT] = UnitAttr()
        locate(op, self.store.location)
        block = self.store.parent
        assert block is not None
        block.insert_op_before(op, self.store)
        op.results[0].name_hint = name
        return op.results[0]

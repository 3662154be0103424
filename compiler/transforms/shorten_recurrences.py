"""Let a linear recurrence of the adjoint take one product and one sum for each iteration.

The cotangent of a variable that iterations hand on comes back as `s * p * q * x + s * a * c + ...`: products
that wait for each other, and for those of the iteration before. What the variable is multiplied by does not
wait, so it is computed beside the chain, which is then `s * A + B`. `distribute-loops`, which runs after
this, makes vectors of A and B.

A product of partials underflows, or overflows, where the cotangent times one after the other is a number.
So A is NaN where one of its products has fewer bits than it should, and none of its factors is 0; and where
`s * A + B` is not finite, the iteration does what the program does. This hangs on the iteration's numbers
alone: a gradient within a budget has the same bits.

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
      } {of_numbers}
      %r = memref.load %cell[] : memref<f64>
      func.return %r : f64
    }

After::

    func.func @f(%n: index, %x: memref<?xf64>, %s: f64, %a: f64) -> f64 {
      %cell = memref.alloca() : memref<f64>
      memref.store %s, %cell[] : memref<f64>
      %trips = array.loop %i to %n do {
        %p = memref.load %x[%i] : memref<?xf64>
        %bar = memref.load %cell[] : memref<f64>
        %added = arith.mulf %p, %a {ad.adjoint} : f64
        %factor = arith.mulf %a, %p {ad.adjoint} : f64
        %added_1 = arith.mulf %added, %p {ad.adjoint} : f64
        %zero = arith.constant 0.000000e+00 : f64
        %least = arith.constant 2.2250738585072014e-308 : f64
        %size = math.absf %factor {ad.adjoint} : f64
        %small = arith.cmpf olt, %size, %least {ad.adjoint} : f64
        %nonzero = arith.cmpf one, %a, %zero {ad.adjoint} : f64
        %small_1 = arith.andi %small, %nonzero {ad.adjoint} : i1
        %nonzero_1 = arith.cmpf one, %p, %zero {ad.adjoint} : f64
        %small_2 = arith.andi %small_1, %nonzero_1 {ad.adjoint} : i1
        %no_number = arith.constant 0x7ff8000000000000 : f64
        %factor_1 = arith.select %small_2, %no_number, %factor {ad.adjoint} : f64
        %product = arith.mulf %bar, %factor_1 {ad.adjoint} : f64
        %next = arith.addf %product, %added_1 {ad.adjoint} : f64
        %infinite = arith.constant 0x7ff0000000000000 : f64
        %size_1 = math.absf %next {ad.adjoint} : f64
        %finite = arith.cmpf olt, %size_1, %infinite {ad.adjoint} : f64
        %next_1 = scf.if %finite -> (f64) {
          scf.yield %next : f64
        } else {
          %sum = arith.addf %bar, %p {ad.adjoint} : f64
          %once = arith.mulf %sum, %a {ad.adjoint} : f64
          %twice = arith.mulf %once, %p {ad.adjoint} : f64
          scf.yield %twice : f64
        }{shortened = 3 : i64, ad.adjoint}
        memref.store %next_1, %cell[] : memref<f64>
        array.yield
      } {of_numbers}
      %r = memref.load %cell[] : memref<f64>
      func.return %r : f64
    }

What else reads values of the chain reads them still: the next iteration does not wait for them any more.
`distribute-loops` takes the second branch for good in blocks of a few iterations, and in loops that it leaves
as they are, unless these do little else than to wait. With `fastmath` nothing is checked. Only ops of the
adjoint are taken; a guarded product (`ad.mul`) is none.

Kept: chains of up to two ops, but for signs; chains that also wait for another one, or for what the loop
stores; cells that a branch touches; without `fastmath`, loops of which a step within a budget is one
iteration, where the chain is not seen (no `of_numbers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, nan

from xdsl.context import Context
from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnitAttr,
    f32,
    f64,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import is_cell, is_outside
from ..diagnostics import locate
from ..rules.table import ADJOINT, float_constant
from .distribute_loops import leaves
from .memory_effects import functions
from .stage_plan import scalar_ops

SHORT = 2
"""Chains of so many ops are as short as they get."""

LEAST: dict[Attribute, float] = {f64: 2.0**-1022, f32: 2.0**-126}
"""The least numbers that have all their bits."""

MOST = 40
"""Chains of more ops would take too many more beside them."""


@dataclass(frozen=True)
class ShortenRecurrences(ModulePass):
    """Compute the factors of linear recurrences of the adjoint beside them."""

    name = "shorten-recurrences"
    fastmath: bool = False
    """Products may be made in any order: no iteration checks them."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            alias: AliasAnalysis | None = None
            for loop in list(leaves(function.body.block)):
                # Where a step within a budget is one iteration, there is no loop to see it.
                blocks = self.fastmath or array.OF_NUMBERS in loop.attributes
                if blocks and handed_on(loop):
                    alias = alias or AliasAnalysis(function)
                    for chain in chains_of(loop, alias):
                        chain.shorten(checked=not self.fastmath)


def handed_on(loop: array.LoopOp) -> dict[SSAValue, memref.StoreOp]:
    """The cells of the loop that are loaded, then stored to once, each by an op of the adjoint."""
    found: dict[SSAValue, memref.StoreOp] = {}
    ops = scalar_ops(loop)
    stores = [op for op in ops if isinstance(op, memref.StoreOp)]
    cells = [op.memref for op in stores if is_variable(op.memref) and is_outside(op.memref, loop)]
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


def is_variable(memory: SSAValue) -> bool:
    """A cell, of the function's own or handed in: steps are handed those of their loop."""
    assert isinstance(memory.type, MemRefType)
    handed = isinstance(memory, BlockArgument) and memory.type.get_num_dims() == 0
    return handed or is_cell(memory)


def is_of_adjoint(op: object) -> bool:
    return isinstance(op, Operation) and ADJOINT in op.attributes


def chains_of(loop: array.LoopOp, alias: AliasAnalysis) -> list[Chain]:
    """The chains that are worth it, in the order of the program."""
    found: list[Chain] = []
    ops = scalar_ops(loop)
    stored = [op.memref for op in ops if isinstance(op, memref.StoreOp)]
    loads = [op for op in ops if isinstance(op, memref.LoadOp)]
    changing = [op for op in loads if any(alias.may_alias(op.memref, m) for m in stored)]
    touched = {op.memref for op in ops if isinstance(op, memref.LoadOp | memref.StoreOp)}
    for cell, store in handed_on(loop).items():
        if any(alias.may_alias(cell, other) for other in touched - {cell}):
            continue
        (load,) = (op for op in changing if op.memref is cell)
        on = followers([load], ops)
        late = followers([op for op in changing if op is not load], ops)
        length = longest(store.value, on)
        if load.res.type in LEAST and length > SHORT and len(on) <= MOST:
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
    products: list[tuple[SSAValue, SSAValue, SSAValue | None]] = field(
        default_factory=list[tuple[SSAValue, SSAValue, SSAValue | None]]
    )
    """What factors are multiplied to, or divided to, and of what."""

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

    def shorten(self, *, checked: bool) -> None:
        """Let the cell be multiplied once and added to once."""
        made, old = self.of(self.store.value), self.store.value
        if made.factor is None:
            return  # a sum: LLVM has many at a time
        factor = self.checked(made.factor) if checked else made.factor
        value = self.put(arith.MulfOp(self.load.res, factor), "product")
        if made.added is not None:
            value = self.put(arith.AddfOp(value, made.added), "next")
        self.store.operands[0] = self.either(value, old) if checked else value
        for op in reversed(list(dict.fromkeys(self.on.values()))):
            if op is not self.load and all(r.first_use is None for r in op.results):
                Rewriter.erase_op(op)

    def checked(self, factor: SSAValue) -> SSAValue:
        """The factor, NaN where one of its products is too small, and none of what it was made of is 0."""
        lost: SSAValue | None = None
        type_ = factor.type
        zero = self.put(float_constant(0.0, type_), "zero") if self.products else factor
        for value, *numbers in self.products:
            least = self.put(float_constant(LEAST[type_], type_), "least")
            size = self.put(math.AbsFOp(value), "size")
            small = self.put(arith.CmpfOp(size, least, "olt"), "small")
            for number in numbers:
                if number is not None:
                    nonzero = self.put(arith.CmpfOp(number, zero, "one"), "nonzero")
                    small = self.put(arith.AndIOp(small, nonzero), "small")
            lost = small if lost is None else self.put(arith.OrIOp(lost, small), "lost")
        if lost is None:
            return factor
        no_number = self.put(float_constant(nan, type_), "no_number")
        return self.put(arith.SelectOp(lost, no_number, factor), "factor")

    def either(self, value: SSAValue, old: SSAValue) -> SSAValue:
        """The value where it is finite; else what the chain made."""
        infinite = self.put(float_constant(inf, value.type), "infinite")
        size = self.put(math.AbsFOp(value), "size")
        finite = self.put(arith.CmpfOp(size, infinite, "olt"), "finite")
        again, values = Block(), dict[SSAValue, SSAValue]()
        for op in self.leading_to(old):
            again.add_op(op.clone(values))
        again.add_op(scf.YieldOp(values[old]))
        branch = scf.IfOp(finite, [value.type], [Block([scf.YieldOp(value)])], [again])
        branch.attributes[array.SHORTENED] = IntegerAttr(longest(old, self.on), i64)
        return self.put(branch, "next")

    def leading_to(self, value: SSAValue) -> list[Operation]:
        """What the chain computes a value by, in order."""
        found: set[Operation] = set()
        pending = [value]
        while pending:
            op = self.on.get(pending.pop())
            if op is not None and op is not self.load and op not in found:
                found.add(op)
                pending += op.operands
        return [op for op in dict.fromkeys(self.on.values()) if op in found]

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
                number = self.number(made)
                factor = self.put(arith.DivfOp(number, op.rhs), "factor")
                self.products.append((factor, number, None))
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
        factor = by if made.factor is None else self.multiplied(made.factor, by)
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
            factor = by if made.factor is None else self.multiplied(made.factor, by)
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

    def multiplied(self, factor: SSAValue, by: SSAValue) -> SSAValue:
        made = self.times(factor, by, "factor")
        self.products.append((made, factor, by))
        return made

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

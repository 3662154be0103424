"""Give a cell that each iteration adds the same to its value in iteration i: start + i * step.

The length of a list that a loop appends to is such a cell, and subscripts made of it are affine then: the
loop can be raised, and what it stores is seen to kill nothing. Runs after promote-scalars, inner loops first;
what it leaves is straight-line code, which promote-scalars turns into values.

Before::

    func.func @f(%x : memref<?xf64>, %l : memref<?xf64>, %n : index) -> index {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %length = memref.alloca() : memref<index>
      memref.store %c0, %length[] : memref<index>
      %trips = array.loop %i to %n do {
        %at = memref.load %length[] : memref<index>
        %v = memref.load %x[%i] : memref<?xf64>
        memref.store %v, %l[%at] : memref<?xf64>
        %more = arith.addi %at, %c1 : index
        memref.store %more, %length[] : memref<index>
        array.yield
      }
      %r = memref.load %length[] : memref<index>
      func.return %r : index
    }

After::

    func.func @f(%x : memref<?xf64>, %l : memref<?xf64>, %n : index) -> index {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : index
      %count = arith.maxsi %n, %zero : index
      %trips = array.loop %i to %n do {
        %at = arith.addi %c0, %i : index
        %v = memref.load %x[%i] : memref<?xf64>
        memref.store %v, %l[%at] : memref<?xf64>
        %more = arith.addi %at, %c1 : index
        array.yield
      }
      %r = arith.addi %c0, %count : index
      func.return %r : index
    }

Kept: cells that a branch changes, or by an amount that the loop computes, and checked arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from .fold_constants import is_nonnegative
from .memory_effects import functions
from .promote_scalars import PromoteScalars, simple_cells

Put = Callable[[Operation], SSAValue]
Amount = tuple[tuple[int, SSAValue], ...]
"""A sum of loop invariants, each with its sign."""


@dataclass(frozen=True)
class CloseCounters(ModulePass):
    """Replace counters in memory by affine functions of the iteration."""

    name = "close-counters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        closed = False
        for function in functions(op):
            cells = [c for c in simple_cells(function) if is_integer(c)]
            if cells:
                for loop in [o for o in function.walk(region_first=True) if is_loop(o)]:
                    for cell in cells:
                        assert isinstance(loop, array.LoopOp)
                        closed |= closed_in(loop, cell)
        if closed:
            PromoteScalars().apply(ctx, op)


def is_loop(op: Operation) -> bool:
    return isinstance(op, array.LoopOp)


def is_integer(cell: SSAValue) -> bool:
    return isinstance(cell.type, MemRefType) and isinstance(cell.type.element_type, IndexType)


def closed_in(loop: array.LoopOp, cell: SSAValue) -> bool:
    """Close the cell in this loop if each iteration adds the same; True when it is done."""
    accesses = [u.operation for u in cell.uses if loop.is_ancestor(u.operation)]
    if not any(isinstance(op, memref.StoreOp) for op in accesses):
        return False
    counter = Counter(loop, cell)
    if not counter.follow(accesses):
        return False
    counter.rewrite(accesses)
    return True


@dataclass
class Counter:
    """One cell in one loop: how much has been added since the iteration began, at each load."""

    loop: array.LoopOp
    cell: SSAValue
    added: dict[SSAValue, Amount] = field(default_factory=dict[SSAValue, Amount])
    step: Amount = ()

    def follow(self, accesses: list[Operation]) -> bool:
        """Whether every store of the loop adds an invariant to what the cell holds."""
        body = self.loop.body.block
        inside = dict[Operation, list[Operation]]()
        for op in accesses:
            above = body.find_ancestor_op_in_block(op)
            if above is None:  # in the condition, which is asked as an iteration begins
                if isinstance(op, memref.StoreOp):
                    return False
                self.added[op.results[0]] = ()
            else:
                inside.setdefault(above, []).append(op)
        for above in body.ops:
            for op in inside.get(above, ()):
                if isinstance(op, memref.LoadOp):
                    self.added[op.res] = self.step
                elif op is not above or not isinstance(op, memref.StoreOp):
                    return False
                else:
                    amount = self.amount(op.value)
                    if amount is None:
                        return False
                    self.step = amount
        return True

    def amount(self, value: SSAValue) -> Amount | None:
        """What `value` is more than the cell as the iteration began; None where that is not known."""
        if value in self.added:
            return self.added[value]
        owner = value.owner
        match owner:
            case arith.AddiOp():
                for counted, more in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
                    before = self.amount(counted)
                    if before is not None and self.is_invariant(more):
                        return (*before, (1, more))
            case arith.SubiOp():
                before = self.amount(owner.lhs)
                if before is not None and self.is_invariant(owner.rhs):
                    return (*before, (-1, owner.rhs))
            case _:
                pass
        return None

    def is_invariant(self, value: SSAValue) -> bool:
        """True for what is known before the loop, or computed from that by simple arithmetic."""
        owner = value.owner
        if isinstance(owner, Block):
            above = owner.parent_op()
            return above is None or not self.loop.is_ancestor(above)
        if not self.loop.is_ancestor(owner):
            return True
        simple = isinstance(owner, arith.AddiOp | arith.SubiOp | arith.MuliOp | arith.ConstantOp)
        simple = simple or isinstance(owner, arith.MaxSIOp | arith.MinSIOp)
        return simple and all(map(self.is_invariant, owner.operands))

    # The rewrite.

    def rewrite(self, accesses: list[Operation]) -> None:
        start = self.before(memref.LoadOp.get(self.cell, []))
        start.name_hint = self.cell.name_hint
        step = self.sum(self.step)
        for op in accesses:
            if isinstance(op, memref.StoreOp):
                op.detach()
                op.erase()
        for load, amount in self.added.items():
            op = load.owner
            assert isinstance(op, memref.LoadOp)
            Rewriter.replace_op(op, [], [self.value(op, start, step, amount)])
        self.leave(start, step)

    def value(
        self, op: Operation, start: SSAValue, step: int | SSAValue, amount: Amount
    ) -> SSAValue:
        """start + i * step + what has been added since the iteration began, at `op`."""
        block = op.parent
        assert block is not None

        def put(made: Operation) -> SSAValue:
            made.location = op.location
            block.insert_op_before(made, op)
            return made.results[0]

        in_condition = self.loop.condition_block is not None and is_within(
            block, self.loop.condition_block
        )
        home = self.loop.condition_block if in_condition else self.loop.body.block
        assert home is not None
        return self.advanced(start, home.args[0], step, self.sum(amount), put)

    def advanced(
        self, start: SSAValue, times: SSAValue, step: int | SSAValue, more: int | SSAValue, put: Put
    ) -> SSAValue:
        result = start
        if step != 0:
            moved = times if step == 1 else put(arith.MuliOp(times, self.number(step)))
            is_zero = array.constant_value(result) == 0
            result = moved if is_zero else put(arith.AddiOp(result, moved))
        if more != 0:
            result = put(arith.AddiOp(result, self.number(more)))
        return result

    def leave(self, start: SSAValue, step: int | SSAValue) -> None:
        """The cell after the loop."""
        block = self.loop.parent
        assert block is not None
        last: Operation = self.loop

        def put(made: Operation) -> SSAValue:
            nonlocal last
            made.location = self.loop.location
            block.insert_op_after(made, last)
            last = made
            return made.results[0] if made.results else start

        end = self.advanced(start, self.trips(), step, 0, put)
        put(memref.StoreOp.get(end, self.cell, []))

    def trips(self) -> SSAValue:
        """How often the loop runs: its count, where that is known before it."""
        loop = self.loop
        if loop.count is None or loop.condition_block is not None:
            return loop.trips
        if is_nonnegative(loop.count):
            return loop.count
        return self.before(arith.MaxSIOp(loop.count, self.number(0)))

    def sum(self, amount: Amount) -> int | SSAValue:
        """A sum of invariants, before the loop: an int where it is one."""
        known, unknown = 0, list[tuple[int, SSAValue]]()
        for sign, value in amount:
            constant = array.constant_value(value)
            if constant is None:
                unknown.append((sign, value))
            else:
                known += sign * constant
        total: SSAValue | None = None
        for sign, value in unknown:
            here = self.outside(value)
            if total is None and sign > 0:
                total = here
            else:
                op = arith.AddiOp if sign > 0 else arith.SubiOp
                total = self.before(op(self.number(0) if total is None else total, here))
        if total is None:
            return known
        return self.before(arith.AddiOp(total, self.number(known))) if known else total

    def outside(self, value: SSAValue) -> SSAValue:
        """An invariant, before the loop."""
        owner = value.owner
        if isinstance(owner, Block) or not self.loop.is_ancestor(owner):
            return value
        return self.before(owner.clone({o: self.outside(o) for o in owner.operands}))

    def number(self, value: int | SSAValue) -> SSAValue:
        if isinstance(value, SSAValue):
            return value
        return self.before(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def before(self, op: Operation) -> SSAValue:
        block = self.loop.parent
        assert block is not None
        op.location = self.loop.location
        block.insert_op_before(op, self.loop)
        return op.results[0]


def is_within(block: Block, outer: Block) -> bool:
    found: Block | None = block
    while found is not None and found is not outer:
        above = found.parent_op()
        found = None if above is None else above.parent
    return found is outer

"""Make the checks of a loop over elements before it runs, so that it becomes a kernel.

A kernel cannot raise. So a copy of the loop, which stores nothing, finds out whether some check fails: a
kernel as well, that reduces to a flag. Where one does, the loop runs as it was written, in its order, on the
host: it raises where Python would, and leaves what Python leaves. Else it runs without checks.

Before::

    func.func @f(%k : memref<?xindex>, %u : memref<?xf64>, %n : index, %m : index, %x : f64) {
      %trips = array.loop %i to %n do {
        %at = memref.load %k[%i] : memref<?xindex>
        %j = array.index %at, %m axis 0 sign "nonneg"
        memref.store %x, %u[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%k : memref<?xindex>, %u : memref<?xf64>, %n : index, %m : index, %x : f64) {
      %any = memref.alloca() : memref<index>
      %none = arith.constant 0 : index
      memref.store %none, %any[] : memref<index>
      %failed = memref.alloca() : memref<index>
      %trips = array.loop %i to %n do {
        %fine = arith.constant 0 : index
        memref.store %fine, %failed[] : memref<index>
        %at = memref.load %k[%i] : memref<?xindex>
        %j = array.index %at, %m axis 0 : i64 sign "nonneg" unchecked
        %zero = arith.constant 0 : index
        %low = arith.cmpi slt, %j, %zero : index
        %high = arith.cmpi sge, %j, %m : index
        %bad = arith.ori %low, %high : i1
        scf.if %bad {
          %one = arith.constant 1 : index
          memref.store %one, %failed[] : memref<index>
        }
        %before = memref.load %any[] : memref<index>
        %now = memref.load %failed[] : memref<index>
        %most = arith.maxsi %before, %now : index
        memref.store %most, %any[] : memref<index>
        array.yield
      }
      %found = memref.load %any[] : memref<index>
      %raises = arith.cmpi ne, %found, %none : index
      scf.if %raises {
        %trips_1 = array.loop %i to %n do {
          %at = memref.load %k[%i] : memref<?xindex>
          %j = array.index %at, %m axis 0 : i64 sign "nonneg"
          memref.store %x, %u[%i] : memref<?xf64>
          array.yield
        }
      } else {
      } {raises}
      %trips_2 = array.loop %i to %n do {
        %at = memref.load %k[%i] : memref<?xindex>
        %j = array.index %at, %m axis 0 : i64 sign "nonneg" unchecked
        memref.store %x, %u[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

Where loops around it change nothing of what it reads, the copy stands before them: it looks once. An
iteration of the copy ends at its first check that fails (`predication`).

Kept: loops whose checks, or the conditions around them, depend on what the loop stores, and sums of
Python's integers, which must fit in 64 bits. One thread runs these (`defer_raises`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import roles
from ..analysis.dependence import Dependence
from ..analysis.effects import is_private
from ..analysis.independence import Independence, Independent
from .changes import changed_values, is_variable
from .invariant_places import is_element, load_if_there, place_of
from .kernel import Writer, element_of
from .lanes import refuse_lanes
from .nest_kernels import obstacle, whole_arrays_in
from .predication import PLAIN, Predication, inserting_before
from .updates import Ordered, Sharing

CHECKS = (array.IndexOp, array.RaiseIfOp, array.CheckedIntOp)


@dataclass(frozen=True)
class InspectChecks(ModulePass):
    """Run the checks of a loop over elements before it, in a loop that only inspects."""

    name = "inspect-checks"

    deterministic: bool = False
    """Nothing is added atomically."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and not is_private(function):
                inspect(function, deterministic=self.deterministic)


def inspect(function: func.FuncOp, *, deterministic: bool) -> None:
    refuse_lanes(function)
    alias = AliasAnalysis(function)
    independence = Independence(function, Dependence(function, alias))
    sharing = Sharing(independence, deterministic=deterministic)
    for loop in inspected(function.body.block, sharing):
        Inspection(loop, alias).write()


def inspected(block: Block, sharing: Sharing) -> Iterator[array.LoopOp]:
    """The outermost loops that would be kernels of many threads, were it not for their checks."""
    for op in list(block.ops):
        if array.RAISES in op.attributes:
            continue
        if isinstance(op, array.LoopOp) and any(map(is_check, op.walk())):
            told = None if whole_arrays_in(op) else sharing.of(op)
            if told is not None and may_be_inspected(op, told, sharing):
                yield op
                continue
        for inner in (b for region in op.regions for b in region.blocks):
            yield from inspected(inner, sharing)


def is_check(op: Operation) -> bool:
    return array.is_operation_that_may_raise(op)


def may_be_inspected(loop: array.LoopOp, told: Independent | Ordered, sharing: Sharing) -> bool:
    """Whether the checks see what they see when the loop runs."""
    if loop.condition_block is not None or obstacle(loop, told, sharing, unless=CHECKS) is not None:
        return False
    alias = sharing.independence.alias
    changed = changed_values(loop, alias, by_others=isinstance(told, Ordered))
    return changed.isdisjoint(v for op in every_op(loop) for v in decisive(op))


def decisive(op: Operation) -> Sequence[SSAValue]:
    """What decides whether a check fails, or is made at all."""
    if is_check(op) or isinstance(op, array.LoopOp | array.ConditionOp):
        return op.operands
    return (op.cond,) if isinstance(op, scf.IfOp) and any(map(is_check, op.walk())) else ()


class Inspection:
    """Writes the copy of a loop that looks, before the loop."""

    def __init__(self, loop: array.LoopOp, alias: AliasAnalysis) -> None:
        self.loop, self.alias = loop, alias
        self.host = Writer(inserting_before(loop), loop.location)

    def write(self) -> None:
        host, loop = self.host, self.loop
        look = self.copied()
        for op in every_op(look):
            if isinstance(op, memref.StoreOp) and not is_variable(op):
                Rewriter.erase_op(op)
        without_use(look)
        raises = self.look(look)
        as_written = Block([loop.clone()])
        branch = scf.IfOp(raises, [], Region(as_written), Region(Block()))
        with host.within(as_written):
            host.add(scf.YieldOp())
        with host.within(branch.false_region.block):
            host.add(scf.YieldOp())
        branch.attributes[array.RAISES] = UnitAttr()
        host.add(branch)
        for op in every_op(loop):
            if isinstance(op, array.RaiseIfOp):
                Rewriter.erase_op(op)
            elif isinstance(op, array.IndexOp):
                op.properties["unchecked"] = UnitAttr()
            elif isinstance(op, array.CheckedIntOp):
                Rewriter.replace_op(op, PLAIN[type(op)](op.lhs, op.rhs))
        stores = any(isinstance(op, memref.StoreOp) for op in every_op(loop))
        if not stores and loop.count is not None:
            loop.trips.replace_all_uses_with(host.at_least_zero(loop.count))
            Rewriter.erase_op(loop)

    def copied(self) -> array.LoopOp:
        """The loop, with variables of its own."""
        values: dict[SSAValue, SSAValue] = {}
        for cell in roles(self.loop):
            values[cell] = own = self.host.cell(element_of(cell))
            self.host.store(self.host.load(cell), own)
        return self.loop.clone(values)

    def look(self, look: array.LoopOp) -> SSAValue:
        """Whether a check fails, found once where loops around change nothing of what it sees."""
        own_only = not roles(self.loop)
        place = place_of(self.loop, every_op(look), self.alias) if own_only else self.loop
        if place is not self.loop:
            for op in [op for op in every_op(look) if isinstance(op, memref.LoadOp)]:
                if is_element(op):
                    here = Writer(inserting_before(op), op.location)
                    Rewriter.replace_op(op, [], [load_if_there(here, op.memref, list(op.indices))])
        host = Writer(inserting_before(place), self.loop.location)
        flag, none = host.cell(IndexType()), host.index(0)
        host.store(none, flag)
        self.end_early(look.body.block, host, flag)
        host.add(look)
        return host.emit(arith.CmpiOp(host.load(flag), none, "ne"))

    def end_early(self, body: Block, host: Writer, flag: SSAValue) -> None:
        """An iteration ends at the first check that fails; all of them add up to one flag."""
        failed = host.cell(IndexType())
        Predication(failed, lambda here, _: here.store(here.index(1), failed)).block(body)
        first, last = body.first_op, body.last_op
        assert first is not None
        assert last is not None
        before = Writer(inserting_before(first), self.loop.location)
        before.store(before.index(0), failed)
        end = Writer(inserting_before(last), self.loop.location)
        most = arith.MaxSIOp(end.load(flag), end.load(failed))
        end.store(end.emit(most), flag)


def without_use(loop: array.LoopOp) -> None:
    """Drop what computes nothing that a check sees."""
    for op in reversed(every_op(loop)):
        unused = all(r.first_use is None for r in op.results)
        if op is not loop and unused and is_droppable(op):
            Rewriter.erase_op(op)


def is_droppable(op: Operation) -> bool:
    if isinstance(op, scf.IfOp):
        return not any(isinstance(one, memref.StoreOp) or is_check(one) for one in op.walk())
    return bool(op.results) and not op.regions and not is_check(op)

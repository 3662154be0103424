"""Look at subscripts that come from arrays before a loop over elements runs, so that it becomes a kernel.

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
      %failed = memref.alloca() : memref<index>
      %none = arith.constant 0 : index
      memref.store %none, %failed[] : memref<index>
      %trips = array.loop %i to %n do {
        %at = memref.load %k[%i] : memref<?xindex>
        %j = array.index %at, %m axis 0 : i64 sign "nonneg" unchecked
        %zero = arith.constant 0 : index
        %low = arith.cmpi slt, %j, %zero : index
        %high = arith.cmpi sge, %j, %m : index
        %bad = arith.ori %low, %high : i1
        %one = arith.constant 1 : index
        %zero_1 = arith.constant 0 : index
        %now = arith.select %bad, %one, %zero_1 : index
        %before = memref.load %failed[] : memref<index>
        %most = arith.maxsi %before, %now : index
        memref.store %most, %failed[] : memref<index>
        array.yield
      }
      %any = memref.load %failed[] : memref<index>
      %raises = arith.cmpi ne, %any, %none : index
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

Where loops around it change nothing of what it reads, the copy stands before them: it looks once.

Kept: loops whose checks, or the conditions around them, depend on what the loop stores, and sums of
Python's integers, which must fit in 64 bits. Loops that many threads run are looked at first, then those
that are left to one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import roles
from ..analysis.dependence import Dependence
from ..analysis.effects import is_private
from ..analysis.independence import Independence, Independent
from ..rules import is_whole_array
from .changes import changed_values, is_variable
from .invariant_places import is_element, load_if_there, place_of
from .kernel import Writer, element_of, zero_of
from .lanes import refuse_lanes
from .nest_kernels import arrays_of, leaves_something, obstacle, whole_arrays_in
from .placement import Placement
from .serial_kernels import is_of_one_thread
from .updates import Ordered, Sharing

LOOKED_AT = (array.IndexOp, array.RaiseIfOp)
COUNTED = (array.CheckedAddOp, array.CheckedSubOp)
"""Of loops that one thread runs also Python's integers that go up and down."""

PLAIN: dict[type[Operation], type[arith.AddiOp | arith.SubiOp]] = {
    array.CheckedAddOp: arith.AddiOp,
    array.CheckedSubOp: arith.SubiOp,
}


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
    maps = [op for op in every_op(function) if is_whole_array(op)]
    placement = Placement(function, alias, maps)
    for loop in inspected_of_one_thread(function.body.block, sharing, placement):
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


def inspected_of_one_thread(
    block: Block, sharing: Sharing, placement: Placement
) -> Iterator[array.LoopOp]:
    """The outermost loops that one thread would run, were it not for their checks."""
    for op in list(block.ops):
        if array.RAISES in op.attributes:
            continue
        if isinstance(op, array.LoopOp) and would_be_serial(op, sharing, placement):
            yield op
            continue
        for inner in (b for region in op.regions for b in region.blocks):
            yield from inspected_of_one_thread(inner, sharing, placement)


def would_be_serial(loop: array.LoopOp, sharing: Sharing, placement: Placement) -> bool:
    """Whether a loop over arrays of the device has checks, and one thread would run it without them."""
    if not any(map(is_check, loop.walk())) or not is_serial(loop, sharing):
        return False
    return any(map(placement.has, arrays_of(loop)))


def is_serial(loop: array.LoopOp, sharing: Sharing) -> bool:
    """Whether one thread would run a loop without its checks, and they see what they see then."""
    if not all(is_check(op) or is_of_one_thread(op) for op in every_op(loop)):
        return False
    if any(isinstance(op, array.LoopOp) and is_nest(op, sharing) for op in every_op(loop)):
        return False
    changed = changed_values(loop, sharing.independence.alias, by_others=True)
    return changed.isdisjoint(v for op in every_op(loop) for v in decisive(op))


def is_nest(loop: array.LoopOp, sharing: Sharing) -> bool:
    """Whether many threads run a loop."""
    told = sharing.of(loop)
    return leaves_something(loop, told) and obstacle(loop, told, sharing) is None


def is_check(op: Operation) -> bool:
    return isinstance(op, (*LOOKED_AT, *COUNTED)) and array.is_operation_that_may_raise(op)


def may_be_inspected(loop: array.LoopOp, told: Independent | Ordered, sharing: Sharing) -> bool:
    """Whether the checks see what they see when the loop runs."""
    if obstacle(loop, told, sharing, unless=LOOKED_AT) is not None:
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
        self.host = writer_before(loop)
        flag = memref.AllocaOp.get(IndexType(), shape=[])
        self.flag = flag.memref
        self.fine: dict[SSAValue, SSAValue] = {}
        """By subscript whether it is in range."""

    def write(self) -> None:
        host, loop = self.host, self.loop
        look = self.copied()
        for op in every_op(look):
            self.rewrite(op)
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
            elif isinstance(op, COUNTED):
                Rewriter.replace_op(op, PLAIN[type(op)](op.lhs, op.rhs))
        stores = any(isinstance(op, memref.StoreOp) for op in every_op(loop))
        if not stores and loop.count is not None and loop.condition_block is None:
            loop.trips.replace_all_uses_with(host.at_least_zero(loop.count))
            Rewriter.erase_op(loop)

    def look(self, look: array.LoopOp) -> SSAValue:
        """Whether a check fails, found once where loops around change nothing of what it sees."""
        own_only = not roles(self.loop)
        place = place_of(self.loop, every_op(look), self.alias) if own_only else self.loop
        if place is not self.loop:
            for op in [op for op in every_op(look) if isinstance(op, memref.LoadOp)]:
                if is_element(op):
                    here = writer_before(op)
                    Rewriter.replace_op(op, [], [load_if_there(here, op.memref, list(op.indices))])
        host = writer_before(place)
        assert isinstance(self.flag.owner, Operation)
        host.add(self.flag.owner)
        none = host.index(0)
        host.store(none, self.flag)
        host.add(look)
        return host.emit(arith.CmpiOp(host.load(self.flag), none, "ne"))

    def copied(self) -> array.LoopOp:
        """The loop, with variables of its own."""
        values: dict[SSAValue, SSAValue] = {}
        for cell in roles(self.loop):
            values[cell] = own = self.host.cell(element_of(cell))
            self.host.store(self.host.load(cell), own)
        return self.loop.clone(values)

    def rewrite(self, op: Operation) -> None:
        """Stores go; a check that fails sets the flag; what it guards is read where it does not.

        Then the loop may end later than the program's, so a `while` looks at the flag, too.
        """
        here = Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(op)), op.location)
        match op:
            case memref.StoreOp() if not is_variable(op):
                Rewriter.erase_op(op)
            case array.RaiseIfOp():
                self.note(here, op.condition)
                Rewriter.erase_op(op)
            case array.CheckedAddOp() | array.CheckedSubOp():
                self.count(here, op)
            case array.ConditionOp():
                none = here.emit(arith.CmpiOp(here.load(self.flag), here.index(0), "eq"))
                op.operands = [here.emit(arith.AndIOp(op.operands[0], none))]
            case array.IndexOp() if is_check(op):
                self.look_at(op)
            case memref.LoadOp() if self.guards(op):
                self.guard(here, op)
            case _:
                pass

    def note(self, here: Writer, bad: SSAValue) -> None:
        now = here.emit(arith.SelectOp(bad, here.index(1), here.index(0)))
        here.store(here.emit(arith.MaxSIOp(here.load(self.flag), now)), self.flag)

    def count(self, here: Writer, op: array.CheckedAddOp | array.CheckedSubOp) -> None:
        """A sum that does not fit has the sign of neither term, a difference not that of the first."""
        found = here.emit(PLAIN[type(op)](op.lhs, op.rhs))
        other = found if isinstance(op, array.CheckedAddOp) else op.lhs
        signs = here.emit(arith.XOrIOp(found, op.lhs)), here.emit(arith.XOrIOp(other, op.rhs))
        both = here.emit(arith.AndIOp(*signs))
        self.note(here, here.less(both, here.index(0)))
        Rewriter.replace_op(op, [], [found])

    def look_at(self, op: array.IndexOp) -> None:
        op.properties["unchecked"] = UnitAttr()
        behind = Writer(Behind(op).add, op.location)
        low = behind.less(op.result, behind.index(0))
        high = behind.emit(arith.CmpiOp(op.result, op.extent, "sge"))
        bad = behind.emit(arith.OrIOp(low, high))
        self.note(behind, bad)
        self.fine[op.result] = bad

    def guards(self, op: memref.LoadOp) -> list[SSAValue]:
        return [self.fine[i] for i in op.indices if i in self.fine]

    def guard(self, here: Writer, op: memref.LoadOp) -> None:
        """An element, or 0 where there is none."""
        element = element_of(op.memref)
        bad = self.guards(op)
        either = bad[0]
        for one in bad[1:]:
            either = here.emit(arith.OrIOp(either, one))
        found = here.either(
            either,
            element,
            lambda: here.emit(zero_of(element)),
            lambda: here.load(op.memref, list(op.indices)),
        )
        Rewriter.replace_op(op, [], [found])


def writer_before(op: Operation) -> Writer:
    return Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(op)), op.location)


class Behind:
    """Puts ops one after the other behind an op."""

    def __init__(self, op: Operation) -> None:
        self.last = op

    def add(self, new: Operation) -> None:
        Rewriter.insert_op(new, InsertPoint.after(self.last))
        self.last = new


def without_use(loop: array.LoopOp) -> None:
    """Drop what computes nothing that a check sees."""
    for op in reversed(every_op(loop)):
        unused = all(r.first_use is None for r in op.results)
        if op is not loop and unused and is_droppable(op):
            Rewriter.erase_op(op)


def is_droppable(op: Operation) -> bool:
    if isinstance(op, scf.IfOp):
        return not any(isinstance(inner, memref.StoreOp) for inner in op.walk())
    return bool(op.results) and not op.regions

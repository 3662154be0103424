"""Raise behind a loop over elements that one thread runs, what a check in it has found.

A kernel cannot raise. One thread has the program's order, so it can end where a check fails: it leaves the
check's number, and the values that the exception shows. The host raises behind the loop. What is stored is
what Python stores before it raises.

Before::

    func.func @f(%u : memref<?xf64>, %n : index, %low : f64) {
      %trips = array.loop %i to %n do {
        %x = memref.load %u[%i] : memref<?xf64>
        %bad = arith.cmpf olt, %x, %low : f64
        array.raise_if %bad, "ValueError", "element {}" (%i : index)
        memref.store %low, %u[%n] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%u : memref<?xf64>, %n : index, %low : f64) {
      %failed = memref.alloca() : memref<index>
      %none = arith.constant 0 : index
      memref.store %none, %failed[] : memref<index>
      %size = arith.constant 1 : index
      %shown = array.alloc(%size) : memref<1xindex>
      %trips = array.loop %i to %n do {
        %before = memref.load %failed[] : memref<index>
        %0 = arith.constant 0 : index
        %fine = arith.cmpi eq, %before, %0 : index
        scf.if %fine {
          %x = memref.load %u[%i] : memref<?xf64>
          %bad = arith.cmpf olt, %x, %low : f64
          scf.if %bad {
            %number = arith.constant 1 : index
            memref.store %number, %failed[] : memref<index>
            %1 = arith.constant 0 : index
            memref.store %i, %shown[%1] : memref<1xindex>
          }
          %now = memref.load %failed[] : memref<index>
          %2 = arith.constant 0 : index
          %fine_1 = arith.cmpi eq, %now, %2 : index
          scf.if %fine_1 {
            memref.store %low, %u[%n] : memref<?xf64>
          }
        }
        array.yield
      }
      %found = memref.load %failed[] : memref<index>
      %3 = arith.constant 0 : index
      %any = arith.cmpi ne, %found, %3 : index
      scf.if %any {
        %4 = arith.constant 1 : index
        %this = arith.cmpi eq, %found, %4 : index
        scf.if %this {
          %5 = arith.constant 0 : index
          %i = memref.load %shown[%5] : memref<1xindex>
          %true = arith.constant true
          array.raise_if %true, "ValueError", "element {}" (%i : index)
        }
      } else {
      } {raises}
      func.return
    }

Loops that many threads run have been looked at before (`inspect_checks`): what is left here are loops whose
iterations need each other, or that check what they have stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, UnitAttr, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..analysis.effects import is_private
from ..analysis.independence import Independence
from ..rules import is_whole_array
from .kernel import Writer
from .nest_kernels import arrays_of, is_inside, leaves_something, obstacle
from .placement import Placement
from .predication import Behind, Predication, inserting_before
from .serial_kernels import is_of_one_thread
from .updates import Sharing


@dataclass(frozen=True)
class DeferRaises(ModulePass):
    """Have the host raise what loops of one thread find."""

    name = "defer-raises"

    deterministic: bool = False
    """Nothing is added atomically."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and not is_private(function):
                defer(function, deterministic=self.deterministic)


def defer(function: func.FuncOp, *, deterministic: bool) -> None:
    alias = AliasAnalysis(function)
    independence = Independence(function, Dependence(function, alias))
    sharing = Sharing(independence, deterministic=deterministic)
    loops = list(loops_of_one_thread(function.body.block, sharing))
    kernels = [op for op in every_op(function) if is_whole_array(op)]
    while loops:
        placement = Placement(function, alias, kernels)
        found = [loop for loop in loops if any(map(placement.has, arrays_of(loop)))]
        if not found:
            return
        kernels += found
        loops = [loop for loop in loops if loop not in found]
        for loop in found:
            Deferral(loop).write()


def loops_of_one_thread(block: Block, sharing: Sharing) -> Iterator[array.LoopOp]:
    """The outermost loops that one thread would run, were it not for their checks."""
    for op in block.ops:
        if array.RAISES in op.attributes:
            continue
        if isinstance(op, array.LoopOp) and is_serial(op, sharing):
            yield op
            continue
        for inner in (b for region in op.regions for b in region.blocks):
            yield from loops_of_one_thread(inner, sharing)


def is_serial(loop: array.LoopOp, sharing: Sharing) -> bool:
    """Whether a loop has checks, and one thread would run it without them."""
    ops = every_op(loop)
    if not any(map(array.is_operation_that_may_raise, ops)):
        return False
    if not all(array.is_operation_that_may_raise(op) or is_of_one_thread(op) for op in ops):
        return False
    return not any(isinstance(op, array.LoopOp) and is_nest(op, sharing) for op in ops)


def is_nest(loop: array.LoopOp, sharing: Sharing) -> bool:
    """Whether many threads run a loop."""
    told = sharing.of(loop)
    return leaves_something(loop, told) and obstacle(loop, told, sharing) is None


class Deferral:
    """Rewrites one loop, and writes what raises behind it."""

    def __init__(self, loop: array.LoopOp) -> None:
        self.loop = loop
        self.host = Writer(inserting_before(loop), loop.location)
        ops = every_op(loop)
        self.checks = [op for op in ops if array.is_operation_that_may_raise(op)]
        self.left: dict[Attribute, SSAValue] = {}
        """An array for what it is told, by type."""

    def shown(self, check: Operation) -> Sequence[SSAValue]:
        """What the host has to be told of a check."""
        values = check.operands_shown if isinstance(check, array.RaiseIfOp) else check.operands
        return [v for v in values if is_inside(v, self.loop)]

    def write(self) -> None:
        host = self.host
        block = self.loop.parent
        assert block is not None
        behind = Writer(Behind(block, self.loop.location, self.loop).add, self.loop.location)
        failed = host.cell(IndexType())
        failed.name_hint = "failed"
        host.store(host.index(0), failed)
        self.make_room()
        raising = [self.raised(check) for check in self.checks]
        numbers = {check: k + 1 for k, check in enumerate(self.checks)}

        def note(here: Writer, check: Operation) -> None:
            here.store(here.index(numbers[check]), failed)
            for value, (target, place) in zip(self.shown(check), self.places(check), strict=True):
                here.store(value, target, [here.index(place)])

        Predication(failed, note).loop(self.loop)
        found = behind.load(failed)
        any_ = behind.emit(arith.CmpiOp(found, behind.index(0), "ne"))
        inside, outside = Block(), Block()
        with behind.within(inside):
            for k, one in enumerate(raising):
                this = behind.emit(arith.CmpiOp(found, behind.index(k + 1), "eq"))
                behind.add(scf.IfOp(this, [], Region(one)))
            behind.add(scf.YieldOp())
        with behind.within(outside):
            behind.add(scf.YieldOp())
        branch = scf.IfOp(any_, [], Region(inside), Region(outside))
        branch.attributes[array.RAISES] = UnitAttr()
        behind.add(branch)

    def make_room(self) -> None:
        sizes: dict[Attribute, int] = {}
        for values in map(self.shown, self.checks):
            for type_, count in Counter(v.type for v in values).items():
                sizes[type_] = max(sizes.get(type_, 0), count)
        for type_, size in sizes.items():
            self.left[type_] = self.host.emit(array.AllocOp([self.host.index(size)], type_))
            self.left[type_].name_hint = "shown"

    def places(self, check: Operation) -> Iterator[tuple[SSAValue, int]]:
        """Where each of the values that a check shows is left."""
        used: dict[Attribute, int] = {}
        for value in self.shown(check):
            place = used.get(value.type, 0)
            used[value.type] = place + 1
            yield self.left[value.type], place

    def raised(self, check: Operation) -> Block:
        """The check as the host makes it, with what it is told."""
        block = Block()
        here = Writer(block.add_op, check.location)
        values: dict[SSAValue, SSAValue] = {}
        for value, (source, place) in zip(self.shown(check), self.places(check), strict=True):
            values[value] = here.load(source, [here.index(place)])
        if isinstance(check, array.RaiseIfOp):
            values[check.condition] = here.emit(arith.ConstantOp(IntegerAttr(1, i1)))
        here.add(check.clone(values))
        here.add(scf.YieldOp())
        return block

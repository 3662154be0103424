"""Let an array lie backwards while a loop goes through it backwards, and through others forwards.

The vectors of a map are turned around for each operand that it reads or writes backwards, in each iteration.
A loop that comes back to such an array works on a copy that lies the other way, which is made once before the
loop, and copied back behind it if an iteration stores to it. Each number sees the same operations in the same
order.

Before::

    !front = memref<?xf64, strided<[1]>>
    !back = memref<?xf64, strided<[-1]>>
    func.func @f(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %cm1 = arith.constant -1 : index
      %trips = array.loop %k to %n do {
        %m = arith.addi %k, %c1 : index
        %from = array.view %r[%k] dims [0] extents(%m) steps(%cm1) : memref<?xf64> -> !back
        %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> !front
        array.map(%m) ins(%from : !back) outs(%to : !front) kinds ["add"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.yield
      }
      func.return
    }

After::

    !front = memref<?xf64, strided<[1]>>
    !back = memref<?xf64, strided<[-1]>>
    func.func @f(%r : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %cm1 = arith.constant -1 : index
      %0 = arith.constant 0 : index
      %1 = memref.dim %r, %0 : memref<?xf64>
      %2 = arith.constant 1 : index
      %3 = arith.maxsi %n, %2 : index
      %4 = arith.minsi %1, %3 : index
      %5 = arith.subi %4, %0 : index
      %6 = arith.maxsi %5, %0 : index
      %7 = arith.subi %4, %2 : index
      %8 = arith.constant -1 : index
      %r_reversed = array.alloc(%6) : memref<?xf64>
      %9 = array.view %r[%7] dims [0] extents(%6) steps(%8) : memref<?xf64> -> !back
      array.map(%6) ins(%9 : !back) outs(%r_reversed : memref<?xf64>) kinds ["store"] {
      ^bb0(%10 : f64):
        array.yield %10 : f64
      }
      %trips = array.loop %k to %n do {
        %m = arith.addi %k, %c1 : index
        %11 = arith.subi %7, %k : index
        %12 = arith.constant 1 : index
        %from = array.view %r_reversed[%11] dims [0] extents(%m) steps(%12) : memref<?xf64> -> !front
        %to = array.view %y[%c0] dims [0] extents(%m) steps(%c1) : memref<?xf64> -> !front
        array.map(%m) ins(%from : !front) outs(%to : !front) kinds ["add"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.yield
      }
      func.return
    }

Which part is copied is known before the loop: what its first and last iterations touch, and what lies
between. From one iteration to the next that moves by at most one element, so that a copy takes no longer than
a few iterations.

Kept: arrays that the loop also goes through forwards, or otherwise than in maps and single elements; those
that a loop stores to that may raise, where memory is to be as Python leaves it; loops in loops, whose copies
would be made again and again; maps along nothing but such operands, which go the other way as they are. Sums
are kept in gradients: LLVM may end them with other vectors, and a step within a budget, which is no loop, is
to have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.affine import Affine, Subscripts, extreme, replaced
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.slabs import Span, at, computable, is_outside
from ..diagnostics import locate
from ..rules import accesses, rule_of
from ..rules.builders import transfer
from .hoist_checks import Before, is_counted
from .memory_effects import functions
from .pack_columns import is_sum
from .transpose_rows import LEAST, comes_back

SHORT = 16
"""Maps along fewer elements gain nothing."""


@dataclass(frozen=True)
class ReverseArrays(ModulePass):
    """Let loops that go through arrays backwards work on reversed copies."""

    name = "reverse-arrays"
    sums: bool = False
    """Also where maps sum up: nothing asks for the last bits of another compilation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in ops_of_kind(function, array.LoopOp):
                if enclosing_loops(loop) or not may_read_ahead(loop):
                    continue
                for one in list(dict.fromkeys(backward_arrays(loop))):
                    found = Backward(function, loop, one, self.sums)
                    if found.pays() and found.is_all():
                        found.write()


def may_read_ahead(loop: array.LoopOp) -> bool:
    """Whether a loop runs often, and is for one thread; it may raise."""
    marked = {array.CLAIMED, array.EXCLUSIVE, array.SMALL} & loop.attributes.keys()
    if not is_counted(loop) or loop.carried or marked or loop.count is None:
        return False
    known = array.constant_value(loop.count)
    return (known is None or known >= LEAST) and not any(
        rule_of(type(op)).opaque for op in every_op(loop)[1:]
    )


def backward_arrays(loop: array.LoopOp) -> Iterator[SSAValue]:
    """Arrays from before the loop of which maps of its body have views from behind."""
    for op in loop.body.block.ops:
        for operand in (*op.ins, *op.outs) if isinstance(op, array.MapOp) else ():
            view = operand.owner
            if not isinstance(view, array.ViewOp) or not is_backward(view):
                continue
            if is_outside(view.source, loop) and lies_alone(view.source):
                yield view.source


def is_backward(op: array.ViewOp) -> bool:
    return (
        op.source_dims == (0,) and len(op.offsets) == 1 and array.constant_value(op.steps[0]) == -1
    )


def lies_alone(memref_: SSAValue) -> bool:
    """Whether it is an argument, or an array of plain memory, whose elements lie side by side."""
    assert isinstance(memref_.type, MemRefType)
    if not array.is_contiguous(memref_.type):
        return False
    made, special = memref_.owner, {array.GROWABLE, array.STACK, array.CLEARED}
    if isinstance(made, array.AllocOp):
        return special.isdisjoint(made.attributes)
    return isinstance(memref_, BlockArgument)


class Backward:
    """An array, and a loop that goes through it backwards."""

    def __init__(
        self, function: func.FuncOp, loop: array.LoopOp, memref_: SSAValue, sums: bool
    ) -> None:
        self.function, self.loop, self.array, self.sums = function, loop, memref_, sums
        self.forms = Subscripts()

    @cached_property
    def uses(self) -> list[Operation]:
        """What uses the array in the loop by its name, and views from before the loop that are used in it."""
        users = (
            use.operation for use in self.array.uses if type(use.operation) is not memref.DimOp
        )
        return [op for op in users if self.is_in_loop(op) or self.is_used_in_loop(op)]

    def is_in_loop(self, op: Operation) -> bool:
        return self.loop.is_ancestor(op)

    def is_used_in_loop(self, op: Operation) -> bool:
        return isinstance(op, array.ViewOp) and any(map(self.is_in_loop, self.users(op)))

    def users(self, view: array.ViewOp) -> list[Operation]:
        return [use.operation for use in view.result.uses]

    @cached_property
    def views(self) -> list[array.ViewOp]:
        return [op for op in self.uses if isinstance(op, array.ViewOp)]

    @cached_property
    def maps(self) -> list[Operation]:
        """What has the views, in the loop: maps, if `is_all`."""
        return [op for view in self.views for op in self.users(view) if self.is_in_loop(op)]

    @cached_property
    def is_stored_to(self) -> bool:
        names = {view.result for view in self.views}
        return any(isinstance(op, memref.StoreOp) for op in self.uses) or any(
            isinstance(op, array.MapOp) and not names.isdisjoint(op.outs) for op in self.maps
        )

    @cached_property
    def moved(self) -> list[Operation]:
        """The uses that are to be of the copy: what only reads may stay where it is."""
        if self.is_stored_to:
            return [*self.uses]
        return [view for view in self.views if self.sums or not self.is_summed(view)]

    def is_summed(self, view: array.ViewOp) -> bool:
        """Whether a map that has the view sums up."""
        return any(isinstance(op, array.MapOp) and is_sum(op) for op in self.users(view))

    def pays(self) -> bool:
        """Whether a map of each iteration goes along the array backwards, and along another forwards."""
        return any(
            isinstance(op, array.MapOp) and op.parent is self.loop.body.block and goes_both_ways(op)
            for view in self.moved
            if isinstance(view, array.ViewOp) and is_backward(view) and not self.is_short(view)
            for op in self.users(view)
        )

    def is_short(self, view: array.ViewOp) -> bool:
        count = self.forms.affine(view.extents[0])
        return count.is_constant and count.constant < SHORT

    def is_all(self) -> bool:
        """Whether the loop goes through the array in no other way, within bounds that are known before it."""
        kinds = (array.ViewOp, memref.LoadOp, memref.StoreOp)
        if not all(isinstance(op, kinds) for op in self.uses) or not all(
            map(is_backward, self.views)
        ):
            return False
        if not all(isinstance(op, array.MapOp) and op.gathers is None for op in self.maps):
            return False
        if any(isinstance(op, memref.StoreOp) and op.value is self.array for op in self.uses):
            return False
        if self.is_stored_to:
            summed = not self.sums and any(map(self.is_summed, self.views))
            if summed or not comes_back(self.loop):
                return False
        return self.is_alone() and self.bounds is not None

    def is_alone(self) -> bool:
        """Whether what the loop touches by other names is elsewhere, or only read, as this is."""
        alias = AliasAnalysis(self.function)
        own = {self.array, *(view.result for view in self.views)}
        touched = (a for op in every_op(self.loop)[1:] for a in accesses(op))
        return not any(
            a.memref not in own
            and (self.is_stored_to or a.kind != "read")
            and alias.may_alias(a.memref, self.array)
            for a in touched
        )

    @cached_property
    def bounds(self) -> Span | None:
        """The part that the loop touches, of the elements that there are."""
        assert self.loop.count is not None
        last = self.forms.affine(self.loop.count) - 1
        if not computable(last, self.loop):
            return None
        spans = [self.touched(op) for op in self.moved]
        if not all(self.moves_little(form) for span in spans for form in (span.begin, span.end)):
            return None
        counter, numbers = self.loop.induction, (Affine(), last)
        begins = [at(span.begin, counter, number) for span in spans for number in numbers]
        ends = [at(span.end, counter, number) for span in spans for number in numbers]
        low = reduce(lambda a, b: extreme("min", a, b), ordered(begins))
        high = reduce(lambda a, b: extreme("max", a, b), ordered(ends))
        # A branch that is not taken may name what is not there, or one that raises.
        high = extreme("min", high, self.forms.extent(self.array, 0))
        return Span(extreme("max", low, Affine()), high)

    def touched(self, op: Operation) -> Span:
        if isinstance(op, array.ViewOp):
            offset, count = (self.forms.affine(v) for v in (op.offsets[0], op.extents[0]))
            return Span(offset - count + 1, offset + 1)
        assert isinstance(op, memref.LoadOp | memref.StoreOp)
        place = self.forms.affine(op.indices[0])
        return Span(place, place + 1)

    def moves_little(self, form: Affine) -> bool:
        """Whether a number is known before the loop, but for its counter, and then steps at most by one."""
        counter = self.loop.induction
        step = replaced(form, {counter: Affine.of(counter) + 1}) - form
        return computable(form, self.loop) and step.is_constant and abs(step.constant) <= 1

    # The copy.

    def write(self) -> None:
        assert self.bounds is not None
        before = Before(self.loop)
        high, zero = before.number(self.bounds.end), before.constant(0)
        size = before.emit(arith.SubiOp(high, before.number(self.bounds.begin)))
        size = before.emit(arith.MaxSIOp(size, zero))
        last, minus = before.minus_one(high), before.constant(-1)
        assert isinstance(self.array.type, MemRefType)
        made = array.AllocOp([size], self.array.type.element_type)
        made.memref.name_hint = f"{self.array.name_hint or 'array'}_reversed"
        before.insert(made)
        lying = array.ViewOp(self.array, [last], [0], [size], [minus])
        before.insert(lying)
        before.insert(transfer(lying.result, made.memref, [size]))
        if self.is_stored_to:
            back = transfer(made.memref, lying.result, [size])
            locate(back, self.loop.location)
            block = self.loop.parent
            assert block is not None
            block.insert_op_after(back, self.loop)
        for op in self.moved:
            self.move(op, made.memref, last)

    def move(self, op: Operation, copy: SSAValue, last: SSAValue) -> None:
        """Let what uses the array use the copy, where the last element of the part is the first."""
        here = Before(op)
        if not isinstance(op, array.ViewOp):
            assert isinstance(op, memref.LoadOp | memref.StoreOp)
            place, name = op.indices[0], {self.array: copy}
            turned = here.emit(arith.SubiOp(last, place))
            first = len(op.operands) - 1
            for k, operand in enumerate(op.operands):
                op.operands[k] = turned if k == first else name.get(operand, operand)
            return
        if not self.is_in_loop(op):
            here = Before(self.loop)
        place = here.emit(arith.SubiOp(last, op.offsets[0]))
        made = array.ViewOp(copy, [place], [0], op.extents, [here.constant(1)])
        made.attributes.update(op.attributes)
        made.result.name_hint = op.result.name_hint
        here.insert(made)
        op.result.replace_uses_with_if(made.result, lambda use: self.is_in_loop(use.operation))
        if op.result.first_use is None:
            Rewriter.erase_op(op)


def ordered(forms: list[Affine]) -> list[Affine]:
    """Each once; what has few terms first, which decides most of the rest."""
    return sorted(dict.fromkeys(forms), key=lambda form: len(form.terms))


def goes_both_ways(op: array.MapOp) -> bool:
    """Whether a map goes along an operand whose elements follow each other."""
    return any(
        isinstance(m.type, MemRefType) and array.strides_of(m.type)[-1:] == (1,)
        for m in (*op.ins, *op.outs)
    )

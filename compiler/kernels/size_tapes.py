"""Replace what iterations push to a tape, a number of values that is not known, by an array for all of them.

A kernel has no tape. So a copy of the loop, which stores nothing, counts first what each iteration pushes;
the most of any iteration is the extent of an array, in which each has a column of its own. The loop fills it,
and that of the reverse sweep reads it from the top.

Before::

    func.func @f(%x : memref<?xf64>, %s : memref<?xindex>, %n : index) {
      %t = ad.tape
      %trips = array.loop %i to %n do {
        %m = memref.load %s[%i] : memref<?xindex>
        %v = memref.load %x[%i] : memref<?xf64>
        %inner = array.loop %j to %m do {
          %saved = ad.push %t() : memref<f64>
          memref.store %v, %saved[] : memref<f64>
          array.yield
        }
        array.yield
      }
      %back = array.loop %r to %n do {
        %last = arith.constant 1 : index
        %a = arith.subi %n, %last : index
        %k = arith.subi %a, %r : index
        %m = memref.load %s[%k] : memref<?xindex>
        %inner = array.loop %j to %m do {
          %saved = ad.pop %t() : memref<f64>
          %v = memref.load %saved[] : memref<f64>
          memref.store %v, %x[%k] : memref<?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x: memref<?xf64>, %s: memref<?xindex>, %n: index) {
      %of_sizes = ad.tape
      %of_counts = ad.tape
      %of_values = ad.tape
      %count = memref.alloca() : memref<index>
      %most = memref.alloca() : memref<index>
      %c5 = arith.constant 0 : index
      memref.store %c5, %most[] : memref<index>
      %trips = array.loop %i to %n do {
        %c6 = arith.constant 0 : index
        memref.store %c6, %count[] : memref<index>
        %m = memref.load %s[%i] : memref<?xindex>
        %inner = array.loop %j to %m do {
          %c7 = memref.load %count[] : memref<index>
          %c8 = arith.constant 1 : index
          %c9 = arith.addi %c7, %c8 : index
          memref.store %c9, %count[] : memref<index>
          array.yield
        }
        %c10 = memref.load %most[] : memref<index>
        %c11 = memref.load %count[] : memref<index>
        %c12 = arith.maxsi %c10, %c11 : index
        memref.store %c12, %most[] : memref<index>
        array.yield
      }
      %m_0 = memref.load %most[] : memref<index>
      %c14 = arith.constant 0 : index
      %width = arith.maxsi %n, %c14 : index
      %c16 = arith.constant 2 : index
      %sizes = ad.push %of_sizes(%c16) : memref<2xindex>
      %c18 = arith.constant 0 : index
      memref.store %m_0, %sizes[%c18] : memref<2xindex>
      %c19 = arith.constant 1 : index
      memref.store %width, %sizes[%c19] : memref<2xindex>
      %counts = ad.push %of_counts(%width) : memref<?xindex>
      %saved = ad.push %of_values(%m_0, %width) : memref<?x?xf64>
      %at = memref.alloca() : memref<index>
      %trips_1 = array.loop %i_1 to %n do {
        %c22 = arith.constant 0 : index
        memref.store %c22, %at[] : memref<index>
        %m_1 = memref.load %s[%i_1] : memref<?xindex>
        %v = memref.load %x[%i_1] : memref<?xf64>
        %inner_1 = array.loop %j_1 to %m_1 do {
          %place = memref.load %at[] : memref<index>
          %c24 = arith.constant 1 : index
          %next = arith.addi %place, %c24 : index
          memref.store %next, %at[] : memref<index>
          memref.store %v, %saved[%place, %i_1] : memref<?x?xf64>
          array.yield
        }
        %c26 = memref.load %at[] : memref<index>
        memref.store %c26, %counts[%i_1] : memref<?xindex>
        array.yield
      }
      %c27 = arith.constant 2 : index
      %sizes_1 = ad.pop %of_sizes(%c27) : memref<2xindex>
      %c29 = arith.constant 0 : index
      %most_1 = memref.load %sizes_1[%c29] : memref<2xindex>
      %c31 = arith.constant 1 : index
      %width_1 = memref.load %sizes_1[%c31] : memref<2xindex>
      %counts_1 = ad.pop %of_counts(%width_1) : memref<?xindex>
      %saved_1 = ad.pop %of_values(%most_1, %width_1) : memref<?x?xf64>
      %at_1 = memref.alloca() : memref<index>
      %c35 = arith.constant 1 : index
      %c36 = arith.subi %n, %c35 : index
      %back = array.loop %r to %n do {
        %column = arith.subi %c36, %r : index
        %top = memref.load %counts_1[%column] : memref<?xindex>
        memref.store %top, %at_1[] : memref<index>
        %last = arith.constant 1 : index
        %a = arith.subi %n, %last : index
        %k = arith.subi %a, %r : index
        %m_2 = memref.load %s[%k] : memref<?xindex>
        %inner_2 = array.loop %j_2 to %m_2 do {
          %above = memref.load %at_1[] : memref<index>
          %c40 = arith.constant 1 : index
          %place_1 = arith.subi %above, %c40 : index
          memref.store %place_1, %at_1[] : memref<index>
          %v_1 = memref.load %saved_1[%place_1, %column] : memref<?x?xf64>
          memref.store %v_1, %x[%k] : memref<?xf64>
          array.yield
        }
        array.yield
      }
      func.return
    }

Kept: tapes that one half of a gradient hands to the other; segments that are arrays; loops whose iterations
push more or less for what the loop has stored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import ad, array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.carried_cells import roles
from ..analysis.dependence import Dependence
from ..analysis.effects import is_private
from ..analysis.independence import Independence
from .changes import changed_values, is_variable
from .inspect_checks import decisive, without_use
from .kernel import Writer, element_of
from .predication import Predication, inserting_before
from .serial_kernels import is_of_one_thread


@dataclass(frozen=True)
class SizeTapes(ModulePass):
    """Count first what iterations push to tapes, so that arrays can hold it."""

    name = "size-tapes"

    fastmath: bool = False
    """Two kernels may round the same sums differently, so what one counts is not what the other pushes."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.fastmath:
            return
        for function in op.ops:
            if isinstance(function, func.FuncOp) and not is_private(function):
                size_tapes(function)


def size_tapes(function: func.FuncOp) -> None:
    tapes = [op for op in every_op(function) if isinstance(op, ad.TapeOp)]
    scalar = [one for one in map(segments_of, tapes) if one is not None]
    if not scalar:
        return
    groups: dict[array.LoopOp, list[Scalars]] = {}
    segments = {op for one in scalar for op in (*one[0], *one[1])}
    for pushes, pops in scalar:
        if (found := scalars_of(pushes, pops, segments)) is not None:
            groups.setdefault(found.loop, []).append(found)
    known = WithoutTapes(function, segments)
    fit = {loop: group for loop, group in groups.items() if is_fit(loop, group, known)}
    for loop, group in fit.items():
        counted = Count(loop, group)
        mosts = counted.write()
        for one, most in zip(group, mosts, strict=True):
            replace(one, most, counted.iterations())


def is_fit(loop: array.LoopOp, group: Sequence[Scalars], known: WithoutTapes) -> bool:
    """Whether all that the loop pushes, and the others pop, can be in arrays."""
    pushes = {op for one in group for op in one.pushes}
    pops = {op for one in group for op in one.pops}
    if not is_of_elements(loop, pushes) or not known.are_known(loop, pushes):
        return False
    return all(is_of_elements(one.back, pops) for one in group)


@dataclass(frozen=True)
class Scalars:
    """A tape to which a loop pushes single elements, and from which another pops them."""

    tape: ad.TapeOp
    element: Attribute
    pushes: Sequence[ad.PushOp]
    pops: Sequence[ad.PopOp]
    loop: array.LoopOp
    back: array.LoopOp


Segments = tuple[list[ad.PushOp], list[ad.PopOp]]


def segments_of(tape: ad.TapeOp) -> Segments | None:
    """What is pushed to a tape, and popped from it, where that is single elements."""
    users = [use.operation for use in tape.tape.uses]
    pushes = [op for op in users if isinstance(op, ad.PushOp)]
    pops = [op for op in users if isinstance(op, ad.PopOp)]
    if not pushes or not pops or len(pushes) + len(pops) < len(users):
        return None
    segments = (*pushes, *pops)
    if any(op.extents or op.memref.type != pushes[0].memref.type for op in segments):
        return None
    if not all(is_stored_to(u.operation, op.memref) for op in pushes for u in op.memref.uses):
        return None
    if not all(isinstance(u.operation, memref.LoadOp) for op in pops for u in op.memref.uses):
        return None
    return pushes, pops


def scalars_of(
    pushes: list[ad.PushOp], pops: list[ad.PopOp], others: Collection[Operation]
) -> Scalars | None:
    """Where a loop pushes, and another pops; `others`: these and other segments of single elements."""
    loop, back = loop_around(pushes, others), loop_around(pops, others)
    if loop is None or back is None or may_raise_while(loop):
        return None
    if loop.count is None or back.count is None or back.condition_block is not None:
        return None
    if len(enclosing_loops(loop)) != len(enclosing_loops(back)):
        return None
    tape = pushes[0].tape.owner
    assert isinstance(tape, ad.TapeOp)
    return Scalars(tape, element_of(pushes[0].memref), pushes, pops, loop, back)


def may_raise_while(loop: array.LoopOp) -> bool:
    block = loop.condition_block
    return block is not None and any(map(array.is_operation_that_may_raise, block.walk()))


def is_stored_to(op: Operation, segment: SSAValue) -> bool:
    return isinstance(op, memref.StoreOp) and op.memref is segment


def loop_around(
    segments: Sequence[ad.SegmentOp], others: Collection[Operation]
) -> array.LoopOp | None:
    """The outermost loop over elements around all of them."""
    common = [x for x in enclosing_loops(segments[0]) if all(x.is_ancestor(s) for s in segments)]
    return next((x for x in common if is_of_elements(x, others)), None)


def is_of_elements(loop: array.LoopOp, segments: Collection[Operation]) -> bool:
    """Whether a thread can run the loop, but for these segments and for its checks."""
    return all(
        op in segments or array.is_operation_that_may_raise(op) or is_of_one_thread(op)
        for op in every_op(loop)
    )


class WithoutTapes:
    """A function without its segments of single elements, of which analyses know nothing."""

    def __init__(self, function: func.FuncOp, segments: Collection[Operation]) -> None:
        clone = function.clone()
        self.ops = dict(zip(every_op(function), every_op(clone), strict=True))
        for op in segments:
            if isinstance(op, ad.PushOp):
                erase_push(self.ops[op])
        self.alias = AliasAnalysis(clone)
        self.independence = Independence(clone, Dependence(clone, self.alias))

    def are_known(self, loop: array.LoopOp, pushes: Collection[Operation]) -> bool:
        """Whether a copy of the loop that stores nothing pushes as often."""
        same = self.ops[loop]
        assert isinstance(same, array.LoopOp)
        others = self.independence.of(same) is None
        changed = changed_values(same, self.alias, by_others=others)
        around = [op for op in every_op(loop) if is_around(op, pushes)]
        conditions = {v for op in around for v in self.ops[op].operands}
        decided = {v for op in every_op(same) for v in decisive(op)}
        return changed.isdisjoint(conditions | decided)


def erase_push(push: Operation) -> None:
    """And what is stored in its segment."""
    for use in list(push.results[0].uses):
        Rewriter.erase_op(use.operation)
    Rewriter.erase_op(push)


def is_around(op: Operation, pushes: Collection[Operation]) -> bool:
    return isinstance(op, scf.IfOp) and any(map(op.is_ancestor, pushes))


class Count:
    """Writes the copy of a loop that counts, before it."""

    def __init__(self, loop: array.LoopOp, tapes: Sequence[Scalars]) -> None:
        self.loop, self.tapes = loop, tapes
        self.host = Writer(inserting_before(loop), loop.location)

    def write(self) -> list[SSAValue]:
        """The most that an iteration pushes to each of the tapes."""
        host, loop = self.host, self.loop
        values: dict[SSAValue, SSAValue] = {}
        for cell in roles(loop):
            values[cell] = own = host.cell(element_of(cell))
            host.store(host.load(cell), own)
        self.copy = copy = loop.clone(values)
        ops = dict(zip(every_op(loop), every_op(copy), strict=True))
        counts: list[SSAValue] = []
        mosts: list[SSAValue] = []
        for one in self.tapes:
            count, most = host.cell(IndexType()), host.cell(IndexType())
            counts.append(count)
            mosts.append(most)
            host.store(host.index(0), most)
            for push in one.pushes:
                self.step(ops[push], count)
        for op in every_op(copy):
            if isinstance(op, memref.StoreOp) and not is_variable(op):
                Rewriter.erase_op(op)
        without_use(copy)
        self.end_early(copy)
        self.keep_most(copy, counts, mosts)
        host.add(copy)
        return [host.load(most) for most in mosts]

    def iterations(self) -> SSAValue:
        """How many columns there are: of a loop that `break` ends, as many as the copy has run."""
        if self.loop.condition_block is not None:
            return self.copy.trips
        assert self.loop.count is not None
        return self.host.at_least_zero(self.loop.count)

    def step(self, push: Operation, count: SSAValue) -> None:
        here = Writer(inserting_before(push), push.location)
        here.store(here.sum(here.load(count), here.index(1)), count)
        erase_push(push)

    def end_early(self, copy: array.LoopOp) -> None:
        """An iteration whose checks fail counts no further: the loop itself raises."""
        if not any(map(array.is_operation_that_may_raise, every_op(copy))):
            return
        failed = self.host.cell(IndexType())
        Predication(failed, lambda here, _: here.store(here.index(1), failed)).block(
            copy.body.block
        )
        start = at_start(copy)
        start.store(start.index(0), failed)

    def keep_most(
        self, copy: array.LoopOp, counts: Sequence[SSAValue], mosts: Sequence[SSAValue]
    ) -> None:
        start, end = at_start(copy), at_end(copy)
        for count, most in zip(counts, mosts, strict=True):
            start.store(start.index(0), count)
            end.store(end.emit(arith.MaxSIOp(end.load(most), end.load(count))), most)


def at_end(loop: array.LoopOp) -> Writer:
    last = loop.body.block.last_op
    assert last is not None
    return Writer(inserting_before(last), loop.location)


def at_start(loop: array.LoopOp) -> Writer:
    first = loop.body.block.first_op
    assert first is not None
    return Writer(inserting_before(first), loop.location)


def replace(one: Scalars, most: SSAValue, width: SSAValue) -> None:
    """The tape's segments are places in columns of an array, which the host has on a tape."""
    of_sizes, of_counts, of_values = (new_tape(one.tape) for _ in range(3))
    loop, back = one.loop, one.back
    assert back.count is not None
    host = Writer(inserting_before(loop), loop.location)
    sizes = host.emit(ad.PushOp(of_sizes, [host.index(2)], IndexType()))
    for k, size in enumerate((most, width)):
        host.store(size, sizes, [host.index(k)])
    counts = host.emit(ad.PushOp(of_counts, [width], IndexType()))
    values = host.emit(ad.PushOp(of_values, [most, width], one.element))
    values.name_hint = one.pushes[0].memref.name_hint
    at = host.cell(IndexType())
    for push in one.pushes:
        here = Writer(inserting_before(push), push.location)
        place = here.load(at)
        here.store(here.sum(place, here.index(1)), at)
        move(push, values, [place, loop.induction])
    start, end = at_start(loop), at_end(loop)
    start.store(start.index(0), at)
    end.store(end.load(at), counts, [loop.induction])

    host = Writer(inserting_before(back), back.location)
    sizes = host.emit(ad.PopOp(of_sizes, [host.index(2)], IndexType()))
    most, width = (host.load(sizes, [host.index(k)]) for k in range(2))
    counts = host.emit(ad.PopOp(of_counts, [width], IndexType()))
    values = host.emit(ad.PopOp(of_values, [most, width], one.element))
    values.name_hint = one.pops[0].memref.name_hint
    at = host.cell(IndexType())
    last = host.emit(arith.SubiOp(back.count, host.index(1)))
    start = at_start(back)
    column = start.emit(arith.SubiOp(last, back.induction))
    start.store(start.load(counts, [column]), at)
    for pop in one.pops:
        here = Writer(inserting_before(pop), pop.location)
        place = here.emit(arith.SubiOp(here.load(at), here.index(1)))
        here.store(place, at)
        move(pop, values, [place, column])
    Rewriter.erase_op(one.tape)


def new_tape(before: ad.TapeOp) -> SSAValue:
    tape = ad.TapeOp()
    tape.location = before.location
    Rewriter.insert_op(tape, InsertPoint.before(before))
    return tape.tape


def move(segment: ad.SegmentOp, values: SSAValue, place: Sequence[SSAValue]) -> None:
    """What loads and stores the segment's element does so in an array."""
    for use in list(segment.memref.uses):
        op = use.operation
        here = Writer(inserting_before(op), op.location)
        if isinstance(op, memref.StoreOp):
            here.store(op.value, values, place)
            Rewriter.erase_op(op)
        else:
            Rewriter.replace_op(op, [], [here.load(values, place)])
    Rewriter.erase_op(segment)

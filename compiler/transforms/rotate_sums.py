"""Take the sum that the next iteration begins with in the sweep that updates what it reads.

    for k in range(n):                        s = np.dot(q[0], a)
        s = np.dot(q[k], a)                   for k in range(n):
        a -= q[k] * s                             a -= q[k] * s, and s = np.dot(q[k + 1], a) along with it

Two sweeps over `a` become one, as one writes it by hand. The last iteration has no next one, and takes its
own row once more: a sum that nobody reads costs less than a branch, or a copy of the body. Runs behind
`jam-maps`, which has four such sums, and four rows, in two maps.

Before::

    !row = memref<?xf64, strided<[1]>>
    !sum = memref<?xf64, strided<[0]>>
    func.func @f(%q : memref<?x?xf64>, %a : memref<?xf64, strided<[1]>>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f64
      %cell = memref.alloca() : memref<f64>
      %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> !sum
      %trips = array.loop %k to %n do {
        %by = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
        memref.store %zero, %cell[] : memref<f64>
        array.map(%m) ins(%by, %a : !row, !row) outs(%sum : !sum) kinds ["add"] {
        ^bb0(%x : f64, %y : f64):
          %p = arith.mulf %x, %y : f64
          array.yield %p : f64
        }
        %dot = memref.load %cell[] : memref<f64>
        array.map(%m) ins(%by, %a : !row, !row) outs(%a : !row) kinds ["store"] {
        ^bb0(%x : f64, %y : f64):
          %p = arith.mulf %x, %dot : f64
          %d = arith.subf %y, %p : f64
          array.yield %d : f64
        }
        array.yield
      }
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>>
    !sum = memref<?xf64, strided<[0]>>
    func.func @f(%q : memref<?x?xf64>, %a : !row, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.000000e+00 : f64
      %cell = memref.alloca() : memref<f64>
      %0 = memref.alloca() : memref<f64>
      %sum = array.view %cell[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> !sum
      %1 = arith.constant 0 : index
      %2 = arith.constant 1 : index
      %3 = arith.subi %n, %2 : index
      %sum_1 = array.view %0[] dims [-1] extents(%m) steps(%c0) : memref<f64> -> !sum
      memref.store %zero, %0[] : memref<f64>
      %4 = arith.cmpi sgt, %n, %1 : index
      scf.if %4 {
        %by = array.view %q[%1, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
        array.map(%m) ins(%by, %a : !row, !row) outs(%sum_1 : !sum) kinds ["add"] {
        ^bb0(%x : f64, %y : f64):
          %p = arith.mulf %x, %y : f64
          array.yield %p : f64
        }
      } else {
      }
      %trips = array.loop %k to %n do {
        %by_1 = array.view %q[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
        %5 = memref.load %0[] : memref<f64>
        memref.store %5, %cell[] : memref<f64>
        %dot = memref.load %cell[] : memref<f64>
        memref.store %zero, %0[] : memref<f64>
        %6 = arith.addi %k, %2 : index
        %7 = arith.minsi %6, %3 : index
        %by_2 = array.view %q[%7, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
        array.map(%m) ins(%by_1, %a, %by_2 : !row, !row, !row) outs(%a, %sum_1 : !row, !sum)
            kinds ["store", "add"] attributes {own_order} {
        ^bb0(%x_1 : f64, %y_1 : f64, %x_2 : f64):
          %p_1 = arith.mulf %x_1, %dot : f64
          %d = arith.subf %y_1, %p_1 : f64
          %p_2 = arith.mulf %x_2, %d : f64
          array.yield %d, %p_2 : f64, f64
        }
        array.yield
      }
      func.return
    }

Legality: all that the iteration stores to what the sum reads is stored by that map, which goes over the whole
of a row that is the same in all iterations. Other rows that the sum reads are named by pure code on the
iteration's number. The sum begins with the same number each time.

The sum keeps the order that it has in a map of its own (`own_order`), wherever its loop is run again.

Kept: sums of rows that an iteration also stores to in other ways; sums with subscripts that are loaded; loops
whose sums read nothing that is updated; more sums, or longer terms, than the CPU has registers for (at most
`most`); with threads, sums, which have an order of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.affine import affine
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import cell_of
from ..analysis.in_place import stands_still
from ..analysis.views import strip_views
from ..diagnostics import locate
from ..rules import accesses
from ..rules.builders import Emit, element_of, index
from .fuse_elementwise import elements
from .interchange import is_outside
from .jam_maps import can_be_merged, is_of_maps
from .jammed_maps import added
from .map_outputs import is_pure
from .memory_effects import functions
from .step_on_rows import stays, symbols_of
from .step_on_tape import before

TERMS = 4
"""Operations of a term: longer ones fill the registers of the update."""


@dataclass(frozen=True)
class RotateSums(ModulePass):
    """Take the sum that the next iteration begins with along with the update of what it reads."""

    name = "rotate-sums"
    most: int = 4
    """As many sums have their partial sums in registers, next to what the update computes with."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in [one for one in ops_of_kind(function, array.LoopOp) if is_of_maps(one)]:
                found = rotation_of(loop, function)
                if found is not None and len(found.starts) <= self.most:
                    rewrite(found)


@dataclass
class Rotation:
    """A loop whose iterations begin with a sum, and end with an update of what the next one reads."""

    loop: array.LoopOp
    sum: array.MapOp
    starts: list[memref.StoreOp]
    """They set each cell of the sum before it."""
    update: array.MapOp
    names: list[Operation]
    """What the rows that the sum reads are computed by, in the loop."""


def rotation_of(loop: array.LoopOp, function: func.FuncOp) -> Rotation | None:
    """The first sum of the loop, and the update along with which it may be taken."""
    maps = [op for op in loop.body.block.ops if isinstance(op, array.MapOp)]
    sum_, update = maps[0], maps[-1]
    if sum_ is update or not is_sum(sum_, loop) or not can_be_merged(update):
        return None
    names = names_of(sum_, loop)
    starts = [start_of(strip_views(out), sum_, loop) for out in sum_.outs]
    updated = {*sum_.ins} & {*update.outs}
    if names is None or not updated or loop.count is None:
        return None
    if any(stands_still(row) or not stands(row, loop) for row in updated):
        return None
    if any(update.outs.count(row) > 1 for row in updated):
        return None
    alias = AliasAnalysis(function)
    for op in loop.body.block.ops:
        for access in accesses(op):
            own = op is update and access.memref in updated
            if access.kind != "read" and not own and meets(access.memref, sum_.ins, alias):
                return None
    if any(row not in updated and meets(row, updated, alias) for row in sum_.ins):
        return None
    given = [start for start in starts if start is not None]
    return Rotation(loop, sum_, given, update, names) if len(given) == len(starts) else None


def meets(memref_: SSAValue, others: Iterable[SSAValue], alias: AliasAnalysis) -> bool:
    return any(alias.may_alias(memref_, other) for other in others)


def is_sum(op: array.MapOp, loop: array.LoopOp) -> bool:
    """Whether a map adds up its points in cells, one for each output."""
    cells = [out.owner.source for out in op.outs if isinstance(out.owner, array.ViewOp)]
    own = all(isinstance(cell.owner, memref.AllocaOp) and cell_of(cell) is cell for cell in cells)
    apart = len({*cells}) == len(op.outs) and all(map(stands_still, op.outs))
    outside = all(is_outside(value, loop) for value in (*op.outs, *op.extents))
    short = len(op.body.block.ops) <= TERMS * len(op.outs)
    return can_be_merged(op) and own and apart and outside and short and {*op.out_kinds} == {"add"}


def start_of(cell: SSAValue, sum_: array.MapOp, loop: array.LoopOp) -> memref.StoreOp | None:
    """What sets the cell right before the sum, to a number from before the loop."""
    at = sum_.prev_op
    while at is not None:
        if any(cell_of(access.memref) is cell for access in accesses(at)):
            stored = isinstance(at, memref.StoreOp) and is_outside(at.value, loop)
            return at if isinstance(at, memref.StoreOp) and stored else None
        at = at.prev_op
    return None


def names_of(sum_: array.MapOp, loop: array.LoopOp) -> list[Operation] | None:
    """The pure ops of the loop by which the sum names what it reads; None where there are others."""
    found: set[Operation] = set()
    inside = {v for op in sum_.body.walk() for v in op.operands if not is_in(v, sum_)}
    if not all(is_outside(v, loop) for v in inside):
        return None
    pending = [*sum_.ins]
    while pending:
        value = pending.pop()
        if is_outside(value, loop) or value is loop.induction:
            continue
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not loop.body.block:
            return None
        if not is_pure(op) or op.regions:
            return None
        if op not in found:
            found.add(op)
            pending += op.operands
    return [op for op in loop.body.block.ops if op in found]


def is_in(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    inside = owner.parent_op() if isinstance(owner, Block) else owner
    return inside is not None and op.is_ancestor(inside)


def stands(row: SSAValue, loop: array.LoopOp) -> bool:
    """Whether a row is the same in all iterations, whatever computes its number."""
    if is_outside(row, loop):
        return True
    view = row.owner
    if not isinstance(view, array.ViewOp):
        return False
    numbers = (*view.offsets, *view.extents, *view.steps)
    symbols = (symbol for number in numbers for symbol in symbols_of(affine(number)))
    return stands(view.source, loop) and all(stays(symbol, loop) for symbol in symbols)


# The rewrite.


def rewrite(rotation: Rotation) -> None:
    loop, sum_, update = rotation.loop, rotation.sum, rotation.update
    assert loop.count is not None
    emit = before(loop, sum_)
    zero, one = index(0, emit), index(1, emit)
    last = emit(arith.SubiOp(loop.count, one))
    outs = [carried(out, emit) for out in sum_.outs]
    cells = [view.source for view in outs]
    starts = [start.value for start in rotation.starts]
    for start in rotation.starts:
        Rewriter.erase_op(start)
    for start, cell in zip(starts, cells, strict=True):
        put(memref.StoreOp.get(start, cell, []), loop, sum_)
    some = emit(arith.CmpiOp(loop.count, zero, "sgt"))
    first, none = Block(), Block([scf.YieldOp()])
    put(scf.IfOp(some, [], Region(first), Region(none)), loop, sum_)
    end = put(scf.YieldOp(), first, sum_)
    values = renamed(rotation, zero, end)
    taken = sum_.clone(values)
    for k, view in enumerate(outs, len(sum_.operands) - len(outs)):
        taken.operands[k] = view.result
    put(taken, end, sum_)
    emit = before(sum_, sum_)
    for out, cell in zip(sum_.outs, cells, strict=True):
        found = emit(memref.LoadOp.get(cell, []))
        put(memref.StoreOp.get(found, strip_views(out), []), sum_, sum_)
    emit = before(update, sum_)
    for start, cell in zip(starts, cells, strict=True):
        put(memref.StoreOp.get(start, cell, []), update, sum_)
    following = emit(arith.MinSIOp(emit(arith.AddiOp(loop.induction, one)), last))
    fuse(rotation, renamed(rotation, following, update), [view.result for view in outs])


def carried(out: SSAValue, emit: Emit) -> array.ViewOp:
    """The output of a sum in a cell of its own, which keeps it from one iteration to the next."""
    view = out.owner
    assert isinstance(view, array.ViewOp)
    cell = view.source.owner
    assert isinstance(cell, memref.AllocaOp)
    own = cell.clone()
    own.memref.name_hint = cell.memref.name_hint
    Rewriter.insert_op(own, InsertPoint.after(cell))
    made = view.clone({view.source: own.memref})
    made.result.name_hint = out.name_hint
    emit(made)
    return made


def put(op: Operation, at: Operation | Block, like: Operation) -> Operation:
    """Put an op before another one, or at the end of a block."""
    locate(op, like.location)
    place = InsertPoint.at_end(at) if isinstance(at, Block) else InsertPoint.before(at)
    Rewriter.insert_op(op, place)
    return op


def renamed(rotation: Rotation, number: SSAValue, at: Operation) -> dict[SSAValue, SSAValue]:
    """What the sum of this iteration reads, by what that of an iteration does; named before an op."""
    values = {rotation.loop.induction: number}
    for op in rotation.names:
        made = op.clone(values)
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
        Rewriter.insert_op(made, InsertPoint.before(at))
    return values


def fuse(rotation: Rotation, values: dict[SSAValue, SSAValue], outs: list[SSAValue]) -> None:
    """Evaluate the body of the sum behind that of the update, on what that has stored."""
    sum_, update = rotation.sum, rotation.update
    element: dict[SSAValue, SSAValue] = {**elements(update)}
    block, kinds, yielded = update.body.block, [*update.out_kinds], [*update.yielded]
    end = block.last_op
    assert end is not None
    Rewriter.erase_op(end)

    def read(row: SSAValue, name: str | None) -> SSAValue:
        if row not in element:
            element[row] = block.insert_arg(element_of(row), len(block.args))
            element[row].name_hint = name
        return element[row]

    known: dict[SSAValue, SSAValue] = {}
    for row, argument in zip(sum_.ins, sum_.body.block.args, strict=True):
        if row not in update.outs:
            known[argument] = read(values.get(row, row), argument.name_hint)
            continue
        k = [*update.outs].index(row)
        if kinds[k] == "add":
            yielded[k] = added(block, read(row, argument.name_hint), yielded[k], yielded[k], update)
            kinds[k] = "store"
        known[argument] = yielded[k]
    for op in [*sum_.body.block.ops][:-1]:
        block.add_op(op.clone(known))
    terms = [known.get(v, v) for v in sum_.yielded]
    put(array.YieldOp([*yielded, *terms]), block, update)
    extents, places = [*update.extents], [*update.outs, *outs]
    kinds += ["add"] * len(outs)
    region = update.detach_region(update.body)
    made = array.MapOp(extents, list(element), places, kinds, region)
    made.attributes[array.OWN_ORDER] = UnitAttr()
    locate(made, update.location)
    Rewriter.replace_op(update, made)
    Rewriter.erase_op(sum_)

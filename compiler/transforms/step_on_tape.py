"""Let an array that each iteration saves step from one row of its tape to the next.

`u[1:-1] += f(u)` reads neighbours that it overwrites, so that its result goes to a temporary, and from there
to `u`; and the adjoint needs what `u` was, so that `u` is copied to the tape first. Four sweeps over memory,
where a program that is written for it has one: it keeps all times, and computes row t + 1 of row t. Here `u`
*is* the tape, which has one row more: what an iteration finds is in row t, and what it leaves in row t + 1.

Before::

    func.func @f(%x : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %u = array.alloc(%m) : memref<?xf64>
      array.map(%m) ins(%x : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %saved = ad.push %t(%n, %m) : memref<?x?xf64>
      %trips = array.loop %k to %n do {
        %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1)
            : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
        array.map(%m) ins(%u : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.map(%m) ins(%u : memref<?xf64>) outs(%u : memref<?xf64>) kinds ["store"] {
        ^bb0(%e : f64):
          %square = arith.mulf %e, %e : f64
          array.yield %square : f64
        }
        array.yield
      }
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>>
    func.func @f(%x : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %2 = arith.addi %n, %1 : index
      %saved = ad.push %t(%2, %m) {versions} : memref<?x?xf64>
      %u = array.view %saved[%0, %0] dims [1] extents(%m) steps(%1) : memref<?x?xf64> -> !row
      %u_1 = array.view %saved[%n, %0] dims [1] extents(%m) steps(%1) : memref<?x?xf64> -> !row
      array.map(%m) ins(%x : memref<?xf64>) outs(%u : !row) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %trips = array.loop %k to %n do {
        %u_2 = array.view %saved[%k, %0] dims [1] extents(%m) steps(%1) : memref<?x?xf64> -> !row
        %3 = arith.addi %k, %1 : index
        %u_3 = array.view %saved[%3, %0] dims [1] extents(%m) steps(%1) : memref<?x?xf64> -> !row
        array.map(%m) ins(%u_2 : !row) outs(%u_3 : !row) kinds ["store"] {
        ^bb0(%e_1 : f64):
          %square = arith.mulf %e_1, %e_1 : f64
          array.yield %square : f64
        }
        array.yield
      }
      func.return
    }

What the step does not store to (the edges) is copied from row to row. Legality: the array is the function's
own, and used before the loop, in it, or after it. In an iteration, all that is done up to the save is done to
row t; what is read behind it, too, up to the first store, which is a map that stands in the iteration itself
and stores to a box of the array. All behind that is done to row t + 1.

Rows that are `refilled` (`replays`) are stepped through in the same way, each time from an array that is
filled right before. Where the loop does nothing else it ends with the last row that is saved.

Kept: arguments, which would take a row beside them, and arrays that leave; what is handed to calls or
products, or carried by loops; steps that store to every second element, or under a condition; tapes that
outlive the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from ...dialects import ad, array
from ...dialects.within import ops_of_kind
from ..analysis.affine import affine
from ..diagnostics import locate
from ..rules import writes
from ..rules.builders import element_of, index, transfer
from .memory_effects import functions
from .saved_steps import Step, ancestor, is_zero, step_of

HARMLESS = (
    array.LoopOp,
    scf.IfOp,
    memref.LoadOp,
    memref.DimOp,
    array.AllocOp,
    array.YieldOp,
    scf.YieldOp,
)
"""What changes nothing but memory of its own."""


@dataclass(frozen=True)
class StepOnTape(ModulePass):
    """Compute each saved version of an array where the tape has it."""

    name = "step-on-tape"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if any(True for _ in ops_of_kind(function, ad.DetachOp)):
                continue  # who reads the tape knows its extents
            refilled: dict[array.LoopOp, list[tuple[ad.PushOp, Rows]]] = {}
            for push in list(ops_of_kind(function, ad.PushOp)):
                step = step_of(push)
                if step is not None:
                    rows = rewrite(step)
                    if ad.REFILLED in push.attributes:
                        refilled.setdefault(step.loop, []).append((push, rows))
            for loop, tapes in refilled.items():
                leave_out_last(loop, [rows for _, rows in tapes])


def rewrite(step: Step) -> Rows:
    """Give the tape one row more, and the array the names of the rows."""
    loop, body, made, block = step.loop, step.loop.body.block, step.made, step.loop.parent
    slot, rest = step.save.row.owner, step.save.drop()
    assert block is not None
    assert isinstance(slot, array.ViewOp)
    if step.store is step.save.map:
        assert rest is not None
        step.store = rest
    if slot.result.first_use is None:
        Rewriter.erase_op(slot)
    for op in step.early:
        op.detach()
        block.insert_op_before(op, made)
    refilled = ad.REFILLED in step.push.attributes
    emit = before(step.push if refilled else made, step.store)
    zero, one = index(0, emit), index(1, emit)
    count, *extents = step.push.extents
    longer = emit(arith.AddiOp(count, one))
    tape = ad.PushOp(step.push.tape, [longer, *extents], element_of(made.memref))
    tape.attributes.update(step.push.attributes)
    tape.attributes[ad.VERSIONS] = UnitAttr()
    tape.memref.name_hint = step.push.memref.name_hint
    rows = Rows(emit(tape), made, zero, one)
    step.push.memref.replace_all_uses_with(tape.memref)
    first, last = rows.at(zero, emit), rows.at(count, emit)
    Rewriter.erase_op(step.push)
    assert body.first_op is not None
    emit = before(body.first_op, step.store)
    now = rows.at(loop.induction, emit)
    then = rows.at(emit(arith.AddiOp(loop.induction, one)), emit)
    assert isinstance(then.owner, Operation)
    names = Names(made.memref, body, then.owner)
    after = step.store.next_op
    if step.window is not None and after is not None:
        keep_edges(step.window, made, (now, then), (zero, one), after, step.store)
    for use in uses_of(made.memref):
        op = use.operation
        at = ancestor(op, body)
        if at is None:
            outer = ancestor(op, block)
            assert outer is not None
            version = first if outer.is_before_in_block(loop) else last
        elif at is step.store:
            version = then if use.index >= len(step.store.extents) + len(step.store.ins) else now
        else:
            version = now if at.is_before_in_block(step.store) else then
        op.operands[use.index] = names.of(op.operands[use.index], version, at is not None)
    remove(made)
    return rows


def leave_out_last(loop: array.LoopOp, stepping: Sequence[Rows]) -> None:
    """Let a loop that does nothing but fill tapes from row to row end where its last row is filled."""
    body, rows = loop.body.block, {one.tape for one in stepping}

    def goes_on(memory: SSAValue) -> bool:
        """Whether it is of a row that the next iteration finds, or of this iteration alone."""
        view: array.ViewOp | None = None
        while isinstance(memory.owner, array.ViewOp):
            view, memory = memory.owner, memory.owner.source
        if memory in rows:
            return view is not None and view.offsets[0] is not loop.induction
        return isinstance(memory.owner, Operation) and loop.is_ancestor(memory.owner)

    for op in body.walk():
        if not isinstance(op, array.MapOp | memref.StoreOp):
            if not op.has_trait(Pure) and not isinstance(op, HARMLESS):
                return
        elif not all(goes_on(write.memref) for write in writes(op)):
            return
    count = loop.count
    assert count is not None
    emit = before(loop, loop)
    zero, one = index(0, emit), index(1, emit)
    fewer = emit(arith.MaxSIOp(emit(arith.SubiOp(count, one)), zero))
    loop.operands[loop.operands.index(count)] = fewer
    for tape in rows:
        push = tape.owner
        assert isinstance(push, ad.PushOp)
        longer = push.extents[0].owner
        assert isinstance(longer, arith.AddiOp)
        push.operands[push.operands.index(longer.result)] = longer.lhs
        del push.attributes[ad.VERSIONS]


def before(op: Operation, like: Operation) -> Callable[[Operation], SSAValue]:
    """Puts ops before one, located where another is."""

    def emit(made: Operation) -> SSAValue:
        locate(made, like.location)
        block = op.parent
        assert block is not None
        block.insert_op_before(made, op)
        return made.results[0]

    return emit


@dataclass
class Rows:
    """The rows of a tape, each an array as the one that it has versions of."""

    tape: SSAValue
    made: array.AllocOp
    zero: SSAValue
    one: SSAValue

    def at(self, number: SSAValue, emit: Callable[[Operation], SSAValue]) -> SSAValue:
        extents = list(self.made.extents)
        offsets = [number, *(self.zero for _ in extents)]
        dims, steps = range(1, len(extents) + 1), [self.one for _ in extents]
        view = array.ViewOp(self.tape, offsets, dims, extents, steps)
        view.result.name_hint = self.made.memref.name_hint
        return emit(view)


@dataclass
class Names:
    """The names of parts of an array, as parts of its versions."""

    whole: SSAValue
    body: Block
    start: Operation
    """Behind it, names from before the loop are names in the loop."""
    known: dict[tuple[SSAValue, SSAValue], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, SSAValue], SSAValue]
    )

    def of(self, name: SSAValue, version: SSAValue, inside: bool) -> SSAValue:
        if name is self.whole:
            return version
        found = self.known.get((name, version))
        if found is None:
            view = name.owner
            assert isinstance(view, array.ViewOp)
            made = view.of(self.of(view.source, version, inside), lambda number: number)
            made.location = view.location
            made.result.name_hint = name.name_hint
            if inside and ancestor(view, self.body) is None:
                self.body.insert_op_after(made, self.start)
                self.start = made
            else:
                assert view.parent is not None
                view.parent.insert_op_after(made, view)
            found = self.known[name, version] = made.result
        return found


def uses_of(whole: SSAValue) -> list[Use]:
    """Where an array, or a part of it, is used for its elements."""
    found: list[Use] = []
    pending = [whole]
    while pending:
        for use in pending.pop().uses:
            if isinstance(use.operation, array.ViewOp):
                pending.append(use.operation.result)
            else:
                found.append(use)
    return found


def keep_edges(
    window: array.ViewOp,
    made: array.AllocOp,
    versions: tuple[SSAValue, SSAValue],
    numbers: tuple[SSAValue, SSAValue],
    after: Operation,
    like: Operation,
) -> None:
    """Copy what a store to a window of the array leaves as it is, from one version to the next: along each
    axis what is before the window, and behind it. `numbers`: 0 and 1; the copies go before `after`.
    """
    (now, then), (zero, one) = versions, numbers
    emit = before(after, like)
    lows, sizes = [zero for _ in window.offsets], list(made.extents)
    for axis, (offset, inner) in enumerate(zip(window.offsets, window.extents, strict=True)):
        size = sizes[axis]
        if not is_zero(offset):
            sizes[axis] = emit(arith.MinSIOp(offset, size))
            copy_box(now, then, lows, sizes, one, after)
        if affine(offset) + affine(inner) != affine(size):
            lows[axis] = emit(arith.AddiOp(offset, inner))
            rest = emit(arith.SubiOp(size, lows[axis]))
            sizes[axis] = emit(arith.MaxSIOp(rest, zero))
            copy_box(now, then, lows, sizes, one, after)
        lows[axis], sizes[axis] = offset, inner


def copy_box(
    source: SSAValue,
    target: SSAValue,
    lows: Sequence[SSAValue],
    sizes: Sequence[SSAValue],
    one: SSAValue,
    after: Operation,
) -> None:
    emit = before(after, after)
    steps, dims = [one for _ in sizes], range(len(sizes))
    parts = [emit(array.ViewOp(m, lows, dims, sizes, steps)) for m in (source, target)]
    copy = transfer(parts[0], parts[1], sizes)
    locate(copy, after.location)
    assert after.parent is not None
    after.parent.insert_op_before(copy, after)


def remove(made: array.AllocOp) -> None:
    """Erase an array of which nothing is left but names."""
    pending: list[Operation] = [made]
    while pending:
        names = [use.operation for use in pending[-1].results[0].uses]
        assert all(isinstance(op, array.ViewOp) for op in names)
        if names:
            pending += names
        else:
            Rewriter.erase_op(pending.pop())
